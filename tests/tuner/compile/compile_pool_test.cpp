// The compile pool against a scripted compiler: crashes, hangs, memory, restarts, cache.
// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

#include "tests/catch.h"
#include "tests/tuner/compile/fake_cubin.h"
#include "tests/tuner/compile/scratch_folder.h"
#include "tuner/compile/compiler.h"

using namespace kw::tuner;
using kw::TrialStatus;

namespace {

CompilePoolOptions options_with(int num_workers) {
  CompilePoolOptions options;
  options.nvrtc =
      NvrtcInfo{.nvrtc_path = "scripted", .major = 12, .minor = 9, .origin = "test", .arches = {kw::Arch::kSm80}, .nvrtc_bytes = 1};
  options.num_workers = num_workers;
  options.time_limit = std::chrono::milliseconds(5000);
  options.worker_command = KW_WORKER;
  return options;
}

CompileRequest request_of(const std::string& source) {
  return {.source = source, .arch = kw::Arch::kSm80, .kernel_name = "k", .options = {}, .wants_ptx = false};
}

CompileOutcome compile(CompilePool& pool, const std::string& source) { return pool.submit(request_of(source)).get(); }

/// Processes on this machine whose group is led by `leader` and which still run.
int living_members(int leader) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (std::atoi(entry.path().filename().c_str()) <= 0) continue;
    std::ifstream stat(entry.path() / "stat");
    std::string text((std::istreambuf_iterator<char>(stat)), {});
    const std::size_t end = text.rfind(')');
    if (end == std::string::npos) continue;
    char state = 'Z';
    int parent = 0, group = 0;
    if (std::sscanf(text.c_str() + end + 1, " %c %d %d", &state, &parent, &group) == 3 && group == leader && state != 'Z') ++count;
  }
  return count;
}

/// Leaders of groups among the children of this process.
std::set<int> child_pids() {
  std::set<int> pids;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "children");
    for (int pid = 0; file >> pid;) pids.insert(pid);
  }
  return pids;
}

}  // namespace

TEST_CASE("a kernel compiles and its registers, stack and shared memory are read from the report") {
  const auto pool = *CompilePool::start(options_with(1));
  const CompileOutcome outcome = compile(*pool, "fine PRINT");
  CHECK(outcome.status == TrialStatus::kOk);
  CHECK(outcome.kernel.registers == 40);
  CHECK(outcome.kernel.static_smem_bytes == 2048);
  CHECK(outcome.kernel.spill_store_bytes == 0);
  CHECK_FALSE(outcome.kernel.is_from_cache);
}

TEST_CASE("a compile error is a status with the compiler's error line") {
  const auto pool = *CompilePool::start(options_with(1));
  const CompileOutcome outcome = compile(*pool, "ERROR");
  CHECK(outcome.status == TrialStatus::kCompileFailed);
  CHECK(outcome.error == "kernel.cu(2): error: identifier \"x\" is undefined");
}

TEST_CASE("spills are refused and keep their numbers, a missing kernel is a failure") {
  const auto pool = *CompilePool::start(options_with(1));
  const CompileOutcome spilled = compile(*pool, "SPILL");
  CHECK(spilled.status == TrialStatus::kSpillsRefused);
  CHECK(spilled.kernel.spill_store_bytes == 16);
  CHECK(spilled.error.find("16 B stored") != std::string::npos);
  const CompileOutcome unnamed = compile(*pool, "OTHER_NAME");
  CHECK(unnamed.status == TrialStatus::kCompileFailed);
  CHECK(unnamed.error.find("no kernel of this name") != std::string::npos);
}

TEST_CASE("wgmma that ptxas serialises or interrupts is refused with the line that gives the reason, from the cache too") {
  const test::ScratchFolder folder;
  CompilePoolOptions options = options_with(1);
  options.cache_folder = folder.path();
  for (const bool is_from_cache : {false, true}) {
    const auto pool = *CompilePool::start(options);
    const CompileOutcome serialised = compile(*pool, "SERIALIZED");
    CHECK(serialised.status == TrialStatus::kRefused);
    CHECK(kw::is_refusal(serialised.status));
    CHECK(serialised.error.find(
              "wgmma serialised by ptxas: (C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
              "insufficient register resources") == 0);
    CHECK(serialised.kernel.is_from_cache == is_from_cache);
    CHECK_FALSE(serialised.is_transient);
    CHECK(compile(*pool, "INJECTED").error.find("wgmma serialised by ptxas: (C7519) warpgroup.arrive is injected") == 0);
  }
}

