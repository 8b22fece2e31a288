-- History that is only appended to (docs/decisions/0013-past-states.md): the state that a product is in is its row in `catalog_products`, and
-- `past_states` gets a row when it ends, in the partition of the month in which it ended. A first crawl writes no history, a month that
-- is over is never written again, and whoever drops or packs one takes nothing that is still needed.

-- When the present state was last seen where it is not any more (null while it lasts), and whether it is one of being on the menu.
ALTER TABLE catalog_products
  ADD COLUMN state_to timestamptz,
  ADD COLUMN present  boolean NOT NULL DEFAULT true;

-- A changed row then mostly finds room on its page, so that no index is written (86 of 100 updates where a tenth of a menu changes, 55 with 90)
-- and a store's rows stay together.
ALTER TABLE catalog_products SET (fillfactor = 80);

UPDATE catalog_products p SET state_to = s.seen_to, present = s.present
  FROM product_states s
 WHERE s.product_id = p.id AND s.seen_from = p.state_from AND (s.seen_to IS NOT NULL OR NOT s.present);

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

-- One state that a product was in, from the crawl that first saw it so until the last one that did; `ended_at` is the crawl that saw
-- it otherwise, at which its next state begins. Fixed widths come first, so that nothing is lost between the columns, and the two arrays are
-- json: as text they take half of what jsonb takes for so few values.
CREATE TABLE past_states (
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
  CONSTRAINT past_states_span CHECK (seen_to >= seen_from AND ended_at > seen_to)
) PARTITION BY RANGE (ended_at);
CREATE INDEX past_states_time ON past_states (ended_at);  -- "what changed lately"
CREATE INDEX past_states_store ON past_states (dispensary_id, ended_at);  -- "what a store offered then", "what changed there"

-- Makes the partition of the month that `instant` lies in, if it is not there; says whether it made one. The partition is
-- built apart and then attached, which locks the parent only against other changes of its shape.
CREATE FUNCTION ensure_past_states_partition(instant timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  month timestamptz := date_trunc('month', instant, 'UTC');
  next_month timestamptz := ((month AT TIME ZONE 'UTC') + interval '1 month') AT TIME ZONE 'UTC';
  part text := 'past_states_' || to_char(month AT TIME ZONE 'UTC', 'YYYY_MM');
BEGIN
  IF to_regclass(part) IS NOT NULL THEN RETURN false; END IF;
  PERFORM pg_advisory_xact_lock(hashtext('past_states'));
  EXECUTE format('CREATE TABLE %I (LIKE past_states INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES)', part);
  EXECUTE format('ALTER TABLE past_states ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', part, month, next_month);
  RETURN true;
EXCEPTION WHEN duplicate_table THEN
  -- Somebody made it while this waited; to_regclass, asked again, would answer from the cache as before.
  RETURN false;
END $$;
SELECT ensure_past_states_partition(now() + make_interval(months => m)) FROM generate_series(0, 2) m;

CREATE TEMPORARY TABLE ended_states ON COMMIT DROP AS
SELECT s.*, lead(s.seen_from) OVER (PARTITION BY s.product_id ORDER BY s.seen_from) AS ended_at FROM product_states s;
SELECT ensure_past_states_partition(month)
  FROM (SELECT DISTINCT date_trunc('month', ended_at, 'UTC') AS month FROM ended_states WHERE ended_at IS NOT NULL) m;
INSERT INTO past_states (product_id, seen_from, seen_to, ended_at, dispensary_id, quantity, present, quantity_capped, stock_status, price_rec,
       price_rec_special, price_med, price_med_special, thc_lo, thc_hi, thc_unit, cbd_lo, cbd_hi, cbd_unit, prices, stock)
SELECT s.product_id, s.seen_from, s.seen_to, s.ended_at, p.dispensary_id, s.quantity, s.present, s.quantity_capped, s.stock_status, s.price_rec,
       s.price_rec_special, s.price_med, s.price_med_special, s.thc_lo, s.thc_hi, s.thc_unit, s.cbd_lo, s.cbd_hi, s.cbd_unit,
       s.prices::text::json, s.stock::text::json
  FROM ended_states s JOIN catalog_products p ON p.id = s.product_id WHERE s.ended_at IS NOT NULL;

DROP VIEW store_product_snapshots;
DROP VIEW product_changes;
DROP TABLE product_states;
DROP FUNCTION ensure_product_states_partition(timestamptz);

-- Every state of every product, those that ended and those that last; `seen_to` is null while a state lasts.
CREATE VIEW product_states AS
SELECT product_id, seen_from, seen_to, present, quantity_capped, quantity, stock_status, price_rec, price_rec_special, price_med,
       price_med_special, thc_lo, thc_hi, thc_unit, cbd_lo, cbd_hi, cbd_unit, prices::jsonb AS prices, stock::jsonb AS stock
  FROM past_states
 UNION ALL
SELECT id, state_from, state_to, present, quantity_capped, quantity, stock_status, price_rec, price_rec_special, price_med,
       price_med_special, thc_lo, thc_hi, thc_unit, cbd_lo, cbd_hi, cbd_unit, option_prices(variants), option_stock(variants)
  FROM catalog_products;

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
  FROM past_states o
  JOIN catalog_products p ON p.id = o.product_id
  -- The next state began when this one ended, and is past itself or the present one.
 CROSS JOIN LATERAL (
    SELECT n.price_rec, n.price_rec_special, n.price_med, n.price_med_special, n.stock_status, n.quantity, n.present,
           n.prices::jsonb AS prices, n.stock::jsonb AS stock
      FROM past_states n WHERE n.product_id = o.product_id AND n.ended_at > o.ended_at AND n.seen_from = o.ended_at
     UNION ALL
    SELECT p.price_rec, p.price_rec_special, p.price_med, p.price_med_special, p.stock_status, p.quantity, p.present,
           option_prices(p.variants), option_stock(p.variants)
     WHERE p.state_from = o.ended_at
 ) s
 WHERE o.prices::jsonb IS DISTINCT FROM s.prices OR o.stock::jsonb IS DISTINCT FROM s.stock OR o.stock_status <> s.stock_status;

-- A store that is removed takes its products and their history with it.
CREATE OR REPLACE FUNCTION remove_catalog_of_store() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM past_states s WHERE s.dispensary_id = OLD.id;
  DELETE FROM catalog_products p WHERE p.dispensary_id = OLD.id;
  RETURN NULL;
END $$;
