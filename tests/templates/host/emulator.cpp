// The fiber scheduler behind emulator.h.
// SPDX-License-Identifier: Apache-2.0
#include "tests/templates/host/emulator.h"

#include <ucontext.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <numeric>
#include <random>

HostDim3 threadIdx, blockIdx, blockDim, gridDim;

namespace kw::emulator {
namespace {

constexpr std::size_t kStackBytes = 128 * 1024;

struct AsyncCopy {
  unsigned smem;
  const void* gmem;
  int bytes, src_bytes;
};

struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  bool is_done = false, waits_for_cta = false, waits_for_warp = false;
  std::deque<std::vector<AsyncCopy>> groups;
  std::vector<AsyncCopy> open_group;
};

struct Warp {
  void* arguments[32] = {};
  void (*execute)(void* const*) = nullptr;
  int num_arrived = 0;
};

struct Cta {
  const Launch* launch = nullptr;
  const std::function<void()>* thread = nullptr;
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  ucontext_t scheduler;
  std::size_t current = 0;
  std::mt19937 random;
  std::string error;
};

Cta* cta = nullptr;

[[noreturn]] void complain(const std::string& what) {
  throw EmulationError("CTA " + std::to_string(blockIdx.x) + "," + std::to_string(blockIdx.y) + " thread " + std::to_string(threadIdx.x) +
                       ": " + what);
}

void yield() { swapcontext(&cta->fibers[cta->current].context, &cta->scheduler); }

void fiber_main() {
  try {
    (*cta->thread)();
  } catch (const std::exception& error) {  // an exception must not leave a fiber's stack
    cta->error = error.what();
  }
  cta->fibers[cta->current].is_done = true;
  setcontext(&cta->scheduler);
}

void land(const AsyncCopy& copy) {
  unsigned char* target = smem_pointer(copy.smem, static_cast<std::size_t>(copy.bytes));
  if (copy.src_bytes > 0) std::memcpy(target, copy.gmem, static_cast<std::size_t>(copy.src_bytes));
  std::memset(target + copy.src_bytes, 0, static_cast<std::size_t>(copy.bytes - copy.src_bytes));
}

void release_cta_barrier() {
  for (const Fiber& fiber : cta->fibers) {
    if (!fiber.is_done && !fiber.waits_for_cta) return;
  }
  for (Fiber& fiber : cta->fibers) fiber.waits_for_cta = false;
}

void run_cta(const Launch& launch, const std::function<void()>& thread, unsigned seed) {
  Cta state;
  cta = &state;
  state.launch = &launch;
  state.thread = &thread;
  state.random.seed(seed);
  state.fibers.resize(launch.block_x);
  state.warps.resize(launch.block_x / 32);
  std::memset(launch.smem, 0xff, launch.smem_bytes);
  for (Fiber& fiber : state.fibers) {
    fiber.stack = std::make_unique<char[]>(kStackBytes);
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, fiber_main, 0);
  }
  std::vector<std::size_t> order(launch.block_x);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), state.random);
  bool has_progress = true;
  while (has_progress && state.error.empty()) {
    has_progress = false;
    for (const std::size_t i : order) {
      Fiber& fiber = state.fibers[i];
      if (fiber.is_done || fiber.waits_for_cta || fiber.waits_for_warp) continue;
      state.current = i;
      threadIdx.x = static_cast<unsigned>(i);
      has_progress = true;
      swapcontext(&state.scheduler, &fiber.context);
      if (!state.error.empty()) break;
    }
    release_cta_barrier();
  }
  const bool is_finished = std::all_of(state.fibers.begin(), state.fibers.end(), [](const Fiber& fiber) { return fiber.is_done; });
  cta = nullptr;
  if (!state.error.empty()) throw EmulationError(state.error);
  if (!is_finished) throw EmulationError("deadlock: some threads wait for others that never come");
}

}  // namespace

void run_grid(const Launch& launch, const std::function<void()>& thread) {
  blockDim = {launch.block_x, 1, 1};
  gridDim = {launch.grid_x, launch.grid_y, 1};
  std::vector<unsigned> order(launch.grid_x * launch.grid_y);
  std::iota(order.begin(), order.end(), 0u);
  std::mt19937 random(launch.seed);
  std::shuffle(order.begin(), order.end(), random);
  for (const unsigned index : order) {
    blockIdx = {index % launch.grid_x, index / launch.grid_x, 0};
    run_cta(launch, thread, static_cast<unsigned>(random()));
  }
}

unsigned smem_address(const void* pointer) { return static_cast<unsigned>(static_cast<const unsigned char*>(pointer) - cta->launch->smem); }

unsigned char* smem_pointer(unsigned address, std::size_t bytes) {
  if (address % bytes != 0) complain("smem address " + std::to_string(address) + " is not aligned to " + std::to_string(bytes));
  if (address + bytes > cta->launch->smem_bytes) complain("smem address " + std::to_string(address) + " is beyond the CTA's smem");
  return cta->launch->smem + address;
}

void warp_collective(void* argument, void (*execute)(void* const* lanes)) {
  Warp& warp = cta->warps[cta->current / 32];
  if (warp.num_arrived > 0 && warp.execute != execute) complain("lanes of one warp are at different warp-wide instructions");
  warp.execute = execute;
  warp.arguments[cta->current % 32] = argument;
  if (++warp.num_arrived < 32) {
    cta->fibers[cta->current].waits_for_warp = true;
    yield();
    return;
  }
  execute(warp.arguments);
  warp.num_arrived = 0;
  for (std::size_t lane = 0; lane < 32; ++lane) cta->fibers[cta->current / 32 * 32 + lane].waits_for_warp = false;
}

void copy_async(unsigned smem, const void* gmem, int bytes, int src_bytes) {
  if (reinterpret_cast<std::size_t>(gmem) % static_cast<std::size_t>(bytes) != 0) complain("cp.async: gmem address is not aligned");
  if (src_bytes < 0 || src_bytes > bytes) complain("cp.async: src_bytes = " + std::to_string(src_bytes));
  const auto* first = static_cast<const unsigned char*>(gmem);
  const bool is_readable = std::any_of(cta->launch->readable.begin(), cta->launch->readable.end(), [&](const auto& range) {
    return first >= range.first && first + src_bytes <= range.first + range.second;
  });
  if (!is_readable) complain("cp.async reads outside the tensors");
  const AsyncCopy copy = {smem, gmem, bytes, src_bytes};
  if (cta->random() % 2 == 0) {
    land(copy);
  } else {
    cta->fibers[cta->current].open_group.push_back(copy);
  }
}

void commit_copies() {
  Fiber& fiber = cta->fibers[cta->current];
  fiber.groups.push_back(std::move(fiber.open_group));
  fiber.open_group.clear();
}

void wait_copies(int pending_groups) {
  Fiber& fiber = cta->fibers[cta->current];
  while (fiber.groups.size() > static_cast<std::size_t>(pending_groups)) {
    for (const AsyncCopy& copy : fiber.groups.front()) land(copy);
    fiber.groups.pop_front();
  }
}

}  // namespace kw::emulator

void __syncthreads() {
  kw::emulator::cta->fibers[kw::emulator::cta->current].waits_for_cta = true;
  kw::emulator::yield();
}

void __syncwarp() {
  kw::emulator::warp_collective(nullptr, [](void* const*) {});
}
