-- Schema version 2 of the tuning database: one row for every trial of every variant, not only for winners.
-- Keys are stored once (op, problem, device, toolchain, protocol, variant); a trial points at them. Long texts live in the
-- content-addressed tables `source_text` and `blob`. Views: newest_trial, trial_details, ranked_trial, winner,
-- ranked_prediction, predicted_best, baseline_details.
-- Each index costs a page write in every trial's transaction: only those that a trial's own look-ups need are here.
-- A change here is a new schema version: raise kSchemaVersion in db/schema.cpp and add db/migrations/NNNN_title.sql.
-- SPDX-License-Identifier: Apache-2.0

-- What is computed. The identity is the hash of the canonical program; names are aliases.
CREATE TABLE op (
  op_id          INTEGER PRIMARY KEY,
  identity       TEXT NOT NULL UNIQUE CHECK (length(identity) > 0),
  canonical_text TEXT NOT NULL,
  spec_json      TEXT NOT NULL
) STRICT;

CREATE TABLE op_alias (
  alias_id INTEGER PRIMARY KEY,
  op_id    INTEGER NOT NULL REFERENCES op (op_id),
  name     TEXT NOT NULL,
  UNIQUE (op_id, name)
) STRICT;
CREATE INDEX op_alias_by_name ON op_alias (name);

-- One shape of an op: dims, strides and alignment in one text.
CREATE TABLE problem (
  problem_id INTEGER PRIMARY KEY,
  op_id      INTEGER NOT NULL REFERENCES op (op_id),
  dims_text  TEXT NOT NULL,
  UNIQUE (op_id, dims_text)
) STRICT;

-- uuid 'none' and model 'none:sm_90' stand for a machine without a GPU.
CREATE TABLE device (
  device_id    INTEGER PRIMARY KEY,
  uuid         TEXT NOT NULL,
  model        TEXT NOT NULL,
  num_sms      INTEGER NOT NULL CHECK (num_sms >= 0),
  l2_bytes     INTEGER NOT NULL CHECK (l2_bytes >= 0),
  memory_bytes INTEGER NOT NULL CHECK (memory_bytes >= 0),
  UNIQUE (uuid, model, num_sms, l2_bytes, memory_bytes)
) STRICT;
CREATE INDEX device_by_model ON device (model);

CREATE TABLE toolchain (
  toolchain_id INTEGER PRIMARY KEY,
  nvrtc        TEXT NOT NULL,
  nvrtc_major  INTEGER NOT NULL,
  driver       TEXT NOT NULL,
  generator    TEXT NOT NULL,
  UNIQUE (nvrtc, nvrtc_major, driver, generator)
) STRICT;

-- How a trial was checked and timed; times of different protocols are never compared.
CREATE TABLE protocol (
  protocol_id INTEGER PRIMARY KEY,
  name        TEXT NOT NULL,
  json        TEXT NOT NULL,
  UNIQUE (name, json)
) STRICT;

-- Content-addressed texts: hash of the plain bytes, their number, zstd frame.
CREATE TABLE source_text (
  hash      TEXT NOT NULL PRIMARY KEY CHECK (length(hash) = 32),
  num_bytes INTEGER NOT NULL CHECK (num_bytes >= 0),
  zstd      BLOB NOT NULL
) STRICT;
CREATE TABLE blob (
  hash      TEXT NOT NULL PRIMARY KEY CHECK (length(hash) = 32),
  num_bytes INTEGER NOT NULL CHECK (num_bytes >= 0),
  zstd      BLOB NOT NULL
) STRICT;

-- A config with the text and the launch plan that it gave. `text_hash` is empty once garbage collection took the text.
CREATE TABLE variant (
  variant_id       INTEGER PRIMARY KEY,
  name             TEXT NOT NULL,
  template_name    TEXT NOT NULL,
  config           TEXT NOT NULL,
  arch             TEXT NOT NULL,
  source_hash      TEXT NOT NULL,
  constraints_json TEXT NOT NULL,
  plan_hash        TEXT NOT NULL REFERENCES blob (hash),
  text_hash        TEXT REFERENCES source_text (hash),
  UNIQUE (name, template_name, config, arch, source_hash, plan_hash, constraints_json)
) STRICT;

-- What the compiler made of a variant. key '' : not compiled to the end, only the log is of use.
CREATE TABLE binary (
  binary_id         INTEGER PRIMARY KEY,
  key               TEXT NOT NULL,
  cubin_hash        TEXT REFERENCES blob (hash),
  log_hash          TEXT REFERENCES blob (hash),
  registers         INTEGER NOT NULL,
  spill_store_bytes INTEGER NOT NULL,
  spill_load_bytes  INTEGER NOT NULL,
  stack_bytes       INTEGER NOT NULL,
  static_smem_bytes INTEGER NOT NULL,
  compile_ms        REAL
) STRICT;
CREATE UNIQUE INDEX binary_by_key ON binary (key) WHERE key <> '';

