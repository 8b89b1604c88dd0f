-- Copies every row of the attached database `other` that is not in `main`. Rows are matched by their natural keys; trials, duels
-- and baselines by content_key, so a second run adds nothing. Runs inside one write transaction (db/merge.cpp).
-- Temporary maps give our id for each of their ids.
-- SPDX-License-Identifier: Apache-2.0

INSERT INTO main.op (identity, canonical_text, spec_json)
SELECT identity, canonical_text, spec_json FROM other.op WHERE true ORDER BY op_id ON CONFLICT DO NOTHING;
CREATE TEMP TABLE op_map AS
SELECT t.op_id AS theirs, m.op_id AS ours FROM other.op AS t JOIN main.op AS m ON m.identity = t.identity;
INSERT INTO main.op_alias (op_id, name)
SELECT x.ours, a.name FROM other.op_alias AS a JOIN temp.op_map AS x ON x.theirs = a.op_id WHERE true ORDER BY a.alias_id ON CONFLICT DO NOTHING;

INSERT INTO main.problem (op_id, dims_text)
SELECT x.ours, p.dims_text FROM other.problem AS p JOIN temp.op_map AS x ON x.theirs = p.op_id WHERE true ORDER BY p.problem_id
ON CONFLICT DO NOTHING;
CREATE TEMP TABLE problem_map AS
SELECT t.problem_id AS theirs, m.problem_id AS ours FROM other.problem AS t JOIN temp.op_map AS x ON x.theirs = t.op_id
JOIN main.problem AS m ON m.op_id = x.ours AND m.dims_text = t.dims_text;

INSERT INTO main.device (uuid, model, num_sms, l2_bytes, memory_bytes)
SELECT uuid, model, num_sms, l2_bytes, memory_bytes FROM other.device WHERE true ORDER BY device_id ON CONFLICT DO NOTHING;
CREATE TEMP TABLE device_map AS
SELECT t.device_id AS theirs, m.device_id AS ours FROM other.device AS t JOIN main.device AS m
ON m.uuid = t.uuid AND m.model = t.model AND m.num_sms = t.num_sms AND m.l2_bytes = t.l2_bytes AND m.memory_bytes = t.memory_bytes;

INSERT INTO main.toolchain (nvrtc, nvrtc_major, driver, generator)
SELECT nvrtc, nvrtc_major, driver, generator FROM other.toolchain WHERE true ORDER BY toolchain_id ON CONFLICT DO NOTHING;
CREATE TEMP TABLE toolchain_map AS
SELECT t.toolchain_id AS theirs, m.toolchain_id AS ours FROM other.toolchain AS t JOIN main.toolchain AS m
ON m.nvrtc = t.nvrtc AND m.nvrtc_major = t.nvrtc_major AND m.driver = t.driver AND m.generator = t.generator;

INSERT INTO main.protocol (name, json) SELECT name, json FROM other.protocol WHERE true ORDER BY protocol_id ON CONFLICT DO NOTHING;
CREATE TEMP TABLE protocol_map AS
SELECT t.protocol_id AS theirs, m.protocol_id AS ours FROM other.protocol AS t JOIN main.protocol AS m ON m.name = t.name AND m.json = t.json;

INSERT INTO main.source_text (hash, num_bytes, zstd) SELECT hash, num_bytes, zstd FROM other.source_text WHERE true ON CONFLICT DO NOTHING;
INSERT INTO main.blob (hash, num_bytes, zstd) SELECT hash, num_bytes, zstd FROM other.blob WHERE true ON CONFLICT DO NOTHING;

INSERT INTO main.variant (name, template_name, config, arch, source_hash, constraints_json, plan_hash, text_hash)
SELECT name, template_name, config, arch, source_hash, constraints_json, plan_hash, text_hash FROM other.variant WHERE true ORDER BY variant_id
ON CONFLICT DO NOTHING;
CREATE TEMP TABLE variant_map AS
SELECT t.variant_id AS theirs, m.variant_id AS ours, t.text_hash FROM other.variant AS t JOIN main.variant AS m
ON m.name = t.name AND m.template_name = t.template_name AND m.config = t.config AND m.arch = t.arch AND m.source_hash = t.source_hash
  AND m.plan_hash = t.plan_hash AND m.constraints_json = t.constraints_json;
-- Their text comes back where our garbage collection took it.
UPDATE main.variant SET text_hash = x.text_hash FROM temp.variant_map AS x
WHERE x.ours = main.variant.variant_id AND main.variant.text_hash IS NULL AND x.text_hash IS NOT NULL;

INSERT INTO main.binary (key, cubin_hash, log_hash, registers, spill_store_bytes, spill_load_bytes, stack_bytes, static_smem_bytes, compile_ms)
SELECT key, cubin_hash, log_hash, registers, spill_store_bytes, spill_load_bytes, stack_bytes, static_smem_bytes, compile_ms
FROM other.binary WHERE key <> '' ORDER BY binary_id ON CONFLICT DO NOTHING;
CREATE TEMP TABLE binary_map AS
SELECT t.binary_id AS theirs, m.binary_id AS ours, t.cubin_hash, t.log_hash FROM other.binary AS t JOIN main.binary AS m ON m.key = t.key
WHERE t.key <> '' AND m.key <> '';  -- the second term lets the partial index serve
UPDATE main.binary SET cubin_hash = coalesce(main.binary.cubin_hash, x.cubin_hash), log_hash = coalesce(main.binary.log_hash, x.log_hash)
FROM temp.binary_map AS x WHERE x.ours = main.binary.binary_id AND (main.binary.cubin_hash IS NULL OR main.binary.log_hash IS NULL);
-- Binaries without a key (a compile that failed) belong to one trial: they come only with a trial that is new here.
INSERT INTO temp.binary_map (theirs, ours, cubin_hash, log_hash)
SELECT b.binary_id, (SELECT coalesce(max(binary_id), 0) FROM main.binary) + row_number() OVER (ORDER BY b.binary_id), b.cubin_hash, b.log_hash
FROM other.binary AS b
WHERE b.key = '' AND b.binary_id IN (
  SELECT t.binary_id FROM other.trial AS t WHERE NOT EXISTS (SELECT 1 FROM main.trial AS m WHERE m.content_key = t.content_key));
