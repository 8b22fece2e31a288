-- What lists and screens of an installation of millions need to answer at once.

-- What kind of failure a reason tells of: without what differs from case to case. Quoted texts and what stands in parentheses are `…`,
-- numbers, ids, times and ports are `#`; an HTTP status stays.
CREATE FUNCTION error_kind(reason text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT left(btrim(regexp_replace(regexp_replace(regexp_replace(left(reason, 600),
    '"[^"]*"|`[^`]*`|(?<!\w)''[^'']*''(?!\w)|\([^()]*\)', '…', 'g'),
    '(?<![\w-])(?<!HTTP )[\w-]*[0-9][\w-]*([.:,][\w-]*[0-9][\w-]*)*', '#', 'g'),
    '\s+', ' ', 'g')), 200)
$$;

-- The same as 12 hexadecimal digits: failures of one cause have equal ones.
CREATE FUNCTION error_cause(reason text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT left(md5(error_kind(reason)), 12) $$;

-- Written with what failed, so that a week of failures is grouped without reading their texts. Work that ended well pays nothing.
ALTER TABLE task_history ADD COLUMN cause text GENERATED ALWAYS AS (CASE WHEN status = 'failed' THEN error_cause(error_message) END) STORED;
CREATE INDEX task_history_cause ON task_history (cause, completed_at) INCLUDE (role, id, dispensary_id) WHERE status = 'failed';

-- As in 0002; a partition's columns are made as the table's are.
CREATE OR REPLACE FUNCTION ensure_task_history_partition(instant timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  day date := (instant AT TIME ZONE 'UTC')::date;
  part text := 'task_history_' || to_char(day, 'YYYYMMDD');
BEGIN
  IF to_regclass(part) IS NOT NULL THEN RETURN false; END IF;
  PERFORM pg_advisory_xact_lock(hashtext('task_history'));
  EXECUTE format('CREATE TABLE %I (LIKE task_history INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES INCLUDING GENERATED)', part);
  EXECUTE format('ALTER TABLE task_history ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', part,
                 day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC');
  RETURN true;
EXCEPTION WHEN duplicate_table THEN
  -- Somebody made it while this waited; to_regclass, asked again, would answer from the cache as before.
  RETURN false;
END $$;

-- The refreshes of one payload. Only they pay for it.
CREATE INDEX task_history_payload ON task_history ((payload ->> 'payload_id')) WHERE payload ->> 'payload_id' IS NOT NULL;

-- How fresh a store's menu is now, and when its interval is over: the key of lists, which does not move with the clock. The year
-- 1900 is for stores that never had a menu, 9000 for stores that are not crawled.
CREATE FUNCTION store_freshness(store dispensaries) RETURNS TABLE (status text, key timestamptz) LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN NOT store.crawl_enabled THEN 'off'
              WHEN store.platform_dispensary_id IS NULL THEN 'unresolved'
              WHEN store.last_crawled_at IS NULL THEN 'never'
              WHEN now() - store.last_crawled_at > 2 * store.crawl_interval_hours * interval '1 hour' THEN 'stale'
              WHEN now() - store.last_crawled_at > 1.25 * store.crawl_interval_hours * interval '1 hour' THEN 'late'
              ELSE 'fresh' END,
         CASE WHEN NOT store.crawl_enabled OR store.platform_dispensary_id IS NULL THEN '9000-01-01Z'::timestamptz
              WHEN store.last_crawled_at IS NULL THEN '1900-01-01Z'::timestamptz
              ELSE store.last_crawled_at + store.crawl_interval_hours * interval '1 hour' END
$$;

-- How many tasks ended on each day that is over: nothing is added to such a day any more, so that all of history is counted by reading a
-- few rows of each day and the rows of the last one or two. Days are in UTC, as partitions are. (Who writes into a day that is over by hand
-- removes its row in task_days: it is then counted anew.)
CREATE TABLE task_days (
  day                      date PRIMARY KEY,
  counted_at               timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE task_day_counts (
  day                      date NOT NULL REFERENCES task_days ON DELETE CASCADE,
  role                     text NOT NULL,
  status                   text NOT NULL,
  platform                 text NOT NULL,
  n                        bigint NOT NULL,
  PRIMARY KEY (day, role, status, platform)
);

-- Who ended anything on such a day: whoever looks for the tasks of one worker reads no other days. Nobody who ends a task pays for it.
CREATE TABLE task_day_workers (
  worker_id                text NOT NULL,
  day                      date NOT NULL REFERENCES task_days ON DELETE CASCADE,
  PRIMARY KEY (worker_id, day)
);
CREATE INDEX task_day_workers_day ON task_day_workers (day);

-- The days that history has partitions of.
CREATE VIEW task_history_days AS
SELECT to_date(right(c.relname, 8), 'YYYYMMDD') AS day
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
 WHERE i.inhparent = 'task_history'::regclass AND NOT i.inhdetachpending AND c.relname ~ '^task_history_\d{8}$';

-- Counts the days that have been over for six hours (a task ends in a transaction of its own, which may take a while) and forgets those that
-- were dropped; says how many days it counted.
CREATE FUNCTION count_task_days() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  d date;
  counted integer := 0;
BEGIN
  DELETE FROM task_days t WHERE NOT EXISTS (SELECT FROM task_history_days h WHERE h.day = t.day);
  FOR d IN SELECT h.day FROM task_history_days h
            WHERE (h.day + 1)::timestamp AT TIME ZONE 'UTC' < now() - interval '6 hours' AND NOT EXISTS (SELECT FROM task_days t WHERE t.day = h.day)
            ORDER BY 1 LOOP
    INSERT INTO task_days (day) VALUES (d) ON CONFLICT DO NOTHING;
    CONTINUE WHEN NOT FOUND;
    INSERT INTO task_day_counts (day, role, status, platform, n)
      SELECT d, h.role, h.status, h.platform, count(*) FROM task_history h
       WHERE h.completed_at >= d::timestamp AT TIME ZONE 'UTC' AND h.completed_at < (d + 1)::timestamp AT TIME ZONE 'UTC' GROUP BY 2, 3, 4;
    INSERT INTO task_day_workers (worker_id, day)
      SELECT DISTINCT h.worker_id, d FROM task_history h
       WHERE h.completed_at >= d::timestamp AT TIME ZONE 'UTC' AND h.completed_at < (d + 1)::timestamp AT TIME ZONE 'UTC' AND h.worker_id IS NOT NULL;
    counted := counted + 1;
  END LOOP;
  RETURN counted;
END $$;

-- An id above those of all tasks that were enqueued before that moment. Ids are given in the order of enqueueing, but for transactions that
-- last: an hour is left for them.
CREATE FUNCTION task_id_bound(moment timestamptz) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
  low bigint := 0;
  high bigint;
  middle bigint;
  made timestamptz;
BEGIN
  SELECT last_value + 1 INTO high FROM task_ids;
  IF moment + interval '1 hour' >= now() THEN RETURN high; END IF;
  WHILE low < high LOOP
    middle := (low + high) / 2;
    SELECT x.created_at INTO made FROM (
      (SELECT h.id, h.created_at FROM task_history h WHERE h.id >= middle ORDER BY h.id LIMIT 1)
      UNION ALL
      (SELECT t.id, t.created_at FROM task_live t WHERE t.id >= middle ORDER BY t.id LIMIT 1)) x ORDER BY x.id LIMIT 1;
    IF made IS NULL OR made > moment + interval '1 hour' THEN high := middle; ELSE low := middle + 1; END IF;
  END LOOP;
  RETURN high;
END $$;

-- Products in each of their orders, brands with how much there is of them. What changed of a product is written to these as well (it was not
-- when nothing that changes had an index); docs/reference/performance.md says what that costs a menu.
CREATE INDEX catalog_products_name ON catalog_products (lower(name), id);
CREATE INDEX catalog_products_price ON catalog_products (effective_price(price_rec, price_rec_special, price_med, price_med_special), id);
CREATE INDEX catalog_products_changed ON catalog_products (changed_at, id);
CREATE INDEX catalog_products_brand_name ON catalog_products (brand_name, dispensary_id) INCLUDE (is_in_stock) WHERE brand_name IS NOT NULL;

-- Every name that a product has or had, once, in lower case: who looks for a part of a name looks here first. Menus add names that are not
-- known to `catalog_new_names`, which nobody waits for and where one may be twice; upkeep moves them (fold_catalog_names).
CREATE FUNCTION trigrams(name text) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT coalesce(array_agg(DISTINCT substr(name, n, 3)), '{}') FROM generate_series(1, length(name) - 2) n
$$;
CREATE TABLE catalog_names (name text NOT NULL);
CREATE UNIQUE INDEX catalog_names_name ON catalog_names (md5(name));  -- a name may be longer than an index takes
CREATE INDEX catalog_names_parts ON catalog_names USING gin (trigrams(name)) WITH (fastupdate = off);
CREATE TABLE catalog_new_names (name text NOT NULL);
INSERT INTO catalog_names SELECT DISTINCT lower(name) FROM catalog_products;

CREATE FUNCTION note_names() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO catalog_new_names
    SELECT x.name FROM (SELECT DISTINCT lower(m.name) AS name FROM made m) x
     WHERE NOT EXISTS (SELECT FROM catalog_names k WHERE md5(k.name) = md5(x.name));
  RETURN NULL;
END $$;
CREATE TRIGGER catalog_products_names AFTER INSERT ON catalog_products REFERENCING NEW TABLE AS made FOR EACH STATEMENT EXECUTE FUNCTION note_names();

CREATE FUNCTION note_name() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO catalog_new_names
    SELECT lower(NEW.name) WHERE NOT EXISTS (SELECT FROM catalog_names k WHERE md5(k.name) = md5(lower(NEW.name)));
  RETURN NULL;
END $$;
CREATE TRIGGER catalog_products_renamed AFTER UPDATE OF name ON catalog_products
  FOR EACH ROW WHEN (OLD.name IS DISTINCT FROM NEW.name) EXECUTE FUNCTION note_name();

-- Moves new names to the others; says how many there were. Whoever comes meanwhile leaves them.
CREATE FUNCTION fold_catalog_names() RETURNS bigint LANGUAGE sql AS $$
  WITH taken AS (DELETE FROM catalog_new_names c WHERE c.ctid = ANY (ARRAY (SELECT n.ctid FROM catalog_new_names n FOR UPDATE SKIP LOCKED)) RETURNING c.name),
  kept AS (INSERT INTO catalog_names SELECT DISTINCT name FROM taken ORDER BY 1 ON CONFLICT DO NOTHING)
  SELECT count(*) FROM taken
$$;

-- Requests by what they were made for and through, and those that did not go well. They are written a few at a time, beside the wait for an
-- answer from far away.
CREATE INDEX fetch_attempts_store ON fetch_attempts (dispensary_id, attempted_at) WHERE dispensary_id IS NOT NULL;
CREATE INDEX fetch_attempts_proxy ON fetch_attempts (proxy_id, attempted_at) WHERE proxy_id IS NOT NULL;
CREATE INDEX fetch_attempts_host ON fetch_attempts (host, attempted_at);
CREATE INDEX fetch_attempts_trouble ON fetch_attempts (verdict, attempted_at) WHERE verdict <> 'ok';

-- Brands and categories with how much there is of them, of a catalogue that is too large to be counted while somebody waits. Upkeep counts
-- anew (refresh_catalog_totals); a smaller catalogue has no rows here, and is counted when it is asked about.
CREATE TABLE catalog_totals (
  kind                     text NOT NULL CHECK (kind IN ('brand', 'category')),
  name                     text NOT NULL,
  products                 integer NOT NULL,
  in_stock                 integer NOT NULL,
  stores                   integer NOT NULL,
  PRIMARY KEY (kind, name)
);
CREATE FUNCTION refresh_catalog_totals(large bigint DEFAULT 100000) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  n bigint := 0;
BEGIN
  DELETE FROM catalog_totals;
  IF (SELECT c.reltuples FROM pg_class c WHERE c.oid = 'catalog_products'::regclass) >= large THEN
    INSERT INTO catalog_totals
      SELECT 'brand', b.brand_name, sum(b.n), sum(b.in_stock), count(*)
        FROM (SELECT p.brand_name, p.dispensary_id, count(*) AS n, count(*) FILTER (WHERE p.is_in_stock) AS in_stock
                FROM catalog_products p WHERE p.brand_name IS NOT NULL GROUP BY 1, 2) b GROUP BY 2
      UNION ALL
      SELECT 'category', b.category, sum(b.n), sum(b.in_stock), count(*)
        FROM (SELECT p.category, p.dispensary_id, count(*) AS n, count(*) FILTER (WHERE p.is_in_stock) AS in_stock
                FROM catalog_products p WHERE p.category IS NOT NULL GROUP BY 1, 2) b GROUP BY 2;
    GET DIAGNOSTICS n = ROW_COUNT;
  END IF;
  RETURN n;
END $$;
