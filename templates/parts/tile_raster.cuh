// Which output tile a CTA makes. Neighbouring CTAs run at the same time, so neighbours should share rows of A and columns of B
// in L2: tiles are walked in groups of `group_m` tiles along m, down a group's column before the next column.
//      n ->          group_m = 2:   0 2 4
//   m  0 1 2                        1 3 5
//   |  ...                          6 8 10   (next group)
// SPDX-License-Identifier: Apache-2.0
#pragma once

struct TileCoordinate {
  int batch;
  int tile_m;
  int tile_n;
};

/// `index` counts tiles of all batches: 0 .. batches * tiles_m * tiles_n - 1. group_m == 1 walks along n first.
__device__ __forceinline__ TileCoordinate locate_tile(unsigned index, unsigned tiles_m, unsigned tiles_n, unsigned group_m) {
  const unsigned tiles = tiles_m * tiles_n;
  const unsigned batch = index / tiles;
  const unsigned in_batch = index % tiles;
  const unsigned tiles_of_group = group_m * tiles_n;
  const unsigned first_m = in_batch / tiles_of_group * group_m;
  const unsigned in_group = in_batch % tiles_of_group;
  const unsigned group_height = tiles_m - first_m < group_m ? tiles_m - first_m : group_m;
  return TileCoordinate{static_cast<int>(batch), static_cast<int>(first_m + in_group % group_height),
                        static_cast<int>(in_group / group_height)};
}
