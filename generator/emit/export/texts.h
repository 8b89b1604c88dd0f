// Export: the files of texts/ as string literals, embedded by CMake. Everything up to the line "// ---" is the file's own head.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kw::generator {

extern const char* const kLaunchSupport;
extern const char* const kTensorMapSupport;
extern const char* const kTestSupport;

}  // namespace kw::generator
