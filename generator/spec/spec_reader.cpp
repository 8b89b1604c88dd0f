// Reads [dims], [[problems]], [scalars], [index], [compute] and [tune] of an op spec. Tensors are in tensor_reader.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "generator/spec/spec_reader.h"

#include <fmt/format.h>

#include <cmath>

#include "generator/spec/body_parser.h"

namespace kw::generator {

bool is_legal_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameLength || (name[0] >= '0' && name[0] <= '9')) return false;
  for (const char c : name) {
    const bool is_legal = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!is_legal) return false;
  }
  return true;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& known) {
  const std::string nearest = nearest_name(name, known);
  return nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest);
}

void SectionReader::error(const SourceRange& where, std::string message, Code code) {
  diagnostics_.add({Stage::kSpec, code, std::move(message), where, {}});
}

bool SectionReader::expect(const TomlValue& value, TomlValue::Kind kind, std::string_view subject) {
  if (value.kind == kind) return true;
  error(value.where, fmt::format("{} is {}: it must be {}", subject, to_text(value.kind), to_text(kind)));
  return false;
}

void SectionReader::refuse_unknown_keys(const TomlValue& table, std::string_view subject, std::initializer_list<std::string_view> known) {
  const std::vector<std::string> names(known.begin(), known.end());
  for (const TomlValue::Entry& entry : table.entries) {
    bool is_known = false;
    for (const std::string& name : names) is_known = is_known || name == entry.key;
    if (!is_known) {
      error(entry.where, fmt::format("unknown key '{}' in {}: known are {}{}", entry.key.substr(0, kMaxNameLength), subject,
                                     fmt::join(names, ", "), did_you_mean(entry.key, names)));
    }
  }
}

bool SectionReader::expect_name(std::string_view name, const SourceRange& where, std::string_view what) {
  if (!is_legal_name(name)) {
    error(where, fmt::format("'{}' is no name for {}: a name is a letter or '_', then letters, digits and '_', at most {} in all (no path)",
                             name.substr(0, kMaxNameLength), what, kMaxNameLength));
    return false;
  }
  for (const std::string_view word : {"and", "or", "not", "inf", "nan", "true", "false", "new"}) {
    if (name == word) {
      error(where, fmt::format("'{}' is a word of the notation: it cannot name {}", name, what));
      return false;
    }
  }
  return true;
}

SyntaxRef SectionReader::expression(const TomlValue& value, std::string_view subject) {
  if (value.kind == TomlValue::Kind::kString) return parse_expression(value.string, value.text_place, diagnostics_);
  if (value.kind == TomlValue::Kind::kInteger || value.kind == TomlValue::Kind::kReal) {
    const std::string text = value.kind == TomlValue::Kind::kInteger ? fmt::format("{}", value.integer) : fmt::format("{:e}", value.real);
    if (value.kind == TomlValue::Kind::kInteger || std::isfinite(value.real)) {
      SyntaxNode node;
      node.kind = value.kind == TomlValue::Kind::kInteger ? SyntaxNode::Kind::kInteger : SyntaxNode::Kind::kReal;
      node.integer = value.integer;
      node.real = value.real;
      node.where = value.where;
      if (value.integer > kMaxExactInteger || value.integer < -kMaxExactInteger) {
        error(value.where, fmt::format("{} = {}: a whole number is at most 2^53", subject, value.integer));
        return nullptr;
      }
      return std::make_shared<const SyntaxNode>(std::move(node));
    }
    return parse_expression(std::isnan(value.real) ? "nan"
                            : value.real < 0       ? "-inf"
                                                   : "inf",
                            {value.where.file, value.where.line, value.where.column}, diagnostics_);
  }
  error(value.where, fmt::format("{} is {}: it must be a number or an expression in quotes", subject, to_text(value.kind)));
  return nullptr;
}

std::vector<SyntaxRef> SectionReader::expressions(const TomlValue& value, std::string_view subject) {
  std::vector<SyntaxRef> values;
  if (!expect(value, TomlValue::Kind::kArray, subject)) return values;
  for (const TomlValue& item : value.items) {
    SyntaxRef parsed = expression(item, subject);
    values.push_back(parsed ? std::move(parsed) : syntax_integer(1, item.where));
  }
  return values;
}

