// A view of a TOML file that keeps source order and places: what the spec reader needs and no more.
// toml++ itself is seen by the .cpp alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "generator/base/error.h"
#include "generator/spec/lexer.h"

namespace kw::generator {

/// One TOML value with its place. Tables keep the order of the file.
struct TomlValue {
  enum class Kind { kString, kInteger, kReal, kBoolean, kArray, kTable, kOther };
  struct Entry;
  Kind kind = Kind::kOther;
  std::string string;
  std::int64_t integer = 0;
  double real = 0;
  bool boolean = false;
  std::vector<TomlValue> items;  ///< kArray
  std::vector<Entry> entries;    ///< kTable
  SourceRange where;
  TextPlace text_place;  ///< kString: where its first character stands in the file

  const TomlValue* find(std::string_view key) const;  ///< kTable
};
struct TomlValue::Entry {
  std::string key;
  SourceRange where;
  TomlValue value;
};

/// "a string", "an integer": for messages.
std::string_view to_text(TomlValue::Kind kind);

/// Parses a whole file. Refuses with a place: more than kMaxSpecBytes, text that is not UTF-8, text that is not TOML.
Result<TomlValue> read_toml(std::string_view text, const std::string& file_name);

}  // namespace kw::generator
