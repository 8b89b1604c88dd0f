// The XOR swizzle of tiles in smem. A tile is lines of 16-byte chunks; smem has 32 banks of 4 bytes, so 8 chunks are one pass over
// all banks. mma.sync fragments read one chunk from each of 8 neighbouring lines: unswizzled lines of 128 bytes would put all 8 in the
// same banks. Chunk c of line l is stored at place c ^ (l % 8) of its line instead:
//     line 0: 0 1 2 3 4 5 6 7      a column of chunks, such as the 0s, now touches every bank once,
//     line 1: 1 0 3 2 5 4 7 6      and a whole line still does: both the copy into smem (along lines)
//     line 2: 2 3 0 1 6 7 4 5      and the reads (across lines) are free of conflicts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Byte offset of byte `column` of line `line`. kReadsElements: 4-byte elements are read one by one, 4 lines x 8 neighbours a warp,
/// instead of 8 lines x 16 bytes: then the lines must move by two chunks each.
template <int kLineBytes, bool kReadsElements>
__device__ __forceinline__ int swizzled_offset(int line, int column) {
  constexpr int kChunks = kLineBytes / 16;
  const int chunk = column / 16;
  int moved = 0;
  if constexpr (kReadsElements) {
    moved = kChunks >= 8 ? chunk ^ (line % 4 * 2) : chunk ^ (line / 2 % 2 * 2);
  } else {
    // Lines shorter than 128 bytes: 8 / kChunks lines together make one pass over the banks, and move together.
    moved = kChunks >= 8 ? chunk ^ (line % 8) : chunk ^ (line / (8 / (kChunks < 8 ? kChunks : 8)) % kChunks);
  }
  return line * kLineBytes + moved * 16 + column % 16;
}
