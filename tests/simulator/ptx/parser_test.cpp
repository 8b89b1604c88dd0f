// The parser on the compiler's texts of our templates, on what inline assembly may contain, and on broken texts.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/ptx/parser.h"

#include <filesystem>

#include "tests/catch.h"
#include "tests/simulator/ptx/ptx_text.h"

namespace kw::simulate {
namespace {

Module parse_or_fail(const std::string& text) {
  Result<Module> module = parse_ptx(text, "a.ptx");
  INFO((module ? std::string() : to_text(module.error())));
  REQUIRE(module.has_value());
  return std::move(*module);
}

std::string error_of(const std::string& text) {
  const Result<Module> module = parse_ptx(text, "a.ptx");
  REQUIRE(!module.has_value());
  return to_text(module.error());
}

void check_refused(const std::string& body, const std::string& expected) {
  const std::string message = error_of(kernel_text(body));
  INFO(message);
  CHECK(message.find(expected) != std::string::npos);
}

}  // namespace

TEST_CASE("the texts of our templates parse, with every form known") {
  for (const char* name : {"gemm_simt.ptx", "gemm_sm80_mma.ptx", "gemm_sm80_mma_split_k.ptx"}) {
    INFO(name);
    const Module module = parse_or_fail(read_ptx(name));
    REQUIRE(module.kernels.size() == 1);
    CHECK(module.target == "sm_80");
    CHECK(module.kernels[0].instructions.size() > 500);
    CHECK(module.kernels[0].max_threads.x >= 128);
    REQUIRE(!module.variables.empty());
    CHECK(module.variables[0].is_extern);
    CHECK(module.variables[0].space == StateSpace::kShared);
  }
}

TEST_CASE("parameters lie at their aligned offsets") {
  const Module module = parse_or_fail(
      ".version 9.0\n.target sm_90a\n.address_size 64\n"
      ".entry k(.param .u32 a, .param .u64 .ptr .global .align 16 b, .param .align 64 .b8 map[128], .param .f32 c) { ret; }");
  const Kernel& kernel = module.kernels[0];
  REQUIRE(kernel.parameters.size() == 4);
  CHECK(kernel.parameters[1].offset_bytes == 8);
  CHECK(kernel.parameters[2].offset_bytes == 64);
  CHECK(kernel.parameters[3].offset_bytes == 192);
  CHECK(kernel.parameter_bytes == 196);
}

TEST_CASE("braces open a scope in which registers and labels repeat") {
  const Module module = parse_or_fail(kernel_text(
      "{ .reg .pred P; L: setp.eq.s32 P, %r1, 0; @P bra L; }\n{ .reg .pred P; L: setp.eq.s32 P, %r2, 0; @!P bra L; bra END; }\nEND: ret;"));
  const std::vector<Instruction>& code = module.kernels[0].instructions;
  REQUIRE(code.size() == 7);
  CHECK(code[1].operands[0].index == 0);
  CHECK(code[3].operands[0].index == 2);
  CHECK(code[4].operands[0].index == 5);
  CHECK(code[1].guard != code[3].guard);
  CHECK(code[3].is_guard_negated);
}

TEST_CASE("operands of all kinds are read") {
  const Module module = parse_or_fail(kernel_text(
      "mov.u32 %r1, %tid.x; ld.global.v2.f32 {%f1, %f2}, [%d1+-8]; add.f32 %f3, %f1, 0f3F800000; add.f64 %g1, %g2, 0d3FF0000000000000;\n"
      "setp.lt.and.s32 %p1|%p2, %r1, -5, !%p3; shfl.sync.bfly.b32 %r2|%p4, %r1, 16, 31, -1; mov.b64 %d2, {%r1, %r2}; and.b32 %r3, %r1, "
      "0xFFU;"
      "ld.param.u64 %d3, [p];"));
  const std::vector<Instruction>& code = module.kernels[0].instructions;
  CHECK(code[0].operands[1].kind == Operand::Kind::kSpecial);
  CHECK(code[1].operands[0].parts.size() == 2);
  CHECK(static_cast<std::int64_t>(code[1].operands[1].bits) == -8);
  CHECK(code[2].operands[2].bits == 0x3f800000u);
  CHECK(code[3].operands[2].immediate_type == ScalarType::kF64);
  CHECK(code[4].operands[0].kind == Operand::Kind::kPair);
  CHECK(code[4].operands[3].is_negated);
  CHECK(static_cast<std::int64_t>(code[4].operands[2].bits) == -5);
  CHECK(code[7].operands[2].bits == 255);
  CHECK(module.symbol(module.kernels[0], code[8].operands[1].parts[0].index).name == "p");
  CHECK(code[0].line == 6);
  CHECK(code[4].line == 7);
}

TEST_CASE("source lines come from .loc") {
  const Module module = parse_or_fail(
      ".version 8.4\n.target sm_80\n.file 1 \"/x/a.cu\"\n.entry k() {\n.loc 1 12 3\nbar.sync 0;\n.loc 1 20 1, function_name $L__info, "
      "inlined_at 1 13 4\nret;\n}\n.section .debug_str { $L__info: .b8 1,2 }");
  CHECK(module.source_files[1] == "/x/a.cu");
  CHECK(module.kernels[0].instructions[0].source_line == 12);
  CHECK(module.kernels[0].instructions[1].source_line == 20);
}

TEST_CASE("inlined code keeps the calls it came through, the innermost first") {
  const Module module = parse_or_fail(R"(.version 8.4
.target sm_80
.file 1 "a.cu"
.entry k() {
.loc 1 30 1
bar.sync 0;
.loc 1 20 5, function_name $L__info_string1, inlined_at 1 30 3
.loc 1 10 7, function_name $L__info_string0, inlined_at 1 20 5
bar.sync 1;
.loc 1 10 7, function_name $L__info_string0, inlined_at 1 31 3
bar.sync 2;
.loc 1 10 7, function_name $L__info_string0, inlined_at 1 20 5
ret;
})");
  const std::vector<Instruction>& code = module.kernels[0].instructions;
  CHECK(code[0].call_site == -1);
  REQUIRE(code[1].call_site >= 0);
  const CallSite& inner = module.call_sites[static_cast<std::size_t>(code[1].call_site)];
  CHECK(inner.line == 20);
  REQUIRE(inner.outer >= 0);
  CHECK(module.call_sites[static_cast<std::size_t>(inner.outer)].line == 30);
  CHECK(module.call_sites[static_cast<std::size_t>(inner.outer)].outer == -1);
  CHECK(module.call_sites[static_cast<std::size_t>(code[2].call_site)].line == 31);
  CHECK(code[3].call_site == code[1].call_site);
  CHECK(module.call_sites.size() == 3);
}

TEST_CASE("the fuzzer's seeds are texts that parse") {
  int num_seeds = 0;
  for (const auto& entry : std::filesystem::directory_iterator(KW_SOURCE_DIR "/tests/fuzz/ptx_seeds")) {
    CAPTURE(entry.path().string());
    CHECK(parse_or_fail(read_ptx("../../../fuzz/ptx_seeds/" + entry.path().filename().string())).kernels.size() == 1);
    ++num_seeds;
  }
  CHECK(num_seeds > 0);
}

TEST_CASE("module variables keep their initial bytes") {
  const Module module = parse_or_fail(
      ".version 8.0\n.target sm_80\n.const .align 4 .b8 t[8] = {1, 2, 255};\n.global .f32 f[2] = {0f3F800000, 2.0};\n.entry k() { ret; }");
  CHECK(module.variables[0].initial == std::vector<std::uint8_t>{1, 2, 255});
  CHECK(module.variables[1].initial == std::vector<std::uint8_t>{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40});
}

TEST_CASE("an unknown form is refused with its name and line") {
  check_refused("ret;\nfrobnicate.b32 %r1, %r2;", "a.ptx:7: instruction 'frobnicate.b32' is not supported");
  check_refused("add.s33 %r1, %r2, %r3;", "'add.s33' is not supported: add is known, not with these modifiers");
  check_refused("call.uni foo, (%r1);", "instruction 'call.uni' is not supported");
  check_refused("mma.sync.aligned.m16n8k16.row.col.f32.bf16.f32 {%f1}, {%r1}, {%r1}, {%f1};", "not with these modifiers");
}

TEST_CASE("wrong operands are refused with what is expected") {
  check_refused("add.s32 %r1, %r2;", "add.s32: operand 3 is missing: a register, a number");
  check_refused("add.s32 %r1, %r2, %r3, %r4;", "takes at most 3 operands");
  check_refused("add.s32 5, %r2, %r3;", "operand 1 must be a register or _");
  check_refused("ld.global.u32 %r1, %d1;", "operand 2 must be an address in [ ]");
  check_refused("add.s32 %r1, %r2, %q9;", "register %q9 is not declared");
  check_refused("add.s32 %r1, %r2, %r99;", "register %r99 is not declared");
  check_refused("@%r1 ret;", "'%r1' is no predicate register");
  check_refused("bra NOWHERE;", "label NOWHERE is not defined");
  check_refused("L: ret; L: ret;", "label L is defined twice");
  check_refused(".reg .b32 %x<200000>;", "200000: at most 131072");
  check_refused("mov.u32 %r1, nothing;", "name nothing is not declared");
  check_refused(".reg .texref t;", "no such register type");
}

TEST_CASE("broken texts are refused with their line, never read past the end") {
  CHECK(error_of("") == "a.ptx:1: a PTX text begins with .version, found the end of the text");
  CHECK(error_of(".version 99.0\n.target sm_80\n").find("the simulator knows 6.0 to 9.9") != std::string::npos);
  CHECK(error_of(".version 8.0\n.target sm_80\n.address_size 32\n").find("must be 64") != std::string::npos);
  CHECK(error_of(".version 8.0\n.target sm_80\n#").find("a.ptx:3: '#' is not a PTX character") != std::string::npos);
  CHECK(error_of(".version 8.0\n.target sm_80\n.entry k() {").find("kernel k does not end") != std::string::npos);
  CHECK(error_of(".version 8.0\n.target sm_80\n/* x").find("comment does not end") != std::string::npos);
  CHECK(error_of(".version 8.0\n.target sm_80\n.global .b8 x[99999999999999999999];").find("does not fit 64 bits") != std::string::npos);
  CHECK(error_of(".version 8.0\n.target sm_80\n.global .b64 x[1000000][1000000];").find("more than 1 GiB") != std::string::npos);
  // Every beginning of a real text: an error or a module, and never a crash.
  const std::string text = read_ptx("gemm_sm80_mma.ptx");
  for (std::size_t size = 0; size < text.size(); size += 97) (void)parse_ptx(std::string_view(text).substr(0, size), "a.ptx");
}

TEST_CASE("a NUL byte ends the text") {
  std::string text = kernel_text("ret;");
  text.push_back('\0');
  text += "garbage";
  CHECK(parse_or_fail(text).kernels.size() == 1);
}

TEST_CASE("patterns of the opcode table match whole modifier lists in order") {
  CHECK(matches_pattern("rn|rz ftz? f32", {"rn", "ftz", "f32"}));
  CHECK(matches_pattern("rn|rz ftz? f32", {"rz", "f32"}));
  CHECK(!matches_pattern("rn|rz ftz? f32", {"f32"}));
  CHECK(!matches_pattern("rn|rz ftz? f32", {"rn", "f32", "f32"}));
  CHECK(matches_pattern("sync m64n* f32", {"sync", "m64n128k16", "f32"}));
  CHECK(matches_pattern("", {}));
  CHECK(!matches_pattern("", {"x"}));
}

}  // namespace kw::simulate
