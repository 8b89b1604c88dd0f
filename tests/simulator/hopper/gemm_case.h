// D[64, n] = init + A[64, K] * B[n, K]^T by one warpgroup, K = 128 bytes in four k steps, small whole numbers, so that every sum is exact.
// Operands come by TMA, by ordinary stores, or (A) in registers; every layout follows the recipes that ran on an H200.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "simulator/tensor/convert.h"
#include "simulator/tensor/tile_generator.h"
#include "tests/simulator/hopper/wgmma_case.h"

namespace kw::simulate {

constexpr int kGemmSteps = 4;

struct GemmCase {
  std::string type = "bf16";
  std::string type_b = "";  ///< as type when empty
  std::string type_d = "f32";
  int n = 64;
  Swizzle swizzle_a = Swizzle::k128B, swizzle_b = Swizzle::k128B;
  bool is_a_mn_major = false, is_b_mn_major = false;
  bool is_a_in_registers = false;
  bool uses_tma = true;
  bool has_proxy_fence = true;  ///< after ordinary stores
  int scale_a = 1, scale_b = 1;
  bool accumulates_first = false;  ///< the predicate of the first step
  float init = 0;
  std::uint32_t start_bytes = 0;  ///< of the tiles, from %smem
  std::string before_wgmma = "";
  std::string after_wait = "";
};

inline int element_bytes(const std::string& type) { return type == "tf32" ? 4 : type == "bf16" || type == "f16" ? 2 : 1; }

inline FloatFormat format_of(const std::string& type) {
  if (type == "bf16") return FloatFormat::kBF16;
  if (type == "f16") return FloatFormat::kF16;
  if (type == "tf32") return FloatFormat::kTF32;
  return type == "e4m3" ? FloatFormat::kE4M3 : FloatFormat::kE5M2;
}

/// -2..2, for u8 0..4; operand 0 is A, 1 is B.
inline int gemm_value(const std::string& type, int operand, int mn, int k) {
  const std::uint64_t hash = mix_bits(static_cast<std::uint64_t>((operand * 256 + mn) * 256 + k));
  return static_cast<int>(hash % 5) - (type == "u8" ? 0 : 2);
}
inline std::uint32_t gemm_bits(const std::string& type, int operand, int mn, int k) {
  const int value = gemm_value(type, operand, mn, k);
  if (type == "s8" || type == "u8") return static_cast<std::uint8_t>(value);
  return static_cast<std::uint32_t>(encode(format_of(type), value));
}

/// One operand's place and layout in shared memory.
struct GemmOperand {
  std::string type;
  int index = 0;  ///< 0: A, 1: B
  int rows = 64;
  bool is_mn_major = false;
  Swizzle swizzle = Swizzle::k128B;
  std::uint32_t start = 0;

  int es() const { return element_bytes(type); }
  int k() const { return 128 / es(); }
  std::uint32_t span() const { return swizzle == Swizzle::kNone ? 16 : static_cast<std::uint32_t>(span_bytes(swizzle)); }
  /// Rows of a panel: what a box has in its second dimension.
  std::uint32_t panel_rows() const { return static_cast<std::uint32_t>(is_mn_major ? k() : rows); }
  std::uint32_t num_panels() const { return static_cast<std::uint32_t>(is_mn_major ? rows * es() : 128) / span(); }
  std::uint32_t num_bytes() const { return num_panels() * panel_rows() * span(); }

