-- Version 3: the views that rank trials carry only what a look-up asks for (see schema.sql). No row changes.
-- SPDX-License-Identifier: Apache-2.0

DROP VIEW winner;
DROP VIEW predicted_best;
DROP VIEW ranked_trial;
DROP VIEW ranked_prediction;

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
