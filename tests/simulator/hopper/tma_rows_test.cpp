// Rows on tensor copies that move what they should: ranks, multicast, stores, reductions, edges, layouts in shared memory.
// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/hopper/tma_case.h"

namespace kw::simulate {

TEST_CASE("tensor loads of 1 to 5 dimensions; rows of a box follow dimensions 1 to 4, dimension 1 fastest",
          "[V:tma-load-1d-5d][V:tma-row-order]") {
  const std::array<std::uint64_t, 5> extents = {8, 3, 4, 2, 3};
  const std::array<std::uint32_t, 5> box = {4, 2, 3, 2, 2}, at = {4, 1, 1, 0, 1};
  for (std::size_t rank = 1; rank <= 5; ++rank) {
    TensorMap map{.type = TensorMapType::kU32, .rank = static_cast<int>(rank)};
    std::uint32_t num_words = 1;
    std::vector<std::int32_t> coordinates;
    for (std::size_t d = 0; d < rank; ++d) {
      map.extents[d] = extents[d];
      map.box[d] = box[d];
      if (d > 0) map.strides_bytes[d - 1] = (d > 1 ? map.strides_bytes[d - 2] : 4 * extents[0]) * (d > 1 ? extents[d - 1] : 1);
      num_words *= box[d];
      coordinates.push_back(static_cast<std::int32_t>(at[d]));
    }
    HopperCase one{.body = init_barrier(1) + expect_bytes(4 * num_words) + tensor_load(coordinates) + wait_parity(0) + copy_out(num_words)};
    one.in = numbered(8 * 3 * 4 * 2 * 3);
    one.out.assign(num_words, 0);
    one.maps = {{map}};
    std::vector<std::uint32_t> expected;
    for (std::uint32_t word = 0; word < num_words; ++word) {
      std::uint32_t rest = word, source = 0, stride = 1;
      for (std::size_t d = 0; d < rank; ++d) {
        source += (at[d] + rest % box[d]) * stride;
        rest /= box[d];
        stride *= static_cast<std::uint32_t>(extents[d]);
      }
      expected.push_back(source);
    }
    CHECK(clean_out(one) == expected);
  }
}

TEST_CASE("a multicast reaches the same offset of every CTA and signals each one's own barrier, clusters of 1 to 16",
          "[V:tma-load-multicast][V:multicast-own-barrier]") {
  for (const std::uint32_t cluster : {1u, 2u, 4u, 8u, 16u}) {
    // Every CTA sends one slice of 16 words to all; each expects the bytes of all senders.
    HopperCase one{.body = init_barrier(1, 0, true) + expect_bytes(64 * cluster)};
    one.body +=
        "shl.b32 %r1, %rank, 4; shl.b32 %r2, %rank, 7; add.s32 %r2, %r2, %smem; mov.b16 %h0, " + std::to_string((1u << cluster) - 1) +
        ";\n@%lead cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%r2], "
        "[%map0, {%r1}], [%bar], %h0;\n" +
        wait_parity(0) + "shl.b32 %r3, %thread, 7; add.s32 %r3, %r3, %smem; setp.lt.u32 %p1, %thread, " + std::to_string(cluster) +
        "; @%p1 ld.shared.u32 %r4, [%r3+20]; mul.wide.u32 %d1, %thread, 4; add.s64 %d1, %d1, %out; @%p1 st.global.u32 [%d1], %r4;\n" +
        cluster_sync();
    one.cluster = cluster;
    one.shared_bytes = 128 * cluster;
    one.in = numbered(16 * cluster);
    one.out.assign(16, 0);
    TensorMap map{.type = TensorMapType::kU32, .rank = 1};
    map.extents[0] = 16 * cluster;
    map.box[0] = 16;
    one.maps = {{map}};
    const std::vector<std::uint32_t> out = clean_out(one);
    for (std::uint32_t cta = 0; cta < cluster; ++cta) {
      for (std::uint32_t slice = 0; slice < cluster; ++slice) CHECK(out[16 * cta + slice] == 16 * slice + 5);
    }
  }
}

TEST_CASE("a stage is refilled by multicast only when the consumers of all CTAs have released it", "[V:multicast-refill]") {
  const auto pipeline = [](bool waits_for_all) {
    // Barrier 0: full, in each CTA. Barrier 1: empty, in rank 0, which sends both fills.
    const std::string send =
        "mov.b16 %h0, 3; setp.eq.u32 %p1, %rank, 0; and.pred %p2, %p1, %lead;\n@%p2 cp.async.bulk.tensor.1d.shared::"
        "cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%smem], [%map0, {%r1}], [%bar], %h0;\n";
    HopperCase one{.body = init_barrier(waits_for_all ? 2 : 1, 1) + init_barrier(1, 0, true)};
    one.body += expect_bytes(128) + "mov.u32 %r1, 0;\n" + send + wait_parity(0);
    one.body += "shl.b32 %r2, %thread, 2; add.s32 %r2, %r2, %smem; ld.shared.u32 %r3, [%r2]; bar.warp.sync -1;\n";
    one.body += "mapa.shared::cluster.u32 %r5, %bar, 0; mov.pred %p3, %lead;\n" +
                std::string(waits_for_all ? "" : "and.pred %p3, %p1, %lead;\n") + "@%p3 mbarrier.arrive.shared::cluster.b64 _, [%r5+8];\n" +
                expect_bytes(128) + "mov.u32 %r1, 32;\n";
    one.body += "@!%p2 bra FILLED;\n" + wait_parity(0, 1) + "FILLED:\n" + send + wait_parity(1);
    one.body +=
        "ld.shared.u32 %r4, [%r2]; add.s32 %r3, %r3, %r4; mul.wide.u32 %d1, %thread, 4; add.s64 %d1, %d1, %out; "
        "st.global.u32 [%d1], %r3;\n" +
        cluster_sync();
    one.cluster = 2;
    one.in = numbered(64);
    TensorMap map{.type = TensorMapType::kU32, .rank = 1};
    map.extents[0] = 64;
    map.box[0] = 32;
    one.maps = {{map}};
    return one;
  };
  const std::vector<std::uint32_t> out = clean_out(pipeline(true));
  for (std::uint32_t lane = 0; lane < 32; ++lane) CHECK(out[64 + lane] == 2 * lane + 32);
  check_found(FindingKind::kRace, "nothing orders these two accesses", pipeline(false));
}

TEST_CASE("a tensor load with a cache policy moves the same bytes", "[V:tma-load-cache-hint]") {
  HopperCase one = matrix_case("createpolicy.fractional.L2::evict_first.b64 %d1, 1.0;\n" + init_barrier(1) + expect_bytes(128) +
                               "@%lead cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint "
                               "[%smem], [%map0, {8, 2}], [%bar], %d1;\n" +
                               wait_parity(0) + copy_out(32));
  CHECK(clean_out(one)[9] == 3 * 16 + 8 + 1);
}

TEST_CASE("a tensor store writes its box and clips what lies outside of the tensor", "[V:tma-store][V:oob-store-clips]") {
  HopperCase one = matrix_store_case("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map0, {8, 6}], [%smem];");
  const std::vector<std::uint32_t> out = clean_out(one);
  for (std::uint32_t row = 0; row < 8; ++row) {
    for (std::uint32_t column = 0; column < 16; ++column) {
      const bool is_inside = row >= 6 && column >= 8;
      CHECK(out[16 * row + column] == (is_inside ? 1000 + 8 * (row - 6) + column - 8 : 7));
    }
  }
}

TEST_CASE("a store wholly outside of the tensor writes nothing", "[V:oob-store-clips]") {
  HopperCase one = matrix_store_case("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map0, {16, 100}], [%smem];");
  CHECK(clean_out(one) == std::vector<std::uint32_t>(128, 7));
}

TEST_CASE("tensor reductions add f32 and bf16 elements", "[V:tma-reduce]") {
  const std::string reduce = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%map0, {0, 0}], [%smem];";
  HopperCase one = matrix_store_case(reduce);
  for (std::uint32_t i = 0; i < 32; ++i) one.in[i] = bits(static_cast<float>(i));
  one.out.assign(128, bits(2.5f));
  one.maps[0].map.type = TensorMapType::kF32;
  CHECK(clean_out(one)[16 + 3] == bits(2.5f + 11));
  for (std::uint32_t i = 0; i < 32; ++i) one.in[i] = bf16x2(static_cast<float>(i), 1);
  one.out.assign(128, bf16x2(2, 3));
  one.maps[0].map = {.type = TensorMapType::kBF16, .extents = {32, 8}, .strides_bytes = {64}, .box = {16, 4}};
  CHECK(clean_out(one)[16 + 3] == bf16x2(13, 4));
}

