// See stored_variant.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/runtime/stored_variant.h"

#include <fmt/format.h>

#include <algorithm>

namespace kw::tuner {
namespace {

/// Loading code is allowed while any stream of the process is captured only in a thread that says it is relaxed about it
/// (CUDA Driver API, cuThreadExchangeStreamCaptureMode).
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const DriverApi& driver) : driver_(driver) { driver_.capture_exchange_mode(&mode_); }
  ~RelaxedCapture() { driver_.capture_exchange_mode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  const DriverApi& driver_;
  int mode_ = kCaptureRelaxed;
};

tl::unexpected<Failure> no_context(const CudaFault& fault) {
  return failed(KW_NO_CONTEXT,
                fmt::format("no CUDA context is current on this thread ({}): the library makes none, call cuCtxSetCurrent or "
                            "cudaSetDevice first",
                            fault.text));
}

}  // namespace

Outcome<ContextId> current_context(const DriverApi& driver) {
  ContextId context = 0;
  if (const int code = driver.context_id(nullptr, &context); code != 0) return no_context(cuda_fault(driver, code, "cuCtxGetId"));
  return context;
}

Outcome<CudaDevice> current_device(const DriverApi& driver) {
  CudaDevice device = 0;
  if (const int code = driver.context_device(&device); code != 0) return no_context(cuda_fault(driver, code, "cuCtxGetDevice"));
  return device;
}

StoredVariant::~StoredVariant() {
  ContextId current = 0;
  const bool has_context = driver_.context_id(nullptr, &current) == 0;
  for (ContextModule& entry : modules_) {
    if (!has_context || entry.context != current) entry.module->abandon();
  }
}

Outcome<LoadedModule*> StoredVariant::module_in(ContextId context) {
  const auto found =
      std::find_if(modules_.begin(), modules_.end(), [context](const ContextModule& entry) { return entry.context == context; });
  if (found != modules_.end()) return found->module.get();
  KW_OUTCOME(std::shared_ptr<LoadedModule> module, LoadedModule::load(driver_, cubin_));
  modules_.push_back({context, std::move(module)});
  return modules_.back().module.get();
}

Outcome<std::vector<CudaFunction>> StoredVariant::prepare(ContextId context, const std::vector<EvaluatedLaunch>& launches) {
  const std::lock_guard lock(mutex_);
  const RelaxedCapture relaxed(driver_);
  KW_OUTCOME(LoadedModule* const module, module_in(context));
  std::vector<CudaFunction> functions;
  for (const EvaluatedLaunch& launch : launches) {
    KW_OUTCOME(const CudaFunction function, module->prepare(launch));
    functions.push_back(function);
  }
  return functions;
}

}  // namespace kw::tuner
