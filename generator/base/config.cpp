// Text of a config, and back.
// SPDX-License-Identifier: Apache-2.0
#include "generator/base/config.h"

#include "generator/base/key_values.h"

namespace kw {

std::string Config::to_text() const { return key_values_to_text(values); }

Result<Config> config_from_text(std::string_view template_name, std::string_view text) {
  KW_TRY(IntBindings values, key_values_from_text(text, Stage::kSpace));
  return Config{std::string(template_name), std::move(values)};
}

}  // namespace kw
