// Copies one operand's tile after tile from gmem to smem with cp.async, with zeros where the problem ends.
// A tile is kLines lines of kLineBytes bytes; lines lie `line_stride` elements apart in gmem and are swizzled in smem.
//   k contiguous:  lines are rows of m (or n), columns are k: columns past the end of k are zero.
//   else:          lines are k, columns are m (or n):         lines past the end of k are zero.
// Rows of m (or n) past the end of the problem hold copies of its last row, or zeros: they only reach sums that nobody stores.
// No address outside the tensor is formed for a byte that is read; a copy of 0 bytes points at the tile's start.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "parts/swizzle.cuh"
#include "ptx/cp_async.cuh"
#include "ptx/shared.cuh"

/// Copies `bytes` of kVecBytes and fills the rest with zeros. Copies below 4 bytes (one 16-bit element) have no cp.async: they go
/// through a register, at once; the barrier before the stage is read covers them too.
template <int kVecBytes>
__device__ __forceinline__ void copy_vector(unsigned smem, const unsigned char* gmem, int bytes) {
  if constexpr (kVecBytes == 16) {
    cp_async_16(smem, gmem, bytes);
  } else if constexpr (kVecBytes == 8) {
    cp_async_8(smem, gmem, bytes);
  } else if constexpr (kVecBytes == 4) {
    cp_async_4(smem, gmem, bytes);
  } else {
    static_assert(kVecBytes == 2, "a copy moves 2, 4, 8 or 16 bytes");
    st_shared_b16(smem, bytes > 0 ? *reinterpret_cast<const unsigned short*>(gmem) : static_cast<unsigned short>(0));
  }
}

template <int kThreads, int kLines, int kLineBytes, int kElementBytes, int kVecBytes, bool kIsKContiguous>
struct TileCopy {
  static constexpr int kVectorsPerLine = kLineBytes / kVecBytes;
  static constexpr int kThreadsPerLine = kVectorsPerLine < kThreads ? kVectorsPerLine : kThreads;
  static constexpr int kLinesPerPass = kThreads / kThreadsPerLine;
  static constexpr int kColumnPasses = kVectorsPerLine / kThreadsPerLine;
  static constexpr int kPasses = kLines / kLinesPerPass * kColumnPasses;

  const unsigned char* source;  ///< the next tile's first element
  long long tile_step_bytes;    ///< from one tile to the next, along k
  unsigned line_stride_bytes;
  int lines_or_columns_left;  ///< lines of m, or bytes of m, from the tile's start to the end of the problem
  int first_line;             ///< of this thread
  int first_column;           ///< of this thread, in bytes

  /// `tile`: the first tile's first element. `left`: elements of m (or n) from there to the end of the problem, at least 1.
  template <typename Element>
  __device__ __forceinline__ TileCopy(const Element* tile, long long line_stride, long long left, int tile_k)
      : source(reinterpret_cast<const unsigned char*>(tile)),
        tile_step_bytes((kIsKContiguous ? 1 : line_stride) * tile_k * kElementBytes),
        line_stride_bytes(static_cast<unsigned>(line_stride * kElementBytes)),
        lines_or_columns_left(kIsKContiguous ? static_cast<int>(left < kLines ? left : kLines)
                                             : static_cast<int>(left * kElementBytes < kLineBytes ? left * kElementBytes : kLineBytes)),
        first_line(static_cast<int>(threadIdx.x) / kThreadsPerLine),
        first_column(static_cast<int>(threadIdx.x) % kThreadsPerLine * kVecBytes) {}

  __device__ __forceinline__ static constexpr int mask(int line) {
    return swizzle_mask < kLineBytes, !kIsKContiguous && kElementBytes == 4 > (line);
  }

  /// Starts one of kParts shares of the copies of the next tile to smem address `smem`; the last share moves on to the tile after.
  /// `k_left`: elements of k from the tile's start to the end; there may be none left, then all is zeros.
  template <int kParts>
  __device__ __forceinline__ void start(unsigned smem, int k_left, int tile_k, int part) {
    const int k_here = k_left < tile_k ? k_left : tile_k;
    const int lines_left = !kIsKContiguous || k_left <= 0 ? k_here : lines_or_columns_left;
    const int columns_left = kIsKContiguous ? k_here * kElementBytes : lines_or_columns_left;
    const int last_line = lines_left > 0 ? lines_left - 1 : 0;
    const int smem_line = first_line * kLineBytes;
    const int smem_column = first_column ^ mask(first_line);
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      if (pass * kParts / kPasses == part) {
        const int next_lines = pass / kColumnPasses * kLinesPerPass;  // bits of lines and columns that no thread's first ones have
        const int next_columns = pass % kColumnPasses * (kThreadsPerLine * kVecBytes);
        const int line = first_line + next_lines;
        const int column = first_column + next_columns;
        const int bytes_left = columns_left - column < kVecBytes ? columns_left - column : kVecBytes;
        const int bytes = bytes_left > 0 && (kIsKContiguous || line < lines_left) ? bytes_left : 0;
        const unsigned source_line = static_cast<unsigned>(line < last_line ? line : last_line);
        const unsigned source_column = bytes_left > 0 ? static_cast<unsigned>(column) : 0u;
        copy_vector<kVecBytes>(
            smem + static_cast<unsigned>(smem_line + next_lines * kLineBytes + (smem_column ^ (mask(next_lines) ^ next_columns))),
            source + (source_line * line_stride_bytes + source_column), bytes);
      }
    }
    if (part == kParts - 1) {
      source += k_left > tile_k ? tile_step_bytes : 0;  // stay inside the tensor past the last tile
    }
  }
};
