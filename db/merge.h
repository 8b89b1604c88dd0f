// Two databases at once: copying rows from one to the other, and comparing their winners. The other file is only read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "db/database.h"
#include "db/sqlite.h"

namespace kw::db {

Result<std::int64_t> merge_from(Connection& connection, const std::string& other_path);
Result<std::vector<std::string>> diff_with(Connection& connection, const std::string& other_path);

}  // namespace kw::db
