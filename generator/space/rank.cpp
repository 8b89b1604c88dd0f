// The analytic model: a time for each config from the template's estimates and the device's rates. No measurement enters here.
// time = the largest of SM, L2 and DRAM time + a tenth of the others + overheads, at the maximum clock. The SM time walks the CTAs of the
// busiest SM in rounds of co-resident CTAs; the DRAM time counts what a wave of CTAs reads anew when the operands do not fit in L2. It
// ranks configs of one problem; its absolute times are estimates, shown as "predicted". SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "generator/space/config_space.h"
#include "generator/space/slots.h"

namespace kw::generator {
namespace {

// Starting values of the model; the measured ones are from an H200 (docs/findings).
constexpr double kSmemBytesPerClockSm = 128;   // one wavefront of 32 banks of 4 bytes a clock
constexpr double kSplitBytesPerClock = 30;     // a CTA that adds up the parts of other CTAs (H200)
constexpr double kL2BytesPerClockOneSm = 64;   // an SM alone cannot draw more from L2
constexpr double kLoadLatencyClocks = 600;     // gmem -> smem, between an L2 hit and a DRAM access
constexpr double kTmaLatencyClocks = 1750;     // of a ring that TMA fills from DRAM, until the consumer's release is back (H200, cold L2)
constexpr double kL2BytesPerClockBusySm = 39;  // an SM's share when all of them pull
constexpr double kLateShare = 0.05;            // of a load's latency that deeper pipelines hide and shallow ones show
constexpr double kOverlapLoss = 0.1;           // of the bounds that are not the largest: overlap is never perfect
constexpr double kStepSyncClocks = 50;         // barrier and first fragment loads of a k step
constexpr double kCopyInstructionClocks = 4;   // a warp-level copy of 16 bytes a lane, in the load-store unit
constexpr double kEpilogueClocks = 1200;       // reads, conversion and stores of one tile, latency part
constexpr double kLaunchOverheadUs = 2.0;
constexpr double kWarpgroupMmaShare = 0.8;         // of wgmma's peak: an H200 lowers its clock under it (875 of 1080 TFLOP/s)
constexpr double kSplitReduceUs = 1.5;             // the last CTA of a tile waits for its peers and sums
constexpr double kPersistentSplitReduceUs = 3.0;   // the same where no other CTA of the SM works meanwhile (H200)
constexpr double kReservedSmemBytesPerCta = 1024;  // CUDA Programming Guide, compute capability 8.0 and later
constexpr double kRequestedAgainShare = 0.2;  // of the time to bring an operand from DRAM, where several clusters ask for it at once (H200)
constexpr double kUsableL2Share = 0.6;        // outputs and the other operand take the rest

/// Share of the mma.sync rate by resident warps: 4 warps 1934, 8 warps 2500, 16 warps 2672 FLOP/clk/SM on an H200.
double tensor_core_share(double num_warps) {
  constexpr std::array<std::pair<double, double>, 5> kPoints = {{{0, 0}, {4, 0.724}, {8, 0.936}, {16, 1.0}, {64, 1.0}}};
  for (std::size_t i = 1; i < kPoints.size(); ++i) {
    if (num_warps > kPoints[i].first) continue;
    const double position = (num_warps - kPoints[i - 1].first) / (kPoints[i].first - kPoints[i - 1].first);
    return kPoints[i - 1].second + position * (kPoints[i].second - kPoints[i - 1].second);
  }
  return 1.0;
}

/// CUDA cores hide latency by warps too; register tiles leave them well below the peak with few.
double cuda_core_share(double num_warps) { return 0.9 * num_warps / (num_warps + 3.0); }

/// The estimates of a template, bound to one problem.
class Estimates {
 public:
  Estimates(const SpaceContext& context, const std::vector<std::vector<std::int64_t>>& values) {
    std::vector<std::string> names;
    for (const Tunable& tunable : context.info->tunables) names.push_back(tunable.name);
    const IntBindings fixed = fixed_bindings(context);
    for (const Quantity& quantity : context.info->estimates) {
      Result<SlotExpr> expr = SlotExpr::create(quantity.expression, fixed, names, quantity.name);
      if (expr) exprs_.emplace(quantity.name, RememberedExpr(std::move(*expr), values));  // one that cannot be read is as one left out
    }
  }

