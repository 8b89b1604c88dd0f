// The evaluator against PyTorch: pytorch_reference.json holds 60 programs, written by hand and random, and elements of their outputs that
// pytorch/make_reference.py computed in float64. scripts/evaluator_against_pytorch.py writes other files; KW_PYTORCH_REFERENCE names one.
// Tolerance: 1e-11 (1 + |ref|), for other orders of summation in float64. An element at a discontinuity (a cast or a comparison of rounded
// values) may differ within the evaluator's own bound; such elements are counted, and few.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include <nlohmann/json.hpp>

#include "generator/spec/evaluator.h"
#include "generator/spec/op_spec.h"
#include "tests/catch.h"

using namespace kw;
using namespace kw::generator;
using nlohmann::json;

namespace {

constexpr double kTolerance = 1e-11;
constexpr double kMostUndecided = 0.005;  // of all elements
constexpr double kLaunchScalar = 0.75;    // every launch-time scalar, as in make_reference.py

/// SplitMix64, as in make_reference.py.
std::uint64_t mixed(std::uint64_t word) {
  word += 0x9e3779b97f4a7c15u;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
  return word ^ (word >> 31);
}

/// The inputs of make_reference.py: a function of the tensor's position in the spec and of the element's number, row-major.
class MixedInputs : public InputSource {
 public:
  MixedInputs(const Program& program, const Problem& problem) {
    for (std::size_t position = 0; position < program.tensors.size(); ++position) {
      const auto shape = resolve_shape(program.tensors[position], problem);
      REQUIRE(shape.has_value());
      inputs_[program.tensors[position].name] = {position, shape->extents};
    }
  }
  double element(const Tensor& tensor, std::span<const std::int64_t> coordinates) const override {
    const Input& input = inputs_.at(tensor.name);
    std::int64_t number = 0;
    for (std::size_t axis = 0; axis < input.extents.size(); ++axis) number = number * input.extents[axis] + coordinates[axis];
    const std::uint64_t word = mixed((static_cast<std::uint64_t>(input.position) << 40) + static_cast<std::uint64_t>(number)) >> 16;
    if (tensor.dtype == DType::kBool) return static_cast<double>(word % 2);
    if (!is_integer(tensor.dtype)) return (static_cast<double>(word % 256) - 128) / 64;
    const double low = tensor.properties.range_low.value_or(-8), high = tensor.properties.range_high.value_or(8);
    return low + static_cast<double>(word % static_cast<std::uint64_t>(high - low + 1));
  }
  double scalar(const Scalar&) const override { return kLaunchScalar; }

 private:
  struct Input {
    std::size_t position = 0;
    std::vector<std::int64_t> extents;
  };
  std::map<std::string, Input> inputs_;
};

double number_of(const json& value) {
  if (!value.is_string()) return value.get<double>();
  return value == "nan" ? std::nan("") : value == "inf" ? HUGE_VAL : -HUGE_VAL;
}

std::vector<std::int64_t> coordinates_of(const json& elements, const std::vector<std::int64_t>& extents) {
  std::vector<std::int64_t> flat;
  for (const json& element : elements) {
    auto rest = element.get<std::int64_t>();
    std::vector<std::int64_t> point(extents.size());
    for (std::size_t axis = extents.size(); axis-- > 0; rest /= extents[axis]) point[axis] = rest % extents[axis];
    flat.insert(flat.end(), point.begin(), point.end());
  }
  return flat;
}

bool agrees(double value, double expected) {
  if (std::isnan(expected)) return std::isnan(value);
  if (std::isinf(expected)) return value == expected;
  return std::abs(value - expected) <= kTolerance * (1 + std::abs(expected));
}

struct Counts {
  std::size_t num_elements = 0, num_undecided = 0;
};

void check_output(const Evaluator& evaluator, const std::string& name, const std::vector<std::int64_t>& extents, const json& output,
                  Counts& counts) {
  const json& expected = output.at("values");
  const auto result = evaluator.evaluate(name, coordinates_of(output.at("elements"), extents), 2);
  if (!result) FAIL(to_text(result.error()));
  REQUIRE(result->size() == expected.size());
  counts.num_elements += expected.size();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double by_pytorch = number_of(expected[i]);
    if (agrees((*result)[i].value, by_pytorch)) continue;
    ++counts.num_undecided;
    INFO(name << ", element " << output.at("elements")[i] << ": evaluator " << (*result)[i].value << " ± " << (*result)[i].bound
              << ", PyTorch " << by_pytorch);
    CHECK(is_within_bound(by_pytorch, (*result)[i]));
  }
}

