// The cubin cache on disk. See cubin_cache.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/compile/cubin_cache.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "generator/base/hash.h"
#include "tuner/compile/message.h"

namespace kw::tuner {
namespace {

namespace fs = std::filesystem;
constexpr char kMagic[] = "KWCUBIN1";
constexpr std::size_t kHashBytes = 32;
constexpr std::size_t kHeaderBytes = sizeof kMagic - 1 + kHashBytes;
constexpr std::chrono::hours kStaleTemporaryAge{1};
constexpr off_t kMaxEntryBytes = off_t{1} << 30;  // far above any cubin: a larger file is none of ours

std::string pack(const CompiledKernel& kernel) {
  Message message;
  message.head = {{"key", kernel.key},
                  {"registers", kernel.registers},
                  {"spill_store_bytes", kernel.spill_store_bytes},
                  {"spill_load_bytes", kernel.spill_load_bytes},
                  {"stack_bytes", kernel.stack_bytes},
                  {"static_smem_bytes", kernel.static_smem_bytes},
                  {"compile_ms", kernel.compile_ms}};
  message.blobs = {kernel.cubin, kernel.ptx, kernel.log};
  const std::string frame = encode(message);
  return kMagic + hash_hex(frame) + frame;
}

/// The whole file, or nothing: what is no regular file (a folder, a FIFO that would wait for a writer) or does not read is a miss.
std::optional<std::string> read_regular_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return std::nullopt;
  struct stat facts{};
  std::optional<std::string> text;
  if (fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size <= kMaxEntryBytes) {
    text.emplace(static_cast<std::size_t>(facts.st_size), '\0');
    std::size_t done = 0;
    while (done < text->size()) {
      const ssize_t count = read(file, text->data() + done, text->size() - done);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) break;
      done += static_cast<std::size_t>(count);
    }
    if (done < text->size()) text.reset();
  }
  close(file);
  return text;
}

std::optional<CompiledKernel> unpack(const std::string& key, const std::string& text) {
  if (text.size() < kHeaderBytes || text.compare(0, sizeof kMagic - 1, kMagic) != 0) return std::nullopt;
  const std::string frame = text.substr(kHeaderBytes);
  if (text.compare(sizeof kMagic - 1, kHashBytes, hash_hex(frame)) != 0) return std::nullopt;
  Result<Message> message = decode(frame);
  if (!message || message->blobs.size() != 3 || message->head.value("key", "") != key) return std::nullopt;
  CompiledKernel kernel;
  kernel.key = key;
  kernel.cubin = std::move(message->blobs[0]);
  kernel.ptx = std::move(message->blobs[1]);
  kernel.log = std::move(message->blobs[2]);
  const nlohmann::json& head = message->head;
  kernel.registers = head.value("registers", 0);
  kernel.spill_store_bytes = head.value("spill_store_bytes", 0);
  kernel.spill_load_bytes = head.value("spill_load_bytes", 0);
  kernel.stack_bytes = head.value("stack_bytes", 0);
  kernel.static_smem_bytes = head.value("static_smem_bytes", 0);
  kernel.compile_ms = head.value("compile_ms", 0.0);
  kernel.is_from_cache = true;
  return kernel;
}

}  // namespace

std::string cubin_key(const CompileRequest& request, const NvrtcInfo& nvrtc) {
  KeyHasher hasher;
  hasher.add("format", kMagic).add("source", request.source).add("arch", to_text(request.arch)).add("kernel", request.kernel_name);
  hasher.add("ptx", request.wants_ptx ? "1" : "0").add("nvrtc", nvrtc.version_text()).add("nvrtc_bytes", std::to_string(nvrtc.nvrtc_bytes));
  if (!request.file_name.empty()) hasher.add("file", request.file_name);
  for (const std::string& kernel : request.other_kernels) hasher.add("kernel", kernel);
  for (const std::string& option : request.options) hasher.add("option", option);
  return hasher.hex();
}

KeyLock::~KeyLock() {
  if (file_ < 0) return;
  unlink(path_.c_str());  // while held: a waiter sees that the name is gone and makes a new file
  close(file_);
}

