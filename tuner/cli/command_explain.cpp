// kernelwright explain: what the tool understands and plans, before anything is compiled.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "generator/plan/fusion_group.h"
#include "tuner/cli/command.h"
#include "tuner/session/measured_here.h"
#include "tuner/session/ranked_plans.h"
#include "tuner/session/ranked_problem.h"
#include "tuner/session/roofline.h"

namespace kw::tuner {
namespace po = boost::program_options;
namespace {

constexpr std::size_t kShownConfigs = 10;

double megabytes(double bytes) { return bytes * 1e-6; }

void print_traffic(const generator::WorkCounts& work, const Roofline& roofline, const DeviceLimits& device) {
  const auto saved = [](double fused, double unfused) { return unfused > 0 ? 100 * (1 - fused / unfused) : 0; };
  fmt::print("\ntraffic (HBM)            unfused      fused      saved\n");
  fmt::print("  no-cache model     {:>8.1f} MB {:>8.1f} MB {:>7.0f} %\n", megabytes(work.unfused_bytes), megabytes(work.fused_bytes),
             saved(work.fused_bytes, work.unfused_bytes));
  fmt::print("  with {:>3.0f} MB of L2   {:>8.1f} MB {:>8.1f} MB {:>7.0f} %\n", megabytes(static_cast<double>(device.l2_bytes)),
             megabytes(work.unfused_l2_aware_bytes), megabytes(work.fused_bytes), saved(work.fused_bytes, work.unfused_l2_aware_bytes));
  fmt::print("\nroofline on {} ({} SMs, {:.2f} GHz, {:.0f} GB/s)\n", device.model_name, device.num_sms, device.max_clock_ghz,
             device.dram_gb_per_s);
  fmt::print("  {:.3f} GFLOP, {:.1f} MB compulsory, {:.1f} FLOP/byte\n", work.flops * 1e-9, megabytes(work.min_bytes), roofline.intensity);
  fmt::print("  arithmetic {:.2f} us, memory {:.2f} us: bound {:.2f} us ({})\n", roofline.math_bound_us, roofline.memory_bound_us,
             roofline.bound_us, roofline.math_bound_us >= roofline.memory_bound_us ? "arithmetic" : "memory");
}

void print_space(const RankedProblem& space) {
  for (const std::string& line : space.refused_templates) fmt::print("  template refused: {}\n", line);
  for (std::size_t i = 0; i < space.spaces.size(); ++i)
    fmt::print("  {}: {} configs, {} legal\n", space.factories[i].info().name, space.spaces[i].num_points(), space.spaces[i].kept().size());
  fmt::print("\nrefused by rule\n");
  for (const db::RefusalSummary& refusal : space.refusals)
    fmt::print("  {:>8}  {:<16} {}\n", refusal.count, refusal.template_name, refusal.example);
  fmt::print("\nmodel's ranking (first {} of {})\n", std::min(kShownConfigs, space.ranked.size()), space.ranked.size());
  for (std::size_t i = 0; i < std::min(kShownConfigs, space.ranked.size()); ++i) {
    const RankedVariant& variant = space.ranked[i];
    const generator::Prediction& p = variant.ranked.prediction;
    fmt::print("  {:>8.2f} us  {}  (math {:.1f}, DRAM {:.1f}, L2 {:.1f}, smem {:.1f}, overhead {:.1f}; {:.2f} waves, {} CTAs/SM)\n",
               p.time_us, space.factories[variant.factory].id(variant.ranked.config), p.math_us, p.dram_us, p.l2_us, p.smem_us,
               p.overhead_us, p.num_waves, p.ctas_per_sm);
  }
}

nlohmann::json to_json(const LoadedSpec& spec, const Problem& problem, const generator::WorkCounts& work, const Roofline& roofline) {
  nlohmann::json out = {
      {"op", spec.program->name}, {"identity", spec.identity}, {"canonical", spec.canonical_text}, {"problem", problem.to_text()}};
  out["traffic"] = {{"unfused_bytes", work.unfused_bytes},
                    {"fused_bytes", work.fused_bytes},
                    {"unfused_l2_aware_bytes", work.unfused_l2_aware_bytes},
                    {"min_bytes", work.min_bytes}};
  out["roofline"] = {{"flops", work.flops},
                     {"intensity", roofline.intensity},
                     {"math_bound_us", roofline.math_bound_us},
                     {"memory_bound_us", roofline.memory_bound_us},
                     {"bound_us", roofline.bound_us}};
  return out;
}

void add_space(const RankedProblem& space, nlohmann::json& out) {
  out["refused_templates"] = space.refused_templates;
  for (std::size_t i = 0; i < space.spaces.size(); ++i)
    out["spaces"].push_back({{"template", space.factories[i].info().name},
                             {"configs", space.spaces[i].num_points()},
                             {"legal", space.spaces[i].kept().size()}});
  for (const db::RefusalSummary& refusal : space.refusals)
    out["refused"].push_back(
        {{"template", refusal.template_name}, {"rule", refusal.rule}, {"count", refusal.count}, {"example", refusal.example}});
  for (std::size_t i = 0; i < std::min<std::size_t>(100, space.ranked.size()); ++i)
    out["ranking"].push_back({{"variant", space.factories[space.ranked[i].factory].id(space.ranked[i].ranked.config)},
                              {"predicted_us", space.ranked[i].ranked.prediction.time_us}});
}

/// Only where a library was timed too: explain is about what would be made, query about what was.
void print_measured(const MeasuredHere& measured) {
  if (measured.baselines.empty()) return;
  fmt::print("\nmeasured on {}\n", measured.record.key.device.model);
  for (const BaselineRatio& baseline : measured.baselines)
    fmt::print("  {:.2f} us by {}, {}\n", measured.record.trial.median_us, measured.record.key.variant.id, baseline.to_text());
}

void add_measured(const MeasuredHere& measured, nlohmann::json& out) {
  if (measured.baselines.empty()) return;
  out["measured"] = {{"variant", measured.record.key.variant.id},
                     {"device", measured.record.key.device.model},
                     {"median_us", measured.record.trial.median_us}};
  for (const BaselineRatio& baseline : measured.baselines) out["measured"]["baselines"].push_back(to_json(baseline));
}

std::string plan_text(const std::vector<generator::FusionGroup>& groups) {
  std::string text;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    text += fmt::format("kernel {}\n", i);
    for (const auto& contraction : groups[i].contractions) text += fmt::format("  contraction {}\n", generator::to_text(contraction));
    for (const auto& output : groups[i].outputs) {
      std::string subscripts;
      for (const auto& subscript : output.subscripts) subscripts += (subscripts.empty() ? "" : ", ") + generator::to_text(subscript);
      text += fmt::format("  {}[{}] = {}\n", output.tensor, subscripts, generator::to_text(output.value));
    }
  }
  return text;
}

/// The cuts of a program that needs several kernels.
std::string plan_text(const std::vector<generator::Partition>& partitions) {
  std::string text;
  for (std::size_t i = 0; i < partitions.size(); ++i) {
    text += fmt::format("cut {}: {}\n", i, partitions[i].to_text());
    for (std::size_t step = 0; step < partitions[i].steps.size(); ++step) {
      text += fmt::format("  kernel {}\n", step);
      for (const auto& statement : partitions[i].steps[step].statements) text += fmt::format("    {}\n", generator::to_text(statement));
    }
  }
  return text;
}

/// One kernel where that is enough, else the cuts.
Result<std::string> plan_text(const LoadedSpec& spec, Services& services) {
  KW_TRY(const generator::TemplateLibrary* templates, services.templates());
  KW_TRY(const std::vector<generator::Partition> partitions, generator::partitions_for(*templates, *spec.program, services.arch()));
  if (partitions.front().steps.size() > 1) return plan_text(partitions);
  KW_TRY(const std::vector<generator::FusionGroup> groups, generator::plan_groups(*spec.program));
  return plan_text(groups);
}

void print_outlines(const std::vector<PlanOutline>& outlines) {
  for (const PlanOutline& plan : outlines) {
    const std::string name = plan.number == PlanOutline::kUnfused ? "unfused" : fmt::format("cut {}", plan.number);
    fmt::print("\n{}: {} kernels: {}\n", name, plan.kernels.size(), plan.cut);
    fmt::print("  HBM {:.1f} MB without a cache, {:.1f} MB with the L2", megabytes(plan.bytes), megabytes(plan.l2_aware_bytes));
    if (plan.unshared_workspace_bytes > 0)
      fmt::print("; workspace {:.1f} MB ({:.1f} MB unshared)", megabytes(plan.workspace_bytes), megabytes(plan.unshared_workspace_bytes));
    fmt::print("\n");
    for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
      const PlanOutline::Kernel& kernel = plan.kernels[k];
      fmt::print("  kernel {}: {:.3f} GFLOP, {:.1f} MB, {:.1f} FLOP/byte, bound {:.2f} us\n{}", k, kernel.work.flops * 1e-9,
                 megabytes(kernel.work.min_bytes), kernel.intensity, kernel.bound_us, kernel.text);
    }
  }
}

