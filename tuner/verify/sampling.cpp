// Sampled coordinates and their reference values; see sampling.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/verify/sampling.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "generator/spec/evaluator.h"
#include "generator/spec/walk.h"
#include "tuner/verify/random_input.h"

namespace kw::tuner {
namespace {

constexpr std::int64_t kTileExtents[] = {256, 128, 64, 32, 16};
constexpr double kMaxWholeRowWork = 3e9;  // multiplications for whole rows of intermediates: a second or two on 16 cores
constexpr std::int64_t kMinRows = 8;      // ends, and both sides of a tile edge

/// A stream of positions, equal for equal seeds.
class Positions {
 public:
  explicit Positions(std::uint64_t seed) { fill_.kind = InputFill::Kind::kInteger, fill_.dtype = DType::kI64, fill_.seed = seed; }
  std::int64_t below(std::int64_t extent) {
    fill_.high = static_cast<double>(extent);
    return std::min(static_cast<std::int64_t>(input_element(fill_, next_++)), extent - 1);
  }

 private:
  InputFill fill_;
  std::int64_t next_ = 0;
};

/// Up to `count` positions of [0, extent): ends, both sides of the first, a middle and the last tile edge of each size, then random ones.
std::vector<std::int64_t> interesting_positions(std::int64_t extent, std::int64_t count, Positions& random) {
  std::set<std::int64_t> chosen;
  const auto take = [&](std::int64_t position) {
    if (position >= 0 && position < extent && static_cast<std::int64_t>(chosen.size()) < count) chosen.insert(position);
  };
  if (extent <= count) {
    for (std::int64_t position = 0; position < extent; ++position) take(position);
    return {chosen.begin(), chosen.end()};
  }
  for (const std::int64_t position : {std::int64_t{0}, extent - 1, std::int64_t{1}, extent - 2}) take(position);
  for (const std::int64_t tile : kTileExtents) {
    const std::int64_t last = (extent - 1) / tile * tile;
    const std::int64_t middle = last > tile ? (1 + random.below(last / tile)) * tile : tile;
    for (const std::int64_t edge : {tile, last, middle}) {
      // Leave a third for random positions, which meet every lane and every stage.
      if (static_cast<std::int64_t>(chosen.size()) * 3 >= count * 2) break;
      take(edge - 1);
      take(edge);
    }
  }
  while (static_cast<std::int64_t>(chosen.size()) < count) take(random.below(extent));
  return {chosen.begin(), chosen.end()};
}

double product_of(const std::vector<std::int64_t>& extents) {
  double product = 1;
  for (const std::int64_t extent : extents) product *= static_cast<double>(extent);
  return product;
}

using Coordinates = std::vector<std::int64_t>;

/// Rows: positions of the axis before the last, each with leading coordinates that are 0, last or random.
std::vector<Coordinates> sample_rows(const std::vector<std::int64_t>& extents, std::int64_t count, Positions& random) {
  std::vector<std::int64_t> leading(extents.begin(), extents.end() - 1);
  if (leading.empty()) return {{}};
  std::set<Coordinates> rows;
  if (product_of(leading) <= static_cast<double>(count)) {
    Coordinates row(leading.size(), 0);
    while (true) {
      rows.insert(row);
      size_t axis = row.size();
      while (axis > 0 && ++row[axis - 1] == leading[axis - 1]) row[--axis] = 0;
      if (axis == 0) break;
    }
    return {rows.begin(), rows.end()};
  }
  const std::vector<std::int64_t> inner = interesting_positions(leading.back(), count, random);
  Coordinates first(leading.size(), 0), last = leading;
  for (std::int64_t& coordinate : last) --coordinate;
  rows.insert(first);
  rows.insert(last);
  for (int pick = 0; static_cast<std::int64_t>(rows.size()) < count; ++pick) {
    Coordinates row(leading.size());
    row.back() = inner[static_cast<size_t>(pick) % inner.size()];
    for (size_t axis = 0; axis + 1 < leading.size(); ++axis) {
      const std::int64_t choice = random.below(4);
      row[axis] = choice == 0 ? 0 : choice == 1 ? leading[axis] - 1 : random.below(leading[axis]);
    }
    rows.insert(row);
  }
  return {rows.begin(), rows.end()};
}

}  // namespace

std::vector<std::int64_t> sample_coordinates(const std::vector<std::int64_t>& extents, std::int64_t max_samples, std::uint64_t seed,
                                             std::int64_t max_rows) {
  const double num_elements = product_of(extents);
  if (num_elements == 0 || extents.empty() || max_samples <= 0) return {};
  std::set<Coordinates> chosen;
  Positions random(seed * 0x5851f42d4c957f2du + 0x14057b7ef767814fu);
  if (num_elements <= static_cast<double>(max_samples)) {
    for (const Coordinates& row : sample_rows(extents, max_samples, random)) {
      Coordinates point = row;
      point.push_back(0);
      for (point.back() = 0; point.back() < extents.back(); ++point.back()) chosen.insert(point);
    }
  } else {
    const std::int64_t num_in_grid = max_samples - max_samples / 8;
    const double num_possible_rows = num_elements / static_cast<double>(extents.back());
    const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(num_in_grid)));
    // A short side gives its share to the other one.
    const double rows_at_most = std::min(num_possible_rows, static_cast<double>(max_rows));
    const std::int64_t num_columns =
        std::min(extents.back(), rows_at_most < static_cast<double>(side) ? num_in_grid / static_cast<std::int64_t>(rows_at_most)
                                                                          : std::max<std::int64_t>(side, 1));
    const std::int64_t num_rows = std::min(max_rows, std::max<std::int64_t>(num_in_grid / std::max<std::int64_t>(num_columns, 1), 1));
    const std::vector<Coordinates> rows = sample_rows(extents, num_rows, random);
    const std::vector<std::int64_t> columns = interesting_positions(extents.back(), num_columns, random);
    for (const Coordinates& row : rows) {
      for (const std::int64_t column : columns) {
        Coordinates point = row;
        point.push_back(column);
        chosen.insert(std::move(point));
      }
    }
    const bool is_anywhere = static_cast<double>(max_rows) >= std::min(num_possible_rows, static_cast<double>(max_samples));
    const double num_reachable = is_anywhere ? num_elements : static_cast<double>(rows.size()) * static_cast<double>(extents.back());
    while (static_cast<double>(chosen.size()) < std::min(static_cast<double>(max_samples), num_reachable)) {
      Coordinates point;
      if (is_anywhere) {
        for (const std::int64_t extent : extents) point.push_back(random.below(extent));
      } else {
        point = rows[static_cast<size_t>(random.below(static_cast<std::int64_t>(rows.size())))];
        point.push_back(random.below(extents.back()));
      }
      chosen.insert(std::move(point));
    }
  }
  std::vector<std::int64_t> flat;
  flat.reserve(chosen.size() * extents.size());
  for (const Coordinates& point : chosen) flat.insert(flat.end(), point.begin(), point.end());
  return flat;
}

