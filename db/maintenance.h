// Work on a whole database: check, counts, garbage collection.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "db/database.h"
#include "db/sqlite.h"

namespace kw::db {

Result<DatabaseInfo> read_info(Connection& connection);
Result<std::vector<std::string>> check_all(Connection& connection);
Result<std::int64_t> collect_losers(Connection& connection, int keep_best, int keep_days);

}  // namespace kw::db
