// zstd and hashes of stored texts; see content.h.
// SPDX-License-Identifier: Apache-2.0
#include "db/content.h"

#include <zstd.h>

#include <memory>

#include <fmt/format.h>

#include "generator/base/hash.h"

namespace kw::db {
namespace {

constexpr int kLevel = 6;                             // CUDA text: a sixth of its size at about 60 MB/s
constexpr std::int64_t kMaxContentBytes = 1ll << 30;  // more is a damaged length, not one of our texts

Error damaged(std::string_view hash, std::string_view why) {
  return {Stage::kDatabase, Code::kBadInput, fmt::format("stored content {}: {}", hash, why), {}, {}};
}

/// A context is large and slow to make; the texts are many and small.
ZSTD_CCtx* compression_context() {
  thread_local const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(), &ZSTD_freeCCtx);
  return context.get();
}

}  // namespace

Result<Content> compress(std::string_view plain) {
  Content content{hash_hex(plain), static_cast<std::int64_t>(plain.size()), std::string(ZSTD_compressBound(plain.size()), '\0')};
  const std::size_t size =
      ZSTD_compressCCtx(compression_context(), content.zstd.data(), content.zstd.size(), plain.data(), plain.size(), kLevel);
  if (ZSTD_isError(size)) return fail(Stage::kDatabase, Code::kInternal, fmt::format("zstd: {}", ZSTD_getErrorName(size)));
  content.zstd.resize(size);
  return content;
}

Result<std::string> decompress(std::string_view hash, std::int64_t num_bytes, std::string_view zstd) {
  if (num_bytes < 0 || num_bytes > kMaxContentBytes) return fail(damaged(hash, fmt::format("length {} is impossible", num_bytes)));
  if (ZSTD_getFrameContentSize(zstd.data(), zstd.size()) != static_cast<unsigned long long>(num_bytes)) {
    return fail(damaged(hash, fmt::format("the zstd frame does not hold the {} bytes that the row states", num_bytes)));
  }
  std::string plain(static_cast<std::size_t>(num_bytes), '\0');
  const std::size_t size = ZSTD_decompress(plain.data(), plain.size(), zstd.data(), zstd.size());
  if (ZSTD_isError(size)) return fail(damaged(hash, fmt::format("zstd: {}", ZSTD_getErrorName(size))));
  if (size != plain.size()) return fail(damaged(hash, "the zstd frame is short"));
  if (const std::string actual = hash_hex(plain); actual != hash)
    return fail(damaged(hash, fmt::format("its bytes have the hash {}", actual)));
  return plain;
}

std::string fault_of_content(std::string_view hash, std::int64_t num_bytes, std::string_view zstd) {
  const Result<std::string> plain = decompress(hash, num_bytes, zstd);
  return plain ? std::string() : plain.error().message;
}

}  // namespace kw::db
