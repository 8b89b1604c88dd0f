// The first step of the line: spec text -> OpSpec. Checks the file as a whole, reads each section, and lists the calls that are
// neither built in nor sugar, for the reader of user functions.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "generator/spec/checker.h"
#include "generator/spec/functions.h"
#include "generator/spec/op_spec.h"
#include "generator/spec/spec_reader.h"
#include "generator/spec/sugar.h"

namespace kw::generator {

namespace {

constexpr std::size_t kMaxUseDepth = 8;
constexpr int kMaxUsedFiles = 64;

void collect_calls(const SyntaxRef& node, std::set<std::string>& names) {
  if (!node) return;
  if (node->kind == SyntaxNode::Kind::kCall && !node->has_brackets) names.insert(node->name);
  for (const SyntaxRef& operand : node->operands) collect_calls(operand, names);
  for (const auto& [keyword, value] : node->keywords) collect_calls(value, names);
}

/// Calls that a user's file must define: not built in, no sugar, no block of `use`.
std::vector<std::string> unknown_calls(const OpSpecSyntax& syntax) {
  std::set<std::string> names;
  for (const StatementSyntax& statement : syntax.statements) {
    collect_calls(statement.value, names);
    for (const SyntaxRef& subscript : statement.subscripts) collect_calls(subscript, names);
  }
  const auto is_declared = [&](const std::string& name) {
    return std::any_of(syntax.tensors.begin(), syntax.tensors.end(), [&](const TensorSyntax& tensor) { return tensor.name == name; });
  };
  for (const ChainStep& step : syntax.chain) {
    collect_calls(step.value, names);
    // A bare name in a chain is a tensor to add, a scalar, or a function to apply.
    const bool is_name = step.value->kind == SyntaxNode::Kind::kName && !step.operator_function;
    if (is_name && !is_declared(step.value->name)) names.insert(step.value->name);
  }
  for (const auto& [name, block] : syntax.blocks) names.insert(block->called_names.begin(), block->called_names.end());
  std::vector<std::string> unknown;
  for (const std::string& name : names) {
    if (find_builtin(name) == nullptr && name != "cast" && name != "new" && !is_sugar(name) && !syntax.blocks.contains(name))
      unknown.push_back(name);
  }
  return unknown;
}

bool is_inside_folder(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.find('\\') != std::string_view::npos || path.find('\0') != std::string_view::npos)
    return false;
  return path != ".." && path.find("../") == std::string_view::npos && !path.ends_with("/..");
}

/// One spelling of each path inside the spec's folder: "./a//b" and "a/b" are one file.
std::string plain_path(const std::string& path) { return std::filesystem::path(path).lexically_normal().string(); }

class FileParser {
 public:
  /// `users`: the files on the way from the spec to this one, by plain_path().
  FileParser(const std::string& file_name, const FileReader& read_file, Diagnostics& diagnostics, std::vector<std::string> users,
             int& num_used_files)
      : file_name_(file_name),
        read_file_(read_file),
        diagnostics_(diagnostics),
        users_(std::move(users)),
        num_used_files_(num_used_files) {}

  std::shared_ptr<const OpSpec> parse(std::string_view text) {
    const Result<TomlValue> parsed = read_toml(text, file_name_);
    if (!parsed) {
      diagnostics_.add(parsed.error());
      return nullptr;
    }
    const std::size_t errors_before = diagnostics_.errors().size();
    auto syntax = std::make_shared<OpSpecSyntax>();
    OpSpec spec;
    spec.file_name = file_name_;
    read_sections(*parsed, spec, *syntax);
    spec.syntax = syntax;
    if (diagnostics_.errors().size() > errors_before) {
      check_what_parsed(spec, diagnostics_);
      return nullptr;
    }
    spec.called_names = unknown_calls(*syntax);
    return std::make_shared<const OpSpec>(std::move(spec));
  }

