// What the run-time library adds to a launch: first launch after open, find, warm launch beside a bare cuLaunchKernelEx, many threads. For
// a plan of several kernels also what a replay of its graph costs beside a bare cuGraphLaunch and beside the launches one by one.
//   library_overhead DATABASE OP M=1024,N=4096,... [--seconds 10] [--threads 32] [--other-device]
// Host time by the steady clock; the kernels run, their time is not part of it: the queue is emptied before it can be full.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "db/database.h"
#include "tuner/device/kernel_launch.h"
#include "tuner/device/tensor_storage.h"
#include "tuner/match/match.h"
#include "tuner/runtime/include/kernelwright.hpp"

using namespace kw;
using namespace kw::tuner;

namespace {

using Clock = std::chrono::steady_clock;
double us_since(Clock::time_point start) { return std::chrono::duration<double, std::micro>(Clock::now() - start).count(); }

template <typename T>
T unwrap(Result<T> result) {
  if (!result) throw std::runtime_error(to_text(result.error()));
  return std::move(*result);
}
void require(int code, const char* call) {
  if (code != 0) throw std::runtime_error(fmt::format("{}: CUDA error {}", call, code));
}

struct Options {
  std::string database, op, problem_text;
  double seconds = 10;
  int num_threads = 32;
  unsigned flags = 0;
};

/// The problem as kw_find takes it; owns the names.
struct Values {
  explicit Values(const Problem& problem) {
    for (const auto& [name, value] : problem.dims) names.push_back(name), numbers.push_back(value);
    for (const auto& [name, value] : problem.strides) names.push_back(name), numbers.push_back(value);
    for (std::size_t index = 0; index < names.size(); ++index) values.push_back({names[index].c_str(), numbers[index]});
  }
  std::vector<std::string> names;
  std::vector<std::int64_t> numbers;
  std::vector<kw_value> values;
};

constexpr int kNumRounds = 41, kNumLaunches = 100;  // fewer launches than a stream's queue holds
constexpr std::size_t kShiftBytes = 256, kSlackBytes = (kNumRounds + 1) * kNumLaunches * kShiftBytes;

/// Device memory for a kernel, and what kw_launch takes.
class Buffers {
 public:
  Buffers(const DriverApi& driver, const LaunchPlan& plan, const Problem& problem, kw_kernel* kernel) {
    for (const TensorStorage& storage : unwrap(tensor_storages(plan, problem)))
      tensors_.push_back(allocate(driver, storage.num_bytes + kSlackBytes));
    scalars_.assign(plan.scalars.size(), 1.0);
    arguments.tensors = tensors_.data();
    arguments.num_tensors = tensors_.size();
    arguments.scalars = scalars_.data();
    arguments.num_scalars = scalars_.size();
    arguments.workspace_bytes = kw_workspace_bytes(kernel);
    arguments.zeroed_workspace_bytes = kw_zeroed_workspace_bytes(kernel);
    arguments.workspace = allocate(driver, arguments.workspace_bytes);
    arguments.zeroed_workspace = allocate(driver, arguments.zeroed_workspace_bytes);
  }
  /// Moves every tensor to addresses that no launch had: kNumRounds * kNumLaunches times there is room.
  const kw_arguments& shift() {
    for (void*& tensor : tensors_) tensor = static_cast<char*>(tensor) + kShiftBytes;
    return arguments;
  }
  kw_arguments arguments{};

