// Launching through the C interface on the fake driver: results, workspaces, tensor maps, contexts, bad arguments, threads.
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstring>
#include <thread>

#include "tests/tuner/runtime/fake_device.h"
#include "tests/tuner/runtime/library_fixture.h"
#include "tuner/runtime/tensor_map_cache.h"

using namespace kw;
using namespace kw::tuner;
using namespace kw::tuner::test;

namespace {

constexpr std::size_t kLength = 1000;

std::string launch_error(kw_kernel* kernel, const kw_arguments& arguments, void* stream = nullptr, kw_status expected = KW_BAD_ARGUMENT) {
  CHECK(kw_launch(kernel, &arguments, stream) == expected);
  return kw_last_error();
}

}  // namespace

TEST_CASE("a launch computes, on the default stream and on a stream of the context, with old and new pointers") {
  LibraryFixture fixture({record_of({})});
  const FoundKernel kernel = fixture.find("double", {{"n", kLength}});
  REQUIRE(kernel.status == KW_OK);
  for (void* const stream : {static_cast<void*>(nullptr), fixture.device().stream()}) {
    Vectors vectors(kLength);
    for (int launch = 0; launch < 2; ++launch) {
      const kw_arguments arguments = vectors.arguments();
      REQUIRE(kw_launch(kernel.handle, &arguments, stream) == KW_OK);
    }
    CHECK(vectors.y[0] == 2);
    CHECK(vectors.y[kLength - 1] == 2 * kLength);
  }
}

TEST_CASE("code is loaded once for a context, at the first launch or by kw_prepare, and unloaded with the last kernel") {
  const long before = FakeDevice::num_loaded_modules();
  LibraryFixture fixture({record_of({})});
  {
    const FoundKernel first = fixture.find("double", {{"n", kLength}}), second = fixture.find("double", {{"n", 900}});
    REQUIRE(second.status == KW_OK);
    CHECK(FakeDevice::num_loaded_modules() == before);
    REQUIRE(kw_prepare(first.handle) == KW_OK);
    CHECK(FakeDevice::num_loaded_modules() == before + 1);
    Vectors vectors(kLength);
    const kw_arguments arguments = vectors.arguments();
    REQUIRE(kw_launch(first.handle, &arguments, nullptr) == KW_OK);
    REQUIRE(kw_launch(second.handle, &arguments, nullptr) == KW_OK);
    CHECK(FakeDevice::num_loaded_modules() == before + 1);
    fixture.device().use(1);  // the same model, another context
    REQUIRE(kw_launch(first.handle, &arguments, nullptr) == KW_OK);
    CHECK(FakeDevice::num_loaded_modules() == before + 2);
    fixture.close();
    REQUIRE(kw_launch(second.handle, &arguments, nullptr) == KW_OK);
  }
  CHECK(FakeDevice::num_loaded_modules() == before + 1);  // that of the context that is not current stays with it
}

TEST_CASE("another device and a stream of another context are refused in words") {
  LibraryFixture fixture({record_of({})});
  const FoundKernel kernel = fixture.find("double", {{"n", kLength}});
  Vectors vectors(kLength);
  fixture.device().use(1);
  void* const foreign = fixture.device().stream();
  fixture.device().use(0);
  CHECK_THAT(launch_error(kernel.handle, vectors.arguments(), foreign, KW_WRONG_DEVICE),
             contains_text("the stream belongs to another context than the one that is current"));
  fixture.device().use(2);
  CHECK_THAT(launch_error(kernel.handle, vectors.arguments(), nullptr, KW_WRONG_DEVICE),
             contains_text("double_it was found for Fake H200, the current context's device is Fake A100"));
  fixture.device().use_none();
  CHECK_THAT(launch_error(kernel.handle, vectors.arguments(), nullptr, KW_NO_CONTEXT), contains_text("no CUDA context is current"));
  CHECK(vectors.y[0] == 0);
}

