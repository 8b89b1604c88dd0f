// Scalar instructions against values worked out by hand or by the host: one kernel reads inputs, computes and stores.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/simulator/execute/kernel_run.h"
#include "tests/simulator/ptx/ptx_text.h"

namespace kw::simulate {
namespace {

/// Runs `body`, in which %r1..%r3 hold three inputs (32 bits) of a lane, and returns %r0 of all lanes.
std::vector<std::uint32_t> run32(const std::string& body, const std::vector<std::uint32_t>& inputs) {
  KernelRun run;
  run.shape.block = {32, 1, 1};
  std::vector<std::uint32_t> data(4 * 32, 0);
  for (std::size_t lane = 0; lane < 32; ++lane) {
    for (std::size_t i = 0; i < inputs.size(); ++i) data[lane * 4 + 1 + i] = inputs[i] + 0 * static_cast<std::uint32_t>(lane);
  }
  const std::uint64_t buffer = run.add_buffer("data", data, AllocationRole::kInOut);
  run.add_parameter(buffer);
  run.run(kernel_text("ld.param.u64 %d0, [p]; mov.u32 %r30, %tid.x; mul.wide.u32 %d1, %r30, 16; add.s64 %d0, %d0, %d1;\n"
                      "ld.global.u32 %r1, [%d0+4]; ld.global.u32 %r2, [%d0+8]; ld.global.u32 %r3, [%d0+12];\n" +
                          body + "\nst.global.u32 [%d0], %r0; ret;",
                      "sm_90"),
          "k");
  for (const Finding& finding : run.findings) UNSCOPED_INFO(to_text(finding));
  REQUIRE(run.is_finished);
  REQUIRE(run.findings.empty());
  const std::vector<std::uint32_t> all = run.read<std::uint32_t>(buffer, 4 * 32);
  std::vector<std::uint32_t> results;
  for (std::size_t lane = 0; lane < 32; ++lane) results.push_back(all[lane * 4]);
  return results;
}

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

struct Case {
  const char* body;
  std::vector<std::uint32_t> inputs;
  std::uint32_t expected;
};

void check_all(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    INFO(one.body);
    CHECK(run32(one.body, one.inputs)[5] == one.expected);
  }
}

}  // namespace

