// One door to Catch2: version 2 (Debian 12) and version 3 (Ubuntu 24.04) have different headers and the same macros.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#ifdef KW_CATCH2_V3
#include <catch2/catch_all.hpp>
using Catch::Approx;  // version 2 has it at global scope
/// Matches a text that holds `part`; version 2 calls it Contains, which means something else in version 3.
inline auto contains_text(const std::string& part) { return Catch::Matchers::ContainsSubstring(part); }
#else
#include <catch2/catch.hpp>
inline auto contains_text(const std::string& part) { return Catch::Matchers::Contains(part); }
#endif

#if defined(__SANITIZE_ADDRESS__)
#define KW_TEST_IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KW_TEST_IS_SANITIZED 1
#endif
#endif
#ifndef KW_TEST_IS_SANITIZED
#define KW_TEST_IS_SANITIZED 0
#endif
/// AddressSanitizer changes memory use, timing and what a crash looks like: a test of these says so and leaves them out.
constexpr bool kIsSanitized = KW_TEST_IS_SANITIZED != 0;
