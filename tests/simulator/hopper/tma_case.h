// Tensor copies of a matrix of 8 rows of 16 words, for the rows on TMA.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tests/simulator/hopper/hopper_run.h"

namespace kw::simulate {

inline std::string tensor_load(const std::vector<std::int32_t>& coordinates, const std::string& to = "%smem") {
  std::string text = "@%lead cp.async.bulk.tensor." + std::to_string(coordinates.size()) +
                     "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [" + to + "], [%map0, {";
  for (std::size_t i = 0; i < coordinates.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(coordinates[i]);
  return text + "}], [%bar];\n";
}

/// Element (row, column) of `in` is 16 row + column; map0: boxes of 4 rows of 8 words.
inline HopperCase matrix_case(const std::string& body) {
  HopperCase one{.body = body};
  one.in = numbered(128);
  one.out.assign(32, 0);
  one.maps = {{{.type = TensorMapType::kU32, .extents = {16, 8}, .strides_bytes = {64}, .box = {8, 4}}}};
  return one;
}

/// The matrix is `out`, filled with 7; `in` is a box of 1000, 1001, ... that goes to shared memory. Then thread 0 executes `copy`.
inline HopperCase matrix_store_case(const std::string& copy, const std::string& before_copy = publish_shared(),
                                    const std::string& after_copy = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n") {
  HopperCase one{.body = fill_shared(32) + before_copy + "@%lead " + copy + "\n" + after_copy};
  one.in = numbered(32, 1000);
  one.out.assign(128, 7);
  one.maps = {{{.type = TensorMapType::kU32, .extents = {16, 8}, .strides_bytes = {64}, .box = {8, 4}}, true}};
  return one;
}

}  // namespace kw::simulate
