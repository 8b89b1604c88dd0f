// See simulate_session.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/session/simulate_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <map>
#include <optional>
#include <thread>

#include "generator/spec/evaluator.h"
#include "simulator/ptx/parser.h"
#include "tuner/search/search.h"
#include "tuner/verify/verify.h"

namespace kw::tuner {
namespace {

constexpr std::uint64_t kMaxWarpInstructions = 100'000'000;  // a minute or two; a small problem needs less than one of these millions
constexpr double kMaxFlops = 1e8;                            // of a problem that is simulated though it is no small one made for that
constexpr std::uint64_t kInputSeed = 29;                     // the same inputs every time: a finding is found again

/// A variant with its parsed PTX, and the data of the problems it is run on.
struct CompiledVariant {
  generator::Variant variant;
  std::optional<simulate::Module> module;
  std::string ptx, cubin;
  std::vector<std::shared_ptr<const VerificationData>> data;
};

Result<std::vector<generator::Variant>> choose_variants(const RankedProblem& space, const SimulateOptions& options) {
  SearchOptions search;
  search.kind = options.random_seed == 0 ? SearchKind::kHalving : SearchKind::kRandom;
  search.seed = options.random_seed;
  search.budget_seconds = 1e9;
  search.max_first_rung = static_cast<int>(options.num_variants);
  search.max_per_class = 1;
  std::vector<std::size_t> classes(space.ranked.size());
  std::map<std::pair<std::size_t, double>, std::size_t> numbers;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const RankedVariant& ranked = space.ranked[i];
    classes[i] = numbers.emplace(std::make_pair(ranked.factory, ranked.ranked.prediction.math_us), numbers.size()).first->second;
  }
  std::vector<generator::Variant> variants;
  for (const std::size_t position : choose_first_rung(classes, search)) {
    const RankedVariant& ranked = space.ranked[position];
    KW_TRY(generator::Variant variant, space.factories[ranked.factory].emit(ranked.ranked.config));
    variants.push_back(std::move(variant));
  }
  return variants;
}

Result<std::vector<CompiledVariant>> compile_variants(std::vector<generator::Variant> variants, Services& services,
                                                      SimulationSummary& summary) {
  KW_TRY(CompilePool * pool, services.compile_pool());
  std::vector<std::future<CompileOutcome>> futures;
  for (const generator::Variant& variant : variants) {
    CompileRequest request;
    request.source = variant.source;
    request.arch = services.arch();
    name_kernels(variant.plan, request);
    request.options = {"-lineinfo"};
    request.wants_ptx = true;
    futures.push_back(pool->submit(std::move(request)));
  }
  std::vector<CompiledVariant> compiled;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const CompileOutcome outcome = futures[i].get();
    if (outcome.status != TrialStatus::kOk) {
      ++summary.num_refused;
      Refusals& refusals = summary.refusals[std::string(to_text(outcome.status))];
      if (refusals.count++ == 0) refusals.example = fmt::format("{}: {}", variants[i].id, outcome.error);
      if (!is_refusal(outcome.status))
        summary.failures.push_back(fmt::format("{}: {}: {}", variants[i].id, to_text(outcome.status), outcome.error));
      continue;
    }
    CompiledVariant entry;
    KW_TRY(entry.module, simulate::parse_ptx(outcome.kernel.ptx, variants[i].id + ".ptx"));
    entry.variant = std::move(variants[i]);
    entry.ptx = outcome.kernel.ptx;
    entry.cubin = outcome.kernel.cubin;
    compiled.push_back(std::move(entry));
  }
  return compiled;
}

/// Small problems for each variant; where none is legal, the problem itself if that is small too, else the variant is not simulated.
Status attach_data(const LoadedSpec& spec, const Problem& problem, const SimulateOptions& options, Services& services,
                   std::vector<CompiledVariant>& compiled, SimulationSummary& summary) {
  VerificationSource source(*spec.program, problem, kInputSeed);
  KW_TRY(const generator::WorkCounts work, generator::count_work(*spec.program, problem, services.limits().l2_bytes));
  for (CompiledVariant& entry : compiled) {
    if (!options.is_at_problem) entry.data = source.at_small_problems(entry.variant.plan, options.num_problems);
    if (!entry.data.empty()) continue;
    if (!options.is_at_problem && work.flops > kMaxFlops) {
      ++summary.num_refused;
      summary.failures.push_back(fmt::format("{}: not simulated: no small problem is legal for it", entry.variant.id));
      continue;
    }
    KW_TRY(auto data, source.at_problem(0));
    entry.data.push_back(std::move(data));
  }
  return {};
}

KernelJob job_of(const generator::Variant& variant, const VerificationData& data, const std::string& cubin) {
  KernelJob job;
  job.label = variant.id;
  job.cubin = cubin;
  job.plan = variant.plan;
  job.problem = data.problem;
  job.scalars = data.scalars;
  return job;
}

Result<SimulatedCase> run_case(const generator::Variant& variant, const simulate::Module& module, const VerificationData& data,
                               const simulate::Schedule& schedule, simulate::TensorMode tensor_mode) {
  const KernelJob job = job_of(variant, data, "");
  simulate::SimulationOptions simulation;
  simulation.schedule = schedule;
  simulation.tensor_mode = tensor_mode;
  simulation.limits.max_warp_instructions = kMaxWarpInstructions;
  SimulatedCase result;
  result.variant = variant.id;
  result.problem = data.problem.to_text();
  result.schedule = schedule;
  KW_TRY(result.result, verify_simulated(job, module, data.fills, data.samples, simulation));
  return result;
}