std::optional<DType> SectionReader::dtype(const TomlValue& value, std::string_view subject) {
  if (!expect(value, TomlValue::Kind::kString, subject)) return std::nullopt;
  const std::optional<DType> found = dtype_from_text(value.string);
  if (found) return found;
  std::vector<std::string> names;
  for (const DType known : all_dtypes())
    if (known != DType::kTF32) names.emplace_back(to_text(known));  // a way to multiply, refused as the dtype of a tensor
  error(value.where, fmt::format("{} = '{}': unknown dtype, known are {}{}", subject, value.string.substr(0, kMaxNameLength),
                                 fmt::join(names, ", "), did_you_mean(value.string, names)));
  return std::nullopt;
}

bool SectionReader::dim_value(const TomlValue& value, std::string_view subject, std::vector<std::int64_t>& values) {
  if (!expect(value, TomlValue::Kind::kInteger, subject)) return false;
  if (value.integer < 0) {
    error(value.where, fmt::format("{} = {}: an extent is not negative", subject, value.integer));
    return false;
  }
  if (value.integer > kMaxExactInteger) {
    error(value.where, fmt::format("{} = {}: an extent is at most 2^53", subject, value.integer));
    return false;
  }
  values.push_back(value.integer);
  return true;
}

void SectionReader::read_dims(const TomlValue& table) {
  if (!expect(table, TomlValue::Kind::kTable, "dims")) return;
  for (const TomlValue::Entry& entry : table.entries) {
    if (!expect_name(entry.key, entry.where, "a dim")) continue;
    DimSyntax dim;
    dim.name = entry.key;
    dim.where = entry.where;
    if (entry.value.kind == TomlValue::Kind::kArray) {
      if (entry.value.items.empty()) error(entry.value.where, fmt::format("{} = []: list at least one value, or say \"any\"", entry.key));
      for (const TomlValue& item : entry.value.items) dim_value(item, entry.key, dim.values);
    } else if (entry.value.kind == TomlValue::Kind::kString) {
      dim.is_any = entry.value.string == "any";
      if (!dim.is_any) {
        const bool is_misspelled = !nearest_name(entry.value.string, {"any"}).empty() && is_legal_name(entry.value.string);
        if (is_misspelled)
          error(entry.value.where,
                fmt::format("{} = '{}': neither an expression of dims nor \"any\"; did you mean 'any'?", entry.key, entry.value.string));
        if (!is_misspelled) dim.derived = expression(entry.value, entry.key);
        if (!dim.derived) dim.is_any = true;
      }
    } else {
      dim_value(entry.value, entry.key, dim.values);
    }
    syntax_.dims.push_back(std::move(dim));
  }
}

void SectionReader::read_problems(const TomlValue& array) {
  if (!expect(array, TomlValue::Kind::kArray, "problems")) return;
  for (const TomlValue& row : array.items) {
    if (!expect(row, TomlValue::Kind::kTable, "a row of [[problems]]")) continue;
    ProblemSyntax problem;
    problem.where = row.where;
    for (const TomlValue::Entry& entry : row.entries) {
      if (entry.value.kind != TomlValue::Kind::kTable) {
        read_problem_entry(entry.key, entry.value, entry.where, problem);
        continue;
      }
      for (const TomlValue::Entry& inner : entry.value.entries)
        read_problem_entry(entry.key + "." + inner.key, inner.value, inner.where, problem);
    }
    syntax_.problems.push_back(std::move(problem));
  }
  if (syntax_.problems.size() > static_cast<std::size_t>(kMaxProblems)) {
    error(array.where, fmt::format("[[problems]] has {} rows: at most {}", syntax_.problems.size(), kMaxProblems));
    syntax_.problems.clear();
  }
}

void SectionReader::read_problem_entry(const std::string& key, const TomlValue& value, const SourceRange& where, ProblemSyntax& problem) {
  std::vector<std::int64_t> values;
  if (!dim_value(value, key, values)) return;
  const std::size_t dot = key.find('.');
  if (dot == std::string::npos) {
    problem.problem.dims[key] = values.front();
  } else if (key.substr(dot + 1) == "align") {
    problem.problem.align_bytes[key.substr(0, dot)] = values.front();
  } else if (key.substr(dot + 1).starts_with("stride")) {
    problem.problem.strides[key] = values.front();
  } else {
    error(where,
          fmt::format("unknown key '{}' in [[problems]]: rows name dims, \"T.strideI\" and \"T.align\"", key.substr(0, kMaxNameLength)));
  }
}

