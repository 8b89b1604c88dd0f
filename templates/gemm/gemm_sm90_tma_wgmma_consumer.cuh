// What a consumer warpgroup does with its items, to the choice of a store: part of gemm/gemm_sm90_tma_wgmma.cuh and of
// gemm/gemm_sm90_tma_wgmma_pair.cuh. SPDX-License-Identifier: Apache-2.0

// ---- Either way ---------------------------------------------------------------------------------------------------------------------

/// Stores the sums of this consumer's rows, from `row` on. `reads` holds those of the first part where no splits were added up.
template <int kColumns>
__device__ __forceinline__ void store_tile(const Sums<kColumns>& sums, const EpilogueArgs& epilogue, const GemmProblem& problem,
                                           const WorkItem& item, int row, int thread, bool is_whole, PartReads& reads, unsigned results) {
  if constexpr (!Config::IS_STAGED) {
    store_directly<kColumns>(sums, epilogue, problem, item, row, thread);
  } else if (is_whole) {
    if constexpr (Config::SPLIT_K > 1) {
      read_part(epilogue, item, part_at<kColumns>(item, row, thread, 0), read_lane(), reads);
    }
    store_by_way_of_smem<kColumns, true>(sums, epilogue, problem, item, row, thread, reads, results);
  } else {
    store_by_way_of_smem<kColumns, false>(sums, epilogue, problem, item, row, thread, reads, results);
  }
}

// ---- Consumer -------------------------------------------------------------------------------------------------------------------

/// By a whole warpgroup, `consumer` = 0 .. CONSUMERS - 1.
__device__ __forceinline__ void consume(const Schedule& schedule, const GemmProblem& problem, const EpilogueArgs& epilogue,
                                        float* partial_sums, unsigned* tile_counters, RingPosition ring, int consumer) {
  const int thread = static_cast<int>(threadIdx.x) % 128;
  const int part = Config::IS_PINGPONG ? 0 : consumer;  // of the tile
  const int row = part * Config::kConsumerRows;
  const unsigned results = ring.results() + static_cast<unsigned>(threadIdx.x / 32 - 4) * Config::kResultBytes;
  const bool is_aligned = epilogue_is_aligned<8>(epilogue);
  int turn = 0;  // which consumer takes the item
  if constexpr (Config::IS_PINGPONG) {
    if (consumer == 1) {
      give_turn_to(0);
    }
  }
#pragma unroll 1
  for (int index = schedule.first(); index < schedule.end(); index += schedule.step()) {
    WorkItem item = schedule.item(index);
    if constexpr (Config::IS_PINGPONG) {
      const bool is_others = turn != consumer;
      turn ^= 1;
      if (is_others) {
        ring.advance_by(item.num_blocks);
        continue;
      }
      wait_for_turn(consumer);
    }
    TileSums sums;
    const RingPosition last = start_blocks(schedule, ring, item.num_blocks, row, thread, sums);
    if constexpr (Config::IS_PINGPONG) {
      if (index + schedule.step() < schedule.end()) {
        give_turn_to(1 - consumer);
      }
    }
    PartReads reads = {};
    const bool is_whole = is_whole_tile(problem, item, is_aligned);
    if constexpr (Config::IS_STAGED && Config::SPLIT_K == 1) {
      if (is_whole) {
        // While the last products are still being made.
        read_part(epilogue, item, part_at<Config::BLOCK_N>(item, row, thread, 0), read_lane(), reads);
      }
    }
    finish_blocks(schedule, last, thread, sums);
    if constexpr (Config::SPLITS_ARE_CLUSTER) {
      Sums<Config::kOutputColumns> share;
      add_splits_of_cluster(item, ring.smem, sums, share);
      item.first_n += item.split * Config::kOutputColumns;
      store_tile<Config::kOutputColumns>(share, epilogue, problem, item, row, thread, is_whole_tile(problem, item, is_aligned), reads,
                                         results);
    } else {
      if constexpr (Config::SPLIT_K > 1) {
        if (!add_splits(item, part, thread, sums, partial_sums, tile_counters)) {
          continue;
        }
      }
      store_tile<Config::BLOCK_N>(sums, epilogue, problem, item, row, thread, is_whole, reads, results);
    }
  }
}