TEST_CASE("null, misaligned, missing and surplus arguments are refused by name, and nothing is launched") {
  const auto with_all = [](LaunchPlan& plan) {
    plan.scalars.push_back({"alpha", DType::kF32});
    plan.workspaces.push_back({"partial", IntExpr::variable("n"), false});
    plan.workspaces.push_back({"counters", IntExpr(4), true});
  };
  LibraryFixture fixture({record_of({}, with_all)});
  const FoundKernel kernel = fixture.find("double", {{"n", kLength}});
  REQUIRE(kernel.status == KW_OK);
  CHECK(std::string(kw_kernel_scalar_name(kernel.handle, 0)) == "alpha");
  CHECK(kw_workspace_bytes(kernel.handle) == 1024);  // 1000 rounded up to 256
  CHECK(kw_zeroed_workspace_bytes(kernel.handle) == 256);
  Vectors vectors(kLength);
  alignas(256) static char scratch[2048] = {};
  const double alpha = 1;
  kw_arguments good = vectors.arguments();
  good.scalars = &alpha;
  good.num_scalars = 1;
  good.workspace = scratch;
  good.workspace_bytes = 1024;
  good.zeroed_workspace = scratch + 1024;
  good.zeroed_workspace_bytes = 256;
  const auto refusal = [&](auto change) {
    kw_arguments arguments = good;
    change(arguments);
    return launch_error(kernel.handle, arguments);
  };
  void* with_null[2] = {vectors.x, nullptr};
  void* misaligned[2] = {vectors.x + 1, vectors.y};
  CHECK_THAT(refusal([&](kw_arguments& a) { a.tensors = with_null; }), contains_text("tensor y is null"));
  CHECK_THAT(
      refusal([&](kw_arguments& a) { a.tensors = misaligned; }),
      contains_text("tensor x is at 0x") && contains_text("must be aligned to 16 bytes (kw_find takes another alignment as x.align)"));
  CHECK_THAT(refusal([](kw_arguments& a) { a.tensors = nullptr; }), contains_text("arguments.tensors is null"));
  CHECK_THAT(refusal([](kw_arguments& a) { a.num_tensors = 3; }), contains_text("3 tensors are given: double_it has 2"));
  CHECK_THAT(refusal([](kw_arguments& a) { a.scalars = nullptr; }), contains_text("arguments.scalars is null"));
  CHECK_THAT(refusal([](kw_arguments& a) { a.num_scalars = 0; }), contains_text("0 scalars are given: double_it has 1"));
  CHECK_THAT(refusal([](kw_arguments& a) { a.workspace = nullptr; }), contains_text("workspace is null: the kernel needs 1024 bytes"));
  CHECK_THAT(refusal([](kw_arguments& a) { a.workspace_bytes = 1023; }), contains_text("workspace has 1023 bytes: the kernel needs 1024"));
  CHECK_THAT(refusal([&](kw_arguments& a) { a.workspace = scratch + 128; }), contains_text("must be aligned to 256 bytes"));
  CHECK_THAT(refusal([](kw_arguments& a) { a.zeroed_workspace = nullptr; }), contains_text("zeroed_workspace is null"));
  CHECK_THAT(
      [&] {
        CHECK(kw_launch(kernel.handle, nullptr, nullptr) == KW_BAD_ARGUMENT);
        return std::string(kw_last_error());
      }(),
      contains_text("kw_launch: arguments is null"));
  CHECK(vectors.y[0] == 0);
  REQUIRE(kw_launch(kernel.handle, &good, nullptr) == KW_OK);
  CHECK(vectors.y[0] == 2);
}

TEST_CASE("a smaller alignment that was asked for is taken, and a tensor without elements may be null") {
  LibraryFixture fixture({record_of({})});
  const FoundKernel kernel = fixture.find("double", {{"n", kLength}, {"x.align", 4}});
  Vectors vectors(kLength);
  kw_arguments arguments = vectors.arguments();
  vectors.tensors[0] = vectors.x + 1;
  REQUIRE(kw_launch(kernel.handle, &arguments, nullptr) == KW_OK);
  CHECK(vectors.y[0] == 4);
  const FoundKernel empty = fixture.find("double", {{"n", 0}});
  REQUIRE(empty.status == KW_OK);
  void* nulls[2] = {nullptr, nullptr};
  arguments.tensors = nulls;
  CHECK(kw_launch(empty.handle, &arguments, nullptr) == KW_OK);
}

