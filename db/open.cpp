// See open.h. Order matters: nothing is written to a file before it is known to be ours or new.
// SPDX-License-Identifier: Apache-2.0
#include "db/open.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "db/file_system.h"
#include "db/schema.h"

namespace kw::db {
namespace {

namespace fs = std::filesystem;

Error wrong_file(Code code, const std::string& path, const std::string& why) {
  return {Stage::kDatabase, code, fmt::format("{}: {}", path, why), {}, {}};
}

std::string folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

/// The file that SQLite opens, beside which it keeps its journals: a link is followed.
std::string target_of(const std::string& path) {
  std::error_code error;
  const fs::path target = fs::canonical(path, error);
  return error ? path : target.string();
}

/// SQLite takes a file of a few bytes for an empty database and would write over it. Its smallest page has 512 bytes.
bool is_small_foreign_file(const std::string& path) {
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  std::error_code error;
  const auto num_bytes = fs::file_size(path, error);
  if (error || num_bytes == 0 || num_bytes >= 512) return false;
  std::array<char, 16> head{};
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), head.size());
  return std::string_view(head.data(), head.size()) != kMagic;
}

Status check_path(const std::string& path, const OpenOptions& options) {
  if (path.empty()) return fail(wrong_file(Code::kBadInput, "database path", "is empty"));
  if (path.find('\0') != std::string::npos) return fail(wrong_file(Code::kBadInput, "database path", "holds a zero byte"));
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    if (options.is_read_only || !options.creates) {
      return fail(wrong_file(Code::kNotFound, path, "no such database (a run of `kernelwright tune` makes one)"));
    }
    if (path.back() == '/') return fail(wrong_file(Code::kBadInput, path, "names a folder, not a database file"));
    fs::create_directories(folder_of(path), error);
    if (error) return fail(wrong_file(Code::kIo, path, fmt::format("its folder cannot be made: {}", error.message())));
    return {};
  }
  if (error) return fail(wrong_file(Code::kBadInput, path, error.message()));
  if (status.type() == fs::file_type::directory) return fail(wrong_file(Code::kBadInput, path, "a folder, not a database file"));
  if (status.type() != fs::file_type::regular) return fail(wrong_file(Code::kBadInput, path, "not a regular file"));
  if (access(path.c_str(), R_OK) != 0) return fail(wrong_file(Code::kBadInput, path, "no permission to read it"));
  if (is_small_foreign_file(path)) return fail(wrong_file(Code::kBadInput, path, "not a database (SQLite does not know this file)"));
  return {};
}

/// Ours and in WAL mode, by the file's header (SQLite file format, bytes 18 and 68).
bool is_our_wal_file(const std::string& path) {
  std::array<char, 100> header{};
  std::ifstream file(path, std::ios::binary);
  if (!file.read(header.data(), header.size())) return false;
  const std::string_view id(header.data() + 68, 4);
  return header[18] == 2 && id == "KWdb";
}

/// WAL on a local file system, the rollback journal elsewhere.
Status set_journal(Connection& connection, bool is_local) {
  const std::string wanted = is_local ? "wal" : "delete";
  KW_TRY(const auto current, connection.text("PRAGMA journal_mode"));
  if (current != wanted) KW_TRY_VOID(connection.execute_patiently("PRAGMA journal_mode = " + wanted));
  // NORMAL in WAL mode survives a killed process, and a power cut without damage; the rollback journal needs FULL for that.
  return connection.execute(is_local ? "PRAGMA synchronous = NORMAL" : "PRAGMA synchronous = FULL");
}

Status set_quota(Connection& connection, std::int64_t max_file_bytes) {
  if (max_file_bytes <= 0) return {};
  KW_TRY(const auto page_bytes, connection.integer("PRAGMA page_size"));
  return connection.execute(
      fmt::format("PRAGMA max_page_count = {}", std::max<std::int64_t>(1, max_file_bytes / page_bytes.value_or(4096))));
}

Status prepare_connection(Connection& connection) {
  KW_TRY_VOID(connection.execute("PRAGMA foreign_keys = ON; PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY"));
  return connection.register_content_check();
}

Result<std::unique_ptr<Connection>> open_for_writing(const std::string& path, const OpenOptions& options) {
  const std::chrono::milliseconds busy_limit(options.busy_timeout_ms);
  const auto magic_of = options.file_system_magic ? options.file_system_magic : file_system_magic;
  const bool is_local = is_local_file_system(magic_of(folder_of(target_of(path))));
  KW_TRY(std::unique_ptr<Connection> connection, Connection::open(path, {.creates = options.creates, .busy_limit = busy_limit}));
  if (connection->is_forced_read_only()) {
    return fail(wrong_file(Code::kBadInput, path, "read-only: its permissions or its file system do not allow writing"));
  }
  // Looking after a database never makes one of an empty file.
  if (!options.creates) KW_TRY_VOID(require_objects(*connection));
  if (!is_local && is_our_wal_file(path)) {
    // Its shared-memory file must not be used here: an exclusive lock does without it.
    KW_TRY_VOID(connection->execute("PRAGMA locking_mode = EXCLUSIVE"));
    KW_TRY_VOID(connection->execute_patiently("PRAGMA journal_mode = DELETE"));
    KW_TRY_VOID(connection->execute("PRAGMA locking_mode = NORMAL; SELECT 1 FROM sqlite_schema LIMIT 1"));
  }
  KW_TRY_VOID(prepare_schema(*connection, builtin_schema()));
  KW_TRY_VOID(set_journal(*connection, is_local));
  KW_TRY_VOID(set_quota(*connection, options.max_file_bytes));
  KW_TRY_VOID(prepare_connection(*connection));
  return connection;
}

