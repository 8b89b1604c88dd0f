// Schema versions: a new file gets schema.sql, an older one is migrated step by step, a newer one is refused by name.
// Each step is one transaction together with its version number, so a crash leaves either the old or the new schema.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "db/sqlite.h"

namespace kw::db {

/// PRAGMA application_id of our files: "KWdb".
inline constexpr int kApplicationId = 0x4B576462;

/// Rewrites a database of version `from` into version `from + 1`, keeping its rows.
struct Migration {
  int from = 0;
  std::string name;  ///< file name under db/migrations
  std::string sql;
};

struct SchemaSet {
  int version = 0;
  std::string sql;                    ///< the whole schema of `version`
  std::vector<Migration> migrations;  ///< ascending in `from`, without a gap up to `version`
};

/// schema.sql and the migrations of this executable.
const SchemaSet& builtin_schema();

/// Text of an embedded file of db/ ("schema.sql"); empty when there is none of that name.
std::string embedded_sql(std::string_view name);

/// Creates or migrates. Safe when many processes do it at once on a new file. Errors: newer schema, a foreign database, damaged.
Status prepare_schema(Connection& connection, const SchemaSet& schema);
/// Error kBadInput for a file that holds nothing yet.
Status require_objects(Connection& connection);
/// For a connection that cannot write: the version must be the current one.
Status require_schema(Connection& connection, const SchemaSet& schema);

Result<int> schema_version(Connection& connection);

}  // namespace kw::db
