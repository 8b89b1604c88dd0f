// A config: one value for each tunable of a template. Ordered, so equal configs have one spelling.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "generator/base/int_expr.h"

namespace kw {

struct Config {
  std::string template_name;  ///< "gemm_sm80_mma"
  IntBindings values;         ///< tunable -> value; booleans are 0 and 1

  /// "BLOCK_K=32,BLOCK_M=128,...": sorted, the key in the database.
  std::string to_text() const;
  friend bool operator==(const Config&, const Config&) = default;
};

Result<Config> config_from_text(std::string_view template_name, std::string_view text);

}  // namespace kw
