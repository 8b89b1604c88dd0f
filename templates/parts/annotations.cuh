// Annotations by which a template tells the generator about itself. For NVRTC, nvcc and a reader's compiler they are nothing;
// the generator's parser (clang reading CUDA) sees them as attributes. They may stand before a declaration or after the name of an alias.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(__clang__) && defined(__CUDA__)
/// A searched member of Config: TUNE("m", 64, 128) static constexpr int BLOCK_M = 128;   the key spells it in variant ids.
/// A string behind the key names a variable of the problem: TUNE("n", "extent_n", 0): its value at the problem is one of the values.
#define TUNE(key, ...) [[clang::annotate("tune", key, __VA_ARGS__)]]
/// A member of Config that the problem gives: BIND("unit_stride:A:k") static constexpr bool A_IS_K_CONTIGUOUS = true;
/// using ElementA BIND("dtype:A") = Half;
#define BIND(source) [[clang::annotate("bind", source)]]
/// A constexpr function that must hold. Without parameters: a rule on the config. With parameters: a rule on the problem.
#define RULE(name, why) [[clang::annotate("rule", name, why)]]
/// A constexpr function the host needs: "grid_x", "block_x", "dynamic_smem_bytes", "workspace:NAME", "workspace_zeroed:NAME".
#define LAUNCH(what) [[clang::annotate("launch", what)]]
/// A constexpr function the analytic model reads: see docs/adding-a-template.md for the list.
#define ESTIMATE(what) [[clang::annotate("estimate", what)]]
/// On the kernel: what it computes, in the op notation with holes.
#define COMPUTES(text) [[clang::annotate("computes", text)]]
/// On the kernel: the lowest architecture, "sm_80".
#define REQUIRES_ARCH(arch) [[clang::annotate("requires_arch", arch)]]
/// A function or struct whose body the generator replaces.
#define HOOK(name) [[clang::annotate("hook", name)]]
#else
#define TUNE(key, ...)
#define BIND(source)
#define RULE(name, why)
#define LAUNCH(what)
#define ESTIMATE(what)
#define COMPUTES(text)
#define REQUIRES_ARCH(arch)
#define HOOK(name)
#endif

/// Limits of the target as constants a RULE may name. The values here are sm_80's, for reading and compiling the template as it
/// stands; the generator reads the names as variables and puts the limits of the target in.
struct DeviceLimits {
  static constexpr long long max_smem_bytes = 166912;  // CUDA Programming Guide, technical specifications: 163 KB opt-in on 8.0
  static constexpr long long smem_bytes_per_sm = 167936;
  static constexpr long long max_threads_per_cta = 1024;
  static constexpr long long max_registers_per_thread = 255;
  static constexpr long long registers_per_sm = 65536;
  static constexpr long long num_sms = 108;
  static constexpr long long arch = 80;
};
