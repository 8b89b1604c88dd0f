// What kernels with specialised warps use: registers moved between warpgroups, one elected lane, named barriers, the cluster.
// PTX ISA, "setmaxnreg", "elect.sync", "bar", "barrier.cluster". sm_90a. SPDX-License-Identifier: Apache-2.0
#pragma once

/// Gives registers of every thread of this warpgroup back, down to kCount (a multiple of 8).
template <int kCount>
__device__ __forceinline__ void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}

/// Takes registers that other warpgroups gave back, up to kCount; waits until they are there.
template <int kCount>
__device__ __forceinline__ void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}

/// True in one lane of a converged warp. Copies issued under it need no loop over lanes, as they do under `threadIdx.x == 0`.
__device__ __forceinline__ bool elect_one() {
  unsigned is_elected;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "elect.sync _|p, 0xffffffff;\n"
      "selp.b32 %0, 1, 0, p;\n"
      "}\n"
      : "=r"(is_elected));
  return is_elected != 0;
}

/// This thread's lane, read again at every call: what is computed from it does not occupy registers between the calls.
__device__ __forceinline__ int read_lane() {
  int lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

/// Barrier `id` (1 to 15; 0 is __syncthreads) of `threads` threads, whole warps.
__device__ __forceinline__ void named_barrier_sync(unsigned id, unsigned threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// Counts this warp's threads at the barrier without waiting there.
__device__ __forceinline__ void named_barrier_arrive(unsigned id, unsigned threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// named_barrier_sync; true in all threads when `predicate` is true in any.
__device__ __forceinline__ bool named_barrier_or(unsigned id, unsigned threads, bool predicate) {
  unsigned is_any;
  asm volatile(
      "{\n"
      ".reg .pred p, q;\n"
      "setp.ne.b32 p, %3, 0;\n"
      "bar.red.or.pred q, %1, %2, p;\n"
      "selp.b32 %0, 1, 0, q;\n"
      "}\n"
      : "=r"(is_any)
      : "r"(id), "r"(threads), "r"(predicate ? 1u : 0u)
      : "memory");
  return is_any != 0;
}

__device__ __forceinline__ unsigned cluster_cta_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// Barrier of all threads of the cluster, which may come from diverged roles.
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