/// Runs the cases of the first schedule on the device and compares what both computed.
Status compare_with_device(const CompiledVariant& entry, const SimulateOptions& options, Services& services,
                           std::vector<SimulatedCase>& cases) {
  KW_TRY(GpuWorker * worker, services.gpu_worker());
  for (std::size_t at = 0; at < entry.data.size(); ++at) {
    SimulatedCase& one = cases[at * options.schedules.size()];
    if (one.result.outputs.empty()) continue;
    const KernelJob job = job_of(entry.variant, *entry.data[at], entry.cubin);
    KW_TRY(const std::vector<OutputSamples> samples, exact_samples(job, one.result));
    ++services.num_launches;
    const VerifyReport report = verify(*worker, job, entry.data[at]->fills, samples);
    one.is_compared = true;
    if (report.outcome.status != TrialStatus::kOk)
      one.device_difference = fmt::format("{}: {}", to_text(report.outcome.status), report.outcome.error);
  }
  return {};
}

simulate::ReportTexts texts_of(const CompiledVariant& compiled) {
  simulate::ReportTexts texts;
  texts.ptx = simulate::TextLines(compiled.ptx);
  // One text is compiled: whatever name the compiler gives it is its name.
  for (const std::string& name : compiled.module->source_files) texts.sources.emplace(name, compiled.variant.source);
  return texts;
}

/// Counts the right variants; of a wrong one the first failed case is told, and how many there are.
void judge(SimulationSummary& summary) {
  struct Tally {
    std::size_t num_cases = 0, num_wrong = 0;
    const SimulatedCase* first_wrong = nullptr;
  };
  std::map<std::string, Tally> tallies;
  std::map<std::string, BlockTally> blocks;
  for (const SimulatedCase& one : summary.cases) {
    summary.num_warp_instructions += one.result.num_warp_instructions;
    blocks[one.variant].add(one.result.reports);
    Tally& tally = tallies[one.variant];
    ++tally.num_cases;
    summary.num_compared += one.is_compared ? 1 : 0;
    summary.num_equal += one.is_compared && one.device_difference.empty() ? 1 : 0;
    if (!one.device_difference.empty())
      summary.failures.push_back(fmt::format("{} at {}: the device differs: {}", one.variant, one.problem, one.device_difference));
    if (one.result.outcome.status == TrialStatus::kOk) continue;
    ++tally.num_wrong;
    if (tally.first_wrong == nullptr) tally.first_wrong = &one;
  }
  summary.num_variants = tallies.size();
  for (const auto& [variant, tally] : blocks) summary.blocks[variant] = tally.share();
  for (const auto& [variant, tally] : tallies) {
    if (tally.num_wrong == 0) {
      ++summary.num_right;
      continue;
    }
    const SimulatedCase& first = *tally.first_wrong;
    summary.failures.push_back(fmt::format("{}: {} of {} cases, the first at {}, {}: {}: {}", variant, tally.num_wrong, tally.num_cases,
                                           first.problem, simulate::to_text(first.schedule), to_text(first.result.outcome.status),
                                           first.result.outcome.error));
  }
}

}  // namespace

std::vector<simulate::Schedule> all_schedules() {
  return {{simulate::Adversary::kEager, 0}, {simulate::Adversary::kLazy, 0}, {simulate::Adversary::kRandom, 1}};
}

Result<std::vector<SimulatedCase>> simulate_variant(const generator::Variant& variant, const simulate::Module& module,
                                                    const std::vector<std::shared_ptr<const VerificationData>>& data,
                                                    const SimulateOptions& options) {
  const std::size_t num_cases = data.size() * options.schedules.size();
  std::vector<std::optional<Result<SimulatedCase>>> results(num_cases);
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t at = next++; at < num_cases; at = next++) {
      results[at] = run_case(variant, module, *data[at / options.schedules.size()], options.schedules[at % options.schedules.size()],
                             options.tensor_mode);
    }
  };
  std::vector<std::thread> threads;
  const std::size_t num_threads = std::min<std::size_t>(num_cases, std::max(1u, std::thread::hardware_concurrency()));
  for (std::size_t i = 1; i < num_threads; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  std::vector<SimulatedCase> cases;
  for (std::optional<Result<SimulatedCase>>& result : results) {
    if (!*result) return fail(result->error());
    cases.push_back(std::move(**result));
  }
  return cases;
}

Result<SimulationSummary> simulate_problem(const LoadedSpec& spec, const Problem& problem, const SimulateOptions& options,
                                           Services& services) {
  const auto start = std::chrono::steady_clock::now();
  SimulationSummary summary;
  summary.problem = problem;
  KW_TRY(const RankedProblem space, rank_problem(spec, services, problem));
  KW_TRY(std::vector<generator::Variant> variants, choose_variants(space, options));
  KW_TRY(std::vector<CompiledVariant> compiled, compile_variants(std::move(variants), services, summary));
  KW_TRY_VOID(attach_data(spec, problem, options, services, compiled, summary));
  for (std::size_t i = 0; i < compiled.size(); ++i) {
    KW_TRY(std::vector<SimulatedCase> cases, simulate_variant(compiled[i].variant, *compiled[i].module, compiled[i].data, options));
    if (options.compares_device) KW_TRY_VOID(compare_with_device(compiled[i], options, services, cases));
    const bool is_right =
        std::all_of(cases.begin(), cases.end(), [](const SimulatedCase& one) { return one.result.outcome.status == TrialStatus::kOk; });
    if (!is_right) summary.texts.emplace(compiled[i].variant.id, texts_of(compiled[i]));
    std::move(cases.begin(), cases.end(), std::back_inserter(summary.cases));
    if (options.progress) options.progress("simulated", i + 1, compiled.size());
  }
  judge(summary);
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return summary;
}

}  // namespace kw::tuner
