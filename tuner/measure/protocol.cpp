// The protocol's two presets, its name and its stored form. See protocol.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/measure/protocol.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace kw::tuner {
namespace {

bool has_same_timing(const Protocol& a, const Protocol& b) {
  return a.warmup_ms == b.warmup_ms && a.num_rounds == b.num_rounds && a.round_ms == b.round_ms && a.min_graph_ms == b.min_graph_ms &&
         a.rotation_l2_factor == b.rotation_l2_factor && a.max_input_sets == b.max_input_sets;
}

}  // namespace

Protocol Protocol::final_rung() { return Protocol{}; }

Protocol Protocol::early_rung() {
  Protocol protocol;
  protocol.warmup_ms = 20;
  protocol.num_rounds = 4;
  protocol.round_ms = 20;
  return protocol;
}

std::string Protocol::name() const {
  const std::string base = fmt::format("v{}-{}", version, is_cold_l2 ? "cold" : "warm");
  if (has_same_timing(*this, final_rung())) return base;
  if (has_same_timing(*this, early_rung())) return base + "-early";
  return fmt::format("{}-warmup{}ms-{}x{}ms-graph{}ms-l2x{}-sets{}", base, warmup_ms, num_rounds, round_ms, min_graph_ms,
                     rotation_l2_factor, max_input_sets);
}

nlohmann::json to_json(const Protocol& protocol) {
  return {{"version", protocol.version},
          {"is_cold_l2", protocol.is_cold_l2},
          {"warmup_ms", protocol.warmup_ms},
          {"num_rounds", protocol.num_rounds},
          {"round_ms", protocol.round_ms},
          {"min_graph_ms", protocol.min_graph_ms},
          {"rotation_l2_factor", protocol.rotation_l2_factor},
          {"max_input_sets", protocol.max_input_sets}};
}

Protocol protocol_from_json(const nlohmann::json& json) {
  Protocol protocol;
  protocol.version = json.value("version", protocol.version);
  protocol.is_cold_l2 = json.value("is_cold_l2", protocol.is_cold_l2);
  protocol.warmup_ms = json.value("warmup_ms", protocol.warmup_ms);
  protocol.num_rounds = json.value("num_rounds", protocol.num_rounds);
  protocol.round_ms = json.value("round_ms", protocol.round_ms);
  protocol.min_graph_ms = json.value("min_graph_ms", protocol.min_graph_ms);
  protocol.rotation_l2_factor = json.value("rotation_l2_factor", protocol.rotation_l2_factor);
  protocol.max_input_sets = json.value("max_input_sets", protocol.max_input_sets);
  return protocol;
}

}  // namespace kw::tuner
