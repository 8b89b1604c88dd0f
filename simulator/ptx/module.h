// A parsed PTX text as plain data: module variables, kernels, registers, instructions with resolved operands.
// Made by parse_ptx (simulator/ptx/parser.h) and read by simulator/execute. Every register, label and symbol is an index, every
// instruction's form is a row of the opcode table; what the forms do is not known here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/ptx/opcodes.h"
#include "simulator/ptx/scalar_type.h"

namespace kw::simulate {

enum class StateSpace : std::uint8_t { kGlobal = 0, kConst = 1, kShared = 2, kLocal = 3, kParam = 4 };
std::string_view to_text(StateSpace space);

/// A variable with an address: of the module, of a kernel's body, or one of its parameters.
struct Variable {
  std::string name = {};
  StateSpace space = StateSpace::kGlobal;
  std::uint32_t align_bytes = 1;
  std::uint64_t size_bytes = 0;            ///< 0 for `extern .shared x[]`
  bool is_extern = false;                  ///< dynamic shared memory
  std::uint64_t offset_bytes = 0;          ///< of parameters: place in the parameter buffer
  std::vector<std::uint8_t> initial = {};  ///< empty: zeros (global, const) or nothing (others)
  int line = 0;
};

struct Register {
  std::string name = {};
  ScalarType type = ScalarType::kB32;
};

/// Special registers by index; names in `special_register_names`.
enum class SpecialRegister : std::uint8_t {
  kTidX = 0,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneid,
  kWarpid,
  kNwarpid,
  kSmid,
  kNsmid,
  kGridid,
  kClusteridX,
  kClusteridY,
  kClusteridZ,
  kNclusteridX,
  kNclusteridY,
  kNclusteridZ,
  kClusterCtaidX,
  kClusterCtaidY,
  kClusterCtaidZ,
  kClusterNctaidX,
  kClusterNctaidY,
  kClusterNctaidZ,
  kClusterCtarank,
  kClusterNctarank,
  kIsExplicitCluster,
  kLanemaskEq,
  kLanemaskLe,
  kLanemaskLt,
  kLanemaskGe,
  kLanemaskGt,
  kDynamicSmemSize,
  kTotalSmemSize,
  kClock,
  kClockHi,
  kClock64,
  kGlobaltimer,
  kGlobaltimerLo,
};
std::optional<SpecialRegister> special_register_from_text(std::string_view name);
std::string_view to_text(SpecialRegister name);

struct Operand {
  enum class Kind : std::uint8_t {
    kNone = 0,
    kRegister,   ///< `index` into Kernel::registers
    kImmediate,  ///< `bits`, `immediate_type` kS64, kF32 or kF64
    kSpecial,    ///< `index` is a SpecialRegister
    kSymbol,     ///< address of a variable: `index` as in Kernel::symbol, plus `bits`
    kMemory,     ///< [parts[0] + bits]; parts[1], if there, is the coordinate vector of a tensor copy
    kVector,     ///< {parts...}
    kPair,       ///< parts[0] | parts[1]
    kLabel,      ///< `index` of the instruction it stands before
    kSink,       ///< _
  };
  Kind kind = Kind::kNone;
  bool is_negated = false;  ///< !%p
  ScalarType immediate_type = ScalarType::kNone;
  int index = -1;
  std::uint64_t bits = 0;
  std::vector<Operand> parts = {};
};

struct Instruction {
  int form = 0;    ///< index into Module::forms
  int guard = -1;  ///< predicate register, or -1
  bool is_guard_negated = false;
  int line = 0;         ///< of the PTX text
  int source_file = 0;  ///< .file number of the last .loc; 0 when there is none
  int source_line = 0;
  int call_site = -1;  ///< of inlined code: where it was called, index into Module::call_sites
  std::vector<Operand> operands = {};
};

/// One opcode with its modifiers as it appears in a text, and the table row that it matched.
struct Form {
  std::string text = {};                    ///< "ld.global.nc.v4.f32"
  std::vector<std::string> modifiers = {};  ///< "global", "nc", "v4", "f32"
  const OpcodeRow* row = nullptr;
  bool has(std::string_view modifier) const;
  /// The n-th modifier from the end that names a scalar type; kNone when there is none.
  ScalarType type_from_end(int n) const;
};

struct Label {
  std::string name = {};
  int instruction = 0;
};

/// `required` 0: the text does not say.
struct Extent3 {
  std::uint32_t x = 0;
  std::uint32_t y = 0;
  std::uint32_t z = 0;
};

struct Kernel {
  std::string name = {};
  int line = 0;
  std::vector<Variable> parameters = {};
  std::uint64_t parameter_bytes = 0;
  std::size_t num_module_variables = 0;  ///< declared before this kernel: the first symbol indices
  std::vector<Variable> variables = {};  ///< .shared and .local of the body
  std::vector<Register> registers = {};
  std::vector<Instruction> instructions = {};
  std::vector<Label> labels = {};
  std::vector<std::vector<int>> branch_targets = {};  ///< of .branchtargets: instruction indices; brx.idx names them by index
  Extent3 max_threads = {};                           ///< .maxntid
  Extent3 required_threads = {};                      ///< .reqntid
  Extent3 required_cluster = {};                      ///< .reqnctapercluster
  bool is_explicit_cluster = false;
};

/// Where a function was inlined (.loc ... inlined_at); `outer` is the place that its caller was inlined at in turn.
struct CallSite {
  int file = 0;
  int line = 0;
  int outer = -1;  ///< index into Module::call_sites, smaller than its own
};

struct Module {
  std::string file = {};
  int version_major = 0;
  int version_minor = 0;
  std::string target = {};                     ///< "sm_80"
  std::vector<std::string> source_files = {};  ///< by .file number; 0 is empty
  std::vector<Variable> variables = {};
  std::vector<CallSite> call_sites = {};
  std::vector<Form> forms = {};
  std::vector<Kernel> kernels = {};

  const Kernel* find_kernel(std::string_view name) const;
  /// What Operand::kSymbol's index means in `kernel`: module variables first, then parameters, then the body's variables.
  const Variable& symbol(const Kernel& kernel, int index) const;
};

}  // namespace kw::simulate
