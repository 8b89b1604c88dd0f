// Matrix instructions of one warp: ldmatrix, stmatrix, movmatrix, mma.sync. Place: simulator/execute/decoder.h.
// Fragments and products are simulator/tensor's; memory is the machine's.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/execute/decoder.h"
#include "simulator/execute/lane_data.h"
#include "simulator/execute/tensor_types.h"
#include "simulator/tensor/warp_matrix.h"

namespace kw::simulate {
namespace {

/// ldmatrix and stmatrix read the addresses of 8 lanes a matrix.
LaneMask address_lanes(std::size_t num_matrices) { return num_matrices >= 4 ? kAllLanes : (LaneMask{1} << (8 * num_matrices)) - 1; }

bool is_partial_warp(const Frame& frame, const char* name) {
  if (frame.lanes == kAllLanes) return false;
  frame.machine().report(Finding{.kind = FindingKind::kDivergentAligned,
                                 .message = std::string(name) + " needs all 32 lanes of the warp; some are predicated off or have exited",
                                 .where = frame.machine().place(frame.context(), -1, std::string("executes ") + name),
                                 .other = std::nullopt,
                                 .remedy = "PTX ISA: all threads of the warp execute the same .aligned instruction"});
  return true;
}

void row_addresses(const Frame& frame, const Detail& detail, std::uint32_t* rows) {
  LaneAddresses addresses;
  fill_addresses(frame, detail.address[0], detail.address_offset[0], addresses);
  for (int lane = 0; lane < kLanes; ++lane) rows[lane] = static_cast<std::uint32_t>(addresses.at[lane]);
}

/// option 1: .trans
Outcome load_matrix(Frame& frame, const Instr& instr) {
  if (is_partial_warp(frame, "ldmatrix")) return Outcome::kFault;
  const Detail& detail = frame.detail(instr);
  const std::size_t num = detail.d.size();
  std::uint32_t addresses[kLanes];
  row_addresses(frame, detail, addresses);
  alignas(64) MatrixRow rows[kLanes];
  Context context = frame.context();
  context.lanes = address_lanes(num);
  const Outcome outcome = frame.machine().load_rows(context, addresses, reinterpret_cast<std::byte*>(rows));
  if (outcome != Outcome::kDone) return outcome;
  LaneRegister registers[4];
  ldmatrix(std::span(rows, 8 * num), instr.option == 1, std::span(registers, num));
  for (std::size_t i = 0; i < num; ++i) std::memcpy(frame.at<std::uint32_t>(detail.d[i].offset), &registers[i], sizeof(LaneRegister));
  return Outcome::kDone;
}

Outcome store_matrix(Frame& frame, const Instr& instr) {
  if (is_partial_warp(frame, "stmatrix")) return Outcome::kFault;
  const Detail& detail = frame.detail(instr);
  const std::size_t num = detail.a.size();
  std::uint32_t addresses[kLanes];
  row_addresses(frame, detail, addresses);
  LaneRegister registers[4];
  for (std::size_t i = 0; i < num; ++i)
    std::memcpy(registers[i].lane.data(), frame.at<std::uint32_t>(detail.a[i].offset), sizeof(LaneRegister));
  alignas(64) MatrixRow rows[kLanes];
  stmatrix(std::span(registers, num), instr.option == 1, std::span(rows, 8 * num));
  Context context = frame.context();
  context.lanes = address_lanes(num);
  return frame.machine().store_rows(context, addresses, reinterpret_cast<const std::byte*>(rows));
}

Outcome move_matrix(Frame& frame, const Instr& instr) {
  if (is_partial_warp(frame, "movmatrix")) return Outcome::kFault;
  LaneRegister source;
  std::memcpy(source.lane.data(), frame.at<std::uint32_t>(instr.a), sizeof(source));
  const LaneRegister result = movmatrix(source);
  std::memcpy(frame.at<std::uint32_t>(instr.d), &result, sizeof(result));
  return Outcome::kDone;
}

constexpr std::size_t kMaxFragment = 16;

/// 64-bit registers (f64) become two, low word first.
std::size_t read_fragment(const Frame& frame, const std::vector<Slot>& slots, LaneRegister* registers) {
  std::size_t count = 0;
  for (const Slot& slot : slots) {
    if (slot.bits == 32) {
      std::memcpy(registers[count++].lane.data(), frame.at<std::uint32_t>(slot.offset), sizeof(LaneRegister));
      continue;
    }
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const std::uint64_t bits = frame.at<std::uint64_t>(slot.offset)[lane];
      registers[count].lane[lane] = static_cast<std::uint32_t>(bits);
      registers[count + 1].lane[lane] = static_cast<std::uint32_t>(bits >> 32);
    }
    count += 2;
  }
  return count;
}

Outcome multiply(Frame& frame, const Instr& instr) {
  if (is_partial_warp(frame, "mma.sync")) return Outcome::kFault;
  const Detail& detail = frame.detail(instr);
  LaneRegister a[kMaxFragment];
  LaneRegister b[kMaxFragment];
  LaneRegister c[kMaxFragment];
  const std::size_t num_a = read_fragment(frame, detail.a, a);
  const std::size_t num_b = read_fragment(frame, detail.b, b);
  const std::size_t num_c = read_fragment(frame, detail.c, c);
  mma(detail.mma, frame.facts.tensor_math, std::span(a, num_a), std::span(b, num_b), std::span(c, num_c), std::span(c, num_c));
  std::size_t count = 0;
  for (const Slot& slot : detail.d) {
    if (slot.bits == 32) {
      std::memcpy(frame.at<std::uint32_t>(slot.offset), &c[count++], sizeof(LaneRegister));
      continue;
    }
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      frame.at<std::uint64_t>(slot.offset)[lane] = static_cast<std::uint64_t>(c[count + 1].lane[lane]) << 32 | c[count].lane[lane];
    }
    count += 2;
  }
  return Outcome::kDone;
}

