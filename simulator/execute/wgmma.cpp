// wgmma: fence, mma_async from shared memory or registers, commit_group, wait_group. Place: simulator/execute/decoder.h.
// The product runs when the adversary says (Machine::tensor_issue); until a wait covers it the accumulators belong to it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "simulator/execute/decoder.h"
#include "simulator/execute/tensor_types.h"
#include "simulator/execute/warpgroup.h"

namespace kw::simulate {
namespace {

constexpr std::size_t kMaxPlans = 4096;

Outcome report(const Frame& frame, FindingKind kind, std::string message, std::string remedy) {
  frame.machine().report(Finding{.kind = kind,
                                 .message = std::move(message),
                                 .where = frame.machine().place(frame.context(), -1, "executes wgmma"),
                                 .other = std::nullopt,
                                 .remedy = std::move(remedy)});
  return Outcome::kFault;
}

bool is_whole_warpgroup(const Frame& frame) {
  return frame.lanes == kAllLanes && frame.machine().shape().num_warps() >= (frame.warp.index / kWarpgroupWarps + 1) * kWarpgroupWarps;
}

/// The warp's place in the warpgroup's sequence; null (with a finding) when another warp executes something else there.
WarpgroupOperation* next_operation(Frame& frame, bool is_commit) {
  Warp& warp = frame.warp;
  WarpgroupState& group = *warp.warpgroup;
  const std::uint64_t at = warp.num_operations - group.num_complete;
  if (at == group.open.size()) group.open.push_back(WarpgroupOperation{.pc = frame.pc, .is_commit = is_commit});
  WarpgroupOperation& operation = group.open[at];
  if (operation.pc == frame.pc) return &operation;
  report(frame, FindingKind::kDivergentAligned,
         "warp " + std::to_string(warp.index) + " executes wgmma at line " +
             std::to_string(frame.facts.program->places[frame.pc].ptx_line) + ", another warp of its warpgroup the one at line " +
             std::to_string(frame.facts.program->places[operation.pc].ptx_line),
         "PTX ISA, wgmma: all warps of a warpgroup execute the same wgmma instructions in the same order");
  return nullptr;
}

std::shared_ptr<const OperandPlan> plan_operand(Frame& frame, const WgmmaForm& form, WgmmaOperand operand, std::uint64_t descriptor) {
  WarpgroupState& group = *frame.warp.warpgroup;
  const auto key = std::tuple(frame.pc, static_cast<int>(operand), descriptor);
  const auto known = group.plans.find(key);
  if (known != group.plans.end()) return known->second;
  const Result<SmemDescriptor> decoded = decode_smem_descriptor(descriptor);
  if (!decoded) {
    report(frame, FindingKind::kBadOperand,
           "wgmma descriptor of " + std::string(operand == WgmmaOperand::kA ? "A" : "B") + ": " + decoded.error().message,
           "mask the shared address with 0x3ffff before it is shifted into the descriptor");
    return nullptr;
  }
  auto plan = std::make_shared<OperandPlan>();
  plan->chunks = operand_chunks(form, operand, *decoded);
  std::vector<std::uint32_t> sorted = plan->chunks;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  const std::uint32_t window = frame.machine().shared_base(*frame.warp.cta) & ~kSharedOffsetMask;
  for (const std::uint32_t chunk : sorted) {
    if (!plan->reads.empty() && plan->reads.back().address + plan->reads.back().num_bytes == (window | chunk)) {
      plan->reads.back().num_bytes += 16;
    } else {
      plan->reads.push_back(SharedRange{window | chunk, 16});
    }
  }
  plan->first = sorted.front();
  plan->end = sorted.back() + 16;
  if (group.plans.size() >= kMaxPlans) group.plans.clear();
  group.plans.emplace(key, plan);
  return plan;
}

WgmmaTile read_tile(const Machine& machine, const Cta& cta, const WgmmaForm& form, WgmmaOperand operand, const OperandPlan& plan) {
  std::vector<std::byte> span(plan.end - plan.first);
  machine.peek_shared(cta, (machine.shared_base(cta) & ~kSharedOffsetMask) | plan.first, span);
  std::vector<std::uint8_t> bytes(plan.chunks.size() * 16);
  for (std::size_t i = 0; i < plan.chunks.size(); ++i) std::memcpy(bytes.data() + 16 * i, span.data() + (plan.chunks[i] - plan.first), 16);
  return operand_from_chunks(form, operand, bytes);
}

/// The deferred product of a complete operation.
struct Product {
  Machine* machine = nullptr;
  const Cta* cta = nullptr;
  const Detail* detail = nullptr;
  TensorMath math = {};
  bool accumulates = false;
  std::shared_ptr<const OperandPlan> plan_a = nullptr;
  std::shared_ptr<const OperandPlan> plan_b = nullptr;
  std::vector<LaneRegister> a = {};
  std::shared_ptr<WarpgroupState> group = nullptr;