TEST_CASE("a compiler that crashes costs one variant and its words are kept") {
  const auto pool = *CompilePool::start(options_with(1));
  CHECK(compile(*pool, "one").status == TrialStatus::kOk);
  const CompileOutcome crashed = compile(*pool, "CRASH");
  CHECK(crashed.status == TrialStatus::kCompileCrashed);
  CHECK(crashed.error.find("signal 6") != std::string::npos);
  CHECK(crashed.kernel.log.find("planted abort") != std::string::npos);
  CHECK_FALSE(crashed.is_transient);
  CHECK(compile(*pool, "two").status == TrialStatus::kOk);
}

TEST_CASE("what no source is to blame for is transient, and the probe still tells that the compiler works") {
  const test::ScratchFolder folder;
  CompilePoolOptions options = options_with(1);
  options.cache_folder = folder.path();
  const auto pool = *CompilePool::start(options);
  CHECK(compile(*pool, "KILLED").is_transient);
  const CompileOutcome no_memory = compile(*pool, "NO_MEMORY");
  CHECK(no_memory.status == TrialStatus::kCompileFailed);
  CHECK(no_memory.error == "NVRTC_ERROR_OUT_OF_MEMORY");
  CHECK(no_memory.is_transient);
  CHECK_FALSE(compile(*pool, "ERROR").is_transient);
  CHECK(check_compiler(*pool, kw::Arch::kSm80));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) CHECK(entry.path().extension() != ".cubin");
  const auto wrong_arch = check_compiler(*pool, kw::Arch::kSm120);
  REQUIRE_FALSE(wrong_arch);
  CHECK(wrong_arch.error().code == kw::Code::kToolchain);
}

TEST_CASE("a worker that dies of what it did before does not cost the variant") {
  const auto pool = *CompilePool::start(options_with(1));
  CHECK(compile(*pool, "one").status == TrialStatus::kOk);
  CHECK(compile(*pool, "DIES_WHEN_WORN").status == TrialStatus::kOk);
}

TEST_CASE("a compile that hangs is killed at the limit with all that it started") {
  CompilePoolOptions options = options_with(1);
  options.time_limit = std::chrono::milliseconds(300);
  const auto pool = *CompilePool::start(options);
  const std::set<int> leaders = child_pids();
  REQUIRE(leaders.size() == 1);
  const auto start = std::chrono::steady_clock::now();
  const CompileOutcome outcome = compile(*pool, "HANG WITH_GRANDCHILD");
  CHECK(outcome.status == TrialStatus::kCompileTimeout);
  CHECK(outcome.error.find("300 ms") != std::string::npos);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(4));
  for (int wait = 0; wait < 100 && living_members(*leaders.begin()) > 0; ++wait) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(living_members(*leaders.begin()) == 0);
  CHECK(compile(*pool, "after").status == TrialStatus::kOk);
}

TEST_CASE("a compiler that eats all memory is ended, and the others go on") {
  if (kIsSanitized) {
    WARN("left out under AddressSanitizer: it decides itself what memory a process takes");
    return;
  }
  CompilePoolOptions options = options_with(2);
  options.memory_limit_bytes = 400ll << 20;
  const auto pool = *CompilePool::start(options);
  auto hungry = pool->submit(request_of("EAT_MEMORY"));
  const CompileOutcome fine = compile(*pool, "fine");
  const CompileOutcome outcome = hungry.get();
  CHECK(fine.status == TrialStatus::kOk);
  CHECK(outcome.status == TrialStatus::kCompileCrashed);
  CHECK(outcome.error.find("may use 400 MiB") != std::string::npos);
}

TEST_CASE("a worn worker is replaced after its number of compiles") {
  CompilePoolOptions options = options_with(1);
  options.compiles_per_worker = 3;
  const auto pool = *CompilePool::start(options);
  std::set<std::string> processes;
  for (int number = 0; number < 7; ++number) {
    const std::string cubin = compile(*pool, "same").kernel.cubin;  // the scripted compiler writes its process id
    processes.insert(cubin);
  }
  CHECK(processes.size() == 3);
}

