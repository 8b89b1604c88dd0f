// Runs every case of tests/errors: <name>.op.toml must give exactly the text of <name>.expected.
// Set KW_UPDATE_EXPECTED=1 to write the expected files anew; the diff is reviewed with the change.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/spec/spec_helpers.h"

namespace kw::generator {

namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string messages_of(const fs::path& path) {
  Diagnostics diagnostics;
  const FileReader reader = [&](const std::string& name) -> Result<std::string> {
    const fs::path other = path.parent_path() / name;
    if (!fs::exists(other)) return fail(Stage::kSpec, Code::kIo, "no such file");
    return read_file(other);
  };
  const auto spec = parse_op_spec(read_file(path), path.filename().string(), reader, diagnostics);
  if (spec) check_op_spec(*spec, {}, diagnostics);
  return diagnostics.to_text();
}

std::string trimmed(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

TEST_CASE("bad specs are refused with the expected words, places and suggestions") {
  const fs::path folder = fs::path(KW_SOURCE_DIR) / "tests" / "errors";
  std::set<fs::path> specs;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().string().ends_with(".op.toml")) specs.insert(entry.path());
  }
  CHECK(specs.size() >= 30);
  for (const fs::path& spec : specs) {
    const std::string name = spec.filename().string();
    const fs::path expected = folder / (name.substr(0, name.size() - std::string(".op.toml").size()) + ".expected");
    const std::string messages = messages_of(spec);
    if (std::getenv("KW_UPDATE_EXPECTED") != nullptr) std::ofstream(expected) << trimmed(messages) << "\n";
    INFO(name);
    CHECK_FALSE(messages.empty());
    CHECK(trimmed(messages) == trimmed(read_file(expected)));
  }
}

}  // namespace kw::generator
