// Runs the executable: bad input is named and ends with 2, nothing found with 1, a missing toolchain with 3; whole runs without a GPU.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/sandbox.h"

namespace {

using kw::tests::contains;
using kw::tests::Ran;
using kw::tests::Sandbox;

const std::string kExample = KW_SOURCE_DIR "/examples/matmul_bias_relu/matmul_bias_relu.op.toml";

}  // namespace

TEST_CASE("unknown commands and options are refused with the nearest one", "[host]") {
  const Sandbox sandbox;
  const Ran command = sandbox.run("tun x");
  CHECK(command.exit_code == 2);
  CHECK(contains(command.output, "unknown command 'tun'; did you mean 'tune'?"));
  const Ran option = sandbox.run("tune --budgt 3s x");
  CHECK(option.exit_code == 2);
  CHECK(contains(option.output, "did you mean --budget?"));
}

TEST_CASE("a [tune] value that no template takes ends every command with 2, one that some take is told", "[host]") {
  const Sandbox sandbox;
  const std::string spec = kw::tests::text_of(kExample);
  sandbox.write("bad.op.toml", spec + "\n[tune]\nSPLIT_K = 0\nGROUP_M = [0, 8]\n");
  sandbox.write("some.op.toml", spec + "\n[tune]\nBLOCK_K = 64\n");
  for (const std::string command : {"tune", "generate", "explain", "simulate"}) {
    const Ran bad = sandbox.run(command + " --device none --arch sm_80 " + sandbox.path("bad.op.toml"));
    INFO(bad.output);
    CHECK(bad.exit_code == 2);
    CHECK(contains(bad.output, ": [tune] SPLIT_K = 0: no template has this value: gemm_sm80_mma takes 1, 2, 4, 8; gemm_sm90_tma_wgmma"));
    CHECK(contains(bad.output, ": [tune] GROUP_M = 0: no template has this value: "));
  }
  CHECK_FALSE(std::filesystem::exists(sandbox.path("tuning.db")));
  const Ran some = sandbox.run("explain --device none --arch sm_80 " + sandbox.path("some.op.toml"));
  CHECK(some.exit_code == 0);
  CHECK(contains(some.output, "[tune] BLOCK_K = 64: gemm_simt takes 8, 16, 32, and is left out"));
}

TEST_CASE("help and version end with 0", "[host]") {
  const Sandbox sandbox;
  CHECK(sandbox.run("--help").exit_code == 0);
  CHECK(sandbox.run("--version").exit_code == 0);
  CHECK(contains(sandbox.run("tune --help").output, "--budget"));
}

TEST_CASE("a missing, broken or unreadable spec ends with 2 and writes nothing", "[host]") {
  const Sandbox sandbox;
  const Ran missing = sandbox.run("tune " + sandbox.path("none.op.toml"));
  CHECK(missing.exit_code == 2);
  CHECK(contains(missing.output, "none.op.toml: no such file"));
  sandbox.write("broken.op.toml", "name = \n[dims\n");
  CHECK(sandbox.run("tune " + sandbox.path("broken.op.toml")).exit_code == 2);
  CHECK(sandbox.run("tune /").exit_code == 2);
  CHECK_FALSE(std::filesystem::exists(sandbox.path("tuning.db")));
}

TEST_CASE("values of options are checked with their rule", "[host]") {
  const Sandbox sandbox;
  CHECK(contains(sandbox.run("tune --budget soon " + kExample).output, "'soon': expected a time such as 60s"));
  CHECK(contains(sandbox.run("tune --search magic " + kExample).output, "one of halving, exhaustive, random"));
  CHECK(contains(sandbox.run("tune --device none --arch sm_12 " + kExample).output, "--arch sm_12: unknown; one of sm_80"));
  CHECK(contains(sandbox.run("tune --device none --set Q=3 " + kExample).output, "Q is no dim, stride or alignment"));
  CHECK(contains(sandbox.run("tune --device none --set M=-3 " + kExample).output, "M = -3: must not be negative"));
  CHECK(contains(sandbox.run("generate --limit many " + kExample).output, "--limit many: expected a number"));
  CHECK(contains(sandbox.run("generate --random dice " + kExample).output, "--random dice: expected a number"));
  CHECK(sandbox.run("tune --device cuda:99 " + kExample).exit_code == 3);
}

