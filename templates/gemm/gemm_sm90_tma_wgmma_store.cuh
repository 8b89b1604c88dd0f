// Epilogue of gemm_sm90_tma_wgmma: from a consumer's sums to gmem, directly or by way of smem. Part of gemm/gemm_sm90_tma_wgmma.cuh.
// SPDX-License-Identifier: Apache-2.0

// ---- Directly -----------------------------------------------------------------------------------------------------------------------

#include "parts/lane_exchange.cuh"

/// Stores the sums, 64 rows a wgmma tile. Four lanes hold two columns each of every 8: they transpose four groups of 8 among themselves,
/// so that each lane stores 8 neighbouring columns.
template <int kColumns>
__device__ __forceinline__ void store_directly(const Sums<kColumns>& sums, const EpilogueArgs& epilogue, const GemmProblem& problem,
                                               const WorkItem& item, int row, int thread) {
  const int lane = thread % 32;
#pragma unroll
  for (int i = 0; i < Config::kMmaM; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const long long m = item.first_m + row + i * 64 + thread / 32 * 16 + half * 8 + lane / 4;
#pragma unroll
      for (int group = 0; group < kColumns / 32; ++group) {
        float pairs[4][2];
#pragma unroll
        for (int block = 0; block < 4; ++block) {
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            pairs[block][e] = sums.tile[i][(group * 4 + block) * 4 + half * 2 + e];
          }
        }
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          exchange(pairs[0][e], pairs[1][e], lane, 1);
          exchange(pairs[2][e], pairs[3][e], lane, 1);
          exchange(pairs[0][e], pairs[2][e], lane, 2);
          exchange(pairs[1][e], pairs[3][e], lane, 2);
        }
        const long long n = item.first_n + group * 32 + lane % 4 * 8;
        if (m < problem.extent_m && n < problem.extent_n) {
          const float values[8] = {pairs[0][0], pairs[0][1], pairs[1][0], pairs[1][1], pairs[2][0], pairs[2][1], pairs[3][0], pairs[3][1]};
          epilogue_store<8>(epilogue, item.batch, m, n, values, problem.extent_n - n < 8 ? static_cast<int>(problem.extent_n - n) : 8);
        }
      }
    }
  }
}

#include "gemm/gemm_sm90_tma_wgmma_parts.cuh"

/// Stores the sums. In a whole tile `reads` holds those of the first part; the others are loaded one part ahead.
template <int kColumns, bool kIsWhole>
__device__ __forceinline__ void store_by_way_of_smem(const Sums<kColumns>& sums, const EpilogueArgs& epilogue, const GemmProblem& problem,
                                                     const WorkItem& item, int row, int thread, PartReads& reads, unsigned results) {
  constexpr int kParts = kColumns / 64;
  constexpr int kSteps = Config::kMmaM * kParts;
  const int lane = read_lane();  // nothing of this function is kept through the mainloop
  // Whose address this lane gives stmatrix: matrices 0 and 1 lie one below the other, 2 and 3 to their right.
  const int matrix_row = lane % 8 + lane / 8 % 2 * 8;
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const Part part = part_at<kColumns>(item, row, thread, step);
    PartReads next = {};
    if constexpr (kIsWhole) {
      if (step + 1 < kSteps) {
        read_part(epilogue, item, part_at<kColumns>(item, row, thread, step + 1), lane, next);
      }
    }
    __syncwarp();  // the part before has been read
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      ElementWords<Config::Output, 2> matrices[2][2] = {};  // [right][below]: 8 columns and 8 rows each
#pragma unroll
      for (int right = 0; right < 2; ++right) {
#pragma unroll
        for (int below = 0; below < 2; ++below) {
          const int j = (step % kParts * 8 + pair * 2 + right) * 4 + below * 2;
          const float acc[2] = {sums.tile[step / kParts][j], sums.tile[step / kParts][j + 1]};
          const long long m = part.m(below, lane);
          const long long n = part.n(pair, right, lane);
          if constexpr (kIsWhole) {
            epilogue_values<true>(epilogue, item.batch, m, n, acc, reads.of[pair][right][below], 2, matrices[right][below].elements);
          } else if (m < problem.extent_m && n < problem.extent_n) {
            const int count = problem.extent_n - n < 2 ? 1 : 2;
            EpilogueReads own = {};
            epilogue_read<false>(epilogue, item.batch, m, n, count, own);
            epilogue_values<false>(epilogue, item.batch, m, n, acc, own, count, matrices[right][below].elements);
          }
        }
      }
      const int chunk = (pair * 2 + lane / 16) ^ (matrix_row % 8);
      stmatrix_x4(results + matrix_row * 128 + chunk * 16, matrices[0][0].words[0], matrices[0][1].words[0], matrices[1][0].words[0],
                  matrices[1][1].words[0]);
      __syncwarp();  // orders the compiler: the results of the next pair are not computed before, in registers that are not there
    }
#pragma unroll
    for (int quarter = 0; quarter < 4; ++quarter) {
      const int line = quarter * 4 + lane / 8;
      ElementWords<Config::Output, 8> values;
      ld_shared_v4_b32(results + line * 128 + ((lane ^ line) % 8) * 16, values.words[0], values.words[1], values.words[2], values.words[3]);
      const long long m = part.first_m + line;
      const long long n = part.first_n + lane % 8 * 8;
      if (kIsWhole || (m < problem.extent_m && n < problem.extent_n)) {
        const int count = kIsWhole || problem.extent_n - n >= 8 ? 8 : static_cast<int>(problem.extent_n - n);
        epilogue_store_values<8, kIsWhole>(epilogue, item.batch, m, n, values, count);
      }
    }
    reads = next;
  }
}