TEST_CASE("a second pool takes the kernel from the cache, and judges spills anew") {
  const test::ScratchFolder folder;
  CompilePoolOptions options = options_with(1);
  options.cache_folder = folder.path();
  const CompileOutcome first = compile(**CompilePool::start(options), "SPILL");
  options.refuses_spills = false;
  const CompileOutcome second = compile(**CompilePool::start(options), "SPILL");
  CHECK(first.status == TrialStatus::kSpillsRefused);
  CHECK(second.status == TrialStatus::kOk);
  CHECK(second.kernel.is_from_cache);
  CHECK(second.kernel.cubin == first.kernel.cubin);
  CHECK(second.kernel.spill_store_bytes == 16);
}

TEST_CASE("eight requests of one kernel in two pools compile it once") {
  const test::ScratchFolder folder;
  CompilePoolOptions options = options_with(4);
  options.cache_folder = folder.path();
  const auto one = *CompilePool::start(options), two = *CompilePool::start(options);
  std::vector<std::future<CompileOutcome>> futures;
  for (int number = 0; number < 4; ++number) {
    futures.push_back(one->submit(request_of("SLOW")));
    futures.push_back(two->submit(request_of("SLOW")));
  }
  int num_fresh = 0;
  for (auto& future : futures) num_fresh += future.get().kernel.is_from_cache ? 0 : 1;
  CHECK(num_fresh == 1);
}

TEST_CASE("a target that this NVRTC does not know is refused without a compile") {
  const auto pool = *CompilePool::start(options_with(1));
  CompileRequest request = request_of("fine");
  request.arch = kw::Arch::kSm120;
  const CompileOutcome outcome = pool->submit(request).get();
  CHECK(outcome.status == TrialStatus::kCompileFailed);
  CHECK(outcome.error.find("sm_120") != std::string::npos);
}

TEST_CASE("a toolchain or executable that does not start is an error of start") {
  CompilePoolOptions options = options_with(1);
  options.nvrtc.nvrtc_path = "broken";
  CHECK(CompilePool::start(options).error().message.find("broken") != std::string::npos);
  options = options_with(1);
  options.worker_command = "/no/such/executable";
  CHECK(CompilePool::start(options).error().message.find("/no/such/executable") != std::string::npos);
}

TEST_CASE("a pool that is stopped answers what waits and leaves no process") {
  std::future<CompileOutcome> running, waiting;
  {
    const auto pool = *CompilePool::start(options_with(1));
    running = pool->submit(request_of("HANG"));
    waiting = pool->submit(request_of("fine"));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  CHECK(running.get().is_transient);
  CHECK(waiting.get().is_transient);
  CHECK(child_pids().empty());
}

TEST_CASE("a pool that is stopped while its threads go to sleep ends all the same") {
  // The stop comes at every moment of the threads' start: a notification lost between their look at the flag and their sleep hangs here.
  for (int i = 0; i < 100; ++i) {
    const auto pool = *CompilePool::start(options_with(16));
    std::this_thread::sleep_for(std::chrono::microseconds(i * 5));
  }
  CHECK(child_pids().empty());
}

TEST_CASE("workers end when the tuner is killed") {
  int report[2];
  REQUIRE(pipe(report) == 0);
  const pid_t tuner = fork();
  if (tuner == 0) {
    const auto pool = *CompilePool::start(options_with(1));
    auto future = pool->submit(request_of("HANG"));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const int worker = child_pids().empty() ? -1 : *child_pids().begin();
    if (write(report[1], &worker, sizeof worker) != sizeof worker) _exit(1);
    future.wait();
    _exit(0);
  }
  int worker = -1;
  REQUIRE(read(report[0], &worker, sizeof worker) == sizeof worker);
  REQUIRE(worker > 0);
  CHECK(living_members(worker) == 1);
  kill(tuner, SIGKILL);
  waitpid(tuner, nullptr, 0);
  for (int wait = 0; wait < 300 && living_members(worker) > 0; ++wait) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(living_members(worker) == 0);
  close(report[0]);
  close(report[1]);
}
