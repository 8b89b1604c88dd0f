// Texts of errors, and the collection of a file's mistakes.
// SPDX-License-Identifier: Apache-2.0
#include "generator/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <tuple>

#include "generator/base/stable_sort.h"

namespace kw {

std::string_view to_text(Stage stage) {
  switch (stage) {
    case Stage::kSpec:
      return "spec";
    case Stage::kPlan:
      return "plan";
    case Stage::kTemplate:
      return "template";
    case Stage::kSpace:
      return "space";
    case Stage::kEmit:
      return "emit";
    case Stage::kCompile:
      return "compile";
    case Stage::kVerify:
      return "verify";
    case Stage::kMeasure:
      return "measure";
    case Stage::kDatabase:
      return "database";
    case Stage::kDevice:
      return "device";
    case Stage::kCommandLine:
      return "command line";
  }
  return "unknown";
}

std::string_view to_text(Code code) {
  switch (code) {
    case Code::kBadInput:
      return "bad input";
    case Code::kNotSupported:
      return "not supported";
    case Code::kNotFound:
      return "not found";
    case Code::kDevice:
      return "device fault";
    case Code::kToolchain:
      return "toolchain fault";
    case Code::kIo:
      return "input/output fault";
    case Code::kInternal:
      return "internal fault";
  }
  return "unknown";
}

std::string to_text(const Error& error) {
  std::string text;
  if (!error.where.file.empty()) text += error.where.file + ":";
  if (error.where.line > 0) text += std::to_string(error.where.line) + ":";
  if (error.where.line > 0 && error.where.column > 0) text += std::to_string(error.where.column) + ":";
  if (!text.empty()) text += " ";
  return text + error.message;
}

int exit_code(Code code) {
  switch (code) {
    case Code::kNotFound:
      return 1;
    case Code::kBadInput:
    case Code::kNotSupported:
      return 2;
    case Code::kDevice:
    case Code::kToolchain:
    case Code::kIo:
    case Code::kInternal:
      return 3;
  }
  return 3;
}

std::string Diagnostics::to_text() const {
  std::vector<const Error*> sorted;
  sorted.reserve(errors_.size());
  for (const Error& error : errors_) sorted.push_back(&error);
  kw::stable_sort(sorted, [](const Error* a, const Error* b) {
    return std::tie(a->where.file, a->where.line, a->where.column) < std::tie(b->where.file, b->where.line, b->where.column);
  });
  std::vector<std::string> lines;
  for (const Error* error : sorted) {
    std::string line = kw::to_text(*error);
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
  }
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

namespace {

/// Levenshtein distance, one row at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
  if (name.size() > 64) return "";
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(1, name.size() / 3) + 1;
  for (const std::string& candidate : known) {
    if (candidate.size() > 64) continue;
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

void check_failed(const char* condition, const char* file, int line, const char* why) {
  fmt::print(stderr, "kernelwright: internal fault at {}:{}: {} ({})\n", file, line, why, condition);
  std::abort();
}

}  // namespace kw
