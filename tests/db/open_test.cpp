// Files that are missing, wrong, damaged, read-only or on another kind of file system: each is named.
// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "db/file_system.h"
#include "db/sqlite.h"
#include "tests/catch.h"
#include "tests/db/records.h"

using namespace kw;
using namespace kw::db;
using namespace kw::db::test;

namespace {

constexpr std::int64_t kNfs = 0x6969;
constexpr std::int64_t kExt4 = 0xEF53;

OpenOptions on_file_system(std::int64_t magic) {
  OpenOptions options;
  options.file_system_magic = [magic](const std::string&) { return magic; };
  return options;
}

/// Runs `body` in a child without the rights of root (which may write everything); true when it returned true.
template <typename Body>
bool as_ordinary_user(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(3);
    _exit(body() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

TEST_CASE("a missing database is named when it may not be created, and nothing is created") {
  const TemporaryFolder folder;
  const std::string path = folder.file("none.db");
  for (const OpenOptions& options : {OpenOptions{.creates = false}, OpenOptions{.is_read_only = true}}) {
    const auto refused = Database::open(path, options);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Code::kNotFound);
    CHECK(refused.error().stage == Stage::kDatabase);
    CHECK(refused.error().message.find(path) != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(path));
  }
}

TEST_CASE("a new database is made together with its folders, whatever characters its name has") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a/b?mode=ro/c#%41 ü.db");
  record_or_throw(*open_or_throw(path), make_record(1));
  CHECK(std::filesystem::exists(path));
  CHECK(open_or_throw(path)->info()->num_trials == 1);
}

TEST_CASE("an empty file becomes a database") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.db");
  write_file(path, "");
  record_or_throw(*open_or_throw(path), make_record(1));
  CHECK(open_or_throw(path)->check()->empty());
}

TEST_CASE("files that are no database are refused and stay as they are") {
  const TemporaryFolder folder;
  for (const std::string& bytes : {std::string("x"), std::string("name = \"matmul\"\n"), std::string(10000, 'x')}) {
    const std::string path = folder.file("t.op.toml");
    write_file(path, bytes);
    const auto refused = Database::open(path);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Code::kBadInput);
    CHECK(refused.error().message.find("not a database") != std::string::npos);
    CHECK(std::filesystem::file_size(path) == bytes.size());
  }
  CHECK(open_error(folder.path()).find("a folder") != std::string::npos);
  CHECK(open_error("/dev/null").find("not a regular file") != std::string::npos);
  CHECK(open_error("").find("is empty") != std::string::npos);
}

TEST_CASE("another program's SQLite database is refused and not touched") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.db");
  {
    auto connection = Connection::open(path, {.creates = true});
    REQUIRE((*connection)->execute("CREATE TABLE bookmarks (url TEXT)"));
  }
  const auto refused = Database::open(path);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::kBadInput);
  CHECK(refused.error().message.find("not a Kernelwright tuning database") != std::string::npos);
  auto connection = Connection::open(path, {});
  CHECK(*(*connection)->integer("SELECT count(*) FROM sqlite_schema") == 1);
  CHECK(*(*connection)->text("PRAGMA journal_mode") == "delete");
}

TEST_CASE("a read-only database reads and refuses to write") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.db");
  record_or_throw(*open_or_throw(path), make_record(1));
  const auto database = open_or_throw(path, {.is_read_only = true});
  CHECK(database->info()->num_trials == 1);
  const auto refused = database->record_trial(make_record(2));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::kBadInput);
  CHECK(refused.error().message.find("read-only") != std::string::npos);
}

TEST_CASE("a file without write permission is refused for writing and can be read, in a folder that cannot be written too") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.db");
  record_or_throw(*open_or_throw(path), make_record(1));
  REQUIRE(chmod(path.c_str(), 0444) == 0);
  REQUIRE(chmod(folder.path().c_str(), 0555) == 0);
  CHECK(as_ordinary_user([&] { return open_error(path).find("read-only") != std::string::npos; }));
  CHECK(as_ordinary_user([&] {
    const auto database = Database::open(path, {.is_read_only = true});
    return database && (*database)->info()->num_trials == 1;
  }));
  CHECK(as_ordinary_user([&] { return !open_error(folder.file("new.db")).empty(); }));
  REQUIRE(chmod(path.c_str(), 0000) == 0);
  CHECK(as_ordinary_user([&] { return open_error(path).find("no permission") != std::string::npos; }));
  chmod(folder.path().c_str(), 0755);
}