void SectionReader::read_scalars(const TomlValue& table) {
  if (!expect(table, TomlValue::Kind::kTable, "scalars")) return;
  for (const TomlValue::Entry& entry : table.entries) {
    if (!expect_name(entry.key, entry.where, "a scalar")) continue;
    ScalarSyntax scalar;
    scalar.name = entry.key;
    scalar.where = entry.where;
    const TomlValue* value = &entry.value;
    if (entry.value.kind == TomlValue::Kind::kTable) {
      refuse_unknown_keys(entry.value, fmt::format("scalar {}", entry.key), {"dtype", "value"});
      if (const TomlValue* type = entry.value.find("dtype")) scalar.dtype = dtype(*type, fmt::format("dtype of scalar {}", entry.key));
      value = entry.value.find("value");
    }
    const bool is_launch = value == nullptr || (value->kind == TomlValue::Kind::kString && value->string == "launch");
    if (!is_launch) {
      scalar.value = expression(*value, fmt::format("scalar {}", entry.key));
    }
    syntax_.scalars.push_back(std::move(scalar));
  }
}

void SectionReader::read_indices(const TomlValue& table) {
  if (!expect(table, TomlValue::Kind::kTable, "index")) return;
  for (const TomlValue::Entry& entry : table.entries) {
    if (!expect_name(entry.key, entry.where, "an index")) continue;
    const std::string subject = fmt::format("index {}", entry.key);
    if (!expect(entry.value, TomlValue::Kind::kTable, subject)) continue;
    refuse_unknown_keys(entry.value, subject, {"extent", "below", "ragged"});
    IndexSyntax index;
    index.name = entry.key;
    index.where = entry.where;
    if (const TomlValue* value = entry.value.find("extent")) index.extent = expression(*value, subject + " extent");
    if (const TomlValue* value = entry.value.find("below")) index.below = expression(*value, subject + " below");
    if (const TomlValue* value = entry.value.find("ragged")) {
      index.ragged = expression(*value, subject + " ragged");
      const bool is_legal = index.ragged && index.ragged->kind == SyntaxNode::Kind::kRead && index.ragged->operands.size() == 1 &&
                            !index.ragged->is_new && index.ragged->operands[0]->kind == SyntaxNode::Kind::kName;
      if (index.ragged && !is_legal)
        error(value->where, fmt::format("{} ragged: write \"offsets[g]\", a tensor of offsets at the group's index", subject));
      if (!is_legal) index.ragged = nullptr;
    }
    syntax_.indices.push_back(std::move(index));
  }
}

void SectionReader::read_accumulate(const TomlValue& table) {
  if (const TomlValue* value = table.find("accumulate")) {
    syntax_.accumulate = dtype(*value, "accumulate");
    if (syntax_.accumulate) {
      const DType type = *syntax_.accumulate;
      const bool is_legal = type == DType::kF32 || type == DType::kF64 || type == DType::kF16 || type == DType::kBF16 ||
                            type == DType::kI32 || type == DType::kI64;
      if (!is_legal) {
        error(value->where, fmt::format("accumulate = '{}': sums are kept in f32, f64, f16, bf16, i32 or i64", value->string));
        syntax_.accumulate.reset();
      }
    }
  }
  if (const TomlValue* value = table.find("multiply")) {
    if (expect(*value, TomlValue::Kind::kString, "multiply")) {
      syntax_.uses_tf32 = value->string == "tf32";
      if (value->string != "tf32" && value->string != "exact")
        error(value->where, fmt::format("multiply = '{}': known are 'tf32' and 'exact'", value->string.substr(0, kMaxNameLength)));
    }
  }
}