  double get(const std::string& name, const SpacePoint& point, double fallback) {
    const auto found = exprs_.find(name);
    if (found == exprs_.end()) return fallback;
    const std::optional<std::int64_t> value = found->second.at(point);
    return value ? static_cast<double>(*value) : fallback;
  }

 private:
  std::map<std::string, RememberedExpr> exprs_;
};

/// What the model knows of one config.
struct Numbers {
  double threads, smem_bytes, registers, stages, group_m, ctas, k_steps, flops, gmem_bytes, smem_traffic, copy_instructions,
      workspace_bytes, split_bytes, lifetime_clocks;
  double tile_m, tile_n, cluster_m, cluster_n, resident_ctas;
  bool is_tensor_core, is_warpgroup_mma, is_dominated;
  int math_type_bytes;
};

struct ProblemNumbers {
  double batch, m, n, k, a_bytes, b_bytes, epilogue_bytes;
};

double binding(const IntBindings& bindings, const std::string& name, double fallback) {
  const auto found = bindings.find(name);
  return found == bindings.end() ? fallback : static_cast<double>(found->second);
}

ProblemNumbers problem_numbers(const SpaceContext& context) {
  ProblemNumbers p{};
  p.batch = binding(context.problem, "extent_b", 1);
  p.m = binding(context.problem, "extent_m", 1);
  p.n = binding(context.problem, "extent_n", 1);
  p.k = binding(context.problem, "extent_k", 1);
  const double a_batches = binding(context.problem, "A_stride_b", 0) == 0 ? 1 : p.batch;
  const double b_batches = binding(context.problem, "B_stride_b", 0) == 0 ? 1 : p.batch;
  p.a_bytes = a_batches * p.m * p.k * binding(context.bindings, "size_bytes.ElementA", 2);
  const double right_operands = context.problem.count("B2_stride_k") != 0 ? 2 : 1;
  p.b_bytes = right_operands * b_batches * p.n * p.k * binding(context.bindings, "size_bytes.ElementB", 2);
  p.epilogue_bytes = static_cast<double>(context.epilogue_bytes);
  if (context.epilogue_bytes == 0) p.epilogue_bytes = p.batch * p.m * p.n * binding(context.bindings, "size_bytes.ElementA", 2);
  return p;
}

Numbers numbers_of(Estimates& estimates, const SpacePoint& point, const ProblemNumbers& p) {
  const auto get = [&](const char* name, double fallback) { return estimates.get(name, point, fallback); };
  Numbers n{};
  n.tile_m = std::max(1.0, get("tile_m", 64));
  n.tile_n = std::max(1.0, get("tile_n", 64));
  const double tile_k = std::max(1.0, get("tile_k", 16));
  n.threads = std::max(32.0, get("threads_per_cta", 128));
  n.smem_bytes = get("smem_bytes_per_cta", 0);
  n.registers = std::clamp(8 * std::ceil(get("registers_per_thread", 128) / 8), 16.0, 256.0);
  n.stages = get("stages", 1);
  n.group_m = std::max(1.0, get("group_m", 1));
  n.ctas = get("ctas", p.batch * std::ceil(p.m / n.tile_m) * std::ceil(p.n / n.tile_n));
  n.cluster_m = std::max(1.0, get("cluster_m", 1));
  n.cluster_n = std::max(1.0, get("cluster_n", 1));
  n.resident_ctas = get("resident_ctas", 0);
  n.k_steps = get("k_steps", std::ceil(p.k / tile_k));
  n.flops = get("math_flops_per_cta", 2 * n.tile_m * n.tile_n * tile_k * n.k_steps);
  n.gmem_bytes = get("gmem_bytes_per_cta", (n.tile_m + n.tile_n) * tile_k * 2 * n.k_steps);
  n.smem_traffic = get("smem_bytes_read_per_cta", 0) + get("smem_bytes_written_per_cta", 0);
  n.copy_instructions = get("copy_instructions_per_cta", 0);
  n.workspace_bytes = get("workspace_traffic_bytes", 0);
  n.split_bytes = get("split_bytes_per_cta", 0);
  n.lifetime_clocks = get("lifetime_clocks_per_cta", 0);
  n.is_tensor_core = get("is_tensor_core", 0) != 0;
  n.is_warpgroup_mma = get("is_warpgroup_mma", 0) != 0;
  n.math_type_bytes = static_cast<int>(get("math_type_bytes", 4));
  n.is_dominated = get("is_dominated", 0) != 0;
  return n;
}

double math_rate(const Numbers& n, const DeviceLimits& limits) {
  const double f32 = std::max(1.0, limits.fma_f32_flops_per_clock_sm);
  if (!n.is_tensor_core) return n.math_type_bytes >= 8 ? std::max(1.0, limits.fma_f64_flops_per_clock_sm) : f32;
  if (n.is_warpgroup_mma) return std::max(1.0, limits.peak_16bit_flops_per_clock_sm);
  const double rate = n.math_type_bytes >= 4 ? limits.mma_tf32_flops_per_clock_sm : limits.mma_16bit_flops_per_clock_sm;
  return rate > 0 ? rate : f32;
}

int resident_ctas(const Numbers& n, const DeviceLimits& limits) {
  const double warps = std::ceil(n.threads / 32);
  const double by_smem = static_cast<double>(limits.smem_bytes_per_sm) / (n.smem_bytes + kReservedSmemBytesPerCta);
  const double by_registers = limits.registers_per_sm / (n.registers * 32 * warps);
  const double by_threads = limits.max_threads_per_sm / (warps * 32);
  const double least = std::floor(std::min({by_smem, by_registers, by_threads, static_cast<double>(limits.max_ctas_per_sm)}));
  return std::max(1, static_cast<int>(least));
}

/// Clocks of `resident` CTAs that run together on one SM, from launch to last store; also the math and smem parts of it.
struct Round {
  double total, math, smem;
};

Round round_clocks(const Numbers& n, double resident, double rate) {
  const double warps = std::ceil(n.threads / 32);
  const auto share = [&](double num_warps) {
    // One warpgroup's wgmma keeps the tensor cores busy as long as its operands are there.
    if (n.is_warpgroup_mma) return kWarpgroupMmaShare;
    return n.is_tensor_core ? tensor_core_share(num_warps) : cuda_core_share(num_warps);
  };
  Round round{};
  round.math = resident * n.flops / (rate * share(resident * warps));
  round.smem = resident * (n.smem_traffic / kSmemBytesPerClockSm + n.copy_instructions * kCopyInstructionClocks);
  const double one_cta_math = n.flops / (rate * share(warps));
  // One CTA's own chain of k steps: with one stage a load is waited for in full, with more they overlap.
  const double first_byte = n.is_warpgroup_mma ? kTmaLatencyClocks : kLoadLatencyClocks;
  const double latency = first_byte + n.gmem_bytes / std::max(1.0, n.k_steps) / kL2BytesPerClockBusySm;
  const double in_flight = std::max(1.0, n.stages - (n.is_warpgroup_mma ? 0.8 : 1));
  const double wait_per_step = n.stages < 2 ? latency : kStepSyncClocks + kLateShare * latency / in_flight;
  const double chain = std::max(one_cta_math + n.k_steps * wait_per_step, n.k_steps * latency / in_flight);
  const double epilogue =
      kEpilogueClocks + resident * n.tile_m * n.tile_n * 4 / kL2BytesPerClockOneSm + n.split_bytes / kSplitBytesPerClock;
  const double fill = kLoadLatencyClocks;
  round.total = std::max({round.math, round.smem, chain}) + fill + epilogue;
  return round;
}

/// Bytes that DRAM must deliver: each operand once, or once a wave where they do not stay in L2.
double dram_bytes(const Numbers& n, const ProblemNumbers& p, const DeviceLimits& limits, double concurrent_ctas) {
  const double compulsory = p.a_bytes + p.b_bytes;
  if (limits.l2_bytes <= 0 || compulsory <= kUsableL2Share * static_cast<double>(limits.l2_bytes)) return compulsory + p.epilogue_bytes;
  const double tiles_m = std::ceil(p.m / n.tile_m);
  const double tiles_n = std::ceil(p.n / n.tile_n);
  const double wave = std::min(concurrent_ctas, tiles_m * tiles_n);
  const double rows = std::min({n.group_m, tiles_m, wave});
  const double columns = std::min(tiles_n, std::ceil(wave / rows));
  const double waves = std::ceil(p.batch * tiles_m * tiles_n / wave);
  const double row_bytes = p.a_bytes / std::max(1.0, p.batch * tiles_m);
  const double column_bytes = p.b_bytes / std::max(1.0, p.batch * tiles_n);
  return std::max(compulsory, waves * (rows * row_bytes + columns * column_bytes)) + p.epilogue_bytes;
}

/// Bytes of the operands that more than one cluster asks for: multicast serves only its own.
double bytes_requested_again(const Numbers& n, const ProblemNumbers& p) {
  const bool is_a_shared = std::ceil(p.n / n.tile_n) > n.cluster_n;
  const bool is_b_shared = std::ceil(p.m / n.tile_m) > n.cluster_m;
  return (is_a_shared ? p.a_bytes : 0) + (is_b_shared ? p.b_bytes : 0);
}

Prediction predict(const Numbers& n, const ProblemNumbers& p, const DeviceLimits& limits) {
  const double clocks_per_us = std::max(0.1, limits.max_clock_ghz) * 1000;
  const double num_sms = std::max(1, limits.num_sms);
  const int resident = resident_ctas(n, limits);
  // Clusters do not find a place on every SM.
  const double busiest = std::ceil(n.ctas / (n.resident_ctas > 0 ? std::min(num_sms, n.resident_ctas) : num_sms));
  const double rate = math_rate(n, limits);
  const double full_rounds = std::floor(busiest / resident);
  const double rest = busiest - full_rounds * resident;
  const Round full = round_clocks(n, resident, rate);
  const Round last = rest > 0 ? round_clocks(n, rest, rate) : Round{};

  Prediction result;
  result.ctas_per_sm = resident;
  result.num_waves = n.ctas / (num_sms * resident);
  result.math_us = (full_rounds * full.math + last.math) / clocks_per_us;
  result.smem_us = (full_rounds * full.smem + last.smem) / clocks_per_us;
  const double l2_total = n.ctas * n.gmem_bytes + n.workspace_bytes + p.epilogue_bytes;
  const double l2_rate = std::max(1.0, limits.l2_bytes_per_clock);
  result.l2_us = std::max(l2_total / l2_rate, busiest * n.gmem_bytes / kL2BytesPerClockOneSm) / clocks_per_us;
  const double weighted_bytes = dram_bytes(n, p, limits, num_sms * resident) + kRequestedAgainShare * bytes_requested_again(n, p);
  result.dram_us = weighted_bytes / (std::max(1.0, limits.dram_gb_per_s) * 1000);
  // A template that loads, works and stores in turn says how long that takes a CTA; others take its place as it ends.
  const double sm_clocks =
      n.lifetime_clocks > 0 ? std::max(1.0, busiest / resident) * n.lifetime_clocks : full_rounds * full.total + last.total;
  const double sm_us = sm_clocks / clocks_per_us;
  // Fill, k-step latency and epilogue are what the SM time has beyond its math and shared-memory bounds.
  const double split_us =
      n.is_warpgroup_mma ? (n.split_bytes > 0 ? kPersistentSplitReduceUs : 0) : (n.workspace_bytes > 0 ? kSplitReduceUs : 0);
  const double fixed_us = kLaunchOverheadUs + split_us;
  result.overhead_us = fixed_us + sm_us - std::max(result.math_us, result.smem_us);
  const double bound_us = std::max({sm_us, result.l2_us, result.dram_us});
  result.time_us = fixed_us + bound_us + kOverlapLoss * (sm_us + result.l2_us + result.dram_us - bound_us);
  return result;
}

/// Position of each point in the order of Config::to_text(), without making the texts: tunables by name, values as text.
class TextOrder {
 public:
  TextOrder(const TemplateInfo& info, const std::vector<std::vector<std::int64_t>>& values) : ranks_(values.size()) {
    std::vector<std::size_t> by_name(values.size());
    std::iota(by_name.begin(), by_name.end(), std::size_t{0});
    std::sort(by_name.begin(), by_name.end(), [&](std::size_t a, std::size_t b) { return info.tunables[a].name < info.tunables[b].name; });
    std::uint64_t weight = 1;
    for (std::size_t i = by_name.size(); i-- > 0;) {
      const std::vector<std::int64_t>& list = values[by_name[i]];
      std::vector<std::string> texts;
      for (const std::int64_t value : list) texts.push_back(std::to_string(value));
      for (const std::string& text : texts) {
        const auto num_smaller = std::count_if(texts.begin(), texts.end(), [&](const std::string& other) { return other < text; });
        ranks_[by_name[i]].push_back(weight * static_cast<std::uint64_t>(num_smaller));
      }
      weight *= list.size();
    }
  }

