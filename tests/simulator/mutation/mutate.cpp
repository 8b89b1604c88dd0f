// See mutate.h. An operator is a function that looks at one statement (or two neighbours) and adds its mutants.
// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/mutation/mutate.h"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "generator/base/stable_sort.h"
#include "tests/simulator/mutation/sync_kind.h"

namespace kw::simulate {
namespace {

constexpr char kTemporary[] = "kw_mutant";  // a register declared where it is used

std::optional<std::int64_t> immediate(std::string_view operand) {
  if (operand.empty() || operand.find_first_not_of("-0123456789") != std::string_view::npos) return std::nullopt;
  return std::stoll(std::string(operand));
}

std::string_view word_for(SyncKind kind) {
  switch (kind) {
    case SyncKind::kMbarrierInit:
      return "init";
    case SyncKind::kMbarrierArrive:
      return "arrive";
    case SyncKind::kMbarrierWait:
      return "mbarrier-wait";
    case SyncKind::kProxyFence:
    case SyncKind::kInitFence:
    case SyncKind::kMemoryFence:
    case SyncKind::kWgmmaFence:
      return "fence";
    case SyncKind::kClusterArrive:
    case SyncKind::kClusterWait:
      return "cluster-barrier";
    case SyncKind::kBarrier:
      return "barrier";
    case SyncKind::kCopyCommit:
    case SyncKind::kBulkCommit:
    case SyncKind::kWgmmaCommit:
      return "commit";
    default:
      return "wait-group";
  }
}

class Maker {
 public:
  Maker(const PtxText& text, std::string_view case_name) : text_(text), case_name_(case_name) {
    for (const Statement& statement : text.statements) {
      const SyncKind kind = sync_kind(statement);
      has_handoff_ = has_handoff_ || kind == SyncKind::kMemoryFence;
      for (const std::string& name : names_written(statement)) definitions_[name].push_back(&statement);
      for (const std::string& name : names_read(statement)) readers_[name].push_back(&statement);
    }
  }

  std::vector<Mutant> make() {
    for (const Statement& statement : text_.statements) {
      const SyncKind kind = sync_kind(statement);
      if (is_sync(kind)) drop(statement, kind);
      double_it(statement, kind);
      weaken(statement);
      change_counts(statement, kind);
      change_addresses(statement, kind);
      change_copies(statement, kind);
      change_masks(statement, kind);
      change_loop(statement);
    }
    swap_neighbours();
    drop_all_order();
    kw::stable_sort(mutants_, [](const Mutant& a, const Mutant& b) { return a.lines.begin()->first < b.lines.begin()->first; });
    return std::move(mutants_);
  }

 private:
  void add(const Statement& statement, const std::string& operation, const std::string& detail, std::map<std::size_t, std::string> lines) {
    std::string name = fmt::format("{}:{}:{}", case_name_, statement.line + 1, operation);
    if (!detail.empty()) name += ":" + detail;
    mutants_.push_back({std::move(name), operation, std::move(lines)});
  }
  void replace(const Statement& statement, const std::string& operation, const std::string& detail, const std::string& line) {
    add(statement, operation, detail, {{statement.line, line}});
  }
  static bool is_loop_of_wait(const Statement& wait, const Statement& next) {
    return next.opcode == "bra" && next.guard == "@!" + wait.operands.front();
  }

  // --- drop, double, weaken ---
  void drop(const Statement& statement, SyncKind kind) {
    std::map<std::size_t, std::string> lines = {{statement.line, ""}};
    if (kind == SyncKind::kMbarrierWait) {
      const Statement& next = *(&statement + 1);
      if (!is_loop_of_wait(statement, next)) return;
      lines[next.line] = "";
    }
    add(statement, fmt::format("drop-{}", word_for(kind)), "", std::move(lines));
  }

  /// Waits, fences and barriers are left out: twice is once. So are commits: an empty group makes later waits wait for more.
  void double_it(const Statement& statement, SyncKind kind) {
    const char* word = kind == SyncKind::kMbarrierArrive  ? "arrive"
                       : kind == SyncKind::kClusterArrive ? "cluster-barrier"
                       : kind == SyncKind::kAtomic        ? "atomic"
                       : kind == SyncKind::kBulkLoad      ? "load"
                                                          : nullptr;
    if (word != nullptr) replace(statement, fmt::format("double-{}", word), "", to_text(statement) + " " + to_text(statement));
  }

