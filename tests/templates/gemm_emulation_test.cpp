// The GEMM templates, run thread by thread on the host (host/emulator.h) and compared with a naive product.
// Values are small integers, so that every sum is exact in any order: one wrong index shows as a wrong number. Everything around the
// tensors' elements (padding, guards, smem before use) is NaN. This checks indices, barriers and tails; rounding is checked on a GPU.
// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.h"

#include <cstring>
#include <memory>
#include <random>

#include "tests/templates/host/emulator.h"
#include "tests/templates/host/gemm_case.h"

using kw::emulator::ElementKind;
using kw::emulator::GemmCase;
using kw::emulator::HostGemm;

namespace {

std::size_t element_bytes(ElementKind kind) {
  constexpr std::size_t kBytes[] = {2, 2, 4, 8, 1, 4};
  return kBytes[static_cast<int>(kind)];
}

void write_element(ElementKind kind, unsigned char* at, int value) {
  const float as_float = static_cast<float>(value);
  unsigned bits = __float_as_uint(as_float);
  if (kind == ElementKind::kF16) {
    const _Float16 half = static_cast<_Float16>(as_float);
    std::memcpy(at, &half, 2);
  } else if (kind == ElementKind::kBf16) {
    bits >>= 16;
    std::memcpy(at, &bits, 2);
  } else if (kind == ElementKind::kF32) {
    std::memcpy(at, &bits, 4);
  } else if (kind == ElementKind::kF64) {
    const double as_double = value;
    std::memcpy(at, &as_double, 8);
  } else if (kind == ElementKind::kI8) {
    *at = static_cast<unsigned char>(value);
  } else {
    std::memcpy(at, &value, 4);
  }
}

double read_element(ElementKind kind, const unsigned char* at) {
  if (kind == ElementKind::kF32) {
    float value;
    std::memcpy(&value, at, 4);
    return value;
  }
  if (kind == ElementKind::kF64) {
    double value;
    std::memcpy(&value, at, 8);
    return value;
  }
  int value;
  std::memcpy(&value, at, 4);
  return value;
}

/// [batch, lines, columns], columns contiguous, lines `pitch` apart; bytes that are no element are 0xff (NaN).
struct Tensor {
  static constexpr std::size_t kGuardBytes = 4096;
  std::vector<unsigned char> bytes;
  unsigned char* data = nullptr;
  long long pitch = 0, batch_stride = 0;
  std::size_t num_bytes = 0;

