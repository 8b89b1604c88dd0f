// The cubin cache: keys, damage, quota, locks.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include <sys/stat.h>

#include "tests/catch.h"
#include "tests/tuner/compile/scratch_folder.h"
#include "tuner/compile/cubin_cache.h"

using namespace kw::tuner;
namespace fs = std::filesystem;

namespace {

CompiledKernel sample_kernel(const std::string& key, std::size_t cubin_bytes = 100) {
  CompiledKernel kernel;
  kernel.key = key;
  kernel.cubin = std::string(cubin_bytes, 'c');
  kernel.log = "log";
  kernel.registers = 128;
  kernel.compile_ms = 12.5;
  return kernel;
}

std::string key_of(int number) { return std::string(1, static_cast<char>('a' + number)) + std::string(31, '0'); }

fs::path only_entry(const std::string& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".cubin") return entry.path();
  }
  return {};
}

}  // namespace

TEST_CASE("every input of a compile flips the key, and the library's path does not") {
  const CompileRequest base{.source = "s", .arch = kw::Arch::kSm80, .kernel_name = "k", .options = {"-a", "-b"}, .wants_ptx = false};
  NvrtcInfo nvrtc{.nvrtc_path = "/one/libnvrtc.so", .major = 12, .minor = 9, .origin = "CUDA toolkit", .arches = {}, .nvrtc_bytes = 5};
  std::set<std::string> keys = {cubin_key(base, nvrtc)};
  const auto add = [&](auto change) {
    CompileRequest request = base;
    NvrtcInfo info = nvrtc;
    change(request, info);
    CHECK(keys.insert(cubin_key(request, info)).second);
  };
  add([](CompileRequest& r, NvrtcInfo&) { r.source = "t"; });
  add([](CompileRequest& r, NvrtcInfo&) { r.arch = kw::Arch::kSm90; });
  add([](CompileRequest& r, NvrtcInfo&) { r.arch = kw::Arch::kSm90a; });
  add([](CompileRequest& r, NvrtcInfo&) { r.kernel_name = "l"; });
  add([](CompileRequest& r, NvrtcInfo&) { r.options = {"-a"}; });
  add([](CompileRequest& r, NvrtcInfo&) { r.options = {"-b", "-a"}; });
  add([](CompileRequest& r, NvrtcInfo&) { r.options = {"-a-b"}; });
  add([](CompileRequest& r, NvrtcInfo&) { r.wants_ptx = true; });
  add([](CompileRequest&, NvrtcInfo& n) { n.major = 13; });
  add([](CompileRequest&, NvrtcInfo& n) { n.minor = 8; });
  add([](CompileRequest&, NvrtcInfo& n) { n.nvrtc_bytes = 6; });
  nvrtc.nvrtc_path = "/two/libnvrtc.so";
  nvrtc.origin = "PyPI wheel";
  CHECK(keys.contains(cubin_key(base, nvrtc)));
}

TEST_CASE("an entry comes back whole and marked as cached") {
  const test::ScratchFolder folder;
  CubinCache cache = *CubinCache::open(folder.path(), 1 << 20);
  CHECK_FALSE(cache.find(key_of(0)).has_value());
  cache.insert(sample_kernel(key_of(0)));
  const auto found = cache.find(key_of(0));
  REQUIRE(found.has_value());
  CHECK(found->cubin == sample_kernel(key_of(0)).cubin);
  CHECK(found->registers == 128);
  CHECK(found->compile_ms == 12.5);
  CHECK(found->is_from_cache);
}

TEST_CASE("a damaged, cut or exchanged entry is a miss and is removed") {
  const test::ScratchFolder folder;
  CubinCache cache = *CubinCache::open(folder.path(), 1 << 20);
  const std::string damage = GENERATE("flip", "cut", "empty", "exchange");
  cache.insert(sample_kernel(key_of(0)));
  const fs::path path = only_entry(folder.path());
  if (damage == "flip") {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(150);
    file.put('!');
  } else if (damage == "cut") {
    fs::resize_file(path, fs::file_size(path) - 1);
  } else if (damage == "empty") {
    fs::resize_file(path, 0);
  } else {
    cache.insert(sample_kernel(key_of(1)));
    fs::copy_file(folder.path() + "/" + key_of(1).substr(0, 2) + "/" + key_of(1) + ".cubin", path, fs::copy_options::overwrite_existing);
  }
  CHECK_FALSE(cache.find(key_of(0)).has_value());
  CHECK_FALSE(fs::exists(path));
}

TEST_CASE("an entry that is a folder or a FIFO is a miss at once, and an insert over a folder leaves no temporary file") {
  const test::ScratchFolder folder;
  CubinCache cache = *CubinCache::open(folder.path(), 1 << 20);
  cache.insert(sample_kernel(key_of(0)));
  const fs::path path = only_entry(folder.path());
  fs::remove(path);
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  CHECK_FALSE(cache.find(key_of(0)).has_value());  // does not wait for a writer
  fs::remove(path);
  fs::create_directory(path);
  std::ofstream(path / "inside") << "text";
  CHECK_FALSE(cache.find(key_of(0)).has_value());
  cache.insert(sample_kernel(key_of(0)));
  CHECK_FALSE(cache.find(key_of(0)).has_value());
  CHECK(std::distance(fs::directory_iterator(path.parent_path()), fs::directory_iterator()) == 1);
}

TEST_CASE("the quota drops what was used longest ago") {
  const test::ScratchFolder folder;
  CubinCache cache = *CubinCache::open(folder.path(), 1 << 20);
  for (int number = 0; number < 4; ++number) {
    cache.insert(sample_kernel(key_of(number), 2000));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  CHECK(cache.find(key_of(0)).has_value());  // now the latest use
  CubinCache small = *CubinCache::open(folder.path(), 5000);
  CHECK(small.find(key_of(0)).has_value());
  CHECK(small.find(key_of(3)).has_value());
  CHECK_FALSE(small.find(key_of(1)).has_value());
  CHECK_FALSE(small.find(key_of(2)).has_value());
}

TEST_CASE("a key's lock excludes a second holder, leaves no file behind, and is given back") {
  const test::ScratchFolder folder;
  const CubinCache cache = *CubinCache::open(folder.path(), 1 << 20);
  {
    const KeyLock first = cache.lock(key_of(0), [] { return false; });
    CHECK(first.is_held());
    CHECK_FALSE(cache.lock(key_of(0), [] { return false; }).is_held());
    CHECK(cache.lock(key_of(1), [] { return false; }).is_held());
  }
  CHECK(cache.lock(key_of(0), [] { return false; }).is_held());
  CHECK(fs::is_empty(folder.path() + "/locks"));
}

TEST_CASE("a folder that cannot be made is an error that names it") {
  const auto cache = CubinCache::open("/proc/no/such/folder", 1 << 20);
  REQUIRE_FALSE(cache.has_value());
  CHECK(cache.error().message.find("/proc/no/such/folder") != std::string::npos);
}
