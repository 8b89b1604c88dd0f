// Faults of the surroundings: outputs that cannot be written, odd paths, a compiler that fails whatever it is given. The program says
// what is wrong and ends with a code; nothing is lost, nothing odd is left behind.
// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/catch.h"

namespace {

namespace fs = std::filesystem;

struct Ended {
  int exit_code = -1;
  std::string output;
};

class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "kernelwright-faults-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string path(const std::string& name = "") const { return (path_ / name).string(); }
  std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(path_ / name).rdbuf();
    return text.str();
  }
  /// A line for the shell, in this folder; $KW is the executable, $SPEC an example.
  Ended shell(const std::string& line) const {
    const std::string whole = "cd '" + path() +
                              "' && export KW=" KW_EXECUTABLE " XDG_CACHE_HOME=$PWD/cache KERNELWRIGHT_DB=$PWD/tuning.db " +
                              "SPEC=" KW_SOURCE_DIR "/examples/matmul_bias_relu/matmul_bias_relu.op.toml; { " + line +
                              " ; } </dev/null 2>errors; code=$?; cat errors; exit $code";
    FILE* pipe = popen(whole.c_str(), "r");
    REQUIRE(pipe != nullptr);
    Ended ended;
    char buffer[4096];
    for (std::size_t got = 0; (got = fread(buffer, 1, sizeof buffer, pipe)) > 0;) ended.output.append(buffer, got);
    const int status = pclose(pipe);
    ended.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return ended;
  }

 private:
  fs::path path_;
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a full or closed standard output is told and ends with 3; a reader that leaves is no fault", "[host]") {
  const Folder folder;
  for (const char* command : {"$KW --version >/dev/full", "$KW tune --help >/dev/full", "$KW --version >&-"}) {
    const Ended ended = folder.shell(command);
    INFO(command << ": " << ended.output);
    CHECK(ended.exit_code == 3);
    CHECK(has(ended.output, "standard output: cannot be written"));
  }
  const Ended pipe = folder.shell("($KW --help; echo $? >code) | true; sleep 0.2; cat code");
  CHECK((has(pipe.output, "141") || has(pipe.output, "0")));
  CHECK_FALSE(has(pipe.output, "cannot be written"));
}

TEST_CASE("a standard error that is full or closed does not change how a command ends", "[host]") {
  const Folder folder;
  for (const char* command : {"$KW tun 2>/dev/full", "$KW tun 2>&-", "$KW tune no-such.op.toml 2>/dev/full"})
    CHECK(folder.shell(command).exit_code == 2);
  CHECK(folder.shell("$KW generate --arch sm_80 --limit 1 -o out $SPEC 2>/dev/full").exit_code == 0);
}

TEST_CASE("generate writes a set as a whole, takes the earlier set away, and knows its own folders", "[host]") {
  const Folder folder;
  const auto count = [&] {
    int number = 0;
    for (const auto& entry : fs::directory_iterator(folder.path("out"))) number += entry.path().extension() == ".cu" ? 1 : 0;
    return number;
  };
  CHECK(folder.shell("$KW generate --arch sm_80 --limit 4 -o out $SPEC").exit_code == 0);
  CHECK(count() == 4);
  std::ofstream(folder.path("out/mine.cu")) << "mine";
  CHECK(folder.shell("$KW generate --arch sm_80 --limit 2 -o out $SPEC").exit_code == 0);
  CHECK(count() == 3);
  CHECK(folder.read("out/mine.cu") == "mine");
  std::ofstream(folder.path("manifest.json")) << "{\"name\": \"web\"}";
  const Ended foreign = folder.shell("$KW generate --arch sm_80 --limit 2 -o . $SPEC");
  CHECK(foreign.exit_code == 2);
  CHECK(has(foreign.output, "manifest.json: is there and was not written by generate"));
  // A limit on the size of files stands for a full disk; SIGXFSZ must not end the program.
  const Ended full = folder.shell("(ulimit -f 8; $KW generate --arch sm_80 --limit 2 -o small $SPEC)");
  INFO(full.output);
  CHECK(full.exit_code == 3);
  CHECK(has(full.output, "File too large"));
  CHECK(has(full.output, "is incomplete"));
  CHECK(fs::is_empty(folder.path("small")));
}

TEST_CASE("files are written through links and into devices, never over them", "[host]") {
  const Folder folder;
  std::ofstream(folder.path("empty.json")) << R"({"specs": [], "variants": []})";
  std::ofstream(folder.path("target.json")) << "old";
  fs::create_symlink("target.json", folder.path("link.json"));
  CHECK(folder.shell("$KW replay empty.json --record link.json").exit_code == 0);
  CHECK(fs::is_symlink(folder.path("link.json")));
  CHECK(has(folder.read("target.json"), "variants"));
  CHECK(folder.shell("$KW replay empty.json --record /dev/full").exit_code == 3);
  CHECK(fs::is_character_file("/dev/full"));
  fs::create_directory(folder.path("taken"));
  const Ended taken = folder.shell("$KW replay empty.json --record taken");
  CHECK(taken.exit_code == 2);
  CHECK(has(taken.output, "taken: cannot be written: a folder, not a file"));
  REQUIRE(mkfifo(folder.path("fifo").c_str(), 0600) == 0);
  const Ended fifo = folder.shell("timeout 20 $KW replay empty.json --record fifo");
  CHECK(fifo.exit_code == 3);
  CHECK(has(fifo.output, "nobody reads from it"));
  for (const auto& entry : fs::directory_iterator(folder.path())) CHECK_FALSE(has(entry.path().filename().string(), "tmp"));
}

