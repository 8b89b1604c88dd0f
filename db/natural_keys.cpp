// See natural_keys.h.
// SPDX-License-Identifier: Apache-2.0
#include "db/natural_keys.h"

#include <fmt/format.h>

namespace kw::db {
namespace {

Result<std::int64_t> op_id_of(Connection& connection, const OpRow& op) {
  KW_TRY(const auto stored_text, connection.text("SELECT canonical_text FROM op WHERE identity = ?", op.identity));
  if (stored_text && *stored_text != op.canonical_text) {
    return fail(
        Stage::kDatabase, Code::kBadInput,
        fmt::format("{}: op {} is stored with another canonical program than the one of {}", connection.path(), op.identity, op.name));
  }
  if (!stored_text)
    KW_TRY_VOID(connection.run("INSERT INTO op (identity, canonical_text, spec_json) VALUES (?, ?, ?)", op.identity, op.canonical_text,
                               op.spec_json));
  KW_TRY(const auto op_id, connection.integer("SELECT op_id FROM op WHERE identity = ?", op.identity));
  if (!op.name.empty()) {
    KW_TRY_VOID(connection.run("INSERT INTO op_alias (op_id, name) VALUES (?, ?) ON CONFLICT DO NOTHING", *op_id, op.name));
  }
  return *op_id;
}

}  // namespace

Result<std::int64_t> problem_id_of(Connection& connection, const OpRow& op, const ProblemRow& problem) {
  KW_TRY(const std::int64_t op_id, op_id_of(connection, op));
  return id_of(connection, "SELECT problem_id FROM problem WHERE op_id = ? AND dims_text = ?",
               "INSERT INTO problem (op_id, dims_text) VALUES (?, ?)", op_id, problem.dims_text);
}

Result<std::int64_t> device_id_of(Connection& connection, const DeviceRow& device) {
  return id_of(connection,
               "SELECT device_id FROM device WHERE uuid = ? AND model = ? AND num_sms = ? AND l2_bytes = ? AND memory_bytes = ?",
               "INSERT INTO device (uuid, model, num_sms, l2_bytes, memory_bytes) VALUES (?, ?, ?, ?, ?)", device.uuid, device.model,
               device.num_sms, device.l2_bytes, device.memory_bytes);
}

Result<std::int64_t> protocol_id_of(Connection& connection, const ProtocolRow& protocol) {
  return id_of(connection, "SELECT protocol_id FROM protocol WHERE name = ? AND json = ?",
               "INSERT INTO protocol (name, json) VALUES (?, ?)", protocol.name, protocol.json);
}

}  // namespace kw::db
