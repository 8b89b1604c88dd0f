// The hot loops of the sums for AVX2. Compiled with -mavx2 where the compiler has it; chosen at run time.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/tensor/sum_kernel_bodies.h"

namespace kw::simulate {

void exact_block_avx2(const ExactBlock& block) { exact_block_body(block); }
void fast_product_avx2(const FastProduct& product) { fast_product_body(product); }

}  // namespace kw::simulate