  void weaken(const Statement& statement) {
    if (const auto changed = weaker(statement)) replace(statement, "weaken-order", "", to_text(*changed));
  }
  static std::optional<Statement> weaker(const Statement& statement) {
    static const std::pair<const char*, const char*> kWeaker[] = {
        {".acq_rel", ".relaxed"}, {".arrive.release", ".arrive.relaxed"}, {"membar.gl", "membar.cta"}};
    for (const auto& [from, to] : kWeaker) {
      const std::size_t at = statement.opcode.find(from);
      if (at == std::string::npos || starts_with(statement.opcode, "fence.")) continue;
      Statement changed = statement;
      changed.opcode.replace(at, std::string_view(from).size(), to);
      return changed;
    }
    return std::nullopt;
  }
  /// Fences and an ordered atomic may each be enough: together they are not needless.
  void drop_all_order() {
    std::map<std::size_t, std::string> lines;
    const Statement* first = nullptr;
    for (const Statement& statement : text_.statements) {
      const SyncKind kind = sync_kind(statement);
      const auto changed = weaker(statement);
      if (kind != SyncKind::kMemoryFence && !(kind == SyncKind::kAtomic && changed)) continue;
      lines[statement.line] = kind == SyncKind::kAtomic ? to_text(*changed) : "";
      first = first == nullptr ? &statement : first;
    }
    if (first != nullptr && lines.size() > 1) add(*first, "drop-all-order", "", std::move(lines));
  }

  // --- operands ---
  /// Adds `delta` to operand `index` (a register: through a temporary of `type`).
  void change_operand(const Statement& statement, std::size_t index, const std::string& operation, std::int64_t delta,
                      std::string_view type = "s32") {
    const std::string detail = fmt::format("{:+}", delta);
    Statement changed = statement;
    if (const auto value = immediate(statement.operands[index])) {
      changed.operands[index] = std::to_string(*value + delta);
      replace(statement, operation, detail, to_text(changed));
      return;
    }
    changed.operands[index] = kTemporary;
    replace(statement, operation, detail, with_temporary(type, fmt::format("add.{}", type), statement.operands[index], delta, changed));
  }
  void flip_operand(const Statement& statement, std::size_t index, const std::string& operation, std::int64_t bits,
                    std::string_view type = "b32") {
    Statement changed = statement;
    changed.operands[index] = kTemporary;
    replace(statement, operation, fmt::format("^{}", bits),
            with_temporary(type, fmt::format("xor.{}", type), statement.operands[index], bits, changed));
  }
  static std::string with_temporary(std::string_view type, const std::string& opcode, const std::string& from, std::int64_t value,
                                    const Statement& changed) {
    return fmt::format("{{ .reg .b{} {}; {} {}, {}, {}; {} }}", type.substr(1), kTemporary, opcode, kTemporary, from, value,
                       to_text(changed));
  }
  /// [a] -> [a+8]
  void shift_address(const Statement& statement, std::size_t index, const std::string& operation, std::int64_t delta) {
    Statement changed = statement;
    std::string& address = changed.operands[index];
    address.pop_back();
    const std::size_t plus = address.find('+');
    const std::int64_t before = plus == std::string::npos ? 0 : std::stoll(address.substr(plus + 1));
    address = fmt::format("{}+{}]", address.substr(0, plus), before + delta);
    replace(statement, operation, fmt::format("{:+}", delta), to_text(changed));
  }