TEST_CASE("asking an absent or foreign database is an answer with its path, not a crash", "[host]") {
  const Sandbox sandbox;
  const Ran absent = sandbox.run("query matmul --device none --set M=1");
  CHECK(absent.exit_code == 1);
  CHECK(contains(absent.output, "tuning.db"));
  sandbox.write("tuning.db", "this is no database, it only looks like a file of some length to be read");
  const Ran foreign = sandbox.run("db check");
  CHECK(foreign.exit_code == 2);
  CHECK(contains(foreign.output, "tuning.db"));
}

TEST_CASE("explain prints the handbook's traffic table for the example", "[host]") {
  const Sandbox sandbox;
  const Ran ran = sandbox.run("explain --device none --arch sm_80 " + kExample);
  CHECK(ran.exit_code == 0);
  CHECK(contains(ran.output, "83.9 MB"));
  CHECK(contains(ran.output, "50.3 MB"));
  CHECK(contains(ran.output, "40 %"));
}

TEST_CASE("without NVRTC the tool says where it looked and how to get it", "[host]") {
  const Sandbox sandbox;
  const Ran ran = sandbox.run("tune --device none " + kExample, "KERNELWRIGHT_HIDE_TOOLKIT=1 XDG_DATA_HOME=" + sandbox.path("data") +
                                                                    " HOME=" + sandbox.path("home") + " KERNELWRIGHT_NVRTC=");
  CHECK(ran.exit_code == 3);
  CHECK(contains(ran.output, "fetch_nvrtc"));
}

TEST_CASE("a message names the program once, and replay says what it takes", "[host]") {
  const Sandbox sandbox;
  const Ran query = sandbox.run("query");
  CHECK(query.exit_code == 2);
  CHECK(contains(query.output, "kernelwright: query: give the name of an op"));
  CHECK(contains(sandbox.run("db").output, "kernelwright: db: give an action"));
  CHECK(contains(sandbox.run("db tidy").output, "kernelwright: db tidy: unknown; one of check"));
  const Ran spec = sandbox.run("replay " + kExample);
  CHECK(spec.exit_code == 2);
  CHECK(contains(spec.output, "not a replay record, the file that `kernelwright replay --record FILE` writes"));
  CHECK_FALSE(contains(spec.output, "json.exception"));
  CHECK(contains(sandbox.run("replay --help").output, "[FILE...] [--record FILE]"));
  CHECK(contains(sandbox.run("explain --help").output, "rank (default: rank, all of it)"));
  CHECK(contains(sandbox.run("generate --help").output, "per problem"));
}

TEST_CASE("verify without a GPU points to simulate", "[host]") {
  const Sandbox sandbox;
  const Ran ran = sandbox.run("verify --device none " + kExample);
  CHECK(ran.exit_code == 3);
  CHECK(contains(ran.output, "verify needs a GPU: --device none was given"));
  CHECK(contains(ran.output, "kernelwright simulate"));
}

TEST_CASE("an op that no kernel is made for yet is explained, and ends with 1", "[host]") {
  const Sandbox sandbox;
  const std::string attention = " --device none " KW_SOURCE_DIR "/examples/attention_gqa/attention_gqa.op.toml";
  const Ran whole = sandbox.run("explain" + attention);
  INFO(whole.output);
  CHECK(whole.exit_code == 1);
  CHECK(contains(whole.output, "name = \"attention_gqa\""));
  CHECK(contains(whole.output, "traffic (HBM)"));
  CHECK(contains(whole.output, "no kernel yet:"));
  CHECK(contains(whole.output, "a reduction inside a reduction"));
  const Ran plan = sandbox.run("explain --stop-after plan" + attention);
  CHECK(plan.exit_code == 0);  // the cuts are known; templates for all of their kernels are not
  CHECK(contains(plan.output, "cut 0: s; s -> "));
  const Ran json = sandbox.run("explain --json" + attention);
  CHECK(json.exit_code == 1);
  CHECK(contains(json.output, "\"no_kernel\""));
  CHECK(sandbox.run("tune" + attention).exit_code == 1);
}

