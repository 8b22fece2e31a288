-- Measures of the menus that were applied, or quarantined, since the last look; measures.py says what they mean.

-- name: take_lock
SELECT pg_try_advisory_lock(hashtext('quality_check'));

-- name: free_lock
SELECT pg_advisory_unlock(hashtext('quality_check'));

-- name: measure_menus
-- The newest menu of each store, if it is not measured yet. One snapshot: a crawl and the products that it left. Where two menus were
-- applied between two looks, the first one has no row, and changes are those since the menu that was measured before (`since`).
WITH due AS MATERIALIZED (
  SELECT d.id, d.platform, d.last_crawled_at AS crawled_at, f.crawled_at AS since,
         coalesce((f.values ->> 'level.price')::double precision, 1) AS price_level,
         coalesce((f.values ->> 'level.thc')::double precision, 1) AS thc_level
    FROM dispensaries d
    JOIN store_crawls c ON c.dispensary_id = d.id AND c.crawled_at = d.last_crawled_at
    LEFT JOIN LATERAL (
      SELECT m.crawled_at, m.values FROM quality_measures m
       WHERE m.dispensary_id = d.id AND m.crawled_at < d.last_crawled_at AND NOT m.is_quarantined
       ORDER BY m.crawled_at DESC LIMIT 1) f ON true
   WHERE NOT EXISTS (SELECT FROM quality_measures m WHERE m.dispensary_id = d.id AND m.crawled_at = d.last_crawled_at)
   ORDER BY d.last_crawled_at LIMIT %(most)s)
