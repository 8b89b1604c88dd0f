// Rows on ldmatrix, stmatrix and mma.sync, and on the way from accumulators through shared memory to a TMA store.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/tensor/mma.h"
#include "tests/simulator/hopper/gemm_case.h"

namespace kw::simulate {
namespace {

/// Elements of the matrices at %smem are 16-bit numbers: matrix i, row j, column c is 64 i + 8 j + c.
std::vector<std::uint32_t> numbered_halves(std::uint32_t num_words) {
  std::vector<std::uint32_t> words(num_words);
  for (std::uint32_t i = 0; i < num_words; ++i) words[i] = 2 * i | (2 * i + 1) << 16;
  return words;
}

HopperCase matrices_case(const std::string& body, std::uint32_t num_out) {
  // Lane 8 i + j supplies row j of matrix i.
  HopperCase one{.body = fill_shared(128) + "bar.sync 0; shl.b32 %r1, %lane, 4; add.s32 %r1, %r1, %smem;\n" + body};
  one.in = numbered_halves(128);
  one.out.assign(num_out, 0);
  return one;
}

/// D[64, N] of one warpgroup in registers %f, from `in`: element (row, column) is row + column / 4, exact in bf16 for N = 64.
std::string load_accumulators(int n) {
  std::string text = "{ .reg .b64 %g; mul.wide.u32 %g, %thread, " + std::to_string(2 * n) + "; add.s64 %g, %g, %in;\n";
  for (int i = 0; i < n / 2; ++i) text += "ld.global.b32 %f" + std::to_string(i) + ", [%g+" + std::to_string(4 * i) + "]; ";
  return text + "}\n";
}
float tile_value(int row, int column) { return static_cast<float>(row * 2 + column % 8 - 4 * (column / 8 % 3)); }

std::vector<std::uint32_t> accumulators(int n) {
  std::vector<std::uint32_t> words(static_cast<std::size_t>(64 * n));
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < n; ++column) words[accumulator_word(n, row, column)] = bits(tile_value(row, column));
  }
  return words;
}

}  // namespace

TEST_CASE("ldmatrix x1, x2, x4, plain and transposed: lane l has columns 2(l%4), +1 of row l/4 of each matrix",
          "[V:ldmatrix-forms][V:ldmatrix-map]") {
  for (const std::uint32_t num : {1u, 2u, 4u}) {
    for (const bool is_transposed : {false, true}) {
      const std::vector<std::uint32_t> out =
          clean_out(matrices_case("ldmatrix.sync.aligned.m8n8.x" + std::to_string(num) + (is_transposed ? ".trans" : "") + ".shared.b16 " +
                                      registers("%v", static_cast<int>(num)) + ", [%r1];\n" + store_registers("%v", static_cast<int>(num)),
                                  32 * num));
      for (std::uint32_t lane = 0; lane < 32; ++lane) {
        for (std::uint32_t i = 0; i < num; ++i) {
          const std::uint32_t row = lane / 4, column = 2 * (lane % 4);
          const std::uint32_t low = is_transposed ? 8 * column + row : 8 * row + column, high = low + (is_transposed ? 8 : 1);
          CHECK(out[lane * num + i] == ((64 * i + low) | (64 * i + high) << 16));
        }
      }
    }
  }
}

TEST_CASE("stmatrix x1, x2, x4, plain and transposed, writes what ldmatrix read", "[V:stmatrix-forms]") {
  for (const std::uint32_t num : {1u, 2u, 4u}) {
    for (const std::string& form : {std::string(".x"), std::string(".trans")}) {
      const std::string vector = registers("%v", static_cast<int>(num));
      const std::string shape = "m8n8.x" + std::to_string(num) + (form == ".trans" ? ".trans" : "") + ".shared.b16 ";
      HopperCase one = matrices_case("ldmatrix.sync.aligned." + shape + vector + ", [%r1];\nstmatrix.sync.aligned." + shape +
                                         "[%r1+512], " + vector + ";\nbar.sync 0; add.s32 %smem, %smem, 512;\n" + copy_out(32 * num),
                                     32 * num);
      one.shared_bytes = 1024;
      CHECK(clean_out(one) == numbered_halves(32 * num));
    }
  }
}