TEST_CASE("the cuts of a program that needs several kernels are printed, with traffic and workspace", "[host]") {
  const Sandbox sandbox;
  const std::string norm = " --device none --arch sm_80 " KW_SOURCE_DIR "/examples/linear_residual_rmsnorm/linear_residual_rmsnorm.op.toml";
  const std::string mlp = " --device none --arch sm_80 " KW_SOURCE_DIR "/examples/swiglu_mlp/swiglu_mlp.op.toml";
  const Ran plan = sandbox.run("explain --stop-after plan" + norm);
  CHECK(plan.exit_code == 0);
  CHECK(plan.output == R"(cut 0: stream; stream -> out
  kernel 0
    stream__new_sum[m,d] = sum[k](x[m,k] * w[d,k])
    stream__new[m,d] = cast(stream__new_sum[m,d] + residual[m,d], bf16)
    stream[m,d] = stream__new[m,d]
  kernel 1
    out_mean[m] = mean[j](stream[m,j] * stream[m,j])
    out[m,d] = stream[m,d] * rsqrt(out_mean[m] + eps) * scale[d]
cut 1: stream, stream__new_sum; stream__new_sum -> out
  kernel 0
    stream__new_sum__value[m,d] = sum[k](x[m,k] * w[d,k])
    stream__new_sum[m,d] = stream__new_sum__value[m,d]
    stream__new[m,d] = cast(stream__new_sum__value[m,d] + residual[m,d], bf16)
    stream[m,d] = stream__new[m,d]
  kernel 1
    stream__new[m,d] = cast(stream__new_sum[m,d] + residual[m,d], bf16)
    out_mean[m] = mean[j](stream__new[m,j] * stream__new[m,j])
    out[m,d] = stream__new[m,d] * rsqrt(out_mean[m] + eps) * scale[d]
)");
  const Ran whole = sandbox.run("explain --set M=128" + mlp);
  INFO(whole.output);
  CHECK(whole.exit_code == 0);
  CHECK(contains(whole.output, "unfused: 4 kernels: g; u; g, u -> h; h -> out"));
  CHECK(contains(whole.output, "workspace 7.3 MB (7.3 MB unshared)"));
  CHECK(contains(whole.output, "plan3__"));
  // For one token a product is rows of the matrix: the gated pair is one kernel.
  const Ran one_token = sandbox.run("explain --json --set M=1" + mlp);
  CHECK(contains(one_token.output, "\"cut\": \"h; h -> out\""));
  CHECK(contains(one_token.output, "plan2__"));
}

TEST_CASE("strides belong to the dims: --set M makes them anew, --set of a stride moves the ones outside it", "[host]") {
  const Sandbox sandbox;
  sandbox.write("batched.op.toml", R"toml(name = "batched"
[dims]
B = 3
M = [8, 16]
N = 32
K = 64
[tensors]
A = { dtype = "f16", shape = ["B", "M", "K"], strides = "any" }
W = { dtype = "f16", shape = ["N", "K"] }
out = { dtype = "f16", shape = ["B", "M", "N"], role = "out" }
[compute]
body = "out[b,m,n] = sum[k](A[b,m,k] * W[n,k])"
)toml");
  const std::string explain = "explain --device none --arch sm_80 " + sandbox.path("batched.op.toml");
  const Ran larger = sandbox.run(explain + " --set M=256");
  INFO(larger.output);
  CHECK(larger.exit_code == 0);
  CHECK(contains(larger.output, "== B=3,K=64,M=256,N=32,A.stride0=16384,A.stride1=64,A.stride2=1 =="));
  CHECK(larger.output.find("\n== ") == larger.output.rfind("\n== "));  // the rows of M = 8 and 16 are one problem now
  CHECK(contains(sandbox.run(explain + " --set M=8,A.stride1=72").output, "A.stride0=576,A.stride1=72,A.stride2=1 =="));
  CHECK(contains(sandbox.run(explain + " --set M=9,A.stride0=4096").output, "A.stride0=4096,A.stride1=64,A.stride2=1 =="));
}

TEST_CASE("several --set that repeat a name are several shapes, in every command alike", "[host]") {
  const Sandbox sandbox;
  const std::string explain = "explain --device none --arch sm_80 " + kExample;
  const Ran two = sandbox.run(explain + " --set M=77 --set M=1000");
  CHECK(contains(two.output, "M=77,"));
  CHECK(contains(two.output, "M=1000,"));
  CHECK(contains(sandbox.run(explain + " --set M=77 --set N=256").output, "== K=4096,M=77,N=256 =="));
  const Ran uneven = sandbox.run(explain + " --set M=77 --set M=5,N=256");
  CHECK(uneven.exit_code == 2);
  CHECK(contains(uneven.output, "several --set that give one name several values are a shape each and name the same dims"));
  CHECK(contains(sandbox.run(explain + " --set K=9007199254740992").output, "--set K=9007199254740992: tensor"));
}

