// Versions: migration keeps rows, a failed one changes nothing, newer and foreign files are refused.
// SPDX-License-Identifier: Apache-2.0
#include "db/schema.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "tests/catch.h"
#include "tests/db/records.h"

using namespace kw;
using namespace kw::db;
using namespace kw::db::test;

namespace {

std::unique_ptr<Connection> connect(const std::string& path) {
  auto connection = Connection::open(path, {.creates = true});
  REQUIRE(connection);
  return std::move(*connection);
}

const SchemaSet& first_version() {
  static const SchemaSet schema{1, "CREATE TABLE op (op_id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;", {}};
  return schema;
}

SchemaSet third_version() {
  return {3,
          "unused: the file is not new",
          {{1, "0002_add_text.sql", "ALTER TABLE op ADD COLUMN text TEXT NOT NULL DEFAULT 'old';"},
           {2, "0003_rename.sql",
            "CREATE TABLE op2 (op_id INTEGER PRIMARY KEY, title TEXT NOT NULL, text TEXT NOT NULL) STRICT;"
            "INSERT INTO op2 SELECT op_id, name, text FROM op; DROP TABLE op; ALTER TABLE op2 RENAME TO op;"}}};
}

}  // namespace

TEST_CASE("an older schema is migrated step by step and keeps its rows") {
  const TemporaryFolder folder;
  const auto connection = connect(folder.file("t.db"));
  REQUIRE(prepare_schema(*connection, first_version()));
  REQUIRE(connection->run("INSERT INTO op (name) VALUES (?)", "kept"));
  REQUIRE(prepare_schema(*connection, third_version()));
  CHECK(*schema_version(*connection) == 3);
  CHECK(*connection->text("SELECT title || '/' || text FROM op") == "kept/old");
  REQUIRE(prepare_schema(*connection, third_version()));  // nothing left to do
}

TEST_CASE("a migration that fails leaves the file as it was") {
  const TemporaryFolder folder;
  const auto connection = connect(folder.file("t.db"));
  REQUIRE(prepare_schema(*connection, first_version()));
  REQUIRE(connection->run("INSERT INTO op (name) VALUES (?)", "kept"));
  SchemaSet broken = third_version();
  broken.migrations[1].sql = "DROP TABLE op; SELECT no_such_function();";
  const Status refused = prepare_schema(*connection, broken);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("0003_rename.sql") != std::string::npos);
  CHECK(*schema_version(*connection) == 2);  // the first step is whole, the second has left nothing
  CHECK(*connection->text("SELECT name || '/' || text FROM op") == "kept/old");
}

TEST_CASE("a migration that breaks references is refused") {
  const TemporaryFolder folder;
  const auto connection = connect(folder.file("t.db"));
  const SchemaSet schema{1, "CREATE TABLE a (id INTEGER PRIMARY KEY); CREATE TABLE b (a_id INTEGER REFERENCES a (id));", {}};
  REQUIRE(prepare_schema(*connection, schema));
  REQUIRE(connection->execute("INSERT INTO a VALUES (1); INSERT INTO b VALUES (1)"));
  const Status refused = prepare_schema(*connection, {2, "", {{1, "0002_lose.sql", "DELETE FROM a;"}}});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("0002_lose.sql") != std::string::npos);
  CHECK(*connection->integer("SELECT count(*) FROM a") == 1);
}

TEST_CASE("many connections migrate at once and the steps run once") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.db");
  {
    const auto connection = connect(path);
    REQUIRE(prepare_schema(*connection, first_version()));
    REQUIRE(connection->run("INSERT INTO op (name) VALUES (?)", "kept"));
  }
  std::vector<std::string> errors(8);
  std::vector<std::thread> threads;
  for (std::string& error : errors) {
    threads.emplace_back([&error, &path] {
      auto connection = Connection::open(path, {});
      const Status status = connection ? prepare_schema(**connection, third_version()) : Status(fail(connection.error()));
      if (!status) error = to_text(status.error()) + status.error().detail;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) CHECK(error.empty());
  CHECK(*connect(path)->text("SELECT title || '/' || text FROM op") == "kept/old");
}

TEST_CASE("a version without a migration is named") {
  const TemporaryFolder folder;
  const auto connection = connect(folder.file("t.db"));
  REQUIRE(prepare_schema(*connection, first_version()));
  const Status refused = prepare_schema(*connection, {2, "", {}});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("no migration to version 2") != std::string::npos);
}

TEST_CASE("a newer schema is refused by number and not touched") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.db");
  open_or_throw(path);
  REQUIRE(connect(path)->execute("PRAGMA user_version = 99"));
  for (const bool is_read_only : {false, true}) {
    const std::string error = open_error(path, {.is_read_only = is_read_only});
    CHECK(error.find(path) != std::string::npos);
    CHECK(error.find("schema version 99 is newer") != std::string::npos);
  }
  CHECK(*schema_version(*connect(path)) == 99);
}

