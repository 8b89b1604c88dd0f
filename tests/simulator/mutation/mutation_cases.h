// The kernels of the mutation suite and the problems that they run at: with tails, several turns of each loop and, where the kernel
// allows it, several tiles a CTA.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/simulator/mutation/run_mutants.h"

namespace kw::simulate {

/// The sm_90a GEMM with TMA multicast, wgmma, a cluster of two and a persistent loop.
std::vector<MutationCase> sm90_cases();
/// Two kernels that the template gemm_sm80_mma gives: three cp.async stages, without and with split-K.
std::vector<MutationCase> sm80_cases();
/// Rows, reductions and matrices in other people's style.
std::vector<MutationCase> small_kernel_cases();

}  // namespace kw::simulate
