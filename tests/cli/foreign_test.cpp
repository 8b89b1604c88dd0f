// simulate --launch: somebody's kernel. Right and wrong kernels, reports in three forms, and bad input of every kind by name.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/cli/sandbox.h"

namespace {

using kw::tests::contains;
using kw::tests::Ran;
using kw::tests::Sandbox;

const std::string kExampleFolder = KW_SOURCE_DIR "/examples/simulate_foreign/";

const std::string kHead = ".version 8.4\n.target sm_90a\n.address_size 64\n";

/// Writes each thread's number to out[255 - i] through shared memory; `barrier` stands between the write and the read.
std::string reverse_text(const std::string& barrier = "bar.sync 0;") {
  std::string text = kHead;
  text.append(R"(.visible .entry _Z7reversePj(.param .u64 out)
{
  .reg .b32 %r<8>; .reg .b64 %rd<4>;
  .shared .align 4 .b8 tile[256];
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  shl.b32 %r2, %r1, 2;
  mov.u32 %r3, tile;
  add.s32 %r4, %r3, %r2;
  st.shared.u32 [%r4], %r1;
  )");
  text.append(barrier).append(R"(
  sub.s32 %r5, 252, %r2;
  add.s32 %r6, %r3, %r5;
  ld.shared.u32 %r7, [%r6];
  cvt.u64.u32 %rd2, %r2;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r7;
  ret;
}
)");
  return text;
}

const std::string kLaunch = R"(source = "k.ptx"
kernel = "reverse"
grid = [1]
block = [64]
arguments = [{buffer = "out"}]
[buffer.out]
dtype = "i32"
elements = 64
role = "out"
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  REQUIRE(contains(text, from));
  return text.replace(text.find(from), from.size(), to);
}

/// Runs a PTX text with a launch file of its own.
Ran simulate(const Sandbox& sandbox, const std::string& ptx, const std::string& launch = kLaunch, const std::string& options = "") {
  sandbox.write("k.ptx", ptx);
  sandbox.write("l.toml", launch);
  return sandbox.run("simulate --launch " + sandbox.path("l.toml") + " " + options);
}

void check_refused(const Ran& ran, const std::string& message) {
  INFO(ran.output);
  CHECK(ran.exit_code == 2);
  CHECK(contains(ran.output, message));
}

}  // namespace

TEST_CASE("a PTX kernel that is right ends with 0, by its launch file or by both names", "[host]") {
  const Sandbox sandbox;
  const Ran ran = simulate(sandbox, reverse_text());
  INFO(ran.output);
  CHECK(ran.exit_code == 0);
  CHECK(contains(ran.output, "schedule eager: clean"));
  CHECK(contains(ran.output, "schedule random:1: clean"));
  CHECK(contains(ran.output, "right, simulated: not run on a device"));
  sandbox.write("other.toml", replaced(kLaunch, "source = \"k.ptx\"\n", ""));
  CHECK(sandbox.run("simulate " + sandbox.path("k.ptx") + " --launch " + sandbox.path("other.toml")).exit_code == 0);
  check_refused(sandbox.run("simulate --launch " + sandbox.path("other.toml")), "source must be given");
}

TEST_CASE("a race ends with 1 and is told once, with the schedules that show it, as text, JSON and HTML", "[host]") {
  const Sandbox sandbox;
  const Ran ran = simulate(sandbox, reverse_text(""), kLaunch, "--report " + sandbox.path("r.html"));
  INFO(ran.output);
  CHECK(ran.exit_code == 1);
  CHECK(contains(ran.output, "race: shared 'tile'"));
  CHECK(contains(ran.output, "st.shared.u32 [%r4], %r1;"));
  CHECK(contains(ran.output, "on schedule eager, lazy"));
  CHECK(contains(ran.output, "not right, simulated"));
  const std::string html = sandbox.read("r.html");
  CHECK(contains(html, "<!DOCTYPE html>"));
  CHECK(contains(html, "st.shared.u32 [%r4], %r1;"));
  CHECK(contains(html, "class=\"line hit\""));
  CHECK_FALSE(contains(html, "<script"));
  const Ran json = simulate(sandbox, reverse_text(""), kLaunch, "--json --schedule lazy --report " + sandbox.path("r.json"));
  CHECK(json.exit_code == 1);
  const nlohmann::json parsed = nlohmann::json::parse(json.output);
  CHECK(parsed == nlohmann::json::parse(sandbox.read("r.json")));
  CHECK(parsed["is_right"] == false);
  CHECK(parsed["kernel"] == "_Z7reversePj");
  CHECK(parsed["runs"].size() == 1);
  bool has_race = false;
  for (const nlohmann::json& finding : parsed["runs"][0]["report"]["findings"])
    has_race = has_race || (finding["kind"] == "race" && finding["earlier"]["form"] == "st.shared.u32");
  CHECK(has_race);
}

