// Walks a compiled program in blocks of up to 256 values along one index, each with its error bound. One object per thread.
// Part of the evaluator: compiled_program.h makes the nodes, reductions.h sums the blocks, evaluator.cpp deals out the samples.
// A frame binds index slots to numbers; at most one index at a time varies over the lanes of a block. Where a node cannot be evaluated
// for all lanes at once (a reduction per lane, say), it is evaluated lane by lane.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "generator/spec/evaluator.h"
#include "generator/spec/evaluator/compiled_program.h"
#include "generator/spec/evaluator/reductions.h"

namespace kw::generator {

/// Value of an index slot over the lanes: base + step · lane.
struct IndexValue {
  std::int64_t base = 0;
  std::int64_t step = 0;
};

struct Frame {
  std::array<IndexValue, kMaxIndices> index;
  std::uint64_t bound = 0;    ///< slots that have a value
  std::uint64_t varying = 0;  ///< slots with step != 0
  int lanes = 1;
  const unsigned char* active = nullptr;  ///< lanes that matter; null: all
};

/// 128-bit key of the caches; two independent mixes, so that a collision is out of reach.
struct CacheKey {
  std::uint64_t a = 0x243f6a8885a308d3u;  // digits of pi
  std::uint64_t b = 0x13198a2e03707344u;
  void add(std::uint64_t value);
  friend bool operator==(const CacheKey&, const CacheKey&) = default;
};
struct CacheKeyHash {
  size_t operator()(const CacheKey& key) const { return static_cast<size_t>(key.a ^ (key.b << 1)); }
};

class BlockEvaluator {
 public:
  BlockEvaluator(const CompiledProgram& program, const InputSource& inputs) : program_(program), inputs_(inputs) {}

  /// Value of a target's element before its final rounding.
  Bounded evaluate_target(int target, std::span<const std::int64_t> coordinates);
  /// First failure since creation; values are meaningless after one.
  const std::optional<Error>& failure() const { return failure_; }
  /// Between samples: drops caches that have grown beyond their limits.
  void trim_caches();

 private:
  class Buffer;
  struct Row {
    std::int64_t first = 0;
    std::vector<double> value, bound;
  };
  struct ReadAxes;

  Block evaluate(int id, const Frame& frame, Buffer& out);
  Block evaluate_call(const CompiledNode& node, const Frame& frame, Buffer& out);
  Block evaluate_where(const CompiledNode& node, const Frame& frame, Buffer& out);
  Block evaluate_logic(const CompiledNode& node, const Frame& frame, Buffer& out);
  Block evaluate_cast(const CompiledNode& node, const Frame& frame, Buffer& out);
  Block evaluate_index(const CompiledNode& node, const Frame& frame, Buffer& out);
  Block evaluate_read(const CompiledNode& node, const Frame& frame, Buffer& out);
  Block read_affine_row(const CompiledNode& node, const ReadAxes& axes, const Frame& frame, Buffer& out);
  Block read_input(const CompiledNode& node, const ReadAxes& axes, const Frame& frame, Buffer& out);
  Block read_target(const CompiledNode& node, const ReadAxes& axes, const Frame& frame, Buffer& out);
  Block evaluate_reduce(int id, const Frame& frame, Buffer& out);
  Bounded scalar_of(int id, const Frame& frame);

  Bounded target_value(int target, std::span<const std::int64_t> coordinates);
  bool bind_written(const CompiledStatement& statement, std::span<const std::int64_t> values, Frame& frame);
  bool resolve_groups(Frame& frame);
  std::int64_t find_group(const CompiledIndex& index, std::int64_t value);

  Bounded reduce_to_scalar(int id, const Frame& frame);
  const Row& reduce_to_row(int id, const Frame& frame);
  Bounded stream(const CompiledNode& node, Frame& frame);
  void collect(const CompiledNode& node, Frame& frame, Row& row);
  struct Range {
    std::int64_t low = 0, high = 0;
  };
  Range range_of(int slot, const Frame& frame);
  template <typename Visit>
  void sweep(const CompiledNode& node, size_t depth, Frame& frame, Visit&& visit);
  CacheKey key_of(int id, const Frame& frame) const;

  bool check_range(const CompiledNode& node, size_t axis, std::int64_t value);
  void fail_once(std::string message, const SourceRange& where);
  const std::vector<std::int64_t>& extents_of(const CompiledNode& node) const;
  std::string name_of(const CompiledNode& node) const;

  const CompiledProgram& program_;
  const InputSource& inputs_;
  std::optional<Error> failure_;
  std::vector<std::unique_ptr<double[]>> scratch_;
  size_t scratch_used_ = 0;
  std::unordered_map<CacheKey, Bounded, CacheKeyHash> scalars_;
  std::unordered_map<CacheKey, Row, CacheKeyHash> rows_;
  std::unordered_map<CacheKey, std::vector<double>, CacheKeyHash> input_rows_;
  size_t num_row_values_ = 0, num_input_values_ = 0;
};

}  // namespace kw::generator
