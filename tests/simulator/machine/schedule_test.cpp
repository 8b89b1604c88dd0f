// Texts of schedules and findings.
// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.h"
#include "tests/simulator/machine/small_machine.h"

namespace kw::simulate {
namespace {

TEST_CASE("schedules have a text form that reads back") {
  for (const std::string text : {"eager", "lazy", "random:1", "random:7", "lazy:3", "random:18446744073709551615"}) {
    const auto schedule = schedule_from_text(text);
    REQUIRE(schedule.has_value());
    CHECK(to_text(*schedule) == text);
  }
  CHECK(to_text(*schedule_from_text("random")) == "random:1");
}

TEST_CASE("bad schedules are refused with the rule") {
  for (const std::string text : {"", "Eager", "random:", "random:x", "random:-1", "random:1x", "random:18446744073709551616", ":3"}) {
    CHECK(!schedule_from_text(text).has_value());
  }
  CHECK(schedule_from_text("fast").error().message == "schedule 'fast': must be eager, lazy or random:SEED");
}

TEST_CASE("kinds of findings have names that read back") {
  for (int kind = 0; kind <= static_cast<int>(FindingKind::kTrap); ++kind) {
    const auto value = static_cast<FindingKind>(kind);
    CHECK(finding_kind_from_text(to_text(value)) == value);
  }
  CHECK(!finding_kind_from_text("nothing").has_value());
}

TEST_CASE("findings beyond the limit are counted, not kept") {
  Findings findings(2);
  for (std::uint32_t pc = 0; pc < 5; ++pc) findings.add({FindingKind::kRace, "m", {0, 0, -1, pc, "reads"}, std::nullopt, ""});
  findings.add({FindingKind::kRace, "m", {0, 0, -1, 4, "reads"}, std::nullopt, ""});
  CHECK(findings.all().size() == 2);
  CHECK(findings.num_dropped() == 4);
}

TEST_CASE("CTAs of a cluster have their ids in x, y, z order") {
  SmallMachine m({.grid = {4, 6, 2}, .block = {32, 1, 1}, .cluster = {2, 3, 1}});
  const auto second = m.machine.admit(3);
  REQUIRE(second.size() == 6);
  CHECK(m.machine.ctaid(*second[0]) == std::array<std::uint32_t, 3>{2, 3, 0});
  CHECK(m.machine.ctaid(*second[5]) == std::array<std::uint32_t, 3>{3, 5, 0});
  CHECK(m.machine.linear_cta(*second[5]) == 3 + 4 * 5);
  CHECK(m.machine.rank_in_cluster(*second[5]) == 5);
  CHECK(m.machine.shared_base(*second[5]) == 0x5000400);
}

}  // namespace
}  // namespace kw::simulate
