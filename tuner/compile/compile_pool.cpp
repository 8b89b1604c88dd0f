// The compile pool: one thread per worker process. A thread takes a request, asks the cache, else its child, and judges the answer.
// A crash, a timeout or too much memory ends the child (its whole group) and costs one request. See compiler.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tuner/compile/child_process.h"
#include "tuner/compile/compiler.h"
#include "tuner/compile/cubin_cache.h"
#include "tuner/compile/cubin_facts.h"

namespace kw::tuner {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kLoadLimit{60000};
constexpr std::int64_t kWorkerBytes = 160ll << 20;  // NVRTC 13 for a large sm_90a kernel: 101 MB resident, and room

struct Job {
  CompileRequest request;
  std::promise<CompileOutcome> promise;
};

/// One worker process as its thread sees it; the sizes are read by the other threads.
struct Slot {
  std::unique_ptr<ChildProcess> child;
  int num_compiles = 0;
  std::atomic<std::int64_t> resident_bytes{0};
  std::atomic<bool> is_busy{false};
};

CompileOutcome failed(TrialStatus status, std::string error, bool is_transient = false) {
  CompileOutcome outcome;
  outcome.status = status;
  outcome.error = std::move(error);
  outcome.is_transient = is_transient;
  return outcome;
}

/// The facts of all kernels that the request names, together. Returns the name of one that the code does not hold, else nothing.
std::string read_all_facts(const CompileRequest& request, CompiledKernel& kernel) {
  if (request.kernel_name.empty()) return {};
  const int capability = compute_capability(request.arch);
  if (!read_kernel_facts(request.kernel_name, capability, kernel)) return request.kernel_name;
  for (const std::string& name : request.other_kernels) {
    CompiledKernel other;
    other.cubin = kernel.cubin;
    other.log = kernel.log;
    if (!read_kernel_facts(name, capability, other)) return name;
    kernel.registers = std::max(kernel.registers, other.registers);
    kernel.static_smem_bytes = std::max(kernel.static_smem_bytes, other.static_smem_bytes);
    kernel.spill_store_bytes += other.spill_store_bytes;
    kernel.spill_load_bytes += other.spill_load_bytes;
    kernel.stack_bytes += other.stack_bytes;
  }
  return {};
}

class Pool final : public CompilePool {
 public:
  Pool(CompilePoolOptions options, CubinCache cache)
      : options_(std::move(options)), cache_(std::move(cache)), slots_(options_.num_workers) {}

  ~Pool() override {
    {
      // Under the mutex: between a thread's look at is_stopping_ and its sleep a notification would be lost, and join() would wait for
      // ever.
      const std::lock_guard lock(mutex_);
      is_stopping_ = true;
    }
    wakes_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    for (Job& job : jobs_) job.promise.set_value(failed(TrialStatus::kCompileCrashed, "the compile pool was stopped", true));
  }

  /// Starts the first worker at once, so that a toolchain that does not load is an error of start().
  Status run() {
    KW_TRY_VOID(start_child(slots_.front()));
    for (Slot& slot : slots_) threads_.emplace_back([this, &slot] { work(slot); });
    return {};
  }

  std::future<CompileOutcome> submit(CompileRequest request) override {
    Job job{std::move(request), {}};
    std::future<CompileOutcome> future = job.promise.get_future();
    {
      const std::lock_guard lock(mutex_);
      jobs_.push_back(std::move(job));
    }
    wakes_.notify_one();
    return future;
  }

  int num_workers() const override { return static_cast<int>(slots_.size()); }

 private:
  void work(Slot& slot) {
    while (std::optional<Job> job = next_job()) {
      try {
        job->promise.set_value(compile(slot, std::move(job->request)));
      } catch (const std::exception& error) {  // border of the worker thread: out of memory
        job->promise.set_value(failed(TrialStatus::kCompileCrashed, fmt::format("compile pool: {}", error.what()), true));
      }
      slot.is_busy = false;
    }
    slot.child.reset();
  }

  std::optional<Job> next_job() {
    std::unique_lock lock(mutex_);
    wakes_.wait(lock, [this] { return is_stopping_ || !jobs_.empty(); });
    if (is_stopping_) return std::nullopt;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    return job;
  }

  CompileOutcome compile(Slot& slot, CompileRequest request) {
    if (const Status status = check_arch(options_.nvrtc, request.arch); !status)
      return failed(TrialStatus::kCompileFailed, status.error().message);
    std::vector<std::string> options = {fmt::format("--gpu-architecture={}", to_text(request.arch)), "--std=c++20", "--ptxas-options=-v"};
    options.insert(options.end(), request.options.begin(), request.options.end());
    request.options = std::move(options);
    const std::string key = cubin_key(request, options_.nvrtc);
    if (!request.uses_cache) return compile_in_child(slot, request, key);
    if (std::optional<CompiledKernel> cached = cache_.find(key)) return judged(std::move(*cached));
    // Another process may be compiling the same kernel: wait for it, at most as long as a compile may take.
    const Clock::time_point give_up = Clock::now() + options_.time_limit;
    const KeyLock lock = cache_.lock(key, [&] { return !is_stopping_ && Clock::now() < give_up; });
    if (std::optional<CompiledKernel> cached = cache_.find(key)) return judged(std::move(*cached));
    return compile_in_child(slot, request, key);
  }

