// Rows on bulk copies without a tensor map: every form, alignment, sizes.
// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/hopper/hopper_run.h"

namespace kw::simulate {
namespace {

HopperCase bulk_case(const std::string& body) {
  HopperCase one{.body = body};
  one.in = numbered(64, 500);
  return one;
}

}  // namespace

TEST_CASE("a bulk load, with a cache policy too, completes its bytes on a barrier", "[V:bulk-load]") {
  for (const std::string& form : {std::string("[%smem], [%in+64], 128, [%bar]"), std::string("[%smem], [%in+64], 128, [%bar], %d1")}) {
    const bool has_policy = form.find("%d1") != std::string::npos;
    const std::vector<std::uint32_t> out =
        clean_out(bulk_case("createpolicy.fractional.L2::evict_last.b64 %d1, 1.0;\n" + init_barrier(1) + expect_bytes(128) +
                            "@%lead cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes" +
                            (has_policy ? ".L2::cache_hint " : " ") + form + ";\n" + wait_parity(0) + copy_out(32)));
    CHECK(out[31] == 500 + 16 + 31);
  }
}

TEST_CASE("a bulk load by multicast reaches every CTA of the mask", "[V:bulk-load]") {
  HopperCase one =
      bulk_case(init_barrier(1, 0, true) +
                "and.b32 %r1, %rank, 1; setp.eq.u32 %p1, %r1, 0; and.pred %p2, %p1, %lead; setp.eq.u32 %p3, %rank, 0; "
                "and.pred %p3, %p3, %lead; mov.b16 %h0, 5;\n"
                "@%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 64;\n"
                "@%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%smem], [%in], 64, "
                "[%bar], %h0;\n@!%p1 bra END;\n" +
                wait_parity(0) + copy_out(16) + "END:\n" + cluster_sync());
  one.cluster = 4;
  const std::vector<std::uint32_t> out = clean_out(one);
  for (const std::size_t cta : {0u, 2u}) CHECK(out[64 * cta + 15] == 515);
  for (const std::size_t cta : {1u, 3u}) CHECK(out[64 * cta + 15] == 0);
}

TEST_CASE("a bulk store and bulk reductions of f32 and bf16 write global memory", "[V:bulk-store][V:bulk-reduce]") {
  const auto stored = [](const std::string& copy, const std::vector<std::uint32_t>& in, std::uint32_t initial) {
    HopperCase one{.body = fill_shared(32) + publish_shared() + "@%lead " + copy +
                           " [%out+64], [%smem], 128;\ncp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n"};
    one.in = in;
    one.out.assign(64, initial);
    return clean_out(one);
  };
  std::vector<std::uint32_t> out = stored("cp.async.bulk.global.shared::cta.bulk_group", numbered(32, 500), 7);
  CHECK(out[15] == 7);
  CHECK(out[16] == 500);
  CHECK(out[47] == 531);
  CHECK(out[48] == 7);
  out = stored("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32", std::vector<std::uint32_t>(32, bits(1.5f)), bits(2));
  CHECK(out[20] == bits(3.5f));
  out = stored("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16", std::vector<std::uint32_t>(32, bf16x2(1, 2)),
               bf16x2(4, 8));
  CHECK(out[20] == bf16x2(5, 10));
}

TEST_CASE("a bulk copy from shared memory to another CTA completes on that CTA's barrier", "[V:bulk-shared-to-cluster]") {
  HopperCase one = bulk_case(fill_shared(32) + publish_shared() + init_barrier(1, 0, true) + expect_bytes(128) +
                             "xor.b32 %r1, %rank, 1; add.s32 %r2, %smem, 512; mapa.shared::cluster.u32 %r2, %r2, %r1; "
                             "mapa.shared::cluster.u32 %r3, %bar, %r1;\n" +
                             cluster_sync() +
                             "@%lead cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r2], [%smem], 128, [%r3];\n" +
                             wait_parity(0) + "add.s32 %smem, %smem, 512;\n" + copy_out(32) + cluster_sync());
  one.cluster = 2;
  const std::vector<std::uint32_t> out = clean_out(one);
  CHECK(out[31] == 531);
  CHECK(out[64 + 31] == 531);
}

TEST_CASE("the L2 prefetch of a range runs and moves nothing", "[V:bulk-prefetch]") {
  CHECK(clean_out(bulk_case("@%lead cp.async.bulk.prefetch.L2.global [%in], 128;")) == std::vector<std::uint32_t>(64, 0));
}

TEST_CASE("a bulk copy off 16 bytes is a misaligned address", "[V:trap-bulk-align]") {
  for (const char* operands : {"[%smem+8], [%in]", "[%smem], [%in+8]"}) {
    check_found(FindingKind::kMisaligned, "multiples of 16",
                bulk_case(init_barrier(1) + expect_bytes(64) + "@%lead cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes " +
                          operands + ", 64, [%bar];"));
  }
}

TEST_CASE("a bulk copy of 24 bytes gives no error and never completes: it is found where it is issued", "[V:trap-bulk-size]") {
  check_found(
      FindingKind::kBadOperand, "24 bytes: the size must be a multiple of 16; the device gives no error and never completes it",
      bulk_case(init_barrier(1) + expect_bytes(24) +
                "@%lead cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%smem], [%in], 24, [%bar];\n" + wait_parity(0)));
}

}  // namespace kw::simulate
