// kernelwright generate: variants as files, with a manifest; no database.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "tuner/cli/command.h"
#include "tuner/session/ranked_problem.h"

namespace kw::tuner {
namespace po = boost::program_options;

Result<int> run_generate(const Invocation& invocation) {
  po::options_description described("options");
  add_service_options(described);
  described.add_options()("set", po::value<std::vector<std::string>>(), "dims of the problem: M=1024,N=4096");
  described.add_options()("limit", po::value<std::string>(), "at most N variants, the model's best first (default 32; 0: all)");
  described.add_options()("output,o", po::value<std::string>(), "folder to write to (default: generated)");
  described.add_options()("json", po::bool_switch(), "print the manifest");
  KW_TRY(const ParsedOptions parsed, parse_options(invocation, "generate", std::move(described), {"spec"}));
  if (parsed.is_help) return 0;
  if (!parsed.has("spec")) return fail(Stage::kCommandLine, Code::kBadInput, "kernelwright generate: give a spec file");
  std::size_t limit = 0;
  const std::string limit_text = parsed.text("limit", "32");
  const auto [end, error] = std::from_chars(limit_text.data(), limit_text.data() + limit_text.size(), limit);
  if (error != std::errc{} || end != limit_text.data() + limit_text.size())
    return fail(Stage::kCommandLine, Code::kBadInput, fmt::format("--limit {}: expected a number", limit_text));
  KW_TRY(const auto spec, load_spec_or_fail(parsed.text("spec")));
  KW_TRY(const std::unique_ptr<Services> services, make_services(invocation, parsed, "none"));
  KW_TRY(const std::vector<Problem> problems, problems_of(*spec->program, parsed.list("set")));

  const std::string folder = parsed.text("output", "generated");
  nlohmann::json manifest = {{"op", spec->program->name},
                             {"identity", spec->identity},
                             {"arch", kw::to_text(services->arch())},
                             {"generator", generator_version()}};
  std::map<std::string, std::string> written;
  for (const Problem& problem : problems) {
    KW_TRY(const RankedProblem space, rank_problem(*spec, *services, problem));
    const std::size_t count = limit == 0 ? space.ranked.size() : std::min(limit, space.ranked.size());
    for (std::size_t i = 0; i < count; ++i) {
      const RankedVariant& ranked = space.ranked[i];
      KW_TRY(const generator::Variant variant, space.factories[ranked.factory].emit(ranked.ranked.config));
      const std::string file = variant.id + ".cu";
      if (written.emplace(file, variant.source_hash).second) {
        KW_TRY_VOID(write_file(folder + "/" + file, variant.source));
      }
      manifest["variants"].push_back({{"file", file},
                                      {"template", variant.config.template_name},
                                      {"config", variant.config.to_text()},
                                      {"problem", problem.to_text()},
                                      {"predicted_us", ranked.ranked.prediction.time_us},
                                      {"source_hash", variant.source_hash},
                                      {"launch_plan", to_json(variant.plan)}});
    }
  }
  KW_TRY_VOID(write_file(folder + "/manifest.json", manifest.dump(2) + "\n"));
  if (parsed.flag("json"))
    fmt::print("{}\n", manifest.dump(2));
  else
    fmt::print("{} variants and manifest.json written to {}\n", written.size(), folder);
  return 0;
}

}  // namespace kw::tuner