INSERT INTO quality_measures (dispensary_id, crawled_at, platform, release, values)
SELECT d.id, d.crawled_at, d.platform, coalesce(%(releases)s::jsonb ->> d.platform, %(version)s),
       (SELECT jsonb_object_agg(v.name, round(v.value::numeric, 6)) FROM (
          SELECT f.name, f.value FROM (VALUES
            ('products', t.products::double precision),
            ('lost', CASE WHEN d.since IS NOT NULL THEN t.lost / nullif(t.products + t.lost, 0)::double precision END),
            ('new', CASE WHEN d.since IS NOT NULL THEN t.new_share END),
            ('changed.price', CASE WHEN d.since IS NOT NULL THEN t.price_changes END),
            ('changed.stock', CASE WHEN d.since IS NOT NULL THEN t.stock_changes END),
            -- Chained: what is new or gone does not move it. Kept within what a double can say, whatever a menu claims.
            ('level.price', least(greatest(d.price_level * exp(coalesce(t.price_move, 0)), 1e-6), 1e6)),
            ('level.thc', least(greatest(d.thc_level * exp(coalesce(t.thc_move, 0)), 1e-6), 1e6)),
            ('null.price', t.no_price), ('null.stock', t.no_stock), ('null.brand', t.no_brand), ('null.category', t.no_category),
            ('null.strain', t.no_strain), ('null.thc', t.no_thc), ('null.cbd', t.no_cbd), ('null.quantity', t.no_quantity),
            ('null.image', t.no_image), ('null.description', t.no_description), ('null.weight', t.no_weight),
            ('stock.oos', t.oos), ('special', t.special)) f(name, value)
          UNION ALL
          SELECT k.name, k.value FROM jsonb_to_recordset(t.parts) k(name text, value double precision)
        ) v WHERE v.value IS NOT NULL)
  FROM due d
 CROSS JOIN LATERAL (
   WITH was AS MATERIALIZED (
     -- What products were on the menu before, if they changed since.
     SELECT DISTINCT ON (h.product_id) h.product_id, h.present, coalesce(h.price_rec, h.price_med) AS price, h.stock_status, h.thc_lo, h.thc_unit
       FROM product_history h
      WHERE h.dispensary_id = d.id AND h.ended_at > d.since AND h.ended_at <= d.crawled_at ORDER BY h.product_id, h.ended_at),
   menu AS MATERIALIZED (
     SELECT p.last_seen_at IS NULL AND p.consecutive_misses = 0 AS listed, p.consecutive_misses,
            p.first_seen_at > d.since AS is_new, coalesce(p.price_rec, p.price_med) AS regular,
            effective_price(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special) AS price,
            on_special(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special) AS special,
            p.stock_status, p.brand_name, p.category_canon, p.strain_canon, p.thc_lo, p.thc_unit, p.cbd_lo, p.quantity, p.image_url,
            p.description, p.status_raw, p.variants @? '$[*].weight_g ? (@ != null)' AS has_weight,
            w.product_id IS NOT NULL AND w.present AS is_changed, p.first_seen_at <= d.since AND coalesce(w.present, true) AS is_known,
            w.price AS price_was, w.stock_status AS stock_was, w.thc_lo AS thc_was, w.thc_unit AS unit_was
       FROM catalog_products p LEFT JOIN was w ON w.product_id = p.id
      WHERE p.dispensary_id = d.id AND p.consecutive_misses <= 1),
   listed AS MATERIALIZED (
     SELECT m.*, count(*) OVER () AS menu_size,
            CASE WHEN NOT m.is_known OR (m.regular > 0) IS NOT TRUE THEN NULL WHEN NOT m.is_changed THEN 0
                 WHEN m.price_was > 0 THEN least(greatest(ln(m.regular / m.price_was), -ln(4.0)), ln(4.0)) END AS price_move,
            CASE WHEN NOT m.is_known OR (m.thc_lo > 0) IS NOT TRUE THEN NULL WHEN NOT m.is_changed THEN 0
                 WHEN m.thc_was > 0 AND m.unit_was = m.thc_unit THEN least(greatest(ln(m.thc_lo / m.thc_was), -ln(4.0)), ln(4.0)) END AS thc_move
       FROM menu m WHERE m.listed)
   SELECT count(*) AS products,
          (SELECT count(*) FROM menu m WHERE NOT m.listed AND m.consecutive_misses = 1) AS lost,
          avg(m.is_new::int) AS new_share,
          avg((m.is_changed AND coalesce(m.regular <> m.price_was, false))::int) AS price_changes,
          avg((m.is_changed AND m.stock_status <> m.stock_was)::int) AS stock_changes,
          avg(m.price_move) AS price_move, avg(m.thc_move) AS thc_move,
          avg((m.price IS NULL)::int) AS no_price,
          avg((m.stock_status = 'unknown')::int) AS no_stock,
          avg((m.brand_name IS NULL)::int) AS no_brand,
          avg((m.category_canon IS NULL)::int) AS no_category,
          avg((m.strain_canon IS NULL)::int) AS no_strain,
          avg((m.thc_lo IS NULL)::int) AS no_thc,
          avg((m.cbd_lo IS NULL)::int) AS no_cbd,
          avg((m.quantity IS NULL)::int) AS no_quantity,
          avg((m.image_url IS NULL)::int) AS no_image,
          avg((coalesce(m.description, '') = '')::int) AS no_description,
          avg((NOT m.has_weight)::int) AS no_weight,
          avg((m.stock_status = 'oos')::int) AS oos,
          avg(m.special::int) AS special,
          (SELECT coalesce(jsonb_agg(to_jsonb(k)), '[]') FROM (
             SELECT v.name, v.value
               FROM (SELECT k.category_canon AS category, count(*) / min(k.menu_size)::double precision AS share,
                            -- A median of few products says little: there is none of fewer than ten.
                            CASE WHEN count(*) FILTER (WHERE k.price > 0) >= 10
                                 THEN percentile_cont(0.5) WITHIN GROUP (ORDER BY k.price::double precision)
                                        FILTER (WHERE k.price > 0) END AS price,
                            CASE WHEN count(*) FILTER (WHERE k.thc_unit = '%%' AND k.thc_lo > 0) >= 10
                                 THEN percentile_cont(0.5) WITHIN GROUP (ORDER BY k.thc_lo::double precision)
                                        FILTER (WHERE k.thc_unit = '%%' AND k.thc_lo > 0) END AS thc
                       FROM listed k WHERE k.category_canon IS NOT NULL GROUP BY 1) c
              CROSS JOIN LATERAL (VALUES ('category.' || c.category, c.share), ('price.' || c.category, c.price),
                                         ('thc.' || c.category, c.thc)) v(name, value)
              WHERE v.value IS NOT NULL
             UNION ALL
             SELECT 'unit.' || k.thc_unit, count(*)::double precision / sum(count(*)) OVER ()
               FROM listed k WHERE k.thc_lo IS NOT NULL AND k.thc_unit IS NOT NULL GROUP BY k.thc_unit
             UNION ALL
             (SELECT 'word.' || left(lower(k.status_raw), 40), count(*) / min(k.menu_size)::double precision
                FROM listed k WHERE k.status_raw IS NOT NULL GROUP BY left(lower(k.status_raw), 40) ORDER BY 2 DESC LIMIT 12)) k) AS parts
     FROM listed m) t
