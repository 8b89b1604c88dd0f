// Rows that are stored once and pointed at: op, problem, device, protocol. Their ids by their natural keys, inserted when they are new.
// Callers hold the write transaction.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "db/database.h"
#include "db/sqlite.h"

namespace kw::db {

/// Row id by its natural key; inserted when it is not there.
template <typename... Values>
Result<std::int64_t> id_of(Connection& connection, const std::string& select, const std::string& insert, const Values&... values) {
  KW_TRY(const auto found, connection.integer(select, values...));
  if (found) return *found;
  KW_TRY_VOID(connection.run(insert, values...));
  return connection.last_insert_id();
}

/// Error kBadInput: the op is stored with another canonical program.
Result<std::int64_t> problem_id_of(Connection& connection, const OpRow& op, const ProblemRow& problem);
Result<std::int64_t> device_id_of(Connection& connection, const DeviceRow& device);
Result<std::int64_t> protocol_id_of(Connection& connection, const ProtocolRow& protocol);

}  // namespace kw::db
