// kernelwright doctor: what this machine has, what is missing, how to get it.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tuner/cli/command.h"
#include "tuner/device/baseline_job.h"

namespace kw::tuner {
namespace po = boost::program_options;

Result<int> run_doctor(const Invocation& invocation) {
  po::options_description described("options");
  described.add_options()("db", po::value<std::string>(), "tuning database to look at");
  described.add_options()("json", po::bool_switch(), "as JSON");
  KW_TRY(const ParsedOptions parsed, parse_options(invocation, "doctor", std::move(described), {}));
  if (parsed.is_help) return 0;
  nlohmann::json out = {{"version", generator_version()}};
  std::string text = fmt::format("kernelwright {}\n", generator_version());
  bool can_compile = false;

  if (const auto nvrtc = find_nvrtc()) {
    std::vector<std::string> arches;
    for (const Arch arch : nvrtc->arches) arches.emplace_back(to_text(arch));
    text += fmt::format("NVRTC     {} from the {}: {}\n          compiles for {}\n", nvrtc->version_text(), nvrtc->origin,
                        nvrtc->nvrtc_path, fmt::join(arches, ", "));
    out["nvrtc"] = {{"version", nvrtc->version_text()}, {"origin", nvrtc->origin}, {"path", nvrtc->nvrtc_path}, {"arches", arches}};
    can_compile = true;
  } else {
    text += fmt::format("NVRTC     missing: {}\n", nvrtc.error().message);
    out["nvrtc"] = {{"error", nvrtc.error().message}};
  }
  if (const auto devices = list_devices(invocation.executable)) {
    for (const DeviceInfo& device : *devices) {
      text += fmt::format("GPU {}     {}, compute capability {}.{}, {} SMs, {:.0f} GB, driver {} (CUDA {}.{})\n", device.ordinal,
                          device.limits.model_name, device.limits.compute_capability / 10, device.limits.compute_capability % 10,
                          device.limits.num_sms, static_cast<double>(device.memory_bytes) * 1e-9, device.driver_text,
                          device.driver_version / 1000, device.driver_version % 1000 / 10);
      out["devices"].push_back(
          {{"ordinal", device.ordinal}, {"model", device.limits.model_name}, {"uuid", device.uuid}, {"driver", device.driver_text}});
    }
  } else {
    text +=
        fmt::format("GPU       none: {}\n          kernels can be generated, compiled and ranked, not measured\n", devices.error().message);
    out["devices"] = nlohmann::json::array();
    out["device_error"] = devices.error().message;
  }
  if (const auto library = find_cublaslt(invocation.executable)) {
    text += fmt::format("cuBLASLt  {} from the {}: {}\n", library->version, library->origin, library->path);
    out["cublaslt"] = {{"version", library->version}, {"origin", library->origin}, {"path", library->path}};
  } else {
    text += fmt::format("cuBLASLt  missing, needed for tune --baseline cublaslt alone: {}\n", library.error().message);
    out["cublaslt"] = {{"error", library.error().message}};
  }
  const std::string path = database_path(invocation, parsed);
  if (const auto database = db::Database::open(path, {.is_read_only = true, .creates = false, .busy_timeout_ms = 2000})) {
    const auto info = (*database)->info();
    text +=
        fmt::format("database  {}{}\n", path, info ? fmt::format(": {} trials, schema {}", info->num_trials, info->schema_version) : "");
    out["database"] = {{"path", path}, {"exists", true}};
  } else {
    text += fmt::format("database  {}: {}\n", path,
                        database.error().code == Code::kNotFound ? "not there yet; the first tune makes it" : database.error().message);
    out["database"] = {{"path", path}, {"exists", false}};
  }
  const auto templates = generator::TemplateLibrary::load();
  text += templates ? fmt::format("templates {} built in\n", templates->templates().size())
                    : fmt::format("templates {}\n", templates.error().message);
  if (parsed.flag("json"))
    fmt::print("{}\n", out.dump(2));
  else
    fmt::print("{}", text);
  return can_compile && templates ? 0 : 3;
}

}  // namespace kw::tuner
