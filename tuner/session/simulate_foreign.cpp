// See simulate_foreign.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/session/simulate_foreign.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "simulator/ptx/parser.h"

namespace kw::tuner {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMaxLaunchFileBytes = 1 << 20;
constexpr std::uintmax_t kMaxKernelBytes = 64 << 20;  // a whole library's PTX; a kernel has less than one of these megabytes
constexpr std::uintmax_t kMaxDataBytes = 1ull << 30;  // the simulation's own cap of global memory
constexpr std::uintmax_t kMaxQuotedBytes = 4 << 20;   // of a source that a report quotes

tl::unexpected<Error> refuse(std::string message, SourceRange where = {}) {
  return fail(Stage::kCommandLine, Code::kBadInput, std::move(message), std::move(where));
}

Result<std::string> read_regular_file(const fs::path& path, std::uintmax_t max_bytes) {
  std::error_code error;
  const std::string name = path.string();
  if (!fs::exists(path, error)) return refuse("no such file", {name, 0, 0});
  if (!fs::is_regular_file(path, error)) return refuse("not a regular file", {name, 0, 0});
  const std::uintmax_t num_bytes = fs::file_size(path, error);
  if (!error && num_bytes > max_bytes)
    return refuse(fmt::format("{} bytes: the limit for this file is {}", num_bytes, max_bytes), {name, 0, 0});
  std::ifstream stream(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(stream), {});
  if (!stream.good() && !stream.eof()) return refuse("cannot be read", {name, 0, 0});
  if (!stream.is_open()) return refuse("cannot be read", {name, 0, 0});
  return text;
}

/// Where NVRTC's toolkit keeps cuda_fp16.h and its like: beside the library, when it was found by a path.
std::vector<fs::path> toolkit_includes(const NvrtcInfo& nvrtc) {
  const fs::path include = fs::path(nvrtc.nvrtc_path).parent_path() / ".." / "include";
  std::error_code error;
  if (nvrtc.nvrtc_path.find('/') == std::string::npos || !fs::exists(include / "cuda_fp16.h", error)) return {};
  return {include};
}

Result<std::string> compile_to_ptx(const std::string& source, const fs::path& path, const ForeignOptions& options, Services& services) {
  KW_TRY(const NvrtcInfo nvrtc, services.nvrtc());
  KW_TRY_VOID(check_arch(nvrtc, options.arch));
  KW_TRY(CompilePool * pool, services.compile_pool());
  CompileRequest request;
  request.source = source;
  request.arch = options.arch;
  request.file_name = path.filename().string();
  request.options = {"-lineinfo"};
  for (const std::string& folder : options.include_folders) request.options.push_back("-I" + folder);
  request.options.push_back("-I" + (path.has_parent_path() ? path.parent_path().string() : std::string(".")));
  for (const fs::path& folder : toolkit_includes(nvrtc)) request.options.push_back("-I" + folder.string());
  request.wants_ptx = true;
  request.uses_cache = false;  // the cache's key does not know the headers
  CompileOutcome outcome = pool->submit(std::move(request)).get();
  // A kernel that spills, or whose wgmma ptxas serialises, is slow, not wrong: its PTX is what counts here.
  if (!outcome.kernel.ptx.empty()) return std::move(outcome.kernel.ptx);
  const bool is_source_at_fault = outcome.status == TrialStatus::kCompileFailed && !outcome.is_transient;
  if (is_source_at_fault) KW_TRY_VOID(check_compiler(*pool, options.arch));
  return fail(Error{Stage::kCompile,
                    is_source_at_fault ? Code::kBadInput : Code::kToolchain,
                    fmt::format("does not compile for {}: {}", to_text(options.arch), outcome.error),
                    {path.string(), 0, 0},
                    outcome.kernel.log});
}

/// Texts of the sources that the PTX names, where they are at hand: the kernel's own, files beside it, files under their full name.
simulate::ReportTexts texts_to_quote(const std::string& ptx, const simulate::Module& module, const fs::path& kernel_path) {
  simulate::ReportTexts texts;
  texts.ptx = simulate::TextLines(ptx);
  for (const std::string& name : module.source_files) {
    const fs::path path(name);
    if (!path.has_filename()) continue;
    for (const fs::path& candidate : {kernel_path.parent_path() / path.filename(), path}) {
      const auto text = read_regular_file(candidate, kMaxQuotedBytes);
      if (!text) continue;
      texts.sources.emplace(name, simulate::TextLines(*text));
      break;
    }
  }
  return texts;
}

Result<ForeignRun> run_once(const simulate::LaunchFile& launch, const simulate::Module& module, const simulate::ReadFile& read_file,
                            const simulate::Schedule& schedule, const ForeignOptions& options) {
  simulate::SimulationOptions simulation_options;
  simulation_options.schedule = schedule;
  simulation_options.tensor_mode = options.tensor_mode;
  simulation_options.limits.max_warp_instructions = options.max_warp_instructions;
  simulate::Simulation simulation(simulation_options);
  KW_TRY(const simulate::PreparedLaunch prepared, prepare_launch(launch, read_file, simulation));
  ForeignRun run;
  auto report = simulation.launch(module, prepared.call);
  if (!report) {
    Error error = std::move(report.error());
    if (error.where.file.empty()) error.where = {launch.file, 0, 0};
    return fail(std::move(error));
  }
  run.report = std::move(*report);
  if (run.report.has_ended) {
    KW_TRY(run.differences, compare_expected(launch, prepared, read_file, simulation));
  }
  return run;
}

}  // namespace

