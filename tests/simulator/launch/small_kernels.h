// Small kernels in PTX, each with one thing to find, and a short way to launch them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "simulator/launch/simulation.h"
#include "simulator/ptx/parser.h"

namespace kw::simulate {

/// Wraps a body into a module with one kernel `k`.
inline std::string kernel_text(const std::string& parameters, const std::string& body, const std::string& module_variables = "",
                               const std::string& directives = "") {
  std::string text = ".version 8.4\n.target sm_90a\n.address_size 64\n";
  text.append(module_variables).append("\n.visible .entry k(").append(parameters).append(")\n").append(directives);
  text.append("\n{\n").append(body).append("\n}\n");
  return text;
}

/// y[i] = a * x[i] + y[i] for i < n.
inline std::string saxpy_text() {
  return kernel_text(".param .u32 n, .param .f32 a, .param .u64 x, .param .u64 y", R"(
  .reg .pred %p<2>; .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .b64 %rd<6>;
  ld.param.u32 %r1, [n];
  ld.param.f32 %f1, [a];
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.s32 %p1, %r5, %r1;
  @%p1 bra DONE;
  mul.wide.s32 %rd3, %r5, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f2, [%rd4];
  ld.global.f32 %f3, [%rd5];
  fma.rn.f32 %f3, %f1, %f2, %f3;
  st.global.f32 [%rd5], %f3;
DONE:
  ret;)");
}

/// Reverses 64 words of a CTA through shared memory; `barrier` stands between the write and the read.
inline std::string reverse_text(const std::string& barrier = "bar.sync 0;") {
  return kernel_text(".param .u64 out", R"(
  .reg .b32 %r<8>; .reg .b64 %rd<4>;
  .shared .align 4 .b8 tile[256];
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  shl.b32 %r2, %r1, 2;
  mov.u32 %r3, tile;
  add.s32 %r4, %r3, %r2;
  st.shared.u32 [%r4], %r1;
  )" + barrier + R"(
  sub.s32 %r5, 252, %r2;
  add.s32 %r6, %r3, %r5;
  ld.shared.u32 %r7, [%r6];
  cvt.u64.u32 %rd2, %r2;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r7;
  ret;)");
}

struct KernelRun {
  explicit KernelRun(const std::string& text, SimulationOptions options = {}) : simulation(options) {
    Result<Module> parsed = parse_ptx(text, "k.ptx");
    if (!parsed) throw std::runtime_error(parsed.error().message);
    module = std::move(*parsed);
    call.kernel.push_back('k');
  }
  std::uint64_t buffer(const std::string& name, const std::vector<std::uint32_t>& words, AllocationRole role = AllocationRole::kInput) {
    std::vector<std::byte> bytes(words.size() * 4);
    std::memcpy(bytes.data(), words.data(), bytes.size());
    return *simulation.allocate({name, bytes.size(), role, 256, role == AllocationRole::kOutput ? std::span<const std::byte>{} : bytes});
  }
  std::vector<std::uint32_t> words(std::uint64_t address) const {
    const auto bytes = simulation.bytes(address);
    std::vector<std::uint32_t> words(bytes.size() / 4);
    std::memcpy(words.data(), bytes.data(), words.size() * 4);
    return words;
  }
  LaunchReport run() {
    Result<LaunchReport> report = simulation.launch(module, call);
    if (!report) throw std::runtime_error(report.error().message);
    return std::move(*report);
  }
  std::string refusal() {
    Result<LaunchReport> report = simulation.launch(module, call);
    return report ? "" : report.error().message;
  }
  Simulation simulation;
  Module module;
  LaunchCall call;
};

inline std::vector<FindingKind> kinds_of(const LaunchReport& report) {
  std::vector<FindingKind> kinds;
  for (const Finding& finding : report.findings) kinds.push_back(finding.kind);
  return kinds;
}

inline const std::vector<Schedule>& all_schedules() {
  static const std::vector<Schedule> schedules = {
      {Adversary::kEager, 0}, {Adversary::kLazy, 0}, {Adversary::kRandom, 1}, {Adversary::kRandom, 7}, {Adversary::kLazy, 3}};
  return schedules;
}

}  // namespace kw::simulate
