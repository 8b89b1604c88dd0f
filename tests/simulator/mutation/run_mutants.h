// Runs the mutants of whole kernels on the simulator and judges the suite: which are found, which survive, which survivors are explained.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "simulator/launch/simulation.h"
#include "tests/simulator/mutation/mutate.h"

namespace kw::simulate {

struct PreparedLaunch {
  LaunchCall call;
  std::vector<std::uint64_t> outputs;  ///< addresses of the buffers whose bytes are compared
};

/// A kernel at small problems: with tails, several turns of its loops and, where it can, several tiles a CTA.
struct MutationCase {
  std::string name;     ///< first part of the mutants' names
  std::string fixture;  ///< tests/simulator/kernels/FIXTURE
  std::string kernel;
  /// Further problems are tried when the ones before show nothing: the rest loops of unrolled code.
  std::vector<std::function<PreparedLaunch(Simulation&)>> problems;
};

/// The fixture's text and the mutants of the case's kernel.
PtxText fixture_text(const MutationCase& mutation_case);

/// How a run of a mutant ended.
struct MutantVerdict {
  std::string name, operation;
  bool is_found = false;
  std::string shown = "";  ///< "lazy: race: ..." or "eager: wrong output"
};

/// Judges mutants of one case against the unchanged kernel, whose runs must be clean and whose outputs are the right ones.
class MutantJudge {
 public:
  explicit MutantJudge(const MutationCase& mutation_case);
  /// Stops at the first problem and schedule that show the mutant.
  MutantVerdict judge(const Mutant& mutant) const;
  const PtxText& text() const { return text_; }

 private:
  /// What one run shows; empty when it shows nothing.
  std::string run(const Module& module, std::size_t problem, std::size_t schedule) const;
  struct Baseline {
    std::vector<std::vector<std::byte>> outputs;
    std::uint64_t num_warp_instructions = 0;
  };
  const MutationCase& case_;
  PtxText text_;
  std::vector<std::vector<Baseline>> baselines_;  ///< by problem and schedule
};

/// Mutant -> reason, the entries of survivors.txt for `cases`.
std::map<std::string, std::string> explained_survivors(const std::vector<MutationCase>& cases);

/// Runs all mutants of `cases` in a Catch test: prints counts by operator and the survivors, writes what showed each to
/// mutants/FIRST_CASE.tsv of the build folder, and fails when a survivor has no entry in survivors.txt or an entry does not survive.
void check_mutants(const std::vector<MutationCase>& cases);

}  // namespace kw::simulate
