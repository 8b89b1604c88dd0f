// See run_mutants.h.
// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/mutation/run_mutants.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "tests/simulator/kernels/kernel_case.h"

namespace kw::simulate {
namespace {

const std::vector<Schedule>& schedules() {
  static const std::vector<Schedule> all = {
      {Adversary::kEager, 0}, {Adversary::kLazy, 0}, {Adversary::kRandom, 7}, {Adversary::kRandom, 11}};
  return all;
}

std::filesystem::path source_path(const std::string& name) { return std::filesystem::path(KW_SOURCE_DIR) / "tests/simulator" / name; }

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path);
  REQUIRE(in.good());
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Inputs are whole numbers, so sums in f32 are exact. A mutant that loops ends after a few times the work of the unchanged kernel.
Simulation simulation_for(const Schedule& schedule, std::uint64_t max_warp_instructions) {
  return Simulation({.schedule = schedule,
                     .tensor_mode = TensorMode::kFast,
                     .limits = {.max_warp_instructions = max_warp_instructions, .max_findings = 4},
                     .max_global_bytes = std::uint64_t{64} << 20});
}

std::vector<std::vector<std::byte>> output_bytes(const Simulation& simulation, const std::vector<std::uint64_t>& outputs) {
  std::vector<std::vector<std::byte>> all;
  for (const std::uint64_t address : outputs) {
    const std::span<const std::byte> bytes = simulation.bytes(address);
    all.emplace_back(bytes.begin(), bytes.end());
  }
  return all;
}

struct Tally {
  int num_found = 0, num_made = 0;
};

}  // namespace

std::map<std::string, std::string> explained_survivors(const std::vector<MutationCase>& cases) {
  std::map<std::string, std::string> entries;
  std::istringstream lines(read_file(source_path("mutation/survivors.txt")));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t end = line.find(' ');
    if (end == std::string::npos) FAIL("survivors.txt: '" << line << "': a name, a space, and the reason");
    const std::string name = line.substr(0, end), case_name = name.substr(0, name.find(':'));
    const bool is_here = std::any_of(cases.begin(), cases.end(), [&](const MutationCase& each) { return each.name == case_name; });
    if (is_here) entries[name] = line.substr(end + 1);
  }
  return entries;
}

PtxText fixture_text(const MutationCase& mutation_case) {
  PtxText text = read_ptx_text(read_file(source_path("kernels/" + mutation_case.fixture)), mutation_case.kernel);
  if (text.statements.empty()) FAIL(mutation_case.fixture << " has no kernel " << mutation_case.kernel);
  return text;
}

MutantJudge::MutantJudge(const MutationCase& mutation_case) : case_(mutation_case), text_(fixture_text(mutation_case)) {
  constexpr std::uint64_t kPlenty = 10'000'000;
  const Module module = load_fixture(mutation_case.fixture);
  for (const auto& prepare : case_.problems) {
    std::vector<Baseline> baselines;
    for (const Schedule& schedule : schedules()) {
      CAPTURE(mutation_case.name, to_text(schedule));
      Simulation simulation = simulation_for(schedule, kPlenty);
      const PreparedLaunch launch = prepare(simulation);
      const Result<LaunchReport> report = simulation.launch(module, launch.call);
      if (!report) FAIL(to_text(report.error()));
      if (!report->is_clean()) FAIL(to_text(*report));
      baselines.push_back({output_bytes(simulation, launch.outputs), report->num_warp_instructions});
      REQUIRE(baselines.back().outputs == baselines.front().outputs);
    }
    baselines_.push_back(std::move(baselines));
  }
}

std::string MutantJudge::run(const Module& module, std::size_t problem, std::size_t schedule) const {
  const Baseline& baseline = baselines_[problem][schedule];
  Simulation simulation = simulation_for(schedules()[schedule], 3 * baseline.num_warp_instructions + 20'000);
  const PreparedLaunch launch = case_.problems[problem](simulation);
  const Result<LaunchReport> report = simulation.launch(module, launch.call);
  if (!report) FAIL("refused: " << to_text(report.error()));
  if (!report->findings.empty()) return std::string(to_text(report->findings.front().kind)) + ": " + report->findings.front().message;
  if (!report->has_ended) return "does not end";
  return output_bytes(simulation, launch.outputs) == baseline.outputs ? "" : "wrong output";
}

MutantVerdict MutantJudge::judge(const Mutant& mutant) const {
  INFO(mutant.name);
  MutantVerdict verdict{.name = mutant.name, .operation = mutant.operation};
  const Result<Module> module = parse_ptx(apply(text_, mutant), case_.fixture);
  if (!module) FAIL("not PTX: " << to_text(module.error()));
  for (std::size_t problem = 0; problem < case_.problems.size(); ++problem) {
    for (std::size_t schedule = 0; schedule < schedules().size(); ++schedule) {
      verdict.shown = run(*module, problem, schedule);
      if (verdict.shown.empty()) continue;
      verdict.is_found = true;
      verdict.shown = to_text(schedules()[schedule]) + ": " + verdict.shown;
      return verdict;
    }
  }
  return verdict;
}

void check_mutants(const std::vector<MutationCase>& cases) {
  const std::map<std::string, std::string> explained = explained_survivors(cases);
  std::map<std::string, Tally> by_operation;
  std::set<std::string> survivors;
  Tally all;
  const std::filesystem::path folder = std::filesystem::path(KW_BINARY_DIR) / "mutants";
  std::filesystem::create_directories(folder);
  std::ofstream table(folder / (cases.front().name + ".tsv"));
  for (const MutationCase& mutation_case : cases) {
    const MutantJudge judge(mutation_case);
    for (const Mutant& mutant : make_mutants(judge.text(), mutation_case.name)) {
      const MutantVerdict verdict = judge.judge(mutant);
      table << verdict.name << '\t' << (verdict.is_found ? verdict.shown : "clean") << '\n';
      for (Tally* tally : {&all, &by_operation[verdict.operation]}) {
        ++tally->num_made;
        tally->num_found += verdict.is_found ? 1 : 0;
      }
      if (!verdict.is_found) survivors.insert(verdict.name);
    }
  }
  for (const auto& [operation, tally] : by_operation)
    std::printf("%-22s %4d of %4d found\n", operation.c_str(), tally.num_found, tally.num_made);
  std::printf("%-22s %4d of %4d found\n", "all", all.num_found, all.num_made);
  for (const std::string& name : survivors) {
    const auto reason = explained.find(name);
    std::printf("survives: %s %s\n", name.c_str(), reason == explained.end() ? "UNEXPLAINED" : reason->second.c_str());
    if (reason == explained.end()) FAIL_CHECK(name << " survives and survivors.txt does not say why");
  }
  for (const auto& [name, reason] : explained) {
    if (survivors.count(name) == 0) FAIL_CHECK("survivors.txt: " << name << " is found, or is no mutant");
  }
}

}  // namespace kw::simulate