  std::uint64_t position(const SpacePoint& point) const {
    std::uint64_t sum = 0;
    for (std::size_t slot = 0; slot < ranks_.size(); ++slot) sum += ranks_[slot][point.digits[slot]];
    return sum;
  }

 private:
  std::vector<std::vector<std::uint64_t>> ranks_;
};

}  // namespace

bool is_ranked_before(const RankedConfig& a, const RankedConfig& b) {
  if (a.is_dominated != b.is_dominated) return b.is_dominated;
  return a.prediction.time_us < b.prediction.time_us;
}

std::vector<RankedConfig> rank(const ConfigSpace& space, const SpaceContext& context) {
  const Result<std::vector<std::vector<std::int64_t>>> values = tunable_values(context);
  KW_CHECK(values.has_value(), "the context is the one the space was enumerated with");
  Estimates estimates(context, *values);
  const TextOrder text_order(*context.info, *values);
  const ProblemNumbers problem = problem_numbers(context);
  struct Entry {
    Prediction prediction;
    std::uint64_t ordinal = 0;
    std::uint64_t text_position = 0;
    bool is_dominated = false;
  };
  std::vector<Entry> entries;
  entries.reserve(space.kept().size());
  SpacePoint point;
  for (const std::uint64_t ordinal : space.kept()) {
    decode_point(ordinal, *values, point);
    const Numbers numbers = numbers_of(estimates, point, problem);
    entries.push_back({predict(numbers, problem, context.limits), ordinal, text_order.position(point), numbers.is_dominated});
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    if (a.is_dominated != b.is_dominated) return b.is_dominated;
    if (a.prediction.time_us != b.prediction.time_us) return a.prediction.time_us < b.prediction.time_us;
    return a.text_position < b.text_position;
  });
  const bool is_output_empty = problem.batch == 0 || problem.m == 0 || problem.n == 0;
  if (is_output_empty && entries.size() > 1) entries.resize(1);
  std::vector<RankedConfig> ranked;
  ranked.reserve(entries.size());
  for (const Entry& entry : entries) ranked.push_back({space.config_at(entry.ordinal), entry.prediction, entry.is_dominated});
  return ranked;
}

}  // namespace kw::generator
