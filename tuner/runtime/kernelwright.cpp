// The C interface: checks of what the caller hands over, the border that no exception crosses, and each thread's last error.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/runtime/include/kernelwright.h"

#include <fmt/format.h>

#include <array>
#include <exception>
#include <new>

#include "tuner/runtime/library.h"

using namespace kw;
using namespace kw::tuner;

static_assert(static_cast<int>(MatchKind::kExact) == KW_EXACT && static_cast<int>(MatchKind::kNear) == KW_NEAR &&
              static_cast<int>(MatchKind::kModelled) == KW_MODELLED && static_cast<int>(MatchKind::kOtherDevice) == KW_OTHER_DEVICE);

namespace {

thread_local std::string last_error;

kw_status note(const char* call, kw_status status, const char* sentence) noexcept {
  try {
    last_error = fmt::format("{}: {}", call, sentence);
  } catch (...) {  // no memory for the text: the status says enough
    last_error.clear();
  }
  return status;
}

/// Runs a call's body, which returns an Outcome<void>.
template <typename Body>
kw_status guarded(const char* call, Body body) noexcept {
  try {
    const Outcome<void> outcome = body();
    return outcome ? KW_OK : note(call, outcome.error().status, outcome.error().sentence.c_str());
  } catch (const std::bad_alloc&) {
    return note(call, KW_OUT_OF_MEMORY, "out of host memory");
  } catch (const std::exception& exception) {
    return note(call, KW_INTERNAL, exception.what());
  } catch (...) {
    return note(call, KW_INTERNAL, "unknown exception");
  }
}

tl::unexpected<Failure> is_null(const char* name) { return failed(KW_BAD_ARGUMENT, fmt::format("{} is null", name)); }

Outcome<void> check_values(const kw_value* values, std::size_t num_values) {
  if (values == nullptr && num_values > 0) return is_null("values");
  for (std::size_t index = 0; index < num_values; ++index) {
    if (values[index].name == nullptr) return failed(KW_BAD_ARGUMENT, fmt::format("values[{}].name is null", index));
  }
  return {};
}

}  // namespace

extern "C" {

uint32_t kw_version(void) { return KW_VERSION; }

const char* kw_status_name(kw_status status) {
  static constexpr std::array<const char*, 9> kNames = {"KW_OK",           "KW_BAD_ARGUMENT",  "KW_NOT_FOUND",
                                                        "KW_BAD_DATABASE", "KW_NO_CONTEXT",    "KW_WRONG_DEVICE",
                                                        "KW_DRIVER",       "KW_OUT_OF_MEMORY", "KW_INTERNAL"};
  const auto index = static_cast<std::size_t>(status);
  return index < kNames.size() ? kNames[index] : "unknown status";
}

const char* kw_last_error(void) { return last_error.c_str(); }

kw_status kw_open(const char* path, kw_database** database) {
  return guarded("kw_open", [&]() -> Outcome<void> {
    if (database == nullptr) return is_null("database");
    *database = nullptr;
    if (path == nullptr) return is_null("path");
    KW_OUTCOME(std::unique_ptr<kw_database> opened, kw_database::open(path));
    *database = opened.release();
    return {};
  });
}

void kw_close(kw_database* database) { delete database; }

kw_status kw_find(kw_database* database, const char* op, const kw_value* values, size_t num_values, unsigned flags, kw_kernel** kernel) {
  return guarded("kw_find", [&]() -> Outcome<void> {
    if (kernel == nullptr) return is_null("kernel");
    *kernel = nullptr;
    if (database == nullptr) return is_null("database");
    if (op == nullptr) return is_null("op");
    if (*op == '\0') return failed(KW_BAD_ARGUMENT, "op is empty: must be a name, an identity or 8 or more digits of one");
    if ((flags & ~static_cast<unsigned>(KW_FIND_OTHER_DEVICE)) != 0)
      return failed(KW_BAD_ARGUMENT, fmt::format("flags = {:#x}: only KW_FIND_OTHER_DEVICE (1) is known", flags));
    KW_OUTCOME_VOID(check_values(values, num_values));
    KW_OUTCOME(*kernel, database->find(op, {values, num_values}, flags));
    return {};
  });
}

void kw_kernel_release(kw_kernel* kernel) {
  if (kernel != nullptr) kernel->release();
}

kw_match kw_kernel_match(const kw_kernel* kernel) { return kernel == nullptr ? KW_EXACT : static_cast<kw_match>(kernel->info().match); }
const char* kw_kernel_explanation(const kw_kernel* kernel) { return kernel == nullptr ? "" : kernel->info().explanation.c_str(); }
const char* kw_kernel_variant(const kw_kernel* kernel) { return kernel == nullptr ? "" : kernel->info().variant.c_str(); }
const char* kw_kernel_config(const kw_kernel* kernel) { return kernel == nullptr ? "" : kernel->info().config.c_str(); }
const char* kw_kernel_measured_at(const kw_kernel* kernel) { return kernel == nullptr ? "" : kernel->info().measured_at.c_str(); }
double kw_kernel_time_us(const kw_kernel* kernel) { return kernel == nullptr ? 0 : kernel->info().time_us; }
size_t kw_kernel_num_tensors(const kw_kernel* kernel) { return kernel == nullptr ? 0 : kernel->plan().tensors.size(); }
const char* kw_kernel_tensor_name(const kw_kernel* kernel, size_t index) {
  return index < kw_kernel_num_tensors(kernel) ? kernel->plan().tensors[index].name.c_str() : "";
}
size_t kw_kernel_num_scalars(const kw_kernel* kernel) { return kernel == nullptr ? 0 : kernel->plan().scalars.size(); }
const char* kw_kernel_scalar_name(const kw_kernel* kernel, size_t index) {
  return index < kw_kernel_num_scalars(kernel) ? kernel->plan().scalars[index].name.c_str() : "";
}
size_t kw_workspace_bytes(const kw_kernel* kernel) { return kernel == nullptr ? 0 : kernel->plan().workspace_bytes; }
size_t kw_zeroed_workspace_bytes(const kw_kernel* kernel) { return kernel == nullptr ? 0 : kernel->plan().zeroed_workspace_bytes; }

kw_status kw_prepare(kw_kernel* kernel) {
  return guarded("kw_prepare", [&]() -> Outcome<void> {
    if (kernel == nullptr) return is_null("kernel");
    return kernel->prepare();
  });
}

kw_status kw_launch(kw_kernel* kernel, const kw_arguments* arguments, void* stream) {
  return guarded("kw_launch", [&]() -> Outcome<void> {
    if (kernel == nullptr) return is_null("kernel");
    if (arguments == nullptr) return is_null("arguments");
    return kernel->launch(*arguments, static_cast<CudaStream>(stream));
  });
}

}  // extern "C"