TEST_CASE("tune without a GPU compiles and ranks, query says predicted, a second run does nothing again", "[nvrtc]") {
  const Sandbox sandbox;
  const std::string tune = "tune --device none --arch sm_80 --budget 30m " + kExample;  // all 32, however slow the machine
  const Ran first = sandbox.run(tune);
  INFO(first.output);
  REQUIRE(first.exit_code == 0);
  CHECK(contains(first.output, "best predicted (not measured; right on the simulator)"));
  const Ran second = sandbox.run(tune);
  CHECK(second.exit_code == 0);
  CHECK(contains(second.output, "0 compiled, 0 runs on the device, 32 rows reused"));
  const Ran query = sandbox.run("query matmul_bias_relu --device none --arch sm_80 --set M=1024,N=4096,K=4096");
  CHECK(query.exit_code == 0);
  CHECK(contains(query.output, "predicted, not measured"));
  CHECK(contains(query.output, "right on the simulator at small problems, not run on a device"));
  const Ran here = sandbox.run("query matmul_bias_relu --device none --arch sm_80 --set M=2048,N=4096,K=4096");
  INFO(here.output);
  CHECK(contains(here.output, "us at K=4096,M=1024,N=4096, predicted, not measured"));
  CHECK(contains(here.output, "by the model, not measured; bound of"));
  std::string json = sandbox.run("query matmul_bias_relu --json --device none --arch sm_80 --set M=1024,N=4096,K=4096").output;
  std::erase_if(json, [](char c) { return c == ' ' || c == '\n'; });
  CHECK(contains(json, R"("dtype":"f16","kind":"tensor")"));
  CHECK(contains(json, R"("dtype":"i64","kind":"int64")"));
  CHECK_FALSE(contains(json, R"("source":"")"));
  const Ran foreign = sandbox.run("query matmul_bias_relu --device none --arch sm_90 --device-model none:sm_80 --any-device");
  CHECK_FALSE(contains(foreign.output, "measured on another device"));
  const Ran several = sandbox.run("query matmul_bias_relu --device none --arch sm_80 --set M=1 --set M=2");
  CHECK(several.exit_code == 2);
  CHECK(contains(several.output, "query: --set gives 2 shapes; it answers for one"));
  const Ran ptx = sandbox.run("show matmul_bias_relu --ptx --device none --arch sm_80");
  CHECK(ptx.exit_code == 0);
  CHECK(contains(ptx.output, ".entry gemm_"));
  const Ran other_arch = sandbox.run("query matmul_bias_relu --device none --arch sm_90 --set M=1024,N=4096,K=4096");
  CHECK(other_arch.exit_code == 1);
  CHECK(contains(other_arch.output, "the database has it for none:sm_80 (--arch sm_80)"));
  const Ran typo = sandbox.run("query matmul_bias_rel --device none --set M=1");
  CHECK(typo.exit_code == 1);
  CHECK(contains(typo.output, "did you mean 'matmul_bias_relu'?"));
  const Ran replay = sandbox.run("replay");
  CHECK(replay.exit_code == 0);
  CHECK(contains(replay.output, "32 of 32 variants unchanged"));
  const Ran exported = sandbox.run("export matmul_bias_relu --device none --arch sm_80 -o " + sandbox.path("out"));
  INFO(exported.output);
  CHECK(exported.exit_code == 0);
  CHECK(contains(sandbox.read("out/matmul_bias_relu.cu"), "predicted, not measured"));
  const std::string export_again = "export matmul_bias_relu --json --device none --arch sm_80 -o ";
  const Ran again = sandbox.run(export_again + sandbox.path("out"));
  CHECK(again.exit_code == 0);
  CHECK(contains(again.output, "\"test_matmul_bias_relu.cu\""));
  CHECK(contains(again.output, "\"kernel\": \"gemm_"));
  std::filesystem::create_directory(sandbox.path("mine"));
  sandbox.write("mine/README.md", "my own notes\n");
  const Ran refused = sandbox.run(export_again + sandbox.path("mine"));
  CHECK(refused.exit_code == 2);
  CHECK(contains(refused.output, "README.md is there and was not written by export"));
  CHECK(sandbox.read("mine/README.md") == "my own notes\n");
  CHECK(contains(sandbox.run("db gc --json").output, "\"bytes_freed\""));
  CHECK(sandbox.run("db check").exit_code == 0);
}

