// Creation and migration; see schema.h.
// SPDX-License-Identifier: Apache-2.0
#include "db/schema.h"

#include <fmt/format.h>

namespace kw::db {
namespace {

constexpr int kSchemaVersion = 3;

struct FileState {
  int version = 0;
  int application_id = 0;
  std::int64_t num_objects = 0;
  bool is_new() const { return version == 0 && application_id == 0 && num_objects == 0; }
};

Result<FileState> read_state(Connection& connection) {
  FileState state;
  KW_TRY(const auto version, connection.integer("PRAGMA user_version"));
  KW_TRY(const auto application_id, connection.integer("PRAGMA application_id"));
  KW_TRY(const auto num_objects, connection.integer("SELECT count(*) FROM sqlite_schema"));
  state.version = static_cast<int>(version.value_or(0));
  state.application_id = static_cast<int>(application_id.value_or(0));
  state.num_objects = num_objects.value_or(0);
  return state;
}

Error bad_input(const Connection& connection, const std::string& why) {
  return {Stage::kDatabase, Code::kBadInput, fmt::format("{}: {}", connection.path(), why), {}, {}};
}

/// A run that ends before its first row leaves such a file: there is nothing wrong with it, and nothing to be found in it.
Error nothing_stored(const Connection& connection) {
  return {
      Stage::kDatabase, Code::kNotFound, fmt::format("{}: an empty database: nothing was ever stored in it", connection.path()), {}, {}};
}

Status check_ours(const Connection& connection, const FileState& state, const SchemaSet& schema) {
  if (state.application_id != kApplicationId) {
    return fail(bad_input(connection, "a SQLite database, but not a Kernelwright tuning database; name another file"));
  }
  if (state.version > schema.version) {
    return fail(
        bad_input(connection, fmt::format("schema version {} is newer than the {} that this kernelwright knows: use a newer kernelwright",
                                          state.version, schema.version)));
  }
  return {};
}

std::string version_sql(int version) {
  return fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {};", kApplicationId, version);
}

Status create(Connection& connection, const SchemaSet& schema) {
  KW_TRY(Transaction transaction, Transaction::write(connection));
  KW_TRY(const FileState state, read_state(connection));
  if (!state.is_new()) return {};  // another process was faster
  KW_TRY_VOID(connection.execute(schema.sql));
  KW_TRY_VOID(connection.execute(version_sql(schema.version)));
  return transaction.commit();
}

Status migrate_once(Connection& connection, const SchemaSet& schema) {
  KW_TRY(Transaction transaction, Transaction::write(connection));
  KW_TRY(const FileState state, read_state(connection));
  KW_TRY_VOID(check_ours(connection, state, schema));
  if (state.version == schema.version) return {};  // another process was faster
  for (const Migration& migration : schema.migrations) {
    if (migration.from != state.version) continue;
    if (Status status = connection.execute(migration.sql); !status) {
      status.error().message +=
          fmt::format(" (migration {}, schema version {} to {}; the file is unchanged, and is migrated by the next run)", migration.name,
                      state.version, state.version + 1);
      return status;
    }
    KW_TRY(const auto broken, connection.text("SELECT \"table\" FROM pragma_foreign_key_check"));
    if (broken)
      return fail(bad_input(
          connection, fmt::format("migration {}: rows of {} lose what they point at; the file is unchanged", migration.name, *broken)));
    KW_TRY_VOID(connection.execute(version_sql(state.version + 1)));
    return transaction.commit();
  }
  return fail(
      bad_input(connection, fmt::format("schema version {}: no migration to version {} is known", state.version, state.version + 1)));
}

}  // namespace

const SchemaSet& builtin_schema() {
  static const SchemaSet schema{kSchemaVersion,
                                embedded_sql("schema.sql"),
                                {{1, "0002_baseline.sql", embedded_sql("migrations/0002_baseline.sql")},
                                 {2, "0003_lean_ranking.sql", embedded_sql("migrations/0003_lean_ranking.sql")}}};
  return schema;
}

Result<int> schema_version(Connection& connection) {
  KW_TRY(const FileState state, read_state(connection));
  return state.version;
}

Status prepare_schema(Connection& connection, const SchemaSet& schema) {
  KW_TRY(FileState state, [&]() -> Result<FileState> {
    KW_TRY(Transaction transaction, Transaction::read(connection));
    return read_state(connection);
  }());
  if (state.is_new()) {
    // Has an effect only before the first table; lets `db gc` give pages back without rewriting the whole file.
    KW_TRY_VOID(connection.execute_patiently("PRAGMA auto_vacuum = INCREMENTAL"));
    KW_TRY_VOID(create(connection, schema));
    KW_TRY(state, read_state(connection));
  }
  KW_TRY_VOID(check_ours(connection, state, schema));
  if (state.version == schema.version) return {};
  // A migration may rebuild tables; references are checked as a whole at its end.
  KW_TRY_VOID(connection.execute("PRAGMA foreign_keys = OFF"));
  while (state.version < schema.version) {
    KW_TRY_VOID(migrate_once(connection, schema));
    KW_TRY(state, read_state(connection));
  }
  return check_ours(connection, state, schema);
}

Status require_objects(Connection& connection) {
  KW_TRY(const FileState state, read_state(connection));
  if (state.is_new()) return fail(nothing_stored(connection));
  return {};
}

Status require_schema(Connection& connection, const SchemaSet& schema) {
  KW_TRY(Transaction transaction, Transaction::read(connection));
  KW_TRY(const FileState state, read_state(connection));
  if (state.is_new()) return fail(nothing_stored(connection));
  KW_TRY_VOID(check_ours(connection, state, schema));
  if (state.version == schema.version) return {};
  return fail(bad_input(
      connection, fmt::format("schema version {} is older than {}, and a reader leaves the file as it is: `kernelwright db info` brings "
                              "it up to date where it may be written, and so does a tune",
                              state.version, schema.version)));
}

}  // namespace kw::db
