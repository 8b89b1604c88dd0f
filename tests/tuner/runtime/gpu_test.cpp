// The library on a real GPU, with the driver alone: the stored "code" is PTX, which the driver compiles. Without a GPU the tests say so
// and pass, unless KERNELWRIGHT_REQUIRE_GPU=1.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <optional>

#include "generator/base/arch.h"
#include "tests/catch.h"
#include "tests/tuner/runtime/stored_kernels.h"
#include "tuner/device/driver_api.h"
#include "tuner/runtime/include/kernelwright.hpp"

using namespace kw;
using namespace kw::tuner;
using namespace kw::tuner::test;

namespace {

constexpr std::int64_t kLength = 100000;

/// y[i] = 2 x[i] for i < n, 256 threads a CTA.
const char* const kDoublePtx = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry double_it(.param .u64 x, .param .u64 y, .param .u64 n) {
  .reg .pred %out;
  .reg .b32 %r<4>;
  .reg .b64 %a<6>;
  .reg .f32 %f;
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %tid.x;
  mad.lo.u32 %r2, %r0, 256, %r1;
  cvt.u64.u32 %a0, %r2;
  ld.param.u64 %a1, [n];
  setp.ge.u64 %out, %a0, %a1;
  @%out ret;
  ld.param.u64 %a2, [x];
  ld.param.u64 %a3, [y];
  shl.b64 %a4, %a0, 2;
  add.u64 %a2, %a2, %a4;
  add.u64 %a3, %a3, %a4;
  ld.global.f32 %f, [%a2];
  add.f32 %f, %f, %f;
  st.global.f32 [%a3], %f;
  ret;
}
)";

/// The first GPU without a context of ours, and a database with one kernel for its model.
class RealDevice {
 public:
  static std::optional<RealDevice> find() {
    const auto loaded = load_driver();
    if (loaded && (*loaded)->init(0) == 0) return RealDevice(**loaded);
    if (std::getenv("KERNELWRIGHT_REQUIRE_GPU") != nullptr) FAIL("no driver, or no device");
    WARN("not run: no driver, or no device");
    return std::nullopt;
  }
  CudaContext make_primary_current() const {
    CudaContext context = nullptr;
    REQUIRE(driver.context_retain(&context, 0) == 0);
    REQUIRE(driver.context_set_current(context) == 0);
    return context;
  }
  DevicePointer allocate() const {
    DevicePointer address = 0;
    REQUIRE(driver.memory_allocate(&address, kLength * sizeof(float)) == 0);
    REQUIRE(driver.set_bytes(address, 0, kLength * sizeof(float), nullptr) == 0);
    return address;
  }
  DevicePointer allocate_counting() const {
    std::vector<float> values(kLength);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    const DevicePointer address = allocate();
    REQUIRE(driver.copy_to_device(address, values.data(), kLength * sizeof(float), nullptr) == 0);
    REQUIRE(driver.stream_synchronize(nullptr) == 0);
    return address;
  }
  CudaStream stream() const {
    CudaStream stream = nullptr;
    REQUIRE(driver.stream_create(&stream, kStreamNonBlocking) == 0);
    return stream;
  }
  /// Elements of y that are not twice their index.
  int count_wrong(DevicePointer y, CudaStream stream) const {
    std::vector<float> values(kLength);
    REQUIRE(driver.copy_to_host(values.data(), y, kLength * sizeof(float), stream) == 0);
    REQUIRE(driver.stream_synchronize(stream) == 0);
    int num_wrong = 0;
    for (std::size_t i = 0; i < values.size(); ++i) num_wrong += values[i] != 2 * static_cast<float>(i);
    return num_wrong;
  }
  template <typename Function>
  Function symbol(const char* name) const {
    return reinterpret_cast<Function>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), name));
  }
  const std::string& database_path() const { return path_; }
  const DriverApi& driver;

 private:
  explicit RealDevice(const DriverApi& api) : driver(api), path_(folder_->file("tuning.db")) {
    CudaDevice device = 0;
    REQUIRE(driver.device_get(&device, 0) == 0);
    // The PTX serves any device from sm_80 on; the row must be of the device's own arch to be taken.
    const DeviceModel model = model_of(driver, device);
    const std::optional<Arch> arch = arch_for_device(model.compute_capability);
    REQUIRE(arch);
    const auto database = db::test::open_or_throw(path_);
    db::test::record_or_throw(
        *database, record_of({.n = kLength, .device_model = model.name, .arch = std::string(to_text(*arch)), .cubin = kDoublePtx}));
  }
  std::shared_ptr<db::test::TemporaryFolder> folder_ = std::make_shared<db::test::TemporaryFolder>();
  std::string path_;
};