TEST_CASE("integer arithmetic wraps, saturates and divides as PTX says") {
  check_all({
      {"add.s32 %r0, %r1, %r2;", {0x7fffffff, 1}, 0x80000000},
      {"add.sat.s32 %r0, %r1, %r2;", {0x7fffffff, 1}, 0x7fffffff},
      {"sub.s32 %r0, %r1, %r2;", {3, 5}, 0xfffffffe},
      {"mul.lo.s32 %r0, %r1, %r2;", {0xffffffff, 7}, 0xfffffff9},
      {"mul.hi.s32 %r0, %r1, %r2;", {0xffffffff, 7}, 0xffffffff},
      {"mul.hi.u32 %r0, %r1, %r2;", {0xffffffff, 7}, 6},
      {"mad.lo.s32 %r0, %r1, %r2, %r3;", {5, 7, 0xffffffff}, 34},
      {"div.s32 %r0, %r1, %r2;", {0xfffffff9, 2}, 0xfffffffd},
      {"rem.s32 %r0, %r1, %r2;", {0xfffffff9, 2}, 0xffffffff},
      {"div.u32 %r0, %r1, %r2;", {7, 0}, 0xffffffff},
      {"rem.u32 %r0, %r1, %r2;", {7, 0}, 7},
      {"div.s32 %r0, %r1, %r2;", {0x80000000, 0xffffffff}, 0x80000000},
      {"min.s32 %r0, %r1, %r2;", {0xffffffff, 1}, 0xffffffff},
      {"min.u32 %r0, %r1, %r2;", {0xffffffff, 1}, 1},
      {"max.s32 %r0, %r1, -3;", {0xfffffff0}, 0xfffffffd},
      {"abs.s32 %r0, %r1;", {0xfffffff0}, 16},
      {"neg.s32 %r0, %r1;", {5}, 0xfffffffb},
      {"sad.u32 %r0, %r1, %r2, %r3;", {3, 10, 100}, 107},
      {"mul24.lo.s32 %r0, %r1, %r2;", {0x00ffffff, 5}, 0xfffffffb},
      {"dp4a.s32.s32 %r0, %r1, %r2, %r3;", {0x01ff02fe, 0x03040506, 10}, 10 + 3 - 4 + 10 - 12},
      {"dp4a.u32.u32 %r0, %r1, %r2, %r3;", {0x010000ff, 0x03000002, 1}, 1 + 3 + 510},
      {"add.cc.u32 %r4, %r1, %r2; addc.u32 %r0, %r3, 0;", {0xffffffff, 1, 41}, 42},
      {"sub.cc.u32 %r4, %r1, %r2; subc.u32 %r0, %r3, 0;", {0, 1, 41}, 40},
      {"mad.lo.cc.u32 %r4, %r1, %r2, %r2; madc.hi.u32 %r0, %r1, %r2, %r3;", {0x80000000, 2, 5}, 6},
      {"cvt.u16.u32 %h1, %r1; cvt.u16.u32 %h2, %r2; add.s16 %h3, %h1, %h2; cvt.s32.s16 %r0, %h3;", {0x7fff, 1}, 0xffff8000},
      {"mul.wide.s32 %d5, %r1, %r2; shr.s64 %d6, %d5, 32; cvt.u32.u64 %r0, %d6;", {0x80000000, 2}, 0xffffffff},
  });
}

TEST_CASE("bit operations follow PTX at the edges") {
  check_all({
      {"shl.b32 %r0, %r1, %r2;", {1, 31}, 0x80000000},
      {"shl.b32 %r0, %r1, %r2;", {1, 32}, 0},
      {"shr.s32 %r0, %r1, %r2;", {0x80000000, 40}, 0xffffffff},
      {"shr.u32 %r0, %r1, %r2;", {0x80000000, 40}, 0},
      {"shf.l.wrap.b32 %r0, %r1, %r2, %r3;", {0x80000001, 0x5, 1}, 0xb},
      {"shf.r.clamp.b32 %r0, %r1, %r2, %r3;", {0x80000001, 0x5, 33}, 0x5},
      {"shf.r.wrap.b32 %r0, %r1, %r2, %r3;", {0x80000001, 0x5, 4}, 0x58000000},
      {"lop3.b32 %r0, %r1, %r2, %r3, 0x96;", {0xff00ff00, 0x0ff00ff0, 0x12345678}, 0xff00ff00 ^ 0x0ff00ff0 ^ 0x12345678},
      {"lop3.b32 %r0, %r1, %r2, %r3, 0xca;", {0xff00ff00, 0x0ff00ff0, 0x12345678}, 0x0f340f78},
      {"popc.b32 %r0, %r1;", {0xf0f0}, 8},
      {"clz.b32 %r0, %r1;", {0}, 32},
      {"brev.b32 %r0, %r1;", {0x1}, 0x80000000},
      {"bfind.u32 %r0, %r1;", {0x8000}, 15},
      {"bfind.u32 %r0, %r1;", {0}, 0xffffffff},
      {"bfind.s32 %r0, %r1;", {0xfffffff0}, 3},
      {"bfind.shiftamt.u32 %r0, %r1;", {0x8000}, 16},
      {"bfe.u32 %r0, %r1, 4, 8;", {0xabcd}, 0xbc},
      {"bfe.s32 %r0, %r1, 4, 8;", {0xabcd}, 0xffffffbc},
      {"bfe.s32 %r0, %r1, 28, 8;", {0x80000000}, 0xfffffff8},
      {"bfe.u32 %r0, %r1, 40, 8;", {0xffffffff}, 0},
      {"bfi.b32 %r0, %r1, %r2, 8, 4;", {0xf, 0}, 0xf00},
      {"bfi.b32 %r0, %r1, %r2, 40, 4;", {0xf, 7}, 7},
      {"prmt.b32 %r0, %r1, %r2, 0x5410;", {0x33221100, 0x77665544}, 0x55441100},
      {"prmt.b32 %r0, %r1, %r2, 0x000b;", {0x80221100, 0}, 0x000000ff},
      {"bmsk.clamp.b32 %r0, %r1, %r2;", {4, 8}, 0xff0},
      {"szext.clamp.s32 %r0, %r1, %r2;", {0x8f, 8}, 0xffffff8f},
      {"fns.b32 %r0, %r1, %r2, 2;", {0xaaaaaaaa, 2}, 5},
      {"not.b32 %r0, %r1;", {0}, 0xffffffff},
      {"cnot.b32 %r0, %r1;", {0}, 1},
  });
}

