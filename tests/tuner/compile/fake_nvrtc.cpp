// A shared library with the calls of NVRTC and none of its use. FAKE_NVRTC says how it misbehaves: "spin" never returns from loading,
// "many" claims 2^31 - 1 targets, "exit" ends the process, "no-builtins" and "refuse" fail every compile with that code.
// SPDX-License-Identifier: Apache-2.0
#include <climits>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

std::string mode() {
  const char* value = std::getenv("FAKE_NVRTC");
  return value == nullptr ? "" : value;
}

[[gnu::constructor]] void misbehave() {
  if (mode() == "exit") std::_Exit(0);
  for (volatile bool spins = mode() == "spin"; spins;) {
  }
}

constexpr int kTargets[] = {80, 90};

}  // namespace

extern "C" {
int nvrtcVersion(int* major, int* minor) { return *major = 13, *minor = 9, 0; }
int nvrtcGetNumSupportedArchs(int* count) { return *count = mode() == "many" ? INT_MAX : 2, 0; }
int nvrtcGetSupportedArchs(int* targets) { return std::memcpy(targets, kTargets, sizeof kTargets), 0; }
int nvrtcCreateProgram(void** program, const char*, const char*, int, const char* const*, const char* const*) {
  return *program = const_cast<int*>(kTargets), 0;
}
int nvrtcDestroyProgram(void**) { return 0; }
int nvrtcCompileProgram(void*, int, const char* const*) { return mode() == "no-builtins" ? 7 : 6; }
int nvrtcGetProgramLogSize(void*, std::size_t* bytes) { return *bytes = 0, 0; }
int nvrtcGetProgramLog(void*, char*) { return 0; }
int nvrtcGetCUBINSize(void*, std::size_t* bytes) { return *bytes = 0, 0; }
int nvrtcGetCUBIN(void*, char*) { return 0; }
int nvrtcGetPTXSize(void*, std::size_t* bytes) { return *bytes = 0, 0; }
int nvrtcGetPTX(void*, char*) { return 0; }
const char* nvrtcGetErrorString(int code) { return code == 7 ? "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE" : "NVRTC_ERROR_COMPILATION"; }
}
