// Runs a template's kernel on the host, thread by thread, to find index and barrier mistakes without a GPU.
// Threads of a CTA are fibers of one OS thread: a fiber runs until a barrier or a warp-wide instruction. The order in which fibers
// run, and whether a cp.async lands at once or only when it is waited for, are drawn from a seed: what a missing barrier or
// wait would break breaks under some seed. Host versions of templates/ptx (tests/templates/host/ptx) call this.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#define __device__
#define __host__
#define __global__
#define __shared__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)

struct HostDim3 {
  unsigned x = 0, y = 0, z = 0;
};
extern HostDim3 threadIdx, blockIdx, blockDim, gridDim;

void __syncthreads();
void __syncwarp();
inline void __threadfence() {}
inline float __uint_as_float(unsigned bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}
inline unsigned __float_as_uint(float value) {
  unsigned bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}

namespace kw::emulator {

/// A misuse that the hardware would punish: misaligned or out-of-range copy, divergent warp-wide instruction, deadlock.
struct EmulationError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Launch {
  unsigned grid_x = 1, grid_y = 1, block_x = 1;
  unsigned char* smem = nullptr;  ///< the dynamic smem of the CTA that runs
  std::size_t smem_bytes = 0;     ///< poisoned with 0xff before each CTA; copies beyond it are errors
  unsigned seed = 0;
  std::vector<std::pair<const unsigned char*, std::size_t>> readable;  ///< gmem that copies may read
};

/// Runs `thread` once for every thread of the grid. CTAs one after another, in an order drawn from the seed.
void run_grid(const Launch& launch, const std::function<void()>& thread);

/// Smem address (offset) of a pointer into the CTA's smem, and back with a check of range and alignment.
unsigned smem_address(const void* pointer);
unsigned char* smem_pointer(unsigned address, std::size_t bytes);

/// Waits until all lanes of the warp are here with the same `execute`, which then sees every lane's argument.
void warp_collective(void* argument, void (*execute)(void* const* lanes));

void copy_async(unsigned smem, const void* gmem, int bytes, int src_bytes);
void commit_copies();
void wait_copies(int pending_groups);

}  // namespace kw::emulator
