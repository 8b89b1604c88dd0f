// cp.async: copies from gmem to smem that run in the background, in groups. PTX ISA, "cp.async". sm_80 and up.
// `smem` is a shared-space address (ptx/shared.cuh). The first `src_bytes` bytes come from `gmem`, the rest of the
// destination is filled with zeros; src_bytes == 0 reads nothing. Both addresses are aligned to the copy's size.
// SPDX-License-Identifier: Apache-2.0
#pragma once

/// 4 bytes, through L1.
__device__ __forceinline__ void cp_async_4(unsigned smem, const void* gmem, int src_bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(smem), "l"(gmem), "r"(src_bytes) : "memory");
}

/// 8 bytes, through L1.
__device__ __forceinline__ void cp_async_8(unsigned smem, const void* gmem, int src_bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(smem), "l"(gmem), "r"(src_bytes) : "memory");
}

/// 16 bytes, past L1; hints L2 to fetch the whole 128-byte line.
__device__ __forceinline__ void cp_async_16(unsigned smem, const void* gmem, int src_bytes) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(smem), "l"(gmem), "r"(src_bytes) : "memory");
}

/// Closes the group of all copies this thread issued since the last commit. A group may be empty.
__device__ __forceinline__ void cp_async_commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Waits until at most `kPending` of this thread's newest groups are still running.
template <int kPending>
__device__ __forceinline__ void cp_async_wait_group() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}
