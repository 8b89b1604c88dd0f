// kernelwright generate: variants as files, with a manifest; no database. --random takes variants from the whole space instead of the
// model's best, --compile has each compiled as well: a check of the templates, used by bench/compile_random_variants.py.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "generator/base/json_text.h"
#include "tuner/cli/command.h"
#include "tuner/search/search.h"
#include "tuner/session/ranked_problem.h"

namespace kw::tuner {
namespace po = boost::program_options;
namespace {

Result<std::size_t> count_from_text(const std::string& option, const std::string& text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    return fail(Stage::kCommandLine, Code::kBadInput, fmt::format("--{} {}: expected a number", option, text));
  return value;
}

/// A variant on its way to the manifest.
struct Generated {
  generator::Variant variant;
  double predicted_us = 0;
};

/// The variants that the options choose, emitted in order.
Result<std::vector<Generated>> generate_chosen(const RankedProblem& space, const ParsedOptions& parsed) {
  SearchOptions search;
  KW_TRY(const std::size_t limit, count_from_text("limit", parsed.text("limit", "32")));
  KW_TRY(search.seed, count_from_text("random", parsed.text("random", "0")));
  std::vector<std::size_t> positions;
  if (parsed.has("random")) {
    search.kind = SearchKind::kRandom;
    search.budget_seconds = 1e9;
    search.max_first_rung = static_cast<int>(limit == 0 ? space.ranked.size() : std::min(limit, space.ranked.size()));
    positions = choose_first_rung(space.ranked.size(), search);
  } else {
    search.kind = SearchKind::kExhaustive;
    positions = choose_first_rung(space.ranked.size(), search);
    if (limit != 0 && limit < positions.size()) positions.resize(limit);
  }
  std::vector<Generated> chosen;
  for (const std::size_t position : positions) {
    const RankedVariant& ranked = space.ranked[position];
    KW_TRY(generator::Variant variant, space.factories[ranked.factory].emit(ranked.ranked.config));
    chosen.push_back({std::move(variant), ranked.ranked.prediction.time_us});
  }
  return chosen;
}

/// Compiles all of them at once over the pool's workers.
Result<std::vector<CompileOutcome>> compile_all(const std::vector<Generated>& chosen, Services& services) {
  KW_TRY(const NvrtcInfo nvrtc, services.nvrtc());
  KW_TRY_VOID(check_arch(nvrtc, services.arch()));
  KW_TRY(CompilePool * pool, services.compile_pool());
  std::vector<std::future<CompileOutcome>> futures;
  for (const Generated& generated : chosen) {
    CompileRequest request;
    request.source = generated.variant.source;
    request.arch = services.arch();
    name_kernels(generated.variant.plan, request);
    futures.push_back(pool->submit(std::move(request)));
  }
  std::vector<CompileOutcome> outcomes;
  for (std::future<CompileOutcome>& future : futures) outcomes.push_back(future.get());
  return outcomes;
}

nlohmann::json to_json(const Generated& generated, const Problem& problem, const CompileOutcome* outcome) {
  const generator::Variant& variant = generated.variant;
  nlohmann::json entry = {{"file", variant.id + ".cu"},
                          {"template", variant.config.template_name},
                          {"config", variant.config.to_text()},
                          {"problem", problem.to_text()},
                          {"predicted_us", generated.predicted_us},
                          {"source_hash", variant.source_hash},
                          {"launch_plan", kw::to_json(variant.plan)}};
  if (outcome != nullptr) {
    const CompiledKernel& kernel = outcome->kernel;
    entry["compile"] = {{"status", std::string(kw::to_text(outcome->status))},
                        {"error", outcome->error},
                        {"registers", kernel.registers},
                        {"spill_bytes", kernel.spill_store_bytes + kernel.spill_load_bytes},
                        {"is_from_cache", kernel.is_from_cache},
                        {"compile_ms", kernel.compile_ms}};
  }
  return entry;
}

/// The files that an earlier generate listed in the manifest of this folder; a manifest of somebody else is left alone, and refused.
Result<std::set<std::string>> files_of_earlier_set(const std::string& folder) {
  const std::filesystem::path path = std::filesystem::path(folder) / "manifest.json";
  std::set<std::string> files;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return files;
  std::ostringstream text;
  if (std::filesystem::is_regular_file(path, ignored)) text << std::ifstream(path).rdbuf();
  const nlohmann::json manifest = json_from_text(text.str()).value_or(nullptr);
  if (!manifest.is_object() || !manifest.contains("generator") || !manifest.contains("identity"))
    return fail(Stage::kCommandLine, Code::kBadInput,
                fmt::format("{}: is there and was not written by generate: give another folder with -o", path.string()));
  for (const nlohmann::json& entry : manifest.value("variants", nlohmann::json::array())) {
    const std::string file = entry.is_object() && entry.contains("file") && entry["file"].is_string() ? entry["file"] : "";
    if (file.ends_with(".cu") && file.find('/') == std::string::npos) files.insert(file);
  }
  return files;
}

/// The new files, then away with those of the earlier set, then the manifest: it never lists what is not there. A fault takes back
/// what this run added.
Status write_set(const std::string& folder, const std::map<std::string, std::string>& sources, const nlohmann::json& manifest) {
  KW_TRY(const std::set<std::string> earlier, files_of_earlier_set(folder));
  std::vector<std::filesystem::path> added;
  std::error_code ignored;
  const auto write_all = [&]() -> Status {
    for (const auto& [file, source] : sources) {
      const std::filesystem::path path = std::filesystem::path(folder) / file;
      const bool is_new = !std::filesystem::exists(path, ignored);
      KW_TRY_VOID(write_file(path.string(), source));
      if (is_new) added.push_back(path);
    }
    for (const std::string& file : earlier)
      if (!sources.contains(file)) std::filesystem::remove(std::filesystem::path(folder) / file, ignored);
    return write_file(folder + "/manifest.json", manifest.dump(2) + "\n");
  };
  Status status = write_all();
  if (status) return status;
  for (const std::filesystem::path& path : added) std::filesystem::remove(path, ignored);
  status.error().message += fmt::format("; the set of variants in {} is incomplete: run generate again", folder);
  return status;
}

}  // namespace

Result<int> run_generate(const Invocation& invocation) {
  po::options_description described("options");
  add_service_options(described);
  described.add_options()("set", po::value<std::vector<std::string>>(),
                          "dims of the problem: M=1024,N=4096 (may be repeated: a shape each)");
  described.add_options()("limit", po::value<std::string>(), "at most N variants per problem, the model's best first (default 32; 0: all)");
  described.add_options()("random", po::value<std::string>(), "seed: takes random legal variants instead of the model's best");
  described.add_options()("compile", po::bool_switch(), "compile each variant too; the manifest says how it went");
  described.add_options()("timing", po::bool_switch(), "print how many variants a second one core emits");
  described.add_options()("output,o", po::value<std::string>(), "folder to write to (default: generated)");
  described.add_options()("json", po::bool_switch(), "print the manifest");
  KW_TRY(const ParsedOptions parsed, parse_options(invocation, "generate", std::move(described), {"spec"}));
  if (parsed.is_help) return 0;
  if (!parsed.has("spec")) return fail(Stage::kCommandLine, Code::kBadInput, "generate: give a spec file");
  for (const char* option : {"limit", "random"}) KW_TRY_VOID(count_from_text(option, parsed.text(option, "0")));
  KW_TRY(const auto spec, load_spec_or_fail(parsed.text("spec")));
  KW_TRY(const std::unique_ptr<Services> services, make_services(invocation, parsed, "none"));
  KW_TRY_VOID(tell_tune_values(*spec, *services));
  KW_TRY(const std::vector<Problem> problems, problems_of(*spec->program, parsed.list("set")));

  const std::string folder = parsed.text("output", "generated");
  nlohmann::json manifest = {{"op", spec->program->name},
                             {"identity", spec->identity},
                             {"arch", kw::to_text(services->arch())},
                             {"generator", generator_version()}};
  std::map<std::string, std::string> written, sources;
  std::map<std::string, int> num_by_status;
  std::size_t num_emitted = 0;
  double emit_seconds = 0;
  for (const Problem& problem : problems) {
    KW_TRY(const RankedProblem space, rank_problem(*spec, *services, problem));
    const std::clock_t start = std::clock();  // of the processor: one thread works here
    KW_TRY(const std::vector<Generated> chosen, generate_chosen(space, parsed));
    emit_seconds += static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    num_emitted += chosen.size();
    std::vector<CompileOutcome> outcomes;
    if (parsed.flag("compile")) {
      KW_TRY(outcomes, compile_all(chosen, *services));
      for (const CompileOutcome& outcome : outcomes) ++num_by_status[std::string(kw::to_text(outcome.status))];
    }
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const generator::Variant& variant = chosen[i].variant;
      if (written.emplace(variant.id, variant.source_hash).second) {
        sources[variant.id + ".cu"] = variant.source;
      }
      manifest["variants"].push_back(to_json(chosen[i], problem, outcomes.empty() ? nullptr : &outcomes[i]));
    }
  }
  if (parsed.flag("compile")) manifest["compiled"] = num_by_status;
  const double variants_per_second = emit_seconds > 0 ? static_cast<double>(num_emitted) / emit_seconds : 0;
  if (parsed.flag("timing")) manifest["timing"] = {{"variants", num_emitted}, {"variants_per_second_and_core", variants_per_second}};
  if (parsed.flag("timing") && !parsed.flag("json"))
    fmt::print(stderr, "{} variants emitted, {:.1f} a second and core\n", num_emitted, variants_per_second);
  KW_TRY_VOID(write_set(folder, sources, manifest));
  if (parsed.flag("json"))
    fmt::print("{}\n", manifest.dump(2));
  else
    fmt::print("{} variants and manifest.json written to {}\n", written.size(), folder);
  for (const auto& [status, count] : num_by_status)
    if (!parsed.flag("json")) fmt::print("  {}: {}\n", status, count);
  return 0;
}

}  // namespace kw::tuner
