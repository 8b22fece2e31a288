-- Reads of findings, stores and rules.

-- piece: finding
SELECT f.id, f.dispensary_id, d.name AS store, d.platform, d.state, f.measure, f.direction, f.severity, f.opened_at, f.seen_at, f.crawls,
       f.value, f.expected, f.low, f.high, f.scope, f.scope_key, f.scope_affected, f.scope_stores, f.release_changed, f.rule_id,
       f.closed_at, f.outcome
  FROM quality_findings f JOIN dispensaries d ON d.id = f.dispensary_id

-- name: list_findings
{finding}
 WHERE (%(status)s = 'all' OR (f.closed_at IS NULL) = (%(status)s = 'open'))
   AND (%(severity)s::text[] IS NULL OR f.severity = ANY (%(severity)s))
   AND (%(scope)s::text IS NULL OR f.scope = %(scope)s)
   AND (%(measure)s::text IS NULL OR f.measure = %(measure)s OR starts_with(f.measure, %(measure)s || '.'))
   AND (%(platform)s::text IS NULL OR d.platform = %(platform)s)
   AND (%(state)s::text IS NULL OR d.state = %(state)s)
   AND (%(store)s::int[] IS NULL OR f.dispensary_id = ANY (%(store)s))
   AND (%(before_at)s::timestamptz IS NULL OR (f.opened_at, f.id) < (%(before_at)s, %(before_id)s))
 ORDER BY f.opened_at DESC, f.id DESC LIMIT %(limit)s;

-- name: get_finding
{finding}
 WHERE f.id = %(id)s;

-- name: summary
-- `checked`: stores that were measured; `scored` of these have a score.
SELECT (SELECT count(*) FROM quality_stores) AS checked, (SELECT count(score) FROM quality_stores) AS scored,
       (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY score) FROM quality_stores) AS median_score,
       (SELECT max(checked_at) FROM quality_measures) AS checked_at,
       count(*) FILTER (WHERE severity = 'critical') AS critical, count(*) FILTER (WHERE severity = 'warning') AS warning,
       count(*) FILTER (WHERE severity = 'info') AS info
  FROM quality_findings WHERE closed_at IS NULL;

-- piece: store
SELECT d.id AS dispensary_id, d.name AS store, d.platform, d.state, q.crawled_at, q.score,
       CASE WHEN q.dispensary_id IS NULL THEN 'no menu measured yet' ELSE q.reason END AS reason, q.completeness,
       coalesce(q.crawls, 0) AS crawls, coalesce(f.critical, 0) AS critical, coalesce(f.warning, 0) AS warning,
       coalesce(f.info, 0) AS info, t.name AS point_of_sale, q.bands
  FROM dispensaries d
  LEFT JOIN quality_stores q ON q.dispensary_id = d.id
  LEFT JOIN quality_points_of_sale t ON t.dispensary_id = d.id
  LEFT JOIN LATERAL (
    SELECT count(*) FILTER (WHERE f.severity = 'critical') AS critical, count(*) FILTER (WHERE f.severity = 'warning') AS warning,
           count(*) FILTER (WHERE f.severity = 'info') AS info
      FROM quality_findings f WHERE f.dispensary_id = d.id AND f.closed_at IS NULL) f ON true

-- name: list_stores
-- The worst first; stores without a score last. `after_score` 101 is behind all that have one.
{store}
 WHERE (q.dispensary_id IS NOT NULL OR d.crawl_enabled)
   AND (%(platform)s::text IS NULL OR d.platform = %(platform)s) AND (%(state)s::text IS NULL OR d.state = %(state)s)
   AND (%(after_score)s::int IS NULL OR (coalesce(q.score, 101), d.id) > (%(after_score)s, %(after_id)s))
 ORDER BY coalesce(q.score, 101), d.id LIMIT %(limit)s;

-- name: get_store
{store}
 WHERE d.id = %(id)s;

-- name: list_words
SELECT w.platform, w.word, w.category, w.dispensary_id, d.name AS store, w.first_seen_at, w.is_event
  FROM quality_category_words w LEFT JOIN dispensaries d ON d.id = w.dispensary_id
 WHERE (%(platform)s::text IS NULL OR w.platform = %(platform)s) AND (NOT %(events)s OR w.is_event) AND (NOT %(unknown)s OR w.category IS NULL)
   AND (%(before_at)s::timestamptz IS NULL OR (w.first_seen_at, w.platform, w.word) < (%(before_at)s, %(before_platform)s::text, %(before_word)s::text))
 ORDER BY w.first_seen_at DESC, w.platform DESC, w.word DESC LIMIT %(limit)s;

-- name: count_new_words
SELECT count(*) AS n FROM quality_category_words WHERE is_event AND first_seen_at > now() - interval '1 day';

-- name: list_rules
SELECT r.id, r.measure, r.condition, r.amount, r.severity, r.platform, r.dispensary_id, d.name AS store, r.note, r.created_by, r.created_at,
       (SELECT count(*) FROM quality_findings f WHERE f.rule_id = r.id AND f.closed_at IS NULL) AS open_findings
  FROM quality_rules r LEFT JOIN dispensaries d ON d.id = r.dispensary_id
 WHERE (%(id)s::int IS NULL OR r.id = %(id)s) ORDER BY r.id;

-- name: add_rule
INSERT INTO quality_rules (measure, condition, amount, severity, platform, dispensary_id, note, created_by)
VALUES (%(measure)s, %(condition)s, %(amount)s, %(severity)s, %(platform)s, %(dispensary_id)s, %(note)s, %(created_by)s) RETURNING id;

-- name: remove_rule
DELETE FROM quality_rules WHERE id = %(id)s;

-- name: store_exists
SELECT id FROM dispensaries WHERE id = %(id)s;

-- name: put_point_of_sale
INSERT INTO quality_points_of_sale (dispensary_id, name) VALUES (%(id)s, %(name)s)
ON CONFLICT (dispensary_id) DO UPDATE SET name = excluded.name;

-- name: remove_point_of_sale
DELETE FROM quality_points_of_sale WHERE dispensary_id = %(id)s;