  void change_counts(const Statement& statement, SyncKind kind) {
    const std::size_t last = statement.operands.empty() ? 0 : statement.operands.size() - 1;
    switch (kind) {
      case SyncKind::kMbarrierInit:
        for (const int delta : {-1, 1}) change_operand(statement, 1, "arrival-count", delta);
        break;
      case SyncKind::kMbarrierWait:
        flip_operand(statement, 2, "parity", 1);
        break;
      case SyncKind::kMbarrierArrive:
        if (!has_part(statement.opcode, "expect_tx")) break;
        for (const int delta : {-16, 16}) change_operand(statement, last, "expected-bytes", delta);
        break;
      case SyncKind::kCopyWait:
      case SyncKind::kBulkWait:
      case SyncKind::kWgmmaWait:
        // One fewer only waits for more.
        if (statement.operands.size() == 1) change_operand(statement, 0, "pending-groups", 1);
        break;
      case SyncKind::kBarrier:  // the id of a barrier of all threads is only a name
        if (statement.operands.size() != 2) break;
        for (const int delta : {-32, 32}) change_operand(statement, 1, "thread-count", delta);
        for (const int delta : {-1, 1}) change_operand(statement, 0, "barrier-id", delta);
        break;
      case SyncKind::kAtomic:
        if (!has_part(statement.opcode, ".inc.")) break;
        for (const int delta : {-1, 1}) change_operand(statement, 2, "wrap-count", delta);
        break;
      default:
        break;
    }
  }

  void change_addresses(const Statement& statement, SyncKind kind) {
    constexpr int kNextBarrier = 8, kVector = 16, kSwizzleRow = 128;
    switch (kind) {
      case SyncKind::kMbarrierInit:
      case SyncKind::kMbarrierWait:
      case SyncKind::kMbarrierArrive:
        for (const int delta : {-kNextBarrier, kNextBarrier})
          shift_address(statement, kind == SyncKind::kMbarrierInit ? 0 : 1, "barrier-address", delta);
        break;
      case SyncKind::kBulkLoad:
      case SyncKind::kBulkStore: {
        const std::size_t tile = kind == SyncKind::kBulkLoad ? 0 : 1;
        for (const int delta : {-kSwizzleRow, kSwizzleRow}) shift_address(statement, tile, "tile-address", delta);
        if (kind == SyncKind::kBulkLoad) shift_address(statement, 2, "barrier-address", kNextBarrier);
        break;
      }
      case SyncKind::kCopy:
        for (const int delta : {-kVector, kVector}) shift_address(statement, 0, "tile-address", delta);
        break;
      case SyncKind::kWgmma:  // start address in 16 bytes, rows' stride; the leading offset counts only without swizzle
        for (const std::size_t descriptor : {std::size_t{1}, std::size_t{2}}) {
          const std::string side = descriptor == 1 ? "a" : "b";
          change_operand(statement, descriptor, "descriptor-start-" + side, 1, "s64");
          change_operand(statement, descriptor, "descriptor-stride-" + side, std::int64_t{1} << 32, "s64");
        }
        break;
      case SyncKind::kSharedRead:
      case SyncKind::kSharedWrite: {
        const bool is_row = has_part(statement.opcode, "matrix") || has_part(statement.opcode, ".v4");
        const int step = is_row ? kVector : has_part(statement.opcode, ".v2") ? kVector / 2 : kVector / 4;
        const std::size_t address = starts_with(statement.opcode, "ld") ? 1 : 0;
        for (const int delta : {-step, step}) shift_address(statement, address, "access-address", delta);
        break;
      }
      default:
        break;
    }
    if (starts_with(statement.opcode, "mapa.")) change_operand(statement, 2, "cluster-rank", 1);
  }

  void change_copies(const Statement& statement, SyncKind kind) {
    if (kind == SyncKind::kCopy) {
      constexpr int kElement = 2;
      if (statement.operands.size() != 4) return;
      change_operand(statement, 3, "source-bytes", -kElement);
      if (!immediate(statement.operands[3])) change_operand(statement, 3, "source-bytes", kElement);  // ptxas refuses 18 of 16
      return;
    }
    if (kind != SyncKind::kBulkLoad && kind != SyncKind::kBulkStore) return;
    const std::size_t index = kind == SyncKind::kBulkLoad ? 1 : 0;  // [map, {c0, c1}]
    const std::string& tensor = statement.operands[index];
    const std::size_t brace = tensor.find('{');
    const std::vector<std::string> coordinates = names_in(std::string_view(tensor).substr(brace));
    for (std::size_t axis = 0; axis < coordinates.size(); ++axis) {
      for (const int delta : {-1, 1}) {
        Statement changed = statement;
        std::string& text = changed.operands[index];
        text.replace(text.find(coordinates[axis], brace), coordinates[axis].size(), kTemporary);
        replace(statement, fmt::format("coordinate-{}", axis), fmt::format("{:+}", delta),
                with_temporary("s32", "add.s32", coordinates[axis], delta, changed));
      }
    }
  }

