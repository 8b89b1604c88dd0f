// The decoder: from parsed instructions to functions with register offsets. Each family of instructions has a file that holds both its
// decoding and its functions (integer.cpp, float.cpp, ...); this header is what they share. Not for users: see executor.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "generator/base/error.h"
#include "simulator/execute/program.h"
#include "simulator/execute/warp.h"
#include "simulator/ptx/module.h"

namespace kw::simulate {

class Decoder {
 public:
  Decoder(const Module& module, const Kernel& kernel) : module_(module), kernel_(kernel) {}
  Result<Program> run();

 private:
  struct Predicate {
    std::uint32_t offset = 0;
    LaneMask flip = 0;
  };
  struct Address {
    Slot slot = {};
    std::uint64_t offset = 0;
    const Variable* variable = nullptr;  ///< when the base is a name
  };

  // decode.cpp
  Status lay_out_variables();
  void lay_out_registers();
  SourcePlace source_place(const Instruction& instruction) const;
  Status decode_all();
  Status decode(const Instruction& instruction, Instr& instr);
  Status decode_by_family(Instr& instr);
  void find_tensor_touches();
  void find_blocks();
  // operands.cpp
  tl::unexpected<Error> refuse(std::string why, Code code = Code::kNotSupported) const;
  std::size_t num_operands() const { return now_->operands.size(); }
  const Operand& operand(std::size_t i) const { return now_->operands[i]; }
  const Form& form() const { return *form_; }
  bool has(std::string_view modifier) const { return form_->has(modifier); }
  /// The type that the n-th modifier from the end names.
  ScalarType type(int n = 0) const { return form_->type_from_end(n); }
  Op op() const { return form_->row->op; }
  std::uint32_t constant(Constant wanted);
  std::uint32_t bits_constant(std::uint64_t bits, int width);
  Result<Slot> any_source(const Operand& operand, int immediate_bits, bool is_float = false);
  Result<Slot> any_destination(const Operand& operand, int sink_bits);
  /// Operand i as a source of exactly `bits`; an immediate takes that width. `is_float`: a fraction is converted to it.
  Result<std::uint32_t> source(std::size_t i, int bits, bool is_float = false);
  Result<std::uint32_t> source(const Operand& operand, int bits, bool is_float = false);
  Result<std::uint32_t> destination(std::size_t i, int bits);
  Result<std::uint32_t> destination(const Operand& operand, int bits);
  Result<Predicate> predicate_source(const Operand& operand);
  Result<std::uint32_t> predicate_destination(const Operand& operand);
  /// {..} or one register as slots of `bits` each; 0: any width from 16 on.
  Result<std::vector<Slot>> vector_sources(const Operand& operand, int bits, bool is_float = false);
  Result<std::vector<Slot>> vector_destinations(const Operand& operand, int bits);
  Result<Address> address(const Operand& operand);
  /// d, a and, where the form has them, b and c, all of `bits`.
  Status arithmetic_operands(Instr& instr, int bits, bool is_float);
  Detail& new_detail(Instr& instr);
  /// .rz, .rm, .rp; to the nearest even otherwise.
  Rounding rounding() const;
  /// The space that a modifier names ("shared::cluster"), kGeneric when none does. .const and .param are global memory.
  Space space() const;
  Order order() const;
  Scope scope(Scope otherwise) const;

  // one a family
  Status decode_integer(Instr& instr);  // integer.cpp
  Status decode_bits(Instr& instr);     // bits.cpp
  Status decode_predicate_logic(Instr& instr);
  Status decode_float(Instr& instr);    // float.cpp
  Status decode_half(Instr& instr);     // half.cpp
  Status decode_double(Instr& instr);   // float64.cpp
  Status decode_testp(Instr& instr);    // testp.cpp
  Status decode_compare(Instr& instr);  // compare.cpp
  Status decode_move(Instr& instr);     // move.cpp
  Status decode_convert(Instr& instr);  // convert.cpp
  Status decode_address(Instr& instr);  // address.cpp: cvta, mapa, isspacep
  Status decode_control(Instr& instr);  // control.cpp
  Status decode_load(Instr& instr);     // memory.cpp
  Status decode_store(Instr& instr);
  Status decode_atomic(Instr& instr);     // atomic.cpp
  Status decode_fence(Instr& instr);      // atomic.cpp
  Status decode_copy(Instr& instr);       // copy.cpp
  Status decode_bulk(Instr& instr);       // bulk.cpp
  Status decode_tensormap(Instr& instr);  // tensormap.cpp
  Status decode_barrier(Instr& instr);    // barrier.cpp
  Status decode_mbarrier(Instr& instr);   // mbarrier.cpp
  Status decode_warp(Instr& instr);       // collective.cpp
  Status decode_matrix(Instr& instr);     // matrix.cpp: ldmatrix, stmatrix, movmatrix, mma
  Status decode_wgmma(Instr& instr);      // wgmma.cpp
  std::vector<std::uint32_t> tensor_register_indices(const Operand& vector);

  const Module& module_;
  const Kernel& kernel_;
  Program program_;
  std::vector<Slot> register_slots_;
  std::map<std::tuple<int, int, std::uint64_t, std::uint32_t, std::uint32_t>, std::uint32_t> constants_;
  std::map<int, std::uint32_t> tensor_register_index_;  ///< by register of the kernel
  Slot scratch_;                                        ///< 128 bits a lane: what _ stands for
  Slot scratch_predicate_;
  const Instruction* now_ = nullptr;
  const Form* form_ = nullptr;
};

}  // namespace kw::simulate
