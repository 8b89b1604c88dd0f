// A process that writes to a tuning database, for tests that need several of them or that kill one.
//   db_writer write DB WRITER NUM_ROWS   records rows "WRITER/0"...; prints each name after its commit; exit 3 at an error, named on stderr
//   db_writer verify DB                  reads names from stdin; exit 1 and the names that are not stored
//   db_writer check DB                   exit 1 and the findings
// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdio>
#include <iostream>
#include <string>

#include "tests/db/records.h"

namespace {

using kw::db::Database;
using kw::db::TrialRecord;

TrialRecord record_of(const std::string& name, int number) {
  TrialRecord record = kw::db::test::make_record(number % 7);
  record.key.variant.config = name;
  // Of the size of a small generated kernel, different in each row.
  for (int line = 0; line < 40; ++line) record.key.variant.source += "  x = fma(a" + std::to_string(line * number) + ", b, c);\n";
  record.key.variant.source += name;
  record.key.variant.source_hash.clear();
  record.binary.key = name;
  return record;
}

int write_rows(Database& database, const std::string& writer, int num_rows) {
  for (int row = 0; row < num_rows; ++row) {
    const std::string name = writer + "/" + std::to_string(row);
    const auto id = database.record_trial(record_of(name, row));
    if (!id) {
      std::cerr << to_text(id.error()) << " [" << id.error().detail << "]\n";
      return 3;
    }
    std::cout << name << std::endl;  // flushed: it stands for a committed row
  }
  return 0;
}

int verify_rows(Database& database) {
  int num_missing = 0;
  std::string name;
  while (std::getline(std::cin, name)) {
    const auto slash = name.find('/');
    if (slash == std::string::npos || std::cin.eof()) continue;  // a torn last line of a killed writer
    const auto found = database.find_trial(record_of(name, std::stoi(name.substr(slash + 1))).key);
    if (found && *found) continue;
    std::cout << "missing: " << name << (found ? "" : " " + to_text(found.error())) << "\n";
    ++num_missing;
  }
  return num_missing == 0 ? 0 : 1;
}

int check_database(Database& database) {
  const auto findings = database.check();
  if (!findings) {
    std::cout << to_text(findings.error()) << "\n";
    return 1;
  }
  for (const std::string& finding : *findings) std::cout << finding << "\n";
  return findings->empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit shall be an error, not a signal
  if (argc < 3) {
    std::cerr << "usage: db_writer write DB WRITER NUM_ROWS | verify DB | check DB\n";
    return 2;
  }
  const std::string command = argv[1];
  auto database = Database::open(argv[2]);
  if (!database) {
    std::cerr << to_text(database.error()) << " [" << database.error().detail << "]\n";
    return 3;
  }
  if (command == "write" && argc == 5) return write_rows(**database, argv[3], std::stoi(argv[4]));
  if (command == "verify") return verify_rows(**database);
  if (command == "check") return check_database(**database);
  return 2;
}