TEST_CASE("f32 arithmetic: rounding, flushing, saturation and NaN") {
  const std::uint32_t nan = 0x7fc00000;
  check_all({
      {"mov.b32 %f1, %r1; mov.b32 %f2, %r2; add.f32 %f3, %f1, %f2; mov.b32 %r0, %f3;", {bits(1.5f), bits(2.25f)}, bits(3.75f)},
      {"mov.b32 %f1, %r1; add.f32 %f3, %f1, 0f3F800000; mov.b32 %r0, %f3;", {0xffc00001}, 0x7fffffff},
      {"mov.b32 %f1, %r1; mov.b32 %f2, %r2; add.rz.f32 %f3, %f1, %f2; mov.b32 %r0, %f3;", {bits(1.0f), bits(-1e-9f)}, bits(0.99999994f)},
      {"mov.b32 %f1, %r1; mov.b32 %f2, %r2; mul.ftz.f32 %f3, %f1, %f2; mov.b32 %r0, %f3;", {0x00000001, bits(4.0f)}, 0},
      {"mov.b32 %f1, %r1; add.sat.f32 %f3, %f1, %f1; mov.b32 %r0, %f3;", {bits(0.75f)}, bits(1.0f)},
      {"mov.b32 %f1, %r1; add.sat.f32 %f3, %f1, %f1; mov.b32 %r0, %f3;", {nan}, 0},
      {"mov.b32 %f1, %r1; mov.b32 %f2, %r2; fma.rn.f32 %f3, %f1, %f1, %f2; mov.b32 %r0, %f3;",
       {bits(1.0f + 0x1p-12f), bits(-1.0f - 0x1p-11f)},
       bits(0x1p-24f)},
      {"mov.b32 %f1, %r1; mov.b32 %f2, %r2; min.f32 %f3, %f1, %f2; mov.b32 %r0, %f3;", {nan, bits(2.0f)}, bits(2.0f)},
      {"mov.b32 %f1, %r1; mov.b32 %f2, %r2; min.NaN.f32 %f3, %f1, %f2; mov.b32 %r0, %f3;", {nan, bits(2.0f)}, 0x7fffffff},
      {"mov.b32 %f1, %r1; mov.b32 %f2, %r2; max.f32 %f3, %f1, %f2; mov.b32 %r0, %f3;", {0x80000000, 0}, 0},
      {"mov.b32 %f1, %r1; mov.b32 %f2, %r2; div.rn.f32 %f3, %f1, %f2; mov.b32 %r0, %f3;", {bits(1.0f), bits(3.0f)}, bits(1.0f / 3.0f)},
      {"mov.b32 %f1, %r1; mov.b32 %f2, %r2; div.rp.f32 %f3, %f1, %f2; mov.b32 %r0, %f3;", {bits(1.0f), bits(3.0f)}, 0x3eaaaaab},
      {"mov.b32 %f1, %r1; mov.b32 %f2, %r2; div.rm.f32 %f3, %f1, %f2; mov.b32 %r0, %f3;", {bits(1.0f), bits(3.0f)}, 0x3eaaaaaa},
      {"mov.b32 %f1, %r1; rcp.rn.f32 %f3, %f1; mov.b32 %r0, %f3;", {bits(4.0f)}, bits(0.25f)},
      {"mov.b32 %f1, %r1; sqrt.rn.f32 %f3, %f1; mov.b32 %r0, %f3;", {bits(2.0f)}, bits(std::sqrt(2.0f))},
      {"mov.b32 %f1, %r1; ex2.approx.ftz.f32 %f3, %f1; mov.b32 %r0, %f3;", {bits(3.0f)}, bits(8.0f)},
      {"mov.b32 %f1, %r1; neg.f32 %f3, %f1; abs.f32 %f4, %f3; mov.b32 %r0, %f4;", {bits(3.0f)}, bits(3.0f)},
      {"mov.b32 %f1, %r1; cvt.rzi.s32.f32 %r0, %f1;", {bits(-3.75f)}, 0xfffffffd},
      {"mov.b32 %f1, %r1; cvt.rni.s32.f32 %r0, %f1;", {bits(2.5f)}, 2},
      {"mov.b32 %f1, %r1; cvt.rzi.s32.f32 %r0, %f1;", {bits(1e20f)}, 0x7fffffff},
      {"cvt.rn.f32.s32 %f1, %r1; mov.b32 %r0, %f1;", {0xfffffff6}, bits(-10.0f)},
      {"mov.b32 %f1, %r1; mov.b32 %f2, %r2; cvt.rn.bf16x2.f32 %r0, %f1, %f2;", {bits(1.0f), bits(2.0f)}, 0x3f804000},
      {"mov.b32 %f1, %r1; cvt.rn.f16.f32 %h1, %f1; cvt.f32.f16 %f2, %h1; mov.b32 %r0, %f2;", {bits(0.1f)}, 0x3dccc000},
      {"mov.b32 %f1, %r1; cvt.rna.tf32.f32 %r0, %f1;", {0x3f801000}, 0x3f802000},
      {"mov.b32 %f1, %r1; mov.b32 %f2, %r2; max.xorsign.abs.f32 %f3, %f1, %f2; mov.b32 %r0, %f3;", {bits(-3.0f), bits(2.0f)}, bits(-3.0f)},
      {"cvt.pack.sat.s16.s32 %r0, %r1, %r2;", {100000, 0xffffffff}, 0x7fffffff},
      {"cvt.pack.sat.u8.s32.b32 %r0, %r1, %r2, %r3;", {300, 0xffffffff, 0x1234}, 0x1234ff00},
      {"mov.b64 %d5, {0, %r1}; mov.b64 %g1, %d5; rcp.approx.ftz.f64 %g2, %g1; mov.b64 %d6, %g2; mov.b64 {%r4, %r0}, %d6;",
       {0x40000000},
       0x3fe00000},
      // CUDA's rsqrt(double) is this instruction, so it has all bits; with .ftz it is coarse.
      {"mov.b64 %d5, {0, %r1}; mov.b64 %g1, %d5; rsqrt.approx.f64 %g2, %g1; mov.b64 %d6, %g2; mov.b64 {%r0, %r4}, %d6;",
       {0x40080000},
       0x4590331c},
      {"mov.b64 %d5, {0, %r1}; mov.b64 %g1, %d5; rsqrt.approx.ftz.f64 %g2, %g1; mov.b64 %d6, %g2; mov.b64 {%r0, %r4}, %d6;",
       {0x40080000},
       0},
      {"fma.rn.f16x2 %r0, %r1, %r2, %r3;", {0x40003c00, 0x42004000, 0x3c003c00}, 0x47004200},
      {"mov.b32 %f1, %r1; cvt.f64.f32 %g1, %f1; mul.f64 %g2, %g1, 0d4000000000000000; cvt.rn.f32.f64 %f2, %g2; mov.b32 %r0, %f2;",
       {bits(1.25f)},
       bits(2.5f)},
  });
}

