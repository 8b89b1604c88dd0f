// Split-K of gemm_sm90_tma_wgmma: the sums of a tile from the CTAs that multiplied parts of k, added in the order of k, so that every
// launch gives the same bits. Part of gemm/gemm_sm90_tma_wgmma.cuh and its pair.
// SPDX-License-Identifier: Apache-2.0

// ---- Through gmem ---------------------------------------------------------------------------------------------------------------

/// Where a thread's first group of 4 sums of a split lies in partial_sums; its next group lies 4 * 128 further.
__device__ __forceinline__ long long split_k_offset(const WorkItem& item, int split, int consumer, int thread) {
  return ((static_cast<long long>(item.output_tile) * Config::SPLIT_K + split) * Config::kConsumersPerTile + consumer) *
             (Config::kConsumerRows * Config::BLOCK_N) +
         thread * 4;
}

/// Delivers this warpgroup's sums. The warpgroup that delivers last gets the sums of all splits, added in the order of k, and true.
///   hand-off: every thread writes, fences; barrier; one thread counts (release, acquire); barrier; fence; reads past L1.
__device__ __forceinline__ bool add_splits(const WorkItem& item, int consumer, int thread, TileSums& sums, float* partial_sums,
                                           unsigned* tile_counters) {
  float* own = partial_sums + split_k_offset(item, item.split, consumer, thread);
#pragma unroll
  for (int i = 0; i < Config::kMmaM; ++i) {
#pragma unroll
    for (int j = 0; j < Config::BLOCK_N / 2; j += 4) {
      st_global_cg_v4(own + (i * (Config::BLOCK_N / 2) + j) * 128, sums.tile[i][j], sums.tile[i][j + 1], sums.tile[i][j + 2],
                      sums.tile[i][j + 3]);
    }
  }
  __threadfence();
  const unsigned barrier = static_cast<unsigned>(threadIdx.x) / 128;
  named_barrier_sync(barrier, 128);
  bool is_last = false;
  if (thread == 0) {
    // The increment wraps to 0 at the last split: the counter is ready for the next launch.
    unsigned* counter = tile_counters + item.output_tile * Config::kConsumersPerTile + consumer;
    is_last = atom_inc_acq_rel(counter, Config::SPLIT_K - 1) == Config::SPLIT_K - 1;
  }
  if (!named_barrier_or(barrier, 128, is_last)) {
    return false;
  }
  __threadfence();
  sums = TileSums{};
#pragma unroll 1
  for (int split = 0; split < Config::SPLIT_K; ++split) {
    const float* other = partial_sums + split_k_offset(item, split, consumer, thread);
#pragma unroll
    for (int i = 0; i < Config::kMmaM; ++i) {
#pragma unroll
      for (int j = 0; j < Config::BLOCK_N / 2; j += 4) {
        float part[4];
        ld_global_cg_v4(other + (i * (Config::BLOCK_N / 2) + j) * 128, part);
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          sums.tile[i][j + e] += part[e];
        }
      }
    }
  }
  return true;
}

// ---- Through the cluster's smem -----------------------------------------------------------------------------------------------------

/// Where a thread's first group of 4 sums lies in the stages, which are free by now; its next group lies `kSumsStride` bytes further.
constexpr int kSumsStride = Config::CONSUMERS * 128 * 16;

/// Adds up the tile of a cluster whose CTAs multiplied a part of k each, and shares it out: this CTA gets kOutputColumns columns of it,
/// from item.split * kOutputColumns on. By all consumers; the producer's warpgroup takes part in the two cluster barriers.
__device__ __forceinline__ void add_splits_of_cluster(const WorkItem& item, unsigned smem, const TileSums& sums,
                                                      Sums<Config::kOutputColumns>& share) {
  constexpr int kGroups = Config::BLOCK_N / 8;         // of 4 sums, of a wgmma tile
  constexpr int kShared = Config::kOutputColumns / 8;  // of these, that a CTA stores
  const unsigned own = smem + (threadIdx.x - 128u) * 16u;
  named_barrier_sync(1, Config::CONSUMERS * 128);  // no wgmma reads the stages any more
#pragma unroll
  for (int i = 0; i < Config::kMmaM; ++i) {
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      const float(&tile)[Config::BLOCK_N / 2] = sums.tile[i];
      st_shared_v4_f32(own + (i * kGroups + group) * kSumsStride, tile[group * 4], tile[group * 4 + 1], tile[group * 4 + 2],
                       tile[group * 4 + 3]);
    }
  }
  cluster_sync();
  share = Sums<Config::kOutputColumns>{};
#pragma unroll 1
  for (int split = 0; split < Config::SPLIT_K; ++split) {
    const unsigned other = cluster_address(own + item.split * kShared * kSumsStride, static_cast<unsigned>(split));
#pragma unroll
    for (int i = 0; i < Config::kMmaM; ++i) {
#pragma unroll
      for (int group = 0; group < kShared; ++group) {
        float part[4];
        ld_shared_cluster_v4(other + (i * kGroups + group) * kSumsStride, part);
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          share.tile[i][group * 4 + e] += part[e];
        }
      }
    }
  }
  cluster_sync();  // a CTA's smem stays until all have read it
}
