// Live ranges by the usual backward data flow over basic blocks, then linear scan, one width at a time.
// Place: simulator/execute/register_plan.h; used by the decoder's layout (decode.cpp).
// SPDX-License-Identifier: Apache-2.0
#include "simulator/execute/register_plan.h"

#include <algorithm>
#include <bit>
#include <queue>

#include "generator/base/stable_sort.h"

namespace kw::simulate {
namespace {

// Beyond this many bits of live sets (32 MiB) registers keep a place each: only made-up texts are that large.
constexpr std::uint64_t kMaxLiveBits = std::uint64_t{1} << 28;

struct Touched {
  std::vector<int> writes;  ///< unguarded ones kill
  std::vector<int> reads;
};

class Planner {
 public:
  Planner(const Module& module, const Kernel& kernel) : module_(module), kernel_(kernel) {}

  RegisterPlan run() {
    const std::size_t num = kernel_.registers.size();
    is_fixed_.assign(num, false);
    for (std::size_t i = 0; i < num; ++i) is_fixed_[i] = bits_of(kernel_.registers[i].type) == 1;
    touched_.resize(kernel_.instructions.size());
    for (std::size_t pc = 0; pc < touched_.size(); ++pc) collect(pc);
    find_blocks();
    words_ = (num + 63) / 64;
    first_.assign(num, ~std::uint32_t{0});
    last_.assign(num, 0);
    if (blocks_.size() * num * 4 > kMaxLiveBits) {
      is_fixed_.assign(num, true);
    } else {
      flow();
      find_ranges();
    }
    return assign();
  }

 private:
  struct Block {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    std::vector<std::uint32_t> successors = {};
    std::vector<std::uint64_t> reads = {}, writes = {}, live_in = {}, live_out = {};
  };

  const OpcodeRow& row(std::size_t pc) const { return *module_.forms[static_cast<std::size_t>(kernel_.instructions[pc].form)].row; }

  void add(const Operand& operand, bool is_write, Touched& touched) {
    const bool is_memory = operand.kind == Operand::Kind::kMemory;
    for (const Operand& part : operand.parts) add(part, is_write && !is_memory, touched);
    if (operand.kind == Operand::Kind::kRegister) (is_write ? touched.writes : touched.reads).push_back(operand.index);
  }

  void collect(std::size_t pc) {
    const Instruction& instruction = kernel_.instructions[pc];
    Touched& touched = touched_[pc];
    std::size_t i = 0;
    for (const char letter : row(pc).operands) {
      if (letter == ' ' || letter == '?') continue;
      if (i >= instruction.operands.size()) break;
      add(instruction.operands[i], std::string_view("dqQDv").find(letter) != std::string_view::npos, touched);
      ++i;
    }
    if (row(pc).op != Op::kWgmma) return;
    for (const std::vector<int>* list : {&touched.writes, &touched.reads}) {
      for (const int reg : *list) is_fixed_[static_cast<std::size_t>(reg)] = true;
    }
  }

  static bool ends_block(Op op) { return op == Op::kBra || op == Op::kBrx || op == Op::kRet || op == Op::kExit; }

  void find_blocks() {
    const std::size_t size = kernel_.instructions.size();
    std::vector<std::uint8_t> starts(size + 1, 0);
    starts[0] = starts[size] = 1;
    for (const Label& label : kernel_.labels) starts[static_cast<std::size_t>(label.instruction)] = 1;
    for (std::size_t pc = 0; pc < size; ++pc) {
      if (ends_block(row(pc).op)) starts[pc + 1] = 1;
    }
    block_at_.assign(size + 1, 0);
    for (std::size_t pc = 0; pc < size; ++pc) {
      if (starts[pc] != 0) blocks_.push_back(Block{.begin = static_cast<std::uint32_t>(pc)});
      block_at_[pc] = static_cast<std::uint32_t>(blocks_.size() - 1);
      blocks_.back().end = static_cast<std::uint32_t>(pc + 1);
    }
    for (Block& block : blocks_) find_successors(block);
  }

  void find_successors(Block& block) {
    const std::size_t last = block.end - 1;
    const Instruction& instruction = kernel_.instructions[last];
    const Op op = row(last).op;
    const auto go = [&](std::size_t pc) {
      if (pc < kernel_.instructions.size()) block.successors.push_back(block_at_[pc]);
    };
    if (op == Op::kBra && instruction.operands[0].index >= 0) go(static_cast<std::size_t>(instruction.operands[0].index));
    if (op == Op::kBrx) {
      for (const std::vector<int>& targets : kernel_.branch_targets) {
        for (const int target : targets) go(static_cast<std::size_t>(target));
      }
    }
    if (!ends_block(op) || instruction.guard >= 0 || op == Op::kBrx) go(block.end);
  }

