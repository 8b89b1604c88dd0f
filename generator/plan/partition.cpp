// See partition.h. Statements are numbered; a cut is the set of intermediates that are stored. A unit is a statement that some kernel must
// write: an output or a stored intermediate. SPDX-License-Identifier: Apache-2.0
#include "generator/plan/partition.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "generator/base/stable_sort.h"
#include "generator/plan/expr_tools.h"
#include "generator/plan/list_match.h"
#include "generator/plan/name_reductions.h"
#include "generator/spec/walk.h"

namespace kw::generator {
namespace {

using Kind = ExprNode::Kind;
using Positions = std::set<std::size_t>;  // of statements

constexpr std::size_t kMaxPartitions = 8;
constexpr std::size_t kMaxChoices = 3;      // of where to cut one statement
constexpr std::size_t kMaxCandidates = 12;  // looked at for it

class Partitioner {
 public:
  explicit Partitioner(const Program& program) : program_(program) {
    program_.statements = name_reductions(program);
    for (std::size_t at = 0; at < program_.statements.size(); ++at) {
      const Statement& statement = program_.statements[at];
      if (!statement.is_tensor) writer_of_[statement.target] = at;
    }
    reads_.resize(program_.statements.size());
    for (std::size_t at = 0; at < program_.statements.size(); ++at) {
      collect_reads(program_.statements[at].value, reads_[at]);
      for (const ExprRef& subscript : program_.statements[at].subscripts) collect_reads(subscript, reads_[at]);
      note_copy(at);
    }
  }

  Result<std::vector<Partition>> run(const CanMake& can_make) {
    KW_TRY_VOID(check_bounds(program_));
    can_make_ = &can_make;
    std::vector<std::size_t> outputs;
    for (std::size_t at = 0; at < program_.statements.size(); ++at) {
      if (program_.statements[at].is_tensor) outputs.push_back(at);
    }
    explore(outputs, {});
    std::vector<Partition> partitions;
    std::optional<Error> order_error;
    for (std::size_t i = 0; i < cuts_.size(); ++i) {
      const std::vector<Positions> groups = grouped_without_waste(cuts_[i]);
      store_what_is_made_twice(groups, cuts_[i]);
      Result<Partition> partition = partition_of(groups, cuts_[i]);
      if (!partition) {
        order_error = partition.error();
        continue;
      }
      const auto is_same = [&](const Partition& other) { return other.to_text() == partition->to_text(); };
      if (std::none_of(partitions.begin(), partitions.end(), is_same)) partitions.push_back(std::move(*partition));
    }
    if (partitions.empty()) return fail(order_error ? *order_error : *first_error_);
    kw::stable_sort(partitions, [](const Partition& a, const Partition& b) { return a.steps.size() < b.steps.size(); });
    return partitions;
  }

  Result<Partition> unfused() const {
    Positions stored;
    for (std::size_t at = 0; at < program_.statements.size(); ++at) {
      if (!program_.statements[at].is_tensor) stored.insert(at);
    }
    std::vector<Positions> groups;
    for (const std::size_t unit : units_in_order(stored)) groups.push_back({unit});
    return partition_of(groups, stored);
  }

 private:
  void collect_reads(const ExprRef& expr, Positions& reads) const {
    if (expr->kind == Kind::kRead) {
      const auto writer = writer_of_.find(expr->name);
      if (writer != writer_of_.end()) reads.insert(writer->second);
    }
    for (const ExprRef& operand : expr->operands) collect_reads(operand, reads);
  }

  DType stored_dtype(std::size_t at) const {
    const ExprRef& value = program_.statements[at].value;
    if (value->kind == Kind::kCast) return value->dtype;
    return is_float(value->dtype) ? program_.accumulate : value->dtype;
  }