TEST_CASE("empty values and deep JSON are refused, and name what they are", "[host]") {
  const Folder folder;
  CHECK(has(folder.shell("$KW generate -o \"\" $SPEC").output, "generate: --output: is empty"));
  CHECK(has(folder.shell("$KW query \"\" --set M=1").output, "query: op: is empty"));
  CHECK(has(folder.shell("$KW tune --budget 0 $SPEC").output, "--budget"));
  const Ended deep = folder.shell("head -c 1000000 /dev/zero | tr \"\\0\" \"[\" >deep.json; $KW replay deep.json");
  CHECK(deep.exit_code == 2);
  CHECK(has(deep.output, "nested deeper than"));
}

TEST_CASE("without a usable home the cache goes to the current folder, like the database", "[host]") {
  const Folder folder;
  const std::string tune = "$KW tune --device none --arch sm_80 --budget 1ms $SPEC; ls -d kernelwright-cubins";
  for (const char* environment : {"XDG_CACHE_HOME= HOME= ", "XDG_CACHE_HOME=relative HOME= "}) {
    folder.shell(std::string("export ") + environment + "; " + tune);
    CHECK_FALSE(fs::exists("/kernelwright"));
    CHECK_FALSE(fs::exists(folder.path("relative")));
  }
}

TEST_CASE("db commands leave an empty or foreign file as it is and make no file by mistake", "[host]") {
  const Folder folder;
  std::ofstream(folder.path("empty.db"));
  for (const char* action : {"db gc", "db info", "query some_op"}) {
    const Ended ended = folder.shell(std::string("$KW ") + action + " --db empty.db");
    INFO(ended.output);
    CHECK(ended.exit_code == 1);
    CHECK(has(ended.output, "empty.db: an empty database"));
    CHECK(fs::file_size(folder.path("empty.db")) == 0);
  }
  // What a tune leaves that is killed before its first row is sound.
  const Ended checked = folder.shell("$KW db check --db empty.db");
  CHECK(checked.exit_code == 0);
  CHECK(has(checked.output, "empty.db: clean, and empty"));
  CHECK(folder.shell("$KW db check --db missing.db").exit_code == 1);
  std::ofstream(folder.path("text.db")) << "no database";
  CHECK(folder.shell("$KW db merge text.db --db new.db").exit_code == 2);
  CHECK(folder.shell("$KW db merge missing.db --db new.db").exit_code == 1);
  CHECK_FALSE(fs::exists(folder.path("new.db")));
  const Ended slash = folder.shell("$KW tune --device none --db a/b/c.db/ $SPEC");
  CHECK(slash.exit_code != 0);
  CHECK_FALSE(fs::exists(folder.path("a")));
  const Ended extra = folder.shell("$KW db check extra");
  CHECK(extra.exit_code == 2);
  CHECK(has(extra.output, "takes no further argument"));
}

TEST_CASE("a template folder that lacks what it needs is refused with the file", "[host]") {
  const Folder folder;
  fs::copy(KW_SOURCE_DIR "/templates", folder.path("templates"), fs::copy_options::recursive);
  std::ofstream(folder.path("templates/gemm/lost.cuh")) << "struct Config {};\n";
  const Ended lost = folder.shell("$KW generate --arch sm_80 --limit 1 --templates templates $SPEC");
  CHECK(lost.exit_code == 2);
  CHECK(has(lost.output, "gemm/lost.cuh: no COMPUTES annotation"));
  CHECK(folder.shell("$KW generate --templates missing $SPEC").exit_code == 2);
  fs::create_directory(folder.path("none"));
  CHECK(folder.shell("$KW generate --templates none $SPEC").exit_code == 2);
}

TEST_CASE("an NVRTC that fails whatever it is given ends the run and bans nothing", "[host]") {
  const Folder folder;
  const std::string fake = "KERNELWRIGHT_NVRTC=" KW_FAKE_NVRTC " FAKE_NVRTC=";
  for (const char* mode : {"no-builtins", "refuse"}) {
    const Ended ended = folder.shell(fake + mode + " $KW tune --device none --arch sm_80 --no-simulation $SPEC");
    INFO(ended.output);
    CHECK(ended.exit_code == 3);
    CHECK(has(ended.output, "does not compile even an empty kernel for sm_80"));
    CHECK(has(folder.shell("$KW db info").output, " 0 trials"));
  }
}
