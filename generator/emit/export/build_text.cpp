// Export: the banner of every file, CMakeLists.txt and README.md.
// SPDX-License-Identifier: Apache-2.0
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "generator/emit/export/model.h"
#include "generator/emit/export/names.h"

namespace kw::generator {
namespace {

std::string nvcc_line(const ExportModel& model) { return fmt::format("nvcc -std=c++20 -O3 {} -c {}.cu", nvcc_arch_flags(model), model.op); }

std::string join_set(const std::set<std::string>& values) {
  return values.empty() ? std::string("unknown") : fmt::format("{}", fmt::join(values, "; "));
}

}  // namespace

std::string banner_text(const ExportModel& model, std::string_view file, std::string_view what) {
  std::set<std::string> toolchains, flags;
  for (const UniqueKernel& unique : model.kernels) {
    if (!unique.kernel->toolchain.empty()) toolchains.insert(unique.kernel->toolchain);
    if (!unique.kernel->flags.empty()) flags.insert(unique.kernel->flags);
  }
  std::string text = fmt::format("{}: {} of the op {}. Made by Kernelwright; needs nothing of it.\n", file, what, model.op);
  text += fmt::format("Identity of the op: {}\n", identity(*model.program));
  for (const ExportKernel& kernel : model.request->kernels) {
    text += fmt::format("Problem {}: {}; {}{}\n", kernel.problem.to_text(), kernel.variant_id, timing_text(kernel),
                        kernel.record_id.empty() ? "" : fmt::format("; record {}", kernel.record_id));
  }
  text += fmt::format("Every other shape: the nearest of these that is legal there, else {}\n", model.request->fallback.variant_id);
  text += fmt::format("Toolchain: {}\nFlags: {}\n", join_set(toolchains), join_set(flags));
  if (!model.request->command_line.empty()) text += fmt::format("Command: {}\n", model.request->command_line);
  text += fmt::format("Build: {}", nvcc_line(model));
  return comment(text) + "// SPDX-License-Identifier: Apache-2.0\n";
}

std::string cmake_text(const ExportModel& model) {
  std::vector<std::string> arches;
  for (const Arch arch : model.arches) arches.emplace_back(to_text(arch).substr(3));
  for (std::string& arch : arches) {
    if (arch.back() == 'a') arch += "-real";
  }
  return fmt::format(
      "# The op {0} as a static library, and its test against the naive formula (needs a GPU).\n"
      "# SPDX-License-Identifier: Apache-2.0\n"
      "cmake_minimum_required(VERSION 3.25)\n"
      "project({0} LANGUAGES CXX CUDA)\n\n"
      "if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE)\n  set(CMAKE_BUILD_TYPE Release)\nendif()\n\n"
      "add_library({0} STATIC {0}.cu)\n"
      "set_target_properties({0} PROPERTIES CUDA_ARCHITECTURES \"{1}\" POSITION_INDEPENDENT_CODE ON)\n"
      "# As an option: CMake 3.25 does not know that nvcc has C++20.\n"
      "target_compile_options({0} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>)\n"
      "target_include_directories({0} PUBLIC \"${{CMAKE_CURRENT_SOURCE_DIR}}\")\n\n"
      "if(PROJECT_IS_TOP_LEVEL)\n"
      "  enable_testing()\n"
      "  add_executable(test_{0} test_{0}.cu)\n"
      "  set_target_properties(test_{0} PROPERTIES CUDA_ARCHITECTURES \"{1}\")\n"
      "  target_compile_options(test_{0} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>)\n"
      "  target_link_libraries(test_{0} PRIVATE {0})\n"
      "  add_test(NAME test_{0} COMMAND test_{0})\n"
      "endif()\n",
      model.op, fmt::join(arches, ";"));
}

std::string readme_text(const ExportModel& model) {
  std::string text = fmt::format(
      "# {0}\n\nCUDA kernels of one op, with a plain C++ launcher. Made by Kernelwright; the folder needs nothing but a CUDA toolkit (12.0 "
      "or later).\n\n"
      "```\n{1}\n```\n\n",
      model.op, to_text(*model.program));
  text += "| shape | kernel | time |\n|---|---|---|\n";
  for (const ExportKernel& kernel : model.request->kernels) {
    text += fmt::format("| {} | `{}` | {} |\n", kernel.problem.to_text(), kernel.variant_id, timing_text(kernel));
  }
  text += fmt::format("| every other | the nearest above that is legal there, else `{}` | |\n\n", model.request->fallback.variant_id);
  text += fmt::format(
      "## Use\n\nAdd `{0}.cu` and `{0}.h` to your project, or `add_subdirectory` this folder and link `{0}`. By hand:\n\n"
      "    {1}\n\n"
      "`{0}.h` states the arguments and the limits. A launch allocates nothing and waits for nothing, so it may be captured into a CUDA "
      "Graph.\n",
      model.op, nvcc_line(model));
  if (model.has_workspace || model.has_zeroed_workspace) {
    text += fmt::format("\nSome shapes need scratch memory: `{}_workspace_bytes()` says how much, and the caller passes it.\n", model.op);
  }
  if (model.has_zeroed_workspace) text += "The zeroed workspace is set to zero once, before its first use; launches leave it zero.\n";
  if (has_checks(model)) {
    text +=
        "\nSome subscripts are data. Built with `-D KERNELWRIGHT_CHECKED`, a kernel that reads at one outside of its axis prints it and "
        "ends with "
        "an error.\n";
  }
  text += fmt::format(
      "\n## Test\n\n"
      "    nvcc -std=c++20 -O3 {1} {0}.cu test_{0}.cu -o test_{0} && ./test_{0}\n\n"
      "compares every kernel on random inputs with the op's formula in double: at the tuned shapes, at odd ones and at empty ones, "
      "launched and\n"
      "replayed from a CUDA Graph. It prints PASS or FAIL and returns 0 or 1.\n\n"
      "The kernels' text is the recorded one, but for `extern \"C\"`, which is taken off so that several fit one file. Generated code "
      "carries no duty\n"
      "from the licence of the generator.\n",
      model.op, nvcc_arch_flags(model));
  return text;
}

}  // namespace kw::generator
