// Evaluation of launch plans, the layout of parameters, and our declarations against the toolkit's where it is there.
// SPDX-License-Identifier: Apache-2.0
#if __has_include(<cuda.h>)
#include <cuda.h>
#endif

#include <cstddef>
#include <cstring>

#include "tests/catch.h"
#include "tests/tuner/device/sample_job.h"
#include "tuner/device/kernel_launch.h"
#include "tuner/device/worker_messages.h"

using namespace kw;
using namespace kw::tuner;
using Kind = PlanField::Kind;

#ifdef CUDA_VERSION
static_assert(sizeof(CudaLaunchConfig) == sizeof(CUlaunchConfig));
static_assert(sizeof(CudaLaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(offsetof(CudaLaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(CudaLaunchConfig, num_attributes) == offsetof(CUlaunchConfig, numAttrs));
static_assert(offsetof(CudaLaunchAttribute, value) == offsetof(CUlaunchAttribute, value));
static_assert(kLaunchAttributeCluster == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
static_assert(kLaunchAttributeDependent == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
#if CUDA_VERSION >= 12030
static_assert(sizeof(CudaGraphEdge) == sizeof(CUgraphEdgeData));
static_assert(kDependentEdge.from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
static_assert(kDependentEdge.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
#endif
static_assert(kFunctionMaxDynamicSmem == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(kFunctionNonPortableCluster == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
static_assert(static_cast<int>(DeviceAttribute::kMaxSmemBytesPerCta) == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
static_assert(static_cast<int>(DeviceAttribute::kMaxCtasPerSm) == CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
#endif

namespace {

PlanField field(Kind kind, const std::string& name, IntExpr value, DType dtype = DType::kF32) {
  return {.kind = kind, .name = name, .source = name, .value = std::move(value), .scalar_dtype = dtype};
}

}  // namespace

TEST_CASE("a struct parameter has the layout that C++ gives the struct") {
  struct Expected {
    std::int32_t small;
    std::int64_t large;
    unsigned short half;
    float alpha;
    void* out;
    std::int32_t last;
  };
  KernelJob job = test::sample_job("k");
  job.scalars = {{"half", 1.5}, {"alpha", 0.25}};
  job.plan.launches[0].parameters = {
      {"args",
       {field(Kind::kInt32, "small", IntExpr(-3)), field(Kind::kInt64, "large", IntExpr::variable("n") * IntExpr(1000000000)),
        field(Kind::kScalar, "half", {}, DType::kF16), field(Kind::kScalar, "alpha", {}), field(Kind::kTensor, "y", {}),
        field(Kind::kInt32, "last", IntExpr(9))}},
      {"empty", {}}};
  const auto launches = evaluate_launches(job, {.tensors = {{"x", 1}, {"y", 0x1234}}, .workspaces = {}});
  REQUIRE(launches.has_value());
  const auto& bytes = launches->front().parameters[0];
  REQUIRE(bytes.size() == sizeof(Expected));
  Expected actual;
  std::memcpy(&actual, bytes.data(), sizeof actual);
  CHECK(actual.small == -3);
  CHECK(actual.large == 1000000000000);
  CHECK(actual.half == 0x3E00);
  CHECK(actual.alpha == 0.25f);
  CHECK(actual.out == reinterpret_cast<void*>(0x1234));
  CHECK(actual.last == 9);
  CHECK(launches->front().parameters[1].size() == 1);
  CHECK(launches->front().grid[0] == 4);
}

TEST_CASE("a launch has the attributes that it needs: a cluster, the leave to begin early, both or none") {
  KernelJob job = test::sample_job("k");
  job.plan.launches.push_back(job.plan.launches.front());
  for (PlanLaunch& launch : job.plan.launches) launch.is_dependent = true;
  const LaunchPointers pointers = {.tensors = {{"x", 1}, {"y", 1}}, .workspaces = {}};
  auto launches = evaluate_launches(job, pointers);
  REQUIRE(launches.has_value());
  CHECK_FALSE(launches->front().is_dependent);  // what is before it is not of the plan
  LaunchAttributes attributes;
  CHECK(launch_config(launches->front(), nullptr, attributes).num_attributes == 0);
  CHECK(launch_config(launches->front(), nullptr, attributes).attributes == nullptr);
  REQUIRE(launch_config(launches->back(), nullptr, attributes).num_attributes == 1);
  CHECK(attributes[0].id == kLaunchAttributeDependent);
  CHECK(attributes[0].value.is_dependent == 1);
  launches->back().cluster[0] = 2;
  REQUIRE(launch_config(launches->back(), nullptr, attributes).num_attributes == 2);
  CHECK(attributes[0].id == kLaunchAttributeCluster);
  CHECK(attributes[0].value.cluster[0] == 2);
  CHECK(attributes[1].id == kLaunchAttributeDependent);
  // Nothing is launched for an empty grid: the next launch has none before it.
  job.plan.launches.front().grid[0] = IntExpr(0);
  launches = evaluate_launches(job, pointers);
  REQUIRE(launches->size() == 1);
  CHECK_FALSE(launches->front().is_dependent);
}

TEST_CASE("an empty grid is skipped, and one outside the limits is refused by number") {
  CHECK(evaluate_launches(test::sample_job("k", 0), {.tensors = {{"x", 1}, {"y", 1}}, .workspaces = {}})->empty());
  KernelJob job = test::sample_job("k");
  job.plan.launches[0].grid[1] = IntExpr(65536);
  CHECK(evaluate_launches(job, {.tensors = {{"x", 1}, {"y", 1}}, .workspaces = {}}).error().message.find("65536") != std::string::npos);
  job = test::sample_job("k");
  job.plan.launches[0].block[0] = IntExpr(2048);
  CHECK_FALSE(evaluate_launches(job, {.tensors = {{"x", 1}, {"y", 1}}, .workspaces = {}}).has_value());
}

TEST_CASE("a number too large for its field, an unknown tensor and a missing scalar are named") {
  const LaunchPointers pointers{.tensors = {{"x", 1}, {"y", 1}}, .workspaces = {}};
  KernelJob job = test::sample_job("k");
  job.plan.launches[0].parameters = {{"p", {field(Kind::kInt32, "big", IntExpr(std::int64_t{1} << 40))}}};
  CHECK(evaluate_launches(job, pointers).error().message.find("big = 1099511627776") != std::string::npos);
  job.plan.launches[0].parameters = {{"p", {field(Kind::kTensor, "z", {})}}};
  CHECK(evaluate_launches(job, pointers).error().message.find("'z'") != std::string::npos);
  job.plan.launches[0].parameters = {{"p", {field(Kind::kScalar, "beta", {})}}};
  CHECK(evaluate_launches(job, pointers).error().message.find("'beta'") != std::string::npos);
}

TEST_CASE("a tensor map is encoded from its evaluated expressions, and an encoder's refusal is handed on") {
  KernelJob job = test::sample_job("k");
  PlanField map = field(Kind::kTensorMap, "x", {});
  map.map = {
      DType::kF16, {IntExpr::variable("n"), IntExpr(3)}, {IntExpr::variable("n") * IntExpr(2)}, {IntExpr(64), IntExpr(8)}, IntExpr(128)};
  job.plan.launches[0].parameters = {{"x_map", {map}}};
  LaunchPointers pointers{.tensors = {{"x", 0x1000}, {"y", 1}}, .workspaces = {}};
  CHECK(evaluate_launches(job, pointers).error().message.find("nothing encodes tensor maps here") != std::string::npos);
  EvaluatedTensorMap seen;
  pointers.encode_tensor_map = [&](const EvaluatedTensorMap& asked) -> Result<TensorMapBytes> {
    seen = asked;
    TensorMapBytes bytes{};
    bytes[127] = std::byte{7};
    return bytes;
  };
  const auto launches = evaluate_launches(job, pointers);
  REQUIRE(launches.has_value());
  const std::uint64_t n = static_cast<std::uint64_t>(job.problem.dims.at("n"));
  CHECK(seen.address == 0x1000);
  CHECK(seen.extents == std::vector<std::uint64_t>{n, 3});
  CHECK(seen.strides_bytes == std::vector<std::uint64_t>{2 * n});
  CHECK(seen.box == std::vector<std::uint32_t>{64, 8});
  CHECK(seen.swizzle_bytes == 128);
  REQUIRE(launches->front().parameters[0].size() == kTensorMapBytes);
  CHECK(launches->front().parameters[0][127] == std::byte{7});
  job.plan.launches[0].parameters[0].fields[0].map.is_in_workspace = true;
  CHECK(evaluate_launches(job, pointers).error().message.find("no pointer named 'x'") != std::string::npos);
  pointers.workspaces["x"] = 0x2000;
  REQUIRE(evaluate_launches(job, pointers).has_value());
  CHECK(seen.address == 0x2000);
  pointers.encode_tensor_map = [](const EvaluatedTensorMap&) -> Result<TensorMapBytes> {
    return fail(Stage::kDevice, Code::kDevice, "no such box");
  };
  CHECK(evaluate_launches(job, pointers).error().message == "no such box");
}

TEST_CASE("a job, its fills and its samples survive the way to the worker") {
  KernelJob job = test::sample_job("k");
  job.cubin = std::string("\0cubin", 6);
  job.problem.align_bytes["x"] = 4;
  job.scalars["alpha"] = -std::numeric_limits<double>::infinity();
  job.floor_us = 1.5;
  Message message;
  add_job(message, "job", job);
  add_samples(message, test::sample_references());
  message.head["fills"] = to_json(test::sample_fills());
  const Message back = *decode(encode(message));
  const auto read = read_job(back, "job");
  REQUIRE(read.has_value());
  CHECK(read->cubin == job.cubin);
  CHECK(read->problem == job.problem);
  CHECK(read->scalars == job.scalars);
  CHECK(read->floor_us == 1.5);
  CHECK(to_json(read->plan) == to_json(job.plan));
  CHECK(read_samples(back)[0].values == test::sample_references()[0].values);
  CHECK(fills_from_json(back.head["fills"])[0].seed == 7);
}