Result<CubinCache> CubinCache::open(const std::string& folder, std::int64_t quota_bytes) {
  CubinCache cache;
  cache.folder_ = folder;
  cache.quota_bytes_ = quota_bytes;
  if (folder.empty()) return cache;
  std::error_code error;
  fs::create_directories(fs::path(folder) / "locks", error);
  if (error || access(folder.c_str(), W_OK) != 0) {
    return fail(Stage::kCompile, Code::kIo,
                fmt::format("{}: cubin cache: the folder cannot be written: {}", folder, error ? error.message() : std::strerror(errno)));
  }
  cache.evict();
  return cache;
}

std::string CubinCache::entry_path(const std::string& key) const { return fmt::format("{}/{}/{}.cubin", folder_, key.substr(0, 2), key); }

std::optional<CompiledKernel> CubinCache::find(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  const std::string path = entry_path(key);
  const std::optional<std::string> text = read_regular_file(path);
  if (!text) return std::nullopt;
  std::optional<CompiledKernel> kernel = unpack(key, *text);
  if (kernel) {
    utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // the time of last use decides what is evicted
  } else {
    unlink(path.c_str());
  }
  return kernel;
}

void CubinCache::insert(const CompiledKernel& kernel) {
  if (folder_.empty()) return;
  static std::atomic<int> counter{0};
  const std::string path = entry_path(kernel.key);
  const std::string temporary = fmt::format("{}.{}.{}.tmp", path, getpid(), counter.fetch_add(1));
  std::error_code ignored;
  fs::create_directories(fs::path(path).parent_path(), ignored);
  const std::string text = pack(kernel);
  {
    std::ofstream file(temporary, std::ios::binary);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    if (!file.flush()) {
      unlink(temporary.c_str());
      return;
    }
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) {  // for example a folder of that name
    unlink(temporary.c_str());
    return;
  }
  inserted_bytes_ += static_cast<std::int64_t>(text.size());
  if (inserted_bytes_ > quota_bytes_ / 16) evict();
}

KeyLock CubinCache::lock(const std::string& key, const std::function<bool()>& keeps_waiting) const {
  if (folder_.empty()) return KeyLock();
  const std::string path = fmt::format("{}/locks/{}", folder_, key);
  while (true) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0) return KeyLock();
    while (flock(file, LOCK_EX | LOCK_NB) != 0) {
      if ((errno != EWOULDBLOCK && errno != EINTR) || !keeps_waiting()) {
        close(file);
        return KeyLock();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    struct stat ours{}, named{};
    if (fstat(file, &ours) == 0 && stat(path.c_str(), &named) == 0 && ours.st_ino == named.st_ino) return KeyLock(file, path);
    close(file);  // its last holder removed the name: take the new file
  }
}

std::int64_t CubinCache::evict() {
  inserted_bytes_ = 0;
  if (folder_.empty()) return 0;
  struct Entry {
    fs::file_time_type used;
    std::string path;
    std::int64_t bytes;
  };
  std::vector<Entry> entries;
  std::int64_t total_bytes = 0, freed_bytes = 0;
  std::error_code ignored;
  const auto now = fs::file_time_type::clock::now();
  for (fs::recursive_directory_iterator entry(folder_, ignored), end; entry != end && !ignored; entry.increment(ignored)) {
    std::error_code gone;  // another process may remove it at any moment
    if (!entry->is_regular_file(gone) || gone) continue;
    const fs::file_time_type used = entry->last_write_time(gone);
    const auto bytes = static_cast<std::int64_t>(entry->file_size(gone));
    if (gone) continue;
    if (entry->path().extension() == ".tmp" && now - used > kStaleTemporaryAge) fs::remove(entry->path(), gone);
    if (entry->path().extension() != ".cubin") continue;
    entries.push_back({used, entry->path().string(), bytes});
    total_bytes += bytes;
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used != b.used ? a.used < b.used : a.path < b.path; });
  for (const Entry& entry : entries) {
    if (total_bytes - freed_bytes <= quota_bytes_) break;
    if (unlink(entry.path.c_str()) == 0) freed_bytes += entry.bytes;
  }
  return freed_bytes;
}

}  // namespace kw::tuner
