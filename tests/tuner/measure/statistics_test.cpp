// Order statistics, the bootstrap interval, and the protocol's name.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/catch.h"
#include "tuner/measure/protocol.h"
#include "tuner/measure/statistics.h"

using namespace kw::tuner;

TEST_CASE("percentiles interpolate between ranks and do not need order") {
  const std::vector<double> samples = {5, 1, 4, 2, 3};
  CHECK(median(samples) == 3);
  CHECK(percentile(samples, 0.1) == Approx(1.4));
  CHECK(percentile(samples, 0.9) == Approx(4.6));
  CHECK(percentile(std::vector<double>{}, 0.5) == 0);
}

TEST_CASE("the interval of a duel is the same every time and holds the median") {
  const std::vector<double> ratios = {1.01, 1.03, 0.99, 1.02, 1.05, 1.00, 1.04};
  const RatioInterval one = bootstrap_interval(ratios), two = bootstrap_interval(ratios);
  CHECK(one.median == 1.02);
  CHECK(one.low == two.low);
  CHECK(one.high == two.high);
  CHECK(one.low >= 0.99);
  CHECK(one.low < 1.02);
  CHECK(one.high > 1.02);
  const RatioInterval clear = bootstrap_interval(std::vector<double>(7, 1.1));
  CHECK(clear.low == 1.1);
}

TEST_CASE("a protocol's name tells it from every other, and its JSON gives it back") {
  Protocol warm = Protocol::final_rung();
  warm.is_cold_l2 = false;
  CHECK(Protocol::final_rung().name() == "v1-cold");
  CHECK(warm.name() == "v1-warm");
  CHECK(Protocol::early_rung().name() == "v1-cold-early");
  Protocol other = Protocol::final_rung();
  other.num_rounds = 9;
  CHECK(other.name() == "v1-cold-warmup100ms-9x50ms-graph1ms-l2x2.2-sets256");
  CHECK(protocol_from_json(to_json(other)).name() == other.name());
}
