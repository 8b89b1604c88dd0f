// Several processes and threads on one database: the first start, one writer's death is in scripts/db_kill_test.sh.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <thread>

#include "tests/catch.h"
#include "tests/db/records.h"

using namespace kw;
using namespace kw::db;
using namespace kw::db::test;

namespace {

/// Starts db_writer with its output in files; `max_file_bytes` 0: no limit.
pid_t start_writer(const std::vector<std::string>& arguments, const std::string& output, rlim_t max_file_bytes = 0) {
  const pid_t child = fork();
  if (child != 0) return child;
  const int out = open((output + ".out").c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0644);
  const int err = open((output + ".err").c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0644);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  std::signal(SIGXFSZ, SIG_IGN);
  if (max_file_bytes != 0) {
    const rlimit limit{max_file_bytes, max_file_bytes};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  std::vector<char*> pointers{const_cast<char*>(KW_DB_WRITER)};
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  execv(KW_DB_WRITER, pointers.data());
  _exit(127);
}

int exit_status(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write_at_once(const TemporaryFolder& folder, const std::string& path, int num_writers, int num_rows) {
  std::vector<pid_t> children;
  for (int writer = 0; writer < num_writers; ++writer) {
    const std::string name = "w" + std::to_string(writer);
    children.push_back(start_writer({"write", path, name, std::to_string(num_rows)}, folder.file(name)));
  }
  for (int writer = 0; writer < num_writers; ++writer) {
    INFO(read_file(folder.file("w" + std::to_string(writer) + ".err")));
    CHECK(exit_status(children[static_cast<std::size_t>(writer)]) == 0);
  }
}

}  // namespace

TEST_CASE("16 processes write 1000 rows each into one new database and none is lost") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.db");
  write_at_once(folder, path, 16, 1000);
  CHECK(open_or_throw(path)->info()->num_trials == 16000);
  CHECK(open_or_throw(path)->info()->journal_mode == "wal");
}

TEST_CASE("16 processes open a new database at the same moment, many times over") {
  for (int round = 0; round < 6; ++round) {
    const TemporaryFolder folder;
    const std::string path = folder.file("t.db");
    write_at_once(folder, path, 16, 1);
    const auto database = open_or_throw(path);
    CHECK(database->info()->num_trials == 16);
    CHECK(database->check()->empty());
  }
}

TEST_CASE("threads share one database object") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&database, thread] {
      for (int row = 0; row < 25; ++row) record_or_throw(*database, make_record(thread * 100 + row));
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(database->info()->num_trials == 200);
}

TEST_CASE("a writer that reaches the limit of its file says so and every row it committed is there") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.db");
  const pid_t child = start_writer({"write", path, "full", "3000"}, folder.file("full"), 1 << 20);
  CHECK(exit_status(child) == 3);
  const std::string error = read_file(folder.file("full.err"));
  INFO(error);
  CHECK(error.find(path) != std::string::npos);
  CHECK(error.find("disk full") != std::string::npos);
  const std::string names = read_file(folder.file("full.out"));
  const auto num_committed = std::count(names.begin(), names.end(), '\n');
  CHECK(num_committed > 10);
  CHECK(num_committed < 3000);
  const auto database = open_or_throw(path);
  CHECK(database->info()->num_trials == num_committed);
  CHECK(database->check()->empty());
  CHECK(database->record_trial(make_record(1)));
}
