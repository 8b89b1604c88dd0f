// Where libraries of a CUDA toolkit lie: NVRTC and cuBLASLt are looked for in the same folders.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace kw::tuner {

/// Value of an environment variable; "" when it is not set.
std::string environment(const char* name);

/// Library folders of the toolkits here: $CUDA_HOME, $CUDA_PATH, /usr/local/cuda, then /usr/local/cuda-*, newest first ("cuda" itself is
/// what the machine's owner chose).
std::vector<std::string> toolkit_folders();

/// "libnvrtc.so.13" of a folder: the highest version of `stem` ("libnvrtc.so"), not above `max_version` (0: any); alternatives built for
/// other hosts ("libnvrtc.alt.so") are not taken. Empty when there is none.
std::string newest_library_in(const std::string& folder, const std::string& stem, int max_version);

}  // namespace kw::tuner
