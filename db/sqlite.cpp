// The one file that includes sqlite3.h. Waiting for locks, and the translation of SQLite's result codes, live here.
// SPDX-License-Identifier: Apache-2.0
#include "db/sqlite.h"

#include <sqlite3.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <limits>
#include <random>
#include <thread>

#include <fmt/format.h>

#include "db/content.h"

namespace kw::db {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxStatementBytes = 120;  // of a statement that is quoted beside an error

/// Short random pauses: with 16 writers a fixed ladder of pauses starves some of them.
void pause_for_lock(int num_calls) {
  thread_local std::minstd_rand random{std::random_device{}()};
  const int limit_us = num_calls < 8 ? 1000 : 8000;
  std::this_thread::sleep_for(std::chrono::microseconds(200 + static_cast<int>(random() % static_cast<unsigned>(limit_us))));
}

bool is_lock_code(int code) {
  const int primary = code & 0xff;
  return primary == SQLITE_BUSY || primary == SQLITE_LOCKED || primary == SQLITE_PROTOCOL;
}

bool is_full(int code, int system_error) {
  const bool is_write_fault = (code & 0xff) == SQLITE_IOERR || (code & 0xff) == SQLITE_CANTOPEN;
  return (code & 0xff) == SQLITE_FULL || (is_write_fault && (system_error == ENOSPC || system_error == EDQUOT || system_error == EFBIG));
}

struct Meaning {
  Code code;
  std::string text;
};

Meaning meaning_of(int code, int system_error, std::chrono::milliseconds busy_limit) {
  if (is_full(code, system_error)) return {Code::kIo, "disk full (or the file reached its size limit): nothing of this step was stored"};
  switch (code & 0xff) {
    case SQLITE_NOTADB:
      return {Code::kBadInput, "not a database (SQLite does not know this file)"};
    case SQLITE_CORRUPT:
      return {Code::kBadInput, "damaged database: restore a copy of the file, or tune into a new one"};
    case SQLITE_READONLY:
      return {Code::kBadInput, "read-only: the file, its folder or this connection does not allow writing"};
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return {Code::kBadInput, "permission denied"};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
      return {Code::kIo, fmt::format("locked by another process for more than {} ms", busy_limit.count())};
    case SQLITE_CANTOPEN:
      return {Code::kIo, "cannot open the file or its journal beside it (is the folder there and writable?)"};
    case SQLITE_IOERR:
      return {Code::kIo, "read or write failed on this file system"};
    case SQLITE_NOMEM:
      return {Code::kIo, "out of memory"};
    case SQLITE_TOOBIG:
      return {Code::kBadInput, "a value is larger than SQLite can hold"};
    case SQLITE_CONSTRAINT:
      return {Code::kBadInput, "a rule of the schema refuses the row"};
    default:
      return {Code::kInternal, "SQLite refuses the statement"};
  }
}

/// Error number of the last failed call on the database file or its journal: SQLite's own copy is gone after the rollback.
int last_file_error(sqlite3* handle) {
  int file_error = 0;
  sqlite3_file_control(handle, "main", SQLITE_FCNTL_LAST_ERRNO, &file_error);
  if (file_error != 0) return file_error;
  sqlite3_file* journal = nullptr;
  sqlite3_file_control(handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, static_cast<void*>(&journal));
  if (journal == nullptr || journal->pMethods == nullptr) return 0;
  journal->pMethods->xFileControl(journal, SQLITE_FCNTL_LAST_ERRNO, &file_error);
  return file_error;
}

void content_fault(sqlite3_context* context, int, sqlite3_value** values) {
  const auto bytes_of = [](sqlite3_value* value) {
    const auto* data = static_cast<const char*>(sqlite3_value_blob(value));
    return std::string_view(data == nullptr ? "" : data, static_cast<std::size_t>(sqlite3_value_bytes(value)));
  };
  const std::string hash(bytes_of(values[0]));
  const std::string fault = fault_of_content(hash, sqlite3_value_int64(values[1]), bytes_of(values[2]));
  sqlite3_result_text64(context, fault.data(), fault.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

}  // namespace

std::string file_uri(const std::string& path, std::string_view query) {
  std::string uri = "file:";
  if (path.starts_with("//")) uri += "//";  // else SQLite reads the next name as a host
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') || c == '/' ||
                          c == '.' || c == '_' || c == '-';
    uri += is_plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return fmt::format("{}?{}", uri, query);
}

// --- Statement -------------------------------------------------------------------------------------------------------------

Statement::~Statement() { sqlite3_finalize(handle_); }
void Statement::bind(int index, std::int64_t value) { sqlite3_bind_int64(handle_, index, value); }
void Statement::bind(int index, double value) { sqlite3_bind_double(handle_, index, value); }
void Statement::bind(int index, std::string_view value) {
  sqlite3_bind_text64(handle_, index, value.data() == nullptr ? "" : value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}
void Statement::bind(int index, Bytes value) {
  sqlite3_bind_blob64(handle_, index, value.view.data() == nullptr ? "" : value.view.data(), value.view.size(), SQLITE_TRANSIENT);
}
void Statement::bind(int index, const OptionalText& value) {
  if (value) {
    bind(index, std::string_view(*value));
  } else {
    sqlite3_bind_null(handle_, index);
  }
}
void Statement::bind(int index, std::optional<std::int64_t> value) {
  if (value) {
    bind(index, *value);
  } else {
    sqlite3_bind_null(handle_, index);
  }
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return fail(connection_.error(code, sqlite3_sql(handle_)));
}
void Statement::reset() {
  sqlite3_reset(handle_);
  sqlite3_clear_bindings(handle_);
}

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(handle_, column); }
double Statement::real(int column) const {
  return is_null(column) ? std::numeric_limits<double>::quiet_NaN() : sqlite3_column_double(handle_, column);
}
std::string Statement::text(int column) const {
  const void* data = sqlite3_column_blob(handle_, column);  // as stored: also bytes that are not UTF-8
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(handle_, column));
  return data == nullptr ? std::string() : std::string(static_cast<const char*>(data), size);
}
OptionalText Statement::optional_text(int column) const { return is_null(column) ? OptionalText() : OptionalText(text(column)); }
bool Statement::is_null(int column) const { return sqlite3_column_type(handle_, column) == SQLITE_NULL; }

// --- Connection ------------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<Connection>> Connection::open(const std::string& path, const ConnectionOptions& options) {
  std::unique_ptr<Connection> connection(new Connection());
  connection->path_ = path;
  connection->busy_limit_ = options.busy_limit;
  const std::string mode = options.is_immutable   ? "mode=ro&immutable=1"
                           : options.is_read_only ? "mode=ro"
                           : options.creates      ? "mode=rwc"
                                                  : "mode=rw";
  const int access = options.is_read_only || options.is_immutable ? SQLITE_OPEN_READONLY
                     : options.creates                            ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                                                                  : SQLITE_OPEN_READWRITE;
  const int code =
      sqlite3_open_v2(file_uri(path, mode).c_str(), &connection->handle_, access | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  if (code != SQLITE_OK) return fail(connection->error(code, "opening"));
  sqlite3_extended_result_codes(connection->handle_, 1);
  sqlite3_busy_handler(connection->handle_, &Connection::on_busy, connection.get());
  return connection;
}

Connection::~Connection() {
  statements_.clear();
  sqlite3_close_v2(handle_);
}

int Connection::on_busy(void* self, int num_calls) {
  auto* const connection = static_cast<Connection*>(self);
  if (num_calls == 0) connection->busy_since_ = Clock::now();
  if (Clock::now() - connection->busy_since_ >= connection->busy_limit_) return 0;
  pause_for_lock(num_calls);
  return 1;
}

bool Connection::is_in_transaction() const { return sqlite3_get_autocommit(handle_) == 0; }
bool Connection::is_forced_read_only() const { return sqlite3_db_readonly(handle_, "main") == 1; }
std::int64_t Connection::last_insert_id() const { return sqlite3_last_insert_rowid(handle_); }
std::int64_t Connection::changes() const { return sqlite3_changes64(handle_); }

Status Connection::execute(const std::string& sql) {
  const int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return fail(error(code, sql));
  return {};
}

Status Connection::execute_patiently(const std::string& sql) {
  const Clock::time_point start = Clock::now();
  for (int num_calls = 0;; ++num_calls) {
    const int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
    if (code == SQLITE_OK) return {};
    if (!is_lock_code(code) || Clock::now() - start >= busy_limit_) return fail(error(code, sql));
    pause_for_lock(num_calls);
  }
}

Result<Statement*> Connection::prepare(const std::string& sql) {
  const auto found = statements_.find(sql);
  if (found != statements_.end()) return found->second.get();
  sqlite3_stmt* handle = nullptr;
  const int code = sqlite3_prepare_v3(handle_, sql.c_str(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT, &handle, nullptr);
  if (code != SQLITE_OK) return fail(error(code, sql));
  return statements_.emplace(sql, std::make_unique<Statement>(*this, handle)).first->second.get();
}

Status Connection::register_content_check() {
  const int code = sqlite3_create_function_v2(handle_, "kw_content_fault", 3, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY,
                                              nullptr, &content_fault, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return fail(error(code, "registering kw_content_fault"));
  return {};
}

Error Connection::error(int code, std::string_view statement) const {
  // A script of many lines says less than its first one.
  const std::string_view line = statement.substr(0, std::min(statement.find('\n'), kMaxStatementBytes));
  const std::string doing = std::string(line) + (line.size() < statement.size() ? " ..." : "");
  int system_error = handle_ == nullptr ? 0 : sqlite3_system_errno(handle_);
  if (handle_ != nullptr && system_error == 0 && (code & 0xff) == SQLITE_IOERR) system_error = last_file_error(handle_);
  const Meaning meaning = meaning_of(code, system_error, busy_limit_);
  const char* const message = handle_ == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(handle_);
  std::string text = fmt::format("{}: {}", path_, meaning.text);
  if (meaning.code == Code::kInternal || (code & 0xff) == SQLITE_CONSTRAINT) text += fmt::format(": {}", message);
  return {Stage::kDatabase,
          meaning.code,
          std::move(text),
          {},
          fmt::format("SQLite {} ({}), system error {}, while: {}", code, message, system_error, doing)};
}

// --- Transaction -----------------------------------------------------------------------------------------------------------

Result<Transaction> Transaction::write(Connection& connection) {
  KW_TRY_VOID(connection.execute_patiently("BEGIN IMMEDIATE"));
  return Transaction(connection);
}

Result<Transaction> Transaction::read(Connection& connection) {
  const Clock::time_point start = Clock::now();
  for (int num_calls = 0;; ++num_calls) {
    // A deferred BEGIN takes the snapshot at the first read; taken here, so that waiting has one place.
    const int code = sqlite3_exec(connection.handle_, "BEGIN; SELECT 1 FROM sqlite_schema LIMIT 1", nullptr, nullptr, nullptr);
    if (code == SQLITE_OK) return Transaction(connection);
    const Error error = connection.error(code, "BEGIN");
    if (connection.is_in_transaction()) sqlite3_exec(connection.handle_, "ROLLBACK", nullptr, nullptr, nullptr);
    if (!is_lock_code(code) || Clock::now() - start >= connection.busy_limit_) return fail(error);
    pause_for_lock(num_calls);
  }
}

Transaction::~Transaction() {
  if (connection_ != nullptr && connection_->is_in_transaction()) sqlite3_exec(connection_->handle_, "ROLLBACK", nullptr, nullptr, nullptr);
}

Status Transaction::commit() {
  KW_TRY_VOID(connection_->execute_patiently("COMMIT"));
  connection_ = nullptr;
  return {};
}

}  // namespace kw::db
