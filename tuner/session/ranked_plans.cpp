// See ranked_plans.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/session/ranked_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "generator/base/stable_sort.h"
#include "tuner/session/plan_steps.h"
#include "tuner/session/roofline.h"

namespace kw::tuner {
namespace {

using generator::Overlap;
using generator::Partition;
using generator::RankedConfig;
using generator::VariantFactory;

constexpr std::size_t kMaxExchanged = 12;  // kernels tried in place of the best one of a step
constexpr std::size_t kMaxMeasured = 3;    // the same where they were timed
constexpr double kMeasuredBand = 1.1;      // and of these only such as are so near the fastest
constexpr double kPlanBand = 1.25;         // a cut whose kernels took so much longer than another's is not tried
constexpr double kGapUs = 1.0;             // between two kernels of a graph, about

/// A kernel for one step: which of the step's factories, and its config.
struct StepChoice {
  std::size_t factory = 0;
  RankedConfig ranked;
};

struct RankedStep {
  std::vector<VariantFactory> factories;
  std::vector<StepChoice> choices;  ///< the best first, then the best of each other kind
  std::uint64_t num_points = 0;     ///< configs of all its spaces
  std::size_t num_tried = 0;        ///< of the choices; what is behind them only completes plans for all extents
  std::optional<std::size_t> free;  ///< the best choice that takes all extents
  bool is_measured = false;         ///< the choices were timed, each kernel by itself; else they are the model's
};

bool takes_all_extents(const RankedStep& step, const StepChoice& choice) {
  return !step.factories[choice.factory].is_for_one_extent(choice.ranked.config);
}

/// Notes the best choice that takes all extents; where there is none, the model's best of `all` is one more.
void choose_free(const std::vector<StepChoice>& all, RankedStep& step) {
  step.num_tried = step.choices.size();
  const auto is_free = [&](const StepChoice& choice) { return takes_all_extents(step, choice); };
  const auto chosen = std::find_if(step.choices.begin(), step.choices.end(), is_free);
  const auto other = chosen == step.choices.end() ? std::find_if(all.begin(), all.end(), is_free) : all.end();
  if (chosen != step.choices.end()) step.free = static_cast<std::size_t>(chosen - step.choices.begin());
  if (other == all.end()) return;
  step.free = step.choices.size();
  step.choices.push_back(*other);
}

/// The timed ones, fastest first, their times in place of the model's.
void choose_measured(const std::vector<StepChoice>& all, const std::map<std::string, double>& times, RankedStep& step) {
  for (const StepChoice& choice : all) {
    const auto found = times.find(key_of_config(choice.ranked.config));
    if (found == times.end()) continue;
    step.choices.push_back(choice);
    step.choices.back().ranked.prediction.time_us = found->second;
  }
  const auto is_faster = [](const StepChoice& a, const StepChoice& b) { return a.ranked.prediction.time_us < b.ranked.prediction.time_us; };
  kw::stable_sort(step.choices, is_faster);
  const auto is_far = [&](const StepChoice& choice) {
    return choice.ranked.prediction.time_us > kMeasuredBand * step.choices.front().ranked.prediction.time_us;
  };
  const auto first_far = std::find_if(step.choices.begin(), step.choices.end(), is_far);
  step.choices.erase(first_far, step.choices.end());
  if (step.choices.size() > kMaxMeasured) step.choices.erase(step.choices.begin() + kMaxMeasured, step.choices.end());
  step.is_measured = !step.choices.empty();
}

/// The step's kernels: those timed on this device, else by the model; of configs that differ only in what it does not see, the first.
Result<RankedStep> rank_step(const generator::Program& program, const std::string& whole_name, const generator::TemplateLibrary& templates,
                             const Problem& problem, Services& services) {
  RankedStep step;
  std::vector<std::string> refusals;
  step.factories = generator::factories_for(templates, program, services.arch(), refusals);
  std::vector<StepChoice> all;
  for (std::size_t i = 0; i < step.factories.size(); ++i) {
    KW_TRY(const generator::SpaceContext context, step.factories[i].space_context(problem, services.limits()));
    KW_TRY(const generator::ConfigSpace space, generator::ConfigSpace::enumerate(context));
    step.num_points += space.num_points();
    for (RankedConfig& ranked : generator::rank(space, context)) all.push_back({i, std::move(ranked)});
  }
  if (all.empty()) {
    std::string reasons;
    for (const std::string& line : refusals) reasons += "\n  " + line;
    return fail(Stage::kPlan, Code::kNotSupported,
                fmt::format("{}: no template makes this step on {}:{}", program.name, to_text(services.arch()), reasons));
  }
  kw::stable_sort(all, [](const StepChoice& a, const StepChoice& b) { return is_ranked_before(a.ranked, b.ranked); });
  if (services.has_device()) {
    KW_TRY(const PlanStep alone, plan_step(program, whole_name, problem));
    KW_TRY(const auto times, measured_us(alone, services));
    choose_measured(all, times, step);
    if (step.is_measured) {
      choose_free(all, step);
      return step;
    }
  }
  std::set<std::tuple<std::size_t, double, double>> kinds;
  for (const StepChoice& choice : all) {
    const generator::Prediction& prediction = choice.ranked.prediction;
    if (!kinds.emplace(choice.factory, prediction.math_us, prediction.smem_us).second) continue;
    step.choices.push_back(choice);
    if (step.choices.size() > kMaxExchanged) break;
  }
  choose_free(all, step);
  return step;
}

generator::Prediction sum_of(const std::vector<const StepChoice*>& chosen) {
  generator::Prediction sum;
  for (const StepChoice* choice : chosen) {
    const generator::Prediction& one = choice->ranked.prediction;
    sum.time_us += one.time_us;
    sum.math_us += one.math_us;
    sum.dram_us += one.dram_us;
    sum.l2_us += one.l2_us;
    sum.smem_us += one.smem_us;
    sum.overhead_us += one.overhead_us;
    sum.num_waves += one.num_waves;
    sum.ctas_per_sm = std::max(sum.ctas_per_sm, one.ctas_per_sm);
  }
  const double gaps_us = kGapUs * static_cast<double>(chosen.size() - 1);
  sum.time_us += gaps_us;
  sum.overhead_us += gaps_us;
  return sum;
}

struct RankedCut {
  std::size_t cut = 0;
  std::vector<RankedStep> steps;

