// The hot loops of the sums for the host's baseline instruction set.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/tensor/sum_kernel_bodies.h"

namespace kw::simulate {

void exact_block_baseline(const ExactBlock& block) { exact_block_body(block); }
void fast_product_baseline(const FastProduct& product) { fast_product_body(product); }

}  // namespace kw::simulate
