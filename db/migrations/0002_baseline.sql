-- Version 2: times of a library's call beside our trials (see baseline in schema.sql). No row of version 1 changes.
-- SPDX-License-Identifier: Apache-2.0

CREATE TABLE baseline (
  baseline_id          INTEGER PRIMARY KEY,
  content_key          TEXT NOT NULL UNIQUE CHECK (length(content_key) = 32),
  problem_id           INTEGER NOT NULL REFERENCES problem (problem_id),
  device_id            INTEGER NOT NULL REFERENCES device (device_id),
  protocol_id          INTEGER NOT NULL REFERENCES protocol (protocol_id),
  driver               TEXT NOT NULL,
  library              TEXT NOT NULL CHECK (length(library) > 0),
  library_version      TEXT NOT NULL,
  unix_time_s          INTEGER NOT NULL,
  algorithm            TEXT NOT NULL,
  num_tried            INTEGER NOT NULL CHECK (num_tried > 0),
  num_right            INTEGER NOT NULL CHECK (num_right BETWEEN 1 AND num_tried),
  samples_us           TEXT NOT NULL,
  median_us            REAL NOT NULL CHECK (median_us > 0),
  p10_us               REAL,
  p90_us               REAL,
  max_error_over_bound REAL,
  relative_norm_error  REAL,
  is_dirty             INTEGER NOT NULL CHECK (is_dirty IN (0, 1)),
  state_json           TEXT NOT NULL,
  session              TEXT NOT NULL
) STRICT;
CREATE INDEX baseline_by_key ON baseline (problem_id, device_id, protocol_id, library, library_version, driver, unix_time_s);

-- A baseline with its keys written out.
CREATE VIEW baseline_details AS
SELECT b.baseline_id, b.content_key, b.unix_time_s,
       o.op_id, o.identity AS op_identity, (SELECT name FROM op_alias WHERE op_id = o.op_id ORDER BY alias_id LIMIT 1) AS op_name,
       o.canonical_text, p.problem_id, p.dims_text,
       d.device_id, d.uuid AS device_uuid, d.model AS device_model, d.num_sms, d.l2_bytes, d.memory_bytes,
       r.protocol_id, r.name AS protocol_name, r.json AS protocol_json, b.driver, b.library, b.library_version,
       b.algorithm, b.num_tried, b.num_right, b.samples_us, b.median_us, b.p10_us, b.p90_us, b.max_error_over_bound, b.relative_norm_error,
       b.is_dirty, b.state_json, b.session
FROM baseline AS b
JOIN problem AS p ON p.problem_id = b.problem_id
JOIN op AS o ON o.op_id = p.op_id
JOIN device AS d ON d.device_id = b.device_id
JOIN protocol AS r ON r.protocol_id = b.protocol_id;
