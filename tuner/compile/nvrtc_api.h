// The door to NVRTC: own declarations of the few calls, loaded at run time, so that the tool builds without a CUDA toolkit.
// Used in the compile worker and in the child of probe_nvrtc(); no other file knows an NVRTC name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "generator/base/error.h"

namespace kw::tuner {

/// What one call of the compiler gave.
struct NvrtcResult {
  bool is_ok = false;
  std::string code_text;  ///< "NVRTC_ERROR_COMPILATION" when it is not ok
  std::string log, cubin, ptx;
  bool is_toolchain_fault = false;  ///< no memory, no builtins, no program: whatever the source says
};

class NvrtcLibrary {
 public:
  /// Loads the library file. NVRTC opens its builtins by bare name, so those beside it are loaded first and made visible.
  static Result<std::unique_ptr<NvrtcLibrary>> load(const std::string& path);
  virtual ~NvrtcLibrary() = default;
  virtual int major() const = 0;
  virtual int minor() const = 0;
  /// Compute capabilities times 10 that it compiles for.
  virtual std::vector<int> compute_capabilities() const = 0;
  virtual NvrtcResult compile(const std::string& source, const std::string& file_name, const std::vector<std::string>& options,
                              bool wants_ptx) const = 0;
};

}  // namespace kw::tuner
