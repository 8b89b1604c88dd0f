// Runs mutants of the GEMM fixtures (PTX or cubin files) on a GPU, each in a process of its own, at the problems of the mutation suite
// and a larger one, many times over, and prints what the device shows of each:
//   NAME <tab> right | wrong: N of M outputs (...) | error: TEXT | hung
// Build and choice of the files: device_mutants.py. Usage: run_mutants_on_device [--seconds N] FILE...
// Exit code 0 when all files were run, whatever they showed. Not part of the build. SPDX-License-Identifier: Apache-2.0
#include <cuda.h>
#include <cuda_fp16.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "simulator/tensor/tile_generator.h"

namespace {

constexpr int kNumRepeats = 50;
constexpr int kExitShown = 0, kExitSetup = 3;

[[noreturn]] void show(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
  _exit(kExitShown);  // without tearing down a context that a fault has left behind
}

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* text = "unknown";
  cuGetErrorString(result, &text);
  show(std::string("error: ") + what + ": " + text);
}

/// The suite's whole numbers in [-3, 3].
std::vector<float> whole(int count, std::uint64_t seed) {
  std::vector<float> values;
  for (int index = 0; index < count; ++index) {
    values.push_back(
        static_cast<float>(static_cast<int>(kw::simulate::mix_bits(seed * 1000003 + static_cast<std::uint64_t>(index)) % 7) - 3));
  }
  return values;
}

/// Nearest even; finite values.
std::uint16_t bf16_of(float value) {
  std::uint32_t word;
  std::memcpy(&word, &value, 4);
  return static_cast<std::uint16_t>((word + 0x7fff + (word >> 16 & 1)) >> 16);
}
std::uint16_t f16_of(float value) {
  const __half half = __float2half_rn(value);
  std::uint16_t bits;
  std::memcpy(&bits, &half, 2);
  return bits;
}

struct Kernel {
  const char* name;
  bool is_sm90;
  int block_m, num_splits;
  unsigned num_threads, smem_bytes;
};
constexpr int kBlockN = 64;
constexpr Kernel kKernels[] = {
    {"gemm_tma_wgmma", true, 128, 1, 384, 3 * (128 * 64 + 64 * 64) * 2 + 2 * 64 * 64 * 2 + 2 * 3 * 8},
    {"gemm_sm80_mma__m32_n64_k32_wm2_wn2_c1_s3_sk1_g8_va8_vb16_e0", false, 32, 1, 128, 18432},
    {"gemm_sm80_mma__m16_n64_k32_wm1_wn4_c1_s3_sk2_g1_va8_vb16_e1", false, 16, 2, 128, 15360},
};

struct Problem {
  int m, n, k;
  unsigned num_ctas;  // of the persistent kernel
};
// Those of mutation_cases.cpp, and one that fills more of the device.
const std::vector<Problem> kSm90Problems = {{300, 96, 392, 2}, {300, 96, 128, 2}, {300, 96, 192, 2}, {1500, 384, 392, 24}};
const std::vector<Problem> kSm80Problems = {{40, 72, 200, 0}, {600, 520, 520, 0}};

CUdeviceptr upload(const void* bytes, std::size_t num_bytes) {
  CUdeviceptr address;
  check(cuMemAlloc(&address, num_bytes), "cuMemAlloc");
  check(cuMemcpyHtoD(address, bytes, num_bytes), "cuMemcpyHtoD");
  return address;
}

std::vector<std::uint16_t> encoded(const std::vector<float>& values, std::uint16_t (*encode)(float)) {
  std::vector<std::uint16_t> bits;
  for (const float value : values) bits.push_back(encode(value));
  return bits;
}

CUtensorMap tensor_map(CUdeviceptr address, int inner, int outer, std::uint32_t box_outer) {
  CUtensorMap map;
  const cuuint64_t extents[] = {static_cast<cuuint64_t>(inner), static_cast<cuuint64_t>(outer)},
                   strides[] = {static_cast<cuuint64_t>(inner) * 2};
  const cuuint32_t box[] = {64, box_outer}, element_strides[] = {1, 1};
  check(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, reinterpret_cast<void*>(address), extents, strides, box,
                               element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
        "cuTensorMapEncodeTiled");
  return map;
}

