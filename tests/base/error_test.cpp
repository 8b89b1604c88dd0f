// Errors: text, order, exit codes, suggestions.
// SPDX-License-Identifier: Apache-2.0
#include "generator/base/error.h"

#include "generator/base/hash.h"
#include "generator/base/status.h"
#include "tests/catch.h"

namespace kw {

TEST_CASE("an error prints file, line, column and message, leaving out what is unknown") {
  CHECK(to_text(Error{Stage::kSpec, Code::kBadInput, "M = -1: must not be negative", {"a.op.toml", 3, 5}, ""}) ==
        "a.op.toml:3:5: M = -1: must not be negative");
  CHECK(to_text(Error{Stage::kSpec, Code::kBadInput, "no body", {"a.op.toml", 0, 0}, ""}) == "a.op.toml: no body");
  CHECK(to_text(Error{Stage::kDevice, Code::kDevice, "no driver", {}, ""}) == "no driver");
}

TEST_CASE("diagnostics are sorted by place and printed once each") {
  Diagnostics diagnostics;
  diagnostics.add({Stage::kSpec, Code::kBadInput, "second", {"f", 10, 1}, ""});
  diagnostics.add({Stage::kSpec, Code::kBadInput, "first", {"f", 2, 9}, ""});
  diagnostics.add({Stage::kSpec, Code::kBadInput, "second", {"f", 10, 1}, ""});
  CHECK(diagnostics.to_text() == "f:2:9: first\nf:10:1: second\n");
}

TEST_CASE("every code has an exit code of the command line") {
  CHECK(exit_code(Code::kNotFound) == 1);
  CHECK(exit_code(Code::kBadInput) == 2);
  CHECK(exit_code(Code::kNotSupported) == 2);
  CHECK(exit_code(Code::kDevice) == 3);
  CHECK(exit_code(Code::kToolchain) == 3);
}

TEST_CASE("the nearest known name is suggested, and nothing when nothing is near") {
  CHECK(nearest_name("relo", {"relu", "gelu", "exp"}) == "relu");
  CHECK(nearest_name("completely_else", {"relu", "gelu"}).empty());
  CHECK(nearest_name(std::string(100000, 'x'), {"relu"}).empty());
}

TEST_CASE("every status and level survives the way to text and back") {
  for (const TrialStatus status : all_trial_statuses()) CHECK(trial_status_from_text(to_text(status)) == status);
  for (const VerifyLevel level : {VerifyLevel::kNone, VerifyLevel::kSimulated, VerifyLevel::kDevice})
    CHECK(verify_level_from_text(to_text(level)) == level);
  CHECK_FALSE(trial_status_from_text("fine").has_value());
}

TEST_CASE("a key depends on every part, on its name and on where one part ends") {
  const std::string base = KeyHasher().add("source", "ab").add("flags", "c").hex();
  CHECK(base.size() == 32);
  CHECK(base == KeyHasher().add("source", "ab").add("flags", "c").hex());
  CHECK(base != KeyHasher().add("source", "a").add("flags", "bc").hex());
  CHECK(base != KeyHasher().add("sourc", "eab").add("flags", "c").hex());
  CHECK(base != KeyHasher().add("flags", "c").add("source", "ab").hex());
}

}  // namespace kw