 private:
  static void* allocate(const DriverApi& driver, std::size_t num_bytes) {
    DevicePointer address = 0;
    require(driver.memory_allocate(&address, std::max<std::size_t>(num_bytes, 256)), "cuMemAlloc");
    require(driver.set_bytes(address, 0, std::max<std::size_t>(num_bytes, 256), nullptr), "cuMemsetD8Async");
    return reinterpret_cast<void*>(address);
  }
  std::vector<void*> tensors_;
  std::vector<double> scalars_;
};

/// Median over rounds of the time of one call; `drain` runs between rounds, untimed.
template <typename Call, typename Drain>
double median_us(int num_calls, Call call, Drain drain) {
  std::vector<double> rounds_us;
  for (int round = 0; round < kNumRounds; ++round) {
    const auto start = Clock::now();
    for (int index = 0; index < num_calls; ++index) call(index);
    rounds_us.push_back(us_since(start) / num_calls);
    drain();
  }
  std::nth_element(rounds_us.begin(), rounds_us.begin() + kNumRounds / 2, rounds_us.end());
  return rounds_us[kNumRounds / 2];
}

double resident_mb() {
  std::ifstream file("/proc/self/statm");
  long pages = 0, resident_pages = 0;
  file >> pages >> resident_pages;
  return static_cast<double>(resident_pages) * 4096 / 1e6;
}

/// The same kernel without the library: launches evaluated once, the driver called with nothing between.
class BareKernel {
 public:
  BareKernel(const DriverApi& driver, const db::TrialRecord& record, const LaunchPlan& plan, const Problem& problem,
             const kw_arguments& arguments)
      : driver_(driver) {
    LaunchPointers pointers;
    pointers.encode_tensor_map = tensor_map_encoder(driver);
    KernelJob job{.label = record.key.variant.id, .cubin = record.binary.cubin, .plan = plan, .problem = problem, .scalars = {}};
    for (std::size_t index = 0; index < plan.tensors.size(); ++index)
      pointers.tensors[plan.tensors[index].name] = reinterpret_cast<DevicePointer>(arguments.tensors[index]);
    for (const PlanWorkspace& workspace : plan.workspaces)
      pointers.workspaces[workspace.name] =
          reinterpret_cast<DevicePointer>(workspace.is_zeroed_once ? arguments.zeroed_workspace : arguments.workspace);
    for (const PlanScalar& scalar : plan.scalars) job.scalars[scalar.name] = 1;
    launches_ = unwrap(evaluate_launches(job, pointers));
    auto module = LoadedModule::load(driver, record.binary.cubin);
    if (!module) throw std::runtime_error(module.error().text);
    module_ = *module;
    for (EvaluatedLaunch& launch : launches_) {
      auto function = module_->prepare(launch);
      if (!function) throw std::runtime_error(function.error().text);
      functions_.push_back(*function);
      std::vector<void*> addresses;
      for (std::vector<std::byte>& parameter : launch.parameters) addresses.push_back(parameter.data());
      addresses_.push_back(std::move(addresses));
    }
  }
  void launch(CudaStream stream) {
    for (std::size_t index = 0; index < launches_.size(); ++index) {
      LaunchAttributes attributes;
      const CudaLaunchConfig config = launch_config(launches_[index], stream, attributes);
      require(driver_.launch(&config, functions_[index], addresses_[index].data(), nullptr), "cuLaunchKernelEx");
    }
  }

 private:
  const DriverApi& driver_;
  std::shared_ptr<LoadedModule> module_;
  std::vector<EvaluatedLaunch> launches_;
  std::vector<CudaFunction> functions_;
  std::vector<std::vector<void*>> addresses_;
};

/// The same launches as a graph, without the library.
class BareGraph {
 public:
  BareGraph(const DriverApi& driver, BareKernel& kernel) : driver_(driver) {
    CudaStream stream = nullptr;
    require(driver.stream_create(&stream, kStreamNonBlocking), "cuStreamCreate");
    require(driver.capture_begin(stream, kCaptureThreadLocal), "cuStreamBeginCapture");
    kernel.launch(stream);
    CudaGraph graph = nullptr;
    require(driver.capture_end(stream, &graph), "cuStreamEndCapture");
    require(driver.graph_instantiate(&executable_, graph, 0), "cuGraphInstantiate");
  }
  void launch(CudaStream stream) const { require(driver_.graph_launch(executable_, stream), "cuGraphLaunch"); }

 private:
  const DriverApi& driver_;
  CudaGraphExec executable_ = nullptr;
};

/// Each thread finds and launches on a stream of its own until the time is over.
void run_threads(const DriverApi& driver, CudaContext context, kernelwright::Database& database, const Options& options,
                 const Problem& problem, const LaunchPlan& plan) {
  std::atomic<long> num_launches{0}, num_failed{0};
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < options.num_threads; ++thread) {
    threads.emplace_back([&] {
      try {
        require(driver.context_set_current(context), "cuCtxSetCurrent");
        CudaStream stream = nullptr;
        require(driver.stream_create(&stream, kStreamNonBlocking), "cuStreamCreate");
        const Values values(problem);
        kernelwright::Kernel first = database.find(options.op.c_str(), values.values.data(), values.values.size(), options.flags);
        Buffers buffers(driver, plan, problem, first.handle());
        for (long count = 0; !is_over; ++count) {
          kernelwright::Kernel kernel = database.find(options.op.c_str(), values.values.data(), values.values.size(), options.flags);
          kernel.launch(buffers.arguments, stream);
          if (count % 64 == 63) require(driver.stream_synchronize(stream), "cuStreamSynchronize");
          ++num_launches;
        }
        require(driver.stream_synchronize(stream), "cuStreamSynchronize");
      } catch (const std::exception& exception) {
        fmt::print(stderr, "thread: {}\n", exception.what());
        ++num_failed;
      }
    });
  }
  const auto start = Clock::now();
  for (int part = 1; part <= 5; ++part) {
    std::this_thread::sleep_until(start +
                                  std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.seconds * part / 5)));
    fmt::print("threads {}: {:.0f} s, {} finds and launches, {} failed, resident {:.1f} MB\n", options.num_threads, us_since(start) * 1e-6,
               num_launches.load(), num_failed.load(), resident_mb());
    std::fflush(stdout);
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  if (num_failed > 0) throw std::runtime_error("a thread failed");
}