double whole_row_work(const generator::Program& program, const Problem& problem) {
  using Kind = generator::ExprNode::Kind;
  std::map<std::string, const generator::Statement*> writers;
  for (const generator::Statement& statement : program.statements) writers[statement.target] = &statement;
  std::set<std::string> whole;  // statements that a reduction reads, and what those read
  const auto note = [&](const generator::ExprRef& expr, const auto& self) -> void {
    generator::visit_nodes(expr, [&](const generator::ExprRef& node) {
      const auto writer = node->kind == Kind::kRead ? writers.find(node->name) : writers.end();
      if (writer != writers.end() && whole.insert(node->name).second) self(writer->second->value, self);
      return true;
    });
  };
  const auto each_reduction = [](const generator::ExprRef& expr, const auto& use) {
    generator::visit_nodes(expr, [&](const generator::ExprRef& node) {
      if (node->kind == Kind::kReduce) use(node);
      return true;
    });
  };
  for (const generator::Statement& statement : program.statements)
    each_reduction(statement.value, [&](const generator::ExprRef& node) { note(node->operands[0], note); });
  double work = 0;
  const auto extents = [&](const std::vector<std::string>& indices) {
    double product = 1;
    for (const std::string& name : indices) {
      const generator::Index* index = program.find_index(name);
      if (index != nullptr) product *= static_cast<double>(index->extent.evaluate(problem.dims).value_or(1));
    }
    return product;
  };
  for (const std::string& name : whole) {
    const generator::Statement& statement = *writers.at(name);
    each_reduction(statement.value, [&](const generator::ExprRef& node) { work += extents(statement.indices) * extents(node->indices); });
  }
  return work;
}

Result<std::vector<OutputSamples>> reference_samples(const generator::Program& program, const Problem& problem,
                                                     const std::vector<InputFill>& fills, const std::map<std::string, double>& scalars,
                                                     std::int64_t max_samples, std::uint64_t seed, int num_threads) {
  KW_TRY_VOID(check_input_fills(program, problem));
  KW_TRY(const RandomInputSource inputs, RandomInputSource::create(program, problem, fills, scalars));
  KW_TRY(const generator::Evaluator evaluator, generator::Evaluator::create(program, problem, inputs));
  std::vector<OutputSamples> all;
  for (const generator::Tensor& tensor : program.tensors) {
    if (tensor.role == TensorRole::kIn) continue;
    KW_TRY(const generator::TensorShape shape, generator::resolve_shape(tensor, problem));
    std::vector<std::int64_t> extents = shape.extents;
    const size_t skipped = tensor.list_dim.empty() ? 0 : 1;
    if (skipped == 1) extents.insert(extents.begin(), shape.num_in_list);
    OutputSamples samples;
    samples.tensor = tensor.name;
    samples.dtype = tensor.dtype;
    samples.rank = static_cast<int>(extents.size());
    const double num_rows = extents.empty() ? 1 : product_of(extents) / static_cast<double>(std::max<std::int64_t>(extents.back(), 1));
    const double work_per_row = whole_row_work(program, problem) / std::max(num_rows, 1.0);
    const auto max_rows = work_per_row * num_rows <= kMaxWholeRowWork
                              ? std::numeric_limits<std::int64_t>::max()
                              : std::max(kMinRows, static_cast<std::int64_t>(kMaxWholeRowWork / work_per_row));
    samples.coordinates = sample_coordinates(extents, max_samples, seed, max_rows);
    if (extents.empty() || !samples.coordinates.empty()) {
      KW_TRY(const std::vector<generator::ReferenceValue> values, evaluator.evaluate(tensor.name, samples.coordinates, num_threads));
      for (size_t i = 0; i < values.size(); ++i) {
        samples.values.push_back(values[i].value);
        samples.bounds.push_back(values[i].bound);
        std::int64_t offset = skipped == 1 ? samples.coordinates[i * extents.size()] * shape.span() : 0;
        for (size_t axis = 0; axis < shape.strides.size(); ++axis)
          offset += samples.coordinates[i * extents.size() + axis + skipped] * shape.strides[axis];
        samples.offsets.push_back(offset);
      }
    }
    all.push_back(std::move(samples));
  }
  return all;
}

}  // namespace kw::tuner