  CompileOutcome compile_in_child(Slot& slot, const CompileRequest& request, const std::string& key) {
    wait_for_memory();
    slot.is_busy = true;
    for (int attempt = 0;; ++attempt) {
      if (slot.child == nullptr) {
        if (const Status status = start_child(slot); !status) {
          return failed(TrialStatus::kCompileCrashed, fmt::format("the compile worker does not start: {}", status.error().message), true);
        }
      }
      const bool was_fresh = slot.num_compiles == 0;
      Message question;
      question.head = {{"op", "compile"},
                       {"file_name", request.file_name.empty() ? request.kernel_name + ".cu" : request.file_name},
                       {"options", request.options},
                       {"wants_ptx", request.wants_ptx}};
      question.blobs = {request.source};
      Reply reply = slot.child->ask(question, options_.time_limit, [&] { return may_go_on(slot); });
      ++slot.num_compiles;
      if (reply.kind == ReplyKind::kAnswered) {
        CompileOutcome outcome = from_answer(request, key, reply.message);
        recycle_if_worn(slot);
        return outcome;
      }
      CompileOutcome outcome = from_loss(slot, reply);
      drop_child(slot);
      // A crash in a process that had compiled before may come from what it did before: the variant is judged by a fresh one.
      const bool may_retry = reply.kind == ReplyKind::kDied && !was_fresh && attempt == 0 && !is_stopping_;
      if (!may_retry) return outcome;
    }
  }

  CompileOutcome from_answer(const CompileRequest& request, const std::string& key, Message& answer) {
    if (answer.blobs.size() != 3)
      return failed(TrialStatus::kCompileCrashed, answer.head.value("code", "the worker's answer is not understood"), true);
    CompiledKernel kernel;
    kernel.key = key;
    kernel.cubin = std::move(answer.blobs[0]);
    kernel.ptx = std::move(answer.blobs[1]);
    kernel.log = std::move(answer.blobs[2]);
    kernel.compile_ms = answer.head.value("compile_ms", 0.0);
    if (!answer.head.value("ok", false)) {
      CompileOutcome outcome =
          failed(TrialStatus::kCompileFailed, first_complaint(kernel.log), answer.head.value("is_toolchain_fault", false));
      if (outcome.error.empty()) outcome.error = answer.head.value("code", "");
      outcome.kernel = std::move(kernel);
      return outcome;
    }
    if (const std::string missing = read_all_facts(request, kernel); !missing.empty()) {
      CompileOutcome outcome =
          failed(TrialStatus::kCompileFailed, fmt::format("{}: the compiled code holds no kernel of this name", missing));
      outcome.kernel = std::move(kernel);
      return outcome;
    }
    if (request.uses_cache) {
      const std::lock_guard lock(mutex_);
      cache_.insert(kernel);
    }
    return judged(std::move(kernel));
  }

  CompileOutcome judged(CompiledKernel kernel) const {
    CompileOutcome outcome;
    outcome.status = judge_compiled(kernel, options_.refuses_spills, outcome.error);
    outcome.kernel = std::move(kernel);
    return outcome;
  }

  CompileOutcome from_loss(Slot& slot, const Reply& reply) {
    CompileOutcome outcome;
    if (is_stopping_) {
      outcome = failed(TrialStatus::kCompileCrashed, "the compile pool was stopped", true);
    } else if (reply.kind == ReplyKind::kTimeout) {
      outcome = failed(TrialStatus::kCompileTimeout, fmt::format("compile: no answer after {} ms: the limit", options_.time_limit.count()));
    } else if (reply.kind == ReplyKind::kStopped) {
      outcome = failed(TrialStatus::kCompileCrashed, fmt::format("compile: {} MiB resident: all compilers together may use {} MiB",
                                                                 slot.resident_bytes >> 20, options_.memory_limit_bytes >> 20));
    } else {
      // SIGKILL and SIGTERM come from outside (a person, the kernel short of memory), whatever was compiled.
      outcome = failed(TrialStatus::kCompileCrashed, fmt::format("compile: the compiler {}", reply.how_died),
                       reply.signal == SIGKILL || reply.signal == SIGTERM);
    }
    outcome.kernel.log = slot.child->error_output();
    return outcome;
  }

