// The frame of the decoder: layout of variables and registers, the loop over instructions, basic blocks.
// Place: simulator/execute/decoder.h; the families' files hold what instructions mean.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <set>

#include "simulator/execute/decoder.h"
#include "simulator/execute/executor.h"
#include "simulator/execute/register_plan.h"

namespace kw::simulate {
namespace {

constexpr std::uint64_t kMaxSharedBytes = 1 << 20;   // more than any device has; the launch checks against the architecture
constexpr std::uint64_t kMaxLocalBytes = 512 << 10;  // CUDA Programming Guide, technical specifications: local memory of a thread
constexpr std::uint32_t kSlotAlign = 64;
constexpr std::size_t kMaxCallDepth = 8;  // of inlined code, for reports

std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

std::uint32_t slot_bytes(int bits) { return static_cast<std::uint32_t>(bits) / 8 * kLanes; }

}  // namespace

Result<Program> Decoder::run() {
  program_.kernel_name = kernel_.name;
  program_.parameter_bytes = static_cast<std::uint32_t>(kernel_.parameter_bytes);
  program_.compute_capability = std::atoi(module_.target.c_str() + 3);
  KW_TRY_VOID(lay_out_variables());
  lay_out_registers();
  KW_TRY_VOID(decode_all());
  find_tensor_touches();
  find_blocks();
  return std::move(program_);
}

/// Shared: the module's fixed arrays, then the body's, then all dynamic ones at one place. Local: one after another.
Status Decoder::lay_out_variables() {
  KernelLayout& layout = program_.layout;
  const std::size_t num_symbols = kernel_.num_module_variables + kernel_.parameters.size() + kernel_.variables.size();
  layout.offset_by_symbol.assign(num_symbols, 0);
  std::uint64_t shared = 0;
  std::uint64_t local = 0;
  for (const bool is_dynamic : {false, true}) {
    std::uint64_t dynamic_align = 16;
    for (std::size_t i = 0; i < num_symbols; ++i) {
      const Variable& variable = module_.symbol(kernel_, static_cast<int>(i));
      if (variable.space == StateSpace::kParam) layout.offset_by_symbol[i] = variable.offset_bytes;
      if (variable.space == StateSpace::kLocal && !is_dynamic) {
        local = round_up(local, variable.align_bytes);
        layout.offset_by_symbol[i] = local;
        local += variable.size_bytes;
      }
      const bool is_open = variable.is_extern && variable.size_bytes == 0;
      if (variable.space != StateSpace::kShared || is_open != is_dynamic) continue;
      if (is_dynamic) {
        dynamic_align = std::max<std::uint64_t>(dynamic_align, variable.align_bytes);
        continue;
      }
      shared = round_up(shared, variable.align_bytes);
      layout.offset_by_symbol[i] = shared;
      layout.shared_symbols.push_back(
          SharedSymbol{variable.name, static_cast<std::uint32_t>(shared), static_cast<std::uint32_t>(variable.size_bytes)});
      shared += variable.size_bytes;
      if (shared > kMaxSharedBytes) break;
    }
    if (!is_dynamic) continue;
    shared = round_up(shared, dynamic_align);
    for (std::size_t i = 0; i < num_symbols; ++i) {
      const Variable& variable = module_.symbol(kernel_, static_cast<int>(i));
      if (variable.space != StateSpace::kShared || !variable.is_extern || variable.size_bytes != 0) continue;
      layout.offset_by_symbol[i] = shared;
      layout.shared_symbols.push_back(SharedSymbol{variable.name, static_cast<std::uint32_t>(shared), 0});
    }
  }
  if (shared > kMaxSharedBytes || local > kMaxLocalBytes) {
    return fail(Stage::kVerify, Code::kBadInput,
                "kernel " + kernel_.name + ": " + std::to_string(shared) + " bytes of static shared and " + std::to_string(local) +
                    " bytes of local memory: at most " + std::to_string(kMaxSharedBytes) + " and " + std::to_string(kMaxLocalBytes),
                SourceRange{module_.file, kernel_.line, 0});
  }
  layout.static_shared_bytes = static_cast<std::uint32_t>(shared);
  layout.local_bytes_per_thread = static_cast<std::uint32_t>(round_up(local, 16));
  return {};
}

/// Predicates first (a word each), then the shared places of each width (register_plan.h), then the scratch slots; constants follow.
/// Every place begins at a multiple of 64 bytes.
void Decoder::lay_out_registers() {
  const std::size_t num = kernel_.registers.size();
  const RegisterPlan plan = plan_registers(module_, kernel_);
  register_slots_.resize(num);
  std::uint32_t offset = kSlotAlign;  // no register has offset 0, so that 0 can mean "none"
  for (std::size_t i = 0; i < num; ++i) {
    if (bits_of(kernel_.registers[i].type) != 1) continue;
    register_slots_[i] = Slot{offset, 1};
    offset += 4;
  }
  offset = static_cast<std::uint32_t>(round_up(offset, kSlotAlign));
  scratch_predicate_ = Slot{offset, 1};
  offset += kSlotAlign;
  scratch_ = Slot{offset, 128};
  offset += slot_bytes(128);
  std::uint32_t first[4];
  for (int width = 0; width < 4; ++width) {
    first[width] = offset;
    offset += plan.num_places[width] * slot_bytes(16 << width);
  }
  for (std::size_t i = 0; i < num; ++i) {
    const int bits = bits_of(kernel_.registers[i].type);
    if (bits == 1) continue;
    // 8-bit registers exist for loads and conversions only; they take a 16-bit place.
    const int width = width_class(bits);
    register_slots_[i] = Slot{first[width] + plan.place[i] * slot_bytes(16 << width), static_cast<std::uint8_t>(16 << width)};
  }
  program_.zeroed_bytes = offset;
  program_.register_bytes = offset;
}

SourcePlace Decoder::source_place(const Instruction& instruction) const {
  const auto name = [&](int file) {
    const auto index = static_cast<std::size_t>(file);
    return index < module_.source_files.size() ? module_.source_files[index] : std::string();
  };
  SourcePlace place{instruction.line, module_.forms[static_cast<std::size_t>(instruction.form)].text, {}};
  if (instruction.source_line != 0) place.sources.push_back({name(instruction.source_file), instruction.source_line});
  for (int site = instruction.call_site; site >= 0 && place.sources.size() < kMaxCallDepth;) {
    const CallSite& call = module_.call_sites[static_cast<std::size_t>(site)];
    place.sources.push_back({name(call.file), call.line});
    site = call.outer;
  }
  return place;
}

Status Decoder::decode_all() {
  program_.code.resize(kernel_.instructions.size());
  program_.places.resize(kernel_.instructions.size());
  for (std::size_t i = 0; i < kernel_.instructions.size(); ++i) {
    const Instruction& instruction = kernel_.instructions[i];
    program_.places[i] = source_place(instruction);
    KW_TRY_VOID(decode(instruction, program_.code[i]));
  }
  return {};
}

Status Decoder::decode(const Instruction& instruction, Instr& instr) {
  now_ = &instruction;
  form_ = &module_.forms[static_cast<std::size_t>(instruction.form)];
  if (instruction.guard >= 0) {
    instr.guard = register_slots_[static_cast<std::size_t>(instruction.guard)].offset;
    instr.guard_flip = instruction.is_guard_negated ? kAllLanes : 0;
  }
  KW_TRY_VOID(decode_by_family(instr));
  KW_CHECK(instr.function != nullptr || instr.kind == InstrKind::kBranch || instr.kind == InstrKind::kBranchIndexed ||
               instr.kind == InstrKind::kExit,
           "a decoded instruction has a function");
  return {};
}

Status Decoder::decode_by_family(Instr& instr) {
  const ScalarType t = type();
  const bool is_half = t == ScalarType::kF16 || t == ScalarType::kF16x2 || t == ScalarType::kBf16 || t == ScalarType::kBf16x2;
  switch (op()) {
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kDiv:
    case Op::kAbs:
    case Op::kNeg:
    case Op::kMin:
    case Op::kMax:
    case Op::kFma:
    case Op::kRcp:
    case Op::kSqrt:
    case Op::kRsqrt:
    case Op::kSin:
    case Op::kCos:
    case Op::kLg2:
    case Op::kEx2:
    case Op::kTanh:
    case Op::kCopysign:
      if (is_half) return decode_half(instr);
      if (t == ScalarType::kF64) return decode_double(instr);
      if (t == ScalarType::kF32) return decode_float(instr);
      return decode_integer(instr);
    case Op::kTestp:
      return decode_testp(instr);
    case Op::kMad:
    case Op::kMul24:
    case Op::kMad24:
    case Op::kSad:
    case Op::kRem:
    case Op::kAddCarry:
    case Op::kSubCarry:
    case Op::kMadCarry:
    case Op::kDp4a:
    case Op::kDp2a:
      return decode_integer(instr);
    case Op::kAnd:
    case Op::kOr:
    case Op::kXor:
    case Op::kNot:
      return t == ScalarType::kPred ? decode_predicate_logic(instr) : decode_bits(instr);
    case Op::kPopc:
    case Op::kClz:
    case Op::kBrev:
    case Op::kBfind:
    case Op::kFns:
    case Op::kBfe:
    case Op::kBfi:
    case Op::kBmsk:
    case Op::kSzext:
    case Op::kCnot:
    case Op::kLop3:
    case Op::kShl:
    case Op::kShr:
    case Op::kShf:
    case Op::kPrmt:
      return decode_bits(instr);
    case Op::kSetp:
    case Op::kSet:
    case Op::kSelp:
    case Op::kSlct:
      return decode_compare(instr);
    case Op::kMov:
      return decode_move(instr);
    case Op::kCvt:
    case Op::kCvtPack:
      return decode_convert(instr);
    case Op::kCvta:
    case Op::kIsspacep:
    case Op::kMapa:
    case Op::kGetctarank:
      return decode_address(instr);
    case Op::kBra:
    case Op::kBrx:
    case Op::kRet:
    case Op::kExit:
    case Op::kTrap:
    case Op::kBrkpt:
    case Op::kNanosleep:
    case Op::kPmevent:
    case Op::kPrefetch:
    case Op::kDiscard:
    case Op::kApplypriority:
    case Op::kCreatepolicy:
    case Op::kGriddepcontrol:
    case Op::kSetmaxnreg:
      return decode_control(instr);
    case Op::kLd:
      return decode_load(instr);
    case Op::kSt:
    case Op::kStAsync:
      return decode_store(instr);
    case Op::kAtom:
    case Op::kRed:
    case Op::kRedAsync:
      return decode_atomic(instr);
    case Op::kFence:
    case Op::kFenceProxy:
    case Op::kFenceMbarrierInit:
      return decode_fence(instr);
    case Op::kTensormapReplace:
    case Op::kTensormapCopy:
    case Op::kFenceProxyTensormap:
      return decode_tensormap(instr);
    case Op::kCpAsync:
    case Op::kCpAsyncCommit:
    case Op::kCpAsyncWait:
    case Op::kCpAsyncWaitAll:
    case Op::kCpAsyncMbarrierArrive:
      return decode_copy(instr);
    case Op::kCpBulk:
    case Op::kCpBulkTensor:
    case Op::kCpBulkPrefetch:
    case Op::kCpBulkPrefetchTensor:
    case Op::kCpReduceBulk:
    case Op::kCpReduceBulkTensor:
    case Op::kCpBulkCommit:
    case Op::kCpBulkWait:
      return decode_bulk(instr);
    case Op::kBarSync:
    case Op::kBarArrive:
    case Op::kBarRed:
    case Op::kBarWarpSync:
    case Op::kClusterArrive:
    case Op::kClusterWait:
      return decode_barrier(instr);
    case Op::kMbarrierInit:
    case Op::kMbarrierInval:
    case Op::kMbarrierArrive:
    case Op::kMbarrierArriveExpectTx:
    case Op::kMbarrierExpectTx:
    case Op::kMbarrierCompleteTx:
    case Op::kMbarrierTestWait:
    case Op::kMbarrierTryWait:
    case Op::kMbarrierPendingCount:
      return decode_mbarrier(instr);
    case Op::kShfl:
    case Op::kVote:
    case Op::kMatch:
    case Op::kActivemask:
    case Op::kElect:
    case Op::kRedux:
      return decode_warp(instr);
    case Op::kLdmatrix:
    case Op::kStmatrix:
    case Op::kMovmatrix:
    case Op::kMma:
      return decode_matrix(instr);
    case Op::kWgmmaFence:
    case Op::kWgmmaCommit:
    case Op::kWgmmaWait:
    case Op::kWgmma:
      return decode_wgmma(instr);
  }
  return refuse("has no meaning here");
}

/// Which instructions touch registers that some wgmma uses; the executor checks those against operations in flight.
void Decoder::find_tensor_touches() {
  if (!program_.uses_wgmma) return;
  program_.first_touch.assign(1, 0);
  for (std::size_t pc = 0; pc < kernel_.instructions.size(); ++pc) {
    const Instruction& instruction = kernel_.instructions[pc];
    const OpcodeRow& row = *module_.forms[static_cast<std::size_t>(instruction.form)].row;
    std::size_t i = 0;
    const auto touch = [&](const Operand& operand, bool is_write, const auto& self) -> void {
      for (const Operand& part : operand.parts) self(part, is_write && operand.kind != Operand::Kind::kMemory, self);
      if (operand.kind != Operand::Kind::kRegister) return;
      const auto found = tensor_register_index_.find(operand.index);
      if (found != tensor_register_index_.end()) program_.touches.push_back(TensorTouch{found->second, is_write});
    };
    for (const char letter : row.operands) {
      if (letter == ' ' || letter == '?') continue;
      if (i >= instruction.operands.size()) break;
      if (row.op != Op::kWgmma) touch(instruction.operands[i], std::string_view("dqQDv").find(letter) != std::string_view::npos, touch);
      ++i;
    }
    program_.code[pc].touches_tensor_registers = program_.touches.size() > program_.first_touch.back();
    program_.first_touch.push_back(static_cast<std::uint32_t>(program_.touches.size()));
  }
}

void Decoder::find_blocks() {
  std::set<std::uint32_t> starts = {0};
  for (std::uint32_t pc = 0; pc < program_.code.size(); ++pc) {
    const Instr& instr = program_.code[pc];
    const bool ends = instr.kind == InstrKind::kBranch || instr.kind == InstrKind::kBranchIndexed || instr.kind == InstrKind::kExit;
    if (!ends) continue;
    if (instr.kind == InstrKind::kBranch) starts.insert(instr.target);
    if (instr.kind == InstrKind::kBranchIndexed) {
      const std::vector<std::uint32_t>& targets = program_.details[instr.detail].targets;
      starts.insert(targets.begin(), targets.end());
    }
    if (pc + 1 < program_.code.size()) starts.insert(pc + 1);
  }
  program_.block_starts.assign(starts.begin(), starts.end());
}

Result<std::shared_ptr<const Program>> decode_kernel(const Module& module, std::string_view kernel_name) {
  const Kernel* kernel = module.find_kernel(kernel_name);
  if (kernel == nullptr) {
    std::vector<std::string> names;
    for (const Kernel& known : module.kernels) names.push_back(known.name);
    std::string message = "kernel " + std::string(kernel_name) + " is not in the text";
    if (const std::string near = nearest_name(kernel_name, names); !near.empty()) message += " (nearest: " + near + ")";
    return fail(Stage::kVerify, Code::kNotFound, std::move(message), SourceRange{module.file, 0, 0});
  }
  KW_TRY(Program program, Decoder(module, *kernel).run());
  return std::make_shared<const Program>(std::move(program));
}

}  // namespace kw::simulate
