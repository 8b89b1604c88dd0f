// The ring of gemm_sm90_tma_wgmma and of its pair adds up: arrivals are those that the barriers were made for, the bytes announced are the
// bytes of the boxes and fill the stage without a gap, consumers wait for as many stages as the producer fills, every wait has the parity
// of its turn. SPDX-License-Identifier: Apache-2.0
#include "tests/templates/ring/ring_record.h"

#include <algorithm>

#include "tests/catch.h"
#include "tests/templates/host/emulator.h"

using kw::ring::Barrier;
using kw::ring::Record;
using kw::ring::RingCase;

// Threads run one after another, so barriers do nothing.
HostDim3 threadIdx, blockIdx, blockDim, gridDim;
void __syncthreads() {}
void __syncwarp() {}

kw::ring::Record& kw::ring::current() {
  static Record record;
  return record;
}

namespace {

/// Whether the copies of one use cover [first, first + bytes) without gap or overlap.
bool cover(std::vector<std::pair<unsigned, unsigned>> copies, unsigned first, unsigned bytes) {
  std::sort(copies.begin(), copies.end());
  unsigned next = first;
  for (const auto& [address, size] : copies) {
    if (address != next) return false;
    next += size;
  }
  return next == first + bytes;
}

std::size_t count_parity(const std::vector<unsigned>& parities, unsigned parity) {
  return static_cast<std::size_t>(std::count(parities.begin(), parities.end(), parity));
}

/// The first thing in the record that does not add up, or nothing.
std::string first_mistake(const RingCase& ring, const Record& record) {
  if (!record.mistakes.empty()) return record.mistakes.front();
  for (std::size_t block = 0; block < record.ctas.size(); ++block) {
    for (int stage = 0; stage < ring.stages; ++stage) {
      const std::string place = "block " + std::to_string(block) + " stage " + std::to_string(stage) + ": ";
      const unsigned address = ring.first_full + static_cast<unsigned>(stage) * ring.barrier_step;
      const Barrier& full = record.ctas[block].at(address);
      const Barrier& empty = record.ctas[block].at(address + 8);
      const std::size_t uses = full.expected_bytes.size();
      if (static_cast<std::size_t>(full.arrivals) != uses * static_cast<std::size_t>(full.init_count)) return place + "arrivals at full";
      if (static_cast<std::size_t>(empty.arrivals) != uses * static_cast<std::size_t>(empty.init_count)) return place + "arrivals at empty";
      if (full.landing.size() != uses) return place + "uses with copies";
      for (const auto& [use, copies] : full.landing) {
        const unsigned bytes = full.expected_bytes.at(static_cast<std::size_t>(use));
        if (bytes != static_cast<unsigned>(ring.stage_bytes)) return place + "announced bytes";
        if (!cover(copies, static_cast<unsigned>(stage * ring.stage_bytes), bytes)) return place + "copies do not fill the stage";
      }
      const auto waits = static_cast<std::size_t>(kw::ring::kLanes * ring.consumers);
      if (count_parity(full.waited_parities, 0) != waits * ((uses + 1) / 2)) return place + "waits of even uses at full";
      if (count_parity(full.waited_parities, 1) != waits * (uses / 2)) return place + "waits of odd uses at full";
      for (std::size_t use = 0; use < empty.waited_parities.size(); ++use) {
        if (empty.waited_parities[use] != (use % 2 == 0 ? 1u : 0u)) return place + "parity of a wait at empty";
      }
      // One wait for each use; in a cluster one more at the end.
      if (empty.waited_parities.size() != uses && empty.waited_parities.size() != uses + 1) return place + "waits at empty";
    }
  }
  return "";
}

}  // namespace

TEST_CASE("the barriers of every schedule, cluster and split add up") {
  int num_cases = 0;
  for (const RingCase& ring : kw::ring::all_ring_cases()) {
    if (ring.name.find("broken") != std::string::npos) continue;
    ++num_cases;
    INFO(ring.name);
    CHECK(ring.is_legal);
    for (const long long extent_k : {1ll, 200ll, 1000ll}) {
      for (const auto& [extent_m, extent_n] : {std::pair(1ll, 8ll), std::pair(700ll, 1100ll)}) {
        if (extent_k < 500 && ring.name.find("split") != std::string::npos) continue;  // a split without work is refused
        INFO(extent_m << " x " << extent_n << " x " << extent_k);
        const Record record = ring.run(extent_m, extent_n, extent_k);
        REQUIRE_FALSE(record.ctas.empty());
        CHECK(first_mistake(ring, record) == "");
      }
    }
  }
  CHECK(num_cases >= 16);
}

TEST_CASE("a barrier made for another count, or a stage announced with other bytes, is found") {
  int num_cases = 0;
  for (const RingCase& ring : kw::ring::all_ring_cases()) {
    if (ring.name.find("broken") == std::string::npos) continue;
    ++num_cases;
    INFO(ring.name);
    CHECK(first_mistake(ring, ring.run(700, 1100, 1000)) != "");
  }
  CHECK(num_cases == 2);
}
