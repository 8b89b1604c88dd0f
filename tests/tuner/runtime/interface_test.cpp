// The interface as an application meets it: the C++ header, versions, and a library that shows nothing but its calls.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <set>
#include <sstream>
#include <thread>

#include "tests/tuner/runtime/library_fixture.h"
#include "tuner/runtime/include/kernelwright.hpp"

using namespace kw::tuner::test;

extern "C" kw_status find_with_nothing(void);  // header_in_c.c

namespace {

std::string output_of(const std::string& command) {
  FILE* const pipe = popen(command.c_str(), "r");
  std::string text;
  char block[4096];
  for (std::size_t num_read = 0; (num_read = fread(block, 1, sizeof block, pipe)) > 0;) text.append(block, num_read);
  pclose(pipe);
  return text;
}

}  // namespace

TEST_CASE("the C++ header finds and launches, and turns a failure into an exception with the sentence") {
  LibraryFixture fixture({record_of({})});
  kernelwright::Database database(fixture.path());
  kernelwright::Kernel kernel = database.find("double", {{"n", 1000}});
  CHECK(kernel.match() == KW_EXACT);
  CHECK(kernel.variant() == "double_it");
  Vectors vectors(1000);
  kernel.prepare();
  kernel.launch({vectors.x, vectors.y}, nullptr);
  CHECK(vectors.y[999] == 2000);
  try {
    database.find("single", {{"n", 1000}});
    FAIL("found");
  } catch (const kernelwright::Error& error) {
    CHECK(error.status() == KW_NOT_FOUND);
    CHECK_THAT(error.what(), contains_text("no op 'single'"));
  }
  kernelwright::Kernel moved = std::move(kernel);
  CHECK(moved.workspace_bytes() == 0);
  CHECK_THROWS_AS(kernelwright::Database(fixture.path() + ".absent"), kernelwright::Error);
}

TEST_CASE("the last error belongs to its thread, and every status has a name") {
  kw_database* database = nullptr;
  CHECK(kw_open(nullptr, &database) == KW_BAD_ARGUMENT);
  std::string elsewhere = "?";
  std::thread([&] { elsewhere = kw_last_error(); }).join();
  CHECK(elsewhere.empty());
  CHECK(std::string(kw_last_error()) == "kw_open: path is null");
  CHECK(kw_version() == KW_VERSION);
  std::set<std::string> names;
  for (int status = KW_OK; status <= KW_INTERNAL; ++status) names.insert(kw_status_name(static_cast<kw_status>(status)));
  CHECK(names.size() == 9);
  CHECK(names.contains("KW_WRONG_DEVICE"));
  CHECK(std::string(kw_status_name(static_cast<kw_status>(15))) == "unknown status");
}

TEST_CASE("a C program compiles the header and calls the library") {
  CHECK(find_with_nothing() == KW_BAD_ARGUMENT);
  CHECK(std::string(kw_last_error()) == "kw_find: database is null");
}

TEST_CASE("the library shows the calls of its header and nothing else") {
  std::istringstream lines(output_of("nm -D --defined-only " KW_RUNTIME_LIBRARY));
  std::set<std::string> shown;
  for (std::string address, kind, name; lines >> address >> kind >> name;) {
    if (kind != "A") shown.insert(name.substr(0, name.find('@')));  // A: the version's own name
  }
  std::set<std::string> declared;
  std::istringstream header(output_of("cat " KW_SOURCE_DIR "/tuner/runtime/include/kernelwright.h"));
  for (std::string line; std::getline(header, line);) {
    if (line.rfind("KW_API ", 0) != 0) continue;
    const std::size_t end = line.find('('), begin = line.rfind("kw_", end);
    declared.insert(line.substr(begin, end - begin));
  }
  CHECK(declared.size() > 15);
  CHECK(shown == declared);
}