  Tensor(ElementKind kind, long long batch, long long lines, long long columns, int align_bytes) {
    const auto per_vector = static_cast<long long>(static_cast<std::size_t>(align_bytes) / element_bytes(kind));
    const long long vectors = (columns + per_vector - 1) / per_vector;
    pitch = (vectors + (vectors % 2 == 0 ? 1 : 2)) * per_vector;  // an odd number of vectors
    batch_stride = lines * pitch + per_vector;
    num_bytes = lines == 0 || columns == 0
                    ? 0
                    : static_cast<std::size_t>((batch - 1) * batch_stride + (lines - 1) * pitch + columns) * element_bytes(kind);
    bytes.assign(num_bytes + 2 * kGuardBytes + 32, 0xff);
    data = bytes.data() + kGuardBytes;
    // No better aligned than asked for.
    while (reinterpret_cast<std::size_t>(data) % 32 != static_cast<std::size_t>(align_bytes) % 32) ++data;
  }
};

struct Extents {
  long long b, m, n, k;
};

/// Runs one case on one problem; the text of the first mistake, or nothing.
std::string first_mistake(const GemmCase& gemm, const Extents& extents, unsigned seed) {
  std::mt19937 random(seed);
  const auto [b, m, n, k] = extents;
  Tensor a(gemm.kind_a, b, gemm.a_is_k_contiguous ? m : k, gemm.a_is_k_contiguous ? k : m, gemm.a_vec_bytes);
  Tensor bt(gemm.kind_b, b, gemm.b_is_k_contiguous ? n : k, gemm.b_is_k_contiguous ? k : n, gemm.b_vec_bytes);
  Tensor out(gemm.kind_sum, b, m, n, static_cast<int>(element_bytes(gemm.kind_sum)));
  HostGemm host;
  host.extent_b = b, host.extent_m = m, host.extent_n = n, host.extent_k = k;
  host.A_stride_b = a.batch_stride, host.B_stride_b = bt.batch_stride;
  host.A_stride_m = gemm.a_is_k_contiguous ? a.pitch : 1, host.A_stride_k = gemm.a_is_k_contiguous ? 1 : a.pitch;
  host.B_stride_n = gemm.b_is_k_contiguous ? bt.pitch : 1, host.B_stride_k = gemm.b_is_k_contiguous ? 1 : bt.pitch;
  host.A_align = gemm.a_vec_bytes, host.B_align = gemm.b_vec_bytes;
  host.A = a.data, host.B = bt.data, host.out = out.data;
  host.out_stride_b = out.batch_stride, host.out_stride_m = out.pitch, host.out_stride_n = 1;
  host.readable = {{a.data, a.num_bytes}, {bt.data, bt.num_bytes}};
  host.seed = seed;
  if (!gemm.is_legal_problem(host)) return "the problem's rules refuse it";

  std::vector<int> a_values(static_cast<std::size_t>(b * m * k)), b_values(static_cast<std::size_t>(b * n * k));
  std::uniform_int_distribution<int> small(-8, 8);
  for (long long i = 0; i < b * m * k; ++i) {
    const long long batch = i / (m * k), row = i / k % m, depth = i % k;
    a_values[static_cast<std::size_t>(i)] = small(random);
    write_element(gemm.kind_a,
                  a.data + static_cast<std::size_t>(batch * host.A_stride_b + row * host.A_stride_m + depth * host.A_stride_k) *
                               element_bytes(gemm.kind_a),
                  a_values[static_cast<std::size_t>(i)]);
  }
  for (long long i = 0; i < b * n * k; ++i) {
    const long long batch = i / (n * k), column = i / k % n, depth = i % k;
    b_values[static_cast<std::size_t>(i)] = small(random);
    write_element(gemm.kind_b,
                  bt.data + static_cast<std::size_t>(batch * host.B_stride_b + column * host.B_stride_n + depth * host.B_stride_k) *
                                element_bytes(gemm.kind_b),
                  b_values[static_cast<std::size_t>(i)]);
  }
  const std::vector<unsigned char> before = out.bytes;
  gemm.run(host);

  const std::size_t size = element_bytes(gemm.kind_sum);
  for (long long batch = 0; batch < b; ++batch) {
    for (long long row = 0; row < m; ++row) {
      for (long long column = 0; column < n; ++column) {
        long long sum = 0;
        for (long long depth = 0; depth < k; ++depth) {
          sum += static_cast<long long>(a_values[static_cast<std::size_t>((batch * m + row) * k + depth)]) *
                 b_values[static_cast<std::size_t>((batch * n + column) * k + depth)];
        }
        unsigned char* at = out.data + static_cast<std::size_t>(batch * out.batch_stride + row * out.pitch + column) * size;
        const double got = read_element(gemm.kind_sum, at);
        if (got != static_cast<double>(sum)) {
          return "out[" + std::to_string(batch) + "," + std::to_string(row) + "," + std::to_string(column) + "] = " + std::to_string(got) +
                 ", expected " + std::to_string(sum);
        }
        std::memset(at, 0xff, size);
      }
    }
  }
  return out.bytes == before ? "" : "bytes outside the output were written";
}

const Extents kExtents[] = {{1, 1, 1, 1}, {1, 100, 130, 70}, {2, 65, 33, 129}, {1, 17, 270, 31}, {3, 50, 7, 0}, {1, 16, 64, 256}};

}  // namespace

TEST_CASE("the rules of a template accept the configs that the tests run", "[templates]") {
  for (const GemmCase& gemm : kw::emulator::all_gemm_cases()) {
    INFO(gemm.name);
    CHECK(gemm.is_legal);
  }
}

TEST_CASE("a template run thread by thread gives the naive product at odd shapes, in any order of threads and copies", "[templates]") {
  for (const GemmCase& gemm : kw::emulator::all_gemm_cases()) {
    unsigned seed = 1;
    for (const Extents& extents : kExtents) {
      std::string mistake;
      try {
        mistake = first_mistake(gemm, extents, seed++);
      } catch (const kw::emulator::EmulationError& error) {
        mistake = error.what();
      }
      INFO(gemm.name << " at b,m,n,k = " << extents.b << "," << extents.m << "," << extents.n << "," << extents.k);
      CHECK(mistake == "");
    }
  }
}
