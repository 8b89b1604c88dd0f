// Where NVRTC is looked for, and what is said when it is not there.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/catch.h"
#include "tests/tuner/compile/scratch_folder.h"
#include "tuner/compile/compiler.h"
#include "tuner/compile/nvrtc_probe.h"

using namespace kw::tuner;

namespace {

/// Sets a variable for a test and puts the old value back.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value)
      : name_(name), had_(std::getenv(name) != nullptr), old_(had_ ? std::getenv(name) : "") {
    setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() { had_ ? setenv(name_, old_.c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  bool had_;
  std::string old_;
};

}  // namespace

TEST_CASE("with the toolkit hidden and no wheel the error names the places and the cure") {
  const test::ScratchFolder folder;
  const ScopedVariable hide("KERNELWRIGHT_HIDE_TOOLKIT", "1"), data("XDG_DATA_HOME", folder.path()), chosen("KERNELWRIGHT_NVRTC", "");
  const auto info = find_nvrtc();
  REQUIRE_FALSE(info.has_value());
  CHECK(info.error().code == kw::Code::kToolchain);
  CHECK(info.error().message.find(folder.path() + "/kernelwright/nvrtc") != std::string::npos);
  CHECK(info.error().message.find("/usr/local/cuda") == std::string::npos);
  CHECK(info.error().message.find("scripts/fetch_nvrtc.sh") != std::string::npos);
}

TEST_CASE("KERNELWRIGHT_NVRTC is the only place looked at, and a file that is no library is named") {
  const test::ScratchFolder folder;
  std::ofstream(folder.path() + "/libnvrtc.so.12") << "not a library";
  const ScopedVariable chosen("KERNELWRIGHT_NVRTC", folder.path());
  const auto info = find_nvrtc();
  REQUIRE_FALSE(info.has_value());
  CHECK(info.error().message.find(folder.path() + "/libnvrtc.so.12") != std::string::npos);
  CHECK(info.error().message.find("/usr/local/cuda") == std::string::npos);
}

TEST_CASE("a library that spins, ends the process or is cut short is named, and this process lives") {
  const test::ScratchFolder folder;
  const std::string library = folder.path() + "/libnvrtc.so.13";
  std::filesystem::copy_file(KW_FAKE_NVRTC, library);
  {
    const ScopedVariable mode("FAKE_NVRTC", "spin");
    const auto facts = probe_nvrtc(library, std::chrono::milliseconds(1000));
    REQUIRE_FALSE(facts.has_value());
    CHECK(facts.error().message == library + ": cannot be used as NVRTC: it did not load within 1 s");
  }
  const std::string other = folder.path() + "/other.so";
  std::filesystem::copy_file(KW_FAKE_NVRTC, other);
  {
    const ScopedVariable mode("FAKE_NVRTC", "exit");
    CHECK(probe_nvrtc(other).error().message.find("ends this program") != std::string::npos);
  }
  // Cut after its headers: the loader maps pages that the file does not have.
  const std::string cut = folder.path() + "/cut.so";
  std::filesystem::copy_file(KW_FAKE_NVRTC, cut);
  std::filesystem::resize_file(cut, 4096);
  const auto facts = probe_nvrtc(cut);
  REQUIRE_FALSE(facts.has_value());
  CHECK(facts.error().code == kw::Code::kToolchain);
  CHECK(facts.error().message.find(cut) != std::string::npos);
}

TEST_CASE("the answer of a library is kept, and an absurd number of targets is none") {
  const test::ScratchFolder folder;
  const std::string library = folder.path() + "/libnvrtc.so.13";
  std::filesystem::copy_file(KW_FAKE_NVRTC, library);
  const auto facts = probe_nvrtc(library);
  REQUIRE(facts.has_value());
  CHECK(facts->major == 13);
  CHECK(facts->compute_capabilities == std::vector<int>{80, 90});
  const ScopedVariable mode("FAKE_NVRTC", "many");
  CHECK(probe_nvrtc(library)->compute_capabilities.size() == 2);  // not asked again
  const std::string other = folder.path() + "/other.so";
  std::filesystem::copy_file(KW_FAKE_NVRTC, other);
  CHECK(probe_nvrtc(other)->compute_capabilities.empty());
}

TEST_CASE("an NVRTC too old for the target is refused with both names") {
  const NvrtcInfo old{.nvrtc_path = "/x/libnvrtc.so.12",
                      .major = 12,
                      .minor = 4,
                      .origin = "CUDA toolkit",
                      .arches = {kw::Arch::kSm80, kw::Arch::kSm90},
                      .nvrtc_bytes = 1};
  CHECK(check_arch(old, kw::Arch::kSm80).has_value());
  const auto refused = check_arch(old, kw::Arch::kSm120);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message.find("sm_120: NVRTC 12.4") != std::string::npos);
  CHECK(refused.error().message.find("sm_80 sm_90") != std::string::npos);
}
