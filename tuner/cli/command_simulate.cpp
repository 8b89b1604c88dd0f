// kernelwright simulate: are the generated kernels, or somebody's own kernel, right? On the PTX simulator, without a GPU.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "simulator/launch/report_html.h"
#include "tuner/cli/command.h"
#include "tuner/session/simulate_foreign.h"
#include "tuner/session/simulate_session.h"

namespace kw::tuner {
namespace po = boost::program_options;
namespace {

constexpr std::uint64_t kMaxVariants = 100'000;

Result<std::uint64_t> count_from_text(const std::string& option, const std::string& text, std::uint64_t limit) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value > limit)
    return fail(Stage::kCommandLine, Code::kBadInput, fmt::format("--{} {}: expected a number up to {}", option, text, limit));
  return value;
}

Result<std::vector<simulate::Schedule>> schedules_of(const ParsedOptions& parsed) {
  if (!parsed.has("schedule")) return all_schedules();
  std::vector<simulate::Schedule> schedules;
  for (const std::string& text : parsed.list("schedule")) {
    const auto schedule = simulate::schedule_from_text(text);
    if (!schedule)
      return fail(Stage::kCommandLine, Code::kBadInput, fmt::format("--schedule {}: expected eager, lazy or random:SEED", text));
    schedules.push_back(*schedule);
  }
  return schedules;
}

nlohmann::json to_json(const SimulationSummary& summary, const std::string& op) {
  nlohmann::json cases = nlohmann::json::array();
  for (const SimulatedCase& one : summary.cases) {
    nlohmann::json reports = nlohmann::json::array();
    for (const simulate::LaunchReport& report : one.result.reports)
      if (!report.is_clean()) reports.push_back(simulate::to_json(report));
    cases.push_back({{"variant", one.variant},
                     {"problem", one.problem},
                     {"schedule", simulate::to_text(one.schedule)},
                     {"status", to_text(one.result.outcome.status)},
                     {"error", one.result.outcome.error},
                     {"max_error_over_bound", one.result.outcome.max_error_over_bound},
                     {"relative_norm_error", one.result.outcome.relative_norm_error},
                     {"warp_instructions", one.result.num_warp_instructions},
                     {"seconds", one.result.seconds},
                     {"num_blocks_executed", one.result.blocks.num_executed},
                     {"num_blocks", one.result.blocks.num_blocks},
                     {"is_compared_with_device", one.is_compared},
                     {"device_difference", one.device_difference},
                     {"reports", std::move(reports)}});
  }
  nlohmann::json blocks = nlohmann::json::array();
  for (const auto& [variant, share] : summary.blocks)
    blocks.push_back({{"variant", variant}, {"num_blocks_executed", share.num_executed}, {"num_blocks", share.num_blocks}});
  nlohmann::json refusals = nlohmann::json::array();
  for (const auto& [status, refused] : summary.refusals)
    refusals.push_back({{"status", status}, {"count", refused.count}, {"example", refused.example}});
  return {{"op", op},
          {"problem", summary.problem.to_text()},
          {"variants", summary.num_variants},
          {"right", summary.num_right},
          {"refused", summary.num_refused},
          {"refusals", std::move(refusals)},
          {"blocks", std::move(blocks)},
          {"failures", summary.failures},
          {"cases", std::move(cases)}};
}

/// The first report that is not clean, whole: what, where, which two accesses, what would order them.
void print_first_report(const SimulationSummary& summary) {
  for (const SimulatedCase& one : summary.cases) {
    for (const simulate::LaunchReport& report : one.result.reports) {
      if (report.is_clean()) continue;
      fmt::print("\n{} at {}, {}:\n{}\n", one.variant, one.problem, simulate::to_text(one.schedule),
                 simulate::to_text(report, summary.texts.at(one.variant)));
      return;
    }
  }
}

/// " that ran 412 of 430 basic blocks": of all variants together.
std::string blocks_text(const SimulationSummary& summary) {
  BlockShare all;
  for (const auto& [variant, share] : summary.blocks) all = {all.num_executed + share.num_executed, all.num_blocks + share.num_blocks};
  return all.num_blocks == 0 ? "" : fmt::format(" that ran {} of {} basic blocks", all.num_executed, all.num_blocks);
}

