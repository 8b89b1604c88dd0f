-- Garbage collection: takes cubins, logs and sources from losers. A trial keeps its texts when it is among the best `keep_best` of its
-- group, or not older than `oldest_s` (both from temp.collect_limit, filled by db/maintenance.cpp). The first of a group, measured or
-- predicted, is no loser: it always stays. Rows, launch plans and
-- times stay, baselines too: the history of a search is small, its artefacts are not.
-- SPDX-License-Identifier: Apache-2.0

CREATE TEMP TABLE kept_trial AS
SELECT trial_id FROM main.trial, temp.collect_limit WHERE unix_time_s >= oldest_s
UNION
SELECT trial_id FROM main.ranked_trial, temp.collect_limit WHERE place <= max(keep_best, 1)
UNION
SELECT trial_id FROM main.ranked_prediction, temp.collect_limit WHERE place <= max(keep_best, 1);

UPDATE main.binary SET cubin_hash = NULL, log_hash = NULL
WHERE (cubin_hash IS NOT NULL OR log_hash IS NOT NULL)
  AND binary_id NOT IN (SELECT binary_id FROM main.trial JOIN temp.kept_trial USING (trial_id) WHERE binary_id IS NOT NULL);
UPDATE main.variant SET text_hash = NULL
WHERE text_hash IS NOT NULL
  AND variant_id NOT IN (SELECT variant_id FROM main.trial JOIN temp.kept_trial USING (trial_id));

CREATE TEMP TABLE loose_source AS
SELECT hash, length(zstd) AS stored_bytes FROM main.source_text
WHERE hash NOT IN (SELECT text_hash FROM main.variant WHERE text_hash IS NOT NULL);
CREATE TEMP TABLE loose_blob AS
SELECT hash, length(zstd) AS stored_bytes FROM main.blob
WHERE hash NOT IN (SELECT plan_hash FROM main.variant
                   UNION SELECT cubin_hash FROM main.binary WHERE cubin_hash IS NOT NULL
                   UNION SELECT log_hash FROM main.binary WHERE log_hash IS NOT NULL);
DELETE FROM main.source_text WHERE hash IN (SELECT hash FROM temp.loose_source);
DELETE FROM main.blob WHERE hash IN (SELECT hash FROM temp.loose_blob);
DROP TABLE temp.kept_trial;