/// One problem, kNumRepeats times; ends the process at the first repeat that is wrong.
void run_problem(const Kernel& kernel, CUfunction function, const Problem& problem) {
  const auto encode = kernel.is_sm90 ? bf16_of : f16_of;
  const std::vector<float> a = whole(problem.m * problem.k, 1), b = whole(problem.n * problem.k, 2), bias = whole(problem.n, 3);
  std::vector<std::uint16_t> expected;
  for (int row = 0; row < problem.m; ++row) {
    for (int column = 0; column < problem.n; ++column) {
      float sum = 0;  // exact: whole numbers below 2^24
      for (int step = 0; step < problem.k; ++step) sum += a[row * problem.k + step] * b[column * problem.k + step];
      expected.push_back(encode(kernel.is_sm90 ? sum : std::max(sum + bias[column], 0.0f)));
    }
  }
  const auto bits_a = encoded(a, encode), bits_b = encoded(b, encode), bits_bias = encoded(bias, encode);
  CUdeviceptr device_a = upload(bits_a.data(), bits_a.size() * 2), device_b = upload(bits_b.data(), bits_b.size() * 2),
              device_bias = upload(bits_bias.data(), bits_bias.size() * 2);
  const std::vector<std::uint16_t> poison(expected.size(), 0x7fff);
  CUdeviceptr out = upload(poison.data(), poison.size() * 2);
  const unsigned num_tiles =
      static_cast<unsigned>((problem.m + kernel.block_m - 1) / kernel.block_m * ((problem.n + kBlockN - 1) / kBlockN));
  const std::vector<unsigned> zeros(num_tiles * kernel.num_splits * kernel.block_m * kBlockN, 0);
  CUdeviceptr partial_sums = upload(zeros.data(), zeros.size() * 4), tile_counters = upload(zeros.data(), num_tiles * 4ull);

  CUtensorMap map_a{}, map_b{}, map_c{};
  if (kernel.is_sm90) {
    map_a = tensor_map(device_a, problem.k, problem.m, 128);
    map_b = tensor_map(device_b, problem.k, problem.n, 32);
    map_c = tensor_map(out, problem.n, problem.m, 64);
  }
  int m = problem.m, n = problem.n, k = problem.k;
  std::array<long long, 10> extents = {1, m, n, k, 0, k, 1, 0, 1, k};
  std::array<unsigned long long, 3> epilogue = {device_bias, out, static_cast<unsigned long long>(n)};
  void* sm90_arguments[] = {&map_a, &map_b, &map_c, &m, &n, &k};
  void* sm80_arguments[] = {&device_a, &device_b, &extents, &epilogue, &partial_sums, &tile_counters};

  for (int repeat = 0; repeat < kNumRepeats; ++repeat) {
    check(cuMemcpyHtoD(out, poison.data(), poison.size() * 2), "cuMemcpyHtoD");
    check(cuLaunchKernel(function, kernel.is_sm90 ? problem.num_ctas : num_tiles, static_cast<unsigned>(kernel.num_splits), 1,
                         kernel.num_threads, 1, 1, kernel.smem_bytes, nullptr, kernel.is_sm90 ? sm90_arguments : sm80_arguments, nullptr),
          "launch");
    check(cuCtxSynchronize(), "kernel");
    std::vector<std::uint16_t> got(expected.size());
    std::vector<unsigned> counters(num_tiles);
    check(cuMemcpyDtoH(got.data(), out, got.size() * 2), "cuMemcpyDtoH");
    check(cuMemcpyDtoH(counters.data(), tile_counters, counters.size() * 4), "cuMemcpyDtoH");
    std::size_t num_wrong = 0;
    for (std::size_t index = 0; index < got.size(); ++index) num_wrong += got[index] != expected[index] ? 1 : 0;
    const bool is_reset = std::all_of(counters.begin(), counters.end(), [](unsigned counter) { return counter == 0; });
    if (num_wrong == 0 && is_reset) continue;
    show("wrong: " + std::to_string(num_wrong) + " of " + std::to_string(got.size()) + " outputs (" + std::to_string(m) + "x" +
         std::to_string(n) + "x" + std::to_string(k) + ", run " + std::to_string(repeat + 1) + (is_reset ? ")" : ", counters not zero)"));
  }
}

[[noreturn]] void run_one(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string image((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  CUdevice device;
  CUcontext context;
  check(cuInit(0), "cuInit");
  check(cuDeviceGet(&device, 0), "cuDeviceGet");
  check(cuDevicePrimaryCtxRetain(&context, device), "context");
  check(cuCtxSetCurrent(context), "context");
  CUmodule module;
  check(cuModuleLoadDataEx(&module, image.c_str(), 0, nullptr, nullptr), "cuModuleLoadDataEx");
  for (const Kernel& kernel : kKernels) {
    CUfunction function;
    if (cuModuleGetFunction(&function, module, kernel.name) != CUDA_SUCCESS) continue;
    check(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(kernel.smem_bytes)), "smem");
    for (const Problem& problem : kernel.is_sm90 ? kSm90Problems : kSm80Problems) run_problem(kernel, function, problem);
    show("right");
  }
  show("error: none of the known kernels is in this file");
}

/// A child that outlives its time is killed; its context ends with it.
void run_in_child(const char* self, const std::string& file, int num_seconds) {
  const std::size_t slash = file.rfind('/');
  const std::string name = file.substr(slash == std::string::npos ? 0 : slash + 1);
  std::printf("%s\t", name.substr(0, name.rfind('.')).c_str());
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    execl(self, self, "--one", file.c_str(), nullptr);
    _exit(kExitSetup);
  }
  constexpr int kPollMicroseconds = 20'000;
  int status = 0;
  for (int waited = 0; waitpid(child, &status, WNOHANG) == 0; waited += kPollMicroseconds) {
    if (waited >= num_seconds * 1'000'000) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      std::printf("hung\n");
      std::fflush(stdout);
      return;
    }
    usleep(kPollMicroseconds);
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != kExitShown) std::printf("error: the process ended with status %d\n", status);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--one") == 0) run_one(argv[2]);
  int num_seconds = 8, first = 1;
  if (argc > 2 && std::strcmp(argv[1], "--seconds") == 0) {
    num_seconds = std::atoi(argv[2]);
    first = 3;
  }
  for (int index = first; index < argc; ++index) run_in_child("/proc/self/exe", argv[index], num_seconds);
  return 0;
}