-- One trial of one variant on one problem. REAL columns are NULL where the value is not a number.
CREATE TABLE trial (
  trial_id             INTEGER PRIMARY KEY,
  content_key          TEXT NOT NULL UNIQUE CHECK (length(content_key) = 32),
  problem_id           INTEGER NOT NULL REFERENCES problem (problem_id),
  device_id            INTEGER NOT NULL REFERENCES device (device_id),
  toolchain_id         INTEGER NOT NULL REFERENCES toolchain (toolchain_id),
  protocol_id          INTEGER NOT NULL REFERENCES protocol (protocol_id),
  variant_id           INTEGER NOT NULL REFERENCES variant (variant_id),
  binary_id            INTEGER REFERENCES binary (binary_id),
  unix_time_s          INTEGER NOT NULL,
  status               TEXT NOT NULL CHECK (status IN ('ok', 'predicted', 'refused', 'emit_failed', 'compile_failed', 'compile_crashed',
                         'compile_timeout', 'spills_refused', 'launch_failed', 'out_of_memory', 'wrong_result', 'out_of_bounds', 'hung',
                         'under_floor', 'device_lost')),
  verify_level         TEXT NOT NULL CHECK (verify_level IN ('none', 'simulated', 'device')),
  reason               TEXT NOT NULL,
  predicted_us         REAL,
  samples_us           TEXT NOT NULL,
  median_us            REAL,
  p10_us               REAL,
  p90_us               REAL,
  max_error_over_bound REAL,
  relative_norm_error  REAL,
  is_dirty             INTEGER NOT NULL CHECK (is_dirty IN (0, 1)),
  state_json           TEXT NOT NULL,
  session              TEXT NOT NULL,
  CHECK (status <> 'ok' OR (median_us IS NOT NULL AND median_us > 0))
) STRICT;
CREATE INDEX trial_by_key ON trial (problem_id, variant_id, device_id, toolchain_id, protocol_id, unix_time_s, trial_id);

-- Two trials measured in turn; ratio = time of b / time of a.
CREATE TABLE duel (
  duel_id      INTEGER PRIMARY KEY,
  content_key  TEXT NOT NULL UNIQUE CHECK (length(content_key) = 32),
  trial_a      INTEGER NOT NULL REFERENCES trial (trial_id),
  trial_b      INTEGER NOT NULL REFERENCES trial (trial_id),
  a_us         TEXT NOT NULL,
  b_us         TEXT NOT NULL,
  ratio_median REAL,
  ratio_low    REAL,
  ratio_high   REAL
) STRICT;

-- Configs refused before they became a variant: how many by each rule, with one example.
CREATE TABLE refusal (
  refusal_id    INTEGER PRIMARY KEY,
  problem_id    INTEGER NOT NULL REFERENCES problem (problem_id),
  device_id     INTEGER NOT NULL REFERENCES device (device_id),
  toolchain_id  INTEGER NOT NULL REFERENCES toolchain (toolchain_id),
  protocol_id   INTEGER NOT NULL REFERENCES protocol (protocol_id),
  template_name TEXT NOT NULL,
  rule          TEXT NOT NULL,
  example       TEXT NOT NULL,
  count         INTEGER NOT NULL CHECK (count >= 0),
  unix_time_s   INTEGER NOT NULL,
  UNIQUE (problem_id, device_id, toolchain_id, protocol_id, template_name, rule)
) STRICT;

-- The time of a library's call for a problem, of the best of its algorithms. No trial: it has no variant and no code of ours. Migration
-- 0002_baseline.sql makes the same objects.
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

-- The last trial of each full key; earlier ones stay in the table as history.
CREATE VIEW newest_trial AS
SELECT t.* FROM trial AS t
WHERE NOT EXISTS (
  SELECT 1 FROM trial AS later
  WHERE later.problem_id = t.problem_id AND later.variant_id = t.variant_id AND later.device_id = t.device_id
    AND later.toolchain_id = t.toolchain_id AND later.protocol_id = t.protocol_id
    AND (later.unix_time_s, later.trial_id) > (t.unix_time_s, t.trial_id));

