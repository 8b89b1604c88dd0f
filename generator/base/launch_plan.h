// The launch plan: everything the host must know to launch a variant, as data. Stored as JSON in the database, printed as C++
// by an export, evaluated by the tuner. Expressions range over the op's own variables:
//   dims by name ("M"), strides "A.stride0" in elements, pointer alignment "A.align" in bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "generator/base/dtype.h"
#include "generator/base/int_expr.h"

namespace kw {

enum class TensorRole { kIn = 0, kOut = 1, kInOut = 2 };
std::string_view to_text(TensorRole role);

/// One tensor in spec order; the caller passes one pointer per entry.
struct PlanTensor {
  std::string name;
  DType dtype = DType::kF16;
  TensorRole role = TensorRole::kIn;
  std::vector<IntExpr> shape;    ///< extents over dims
  std::vector<IntExpr> strides;  ///< elements; row-major expressions, or variables "A.stride0" when the spec says "any"
  int align_bytes = 16;          ///< what the pointer is promised to be aligned to
  bool is_list = false;          ///< the first axis counts tensors; the pointer is that of a table of their pointers, in device memory
};

/// A launch-time scalar in spec order (derived scalars are not here: they are folded into the kernel or into fields).
struct PlanScalar {
  std::string name;
  DType dtype = DType::kF32;
};

/// Scratch memory owned by the launcher.
struct PlanWorkspace {
  std::string name;
  IntExpr bytes;
  bool is_zeroed_once = false;  ///< zero before the first launch; the kernel leaves it zero again
};

/// A tensor as boxes that TMA copies: what cuTensorMapEncodeTiled is told. Dimension 0 is innermost and contiguous.
struct PlanTensorMap {
  DType dtype = DType::kF16;
  std::vector<IntExpr> extents;        ///< elements; one to five dimensions
  std::vector<IntExpr> strides_bytes;  ///< of dimensions 1 and up
  std::vector<IntExpr> box;            ///< elements, one for each dimension
  IntExpr swizzle_bytes;               ///< 0, 32, 64 or 128
  bool is_in_workspace = false;        ///< the field's source is a workspace, not a tensor of the op
};

/// One field of a kernel parameter. A parameter with several fields is a struct with C layout (natural alignment).
struct PlanField {
  enum class Kind { kTensor = 0, kWorkspace = 1, kInt32 = 2, kInt64 = 3, kScalar = 4, kTensorMap = 5 };
  Kind kind = Kind::kInt64;
  std::string name;                  ///< name in the kernel source, for the reader
  std::string source;                ///< kTensor, kTensorMap, kWorkspace: which one; kScalar: the scalar's name
  IntExpr value;                     ///< kInt32, kInt64
  DType scalar_dtype = DType::kF32;  ///< kScalar: type in the kernel
  PlanTensorMap map = {};            ///< kTensorMap: 128 bytes, aligned to 64
};
std::string_view to_text(PlanField::Kind kind);  ///< as in JSON: "tensor_map"
/// Whether the field's source is one of the plan's workspaces.
bool is_of_workspace(const PlanField& field);
/// Every expression of a field.
std::vector<IntExpr> expressions_of(const PlanField& field);
struct PlanParameter {
  std::string name;
  std::vector<PlanField> fields;
};

struct PlanLaunch {
  std::string kernel;           ///< extern "C" symbol
  std::array<IntExpr, 3> grid;  ///< a zero extent means: nothing to do, the launch is skipped
  bool is_persistent = false;   ///< fewer CTAs along x, in whole clusters, would do the same work
  bool is_dependent = false;    ///< may begin while the launch before it runs: the kernel itself waits (programmatic dependent launch)
  std::array<IntExpr, 3> block;
  std::array<IntExpr, 3> cluster = {IntExpr(1), IntExpr(1), IntExpr(1)};
  IntExpr dynamic_smem_bytes;
  std::vector<PlanParameter> parameters;
};

/// A rule on the problem under which the variant is legal; checked at query and before each launch.
struct PlanConstraint {
  std::string name;  ///< "a_vector_alignment"
  IntExpr rule;      ///< non-zero: legal
  std::string why;   ///< sentence for the user
};

struct LaunchPlan {
  std::vector<std::string> dims;  ///< launch-time dims in spec order; a compile-time one is fixed by a constraint
  std::vector<PlanTensor> tensors;
  std::vector<PlanScalar> scalars;
  std::vector<PlanWorkspace> workspaces;
  std::vector<PlanConstraint> constraints;
  std::vector<PlanLaunch> launches;
};

nlohmann::json to_json(const LaunchPlan& plan);
Result<LaunchPlan> launch_plan_from_json(const nlohmann::json& json);

/// One shape: values of dims, strides of tensors declared "any", alignment of pointers.
struct Problem {
  std::map<std::string, std::int64_t> dims;
  std::map<std::string, std::int64_t> strides;      ///< "A.stride0" -> elements
  std::map<std::string, std::int64_t> align_bytes;  ///< "A" -> bytes; missing means the spec's promise

  /// All variables a plan's expressions may use: dims, strides (row-major ones filled in from the plan), "A.align".
  IntBindings bindings(const LaunchPlan& plan) const;
  /// "K=4096,M=1024,N=4096" with strides after the dims: the key of a problem.
  std::string to_text() const;
  friend bool operator==(const Problem&, const Problem&) = default;
};
/// Reads "M=1024,N=4096,A.stride0=4104,A.align=2".
Result<Problem> problem_from_text(std::string_view text);

/// Gives a tensor's free strides (variables "A.stride0") that the problem leaves out: those of a tensor without gaps. A product beyond 64
/// bits gives 0, which every check of a tensor's size refuses.
void complete_strides(const std::string& tensor, std::span<const IntExpr> shape, std::span<const IntExpr> strides, Problem& problem);

/// The first constraint that the problem breaks, with its numbers: "a_vector_alignment: ...". Empty: legal.
std::string first_broken_constraint(const LaunchPlan& plan, const Problem& problem);
/// A false rule with its numbers: "smem <= max_smem_bytes: 245760 <= 232448 is false"; of an && the part that is false.
std::string describe_broken_rule(const IntExpr& rule, const IntBindings& bindings);

}  // namespace kw
