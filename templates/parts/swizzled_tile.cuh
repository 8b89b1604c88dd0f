// A tile of 16-bit elements in smem as TMA writes it and wgmma reads it. It is cut into panels: kSwizzleBytes of the contiguous axis, times
// all lines of the other axis. A panel's lines lie kSwizzleBytes apart, its 16-byte chunks XORed with the line's number:
//     panel 0: line 0 | line 1 | ... | line kLines-1    panel 1: line 0 | ...        each panel kLines * kSwizzleBytes bytes
// Both sides XOR the address bits themselves (128 bytes: bits 4-6 with 7-9), so panels start at multiples of 1024 bytes, and an offset of
// whole chunks or lines may be added to a descriptor without thinking of the swizzle. PTX ISA, "asynchronous warpgroup level matrix
// operand". SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ptx/tma.cuh"

/// kIsKContiguous: lines run along k, one for each row (A) or column (B); else along m or n, one for each k.
template <int kContiguous, int kLines, int kSwizzleBytes, bool kIsKContiguous>
struct SwizzledTile {
  static constexpr int kElementsPerLine = kSwizzleBytes / 2;  ///< of a panel
  static constexpr int kPanels = kContiguous / kElementsPerLine;
  static constexpr int kPanelBytes = kLines * kSwizzleBytes;
  static constexpr int kTranspose = kIsKContiguous ? 0 : 1;  ///< wgmma's operand of that name

  /// Descriptor of the tile at `smem`. Offsets in it count 16 bytes: from 8 lines to the next 8; from panel to panel, read when lines
  /// run along m or n. Addresses in a cluster have the CTA's rank in bits 24 and up, which the mask takes off.
  static __device__ __forceinline__ unsigned long long descriptor(unsigned smem) {
    constexpr unsigned long long kLayout = kSwizzleBytes == 128 ? 1ull : kSwizzleBytes == 64 ? 2ull : 3ull;
    constexpr unsigned long long kEightLines = 8 * kSwizzleBytes / 16;
    constexpr unsigned long long kNextPanel = kIsKContiguous ? 1 : kPanelBytes / 16;
    return kLayout << 62 | kEightLines << 32 | kNextPanel << 16 | (smem & 0x3ffffu) >> 4;
  }

  /// What to add to the descriptor for the part that starts at element `mn` (a multiple of 64) of m or n and step `step` of 16 k.
  static __host__ __device__ constexpr int offset(int mn, int step) {
    return kIsKContiguous ? (step * 32 / kSwizzleBytes * kPanelBytes + step * 32 % kSwizzleBytes + mn * kSwizzleBytes) / 16
                          : (mn / kElementsPerLine * kPanelBytes + step * 16 * kSwizzleBytes) / 16;
  }

  /// Starts the copies of lines [part * kLines / kParts, ...) of all panels, the tile's first element at (`contiguous`, `line`) of the
  /// tensor; with kParts > 1 into all CTAs of `cta_mask`, each of which copies its own part to all.
  template <int kParts>
  static __device__ __forceinline__ void start_copy(unsigned smem, const TensorMap& map, unsigned barrier, int contiguous, int line,
                                                    int batch, int part, unsigned short cta_mask) {
    constexpr int kPartLines = kLines / kParts;
#pragma unroll
    for (int panel = 0; panel < kPanels; ++panel) {
      const unsigned to = smem + panel * kPanelBytes + part * (kPartLines * kSwizzleBytes);
      if constexpr (kParts == 1) {
        tma_load_3d(to, map, barrier, contiguous + panel * kElementsPerLine, line, batch);
      } else {
        tma_load_3d_multicast(to, map, barrier, contiguous + panel * kElementsPerLine, line + part * kPartLines, batch, cta_mask);
      }
    }
  }

  /// The same for a tile whose first half comes from one tensor and whose second half from another: of lines along k the first and last
  /// kLines / 2, else the first and last panels. `contiguous` and `line` are where the halves begin in their tensors.
  template <int kParts>
  static __device__ __forceinline__ void start_copy_of_pair(unsigned smem, const TensorMap& map_0, const TensorMap& map_1, unsigned barrier,
                                                            int contiguous, int line, int batch, int part, unsigned short cta_mask) {
    constexpr int kHalfPanels = kIsKContiguous ? kPanels : kPanels / 2;
    constexpr int kHalfLines = kIsKContiguous ? kLines / 2 : kLines;
    constexpr int kHalfBytes = kIsKContiguous ? kHalfLines * kSwizzleBytes : kHalfPanels * kPanelBytes;
    constexpr int kPartLines = kHalfLines / kParts;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const TensorMap& map = half == 0 ? map_0 : map_1;
#pragma unroll
      for (int panel = 0; panel < kHalfPanels; ++panel) {
        const unsigned to = smem + half * kHalfBytes + panel * kPanelBytes + part * (kPartLines * kSwizzleBytes);
        if constexpr (kParts == 1) {
          tma_load_3d(to, map, barrier, contiguous + panel * kElementsPerLine, line, batch);
        } else {
          tma_load_3d_multicast(to, map, barrier, contiguous + panel * kElementsPerLine, line + part * kPartLines, batch, cta_mask);
        }
      }
    }
  }
};
