// Generated text and launch plans are compared with the files under tests/golden. After a change that is meant to change them:
// KW_UPDATE_GOLDEN=1 test_emit, then review the difference in the same commit.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/catch.h"
#include "tests/emit/golden_cases.h"

using namespace kw;
using namespace kw::generator;
using namespace kw::generator::testing;

namespace {

std::string golden_path(const std::string& name) { return std::string(KW_SOURCE_DIR) + "/tests/golden/" + name; }

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The one normaliser: spaces at line ends and blank lines at the end do not count.
std::string normalised(const std::string& text) {
  std::istringstream lines(text);
  std::string result, line;
  while (std::getline(lines, line)) result += line.substr(0, line.find_last_not_of(" \t\r") + 1) + "\n";
  return result.substr(0, result.find_last_not_of('\n') + 1) + "\n";
}

/// The first line that differs, as "line 12: <kept> became <text>"; empty when there is none.
std::string first_difference(const std::string& kept, const std::string& text) {
  std::istringstream kept_lines(kept), lines(text);
  for (int number = 1;; ++number) {
    std::string before = "(end)", now = "(end)";
    const bool has_before = static_cast<bool>(std::getline(kept_lines, before));
    const bool has_now = static_cast<bool>(std::getline(lines, now));
    if (!has_before && !has_now) return "";
    if (has_before != has_now || before != now) return "line " + std::to_string(number) + ": " + before + " became " + now;
  }
}

/// Compares, or writes the file when the user asked for it.
void check_golden(const std::string& name, const std::string& text) {
  const std::string path = golden_path(name);
  if (std::getenv("KW_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << normalised(text);
    return;
  }
  INFO("differs from " << path << "; if it is meant to: KW_UPDATE_GOLDEN=1 test_emit");
  REQUIRE(std::filesystem::exists(path));
  CHECK(first_difference(normalised(read_file(path)), normalised(text)) == "");
}

}  // namespace

TEST_CASE("the emitted text and launch plan of each golden variant are what they were") {
  std::set<std::string> names;
  for (const GoldenCase& golden : golden_cases()) {
    const Result<Variant> variant = emit(golden);
    INFO(golden.program.name);
    if (!variant) FAIL(to_text(variant.error()) << "\n" << variant.error().detail);
    CHECK(names.insert(variant->id).second);
    check_golden(variant->id + ".cu", variant->source);
    check_golden(variant->id + ".json", to_json(variant->plan).dump(1));
  }
}

TEST_CASE("no golden file is without its case") {
  std::set<std::string> known;
  for (const GoldenCase& golden : golden_cases()) {
    const Result<Variant> variant = emit(golden);
    REQUIRE(variant);
    known.insert(variant->id);
  }
  for (const auto& entry : std::filesystem::directory_iterator(golden_path(""))) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".cu" && extension != ".json") continue;
    INFO(entry.path().filename());
    CHECK(known.count(entry.path().stem().string()) == 1);
  }
}

TEST_CASE("emitting twice gives the same bytes") {
  const GoldenCase golden = golden_cases().front();
  const Result<Variant> first = emit(golden), second = emit(golden);
  REQUIRE(first);
  REQUIRE(second);
  CHECK(first->source == second->source);
  CHECK(first->source_hash == second->source_hash);
  CHECK(to_json(first->plan) == to_json(second->plan));
}
