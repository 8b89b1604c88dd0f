// The evaluator against NumPy: numpy_reference.json holds small specs, inputs and NumPy's float64 outputs (numpy_reference.py makes it).
// Tolerance: 2e-13·(1 + |ref|) for the different orders of summation in float64 (K at most 1000); NaN and inf must agree exactly.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "generator/spec/evaluator.h"
#include "generator/spec/op_spec.h"
#include "tests/catch.h"

using namespace kw;
using namespace kw::generator;
using nlohmann::json;

namespace {

std::vector<double> numbers_of(const json& values) {
  std::vector<double> result;
  for (const json& value : values) {
    const bool is_text = value.is_string();
    result.push_back(!is_text ? value.get<double>() : value == "nan" ? std::nan("") : value == "inf" ? INFINITY : -INFINITY);
  }
  return result;
}

/// Row-major arrays by name; a list tensor's position is the first axis.
class ArraySource : public InputSource {
 public:
  ArraySource(const Program& program, const Problem& problem, const json& test_case)
      : scalars_(test_case.at("scalars").get<std::map<std::string, double>>()) {
    for (const auto& [name, values] : test_case.at("inputs").items()) {
      const Tensor* tensor = program.find_tensor(name);
      REQUIRE(tensor != nullptr);
      const auto shape = resolve_shape(*tensor, problem);
      REQUIRE(shape.has_value());
      std::vector<std::int64_t> extents = shape->extents;
      if (!tensor->list_dim.empty()) extents.insert(extents.begin(), shape->num_in_list);
      arrays_[name] = {extents, numbers_of(values)};
    }
  }
  double element(const Tensor& tensor, std::span<const std::int64_t> coordinates) const override {
    const Array& array = arrays_.at(tensor.name);
    std::int64_t offset = 0;
    for (size_t axis = 0; axis < array.extents.size(); ++axis) offset = offset * array.extents[axis] + coordinates[axis];
    return array.values.at(static_cast<size_t>(offset));
  }
  double scalar(const Scalar& scalar) const override { return scalars_.at(scalar.name); }

 private:
  struct Array {
    std::vector<std::int64_t> extents;
    std::vector<double> values;
  };
  std::map<std::string, Array> arrays_;
  std::map<std::string, double> scalars_;
};

std::vector<std::int64_t> all_coordinates(const std::vector<std::int64_t>& extents) {
  std::int64_t num_elements = 1;
  for (const std::int64_t extent : extents) num_elements *= extent;
  std::vector<std::int64_t> flat;
  for (std::int64_t element = 0; element < num_elements; ++element) {
    std::vector<std::int64_t> point(extents.size());
    std::int64_t rest = element;
    for (size_t axis = extents.size(); axis-- > 0;) {
      point[axis] = rest % extents[axis];
      rest /= extents[axis];
    }
    flat.insert(flat.end(), point.begin(), point.end());
  }
  return flat;
}

bool agrees(double value, double expected) {
  if (std::isnan(expected)) return std::isnan(value);
  if (std::isinf(expected)) return value == expected;
  return std::abs(value - expected) <= 2e-13 * (1 + std::abs(expected));
}

void check_case(const json& test_case) {
  Diagnostics diagnostics;
  const FileReader no_files = [](const std::string& path) -> Result<std::string> { return fail(Stage::kSpec, Code::kIo, path); };
  const auto spec = parse_op_spec(test_case.at("spec").get<std::string>(), test_case.at("name").get<std::string>(), no_files, diagnostics);
  INFO(diagnostics.to_text());
  REQUIRE(spec != nullptr);
  const auto program = check_op_spec(*spec, {}, diagnostics);
  INFO(diagnostics.to_text());
  REQUIRE(program != nullptr);
  REQUIRE(program->problems.size() == 1);
  const ArraySource inputs(*program, program->problems[0], test_case);
  const auto evaluator = Evaluator::create(*program, program->problems[0], inputs);
  if (!evaluator) FAIL(to_text(evaluator.error()));
  for (const auto& [name, values] : test_case.at("outputs").items()) {
    const auto shape = resolve_shape(*program->find_tensor(name), program->problems[0]);
    const std::vector<double> expected = numbers_of(values);
    const auto result = evaluator->evaluate(name, all_coordinates(shape->extents), 2);
    if (!result) FAIL(to_text(result.error()));
    REQUIRE(result->size() == expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      INFO("output " << name << " element " << i << ": evaluator " << (*result)[i].value << " ± " << (*result)[i].bound << ", NumPy "
                     << expected[i]);
      CHECK(agrees((*result)[i].value, expected[i]));
      CHECK((*result)[i].bound >= 0);
      CHECK((*result)[i].bound < INFINITY);
    }
  }
}

}  // namespace

TEST_CASE("the evaluator agrees with NumPy on every function, reduction and form of subscript") {
  std::ifstream file(KW_EVALUATOR_TEST_DIR "/numpy_reference.json");
  REQUIRE(file.good());
  const json cases = json::parse(file);
  CHECK(cases.size() >= 60);
  for (const json& test_case : cases) {
    DYNAMIC_SECTION(test_case.at("name").get<std::string>()) { check_case(test_case); }
  }
}