TEST_CASE("scalars and workspaces reach the kernel where its plan says") {
  const auto with_workspace = [](LaunchPlan& plan) {
    plan.workspaces = {{"unused", IntExpr(300), true}, {"counter", IntExpr(1), true}};
    PlanField field{.kind = PlanField::Kind::kWorkspace, .name = "counter", .source = "counter", .value = {}};
    plan.launches[0].parameters.push_back({"counter", {field}});
  };
  LibraryFixture fixture({record_of({.kernel = "workspace_counts"}, with_workspace)});
  const FoundKernel kernel = fixture.find("double", {{"n", kLength}});
  REQUIRE(kw_zeroed_workspace_bytes(kernel.handle) == 512 + 256);
  Vectors vectors(kLength);
  alignas(256) static unsigned char zeroed[768] = {};
  zeroed[512] = 5;  // the fake kernel adds its counter to y[0] and clears it
  kw_arguments arguments = vectors.arguments();
  arguments.zeroed_workspace = zeroed;
  arguments.zeroed_workspace_bytes = sizeof zeroed;
  REQUIRE(kw_launch(kernel.handle, &arguments, nullptr) == KW_OK);
  CHECK(vectors.y[0] == 2 + 5);
  CHECK(zeroed[512] == 0);
}

TEST_CASE("kernels of a plan run in order, and what one leaves for the next lies in the caller's workspace") {
  const auto twice = [](LaunchPlan& plan) {
    plan.workspaces = {{"kept0", IntExpr::variable("n") * IntExpr(8), false}};
    plan.launches.push_back(plan.launches[0]);
    const auto move_to_workspace = [](PlanLaunch& launch, const std::string& tensor) {
      for (PlanParameter& parameter : launch.parameters) {
        for (PlanField& field : parameter.fields) {
          if (field.kind != PlanField::Kind::kTensor || field.source != tensor) continue;
          field.kind = PlanField::Kind::kWorkspace;
          field.source = "kept0";
        }
      }
    };
    move_to_workspace(plan.launches[0], "y");
    move_to_workspace(plan.launches[1], "x");
  };
  LibraryFixture fixture({record_of({}, twice)});
  const FoundKernel kernel = fixture.find("double", {{"n", kLength}});
  REQUIRE(kernel.status == KW_OK);
  alignas(256) static unsigned char workspace[1 << 13] = {};
  REQUIRE(kw_workspace_bytes(kernel.handle) <= sizeof workspace);
  Vectors vectors(kLength);
  kw_arguments arguments = vectors.arguments();
  CHECK(kw_launch(kernel.handle, &arguments, nullptr) == KW_BAD_ARGUMENT);  // no workspace
  arguments.workspace = workspace;
  arguments.workspace_bytes = sizeof workspace;
  REQUIRE(kw_launch(kernel.handle, &arguments, nullptr) == KW_OK);
  CHECK(vectors.y[1] == 8);
}

TEST_CASE("a tensor map is encoded when its pointer is new, and only then") {
  LibraryFixture fixture({record_of({.kernel = "map_double"}, reads_by_map)});
  const FoundKernel kernel = fixture.find("double", {{"n", kLength}});
  REQUIRE(kernel.status == KW_OK);
  Vectors first(kLength), second(kLength);
  const long before = FakeDevice::num_encoded_maps();
  for (Vectors* const vectors : {&first, &second, &first, &second, &first}) {
    vectors->y[1] = 0;
    const kw_arguments arguments = vectors->arguments();
    REQUIRE(kw_launch(kernel.handle, &arguments, nullptr) == KW_OK);
    CHECK(vectors->y[1] == 4);
  }
  CHECK(FakeDevice::num_encoded_maps() == before + 2);
}

