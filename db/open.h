// Opens a file as a tuning database: checks what it is, creates or migrates it, and chooses the journal by file system.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "db/database.h"
#include "db/sqlite.h"

namespace kw::db {

Result<std::unique_ptr<Connection>> open_connection(const std::string& path, const OpenOptions& options);
/// The file as a URI for ATTACH, read-only, after the same checks as open_connection.
Result<std::string> checked_read_only_uri(const std::string& path, int busy_timeout_ms);

}  // namespace kw::db