  SmemDescriptor descriptor(std::uint32_t step) const {
    const std::uint32_t panel = panel_rows() * span();
    if (swizzle == Swizzle::kNone) {
      // K-major: panels are 16 bytes of K. MN-major: panels are eight MN, 128 bytes hold eight k.
      if (is_mn_major) return {start + step * 256, 128, panel, 0, swizzle};
      return {start + step * 2 * panel, panel, 128, 0, swizzle};
    }
    if (is_mn_major) return {start + step * 16 * span(), panel, 8 * span(), 0, swizzle};
    return {start + 32 * step / span() * panel + 32 * step % span(), 16, 8 * span(), 0, swizzle};
  }
  /// The operand in global memory, its contiguous dimension first.
  std::vector<std::uint32_t> dense() const {
    std::vector<std::uint32_t> words(static_cast<std::size_t>(rows * 128 / 4));
    for (int mn = 0; mn < rows; ++mn) {
      for (int column = 0; column < k(); ++column) {
        const int byte = (is_mn_major ? column * rows + mn : mn * k() + column) * es();
        words[static_cast<std::size_t>(byte / 4)] |= gemm_bits(type, index, mn, column) << 8 * (byte % 4);
      }
    }
    return words;
  }
  /// Writes the operand where TMA would put it; `base` is the address of %smem.
  void place(std::vector<std::uint32_t>& image, std::uint32_t base) const {
    const int k_step = k() / kGemmSteps;
    for (int mn = 0; mn < rows; ++mn) {
      for (int column = 0; column < k(); ++column) {
        SmemDescriptor d = descriptor(static_cast<std::uint32_t>(column / k_step));
        d.start_bytes += base;
        const std::uint32_t at = element_address(d, is_mn_major, es(), mn, column % k_step) - base;
        image[at / 4] |= gemm_bits(type, index, mn, column) << 8 * (at % 4);
      }
    }
  }
  TensorMap map(std::uint64_t offset) const {
    TensorMap map;
    const std::uint32_t width = static_cast<std::uint32_t>(is_mn_major ? rows : k());
    map.type = es() == 4 ? TensorMapType::kF32 : es() == 2 ? TensorMapType::kBF16 : TensorMapType::kU8;
    map.global_address = offset;
    map.extents = {width, panel_rows()};
    map.strides_bytes = {std::uint64_t{width} * static_cast<std::uint64_t>(es())};
    map.box = {span() / static_cast<std::uint32_t>(es()), panel_rows()};
    map.swizzle = swizzle == Swizzle::kNone   ? TensorMapSwizzle::kNone
                  : swizzle == Swizzle::k128B ? TensorMapSwizzle::k128B
                  : swizzle == Swizzle::k64B  ? TensorMapSwizzle::k64B
                                              : TensorMapSwizzle::k32B;
    return map;
  }
  std::string loads() const {
    std::string text;
    for (std::uint32_t panel = 0; panel < num_panels(); ++panel) {
      text += "add.s32 %r1, %smem, " + std::to_string(start + panel * panel_rows() * span()) +
              "; @%lead cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%map" +
              std::to_string(index) + ", {" + std::to_string(panel * span() / static_cast<std::uint32_t>(es())) + ", 0}], [%bar];\n";
    }
    return text;
  }
};

inline HopperCase gemm_launch(const GemmCase& one) {
  const std::string type_b = one.type_b.empty() ? one.type : one.type_b;
  const GemmOperand a{one.type, 0, 64, one.is_a_mn_major, one.swizzle_a, one.start_bytes};
  const std::uint32_t after_a = (one.start_bytes + a.num_bytes() + 1023) / 1024 * 1024 + one.start_bytes % 1024;
  const GemmOperand b{type_b, 1, one.n, one.is_b_mn_major, one.swizzle_b, after_a};
  HopperCase launch{.body = init_barrier(1)};
  launch.num_threads = 128;
  launch.shared_bytes = after_a + b.num_bytes();
  const int k_step = a.k() / kGemmSteps;
  if (one.uses_tma) {
    launch.in = a.dense();
    const std::vector<std::uint32_t> dense_b = b.dense();
    launch.maps = {{a.map(0)}, {b.map(4 * launch.in.size())}};
    launch.in.insert(launch.in.end(), dense_b.begin(), dense_b.end());
    launch.body += expect_bytes((one.is_a_in_registers ? 0 : a.num_bytes()) + b.num_bytes()) + (one.is_a_in_registers ? "" : a.loads()) +
                   b.loads() + wait_parity(0);
  } else {
    launch.in.assign((launch.shared_bytes + 3) / 4, 0);
    a.place(launch.in, kSmemAddress);
    b.place(launch.in, kSmemAddress);
    launch.body +=
        fill_shared(static_cast<std::uint32_t>(launch.in.size()), 128) + (one.has_proxy_fence ? publish_shared() : "bar.sync 0;\n");
  }
  for (int step = 0; one.is_a_in_registers && step < kGemmSteps; ++step) {
    const std::vector<std::uint32_t> words =
        a_register_words(a.es(), [&](int row, int k) { return gemm_bits(one.type, 0, row, step * k_step + k); });
    launch.body += load_a_registers(launch.in.size());
    for (int j = 0; j < 4; ++j) launch.body += "mov.b32 %r" + std::to_string(16 + 4 * step + j) + ", %v" + std::to_string(j) + "; ";
    launch.in.insert(launch.in.end(), words.begin(), words.end());
  }
  const bool is_float = one.type_d == "f32";
  const int num_d = one.type_d == "f16" ? one.n / 4 : one.n / 2;
  const std::string d = is_float ? "%f" : "%v";
  const std::uint32_t init = is_float              ? bits(one.init)
                             : one.type_d == "f16" ? 0x10001u * static_cast<std::uint32_t>(encode(FloatFormat::kF16, one.init))
                                                   : static_cast<std::uint32_t>(static_cast<int>(one.init));
  for (int i = 0; i < num_d; ++i) launch.body += "mov.b32 " + d + std::to_string(i) + ", " + std::to_string(init) + "; ";
  launch.body += "\n" + address_field() + "setp.ne.s32 %p0, " + (one.accumulates_first ? "1" : "0") + ", 0; setp.eq.s32 %p1, 0, 0;\n";
  for (int step = 0; step < kGemmSteps; ++step) {
    launch.body += load_descriptor("%d" + std::to_string(2 + 2 * step), a.descriptor(static_cast<std::uint32_t>(step))) +
                   load_descriptor("%d" + std::to_string(3 + 2 * step), b.descriptor(static_cast<std::uint32_t>(step)));
  }
  launch.body += one.before_wgmma + "\nwgmma.fence.sync.aligned;\n";
  for (int step = 0; step < kGemmSteps; ++step) {
    const std::string from = one.is_a_in_registers ? registers("%r", 4, 16 + 4 * step) : "%d" + std::to_string(2 + 2 * step);
    launch.body += "wgmma.mma_async.sync.aligned.m64n" + std::to_string(one.n) + "k" + std::to_string(k_step) + "." + one.type_d + "." +
                   one.type + "." + type_b + " " + registers(d, num_d) + ", " + from + ", %d" + std::to_string(3 + 2 * step) + ", %p" +
                   (step == 0 ? "0" : "1");
    if (one.type_d != "s32") launch.body += ", " + std::to_string(one.scale_a) + ", " + std::to_string(one.scale_b);
    if (a.es() == 2 && !one.is_a_in_registers) launch.body += one.is_a_mn_major ? ", 1" : ", 0";
    if (a.es() == 2) launch.body += one.is_b_mn_major ? ", 1" : ", 0";
    launch.body += ";\n";
  }
  launch.body += "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n" + one.after_wait + store_registers(d, num_d);
  launch.out.assign(static_cast<std::size_t>(128 * num_d), 0);
  return launch;
}

/// Elements of D that differ from the sum formed here.
inline int count_wrong_products(const GemmCase& one, const std::vector<std::uint32_t>& out) {
  const std::string type_b = one.type_b.empty() ? one.type : one.type_b;
  int num_wrong = 0;
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < one.n; ++column) {
      double sum = one.accumulates_first ? static_cast<double>(one.init) : 0;
      for (int k = 0; k < 128 / element_bytes(one.type); ++k) {
        sum += one.scale_a * gemm_value(one.type, 0, row, k) * one.scale_b * gemm_value(type_b, 1, column, k);
      }
      // an f16 register r holds r' = 2r (low half) and 2r + 1 of the same map.
      const std::size_t word = accumulator_word(one.n, row, column);
      double got = 0;
      if (one.type_d == "f32") got = static_cast<double>(from_bits(out[word]));
      if (one.type_d == "s32") got = static_cast<double>(static_cast<std::int32_t>(out[word]));
      if (one.type_d == "f16") got = decode(FloatFormat::kF16, out[word / 2] >> 16 * (word % 2) & 0xffff);
      num_wrong += got != sum ? 1 : 0;
    }
  }
  return num_wrong;
}

/// Runs on all schedules without findings and is exact.
inline void check_product(const GemmCase& one) {
  INFO(one.type << " x " << one.type_b << " -> " << one.type_d << ", n " << one.n);
  CHECK(count_wrong_products(one, clean_out(gemm_launch(one))) == 0);
}

}  // namespace kw::simulate
