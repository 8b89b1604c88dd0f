// Reads launch files. Every key is known or refused; nothing is guessed.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/launch/launch_file.h"

#include <charconv>
#include <cstring>
#include <set>

#include <fmt/format.h>

#include "generator/base/toml.h"
#include "generator/base/toml_keys.h"

namespace kw::simulate {
namespace {

constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 32;

/// One file being read: the place of errors.
struct Reader {
  std::string file;

  tl::unexpected<Error> refuse(const toml::node& node, std::string message) const {
    const auto& where = node.source().begin;
    return fail(Stage::kCommandLine, Code::kBadInput, std::move(message),
                {file, static_cast<int>(where.line), static_cast<int>(where.column)});
  }
  Status only_keys(const toml::table& table, std::string_view subject, const std::set<std::string_view>& known) const {
    for (const auto& [key, node] : table) {
      if (known.contains(key.str())) continue;
      std::vector<std::string> names(known.begin(), known.end());
      const std::string nearest = nearest_name(key.str(), names);
      return refuse(node, fmt::format("{}: unknown key '{}'{}", subject, key.str(),
                                      nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)));
    }
    return {};
  }
  Result<std::string> string(const toml::node& node, std::string_view subject) const {
    const auto value = node.value_exact<std::string>();
    if (!value) return refuse(node, fmt::format("{}: must be a string", subject));
    return *value;
  }
  Result<std::uint64_t> number(const toml::node& node, std::string_view subject, std::uint64_t min, std::uint64_t max) const {
    const auto value = node.value_exact<std::int64_t>();
    if (!value || *value < 0 || static_cast<std::uint64_t>(*value) < min || static_cast<std::uint64_t>(*value) > max) {
      return refuse(node, fmt::format("{}: must be an integer from {} to {}", subject, min, max));
    }
    return static_cast<std::uint64_t>(*value);
  }
  /// [x], [x, y] or [x, y, z]; the rest is 1.
  Result<std::array<std::uint32_t, 3>> extent(const toml::node& node, std::string_view subject) const {
    const toml::array* values = node.as_array();
    if (values == nullptr || values->empty() || values->size() > 3)
      return refuse(node, fmt::format("{}: must be a list of 1 to 3 integers", subject));
    std::array<std::uint32_t, 3> extent = {1, 1, 1};
    for (std::size_t axis = 0; axis < values->size(); ++axis) {
      KW_TRY(const std::uint64_t value, number(*values->get(axis), subject, 1, 0x7fffffff));
      extent[axis] = static_cast<std::uint32_t>(value);
    }
    return extent;
  }
  Result<std::vector<std::uint64_t>> numbers(const toml::node& node, std::string_view subject, std::size_t count, std::uint64_t max) const {
    const toml::array* values = node.as_array();
    if (values == nullptr || values->size() != count) return refuse(node, fmt::format("{}: must be a list of {} integers", subject, count));
    std::vector<std::uint64_t> result;
    for (const toml::node& value : *values) {
      KW_TRY(result.emplace_back(), number(value, subject, 0, max));
    }
    return result;
  }
};

Result<BufferFill> read_fill(const Reader& reader, const toml::node& node, const std::string& subject) {
  KW_TRY(const std::string text, reader.string(node, subject));
  const std::size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const std::string rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  const auto read_rest = [&](auto& value) {
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    return error == std::errc{} && end == rest.data() + rest.size();
  };
  BufferFill fill;
  if (kind == "zeros" && colon == std::string::npos) {
    fill.kind = BufferFill::Kind::kZeros;
  } else if (kind == "iota" && colon == std::string::npos) {
    fill.kind = BufferFill::Kind::kIota;
  } else if (kind == "constant" && read_rest(fill.constant)) {
    fill.kind = BufferFill::Kind::kConstant;
  } else if (kind == "random" && read_rest(fill.seed)) {
    fill.kind = BufferFill::Kind::kRandom;
  } else if (kind == "file" && !rest.empty()) {
    fill.kind = BufferFill::Kind::kFile;
    fill.path = rest;
  } else {
    return reader.refuse(node, fmt::format("{} = '{}': must be zeros, iota, constant:VALUE, random:SEED or file:PATH", subject, text));
  }
  return fill;
}

Result<LaunchFileBuffer> read_buffer(const Reader& reader, const std::string& name, const toml::node& node) {
  const std::string subject = fmt::format("buffer '{}'", name);
  const toml::table* table = node.as_table();
  if (table == nullptr) return reader.refuse(node, subject + ": must be a table");
  KW_TRY_VOID(reader.only_keys(*table, subject, {"dtype", "elements", "role", "align", "fill", "expected", "tolerance"}));
  LaunchFileBuffer buffer;
  buffer.name = name;
  if (!table->contains("dtype") || !table->contains("elements") || !table->contains("role")) {
    return reader.refuse(node, subject + ": dtype, elements and role must be given");
  }
  KW_TRY(const std::string dtype, reader.string(*table->get("dtype"), subject + ": dtype"));
  const auto known = dtype_from_text(dtype);
  if (!known) return reader.refuse(*table->get("dtype"), fmt::format("{}: dtype '{}' is not known", subject, dtype));
  buffer.dtype = *known;
  KW_TRY(buffer.num_elements, reader.number(*table->get("elements"), subject + ": elements", 1, kMaxElements));
  KW_TRY(const std::string role, reader.string(*table->get("role"), subject + ": role"));
  if (role != "in" && role != "out" && role != "inout")
    return reader.refuse(*table->get("role"), fmt::format("{}: role '{}': must be in, out or inout", subject, role));
  buffer.role = role == "in" ? AllocationRole::kInput : role == "out" ? AllocationRole::kOutput : AllocationRole::kInOut;
  if (const toml::node* align = table->get("align")) {
    KW_TRY(buffer.align_bytes, reader.number(*align, subject + ": align", 1, 256));
  }
  if (const toml::node* fill = table->get("fill")) {
    KW_TRY(buffer.fill, read_fill(reader, *fill, subject + ": fill"));
    if (buffer.role == AllocationRole::kOutput) return reader.refuse(*fill, subject + ": an output has no fill; give it the role inout");
  } else if (buffer.role != AllocationRole::kOutput) {
    return reader.refuse(node, subject + ": fill must be given");
  }
  if (const toml::node* expected = table->get("expected")) {
    KW_TRY(buffer.expected, read_fill(reader, *expected, subject + ": expected"));
  }
  if (const toml::node* tolerance = table->get("tolerance")) {
    buffer.tolerance = tolerance->value<double>().value_or(-1);
    if (!(buffer.tolerance >= 0)) return reader.refuse(*tolerance, subject + ": tolerance: must be a number of at least 0");
  }
  return buffer;
}

Result<LaunchFileTensorMap> read_tensor_map(const Reader& reader, const std::string& name, const toml::node& node) {
  const std::string subject = fmt::format("tensor_map '{}'", name);
  const toml::table* table = node.as_table();
  if (table == nullptr) return reader.refuse(node, subject + ": must be a table");
  KW_TRY_VOID(reader.only_keys(
      *table, subject, {"buffer", "offset_bytes", "type", "extents", "strides_bytes", "box", "element_strides", "swizzle", "fill"}));
  for (const std::string_view key : {"buffer", "type", "extents", "box"}) {
    if (!table->contains(key)) return reader.refuse(node, fmt::format("{}: {} must be given", subject, key));
  }
  LaunchFileTensorMap entry;
  KW_TRY(entry.buffer, reader.string(*table->get("buffer"), subject + ": buffer"));
  KW_TRY(const std::string type, reader.string(*table->get("type"), subject + ": type"));
  bool is_known = false;
  for (int number = 0; number <= static_cast<int>(TensorMapType::kTF32Ftz); ++number) {
    if (to_text(static_cast<TensorMapType>(number)) != type) continue;
    entry.map.type = static_cast<TensorMapType>(number);
    is_known = true;
  }
  if (!is_known) return reader.refuse(*table->get("type"), fmt::format("{}: type '{}' is not known", subject, type));
  const toml::array* extents = table->get("extents")->as_array();
  if (extents == nullptr || extents->empty() || extents->size() > static_cast<std::size_t>(kMaxTensorRank)) {
    return reader.refuse(*table->get("extents"), fmt::format("{}: extents: must be a list of 1 to {} integers", subject, kMaxTensorRank));
  }
  const std::size_t rank = extents->size();
  entry.map.rank = static_cast<int>(rank);
  const auto fill_in = [&](std::string_view key, std::size_t count, auto& destination) -> Status {
    const toml::node* list = table->get(key);
    if (list == nullptr) return {};
    KW_TRY(const std::vector<std::uint64_t> values,
           reader.numbers(*list, fmt::format("{}: {}", subject, key), count, std::uint64_t{1} << 40));
    for (std::size_t at = 0; at < count; ++at)
      destination[at] = static_cast<std::remove_reference_t<decltype(destination[at])>>(values[at]);
    return {};
  };
  KW_TRY_VOID(fill_in("extents", rank, entry.map.extents));
  KW_TRY_VOID(fill_in("box", rank, entry.map.box));
  KW_TRY_VOID(fill_in("element_strides", rank, entry.map.element_strides));
  std::uint64_t stride = static_cast<std::uint64_t>(size_bytes(entry.map.type));
  for (std::size_t dim = 0; dim + 1 < rank; ++dim) entry.map.strides_bytes[dim] = stride *= entry.map.extents[dim];
  KW_TRY_VOID(fill_in("strides_bytes", rank - 1, entry.map.strides_bytes));
  if (const toml::node* offset = table->get("offset_bytes")) {
    KW_TRY(entry.offset_bytes, reader.number(*offset, subject + ": offset_bytes", 0, std::uint64_t{1} << 40));
  }
  if (const toml::node* swizzle = table->get("swizzle")) {
    KW_TRY(const std::uint64_t span, reader.number(*swizzle, subject + ": swizzle", 0, 128));
    if (span != 0 && span != 32 && span != 64 && span != 128)
      return reader.refuse(*swizzle, subject + ": swizzle: must be 0, 32, 64 or 128 bytes");
    entry.map.swizzle = span == 0    ? TensorMapSwizzle::kNone
                        : span == 32 ? TensorMapSwizzle::k32B
                        : span == 64 ? TensorMapSwizzle::k64B
                                     : TensorMapSwizzle::k128B;
  }
  if (const toml::node* fill = table->get("fill")) {
    KW_TRY(const std::string text, reader.string(*fill, subject + ": fill"));
    if (text != "zero" && text != "nan") return reader.refuse(*fill, subject + ": fill: must be zero or nan");
    entry.map.fill = text == "nan" ? TensorMapFill::kNan : TensorMapFill::kZero;
  }
  return entry;
}

Result<std::vector<std::byte>> read_scalar(const Reader& reader, const std::string& type, const toml::node& node,
                                           const std::string& subject) {
  const auto integer = node.value_exact<std::int64_t>();
  const auto real = node.value<double>();
  const auto bytes_of = [](auto value) { return argument(value); };
  const auto out_of_range = [&] { return reader.refuse(node, fmt::format("{}: {}: the value does not fit", subject, type)); };
  if (type == "f32" && real) return bytes_of(static_cast<float>(*real));
  if (type == "f64" && real) return bytes_of(*real);
  if ((type == "f16" || type == "bf16") && real) {
    std::vector<std::byte> bytes(2);
    store_element(*dtype_from_text(type), *real, bytes.data());
    return bytes;
  }
  if (!integer) return reader.refuse(node, fmt::format("{}: {}: must be a number of that type", subject, type));
  const std::int64_t value = *integer;
  if (type == "s64" || type == "u64") return type == "u64" && value < 0 ? Result<std::vector<std::byte>>(out_of_range()) : bytes_of(value);
  const int bits = type == "u8" || type == "s8" ? 8 : type == "u16" || type == "s16" ? 16 : 32;
  const std::int64_t min = type[0] == 's' ? -(std::int64_t{1} << (bits - 1)) : 0;
  const std::int64_t max = type[0] == 's' ? (std::int64_t{1} << (bits - 1)) - 1 : (std::int64_t{1} << bits) - 1;
  if (value < min || value > max) return out_of_range();
  std::vector<std::byte> bytes = bytes_of(value);
  bytes.resize(static_cast<std::size_t>(bits / 8));
  return bytes;
}

Result<std::vector<std::byte>> read_hex(const Reader& reader, const toml::node& node, const std::string& subject) {
  KW_TRY(const std::string text, reader.string(node, subject));
  std::vector<std::byte> bytes;
  for (std::size_t at = 0; at < text.size(); at += 2) {
    std::uint8_t value = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + std::min(at + 2, text.size()), value, 16);
    if (text.size() % 2 != 0 || error != std::errc{} || end != text.data() + at + 2)
      return reader.refuse(node, subject + ": hex: must be pairs of hexadecimal digits");
    bytes.push_back(static_cast<std::byte>(value));
  }
  return bytes;
}

