-- History of the catalogue, only ever appended to (docs/decisions/0013-append-only-history.md): the present state of a product is its row in
-- `catalog_products`; when it ends, a row is added here, in the partition of the month in which it ended. A first crawl writes no
-- history, a month that is over is never written again, and dropping or packing one takes nothing that is still needed.

-- One state that a product was in, from the crawl that first saw it so until the last one that did; `ended_at` is the crawl that saw
-- it otherwise, at which its next state begins. Fixed widths come first, so that nothing is lost between the columns, and the two arrays are
-- json: as text they take half of what jsonb takes for so few values.
CREATE TABLE product_history (
  product_id               bigint NOT NULL,
  seen_from                timestamptz NOT NULL,
  seen_to                  timestamptz NOT NULL,
  ended_at                 timestamptz NOT NULL,
  dispensary_id            integer NOT NULL,
  quantity                 integer,
  present                  boolean NOT NULL,
  quantity_capped          boolean NOT NULL,
  stock_status             text NOT NULL,
  price_rec                numeric,
  price_rec_special        numeric,
  price_med                numeric,
  price_med_special        numeric,
  thc_lo                   numeric,
  thc_hi                   numeric,
  thc_unit                 text,
  cbd_lo                   numeric,
  cbd_hi                   numeric,
  cbd_unit                 text,
  prices                   json NOT NULL,
  stock                    json NOT NULL,
  PRIMARY KEY (product_id, ended_at),
  CONSTRAINT product_history_span CHECK (seen_to >= seen_from AND ended_at > seen_to)
) PARTITION BY RANGE (ended_at);
CREATE INDEX product_history_time ON product_history (ended_at);  -- "what changed lately"
CREATE INDEX product_history_store ON product_history (dispensary_id, ended_at);  -- "what a store offered then", "what changed there"

-- What a product's batch, lab values and sold count were until `ended_at`, the crawl that saw others. Apart from the states, because it changes
-- at other times and is much larger: a product that no menu says such things of has no row. Where only the sold count changed
-- (`details_kept`), the rest is null here and that of the next row, or of the product: a row for every sale must be small. The older rows
-- are dropped first, so that what a row needs is never gone before it.
CREATE TABLE product_detail_history (
  product_id               bigint NOT NULL,
  seen_from                timestamptz NOT NULL,
  ended_at                 timestamptz NOT NULL,
  quantity_sold            bigint,
  details_kept             boolean NOT NULL,
  batch                    json,
  cannabinoids             json,
  terpenes                 json,
  PRIMARY KEY (product_id, ended_at),
  CONSTRAINT product_detail_history_span CHECK (ended_at > seen_from),
  CONSTRAINT product_detail_history_kept CHECK (NOT details_kept OR (batch IS NULL AND cannabinoids IS NULL AND terpenes IS NULL))
) PARTITION BY RANGE (ended_at);

-- Makes the partition of the month that `instant` lies in, if it is not there; returns true if it made one. The partition is
-- built apart and then attached, which locks the parent only against other changes of its shape.
CREATE FUNCTION ensure_month_partition(parent text, instant timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  month timestamptz := date_trunc('month', instant, 'UTC');
  next_month timestamptz := ((month AT TIME ZONE 'UTC') + interval '1 month') AT TIME ZONE 'UTC';
  part text := parent || '_' || to_char(month AT TIME ZONE 'UTC', 'YYYY_MM');
BEGIN
  IF to_regclass(part) IS NOT NULL THEN RETURN false; END IF;
  PERFORM pg_advisory_xact_lock(hashtext(parent));
  EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES)', part, parent);
  EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, part, month, next_month);
  RETURN true;
EXCEPTION WHEN duplicate_table THEN
  -- Another session made it while this one waited; a second to_regclass would still answer from the cache.
  RETURN false;
END $$;

CREATE FUNCTION ensure_product_detail_history_partition(instant timestamptz) RETURNS boolean LANGUAGE sql AS $$
  SELECT ensure_month_partition('product_detail_history', instant)
$$;