ON CONFLICT DO NOTHING;

-- name: measure_quarantined
-- The newest menu of each store if it is in quarantine: only the number of its products is known.
INSERT INTO quality_measures (dispensary_id, crawled_at, platform, is_quarantined, release, values)
SELECT DISTINCT ON (p.dispensary_id) p.dispensary_id, p.fetched_at, d.platform, true, coalesce(%(releases)s::jsonb ->> d.platform, %(version)s),
       jsonb_build_object('products', p.product_count)
  FROM raw_crawl_payloads p
  JOIN dispensaries d ON d.id = p.dispensary_id
 WHERE p.status = 'quarantined' AND p.fetched_at > coalesce(d.last_crawled_at, '-infinity')
   AND NOT EXISTS (SELECT FROM quality_measures m WHERE m.dispensary_id = p.dispensary_id AND m.crawled_at >= p.fetched_at)
 ORDER BY p.dispensary_id, p.fetched_at DESC
ON CONFLICT DO NOTHING;

-- name: unchecked
SELECT m.dispensary_id, m.crawled_at FROM quality_measures m WHERE m.checked_at IS NULL ORDER BY m.crawled_at, m.dispensary_id LIMIT %(most)s;

-- name: note_words
-- Category words of newly applied menus that the platform was not known to use.
INSERT INTO quality_category_words (platform, word, category, dispensary_id, first_seen_at, is_event)
SELECT DISTINCT ON (d.platform, lower(p.category)) d.platform, lower(p.category), p.category_canon, d.id, d.last_crawled_at,
       EXISTS (SELECT FROM quality_category_words k WHERE k.platform = d.platform AND k.first_seen_at < d.last_crawled_at - interval '1 day')
  FROM dispensaries d JOIN catalog_products p ON p.dispensary_id = d.id AND p.last_seen_at IS NULL
 WHERE d.id = ANY (%(stores)s) AND d.last_crawled_at IS NOT NULL AND length(p.category) BETWEEN 1 AND 200
   AND NOT EXISTS (SELECT FROM quality_category_words k WHERE k.platform = d.platform AND k.word = lower(p.category))
 ORDER BY d.platform, lower(p.category), d.last_crawled_at
ON CONFLICT DO NOTHING;

-- name: menus
-- A store's measured menus of the last weeks up to one of them, oldest first, with the weekday at the store (0 is Monday).
SELECT m.crawled_at, m.release, m.is_quarantined, m.values,
       (extract(isodow FROM m.crawled_at AT TIME ZONE known_timezone(d.timezone)) - 1)::int AS weekday
  FROM (SELECT * FROM quality_measures m
         WHERE m.dispensary_id = %(dispensary_id)s AND m.crawled_at <= %(crawled_at)s AND m.crawled_at > %(crawled_at)s::timestamptz - %(memory)s::interval
         ORDER BY m.crawled_at DESC LIMIT %(most)s) m
  JOIN dispensaries d ON d.id = m.dispensary_id ORDER BY m.crawled_at;

-- name: store_findings
-- Findings that tell which of these menus are not usual, and those that are open.
SELECT f.id, f.measure, f.rule_id, f.direction, f.opened_at, f.seen_at, f.crawls, f.closed_at, f.outcome
  FROM quality_findings f
 WHERE f.dispensary_id = %(dispensary_id)s AND (f.closed_at IS NULL OR f.closed_at > %(crawled_at)s::timestamptz - %(memory)s::interval)
 ORDER BY f.opened_at;

-- name: store_rules
SELECT r.id, r.measure, r.condition, r.amount, r.severity
  FROM quality_rules r JOIN dispensaries d ON d.id = %(dispensary_id)s
 WHERE (r.platform IS NULL OR r.platform = d.platform) AND (r.dispensary_id IS NULL OR r.dispensary_id = d.id) ORDER BY r.id;