  bool is_measured() const {
    return std::all_of(steps.begin(), steps.end(), [](const RankedStep& step) { return step.is_measured; });
  }
  double best_us() const {
    double sum = kGapUs * static_cast<double>(steps.size() - 1);
    for (const RankedStep& step : steps) sum += step.choices.front().ranked.prediction.time_us;
    return sum;
  }
};

/// Where the kernels of a cut were timed, the model's hopes for others count no more; of timed cuts the near ones stay.
void drop_slower(std::vector<RankedCut>& cuts) {
  std::optional<double> best_us;
  for (const RankedCut& one : cuts) {
    if (one.is_measured()) best_us = std::min(best_us.value_or(one.best_us()), one.best_us());
  }
  if (best_us) std::erase_if(cuts, [&](const RankedCut& one) { return !one.is_measured() || one.best_us() > kPlanBand * *best_us; });
}

/// Adds combinations of the steps' kernels; a factory for each combination of templates.
class Combiner {
 public:
  Combiner(const LoadedSpec& spec, const Partition& partition, std::size_t cut, const std::vector<RankedStep>& steps, Arch arch,
           RankedProblem& ranked)
      : spec_(spec), partition_(partition), cut_(cut), steps_(steps), arch_(arch), ranked_(ranked) {}

  Status run() {
    std::vector<std::size_t> best(steps_.size(), 0);
    KW_TRY_VOID(add(best));
    KW_TRY_VOID(add_without_overlap(best));
    for (std::size_t step = 0; step < steps_.size(); ++step) {
      for (std::size_t choice = 1; choice < steps_[step].num_tried; ++choice) {
        std::vector<std::size_t> exchanged = best;
        exchanged[step] = choice;
        KW_TRY_VOID(add(exchanged));
      }
    }
    // One for all extents, if the others are for these: after them, for its time is the model's.
    std::vector<std::size_t> free;
    std::size_t num_moved = 0;
    for (const RankedStep& step : steps_) {
      if (!step.free) return {};
      free.push_back(*step.free);
      num_moved += takes_all_extents(step, step.choices.front()) ? 0 : 1;
    }
    return num_moved > 0 ? add(free, true) : Status();
  }