/// Why the compiler refused variants: what befell most of them, with an example.
std::string refusal_text(const SimulationSummary& summary) {
  const auto most = std::max_element(summary.refusals.begin(), summary.refusals.end(),
                                     [](const auto& a, const auto& b) { return a.second.count < b.second.count; });
  return fmt::format("{} of {} refused: {}, as {}", most->second.count, summary.num_refused, most->first, most->second.example);
}

void print_summary(const SimulationSummary& summary, const std::string& op) {
  fmt::print("{}: {} of {} variants right in {} cases{}, {} refused by the compiler ({:.1f} M warp instructions, {:.1f} s)\n", op,
             summary.num_right, summary.num_variants, summary.cases.size(), blocks_text(summary), summary.num_refused,
             static_cast<double>(summary.num_warp_instructions) * 1e-6, summary.seconds);
  if (!summary.refusals.empty()) fmt::print("  {}\n", refusal_text(summary));
  for (const std::string& failure : summary.failures) fmt::print("  {}\n", failure);
  print_first_report(summary);
  std::fflush(stdout);
}

/// A section for the problem, and one for each kernel of each variant that is not right.
void add_sections(const SimulationSummary& summary, std::vector<simulate::ReportSection>& sections) {
  sections.push_back({fmt::format("{}: {} of {} variants right", summary.problem.to_text(), summary.num_right, summary.num_variants),
                      nullptr,
                      {},
                      summary.failures});
  for (const auto& [variant, texts] : summary.texts) {
    std::map<std::string, std::vector<const simulate::LaunchReport*>> by_kernel;
    for (const SimulatedCase& one : summary.cases) {
      if (one.variant != variant) continue;
      for (const simulate::LaunchReport& report : one.result.reports)
        if (!report.is_clean()) by_kernel[report.kernel].push_back(&report);
    }
    for (auto& [kernel, reports] : by_kernel) sections.push_back({variant, &texts, std::move(reports), {}});
  }
}

