// Errors as values. Every stage of the line returns Result<T>; a file's mistakes are collected in Diagnostics.
// Nothing here prints or exits: the command line does that at the border (tuner/cli).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

namespace kw {

/// Where in a text file a mistake is; line and column count from 1, 0 means "the whole file".
struct SourceRange {
  std::string file;
  int line = 0;
  int column = 0;
};

/// The step of the line that refuses (design: the line from a spec to a row).
enum class Stage {
  kSpec = 0,
  kPlan = 1,
  kTemplate = 2,
  kSpace = 3,
  kEmit = 4,
  kCompile = 5,
  kVerify = 6,
  kMeasure = 7,
  kDatabase = 8,
  kDevice = 9,
  kCommandLine = 10
};

/// What kind of mistake it is; decides the exit code (bad input 2, nothing found 1, device or toolchain 3).
enum class Code { kBadInput = 0, kNotSupported = 1, kNotFound = 2, kDevice = 3, kToolchain = 4, kIo = 5, kInternal = 6 };

/// One mistake: subject, value, rule and place in `message`; longer material (a compiler log) in `detail`.
struct Error {
  Stage stage = Stage::kSpec;
  Code code = Code::kBadInput;
  std::string message;
  SourceRange where;
  std::string detail;
};

std::string_view to_text(Stage stage);
std::string_view to_text(Code code);

/// "file:line:column: message" (parts that are unknown are left out), without `detail`.
std::string to_text(const Error& error);

/// Exit code of the command line for this error: 1 nothing found, 2 bad input, 3 device or toolchain fault.
int exit_code(Code code);

template <typename T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }
inline tl::unexpected<Error> fail(Stage stage, Code code, std::string message, SourceRange where = {}) {
  return fail(Error{stage, code, std::move(message), std::move(where), {}});
}

/// All mistakes of one file, in order of appearance. A stage that can go on after a mistake adds here and goes on.
class Diagnostics {
 public:
  void add(Error error) { errors_.push_back(std::move(error)); }
  bool has_errors() const { return !errors_.empty(); }
  const std::vector<Error>& errors() const { return errors_; }
  /// One line per error, sorted by file, line and column, duplicates removed.
  std::string to_text() const;

 private:
  std::vector<Error> errors_;
};

/// The name in `known` nearest to `name` by edit distance, or "" when nothing is near enough to suggest.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

[[noreturn]] void check_failed(const char* condition, const char* file, int line, const char* why);

}  // namespace kw

/// For our own bugs; stays on in release. A user's mistake never reaches it.
#define KW_CHECK(condition, why)                                               \
  do {                                                                         \
    if (!(condition)) ::kw::check_failed(#condition, __FILE__, __LINE__, why); \
  } while (false)

#define KW_CONCAT_INNER(a, b) a##b
#define KW_CONCAT(a, b) KW_CONCAT_INNER(a, b)
/// KW_TRY(const T name, expression): unwraps a Result or returns its error from the enclosing function.
#define KW_TRY(declaration, expression)                                                                        \
  auto KW_CONCAT(kw_result_, __LINE__) = (expression);                                                         \
  if (!KW_CONCAT(kw_result_, __LINE__)) return ::kw::fail(std::move(KW_CONCAT(kw_result_, __LINE__).error())); \
  declaration = std::move(*KW_CONCAT(kw_result_, __LINE__))
#define KW_TRY_VOID(expression)                                      \
  do {                                                               \
    auto kw_status = (expression);                                   \
    if (!kw_status) return ::kw::fail(std::move(kw_status.error())); \
  } while (false)
