// mbarrier: an 8-byte object in smem that counts arrivals and bytes of asynchronous copies in phases. PTX ISA, "mbarrier". sm_90.
// A phase ends when the arrivals of the init count and all announced bytes have come. wait(parity) passes when the phase of that parity has
// ended: a fresh barrier lets wait(1) pass and holds wait(0). `smem` is a shared-space address (ptx/shared.cuh), 8-byte aligned.
// SPDX-License-Identifier: Apache-2.0
#pragma once

__device__ __forceinline__ void mbarrier_init(unsigned smem, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem), "r"(arrivals) : "memory");
}

/// Makes this thread's mbarrier_init visible to the cluster and to asynchronous copies; a barrier of all threads must follow.
__device__ __forceinline__ void fence_mbarrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

/// False: the phase has not ended yet (the instruction sleeps for a while by itself).
__device__ __forceinline__ bool mbarrier_try_wait(unsigned smem, unsigned parity) {
  unsigned is_done;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.b32 %0, 1, 0, p;\n"
      "}\n"
      : "=r"(is_done)
      : "r"(smem), "r"(parity)
      : "memory");
  return is_done != 0;
}

__device__ __forceinline__ void mbarrier_wait(unsigned smem, unsigned parity) {
  while (!mbarrier_try_wait(smem, parity)) {
  }
}

/// One arrival that announces `bytes` of asynchronous copies to this barrier.
__device__ __forceinline__ void mbarrier_arrive_expect_tx(unsigned smem, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(smem), "r"(bytes) : "memory");
}

__device__ __forceinline__ void mbarrier_arrive(unsigned smem) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(smem) : "memory");
}

/// Arrives at the barrier that lies at the same place in CTA `rank` of the cluster. No .release.cluster: it would cost 300 cycles, and what
/// the arrival orders here, the reads of a finished wgmma, needs none.
__device__ __forceinline__ void mbarrier_arrive_cluster(unsigned smem, unsigned rank) {
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
      "}\n" ::"r"(smem),
      "r"(rank)
      : "memory");
}
