// A stored cubin and the modules made of it: one for each context it was launched in. Shared by the kernels of all problems it serves.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tuner/device/kernel_launch.h"
#include "tuner/runtime/failure.h"

namespace kw::tuner {

/// A context by the number that the driver never gives twice: a new context at an old address is another one.
using ContextId = unsigned long long;
/// Error KW_NO_CONTEXT: none is current on this thread.
Outcome<ContextId> current_context(const DriverApi& driver);
/// The current context's device. Error KW_NO_CONTEXT.
Outcome<CudaDevice> current_device(const DriverApi& driver);

class StoredVariant {
 public:
  StoredVariant(const DriverApi& driver, std::string cubin) : driver_(driver), cubin_(std::move(cubin)) {}
  /// Unloads what belongs to the current context; the rest ends with its context.
  ~StoredVariant();
  StoredVariant(const StoredVariant&) = delete;
  StoredVariant& operator=(const StoredVariant&) = delete;

  /// The functions of `launches` in the current context, ready for them; loads the cubin at the first call there.
  Outcome<std::vector<CudaFunction>> prepare(ContextId context, const std::vector<EvaluatedLaunch>& launches);

 private:
  struct ContextModule {
    ContextId context;
    std::shared_ptr<LoadedModule> module;
  };
  Outcome<LoadedModule*> module_in(ContextId context);

  const DriverApi& driver_;
  const std::string cubin_;
  std::mutex mutex_;
  std::vector<ContextModule> modules_;
};

}  // namespace kw::tuner
