// See plan_steps.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/session/plan_steps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "generator/spec/walk.h"
#include "tuner/session/trial_rows.h"

namespace kw::tuner {
namespace {

using generator::Partition;
using generator::Program;

/// Names of indices, dims and scalars that the statements and tensors of a program use.
class UsedNames {
 public:
  explicit UsedNames(const Program& program) : program_(program) {
    for (const generator::Statement& statement : program.statements) {
      names_.insert(statement.indices.begin(), statement.indices.end());
      add(statement.value);
      for (const generator::ExprRef& subscript : statement.subscripts) add(subscript);
    }
    for (const generator::Index& index : program.indices) {
      if (contains(index.name)) index.extent.collect_variables(names_);
    }
    for (const generator::Tensor& tensor : program.tensors) {
      for (const IntExpr& extent : tensor.shape) extent.collect_variables(names_);
      for (const IntExpr& stride : tensor.strides) stride.collect_variables(names_);
    }
  }
  bool contains(const std::string& name) const { return names_.count(name) != 0; }

 private:
  void add(const generator::ExprRef& expr) {
    generator::visit_nodes(expr, [this](const generator::ExprRef& node) {
      names_.insert(node->indices.begin(), node->indices.end());
      const bool is_new = names_.insert(node->name).second;
      const generator::Scalar* scalar = node->kind == generator::ExprNode::Kind::kScalar ? program_.find_scalar(node->name) : nullptr;
      if (is_new && scalar != nullptr && scalar->value) add(scalar->value);
      return true;
    });
  }

  const Program& program_;
  std::set<std::string> names_;
};

/// Takes out what a spec may not state: names that nothing uses.
void drop_unused(Program& program) {
  const UsedNames used(program);
  std::erase_if(program.indices, [&](const generator::Index& index) { return !used.contains(index.name); });
  std::erase_if(program.dims, [&](const generator::Dim& dim) { return !used.contains(dim.name); });
  std::erase_if(program.scalars, [&](const generator::Scalar& scalar) { return !used.contains(scalar.name); });
}

/// What of the whole problem the step has.
Problem problem_of_step(const Program& step, const Problem& problem) {
  Problem result;
  for (const generator::Dim& dim : step.dims) result.dims[dim.name] = problem.dims.at(dim.name);
  for (const auto& [name, stride] : problem.strides) {
    if (step.find_tensor(name.substr(0, name.find('.'))) != nullptr) result.strides[name] = stride;
  }
  for (const auto& [name, bytes] : problem.align_bytes) {
    if (step.find_tensor(name) != nullptr) result.align_bytes[name] = bytes;
  }
  return result;
}

std::string name_of_step(const Program& step, const std::string& whole_name) {
  std::vector<std::string> written;
  for (const generator::Tensor& tensor : step.tensors) {
    if (tensor.role != TensorRole::kIn) written.push_back(tensor.name);
  }
  return fmt::format("{}__{}", whole_name, fmt::join(written, "_"));
}

}  // namespace

Result<PlanStep> plan_step(const Program& step, const std::string& whole_name, const Problem& problem) {
  Program named = step;
  named.name = name_of_step(step, whole_name);
  drop_unused(named);
  LoadedSpec texts;
  texts.main_file = named.name + ".op.toml";
  texts.files = {{texts.main_file, generator::to_text(named)}};
  Diagnostics diagnostics;
  PlanStep result{load_spec_from_json(texts.files_json(), diagnostics), problem_of_step(named, problem)};
  if (result.spec == nullptr) return fail(diagnostics.errors().front());
  return result;
}

Result<std::vector<PlanStep>> plan_steps(const std::vector<Partition>& partitions, const std::string& whole_name, const Problem& problem) {
  std::vector<PlanStep> steps;
  for (const Partition& partition : partitions) {
    if (partition.steps.size() < 2) continue;
    for (const Program& program : partition.steps) {
      KW_TRY(PlanStep step, plan_step(program, whole_name, problem));
      const auto is_same = [&](const PlanStep& other) { return other.spec->identity == step.spec->identity; };
      if (std::none_of(steps.begin(), steps.end(), is_same)) steps.push_back(std::move(step));
    }
  }
  return steps;
}

Result<std::map<std::string, double>> measured_us(const PlanStep& step, Services& services) {
  std::map<std::string, double> times;
  if (!services.has_device() || !services.toolchain_row()) return times;  // rows are of a toolchain
  const Result<db::Database*> database = services.database(true);
  if (!database && database.error().code == Code::kNotFound) return times;
  if (!database) return fail(database.error());
  KW_TRY(db::TrialKey key, key_of_problem(*step.spec, step.problem, services));
  for (Protocol protocol : {Protocol::final_rung(), Protocol::early_rung()}) {
    for (const bool is_cold : {true, false}) {
      protocol.is_cold_l2 = is_cold;
      key.protocol = protocol_row(protocol);
      KW_TRY(const std::vector<db::TrialRecord> rows, (*database)->trials_of(key));
      for (const db::TrialRecord& row : rows) {
        if (row.trial.status != TrialStatus::kOk) continue;
        times.emplace(fmt::format("{}: {}", row.key.variant.template_name, row.key.variant.config), row.trial.median_us);
      }
      if (!times.empty()) return times;
    }
  }
  return times;
}

std::string key_of_config(const Config& config) { return fmt::format("{}: {}", config.template_name, config.to_text()); }

}  // namespace kw::tuner
