// Rows on wgmma: forms, predicate, signs, maps of fragments, protocol, precision.
// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/hopper/gemm_case.h"

namespace kw::simulate {

TEST_CASE("wgmma of bf16 and f16 from shared memory is exact, with f16 accumulators too", "[V:wgmma-ss-16bit]") {
  check_product({.type = "bf16"});
  check_product({.type = "f16"});
  check_product({.type = "f16", .type_d = "f16"});
}

TEST_CASE("wgmma takes A from registers for all element widths", "[V:wgmma-rs][V:wgmma-a-register-map]") {
  check_product({.type = "bf16", .is_a_in_registers = true});
  check_product({.type = "f16", .type_d = "f16", .is_a_in_registers = true});
  check_product({.type = "tf32", .is_a_in_registers = true});
  check_product({.type = "e4m3", .is_a_in_registers = true});
  check_product({.type = "s8", .type_d = "s32", .is_a_in_registers = true});
  check_product({.type = "bf16", .is_b_mn_major = true, .is_a_in_registers = true});
}

TEST_CASE("wgmma of tf32 and of fp8, equal and mixed", "[V:wgmma-tf32-fp8]") {
  check_product({.type = "tf32"});
  for (const char* a : {"e4m3", "e5m2"}) {
    for (const char* b : {"e4m3", "e5m2"}) check_product({.type = a, .type_b = b});
  }
}

TEST_CASE("wgmma of s8 and u8 sums whole numbers and takes no scales", "[V:wgmma-int8]") {
  for (const char* a : {"s8", "u8"}) {
    for (const char* b : {"s8", "u8"}) check_product({.type = a, .type_b = b, .type_d = "s32", .accumulates_first = true, .init = 7});
  }
}

TEST_CASE("wgmma has every N from 8 to 256 in steps of 8, with one accumulator map", "[V:wgmma-n][V:wgmma-accumulator-map]") {
  for (int n = 8; n <= 256; n += 8) check_product({.n = n});
  for (const int n : {8, 24, 128, 256}) {
    check_product({.type = "f16", .type_d = "f16", .n = n});
    if (n % 16 == 0) check_product({.type = "s8", .type_d = "s32", .n = n});
  }
}

TEST_CASE("the predicate chooses between D = A B and D += A B", "[V:wgmma-scale-d]") {
  check_product({.accumulates_first = false, .init = 5});
  check_product({.accumulates_first = true, .init = 5});
  check_product({.type = "f16", .type_d = "f16", .accumulates_first = true, .init = 5});
}

TEST_CASE("a scale of -1 negates an operand, two cancel", "[V:wgmma-scale-a-b]") {
  check_product({.scale_a = -1});
  check_product({.scale_b = -1, .accumulates_first = true, .init = 3});
  check_product({.scale_a = -1, .scale_b = -1});
  check_product({.type = "e4m3", .scale_a = -1});
  check_product({.type = "tf32", .scale_b = -1});
}

TEST_CASE("two neighbouring column blocks of an accumulator, packed, are an A fragment", "[V:wgmma-accumulator-is-a]") {
  // D1 = A B, then D2 = bf16(D1) I with D1 from registers: D2 is D1, at the same places.
  GemmCase one{.n = 16};
  one.after_wait =
      "cvt.rn.bf16x2.f32 %v0, %f1, %f0; cvt.rn.bf16x2.f32 %v1, %f3, %f2; cvt.rn.bf16x2.f32 %v2, %f5, %f4; "
      "cvt.rn.bf16x2.f32 %v3, %f7, %f6;\n"
      // The unit matrix, K-major without swizzle, over the tile of B: thread t < 16 writes element (t, t).
      "{ .reg .b32 %i, %j, %s; bar.sync 0; shl.b32 %s, %thread, 2; add.s32 %s, %s, %smem; st.shared.b32 [%s], 0; bar.sync 0;\n"
      "and.b32 %i, %thread, 7; mul.lo.s32 %i, %i, 18; shr.u32 %j, %thread, 3; mul.lo.s32 %j, %j, 384; add.s32 %s, %smem, %i; "
      "add.s32 %s, %s, %j; setp.lt.u32 %p2, %thread, 16; mov.b16 %h0, 0x3f80; @%p2 st.shared.b16 [%s], %h0; }\n" +
      publish_shared() + load_descriptor("%d1", {0, 128, 256, 0, Swizzle::kNone}) +
      wgmma_alone("m64n16k16.f32.bf16.bf16", registers("%f", 8, 16) + ", {%v0, %v1, %v2, %v3}, %d1, %p0, 1, 1, 0");
  for (int i = 0; i < 8; ++i) one.after_wait += "mov.b32 %f" + std::to_string(i) + ", %f" + std::to_string(16 + i) + "; ";
  check_product(one);
}

TEST_CASE("wgmma without fence.proxy.async after ordinary stores is found, with it the product is exact", "[V:wgmma-proxy-fence]") {
  check_product({.uses_tma = false});
  check_found(FindingKind::kMissingProxyFence, "written through the generic proxy",
              gemm_launch({.uses_tma = false, .has_proxy_fence = false}));
}

TEST_CASE("wgmma reads what TMA wrote without a proxy fence, four in a row without a wgmma.fence between",
          "[V:wgmma-tma-no-fence][V:wgmma-chain]") {
  const HopperCase launch = gemm_launch({});
  CHECK(launch.body.find("fence.proxy") == std::string::npos);
  CHECK(launch.body.find("wgmma.fence") == launch.body.rfind("wgmma.fence"));
  check_product({});
}

TEST_CASE("the four warps of a warpgroup are coupled: a wait ends when the last warp has come", "[V:wgmma-warps-coupled]") {
  // Warp 3 comes only when thread 0 lets it go. Before its own wgmma thread 0 can, after its wait it never gets there.
  const std::string late = "setp.ne.u32 %p3, %warp, 3; @%p3 bra COME;\n" + wait_parity(0, 1) + "COME:\n";
  const std::string release = "@%lead mbarrier.arrive.shared::cta.b64 _, [%bar+8];\n";
  check_product({.before_wgmma = init_barrier(1, 1) + release + late});
  check_found(FindingKind::kDeadlock, "no warp can go on", gemm_launch({.before_wgmma = init_barrier(1, 1) + late, .after_wait = release}));
}

TEST_CASE("16-bit and tf32 sums keep two guard bits and are cut toward zero", "[V:wgmma-precision]") {
  for (const ElementType type : {ElementType::kBF16, ElementType::kF16, ElementType::kTF32}) {
    const int k = 32 / size_bytes(type);
    const WgmmaForm form = make_wgmma_form({.n = 8, .k = k, .a = type, .b = type}).value();
    const FloatFormat format = type == ElementType::kBF16  ? FloatFormat::kBF16
                               : type == ElementType::kF16 ? FloatFormat::kF16
                                                           : FloatFormat::kTF32;
    const auto sum = [&](float c, double a, double b) {
      WgmmaTile tile_a{64, k, std::vector<std::uint32_t>(static_cast<std::size_t>(64 * k))},
          tile_b{8, k, std::vector<std::uint32_t>(static_cast<std::size_t>(8 * k))};
      tile_a.bits[1] = static_cast<std::uint32_t>(encode(format, a));
      tile_b.bits[1] = static_cast<std::uint32_t>(encode(format, b));
      std::vector<LaneRegister> registers(16);
      for (LaneRegister& one : registers) one.lane.fill(bits(c));
      wgmma(form, {}, tile_a, tile_b, true, registers);
      return from_bits(registers[0].lane[0]);
    };
    CHECK(sum(0x1p24f, 1.75, 1) == 0x1p24f);
    CHECK(sum(0x1p24f, -0.5, 1) == 0x1p24f - 1);
    CHECK(sum(0x1p24f, -0.25, 1) == 0x1p24f);
    CHECK(sum(-1.0f, 0x1p-12, 0x1p-13) == std::nextafter(-1.0f, 0.0f));  // 2^-25 of the largest term survives
  }
}

}  // namespace kw::simulate
