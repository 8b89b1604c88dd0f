// A kernel in the form that is executed: each instruction is a function and byte offsets into a warp's registers.
// Made by decode_kernel (decode.h) once for a kernel; launches fill in its constants (parameters, addresses, special registers).
// Registers lie lane by lane: a 32-bit register is 32 words in a row, a predicate is one word with a bit a lane.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "simulator/machine/machine.h"
#include "simulator/ptx/module.h"
#include "simulator/tensor/convert.h"
#include "simulator/tensor/mma.h"
#include "simulator/tensor/wgmma.h"

namespace kw::simulate {

struct Frame;
struct Instr;
using Function = Outcome (*)(Frame& frame, const Instr& instr);

/// A register, or a constant that looks like one: `offset` bytes into the warp's registers.
struct Slot {
  std::uint32_t offset = 0;
  std::uint8_t bits = 32;  ///< 1 (predicate), 16, 32, 64, 128
};

/// How the scheduler treats an instruction besides calling its function.
enum class InstrKind : std::uint8_t {
  kPlain = 0,
  kBranch,  ///< to `target`
  kBranchIndexed,
  kExit,
  kAligned,  ///< all live lanes of the warp execute it together
  kMembers,  ///< the lanes named by slot `members` execute it together
};

constexpr std::uint32_t kNoGuard = ~std::uint32_t{0};

struct Instr {
  Function function = nullptr;
  std::uint32_t d = 0, a = 0, b = 0, c = 0;  ///< offsets of the usual operands
  std::uint32_t guard = kNoGuard;            ///< offset of the predicate
  LaneMask guard_flip = 0;                   ///< all ones when it is negated
  InstrKind kind = InstrKind::kPlain;
  bool may_park = false;
  bool touches_tensor_registers = false;  ///< registers that wgmma may own: see Program::touches
  std::uint8_t d_bits = 0, a_bits = 0, b_bits = 0;
  std::uint8_t option = 0;      ///< per function
  LaneMask flip = 0;            ///< all ones when the predicate operand is negated
  std::uint32_t target = 0;     ///< branches
  std::uint32_t members = 0;    ///< kMembers: offset of the member mask's slot
  std::uint32_t detail = 0;     ///< index into Program::details
  std::uint64_t immediate = 0;  ///< address offset, or per function
};

/// How a floating-point result is formed; the plain case (.rn, nothing else) has functions of its own.
struct FloatMode {
  Rounding rounding = Rounding::kNearestEven;
  bool is_ftz = false;
  bool saturates = false;
  bool has_relu = false;
  bool propagates_nan = false;  ///< .NaN of min and max
  bool is_approximate = false;
  bool is_full = false;  ///< div.full
};

/// What only some instructions need.
struct Detail {
  AccessKind access;
  AtomicKind atomic;
  ArriveKind arrive;
  WaitKind wait;
  FloatMode mode;
  FloatFormat from = FloatFormat::kF32, to = FloatFormat::kF32;
  ScalarType type = ScalarType::kNone, source_type = ScalarType::kNone;
  EncodeOptions encode;
  std::uint32_t element_bytes = 0;
  std::uint32_t num_elements = 1;
  bool is_signed = false;
  bool has_c = false;  ///< an optional operand is there
  Order order = Order::kWeak;
  Scope scope = Scope::kCta;
  std::vector<Slot> d, a, b, c;  ///< vector operands
  Slot address[3];               ///< of [..] operands; their offsets:
  std::uint64_t address_offset[3] = {0, 0, 0};
  Slot extra[3];  ///< further scalar operands
  MmaForm mma;
  WgmmaForm wgmma;
  std::vector<std::uint32_t> targets;             ///< brx.idx
  std::vector<std::uint32_t> tensor_d, tensor_a;  ///< wgmma: indices into Program::tensor_registers
};

/// A constant slot and where its value comes from.
struct Constant {
  enum class Kind : std::uint8_t { kBits = 0, kSpecial, kParameter, kParameterAddress, kModuleVariable, kShared, kLocal };
  Kind kind = Kind::kBits;
  Slot slot;
  std::uint64_t bits = 0;       ///< kBits: the value; others: offset in bytes
  std::uint32_t index = 0;      ///< kSpecial: which; kModuleVariable: index into Module::variables
  std::uint32_t num_bytes = 0;  ///< kParameter: bytes read
};

/// Where a kernel's own variables lie; the launch sizes shared and local memory from it.
struct KernelLayout {
  std::uint32_t static_shared_bytes = 0;  ///< dynamic shared memory starts here (already aligned for it)
  std::uint32_t local_bytes_per_thread = 0;
  std::vector<SharedSymbol> shared_symbols;  ///< the dynamic one has num_bytes 0: the launch knows its size
  std::vector<std::uint64_t> offset_by_symbol;
};

/// A register that some wgmma of the kernel uses, touched by another instruction.
struct TensorTouch {
  std::uint32_t reg = 0;  ///< index into Program::tensor_registers
  bool is_write = false;
};
struct TensorRegisterName {
  std::string name;
  std::uint32_t offset = 0;
};

struct SourceLine {
  std::string file;
  int line = 0;
};

/// The line of an instruction.
struct SourcePlace {
  int ptx_line = 0;
  std::string form;                 ///< "ld.global.nc.v4.f32"
  std::vector<SourceLine> sources;  ///< its own line, then the calls that it was inlined through, innermost first; empty: no .loc
};

struct Program {
  std::string kernel_name;
  std::vector<Instr> code;
  std::vector<Detail> details;
  std::vector<Constant> constants;
  std::vector<SourcePlace> places;          ///< by pc
  std::vector<std::uint32_t> block_starts;  ///< first pc of each basic block, ascending
  KernelLayout layout;
  std::uint32_t register_bytes = 0;  ///< of one warp, constants included
  std::uint32_t zeroed_bytes = 0;    ///< registers proper: the first bytes
  std::uint32_t parameter_bytes = 0;
  int compute_capability = 80;
  bool uses_wgmma = false;
  std::vector<TensorRegisterName> tensor_registers;  ///< accumulators and A fragments of wgmma
  std::vector<std::uint32_t> first_touch;            ///< by pc, one more at the end: range in `touches`
  std::vector<TensorTouch> touches;
  bool uses_global_atomics = false;  ///< atomics, acquire loads: CTAs of a grid may wait for each other
};

}  // namespace kw::simulate
