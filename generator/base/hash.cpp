// 128-bit xxHash3 of bytes and of named parts.
// SPDX-License-Identifier: Apache-2.0
#include "generator/base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdio>

namespace kw {

std::string hash_hex(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  char text[33];
  std::snprintf(text, sizeof(text), "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text;
}

KeyHasher& KeyHasher::add(std::string_view name, std::string_view value) {
  // Lengths are part of the text, so that no two different lists of parts give the same bytes.
  buffer_ += std::to_string(name.size()) + ":" + std::to_string(value.size()) + ":";
  buffer_ += name;
  buffer_ += value;
  return *this;
}

std::string KeyHasher::hex() const { return hash_hex(buffer_); }

}  // namespace kw