 private:
  /// The plan of these choices, its kernels overlapping where they can.
  Status add(const std::vector<std::size_t>& positions, bool is_last = false) {
    KW_TRY(const std::size_t factory, factory_of(positions));
    push(positions, factory, ranked_.factories[factory].can_overlap() ? Overlap::kDependent : Overlap::kNone, is_last);
    return {};
  }

  /// The same plan with each kernel after the other, if add() made them overlap. The model takes both for the same: what overlapping is
  /// worth is measured.
  Status add_without_overlap(const std::vector<std::size_t>& positions) {
    KW_TRY(const std::size_t factory, factory_of(positions));
    if (ranked_.factories[factory].can_overlap()) push(positions, factory, Overlap::kNone, false);
    return {};
  }

  Result<std::size_t> factory_of(const std::vector<std::size_t>& positions) {
    std::vector<std::size_t> templates;
    for (std::size_t step = 0; step < steps_.size(); ++step) templates.push_back(steps_[step].choices[positions[step]].factory);
    if (const auto known = factories_.find(templates); known != factories_.end()) return known->second;
    std::vector<VariantFactory> of_steps;
    for (std::size_t step = 0; step < steps_.size(); ++step) of_steps.push_back(steps_[step].factories[templates[step]]);
    KW_TRY(VariantFactory joined, VariantFactory::create_plan(*spec_.program, partition_, cut_, std::move(of_steps), arch_));
    const std::size_t position = ranked_.factories.size();
    ranked_.factories.push_back(std::move(joined));
    factories_[templates] = position;
    return position;
  }

  void push(const std::vector<std::size_t>& positions, std::size_t factory, Overlap overlap, bool is_last) {
    std::vector<const StepChoice*> chosen;
    std::vector<Config> configs;
    for (std::size_t step = 0; step < steps_.size(); ++step) {
      chosen.push_back(&steps_[step].choices[positions[step]]);
      configs.push_back(chosen.back()->ranked.config);
    }
    ranked_.ranked.push_back({factory, {ranked_.factories[factory].joined(configs, overlap), sum_of(chosen), is_last}});
  }

  const LoadedSpec& spec_;
  const Partition& partition_;
  std::size_t cut_;
  const std::vector<RankedStep>& steps_;
  Arch arch_;
  RankedProblem& ranked_;
  std::map<std::vector<std::size_t>, std::size_t> factories_;
};

Result<double> bytes_of(const generator::Tensor& tensor, const Problem& problem) {
  double bytes = size_bytes(tensor.dtype);
  for (const IntExpr& extent : tensor.shape) {
    KW_TRY(const std::int64_t value, extent.evaluate(problem.dims));
    bytes *= static_cast<double>(value);
  }
  return bytes;
}

/// What the L2 keeps from DRAM between the kernels of a cut.
class KeptInL2 {
 public:
  static Result<KeptInL2> create(const Partition& partition, const Problem& problem, std::int64_t l2_bytes) {
    KeptInL2 kept;
    kept.l2_bytes_ = static_cast<double>(l2_bytes);
    for (const generator::Tensor& tensor : partition.intermediates) kept.in_workspace_.insert(tensor.name);
    for (const generator::Program& step : partition.steps) {
      for (const generator::Tensor& tensor : step.tensors) {
        KW_TRY(const double bytes, bytes_of(tensor, problem));
        if (kept.bytes_.emplace(tensor.name, bytes).second) kept.footprint_bytes_ += bytes;
        if (tensor.role != TensorRole::kIn) kept.written_.insert(tensor.name);
      }
    }
    return kept;
  }

  /// Bytes of a tensor of a step that do not come from DRAM: it was written by an earlier kernel, and fits.
  double not_read(const generator::Tensor& tensor) const {
    const bool is_kept = tensor.role == TensorRole::kIn && written_.count(tensor.name) != 0 && bytes_.at(tensor.name) <= l2_bytes_;
    return is_kept ? bytes_.at(tensor.name) : 0;
  }
  /// Bytes that do not go to DRAM: the workspace is written again by the next launch before it is driven out. Each half of an H200's L2
  /// holds what its SMs touch, so that half of the whole is what a launch may touch.
  double not_written(const generator::Tensor& tensor) const {
    const bool is_kept = tensor.role != TensorRole::kIn && in_workspace_.count(tensor.name) != 0 && footprint_bytes_ <= l2_bytes_ / 2;
    return is_kept ? bytes_.at(tensor.name) : 0;
  }

