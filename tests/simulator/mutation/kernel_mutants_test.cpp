// The mutants of kernels in the style of other people's code, and the size of the whole suite.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "tests/catch.h"
#include "tests/simulator/mutation/mutation_cases.h"

namespace kw::simulate {
namespace {

std::vector<MutationCase> all_cases() {
  std::vector<MutationCase> all;
  for (const auto& cases : {sm90_cases(), sm80_cases(), small_kernel_cases()}) all.insert(all.end(), cases.begin(), cases.end());
  return all;
}

}  // namespace

TEST_CASE("faults planted in rows, reductions and matrices of other people's style are found, or are explained") {
  check_mutants(small_kernel_cases());
}

TEST_CASE("the suite has at least 400 mutants and at most one in twenty survives") {
  std::set<std::string> names;
  for (const MutationCase& each : all_cases()) {
    for (const Mutant& mutant : make_mutants(fixture_text(each), each.name)) CHECK(names.insert(mutant.name).second);
  }
  const auto survivors = explained_survivors(all_cases());
  for (const auto& [name, reason] : survivors) CHECK(names.count(name) == 1);
  CHECK(names.size() >= 400);
  CHECK(survivors.size() * 20 <= names.size());
}

// For bench/run_mutants_on_device and for a look at what an operator makes.
TEST_CASE("writes the text of every mutant to mutants/ of the build folder", "[.write]") {
  const std::filesystem::path folder = std::filesystem::path(KW_BINARY_DIR) / "mutants";
  std::filesystem::create_directories(folder);
  for (const MutationCase& each : all_cases()) {
    const PtxText text = fixture_text(each);
    for (const Mutant& mutant : make_mutants(text, each.name)) {
      std::string file = mutant.name + ".ptx";
      std::replace(file.begin(), file.end(), ':', '-');
      std::ofstream(folder / file) << apply(text, mutant);
    }
  }
}

}  // namespace kw::simulate
