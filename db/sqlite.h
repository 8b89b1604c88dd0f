// RAII over SQLite: connection, prepared statement, transaction. The only door to sqlite3.h is sqlite.cpp.
// A failure becomes an Error of stage kDatabase that names the file and what it means for the user (locked, disk full, damaged).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "generator/base/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace kw::db {

/// Bytes of a BLOB column; the view must outlive the step().
struct Bytes {
  std::string_view view;
};
/// Text or NULL.
using OptionalText = std::optional<std::string>;

class Connection;

/// One prepared statement, bound from the left. Not a number is stored as NULL.
class Statement {
 public:
  Statement(Connection& connection, sqlite3_stmt* handle) : connection_(connection), handle_(handle) {}
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  void bind(int index, std::int64_t value);
  void bind(int index, int value) { bind(index, static_cast<std::int64_t>(value)); }
  void bind(int index, bool value) { bind(index, static_cast<std::int64_t>(value)); }
  void bind(int index, double value);
  void bind(int index, std::string_view value);
  void bind(int index, const std::string& value) { bind(index, std::string_view(value)); }
  void bind(int index, const char* value) { bind(index, std::string_view(value)); }
  void bind(int index, Bytes value);
  void bind(int index, const OptionalText& value);
  void bind(int index, std::optional<std::int64_t> value);

  /// True: a row is there. False: done.
  Result<bool> step();
  void reset();

  std::int64_t integer(int column) const;
  double real(int column) const;  ///< NULL reads as NaN
  std::string text(int column) const;
  OptionalText optional_text(int column) const;
  bool is_null(int column) const;

 private:
  Connection& connection_;
  sqlite3_stmt* handle_;
};

struct ConnectionOptions {
  bool is_read_only = false;
  bool creates = false;
  bool is_immutable = false;  ///< no locks, no journal: a file that nobody writes, in a folder that we cannot write
  std::chrono::milliseconds busy_limit{20000};
};

class Connection {
 public:
  static Result<std::unique_ptr<Connection>> open(const std::string& path, const ConnectionOptions& options);
  ~Connection();

  const std::string& path() const { return path_; }
  bool is_in_transaction() const;
  /// The file or its folder cannot be written, although writing was asked for.
  bool is_forced_read_only() const;

  /// Runs statements that return no rows of interest (schema, pragmas).
  Status execute(const std::string& sql);
  /// As execute, repeated until the busy limit while the file is locked: for steps that SQLite does not wait in by itself.
  Status execute_patiently(const std::string& sql);

  /// Prepared once per text, ready to bind.
  Result<Statement*> prepare(const std::string& sql);

  /// Runs one statement to its end.
  template <typename... Values>
  Status run(const std::string& sql, const Values&... values) {
    return each(sql, [](const Statement&) { return Status(); }, values...);
  }
  /// First column of the first row.
  template <typename... Values>
  Result<std::optional<std::int64_t>> integer(const std::string& sql, const Values&... values) {
    std::optional<std::int64_t> found;
    KW_TRY_VOID(each(
        sql,
        [&found](const Statement& row) {
          if (!found) found = row.integer(0);
          return Status();
        },
        values...));
    return found;
  }
  template <typename... Values>
  Result<OptionalText> text(const std::string& sql, const Values&... values) {
    OptionalText found;
    KW_TRY_VOID(each(
        sql,
        [&found](const Statement& row) {
          if (!found) found = row.text(0);
          return Status();
        },
        values...));
    return found;
  }
  /// `on_row(const Statement&) -> Status` for every row.
  template <typename OnRow, typename... Values>
  Status each(const std::string& sql, OnRow on_row, const Values&... values) {
    KW_TRY(Statement* const statement, prepare(sql));
    int index = 0;
    (statement->bind(++index, values), ...);
    while (true) {
      Result<bool> has_row = statement->step();
      if (!has_row || !*has_row) {
        statement->reset();
        return has_row ? Status() : Status(fail(std::move(has_row.error())));
      }
      if (Status status = on_row(static_cast<const Statement&>(*statement)); !status) {
        statement->reset();
        return status;
      }
    }
  }

  std::int64_t last_insert_id() const;
  std::int64_t changes() const;

  /// `kw_content_fault(hash, num_bytes, zstd)` in SQL: '' when sound, else what is wrong.
  Status register_content_check();

  /// `path: ...` for the result code of the last call; `doing` completes "while ...".
  Error error(int code, std::string_view doing) const;

 private:
  friend class Statement;
  friend class Transaction;
  Connection() = default;
  std::string path_;
  sqlite3* handle_ = nullptr;
  std::chrono::milliseconds busy_limit_{0};
  std::chrono::steady_clock::time_point busy_since_;
  std::map<std::string, std::unique_ptr<Statement>> statements_;
  static int on_busy(void* self, int num_calls);
};

/// Rolls back unless committed.
class Transaction {
 public:
  /// Takes the write lock at once (BEGIN IMMEDIATE), so that no later statement fails for want of it.
  static Result<Transaction> write(Connection& connection);
  /// One consistent snapshot for several reads.
  static Result<Transaction> read(Connection& connection);
  ~Transaction();
  Transaction(Transaction&& other) noexcept : connection_(other.connection_) { other.connection_ = nullptr; }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  Transaction& operator=(Transaction&&) = delete;
  Status commit();

 private:
  explicit Transaction(Connection& connection) : connection_(&connection) {}
  Connection* connection_;
};

/// "file:" name with the characters that have a meaning there escaped; `query` is "mode=ro" and the like.
std::string file_uri(const std::string& path, std::string_view query);

}  // namespace kw::db
