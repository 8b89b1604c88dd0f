// Host version of templates/ptx/shared.cuh: the same names, on the emulator. A shared address is the offset in the CTA's smem.
// SPDX-License-Identifier: Apache-2.0
#pragma once

inline unsigned shared_address(const void* pointer) { return kw::emulator::smem_address(pointer); }

inline unsigned ld_shared_b32(unsigned smem) {
  unsigned value;
  std::memcpy(&value, kw::emulator::smem_pointer(smem, 4), 4);
  return value;
}

inline void st_shared_b16(unsigned smem, unsigned short value) { std::memcpy(kw::emulator::smem_pointer(smem, 2), &value, 2); }
