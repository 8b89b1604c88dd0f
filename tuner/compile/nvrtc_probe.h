// Asks an NVRTC library for its version and targets without loading it here: a library that is cut short, crashes or never returns
// ends a short-lived child, not this process. Used by find_nvrtc().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "generator/base/error.h"

namespace kw::tuner {

struct NvrtcFacts {
  int major = 0, minor = 0;
  std::vector<int> compute_capabilities;  ///< times 10
};

/// Error kToolchain: names the library and what became of it. An answer is kept while the file does not change.
Result<NvrtcFacts> probe_nvrtc(const std::string& path, std::chrono::milliseconds limit = std::chrono::seconds(20));

}  // namespace kw::tuner