/// "m16n8k16" -> 16, 8, 16.
bool shape_of(const std::string& text, int& m, int& n, int& k) {
  const std::size_t at_n = text.find('n');
  const std::size_t at_k = text.find('k');
  if (text.empty() || text[0] != 'm' || at_n == std::string::npos || at_k == std::string::npos) return false;
  m = std::atoi(text.c_str() + 1);
  n = std::atoi(text.c_str() + at_n + 1);
  k = std::atoi(text.c_str() + at_k + 1);
  return true;
}

}  // namespace

Status Decoder::decode_matrix(Instr& instr) {
  instr.kind = InstrKind::kAligned;
  if (op() == Op::kMovmatrix) {
    KW_TRY(instr.d, destination(0, 32));
    KW_TRY(instr.a, source(1, 32));
    instr.function = &move_matrix;
    return {};
  }
  Detail& detail = new_detail(instr);
  if (op() == Op::kLdmatrix || op() == Op::kStmatrix) {
    const bool is_load = op() == Op::kLdmatrix;
    const std::size_t num = has("x4") ? 4 : has("x2") ? 2 : 1;
    std::vector<Slot>& slots = is_load ? detail.d : detail.a;
    if (is_load) {
      KW_TRY(slots, vector_destinations(operand(0), 32));
    } else {
      KW_TRY(slots, vector_sources(operand(1), 32));
    }
    if (slots.size() != num) return refuse("the vector must have " + std::to_string(num) + " registers", Code::kBadInput);
    KW_TRY(const Address at, address(operand(is_load ? 1 : 0)));
    detail.address[0] = at.slot;
    detail.address_offset[0] = at.offset;
    instr.option = has("trans") ? 1 : 0;
    instr.function = is_load ? &load_matrix : &store_matrix;
    return {};
  }
  int m = 0;
  int n = 0;
  int k = 0;
  if (!shape_of(form().modifiers[2], m, n, k)) return refuse("no such shape");
  const ElementType d_type = element_type(type(3));
  if (type(3) != type(0)) return refuse("the accumulators must have one type");
  const Result<MmaForm> known = make_mma_form(m, n, k, element_type(type(2)), element_type(type(1)), d_type, has("satfinite"));
  if (!known) return refuse(known.error().message);
  detail.mma = *known;
  const bool is_f64 = d_type == ElementType::kF64;
  const int width = is_f64 ? 64 : 32;
  const int words = is_f64 ? 2 : 1;
  KW_TRY(detail.d, vector_destinations(operand(0), width));
  KW_TRY(detail.a, vector_sources(operand(1), width));
  KW_TRY(detail.b, vector_sources(operand(2), width));
  KW_TRY(detail.c, vector_sources(operand(3), width, d_type == ElementType::kF32 || is_f64));
  const auto is_wrong = [&](const std::vector<Slot>& slots, int registers) { return static_cast<int>(slots.size()) * words != registers; };
  if (is_wrong(detail.d, known->d_registers) || is_wrong(detail.c, known->d_registers) || is_wrong(detail.a, known->a_registers) ||
      is_wrong(detail.b, known->b_registers)) {
    return refuse("fragments must have " + std::to_string(known->d_registers / words) + ", " + std::to_string(known->a_registers / words) +
                      ", " + std::to_string(known->b_registers / words) + " and " + std::to_string(known->d_registers / words) +
                      " registers",
                  Code::kBadInput);
  }
  instr.function = &multiply;
  return {};
}

}  // namespace kw::simulate
