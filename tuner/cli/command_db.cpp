// kernelwright db: check, info, merge, gc, diff.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tuner/cli/command.h"

namespace kw::tuner {
namespace po = boost::program_options;
namespace {

Result<int> number_option(const ParsedOptions& parsed, const std::string& name, int fallback) {
  if (!parsed.has(name)) return fallback;
  const std::string text = parsed.text(name);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0)
    return fail(Stage::kCommandLine, Code::kBadInput, fmt::format("--{} {}: expected a number of at least 0", name, text));
  return value;
}

int print_lines(const std::vector<std::string>& lines, const std::string& clean, bool is_json) {
  if (is_json)
    fmt::print("{}\n", nlohmann::json(lines).dump(2));
  else if (lines.empty())
    fmt::print("{}\n", clean);
  else
    for (const std::string& line : lines) fmt::print("{}\n", line);
  return lines.empty() ? 0 : 1;
}

int print_info(const std::string& path, const db::DatabaseInfo& info, bool is_json) {
  if (is_json) {
    fmt::print("{}\n", nlohmann::json{{"path", path},
                                      {"schema_version", info.schema_version},
                                      {"ops", info.num_ops},
                                      {"problems", info.num_problems},
                                      {"variants", info.num_variants},
                                      {"trials", info.num_trials},
                                      {"binaries", info.num_binaries},
                                      {"baselines", info.num_baselines},
                                      {"file_bytes", info.file_bytes},
                                      {"journal_mode", info.journal_mode}}
                           .dump(2));
    return 0;
  }
  fmt::print("{}: schema {}, journal {}, {:.1f} MB\n  {} ops, {} problems, {} variants, {} trials, {} binaries, {} baselines\n", path,
             info.schema_version, info.journal_mode, static_cast<double>(info.file_bytes) * 1e-6, info.num_ops, info.num_problems,
             info.num_variants, info.num_trials, info.num_binaries, info.num_baselines);
  return 0;
}

/// A tune that was killed before its first row leaves a file without tables: sound, with nothing to check.
bool is_empty_file(const Result<std::unique_ptr<db::Database>>& opened, const std::string& path) {
  return !opened && opened.error().code == Code::kNotFound && std::filesystem::exists(path);
}

}  // namespace

Result<int> run_db(const Invocation& invocation) {
  po::options_description described("options");
  described.add_options()("db", po::value<std::string>(), "tuning database (default: $KERNELWRIGHT_DB, else the XDG data folder)");
  described.add_options()("keep-best", po::value<std::string>(), "gc: losers to keep for each problem (default 8)");
  described.add_options()("keep-days", po::value<std::string>(), "gc: keep everything younger (default 30)");
  described.add_options()("json", po::bool_switch(), "as JSON");
  KW_TRY(const ParsedOptions parsed, parse_options(invocation, "db", std::move(described), {"action", "other"}));
  if (parsed.is_help) return 0;
  const std::string action = parsed.text("action");
  const std::string path = database_path(invocation, parsed);
  const bool is_json = parsed.flag("json");
  const bool needs_other = action == "merge" || action == "diff";
  if (needs_other && !parsed.has("other"))
    return fail(Stage::kCommandLine, Code::kBadInput, fmt::format("db {}: give the other database", action));
  if (!needs_other && parsed.has("other"))
    return fail(Stage::kCommandLine, Code::kBadInput,
                fmt::format("db {}: takes no further argument, '{}' was given", action, parsed.text("other")));
  const bool writes = action == "merge" || action == "gc";
  if (!writes && action != "check" && action != "info" && action != "diff")
    return fail(Stage::kCommandLine, Code::kBadInput,
                action.empty() ? std::string("db: give an action: one of check, info, merge, gc, diff")
                               : fmt::format("db {}: unknown; one of check, info, merge, gc, diff", action));
  // The other side is opened first: a mistake in its name must not leave a new database behind.
  if (needs_other)
    KW_TRY_VOID(db::Database::open(parsed.text("other"), {.is_read_only = true, .creates = false, .busy_timeout_ms = 20000}));
  auto opened = db::Database::open(
      path, {.is_read_only = !writes, .creates = action == "merge", .migrates = action == "info", .busy_timeout_ms = 20000});
  if (action == "check" && is_empty_file(opened, path))
    return print_lines({}, path + ": clean, and empty: nothing was ever stored in it", is_json);
  KW_TRY(const auto database, std::move(opened));
  if (action == "check") {
    KW_TRY(const auto findings, database->check());
    return print_lines(findings, path + ": clean", is_json);
  }
  if (action == "diff") {
    KW_TRY(const auto lines, database->diff(parsed.text("other")));
    return print_lines(lines, "no difference", is_json);
  }
  if (action == "merge") {
    KW_TRY(const std::int64_t added, database->merge(parsed.text("other")));
    if (is_json)
      fmt::print("{}\n", nlohmann::json{{"path", path}, {"trials_added", added}}.dump(2));
    else
      fmt::print("{} trials added to {}\n", added, path);
    return 0;
  }
  if (action == "gc") {
    KW_TRY(const int keep_best, number_option(parsed, "keep-best", 8));
    KW_TRY(const int keep_days, number_option(parsed, "keep-days", 30));
    KW_TRY(const std::int64_t freed, database->collect_garbage(keep_best, keep_days));
    if (is_json)
      fmt::print("{}\n", nlohmann::json{{"path", path}, {"bytes_freed", freed}}.dump(2));
    else
      fmt::print("{} bytes freed in {}\n", freed, path);
    return 0;
  }
  KW_TRY(const db::DatabaseInfo info, database->info());
  return print_info(path, info, is_json);
}

}  // namespace kw::tuner
