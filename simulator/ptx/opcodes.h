// The opcode table: which forms (opcode with modifiers) the simulator knows, as data. A form that no row matches is refused by name.
// Rows live in opcode_rows.cpp. A pattern has one group a modifier: "rn|rz ftz? f32" is .rn or .rz, then perhaps .ftz, then .f32;
// a word that ends in * stands for all that begin so ("m64n*").
// Operand classes, one word each, are described at `OperandClass`. Semantics are in simulator/execute, one function an `Op`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kw::simulate {

/// What an instruction is, up to types and modifiers.
enum class Op : std::uint8_t {
  // integer and bits
  kAdd,
  kSub,
  kMul,
  kMad,
  kMul24,
  kMad24,
  kSad,
  kDiv,
  kRem,
  kAbs,
  kNeg,
  kMin,
  kMax,
  kAddCarry,
  kSubCarry,
  kMadCarry,
  kPopc,
  kClz,
  kBrev,
  kBfind,
  kFns,
  kBfe,
  kBfi,
  kBmsk,
  kSzext,
  kDp4a,
  kDp2a,
  kAnd,
  kOr,
  kXor,
  kNot,
  kCnot,
  kLop3,
  kShl,
  kShr,
  kShf,
  kPrmt,
  // floating point
  kFma,
  kRcp,
  kSqrt,
  kRsqrt,
  kSin,
  kCos,
  kLg2,
  kEx2,
  kTanh,
  kCopysign,
  kTestp,
  // compare and select
  kSetp,
  kSet,
  kSelp,
  kSlct,
  // moves and conversions
  kMov,
  kCvt,
  kCvta,
  kIsspacep,
  kMapa,
  kGetctarank,
  kCvtPack,
  // control
  kBra,
  kBrx,
  kRet,
  kExit,
  kTrap,
  kBrkpt,
  kNanosleep,
  kPmevent,
  // memory
  kLd,
  kSt,
  kAtom,
  kRed,
  kPrefetch,
  kDiscard,
  kApplypriority,
  kCreatepolicy,
  kFence,
  kFenceProxy,
  kFenceMbarrierInit,
  kFenceProxyTensormap,
  kTensormapReplace,
  kTensormapCopy,
  kStAsync,
  kRedAsync,
  // asynchronous copies
  kCpAsync,
  kCpAsyncCommit,
  kCpAsyncWait,
  kCpAsyncWaitAll,
  kCpAsyncMbarrierArrive,
  kCpBulk,
  kCpBulkTensor,
  kCpBulkPrefetch,
  kCpBulkPrefetchTensor,
  kCpReduceBulk,
  kCpReduceBulkTensor,
  kCpBulkCommit,
  kCpBulkWait,
  // barriers
  kBarSync,
  kBarArrive,
  kBarRed,
  kBarWarpSync,
  kClusterArrive,
  kClusterWait,
  kMbarrierInit,
  kMbarrierInval,
  kMbarrierArrive,
  kMbarrierArriveExpectTx,
  kMbarrierExpectTx,
  kMbarrierCompleteTx,
  kMbarrierTestWait,
  kMbarrierTryWait,
  kMbarrierPendingCount,
  // warp
  kShfl,
  kVote,
  kMatch,
  kActivemask,
  kElect,
  kRedux,
  kSetmaxnreg,
  kGriddepcontrol,
  // tensor
  kLdmatrix,
  kStmatrix,
  kMovmatrix,
  kMma,
  kWgmmaFence,
  kWgmmaCommit,
  kWgmmaWait,
  kWgmma,
};

/// How an operand of a row is written; a '?' after the class in a row means it may be left out (from the end).
enum class OperandClass : char {
  kDestination = 'd',           ///< a register or the sink _
  kSource = 's',                ///< a register, special register, immediate or address of a variable
  kPredicateSource = 'p',       ///< a predicate register, perhaps !
  kPredicateDestination = 'q',  ///< a predicate register or _
  kPredicatePair = 'Q',         ///< %p or %p|%q
  kDestinationPair = 'D',       ///< %r or %r|%p
  kMemory = 'm',
  kTensorMemory = 't',       ///< [map, {coordinates}]
  kVectorDestination = 'v',  ///< {..} or one register
  kVectorSource = 'w',       ///< {..} or one register, immediate
  kSourceOrPredicate = 'x',  ///< a source, or a predicate that may be negated (the operands of bar.red)
  kLabel = 'l',
  kImmediate = 'i',
};

struct OpcodeRow {
  Op op;
  std::string_view base;      ///< "ld"
  std::string_view pattern;   ///< of the modifiers
  std::string_view operands;  ///< "d m s?"
};

const std::vector<OpcodeRow>& opcode_rows();

/// The row that "ld.global.nc.v4.f32" matches (split into "ld" and its modifiers), or nullptr.
const OpcodeRow* find_opcode(std::string_view base, const std::vector<std::string>& modifiers);

/// True when a modifier list matches a pattern of the table.
bool matches_pattern(std::string_view pattern, const std::vector<std::string>& modifiers);

/// Names of all opcodes, for "did you mean".
std::vector<std::string> opcode_names();

}  // namespace kw::simulate
