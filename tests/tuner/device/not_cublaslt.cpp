// A shared library that is no cuBLASLt: it has one of the names and lacks the rest.
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>

extern "C" std::size_t cublasLtGetVersion() { return 130002; }