TEST_CASE("an output that is not as expected ends with 1 and names its first wrong element", "[host]") {
  const Sandbox sandbox;
  const Ran ran = simulate(sandbox, reverse_text(), kLaunch + "expected = \"iota\"\n", "--schedule eager");
  INFO(ran.output);
  CHECK(ran.exit_code == 1);
  CHECK(contains(ran.output, "schedule eager: buffer 'out': 64 of 64 elements are wrong, the first is 0: got 63, expected 0"));
}

TEST_CASE("a kernel that never ends is a finding: a livelock at once, a long loop by the budget", "[host]") {
  const Sandbox sandbox;
  const std::string launch = "source = \"k.ptx\"\ngrid = [1]\nblock = [32]\narguments = []\n";
  const Ran jump = simulate(sandbox, kHead + ".entry k() {\nL: bra L;\n}\n", launch);
  INFO(jump.output);
  CHECK(jump.exit_code == 1);
  CHECK(contains(jump.output, "livelock: "));
  const std::string count = kHead + ".entry k() {\n.reg .b32 %r1;\nmov.u32 %r1, 0;\nL: add.s32 %r1, %r1, 1;\nbra L;\n}\n";
  const Ran endless = simulate(sandbox, count, launch, "--max-instructions 100000");
  INFO(endless.output);
  CHECK(endless.exit_code == 1);
  CHECK(contains(endless.output, "the budget is 100000"));
}

TEST_CASE("files that are not there, not readable as what they are, or of another kind are refused by name", "[host]") {
  const Sandbox sandbox;
  check_refused(sandbox.run("simulate " + sandbox.path("k.ptx")), "k.ptx: a kernel needs a launch file");
  check_refused(sandbox.run("simulate --launch " + sandbox.path("none.toml")), "none.toml: no such file");
  check_refused(sandbox.run("simulate --launch /"), "/: not a regular file");
  sandbox.write("l.toml", kLaunch);
  check_refused(sandbox.run("simulate --launch " + sandbox.path("l.toml")), "k.ptx: no such file");
  check_refused(simulate(sandbox, reverse_text(), replaced(kLaunch, "k.ptx", "l.toml")), "the name of a kernel's file ends in .ptx or .cu");
  check_refused(simulate(sandbox, reverse_text(), "grid = [\n"), "l.toml:");
  check_refused(simulate(sandbox, reverse_text(), kLaunch, "--variants 3"), "--variants is for specs");
  check_refused(simulate(sandbox, reverse_text(), kLaunch, sandbox.path("a.ptx") + " " + sandbox.path("b.ptx")), "give one kernel file");
  check_refused(simulate(sandbox, reverse_text(), kLaunch, "--report r.txt"), "--report r.txt: the name must end in .json or .html");
  check_refused(sandbox.run("simulate --include x a.op.toml"), "--include goes with --launch");
}

TEST_CASE("a PTX text that is broken, too new or has what the simulator does not know is refused with its line", "[host]") {
  const Sandbox sandbox;
  const std::string text = reverse_text();
  check_refused(simulate(sandbox, text.substr(0, text.size() / 2)), "k.ptx:");
  check_refused(simulate(sandbox, std::string("\x7f\x45LF\x01garbage")), "k.ptx:");
  check_refused(simulate(sandbox, ""), "k.ptx:");
  check_refused(simulate(sandbox, replaced(text, ".version 8.4", ".version 99.1")), "k.ptx:1: .version 99.1: the simulator knows");
  check_refused(simulate(sandbox, replaced(text, "bar.sync 0", "warp.drive 0")), "k.ptx:14: ");
  check_refused(simulate(sandbox, replaced(text, "sm_90a", "compute_90")), ".target compute_90: an architecture like sm_80 expected");
}

TEST_CASE("a launch file that does not fit the kernel is refused, and says what the kernel has", "[host]") {
  const Sandbox sandbox;
  const auto check = [&](const std::string& from, const std::string& to, const std::string& message) {
    check_refused(simulate(sandbox, reverse_text(), replaced(kLaunch, from, to)), message);
  };
  check("\"reverse\"", "\"revers\"", "l.toml: kernel = 'revers': ");
  check("[{buffer = \"out\"}]", "[]", "0 arguments given, it has 1 parameters");
  check("[{buffer = \"out\"}]", "[{s32 = 1}]", "argument 0 has 4 bytes, the parameter out has 8");
  check("block = [64]", "block = [2048]", "block 2048 x 1 x 1: axis 0 must be 1 to 1024");
  check("block = [64]", "block = [64]\ncluster = [3]", "grid 1 x 1 x 1 is not a multiple of the cluster 3 x 1 x 1");
  check("block = [64]", "block = [64]\ndynamic_shared_bytes = 4000000000", "4000000256 bytes of shared memory");
  check("elements = 64", "elements = 4000000000", "buffer 'out'");
  check("role = \"out\"", "role = \"in\"\nfill = \"file:missing.bin\"", "missing.bin: no such file");
  sandbox.write("short.bin", "abc");
  check("role = \"out\"", "role = \"in\"\nfill = \"file:short.bin\"", "short.bin has 3 bytes, 64 elements of i32 need 256");
  // A buffer that is too small for what the kernel does is found when it is written.
  const Ran small = simulate(sandbox, reverse_text(), replaced(kLaunch, "elements = 64", "elements = 63"), "--schedule eager");
  INFO(small.output);
  CHECK(small.exit_code == 1);
  CHECK(contains(small.output, "out_of_bounds: "));
  check_refused(simulate(sandbox, replaced(reverse_text(), "tile[256]", "tile[99999999999]")), "k.ptx");
  check_refused(simulate(sandbox, replaced(reverse_text(), ".visible", ".global .align 4 .b8 g[99999999999];\n.visible")), "");
}

