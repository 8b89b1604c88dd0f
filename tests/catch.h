// One door to Catch2: version 2 (Debian 12) and version 3 (Ubuntu 24.04) have different headers and the same macros.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef KW_CATCH2_V3
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