TEST_CASE("a damaged schema page is named at opening") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.db");
  record_or_throw(*open_or_throw(path), make_record(1));
  overwrite(path, 100, std::string(2000, '\xee'));
  const auto refused = Database::open(path);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::kBadInput);
  CHECK(refused.error().message.find("damaged database") != std::string::npos);
}

TEST_CASE("a damaged page elsewhere is named when it is read, and db check finds it") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.db");
  {
    const auto database = open_or_throw(path);
    for (int number = 0; number < 200; ++number) record_or_throw(*database, make_record(number));
  }
  const auto num_pages = static_cast<std::int64_t>(std::filesystem::file_size(path)) / 4096;
  const std::string whole = folder.file("whole.db");
  std::filesystem::copy_file(path, whole);
  int num_found = 0, num_tried = 0;
  for (std::int64_t page = 3; page < num_pages; page += 3) {
    std::filesystem::copy_file(whole, path, std::filesystem::copy_options::overwrite_existing);
    overwrite(path, page * 4096, std::string(4096, '\xee'));
    ++num_tried;
    const auto database = Database::open(path);
    if (!database) {
      CHECK(database.error().message.find("damaged") != std::string::npos);
      ++num_found;
      continue;
    }
    const auto findings = (*database)->check();
    REQUIRE(findings);
    num_found += findings->empty() ? 0 : 1;
    const auto candidates = (*database)->candidates({.op = "matmul_bias_relu", .dims_text = "", .device_model = "NVIDIA H200"});
    if (!candidates) CHECK(candidates.error().stage == Stage::kDatabase);
  }
  CHECK(num_tried > 10);
  CHECK(num_found == num_tried);
}

TEST_CASE("a truncated database is damaged") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.db");
  {
    const auto database = open_or_throw(path);
    for (int number = 0; number < 100; ++number) record_or_throw(*database, make_record(number));
  }
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  const auto database = Database::open(path);
  const std::string error = database ? (*database)->check()->empty() ? "" : (*database)->check()->front() : database.error().message;
  CHECK_FALSE(error.empty());
}

TEST_CASE("WAL is used on local file systems alone") {
  const TemporaryFolder folder;
  CHECK(open_or_throw(folder.file("local.db"), on_file_system(kExt4))->info()->journal_mode == "wal");
  for (const std::int64_t magic : {kNfs, std::int64_t{0xFF534D42}, std::int64_t{0xFE534D42}, std::int64_t{0x65735546},
                                   std::int64_t{0x01021997}, std::int64_t{0x12345678}, std::int64_t{-1}}) {
    const std::string path = folder.file("remote.db");
    std::filesystem::remove(path);
    const auto database = open_or_throw(path, on_file_system(magic));
    INFO(file_system_name(magic));
    CHECK(database->info()->journal_mode == "delete");
    record_or_throw(*database, make_record(1));
    CHECK(database->check()->empty());
    CHECK_FALSE(std::filesystem::exists(path + "-shm"));
  }
}

TEST_CASE("a WAL database that was moved to a network file system goes back to the rollback journal, and returns") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.db");
  record_or_throw(*open_or_throw(path, on_file_system(kExt4)), make_record(1));
  {
    const auto database = open_or_throw(path, on_file_system(kNfs));
    CHECK(database->info()->journal_mode == "delete");
    record_or_throw(*database, make_record(2));
    // Not locked for others: a second one writes as well.
    record_or_throw(*open_or_throw(path, on_file_system(kNfs)), make_record(3));
    CHECK(database->info()->num_trials == 3);
  }
  CHECK(open_or_throw(path, on_file_system(kExt4))->info()->journal_mode == "wal");
}

TEST_CASE("the file system of a folder is known here") {
  CHECK(file_system_magic("/no/such/folder") == -1);
  CHECK(file_system_magic("/proc") == 0x9fa0);
  CHECK_FALSE(is_local_file_system(file_system_magic("/proc")));
  CHECK(file_system_name(kNfs) == "nfs");
}

TEST_CASE("a locked database is named after the time limit, and written when the lock ends") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.db");
  const auto database = open_or_throw(path, {.busy_timeout_ms = 50});
  auto holder = Connection::open(path, {});
  REQUIRE(holder);
  {
    auto lock = Transaction::write(**holder);
    REQUIRE(lock);
    const auto refused = database->record_trial(make_record(1));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Code::kIo);
    CHECK(refused.error().message.find("locked by another process for more than 50 ms") != std::string::npos);
  }
  CHECK(database->record_trial(make_record(1)));
}