void* pointer(DevicePointer address) { return reinterpret_cast<void*>(address); }

}  // namespace

TEST_CASE("on the GPU the library makes no context: without one it says so", "[gpu]") {
  const auto device = RealDevice::find();
  if (!device) return;
  device->driver.context_set_current(nullptr);
  kernelwright::Database database(device->database_path());
  try {
    database.find("double", {{"n", kLength}});
    FAIL("found without a context");
  } catch (const kernelwright::Error& error) {
    CHECK(error.status() == KW_NO_CONTEXT);
  }
  unsigned int flags = 0;
  int is_active = -1;
  REQUIRE(device->symbol<int (*)(CudaDevice, unsigned int*, int*)>("cuDevicePrimaryCtxGetState")(0, &flags, &is_active) == 0);
  CHECK(is_active == 0);
}

TEST_CASE("on the GPU a kernel is found, launched and right, with other pointers too", "[gpu]") {
  const auto device = RealDevice::find();
  if (!device) return;
  device->make_primary_current();
  kernelwright::Database database(device->database_path());
  kernelwright::Kernel kernel = database.find("double", {{"n", kLength}});
  CHECK(kernel.match() == KW_EXACT);
  const CudaStream stream = device->stream();
  const DevicePointer x = device->allocate_counting();
  for (int launch = 0; launch < 3; ++launch) {
    const DevicePointer y = device->allocate();
    REQUIRE(device->driver.stream_synchronize(nullptr) == 0);
    kernel.launch({pointer(x), pointer(y)}, stream);
    CHECK(device->count_wrong(y, stream) == 0);
  }
}

TEST_CASE("on the GPU the first launch may be captured, in the strictest mode, and the graph replays", "[gpu]") {
  const auto device = RealDevice::find();
  if (!device) return;
  constexpr int kCaptureGlobal = 0;
  device->make_primary_current();
  kernelwright::Database database(device->database_path());
  const DevicePointer x = device->allocate_counting(), y = device->allocate();
  const CudaStream stream = device->stream();
  const DriverApi& driver = device->driver;
  REQUIRE(driver.stream_synchronize(nullptr) == 0);
  REQUIRE(driver.capture_begin(stream, kCaptureGlobal) == 0);
  kernelwright::Kernel kernel = database.find("double", {{"n", kLength}});
  kernel.launch({pointer(x), pointer(y)}, stream);
  CudaGraph graph = nullptr;
  CudaGraphExec executable = nullptr;
  REQUIRE(driver.capture_end(stream, &graph) == 0);
  REQUIRE(driver.graph_instantiate(&executable, graph, 0) == 0);
  CHECK(device->count_wrong(y, stream) > 0);
  REQUIRE(driver.graph_launch(executable, stream) == 0);
  CHECK(device->count_wrong(y, stream) == 0);
}

TEST_CASE("on the GPU a stream of another context is refused in words, and the context lives on", "[gpu]") {
  const auto device = RealDevice::find();
  if (!device) return;
  const CudaContext primary = device->make_primary_current();
  kernelwright::Database database(device->database_path());
  kernelwright::Kernel kernel = database.find("double", {{"n", kLength}});
  const DevicePointer x = device->allocate_counting(), y = device->allocate();
  CudaContext second = nullptr;
  REQUIRE(device->symbol<int (*)(CudaContext*, unsigned int, CudaDevice)>("cuCtxCreate_v2")(&second, 0, 0) == 0);
  const CudaStream foreign = device->stream();
  REQUIRE(device->driver.context_set_current(primary) == 0);
  try {
    kernel.launch({pointer(x), pointer(y)}, foreign);
    FAIL("launched on a stream of another context");
  } catch (const kernelwright::Error& error) {
    INFO(error.what());
    CHECK(error.status() == KW_WRONG_DEVICE);
  }
  kernel.launch({pointer(x), pointer(y)}, nullptr);
  CHECK(device->count_wrong(y, nullptr) == 0);
}