TEST_CASE("comparisons, selection and predicates") {
  check_all({
      {"setp.lt.s32 %p1, %r1, %r2; selp.u32 %r0, 1, 0, %p1;", {0xffffffff, 0}, 1},
      {"setp.lt.u32 %p1, %r1, %r2; selp.u32 %r0, 1, 0, %p1;", {0xffffffff, 0}, 0},
      {"setp.lo.u32 %p1, %r1, %r2; selp.u32 %r0, 1, 0, %p1;", {1, 2}, 1},
      {"setp.ne.s32 %p1|%p2, %r1, %r2; selp.u32 %r0, 1, 0, %p2;", {1, 2}, 0},
      {"setp.eq.s32 %p3, %r1, 1; setp.eq.and.s32 %p1, %r2, 2, !%p3; selp.u32 %r0, 1, 0, %p1;", {1, 2}, 0},
      {"mov.b32 %f1, %r1; setp.neu.f32 %p1, %f1, %f1; selp.u32 %r0, 1, 0, %p1;", {0x7fc00000}, 1},
      {"mov.b32 %f1, %r1; setp.ne.f32 %p1, %f1, %f1; selp.u32 %r0, 1, 0, %p1;", {0x7fc00000}, 0},
      {"mov.b32 %f1, %r1; setp.nan.f32 %p1, %f1, %f1; selp.u32 %r0, 1, 0, %p1;", {0x7fc00000}, 1},
      {"set.gt.u32.s32 %r0, %r1, %r2;", {3, 2}, 0xffffffff},
      {"slct.u32.s32 %r0, %r1, %r2, %r3;", {3, 2, 0xffffffff}, 2},
      {"setp.eq.s32 %p1, %r1, 1; not.pred %p2, %p1; xor.pred %p3, %p1, %p2; selp.u32 %r0, 1, 0, %p3;", {1}, 1},
      {"mov.b32 {%h1, %h2}, %r1; mov.b32 %r0, {%h2, %h1};", {0x11112222}, 0x22221111},
      {"mov.b64 %d5, {%r1, %r2}; mov.b64 {%r4, %r0}, %d5;", {1, 77}, 77},
      {"mov.u32 %r0, %laneid;", {}, 5},
      {"mov.u32 %r0, %lanemask_lt;", {}, 31},
      {"mov.u32 %r4, %ntid.x; mov.u32 %r5, %nctaid.x; mad.lo.s32 %r0, %r4, 100, %r5;", {}, 3201},
  });
}

