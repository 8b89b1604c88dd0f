// The XOR swizzle of tiles in smem. A tile is lines of 16-byte chunks; smem has 32 banks of 4 bytes, so 8 chunks are one pass over
// all banks. mma.sync fragments read one chunk from each of 8 neighbouring lines: unswizzled lines of 128 bytes would put all 8 in the
// same banks. Chunk c of line l is stored at place c ^ (l % 8) of its line instead:
//     line 0: 0 1 2 3 4 5 6 7      a column of chunks, such as the 0s, now touches every bank once,
//     line 1: 1 0 3 2 5 4 7 6      and a whole line still does: both the copy into smem (along lines)
//     line 2: 2 3 0 1 6 7 4 5      and the reads (across lines) are free of conflicts.
// So byte c of line l lies at  l * kLineBytes + (c ^ swizzle_mask(l)).  The mask is a move of bits of l: where l = a + b have no bit
// in common, mask(l) = mask(a) ^ mask(b). Kernels use that to keep one masked column a thread and XOR constants into it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

/// kReadsElements: 4-byte elements are read one by one, 4 lines x 8 neighbours a warp, instead of 8 lines x 16 bytes: then
/// neighbouring lines move by two chunks. Lines shorter than 128 bytes: as many lines as make one pass over the banks move together.
template <int kLineBytes, bool kReadsElements>
__host__ __device__ constexpr int swizzle_mask(int line) {
  constexpr int kChunks = kLineBytes / 16;
  if constexpr (kReadsElements) {
    return kChunks >= 8 ? line % 4 * 32 : line / 2 % 2 * 32;
  } else {
    return kChunks >= 8 ? line % 8 * 16 : line / (8 / (kChunks < 8 ? kChunks : 8)) % kChunks * 16;
  }
}