/// Names in somebody's files may be no UTF-8: such bytes are replaced.
std::string printed(const nlohmann::json& json) { return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"; }

bool has_ending(const std::string& path, std::string_view ending) { return std::filesystem::path(path).extension() == ending; }

/// Whether --report asks for HTML; its name says so.
Result<bool> wants_html(const ParsedOptions& parsed) {
  const std::string path = parsed.text("report");
  if (has_ending(path, ".html")) return true;
  if (!parsed.has("report") || has_ending(path, ".json")) return false;
  return fail(Stage::kCommandLine, Code::kBadInput, fmt::format("--report {}: the name must end in .json or .html", path));
}

Status write_report(const ParsedOptions& parsed, const nlohmann::json& json, const std::string& title,
                    const std::vector<simulate::ReportSection>& sections) {
  if (!parsed.has("report")) return {};
  const std::string path = parsed.text("report");
  return write_file(path, has_ending(path, ".html") ? simulate::to_html(title, sections) : printed(json));
}

nlohmann::json to_json(const ForeignSummary& summary) {
  nlohmann::json runs = nlohmann::json::array();
  for (const ForeignRun& run : summary.runs) {
    nlohmann::json differences = nlohmann::json::array();
    for (const simulate::Difference& difference : run.differences) {
      differences.push_back({{"buffer", difference.buffer},
                             {"wrong", difference.num_wrong},
                             {"elements", difference.num_elements},
                             {"first", difference.first_element},
                             {"got", difference.got},
                             {"expected", difference.expected}});
    }
    runs.push_back({{"is_right", run.is_right()},
                    {"seconds", run.report.seconds},
                    {"differences", std::move(differences)},
                    {"report", simulate::to_json(run.report)}});
  }
  return {{"file", summary.kernel_file}, {"kernel", summary.kernel}, {"is_right", summary.is_right()}, {"runs", std::move(runs)}};
}

/// Somebody's kernel with its launch file.
Result<int> run_foreign(const Invocation& invocation, const ParsedOptions& parsed) {
  const auto refuse = [](const std::string& why) { return fail(Stage::kCommandLine, Code::kBadInput, "simulate --launch: " + why); };
  for (const char* name : {"set", "variants", "seed", "problems", "templates"})
    if (parsed.has(name)) return refuse(fmt::format("--{} is for specs", name));
  if (parsed.flag("compare-device")) return refuse("--compare-device is for specs");
  const std::vector<std::string> files = parsed.list("spec");
  if (files.size() > 1) return refuse("give one kernel file, or none: the launch file's source names it then");
  ForeignOptions options;
  options.launch_file = parsed.text("launch");
  options.kernel_file = files.empty() ? "" : files[0];
  options.include_folders = parsed.list("include");
  KW_TRY(options.schedules, schedules_of(parsed));
  options.tensor_mode = parsed.flag("fast") ? simulate::TensorMode::kFast : simulate::TensorMode::kExact;
  KW_TRY(options.max_warp_instructions,
         count_from_text("max-instructions", parsed.text("max-instructions", std::to_string(options.max_warp_instructions)), 1ull << 40));
  KW_TRY(const std::unique_ptr<Services> services, make_services(invocation, parsed, "none"));
  if (parsed.has("arch")) options.arch = services->arch();
  KW_TRY(const ForeignSummary summary, simulate_foreign(options, *services));
  const nlohmann::json json = to_json(summary);
  const std::string title = fmt::format("{} in {}", summary.kernel, summary.kernel_file);
  KW_TRY_VOID(write_report(parsed, json, title, {{title, &summary.texts, summary.reports(), summary.failures()}}));
  if (parsed.flag("json")) {
    fmt::print("{}", printed(json));
  } else {
    fmt::print("{}", simulate::to_text(summary.reports(), summary.texts));
    for (const std::string& failure : summary.failures()) fmt::print("{}\n", failure);
    fmt::print("{}: {}, simulated: not run on a device\n", title, summary.is_right() ? "right" : "not right");
  }
  return summary.is_right() ? 0 : 1;
}

}  // namespace

