// See sync_kind.h. Rules from the PTX ISA: memory consistency model, asynchronous operations.
// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/mutation/sync_kind.h"

#include <algorithm>
#include <initializer_list>

namespace kw::simulate {
namespace {

struct PrefixRow {
  std::string_view prefix;
  SyncKind kind;
};

/// The first prefix that fits.
constexpr PrefixRow kRows[] = {
    {"mbarrier.init", SyncKind::kMbarrierInit},
    {"mbarrier.arrive", SyncKind::kMbarrierArrive},
    {"mbarrier.expect_tx", SyncKind::kMbarrierArrive},
    {"mbarrier.try_wait", SyncKind::kMbarrierWait},
    {"mbarrier.test_wait", SyncKind::kMbarrierWait},
    {"fence.proxy", SyncKind::kProxyFence},
    {"fence.mbarrier_init", SyncKind::kInitFence},
    {"fence.", SyncKind::kMemoryFence},
    {"membar.", SyncKind::kMemoryFence},
    {"barrier.cluster.arrive", SyncKind::kClusterArrive},
    {"barrier.cluster.wait", SyncKind::kClusterWait},
    {"bar.", SyncKind::kBarrier},
    {"barrier.", SyncKind::kBarrier},
    {"cp.async.commit_group", SyncKind::kCopyCommit},
    {"cp.async.wait_", SyncKind::kCopyWait},
    {"cp.async.bulk.commit_group", SyncKind::kBulkCommit},
    {"cp.async.bulk.wait_group", SyncKind::kBulkWait},
    {"cp.async.bulk.tensor.2d.global", SyncKind::kBulkStore},
    {"cp.async.bulk", SyncKind::kBulkLoad},
    {"cp.async", SyncKind::kCopy},
    {"wgmma.fence", SyncKind::kWgmmaFence},
    {"wgmma.commit_group", SyncKind::kWgmmaCommit},
    {"wgmma.wait_group", SyncKind::kWgmmaWait},
    {"wgmma.", SyncKind::kWgmma},
    {"ld.shared", SyncKind::kSharedRead},
    {"ldmatrix", SyncKind::kSharedRead},
    {"st.shared", SyncKind::kSharedWrite},
    {"stmatrix", SyncKind::kSharedWrite},
    {"atom.", SyncKind::kAtomic},
    {"red.", SyncKind::kAtomic},
    {"ld.global.nc", SyncKind::kNone},  // memory that nobody writes
    {"ld.global", SyncKind::kGlobalAccess},
    {"ld.volatile.global", SyncKind::kGlobalAccess},
    {"st.global", SyncKind::kGlobalAccess},
};

bool is_one_of(SyncKind kind, std::initializer_list<SyncKind> kinds) { return std::find(kinds.begin(), kinds.end(), kind) != kinds.end(); }

/// What `a` orders or counts; asked for both orders of a pair.
bool concerns(SyncKind a, SyncKind b, bool has_handoff) {
  using enum SyncKind;
  const bool is_global = is_one_of(b, {kGlobalAccess, kAtomic});
  switch (a) {
    case kMbarrierInit:  // inits of different barriers commute
      return is_one_of(b, {kInitFence, kBarrier, kClusterArrive, kMbarrierArrive, kMbarrierWait, kBulkLoad});
    case kMbarrierArrive:
      // Not kBulkLoad: bytes may arrive before they are expected, the pending arrival keeps the phase open.
      return is_one_of(b, {kMbarrierWait, kSharedRead, kSharedWrite, kWgmmaWait, kCopyWait, kProxyFence});
    case kMbarrierWait:
      return is_one_of(b, {kSharedRead, kSharedWrite, kBulkLoad, kWgmma, kCopy});
    case kProxyFence:
      return is_one_of(b, {kSharedRead, kSharedWrite, kBulkStore, kBulkLoad, kWgmma, kBarrier});
    case kInitFence:
      return is_one_of(b, {kClusterArrive, kBarrier});
    case kMemoryFence:
      return is_global || b == kBarrier;
    case kBarrier:
      return is_one_of(b, {kSharedRead, kSharedWrite, kCopy, kCopyWait, kBulkLoad, kBulkStore, kBulkWait, kWgmma, kWgmmaWait, kMbarrierWait,
                           kMbarrierArrive}) ||
             (has_handoff && is_global);
    case kClusterArrive:
      return is_one_of(b, {kClusterWait, kSharedWrite, kMbarrierArrive, kBulkWait});
    case kClusterWait:
      return is_one_of(b, {kSharedRead, kSharedWrite, kMbarrierArrive, kMbarrierWait, kBulkLoad});
    // A group is a matter between copies, commits and waits; a wait does not count copies that no commit has closed.
    case kCopyCommit:
      return is_one_of(b, {kCopy, kCopyWait});
    case kCopyWait:
      return is_one_of(b, {kSharedRead, kSharedWrite});
    case kBulkCommit:
      return is_one_of(b, {kBulkStore, kBulkWait});
    case kBulkWait:
      return b == kSharedWrite;
    case kWgmmaFence:
      return b == kWgmma;
    case kWgmmaCommit:
      return is_one_of(b, {kWgmma, kWgmmaWait});
    case kWgmmaWait:
      return b == kSharedWrite;
    default:
      return false;
  }
}

}  // namespace

SyncKind sync_kind(const Statement& statement) {
  for (const PrefixRow& row : kRows) {
    if (starts_with(statement.opcode, row.prefix)) return row.kind;
  }
  return SyncKind::kNone;
}

bool is_sync(SyncKind kind) {
  using enum SyncKind;
  return kind != kNone && !is_one_of(kind, {kCopy, kBulkLoad, kBulkStore, kWgmma, kSharedRead, kSharedWrite, kGlobalAccess, kAtomic});
}

bool is_commit(SyncKind kind) { return is_one_of(kind, {SyncKind::kCopyCommit, SyncKind::kBulkCommit, SyncKind::kWgmmaCommit}); }
bool is_asynchronous(SyncKind kind) {
  return is_one_of(kind, {SyncKind::kCopy, SyncKind::kBulkLoad, SyncKind::kBulkStore, SyncKind::kWgmma});
}

bool interacts(SyncKind a, SyncKind b, bool has_handoff) { return concerns(a, b, has_handoff) || concerns(b, a, has_handoff); }

}  // namespace kw::simulate