  /// Notes an output that is a copy of an intermediate, bit for bit: later kernels read the output.
  void note_copy(std::size_t at) {
    const Statement& statement = program_.statements[at];
    if (!statement.is_tensor || statement.value->kind != Kind::kRead) return;
    const auto source = writer_of_.find(statement.value->name);
    const Tensor* tensor = program_.find_tensor(statement.target);
    if (source == writer_of_.end() || tensor->role != TensorRole::kOut || tensor->dtype != stored_dtype(source->second)) return;
    std::set<std::string> left, right;
    for (const ExprRef& subscript : statement.subscripts) {
      if (subscript->kind == Kind::kIndex) left.insert(subscript->name);
    }
    for (const ExprRef& subscript : statement.value->operands) {
      if (subscript->kind == Kind::kIndex) right.insert(subscript->name);
    }
    const bool is_whole = left == right && left.size() == statement.subscripts.size() && right.size() == statement.value->operands.size();
    if (is_whole) copy_of_.emplace(source->second, at);
  }

  /// The statement that writes what is stored of an intermediate.
  std::size_t unit_of(std::size_t stored) const {
    const auto copy = copy_of_.find(stored);
    return copy == copy_of_.end() ? stored : copy->second;
  }

  bool is_read_from_memory(std::size_t read, const Positions& units, const Positions& stored) const {
    return stored.count(read) != 0 && units.count(read) == 0 && units.count(unit_of(read)) == 0;
  }

  /// The statements that a kernel for `units` works out: these, and what they need and no kernel before has stored.
  Positions worked_out(const Positions& units, const Positions& stored) const {
    Positions result;
    std::vector<std::size_t> open(units.begin(), units.end());
    while (!open.empty()) {
      const std::size_t at = open.back();
      open.pop_back();
      if (!result.insert(at).second) continue;
      for (const std::size_t read : reads_[at]) {
        if (!is_read_from_memory(read, units, stored)) open.push_back(read);
      }
    }
    return result;
  }

  Tensor tensor_of(std::size_t at) const {
    const Statement& statement = program_.statements[at];
    Tensor tensor;
    tensor.name = statement.target;
    tensor.dtype = stored_dtype(at);
    tensor.role = TensorRole::kIn;
    for (const std::string& index : statement.indices) tensor.shape.push_back(find_program_index(program_, index)->extent);
    tensor.strides = row_major_strides(tensor.shape);
    tensor.align_bytes = kDefaultAlignBytes;
    return tensor;
  }

  /// The read of a stored value: of its tensor, or of the output that is a copy of it.
  ExprRef stored_read(const ExprRef& read, std::size_t at) const {
    const auto copy = copy_of_.find(at);
    if (copy == copy_of_.end()) return read;
    const Statement& writer = program_.statements[copy->second];
    std::vector<ExprRef> subscripts;
    for (const ExprRef& left : writer.subscripts) {
      for (std::size_t axis = 0; axis < writer.value->operands.size(); ++axis) {
        if (writer.value->operands[axis]->name == left->name) subscripts.push_back(read->operands[axis]);
      }
    }
    return make_read(writer.target, std::move(subscripts), read);
  }

  /// Of a value that is also stored; no name of the program.
  std::string value_name(const Statement& statement) const {
    std::string name = statement.target + "__value";
    const auto is_taken = [&] {
      return program_.find_tensor(name) != nullptr || program_.find_index(name) != nullptr || program_.find_scalar(name) != nullptr ||
             writer_of_.count(name) != 0;
    };
    while (is_taken()) name += "_";
    return name;
  }

  Program step_program(const Positions& units, const Positions& stored) const {
    Program step = program_;
    step.problems.clear();
    step.has_explicit_problems = false;
    step.statements.clear();
    step.tensors.clear();
    const Positions inside = worked_out(units, stored);
    Positions read_inside;
    for (const std::size_t at : inside) {
      for (const std::size_t read : reads_[at]) {
        if (inside.count(read) != 0) read_inside.insert(read);
      }
    }
    const auto renamed = [&](const ExprRef& expr) {
      return rewrite(expr, [&](const ExprRef& node) -> ExprRef {
        const auto writer = node->kind == Kind::kRead ? writer_of_.find(node->name) : writer_of_.end();
        if (writer == writer_of_.end()) return nullptr;
        const std::size_t at = writer->second;
        if (inside.count(at) == 0) return stored_read(node, at);
        return units.count(at) == 0 ? nullptr : make_read(value_name(program_.statements[at]), node->operands, node);
      });
    };
    for (const std::size_t at : inside) {
      Statement statement = program_.statements[at];
      statement.value = renamed(statement.value);
      for (ExprRef& subscript : statement.subscripts) subscript = renamed(subscript);
      const bool is_stored = !statement.is_tensor && units.count(at) != 0;
      if (is_stored && read_inside.count(at) != 0) {
        Statement value = statement;
        value.target = value_name(statement);
        statement.value = make_read(value.target, statement.subscripts, statement.value);
        step.statements.push_back(std::move(value));
      }
      statement.is_tensor = statement.is_tensor || is_stored;
      step.statements.push_back(std::move(statement));
    }
    add_tensors(step, units);
    drop_unused_indices(step);
    return step;
  }

