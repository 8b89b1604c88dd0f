// Writes values as the statements of a hook's body: what all lanes of a vector share before the loop over the lanes, the rest in it.
// What a kernel's kind of hook decides is left to a derived writer: where values from outside come from, how vectors are loaded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "generator/lower/epilogue_args.h"
#include "generator/lower/value_lowering.h"
#include "generator/lower/value_table.h"

namespace kw::generator {

/// A hook of more text than this comes from an expression nobody wrote by hand.
constexpr std::size_t kMaxTextBytes = 200'000;

/// x ^ 2 is x * x.
ExprRef with_squares(const ExprRef& expr);

/// How neighbouring elements along n are reached from (m, n) on.
struct VectorAccess {
  std::string address;   ///< "args.x + m * args.x_stride_m + n"
  std::string stride;    ///< of n, elements
  std::string aligned;   ///< condition: wherever n is a multiple of kVec, vectors of kVec elements are aligned to their whole
  IntExpr misalignment;  ///< 0 where this holds at 16 bytes
};

class ValueWriter {
 public:
  ValueWriter(const PatternMatch& match, const Program& program);
  virtual ~ValueWriter() = default;
  ValueWriter(const ValueWriter&) = delete;
  ValueWriter& operator=(const ValueWriter&) = delete;

 protected:
  /// A value that no expression makes: the accumulator, the result of a reduction.
  virtual LoweredValue outside_value(const ExprNode& node) = 0;
  /// Neighbouring elements that may be loaded before they are needed; the result is the element of lane i.
  virtual Result<LoweredValue> vector_read(int position, const Tensor& tensor, const EpilogueRead& read, const std::string& type) = 0;
  /// One element that all lanes share and that may be loaded before it is needed.
  virtual LoweredValue shared_read(int position, const Tensor& tensor, const EpilogueRead& read, const LoweredValue& element) = 0;

  /// Text of the value; statements it needs are added to before_ and loop_.
  Result<LoweredValue> lower(int position);
  /// The value that is stored to an output of this type: integers saturate, as the reference does.
  Result<LoweredValue> output_value(const std::string& output, DType dtype, int position);
  Result<VectorAccess> vector_access(const Tensor& tensor, const LinearForm& offset);
  /// What an address gets added where a subscript of the read is data; empty for most. A vector is asked for its first and last element.
  Result<std::string> axis_checks(const ExprNode& read, const Tensor& tensor, bool is_vector);
  LoweredValue named(const LoweredValue& value, const std::string& wanted, std::string& statements, const char* indent);
  /// Starts the body of another hook: values are written anew.
  void begin_body();
  /// What a body under work has so far: values that have a text in it, its statements, its local names.
  struct Body {
    std::map<int, LoweredValue> lowered, hoisted;
    std::string before, loop;
    NameTable locals;
  };
  static Body new_body();
  /// Goes on with `other`, and leaves in it what was under work: each hook is a function, so no value of one may be named in another.
  void swap_body(Body& other);

  const PatternMatch& match_;
  const Program& program_;
  SupportFunctions support_;
  OperationLowering operations_;
  std::vector<EpilogueRead> reads_;
  ValueTable values_;
  EpilogueArguments arguments_;
  NameTable locals_;
  std::set<std::string> written_;
  std::string before_, loop_;
  bool is_lane_guarded_ = false;  ///< a lane's own read must not happen beyond count

 private:
  Result<std::string> offset_terms(const std::string& tensor, const LinearForm& offset, bool with_n);
  /// Pointer to it; of a list, to that of tensor m.
  std::string first_element(const Tensor& tensor);
  std::string constant_term(const std::string& tensor, const IntExpr& offset);
  Result<std::string> element_index(const EpilogueRead& read);
  Result<LoweredValue> lower_read(int position);
  LoweredValue hoisted(int position, const LoweredValue& value);
  Result<LoweredValue> lower_leaf(const ValueTable::Entry& entry);
  Result<LoweredValue> lower_new(int position);

  std::map<int, LoweredValue> lowered_, hoisted_;
};

}  // namespace kw::generator
