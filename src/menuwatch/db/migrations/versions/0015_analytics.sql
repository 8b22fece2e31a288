-- Figures for analysts (docs/explanation/analytics.md), and the order in which crawls were taken into the catalogue.
--
-- A refresh writes rows under a run of its own, step by step, and says `done` last: readers have the figures of the newest run that is
-- done, all of them, and are never waited for. A run that fails, or whose process dies, is never read; the one before it stays until
-- two newer ones are done.
--
--   running ──► done      the newest of these is read
--      └──────► failed    said, with the reason, beside the figures that are read instead

CREATE TABLE analytics_runs (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  status                   text NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'done', 'failed')),
  started_at               timestamptz NOT NULL DEFAULT clock_timestamp(),
  finished_at              timestamptz,
  window_from              timestamptz NOT NULL,   -- what has a length (coverage, time out of stock) is of this time
  window_to                timestamptz NOT NULL,
  seconds                  double precision,
  steps                    jsonb NOT NULL DEFAULT '[]',  -- {step, seconds, rows} of each
  error                    text,
  CONSTRAINT analytics_runs_ended CHECK ((status = 'running') = (finished_at IS NULL) AND (status = 'failed') = (error IS NOT NULL))
);
CREATE INDEX analytics_runs_done ON analytics_runs (id) WHERE status = 'done';

-- Of every group of figures: the stores that it rests on, how many of these are stale, how many there are in all, and how many of their
-- crawls were scheduled in the window and succeeded. Where `state` is null and not `all_states`, the state is not known; likewise category.
-- `place` is the order in which they are listed.

-- One store: when it was seen last, and what became of its crawls.
CREATE TABLE figure_stores (
  run_id                   bigint NOT NULL REFERENCES analytics_runs ON DELETE CASCADE,
  dispensary_id            integer NOT NULL,
  platform                 text NOT NULL,
  name                     text NOT NULL,
  state                    text,
  crawl_enabled            boolean NOT NULL,
  interval_hours           numeric NOT NULL,
  is_scheduled             boolean NOT NULL,       -- an enabled schedule would crawl it
  last_crawled_at          timestamptz,
  is_stale                 boolean NOT NULL,       -- not seen for twice its interval, or never
  products                 integer,                -- of its last crawl
  scheduled                integer NOT NULL,
  succeeded                integer NOT NULL,
  failed                   integer NOT NULL,
  quarantined              integer NOT NULL,
  never_begun              integer NOT NULL,       -- that its interval asks for, and of which there is no trace
  undecided                integer NOT NULL,       -- fetched a moment ago and not taken in yet: in none of the others
  observed_seconds         double precision NOT NULL,
  PRIMARY KEY (run_id, dispensary_id)
);

-- Price per gram of what is on offer, by category and state.
CREATE TABLE figure_prices (
  run_id                   bigint NOT NULL REFERENCES analytics_runs ON DELETE CASCADE,
  place                    integer NOT NULL,
  all_states               boolean NOT NULL,
  state                    text,
  category                 text,
  products                 integer NOT NULL,       -- that have an option below
  options                  integer NOT NULL,       -- with a price and a known weight
  without_weight           integer NOT NULL,       -- options on offer that are left out for want of a weight,
  without_price            integer NOT NULL,       -- or of a price
  regular_n                integer NOT NULL,
  regular_p10              numeric,
  regular_median           numeric,
  regular_p90              numeric,
  regular_mean             numeric,
  effective_n              integer NOT NULL,
  effective_p10            numeric,
  effective_median         numeric,
  effective_p90            numeric,
  effective_mean           numeric,
  stores                   integer NOT NULL,
  stale_stores             integer NOT NULL,
  known_stores             integer NOT NULL,
  scheduled                bigint NOT NULL,
  succeeded                bigint NOT NULL,
  oldest_crawl_at          timestamptz,
  PRIMARY KEY (run_id, place)
);