Result<LaunchFileArgument> read_argument(const Reader& reader, const toml::node& node, const std::string& subject, bool may_be_struct) {
  static const std::set<std::string_view> kScalars = {"s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f16", "bf16", "f32", "f64"};
  const toml::table* table = node.as_table();
  if (table == nullptr || table->empty()) return reader.refuse(node, subject + ": must be a table such as {buffer = \"A\"} or {s32 = 5}");
  LaunchFileArgument argument;
  argument.line = static_cast<int>(node.source().begin.line);
  const toml::node* offset = table->get("offset_bytes");
  if (table->size() != (offset != nullptr ? 2u : 1u))
    return reader.refuse(node, subject + ": must have one key (a buffer may have offset_bytes too)");
  for (const auto& [key, value] : *table) {
    const std::string name(key.str());
    if (name == "offset_bytes") continue;
    if (name == "buffer" || name == "tensor_map") {
      argument.kind = name == "buffer" ? LaunchFileArgument::Kind::kBuffer : LaunchFileArgument::Kind::kTensorMap;
      KW_TRY(argument.name, reader.string(value, subject + ": " + name));
    } else if (name == "hex") {
      KW_TRY(argument.bytes, read_hex(reader, value, subject));
    } else if (name == "fields" && may_be_struct && value.is_array()) {
      argument.kind = LaunchFileArgument::Kind::kStruct;
      for (const toml::node& field : *value.as_array()) {
        KW_TRY(argument.fields.emplace_back(),
               read_argument(reader, field, subject + ", field " + std::to_string(argument.fields.size()), false));
      }
    } else if (kScalars.contains(name)) {
      KW_TRY(argument.bytes, read_scalar(reader, name, value, subject));
    } else {
      return reader.refuse(
          value, fmt::format("{}: unknown kind '{}': must be buffer, tensor_map, hex, fields or a scalar type such as s32", subject, name));
    }
  }
  if (offset != nullptr) {
    if (argument.kind != LaunchFileArgument::Kind::kBuffer) return reader.refuse(*offset, subject + ": offset_bytes goes with a buffer");
    KW_TRY(argument.offset_bytes, reader.number(*offset, subject + ": offset_bytes", 0, std::uint64_t{1} << 40));
  }
  return argument;
}

