// A kernel handle: a stored variant bound to a problem, launched on the caller's context. The warm path takes no lock but the tensor map
// cache's, allocates nothing and makes two driver calls: which context is current, and the launch. A plan of several launches is replayed
// as a graph (plan_replay.h), under a lock of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "generator/base/status.h"
#include "tuner/runtime/bound_plan.h"
#include "tuner/runtime/failure.h"
#include "tuner/runtime/plan_replay.h"
#include "tuner/runtime/stored_variant.h"
#include "tuner/runtime/tensor_map_cache.h"

namespace kw::tuner {

/// What the getters tell.
struct KernelInfo {
  MatchKind match = MatchKind::kNone;
  std::string explanation, variant, config, measured_at;
  double time_us = 0;  ///< 0: not measured
};

struct KernelParts {
  const DriverApi& driver;
  std::string device_model;  ///< that it was found for
  KernelInfo info;
  BoundPlan plan;
  std::shared_ptr<StoredVariant> variant;
  std::shared_ptr<TensorMapCache> maps;
};

}  // namespace kw::tuner

/// The handle of the C interface, counted: the table of seen problems holds one reference, each kw_find hands one out.
struct kw_kernel {
 public:
  explicit kw_kernel(kw::tuner::KernelParts parts);
  kw_kernel(const kw_kernel&) = delete;
  kw_kernel& operator=(const kw_kernel&) = delete;

  void retain() { references_.fetch_add(1, std::memory_order_relaxed); }
  void release();

  const kw::tuner::KernelInfo& info() const { return parts_.info; }
  const kw::tuner::BoundPlan& plan() const { return parts_.plan; }

  kw::tuner::Outcome<void> prepare();
  kw::tuner::Outcome<void> launch(const kw_arguments& arguments, kw::tuner::CudaStream stream);

 private:
  /// The functions of plan().launches in one context, and the graphs of them.
  struct Prepared {
    Prepared(kw::tuner::ContextId own_context, std::vector<kw::tuner::CudaFunction> own_functions, const kw::tuner::KernelParts& parts)
        : context(own_context), functions(std::move(own_functions)), replays(parts.driver, parts.plan, functions) {}
    const kw::tuner::ContextId context;
    const std::vector<kw::tuner::CudaFunction> functions;
    kw::tuner::PlanReplays replays;
  };
  ~kw_kernel();
  kw::tuner::Outcome<void> check(const kw_arguments& arguments) const;
  kw::tuner::Outcome<Prepared*> prepared_in(kw::tuner::ContextId context);
  kw::tuner::Outcome<void> fill(const kw::tuner::BoundSlot& slot, const kw_arguments& arguments, std::byte* bytes) const;
  kw::tuner::Outcome<void> enqueue(const kw::tuner::BoundLaunch& bound, kw::tuner::CudaFunction function, const kw_arguments& arguments,
                                   kw::tuner::CudaStream stream) const;
  kw::tuner::Outcome<void> fill_all(const kw::tuner::BoundLaunch& bound, const kw_arguments& arguments, std::byte* parameters) const;
  bool is_replayed(kw::tuner::CudaStream stream) const;
  tl::unexpected<kw::tuner::Failure> launch_failure(int code, const char* call, kw::tuner::CudaStream stream) const;

  const kw::tuner::KernelParts parts_;
  std::atomic<long> references_{1};
  std::atomic<Prepared*> last_prepared_{nullptr};
  std::mutex mutex_;
  std::deque<Prepared> prepared_;  ///< addresses stay
};