-- A trial with its keys written out: for people with the sqlite3 shell, and for the reader in db/reader.cpp.
CREATE VIEW trial_details AS
SELECT t.trial_id, t.content_key, t.unix_time_s,
       o.op_id, o.identity AS op_identity, (SELECT name FROM op_alias WHERE op_id = o.op_id ORDER BY alias_id LIMIT 1) AS op_name,
       o.canonical_text, p.problem_id, p.dims_text,
       d.device_id, d.uuid AS device_uuid, d.model AS device_model, d.num_sms, d.l2_bytes, d.memory_bytes,
       c.toolchain_id, c.nvrtc, c.nvrtc_major, c.driver, c.generator, r.protocol_id, r.name AS protocol_name, r.json AS protocol_json,
       v.variant_id, v.name AS variant_name, v.template_name, v.config, v.arch, v.source_hash, v.text_hash, v.plan_hash, v.constraints_json,
       t.binary_id, b.key AS binary_key, b.cubin_hash, b.log_hash, b.registers, b.spill_store_bytes, b.spill_load_bytes, b.stack_bytes,
       b.static_smem_bytes, b.compile_ms,
       t.status, t.verify_level, t.reason, t.predicted_us, t.samples_us, t.median_us, t.p10_us, t.p90_us, t.max_error_over_bound,
       t.relative_norm_error, t.is_dirty, t.state_json, t.session
FROM trial AS t
JOIN problem AS p ON p.problem_id = t.problem_id
JOIN op AS o ON o.op_id = p.op_id
JOIN device AS d ON d.device_id = t.device_id
JOIN toolchain AS c ON c.toolchain_id = t.toolchain_id
JOIN protocol AS r ON r.protocol_id = t.protocol_id
JOIN variant AS v ON v.variant_id = t.variant_id
LEFT JOIN binary AS b ON b.binary_id = t.binary_id;

-- Every verified, timed trial with its place within (problem, device model, toolchain major, protocol). Dirty trials take part only
-- where no clean one exists. Times within 1 % of the fastest are a tie: the smaller variant text goes first, so that two
-- databases with the same trials name the same winner. op_id heads each partition so that a filter on it reaches the tables. Only the
-- columns that a look-up asks for: what a view carries, each statement over it pays for.
CREATE VIEW ranked_trial AS
SELECT trial_id, op_id, problem_id, device_id, device_model, nvrtc_major, protocol_id, constraints_json, median_us,
       row_number() OVER (
         PARTITION BY op_id, problem_id, device_model, nvrtc_major, protocol_id
         ORDER BY median_us > fastest_us * 1.01,
                  CASE WHEN median_us > fastest_us * 1.01 THEN median_us END,
                  template_name, config, arch, variant_name, median_us, content_key) AS place
FROM (SELECT *, min(median_us) OVER (PARTITION BY op_id, problem_id, device_model, nvrtc_major, protocol_id) AS fastest_us
      FROM (SELECT n.trial_id, n.problem_id, n.device_id, n.protocol_id, n.median_us, n.is_dirty, n.content_key, p.op_id,
                   d.model AS device_model, c.nvrtc_major, v.template_name, v.config, v.arch, v.name AS variant_name, v.constraints_json,
                   min(n.is_dirty) OVER (PARTITION BY p.op_id, n.problem_id, d.model, c.nvrtc_major, n.protocol_id) AS least_dirty
            FROM newest_trial AS n
            JOIN problem AS p ON p.problem_id = n.problem_id
            JOIN device AS d ON d.device_id = n.device_id
            JOIN toolchain AS c ON c.toolchain_id = n.toolchain_id
            JOIN variant AS v ON v.variant_id = n.variant_id
            WHERE n.status = 'ok' AND n.verify_level = 'device')
      WHERE is_dirty = least_dirty);

CREATE VIEW winner AS
SELECT d.* FROM ranked_trial AS k JOIN trial_details AS d ON d.trial_id = k.trial_id WHERE k.place = 1;

-- The same for what the model predicted where nothing was measured; never mixed with measured rows.
CREATE VIEW ranked_prediction AS
SELECT n.trial_id, p.op_id, n.problem_id, n.device_id, d.model AS device_model, c.nvrtc_major, n.protocol_id, v.constraints_json,
       n.predicted_us,
       row_number() OVER (
         PARTITION BY p.op_id, n.problem_id, d.model, c.nvrtc_major, n.protocol_id
         ORDER BY coalesce(n.predicted_us, 0) <= 0, n.predicted_us, v.template_name, v.config, v.arch, v.name, n.content_key) AS place
FROM newest_trial AS n
JOIN problem AS p ON p.problem_id = n.problem_id
JOIN device AS d ON d.device_id = n.device_id
JOIN toolchain AS c ON c.toolchain_id = n.toolchain_id
JOIN variant AS v ON v.variant_id = n.variant_id
WHERE n.status = 'predicted';

CREATE VIEW predicted_best AS
SELECT d.* FROM ranked_prediction AS k JOIN trial_details AS d ON d.trial_id = k.trial_id WHERE k.place = 1;