TEST_CASE("[tune] is for the tuned kernels: the fall-back of an export has the rules of a spec without it", "[nvrtc]") {
  const auto fallback_rules = [](const std::string& tune) {
    const Sandbox sandbox;
    sandbox.write("product.op.toml", R"toml(name = "product"
[dims]
M = 256
N = 256
K = 256
[tensors]
A = { dtype = "f16", shape = ["M", "K"], strides = ["any", 1], align = 16 }
B = { dtype = "f16", shape = ["N", "K"] }
out = { dtype = "f16", shape = ["M", "N"], role = "out" }
[compute]
body = "out[m,n] = sum[k](A[m,k] * B[n,k])"
)toml" + tune);
    const std::string target = " --device none --arch sm_80 ";
    REQUIRE(sandbox.run("tune --no-simulation --budget 1ms" + target + sandbox.path("product.op.toml")).exit_code == 0);
    const Ran exported = sandbox.run("export product -o " + sandbox.path("out") + target);
    INFO(exported.output);
    REQUIRE(exported.exit_code == 0);
    const std::string text = sandbox.read("out/product.cu");
    const std::size_t at = text.rfind("_accepts([[maybe_unused]]");  // of the last kernel, which takes every shape
    REQUIRE(at != std::string::npos);
    return text.substr(at, text.find("\n}", at) - at);
  };
  const std::string free = fallback_rules("");
  // Pins that gemm_simt does not have: what is left needs aligned rows.
  CHECK(fallback_rules("[tune]\nBLOCK_M = 256\nA_VEC_BYTES = 16\nB_VEC_BYTES = 16\n") == free);
}

TEST_CASE("an export without any kernel says why, and promises no fall-back", "[nvrtc]") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("tune --device none --arch sm_80 --no-simulation --budget 1ms " + kExample).exit_code == 0);
  const Ran other = sandbox.run("export matmul_bias_relu --device none --arch sm_90 -o " + sandbox.path("out"));
  CHECK(other.exit_code == 1);
  CHECK(contains(other.output, "no tuned kernel of 'matmul_bias_relu' to export: K=4096,M=1024,N=4096: no kernel of"));
  CHECK(contains(other.output, "the database has it for none:sm_80 (--arch sm_80)"));
  CHECK_FALSE(contains(other.output, "the fall-back serves it"));
  CHECK_FALSE(std::filesystem::exists(sandbox.path("out")));
  const std::string export_two = "export matmul_bias_relu --device none --arch sm_80 --set M=77,K=4091 --set M=1024,K=4096 -o ";
  const Ran one = sandbox.run(export_two + sandbox.path("out"));
  INFO(one.output);
  CHECK(one.exit_code == 0);
  CHECK(contains(one.output, "; the fall-back serves it"));
}

TEST_CASE("a plan of several kernels is tuned, stored, queried, replayed and exported as one op", "[nvrtc]") {
  const Sandbox sandbox;
  const std::string place = " --device none --arch sm_80 ";
  const std::string shape = "--set M=24,D=48,K=40 ";
  const Ran tuned =
      sandbox.run("tune --budget 30m" + place + shape + KW_SOURCE_DIR "/examples/linear_residual_rmsnorm/linear_residual_rmsnorm.op.toml");
  INFO(tuned.output);
  REQUIRE(tuned.exit_code == 0);
  CHECK(contains(tuned.output, "best predicted (not measured; right on the simulator): plan2__"));
  const Ran query = sandbox.run("query linear_residual_rmsnorm" + place + shape);
  CHECK(query.exit_code == 0);
  CHECK(contains(query.output, "+row_sm80"));
  const Ran replay = sandbox.run("replay");
  INFO(replay.output);
  CHECK(replay.exit_code == 0);
  const Ran exported = sandbox.run("export linear_residual_rmsnorm" + place + shape + "-o " + sandbox.path("out"));
  INFO(exported.output);
  CHECK(exported.exit_code == 0);
  const std::string text = sandbox.read("out/linear_residual_rmsnorm.cu");
  CHECK(contains(text, "namespace step0 {"));
  CHECK(contains(text, "namespace step1 {"));
  // The last kernel takes every shape: rows of any length, at any address.
  const std::size_t fallback = text.rfind("_accepts([[");
  const std::string rules = text.substr(fallback, text.find("\n}\n", fallback) - fallback);
  INFO(rules);
  CHECK_FALSE(contains(rules, "% 16"));
  CHECK_FALSE(contains(rules, "row_fits"));
}

