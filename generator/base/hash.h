// Content hashes: 128-bit xxHash3 as 32 hexadecimal digits. Keys of the cubin cache, of sources and of op identities.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kw {

/// 32 lower-case hex digits.
std::string hash_hex(std::string_view bytes);

/// Hash of several parts; each part's length takes part, so ("ab","c") and ("a","bc") differ.
class KeyHasher {
 public:
  KeyHasher& add(std::string_view name, std::string_view value);
  std::string hex() const;

 private:
  std::string buffer_;
};

}  // namespace kw
