// Runs gemm_tma_wgmma_sm90a.cu on a GPU at the shapes of gemm_tma_wgmma_test.cpp, compares every element with the exact product and prints
// a digest of each output, so that the kernel which the simulator calls clean is seen to be right on the device too.
//   nvcc -std=c++17 -O3 -gencode arch=compute_90a,code=sm_90a -I. -o run_gemm tests/simulator/kernels/run_gemm_on_device.cu -lcuda && ./run_gemm
// Exit code 1 when an element is wrong. Not part of the build.
// SPDX-License-Identifier: Apache-2.0
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "simulator/tensor/tile_generator.h"
#include "tests/simulator/kernels/gemm_tma_wgmma_sm90a.cu"

namespace {

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(3);
}

struct Shape {
  int m, n, k, num_ctas;
};

/// The test's whole numbers in [-3, 3], as bf16 bits (exact).
std::vector<std::uint16_t> whole_bf16(int count, std::uint64_t seed) {
  std::vector<std::uint16_t> bits;
  for (int index = 0; index < count; ++index) {
    const float value =
        static_cast<float>(static_cast<int>(kw::simulate::mix_bits(seed * 1000003 + static_cast<std::uint64_t>(index)) % 7) - 3);
    std::uint32_t word;
    memcpy(&word, &value, 4);
    bits.push_back(static_cast<std::uint16_t>(word >> 16));
  }
  return bits;
}

float value_of(std::uint16_t bits) {
  const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  float value;
  memcpy(&value, &word, 4);
  return value;
}

/// Nearest even, finite values.
std::uint16_t bf16_of(float value) {
  std::uint32_t word;
  memcpy(&word, &value, 4);
  return static_cast<std::uint16_t>((word + 0x7fff + (word >> 16 & 1)) >> 16);
}

TensorMap encode(void* address, int inner, int outer, std::uint32_t box_outer) {
  CUtensorMap map;
  const cuuint64_t extents[] = {static_cast<cuuint64_t>(inner), static_cast<cuuint64_t>(outer)},
                   strides[] = {static_cast<cuuint64_t>(inner) * 2};
  const cuuint32_t box[] = {64, box_outer}, element_strides[] = {1, 1};
  const CUresult result = cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, address, extents, strides, box, element_strides,
                                                 CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                                 CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    std::fprintf(stderr, "cuTensorMapEncodeTiled: %d\n", static_cast<int>(result));
    std::exit(3);
  }
  TensorMap bytes;
  static_assert(sizeof(bytes) == sizeof(map), "a tensor map is 128 bytes");
  memcpy(&bytes, &map, sizeof(map));
  return bytes;
}

int run(const Shape& shape) {
  const std::vector<std::uint16_t> a = whole_bf16(shape.m * shape.k, 1), b = whole_bf16(shape.n * shape.k, 2);
  std::vector<std::uint16_t> c(static_cast<std::size_t>(shape.m) * shape.n, 0x7fff);
  void *device_a, *device_b, *device_c;
  check(cudaMalloc(&device_a, a.size() * 2), "cudaMalloc");
  check(cudaMalloc(&device_b, b.size() * 2), "cudaMalloc");
  check(cudaMalloc(&device_c, c.size() * 2), "cudaMalloc");
  check(cudaMemcpy(device_a, a.data(), a.size() * 2, cudaMemcpyHostToDevice), "cudaMemcpy");
  check(cudaMemcpy(device_b, b.data(), b.size() * 2, cudaMemcpyHostToDevice), "cudaMemcpy");
  check(cudaMemcpy(device_c, c.data(), c.size() * 2, cudaMemcpyHostToDevice), "cudaMemcpy");
  check(cudaFuncSetAttribute(gemm_tma_wgmma, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(sizeof(SharedStorage))), "smem");
  gemm_tma_wgmma<<<static_cast<unsigned>(shape.num_ctas), 384, sizeof(SharedStorage)>>>(
      encode(device_a, shape.k, shape.m, 128), encode(device_b, shape.k, shape.n, 32), encode(device_c, shape.n, shape.m, 64), shape.m,
      shape.n, shape.k);
  check(cudaGetLastError(), "launch");
  check(cudaDeviceSynchronize(), "kernel");
  check(cudaMemcpy(c.data(), device_c, c.size() * 2, cudaMemcpyDeviceToHost), "cudaMemcpy");
  int num_wrong = 0;
  std::uint64_t digest = 0;
  for (int row = 0; row < shape.m; ++row) {
    for (int column = 0; column < shape.n; ++column) {
      float sum = 0;
      for (int step = 0; step < shape.k; ++step) sum += value_of(a[row * shape.k + step]) * value_of(b[column * shape.k + step]);
      const std::uint16_t got = c[static_cast<std::size_t>(row) * shape.n + column];
      num_wrong += got != bf16_of(sum) ? 1 : 0;
      digest += kw::simulate::mix_bits(kw::simulate::mix_bits(static_cast<std::uint64_t>(row) << 32 | static_cast<unsigned>(column)) ^ got);
    }
  }
  std::printf("m %d n %d k %d: %d wrong, digest %016llx\n", shape.m, shape.n, shape.k, num_wrong, static_cast<unsigned long long>(digest));
  check(cudaFree(device_a), "cudaFree");
  check(cudaFree(device_b), "cudaFree");
  check(cudaFree(device_c), "cudaFree");
  return num_wrong;
}

}  // namespace

int main() {
  const Shape shapes[] = {{256, 64, 64, 2}, {256, 128, 256, 2}, {200, 40, 72, 2}, {512, 64, 128, 4},     {130, 200, 200, 2},
                          {600, 72, 64, 4}, {256, 192, 320, 2}, {8, 8, 8, 2},     {2048, 1024, 512, 32}, {1000, 1000, 1000, 16}};
  int num_wrong = 0;
  for (const Shape& shape : shapes) num_wrong += run(shape);
  std::printf("%s\n", num_wrong == 0 ? "all right" : "WRONG");
  return num_wrong == 0 ? 0 : 1;
}
