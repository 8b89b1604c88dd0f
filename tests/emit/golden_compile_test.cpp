// Every golden file is taken by the compiler of the tool, for its own architecture and a later one where it runs there too.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "tests/catch.h"
#include "tests/templates/nvrtc.h"

TEST_CASE("each golden file compiles without a spill") {
  int num_files = 0, num_checked = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(KW_SOURCE_DIR) + "/tests/golden")) {
    if (entry.path().extension() != ".cu") continue;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    ++num_files;
    const bool is_hopper = entry.path().filename().string().find("sm90") != std::string::npos;
    for (const char* arch : is_hopper ? std::vector<const char*>{"sm_90a"} : std::vector<const char*>{"sm_80", "sm_90"}) {
      const kw::template_tests::NvrtcResult result = kw::template_tests::compile(text.str(), arch);
      INFO(entry.path().filename() << " for " << arch << "\n" << result.log);
      CHECK(result.is_compiled);
      CHECK(result.spill_bytes == 0);
      CHECK(result.log.find("warning") == std::string::npos);
      if (text.str().find("KERNELWRIGHT_CHECKED") == std::string::npos) continue;
      ++num_checked;
      const kw::template_tests::NvrtcResult checked = kw::template_tests::compile("#define KERNELWRIGHT_CHECKED\n" + text.str(), arch);
      INFO(checked.log);
      CHECK(checked.is_compiled);
    }
  }
  CHECK(num_files >= 10);
  CHECK(num_checked > 0);
}