bool ForeignSummary::is_right() const {
  return std::all_of(runs.begin(), runs.end(), [](const ForeignRun& run) { return run.is_right(); });
}

std::vector<const simulate::LaunchReport*> ForeignSummary::reports() const {
  std::vector<const simulate::LaunchReport*> all;
  for (const ForeignRun& run : runs) all.push_back(&run.report);
  return all;
}

std::vector<std::string> ForeignSummary::failures() const {
  std::vector<std::string> lines;
  for (const ForeignRun& run : runs) {
    for (const simulate::Difference& difference : run.differences) {
      lines.push_back(fmt::format("schedule {}: buffer '{}': {} of {} elements are wrong, the first is {}: got {}, expected {}",
                                  simulate::to_text(run.report.schedule), difference.buffer, difference.num_wrong, difference.num_elements,
                                  difference.first_element, difference.got, difference.expected));
    }
  }
  return lines;
}

Result<ForeignSummary> simulate_foreign(const ForeignOptions& options, Services& services) {
  const fs::path launch_path(options.launch_file);
  KW_TRY(const std::string launch_text, read_regular_file(launch_path, kMaxLaunchFileBytes));
  KW_TRY(simulate::LaunchFile launch, simulate::parse_launch_file(launch_text, options.launch_file));
  if (options.kernel_file.empty() && launch.source.empty())
    return refuse("source must be given, or the kernel's file on the command line", {options.launch_file, 0, 0});
  const fs::path kernel_path = options.kernel_file.empty() ? launch_path.parent_path() / launch.source : fs::path(options.kernel_file);
  const std::string extension = kernel_path.extension().string();
  if (extension != ".ptx" && extension != ".cu")
    return refuse("the name of a kernel's file ends in .ptx or .cu", {kernel_path.string(), 0, 0});
  KW_TRY(std::string ptx, read_regular_file(kernel_path, kMaxKernelBytes));
  std::string ptx_name = kernel_path.string();
  if (extension == ".cu") {
    KW_TRY(ptx, compile_to_ptx(ptx, kernel_path, options, services));
    ptx_name = kernel_path.stem().string() + ".ptx";
  }
  KW_TRY(const simulate::Module module, simulate::parse_ptx(ptx, ptx_name));
  ForeignSummary summary;
  summary.kernel_file = kernel_path.string();
  KW_TRY(summary.kernel, simulate::find_kernel_symbol(launch, module));
  launch.call.kernel = summary.kernel;
  summary.texts = texts_to_quote(ptx, module, kernel_path);
  const simulate::ReadFile read_file = [&](const std::string& name) -> Result<std::vector<std::byte>> {
    KW_TRY(const std::string text, read_regular_file(launch_path.parent_path() / name, kMaxDataBytes));
    const auto* first = reinterpret_cast<const std::byte*>(text.data());
    return std::vector<std::byte>(first, first + text.size());
  };
  for (const simulate::Schedule& schedule : options.schedules) {
    KW_TRY(ForeignRun run, run_once(launch, module, read_file, schedule, options));
    summary.runs.push_back(std::move(run));
  }
  return summary;
}

}  // namespace kw::tuner
