// The mutants of two kernels that the template gemm_sm80_mma gives.
// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/mutation/mutation_cases.h"
#include "tests/simulator/mutation/sm80_gemm_case.h"

namespace kw::simulate {

TEST_CASE("the two fixtures of gemm_sm80_mma are right, so that their mutants can be wrong") {
  for (const Sm80Gemm& gemm : {plain_sm80_gemm(), split_k_sm80_gemm()}) {
    CAPTURE(gemm.name);
    const Module module = load_fixture(gemm.fixture);
    on_every_schedule([&](Simulation& simulation) {
      const PreparedLaunch launch = prepare_sm80_gemm(simulation, gemm);
      run_clean(simulation, module, launch.call);
      CHECK(values_at<std::uint16_t>(simulation, launch.outputs[0]) == expected_sm80_output());
    });
  }
}

TEST_CASE("faults planted in the generated sm_80 GEMMs are found, or are explained") { check_mutants(sm80_cases()); }

}  // namespace kw::simulate