void measure(const Options& options) {
  const DriverApi& driver = *unwrap(load_driver());
  require(driver.init(0), "cuInit");
  CudaContext context = nullptr;
  require(driver.context_retain(&context, 0), "cuDevicePrimaryCtxRetain");
  require(driver.context_set_current(context), "cuCtxSetCurrent");
  CudaStream stream = nullptr;
  require(driver.stream_create(&stream, kStreamNonBlocking), "cuStreamCreate");
  const Problem problem = unwrap(problem_from_text(options.problem_text));
  const Values values(problem);
  const auto find = [&](kernelwright::Database& database) {
    return database.find(options.op.c_str(), values.values.data(), values.values.size(), options.flags);
  };
  const auto drain = [&] { require(driver.stream_synchronize(stream), "cuStreamSynchronize"); };

  // The stored row, for the plan and the bare launch; buffers before the clock starts.
  kernelwright::Database prior(options.database);
  const kernelwright::Kernel known = find(prior);
  const auto reader = unwrap(db::Database::open(options.database, {.is_read_only = true, .creates = false}));
  const std::vector<db::OpRow> ops = unwrap(reader->ops(options.op));
  if (ops.size() != 1) throw std::runtime_error(fmt::format("{}: {} ops have this name", options.op, ops.size()));
  const auto rows = unwrap(reader->records_of(ops[0].identity, known.variant()));
  const db::TrialRecord& record = rows.at(0);
  const LaunchPlan plan = unwrap(plan_of(record.key.variant));
  Buffers buffers(driver, plan, problem, known.handle()), moving(driver, plan, problem, known.handle());
  drain();
  fmt::print("{} at {}: {}\n", known.variant(), options.problem_text, known.explanation());

  for (int repeat = 0; repeat < 5; ++repeat) {
    const auto start = Clock::now();
    kernelwright::Database database(options.database);
    const double open_us = us_since(start);
    kernelwright::Kernel kernel = find(database);
    const double find_us = us_since(start);
    kernel.launch(buffers.arguments, stream);
    const double total_us = us_since(start);
    drain();
    fmt::print("first launch after open: {:.2f} ms (open {:.2f}, find {:.2f}, launch {:.2f})\n", total_us * 1e-3, open_us * 1e-3,
               (find_us - open_us) * 1e-3, (total_us - find_us) * 1e-3);
  }

  constexpr int kNumFinds = 2000;
  kernelwright::Database database(options.database);
  kernelwright::Kernel kernel = find(database);
  BareKernel bare(driver, record, plan, problem, buffers.arguments);
  fmt::print("find of a seen problem: {:.3f} us\n", median_us(kNumFinds, [&](int) { find(database); }, drain));
  const double bare_us = median_us(kNumLaunches, [&](int) { bare.launch(stream); }, drain);
  const double warm_us = median_us(kNumLaunches, [&](int) { kernel.launch(buffers.arguments, stream); }, drain);
  const double moving_us = median_us(kNumLaunches, [&](int) { kernel.launch(moving.shift(), stream); }, drain);
  if (plan.launches.size() > 1) {
    const BareGraph graph(driver, bare);
    const double graph_us = median_us(kNumLaunches, [&](int) { graph.launch(stream); }, drain);
    fmt::print("{} launches; bare cuGraphLaunch: {:.3f} us; warm launch adds {:.3f}; new pointers add {:.3f}\n", plan.launches.size(),
               graph_us, warm_us - graph_us, moving_us - graph_us);
  }
  fmt::print(
      "bare cuLaunchKernelEx, all launches: {:.3f} us; warm launch: {:.3f} us (adds {:.3f}); new pointers: {:.3f} us (adds {:.3f})\n",
      bare_us, warm_us, warm_us - bare_us, moving_us, moving_us - bare_us);
  run_threads(driver, context, database, options, problem, plan);
}

Options read_options(int argc, char** argv) {
  Options options;
  std::vector<std::string> words;
  for (int index = 1; index < argc; ++index) {
    const std::string word = argv[index];
    const auto number = [&] { return index + 1 < argc ? std::atof(argv[++index]) : 0.0; };
    if (word == "--seconds")
      options.seconds = number();
    else if (word == "--threads")
      options.num_threads = static_cast<int>(number());
    else if (word == "--other-device")
      options.flags = KW_FIND_OTHER_DEVICE;
    else
      words.push_back(word);
  }
  if (words.size() != 3)
    throw std::runtime_error("usage: library_overhead DATABASE OP M=..,N=.. [--seconds S] [--threads N] [--other-device]");
  options.database = words[0];
  options.op = words[1];
  options.problem_text = words[2];
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    measure(read_options(argc, argv));
    return 0;
  } catch (const std::exception& exception) {
    fmt::print(stderr, "{}\n", exception.what());
    return 1;
  }
}