Status read_sections(const Reader& reader, const toml::table& root, LaunchFile& launch) {
  const auto each = [&](std::string_view key, auto&& read) -> Status {
    const toml::node* node = root.get(key);
    if (node == nullptr) return {};
    if (!node->is_table()) return reader.refuse(*node, fmt::format("{}: must be a table of tables", key));
    for (const auto& [name, entry] : *node->as_table()) KW_TRY_VOID(read(std::string(name.str()), entry));
    return {};
  };
  KW_TRY_VOID(each("buffer", [&](const std::string& name, const toml::node& node) -> Status {
    KW_TRY(launch.buffers[name], read_buffer(reader, name, node));
    return {};
  }));
  return each("tensor_map", [&](const std::string& name, const toml::node& node) -> Status {
    KW_TRY(launch.tensor_maps[name], read_tensor_map(reader, name, node));
    if (!launch.buffers.contains(launch.tensor_maps[name].buffer)) {
      return reader.refuse(node, fmt::format("tensor_map '{}': there is no buffer '{}'", name, launch.tensor_maps[name].buffer));
    }
    return {};
  });
}

Status check_names(const Reader& reader, const toml::node& node, const LaunchFile& launch, const LaunchFileArgument& argument) {
  for (const LaunchFileArgument& field : argument.fields) KW_TRY_VOID(check_names(reader, node, launch, field));
  if (argument.kind == LaunchFileArgument::Kind::kBuffer && !launch.buffers.contains(argument.name)) {
    return reader.refuse(node, fmt::format("arguments: there is no buffer '{}'", argument.name));
  }
  if (argument.kind == LaunchFileArgument::Kind::kTensorMap && !launch.tensor_maps.contains(argument.name)) {
    return reader.refuse(node, fmt::format("arguments: there is no tensor_map '{}'", argument.name));
  }
  return {};
}

}  // namespace