TEST_CASE("lanes exchange values") {
  const std::vector<std::uint32_t> summed = run32(
      "mov.u32 %r1, %laneid; shfl.sync.bfly.b32 %r2, %r1, 16, 31, -1; add.s32 %r1, %r1, %r2; shfl.sync.bfly.b32 %r2, %r1, 8, 31, -1;"
      "add.s32 %r1, %r1, %r2; shfl.sync.bfly.b32 %r2, %r1, 4, 31, -1; add.s32 %r1, %r1, %r2; shfl.sync.bfly.b32 %r2, %r1, 2, 31, -1;"
      "add.s32 %r1, %r1, %r2; shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1; add.s32 %r0, %r1, %r2;",
      {});
  for (const std::uint32_t value : summed) CHECK(value == 496);
  const std::vector<std::uint32_t> down =
      run32("mov.u32 %r1, %laneid; shfl.sync.down.b32 %r2|%p1, %r1, 3, 31, -1; @!%p1 mov.u32 %r2, 99; mov.u32 %r0, %r2;", {});
  CHECK(down[0] == 3);
  CHECK(down[28] == 31);
  CHECK(down[29] == 99);
  const std::vector<std::uint32_t> segments = run32("mov.u32 %r1, %laneid; shfl.sync.idx.b32 %r0, %r1, 1, 0x181f, -1;", {});
  CHECK(segments[7] == 1);
  CHECK(segments[8] == 9);
  CHECK(segments[31] == 25);
  check_all({
      {"mov.u32 %r4, %laneid; setp.lt.s32 %p1, %r4, 4; vote.sync.ballot.b32 %r0, %p1, -1;", {}, 15},
      {"mov.u32 %r4, %laneid; setp.lt.s32 %p1, %r4, 4; vote.sync.any.pred %p2, %p1, -1; selp.u32 %r0, 1, 0, %p2;", {}, 1},
      {"mov.u32 %r4, %laneid; setp.lt.s32 %p1, %r4, 4; vote.sync.all.pred %p2, %p1, -1; selp.u32 %r0, 1, 0, %p2;", {}, 0},
      {"mov.u32 %r4, %laneid; and.b32 %r4, %r4, 1; match.any.sync.b32 %r0, %r4, -1;", {}, 0xaaaaaaaa},
      {"mov.u32 %r4, %laneid; redux.sync.add.s32 %r0, %r4, -1;", {}, 496},
      {"mov.u32 %r4, %laneid; redux.sync.max.u32 %r0, %r4, -1;", {}, 31},
      {"elect.sync %r0|%p1, -1; @%p1 add.s32 %r0, %r0, 100;", {}, 0},
      {"activemask.b32 %r0;", {}, 0xffffffff},
  });
}

