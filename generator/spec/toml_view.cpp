// Reads TOML with toml++ and copies it into TomlValue, in source order and with the place of each key and value.
// SPDX-License-Identifier: Apache-2.0
#include "generator/spec/toml_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "generator/base/toml.h"
#include "generator/base/toml_keys.h"
#include "generator/spec/syntax.h"

namespace kw::generator {

namespace {

/// Number of bytes of the UTF-8 character at `position`, or 0 when the bytes are not UTF-8.
std::size_t utf8_length(std::string_view text, std::size_t position) {
  const auto byte = [&](std::size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U; };
  const auto continues = [&](std::size_t at) { return (byte(at) & 0xC0U) == 0x80U; };
  const unsigned first = byte(position);
  if (first < 0x80U) return 1;
  if (first >= 0xC2U && first < 0xE0U) return continues(position + 1) ? 2 : 0;
  if (first >= 0xE0U && first < 0xF0U) {
    const unsigned second = byte(position + 1);
    const bool is_legal = !(first == 0xE0U && second < 0xA0U) && !(first == 0xEDU && second >= 0xA0U);
    return is_legal && continues(position + 1) && continues(position + 2) ? 3 : 0;
  }
  if (first >= 0xF0U && first < 0xF5U) {
    const unsigned second = byte(position + 1);
    const bool is_legal = !(first == 0xF0U && second < 0x90U) && !(first == 0xF4U && second >= 0x90U);
    return is_legal && continues(position + 1) && continues(position + 2) && continues(position + 3) ? 4 : 0;
  }
  return 0;
}

class TomlCopier {
 public:
  TomlCopier(std::string_view text, const std::string& file_name) : text_(text), file_(file_name) {
    line_starts_.push_back(0);
    for (std::size_t position = 0; position < text.size(); ++position) {
      if (text[position] == '\n') line_starts_.push_back(position + 1);
    }
  }

  TomlValue copy(const toml::node& node) const {
    TomlValue value;
    value.where = place(node.source());
    if (const auto* string = node.as_string()) {
      value.kind = TomlValue::Kind::kString;
      value.string = string->get();
      value.text_place = content_place(value.where);
    } else if (const auto* integer = node.as_integer()) {
      value.kind = TomlValue::Kind::kInteger;
      value.integer = integer->get();
    } else if (const auto* real = node.as_floating_point()) {
      value.kind = TomlValue::Kind::kReal;
      value.real = real->get();
    } else if (const auto* boolean = node.as_boolean()) {
      value.kind = TomlValue::Kind::kBoolean;
      value.boolean = boolean->get();
    } else if (const auto* array = node.as_array()) {
      value.kind = TomlValue::Kind::kArray;
      for (const toml::node& item : *array) value.items.push_back(copy(item));
    } else if (const auto* table = node.as_table()) {
      copy_table(*table, value);
    }
    return value;
  }

 private:
  void copy_table(const toml::table& table, TomlValue& value) const {
    value.kind = TomlValue::Kind::kTable;
    for (const auto& [key, node] : table) value.entries.push_back({std::string(key.str()), place(key.source()), copy(node)});
    std::sort(value.entries.begin(), value.entries.end(), [](const TomlValue::Entry& a, const TomlValue::Entry& b) {
      return std::pair(a.where.line, a.where.column) < std::pair(b.where.line, b.where.column);
    });
  }

  SourceRange place(const toml::source_region& region) const {
    return {file_, static_cast<int>(region.begin.line), static_cast<int>(region.begin.column)};
  }

  /// Where the content of the string literal at `where` begins: behind one quote or three, and behind the line end after three.
  TextPlace content_place(const SourceRange& where) const {
    TextPlace place{file_, where.line, where.column + 1};
    if (where.line < 1 || static_cast<std::size_t>(where.line) > line_starts_.size()) return place;
    std::size_t position = line_starts_[static_cast<std::size_t>(where.line) - 1];
    for (int column = 1; column < where.column && position < text_.size(); ++column)
      position += std::max<std::size_t>(1, utf8_length(text_, position));
    const std::string_view opening = text_.substr(std::min(position, text_.size()), 5);
    if (!opening.starts_with("\"\"\"") && !opening.starts_with("'''")) return place;
    if (opening.substr(3).starts_with("\n") || opening.substr(3).starts_with("\r\n")) return {file_, where.line + 1, 1};
    return {file_, where.line, where.column + 3};
  }

  std::string_view text_;
  const std::string& file_;
  std::vector<std::size_t> line_starts_;
};

Status check_bytes(std::string_view text, const std::string& file_name) {
  if (text.size() > kMaxSpecBytes) {
    return fail(Stage::kSpec, Code::kBadInput,
                fmt::format("the file has {} bytes: an op spec has at most {} (1 MiB)", text.size(), kMaxSpecBytes), {file_name, 0, 0});
  }
  int line = 1, column = 1;
  for (std::size_t position = 0; position < text.size();) {
    const std::size_t length = utf8_length(text, position);
    if (length == 0) {
      return fail(Stage::kSpec, Code::kBadInput,
                  fmt::format("byte 0x{:02x} is not UTF-8: an op spec is UTF-8 text", static_cast<unsigned char>(text[position])),
                  {file_name, line, column});
    }
    column = text[position] == '\n' ? 1 : column + 1;
    if (text[position] == '\n') ++line;
    position += length;
  }
  return {};
}

}  // namespace

const TomlValue* TomlValue::find(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

std::string_view to_text(TomlValue::Kind kind) {
  switch (kind) {
    case TomlValue::Kind::kString:
      return "a string";
    case TomlValue::Kind::kInteger:
      return "an integer";
    case TomlValue::Kind::kReal:
      return "a real number";
    case TomlValue::Kind::kBoolean:
      return "a boolean";
    case TomlValue::Kind::kArray:
      return "a list";
    case TomlValue::Kind::kTable:
      return "a table";
    case TomlValue::Kind::kOther:
      return "a date or time";
  }
  return "?";
}

Result<TomlValue> read_toml(std::string_view text, const std::string& file_name) {
  KW_TRY_VOID(check_bytes(text, file_name));
  KW_TRY_VOID(check_key_parts(text, file_name));
  try {
    const toml::table parsed = toml::parse(text);
    return TomlCopier(text, file_name).copy(parsed);
  } catch (const toml::parse_error& error) {
    const toml::source_position& begin = error.source().begin;
    return fail(Stage::kSpec, Code::kBadInput, fmt::format("not TOML: {}", error.description()),
                {file_name, static_cast<int>(begin.line), static_cast<int>(begin.column)});
  }
}

}  // namespace kw::generator
