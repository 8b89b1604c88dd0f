// JSON from anywhere: deep nesting is refused before it is parsed.
// SPDX-License-Identifier: Apache-2.0
#include "generator/base/json_text.h"

#include <nlohmann/json.hpp>

#include "tests/catch.h"

using kw::json_from_text;

TEST_CASE("JSON of a million open brackets is refused with its place") {
  for (const std::string& text : {std::string(1000000, '['), std::string(1000000, '[') + std::string(1000000, ']')}) {
    const auto json = json_from_text(text);
    REQUIRE_FALSE(json.has_value());
    CHECK(json.error().code == kw::Code::kBadInput);
    CHECK(json.error().message == "byte 100: JSON nested deeper than 100");
  }
}

TEST_CASE("depth up to the bound and brackets in strings are read") {
  CHECK(json_from_text(std::string(100, '[') + std::string(100, ']')).has_value());
  const auto json = json_from_text("{\"a\": \"" + std::string(1000, '[') + "\\\"{{\", \"b\": [[1], [2]]}");
  REQUIRE(json.has_value());
  CHECK((*json)["b"][1][0] == 2);
}

TEST_CASE("text that is no JSON is an error that says where") {
  const auto json = json_from_text("{\"a\": ");
  REQUIRE_FALSE(json.has_value());
  CHECK(json.error().message.find("column 7") != std::string::npos);
}
