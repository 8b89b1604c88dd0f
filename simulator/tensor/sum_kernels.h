// The hot loops of the sums, declared once for each instruction set of the host they are compiled for, and the rare cases they call.
// The source is the same (sum_kernel_bodies.h), so are the results, bit for bit. Internal to simulator/tensor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "simulator/tensor/fused_sum.h"

namespace kw::simulate {

/// One block of one row and eight columns.
struct Chunk {
  const float* a_value;
  const std::int32_t* a_exponent;
  const float* b_value;
  const std::int32_t* b_exponent;
  int b_pitch;
  int k;
};

/// One block of products of a whole tile. c may be d.
struct ExactBlock {
  const SumRule& rule;
  const DecodedOperand& a;
  const DecodedOperand& b;
  int k_begin, k_count;
  const float* c;
  float* d;
};

void exact_block_baseline(const ExactBlock& block);
void exact_block_avx2(const ExactBlock& block);

struct FastProduct {
  const DecodedOperand& a;
  const DecodedOperand& b;
  bool is_f16;
  const float* c;
  float* d;
};
void fast_product_baseline(const FastProduct& product);
void fast_product_avx2(const FastProduct& product);

/// One column of a chunk by exact_sum().
float slow_element(const SumRule& rule, const Chunk& chunk, int column, float c);
float round_result(SumRounding rounding, double value);

}  // namespace kw::simulate
