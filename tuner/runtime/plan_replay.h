// The launches of a plan as CUDA graphs in one context: a graph is instantiated once for a set of arguments and replayed with one driver
// call; when all are taken, the one that rested longest gets other arguments by update of its nodes (CUDA Driver API, "Graph Management").
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "tuner/runtime/bound_plan.h"
#include "tuner/runtime/failure.h"

namespace kw::tuner {

/// Writes the bytes of a launch's parameters that come from the caller.
using FillParameters = std::function<Outcome<void>(const BoundLaunch&, std::byte* parameters)>;

class PlanReplays {
 public:
  /// Graphs that are kept, one for each set of arguments seen last.
  static constexpr std::size_t kMaxGraphs = 8;

  /// Whether the driver has what nodes need.
  static bool is_supported(const DriverApi& driver);

  /// `functions` are those of plan.launches in the current context. Both live as long as this.
  PlanReplays(const DriverApi& driver, const BoundPlan& plan, const std::vector<CudaFunction>& functions)
      : driver_(driver), plan_(plan), functions_(functions) {}
  PlanReplays(const PlanReplays&) = delete;
  PlanReplays& operator=(const PlanReplays&) = delete;
  /// The context has ended, or is not the current one: what belongs to it ends with it.
  void forget();

  /// Enqueues the plan on `stream`, which is not being captured. 0, or the driver's code of the graph launch. Failures: no graph.
  Outcome<int> launch(const kw_arguments& arguments, const FillParameters& fill, CudaStream stream);

 private:
  struct Replay {
    explicit Replay(const DriverApi& own_driver) : driver(own_driver) {}
    ~Replay();
    Replay(const Replay&) = delete;
    Replay& operator=(const Replay&) = delete;

    const DriverApi& driver;
    std::vector<std::uint64_t> key;  ///< the arguments: addresses, and the bits of scalars; empty while they change
    CudaGraph graph = nullptr;
    CudaGraphExec executable = nullptr;
    std::vector<CudaGraphNode> nodes;                ///< one a launch
    std::vector<std::vector<std::byte>> parameters;  ///< what the nodes hold
    unsigned long long last_turn = 0;
  };
  using Replays = std::vector<std::unique_ptr<Replay>>;
  static bool is_for(const Replay& replay, const kw_arguments& arguments);
  CudaResult<void> add_node(Replay& replay, std::size_t index) const;
  CudaResult<void> instantiate(Replay& replay) const;
  Outcome<void> build(Replay& replay, const FillParameters& fill) const;
  Outcome<void> update(Replay& replay, const FillParameters& fill) const;
  /// A graph for arguments that none is for: a new one, or the one that rested longest.
  Outcome<Replay*> made_for(const kw_arguments& arguments, const FillParameters& fill);

  const DriverApi& driver_;
  const BoundPlan& plan_;
  const std::vector<CudaFunction>& functions_;
  std::mutex mutex_;  ///< of all that follows: the driver takes a graph from one thread at a time
  Replays replays_;
  unsigned long long turn_ = 0;
};

}  // namespace kw::tuner