-- name: pools
-- How much each measure usually varies at the stores of each platform: the median of stores that know their own scale.
SELECT s.platform, b.key AS measure, percentile_cont(0.5) WITHIN GROUP (ORDER BY (b.value ->> 'scale')::double precision) AS scale
  FROM quality_stores s CROSS JOIN LATERAL jsonb_each(s.bands) b
 WHERE b.value ->> 'scale' IS NOT NULL GROUP BY 1, 2 HAVING count(*) >= 3;

-- name: open_finding
INSERT INTO quality_findings (dispensary_id, measure, rule_id, direction, severity, opened_at, seen_at, value, expected, low, high, release_changed)
VALUES (%(dispensary_id)s, %(measure)s, %(rule_id)s, %(direction)s, %(severity)s, %(crawled_at)s, %(crawled_at)s, %(value)s, %(expected)s,
        %(low)s, %(high)s, %(release_changed)s);

-- name: update_finding
UPDATE quality_findings SET seen_at = %(crawled_at)s, crawls = crawls + 1, value = %(value)s, severity = %(severity)s WHERE id = %(id)s;

-- name: close_finding
UPDATE quality_findings SET closed_at = %(crawled_at)s, outcome = %(outcome)s WHERE id = %(id)s;

-- name: put_store
INSERT INTO quality_stores (dispensary_id, platform, crawled_at, crawls, bands, score, reason, completeness)
SELECT d.id, d.platform, %(crawled_at)s, %(crawls)s, %(bands)s::jsonb, %(score)s, %(reason)s, %(completeness)s
  FROM dispensaries d WHERE d.id = %(dispensary_id)s
ON CONFLICT (dispensary_id) DO UPDATE SET platform = excluded.platform, crawled_at = excluded.crawled_at, crawls = excluded.crawls,
       bands = excluded.bands, score = excluded.score, reason = excluded.reason, completeness = excluded.completeness;

-- name: put_quarantined
-- The last menu that was applied stays the one that the store is judged by; the number of products is that of the quarantined one.
UPDATE quality_stores SET crawled_at = %(crawled_at)s, bands = bands || %(bands)s::jsonb WHERE dispensary_id = %(dispensary_id)s;

-- name: checked
UPDATE quality_measures SET checked_at = clock_timestamp() WHERE dispensary_id = %(dispensary_id)s AND crawled_at = %(crawled_at)s;

-- name: recent_findings
-- Findings whose cause is still open to what other stores show: those that opened in the time before the newest menu.
SELECT f.id, f.dispensary_id, f.measure, f.direction, f.opened_at, f.release_changed
  FROM quality_findings f
 WHERE f.rule_id IS NULL AND f.opened_at > (SELECT max(crawled_at) FROM quality_measures) - %(window)s::interval
 ORDER BY f.measure, f.direction, f.opened_at;

-- name: measured_stores
-- Stores that were measured since, with their band for the measure.
SELECT s.dispensary_id, s.platform, d.enterprise_id AS chain, t.name AS point_of_sale, s.bands -> %(measure)s AS band
  FROM quality_stores s JOIN dispensaries d ON d.id = s.dispensary_id LEFT JOIN quality_points_of_sale t ON t.dispensary_id = d.id
 WHERE s.crawled_at >= %(since)s AND s.bands ? %(measure)s;

-- name: attribute
UPDATE quality_findings f SET scope = v.scope, scope_key = v.key, scope_affected = v.affected, scope_stores = v.stores
  FROM jsonb_to_recordset(%(causes)s::jsonb) v(id bigint, scope text, key text, affected integer, stores integer)
 WHERE f.id = v.id AND (f.scope, f.scope_key, f.scope_affected, f.scope_stores) IS DISTINCT FROM (v.scope, v.key, v.affected, v.stores);

-- name: prune_measures
DELETE FROM quality_measures WHERE crawled_at < %(before)s;

-- name: prune_findings
DELETE FROM quality_findings WHERE closed_at < %(before)s;

-- name: open_severities
SELECT severity FROM quality_findings WHERE dispensary_id = %(dispensary_id)s AND closed_at IS NULL;