TEST_CASE("a budget that is too small still ends with a kernel, and says that it was the budget", "[nvrtc]") {
  const Sandbox sandbox;
  const Ran ran = sandbox.run("tune --device none --arch sm_80 --no-simulation --budget 1ms " + kExample);
  INFO(ran.output);
  CHECK(ran.exit_code == 0);
  CHECK(contains(ran.output, "stopped early: the budget of 0.001 s is used up, "));
  CHECK(contains(ran.output, "best predicted"));
  CHECK(contains(ran.output, "  1 compiled, 0 runs on the device"));
  const Ran elsewhere =
      sandbox.run("tune --device none --arch sm_80 --no-simulation --budget 1ms --db " + sandbox.path("other.db") + " " + kExample);
  CHECK(contains(elsewhere.output, "0 compiled, 1 from the cache, 0 runs on the device, 0 rows reused"));
  const Ran json = sandbox.run("tune --json --device none --arch sm_80 --no-simulation --budget 1ms " + kExample);
  CHECK(contains(json.output, "\"op\": \"matmul_bias_relu\""));
  CHECK(contains(json.output, "\"stop_reason\": \""));
}

TEST_CASE("generate writes the variants and a manifest that names them", "[nvrtc]") {
  const Sandbox sandbox;
  const Ran ran = sandbox.run("generate --arch sm_80 --limit 4 -o " + sandbox.path("out") + " " + kExample);
  CHECK(ran.exit_code == 0);
  CHECK(contains(sandbox.read("out/manifest.json"), "\"launch_plan\""));
  int sources = 0;
  for (const auto& entry : std::filesystem::directory_iterator(sandbox.path("out"))) sources += entry.path().extension() == ".cu" ? 1 : 0;
  CHECK(sources == 4);
}

TEST_CASE("generate takes random variants by their seed and says how each compiles", "[nvrtc]") {
  const Sandbox sandbox;
  const std::string generate = "generate --arch sm_80 --limit 2 --random 7 " + kExample;
  const Ran first = sandbox.run(generate + " --compile -o " + sandbox.path("first"));
  INFO(first.output);
  CHECK(first.exit_code == 0);
  CHECK(contains(sandbox.read("first/manifest.json"), "\"compiled\""));
  CHECK(contains(sandbox.read("first/manifest.json"), "\"registers\""));
  CHECK(sandbox.run(generate + " -o " + sandbox.path("second")).exit_code == 0);
  for (const auto& entry : std::filesystem::directory_iterator(sandbox.path("first")))
    CHECK(std::filesystem::exists(sandbox.path("second/" + entry.path().filename().string())));
}

TEST_CASE("a norm in f64 is right on the simulator: rsqrt(double) is no coarse instruction", "[nvrtc]") {
  const Sandbox sandbox;
  sandbox.write("norm.op.toml", R"toml(name = "norm"
[dims]
M = 64
N = 200
[tensors]
x = { dtype = "f64", shape = ["M", "N"] }
out = { dtype = "f64", shape = ["M", "N"], role = "out" }
[compute]
body = """
mean_square[m] = mean[n](x[m,n] * x[m,n])
out[m,n] = x[m,n] * rsqrt(mean_square[m] + 1e-6)
"""
)toml");
  const Ran ran = sandbox.run("simulate --arch sm_80 --variants 2 --problems 1 --schedule eager " + sandbox.path("norm.op.toml"));
  INFO(ran.output);
  CHECK(ran.exit_code == 0);
  CHECK(contains(ran.output, "2 of 2 variants right, simulated for sm_80"));
}

