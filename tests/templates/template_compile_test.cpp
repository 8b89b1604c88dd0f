// The templates are legal CUDA C++ as they stand, for every architecture, and their main configs compile without spills.
// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.h"

#include <cstdlib>

#include "tests/templates/nvrtc.h"

using kw::template_tests::compile;
using kw::template_tests::NvrtcResult;
using kw::template_tests::template_text;

namespace {

const std::vector<std::string> kNN = {"B_IS_K_CONTIGUOUS=false", "B_IS_N_CONTIGUOUS=true"};
const std::vector<std::string> kNT = {"A_IS_K_CONTIGUOUS=false", "A_IS_M_CONTIGUOUS=true", "B_IS_K_CONTIGUOUS=false",
                                      "B_IS_N_CONTIGUOUS=true"};
const std::vector<std::string> kTf32 = {"ElementA=float", "ElementB=float", "USES_TF32=true"};

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const std::vector<std::string> kLarge = {"BLOCK_M=128", "BLOCK_N=256", "BLOCK_K=64", "WARPS_M=2", "WARPS_N=4", "STAGES=3"};

void check_no_spills(const std::string& name, const std::vector<std::string>& settings, const std::string& arch) {
  const NvrtcResult result = compile(template_text(name, settings), arch);
  std::string shown = name + " for " + arch + ":";
  for (const std::string& setting : settings) shown += " " + setting;
  INFO(shown << "\n" << result.log);
  CHECK(result.is_compiled);
  CHECK(result.registers > 0);
  CHECK(result.spill_bytes == 0);
}

}  // namespace

TEST_CASE("a template compiles with NVRTC as it stands for every architecture", "[templates]") {
  for (const char* arch : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"}) {
    check_no_spills("gemm_simt", {}, arch);
    check_no_spills("gemm_sm80_mma", {}, arch);
    check_no_spills("row_sm80", {}, arch);
  }
}

TEST_CASE("the main configs of gemm_sm80_mma compile without spills", "[templates]") {
  for (const char* arch : {"sm_80", "sm_90"}) {
    check_no_spills("gemm_sm80_mma", kLarge, arch);
    check_no_spills("gemm_sm80_mma", kLarge + kNN, arch);
    check_no_spills("gemm_sm80_mma", kLarge + kNT, arch);
    check_no_spills(
        "gemm_sm80_mma",
        {"BLOCK_M=256", "BLOCK_N=128", "BLOCK_K=64", "WARPS_M=4", "WARPS_N=2", "STAGES=3", "ElementA=BFloat16", "ElementB=BFloat16"}, arch);
    check_no_spills("gemm_sm80_mma", {"BLOCK_M=128", "BLOCK_N=128", "BLOCK_K=64", "STAGES=3"}, arch);
    check_no_spills("gemm_sm80_mma", {"BLOCK_M=64", "BLOCK_N=128", "SPLIT_K=4", "STAGES=6"}, arch);
    check_no_spills("gemm_sm80_mma",
                    {"BLOCK_M=16", "BLOCK_N=128", "BLOCK_K=64", "WARPS_M=1", "WARPS_N=4", "SPLIT_K=8", "STAGED_EPILOGUE=false"}, arch);
    check_no_spills("gemm_sm80_mma", {"A_VEC_BYTES=2", "B_VEC_BYTES=4"}, arch);
    check_no_spills("gemm_sm80_mma", kTf32 + kNN + std::vector<std::string>{"BLOCK_M=128", "BLOCK_N=64"}, arch);
  }
}

TEST_CASE("gemm_sm90_tma_wgmma compiles without spills: schedules, transpositions, split-K, both epilogues", "[templates]") {
  const std::vector<std::string> large = {"BLOCK_M=128", "BLOCK_N=256", "CLUSTER_M=2", "GROUP_M=1"};
  for (const char* staged : {"IS_STAGED=false", "IS_STAGED=true"}) {
    check_no_spills("gemm_sm90_tma_wgmma", {staged}, "sm_90a");
    check_no_spills("gemm_sm90_tma_wgmma", large + std::vector<std::string>{staged}, "sm_90a");
    check_no_spills("gemm_sm90_tma_wgmma", large + kNN + std::vector<std::string>{staged, "ElementA=BFloat16", "ElementB=BFloat16"},
                    "sm_90a");
    check_no_spills("gemm_sm90_tma_wgmma", large + kNT + std::vector<std::string>{staged, "IS_PINGPONG=true", "BLOCK_N=128"}, "sm_90a");
    check_no_spills("gemm_sm90_tma_wgmma", {"SPLIT_K=4", "SWIZZLE_BYTES=32", staged}, "sm_90a");
    check_no_spills("gemm_sm90_tma_wgmma", {"SPLIT_K=2", "SPLITS_ARE_CLUSTER=true", "GROUP_M=1", staged}, "sm_90a");
  }
}

