// Rows on tensor copies that the device ends or corrupts, on bytes that a barrier counts, and on maps made by the kernel.
// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/hopper/tma_case.h"

namespace kw::simulate {
namespace {

const std::string kStore = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map0, {8, 2}], [%smem];";

HopperCase load_case(const std::vector<std::int32_t>& at, const std::string& to = "%smem") {
  return matrix_case(init_barrier(1) + expect_bytes(128) + tensor_load(at, to) + wait_parity(0));
}

}  // namespace

TEST_CASE("a first coordinate off 16 bytes is an illegal instruction, load and store, with and without a swizzle", "[V:trap-c0]") {
  for (const TensorMapSwizzle swizzle : {TensorMapSwizzle::kNone, TensorMapSwizzle::k128B}) {
    HopperCase load = load_case({2, 0});
    load.maps[0].map.swizzle = swizzle;
    check_found(FindingKind::kBadOperand, "illegal instruction", load);
    HopperCase store = matrix_store_case("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map0, {2, 0}], [%smem];");
    store.maps[0].map.swizzle = swizzle;
    check_found(FindingKind::kBadOperand, "illegal instruction", store);
  }
}

TEST_CASE("a store with any negative coordinate is an illegal instruction", "[V:trap-negative-store]") {
  for (const char* at : {"{-4, 0}", "{0, -1}"}) {
    check_found(FindingKind::kBadOperand, "a store takes no negative coordinate",
                matrix_store_case(std::string("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map0, ") + at + "], [%smem];"));
  }
}

TEST_CASE("a shared address off 128 bytes is a misaligned address, load and store, without a swizzle too", "[V:trap-smem-128]") {
  check_found(FindingKind::kMisaligned, "multiple of 128", load_case({0, 0}, "%smem+64"));
  check_found(FindingKind::kMisaligned, "multiple of 128",
              matrix_store_case("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map0, {0, 0}], [%smem+64];"));
}

TEST_CASE("a barrier waits for the sum of all boxes; bytes may land before they are expected", "[V:expect-tx-sum]") {
  const std::string loads = tensor_load({0, 0}) + tensor_load({8, 4}, "%smem+128");
  const std::string end = wait_parity(0) + copy_out(64);
  for (const std::string& body : {init_barrier(1) + expect_bytes(256) + loads + end, init_barrier(1) + loads + expect_bytes(256) + end}) {
    HopperCase one = matrix_case(body);
    one.out.assign(64, 0);
    CHECK(clean_out(one)[32 + 9] == 16 * 5 + 9);
  }
  check_found(FindingKind::kDeadlock, "no warp can go on", matrix_case(init_barrier(1) + expect_bytes(272) + loads + end));
}

TEST_CASE("a barrier counts to 2^20 - 1 arrivals and bytes, not to 1 MB", "[V:mbarrier-limits]") {
  const auto expecting = [](const std::string& bytes) {
    return HopperCase{.body = init_barrier(1048575) + "@%lead mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%bar], " + bytes + ";\n"};
  };
  clean_out(expecting("1048575"));
  check_found(FindingKind::kMbarrierMisuse, "leaves the range", expecting("1048576"));
  check_found(FindingKind::kMbarrierMisuse, "must be 1 to 2^20 - 1", {.body = init_barrier(1048576)});
}

TEST_CASE("the source of a store may be overwritten after wait_group.read, not before", "[V:store-source-reuse]") {
  const auto reuse = [](const std::string& wait) {
    return matrix_store_case(kStore, publish_shared(),
                             "cp.async.bulk.commit_group; " + wait +
                                 " bar.warp.sync -1;\n{ .reg .b32 %s; shl.b32 %s, %thread, 2; "
                                 "add.s32 %s, %s, %smem; st.shared.u32 [%s], 0; }\n");
  };
  CHECK(clean_out(reuse("cp.async.bulk.wait_group.read 0;"))[2 * 16 + 8] == 1000);
  check_found(FindingKind::kRace, "nothing orders", reuse(""));
}

TEST_CASE("a store that is committed when its CTA exits is not lost", "[V:store-exit-after-commit]") {
  CHECK(clean_out(matrix_store_case(kStore, publish_shared(), "cp.async.bulk.commit_group;\n"))[2 * 16 + 9] == 1001);
}

TEST_CASE("a store without fence.proxy.async by the writers is found, although a device may show nothing", "[V:store-proxy-fence]") {
  check_found(FindingKind::kMissingProxyFence, "without a fence between", matrix_store_case(kStore, "bar.sync 0;\n"));
}

namespace {

/// Copies map0 to shared memory, gives it another address, publishes it to `out` + 512, and loads a box by it.
HopperCase replace_case(const std::string& acquire, const std::string& publish_size = "128") {
  HopperCase one =
      matrix_case(init_barrier(1) +
                  "cvta.param.u64 %d3, %map0; mul.wide.u32 %d4, %thread, 4; add.s64 %d3, %d3, %d4; ld.u32 %r1, [%d3];\n"
                  "add.s32 %r2, %smem, 512; shl.b32 %r3, %thread, 2; add.s32 %r3, %r3, %r2; st.shared.u32 [%r3], %r1; bar.sync 0;\n"
                  "add.s64 %d5, %in, 512; add.s64 %d6, %out, 512;\n"
                  "@%lead tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r2], %d5; bar.warp.sync -1;\n"
                  "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d6], [%r2], " +
                  publish_size + ";\n" + acquire + expect_bytes(128) +
                  "@%lead cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%smem], "
                  "[%d6, {8, 2}], [%bar];\n" +
                  wait_parity(0) + copy_out(32));
  one.in = numbered(256);
  one.out.assign(128 + 32, 0);
  return one;
}

}  // namespace

TEST_CASE("a map is changed in shared memory, published, acquired and used", "[V:tensormap-replace]") {
  const std::vector<std::uint32_t> out = clean_out(replace_case("fence.proxy.tensormap::generic.acquire.gpu [%d6], 128;\n"));
  CHECK(out[9] == 128 + 3 * 16 + 8 + 1);
}

TEST_CASE("a published map that is used without its acquire fence is found", "[V:tensormap-replace]") {
  check_found(FindingKind::kMissingProxyFence, "tensor map that was published", replace_case(""));
  HopperCase misaligned{.body = "@%lead tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%smem+64], %in;"};
  check_found(FindingKind::kMisaligned, "multiple of 128", misaligned);
  HopperCase no_map{.body =
                        fill_shared(32) + "bar.sync 0; @%lead tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%smem], %in;"};
  no_map.in = numbered(32);
  check_found(FindingKind::kBadOperand, "no tensor map", no_map);
  const Result<HopperResult> refused = try_run(replace_case("", "64"), {});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message.find("the size must be 128") != std::string::npos);
}

}  // namespace kw::simulate