-- How much of what is on the menus is of which brand.
CREATE TABLE figure_brands (
  run_id                   bigint NOT NULL REFERENCES analytics_runs ON DELETE CASCADE,
  place                    integer NOT NULL,
  all_states               boolean NOT NULL,
  state                    text,
  brand                    text,                   -- null: products without one
  products                 integer NOT NULL,
  in_stock                 integer NOT NULL,
  of_products              integer NOT NULL,       -- all on the menus there
  of_stores                integer NOT NULL,       -- all with a menu there
  stores                   integer NOT NULL,
  stale_stores             integer NOT NULL,
  known_stores             integer NOT NULL,
  scheduled                bigint NOT NULL,
  succeeded                bigint NOT NULL,
  oldest_crawl_at          timestamptz,
  PRIMARY KEY (run_id, place)
);
CREATE INDEX figure_brands_state ON figure_brands (run_id, all_states, state, place);

-- How many products on offer are reduced, and by how much of their regular price (0.25 is a quarter off).
CREATE TABLE figure_discounts (
  run_id                   bigint NOT NULL REFERENCES analytics_runs ON DELETE CASCADE,
  place                    integer NOT NULL,
  all_states               boolean NOT NULL,
  state                    text,
  all_categories           boolean NOT NULL,
  category                 text,
  products                 integer NOT NULL,       -- on offer, with a price
  on_special               integer NOT NULL,       -- with an option below its regular price
  named_only               integer NOT NULL,       -- named by a special (bogo, bundle) that lowers no price
  depth_median             numeric,
  depth_p90                numeric,
  depth_mean               numeric,
  stores                   integer NOT NULL,
  stale_stores             integer NOT NULL,
  known_stores             integer NOT NULL,
  scheduled                bigint NOT NULL,
  succeeded                bigint NOT NULL,
  oldest_crawl_at          timestamptz,
  PRIMARY KEY (run_id, place)
);

-- For how much of the observed time products were listed and out of stock.
CREATE TABLE figure_stock (
  run_id                   bigint NOT NULL REFERENCES analytics_runs ON DELETE CASCADE,
  place                    integer NOT NULL,
  level                    text NOT NULL CHECK (level IN ('all', 'category', 'state', 'state_category', 'store', 'store_category')),
  state                    text,
  category                 text,
  dispensary_id            integer,
  products                 integer NOT NULL,
  out_products             integer NOT NULL,       -- that were out at some time
  in_seconds               double precision NOT NULL,
  out_seconds              double precision NOT NULL,
  absent_seconds           double precision NOT NULL,
  unknown_seconds          double precision NOT NULL,
  stores                   integer NOT NULL,
  stale_stores             integer NOT NULL,
  known_stores             integer NOT NULL,
  scheduled                bigint NOT NULL,
  succeeded                bigint NOT NULL,
  oldest_crawl_at          timestamptz,
  PRIMARY KEY (run_id, place)
);
CREATE INDEX figure_stock_level ON figure_stock (run_id, level, place);
CREATE INDEX figure_stock_store ON figure_stock (run_id, dispensary_id, place) WHERE dispensary_id IS NOT NULL;

-- Products that were out of stock for a time, longest first.
CREATE TABLE figure_out_products (
  run_id                   bigint NOT NULL REFERENCES analytics_runs ON DELETE CASCADE,
  place                    integer NOT NULL,
  product_id               bigint NOT NULL,
  dispensary_id            integer NOT NULL,
  state                    text,
  category                 text,
  brand                    text,
  times_out                integer NOT NULL,       -- how often it went out of stock
  in_seconds               double precision NOT NULL,
  out_seconds              double precision NOT NULL,
  absent_seconds           double precision NOT NULL,
  unknown_seconds          double precision NOT NULL,
  PRIMARY KEY (run_id, place)
);
CREATE INDEX figure_out_products_store ON figure_out_products (run_id, dispensary_id, place);
CREATE INDEX figure_out_products_product ON figure_out_products (run_id, product_id);

