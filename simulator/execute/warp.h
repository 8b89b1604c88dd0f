// A warp at run time: registers, and its lanes as groups that share a program counter. The frame is what an instruction's function gets.
// Groups make divergence explicit: the one with the smallest pc runs first, equal pcs merge, and every group makes progress.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "simulator/execute/program.h"
#include "simulator/machine/machine.h"

namespace kw::simulate {

struct LaneGroup {
  enum class State : std::uint8_t {
    kRunnable = 0,
    kParked = 1,     ///< the machine said so; `wake` is its wake_count of then
    kGathering = 2,  ///< waits for other lanes of the warp at a collective instruction
  };
  std::uint32_t pc = 0;
  LaneMask lanes = 0;
  State state = State::kRunnable;
  std::uint64_t wake = 0;
};

struct FreeAligned {
  void operator()(std::byte* pointer) const { ::operator delete[](pointer, std::align_val_t{64}); }
};

struct WarpgroupState;

/// The registers of a CTA that setmaxnreg moves between warpgroups (seen on an H200: an increase past the pool waits for ever).
struct RegisterPool {
  std::uint32_t num_total = 0;  ///< registers a thread, summed over warps
  std::uint32_t num_taken = 0;
};

inline bool has_registers(const RegisterPool& pool, std::uint32_t num_now, std::uint32_t num_wanted) {
  return pool.num_taken - num_now + num_wanted <= pool.num_total;
}

/// What ends a wait that no event of the machine ends.
enum class OwnWait : std::uint8_t { kNone = 0, kWarpgroup = 1, kRegisters = 2 };

/// Who owns a register that wgmma uses, as one warp sees it.
struct TensorRegisterState {
  std::uint32_t busy_accumulator = 0;  ///< the wgmma group that writes it; free once that many groups are done
  std::uint32_t busy_source = 0;       ///< the group that reads it as A
  std::uint32_t owner_pc = 0;
  std::uint32_t written_epoch = 0;  ///< number of wgmma.fence executed before the last ordinary write
};

struct Warp {
  Cta* cta = nullptr;
  std::uint32_t index = 0;
  LaneMask live = 0;
  LaneMask carry = 0;  ///< the condition-code register of add.cc and its kin
  std::unique_ptr<std::byte[], FreeAligned> registers;
  std::vector<LaneGroup> groups;
  std::uint32_t last_pc = 0;  ///< of the group that used up its instructions: others come first next time
  bool is_rotated = false;
  OwnWait own_wait = OwnWait::kNone;  ///< all live lanes wait together
  RegisterPool* pool = nullptr;
  std::uint32_t num_registers = 0;  ///< a thread has now
  std::uint32_t num_wanted = 0;     ///< by the setmaxnreg.inc that waits
  // wgmma, only in kernels that use it
  WarpgroupState* warpgroup = nullptr;  ///< shared by the four warps
  std::vector<TensorRegisterState> tensor_registers;
  std::uint32_t num_fences = 0;      ///< wgmma.fence
  std::uint32_t num_committed = 0;   ///< groups
  std::uint32_t num_done = 0;        ///< groups that a wait has covered
  std::uint64_t num_operations = 0;  ///< mma and commit: place in the warpgroup's sequence
  std::uint64_t num_executed = 0;
};

/// Everything about a launch that instructions read; owned by the executor.
struct LaunchFacts {
  Machine* machine = nullptr;
  const Program* program = nullptr;
  TensorMath tensor_math;
  std::uint64_t* instruction_clock = nullptr;  ///< for %clock
  std::uint64_t parameter_address = 0;
};

struct Frame {
  const LaunchFacts& facts;
  Warp& warp;
  std::byte* registers;
  std::uint32_t pc = 0;
  LaneMask lanes = 0;  ///< after the guard

  Machine& machine() const { return *facts.machine; }
  Context context() const { return Context{warp.cta, warp.index, lanes, pc}; }
  const Detail& detail(const Instr& instr) const { return facts.program->details[instr.detail]; }
  template <typename T>
  T* at(std::uint32_t offset) const {
    return reinterpret_cast<T*>(registers + offset);
  }
  LaneMask& predicate(std::uint32_t offset) const { return *at<LaneMask>(offset); }
  /// The value of a slot of any width, zero-extended (128 bits: the low half).
  std::uint64_t value(Slot slot, int lane) const {
    switch (slot.bits) {
      case 1:
        return predicate(slot.offset) >> lane & 1;
      case 16:
        return at<std::uint16_t>(slot.offset)[lane];
      case 32:
        return at<std::uint32_t>(slot.offset)[lane];
      case 64:
        return at<std::uint64_t>(slot.offset)[lane];
      default:
        return at<std::uint64_t>(slot.offset)[2 * lane];
    }
  }
  /// Writes the low bits; 128-bit slots get a zero high half.
  void set_value(Slot slot, int lane, std::uint64_t bits) const {
    switch (slot.bits) {
      case 1:
        predicate(slot.offset) = (predicate(slot.offset) & ~(1u << lane)) | static_cast<LaneMask>(bits & 1) << lane;
        break;
      case 16:
        at<std::uint16_t>(slot.offset)[lane] = static_cast<std::uint16_t>(bits);
        break;
      case 32:
        at<std::uint32_t>(slot.offset)[lane] = static_cast<std::uint32_t>(bits);
        break;
      case 64:
        at<std::uint64_t>(slot.offset)[lane] = bits;
        break;
      default:
        at<std::uint64_t>(slot.offset)[2 * lane] = bits;
        at<std::uint64_t>(slot.offset)[2 * lane + 1] = 0;
    }
  }
  /// Sets the executing lanes' bits of a predicate.
  void set_predicate(std::uint32_t offset, LaneMask bits) const {
    LaneMask& word = predicate(offset);
    word = (word & ~lanes) | (bits & lanes);
  }
};

/// Calls body(lane) for each set lane, in ascending order.
template <typename Body>
inline void for_lanes(LaneMask lanes, Body&& body) {
  if (lanes == kAllLanes) {
    for (int lane = 0; lane < kLanes; ++lane) body(lane);
    return;
  }
  while (lanes != 0) {
    body(std::countr_zero(lanes));
    lanes &= lanes - 1;
  }
}

/// The value of a slot in the lowest executing lane: operands that must be equal in all lanes.
inline std::uint64_t uniform(const Frame& frame, Slot slot) {
  return frame.value(slot, frame.lanes == 0 ? 0 : std::countr_zero(frame.lanes));
}

}  // namespace kw::simulate
