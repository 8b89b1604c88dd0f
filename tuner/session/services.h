// What a session works with: templates, compile pool, database, the GPU's worker. Made once by the command line; the worker and the
// pool start only when something must really be compiled or run, so that a resumed run touches neither.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "db/database.h"
#include "generator/emit/variant.h"
#include "tuner/compile/compiler.h"
#include "tuner/device/baseline_job.h"
#include "tuner/device/gpu_worker.h"

namespace kw::tuner {

/// Everything read from the environment and the command line, in one printable value.
struct Options {
  std::string executable;  ///< path of this program: it is also its own compile and GPU worker
  std::string database_path;
  std::string cache_folder;     ///< compiled kernels; empty: none
  std::string template_folder;  ///< empty: the embedded templates
  std::string device = "auto";  ///< auto, cuda:N, none
  std::optional<Arch> arch;     ///< empty: the device's
  int num_compile_workers = 0;
  std::string command_line;  ///< for banners and provenance
};

/// Told what happens, for progress. `total` is 0 when unknown.
using ProgressSink = std::function<void(const std::string& step, std::size_t done, std::size_t total)>;

class Services {
 public:
  /// Finds the device (unless "none") and opens nothing else. Errors: device asked for but not there.
  static Result<std::unique_ptr<Services>> create(Options options);
  ~Services();

  const Options& options() const { return options_; }
  bool has_device() const { return device_.has_value(); }
  const DeviceInfo& device() const { return *device_; }   ///< has_device()
  const DeviceLimits& limits() const { return limits_; }  ///< the device's, or the generic ones of the arch
  Arch arch() const { return arch_; }
  /// Why there is no device, for the user ("no libcuda.so.1 ..."); empty when asked for none.
  const std::string& no_device_reason() const { return no_device_reason_; }

  Result<const generator::TemplateLibrary*> templates();
  Result<db::Database*> database(bool is_read_only = false);
  Result<CompilePool*> compile_pool();
  Result<GpuWorker*> gpu_worker();
  Result<NvrtcInfo> nvrtc();
  Result<LibraryFile> cublaslt();  ///< as the worker's process finds it

  db::DeviceRow device_row() const;
  Result<db::ToolchainRow> toolchain_row();

  int num_compiles = 0;    ///< compiles really done in this session
  int num_from_cache = 0;  ///< kernels that an earlier compile had left in the cache
  int num_launches = 0;    ///< verifications and measurements really run

 private:
  explicit Services(Options options) : options_(std::move(options)) {}
  Options options_;
  std::optional<DeviceInfo> device_;
  DeviceLimits limits_;
  Arch arch_ = Arch::kSm80;
  std::string no_device_reason_;
  std::optional<generator::TemplateLibrary> templates_;
  std::unique_ptr<db::Database> database_;
  std::unique_ptr<db::Database> writable_database_;  ///< once somebody writes; those who read before keep theirs
  std::optional<NvrtcInfo> nvrtc_;
  std::optional<LibraryFile> cublaslt_;
  std::unique_ptr<CompilePool> pool_;
  std::unique_ptr<GpuWorker> worker_;
};

/// Version of the generator, part of every row's toolchain.
std::string generator_version();

}  // namespace kw::tuner
