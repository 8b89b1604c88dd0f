// The values of an epilogue with equal subexpressions made one: how often each is used, whether it differs from lane to lane
// (element to element of a vector), and whether it may be computed before it is known to be needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "generator/lower/epilogue_reads.h"

namespace kw::generator {

class ValueTable {
 public:
  struct Entry {
    ExprRef node;
    std::vector<int> operands;  ///< of the node; for a read that is no vector load: the atoms of its offset
    int num_uses = 0;
    bool is_per_lane = false;     ///< depends on n or on the accumulator
    bool reads_in_place = false;  ///< contains a read that must stay where it is
    bool is_constant = true;      ///< numbers alone
    std::string name_hint;        ///< of a derived scalar
  };

  ValueTable(const Program& program, const std::vector<EpilogueRead>& reads);

  /// Position of the value; equal values have one position.
  int intern(const ExprRef& expr);
  const Entry& at(int position) const { return entries_[static_cast<std::size_t>(position)]; }
  int num_entries() const { return static_cast<int>(entries_.size()); }
  /// Counts one more use from outside (an output).
  void add_use(int position) { ++entries_[static_cast<std::size_t>(position)].num_uses; }
  /// The read behind a kRead entry, or null for a value from outside: the accumulator, the result of a reduction.
  const EpilogueRead* read_of(const ExprNode& node) const;

 private:
  int add(const ExprRef& expr);
  void classify(Entry& entry) const;

  const Program& program_;
  const std::vector<EpilogueRead>& reads_;
  std::map<std::string, std::size_t> reads_by_text_;
  std::map<const ExprNode*, int> by_node_;
  std::map<std::string, int> by_key_;
  std::vector<Entry> entries_;
  std::vector<ExprRef> alive_;  ///< keeps the nodes behind by_node_
};

}  // namespace kw::generator