Result<int> run_simulate(const Invocation& invocation) {
  po::options_description described("options");
  add_service_options(described);
  described.add_options()("set", po::value<std::vector<std::string>>(),
                          "simulate at these dims, a shape each where repeated (default: small problems made from the spec's own)");
  described.add_options()("variants", po::value<std::string>(), "how many variants of each op (default 8)");
  described.add_options()("seed", po::value<std::string>(), "takes random legal variants by this seed instead of the model's best");
  described.add_options()("schedule", po::value<std::vector<std::string>>(),
                          "eager, lazy or random:SEED: when asynchronous copies take effect (may be repeated; default: all three)");
  described.add_options()("problems", po::value<std::string>(), "small problems of each variant (default 3, at most 6)");
  described.add_options()("compare-device", po::bool_switch(),
                          "run each problem on the GPU too (--device auto or cuda:N), compare all outputs bit by bit");
  described.add_options()("fast", po::bool_switch(), "tensor-core sums in plain f32 instead of the hardware's exact sums");
  described.add_options()("launch", po::value<std::string>(),
                          "launch file (TOML) of somebody's kernel, a .cu or .ptx file: docs/simulator.md");
  described.add_options()("include", po::value<std::vector<std::string>>(), "with --launch: folder of a .cu's headers (may be repeated)");
  described.add_options()("max-instructions", po::value<std::string>(),
                          "with --launch: warp instructions after which a kernel that has not ended is given up (default 100000000)");
  described.add_options()("report", po::value<std::string>(), "writes the findings to this file; its ending, .html or .json, says how");
  described.add_options()("json", po::bool_switch(), "result as JSON");
  KW_TRY(const ParsedOptions parsed, parse_options(invocation, "simulate", std::move(described), {"spec..."}));
  if (parsed.is_help) return 0;
  KW_TRY(const bool is_html, wants_html(parsed));
  if (parsed.has("launch")) return run_foreign(invocation, parsed);
  if (parsed.list("spec").empty()) return fail(Stage::kCommandLine, Code::kBadInput, "simulate: give at least one spec file");
  for (const std::string& path : parsed.list("spec")) {
    if (has_ending(path, ".cu") || has_ending(path, ".ptx"))
      return fail(Stage::kCommandLine, Code::kBadInput,
                  fmt::format("{}: a kernel needs a launch file: simulate {} --launch FILE.toml", path, path));
  }
  for (const char* name : {"include", "max-instructions"})
    if (parsed.has(name)) return fail(Stage::kCommandLine, Code::kBadInput, fmt::format("simulate: --{} goes with --launch", name));
  SimulateOptions options;
  KW_TRY(options.num_variants, count_from_text("variants", parsed.text("variants", "8"), kMaxVariants));
  KW_TRY(options.random_seed, count_from_text("seed", parsed.text("seed", "0"), UINT64_MAX));
  KW_TRY(options.schedules, schedules_of(parsed));
  options.tensor_mode = parsed.flag("fast") ? simulate::TensorMode::kFast : simulate::TensorMode::kExact;
  KW_TRY(options.num_problems, count_from_text("problems", parsed.text("problems", "3"), 6));
  options.compares_device = parsed.flag("compare-device");
  options.is_at_problem = parsed.has("set");
  if (!parsed.flag("json")) options.progress = make_progress(invocation, "simulate");

  KW_TRY(const std::unique_ptr<Services> services, make_services(invocation, parsed, options.compares_device ? "auto" : "none"));
  if (options.compares_device && !services->has_device())
    return fail(Stage::kCommandLine, Code::kDevice, "--compare-device needs a GPU: " + services->no_device_reason());
  nlohmann::json results = nlohmann::json::array();
  std::deque<SimulationSummary> kept;  // for the HTML report
  std::size_t num_variants = 0, num_right = 0, num_unserved = 0, num_compared = 0, num_equal = 0;
  for (const std::string& path : parsed.list("spec")) {
    KW_TRY(const auto spec, load_spec_or_fail(path));
    KW_TRY_VOID(tell_tune_values(*spec, *services));
    KW_TRY(const auto problems, problems_of(*spec->program, parsed.list("set")));
    for (const Problem& problem : problems) {
      KW_TRY(SimulationSummary summary, simulate_problem(*spec, problem, options, *services));
      num_variants += summary.num_variants;
      num_right += summary.num_right;
      num_unserved += summary.num_variants == 0 ? 1 : 0;
      num_compared += summary.num_compared;
      num_equal += summary.num_equal;
      results.push_back(to_json(summary, spec->program->name));
      if (!parsed.flag("json")) print_summary(summary, spec->program->name);
      if (!is_html) continue;
      std::erase_if(summary.cases, [](const SimulatedCase& one) { return one.result.outcome.status == TrialStatus::kOk; });
      kept.push_back(std::move(summary));
    }
  }
  const nlohmann::json whole = {
      {"variants", num_variants}, {"right", num_right}, {"compared", num_compared}, {"equal", num_equal}, {"problems", std::move(results)}};
  std::vector<simulate::ReportSection> sections;
  for (const SimulationSummary& summary : kept) add_sections(summary, sections);
  KW_TRY_VOID(write_report(parsed, whole, fmt::format("{} of {} variants right", num_right, num_variants), sections));
  if (parsed.flag("json"))
    fmt::print("{}", printed(whole));
  else if (options.compares_device)
    fmt::print("{} of {} variants right, simulated for {}; outputs equal on {} in {} of {} cases\n", num_right, num_variants,
               kw::to_text(services->arch()), services->device().limits.model_name, num_equal, num_compared);
  else
    fmt::print("{} of {} variants right, simulated for {}: not run on a device\n", num_right, num_variants, kw::to_text(services->arch()));
  return num_right == num_variants && num_unserved == 0 && num_equal == num_compared ? 0 : 1;
}

}  // namespace kw::tuner