  void change_masks(const Statement& statement, SyncKind kind) {
    if (kind == SyncKind::kBulkLoad && has_part(statement.opcode, "multicast")) {
      for (const int bits : {1, 2}) flip_operand(statement, statement.operands.size() - 1, "multicast-mask", bits, "b16");
    }
    const bool has_members = starts_with(statement.opcode, "shfl.sync") || starts_with(statement.opcode, "vote.sync") ||
                             starts_with(statement.opcode, "elect.sync");
    if (has_members) {
      Statement changed = statement;
      changed.operands.back() = "0x7fffffff";
      replace(statement, "member-mask", "^31", to_text(changed));
    }
  }

  // --- loops over stages and k blocks ---
  /// The line of the label when the branch goes backward.
  std::optional<std::size_t> backward_target(const Statement& branch) const {
    for (std::size_t line = 0; line < branch.line; ++line) {
      if (starts_with(text_.lines[line], branch.operands[0] + ":")) return line;
    }
    return std::nullopt;
  }
  bool is_in_loop(const Statement& statement) const {
    return std::any_of(text_.statements.begin(), text_.statements.end(), [&](const Statement& other) {
      if (!starts_with(other.opcode, "bra") || other.line < statement.line) return false;
      const auto target = backward_target(other);
      return target && *target < statement.line;
    });
  }
  template <typename Predicate>
  bool has_reader(const std::string& name, const Predicate& is_wanted) const {
    const auto readers = readers_.find(name);
    return readers != readers_.end() &&
           std::any_of(readers->second.begin(), readers->second.end(), [&](const Statement* reader) { return is_wanted(*reader); });
  }
  /// What the loop adds to the compared register on each turn: an immediate or a register. The addition nearest before counts.
  std::string step_of(const Statement& compare) const {
    std::string step = "1";
    const auto found = definitions_.find(compare.operands[1]);
    if (found == definitions_.end()) return step;
    for (const Statement* definition : found->second) {
      const bool is_addition = starts_with(definition->opcode, "add.s32") && definition->operands[1] == compare.operands[1];
      if (is_addition && definition->line < compare.line) step = definition->operands[2];
    }
    return step;
  }

  void change_loop(const Statement& statement) {
    if (starts_with(statement.opcode, "setp.") && statement.operands.size() == 3) {
      if (!has_part(statement.opcode, ".s32") && !has_part(statement.opcode, ".u32")) return;
      const std::string& predicate = statement.operands[0];
      const bool ends_loop =
          has_reader(predicate, [&](const Statement& reader) { return reader.opcode == "bra" && backward_target(reader); });
      const bool wraps_stage = starts_with(statement.opcode, "setp.eq") && is_in_loop(statement) &&
                               has_reader(predicate, [](const Statement& reader) { return starts_with(reader.opcode, "selp"); });
      if (ends_loop) {  // one turn more or less
        const std::string step = step_of(statement);
        Statement changed = statement;
        changed.operands[2] = kTemporary;
        for (const char* opcode : {"sub.s32", "add.s32"}) {
          replace(statement, "loop-bound", opcode[0] == 's' ? "-1" : "+1",
                  fmt::format("{{ .reg .b32 {}; {} {}, {}, {}; {} }}", kTemporary, opcode, kTemporary, statement.operands[2], step,
                              to_text(changed)));
        }
      } else if (wraps_stage) {
        for (const int delta : {-1, 1}) change_operand(statement, 2, "stage-wrap", delta);
      }
      return;
    }
    // The phase flips with a bit that says whether the stage index wrapped.
    if (starts_with(statement.opcode, "xor.b32") && statement.operands.size() == 3) {
      const auto found = definitions_.find(statement.operands[2]);
      if (found == definitions_.end() || found->second.size() != 1 || !starts_with(found->second[0]->opcode, "selp.u32")) return;
      replace(statement, "drop-phase-flip", "", fmt::format("mov.b32 {}, {};", statement.operands[0], statement.operands[1]));
    }
  }