Result<LaunchFile> parse_launch_file(std::string_view text, const std::string& file_name) {
  KW_TRY_VOID(check_key_parts(text, file_name));
  const Reader reader{file_name};
  toml::table root;
  try {
    root = toml::parse(text, file_name);
  } catch (const toml::parse_error& error) {
    const auto& where = error.source().begin;
    return fail(Stage::kCommandLine, Code::kBadInput, std::string(error.description()),
                {file_name, static_cast<int>(where.line), static_cast<int>(where.column)});
  }
  KW_TRY_VOID(reader.only_keys(
      root, "launch file", {"source", "kernel", "grid", "block", "cluster", "dynamic_shared_bytes", "arguments", "buffer", "tensor_map"}));
  LaunchFile launch;
  launch.file = file_name;
  for (const std::string_view key : {"grid", "block", "arguments"}) {
    if (!root.contains(key)) return reader.refuse(root, fmt::format("launch file: {} must be given", key));
  }
  if (root.contains("source")) {
    KW_TRY(launch.source, reader.string(*root.get("source"), "source"));
  }
  if (root.contains("kernel")) {
    KW_TRY(launch.call.kernel, reader.string(*root.get("kernel"), "kernel"));
  }
  KW_TRY(launch.call.grid, reader.extent(*root.get("grid"), "grid"));
  KW_TRY(launch.call.block, reader.extent(*root.get("block"), "block"));
  if (root.contains("cluster")) {
    KW_TRY(launch.call.cluster, reader.extent(*root.get("cluster"), "cluster"));
  }
  if (root.contains("dynamic_shared_bytes")) {
    KW_TRY(const std::uint64_t bytes, reader.number(*root.get("dynamic_shared_bytes"), "dynamic_shared_bytes", 0, 0xffffffff));
    launch.call.dynamic_shared_bytes = static_cast<std::uint32_t>(bytes);
  }
  KW_TRY_VOID(read_sections(reader, root, launch));
  const toml::node& arguments = *root.get("arguments");
  if (!arguments.is_array()) return reader.refuse(arguments, "arguments: must be a list");
  for (const toml::node& node : *arguments.as_array()) {
    KW_TRY(LaunchFileArgument argument, read_argument(reader, node, fmt::format("argument {}", launch.arguments.size()), true));
    KW_TRY_VOID(check_names(reader, node, launch, argument));
    launch.arguments.push_back(std::move(argument));
  }
  return launch;
}

}  // namespace kw::simulate
