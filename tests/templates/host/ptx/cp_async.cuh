// Host version of templates/ptx/cp_async.cuh: the same names, on the emulator.
// SPDX-License-Identifier: Apache-2.0
#pragma once

inline void cp_async_4(unsigned smem, const void* gmem, int src_bytes) { kw::emulator::copy_async(smem, gmem, 4, src_bytes); }
inline void cp_async_8(unsigned smem, const void* gmem, int src_bytes) { kw::emulator::copy_async(smem, gmem, 8, src_bytes); }
inline void cp_async_16(unsigned smem, const void* gmem, int src_bytes) { kw::emulator::copy_async(smem, gmem, 16, src_bytes); }
inline void cp_async_commit_group() { kw::emulator::commit_copies(); }
template <int kPending>
inline void cp_async_wait_group() {
  kw::emulator::wait_copies(kPending);
}