  // --- moves ---
  SyncKind kind_of(const Unit& unit) const {
    for (std::size_t index = 0; index < unit.num_statements; ++index) {
      const SyncKind kind = sync_kind(text_.statements[unit.first_statement + index]);
      if (kind != SyncKind::kNone) return kind;
    }
    return SyncKind::kNone;
  }
  std::set<std::string> names(const Unit& unit, std::vector<std::string> (*of)(const Statement&)) const {
    std::set<std::string> all;
    for (std::size_t index = 0; index < unit.num_statements; ++index) {
      for (const std::string& name : of(text_.statements[unit.first_statement + index])) {
        if (name[0] == '%') all.insert(name);
      }
    }
    return all;
  }
  static bool meet(const std::set<std::string>& a, const std::set<std::string>& b) {
    return std::any_of(a.begin(), a.end(), [&](const std::string& name) { return b.count(name) != 0; });
  }
  /// Registers allow `unit` to change places with all units in [first, last).
  bool may_pass(const Unit& unit, std::size_t first, std::size_t last) const {
    const auto written = names(unit, names_written), read = names(unit, names_read);
    for (std::size_t index = first; index < last; ++index) {
      const Unit& other = text_.units[index];
      const auto other_written = names(other, names_written), other_read = names(other, names_read);
      if (meet(written, other_read) || meet(written, other_written) || meet(read, other_written)) return false;
    }
    return true;
  }
  std::string joined(const Unit& unit) const {
    std::string all;
    for (std::size_t line = unit.first_line; line <= unit.last_line; ++line) {
      const std::string& text = text_.lines[line];
      all += text.substr(std::min(text.find_first_not_of(" \t"), text.size())) + " ";
    }
    return all;
  }

  void swap_neighbours() {
    std::optional<std::size_t> before;
    for (std::size_t index = 0; index < text_.units.size(); ++index) {
      const SyncKind kind = kind_of(text_.units[index]);
      if (kind == SyncKind::kNone) continue;
      if (before && text_.units[*before].block == text_.units[index].block) swap_pair(*before, index);
      before = index;
    }
  }
  void swap_pair(std::size_t first, std::size_t second) {
    const Unit &a = text_.units[first], &b = text_.units[second];
    const SyncKind kind_a = kind_of(a), kind_b = kind_of(b);
    if (!(is_sync(kind_a) || is_sync(kind_b)) || !interacts(kind_a, kind_b, has_handoff_)) return;
    if (is_commit(kind_a) && is_asynchronous(kind_b)) return;  // the later copy joins the earlier group: waits wait for more
    std::map<std::size_t, std::string> lines;
    const auto clear = [&](const Unit& unit) {
      for (std::size_t line = unit.first_line; line <= unit.last_line; ++line) lines[line] = "";
    };
    if (may_pass(a, first + 1, second + 1)) {  // a goes down behind b
      clear(a);
      lines[b.last_line] = text_.lines[b.last_line] + " " + joined(a);
    } else if (may_pass(b, first, second)) {  // b goes up before a
      clear(b);
      lines[a.first_line] = joined(b) + " " + text_.lines[a.first_line];
    } else {
      return;
    }
    const SyncKind moved = is_sync(kind_a) ? kind_a : kind_b;
    add(text_.statements[(is_sync(kind_a) ? a : b).first_statement], fmt::format("move-{}", word_for(moved)),
        is_sync(kind_a) ? "down" : "up", std::move(lines));
  }

  const PtxText& text_;
  std::string_view case_name_;
  bool has_handoff_ = false;
  std::map<std::string, std::vector<const Statement*>> definitions_, readers_;
  std::vector<Mutant> mutants_;
};

}  // namespace

std::vector<Mutant> make_mutants(const PtxText& text, std::string_view case_name) { return Maker(text, case_name).make(); }

std::string apply(const PtxText& text, const Mutant& mutant) {
  std::string result;
  for (std::size_t line = 0; line < text.lines.size(); ++line) {
    const auto changed = mutant.lines.find(line);
    result += changed == mutant.lines.end() ? text.lines[line] : changed->second;
    result += '\n';
  }
  return result;
}

}  // namespace kw::simulate
