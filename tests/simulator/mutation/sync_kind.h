// What a statement has to do with the order of things, and which two kinds may change places without changing the program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/simulator/mutation/ptx_text.h"

namespace kw::simulate {

enum class SyncKind : std::uint8_t {
  kNone = 0,  ///< registers only
  kMbarrierInit,
  kMbarrierArrive,  ///< with or without expect_tx
  kMbarrierWait,
  kProxyFence,
  kInitFence,    ///< fence.mbarrier_init
  kMemoryFence,  ///< membar, fence.acq_rel, fence.sc
  kBarrier,      ///< bar.sync and its kin
  kClusterArrive,
  kClusterWait,
  kCopy,  ///< cp.async
  kCopyCommit,
  kCopyWait,
  kBulkLoad,
  kBulkStore,
  kBulkCommit,
  kBulkWait,
  kWgmma,
  kWgmmaFence,
  kWgmmaCommit,
  kWgmmaWait,
  kSharedRead,
  kSharedWrite,
  kGlobalAccess,
  kAtomic,
};

SyncKind sync_kind(const Statement& statement);
/// Waits, fences, barriers, arrives, commits: what the suite drops and moves; not the accesses that they order.
bool is_sync(SyncKind kind);
bool is_commit(SyncKind kind);
/// Copies and wgmma: what commits close into groups.
bool is_asynchronous(SyncKind kind);
/// False: by the rules of PTX the two commute, so a program with them swapped is the same program.
/// `has_handoff`: CTAs of the grid pass data through global memory.
bool interacts(SyncKind a, SyncKind b, bool has_handoff);

}  // namespace kw::simulate