  /// The tensors that the step reads or writes: the op's in its order, then intermediates.
  void add_tensors(Program& step, const Positions& units) const {
    std::set<std::string> read, written;
    for (const Statement& statement : step.statements) {
      collect_names(statement.value, read);
      for (const ExprRef& subscript : statement.subscripts) collect_names(subscript, read);
      collect_bounds(statement.indices, read);
      if (statement.is_tensor) written.insert(statement.target);
    }
    for (const Tensor& tensor : program_.tensors) {
      if (read.count(tensor.name) == 0 && written.count(tensor.name) == 0) continue;
      step.tensors.push_back(tensor);
      if (written.count(tensor.name) == 0) step.tensors.back().role = TensorRole::kIn;
    }
    for (const auto& [name, at] : writer_of_) {
      const bool is_written = units.count(at) != 0;
      const bool is_statement = std::any_of(step.statements.begin(), step.statements.end(),
                                            [&](const Statement& statement) { return statement.target == name && !statement.is_tensor; });
      if (!is_written && (is_statement || read.count(name) == 0)) continue;
      step.tensors.push_back(tensor_of(at));
      if (is_written) step.tensors.back().role = TensorRole::kOut;
    }
  }

  /// What the expression reads, and the bounds of the indices that it reduces.
  void collect_names(const ExprRef& expr, std::set<std::string>& names) const {
    if (expr->kind == Kind::kRead) names.insert(expr->name);
    if (expr->kind == Kind::kReduce) collect_bounds(expr->indices, names);
    for (const ExprRef& operand : expr->operands) collect_names(operand, names);
  }

  void collect_bounds(const std::vector<std::string>& indices, std::set<std::string>& names) const {
    for (const std::string& name : indices) {
      const Index* index = find_program_index(program_, name);
      if (index != nullptr && index->below) collect_names(index->below, names);
    }
  }

  void note(Error error) {
    if (!first_error_) first_error_ = std::move(error);
  }

  bool can(const Positions& units, const Positions& stored) {
    Positions boundary;  // what of `stored` the step meets
    const Positions inside = worked_out(units, stored);
    for (const std::size_t at : inside) {
      for (const std::size_t read : reads_[at]) {
        if (inside.count(read) == 0) boundary.insert(read);
      }
    }
    const auto [known, is_new] = makeable_.emplace(std::pair(units, boundary), false);
    if (is_new) {
      const Status status = (*can_make_)(step_program(units, stored));
      known->second = status.has_value();
      if (!status) note(status.error());
    }
    return known->second;
  }

  /// Finds cuts that make all open units makeable, one at a time; each branch adds one cut to cuts_.
  void explore(std::vector<std::size_t> open, const Positions& stored) {
    while (!open.empty() && can({open.back()}, stored)) open.pop_back();
    if (cuts_.size() >= kMaxPartitions) return;
    if (open.empty()) {
      if (std::find(cuts_.begin(), cuts_.end(), stored) == cuts_.end()) cuts_.push_back(stored);
      return;
    }
    const std::size_t unit = open.back();
    std::vector<std::size_t> candidates;  // the nearest first
    for (const std::size_t at : worked_out({unit}, stored)) {
      if (at != unit && unit_of(at) != unit) candidates.insert(candidates.begin(), at);
    }
    if (candidates.size() > kMaxCandidates) candidates.resize(kMaxCandidates);
    std::vector<std::size_t> choices;
    for (const std::size_t candidate : candidates) {
      Positions more = stored;
      more.insert(candidate);
      if (can({unit}, more)) choices.push_back(candidate);
      if (choices.size() == kMaxChoices) break;
    }
    if (choices.empty()) {
      // One cut is not enough: the nearest reduction goes first.
      const auto is_reduction = [&](std::size_t at) { return contains_reduction(program_.statements[at].value); };
      const auto nearest = std::find_if(candidates.begin(), candidates.end(), is_reduction);
      if (nearest != candidates.end()) choices.push_back(*nearest);
    }
    for (const std::size_t choice : choices) {
      Positions more = stored;
      more.insert(choice);
      std::vector<std::size_t> left = open;
      left.insert(left.begin(), unit_of(choice));
      explore(std::move(left), more);
    }
  }

