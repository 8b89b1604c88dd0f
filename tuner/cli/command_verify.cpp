// kernelwright verify: are the generated kernels right on this device? Random legal variants, no timing.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "tuner/cli/command.h"
#include "tuner/session/tune_session.h"

namespace kw::tuner {
namespace po = boost::program_options;
namespace {

Result<std::uint64_t> count_from_text(const std::string& option, const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value > 1000000)
    return fail(Stage::kCommandLine, Code::kBadInput, fmt::format("--{} {}: expected a number", option, text));
  return value;
}

}  // namespace

Result<int> run_verify(const Invocation& invocation) {
  po::options_description described("options");
  add_service_options(described);
  described.add_options()("set", po::value<std::vector<std::string>>(),
                          "dims of the problem: M=1024,N=4096 (may be repeated: a shape each)");
  described.add_options()("variants", po::value<std::string>(),
                          "how many random legal variants of each problem (default 20; fewer where fewer are legal)");
  described.add_options()("seed", po::value<std::string>(), "seed of the choice (default 1)");
  described.add_options()("json", po::bool_switch(), "result as JSON");
  KW_TRY(const ParsedOptions parsed, parse_options(invocation, "verify", std::move(described), {"spec..."}));
  if (parsed.is_help) return 0;
  if (parsed.list("spec").empty()) return fail(Stage::kCommandLine, Code::kBadInput, "verify: give at least one spec file");
  TuneOptions options;
  options.search.kind = SearchKind::kRandom;
  options.search.budget_seconds = 1e6;
  KW_TRY(const std::uint64_t num_variants, count_from_text("variants", parsed.text("variants", "20")));
  options.search.max_first_rung = static_cast<int>(num_variants * 2);  // a reserve for those refused
  KW_TRY(options.search.seed, count_from_text("seed", parsed.text("seed", "1")));

  KW_TRY(const std::unique_ptr<Services> services, make_services(invocation, parsed));
  nlohmann::json results = nlohmann::json::array();
  std::size_t num_compiled = 0, num_right = 0, num_refused = 0, num_unserved = 0;
  for (const std::string& path : parsed.list("spec")) {
    KW_TRY(const auto spec, load_spec_or_fail(path));
    KW_TRY_VOID(tell_tune_values(*spec, *services));
    KW_TRY(const auto problems, problems_of(*spec->program, parsed.list("set")));
    for (const Problem& problem : problems) {
      options.progress = nullptr;
      KW_TRY(const VerificationSummary summary, verify_problem(*spec, problem, num_variants, options, *services));
      num_compiled += summary.num_compiled;
      num_refused += summary.num_refused;
      num_right += summary.num_right;
      num_unserved += summary.num_right == 0 ? 1 : 0;
      results.push_back({{"op", spec->program->name},
                         {"problem", problem.to_text()},
                         {"compiled", summary.num_compiled},
                         {"refused_by_the_compiler", summary.num_refused},
                         {"right", summary.num_right},
                         {"failures", summary.failures},
                         {"seconds", summary.seconds}});
      if (parsed.flag("json")) continue;
      fmt::print("{} at {}: {} of {} right, {} more refused for spills or serialised wgmma ({:.1f} s)\n", spec->program->name,
                 problem.to_text(), summary.num_right, summary.num_compiled, summary.num_refused, summary.seconds);
      for (const std::string& failure : summary.failures) fmt::print("  {}\n", failure);
      std::fflush(stdout);
    }
  }
  if (parsed.flag("json"))
    fmt::print("{}\n", nlohmann::json{{"compiled", num_compiled},
                                      {"refused_by_the_compiler", num_refused},
                                      {"right", num_right},
                                      {"problems_without_a_kernel", num_unserved},
                                      {"problems", results}}
                           .dump(1));
  else
    fmt::print("{} of {} compiled variants right, {} refused for spills or serialised wgmma, {} problems without a kernel\n", num_right,
               num_compiled, num_refused, num_unserved);
  return num_right == num_compiled && num_unserved == 0 ? 0 : 1;
}

}  // namespace kw::tuner