bool has_journal(const std::string& path) {
  std::error_code error;
  return fs::exists(target_of(path) + "-journal", error);
}

/// A foreign database is left as it is, a step that its own writer left half done included. A file without our mark is ours or nobody's
/// when its journal says that it held no table before the step: it had one page at most (SQLite file format, the journal's header, byte
/// 16).
bool is_ours_to_roll_back(const std::string& path) {
  std::array<char, 72> header{};
  std::ifstream(path, std::ios::binary).read(header.data(), header.size());
  if (std::string_view(header.data() + 68, 4) == "KWdb") return true;
  std::array<unsigned char, 20> journal{};
  std::ifstream(target_of(path) + "-journal", std::ios::binary).read(reinterpret_cast<char*>(journal.data()), journal.size());
  return journal[16] == 0 && journal[17] == 0 && journal[18] == 0 && journal[19] <= 1;
}

/// In a folder that cannot be written, SQLite cannot make the shared-memory file of WAL; without a log to read, or a journal to roll back,
/// none is needed.
bool can_be_immutable(const std::string& path) {
  const std::string target = target_of(path);
  std::error_code error;
  const auto wal_bytes = fs::file_size(target + "-wal", error);
  return access(folder_of(target).c_str(), W_OK) != 0 && (error || wal_bytes == 0) && !has_journal(path);
}

struct ReadOnlyConnection {
  std::unique_ptr<Connection> connection;
  bool is_immutable = false;
};

/// A writer that was killed in the middle of a step leaves a rollback journal. Only a connection that may write rolls the step back.
Status roll_back_interrupted_step(const std::string& path, std::chrono::milliseconds busy_limit) {
  KW_TRY(const std::unique_ptr<Connection> connection, Connection::open(path, {.busy_limit = busy_limit}));
  return connection->execute_patiently("BEGIN IMMEDIATE; ROLLBACK");
}

/// An older schema, in a file that may be written, is brought up to date first: the reader knows the current one alone.
Status migrate_before_reading(const std::string& path, std::chrono::milliseconds busy_limit) {
  if (access(target_of(path).c_str(), W_OK) != 0 || can_be_immutable(path)) return {};
  {
    // What is no database, holds nothing yet or is not ours is the reader's to tell.
    const auto connection = Connection::open(path, {.is_read_only = true, .busy_limit = busy_limit});
    const auto version = connection ? schema_version(**connection) : Result<int>(0);
    const auto application_id = connection ? (*connection)->integer("PRAGMA application_id") : std::optional<std::int64_t>();
    if (!version || *version == 0 || *version >= builtin_schema().version || !application_id || *application_id != kApplicationId)
      return {};
  }
  KW_TRY(const std::unique_ptr<Connection> connection, Connection::open(path, {.busy_limit = busy_limit}));
  return prepare_schema(*connection, builtin_schema());
}

Result<ReadOnlyConnection> open_for_reading(const std::string& path, int busy_timeout_ms) {
  const bool is_immutable = can_be_immutable(path);
  const std::chrono::milliseconds busy_limit(busy_timeout_ms);
  KW_TRY(std::unique_ptr<Connection> connection,
         Connection::open(path, {.is_read_only = true, .is_immutable = is_immutable, .busy_limit = busy_limit}));
  Status schema = require_schema(*connection, builtin_schema());
  if (!schema && has_journal(path) && is_ours_to_roll_back(path)) {
    if (!roll_back_interrupted_step(path, busy_limit)) {
      return fail(
          wrong_file(schema.error().code, path,
                     "read-only: a killed run left a step half done; whoever may write here must open it once (kernelwright db check)"));
    }
    schema = require_schema(*connection, builtin_schema());
  }
  KW_TRY_VOID(std::move(schema));
  KW_TRY_VOID(prepare_connection(*connection));
  return ReadOnlyConnection{std::move(connection), is_immutable};
}

}  // namespace

Result<std::unique_ptr<Connection>> open_connection(const std::string& path, const OpenOptions& options) {
  KW_TRY_VOID(check_path(path, options));
  if (!options.is_read_only) return open_for_writing(path, options);
  if (options.migrates) KW_TRY_VOID(migrate_before_reading(path, std::chrono::milliseconds(options.busy_timeout_ms)));
  KW_TRY(ReadOnlyConnection opened, open_for_reading(path, options.busy_timeout_ms));
  return std::move(opened.connection);
}

Result<std::string> checked_read_only_uri(const std::string& path, int busy_timeout_ms) {
  KW_TRY_VOID(check_path(path, {.is_read_only = true, .creates = false}));
  KW_TRY(const ReadOnlyConnection opened, open_for_reading(path, busy_timeout_ms));
  return file_uri(path, opened.is_immutable ? "mode=ro&immutable=1" : "mode=ro");
}

}  // namespace kw::db