-- Makes the partitions of both histories.
CREATE FUNCTION ensure_product_history_partition(instant timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM ensure_product_detail_history_partition(instant);
  RETURN ensure_month_partition('product_history', instant);
END $$;

SELECT ensure_product_history_partition(now() + make_interval(months => m)) FROM generate_series(0, 2) m;

-- A store that is removed takes its products and their history with it.
CREATE FUNCTION remove_catalog_of_store() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM product_history s WHERE s.dispensary_id = OLD.id;
  DELETE FROM product_detail_history h USING catalog_products p WHERE p.dispensary_id = OLD.id AND h.product_id = p.id;
  DELETE FROM catalog_products p WHERE p.dispensary_id = OLD.id;
  DELETE FROM history_revisions r WHERE r.dispensary_id = OLD.id;
  RETURN NULL;
END $$;

CREATE TRIGGER dispensaries_removed AFTER DELETE ON dispensaries FOR EACH ROW EXECUTE FUNCTION remove_catalog_of_store();

-- Whether products and history of a store are as they were at an earlier reading: they are if the revisions are. A month has the states
-- that ended in it (UTC) and the changes between them and those that followed; `infinity` is what is now, `-infinity` all of the store.
-- Every write gives a revision that no other transaction gives, so equal revisions mean equal rows whatever happens to the database
-- (docs/decisions/0028-open-dataset.md). One of a store's writers has its row in `dispensaries`: they do not meet here.
CREATE TABLE history_revisions (
  dispensary_id            integer NOT NULL,
  month                    date NOT NULL,
  revision                 uuid NOT NULL,
  PRIMARY KEY (dispensary_id, month)
) WITH (fillfactor = 50);

CREATE FUNCTION utc_month(instant timestamptz) RETURNS date LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT date_trunc('month', instant AT TIME ZONE 'UTC')::date
$$;

CREATE FUNCTION transaction_revision() RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
  own text := current_setting('menuwatch.revision', true);
BEGIN
  IF coalesce(own, '') = '' THEN own := set_config('menuwatch.revision', gen_random_uuid()::text, true); END IF;
  RETURN own::uuid;
END $$;

CREATE FUNCTION revise_history(stores integer[], months date[]) RETURNS void LANGUAGE sql AS $$
  INSERT INTO history_revisions AS r (dispensary_id, month, revision)
  SELECT DISTINCT w.store, w.month, transaction_revision() FROM unnest(stores, months) w(store, month)
   WHERE w.store > 0 ORDER BY 1, 2  -- a rebuild sets products aside under the negative number
      ON CONFLICT (dispensary_id, month) DO UPDATE SET revision = excluded.revision WHERE r.revision <> excluded.revision
$$;

-- A state that ended changes its month. One that is removed or altered also changes what the state before it was followed by. One that is added
-- does not: it was the present state until then, with the same values, or the state before it is new as well.
CREATE FUNCTION revise_by_history() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    PERFORM revise_history(array_agg(x.store), array_agg(x.month)) FROM (
      SELECT DISTINCT w.dispensary_id, m FROM written w CROSS JOIN unnest(ARRAY[utc_month(w.ended_at), 'infinity']) m) x(store, month);
  ELSIF TG_OP = 'DELETE' THEN
    PERFORM revise_history(array_agg(x.store), array_agg(x.month)) FROM (
      SELECT DISTINCT w.dispensary_id, m FROM removed w CROSS JOIN unnest(ARRAY[utc_month(w.ended_at), utc_month(w.seen_from), 'infinity']) m) x(store, month);
  ELSE
    PERFORM revise_history(array_agg(x.store), array_agg(x.month)) FROM (
      SELECT DISTINCT w.dispensary_id, m FROM (TABLE removed UNION ALL TABLE written) w
       CROSS JOIN unnest(ARRAY[utc_month(w.ended_at), utc_month(w.seen_from), 'infinity']) m) x(store, month);
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER product_history_revised_by_insert AFTER INSERT ON product_history REFERENCING NEW TABLE AS written
  FOR EACH STATEMENT EXECUTE FUNCTION revise_by_history();
CREATE TRIGGER product_history_revised_by_update AFTER UPDATE ON product_history REFERENCING OLD TABLE AS removed NEW TABLE AS written
  FOR EACH STATEMENT EXECUTE FUNCTION revise_by_history();
-- What is packed is not changed, only stored elsewhere.
CREATE TRIGGER product_history_revised_by_delete AFTER DELETE ON product_history REFERENCING OLD TABLE AS removed
  FOR EACH STATEMENT WHEN (current_setting('menuwatch.packing', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION revise_by_history();

CREATE FUNCTION revise_by_products() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    PERFORM revise_history(array_agg(x.store), array_agg('infinity'::date)) FROM (SELECT DISTINCT w.dispensary_id FROM written w) x(store);
  ELSE
    PERFORM revise_history(array_agg(x.store), array_agg(x.month)) FROM (
      SELECT DISTINCT w.dispensary_id, m FROM removed w CROSS JOIN unnest('{-infinity,infinity}'::date[]) m) x(store, month);
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER catalog_products_revised_by_insert AFTER INSERT ON catalog_products REFERENCING NEW TABLE AS written
  FOR EACH STATEMENT EXECUTE FUNCTION revise_by_products();
CREATE TRIGGER catalog_products_revised_by_delete AFTER DELETE ON catalog_products REFERENCING OLD TABLE AS removed
  FOR EACH STATEMENT EXECUTE FUNCTION revise_by_products();

-- A product that changed within its state, or went back to an earlier one. When its next state begins, the one that ended is added to the
-- history, which is noted there.
CREATE FUNCTION revise_by_product() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (OLD.id, OLD.dispensary_id) <> (NEW.id, NEW.dispensary_id) THEN
    PERFORM revise_history(ARRAY[OLD.dispensary_id, OLD.dispensary_id, NEW.dispensary_id, NEW.dispensary_id],
                           '{-infinity,infinity,-infinity,infinity}');
  ELSE
    IF current_setting('menuwatch.revised_store', true) IS DISTINCT FROM NEW.dispensary_id::text THEN  -- once for each transaction and store
      PERFORM revise_history(ARRAY[NEW.dispensary_id], '{infinity}');
      PERFORM set_config('menuwatch.revised_store', NEW.dispensary_id::text, true);
    END IF;
    IF (OLD.state_from, OLD.present, OLD.stock_status, OLD.quantity, OLD.price_rec, OLD.price_rec_special, OLD.price_med, OLD.price_med_special)
       IS DISTINCT FROM
       (NEW.state_from, NEW.present, NEW.stock_status, NEW.quantity, NEW.price_rec, NEW.price_rec_special, NEW.price_med, NEW.price_med_special)
       OR (OLD.variants <> NEW.variants AND (option_prices(OLD.variants), option_stock(OLD.variants))
                                            <> (option_prices(NEW.variants), option_stock(NEW.variants))) THEN
      PERFORM revise_history(ARRAY[NEW.dispensary_id, NEW.dispensary_id], ARRAY[utc_month(OLD.state_from), utc_month(NEW.state_from)]);
    END IF;
  END IF;
  RETURN NULL;
END $$;

-- All columns but `local_image_path`, which is written without the store's row and not published.
CREATE TRIGGER catalog_products_revised_by_update AFTER UPDATE OF
  id, dispensary_id, provider, provider_product_id, content_hash, consecutive_misses, first_seen_at, last_seen_at, state_from, state_seen_to,
  present, changed_at, name_raw, name, brand_name_raw, brand_name, category, subcategory, strain_type, category_canon, subcategory_canon,
  strain_canon, status_raw, price_rec, price_rec_special, price_med, price_med_special, stock_status, is_in_stock, quantity, quantity_capped,
  thc_lo, thc_hi, thc_unit, cbd_lo, cbd_hi, cbd_unit, variants, cannabinoids, terpenes, batch, quantity_sold, details_from, specials, image_url,
  images, description, platform_created_at, platform_updated_at, extra, brand_description_hash
  ON catalog_products FOR EACH ROW
  WHEN ((NEW.state_from <= OLD.state_from OR NEW.id <> OLD.id OR NEW.dispensary_id <> OLD.dispensary_id) AND OLD.* IS DISTINCT FROM NEW.*)
  EXECUTE FUNCTION revise_by_product();

-- `prices` and `stock` of a state, as they follow from a product's options.
CREATE FUNCTION option_prices(variants jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT coalesce(jsonb_agg(jsonb_build_array(v -> 'option', v -> 'price_rec', v -> 'special_rec', v -> 'price_med', v -> 'special_med') ORDER BY n), '[]')
    FROM jsonb_array_elements(variants) WITH ORDINALITY e(v, n)
$$;

CREATE FUNCTION option_stock(variants jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT coalesce(jsonb_agg(jsonb_build_array(v -> 'option', coalesce(v -> 'stock_status', '"unknown"'), v -> 'quantity', coalesce(v -> 'capped', 'false'))
                            ORDER BY n), '[]')
    FROM jsonb_array_elements(variants) WITH ORDINALITY e(v, n)
$$;

-- The prices and the stock of a state, option by option, as objects.
CREATE FUNCTION prices_by_option(prices jsonb) RETURNS json LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT coalesce(json_agg(json_build_object('option', e -> 0, 'price_rec', e -> 1, 'price_rec_special', e -> 2, 'price_med', e -> 3,
                                             'price_med_special', e -> 4)), '[]')
    FROM jsonb_array_elements(prices) e
$$;

CREATE FUNCTION stock_by_option(stock jsonb) RETURNS json LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT coalesce(json_agg(json_build_object('option', e -> 0, 'stock_status', e -> 1, 'quantity', e -> 2, 'capped', e -> 3)), '[]')
    FROM jsonb_array_elements(stock) e
$$;

-- Every state of every product, those that ended and those that last; `seen_to` is null while a state lasts.
CREATE VIEW product_states AS
SELECT product_id, seen_from, seen_to, present, quantity_capped, quantity, stock_status, price_rec, price_rec_special, price_med,
       price_med_special, thc_lo, thc_hi, thc_unit, cbd_lo, cbd_hi, cbd_unit, prices::jsonb AS prices, stock::jsonb AS stock
  FROM product_history
 UNION ALL
SELECT id, state_from, state_seen_to, present, quantity_capped, quantity, stock_status, price_rec, price_rec_special, price_med,
       price_med_special, thc_lo, thc_hi, thc_unit, cbd_lo, cbd_hi, cbd_unit, option_prices(variants), option_stock(variants)
  FROM catalog_products;

-- What was said of a product's batch, lab values and sales, and when; `ended_at` is null for what holds now. Times in which nothing was said
-- have no row.
CREATE VIEW product_details AS
SELECT h.product_id, h.seen_from, h.ended_at, CASE WHEN n.product_id IS NULL THEN p.batch ELSE n.batch::jsonb END AS batch,
       CASE WHEN n.product_id IS NULL THEN p.cannabinoids ELSE n.cannabinoids::jsonb END AS cannabinoids,
       CASE WHEN n.product_id IS NULL THEN p.terpenes ELSE n.terpenes::jsonb END AS terpenes, h.quantity_sold
  FROM product_detail_history h
  JOIN catalog_products p ON p.id = h.product_id
  LEFT JOIN LATERAL (
    SELECT * FROM product_detail_history n
     WHERE n.product_id = h.product_id AND n.ended_at >= h.ended_at AND NOT n.details_kept ORDER BY n.ended_at LIMIT 1) n ON true
 UNION ALL
SELECT id, coalesce(details_from, first_seen_at), NULL, batch, cannabinoids, terpenes, quantity_sold
  FROM catalog_products WHERE batch IS NOT NULL OR cannabinoids IS NOT NULL OR terpenes IS NOT NULL OR quantity_sold IS NOT NULL;

CREATE VIEW store_product_snapshots AS
SELECT s.product_id AS store_product_id, p.dispensary_id, p.provider, p.provider_product_id,
       c.crawled_at, c.payload_id,
       s.price_rec, s.price_rec_special, s.price_med, s.price_med_special, s.prices,
       CASE s.stock_status WHEN 'in_stock' THEN true WHEN 'oos' THEN false END AS is_in_stock,
       s.stock_status, s.quantity, s.quantity_capped, s.stock,
       s.thc_lo, s.thc_hi, s.thc_unit, s.cbd_lo, s.cbd_hi, s.cbd_unit, s.seen_from AS state_since
  FROM product_states s
  JOIN catalog_products p ON p.id = s.product_id
  JOIN store_crawls c ON c.dispensary_id = p.dispensary_id AND c.crawled_at >= s.seen_from
                     AND (s.seen_to IS NULL OR c.crawled_at <= s.seen_to)
 WHERE s.present;

-- Each change of a product between two of its states: what it was before and what it is after. A gap in which the product was
-- not seen, but came back as it was, is no change.
CREATE VIEW product_changes AS
SELECT o.product_id, o.dispensary_id, p.provider_product_id, p.name, p.brand_name, p.category, o.ended_at AS changed_at,
       o.prices::jsonb IS DISTINCT FROM s.prices AS price_changed,
       o.stock::jsonb IS DISTINCT FROM s.stock OR o.stock_status <> s.stock_status AS stock_changed,
       o.price_rec AS price_rec_before, s.price_rec AS price_rec_after,
       o.price_rec_special AS price_rec_special_before, s.price_rec_special AS price_rec_special_after,
       o.price_med AS price_med_before, s.price_med AS price_med_after,
       o.price_med_special AS price_med_special_before, s.price_med_special AS price_med_special_after,
       o.stock_status AS stock_status_before, s.stock_status AS stock_status_after,
       o.quantity AS quantity_before, s.quantity AS quantity_after,
       o.prices::jsonb AS prices_before, s.prices AS prices_after, o.stock::jsonb AS stock_before, s.stock AS stock_after,
       s.present
  FROM product_history o
  JOIN catalog_products p ON p.id = o.product_id
  -- The next state began when this one ended, and is past itself or the present one.
 CROSS JOIN LATERAL (
    SELECT n.price_rec, n.price_rec_special, n.price_med, n.price_med_special, n.stock_status, n.quantity, n.present,
           n.prices::jsonb AS prices, n.stock::jsonb AS stock
      FROM product_history n WHERE n.product_id = o.product_id AND n.ended_at > o.ended_at AND n.seen_from = o.ended_at
     UNION ALL
    SELECT p.price_rec, p.price_rec_special, p.price_med, p.price_med_special, p.stock_status, p.quantity, p.present,
           option_prices(p.variants), option_stock(p.variants)
     WHERE p.state_from = o.ended_at
 ) s
 WHERE o.prices::jsonb IS DISTINCT FROM s.prices OR o.stock::jsonb IS DISTINCT FROM s.stock OR o.stock_status <> s.stock_status;

-- Whether a change is of that kind (catalog/changes.py, `Kind`); every change is of no kind in particular. The prices are effective ones.
CREATE FUNCTION change_is(kind text, price_changed boolean, stock_changed boolean, price_before numeric, price_after numeric,
                          status_before text, status_after text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE kind
           WHEN 'price' THEN price_changed
           WHEN 'stock' THEN stock_changed
           WHEN 'price_drop' THEN price_after < price_before
           WHEN 'price_rise' THEN price_after > price_before
           WHEN 'out_of_stock' THEN status_after = 'oos' AND status_before <> 'oos'
           WHEN 'back_in_stock' THEN status_after = 'in_stock' AND status_before = 'oos'
           ELSE true END
$$;

-- The order in which crawls were taken into the catalogue. `position` is given to a crawl after it was committed, by one at a time
-- (number_crawls), so that a reader that has seen a position has seen all before it: a crawl that is committed late gets a later
-- one, whatever its date. A store that is rebuilt gets new entries for its crawls.
CREATE TABLE crawl_feed (
  dispensary_id            integer NOT NULL,
  crawled_at               timestamptz NOT NULL,
  position                 bigint,
  PRIMARY KEY (dispensary_id, crawled_at),
  FOREIGN KEY (dispensary_id, crawled_at) REFERENCES store_crawls ON DELETE CASCADE
);
CREATE UNIQUE INDEX crawl_feed_position ON crawl_feed (position) WHERE position IS NOT NULL;
CREATE INDEX crawl_feed_unnumbered ON crawl_feed (crawled_at, dispensary_id) WHERE position IS NULL;

CREATE SEQUENCE crawl_positions AS bigint;

CREATE FUNCTION feed_crawl() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO crawl_feed (dispensary_id, crawled_at) VALUES (NEW.dispensary_id, NEW.crawled_at);
  RETURN NULL;
END $$;

CREATE TRIGGER store_crawls_fed AFTER INSERT ON store_crawls FOR EACH ROW EXECUTE FUNCTION feed_crawl();

-- Gives positions to crawls that have none, the oldest first, and then to merged and split products (match_events); returns how many. Does nothing while another session does it: the positions
-- of one call become visible together.
CREATE FUNCTION number_crawls(most integer DEFAULT 10000) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  given integer;
  events integer;
BEGIN
  IF NOT EXISTS (SELECT FROM crawl_feed WHERE position IS NULL) AND NOT EXISTS (SELECT FROM match_events WHERE position IS NULL) THEN
    RETURN 0;
  END IF;
  IF NOT pg_try_advisory_xact_lock(hashtext('number_crawls')) THEN RETURN 0; END IF;
  -- With the lock, and a snapshot taken after it: no position is given twice, and none is given before a smaller one can be seen.
  WITH next AS MATERIALIZED (
    SELECT c.dispensary_id, c.crawled_at FROM crawl_feed c WHERE c.position IS NULL ORDER BY c.crawled_at, c.dispensary_id LIMIT most),
  numbered AS MATERIALIZED (
    SELECT n.dispensary_id, n.crawled_at, nextval('crawl_positions') AS position FROM next n)
  UPDATE crawl_feed c SET position = n.position FROM numbered n
   WHERE c.dispensary_id = n.dispensary_id AND c.crawled_at = n.crawled_at;
  GET DIAGNOSTICS given = ROW_COUNT;
  WITH next AS MATERIALIZED (SELECT e.id FROM match_events e WHERE e.position IS NULL ORDER BY e.id LIMIT most),
  numbered AS MATERIALIZED (SELECT n.id, nextval('crawl_positions') AS position FROM next n)
  UPDATE match_events e SET position = n.position FROM numbered n WHERE e.id = n.id;
  GET DIAGNOSTICS events = ROW_COUNT;
  RETURN given + events;
END $$;
