// The timing protocol as data: stored with each row, part of every comparison. Two rows of different protocols are never compared.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace kw::tuner {

struct Protocol {
  int version = 1;
  bool is_cold_l2 = true;  ///< inputs rotate over more than 2.2 x L2
  double warmup_ms = 100;
  int num_rounds = 6;  ///< first dropped
  double round_ms = 50;
  double min_graph_ms = 1;
  double rotation_l2_factor = 2.2;
  int max_input_sets = 256;

  /// Early rungs of the search: fewer and shorter rounds; its rows are marked by their own name.
  static Protocol final_rung();
  static Protocol early_rung();
  /// "v1-cold", "v1-warm", "v1-cold-early": the key in the database.
  std::string name() const;
};
nlohmann::json to_json(const Protocol& protocol);
/// Missing fields keep their default.
Protocol protocol_from_json(const nlohmann::json& json);

}  // namespace kw::tuner