 private:
  void read_sections(const TomlValue& root, OpSpec& spec, OpSpecSyntax& syntax) {
    SectionReader reader(syntax, diagnostics_);
    reader.refuse_unknown_keys(root, "the op spec",
                               {"name", "use", "functions", "dims", "problems", "tensors", "scalars", "index", "compute", "tune"});
    const SourceRange whole{file_name_, 0, 0};
    if (const TomlValue* value = root.find("name")) {
      if (reader.expect(*value, TomlValue::Kind::kString, "name") && reader.expect_name(value->string, value->where, "an op"))
        spec.name = value->string;
    } else {
      reader.error(whole, "the op spec has no name");
    }
    if (const TomlValue* value = root.find("functions")) {
      if (reader.expect(*value, TomlValue::Kind::kString, "functions") && expect_path(reader, *value)) {
        spec.functions_file = value->string;
        spec.functions_where = value->where;
      }
    }
    if (const TomlValue* value = root.find("use")) read_uses(reader, *value, syntax);
    if (const TomlValue* value = root.find("dims")) reader.read_dims(*value);
    if (const TomlValue* value = root.find("problems")) reader.read_problems(*value);
    if (const TomlValue* value = root.find("tensors"))
      reader.read_tensors(*value);
    else
      reader.error(whole, "the op spec has no [tensors]");
    if (const TomlValue* value = root.find("scalars")) reader.read_scalars(*value);
    if (const TomlValue* value = root.find("index")) reader.read_indices(*value);
    if (const TomlValue* value = root.find("compute"))
      reader.read_compute(*value);
    else
      reader.error(whole, "the op spec has no [compute]");
    if (const TomlValue* value = root.find("tune")) reader.read_tune(*value);
  }

  static bool expect_path(SectionReader& reader, const TomlValue& value) {
    if (is_inside_folder(value.string)) return true;
    reader.error(value.where, fmt::format("'{}' is not inside the spec's folder: name a file by a relative path without '..'",
                                          value.string.substr(0, 200)));
    return false;
  }

  void read_uses(SectionReader& reader, const TomlValue& value, OpSpecSyntax& syntax) {
    if (value.kind == TomlValue::Kind::kArray) {
      for (const TomlValue& item : value.items) read_use(reader, item, syntax);
    } else {
      read_use(reader, value, syntax);
    }
  }

  void read_use(SectionReader& reader, const TomlValue& value, OpSpecSyntax& syntax) {
    if (!reader.expect(value, TomlValue::Kind::kString, "use") || !expect_path(reader, value)) return;
    std::vector<std::string> path = users_;  // the file itself is the last
    path.push_back(plain_path(value.string));
    const auto first = std::find(users_.begin(), users_.end(), path.back());
    if (first != users_.end()) {
      const auto cycle = path.begin() + (first - users_.begin());
      reader.error(value.where,
                   fmt::format("use of '{}' is a cycle: {}", value.string, fmt::join(std::vector<std::string>(cycle, path.end()), " -> ")));
      return;
    }
    if (users_.size() > kMaxUseDepth) {
      reader.error(value.where,
                   fmt::format("use of '{}' is nested deeper than {} files: {}", value.string, kMaxUseDepth, fmt::join(path, " -> ")));
      return;
    }
    if (++num_used_files_ > kMaxUsedFiles) {
      if (num_used_files_ == kMaxUsedFiles + 1) reader.error(value.where, fmt::format("the spec uses more than {} files", kMaxUsedFiles));
      return;
    }
    if (!read_file_) {
      reader.error(value.where, fmt::format("use of '{}': no file can be read here", value.string));
      return;
    }
    const Result<std::string> text = read_file_(value.string);
    if (!text) {
      reader.error(value.where, fmt::format("use of '{}': {}", value.string, text.error().message));
      return;
    }
    const std::shared_ptr<const OpSpec> block =
        FileParser(value.string, read_file_, diagnostics_, std::move(path), num_used_files_).parse(*text);
    if (!block) return;
    if (!syntax.blocks.emplace(block->name, block).second)
      reader.error(value.where, fmt::format("'{}' brings a second op named {}", value.string, block->name));
  }

  const std::string& file_name_;
  const FileReader& read_file_;
  Diagnostics& diagnostics_;
  std::vector<std::string> users_;
  int& num_used_files_;
};

}  // namespace

std::shared_ptr<const OpSpec> parse_op_spec(std::string_view text, const std::string& file_name, const FileReader& read_file,
                                            Diagnostics& diagnostics) {
  int num_used_files = 0;
  const std::string main_file = std::filesystem::path(file_name).filename().string();
  return FileParser(file_name, read_file, diagnostics, {main_file}, num_used_files).parse(text);
}

}  // namespace kw::generator