TEST_CASE("the cache of tensor maps keeps its size, returns what was stored, and tells maps and addresses apart") {
  TensorMapCache cache;
  constexpr std::size_t kCapacity = TensorMapCache::kNumSets * TensorMapCache::kNumWays;
  const auto pattern = [](std::uint64_t map_id, DevicePointer address) {
    TensorMapBytes bytes{};
    std::memcpy(bytes.data(), &map_id, sizeof map_id);
    std::memcpy(bytes.data() + 64, &address, sizeof address);
    return bytes;
  };
  for (std::uint64_t map_id = 1; map_id <= 8; ++map_id) {
    for (DevicePointer address = 0; address < 256 * kCapacity; address += 256) cache.store(map_id, address, pattern(map_id, address));
  }
  std::size_t num_found = 0;
  for (std::uint64_t map_id = 1; map_id <= 8; ++map_id) {
    for (DevicePointer address = 0; address < 256 * kCapacity; address += 256) {
      TensorMapBytes bytes{};
      if (!cache.find(map_id, address, bytes.data())) continue;
      ++num_found;
      if (bytes != pattern(map_id, address)) FAIL("another map's bytes");
    }
  }
  CHECK(num_found == kCapacity);
}

TEST_CASE("code that the driver refuses, and a plan that is not the kernel's, fail the launch in words") {
  LibraryFixture bad({record_of({.cubin = "bad image"})});
  Vectors vectors(kLength);
  CHECK_THAT(launch_error(bad.find("double", {{"n", kLength}}).handle, vectors.arguments(), nullptr, KW_DRIVER),
             contains_text("cuModuleLoadData"));
  LibraryFixture other({record_of({.kernel = "double_it"}, [](LaunchPlan& plan) { plan.launches[0].parameters.pop_back(); })});
  CHECK_THAT(launch_error(other.find("double", {{"n", kLength}}).handle, vectors.arguments(), nullptr, KW_BAD_DATABASE),
             contains_text("0 B in the launch plan, 8 B in the kernel"));
}

TEST_CASE("many threads find and launch the same and different problems") {
  LibraryFixture fixture({record_of({}), record_of({.kernel = "map_double", .n = 64000}, reads_by_map)});
  std::atomic<int> num_wrong{0};
  std::vector<std::thread> threads;
  for (std::int64_t thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      fixture.device().use(static_cast<int>(thread % 2));
      for (std::int64_t round = 0; round < 200; ++round) {
        const std::int64_t n = round % 2 == 0 ? 1000 : (round + thread) % 7 == 0 ? 60000 : 900 + (round * thread) % 50;
        Vectors vectors(static_cast<std::size_t>(n));
        const FoundKernel kernel = fixture.find("double", {{"n", n}});
        const kw_arguments arguments = vectors.arguments();
        const bool is_right = kernel.status == KW_OK && kw_launch(kernel.handle, &arguments, nullptr) == KW_OK &&
                              vectors.y[n - 1] == 2 * static_cast<float>(n);
        if (!is_right) ++num_wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(num_wrong == 0);
}

TEST_CASE("more problems than are remembered do not add up, and a kernel that is held lives on") {
  const long before = FakeDevice::num_loaded_modules();
  LibraryFixture fixture({record_of({})});
  const FoundKernel held = fixture.find("double", {{"n", kLength}});
  const std::string variant = held.variant();
  for (std::int64_t n = 1; n <= 3 * 4096; ++n) {
    kw_kernel* kernel = nullptr;
    const kw_value value{"n", 600 + n % 9000};
    if (kw_find(fixture.database(), "double", &value, 1, 0, &kernel) != KW_OK) FAIL(kw_last_error());
    kw_kernel_release(kernel);
  }
  Vectors vectors(kLength);
  const kw_arguments arguments = vectors.arguments();
  REQUIRE(kw_launch(held.handle, &arguments, nullptr) == KW_OK);
  CHECK(held.variant() == variant);
  CHECK(FakeDevice::num_loaded_modules() == before + 1);
}
