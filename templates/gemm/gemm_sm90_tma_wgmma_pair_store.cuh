// Epilogue of gemm_sm90_tma_wgmma_pair: from a consumer's sums of both products to gmem, directly or by way of smem, as
// gemm_sm90_tma_wgmma_store.cuh does for one. kColumns counts the columns of both: sums.tile[i] holds those of B in its first half, those
// of B2 in its second. Part of gemm/gemm_sm90_tma_wgmma_pair.cuh. SPDX-License-Identifier: Apache-2.0

// ---- Directly -----------------------------------------------------------------------------------------------------------------------

#include "parts/lane_exchange.cuh"

/// The sums of 8 neighbouring columns for each lane, from the group of 32 whose first sum of this lane and row half is sums[first]: four
/// lanes hold two columns each of every 8 and transpose four groups of 8 among themselves.
template <int kCount>
__device__ __forceinline__ void gather_columns(const float (&sums)[kCount], int first, int lane, float (&values)[8]) {
  float pairs[4][2];
#pragma unroll
  for (int block = 0; block < 4; ++block) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      pairs[block][e] = sums[first + block * 4 + e];
    }
  }
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    exchange(pairs[0][e], pairs[1][e], lane, 1);
    exchange(pairs[2][e], pairs[3][e], lane, 1);
    exchange(pairs[0][e], pairs[2][e], lane, 2);
    exchange(pairs[1][e], pairs[3][e], lane, 2);
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    values[i] = pairs[i / 2][i % 2];
  }
}

/// Stores the sums, 64 rows a wgmma tile, 32 columns of the output at a time.
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
      for (int group = 0; group < kColumns / 64; ++group) {
        float values[8], values2[8];
        gather_columns(sums.tile[i], group * 16 + half * 2, lane, values);
        gather_columns(sums.tile[i], kColumns / 4 + group * 16 + half * 2, lane, values2);
        const long long n = item.first_n / 2 + group * 32 + lane % 4 * 8;
        if (m < problem.extent_m && n < problem.extent_n) {
          epilogue_store<8>(epilogue, item.batch, m, n, values, values2,
                            problem.extent_n - n < 8 ? static_cast<int>(problem.extent_n - n) : 8);
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
  constexpr int kParts = kColumns / 128;
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
          const float(&tile)[kColumns / 2] = sums.tile[step / kParts];
          const int j = (step % kParts * 8 + pair * 2 + right) * 4 + below * 2;
          const float acc[2] = {tile[j], tile[j + 1]};
          const float acc2[2] = {tile[kColumns / 4 + j], tile[kColumns / 4 + j + 1]};
          const long long m = part.m(below, lane);
          const long long n = part.n(pair, right, lane);
          if constexpr (kIsWhole) {
            epilogue_values<true>(epilogue, item.batch, m, n, acc, acc2, reads.of[pair][right][below], 2, matrices[right][below].elements);
          } else if (m < problem.extent_m && n < problem.extent_n) {
            const int count = problem.extent_n - n < 2 ? 1 : 2;
            EpilogueReads own = {};
            epilogue_read<false>(epilogue, item.batch, m, n, count, own);
            epilogue_values<false>(epilogue, item.batch, m, n, acc, acc2, own, count, matrices[right][below].elements);
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