void check_case(const json& test_case, Counts& counts) {
  INFO(test_case.at("name").get<std::string>());
  Diagnostics diagnostics;
  const FileReader no_files = [](const std::string& path) -> Result<std::string> { return fail(Stage::kSpec, Code::kIo, path); };
  const auto spec = parse_op_spec(test_case.at("spec").get<std::string>(), test_case.at("name").get<std::string>(), no_files, diagnostics);
  INFO(diagnostics.to_text());
  REQUIRE(spec != nullptr);
  const auto program = check_op_spec(*spec, {}, diagnostics);
  INFO(diagnostics.to_text());
  REQUIRE(program != nullptr);
  REQUIRE(program->problems.size() == 1);
  const MixedInputs inputs(*program, program->problems[0]);
  const auto evaluator = Evaluator::create(*program, program->problems[0], inputs);
  if (!evaluator) FAIL(to_text(evaluator.error()));
  for (const auto& [name, output] : test_case.at("outputs").items()) {
    const auto shape = resolve_shape(*program->find_tensor(name), program->problems[0]);
    check_output(*evaluator, name, shape->extents, output, counts);
  }
}

bool is_of_word(char letter) { return std::isalnum(static_cast<unsigned char>(letter)) || letter == '_'; }

/// Whether `name`, a spelling of the notation, stands in the text and is no part of a longer word.
bool has_name(const std::string& text, const std::string& name) {
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    const bool begins = at == 0 || !is_of_word(name.front()) || !is_of_word(text[at - 1]);
    const bool ends = end == text.size() || !is_of_word(name.back()) || !is_of_word(text[end]);
    if (begins && ends) return true;
  }
  return false;
}

json read_cases() {
  const char* other = std::getenv("KW_PYTORCH_REFERENCE");
  std::ifstream file(other != nullptr ? other : KW_EVALUATOR_TEST_DIR "/pytorch_reference.json");
  REQUIRE(file.good());
  return json::parse(file);
}

}  // namespace

TEST_CASE("the evaluator agrees with PyTorch on 60 programs") {
  const json cases = read_cases();
  CHECK(cases.size() >= 60);
  Counts counts;
  for (const json& test_case : cases) check_case(test_case, counts);
  std::cout << cases.size() << " programs, " << counts.num_elements << " elements compared with PyTorch, " << counts.num_undecided
            << " of them at a discontinuity\n";
  CHECK(static_cast<double>(counts.num_undecided) <= kMostUndecided * static_cast<double>(counts.num_elements));
}

TEST_CASE("the programs compared with PyTorch have every pointwise function and reduction") {
  std::string bodies;
  for (const json& test_case : read_cases()) bodies += test_case.at("spec").get<std::string>();
  for (int function = 0; function <= static_cast<int>(Function::kIsFinite); ++function) {
    INFO(to_text(static_cast<Function>(function)));
    CHECK(has_name(bodies, std::string(to_text(static_cast<Function>(function)))));
  }
  for (int op = 0; op <= static_cast<int>(ReduceOp::kCumSum); ++op) {
    INFO(to_text(static_cast<ReduceOp>(op)));
    CHECK(has_name(bodies, std::string(to_text(static_cast<ReduceOp>(op))) + "["));
  }
}