TEST_CASE("accumulators go through a 128B-swizzled bf16 tile to a row-major TMA store", "[V:epilogue-row-major]") {
  constexpr int kN = 128;
  HopperCase one{.body = load_accumulators(kN)};
  one.body +=
      "{ .reg .b32 %row, %col, %a, %x; shl.b32 %row, %warp, 4; and.b32 %a, %lane, 7; add.s32 %row, %row, %a; shr.u32 %a, %lane, 3; "
      "and.b32 %a, %a, 1; shl.b32 %a, %a, 3; add.s32 %row, %row, %a; shr.u32 %col, %lane, 4; shl.b32 %col, %col, 3;\n";
  for (int j = 0; j < kN / 16; ++j) {
    for (int m = 0; m < 4; ++m) {
      const int low = 8 * j + 2 * m;
      one.body += "cvt.rn.bf16x2.f32 %v" + std::to_string(m) + ", %f" + std::to_string(low + 1) + ", %f" + std::to_string(low) + "; ";
    }
    one.body += "add.s32 %a, %col, " + std::to_string(16 * j % 64) +
                "; shl.b32 %a, %a, 1; shl.b32 %x, %row, 7; add.s32 %a, %a, %x; add.s32 %a, %a, " + std::to_string(16 * j / 64 * 8192) +
                "; add.s32 %a, %a, %smem; shr.u32 %x, %a, 7; and.b32 %x, %x, 7; shl.b32 %x, %x, 4; "
                "xor.b32 %a, %a, %x;\nstmatrix.sync.aligned.m8n8.x4.shared.b16 [%a], {%v0, %v1, %v2, %v3};\n";
  }
  one.body +=
      "}\nfence.proxy.async.shared::cta; bar.sync 1, 128;\n@!%lead bra END;\nadd.s32 %r1, %smem, 8192;\n"
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map0, {0, 0}], [%smem];\n"
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map0, {64, 0}], [%r1];\n"
      "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nEND:\n";
  one.num_threads = 128;
  one.shared_bytes = 2 * 8192;
  one.in = accumulators(kN);
  one.out.assign(64 * kN / 2, 0);
  one.maps = {
      {{.type = TensorMapType::kBF16, .extents = {kN, 64}, .strides_bytes = {2 * kN}, .box = {64, 64}, .swizzle = TensorMapSwizzle::k128B},
       true}};
  const std::vector<std::uint32_t> out = clean_out(one);
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < kN; column += 2) {
      REQUIRE(out[static_cast<std::size_t>((row * kN + column) / 2)] == bf16x2(tile_value(row, column), tile_value(row, column + 1)));
    }
  }
}

TEST_CASE("accumulators go through a 128B-swizzled bf16 tile to a column-major TMA store", "[V:epilogue-column-major]") {
  constexpr int kN = 64;
  HopperCase one{.body = load_accumulators(kN)};
  one.body +=
      "{ .reg .b32 %n, %m, %a, %x; and.b32 %n, %lane, 7; shr.u32 %a, %lane, 4; shl.b32 %a, %a, 3; add.s32 %n, %n, %a; shl.b32 %m, %warp, "
      "4; "
      "shr.u32 %a, %lane, 3; and.b32 %a, %a, 1; shl.b32 %a, %a, 3; add.s32 %m, %m, %a;\n";
  for (int j = 0; j < kN / 16; ++j) {
    for (int m = 0; m < 4; ++m) {
      const int low = 8 * j + 2 * m;
      one.body += "cvt.rn.bf16x2.f32 %v" + std::to_string(m) + ", %f" + std::to_string(low + 1) + ", %f" + std::to_string(low) + "; ";
    }
    one.body += "add.s32 %a, %n, " + std::to_string(16 * j) +
                "; shl.b32 %a, %a, 7; shl.b32 %x, %m, 1; add.s32 %a, %a, %x; add.s32 %a, %a, %smem; "
                "shr.u32 %x, %a, 7; and.b32 %x, %x, 7; shl.b32 %x, %x, 4; xor.b32 %a, %a, %x;\n"
                "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%a], {%v0, %v1, %v2, %v3};\n";
  }
  one.body +=
      "}\nfence.proxy.async.shared::cta; bar.sync 1, 128;\n@!%lead bra END;\n"
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map0, {0, 0}], [%smem];\n"
      "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nEND:\n";
  one.num_threads = 128;
  one.shared_bytes = 8192;
  one.in = accumulators(kN);
  one.out.assign(64 * kN / 2, 0);
  one.maps = {
      {{.type = TensorMapType::kBF16, .extents = {64, kN}, .strides_bytes = {128}, .box = {64, kN}, .swizzle = TensorMapSwizzle::k128B},
       true}};
  const std::vector<std::uint32_t> out = clean_out(one);
  for (int column = 0; column < kN; ++column) {
    for (int row = 0; row < 64; row += 2) {
      REQUIRE(out[static_cast<std::size_t>((column * 64 + row) / 2)] == bf16x2(tile_value(row, column), tile_value(row + 1, column)));
    }
  }
}

