// See merge.h. The other database is attached to our connection, so that one statement sees both.
// SPDX-License-Identifier: Apache-2.0
#include "db/merge.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "db/maintenance.h"
#include "db/open.h"
#include "db/schema.h"

namespace kw::db {
namespace {

constexpr int kOtherBusyMs = 20000;

/// Attaches as `other`; detaches at the end.
class Attached {
 public:
  static Result<Attached> open(Connection& connection, const std::string& path) {
    KW_TRY(const std::string uri, checked_read_only_uri(path, kOtherBusyMs));
    KW_TRY_VOID(connection.run("ATTACH DATABASE ? AS other", uri));
    return Attached(connection);
  }
  ~Attached() {
    if (connection_ != nullptr) (void)connection_->execute("DETACH DATABASE other");
  }
  Attached(Attached&& other) noexcept : connection_(other.connection_) { other.connection_ = nullptr; }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;
  Attached& operator=(Attached&&) = delete;

 private:
  explicit Attached(Connection& connection) : connection_(&connection) {}
  Connection* connection_;
};

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return std::filesystem::equivalent(a, b, error) && !error;
}

/// A table that the other side lacks would be reported as a fault of this one.
Status check_tables(Connection& connection, const std::string& other_path) {
  KW_TRY(const auto missing,
         connection.text("SELECT type || ' ' || name FROM main.sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE "
                         "'sqlite_%' AND name NOT IN (SELECT name FROM other.sqlite_schema) ORDER BY name LIMIT 1"));
  if (missing) return fail(Stage::kDatabase, Code::kBadInput, fmt::format("{}: damaged database: it has no {}", other_path, *missing));
  return {};
}

/// A fault while both files are read carries the path of ours: name the other one too.
template <typename Value>
Result<Value> naming_other(Result<Value> result, const std::string& other_path) {
  if (!result && result.error().message.find(other_path) == std::string::npos) result.error().message += " (reading " + other_path + ")";
  return result;
}

/// Damaged texts and clashing programs of the other side are refused before anything is copied.
Status check_other(Connection& connection, const std::string& other_path) {
  KW_TRY(const auto clash, connection.text("SELECT t.identity FROM other.op AS t JOIN main.op AS m ON m.identity = t.identity "
                                           "WHERE m.canonical_text <> t.canonical_text LIMIT 1"));
  if (clash) {
    return fail(Stage::kDatabase, Code::kBadInput,
                fmt::format("{}: op {} is another program than the one of that identity here", other_path, *clash));
  }
  for (const std::string table : {"source_text", "blob"}) {
    KW_TRY(const auto fault,
           connection.text(fmt::format("SELECT fault FROM (SELECT kw_content_fault(hash, num_bytes, zstd) AS fault FROM other.{0} "
                                       "WHERE hash NOT IN (SELECT hash FROM main.{0})) WHERE fault <> '' LIMIT 1",
                                       table)));
    if (fault)
      return fail(Stage::kDatabase, Code::kBadInput, fmt::format("{}: damaged database: {}; nothing was merged", other_path, *fault));
  }
  return {};
}

/// What `db check` finds in the other database is not copied into a sound one.
Status refuse_damaged(const std::string& other_path) {
  KW_TRY(const std::unique_ptr<Connection> other,
         open_connection(other_path, {.is_read_only = true, .creates = false, .busy_timeout_ms = kOtherBusyMs}));
  KW_TRY(const std::vector<std::string> findings, check_all(*other));
  if (findings.empty()) return {};
  return fail(Stage::kDatabase, Code::kBadInput, fmt::format("{}: damaged database: {}; nothing was merged", other_path, findings.front()));
}

Result<std::int64_t> count_trials(Connection& connection) {
  KW_TRY(const auto count, connection.integer("SELECT count(*) FROM main.trial"));
  return count.value_or(0);
}

/// Identity, dims, device model, toolchain major, protocol name and protocol JSON.
using GroupKey = std::tuple<std::string, std::string, std::string, std::int64_t, std::string, std::string>;

struct Winner {
  std::string group;  ///< for people
  std::string variant, source_hash;
  double median_us = 0;
};

Result<std::map<GroupKey, Winner>> winners_of(Connection& connection, const std::string& schema) {
  std::map<GroupKey, Winner> winners;
  KW_TRY_VOID(connection.each(
      "SELECT op_identity, coalesce(op_name, ''), dims_text, device_model, nvrtc_major, protocol_name, protocol_json, "
      "template_name, config, arch, source_hash, median_us FROM " +
          schema + ".winner",
      [&winners](const Statement& row) {
        // An op's name is an alias and may differ on the other side: no part of the key.
        const GroupKey key{row.text(0), row.text(2), row.text(3), row.integer(4), row.text(5), row.text(6)};
        std::string group = fmt::format("op {} ({}) problem {} device {} nvrtc {} protocol {}", row.text(0).substr(0, 12), row.text(1),
                                        row.text(2), row.text(3), row.integer(4), row.text(5));
        winners[key] = {std::move(group), fmt::format("{} {} {}", row.text(7), row.text(9), row.text(8)), row.text(10), row.real(11)};
        return Status();
      }));
  return winners;
}

std::string describe(const Winner& winner) { return fmt::format("{} ({:.3f} us)", winner.variant, winner.median_us); }

Result<std::int64_t> merge_attached(Connection& connection, const std::string& other_path) {
  KW_TRY(Transaction transaction, Transaction::write(connection));
  KW_TRY_VOID(check_tables(connection, other_path));
  KW_TRY_VOID(check_other(connection, other_path));
  KW_TRY(const std::int64_t num_before, count_trials(connection));
  KW_TRY_VOID(connection.execute(embedded_sql("merge.sql")));
  KW_TRY(const std::int64_t num_after, count_trials(connection));
  KW_TRY_VOID(transaction.commit());
  return num_after - num_before;
}

}  // namespace

Result<std::int64_t> merge_from(Connection& connection, const std::string& other_path) {
  if (is_same_file(connection.path(), other_path)) return 0;
  KW_TRY_VOID(refuse_damaged(other_path));
  KW_TRY(const Attached attached, Attached::open(connection, other_path));
  return naming_other(merge_attached(connection, other_path), other_path);
}

Result<std::vector<std::string>> diff_with(Connection& connection, const std::string& other_path) {
  std::vector<std::string> lines;
  if (is_same_file(connection.path(), other_path)) return lines;
  KW_TRY(const Attached attached, Attached::open(connection, other_path));
  KW_TRY(Transaction transaction, Transaction::read(connection));
  KW_TRY_VOID(check_tables(connection, other_path));
  KW_TRY(const auto ours, winners_of(connection, "main"));
  KW_TRY(const auto theirs, naming_other(winners_of(connection, "other"), other_path));
  for (const auto& [key, winner] : ours) {
    const auto found = theirs.find(key);
    if (found == theirs.end()) {
      lines.push_back(fmt::format("{}: only here: {}", winner.group, describe(winner)));
    } else if (found->second.variant != winner.variant || found->second.source_hash != winner.source_hash) {
      const bool is_same_config = found->second.variant == winner.variant;
      lines.push_back(fmt::format("{}: here {}, there {}{}", winner.group, describe(winner), describe(found->second),
                                  is_same_config ? ", of another source text" : ""));
    }
  }
  for (const auto& [key, winner] : theirs) {
    if (!ours.contains(key)) lines.push_back(fmt::format("{}: only there: {}", winner.group, describe(winner)));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace kw::db
