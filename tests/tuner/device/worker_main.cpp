// The children's side of the device tests: the dispatch that the real executable does.
// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "tuner/compile/compiler.h"
#include "tuner/device/gpu_worker.h"

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "__gpu-worker") return kw::tuner::gpu_worker_main();
  if (command == "__compile-worker") return kw::tuner::compile_worker_main();
  return 2;
}
