// Reads [tensors] of an op spec: dtype, shape, role, strides, align, const, list and the data properties.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "generator/spec/body_parser.h"
#include "generator/spec/spec_reader.h"

namespace kw::generator {

void SectionReader::read_tensors(const TomlValue& table) {
  if (!expect(table, TomlValue::Kind::kTable, "tensors")) return;
  for (const TomlValue::Entry& entry : table.entries) {
    if (expect_name(entry.key, entry.where, "a tensor") &&
        expect(entry.value, TomlValue::Kind::kTable, fmt::format("tensor {}", entry.key))) {
      read_tensor(entry.key, entry.where, entry.value);
    }
  }
}

void SectionReader::read_tensor(const std::string& name, const SourceRange& where, const TomlValue& table) {
  const std::string subject = fmt::format("tensor {}", name);
  refuse_unknown_keys(table, subject, {"dtype", "shape", "role", "strides", "align", "const", "range", "sorted", "unique", "list"});
  TensorSyntax tensor;
  tensor.name = name;
  tensor.where = where;
  if (const TomlValue* value = table.find("dtype")) {
    tensor.dtype = dtype(*value, fmt::format("dtype of {}", subject)).value_or(DType::kF16);
    if (tensor.dtype == DType::kTF32) {
      error(value->where,
            fmt::format("{} has dtype tf32, which is a way to multiply: declare f32 and say [compute] multiply = \"tf32\"", subject));
      tensor.dtype = DType::kF32;
    }
  } else {
    error(where, fmt::format("{} has no dtype", subject));
  }
  if (const TomlValue* value = table.find("shape")) {
    tensor.shape = expressions(*value, fmt::format("shape of {}", subject));
    if (tensor.shape.size() > 8) {
      error(value->where, fmt::format("{} has {} axes: at most 8", subject, tensor.shape.size()));
      return;
    }
  } else {
    error(where, fmt::format("{} has no shape: a device scalar has shape = []", subject));
  }
  if (const TomlValue* value = table.find("role")) read_role(*value, tensor);
  if (const TomlValue* value = table.find("strides")) read_strides(*value, tensor);
  if (const TomlValue* value = table.find("align")) {
    const bool is_integer = expect(*value, TomlValue::Kind::kInteger, fmt::format("align of {}", subject));
    const bool is_power = is_integer && value->integer > 0 && value->integer <= 4096 && (value->integer & (value->integer - 1)) == 0;
    if (is_integer && (!is_power || value->integer < size_bytes(tensor.dtype))) {
      error(value->where, fmt::format("align of {} = {}: a power of two from the element's size ({}) to 4096", subject, value->integer,
                                      size_bytes(tensor.dtype)));
    } else if (is_power) {
      tensor.align_bytes = static_cast<int>(value->integer);
    }
  }
  if (const TomlValue* value = table.find("list")) {
    if (expect(*value, TomlValue::Kind::kString, fmt::format("list of {}", subject))) tensor.list_dim = value->string;
    tensor.list_where = value->where;
  }
  read_properties(table, tensor);
  syntax_.tensors.push_back(std::move(tensor));
}

void SectionReader::read_role(const TomlValue& value, TensorSyntax& tensor) {
  if (!expect(value, TomlValue::Kind::kString, fmt::format("role of tensor {}", tensor.name))) return;
  if (value.string == "in") {
    tensor.role = TensorRole::kIn;
  } else if (value.string == "out") {
    tensor.role = TensorRole::kOut;
  } else if (value.string == "inout") {
    tensor.role = TensorRole::kInOut;
  } else {
    tensor.role = TensorRole::kOut;  // the likely one: no other message follows from the mistake
    error(value.where,
          fmt::format("role of tensor {} = '{}': known are in, out, inout", tensor.name, value.string.substr(0, kMaxNameLength)));
  }
}

void SectionReader::read_strides(const TomlValue& value, TensorSyntax& tensor) {
  const std::string subject = fmt::format("strides of tensor {}", tensor.name);
  tensor.has_strides = true;
  if (value.kind == TomlValue::Kind::kString) {
    if (value.string != "any")
      error(value.where,
            fmt::format("{} = '{}': write \"any\" or one stride per axis, in elements", subject, value.string.substr(0, kMaxNameLength)));
    tensor.strides.assign(tensor.shape.size(), nullptr);
    return;
  }
  if (!expect(value, TomlValue::Kind::kArray, subject)) return;
  if (value.items.size() != tensor.shape.size()) {
    error(value.where, fmt::format("{} has {} entries: the tensor has {} axes", subject, value.items.size(), tensor.shape.size()));
    tensor.has_strides = false;
    return;
  }
  for (const TomlValue& item : value.items) {
    const bool is_any = item.kind == TomlValue::Kind::kString && item.string == "any";
    tensor.strides.push_back(is_any ? nullptr : expression(item, subject));
  }
}

void SectionReader::read_properties(const TomlValue& table, TensorSyntax& tensor) {
  const auto flag = [&](const char* key) {
    const TomlValue* value = table.find(key);
    return value != nullptr && expect(*value, TomlValue::Kind::kBoolean, fmt::format("{} of tensor {}", key, tensor.name)) &&
           value->boolean;
  };
  tensor.is_const = flag("const");
  tensor.properties.is_sorted = flag("sorted");
  tensor.properties.is_unique = flag("unique");
  const TomlValue* range = table.find("range");
  if (range == nullptr || !expect(*range, TomlValue::Kind::kArray, fmt::format("range of tensor {}", tensor.name))) return;
  std::vector<double> bounds;
  for (const TomlValue& item : range->items) {
    if (item.kind == TomlValue::Kind::kInteger) bounds.push_back(static_cast<double>(item.integer));
    if (item.kind == TomlValue::Kind::kReal) bounds.push_back(item.real);
  }
  if (bounds.size() != 2 || range->items.size() != 2 || !(bounds[0] <= bounds[1])) {
    error(range->where, fmt::format("range of tensor {}: write [low, high] with low <= high, two numbers", tensor.name));
    return;
  }
  tensor.properties.range_low = bounds[0];
  tensor.properties.range_high = bounds[1];
}

}  // namespace kw::generator
