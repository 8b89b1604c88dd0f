// What the kernel of a template with a ring of stages does to its barriers, written down thread by thread on the host: nothing waits and
// nothing is multiplied, every arrival, wait, announcement and copy is an entry. Host versions of templates/ptx (tests/templates/ring/ptx)
// call this. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

namespace kw::ring {

/// One barrier of one CTA. A use is one round of the ring: what the producer's n-th announcement at this barrier covers.
struct Barrier {
  int init_count = 0;
  int arrivals = 0;
  std::vector<unsigned> expected_bytes;                               ///< by use
  std::map<int, std::vector<std::pair<unsigned, unsigned>>> landing;  ///< use -> (smem address, bytes) from all CTAs of the cluster
  std::vector<unsigned> waited_parities;                              ///< in the order of one thread's waits; of consumers: all of them
};

/// A CTA: barriers by their smem address.
using Cta = std::map<unsigned, Barrier>;

/// The grid, by block number; `cluster_size` CTAs of neighbouring numbers are a cluster.
struct Record {
  int cluster_size = 1;
  std::vector<Cta> ctas;
  std::vector<std::string> mistakes;  ///< operands of a multiplication outside the stage that was waited for
};

/// The record that is being written.
Record& current();

/// Threads that run of each warpgroup: one warp, because lanes share the arrivals at other CTAs, and the other warps do the same.
constexpr int kLanes = 32;

/// A template with one config, compiled for the host.
struct RingCase {
  std::string name;
  bool is_legal;                       ///< the rules on the config that speak of the ring
  int stages, stage_bytes, consumers;  ///< warpgroups that multiply one stage
  unsigned first_full, barrier_step;   ///< smem address of the first stage's `full`, from it to the next; `empty` lies 8 bytes further
  /// Runs the grid for a problem of one batch.
  Record (*run)(long long extent_m, long long extent_n, long long extent_k);
};

/// All cases of tests/templates/CMakeLists.txt.
std::vector<RingCase> all_ring_cases();

}  // namespace kw::ring