  /// Whether a later kernel than that of `group` must make `unit`: it reads from memory what the group stores, or the other way round.
  bool reads_stored_of(const Positions& reader, const Positions& group, const Positions& stored) const {
    for (const std::size_t at : worked_out(reader, stored)) {
      for (const std::size_t read : reads_[at]) {
        if (stored.count(read) != 0 && (group.count(read) != 0 || group.count(unit_of(read)) != 0)) return true;
      }
    }
    return false;
  }

  /// Whether `group` reads the tensor that `unit` updates in place: the update comes no earlier.
  bool reads_old_value(const Positions& group, std::size_t unit, const Positions& stored) const {
    const Statement& update = program_.statements[unit];
    const Tensor* tensor = update.is_tensor ? program_.find_tensor(update.target) : nullptr;
    if (tensor == nullptr || tensor->role != TensorRole::kInOut) return false;
    const Positions inside = worked_out(group, stored);
    return std::any_of(inside.begin(), inside.end(), [&](std::size_t at) {
      std::set<std::string> names;
      collect_names(program_.statements[at].value, names);
      collect_bounds(program_.statements[at].indices, names);
      return names.count(update.target) != 0;
    });
  }

  /// Outputs and stored values by what they need: an output that copies a value stands where the value does.
  std::vector<std::size_t> units_in_order(const Positions& stored) const {
    std::set<std::size_t> units;
    for (std::size_t at = 0; at < program_.statements.size(); ++at) {
      if (program_.statements[at].is_tensor) units.insert(at);
    }
    for (const std::size_t at : stored) units.insert(unit_of(at));
    std::vector<std::size_t> order(units.begin(), units.end());
    std::map<std::size_t, std::size_t> key;
    for (const std::size_t at : order) key[at] = at;
    for (const auto& [source, copy] : copy_of_) key[copy] = std::min(key.count(copy) != 0 ? key[copy] : source, source);
    kw::stable_sort(order, [&](std::size_t a, std::size_t b) { return key[a] < key[b]; });
    // Who reads the old value of a tensor comes before its update, whatever the order of the statements. Two that read each other's are
    // left.
    std::size_t num_moves = order.size();
    for (std::size_t at = 0; at < order.size() && num_moves > 0;) {
      std::size_t last_reader = at;
      for (std::size_t later = at + 1; later < order.size(); ++later) {
        if (reads_old_value({order[later]}, order[at], stored)) last_reader = later;
      }
      if (last_reader == at) {
        ++at;
        continue;
      }
      std::rotate(order.begin() + static_cast<std::ptrdiff_t>(at), order.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                  order.begin() + static_cast<std::ptrdiff_t>(last_reader) + 1);
      --num_moves;
    }
    return order;
  }

  /// Units that share a kernel. Each goes into the first group that can take it behind those it reads from.
  std::vector<Positions> grouped(const Positions& stored) {
    std::vector<Positions> groups;
    for (const std::size_t unit : units_in_order(stored)) {
      std::size_t first = 0;  // group that may take the unit at the earliest
      for (std::size_t g = 0; g < groups.size(); ++g) {
        if (reads_stored_of({unit}, groups[g], stored) || reads_old_value(groups[g], unit, stored)) first = g;
      }
      bool is_placed = false;
      for (std::size_t g = first; g < groups.size() && !is_placed; ++g) {
        Positions merged = groups[g];
        merged.insert(unit);
        const bool is_free = std::none_of(groups.begin() + static_cast<std::ptrdiff_t>(g) + 1, groups.end(),
                                          [&](const Positions& later) { return reads_stored_of(merged, later, stored); });
        is_placed = is_free && can(merged, stored);
        if (is_placed) groups[g] = std::move(merged);
      }
      if (!is_placed) groups.push_back({unit});
    }
    return groups;
  }

