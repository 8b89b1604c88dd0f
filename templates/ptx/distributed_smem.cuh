// The smem of the other CTAs of a cluster. The peer must have begun when it is touched, and may not leave before: a cluster barrier on
// either side. PTX ISA, "mapa", "ld". sm_90. SPDX-License-Identifier: Apache-2.0
#pragma once

/// What `smem`, a shared-space address of this CTA, is in CTA `rank` of the cluster.
__device__ __forceinline__ unsigned cluster_address(unsigned smem, unsigned rank) {
  unsigned address;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(smem), "r"(rank));
  return address;
}

/// 16 bytes from a cluster_address(), 16-byte aligned.
__device__ __forceinline__ void ld_shared_cluster_v4(unsigned address, float (&values)[4]) {
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(values[0]), "=f"(values[1]), "=f"(values[2]), "=f"(values[3])
               : "r"(address)
               : "memory");
}

__device__ __forceinline__ float ld_shared_cluster_f32(unsigned address) {
  float value;
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory");
  return value;
}