 private:
  double l2_bytes_ = 0, footprint_bytes_ = 0;
  std::map<std::string, double> bytes_;
  std::set<std::string> written_, in_workspace_;
};

Result<PlanOutline> outline(const LoadedSpec& spec, const Partition& partition, Services& services, const Problem& problem) {
  PlanOutline result;
  result.cut = partition.to_text();
  KW_TRY(const KeptInL2 kept, KeptInL2::create(partition, problem, services.limits().l2_bytes));
  for (const generator::Tensor& tensor : partition.intermediates) {
    KW_TRY(const double bytes, bytes_of(tensor, problem));
    result.unshared_workspace_bytes += bytes;
  }
  for (const generator::Program& step : partition.steps) {
    PlanOutline::Kernel kernel;
    for (const generator::Statement& statement : step.statements) kernel.text += "    " + generator::to_text(statement) + "\n";
    KW_TRY(kernel.work, generator::count_work(step, problem, services.limits().l2_bytes));
    const Roofline roofline = roofline_of(step, kernel.work, services.limits(), spec.program->tune.is_warm_l2);
    kernel.intensity = roofline.intensity;
    kernel.bound_us = roofline.bound_us;
    result.bytes += kernel.work.min_bytes;
    result.l2_aware_bytes += kernel.work.min_bytes;
    for (const generator::Tensor& tensor : step.tensors) result.l2_aware_bytes -= kept.not_read(tensor) + kept.not_written(tensor);
    result.kernels.push_back(std::move(kernel));
  }
  for (const generator::WorkspacePart& part : generator::workspace_parts(partition)) {
    KW_TRY(const std::int64_t value, part.bytes.evaluate(problem.dims));
    result.workspace_bytes += static_cast<double>(value);
  }
  return result;
}

}  // namespace

Result<std::vector<PlanOutline>> outline_plans(const LoadedSpec& spec, Services& services, const Problem& problem) {
  KW_TRY(const generator::TemplateLibrary* templates, services.templates());
  KW_TRY(const std::vector<Partition> partitions, generator::partitions_for(*templates, *spec.program, services.arch()));
  std::vector<PlanOutline> outlines;
  for (std::size_t number = 0; number < partitions.size(); ++number) {
    if (partitions[number].steps.size() < 2) continue;
    KW_TRY(PlanOutline one, outline(spec, partitions[number], services, problem));
    one.number = number;
    outlines.push_back(std::move(one));
  }
  // An update in place may have no such cut.
  const Result<Partition> unfused = generator::unfused_partition(*spec.program);
  if (outlines.empty() || !unfused) return outlines;
  KW_TRY(PlanOutline last, outline(spec, *unfused, services, problem));
  last.number = PlanOutline::kUnfused;
  outlines.push_back(std::move(last));
  return outlines;
}

Status add_plans(const LoadedSpec& spec, Services& services, RankedProblem& ranked) {
  KW_TRY(const generator::TemplateLibrary* templates, services.templates());
  KW_TRY(const std::vector<Partition> partitions, generator::partitions_for(*templates, *spec.program, services.arch()));
  std::optional<Error> first_error;
  std::vector<RankedCut> cuts;
  for (std::size_t cut = 0; cut < partitions.size(); ++cut) {
    const Partition& partition = partitions[cut];
    if (partition.steps.size() < 2) continue;
    std::vector<RankedStep> steps;
    for (const generator::Program& program : partition.steps) {
      Result<RankedStep> step = rank_step(program, spec.program->name, *templates, ranked.problem, services);
      if (!step && step.error().code != Code::kNotSupported) return fail(step.error());
      if (!step) {
        if (!first_error) first_error = step.error();
        break;
      }
      ranked.num_points += step->num_points;
      steps.push_back(std::move(*step));
    }
    if (steps.size() == partition.steps.size()) cuts.push_back({cut, std::move(steps)});
  }
  drop_slower(cuts);
  for (const RankedCut& one : cuts) KW_TRY_VOID(Combiner(spec, partitions[one.cut], one.cut, one.steps, services.arch(), ranked).run());
  if (ranked.ranked.empty() && first_error) return fail(*first_error);
  return {};
}

}  // namespace kw::tuner