namespace {

/// The file that tests/db/version_N.sql is the dump of.
std::string old_file(const TemporaryFolder& folder, int version = 1) {
  const std::string path = folder.file(fmt::format("version_{}.db", version));
  std::ostringstream sql;
  sql << std::ifstream(fmt::format("{}/tests/db/version_{}.sql", KW_SOURCE_DIR, version)).rdbuf();
  const Status made = connect(path)->execute(sql.str());
  if (!made) FAIL(to_text(made.error()) + made.error().detail);
  return path;
}

/// Names and texts of all tables, indexes and views; comments and layout do not count.
std::string schema_of(Connection& connection) {
  std::string all;
  REQUIRE(connection.each("SELECT type, name, coalesce(sql, '') FROM sqlite_schema ORDER BY type, name", [&all](const Statement& row) {
    for (const char letter : row.text(0) + " " + row.text(1) + " " + row.text(2) + "\n")
      if (letter != ' ' && letter != '"') all += letter;
    return Status();
  }));
  return all;
}

}  // namespace

TEST_CASE("a database of an earlier version keeps its rows, takes baselines, and has the schema of a new one") {
  const TemporaryFolder folder;
  const int version = GENERATE(1, 2);
  const std::string path = old_file(folder, version);
  CHECK(*schema_version(*connect(path)) == version);
  const auto database = open_or_throw(path);
  CHECK(database->info()->schema_version == builtin_schema().version);
  CHECK(database->check()->empty());
  CHECK(database->info()->num_trials == 3);
  const TrialRecord record = make_record(1, 12.5);
  const auto found = database->find_trial(record.key);
  REQUIRE((found && *found));
  CHECK((*found)->trial.median_us == 12.5);
  CHECK((*found)->binary.cubin == record.binary.cubin);
  CHECK(database->winner(group_of(record))->value().key.variant.id == record.key.variant.id);
  CHECK(database->duels_of((*found)->id)->size() == 1);
  CHECK(database->refusals_of(group_of(record))->size() == 1);
  CHECK(database->record_baseline(make_baseline()));
  CHECK(database->check()->empty());
  open_or_throw(folder.file("new.db"));
  CHECK(schema_of(*connect(path)) == schema_of(*connect(folder.file("new.db"))));
}

TEST_CASE("a disk that is full in a migration is told as that, without the migration's text, and the file stays as it was") {
  const TemporaryFolder folder;
  const std::string path = old_file(folder);
  {
    const auto connection = connect(path);
    REQUIRE(connection->execute("PRAGMA max_page_count = 1"));  // SQLite makes that the present number
    const Status refused = prepare_schema(*connection, builtin_schema());
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Code::kIo);
    INFO(refused.error().message << "\n" << refused.error().detail);
    CHECK(refused.error().message.find("disk full") != std::string::npos);
    CHECK(refused.error().message.find("migration 0002_baseline.sql, schema version 1 to 2; the file is unchanged") != std::string::npos);
    CHECK(refused.error().detail.find('\n') == std::string::npos);
    CHECK(refused.error().detail.find("CREATE TABLE") == std::string::npos);
  }
  CHECK(*schema_version(*connect(path)) == 1);
  CHECK(open_or_throw(path)->info()->num_trials == 3);
}

TEST_CASE("a reader of an older schema migrates it only when it was told to and may write") {
  const TemporaryFolder folder;
  const std::string path = old_file(folder);
  CHECK(open_error(path, {.is_read_only = true}).find("schema version 1 is older than 3") != std::string::npos);
  CHECK(open_error(path, {.is_read_only = true}).find("`kernelwright db info` brings it up to date") != std::string::npos);
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  if (access(path.c_str(), W_OK) != 0)  // root may write whatever the permissions say
    CHECK(open_error(path, {.is_read_only = true, .migrates = true}).find("schema version 1 is older than 3") != std::string::npos);
  std::filesystem::permissions(path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  CHECK(*schema_version(*connect(path)) == 1);
  CHECK(open_or_throw(path, {.is_read_only = true, .migrates = true})->info()->num_trials == 3);
  CHECK(*schema_version(*connect(path)) == builtin_schema().version);
}

TEST_CASE("the built-in schema knows a way to its version from every earlier one") {
  const SchemaSet& schema = builtin_schema();
  CHECK_FALSE(schema.sql.empty());
  CHECK(static_cast<int>(schema.migrations.size()) == schema.version - 1);
  for (std::size_t step = 0; step < schema.migrations.size(); ++step) {
    CHECK(schema.migrations[step].from == static_cast<int>(step) + 1);
    CHECK_FALSE(schema.migrations[step].sql.empty());
  }
}
