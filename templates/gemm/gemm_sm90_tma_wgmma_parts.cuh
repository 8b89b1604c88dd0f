// Results on their way out by smem: where a part lies and what it reads. Part of gemm/gemm_sm90_tma_wgmma_store.cuh and its pair.
// SPDX-License-Identifier: Apache-2.0

// ---- By way of smem -----------------------------------------------------------------------------------------------------------------
// 64 columns of 16 rows at a time, a part, pass through 2048 bytes of smem of this warp. They go there as the sums lie, 16-byte chunks
// XORed with the row's number against bank conflicts, and leave in lines of 128 bytes, 8 lanes each. For one output of 16 bits.

/// A part's place: the sums of tile i, columns [64 * part, 64 * part + 64) of the CTA's tile. Two neighbouring columns at a time belong to
/// a lane: of `pair` 0 to 3, 16 columns each, 8 to the left or right, 8 rows above or below.
struct Part {
  long long first_m;
  long long first_n;

  __device__ __forceinline__ long long m(int below, int lane) const { return first_m + below * 8 + lane / 4; }
  __device__ __forceinline__ long long n(int pair, int right, int lane) const { return first_n + pair * 16 + right * 8 + lane % 4 * 2; }
};

/// Of the warp of consumer rows `row` on; `step` counts the parts of all wgmma tiles.
template <int kColumns>
__device__ __forceinline__ Part part_at(const WorkItem& item, int row, int thread, int step) {
  constexpr int kParts = Config::IS_PAIR ? kColumns / 128 : kColumns / 64;
  return Part{item.first_m + row + step / kParts * 64 + thread / 32 * 16,
              static_cast<long long>(Config::IS_PAIR ? item.first_n / 2 : item.first_n) + step % kParts * 64};
}

/// What a lane's outputs of a part need besides the sums.
struct PartReads {
  EpilogueReads of[4][2][2];  ///< [pair][right][below]
};

/// Whether the whole tile is inside the output and every access aligned.
__device__ __forceinline__ bool is_whole_tile(const GemmProblem& problem, const WorkItem& item, bool is_aligned) {
  if constexpr (Config::IS_PAIR) {
    return is_aligned && item.first_m + Config::BLOCK_M <= problem.extent_m &&
           item.first_n / 2 + Config::kOutputColumns <= problem.extent_n;
  } else {
    return is_aligned && item.first_m + Config::BLOCK_M <= problem.extent_m && item.first_n + Config::kOutputColumns <= problem.extent_n;
  }
}

/// Loads of a whole part, all in flight at once.
__device__ __forceinline__ void read_part(const EpilogueArgs& epilogue, const WorkItem& item, const Part& part, int lane,
                                          PartReads& reads) {
#pragma unroll
  for (int pair = 0; pair < 4; ++pair) {
#pragma unroll
    for (int right = 0; right < 2; ++right) {
#pragma unroll
      for (int below = 0; below < 2; ++below) {
        epilogue_read<true>(epilogue, item.batch, part.m(below, lane), part.n(pair, right, lane), 2, reads.of[pair][right][below]);
      }
    }
  }
}