  void operator()() const {
    if (!group->is_alive) return;
    const WgmmaForm& form = detail->wgmma;
    const WgmmaTile tile_a =
        form.is_a_in_registers ? operand_from_registers(form, a) : read_tile(*machine, *cta, form, WgmmaOperand::kA, *plan_a);
    const WgmmaTile tile_b = read_tile(*machine, *cta, form, WgmmaOperand::kB, *plan_b);
    const std::size_t num = detail->d.size();
    std::vector<LaneRegister> sums(num * kWarpgroupWarps);
    for (std::size_t warp = 0; warp < kWarpgroupWarps; ++warp) {
      for (std::size_t i = 0; i < num; ++i) {
        std::memcpy(sums[warp * num + i].lane.data(), group->registers[warp] + detail->d[i].offset, sizeof(LaneRegister));
      }
    }
    wgmma(form, math, tile_a, tile_b, accumulates, sums);
    for (std::size_t warp = 0; warp < kWarpgroupWarps; ++warp) {
      for (std::size_t i = 0; i < num; ++i) {
        std::memcpy(group->registers[warp] + detail->d[i].offset, sums[warp * num + i].lane.data(), sizeof(LaneRegister));
      }
    }
  }
};

Outcome issue(Frame& frame, WarpgroupOperation& operation, const Detail& detail) {
  Product product{.machine = &frame.machine(), .cta = frame.warp.cta, .detail = &detail, .math = frame.facts.tensor_math};
  product.accumulates = operation.accumulates;
  product.a = std::move(operation.a);
  product.group = frame.warp.warpgroup->shared_from_this();
  std::vector<SharedRange> reads;
  if (!detail.wgmma.is_a_in_registers) {
    product.plan_a = plan_operand(frame, detail.wgmma, WgmmaOperand::kA, operation.descriptor_a);
    if (product.plan_a == nullptr) return Outcome::kFault;
    reads = product.plan_a->reads;
  }
  product.plan_b = plan_operand(frame, detail.wgmma, WgmmaOperand::kB, operation.descriptor_b);
  if (product.plan_b == nullptr) return Outcome::kFault;
  reads.insert(reads.end(), product.plan_b->reads.begin(), product.plan_b->reads.end());
  return frame.machine().tensor_issue(frame.context(), reads, std::move(product));
}

/// Marks this warp's part as issued; the fourth warp's call hands the operation to the machine.
Outcome arrive(Frame& frame, WarpgroupOperation& operation, const Detail* detail) {
  WarpgroupState& group = *frame.warp.warpgroup;
  operation.arrived = static_cast<std::uint8_t>(operation.arrived | 1u << (frame.warp.index % kWarpgroupWarps));
  ++frame.warp.num_operations;
  Outcome outcome = Outcome::kDone;
  while (!group.open.empty() && group.open.front().arrived == 0xf) {
    // Only the last arrival can complete an operation, and each warp arrives in order: this is the front one.
    WarpgroupOperation complete = std::move(group.open.front());
    group.open.pop_front();
    ++group.num_complete;
    outcome = complete.is_commit ? frame.machine().tensor_commit(frame.context()) : issue(frame, complete, *detail);
    if (outcome != Outcome::kDone) break;
  }
  return outcome;
}

bool check_fence(Frame& frame, const std::vector<std::uint32_t>& registers) {
  for (const std::uint32_t reg : registers) {
    const TensorRegisterState& state = frame.warp.tensor_registers[reg];
    if (state.written_epoch < frame.warp.num_fences) continue;
    report(
        frame, FindingKind::kAsyncMisuse,
        "wgmma uses register " + frame.facts.program->tensor_registers[reg].name + " without a wgmma.fence after its last ordinary write",
        "wgmma.fence.sync.aligned before the first wgmma and after each write of its registers");
    return false;
  }
  return true;
}

/// instr.c, flip: scale-d. extra[0], extra[1]: descriptors of A and B.
Outcome multiply_async(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  if (!is_whole_warpgroup(frame)) {
    return report(frame, FindingKind::kDivergentAligned, "wgmma needs all 128 threads of a warpgroup",
                  "launch blocks of a multiple of 128 threads");
  }
  if (!check_fence(frame, detail.tensor_d) || !check_fence(frame, detail.tensor_a)) return Outcome::kFault;
  WarpgroupOperation* operation = next_operation(frame, false);
  if (operation == nullptr) return Outcome::kFault;
  const bool is_first = operation->arrived == 0;
  const std::uint64_t descriptor_a = detail.wgmma.is_a_in_registers ? 0 : frame.value(detail.extra[0], 0);
  const std::uint64_t descriptor_b = frame.value(detail.extra[1], 0);
  const LaneMask scale = frame.predicate(instr.c) ^ instr.flip;
  bool is_uniform = scale == 0 || scale == kAllLanes;
  for (int lane = 1; lane < kLanes; ++lane) {
    is_uniform = is_uniform && frame.value(detail.extra[1], lane) == descriptor_b &&
                 (detail.wgmma.is_a_in_registers || frame.value(detail.extra[0], lane) == descriptor_a);
  }
  if (!is_first) {
    is_uniform = is_uniform && operation->descriptor_a == descriptor_a && operation->descriptor_b == descriptor_b &&
                 operation->accumulates == (scale != 0);
  }
  if (!is_uniform) {
    return report(frame, FindingKind::kBadOperand, "wgmma: descriptors and scale-d must be equal in all threads of the warpgroup",
                  "compute them from values that do not depend on the thread");
  }
  operation->descriptor_a = descriptor_a;
  operation->descriptor_b = descriptor_b;
  operation->accumulates = scale != 0;
  if (detail.wgmma.is_a_in_registers) {
    operation->a.resize(4 * kWarpgroupWarps);
    for (std::size_t i = 0; i < 4; ++i) {
      std::memcpy(operation->a[4 * (frame.warp.index % kWarpgroupWarps) + i].lane.data(), frame.at<std::uint32_t>(detail.a[i].offset),
                  sizeof(LaneRegister));
    }
  }
  const std::uint32_t group = frame.warp.num_committed + 1;
  for (const std::uint32_t reg : detail.tensor_d) {
    frame.warp.tensor_registers[reg].busy_accumulator = group;
    frame.warp.tensor_registers[reg].owner_pc = frame.pc;
  }
  for (const std::uint32_t reg : detail.tensor_a) {
    frame.warp.tensor_registers[reg].busy_source = group;
    frame.warp.tensor_registers[reg].owner_pc = frame.pc;
  }
  return arrive(frame, *operation, &detail);
}

Outcome fence(Frame& frame, const Instr&) {
  ++frame.warp.num_fences;
  return Outcome::kDone;
}

Outcome commit(Frame& frame, const Instr&) {
  if (!is_whole_warpgroup(frame)) {
    return report(frame, FindingKind::kDivergentAligned, "wgmma needs all 128 threads of a warpgroup",
                  "launch blocks of a multiple of 128 threads");
  }
  WarpgroupOperation* operation = next_operation(frame, true);
  if (operation == nullptr) return Outcome::kFault;
  ++frame.warp.num_committed;
  return arrive(frame, *operation, nullptr);
}

/// immediate: groups that may stay in flight.
Outcome wait(Frame& frame, const Instr& instr) {
  Warp& warp = frame.warp;
  warp.own_wait = warp.warpgroup->is_complete(warp) ? OwnWait::kNone : OwnWait::kWarpgroup;
  if (warp.own_wait != OwnWait::kNone) return Outcome::kParked;
  const auto pending = static_cast<std::uint32_t>(instr.immediate);
  const Outcome outcome = frame.machine().tensor_wait(frame.context(), pending);
  if (outcome == Outcome::kDone && warp.num_committed > pending) warp.num_done = std::max(warp.num_done, warp.num_committed - pending);
  return outcome;
}

}  // namespace

bool WarpgroupState::is_complete(const Warp& warp) const { return num_complete >= warp.num_operations; }

std::string WarpgroupState::describe_wait(const Warp& warp, const Program& program) const {
  if (num_complete >= warp.num_operations || open.empty()) return "";
  std::string text = "wgmma.wait_group: waits for";
  for (std::uint32_t i = 0; i < kWarpgroupWarps; ++i) {
    if ((open.front().arrived >> i & 1) == 0) text += " warp " + std::to_string(warp.index / kWarpgroupWarps * kWarpgroupWarps + i);
  }
  return text + " of its warpgroup to execute line " + std::to_string(program.places[open.front().pc].ptx_line);
}

void check_tensor_touches(const LaunchFacts& facts, Warp& warp, std::uint32_t pc, LaneMask lanes) {
  const Program& program = *facts.program;
  for (std::uint32_t i = program.first_touch[pc]; i < program.first_touch[pc + 1]; ++i) {
    const TensorTouch touch = program.touches[i];
    TensorRegisterState& state = warp.tensor_registers[touch.reg];
    if (touch.is_write) state.written_epoch = warp.num_fences;
    const bool is_accumulator = state.busy_accumulator > warp.num_done;
    if (!is_accumulator && !(touch.is_write && state.busy_source > warp.num_done)) continue;
    const Context context{warp.cta, warp.index, lanes, pc};
    const Context owner{warp.cta, warp.index, lanes, state.owner_pc};
    facts.machine->report(
        Finding{.kind = FindingKind::kAsyncMisuse,
                .message = "register " + program.tensor_registers[touch.reg].name + " is " + (touch.is_write ? "written" : "read") +
                           " while a wgmma in flight " + (is_accumulator ? "writes it as accumulator" : "reads it as A"),
                .where = facts.machine->place(context, -1, touch.is_write ? "writes a register" : "reads a register"),
                .other = facts.machine->place(owner, -1, "issued the wgmma"),
                .remedy = "wgmma.commit_group and wgmma.wait_group that covers the group before the register is touched"});
  }
}

std::vector<std::uint32_t> Decoder::tensor_register_indices(const Operand& vector) {
  std::vector<std::uint32_t> indices;
  for (const Operand& part : vector.parts) {
    if (part.kind != Operand::Kind::kRegister) continue;
    const auto [found, is_new] = tensor_register_index_.emplace(part.index, static_cast<std::uint32_t>(program_.tensor_registers.size()));
    if (is_new) {
      program_.tensor_registers.push_back(TensorRegisterName{kernel_.registers[static_cast<std::size_t>(part.index)].name,
                                                             register_slots_[static_cast<std::size_t>(part.index)].offset});
    }
    indices.push_back(found->second);
  }
  return indices;
}

Status Decoder::decode_wgmma(Instr& instr) {
  program_.uses_wgmma = true;
  instr.kind = InstrKind::kAligned;
  switch (op()) {
    case Op::kWgmmaFence:
      instr.function = &fence;
      return {};
    case Op::kWgmmaCommit:
      instr.function = &commit;
      return {};
    case Op::kWgmmaWait:
      instr.function = &wait;
      instr.may_park = true;
      instr.immediate = operand(0).bits;
      if (instr.immediate > 7) return refuse("wait_group " + std::to_string(instr.immediate) + ": must be 0 to 7", Code::kBadInput);
      return {};
    default:
      break;
  }
  Detail& detail = new_detail(instr);
  const std::string& shape = form().modifiers[3];
  const std::size_t at_k = shape.find('k');
  WgmmaForm wanted{.n = std::atoi(shape.c_str() + 4),
                   .k = at_k == std::string::npos ? 0 : std::atoi(shape.c_str() + at_k + 1),
                   .a = element_type(type(1)),
                   .b = element_type(type(0)),
                   .d = element_type(type(2))};
  wanted.is_a_in_registers = operand(1).kind == Operand::Kind::kVector;
  wanted.saturates = has("satfinite");
  // scale-a, scale-b, then trans-a (only when A is in shared memory) and trans-b.
  const auto sign = [&](std::size_t i, bool& negates) -> Status {
    if (i >= num_operands()) return {};
    const auto value = static_cast<std::int64_t>(operand(i).bits);
    if (value != 1 && value != -1) return refuse("imm-scale must be 1 or -1", Code::kBadInput);
    negates = value == -1;
    return {};
  };
  const auto flag = [&](std::size_t i, bool& is_set) -> Status {
    if (i >= num_operands()) return {};
    if (operand(i).bits > 1) return refuse("imm-trans must be 0 or 1", Code::kBadInput);
    is_set = operand(i).bits == 1;
    return {};
  };
  KW_TRY_VOID(sign(4, wanted.negates_a));
  KW_TRY_VOID(sign(5, wanted.negates_b));
  if (wanted.is_a_in_registers) {
    KW_TRY_VOID(flag(6, wanted.is_b_transposed));
    if (num_operands() > 7) return refuse("A from registers has no imm-trans-a", Code::kBadInput);
  } else {
    KW_TRY_VOID(flag(6, wanted.is_a_transposed));
    KW_TRY_VOID(flag(7, wanted.is_b_transposed));
  }
  const Result<WgmmaForm> known = make_wgmma_form(wanted);
  if (!known) return refuse(known.error().message);
  detail.wgmma = *known;
  KW_TRY(detail.d, vector_destinations(operand(0), 32));
  if (static_cast<int>(detail.d.size()) != known->d_registers || operand(0).kind != Operand::Kind::kVector) {
    return refuse("the accumulators must be " + std::to_string(known->d_registers) + " registers", Code::kBadInput);
  }
  detail.tensor_d = tensor_register_indices(operand(0));
  if (wanted.is_a_in_registers) {
    KW_TRY(detail.a, vector_sources(operand(1), 32));
    if (detail.a.size() != 4) return refuse("A from registers must be 4 registers", Code::kBadInput);
    detail.tensor_a = tensor_register_indices(operand(1));
  } else {
    KW_TRY(const std::uint32_t descriptor, source(1, 64));
    detail.extra[0] = Slot{descriptor, 64};
  }
  KW_TRY(const std::uint32_t descriptor, source(2, 64));
  detail.extra[1] = Slot{descriptor, 64};
  KW_TRY(const Predicate scale, predicate_source(operand(3)));
  instr.c = scale.offset;
  instr.flip = scale.flip;
  instr.function = &multiply_async;
  return {};
}

}  // namespace kw::simulate
