// Starting the parts of a session when they are first needed.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/session/services.h"

#include <fmt/format.h>

#include <charconv>

#ifndef KW_VERSION
#error "KW_VERSION comes from CMake"
#endif

namespace kw::tuner {
namespace {

constexpr Arch kArchWithoutDevice = Arch::kSm90;  // the newest arch that the templates of today are made for

Result<int> ordinal_of(const std::string& device) {
  constexpr std::string_view kPrefix = "cuda:";
  int ordinal = 0;
  const char* end = device.data() + device.size();
  if (!device.starts_with(kPrefix))
    return fail(Stage::kCommandLine, Code::kBadInput, fmt::format("--device {}: expected auto, none or cuda:N", device));
  const auto [at, error] = std::from_chars(device.data() + kPrefix.size(), end, ordinal);
  if (error != std::errc{} || at != end || ordinal < 0)
    return fail(Stage::kCommandLine, Code::kBadInput, fmt::format("--device {}: expected cuda:N", device));
  return ordinal;
}

}  // namespace

std::string generator_version() { return KW_VERSION; }

Services::~Services() = default;

Result<std::unique_ptr<Services>> Services::create(Options options) {
  std::unique_ptr<Services> services(new Services(std::move(options)));
  const std::string& wanted = services->options_.device;
  if (wanted != "none") {
    int ordinal = 0;
    if (wanted != "auto") {
      KW_TRY(ordinal, ordinal_of(wanted));
    }
    auto devices = list_devices(services->options_.executable);
    if (devices && static_cast<std::size_t>(ordinal) < devices->size()) services->device_ = (*devices)[static_cast<std::size_t>(ordinal)];
    if (!devices) services->no_device_reason_ = devices.error().message;
    if (devices && !services->device_)
      services->no_device_reason_ = fmt::format("device {} asked for, this machine has {}", ordinal, devices->size());
    if (!services->device_ && wanted != "auto") return fail(Stage::kDevice, Code::kDevice, services->no_device_reason_);
  }
  const std::optional<Arch>& arch = services->options_.arch;
  if (services->device_) {
    const int device_cc = services->device_->limits.compute_capability;
    const auto native = arch_for_device(device_cc);
    if (!native)
      return fail(Stage::kDevice, Code::kDevice,
                  fmt::format("{} has compute capability {}.{}: 8.0 and up are supported", services->device_->limits.model_name,
                              device_cc / 10, device_cc % 10));
    if (arch && !runs_on(*arch, device_cc))
      return fail(Stage::kCommandLine, Code::kBadInput,
                  fmt::format("--arch {}: its cubins do not run on {} (compute capability {}.{}); use --device none to compile only",
                              to_text(*arch), services->device_->limits.model_name, device_cc / 10, device_cc % 10));
    services->arch_ = arch.value_or(*native);
    services->limits_ = services->device_->limits;
  } else {
    services->arch_ = arch.value_or(kArchWithoutDevice);
    services->limits_ = generic_device(services->arch_);
  }
  return services;
}

Result<const generator::TemplateLibrary*> Services::templates() {
  if (!templates_) {
    KW_TRY(templates_, generator::TemplateLibrary::load(options_.template_folder));
  }
  return &*templates_;
}

Result<db::Database*> Services::database(bool is_read_only) {
  if (writable_database_ != nullptr) return writable_database_.get();
  std::unique_ptr<db::Database>& wanted = is_read_only ? database_ : writable_database_;
  if (wanted == nullptr) {
    KW_TRY(wanted,
           db::Database::open(options_.database_path,
                              {.is_read_only = is_read_only, .creates = !is_read_only, .migrates = true, .busy_timeout_ms = 20000}));
  }
  return wanted.get();
}

Result<NvrtcInfo> Services::nvrtc() {
  if (!nvrtc_) {
    KW_TRY(nvrtc_, find_nvrtc());
    // A cubin of a newer major than the driver's does not load; say so before anything is compiled.
    if (device_ && nvrtc_->major > device_->driver_version / 1000) {
      const std::string message =
          fmt::format("NVRTC {} ({}) is newer than the driver (CUDA {}.{}): update the driver, or set KERNELWRIGHT_NVRTC to an NVRTC {}.x",
                      nvrtc_->version_text(), nvrtc_->nvrtc_path, device_->driver_version / 1000, device_->driver_version % 1000 / 10,
                      device_->driver_version / 1000);
      nvrtc_.reset();
      return fail(Stage::kCompile, Code::kToolchain, message);
    }
  }
  return *nvrtc_;
}

Result<LibraryFile> Services::cublaslt() {
  if (!cublaslt_) {
    KW_TRY(cublaslt_, find_cublaslt(options_.executable));
  }
  return *cublaslt_;
}

Result<CompilePool*> Services::compile_pool() {
  if (pool_ == nullptr) {
    CompilePoolOptions pool;
    KW_TRY(pool.nvrtc, nvrtc());
    pool.num_workers = options_.num_compile_workers;
    pool.cache_folder = options_.cache_folder;
    pool.worker_command = options_.executable;
    KW_TRY(pool_, CompilePool::start(std::move(pool)));
  }
  return pool_.get();
}

Result<GpuWorker*> Services::gpu_worker() {
  if (worker_ == nullptr) {
    KW_CHECK(device_.has_value(), "a GPU worker needs a device");
    GpuWorkerOptions worker;
    worker.worker_command = options_.executable;
    worker.device_ordinal = device_->ordinal;
    worker.fill_cubin = [this](Arch arch) -> Result<std::string> {
      KW_TRY(const generator::TemplateLibrary* library, templates());
      KW_TRY(CompilePool * pool, compile_pool());
      const auto source = library->sources().find("support/fill_inputs.cuh");
      if (source == library->sources().end()) return fail(Stage::kDevice, Code::kInternal, "templates/support/fill_inputs.cuh is missing");
      return compile_fill_kernels(*pool, source->second, arch);
    };
    worker.notice = [](const std::string& text) { fmt::print(stderr, "{}\n", text); };
    KW_TRY(worker_, GpuWorker::start(std::move(worker)));
  }
  return worker_.get();
}

db::DeviceRow Services::device_row() const {
  if (!device_) return {"none", fmt::format("none:{}", to_text(arch_)), 0, 0, 0};
  return {device_->uuid, device_->limits.model_name, device_->limits.num_sms, device_->limits.l2_bytes, device_->memory_bytes};
}

Result<db::ToolchainRow> Services::toolchain_row() {
  KW_TRY(const NvrtcInfo info, nvrtc());
  const std::string driver =
      device_ ? (device_->driver_text.empty() ? std::to_string(device_->driver_version) : device_->driver_text) : "none";
  return db::ToolchainRow{info.version_text(), driver, generator_version(), info.major};
}

}  // namespace kw::tuner
