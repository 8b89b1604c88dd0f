// The mutants of a kernel: its text with one fault of synchronisation planted by a named operator. Reads a PtxText, gives texts that
// ptxas accepts; programs that are the same by the rules of PTX (a doubled wait, two fences swapped) are not made.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/simulator/mutation/ptx_text.h"

namespace kw::simulate {

struct Mutant {
  std::string name;       ///< "<case>:<line>:<operator>", stable as long as the fixture is
  std::string operation;  ///< the operator: "drop-wait"
  /// New texts by index of the line; numbers of all lines stay, so that reports name the fixture's.
  std::map<std::size_t, std::string> lines;
};

/// All mutants of the kernel in `text`, sorted by line, names unique. `case_name` begins the names.
std::vector<Mutant> make_mutants(const PtxText& text, std::string_view case_name);

/// The module's whole text with the mutant's lines in place.
std::string apply(const PtxText& text, const Mutant& mutant);

}  // namespace kw::simulate
