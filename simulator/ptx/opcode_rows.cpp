// The rows of the opcode table: every form that the simulator executes. Sources: PTX ISA 8.x and 9.0, "Instruction Set"; the texts that
// NVRTC emits. Place: simulator/ptx/opcodes.h says how to read a row. A row is here only when simulator/execute has its semantics;
// combinations of types that a row allows and the instruction does not have are refused when the kernel is decoded.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/ptx/opcodes.h"

namespace kw::simulate {
namespace {

#define KW_INTS "u16|u32|u64|s16|s32|s64"
#define KW_ANY_BITS "b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f16|bf16|f32|f64"
#define KW_ROUND "rn|rz|rm|rp"
#define KW_HALVES "f16|f16x2|bf16|bf16x2"
#define KW_COMPARE "eq|ne|lt|le|gt|ge|lo|ls|hi|hs|equ|neu|ltu|leu|gtu|geu|num|nan"
#define KW_COMPARED "b16|b32|b64|u16|u32|u64|s16|s32|s64|f16|f16x2|bf16|bf16x2|f32|f64"
#define KW_SCOPE "cta|cluster|gpu|sys"
#define KW_SPACE "global|shared|shared::cta|shared::cluster|local"
#define KW_CACHE                                                                           \
  " L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate? " \
  "L2::evict_normal|L2::evict_first|L2::evict_last? L2::cache_hint? L2::64B|L2::128B|L2::256B? v2|v4? " KW_ANY_BITS "|b128"
#define KW_SHARED "shared|shared::cta? "
#define KW_SHARED_ALL "shared|shared::cta|shared::cluster? "
#define KW_SEM_RELEASE "release|relaxed? cta|cluster? "
#define KW_SEM_ACQUIRE "acquire|relaxed? cta|cluster? "
#define KW_DIM "1d|2d|3d|4d|5d"
#define KW_CPHINT " L2::cache_hint? L2::64B|L2::128B|L2::256B?"
#define KW_CVT "u8|u16|u32|u64|s8|s16|s32|s64|f16|f16x2|bf16|bf16x2|tf32|f32|f64|e4m3x2|e5m2x2"
#define KW_MMA_SHAPE "m16n8k4|m16n8k8|m16n8k16|m16n8k32|m8n8k4|m8n8k16"
#define KW_MMA_TYPES "f16|bf16|tf32|e4m3|e5m2|s8|u8|f64"

const std::vector<OpcodeRow>& rows_of_arithmetic() {
  static const std::vector<OpcodeRow> kRows = {
      {Op::kAdd, "add", KW_INTS, "d s s"},
      {Op::kAdd, "add", "sat s32", "d s s"},
      {Op::kAdd, "add", KW_ROUND "? ftz? sat? f32", "d s s"},
      {Op::kAdd, "add", KW_ROUND "? f64", "d s s"},
      {Op::kAdd, "add", "rn? ftz? sat? " KW_HALVES, "d s s"},
      {Op::kAddCarry, "add", "cc u32|s32|u64|s64", "d s s"},
      {Op::kAddCarry, "addc", "cc? u32|s32|u64|s64", "d s s"},
      {Op::kSub, "sub", KW_INTS, "d s s"},
      {Op::kSub, "sub", "sat s32", "d s s"},
      {Op::kSub, "sub", KW_ROUND "? ftz? sat? f32", "d s s"},
      {Op::kSub, "sub", KW_ROUND "? f64", "d s s"},
      {Op::kSub, "sub", "rn? ftz? sat? " KW_HALVES, "d s s"},
      {Op::kSubCarry, "sub", "cc u32|s32|u64|s64", "d s s"},
      {Op::kSubCarry, "subc", "cc? u32|s32|u64|s64", "d s s"},
      {Op::kMul, "mul", "lo|hi " KW_INTS, "d s s"},
      {Op::kMul, "mul", "wide u16|u32|s16|s32", "d s s"},
      {Op::kMul, "mul", KW_ROUND "? ftz? sat? f32", "d s s"},
      {Op::kMul, "mul", KW_ROUND "? f64", "d s s"},
      {Op::kMul, "mul", "rn? ftz? sat? " KW_HALVES, "d s s"},
      {Op::kMul24, "mul24", "lo|hi u32|s32", "d s s"},
      {Op::kMad24, "mad24", "lo|hi u32|s32", "d s s s"},
      {Op::kMad, "mad", "lo|hi " KW_INTS, "d s s s"},
      {Op::kMad, "mad", "hi sat s32", "d s s s"},
      {Op::kMad, "mad", "wide u16|u32|s16|s32", "d s s s"},
      {Op::kMadCarry, "mad", "lo|hi cc u32|s32|u64|s64", "d s s s"},
      {Op::kMadCarry, "madc", "lo|hi cc? u32|s32|u64|s64", "d s s s"},
      {Op::kFma, "mad", KW_ROUND " ftz? sat? f32", "d s s s"},
      {Op::kFma, "mad", KW_ROUND " f64", "d s s s"},
      {Op::kFma, "fma", KW_ROUND " ftz? sat? f32", "d s s s"},
      {Op::kFma, "fma", KW_ROUND " f64", "d s s s"},
      {Op::kFma, "fma", "rn ftz? sat|relu? " KW_HALVES, "d s s s"},
      {Op::kSad, "sad", KW_INTS, "d s s s"},
      {Op::kDiv, "div", KW_INTS, "d s s"},
      {Op::kDiv, "div", "approx|full ftz? f32", "d s s"},
      {Op::kDiv, "div", KW_ROUND " ftz? f32", "d s s"},
      {Op::kDiv, "div", KW_ROUND " f64", "d s s"},
      {Op::kRem, "rem", KW_INTS, "d s s"},
      {Op::kAbs, "abs", "s16|s32|s64", "d s"},
      {Op::kAbs, "abs", "ftz? f32", "d s"},
      {Op::kAbs, "abs", "f64", "d s"},
      {Op::kAbs, "abs", "ftz? " KW_HALVES, "d s"},
      {Op::kNeg, "neg", "s16|s32|s64", "d s"},
      {Op::kNeg, "neg", "ftz? f32", "d s"},
      {Op::kNeg, "neg", "f64", "d s"},
      {Op::kNeg, "neg", "ftz? " KW_HALVES, "d s"},
      {Op::kMin, "min", KW_INTS, "d s s"},
      {Op::kMin, "min", "ftz? NaN? xorsign? abs? f32", "d s s"},
      {Op::kMin, "min", "f64", "d s s"},
      {Op::kMin, "min", "ftz? NaN? " KW_HALVES, "d s s"},
      {Op::kMax, "max", KW_INTS, "d s s"},
      {Op::kMax, "max", "ftz? NaN? xorsign? abs? f32", "d s s"},
      {Op::kMax, "max", "f64", "d s s"},
      {Op::kMax, "max", "ftz? NaN? " KW_HALVES, "d s s"},
      {Op::kRcp, "rcp", "approx ftz? f32", "d s"},
      {Op::kRcp, "rcp", KW_ROUND " ftz? f32", "d s"},
      {Op::kRcp, "rcp", KW_ROUND " f64", "d s"},
      {Op::kRcp, "rcp", "approx ftz f64", "d s"},
      {Op::kSqrt, "sqrt", "approx ftz? f32", "d s"},
      {Op::kSqrt, "sqrt", KW_ROUND " ftz? f32", "d s"},
      {Op::kSqrt, "sqrt", KW_ROUND " f64", "d s"},
      {Op::kRsqrt, "rsqrt", "approx ftz? f32", "d s"},
      {Op::kRsqrt, "rsqrt", "approx ftz? f64", "d s"},
      {Op::kSin, "sin", "approx ftz? f32", "d s"},
      {Op::kCos, "cos", "approx ftz? f32", "d s"},
      {Op::kLg2, "lg2", "approx ftz? f32", "d s"},
      {Op::kEx2, "ex2", "approx ftz? f32", "d s"},
      {Op::kEx2, "ex2", "approx ftz? " KW_HALVES, "d s"},
      {Op::kTanh, "tanh", "approx f32", "d s"},
      {Op::kTanh, "tanh", "approx " KW_HALVES, "d s"},
      {Op::kCopysign, "copysign", "f32|f64", "d s s"},
      {Op::kTestp, "testp", "finite|infinite|number|notanumber|normal|subnormal f32|f64", "q s"},
  };
  return kRows;
}

const std::vector<OpcodeRow>& rows_of_bits() {
  static const std::vector<OpcodeRow> kRows = {
      {Op::kPopc, "popc", "b32|b64", "d s"},
      {Op::kClz, "clz", "b32|b64", "d s"},
      {Op::kBrev, "brev", "b32|b64", "d s"},
      {Op::kBfind, "bfind", "shiftamt? u32|u64|s32|s64", "d s"},
      {Op::kFns, "fns", "b32", "d s s s"},
      {Op::kBfe, "bfe", "u32|u64|s32|s64", "d s s s"},
      {Op::kBfi, "bfi", "b32|b64", "d s s s s"},
      {Op::kBmsk, "bmsk", "clamp|wrap b32", "d s s"},
      {Op::kSzext, "szext", "clamp|wrap u32|s32", "d s s"},
      {Op::kDp4a, "dp4a", "u32|s32 u32|s32", "d s s s"},
      {Op::kDp2a, "dp2a", "lo|hi u32|s32 u32|s32", "d s s s"},
      {Op::kAnd, "and", "pred", "d x x"},
      {Op::kAnd, "and", "b16|b32|b64", "d s s"},
      {Op::kOr, "or", "pred", "d x x"},
      {Op::kOr, "or", "b16|b32|b64", "d s s"},
      {Op::kXor, "xor", "pred", "d x x"},
      {Op::kXor, "xor", "b16|b32|b64", "d s s"},
      {Op::kNot, "not", "pred", "d x"},
      {Op::kNot, "not", "b16|b32|b64", "d s"},
      {Op::kCnot, "cnot", "b16|b32|b64", "d s"},
      {Op::kLop3, "lop3", "b32", "d s s s i"},
      {Op::kShl, "shl", "b16|b32|b64", "d s s"},
      {Op::kShr, "shr", "b16|b32|b64|" KW_INTS, "d s s"},
      {Op::kShf, "shf", "l|r wrap|clamp b32", "d s s s"},
      {Op::kPrmt, "prmt", "b32 f4e|b4e|rc8|ecl|ecr|rc16?", "d s s s"},
      {Op::kSetp, "setp", KW_COMPARE " ftz? " KW_COMPARED, "Q s s"},
      {Op::kSetp, "setp", KW_COMPARE " and|or|xor ftz? " KW_COMPARED, "Q s s p"},
      {Op::kSet, "set", KW_COMPARE " ftz? u32|s32|f32|f16|f16x2|bf16|bf16x2 " KW_COMPARED, "d s s"},
      {Op::kSelp, "selp", "b16|b32|b64|" KW_INTS "|f32|f64", "d s s p"},
      {Op::kSlct, "slct", "ftz? b16|b32|b64|" KW_INTS "|f32|f64 s32|f32", "d s s s"},
      {Op::kMov, "mov", "pred", "d x"},
      {Op::kMov, "mov", "b16|b32|b64|b128|" KW_INTS "|f16|bf16|f32|f64", "v w"},
      {Op::kCvt, "cvt", "rni|rzi|rmi|rpi|rn|rz|rm|rp|rna? ftz? sat? relu? satfinite? relu? " KW_CVT " " KW_CVT, "d s s?"},
      {Op::kCvtPack, "cvt", "pack sat u16|s16 s32", "d s s"},
      {Op::kCvtPack, "cvt", "pack sat u8|s8 s32 b32", "d s s s"},
      {Op::kCvta, "cvta", "to? const|global|local|param|shared|shared::cta|shared::cluster u64", "d s"},
      {Op::kIsspacep, "isspacep", "const|global|local|param|shared|shared::cta|shared::cluster", "q s"},
      {Op::kMapa, "mapa", "shared::cluster u32|u64", "d s s"},
      {Op::kMapa, "mapa", "u64", "d s s"},
      {Op::kGetctarank, "getctarank", "shared::cluster u32|u64", "d s"},
      {Op::kGetctarank, "getctarank", "u64", "d s"},
  };
  return kRows;
}

const std::vector<OpcodeRow>& rows_of_control_and_memory() {
  static const std::vector<OpcodeRow> kRows = {
      {Op::kBra, "bra", "uni?", "l"},
      {Op::kBrx, "brx", "idx uni?", "s l"},
      {Op::kRet, "ret", "uni?", ""},
      {Op::kExit, "exit", "", ""},
      {Op::kTrap, "trap", "", ""},
      {Op::kBrkpt, "brkpt", "", ""},
      {Op::kPmevent, "pmevent", "", "i"},
      {Op::kNanosleep, "nanosleep", "u32", "s"},
      {Op::kLd, "ld", "weak|volatile? " KW_SPACE "|const|param? ca|cg|cs|lu|cv? nc?" KW_CACHE, "v m s?"},
      {Op::kLd, "ld", "relaxed|acquire " KW_SCOPE " " KW_SPACE "?" KW_CACHE, "v m s?"},
      {Op::kLd, "ld", "mmio relaxed sys global?" KW_CACHE, "v m"},
      {Op::kLd, "ldu", "global? v2|v4? " KW_ANY_BITS, "v m"},
      {Op::kSt, "st", "weak|volatile? " KW_SPACE "? wb|cg|cs|wt?" KW_CACHE, "m w s?"},
      {Op::kSt, "st", "relaxed|release " KW_SCOPE " " KW_SPACE "?" KW_CACHE, "m w s?"},
      {Op::kSt, "st", "mmio relaxed sys global?" KW_CACHE, "m w"},
      {Op::kAtom, "atom",
       "relaxed|acquire|release|acq_rel? " KW_SCOPE "? " KW_SPACE
       "? add|min|max|inc|dec|and|or|xor|exch|cas noftz? L2::cache_hint? v2|v4|v8? b16|b32|b64|b128|u32|u64|s32|s64|f32|f64|" KW_HALVES,
       "v m w s? s?"},
      // The order of words that some hand-written code has, and ptxas takes: the operation first.
      {Op::kAtom, "atom",
       "add|min|max|inc|dec|and|or|xor|exch|cas relaxed|acquire|release|acq_rel " KW_SCOPE " " KW_SPACE " b32|b64|u32|u64|s32|s64|f32|f64",
       "v m w s? s?"},
      {Op::kRed, "red",
       "relaxed|release? " KW_SCOPE "? " KW_SPACE
       "? add|min|max|inc|dec|and|or|xor noftz? L2::cache_hint? v2|v4|v8? b32|b64|u32|u64|s32|s64|f32|f64|" KW_HALVES,
       "m w s?"},
      {Op::kPrefetch, "prefetch", "global|local? L1|L2|L2::evict_last|L2::evict_normal", "m"},
      {Op::kPrefetch, "prefetch", "const|param? tensormap", "m"},
      {Op::kPrefetch, "prefetchu", "L1", "m"},
      {Op::kApplypriority, "applypriority", "global? L2::evict_normal", "m i"},
      {Op::kCreatepolicy, "createpolicy",
       "fractional L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged L2::evict_first|L2::evict_unchanged? b64", "d s?"},
      {Op::kCreatepolicy, "createpolicy", "cvt L2 b64", "d s"},
      {Op::kFence, "fence", "sc|acq_rel|acquire|release? " KW_SCOPE, ""},
      {Op::kFence, "membar", "cta|gl|sys", ""},
      {Op::kFenceProxy, "fence", "proxy async global|shared::cta|shared::cluster?", ""},
      {Op::kFenceMbarrierInit, "fence", "mbarrier_init release cluster", ""},
      {Op::kFenceProxyTensormap, "fence", "proxy tensormap::generic acquire " KW_SCOPE, "m i"},
      {Op::kTensormapReplace, "tensormap", "replace tile global_address global|shared::cta? b1024 b64", "m s"},
      {Op::kTensormapCopy, "tensormap", "cp_fenceproxy global shared::cta tensormap::generic release " KW_SCOPE " sync aligned", "m m i"},
      {Op::kStAsync, "st", "async weak? shared::cluster? mbarrier::complete_tx::bytes v2|v4? b32|b64|u32|u64|s32|s64|f32|f64", "m w m"},
      {Op::kCpAsync, "cp", "async ca|cg shared|shared::cta global" KW_CPHINT, "m m i x? s?"},
      {Op::kCpAsyncCommit, "cp", "async commit_group", ""},
      {Op::kCpAsyncWait, "cp", "async wait_group", "i"},
      {Op::kCpAsyncWaitAll, "cp", "async wait_all", ""},
      {Op::kCpAsyncMbarrierArrive, "cp", "async mbarrier arrive noinc? " KW_SHARED "b64", "m"},
      {Op::kCpBulk, "cp", "async bulk shared::cluster|shared::cta global mbarrier::complete_tx::bytes multicast::cluster? L2::cache_hint?",
       "m m s m s? s?"},
      {Op::kCpBulk, "cp", "async bulk shared::cluster shared::cta mbarrier::complete_tx::bytes", "m m s m"},
      {Op::kCpBulk, "cp", "async bulk global shared::cta bulk_group L2::cache_hint?", "m m s s?"},
      {Op::kCpBulkPrefetch, "cp", "async bulk prefetch L2 global L2::cache_hint?", "m s s?"},
      {Op::kCpBulkTensor, "cp",
       "async bulk tensor " KW_DIM
       " shared::cluster|shared::cta global tile? mbarrier::complete_tx::bytes multicast::cluster? L2::cache_hint?",
       "m t m s? s?"},
      {Op::kCpBulkTensor, "cp", "async bulk tensor " KW_DIM " global shared::cta tile? bulk_group L2::cache_hint?", "t m s?"},
      {Op::kCpBulkPrefetchTensor, "cp", "async bulk prefetch tensor " KW_DIM " L2 global tile? L2::cache_hint?", "t s?"},
      {Op::kCpReduceBulk, "cp",
       "reduce async bulk global shared::cta bulk_group L2::cache_hint? add|min|max|inc|dec|and|or|xor noftz? "
       "f16|bf16|b32|b64|u32|u64|s32|s64|f32|f64",
       "m m s s?"},
      {Op::kCpReduceBulkTensor, "cp",
       "reduce async bulk tensor " KW_DIM " global shared::cta add|min|max|inc|dec|and|or|xor tile? bulk_group L2::cache_hint?", "t m s?"},
      {Op::kCpBulkCommit, "cp", "async bulk commit_group", ""},
      {Op::kCpBulkWait, "cp", "async bulk wait_group read?", "i"},
  };
  return kRows;
}

const std::vector<OpcodeRow>& rows_of_barriers_and_warps() {
  static const std::vector<OpcodeRow> kRows = {
      {Op::kBarSync, "bar", "cta? sync", "s s?"},
      {Op::kBarSync, "barrier", "cta? sync aligned?", "s s?"},
      {Op::kBarArrive, "bar", "cta? arrive", "s s"},
      {Op::kBarArrive, "barrier", "cta? arrive aligned?", "s s"},
      {Op::kBarRed, "bar", "cta? red popc u32", "d s x x?"},
      {Op::kBarRed, "bar", "cta? red and|or pred", "q s x x?"},
      {Op::kBarRed, "barrier", "cta? red popc aligned? u32", "d s x x?"},
      {Op::kBarRed, "barrier", "cta? red and|or aligned? pred", "q s x x?"},
      {Op::kBarWarpSync, "bar", "warp sync", "s"},
      {Op::kClusterArrive, "barrier", "cluster arrive release|relaxed? aligned?", ""},
      {Op::kClusterWait, "barrier", "cluster wait acquire? aligned?", ""},
      {Op::kMbarrierInit, "mbarrier", "init " KW_SHARED "b64", "m s"},
      {Op::kMbarrierInval, "mbarrier", "inval " KW_SHARED "b64", "m"},
      {Op::kMbarrierArrive, "mbarrier", "arrive|arrive_drop " KW_SEM_RELEASE KW_SHARED_ALL "b64", "d m s?"},
      {Op::kMbarrierArrive, "mbarrier", "arrive|arrive_drop noComplete " KW_SEM_RELEASE KW_SHARED "b64", "d m s"},
      {Op::kMbarrierArriveExpectTx, "mbarrier", "arrive|arrive_drop expect_tx " KW_SEM_RELEASE KW_SHARED_ALL "b64", "d m s"},
      {Op::kMbarrierExpectTx, "mbarrier", "expect_tx relaxed? cta|cluster? " KW_SHARED_ALL "b64", "m s"},
      {Op::kMbarrierCompleteTx, "mbarrier", "complete_tx relaxed? cta|cluster? " KW_SHARED_ALL "b64", "m s"},
      {Op::kMbarrierTestWait, "mbarrier", "test_wait parity? " KW_SEM_ACQUIRE KW_SHARED "b64", "q m s"},
      {Op::kMbarrierTryWait, "mbarrier", "try_wait parity? " KW_SEM_ACQUIRE KW_SHARED "b64", "q m s s?"},
      {Op::kMbarrierPendingCount, "mbarrier", "pending_count b64", "d s"},
      {Op::kShfl, "shfl", "sync up|down|bfly|idx b32", "D s s s s"},
      {Op::kVote, "vote", "sync all|any|uni pred", "q p s"},
      {Op::kVote, "vote", "sync ballot b32", "d p s"},
      {Op::kMatch, "match", "any sync b32|b64", "d s s"},
      {Op::kMatch, "match", "all sync b32|b64", "D s s"},
      {Op::kActivemask, "activemask", "b32", "d"},
      {Op::kElect, "elect", "sync", "D s"},
      {Op::kRedux, "redux", "sync add|min|max u32|s32", "d s s"},
      {Op::kRedux, "redux", "sync and|or|xor b32", "d s s"},
      {Op::kSetmaxnreg, "setmaxnreg", "inc|dec sync aligned u32", "i"},
      {Op::kGriddepcontrol, "griddepcontrol", "wait|launch_dependents", ""},
      {Op::kLdmatrix, "ldmatrix", "sync aligned m8n8 x1|x2|x4 trans? " KW_SHARED "b16", "v m"},
      {Op::kStmatrix, "stmatrix", "sync aligned m8n8 x1|x2|x4 trans? " KW_SHARED "b16", "m w"},
      {Op::kMovmatrix, "movmatrix", "sync aligned m8n8 trans b16", "d s"},
      {Op::kMma, "mma",
       "sync aligned " KW_MMA_SHAPE " row col satfinite? f16|f32|s32|f64 " KW_MMA_TYPES " " KW_MMA_TYPES " f16|f32|s32|f64", "v w w w"},
      {Op::kWgmmaFence, "wgmma", "fence sync aligned", ""},
      {Op::kWgmmaCommit, "wgmma", "commit_group sync aligned", ""},
      {Op::kWgmmaWait, "wgmma", "wait_group sync aligned", "i"},
      {Op::kWgmma, "wgmma", "mma_async sync aligned m64n* satfinite? f16|f32|s32 " KW_MMA_TYPES " " KW_MMA_TYPES, "v w s p i? i? i? i?"},
  };
  return kRows;
}

}  // namespace

const std::vector<OpcodeRow>& opcode_rows() {
  static const std::vector<OpcodeRow> kAll = [] {
    std::vector<OpcodeRow> all;
    for (const auto* part : {&rows_of_arithmetic(), &rows_of_bits(), &rows_of_control_and_memory(), &rows_of_barriers_and_warps()}) {
      all.insert(all.end(), part->begin(), part->end());
    }
    return all;
  }();
  return kAll;
}

}  // namespace kw::simulate
