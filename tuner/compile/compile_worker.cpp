// The child's side of the compile pool. See compile_worker.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/compile/compile_worker.h"

#include <chrono>
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <sys/resource.h>

#include "tuner/compile/compiler.h"
#include "tuner/compile/message.h"

namespace kw::tuner {
namespace {

Message compile_one(const CompileFunction& compile, const Message& question) {
  const CompileJob job{.source = question.blobs.at(0),
                       .file_name = question.head.value("file_name", "kernel.cu"),
                       .options = question.head.value("options", std::vector<std::string>{}),
                       .wants_ptx = question.head.value("wants_ptx", false)};
  const auto start = std::chrono::steady_clock::now();
  NvrtcResult result = compile(job);
  const double compile_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  Message answer;
  answer.head = {
      {"ok", result.is_ok}, {"code", result.code_text}, {"is_toolchain_fault", result.is_toolchain_fault}, {"compile_ms", compile_ms}};
  answer.blobs = {std::move(result.cubin), std::move(result.ptx), std::move(result.log)};
  return answer;
}

}  // namespace

Result<CompileFunction> nvrtc_compiler(const std::string& nvrtc_path) {
  KW_TRY(std::unique_ptr<NvrtcLibrary> loaded, NvrtcLibrary::load(nvrtc_path));
  const std::shared_ptr<NvrtcLibrary> library = std::move(loaded);
  return CompileFunction(
      [library](const CompileJob& job) { return library->compile(job.source, job.file_name, job.options, job.wants_ptx); });
}

int run_compile_worker(const CompilerFactory& factory) {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);  // a compiler's crash is expected: no core files
  Result<ChildChannel> channel = ChildChannel::take_over_stdin();
  if (!channel) {
    std::fputs(fmt::format("{}\n", channel.error().message).c_str(), stderr);
    return 2;
  }
  CompileFunction compile;
  Message question;
  while (channel->receive(question)) {
    Message answer;
    if (question.head.value("op", "") == "load") {
      Result<CompileFunction> made = factory(question.head.value("nvrtc_path", ""));
      answer.head = {{"ok", made.has_value()}, {"error", made ? "" : made.error().message}};
      if (made) compile = std::move(*made);
    } else if (compile && question.blobs.size() == 1) {
      answer = compile_one(compile, question);
    } else {
      answer.head = {{"ok", false}, {"code", "compile worker: a job before the library"}};
    }
    if (!channel->send(answer)) return 0;
  }
  return 0;
}

int compile_worker_main() { return run_compile_worker(nvrtc_compiler); }

}  // namespace kw::tuner