TEST_CASE("without a name several kernels are listed", "[host]") {
  const Sandbox sandbox;
  const std::string two =
      kHead + ".entry a() { ret; }\n.entry _ZN2ns5scaleIfEEvPT_(.param .u64 x) { ret; }\n.entry _ZN2ns5scaleIdEEvPT_() { ret; }\n";
  const std::string launch = "source = \"k.ptx\"\ngrid = [1]\nblock = [32]\narguments = []\n";
  check_refused(simulate(sandbox, two, launch), "kernel: must be given: ");
  check_refused(simulate(sandbox, two, "kernel = \"scale\"\n" + launch), "several of that name");
  CHECK(simulate(sandbox, two, "kernel = \"scale<double>\"\n" + launch).exit_code == 0);
  CHECK(simulate(sandbox, two, "kernel = \"a\"\n" + launch).exit_code == 0);
}

TEST_CASE("a .cu without NVRTC says how to get it and ends with 3", "[host]") {
  const Sandbox sandbox;
  const Ran ran = sandbox.run(
      "simulate --launch " + kExampleFolder + "row_sums.launch.toml",
      "KERNELWRIGHT_HIDE_TOOLKIT=1 XDG_DATA_HOME=" + sandbox.path("data") + " HOME=" + sandbox.path("home") + " KERNELWRIGHT_NVRTC=");
  CHECK(ran.exit_code == 3);
  CHECK(contains(ran.output, "fetch_nvrtc"));
}

TEST_CASE("the example's missing barrier is found at its source lines, and the mended kernel is right", "[nvrtc]") {
  const Sandbox sandbox;
  for (const char* name : {"row_sums.cu", "row_sums.launch.toml"}) std::filesystem::copy(kExampleFolder + name, sandbox.path(name));
  const std::string command = "simulate --launch " + sandbox.path("row_sums.launch.toml");
  const Ran racy = sandbox.run(command);
  INFO(racy.output);
  CHECK(racy.exit_code == 1);
  CHECK(contains(racy.output, "race: shared 'partials'"));
  CHECK(contains(racy.output, "row_sums.cu:11  if (lane == 0) partials[warp] = sum;"));
  const std::string line = "  if (lane == 0) partials[warp] = sum;\n";
  sandbox.write("row_sums.cu", replaced(sandbox.read("row_sums.cu"), line, line + "  __syncthreads();\n"));
  const Ran mended = sandbox.run(command);
  INFO(mended.output);
  CHECK(mended.exit_code == 0);
  sandbox.write("row_sums.cu", replaced(sandbox.read("row_sums.cu"), "__syncthreads", "__syncthread"));
  const Ran broken = sandbox.run(command);
  INFO(broken.output);
  CHECK(broken.exit_code == 2);
  CHECK(contains(broken.output, "row_sums.cu(12): error"));
}

TEST_CASE("a .cu includes the files beside it and those of --include", "[nvrtc]") {
  const Sandbox sandbox;
  std::filesystem::create_directory(sandbox.path("more"));
  sandbox.write("beside.h", "#define KW_SIZE 32\n");
  sandbox.write("more/far.h", "#define KW_STEP 2\n");
  sandbox.write("k.cu",
                "#include \"beside.h\"\n#include <far.h>\n"
                "template <int N> __global__ void fill(int* out) { if (threadIdx.x < N) out[threadIdx.x] = KW_STEP * threadIdx.x; }\n"
                "template __global__ void fill<KW_SIZE>(int*);\n");
  sandbox.write("l.toml",
                "source = \"k.cu\"\ngrid = [1]\nblock = [32]\narguments = [{buffer = \"out\"}]\n"
                "[buffer.out]\ndtype = \"i32\"\nelements = 32\nrole = \"out\"\n");
  const std::string command = "simulate --arch sm_80 --launch " + sandbox.path("l.toml");
  const Ran missing = sandbox.run(command);
  CHECK(missing.exit_code == 2);
  CHECK(contains(missing.output, "far.h"));
  const Ran found = sandbox.run(command + " --include " + sandbox.path("more"));
  INFO(found.output);
  CHECK(found.exit_code == 0);
}
