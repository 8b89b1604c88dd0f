-- A database of schema version 2 as its own version wrote it: version_1.sql, brought up to date by it (`.dump` of sqlite3, then the two marks
-- of the file). Read by tests/db/schema_test.cpp; never changed by hand.
-- SPDX-License-Identifier: Apache-2.0
BEGIN TRANSACTION;
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
INSERT INTO binary VALUES(1,'binary 1','3c5cb0be7bd32e40119e5ef6e91b79ba','94a587f7c3011558ea07acf35c92dc23',96,0,4,8,49152,812.5);
INSERT INTO binary VALUES(2,'binary 2','cf879af3290d1eec8d7798db26bdb743','1397eaa1030e7d8aa2ddcb862c85b76b',96,0,4,8,49152,812.5);
INSERT INTO binary VALUES(3,'',NULL,'d039609339258cfd91dc80c9ecf6aa1f',0,0,0,0,0,0.0);
CREATE TABLE blob (
  hash      TEXT NOT NULL PRIMARY KEY CHECK (length(hash) = 32),
  num_bytes INTEGER NOT NULL CHECK (num_bytes >= 0),
  zstd      BLOB NOT NULL
) STRICT;
INSERT INTO blob VALUES('36c19e2aebd9de62961a1ecedba752df',16,X'28b52ffd20108100007b226c61756e63686573223a5b315d7d');
INSERT INTO blob VALUES('3c5cb0be7bd32e40119e5ef6e91b79ba',6,X'28b52ffd20063100007f454c460031');
INSERT INTO blob VALUES('94a587f7c3011558ea07acf35c92dc23',13,X'28b52ffd200d690000707478617320696e666f3a2031');
INSERT INTO blob VALUES('a10a3fd95276462632229d1f5000a337',16,X'28b52ffd20108100007b226c61756e63686573223a5b325d7d');
INSERT INTO blob VALUES('cf879af3290d1eec8d7798db26bdb743',6,X'28b52ffd20063100007f454c460032');
INSERT INTO blob VALUES('1397eaa1030e7d8aa2ddcb862c85b76b',13,X'28b52ffd200d690000707478617320696e666f3a2032');
INSERT INTO blob VALUES('e04539d225daeb522c29ce5012242fa0',16,X'28b52ffd20108100007b226c61756e63686573223a5b335d7d');
INSERT INTO blob VALUES('d039609339258cfd91dc80c9ecf6aa1f',13,X'28b52ffd200d6900006572726f723a206c696e652033');
CREATE TABLE device (
  device_id    INTEGER PRIMARY KEY,
  uuid         TEXT NOT NULL,
  model        TEXT NOT NULL,
  num_sms      INTEGER NOT NULL CHECK (num_sms >= 0),
  l2_bytes     INTEGER NOT NULL CHECK (l2_bytes >= 0),
  memory_bytes INTEGER NOT NULL CHECK (memory_bytes >= 0),
  UNIQUE (uuid, model, num_sms, l2_bytes, memory_bytes)
) STRICT;
INSERT INTO device VALUES(1,'GPU-1','NVIDIA H200',132,52428800,151397597184);
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
INSERT INTO duel VALUES(1,'0fba29787ba3fd6ceaa9e43e1a003456',1,2,'[1]','[2]',2.0,1.5,2.5);
CREATE TABLE op (
  op_id          INTEGER PRIMARY KEY,
  identity       TEXT NOT NULL UNIQUE CHECK (length(identity) > 0),
  canonical_text TEXT NOT NULL,
  spec_json      TEXT NOT NULL
) STRICT;
INSERT INTO op VALUES(1,'ed7ff034a77a18b5784e8c040ba19055','acc[m,n] = sum[k](A[m,k] * B[n,k])','');
CREATE TABLE op_alias (
  alias_id INTEGER PRIMARY KEY,
  op_id    INTEGER NOT NULL REFERENCES op (op_id),
  name     TEXT NOT NULL,
  UNIQUE (op_id, name)
) STRICT;
INSERT INTO op_alias VALUES(1,1,'matmul_bias_relu');
CREATE TABLE problem (
  problem_id INTEGER PRIMARY KEY,
  op_id      INTEGER NOT NULL REFERENCES op (op_id),
  dims_text  TEXT NOT NULL,
  UNIQUE (op_id, dims_text)
) STRICT;
INSERT INTO problem VALUES(1,1,'K=4096,M=1024,N=4096');
CREATE TABLE protocol (
  protocol_id INTEGER PRIMARY KEY,
  name        TEXT NOT NULL,
  json        TEXT NOT NULL,
  UNIQUE (name, json)
) STRICT;
INSERT INTO protocol VALUES(1,'v1-cold','{"version":1}');
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
INSERT INTO refusal VALUES(1,1,1,1,1,'gemm_simt','smem_fits','needs 1',4,1796027665);
CREATE TABLE source_text (
  hash      TEXT NOT NULL PRIMARY KEY CHECK (length(hash) = 32),
  num_bytes INTEGER NOT NULL CHECK (num_bytes >= 0),
  zstd      BLOB NOT NULL
) STRICT;
INSERT INTO source_text VALUES('89f29ed4370332505b5296ceccde3f54',55,X'28b52ffd2037b901002f2f2076617269616e7420310a65787465726e20224322205f5f676c6f62616c5f5f20766f69642067656d6d5f73696d742829207b7d0a');
INSERT INTO source_text VALUES('2d27edb6240dff1f08b08e66246f10a1',55,X'28b52ffd2037b901002f2f2076617269616e7420320a65787465726e20224322205f5f676c6f62616c5f5f20766f69642067656d6d5f73696d742829207b7d0a');
INSERT INTO source_text VALUES('6198e6dd9571185b537350d36b67bafc',55,X'28b52ffd2037b901002f2f2076617269616e7420330a65787465726e20224322205f5f676c6f62616c5f5f20766f69642067656d6d5f73696d742829207b7d0a');
CREATE TABLE toolchain (
  toolchain_id INTEGER PRIMARY KEY,
  nvrtc        TEXT NOT NULL,
  nvrtc_major  INTEGER NOT NULL,
  driver       TEXT NOT NULL,
  generator    TEXT NOT NULL,
  UNIQUE (nvrtc, nvrtc_major, driver, generator)
) STRICT;
INSERT INTO toolchain VALUES(1,'12.9',12,'570.1','0.1.0');
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
INSERT INTO trial VALUES(1,'36a8679b7c4df2498c616dc5f96bf21f',1,1,1,1,1,1,1700000000,'ok','device','checked',11.25,'[12.5,12.625,0.30000000000000004]',12.5,12.374999999999999999,12.749999999999999999,0.25,0.00010000000000000000479,0,'{"sm_clock_mhz":1980}','kernelwright tune x.op.toml');
INSERT INTO trial VALUES(2,'70ea3d1009eab6fdde6628a3ba401ff4',1,1,1,1,2,2,1700000000,'ok','device','checked',11.25,'[13,13.13,0.30000000000000004]',13.0,12.869999999999999218,13.259999999999999787,0.25,0.00010000000000000000479,0,'{"sm_clock_mhz":1980}','kernelwright tune x.op.toml');
INSERT INTO trial VALUES(3,'10166b61eb17cb837d2b0e7b2bf89778',1,1,1,1,3,3,1700000000,'compile_failed','none','checked',11.25,'[0,0,0.30000000000000004]',0.0,0.0,0.0,0.25,0.00010000000000000000479,0,'{"sm_clock_mhz":1980}','kernelwright tune x.op.toml');
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
INSERT INTO variant VALUES(1,'gemm_simt__m1','gemm_simt','BLOCK_M=1','sm_90','89f29ed4370332505b5296ceccde3f54','[{"name":"k_divisible"}]','36c19e2aebd9de62961a1ecedba752df','89f29ed4370332505b5296ceccde3f54');
INSERT INTO variant VALUES(2,'gemm_simt__m2','gemm_simt','BLOCK_M=2','sm_90','2d27edb6240dff1f08b08e66246f10a1','[{"name":"k_divisible"}]','a10a3fd95276462632229d1f5000a337','2d27edb6240dff1f08b08e66246f10a1');
INSERT INTO variant VALUES(3,'gemm_simt__m3','gemm_simt','BLOCK_M=3','sm_90','6198e6dd9571185b537350d36b67bafc','[{"name":"k_divisible"}]','e04539d225daeb522c29ce5012242fa0','6198e6dd9571185b537350d36b67bafc');
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
CREATE INDEX op_alias_by_name ON op_alias (name);
CREATE INDEX device_by_model ON device (model);
CREATE UNIQUE INDEX binary_by_key ON binary (key) WHERE key <> '';
CREATE INDEX trial_by_key ON trial (problem_id, variant_id, device_id, toolchain_id, protocol_id, unix_time_s, trial_id);
CREATE VIEW newest_trial AS
SELECT t.* FROM trial AS t
WHERE NOT EXISTS (
  SELECT 1 FROM trial AS later
  WHERE later.problem_id = t.problem_id AND later.variant_id = t.variant_id AND later.device_id = t.device_id
    AND later.toolchain_id = t.toolchain_id AND later.protocol_id = t.protocol_id
    AND (later.unix_time_s, later.trial_id) > (t.unix_time_s, t.trial_id));
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
CREATE VIEW ranked_trial AS
SELECT *, row_number() OVER (
         PARTITION BY op_id, problem_id, device_model, nvrtc_major, protocol_id
         ORDER BY median_us > fastest_us * 1.01,
                  CASE WHEN median_us > fastest_us * 1.01 THEN median_us END,
                  template_name, config, arch, variant_name, median_us, content_key) AS place
FROM (SELECT *, min(median_us) OVER (PARTITION BY op_id, problem_id, device_model, nvrtc_major, protocol_id) AS fastest_us
      FROM (SELECT n.*, p.op_id, d.model AS device_model, c.nvrtc_major, v.template_name, v.config, v.arch, v.name AS variant_name,
                   v.constraints_json,
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
CREATE VIEW ranked_prediction AS
SELECT n.*, p.op_id, d.model AS device_model, c.nvrtc_major, v.constraints_json,
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
CREATE INDEX baseline_by_key ON baseline (problem_id, device_id, protocol_id, library, library_version, driver, unix_time_s);
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
COMMIT;
PRAGMA application_id = 1264018530;
PRAGMA user_version = 2;