void add_outlines(const std::vector<PlanOutline>& outlines, nlohmann::json& out) {
  for (const PlanOutline& plan : outlines) {
    nlohmann::json kernels = nlohmann::json::array();
    for (const PlanOutline::Kernel& kernel : plan.kernels)
      kernels.push_back(
          {{"flops", kernel.work.flops}, {"bytes", kernel.work.min_bytes}, {"intensity", kernel.intensity}, {"bound_us", kernel.bound_us}});
    const nlohmann::json number = plan.number == PlanOutline::kUnfused ? nlohmann::json() : nlohmann::json(plan.number);
    out["plans"].push_back({{"cut", plan.cut},
                            {"number", number},
                            {"bytes", plan.bytes},
                            {"l2_aware_bytes", plan.l2_aware_bytes},
                            {"workspace_bytes", plan.workspace_bytes},
                            {"unshared_workspace_bytes", plan.unshared_workspace_bytes},
                            {"kernels", kernels}});
  }
}

}  // namespace

Result<int> run_explain(const Invocation& invocation) {
  po::options_description described("options");
  add_service_options(described);
  described.add_options()("set", po::value<std::vector<std::string>>(), "dims of the problem: M=1024,N=4096");
  described.add_options()("device-model", po::value<std::string>(),
                          "compare with what was measured on this device model (default: this machine's)");
  described.add_options()("stop-after", po::value<std::string>(),
                          "print one step's value and stop: check, canonical, plan or rank (default: rank, all of it)");
  described.add_options()("json", po::bool_switch(), "as JSON");
  KW_TRY(const ParsedOptions parsed, parse_options(invocation, "explain", std::move(described), {"spec"}));
  if (parsed.is_help) return 0;
  if (!parsed.has("spec")) return fail(Stage::kCommandLine, Code::kBadInput, "explain: give a spec file");
  KW_TRY(const auto spec, load_spec_or_fail(parsed.text("spec")));
  const std::string stop = parsed.text("stop-after", "rank");
  if (stop != "check" && stop != "canonical" && stop != "plan" && stop != "rank")
    return fail(Stage::kCommandLine, Code::kBadInput, fmt::format("--stop-after {}: one of check, canonical, plan, rank", stop));
  if (stop == "check") return fmt::print("{}", generator::to_text(*spec->program)), 0;
  if (stop == "canonical") return fmt::print("{}\n", spec->canonical_text), 0;
  KW_TRY(const std::unique_ptr<Services> services, make_services(invocation, parsed));
  const Result<std::string> planned = plan_text(*spec, *services);
  const std::string plan = planned ? *planned : fmt::format("no kernel: {}\n", kw::to_text(planned.error()));
  if (stop == "plan") return fmt::print("{}", plan), planned ? 0 : 1;

  KW_TRY(const std::vector<Problem> problems, problems_of(*spec->program, parsed.list("set")));
  KW_TRY_VOID(tell_tune_values(*spec, *services));
  nlohmann::json all = nlohmann::json::array();
  if (!parsed.flag("json")) fmt::print("{}\nidentity {}\n\nplan\n{}", generator::to_text(*spec->program), spec->identity, plan);
  bool has_kernels = true;
  for (const Problem& problem : problems) {
    KW_TRY(const generator::WorkCounts work, generator::count_work(*spec->program, problem, services->limits().l2_bytes));
    const Roofline roofline = roofline_of(*spec->program, work, services->limits(), spec->program->tune.is_warm_l2);
    // A program without a kernel still has a meaning, traffic and a roofline.
    const Result<RankedProblem> space = planned ? rank_problem(*spec, *services, problem) : Result<RankedProblem>(fail(planned.error()));
    const auto outlines = planned ? outline_plans(*spec, *services, problem) : std::vector<PlanOutline>();
    if (!outlines) return fail(outlines.error());
    if (!space && space.error().code != Code::kNotSupported) return fail(space.error());
    has_kernels = has_kernels && space.has_value();
    const auto measured = measured_here(*spec, problem, parsed.text("device-model"), spec->program->tune.is_warm_l2, *services);
    if (!measured) fmt::print(stderr, "what was measured is not shown: {}\n", kw::to_text(measured.error()));
    if (parsed.flag("json")) {
      all.push_back(to_json(*spec, problem, work, roofline));
      add_outlines(*outlines, all.back());
      if (space)
        add_space(*space, all.back());
      else
        all.back()["no_kernel"] = kw::to_text(space.error());
      if (measured && *measured) add_measured(**measured, all.back());
      continue;
    }
    fmt::print("\n== {} ==\n", problem.to_text());
    print_traffic(work, roofline, services->limits());
    print_outlines(*outlines);
    fmt::print("\nspace for {}\n", kw::to_text(services->arch()));
    if (space)
      print_space(*space);
    else
      fmt::print("  no kernel yet: {}\n", kw::to_text(space.error()));
    if (measured && *measured) print_measured(**measured);
  }
  if (parsed.flag("json")) fmt::print("{}\n", all.dump(2));
  return has_kernels ? 0 : 1;
}

}  // namespace kw::tuner