TEST_CASE("simulate of variants that the compiler refuses says why", "[nvrtc]") {
  const Sandbox sandbox;
  std::filesystem::copy(KW_SOURCE_DIR "/templates", sandbox.path("templates"), std::filesystem::copy_options::recursive);
  std::string text = sandbox.read("templates/gemm/gemm_simt.cuh");
  const std::string bounds = "__launch_bounds__(Config::kThreads, 1)";
  REQUIRE(contains(text, bounds));
  text.replace(text.find(bounds), bounds.size(), "__launch_bounds__(Config::kThreads, 2048 / Config::kThreads)");  // 32 registers a thread
  sandbox.write("templates/gemm/gemm_simt.cuh", text);
  sandbox.write("spills.op.toml", R"toml(name = "spills"
[dims]
M = 512
N = 512
K = 512
[tensors]
A = { dtype = "f64", shape = ["M", "K"] }
B = { dtype = "f64", shape = ["N", "K"] }
out = { dtype = "f64", shape = ["M", "N"], role = "out" }
[compute]
body = "out[m,n] = sum[k](A[m,k] * B[n,k])"
[tune]
THREAD_M = 8
THREAD_N = 8
)toml");
  const std::string simulate =
      "simulate --arch sm_80 --variants 2 --templates " + sandbox.path("templates") + " " + sandbox.path("spills.op.toml");
  const Ran ran = sandbox.run(simulate);
  INFO(ran.output);
  CHECK(ran.exit_code == 1);
  CHECK(contains(ran.output, "2 refused by the compiler"));
  CHECK(contains(ran.output, "2 of 2 refused: spills_refused, as gemm_simt__"));
  CHECK(contains(ran.output, ": spills: "));
  CHECK(contains(sandbox.run(simulate + " --json").output, "\"status\": \"spills_refused\""));
}

TEST_CASE("simulate tells how many basic blocks ran, of each case and of a variant's cases together", "[nvrtc]") {
  const Sandbox sandbox;
  const Ran ran = sandbox.run("simulate --json --arch sm_80 --variants 1 --problems 3 --schedule eager " + kExample);
  INFO(ran.output);
  REQUIRE(ran.exit_code == 0);
  const auto numbers_after = [&](const std::string& key) {
    std::vector<int> numbers;
    for (std::size_t at = ran.output.find(key); at != std::string::npos; at = ran.output.find(key, at + 1))
      numbers.push_back(std::stoi(ran.output.substr(at + key.size())));
    return numbers;
  };
  const std::vector<int> executed = numbers_after("\"num_blocks_executed\": ");
  const std::vector<int> blocks = numbers_after("\"num_blocks\": ");
  REQUIRE(executed.size() == 4);  // the variant, then its cases
  CHECK(blocks == std::vector<int>(4, blocks[0]));
  const auto [fewest, most] = std::minmax_element(executed.begin() + 1, executed.end());
  CHECK(*fewest > 0);
  CHECK(*fewest < *most);  // one problem is smaller than a tile
  CHECK(executed[0] >= *most);
  CHECK(executed[0] <= blocks[0]);
}

TEST_CASE("simulate checks variants without a GPU, and a template without its barrier is found out", "[nvrtc]") {
  const Sandbox sandbox;
  const Ran right = sandbox.run("simulate --arch sm_80 --variants 2 " + kExample);
  INFO(right.output);
  CHECK(right.exit_code == 0);
  CHECK(contains(right.output, "2 of 2 variants right, simulated for sm_80: not run on a device"));
  CHECK(contains(right.output, "basic blocks, 0 refused by the compiler"));

  std::filesystem::copy(KW_SOURCE_DIR "/templates", sandbox.path("templates"), std::filesystem::copy_options::recursive);
  std::string text = sandbox.read("templates/gemm/gemm_sm80_mma.cuh");
  const std::string barrier = "        __syncthreads();\n        k_left";
  REQUIRE(contains(text, barrier));
  text.replace(text.find(barrier), barrier.size(), "        k_left");
  sandbox.write("templates/gemm/gemm_sm80_mma.cuh", text);
  const std::string broken = "--arch sm_80 --templates " + sandbox.path("templates") + " " + kExample;
  const Ran wrong = sandbox.run("simulate --variants 1 --schedule lazy --report " + sandbox.path("r.html") + " " + broken);
  INFO(wrong.output);
  CHECK(wrong.exit_code == 1);
  CHECK(contains(wrong.output, "race: shared 'smem'"));
  CHECK(contains(wrong.output, "remedy:"));
  const std::string page = sandbox.read("r.html");
  CHECK(contains(page, "0 of 1 variants right"));
  CHECK(contains(page, "race: shared &#39;smem&#39;"));
  CHECK(contains(page, "class=\"line hit\""));
  CHECK(sandbox.run("simulate --schedule sometimes " + kExample).exit_code == 2);
}