TEST_CASE("gemm_sm90_tma_wgmma_pair compiles without spills", "[templates]") {
  const std::vector<std::string> nn = kNN + std::vector<std::string>{"B2_IS_K_CONTIGUOUS=false", "B2_IS_N_CONTIGUOUS=true"};
  for (const char* staged : {"IS_STAGED=false", "IS_STAGED=true"}) {
    check_no_spills("gemm_sm90_tma_wgmma_pair", {staged}, "sm_90a");
    check_no_spills("gemm_sm90_tma_wgmma_pair", nn + std::vector<std::string>{"CLUSTER_M=2", staged}, "sm_90a");
    check_no_spills("gemm_sm90_tma_wgmma_pair", {"BLOCK_M=256", "BLOCK_N=128", "CLUSTER_N=2", staged}, "sm_90a");
    check_no_spills("gemm_sm90_tma_wgmma_pair", {"SPLIT_K=2", "BLOCK_N=128", staged}, "sm_90a");
  }
  check_no_spills("gemm_sm90_tma_wgmma_pair", {"BLOCK_M=192", "BLOCK_N=192", "CONSUMERS=3"}, "sm_90a");
}

TEST_CASE("row_sm80 compiles without spills: short and long rows, clusters, streams, persistent CTAs, no reduction, doubles",
          "[templates]") {
  check_no_spills("row_sm80", {"THREADS=8", "ROWS=16"}, "sm_80");
  check_no_spills("row_sm80", {"THREADS=1024", "ITEMS=8"}, "sm_80");
  check_no_spills("row_sm80", {"THREADS=512", "ITEMS=16", "CLUSTER=8"}, "sm_90");
  check_no_spills("row_sm80", {"IS_STREAMED=true"}, "sm_80");
  check_no_spills("row_sm80", {"CTAS_PER_SM=4", "VEC=8"}, "sm_80");
  check_no_spills("row_sm80", {"CTAS_PER_SM=2", "PHASES=0", "HAS_HINTS=true"}, "sm_80");
  check_no_spills("row_sm80", {"PHASES=0", "VEC=8"}, "sm_80");
  check_no_spills("row_sm80", {"PHASES=3", "REDUCTIONS=2", "Accumulator=double"}, "sm_90");
}

TEST_CASE("list_sm80 compiles without spills: few and many elements a thread, many CTAs, no reduction, doubles", "[templates]") {
  check_no_spills("list_sm80", {}, "sm_80");
  check_no_spills("list_sm80", {"THREADS=512", "VEC=8", "ITEMS=8", "CTAS_PER_SM=1"}, "sm_80");
  check_no_spills("list_sm80", {"THREADS=128", "VEC=1", "ITEMS=1", "CTAS_PER_SM=12"}, "sm_80");
  check_no_spills("list_sm80", {"PHASES=0", "HAS_HINTS=true"}, "sm_80");
  check_no_spills("list_sm80", {"REDUCTIONS=2", "Accumulator=double", "CTAS_PER_SM=2"}, "sm_90");
}

TEST_CASE("gemm_simt compiles without spills for each type it computes in", "[templates]") {
  check_no_spills("gemm_simt", {"ElementA=double", "ElementB=double", "Accumulator=double"}, "sm_80");
  check_no_spills("gemm_simt", {"ElementA=signed char", "ElementB=signed char", "Accumulator=int"}, "sm_80");
  check_no_spills("gemm_simt", {"ElementA=E4M3", "ElementB=E5M2"}, "sm_80");
  check_no_spills("gemm_simt", {"ElementA=long long", "ElementB=int", "Accumulator=long long"}, "sm_80");
  check_no_spills("gemm_simt", {"BLOCK_M=128", "BLOCK_N=128", "BLOCK_K=8", "THREAD_M=8", "THREAD_N=8"}, "sm_90");
}

TEST_CASE("two different 16-bit types do not compile as one product", "[templates]") {
  CHECK_FALSE(compile(template_text("gemm_sm80_mma", {"ElementB=BFloat16"}), "sm_80").is_compiled);
}

TEST_CASE("nvcc takes the templates without a warning, where there is an nvcc", "[templates]") {
  const char* compiler = std::getenv("NVCC");
  const std::string nvcc = compiler != nullptr ? compiler : "nvcc";
  if (std::system((nvcc + " --version >/dev/null 2>&1").c_str()) != 0) {
    WARN("no nvcc here: not checked");
    return;
  }
  for (const auto& [name, arch] : {std::pair("gemm_simt", "sm_80"), std::pair("gemm_sm80_mma", "sm_80"),
                                   std::pair("gemm_sm90_tma_wgmma", "sm_90a"), std::pair("gemm_sm90_tma_wgmma_pair", "sm_90a"),
                                   std::pair("row_sm80", "sm_80"), std::pair("row_sm80", "sm_90"), std::pair("list_sm80", "sm_80")}) {
    const std::string command = nvcc + " -std=c++20 -arch=" + arch +
                                " -cubin -x cu -Xcompiler=-Wall,-Wextra -Werror all-warnings -I" KW_SOURCE_DIR
                                "/templates -o " KW_BINARY_DIR "/" +
                                name + ".cubin " + kw::template_tests::template_path(name) + " 2>&1";
    INFO(command);
    CHECK(std::system(command.c_str()) == 0);
  }
}
