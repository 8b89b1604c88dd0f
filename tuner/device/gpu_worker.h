// The GPU lives in a child process. This is the parent's handle: an illegal access, a hang or a sticky CUDA error ends the child
// and costs one variant; a fresh child is started for the next. The parent never touches CUDA.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "generator/base/arch.h"
#include "generator/base/error.h"
#include "generator/base/launch_plan.h"
#include "generator/base/status.h"
#include "tuner/device/kernel_job.h"
#include "tuner/measure/protocol.h"

namespace kw::tuner {

struct DeviceInfo {
  std::string uuid;  ///< "GPU-xxxxxxxx-...."
  int ordinal = 0;
  int driver_version = 0;   ///< 13000 for CUDA 13.0
  std::string driver_text;  ///< "580.159.04" when NVML says so
  DeviceLimits limits;      ///< model name, SMs, L2, clocks; rates from the arch table
  std::int64_t memory_bytes = 0;
};
/// Devices of this machine, found in a short-lived child (no context here). Error kDevice: no driver, no device, and how to mend it.
Result<std::vector<DeviceInfo>> list_devices(const std::string& worker_command);

/// How one input tensor is filled on the device and, element by element, on the host (bit-equal): see tuner/verify/random_input.h.
struct InputFill {
  std::string tensor;
  DType dtype = DType::kF16;
  /// kSorted: ascending integers from low (first element) to high - 1 (last element); kUnique: distinct integers in [low, high).
  enum class Kind { kNormal = 0, kUniform = 1, kInteger = 2, kSorted = 3, kUnique = 4 } kind = Kind::kNormal;
  double low = 0, high = 0;  ///< all but kNormal (inclusive low, exclusive high)
  std::uint64_t seed = 0;
  std::int64_t num_elements = 0;  ///< kSorted: elements of the tensor
};

/// Reference values of sampled output elements.
struct OutputSamples {
  std::string tensor;
  DType dtype = DType::kF16;
  std::vector<std::int64_t> offsets;      ///< in elements from the tensor's pointer
  std::vector<std::int64_t> coordinates;  ///< rank numbers per sample, for the message
  int rank = 0;
  std::vector<double> values, bounds;
};

struct VerifyOutcome {
  TrialStatus status = TrialStatus::kOk;  ///< kOk, kWrongResult, kOutOfBounds, kHung, kLaunchFailed, kOutOfMemory, kDeviceLost
  std::string error;                      ///< first bad index, both values and the bound
  double max_error_over_bound = 0;
  double relative_norm_error = 0;  ///< ||out - ref|| / ||ref|| over the sample
  bool is_bit_stable = false;      ///< two launches gave the same bits
  bool is_transient = false;       ///< not the variant's fault (memory taken by others, the device is lost): no ban
};

/// Clocks, power and neighbours as NVML reports them; -1 where it does not say.
struct DeviceState {
  int sm_clock_mhz = -1, memory_clock_mhz = -1, temperature_c = -1, power_w = -1, power_limit_w = -1;
  std::uint64_t throttle_reasons = 0;
  int num_other_processes = -1;
};

struct MeasureOutcome {
  TrialStatus status = TrialStatus::kOk;
  std::string error;
  std::vector<double> samples_us;  ///< mean time of one launch per round, first round dropped
  double median_us = 0, p10_us = 0, p90_us = 0;
  int launches_per_graph = 0, num_input_sets = 0;
  bool is_dirty = false;  ///< throttling or a foreign process during the rounds
  std::string dirty_reason;
  bool is_transient = false;
  DeviceState before, after;
};

/// Two kernels timed in turn, A B A B; ratio of times B/A per round.
struct DuelOutcome {
  TrialStatus status = TrialStatus::kOk;
  std::string error;
  std::vector<double> a_us, b_us;
  double ratio_median = 0, ratio_low = 0, ratio_high = 0;  ///< 95 % bootstrap interval
  bool is_dirty = false;                                   ///< throttling or a foreign process during the rounds
  bool is_transient = false;
};

struct GpuWorkerOptions {
  std::string worker_command;  ///< path of this executable; started as `<path> __gpu-worker`
  int device_ordinal = 0;
  std::chrono::milliseconds verify_limit{20000};
  std::chrono::milliseconds measure_limit{30000};
  bool uses_memory_guards = true;
  std::chrono::milliseconds start_limit{120000};  ///< driver start, context, and the inputs of a new problem
  /// Compiles templates/support/fill_inputs.cuh for the device: see compile_fill_kernels(). Without it inputs are made on the host
  /// and copied (the same bits, slower for large problems).
  std::function<Result<std::string>(Arch)> fill_cubin;
  /// Told when the GPU is in use by another tuner and this one waits.
  std::function<void(const std::string&)> notice;
  std::chrono::milliseconds lock_limit{0};  ///< how long to wait for the GPU; 0: without end
  std::string lock_folder;                  ///< empty: /tmp, which every user of the machine shares
};

struct BaselineJob;  // tuner/device/baseline_job.h
struct BaselineAlgorithm;
struct BaselineList;
struct BaselineOutcome;

/// Holds the lock of the GPU's UUID while alive (a second tuner waits, and says so). Not thread-safe: one measurement at a time.
class GpuWorker {
 public:
  static Result<std::unique_ptr<GpuWorker>> start(GpuWorkerOptions options);
  virtual ~GpuWorker() = default;
  virtual const DeviceInfo& device() const = 0;
  /// Fresh inputs, poisoned outputs, guard bands, three launches, comparison (protocol v1, checking).
  virtual VerifyOutcome verify(const KernelJob& job, const std::vector<InputFill>& inputs, const std::vector<OutputSamples>& samples) = 0;
  /// Protocol v1, timing. Only tuner/measure calls it, which asks for a VerifiedKernel. The timed launches themselves are checked after the
  /// rounds, against `samples` of `inputs`; every element must be written, whatever is sampled.
  virtual MeasureOutcome measure(const KernelJob& job, const std::vector<InputFill>& inputs, const std::vector<OutputSamples>& samples,
                                 const Protocol& protocol) = 0;
  virtual DuelOutcome duel(const KernelJob& a, const KernelJob& b, const std::vector<InputFill>& inputs, const Protocol& protocol) = 0;
  /// What the library offers for a product; the first call opens it in the child.
  virtual BaselineList list_baseline(const BaselineJob& job, const std::vector<InputFill>& inputs, const Protocol& protocol) = 0;
  /// Checks one algorithm by the comparison of protocol v1, then times it.
  virtual BaselineOutcome time_baseline(const BaselineJob& job, const BaselineAlgorithm& algorithm, const std::vector<InputFill>& inputs,
                                        const std::vector<OutputSamples>& samples, const Protocol& protocol) = 0;
};

class CompilePool;
/// Cubin with the fill kernels of every dtype, from the text of templates/support/fill_inputs.cuh.
Result<std::string> compile_fill_kernels(CompilePool& pool, const std::string& source, Arch arch);

/// The child's main function.
int gpu_worker_main();

}  // namespace kw::tuner