  Status start_child(Slot& slot) {
    // With a driver present NVRTC would answer from the driver's compute cache: without the ptxas report, and out of our key.
    KW_TRY(std::unique_ptr<ChildProcess> child, ChildProcess::start(options_.worker_command, "__compile-worker", {"CUDA_CACHE_DISABLE=1"}));
    Message question;
    question.head = {{"op", "load"}, {"nvrtc_path", options_.nvrtc.nvrtc_path}};
    const Reply reply = child->ask(question, kLoadLimit);
    if (reply.kind != ReplyKind::kAnswered) {
      const std::string how = reply.kind == ReplyKind::kTimeout ? "gives no answer" : reply.how_died;
      return fail(Stage::kCompile, Code::kToolchain,
                  fmt::format("{} __compile-worker: {} {}", options_.worker_command, how, child->error_output(300)));
    }
    if (!reply.message.head.value("ok", false))
      return fail(Stage::kCompile, Code::kToolchain, reply.message.head.value("error", "NVRTC does not load"));
    slot.child = std::move(child);
    slot.num_compiles = 0;
    slot.resident_bytes = slot.child->resident_bytes();
    return {};
  }

  void drop_child(Slot& slot) {
    slot.child.reset();
    slot.num_compiles = 0;
    slot.resident_bytes = 0;
  }

  void recycle_if_worn(Slot& slot) {
    slot.resident_bytes = slot.child->resident_bytes();
    const std::int64_t share_bytes = options_.memory_limit_bytes / num_workers();
    if (slot.num_compiles >= options_.compiles_per_worker || slot.resident_bytes > share_bytes) drop_child(slot);
  }

  std::int64_t total_resident_bytes() const {
    std::int64_t total = 0;
    for (const Slot& slot : slots_) total += slot.resident_bytes;
    return total;
  }

  /// Holds a new compile back while the running ones use most of the memory.
  void wait_for_memory() const {
    while (!is_stopping_ && total_resident_bytes() > options_.memory_limit_bytes / 5 * 4 &&
           std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.is_busy.load(); })) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  /// Called while a compile runs: false ends it, when the pool stops or when memory is out and this compile holds the most.
  bool may_go_on(Slot& slot) {
    slot.resident_bytes = slot.child->resident_bytes();
    if (is_stopping_) return false;
    if (total_resident_bytes() <= options_.memory_limit_bytes) return true;
    return std::any_of(slots_.begin(), slots_.end(), [&](const Slot& other) { return other.resident_bytes > slot.resident_bytes; });
  }

  CompilePoolOptions options_;
  CubinCache cache_;
  std::deque<Slot> slots_;  // not a vector: a slot does not move
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wakes_;
  std::deque<Job> jobs_;
  std::atomic<bool> is_stopping_{false};
};

}  // namespace

void name_kernels(const LaunchPlan& plan, CompileRequest& request) {
  request.kernel_name = plan.launches.front().kernel;
  request.other_kernels.clear();
  for (std::size_t i = 1; i < plan.launches.size(); ++i) request.other_kernels.push_back(plan.launches[i].kernel);
}

Status check_arch(const NvrtcInfo& nvrtc, Arch arch) {
  if (std::find(nvrtc.arches.begin(), nvrtc.arches.end(), arch) != nvrtc.arches.end()) return {};
  std::vector<std::string_view> known;
  for (const Arch target : nvrtc.arches) known.push_back(to_text(target));
  return fail(
      Stage::kCompile, Code::kToolchain,
      fmt::format("{}: NVRTC {} ({}) does not compile for it, only for {}: install a newer CUDA toolkit or run scripts/fetch_nvrtc.sh",
                  to_text(arch), nvrtc.version_text(), nvrtc.nvrtc_path, fmt::join(known, " ")));
}

Status check_compiler(CompilePool& pool, Arch arch) {
  CompileRequest request;
  request.source = "extern \"C\" __global__ void probe() {}\n";
  request.arch = arch;
  request.kernel_name = "probe";
  request.uses_cache = false;
  const CompileOutcome outcome = pool.submit(std::move(request)).get();
  if (outcome.status == TrialStatus::kOk) return {};
  return fail(Error{Stage::kCompile,
                    Code::kToolchain,
                    fmt::format("NVRTC does not compile even an empty kernel for {}: {}", to_text(arch), outcome.error),
                    {},
                    outcome.kernel.log});
}

Result<std::unique_ptr<CompilePool>> CompilePool::start(CompilePoolOptions options) {
  if (options.num_workers <= 0) options.num_workers = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const auto workers_that_fit = static_cast<int>(std::clamp<std::int64_t>(options.memory_limit_bytes / kWorkerBytes, 1, 1024));
  options.num_workers = std::min(options.num_workers, workers_that_fit);
  KW_TRY(CubinCache cache, CubinCache::open(options.cache_folder, options.cache_quota_bytes));
  auto pool = std::make_unique<Pool>(std::move(options), std::move(cache));
  KW_TRY_VOID(pool->run());
  return std::unique_ptr<CompilePool>(std::move(pool));
}

}  // namespace kw::tuner