TEST_CASE("beyond its quota a database says disk full, keeps its rows and works again") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.db");
  std::int64_t num_stored = 0;
  {
    const auto database = open_or_throw(path, {.max_file_bytes = 300000});
    for (int number = 0; number < 5000; ++number) {
      const auto id = database->record_trial(make_record(number));
      if (id) {
        ++num_stored;
        continue;
      }
      CHECK(id.error().code == Code::kIo);
      CHECK(id.error().message.find("disk full") != std::string::npos);
      break;
    }
    CHECK(num_stored > 10);
    CHECK(num_stored < 5000);
    CHECK(database->info()->num_trials == num_stored);
    CHECK(database->check()->empty());
  }
  const auto database = open_or_throw(path);
  CHECK(database->info()->num_trials == num_stored);
  CHECK(database->record_trial(make_record(9999)));
}

TEST_CASE("the default path follows KERNELWRIGHT_DB, then XDG, then the home folder") {
  CHECK(default_database_path("/x/t.db", "/xdg", "/home/u") == "/x/t.db");
  CHECK(default_database_path("", "/xdg", "/home/u") == "/xdg/kernelwright/tuning.db");
  CHECK(default_database_path(nullptr, "relative", "/home/u") == "/home/u/.local/share/kernelwright/tuning.db");
  CHECK(default_database_path(nullptr, nullptr, "/home/u") == "/home/u/.local/share/kernelwright/tuning.db");
  CHECK_FALSE(default_database_path(nullptr, nullptr, nullptr).empty());
}

TEST_CASE("a step that a killed writer left half done is rolled back for a reader too") {
  const TemporaryFolder folder;
  const std::string path = folder.file("whole.db"), left = folder.file("left.db"), linked = folder.file("linked.db"),
                    foreign = folder.file("foreign.db");
  record_or_throw(*open_or_throw(path, on_file_system(kNfs)), make_record(1));  // a rollback journal, not WAL
  {
    const auto writer = Connection::open(path, {});
    REQUIRE(writer);
    // Four pages of cache: SQLite must write into the file before the step ends.
    REQUIRE(
        (*writer)->execute("PRAGMA cache_size = 4; BEGIN IMMEDIATE; UPDATE trial SET median_us = 7; CREATE TABLE half_done(x);"
                           "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)"
                           "INSERT INTO half_done SELECT zeroblob(1000) FROM n"));
    for (const char* suffix : {"", "-journal"}) {
      std::filesystem::copy_file(path + suffix, left + suffix);
      std::filesystem::copy_file(path + suffix, linked + suffix);
      std::filesystem::copy_file(path + suffix, foreign + suffix);
    }
  }
  // Who may not write must not be given the half of the step that is in the file.
  chmod(std::filesystem::path(left).parent_path().c_str(), 0755);
  CHECK(as_ordinary_user(
      [&] { return open_error(left, {.is_read_only = true}).find("a killed run left a step half done") != std::string::npos; }));
  const auto database = open_or_throw(left, {.is_read_only = true});
  CHECK(database->check()->empty());
  CHECK(database->info()->num_trials == 1);
  CHECK_FALSE(std::filesystem::exists(left + "-journal"));
  // By way of a link, whose folder holds no journal.
  std::filesystem::create_directory(folder.file("links"));
  std::filesystem::create_symlink(linked, folder.file("links/link.db"));
  CHECK(open_or_throw(folder.file("links/link.db"), {.is_read_only = true})->info()->num_trials == 1);
  CHECK_FALSE(std::filesystem::exists(linked + "-journal"));
  // Somebody else's file is not touched.
  std::fstream(foreign, std::ios::in | std::ios::out | std::ios::binary).seekp(68).write("else", 4);
  CHECK(open_error(foreign, {.is_read_only = true}) != "");
  CHECK(std::filesystem::exists(foreign + "-journal"));
}

TEST_CASE("a link in a folder that cannot be written leads to the log of its target") {
  const TemporaryFolder folder;
  chmod(folder.file("").c_str(), 0755);
  for (const char* name : {"real", "links"}) std::filesystem::create_directory(folder.file(name));
  chmod(folder.file("real").c_str(), 0777);
  const std::string target = folder.file("real/t.db"), link = folder.file("links/t.db");
  std::filesystem::create_symlink(target, link);
  const auto writer = open_or_throw(target);  // keeps its rows in the log
  record_or_throw(*writer, make_record(1));
  REQUIRE(std::filesystem::file_size(target + "-wal") > 0);
  for (const char* suffix : {"", "-wal", "-shm"}) chmod((target + suffix).c_str(), 0666);
  CHECK(as_ordinary_user([&] { return open_or_throw(link, {.is_read_only = true})->info()->num_trials == 1; }));
}
