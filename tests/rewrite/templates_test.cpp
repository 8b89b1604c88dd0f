// The built-in templates through the whole step: every one reads, and specialises at its default and at random legal configs.
// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <filesystem>
#include <iostream>
#include <set>

#include "tests/catch.h"
#include "tests/rewrite/template_cases.h"

namespace kw::generator {

TEST_CASE("every .cuh file of the template folder is embedded in the executable") {
  const SourceTree sources = builtin_template_sources();
  const std::filesystem::path root = std::filesystem::path(KW_SOURCE_DIR) / "templates";
  std::set<std::string> in_folder;
  for (const char* folder : {"ptx", "parts", "gemm", "rows", "support"}) {
    if (!std::filesystem::exists(root / folder)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(root / folder)) {
      if (entry.path().extension() == ".cuh") in_folder.insert(std::filesystem::relative(entry.path(), root).string());
    }
  }
  std::set<std::string> embedded;
  for (const auto& [name, text] : sources) embedded.insert(name);
  CHECK(embedded == in_folder);
}

TEST_CASE("every template reads, and specialises at its default and at 20 random legal configs") {
  const SourceTree sources = builtin_template_sources();
  REQUIRE(test::template_files(sources).size() >= 2);
  std::mt19937 random(20);
  double seconds = 0;
  int count = 0;
  for (const std::string& file : test::template_files(sources)) {
    const Result<TemplateInfo> info = read_template(sources, file);
    if (!info) FAIL(to_text(info.error()) << "\n" << info.error().detail);
    CHECK(!info->tunables.empty());
    CHECK(!info->contract.empty());
    for (int i = 0; i < 21; ++i) {
      const SpecialiseRequest request = i == 0 ? test::default_request(sources, *info) : test::random_request(sources, *info, random);
      const auto start = std::clock();
      const Result<std::string> text = specialise(request);
      seconds += static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
      ++count;
      if (!text) FAIL(to_text(text.error()) << "\n" << text.error().detail);
      CHECK(text->find("#include") == std::string::npos);
      CHECK(text->find("if constexpr (Config::") == std::string::npos);
      if (i == 0) CHECK(specialise(request).value() == *text);
    }
  }
  // The project's bar is 25 formatted variants a second and core; shown, not asserted, because test machines are shared.
  std::cout << "specialise: " << count << " variants, " << 1000 * seconds / count << " ms of CPU each\n";
}

}  // namespace kw::generator
