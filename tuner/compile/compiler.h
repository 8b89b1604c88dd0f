// Compiles variants with NVRTC in child processes: a crash, a hang or a compiler that eats all memory costs one variant.
// In: source text and target. Out: cubin with its resources, or a status. The cubin cache is content-addressed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "generator/base/arch.h"
#include "generator/base/error.h"
#include "generator/base/launch_plan.h"
#include "generator/base/status.h"

namespace kw::tuner {

/// What NVRTC we use and where it came from.
struct NvrtcInfo {
  std::string nvrtc_path;
  int major = 0, minor = 0;
  std::string origin;                ///< "CUDA toolkit", "PyPI wheel", "KERNELWRIGHT_NVRTC"
  std::string version_text() const;  ///< "12.9"
  std::vector<Arch> arches;          ///< targets this NVRTC compiles for
  std::int64_t nvrtc_bytes = 0;      ///< tells builds of one version apart in the cache's key, without a path
};
/// Looks at $KERNELWRIGHT_NVRTC, the toolkit's folders and ld.so, then the private folder of the wheel. Does not keep it loaded.
/// Error (kToolchain): every place looked at, and how to get NVRTC.
Result<NvrtcInfo> find_nvrtc();

struct CompileRequest {
  std::string source;
  Arch arch = Arch::kSm80;
  std::string kernel_name;                      ///< empty: registers and the like are not asked for
  std::vector<std::string> other_kernels = {};  ///< of a plan of several: registers are the most, spills the sum over all
  std::string file_name = {};                   ///< in messages and line information; empty: KERNEL_NAME.cu
  std::vector<std::string> options;             ///< besides --gpu-architecture, -std=c++20 and the ptxas report
  bool wants_ptx = false;
  bool uses_cache = true;  ///< false: compiled even when the cache has it, and not kept
};

/// Asks for the facts of every kernel that the plan launches.
void name_kernels(const LaunchPlan& plan, CompileRequest& request);

struct CompiledKernel {
  std::string cubin;
  std::string ptx;  ///< only when asked for
  std::string key;  ///< content address: source + flags + NVRTC version + arch
  int registers = 0;
  int spill_store_bytes = 0, spill_load_bytes = 0, stack_bytes = 0;
  int static_smem_bytes = 0;
  double compile_ms = 0;  ///< of the compile that made it, also when it came from the cache
  bool is_from_cache = false;
  std::string log;
};

struct CompileOutcome {
  TrialStatus status = TrialStatus::kOk;  ///< kOk, kCompileFailed, kCompileCrashed, kCompileTimeout, kSpillsRefused, kRefused
  std::string error;                      ///< first line of the compiler's complaint
  CompiledKernel kernel;
  /// Not the variant's fault (the worker did not start or was killed from outside, NVRTC has no memory, the pool was stopped): no ban.
  bool is_transient = false;
};

/// Whether this NVRTC compiles for `arch`. Error kToolchain: names both, and how to get a newer one.
Status check_arch(const NvrtcInfo& nvrtc, Arch arch);

struct CompilePoolOptions {
  NvrtcInfo nvrtc;
  int num_workers = 0;                          ///< 0: one per core
  std::chrono::milliseconds time_limit{30000};  ///< per compile
  std::int64_t memory_limit_bytes = 4ll << 30;  ///< of all workers together
  std::string cache_folder;                     ///< empty: no cache
  std::int64_t cache_quota_bytes = 2ll << 30;   ///< oldest entries go first
  bool refuses_spills = true;
  int compiles_per_worker = 500;  ///< then a fresh process: the compiler's memory stays flat
  std::string worker_command;     ///< path of this executable; started as `<path> __compile-worker`
};

class CompilePool;
/// Compiles an empty kernel, past the cache. Error kToolchain: no compile succeeds, so a variant's failure is not the variant's.
Status check_compiler(CompilePool& pool, Arch arch);

/// Persistent child processes, one compile at a time each. Thread-safe.
class CompilePool {
 public:
  static Result<std::unique_ptr<CompilePool>> start(CompilePoolOptions options);
  virtual ~CompilePool() = default;
  virtual std::future<CompileOutcome> submit(CompileRequest request) = 0;
  virtual int num_workers() const = 0;
};

/// The child's main function: reads jobs from stdin, writes results to stdout, ends at end of file.
int compile_worker_main();

}  // namespace kw::tuner