INSERT INTO main.binary (binary_id, key, cubin_hash, log_hash, registers, spill_store_bytes, spill_load_bytes, stack_bytes, static_smem_bytes,
                         compile_ms)
SELECT x.ours, b.key, b.cubin_hash, b.log_hash, b.registers, b.spill_store_bytes, b.spill_load_bytes, b.stack_bytes, b.static_smem_bytes, b.compile_ms
FROM other.binary AS b JOIN temp.binary_map AS x ON x.theirs = b.binary_id WHERE b.key = '';

INSERT INTO main.trial (content_key, problem_id, device_id, toolchain_id, protocol_id, variant_id, binary_id, unix_time_s, status, verify_level,
                        reason, predicted_us, samples_us, median_us, p10_us, p90_us, max_error_over_bound, relative_norm_error, is_dirty,
                        state_json, session)
SELECT t.content_key, p.ours, d.ours, c.ours, r.ours, v.ours, b.ours, t.unix_time_s, t.status, t.verify_level, t.reason, t.predicted_us,
       t.samples_us, t.median_us, t.p10_us, t.p90_us, t.max_error_over_bound, t.relative_norm_error, t.is_dirty, t.state_json, t.session
FROM other.trial AS t
JOIN temp.problem_map AS p ON p.theirs = t.problem_id
JOIN temp.device_map AS d ON d.theirs = t.device_id
JOIN temp.toolchain_map AS c ON c.theirs = t.toolchain_id
JOIN temp.protocol_map AS r ON r.theirs = t.protocol_id
JOIN temp.variant_map AS v ON v.theirs = t.variant_id
LEFT JOIN temp.binary_map AS b ON b.theirs = t.binary_id
WHERE true ORDER BY t.trial_id ON CONFLICT (content_key) DO NOTHING;

INSERT INTO main.duel (content_key, trial_a, trial_b, a_us, b_us, ratio_median, ratio_low, ratio_high)
SELECT u.content_key, ma.trial_id, mb.trial_id, u.a_us, u.b_us, u.ratio_median, u.ratio_low, u.ratio_high
FROM other.duel AS u
JOIN other.trial AS ta ON ta.trial_id = u.trial_a
JOIN other.trial AS tb ON tb.trial_id = u.trial_b
JOIN main.trial AS ma ON ma.content_key = ta.content_key
JOIN main.trial AS mb ON mb.content_key = tb.content_key
WHERE true ORDER BY u.duel_id ON CONFLICT (content_key) DO NOTHING;

INSERT INTO main.refusal (problem_id, device_id, toolchain_id, protocol_id, template_name, rule, example, count, unix_time_s)
SELECT p.ours, d.ours, c.ours, r.ours, f.template_name, f.rule, f.example, f.count, f.unix_time_s
FROM other.refusal AS f
JOIN temp.problem_map AS p ON p.theirs = f.problem_id
JOIN temp.device_map AS d ON d.theirs = f.device_id
JOIN temp.toolchain_map AS c ON c.theirs = f.toolchain_id
JOIN temp.protocol_map AS r ON r.theirs = f.protocol_id
WHERE true ORDER BY f.refusal_id
ON CONFLICT (problem_id, device_id, toolchain_id, protocol_id, template_name, rule)
DO UPDATE SET example = excluded.example, count = excluded.count, unix_time_s = excluded.unix_time_s
WHERE excluded.unix_time_s > refusal.unix_time_s;

INSERT INTO main.baseline (content_key, problem_id, device_id, protocol_id, driver, library, library_version, unix_time_s, algorithm, num_tried,
                           num_right, samples_us, median_us, p10_us, p90_us, max_error_over_bound, relative_norm_error, is_dirty, state_json,
                           session)
SELECT b.content_key, p.ours, d.ours, r.ours, b.driver, b.library, b.library_version, b.unix_time_s, b.algorithm, b.num_tried, b.num_right,
       b.samples_us, b.median_us, b.p10_us, b.p90_us, b.max_error_over_bound, b.relative_norm_error, b.is_dirty, b.state_json, b.session
FROM other.baseline AS b
JOIN temp.problem_map AS p ON p.theirs = b.problem_id
JOIN temp.device_map AS d ON d.theirs = b.device_id
JOIN temp.protocol_map AS r ON r.theirs = b.protocol_id
WHERE true ORDER BY b.baseline_id ON CONFLICT (content_key) DO NOTHING;

DROP TABLE temp.op_map;
DROP TABLE temp.problem_map;
DROP TABLE temp.device_map;
DROP TABLE temp.toolchain_map;
DROP TABLE temp.protocol_map;
DROP TABLE temp.variant_map;
DROP TABLE temp.binary_map;