void SectionReader::read_compute(const TomlValue& table) {
  syntax_.compute_where = table.where;
  if (!expect(table, TomlValue::Kind::kTable, "compute")) return;
  refuse_unknown_keys(table, "[compute]", {"accumulate", "multiply", "body", "chain"});
  read_accumulate(table);
  const TomlValue* body = table.find("body");
  const TomlValue* chain = table.find("chain");
  if ((body == nullptr) == (chain == nullptr)) error(table.where, "[compute] needs either a body or a chain");
  if (body != nullptr && expect(*body, TomlValue::Kind::kString, "body")) {
    const std::size_t errors_before = diagnostics_.errors().size();
    syntax_.statements = parse_body(body->string, body->text_place, diagnostics_);
    syntax_.has_body_errors = diagnostics_.errors().size() > errors_before;
    if (syntax_.statements.empty() && !syntax_.has_body_errors) error(body->where, "the body has no statement");
    if (syntax_.statements.size() > kMaxStatements) {
      error(body->where, fmt::format("the body has {} statements: at most {}", syntax_.statements.size(), kMaxStatements));
      syntax_.statements.clear();
    }
  }
  if (chain != nullptr && expect(*chain, TomlValue::Kind::kString, "chain")) {
    syntax_.chain_where = chain->where;
    syntax_.chain = parse_chain(chain->string, chain->text_place, diagnostics_);
  }
}

void SectionReader::read_tune_values(const std::string& key, const TomlValue& value) {
  if (value.kind == TomlValue::Kind::kArray && value.items.size() > kMaxTuneValues)
    return error(value.where, fmt::format("tune {} lists {} values: at most {}", key, value.items.size(), kMaxTuneValues));
  std::vector<std::int64_t>& values = syntax_.tune.values[key];
  const auto add = [&](const TomlValue& item) {
    if (item.kind == TomlValue::Kind::kInteger) {
      values.push_back(item.integer);
    } else if (item.kind == TomlValue::Kind::kBoolean) {
      values.push_back(item.boolean ? 1 : 0);
    } else {
      error(item.where, fmt::format("tune {} is {}: it must be an integer, a boolean or a list of them", key, to_text(item.kind)));
    }
  };
  if (value.kind != TomlValue::Kind::kArray) return add(value);
  if (value.items.empty()) error(value.where, fmt::format("tune {} = []: list at least one value", key));
  for (const TomlValue& item : value.items) add(item);
}

void SectionReader::read_tune(const TomlValue& table) {
  if (!expect(table, TomlValue::Kind::kTable, "tune")) return;
  const auto positive = [&](const TomlValue& value, std::string_view subject) -> std::optional<double> {
    double number = value.kind == TomlValue::Kind::kInteger ? static_cast<double>(value.integer) : value.real;
    if (value.kind == TomlValue::Kind::kString) {  // "60s"
      const std::string& text = value.string;
      char* end = nullptr;
      number = std::strtod(text.c_str(), &end);
      const std::string_view unit(end);
      if (end == text.c_str() || (unit != "s" && unit != "min" && !unit.empty())) number = 0;
      if (unit == "min") number *= 60;
    }
    if (std::isfinite(number) && number > 0 && value.kind != TomlValue::Kind::kBoolean) return number;
    error(value.where, fmt::format("tune {}: it must be a positive number", subject));
    return std::nullopt;
  };
  for (const TomlValue::Entry& entry : table.entries) {
    if (entry.key == "budget") {
      syntax_.tune.budget_seconds = positive(entry.value, "budget (seconds, or \"60s\")");
    } else if (entry.key == "tolerance") {
      const std::optional<double> scale = positive(entry.value, "tolerance");
      if (scale && *scale > kMaxToleranceScale)
        error(entry.value.where,
              fmt::format("tune tolerance = {}: it multiplies the arithmetic bound, and is at most {}", *scale, kMaxToleranceScale));
      else
        syntax_.tune.tolerance_scale = scale;
    } else if (entry.key == "l2") {
      if (!expect(entry.value, TomlValue::Kind::kString, "tune l2")) continue;
      syntax_.tune.is_warm_l2 = entry.value.string == "warm";
      if (entry.value.string != "warm" && entry.value.string != "cold") error(entry.value.where, "tune l2: known are 'cold' and 'warm'");
    } else if (entry.key == "atomics") {
      if (expect(entry.value, TomlValue::Kind::kBoolean, "tune atomics")) syntax_.tune.allows_atomics = entry.value.boolean;
    } else if (expect_name(entry.key, entry.where, "a tunable")) {
      syntax_.tune.places[entry.key] = entry.where;
      read_tune_values(entry.key, entry.value);
    }
  }
}

}  // namespace kw::generator