TEST_CASE("divergent lanes run apart and merge where their ways meet") {
  const std::vector<std::uint32_t> results = run32(
      "mov.u32 %r4, %laneid; mov.u32 %r0, 0; mov.u32 %r5, %r4;\n"
      "LOOP: setp.eq.s32 %p1, %r5, 0; @%p1 bra DONE; add.s32 %r0, %r0, %r5; sub.s32 %r5, %r5, 1; bra LOOP;\n"
      "DONE: activemask.b32 %r6; setp.ne.s32 %p2, %r6, -1; @%p2 mov.u32 %r0, 12345;",
      {});
  for (std::uint32_t lane = 0; lane < 32; ++lane) CHECK(results[lane] == lane * (lane + 1) / 2);
}

TEST_CASE("a spinning group does not starve the group that it waits for") {
  // Lane 0 waits for a word that lane 1 writes at a larger pc.
  KernelRun run;
  run.shape.block = {32, 1, 1};
  const std::uint64_t buffer = run.add_buffer("data", std::vector<std::uint32_t>(4, 0), AllocationRole::kInOut);
  run.add_parameter(buffer);
  run.run(kernel_text("ld.param.u64 %d0, [p]; mov.u32 %r1, %tid.x; setp.eq.s32 %p1, %r1, 0; setp.ne.s32 %p2, %r1, 1;\n@!%p1 bra OTHER;\n"
                      "SPIN: ld.acquire.gpu.global.u32 %r2, [%d0]; setp.eq.s32 %p3, %r2, 0; @%p3 bra SPIN; ret;\n"
                      "OTHER: @%p2 ret; st.release.gpu.global.u32 [%d0], 7; ret;"),
          "k");
  CHECK(run.is_finished);
  CHECK(run.read<std::uint32_t>(buffer, 1)[0] == 7);
}

TEST_CASE("brx.idx goes to the target of its index") {
  const std::vector<std::uint32_t> results = run32(
      "mov.u32 %r4, %laneid; and.b32 %r5, %r4, 1; T: .branchtargets A, B; brx.idx %r5, T;\nA: mov.u32 %r0, 10; bra E;\nB: mov.u32 %r0, "
      "20;\nE: ;",
      {});
  CHECK(results[4] == 10);
  CHECK(results[5] == 20);
}

}  // namespace kw::simulate
