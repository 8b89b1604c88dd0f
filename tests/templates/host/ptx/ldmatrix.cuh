// Host version of templates/ptx/ldmatrix.cuh: the same names, on the emulator.
// SPDX-License-Identifier: Apache-2.0
#pragma once

struct LdmatrixLane {
  unsigned smem;
  unsigned registers[4];
};

template <bool kIsTransposed>
void execute_ldmatrix(void* const* lanes) {
  for (int matrix = 0; matrix < 4; ++matrix) {
    unsigned short elements[8][8];
    for (int row = 0; row < 8; ++row) {
      const auto* lane = static_cast<const LdmatrixLane*>(lanes[matrix * 8 + row]);
      std::memcpy(elements[row], kw::emulator::smem_pointer(lane->smem, 16), 16);
    }
    for (int l = 0; l < 32; ++l) {
      const int a = l / 4, b = l % 4 * 2;
      const unsigned low = kIsTransposed ? elements[b][a] : elements[a][b];
      const unsigned high = kIsTransposed ? elements[b + 1][a] : elements[a][b + 1];
      static_cast<LdmatrixLane*>(lanes[l])->registers[matrix] = low | high << 16;
    }
  }
}

inline void ldmatrix_x4(unsigned smem, unsigned& r0, unsigned& r1, unsigned& r2, unsigned& r3) {
  LdmatrixLane lane = {smem, {}};
  kw::emulator::warp_collective(&lane, execute_ldmatrix<false>);
  r0 = lane.registers[0], r1 = lane.registers[1], r2 = lane.registers[2], r3 = lane.registers[3];
}

inline void ldmatrix_x4_trans(unsigned smem, unsigned& r0, unsigned& r1, unsigned& r2, unsigned& r3) {
  LdmatrixLane lane = {smem, {}};
  kw::emulator::warp_collective(&lane, execute_ldmatrix<true>);
  r0 = lane.registers[0], r1 = lane.registers[1], r2 = lane.registers[2], r3 = lane.registers[3];
}