-- One store on one day (UTC).
CREATE TABLE figure_days (
  run_id                   bigint NOT NULL REFERENCES analytics_runs ON DELETE CASCADE,
  day                      date NOT NULL,
  dispensary_id            integer NOT NULL,
  state                    text,
  new_products             integer NOT NULL,       -- first seen on that day, at a store that was known before
  gone_products            integer NOT NULL,       -- seen for the last time on that day, and missing in three crawls since
  returned                 integer NOT NULL,
  price_changes            integer NOT NULL,
  stock_changes            integer NOT NULL,
  crawls                   integer NOT NULL,       -- taken into the catalogue, however they came
  scheduled                integer NOT NULL,       -- crawls that ended on that day,
  succeeded                integer NOT NULL,       -- and those of them that were taken in
  PRIMARY KEY (run_id, day, dispensary_id)
);
CREATE INDEX figure_days_store ON figure_days (run_id, dispensary_id, day);

-- The run that is read.
CREATE VIEW analytics_run AS
SELECT id, finished_at AS refreshed_at, started_at, window_from, window_to, seconds, steps
  FROM analytics_runs WHERE status = 'done' ORDER BY id DESC LIMIT 1;

CREATE VIEW analytics_stores AS SELECT r.refreshed_at, f.* FROM analytics_run r JOIN figure_stores f ON f.run_id = r.id;
CREATE VIEW analytics_price_per_gram AS SELECT r.refreshed_at, f.* FROM analytics_run r JOIN figure_prices f ON f.run_id = r.id;
CREATE VIEW analytics_brand_distribution AS SELECT r.refreshed_at, f.* FROM analytics_run r JOIN figure_brands f ON f.run_id = r.id;
CREATE VIEW analytics_discounts AS SELECT r.refreshed_at, f.* FROM analytics_run r JOIN figure_discounts f ON f.run_id = r.id;
CREATE VIEW analytics_out_of_stock AS SELECT r.refreshed_at, f.* FROM analytics_run r JOIN figure_stock f ON f.run_id = r.id;
CREATE VIEW analytics_out_of_stock_products AS SELECT r.refreshed_at, f.* FROM analytics_run r JOIN figure_out_products f ON f.run_id = r.id;
CREATE VIEW analytics_new_and_gone AS SELECT r.refreshed_at, f.* FROM analytics_run r JOIN figure_days f ON f.run_id = r.id;

-- The order in which crawls were taken into the catalogue. `position` is given to a crawl after it was committed, by one at a time
-- (number_crawls), so that whoever has seen a position has seen all that came before it: a crawl that is committed late gets a later
-- one, whatever its date. A store that is rebuilt has its crawls in it anew.
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
INSERT INTO crawl_feed (dispensary_id, crawled_at) SELECT dispensary_id, crawled_at FROM store_crawls;

-- Gives positions to crawls that have none, the oldest first; says to how many. Does nothing while somebody else does it: what that one
-- gives is seen all at once.
CREATE FUNCTION number_crawls(most integer DEFAULT 10000) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  given integer;
BEGIN
  IF NOT EXISTS (SELECT FROM crawl_feed WHERE position IS NULL) THEN RETURN 0; END IF;
  IF NOT pg_try_advisory_xact_lock(hashtext('number_crawls')) THEN RETURN 0; END IF;
  -- With the lock, and a snapshot taken after it: no position is given twice, and none is given before a smaller one can be seen.
  WITH next AS MATERIALIZED (
    SELECT c.dispensary_id, c.crawled_at FROM crawl_feed c WHERE c.position IS NULL ORDER BY c.crawled_at, c.dispensary_id LIMIT most),
  numbered AS MATERIALIZED (
    SELECT n.dispensary_id, n.crawled_at, nextval('crawl_positions') AS position FROM next n)
  UPDATE crawl_feed c SET position = n.position FROM numbered n
   WHERE c.dispensary_id = n.dispensary_id AND c.crawled_at = n.crawled_at;
  GET DIAGNOSTICS given = ROW_COUNT;
  RETURN given;
END $$;

-- What changed of a brand begins with its products.
CREATE INDEX catalog_products_brand ON catalog_products (lower(brand_name));
