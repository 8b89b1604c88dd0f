// The executable: `kernelwright COMMAND ...`, and its own worker processes. Environment is read here and nowhere else.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string_view>

#include "tuner/cli/command.h"
#include "tuner/cli/output.h"
#include "tuner/compile/compiler.h"
#include "tuner/device/gpu_worker.h"

namespace kw::tuner {

const std::vector<Command>& commands() {
  static const std::vector<Command> list = {
      {"generate", "SPEC [--arch sm_80] [--set M=1024,...] [--limit N] [-o DIR]", "Writes variants as .cu files and a manifest.",
       run_generate},
      {"tune",
       "SPEC... [--db F] [--set M=..] [--budget 60s] [--search halving|exhaustive|random] [--device auto|cuda:0|none] "
       "[--baseline cublaslt]",
       "Generates, compiles, verifies and times variants; keeps every result.", run_tune},
      {"verify", "SPEC... [--set M=..] [--variants N] [--seed S]",
       "Compiles random legal variants and checks each on the device, without timing.", run_verify},
      {"simulate", "SPEC...|[KERNEL.cu|KERNEL.ptx] --launch L.toml [--schedule eager|lazy|random:SEED] [--report F.html|F.json]",
       "Checks variants, or a kernel of yours, on the PTX simulator: results, races, fences, bounds, deadlocks. No GPU.", run_simulate},
      {"query", "OP --set M=..,N=..,K=..", "The tuned kernel for a shape, and how good the match is.", run_query},
      {"export", "OP [--set ..]... -o DIR", "Writes tuned kernels as a folder that builds alone.", run_export},
      {"explain", "SPEC [--set ..]", "Program, plan, traffic, roofline, config space and the model's ranking.", run_explain},
      {"show", "OP|VARIANT [--plan|--ptx|--sass]", "Source, launch plan and resources of a stored variant.", run_show},
      {"db", "check|info|gc|merge OTHER|diff OTHER", "Looks after the tuning database.", run_db},
      {"replay", "[FILE...] [--record FILE]", "Emits the variants of the database, or of replay records, again and compares the texts.",
       run_replay},
      {"doctor", "", "What this machine has, what is missing and how to get it.", run_doctor},
  };
  return list;
}

namespace {

void print_usage() {
  fmt::print("usage: kernelwright COMMAND ...   (kernelwright COMMAND --help)\n\n");
  for (const Command& command : commands()) fmt::print("  {:<9} {}\n            {}\n", command.name, command.synopsis, command.summary);
  fmt::print("\nexit codes: 0 ok, 1 nothing found, or no kernel for it yet, 2 bad input, 3 device or toolchain fault\n");
}

/// An op or a shape that is well formed and has no kernel yet is nothing found, not bad input.
int exit_code(const Error& error) {
  const bool has_no_kernel = error.code == Code::kNotSupported && (error.stage == Stage::kPlan || error.stage == Stage::kSpace);
  return has_no_kernel ? 1 : kw::exit_code(error.code);
}

std::string own_path(const char* argv0) {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string(argv0) : path.string();
}

int run(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "--help";
  if (name == "--help" || name == "-h" || name == "help") return print_usage(), 0;
  if (name == "--version") return fmt::print("kernelwright {}\n", generator_version()), 0;

  Invocation invocation;
  invocation.executable = own_path(argv[0]);
  invocation.command_line = "kernelwright";
  for (int i = 1; i < argc; ++i) invocation.command_line += std::string(" ") + argv[i];
  for (int i = 2; i < argc; ++i) invocation.arguments.emplace_back(argv[i]);
  invocation.home = std::getenv("HOME");
  invocation.xdg_data_home = std::getenv("XDG_DATA_HOME");
  invocation.xdg_cache_home = std::getenv("XDG_CACHE_HOME");
  invocation.kernelwright_db = std::getenv("KERNELWRIGHT_DB");
  invocation.is_terminal = isatty(STDERR_FILENO) != 0;

  std::vector<std::string> names;
  for (const Command& command : commands()) {
    names.push_back(command.name);
    if (command.name != name) continue;
    const Result<int> result = command.run(invocation);
    if (result) return *result;
    fmt::print(stderr, "kernelwright: {}\n", to_text(result.error()));
    if (!result.error().detail.empty()) fmt::print(stderr, "{}\n", result.error().detail);
    return exit_code(result.error());
  }
  const std::string near = nearest_name(name, names);
  fmt::print(stderr, "kernelwright: unknown command '{}'{}\n", name, near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
  return 2;
}

}  // namespace
}  // namespace kw::tuner

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a worker that dies is a status, not the end of the run
  std::signal(SIGXFSZ, SIG_IGN);  // a file over the limit is a failed write, reported with its path
  const std::string_view name = argc > 1 ? argv[1] : "";
  if (name == "__compile-worker") return kw::tuner::compile_worker_main();
  if (name == "__gpu-worker") return kw::tuner::gpu_worker_main();
  kw::tuner::guard_output();
  int code = 3;
  try {
    code = kw::tuner::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "kernelwright: internal fault: {}\n", error.what());
  }
  return kw::tuner::finish_output(code);
}
