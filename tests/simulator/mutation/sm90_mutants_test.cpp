// The mutants of the sm_90a GEMM.
// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.h"
#include "tests/simulator/mutation/mutation_cases.h"

namespace kw::simulate {

TEST_CASE("faults planted in the sm_90a GEMM are found, or are explained") { check_mutants(sm90_cases()); }

}  // namespace kw::simulate
