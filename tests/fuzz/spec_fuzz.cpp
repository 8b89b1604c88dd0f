// libFuzzer entry: any bytes as an op spec. The parser and the checker must end without a crash, a hang or a sanitizer report. What they
// accept must print as a spec of the same canonical text, its own problems must be legal, and at tiny dims its work is counted and the
// first and last element of each output are evaluated. The bytes are also looked at as a file of user functions.
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "generator/rewrite/user_text.h"
#include "generator/spec/evaluator.h"
#include "generator/spec/op_spec.h"

namespace {

using namespace kw;
using namespace kw::generator;

constexpr std::size_t kMaxProblems = 8;     // of the spec's own, checked again
constexpr double kMaxPoints = 20'000;       // index points of a program that is evaluated
constexpr double kMaxElements = 1'000'000;  // of one tensor: keeps the coordinates small

/// Ends the run with the rule that is broken; libFuzzer keeps the input.
void require(bool holds, const char* rule, const std::string& value = "") {
  if (holds) return;
  std::fprintf(stderr, "spec_fuzz: broken rule: %s\n%s\n", rule, value.c_str());
  std::abort();
}

std::shared_ptr<const Program> check(std::string_view text) {
  kw::Diagnostics diagnostics;
  const FileReader read_file = [&](const std::string&) -> kw::Result<std::string> {
    return kw::fail(kw::Stage::kSpec, kw::Code::kIo, "no files here");
  };
  const auto spec = parse_op_spec(text, "fuzz.op.toml", read_file, diagnostics);
  std::shared_ptr<const Program> program = spec ? check_op_spec(*spec, {}, diagnostics) : nullptr;
  require((program == nullptr) == diagnostics.has_errors(), "a refusal has a reason, and only a refusal", diagnostics.to_text());
  require(program || !diagnostics.to_text().empty(), "a refusal has a text");
  return program;
}

/// The same bytes as a file of user functions: looked at as clang's input would be, not parsed.
void scan_user_text(std::string_view text) {
  const kw::Diagnostics diagnostics = check_user_text(text, "fuzz.cuh");
  require(diagnostics.has_errors() || text.size() <= kMaxUserBytes, "what clang sees is small");
  for (const kw::Error& error : diagnostics.errors()) require(!error.message.empty(), "a refusal has a text");
}

/// Small values that follow from the coordinates alone; among the reals now and then a NaN or an infinity.
class MixedInput final : public InputSource {
 public:
  double element(const Tensor& tensor, std::span<const std::int64_t> coordinates) const override {
    std::uint64_t hash = 0x9e3779b97f4a7c15ULL + tensor.name.size();
    for (const std::int64_t coordinate : coordinates) hash = (hash ^ static_cast<std::uint64_t>(coordinate)) * 0x100000001b3ULL;
    hash ^= hash >> 29;
    if (tensor.dtype == kw::DType::kBool) return static_cast<double>(hash % 2);
    if (!kw::is_float(tensor.dtype)) return static_cast<double>(hash % 3);
    if (hash % 61 == 0) return std::numeric_limits<double>::quiet_NaN();
    if (hash % 67 == 0 && tensor.dtype != kw::DType::kE4M3) return std::numeric_limits<double>::infinity();
    return (static_cast<double>(hash % 17) - 8) / 4;
  }
  double scalar(const Scalar&) const override { return 0.5; }
};

/// Index points of all statements together, were none shared.
double num_points(const Program& program, const Problem& problem) {
  double points = 1;
  for (const Index& index : program.indices) {
    const auto extent = index.extent.evaluate(problem.dims);
    points *= extent && *extent > 1 ? static_cast<double>(*extent) : 1;
  }
  return points * static_cast<double>(program.statements.size());
}

void evaluate_corners(const Program& program, const Problem& problem) {
  const MixedInput inputs;
  const auto evaluator = Evaluator::create(program, problem, inputs);
  if (!evaluator) return;
  for (const Tensor& tensor : program.tensors) {
    if (tensor.role == TensorRole::kIn) continue;
    const auto shape = resolve_shape(tensor, problem);
    if (!shape || shape->num_elements() < 1 || shape->num_in_list < 1) continue;
    std::vector<std::int64_t> coordinates;
    for (const bool is_last : {false, true}) {
      if (!tensor.list_dim.empty()) coordinates.push_back(is_last ? shape->num_in_list - 1 : 0);
      for (const std::int64_t extent : shape->extents) coordinates.push_back(is_last ? extent - 1 : 0);
    }
    const auto values = evaluator->evaluate(tensor.name, coordinates);
    if (!values) continue;
    require(values->size() == (coordinates.empty() ? 1u : 2u), "as many values as elements asked for: a single value has no coordinates");
    for (const ReferenceValue& value : *values) {
      const std::string text =
          to_text(program) + "\n" + tensor.name + " = " + std::to_string(value.value) + " +- " + std::to_string(value.bound);
      require(!(value.bound < 0), "a bound is not negative", text);
      require(is_within_bound(value.value, value), "the reference passes its own check", text);
    }
  }
}

/// Every dim at a size of 1 to 3, and at the same size: whatever of it the program allows.
void run_tiny_problems(const Program& program) {
  for (const bool is_equal : {false, true}) {
    Problem problem;
    std::int64_t number = 0;
    for (const Dim& dim : program.dims) problem.dims[dim.name] = is_equal ? 4 : 1 + number++ % 3;
    kw::Diagnostics diagnostics;
    check_problem(program, problem, diagnostics);
    if (diagnostics.has_errors()) continue;
    bool is_small = num_points(program, problem) <= kMaxPoints;
    for (const Tensor& tensor : program.tensors) {
      const auto shape = resolve_shape(tensor, problem);
      is_small = is_small && shape && static_cast<double>(shape->num_elements()) * static_cast<double>(shape->num_in_list) <= kMaxElements;
    }
    const auto work = count_work(program, problem, 50 << 20);
    if (work) require(work->flops >= 0 && work->min_bytes >= 0, "work is not negative", to_text(program));
    if (is_small) evaluate_corners(program, problem);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  scan_user_text(text);
  const auto program = check(text);
  if (!program) return 0;
  const auto again = check(to_text(*program));
  require(again && canonical_text(*again) == canonical_text(*program), "a program prints as a spec of the same identity",
          to_text(*program));
  for (std::size_t i = 0; i < program->problems.size() && i < kMaxProblems; ++i) {
    kw::Diagnostics diagnostics;
    check_problem(*program, program->problems[i], diagnostics);
    require(!diagnostics.has_errors(), "a program's own problems are legal", to_text(*program) + diagnostics.to_text());
  }
  run_tiny_problems(*program);
  return 0;
}
