// Plans of several launches through the C interface on the fake driver: one graph for each set of arguments, replayed, changed by node
// update, left to the caller's own capture, and gone with the kernel.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/runtime/plan_replay.h"

#include <atomic>
#include <thread>
#include <vector>

#include "tests/tuner/runtime/fake_device.h"
#include "tests/tuner/runtime/library_fixture.h"

using namespace kw;
using namespace kw::tuner;
using namespace kw::tuner::test;

namespace {

constexpr std::size_t kLength = 1000;

/// y = 2 x, then y = 2 y: the second launch takes y for both.
void twice(LaunchPlan& plan) {
  PlanLaunch second = plan.launches.front();
  second.kernel = "in_place";
  plan.launches.push_back(second);
}

struct Counts {
  long graphs = FakeDevice::num_graphs(), launches = FakeDevice::num_graph_launches(), updates = FakeDevice::num_node_updates();
};

void launch_and_check(const FoundKernel& kernel, Vectors& vectors, void* stream = nullptr) {
  const kw_arguments arguments = vectors.arguments();
  REQUIRE(kw_launch(kernel.handle, &arguments, stream) == KW_OK);
  CHECK(vectors.y[0] == 4);
  CHECK(vectors.y[kLength - 1] == 4 * kLength);
}

}  // namespace

TEST_CASE("a plan of two launches is one graph, replayed with the same arguments") {
  LibraryFixture fixture({record_of({}, twice)});
  const FoundKernel kernel = fixture.find("double", {{"n", kLength}});
  REQUIRE(kernel.status == KW_OK);
  const Counts before;
  Vectors vectors(kLength);
  for (void* const stream : {static_cast<void*>(nullptr), fixture.device().stream()}) {
    for (int launch = 0; launch < 3; ++launch) launch_and_check(kernel, vectors, stream);
  }
  const Counts after;
  CHECK(after.graphs == before.graphs + 1);
  CHECK(after.launches == before.launches + 6);
  CHECK(after.updates == before.updates);
}

TEST_CASE("a launch that may begin early hangs on the one before it by such an edge, the first of a plan on nothing") {
  const auto twice_early = [](LaunchPlan& plan) {
    twice(plan);
    for (PlanLaunch& launch : plan.launches) launch.is_dependent = true;
  };
  LibraryFixture fixture({record_of({}, twice_early)});
  const FoundKernel kernel = fixture.find("double", {{"n", kLength}});
  REQUIRE(kernel.status == KW_OK);
  const long before = FakeDevice::num_early_edges();
  Vectors vectors(kLength);
  for (int launch = 0; launch < 2; ++launch) launch_and_check(kernel, vectors);
  CHECK(FakeDevice::num_early_edges() == before + 1);
}

TEST_CASE("other arguments get a graph of their own, then the one that rested longest is updated") {
  LibraryFixture fixture({record_of({}, twice)});
  const FoundKernel kernel = fixture.find("double", {{"n", kLength}});
  REQUIRE(kernel.status == KW_OK);
  const Counts before;
  std::vector<Vectors> sets;
  for (std::size_t set = 0; set < PlanReplays::kMaxGraphs + 1; ++set) sets.emplace_back(kLength);
  for (std::size_t set = 0; set < PlanReplays::kMaxGraphs; ++set) launch_and_check(kernel, sets[set]);
  CHECK(Counts().graphs == before.graphs + static_cast<long>(PlanReplays::kMaxGraphs));
  CHECK(Counts().updates == before.updates);
  launch_and_check(kernel, sets.back());  // takes the graph of the first set
  CHECK(Counts().graphs == before.graphs + static_cast<long>(PlanReplays::kMaxGraphs));
  CHECK(Counts().updates == before.updates + 2);
  launch_and_check(kernel, sets[1]);  // still there
  CHECK(Counts().updates == before.updates + 2);
  launch_and_check(kernel, sets[0]);  // takes the third's
  CHECK(Counts().updates == before.updates + 4);
}