  /// Groups, and the cut without values that no later kernel reads.
  std::vector<Positions> grouped_without_waste(Positions& stored) {
    while (true) {
      std::vector<Positions> groups = grouped(stored);
      Positions read;
      for (const Positions& group : groups) {
        for (const std::size_t at : worked_out(group, stored)) {
          for (const std::size_t value : reads_[at]) {
            if (is_read_from_memory(value, group, stored)) read.insert(value);
          }
        }
      }
      if (read == stored) return groups;
      stored = read;
    }
  }

  /// Adds the cut that also stores the reductions which several of these kernels would work out.
  void store_what_is_made_twice(const std::vector<Positions>& groups, const Positions& stored) {
    std::map<std::size_t, int> counts;
    for (const Positions& group : groups) {
      for (const std::size_t at : worked_out(group, stored)) ++counts[at];
    }
    Positions more = stored;
    std::vector<std::size_t> open;
    for (const auto& [at, count] : counts) {
      if (count < 2 || program_.statements[at].is_tensor || !contains_reduction(program_.statements[at].value)) continue;
      more.insert(at);
      open.push_back(unit_of(at));
    }
    if (more != stored) explore(std::move(open), more);
  }

  Result<Partition> partition_of(const std::vector<Positions>& groups, const Positions& stored) const {
    Partition partition;
    std::set<std::string> written;
    for (const Positions& group : groups) {
      Program step = step_program(group, stored);
      step.name = fmt::format("{}_{}", program_.name, partition.steps.size());
      std::set<std::string> read;
      for (const Statement& statement : step.statements) {
        collect_names(statement.value, read);
        collect_bounds(statement.indices, read);
      }
      for (const std::string& name : read) {
        const Tensor* tensor = program_.find_tensor(name);
        if (tensor != nullptr && tensor->role == TensorRole::kInOut && written.count(name) != 0)
          return fail(Stage::kPlan, Code::kNotSupported,
                      fmt::format("not made yet: {} is updated by one kernel of a plan and its old value is read by a later one", name));
      }
      for (const Statement& statement : step.statements) {
        if (statement.is_tensor) written.insert(statement.target);
      }
      for (const std::size_t at : group) {
        if (!program_.statements[at].is_tensor) partition.intermediates.push_back(tensor_of(at));
      }
      partition.steps.push_back(std::move(step));
    }
    return partition;
  }

  Program program_;
  std::map<std::string, std::size_t> writer_of_;  ///< intermediate -> its statement
  std::vector<Positions> reads_;                  ///< statement -> the intermediates it reads
  std::map<std::size_t, std::size_t> copy_of_;    ///< intermediate -> the output that is a copy of it
  const CanMake* can_make_ = nullptr;
  std::map<std::pair<Positions, Positions>, bool> makeable_;
  std::vector<Positions> cuts_;
  std::optional<Error> first_error_;
};

}  // namespace

std::string Partition::to_text() const {
  std::string text;
  for (const Program& step : steps) {
    std::vector<std::string> inputs, outputs;
    for (const Tensor& tensor : step.tensors) {
      if (tensor.role != TensorRole::kIn) outputs.push_back(tensor.name);
      const bool is_made = std::any_of(steps.begin(), steps.end(), [&](const Program& other) {
        const Tensor* made = other.find_tensor(tensor.name);
        return made != nullptr && made->role == TensorRole::kOut;
      });
      if (tensor.role == TensorRole::kIn && is_made) inputs.push_back(tensor.name);
    }
    text +=
        fmt::format("{}{}{}{}", text.empty() ? "" : "; ", fmt::join(inputs, ", "), inputs.empty() ? "" : " -> ", fmt::join(outputs, ", "));
  }
  return text;
}

Result<std::vector<Partition>> partitions_of(const Program& program, const CanMake& can_make) { return Partitioner(program).run(can_make); }

Result<Partition> unfused_partition(const Program& program) { return Partitioner(program).unfused(); }

}  // namespace kw::generator
