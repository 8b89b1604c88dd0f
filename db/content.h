// Content-addressed texts: the hash of the plain bytes is the key, the stored form is one zstd frame.
// Used for sources, launch plans, cubins and compiler logs. Hashes are checked again at every read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "generator/base/error.h"

namespace kw::db {

struct Content {
  std::string hash;  ///< hash_hex of the plain bytes
  std::int64_t num_bytes = 0;
  std::string zstd;
};

Result<Content> compress(std::string_view plain);
/// Error kBadInput: not a zstd frame, wrong length, or the bytes are not the ones that `hash` names.
Result<std::string> decompress(std::string_view hash, std::int64_t num_bytes, std::string_view zstd);
/// Empty when sound, else the fault in words.
std::string fault_of_content(std::string_view hash, std::int64_t num_bytes, std::string_view zstd);

}  // namespace kw::db