TEST_CASE("a scalar, or a workspace, is an argument like a pointer") {
  const auto with_workspace = [](LaunchPlan& plan) {
    twice(plan);
    plan.scalars.push_back({"alpha", DType::kF32});
    plan.workspaces.push_back({"partial", IntExpr(256), false});
  };
  LibraryFixture fixture({record_of({}, with_workspace)});
  const FoundKernel kernel = fixture.find("double", {{"n", kLength}});
  REQUIRE(kernel.status == KW_OK);
  Vectors vectors(kLength);
  alignas(256) static char scratch[512] = {};
  const Counts before;
  for (const double alpha : {1.0, 2.0, 1.0}) {
    for (char* const workspace : {scratch, scratch + 256, scratch}) {
      kw_arguments arguments = vectors.arguments();
      arguments.scalars = &alpha;
      arguments.num_scalars = 1;
      arguments.workspace = workspace;
      arguments.workspace_bytes = 256;
      REQUIRE(kw_launch(kernel.handle, &arguments, nullptr) == KW_OK);
    }
  }
  CHECK(Counts().graphs == before.graphs + 4);
  CHECK(Counts().launches == before.launches + 9);
}

TEST_CASE("under the caller's capture the launches go into his graph") {
  LibraryFixture fixture({record_of({}, twice)});
  const FoundKernel kernel = fixture.find("double", {{"n", kLength}});
  REQUIRE(kernel.status == KW_OK);
  Vectors vectors(kLength);
  const kw_arguments arguments = vectors.arguments();
  const DriverApi& driver = fixture.device().driver();
  auto* const stream = static_cast<CudaStream>(fixture.device().stream());
  const Counts before;
  REQUIRE(driver.capture_begin(stream, kCaptureThreadLocal) == 0);
  REQUIRE(kw_launch(kernel.handle, &arguments, stream) == KW_OK);
  CudaGraph graph = nullptr;
  REQUIRE(driver.capture_end(stream, &graph) == 0);
  CHECK(vectors.y[0] == 0);  // nothing has run
  CHECK(Counts().launches == before.launches);
  CudaGraphExec executable = nullptr;
  REQUIRE(driver.graph_instantiate(&executable, graph, 0) == 0);
  REQUIRE(driver.graph_launch(executable, stream) == 0);
  CHECK(vectors.y[0] == 4);
  driver.graph_destroy(graph);
}

TEST_CASE("graphs end with their kernel; one of another context is left to it") {
  LibraryFixture fixture({record_of({}, twice)});
  const Counts before;
  {
    const FoundKernel kernel = fixture.find("double", {{"n", kLength}});
    Vectors vectors(kLength);
    launch_and_check(kernel, vectors);
    fixture.device().use(1);
    launch_and_check(kernel, vectors);
    CHECK(Counts().graphs == before.graphs + 2);
    fixture.close();
  }
  CHECK(Counts().graphs == before.graphs + 1);
}

TEST_CASE("a plan that no graph takes is a failure in words, and the next launch tries again") {
  const auto too_large = [](LaunchPlan& plan) {
    twice(plan);
    plan.launches[1].dynamic_smem_bytes = IntExpr(300000);
  };
  LibraryFixture fixture({record_of({}, too_large)});
  const FoundKernel kernel = fixture.find("double", {{"n", kLength}});
  REQUIRE(kernel.status == KW_OK);
  Vectors vectors(kLength);
  const kw_arguments arguments = vectors.arguments();
  const Counts before;
  for (int launch = 0; launch < 2; ++launch) {
    CHECK(kw_launch(kernel.handle, &arguments, nullptr) != KW_OK);
    CHECK_THAT(std::string(kw_last_error()), contains_text("cuGraphAddKernelNode"));
  }
  CHECK(Counts().graphs == before.graphs);
}

TEST_CASE("threads that replay one plan with arguments of their own each get their result") {
  LibraryFixture fixture({record_of({}, twice)});
  const FoundKernel kernel = fixture.find("double", {{"n", kLength}});
  REQUIRE(kernel.status == KW_OK);
  std::atomic<int> num_wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 12; ++thread) {
    threads.emplace_back([&] {
      fixture.device().use(0);
      Vectors vectors(kLength);
      for (int launch = 0; launch < 50; ++launch) {
        const kw_arguments arguments = vectors.arguments();
        vectors.y[kLength - 1] = 0;
        if (kw_launch(kernel.handle, &arguments, nullptr) != KW_OK || vectors.y[kLength - 1] != 4 * kLength) ++num_wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(num_wrong == 0);
}
