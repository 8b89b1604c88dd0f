// The general case of a shadow check: several accesses a word, partial words, strong accesses.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/machine/shadow.h"

namespace kw::simulate {
namespace {

void note_conflict(Conflict& first, const Stamp& earlier, const Stamp& now, const Accessor& accessor) {
  if (earlier.epoch == 0 || (earlier.bytes & now.bytes) == 0 || !conflicts(earlier.access, now.access)) return;
  const Verdict verdict = order_of(earlier, accessor);
  if (verdict != Verdict::kOrdered && first.verdict == Verdict::kOrdered) first = {verdict, earlier};
}

bool is_same_agent(const Stamp& a, const Stamp& b) { return a.agent == b.agent && a.cluster == b.cluster; }

/// An entry need not be kept when the new access comes after it and whoever conflicts with the old one conflicts with the new one.
bool is_replaced_by(const Stamp& old, const Stamp& now, const Accessor& accessor) {
  if ((old.bytes & ~now.bytes) != 0) return false;
  // The chain of atomics on one word: who comes after the last of them comes after all (the ticket of a last-CTA reduction is reset
  // by a plain store on this ground). The text of PTX orders only what came before each one's fence.
  const bool is_old_strong = old.access != AccessClass::kWeakRead && old.access != AccessClass::kWeakWrite;
  if (now.access == AccessClass::kStrongUpdate && is_old_strong) return true;
  const bool is_stronger_claim = now.access == AccessClass::kWeakWrite || old.access == now.access;
  return is_stronger_claim && (is_same_agent(old, now) || order_of(old, accessor) == Verdict::kOrdered);
}

void remember(ShadowCell& cell, OverflowLists& lists, const Stamp& now) {
  if (cell.other.epoch == 0) {
    cell.other = now;
    return;
  }
  if (cell.more == 0) cell.more = lists.make();
  lists.list(cell.more).push_back(now);
}

}  // namespace

Conflict check_and_record_slow(ShadowCell& cell, OverflowLists& lists, const Stamp& now, const Accessor& accessor) {
  Conflict conflict;
  // The accesses since the last write first: they are what a reader of the report looks for.
  note_conflict(conflict, cell.other, now, accessor);
  if (cell.more != 0) {
    for (const Stamp& stamp : lists.list(cell.more)) note_conflict(conflict, stamp, now, accessor);
  }
  note_conflict(conflict, cell.writer, now, accessor);
  // After a reported conflict the new access takes the place of the old one, so one fault is not reported again by every word's history.
  const bool is_whole_write = now.access == AccessClass::kWeakWrite && now.bytes == 0xf;
  if (is_whole_write) {
    cell.other.epoch = 0;
    if (cell.more != 0) {
      lists.release(cell.more);
      cell.more = 0;
    }
    cell.writer = now;
    return conflict;
  }
  if (cell.more != 0) {
    std::vector<Stamp>& list = lists.list(cell.more);
    std::erase_if(list, [&](const Stamp& stamp) { return is_replaced_by(stamp, now, accessor); });
    if (list.empty()) {
      lists.release(cell.more);
      cell.more = 0;
    }
  }
  if (cell.other.epoch != 0 && is_replaced_by(cell.other, now, accessor)) cell.other.epoch = 0;
  if (now.access != AccessClass::kWeakWrite) {
    remember(cell, lists, now);
    return conflict;
  }
  // A write of some bytes: the previous writer of the others stays, as one of the further accesses.
  if (cell.writer.epoch != 0 && !is_replaced_by(cell.writer, now, accessor)) remember(cell, lists, cell.writer);
  cell.writer = now;
  return conflict;
}

}  // namespace kw::simulate