namespace {

/// mma.sync.aligned.<form> of one warp on small whole numbers, by the one formula for all widths.
struct WarpProduct {
  std::string form;
  std::string type;
  std::string type_d = "f32";
  int k = 16;
};

void check_warp_product(const WarpProduct& one) {
  const int es = element_bytes(one.type), per = 4 / es, num_a = one.k * es / 8, num_b = num_a / 2, num_d = one.type_d == "f16" ? 2 : 4;
  INFO(one.form);
  HopperCase launch{.body = "mul.wide.u32 %d1, %lane, 24; add.s64 %d1, %d1, %in;\n"};
  launch.in.assign(32 * 6, 0);
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, q = lane % 4;
    for (int j = 0; j < num_a + num_b; ++j) {
      for (int i = 0; i < per; ++i) {
        const bool is_a = j < num_a;
        const int k = q * per + i + 4 * per * (is_a ? j / 2 : j - num_a);
        launch.in[static_cast<std::size_t>(6 * lane + j)] |= gemm_bits(one.type, is_a ? 0 : 1, is_a ? g + 8 * (j % 2) : g, k) << 8 * es * i;
      }
    }
  }
  for (int j = 0; j < num_a + num_b; ++j) launch.body += "ld.global.u32 %v" + std::to_string(j) + ", [%d1+" + std::to_string(4 * j) + "]; ";
  const std::string d = one.type_d == "f32" ? "%f" : "%r";
  for (int i = 0; i < num_d; ++i) launch.body += "mov.b32 " + d + std::to_string(8 + i) + ", 0; ";
  launch.body += "\nmma.sync.aligned." + one.form + " " + registers(d, num_d) + ", " + registers("%v", num_a) + ", " +
                 registers("%v", num_b, num_a) + ", " + registers(d, num_d, 8) + ";\n" + store_registers(d, num_d);
  launch.out.assign(static_cast<std::size_t>(32 * num_d), 0);
  const std::vector<std::uint32_t> out = clean_out(launch);
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
      int sum = 0;
      for (int k = 0; k < one.k; ++k) sum += gemm_value(one.type, 0, row, k) * gemm_value(one.type, 1, column, k);
      const std::uint32_t word = out[static_cast<std::size_t>(lane * num_d + (num_d == 2 ? i / 2 : i))];
      if (one.type_d == "f32") CHECK(from_bits(word) == static_cast<float>(sum));
      if (one.type_d == "s32") CHECK(static_cast<std::int32_t>(word) == sum);
      if (one.type_d == "f16") CHECK(decode(FloatFormat::kF16, word >> 16 * (i % 2) & 0xffff) == sum);
    }
  }
}

}  // namespace

TEST_CASE("mma.sync of every width is exact, with one map for all", "[V:mma-forms][V:mma-maps]") {
  check_warp_product({"m16n8k16.row.col.f32.bf16.bf16.f32", "bf16"});
  check_warp_product({"m16n8k16.row.col.f32.f16.f16.f32", "f16"});
  check_warp_product({"m16n8k16.row.col.f16.f16.f16.f16", "f16", "f16"});
  check_warp_product({"m16n8k8.row.col.f32.tf32.tf32.f32", "tf32", "f32", 8});
  check_warp_product({"m16n8k32.row.col.f32.e4m3.e4m3.f32", "e4m3", "f32", 32});
  check_warp_product({"m16n8k32.row.col.s32.s8.s8.s32", "s8", "s32", 32});
  check_warp_product({"m16n8k8.row.col.f32.bf16.bf16.f32", "bf16", "f32", 8});
  check_warp_product({"m16n8k4.row.col.f32.tf32.tf32.f32", "tf32", "f32", 4});
}

TEST_CASE("mma.sync of e4m3 keeps the accumulator's 24 bits, unlike wgmma", "[V:mma-fp8-precision]") {
  const MmaForm form = make_mma_form(16, 8, 32, ElementType::kE4M3, ElementType::kE4M3, ElementType::kF32).value();
  const auto sum = [&](float c, std::uint32_t a) {
    std::vector<LaneRegister> operand_a(4), operand_b(2), accumulator(4), result(4);
    for (LaneRegister& one : operand_a) one.lane.fill(a);
    for (LaneRegister& one : operand_b) one.lane.fill(0x38383838);  // ones
    for (LaneRegister& one : accumulator) one.lane.fill(bits(c));
    mma(form, {}, operand_a, operand_b, accumulator, result);
    return from_bits(result[0].lane[0]);
  };
  CHECK(sum(1 + 0x1p-14f, 0) == 1 + 0x1p-14f);
  CHECK(sum(1 + 0x1p-23f, 0) == 1 + 0x1p-23f);
  CHECK(sum(16384, 0x38383838) == 16416);
}

}  // namespace kw::simulate
