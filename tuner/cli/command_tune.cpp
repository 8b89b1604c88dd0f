// kernelwright tune: the main job.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <nlohmann/json.hpp>

#include "tuner/cli/command.h"
#include "tuner/session/tune_session.h"

namespace kw::tuner {
namespace po = boost::program_options;
namespace {

std::atomic<bool> stop_requested{false};

/// The first SIGINT or SIGTERM lets the row in flight finish; a second one ends the program the usual way.
void request_stop(int signal) {
  stop_requested = true;
  std::signal(signal, SIG_DFL);
}

nlohmann::json baseline_json(const ProblemSummary& summary) {
  const BaselineSummary& baseline = *summary.baseline;
  nlohmann::json out = {{"is_reused", baseline.is_reused}, {"note", baseline.note}};
  if (!baseline.record) return out;
  out["library"] = baseline.record->key.blas;
  out["median_us"] = baseline.record->row.median_us;
  if (summary.winner && !summary.is_predicted) out.update(to_json(ratio_of(*baseline.record, summary.winner->trial.median_us)));
  return out;
}

void print_baseline(const ProblemSummary& summary) {
  const BaselineSummary& baseline = *summary.baseline;
  if (baseline.record) {
    const db::BaselineRow& row = baseline.record->row;
    const std::string ratio = summary.winner && !summary.is_predicted
                                  ? ratio_of(*baseline.record, summary.winner->trial.median_us).to_text()
                                  : fmt::format("{} (best of {})", baseline.record->key.blas, row.num_tried);
    fmt::print("  baseline: {}  {:.2f} us (p10 {:.2f}, p90 {:.2f}), version {}{}\n", ratio, row.median_us, row.p10_us, row.p90_us,
               baseline.record->key.blas_version, baseline.is_reused ? ", timed by an earlier run" : "");
  }
  if (!baseline.note.empty()) fmt::print("  {}\n", baseline.note);
}

nlohmann::json to_json(const LoadedSpec& spec, const ProblemSummary& summary) {
  nlohmann::json by_status = nlohmann::json::object();
  for (const auto& [status, count] : summary.num_by_status) by_status[std::string(kw::to_text(status))] = count;
  nlohmann::json out = {{"op", spec.program->name},
                        {"identity", spec.identity},
                        {"problem", summary.problem.to_text()},
                        {"configs", summary.num_configs},
                        {"kept", summary.num_kept},
                        {"by_status", by_status},
                        {"reused", summary.num_reused},
                        {"passed_over", summary.num_passed_over},
                        {"compiles", summary.num_compiles},
                        {"from_cache", summary.num_from_cache},
                        {"launches", summary.num_launches},
                        {"seconds", summary.seconds},
                        {"is_stopped", summary.is_stopped},
                        {"stop_reason", summary.stop_reason},
                        {"is_predicted", summary.is_predicted},
                        {"winner", nullptr}};
  if (summary.winner) {
    out["winner"] = {{"variant", summary.winner->key.variant.id},
                     {"median_us", summary.winner->trial.median_us},
                     {"predicted_us", summary.winner->key.variant.predicted_us},
                     {"verify_level", kw::to_text(summary.winner->trial.verify_level)},
                     {"registers", summary.winner->binary.registers}};
  }
  if (summary.baseline) out["baseline"] = baseline_json(summary);
  return out;
}

void print(const LoadedSpec& spec, const ProblemSummary& summary) {
  std::string statuses;
  for (const auto& [status, count] : summary.num_by_status)
    statuses += fmt::format("{}{} {}", statuses.empty() ? "" : ", ", count, kw::to_text(status));
  fmt::print("{} at {}\n", spec.program->name, summary.problem.to_text());
  fmt::print("  {} configs, {} legal; rows: {}\n", summary.num_configs, summary.num_kept, statuses.empty() ? "none" : statuses);
  fmt::print("  {} compiled{}, {} runs on the device, {} rows reused, {:.1f} s{}\n", summary.num_compiles,
             summary.num_from_cache == 0 ? "" : fmt::format(", {} from the cache", summary.num_from_cache), summary.num_launches,
             summary.num_reused, summary.seconds,
             summary.is_stopped ? fmt::format(" (stopped early: {}; run it again to go on)", summary.stop_reason) : "");
  if (summary.num_passed_over > 0)
    fmt::print("  {} not compiled by no fault of theirs (a compiler killed or out of memory): run it again to try them\n",
               summary.num_passed_over);
  if (!summary.winner) {
    fmt::print("  no kernel\n");
  } else if (summary.is_predicted) {
    fmt::print("  best predicted (not measured{}): {}  {:.2f} us by the model\n",
               summary.winner->trial.verify_level == VerifyLevel::kSimulated ? "; right on the simulator" : "",
               summary.winner->key.variant.id, summary.winner->key.variant.predicted_us);
  } else {
    fmt::print("  winner: {}  {:.2f} us (p10 {:.2f}, p90 {:.2f}), verified on the device\n", summary.winner->key.variant.id,
               summary.winner->trial.median_us, summary.winner->trial.p10_us, summary.winner->trial.p90_us);
  }
  if (summary.baseline) print_baseline(summary);
}

Result<TuneOptions> tune_options(const ParsedOptions& parsed, bool has_device) {
  TuneOptions options;
  options.stop_requested = &stop_requested;
  options.retunes = parsed.flag("retune");
  options.is_warm_l2 = parsed.flag("warm");
  options.simulates = !parsed.flag("no-simulation");
  if (parsed.has("baseline") && parsed.text("baseline") != kCublasLt)
    return fail(Stage::kCommandLine, Code::kBadInput, fmt::format("--baseline {}: unknown; one of {}", parsed.text("baseline"), kCublasLt));
  options.times_cublaslt = parsed.has("baseline");
  const auto kind = search_kind_from_text(parsed.text("search", "halving"));
  if (!kind)
    return fail(Stage::kCommandLine, Code::kBadInput,
                fmt::format("--search {}: one of halving, exhaustive, random", parsed.text("search")));
  options.search.kind = *kind;
  KW_TRY(options.search.budget_seconds, seconds_from_text("--budget", parsed.text("budget", *kind == SearchKind::kExhaustive ? "24h"
                                                                                            : has_device                     ? "60s"
                                                                                                                             : "10m")));
  return options;
}

}  // namespace

Result<int> run_tune(const Invocation& invocation) {
  po::options_description described("options");
  add_service_options(described);
  described.add_options()("set", po::value<std::vector<std::string>>(),
                          "dims of the problem: M=1024,N=4096 (may be repeated: a shape each)");
  described.add_options()("budget", po::value<std::string>(),
                          "time per problem (default 60s; without a GPU 10m); one variant is always finished");
  described.add_options()("search", po::value<std::string>(), "halving (default), exhaustive or random");
  described.add_options()("retune", po::bool_switch(), "measure again what has rows already");
  described.add_options()("no-simulation", po::bool_switch(), "without a GPU: do not run the kernels on the simulator");
  described.add_options()("warm", po::bool_switch(), "keep the inputs in L2 while timing (default: cold)");
  described.add_options()("baseline", po::value<std::string>(),
                          "cublaslt: time the library for the same work too, where it has a fused epilogue for it");
  described.add_options()("json", po::bool_switch(), "result as JSON");
  KW_TRY(const ParsedOptions parsed, parse_options(invocation, "tune", std::move(described), {"spec..."}));
  if (parsed.is_help) return 0;
  if (parsed.list("spec").empty()) return fail(Stage::kCommandLine, Code::kBadInput, "tune: give at least one spec file");
  KW_TRY_VOID(tune_options(parsed, false));  // a mistake in an option is told before a device is looked for

  // All specs are read before anything is written, so that a mistake in the last one costs nothing.
  std::vector<std::pair<std::shared_ptr<const LoadedSpec>, std::vector<Problem>>> jobs;
  for (const std::string& path : parsed.list("spec")) {
    KW_TRY(auto spec, load_spec_or_fail(path));
    KW_TRY(auto problems, problems_of(*spec->program, parsed.list("set")));
    jobs.emplace_back(std::move(spec), std::move(problems));
  }
  KW_TRY(const std::unique_ptr<Services> services, make_services(invocation, parsed));
  KW_TRY(const TuneOptions options, tune_options(parsed, services->has_device()));
  for (const auto& [spec, problems] : jobs) KW_TRY_VOID(tell_tune_values(*spec, *services));
  if (!services->has_device() && !parsed.flag("json"))
    fmt::print(stderr, "no GPU: {}; kernels are generated, compiled for {}, {} and ranked by the model, not measured\n",
               services->no_device_reason().empty() ? "--device none" : services->no_device_reason(), kw::to_text(services->arch()),
               options.simulates ? "checked on the PTX simulator" : "not simulated");
  std::signal(SIGINT, request_stop);
  std::signal(SIGTERM, request_stop);

  nlohmann::json results = nlohmann::json::array();
  bool found_all = true;
  for (const auto& [spec, problems] : jobs) {
    for (const Problem& problem : problems) {
      if (stop_requested) break;
      TuneOptions problem_options = options;
      if (spec->program->tune.budget_seconds && !parsed.has("budget"))
        problem_options.search.budget_seconds = *spec->program->tune.budget_seconds;
      problem_options.is_warm_l2 = options.is_warm_l2 || spec->program->tune.is_warm_l2;
      problem_options.progress = make_progress(invocation, spec->program->name);
      KW_TRY(const ProblemSummary summary, tune_problem(*spec, problem, problem_options, *services));
      found_all = found_all && summary.winner.has_value();
      if (parsed.flag("json"))
        results.push_back(to_json(*spec, summary));
      else
        print(*spec, summary);
      std::fflush(stdout);
    }
  }
  if (parsed.flag("json")) fmt::print("{}\n", results.dump(2));
  return found_all ? 0 : 1;
}

}  // namespace kw::tuner
