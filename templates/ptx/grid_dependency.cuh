// Programmatic dependent launch: a kernel of a plan begins while the one before it runs. PTX ISA, "griddepcontrol", "prefetch". sm_90.
// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Waits until the grid before this one has ended and what it wrote is visible. Where a launch depends on no grid it waits for nothing.
__device__ __forceinline__ void wait_for_grid_before() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

/// The same, and gives the value back: loads at addresses that are made of it stay behind the wait, also those that the compiler may move.
__device__ __forceinline__ long long wait_for_grid_before(long long value) {
  asm volatile("griddepcontrol.wait;" : "+l"(value) : : "memory");
  return value;
}

/// Lets the next grid begin, once every CTA of this one has said so or ended. Of memory it promises nothing: the next grid waits for that.
__device__ __forceinline__ void let_next_grid_begin() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

/// Has L2 fetch the line at the address: what is there must not change any more.
__device__ __forceinline__ void prefetch_to_l2(const void* gmem) { asm volatile("prefetch.global.L2 [%0];" : : "l"(gmem)); }