TEST_CASE("prefetches of a box and of a map run and move nothing", "[V:tma-prefetch]") {
  HopperCase one = matrix_case("prefetch.tensormap [%map0];\n@%lead cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%map0, {8, 2}];\n");
  CHECK(clean_out(one) == std::vector<std::uint32_t>(32, 0));
}

TEST_CASE("element strides {1, 2} load every second row", "[V:map-element-strides]") {
  HopperCase one = matrix_case(init_barrier(1) + expect_bytes(4 * 64) + tensor_load({0, 1}) + wait_parity(0) + copy_out(64));
  one.out.assign(64, 0);
  one.maps[0].map.box = {16, 8};
  one.maps[0].map.element_strides = {1, 2};
  const std::vector<std::uint32_t> out = clean_out(one);
  for (std::uint32_t row = 0; row < 4; ++row) CHECK(out[16 * row + 5] == (1 + 2 * row < 8 ? 16 * (1 + 2 * row) + 5 : 0));
}

TEST_CASE("a map lies in a parameter, in constant memory, or in global memory written before the launch", "[V:map-places]") {
  const auto load_by = [](const std::string& map) {
    return init_barrier(1) + expect_bytes(128) +
           "@%lead cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%smem], [" + map +
           ", {8, 2}], [%bar];\n" + wait_parity(0) + copy_out(32);
  };
  HopperCase in_parameter = matrix_case(load_by("%map0"));
  const std::vector<std::uint32_t> expected = clean_out(in_parameter);
  // `in` is the first allocation of a launch, so that its address is known to a text.
  TensorMap map = in_parameter.maps[0].map;
  map.global_address = kGlobalFirst;
  HopperCase in_constant = matrix_case("mov.u64 %d1, cmap;\n" + load_by("%d1"));
  in_constant.module_text = ".const .align 128 .b8 cmap[128] = {";
  const std::array<std::uint8_t, kTensorMapBytes> bytes = encode_tensor_map(map).value();
  for (const std::uint8_t byte : bytes) in_constant.module_text += std::to_string(byte) + ",";
  in_constant.module_text.back() = '}';
  in_constant.module_text += ";\n";
  CHECK(clean_out(in_constant) == expected);
  HopperCase in_global = matrix_case("add.s64 %d1, %in, 512;\n" + load_by("%d1"));
  in_global.in.resize(128 + 32);
  std::memcpy(in_global.in.data() + 128, bytes.data(), bytes.size());
  CHECK(clean_out(in_global) == expected);
}