  static void set(std::vector<std::uint64_t>& bits, int at) { bits[static_cast<std::size_t>(at) / 64] |= std::uint64_t{1} << (at % 64); }
  static bool test(const std::vector<std::uint64_t>& bits, int at) {
    return (bits[static_cast<std::size_t>(at) / 64] >> (at % 64) & 1) != 0;
  }

  void flow() {
    for (Block& block : blocks_) {
      for (auto* bits : {&block.reads, &block.writes, &block.live_in, &block.live_out}) bits->assign(words_, 0);
      for (std::uint32_t pc = block.begin; pc < block.end; ++pc) {
        for (const int reg : touched_[pc].reads) {
          if (!test(block.writes, reg)) set(block.reads, reg);
        }
        // A guarded write leaves the other lanes' values alone.
        if (kernel_.instructions[pc].guard >= 0) continue;
        for (const int reg : touched_[pc].writes) set(block.writes, reg);
      }
      block.live_in = block.reads;
    }
    bool has_changed = true;
    while (has_changed) {
      has_changed = false;
      for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
        for (std::size_t word = 0; word < words_; ++word) {
          std::uint64_t out = block->live_out[word];
          for (const std::uint32_t next : block->successors) out |= blocks_[next].live_in[word];
          const std::uint64_t in = block->reads[word] | (out & ~block->writes[word]);
          has_changed = has_changed || in != block->live_in[word] || out != block->live_out[word];
          block->live_out[word] = out;
          block->live_in[word] = in;
        }
      }
    }
  }

  void cover(int reg, std::uint32_t pc) {
    const auto at = static_cast<std::size_t>(reg);
    first_[at] = std::min(first_[at], pc);
    last_[at] = std::max(last_[at], pc);
  }

  void cover_all(const std::vector<std::uint64_t>& bits, std::uint32_t pc) {
    for (std::size_t word = 0; word < words_; ++word) {
      for (std::uint64_t left = bits[word]; left != 0; left &= left - 1) {
        cover(static_cast<int>(word * 64) + std::countr_zero(left), pc);
      }
    }
  }

  /// One range a register, from the first to the last pc at which it is live or touched.
  void find_ranges() {
    for (const Block& block : blocks_) {
      cover_all(block.live_in, block.begin);
      cover_all(block.live_out, block.end - 1);
      for (std::uint32_t pc = block.begin; pc < block.end; ++pc) {
        for (const int reg : touched_[pc].reads) cover(reg, pc);
        for (const int reg : touched_[pc].writes) cover(reg, pc);
      }
    }
  }

  RegisterPlan assign() {
    RegisterPlan plan;
    const std::size_t num = kernel_.registers.size();
    plan.place.assign(num, 0);
    std::vector<std::size_t> order;
    for (std::size_t reg = 0; reg < num; ++reg) {
      const int bits = bits_of(kernel_.registers[reg].type);
      if (bits == 1) continue;
      if (is_fixed_[reg]) {
        plan.place[reg] = plan.num_places[width_class(bits)]++;
      } else if (first_[reg] != ~std::uint32_t{0}) {
        order.push_back(reg);
      }
    }
    kw::stable_sort(order, [&](std::size_t a, std::size_t b) { return first_[a] < first_[b]; });
    using Ending = std::pair<std::uint32_t, std::uint32_t>;  // last pc, place
    std::priority_queue<Ending, std::vector<Ending>, std::greater<>> active[4];
    for (const std::size_t reg : order) {
      const int width = width_class(bits_of(kernel_.registers[reg].type));
      auto& ending = active[width];
      // Strictly before: a result never shares with an operand of its own instruction.
      if (!ending.empty() && ending.top().first < first_[reg]) {
        plan.place[reg] = ending.top().second;
        ending.pop();
      } else {
        plan.place[reg] = plan.num_places[width]++;
      }
      ending.emplace(last_[reg], plan.place[reg]);
    }
    return plan;
  }

  const Module& module_;
  const Kernel& kernel_;
  std::vector<Touched> touched_;
  std::vector<bool> is_fixed_;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> block_at_;
  std::vector<std::uint32_t> first_, last_;
  std::size_t words_ = 0;
};

}  // namespace

int width_class(int bits) { return bits <= 16 ? 0 : bits == 32 ? 1 : bits == 64 ? 2 : 3; }

RegisterPlan plan_registers(const Module& module, const Kernel& kernel) { return Planner(module, kernel).run(); }

}  // namespace kw::simulate
