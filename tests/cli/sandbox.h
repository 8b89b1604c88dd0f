// Runs the executable in a folder of its own: what the tests of the command line have in common.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/catch.h"

namespace kw::tests {

struct Ran {
  int exit_code = -1;
  std::string output;  ///< standard output and error together
};

/// A folder of its own for each test: database, caches and files; removed at the end.
class Sandbox {
 public:
  Sandbox()
      : folder_(std::filesystem::temp_directory_path() /
                ("kernelwright-cli-" + std::to_string(getpid()) + "-" + std::to_string(counter_++))) {
    std::filesystem::create_directories(folder_);
  }
  ~Sandbox() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  std::string read(const std::string& name) const;
  /// `environment` is put before the command, as a shell would take it.
  Ran run(const std::string& arguments, const std::string& environment = "") const {
    const std::string home = "XDG_CACHE_HOME=" + path("cache") + " KERNELWRIGHT_DB=" + path("tuning.db") + " ";
    FILE* pipe = popen((home + environment + " " KW_EXECUTABLE " " + arguments + " 2>&1 </dev/null").c_str(), "r");
    REQUIRE(pipe != nullptr);
    Ran ran;
    char buffer[4096];
    for (std::size_t got = 0; (got = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) ran.output.append(buffer, got);
    const int status = pclose(pipe);
    ran.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return ran;
  }

 private:
  static inline int counter_ = 0;
  std::filesystem::path folder_;
};

/// A whole file.
inline std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

inline std::string Sandbox::read(const std::string& name) const { return text_of(path(name)); }

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace kw::tests