TEST_CASE("accepted maps load: boxes larger than the tensor, 61 elements a row, broadcast rows, huge extents", "[V:map-accepted-loads]") {
  HopperCase one = matrix_case(init_barrier(1) + expect_bytes(256) + tensor_load({0, 0}) + wait_parity(0) + copy_out(64));
  one.out.assign(64, 9);
  TensorMap& map = one.maps[0].map;
  map = {.type = TensorMapType::kBF16, .extents = {61, 1}, .strides_bytes = {128}, .box = {64, 2}};
  std::vector<std::uint32_t> out = clean_out(one);
  CHECK(out[29] == 29);
  CHECK(out[30] == (30 & 0xffff));  // element 60; 61 to 63 are outside
  CHECK(out[31] == 0);
  CHECK(out[32] == 0);
  map = {.type = TensorMapType::kU32, .extents = {16, std::uint64_t{1} << 32}, .strides_bytes = {0}, .box = {16, 4}};
  out = clean_out(one);
  for (std::uint32_t word = 0; word < 64; ++word) CHECK(out[word] == word % 16);
  map.strides_bytes = {32};  // rows that overlap
  out = clean_out(one);
  for (std::uint32_t word = 0; word < 64; ++word) CHECK(out[word] == word % 16 + word / 16 * 8);
}

TEST_CASE("loads outside of the tensor fill zeros and count the full box; negative coordinates are fine", "[V:oob-load-zero]") {
  for (const auto& [column, row] : {std::pair{-4, -1}, {12, 6}, {100, 100}, {-400, -7}}) {
    HopperCase one = matrix_case(init_barrier(1) + expect_bytes(128) + tensor_load({column, row}) + wait_parity(0) + copy_out(32));
    const std::vector<std::uint32_t> out = clean_out(one);
    for (int word = 0; word < 32; ++word) {
      const int c = column + word % 8, r = row + word / 8;
      const bool is_inside = c >= 0 && c < 16 && r >= 0 && r < 8;
      CHECK(out[static_cast<std::size_t>(word)] == (is_inside ? static_cast<std::uint32_t>(16 * r + c) : 0));
    }
  }
}

TEST_CASE("NaN fill is 0x7ff7 in every 16 bits, for f32 and for bf16", "[V:oob-load-nan]") {
  HopperCase one = matrix_case(init_barrier(1) + expect_bytes(128) + tensor_load({0, 100}) + wait_parity(0) + copy_out(32));
  one.maps[0].map.fill = TensorMapFill::kNan;
  one.maps[0].map.type = TensorMapType::kF32;
  CHECK(clean_out(one) == std::vector<std::uint32_t>(32, 0x7ff77ff7));
  one.maps[0].map = {.type = TensorMapType::kBF16, .extents = {32, 8}, .strides_bytes = {64}, .box = {16, 4}, .fill = TensorMapFill::kNan};
  CHECK(clean_out(one) == std::vector<std::uint32_t>(32, 0x7ff77ff7));
}

TEST_CASE("under a swizzle rows are a span apart even when the inner box is narrower, and bytes count the box", "[V:tma-swizzle-pitch]") {
  for (const std::uint32_t width : {4u, 12u, 16u}) {
    // Shared memory is marked first, so that the bytes between the rows can be read back.
    HopperCase one = matrix_case("bar.sync 0;\n" + for_words(256, 32, "%in", "st.shared.u32 [%s], 77777;") + publish_shared() +
                                 init_barrier(1) + expect_bytes(4 * width * 8) + tensor_load({0, 0}) + wait_parity(0) + copy_out(256));
    one.out.assign(256, 0);
    one.maps[0].map.box = {width, 8};
    one.maps[0].map.swizzle = TensorMapSwizzle::k128B;
    const std::vector<std::uint32_t> out = clean_out(one);
    std::vector<std::uint32_t> expected(256, 77777);
    for (std::uint32_t row = 0; row < 8; ++row) {
      for (std::uint32_t column = 0; column < width; ++column) expected[32 * row + (column ^ 4 * row)] = 16 * row + column;
    }
    CHECK(out == expected);
  }
}

}  // namespace kw::simulate
