// kernelwright replay: emits recorded variants again and compares the text. A measurement stays valid while its source is unchanged.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "generator/base/json_text.h"
#include "tuner/cli/command.h"
#include "tuner/session/ranked_problem.h"

namespace kw::tuner {
namespace po = boost::program_options;
namespace {

/// One recorded variant: what is needed to emit it again, and the hash of the text that was compiled and timed.
struct Recorded {
  std::string spec_json, arch, template_name, config, source_hash, id;
};

Result<nlohmann::json> to_json(const std::vector<Recorded>& variants) {
  std::map<std::string, int> spec_numbers;
  nlohmann::json out = {{"specs", nlohmann::json::array()}, {"variants", nlohmann::json::array()}};
  for (const Recorded& variant : variants) {
    const auto [entry, is_new] = spec_numbers.emplace(variant.spec_json, static_cast<int>(spec_numbers.size()));
    if (is_new) {
      KW_TRY(nlohmann::json spec, json_from_text(variant.spec_json));
      out["specs"].push_back(std::move(spec));
    }
    out["variants"].push_back({{"spec", entry->second},
                               {"arch", variant.arch},
                               {"template", variant.template_name},
                               {"config", variant.config},
                               {"source_hash", variant.source_hash},
                               {"id", variant.id}});
  }
  return out;
}

Result<std::vector<Recorded>> read_record(const std::string& path) {
  std::ifstream stream(path);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream) return fail(Stage::kCommandLine, Code::kBadInput, fmt::format("{}: cannot be read", path));
  const auto read = json_from_text(text.str());
  const nlohmann::json json = read.value_or(nullptr);
  // The parser's own words help only with a text that was meant to be JSON; those about depth are ours.
  const bool is_told = !read && (text.str().starts_with('{') || read.error().message.find("json.exception") == std::string::npos);
  const bool is_record = json.is_object() && json.contains("specs") && json.contains("variants");
  if (!is_record)
    return fail(Stage::kCommandLine, Code::kBadInput,
                fmt::format("{}: not a replay record, the file that `kernelwright replay --record FILE` writes{}{}", path,
                            is_told ? fmt::format(" ({})", read.error().message) : "",
                            path.ends_with(".toml") ? "; the variants of a spec are replayed from the database they are in" : ""));
  try {
    std::vector<Recorded> variants;
    for (const auto& item : json.at("variants"))
      variants.push_back({json.at("specs").at(item.at("spec").get<std::size_t>()).dump(), item.at("arch"), item.at("template"),
                          item.at("config"), item.at("source_hash"), item.at("id")});
    return variants;
  } catch (const nlohmann::json::exception& error) {
    return fail(Stage::kCommandLine, Code::kBadInput, fmt::format("{}: a replay record with a broken entry: {}", path, error.what()));
  }
}

Result<std::vector<Recorded>> recorded_in(db::Database& database) {
  std::vector<Recorded> variants;
  std::map<std::string, bool> seen;
  KW_TRY(const std::vector<db::OpRow> ops, database.ops(""));
  for (const db::OpRow& op : ops) {
    KW_TRY(const std::vector<db::TrialRecord> records, database.records_of(op.identity, ""));
    for (const db::TrialRecord& record : records) {
      const db::VariantRow& variant = record.key.variant;
      if (!seen.emplace(op.identity + variant.arch + variant.template_name + variant.config + variant.source_hash, true).second) continue;
      variants.push_back({op.spec_json, variant.arch, variant.template_name, variant.config, variant.source_hash, variant.id});
    }
  }
  return variants;
}

/// Emits `recorded` with today's templates; the hash of its text, or the reason why it cannot be emitted.
class Emitter {
 public:
  explicit Emitter(const generator::TemplateLibrary& library) : library_(library) {}

  Result<std::string> source_hash(const Recorded& recorded) {
    auto& spec = specs_[recorded.spec_json];
    if (spec == nullptr) {
      Diagnostics diagnostics;
      spec = load_spec_from_json(recorded.spec_json, diagnostics);
      if (spec == nullptr) return fail(Stage::kSpec, Code::kBadInput, "its spec: " + diagnostics.to_text());
    }
    const auto arch = arch_from_text(recorded.arch);
    if (!arch) return fail(Stage::kTemplate, Code::kNotFound, fmt::format("no architecture {}", recorded.arch));
    KW_TRY(const Config config, config_from_text(recorded.template_name, recorded.config));
    const auto cut = config.values.find("CUT");
    const std::string key =
        fmt::format("{}{}{}{}", recorded.spec_json, recorded.arch, recorded.template_name, cut == config.values.end() ? 0 : cut->second);
    if (!factories_.contains(key)) {
      KW_TRY(auto factory, generator::VariantFactory::create_named(library_, config, *spec->program, *arch));
      factories_.emplace(key, std::move(factory));
    }
    KW_TRY(const generator::Variant variant, factories_.at(key).emit(config));
    return variant.source_hash;
  }

 private:
  const generator::TemplateLibrary& library_;
  std::map<std::string, std::shared_ptr<const LoadedSpec>> specs_;
  std::map<std::string, generator::VariantFactory> factories_;
};

}  // namespace

Result<int> run_replay(const Invocation& invocation) {
  po::options_description described("options");
  add_service_options(described);
  described.add_options()("record", po::value<std::string>(), "write the database's variants to this file, to be replayed later");
  described.add_options()("json", po::bool_switch(), "as JSON");
  KW_TRY(const ParsedOptions parsed, parse_options(invocation, "replay", std::move(described), {"file..."}));
  if (parsed.is_help) return 0;
  KW_TRY(const std::unique_ptr<Services> services, make_services(invocation, parsed, "none"));
  std::vector<Recorded> variants;
  if (parsed.list("file").empty()) {
    KW_TRY(db::Database * database, services->database(true));
    KW_TRY(variants, recorded_in(*database));
  }
  for (const std::string& path : parsed.list("file")) {
    KW_TRY(const std::vector<Recorded> more, read_record(path));
    variants.insert(variants.end(), more.begin(), more.end());
  }
  if (parsed.has("record")) {
    KW_TRY(const nlohmann::json record, to_json(variants));
    KW_TRY_VOID(write_file(parsed.text("record"), record.dump(1) + "\n"));
    fmt::print("{} variants recorded in {}\n", variants.size(), parsed.text("record"));
    return 0;
  }
  KW_TRY(const generator::TemplateLibrary* library, services->templates());
  Emitter emitter(*library);
  std::size_t num_unchanged = 0;
  nlohmann::json changed = nlohmann::json::array();
  for (const Recorded& recorded : variants) {
    const auto hash = emitter.source_hash(recorded);
    if (hash && *hash == recorded.source_hash) {
      ++num_unchanged;
      continue;
    }
    const std::string why = hash ? "the source has changed" : "cannot be emitted: " + hash.error().message;
    changed.push_back({{"variant", recorded.id}, {"arch", recorded.arch}, {"why", why}});
    if (!parsed.flag("json")) fmt::print("{} ({}): {}\n", recorded.id, recorded.arch, why);
  }
  if (parsed.flag("json"))
    fmt::print("{}\n", nlohmann::json{{"unchanged", num_unchanged}, {"changed", changed}}.dump(2));
  else
    fmt::print("{} of {} variants unchanged\n", num_unchanged, variants.size());
  if (variants.empty()) return 1;
  return changed.empty() ? 0 : 1;
}

}  // namespace kw::tuner
