-- Analytics (docs/explanation/analytics.md).
--
-- A refresh writes rows under a run of its own, step by step, and marks the run `done` last: readers see all rows of the newest run that is
-- done, and never wait. A run that fails, or whose process dies, is never read; the one before it stays until two newer ones are done.
--
--   running ──► done      the newest of these is read
--      └──────► failed    reported, with the reason, beside the rows that are read instead
--
-- Columns of all groups: `stores` the group rests on, among these `stale_stores` and those whose last menu is `partial` (05_payloads.sql),
-- `known_stores` in all, and the crawls of these that were `scheduled` in the window and `succeeded`. Where `state` is null and not
-- `all_states`, the state is unknown; likewise category. `place` is the order in which they are listed.

-- What decides the size of an option (taxonomy/sizes.py), after a letter that says which it is.
CREATE FUNCTION size_key(weight_g double precision, content_mg numeric, pieces integer, option text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN weight_g > 0 THEN 'g' || weight_g WHEN content_mg IS NOT NULL THEN 'm' || content_mg
              WHEN pieces IS NOT NULL THEN 'p' || pieces ELSE 'o' || coalesce(option, '') END
$$;

-- Currency of the stores in a state. The provinces are those of geo/states.py.
CREATE FUNCTION currency_of(state text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN state = ANY ('{AB,BC,MB,NB,NL,NS,NT,NU,ON,PE,QC,SK,YT}') THEN 'CAD' ELSE 'USD' END $$;

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

-- One store: when it was seen last, and the results of its crawls.
CREATE TABLE analytics_store_stats (
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
  is_partial               boolean NOT NULL,       -- its last menu was a part of one only
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

-- Price per gram of what is on offer, by category and state; of all states together by currency.
CREATE TABLE analytics_price_stats (
  run_id                   bigint NOT NULL REFERENCES analytics_runs ON DELETE CASCADE,
  place                    integer NOT NULL,
  all_states               boolean NOT NULL,
  state                    text,
  currency                 text NOT NULL,
  category                 text,
  products                 integer NOT NULL,       -- that have an option below
  options                  integer NOT NULL,       -- with a price and a known weight, less the implausible ones
  without_weight           integer NOT NULL,       -- options on offer that are left out because their weight is unknown,
  without_price            integer NOT NULL,       -- they have no price,
  implausible              integer NOT NULL,       -- or their price per gram is far from the median of the category
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
  partial                  integer NOT NULL,
  known_stores             integer NOT NULL,
  scheduled                bigint NOT NULL,
  succeeded                bigint NOT NULL,
  oldest_crawl_at          timestamptz,
  PRIMARY KEY (run_id, place)
);

-- How much of what is on the menus is of which brand.
CREATE TABLE analytics_brand_stats (
  run_id                   bigint NOT NULL REFERENCES analytics_runs ON DELETE CASCADE,
  place                    integer NOT NULL,
  all_states               boolean NOT NULL,
  state                    text,
  brand                    text,                   -- null: products without one
  brand_id                 integer,                -- null: no product of that name is matched yet
  products                 integer NOT NULL,
  in_stock                 integer NOT NULL,
  of_products              integer NOT NULL,       -- all on the menus there
  of_stores                integer NOT NULL,       -- all with a menu there
  stores                   integer NOT NULL,
  stale_stores             integer NOT NULL,
  partial                  integer NOT NULL,
  known_stores             integer NOT NULL,
  scheduled                bigint NOT NULL,
  succeeded                bigint NOT NULL,
  oldest_crawl_at          timestamptz,
  PRIMARY KEY (run_id, place)
);
CREATE INDEX analytics_brand_stats_state ON analytics_brand_stats (run_id, all_states, state, place);

-- How much of what is on the menus is of which category.
CREATE TABLE analytics_category_stats (
  run_id                   bigint NOT NULL REFERENCES analytics_runs ON DELETE CASCADE,
  place                    integer NOT NULL,
  all_states               boolean NOT NULL,
  state                    text,
  category                 text,                   -- canonical; null: unknown
  products                 integer NOT NULL,
  in_stock                 integer NOT NULL,
  of_products              integer NOT NULL,       -- all on the menus there
  of_stores                integer NOT NULL,       -- all with a menu there
  stores                   integer NOT NULL,
  stale_stores             integer NOT NULL,
  partial                  integer NOT NULL,
  known_stores             integer NOT NULL,
  scheduled                bigint NOT NULL,
  succeeded                bigint NOT NULL,
  oldest_crawl_at          timestamptz,
  PRIMARY KEY (run_id, place)
);

-- How many products on offer are reduced, and by how much of their regular price (0.25 is a quarter off).
CREATE TABLE analytics_discount_stats (
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
  partial                  integer NOT NULL,
  known_stores             integer NOT NULL,
  scheduled                bigint NOT NULL,
  succeeded                bigint NOT NULL,
  oldest_crawl_at          timestamptz,
  PRIMARY KEY (run_id, place)
);

-- For how much of the observed time products were listed and out of stock.
CREATE TABLE analytics_stock_stats (
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
  partial                  integer NOT NULL,
  known_stores             integer NOT NULL,
  scheduled                bigint NOT NULL,
  succeeded                bigint NOT NULL,
  oldest_crawl_at          timestamptz,
  PRIMARY KEY (run_id, place)
);
CREATE INDEX analytics_stock_stats_level ON analytics_stock_stats (run_id, level, place);
CREATE INDEX analytics_stock_stats_store ON analytics_stock_stats (run_id, dispensary_id, place) WHERE dispensary_id IS NOT NULL;

-- Products that were out of stock for a time, longest first.
CREATE TABLE analytics_out_product_stats (
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
CREATE INDEX analytics_out_product_stats_store ON analytics_out_product_stats (run_id, dispensary_id, place);
CREATE INDEX analytics_out_product_stats_product ON analytics_out_product_stats (run_id, product_id);

-- One store on one day (UTC).
CREATE TABLE analytics_daily_stats (
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
  partial                  integer NOT NULL,       -- of these, those whose menu was a part of one only
  scheduled                integer NOT NULL,       -- crawls that ended on that day,
  succeeded                integer NOT NULL,       -- and those of them that were taken in
  PRIMARY KEY (run_id, day, dispensary_id)
);
CREATE INDEX analytics_daily_stats_store ON analytics_daily_stats (run_id, dispensary_id, day);

-- Reports by canonical product and brand count locations, a store that is linked to none as one of its own. `locations` have it on a menu,
-- `in_stock` of these where it is not out of stock; `of_locations` have a menu there, `of_category` one with something of the category.
CREATE TABLE analytics_distribution_stats (
  run_id                   bigint NOT NULL REFERENCES analytics_runs ON DELETE CASCADE,
  place                    integer NOT NULL,
  all_states               boolean NOT NULL,
  state                    text,
  canonical_product_id     bigint NOT NULL,
  brand_id                 integer,
  category                 text,
  locations                integer NOT NULL,
  in_stock                 integer NOT NULL,
  of_locations             integer NOT NULL,
  of_category              integer,                -- null: the product has no category
  PRIMARY KEY (run_id, place)
);
CREATE INDEX analytics_distribution_stats_product ON analytics_distribution_stats (run_id, canonical_product_id);
CREATE INDEX analytics_distribution_stats_brand ON analytics_distribution_stats (run_id, brand_id, place);
CREATE INDEX analytics_distribution_stats_state ON analytics_distribution_stats (run_id, all_states, state, place);

CREATE TABLE analytics_brand_distribution_stats (
  run_id                   bigint NOT NULL REFERENCES analytics_runs ON DELETE CASCADE,
  place                    integer NOT NULL,
  all_states               boolean NOT NULL,
  state                    text,
  brand_id                 integer NOT NULL,
  all_categories           boolean NOT NULL,
  category                 text,
  locations                integer NOT NULL,
  in_stock                 integer NOT NULL,
  listed                   integer NOT NULL,       -- its canonical products at each location, summed
  of_locations             integer NOT NULL,
  of_category              integer,                -- null: all categories together, or unknown
  PRIMARY KEY (run_id, place)
);
CREATE INDEX analytics_brand_distribution_stats_brand ON analytics_brand_distribution_stats (run_id, brand_id, place);
CREATE INDEX analytics_brand_distribution_stats_state ON analytics_brand_distribution_stats (run_id, all_states, state, place);

-- What locations ask for one size of a canonical product, specials included; of three locations at least. Prices of stale menus and implausible
-- ones are left out.
CREATE TABLE analytics_dispersion_stats (
  run_id                   bigint NOT NULL REFERENCES analytics_runs ON DELETE CASCADE,
  place                    integer NOT NULL,
  gap_place                integer NOT NULL,       -- the order by the widest gap
  all_states               boolean NOT NULL,
  state                    text,
  canonical_product_id     bigint NOT NULL,
  size                     text NOT NULL COLLATE "C",
  brand_id                 integer,
  category                 text,
  currency                 text NOT NULL,
  locations                integer NOT NULL,
  stale_locations          integer NOT NULL,       -- left out
  implausible_locations    integer NOT NULL,       -- left out
  min                      numeric NOT NULL,
  p25                      numeric NOT NULL,
  median                   numeric NOT NULL,
  p75                      numeric NOT NULL,
  max                      numeric NOT NULL,
  mean                     numeric NOT NULL,
  cv                       numeric NOT NULL,       -- standard deviation of the sample, divided by the mean
  cheapest_dispensary_id   integer NOT NULL,
  dearest_dispensary_id    integer NOT NULL,
  PRIMARY KEY (run_id, place)
);
CREATE INDEX analytics_dispersion_stats_gap ON analytics_dispersion_stats (run_id, gap_place);
CREATE INDEX analytics_dispersion_stats_product ON analytics_dispersion_stats (run_id, canonical_product_id);
CREATE INDEX analytics_dispersion_stats_brand ON analytics_dispersion_stats (run_id, brand_id, place);
CREATE INDEX analytics_dispersion_stats_state ON analytics_dispersion_stats (run_id, all_states, state, place);
CREATE INDEX analytics_dispersion_stats_state_gap ON analytics_dispersion_stats (run_id, all_states, state, gap_place);

-- How often a location is in the cheapest quarter of its state, in all, by category and by brand.
CREATE TABLE analytics_cheapest_stats (
  run_id                   bigint NOT NULL REFERENCES analytics_runs ON DELETE CASCADE,
  place                    integer NOT NULL,
  level                    text NOT NULL CHECK (level IN ('all', 'category', 'brand')),
  state                    text NOT NULL,
  category                 text,
  brand_id                 integer,
  location_id              integer,
  dispensary_id            integer NOT NULL,       -- its freshest menu
  compared                 integer NOT NULL,       -- products and sizes that two other locations of the state offer as well
  cheapest                 integer NOT NULL,
  PRIMARY KEY (run_id, place)
);
CREATE INDEX analytics_cheapest_stats_level ON analytics_cheapest_stats (run_id, level, state, place);
CREATE INDEX analytics_cheapest_stats_brand ON analytics_cheapest_stats (run_id, brand_id, place) WHERE brand_id IS NOT NULL;
CREATE INDEX analytics_cheapest_stats_store ON analytics_cheapest_stats (run_id, dispensary_id, place);

-- Checked specials (special_checks): whether the store really asked the regular price.
CREATE TABLE analytics_special_stats (
  run_id                   bigint NOT NULL REFERENCES analytics_runs ON DELETE CASCADE,
  place                    integer NOT NULL,
  product_id               bigint NOT NULL,
  size                     text NOT NULL,          -- empty for options without one
  dispensary_id            integer NOT NULL,
  state                    text,
  category                 text,
  brand_id                 integer,
  brand                    text,
  price                    numeric NOT NULL,
  regular                  numeric NOT NULL,
  verdict                  text NOT NULL,
  score                    integer,
  usual                    numeric,
  observed_days            numeric NOT NULL,
  began_at                 timestamptz NOT NULL,
  observed_from            timestamptz,
  regular_until            timestamptz,
  checked_at               timestamptz NOT NULL,
  PRIMARY KEY (run_id, place)
);
CREATE INDEX analytics_special_stats_store ON analytics_special_stats (run_id, dispensary_id, place);

-- The same by store, brand, category and state.
CREATE TABLE analytics_special_group_stats (
  run_id                   bigint NOT NULL REFERENCES analytics_runs ON DELETE CASCADE,
  place                    integer NOT NULL,
  by                       text NOT NULL CHECK (by IN ('state', 'store', 'brand', 'category')),
  all_states               boolean NOT NULL,
  state                    text,
  dispensary_id            integer,
  brand_id                 integer,
  brand                    text,
  category                 text,
  specials                 integer NOT NULL,
  genuine                  integer NOT NULL,
  doubtful                 integer NOT NULL,
  never_asked              integer NOT NULL,
  unknown                  integer NOT NULL,
  never_asked_share        numeric,                -- of the specials whose verdict is known
  score_median             numeric,
  oldest_check_at          timestamptz NOT NULL,
  PRIMARY KEY (run_id, place)
);

-- Smaller sizes in place of larger ones, at a higher price per unit. At one store, or across stores (`dispensary_id` null).
CREATE TABLE analytics_shrinkflation_stats (
  run_id                   bigint NOT NULL REFERENCES analytics_runs ON DELETE CASCADE,
  place                    integer NOT NULL,
  canonical_product_id     bigint NOT NULL,
  brand_id                 integer,
  category                 text,
  dispensary_id            integer,
  state                    text,
  currency                 text NOT NULL,
  stores                   integer NOT NULL,       -- at which this size took the place of that one
  unit                     text NOT NULL CHECK (unit IN ('g', 'mg', 'pieces')),
  larger                   text NOT NULL,
  smaller                  text NOT NULL,
  larger_price             numeric NOT NULL,       -- regular prices
  smaller_price            numeric NOT NULL,
  larger_until             timestamptz NOT NULL,   -- last crawl that saw the larger size
  smaller_from             timestamptz NOT NULL,   -- first crawl that saw the smaller one
  larger_product_id        bigint,
  smaller_product_id       bigint,
  size_change              numeric NOT NULL,
  unit_price_change        numeric NOT NULL,
  PRIMARY KEY (run_id, place)
);

-- The run that is read.
CREATE VIEW analytics_run AS
SELECT id, finished_at AS refreshed_at, started_at, window_from, window_to, seconds, steps
  FROM analytics_runs WHERE status = 'done' ORDER BY id DESC LIMIT 1;

CREATE VIEW analytics_stores AS SELECT r.refreshed_at, f.* FROM analytics_run r JOIN analytics_store_stats f ON f.run_id = r.id;

CREATE VIEW analytics_price_per_gram AS SELECT r.refreshed_at, f.* FROM analytics_run r JOIN analytics_price_stats f ON f.run_id = r.id;

CREATE VIEW analytics_brand_distribution AS SELECT r.refreshed_at, f.* FROM analytics_run r JOIN analytics_brand_stats f ON f.run_id = r.id;

CREATE VIEW analytics_category_distribution AS SELECT r.refreshed_at, f.* FROM analytics_run r JOIN analytics_category_stats f ON f.run_id = r.id;

CREATE VIEW analytics_discounts AS SELECT r.refreshed_at, f.* FROM analytics_run r JOIN analytics_discount_stats f ON f.run_id = r.id;

CREATE VIEW analytics_out_of_stock AS SELECT r.refreshed_at, f.* FROM analytics_run r JOIN analytics_stock_stats f ON f.run_id = r.id;

CREATE VIEW analytics_out_of_stock_products AS SELECT r.refreshed_at, f.* FROM analytics_run r JOIN analytics_out_product_stats f ON f.run_id = r.id;

CREATE VIEW analytics_new_and_gone AS SELECT r.refreshed_at, f.* FROM analytics_run r JOIN analytics_daily_stats f ON f.run_id = r.id;

CREATE VIEW analytics_distribution AS SELECT r.refreshed_at, f.* FROM analytics_run r JOIN analytics_distribution_stats f ON f.run_id = r.id;

CREATE VIEW analytics_distribution_of_brands AS
SELECT r.refreshed_at, f.* FROM analytics_run r JOIN analytics_brand_distribution_stats f ON f.run_id = r.id;

CREATE VIEW analytics_price_dispersion AS SELECT r.refreshed_at, f.* FROM analytics_run r JOIN analytics_dispersion_stats f ON f.run_id = r.id;

CREATE VIEW analytics_cheapest_quarter AS SELECT r.refreshed_at, f.* FROM analytics_run r JOIN analytics_cheapest_stats f ON f.run_id = r.id;

CREATE VIEW analytics_specials AS
SELECT r.refreshed_at, f.*, currency_of(f.state) AS currency FROM analytics_run r JOIN analytics_special_stats f ON f.run_id = r.id;

CREATE VIEW analytics_special_groups AS SELECT r.refreshed_at, f.* FROM analytics_run r JOIN analytics_special_group_stats f ON f.run_id = r.id;

CREATE VIEW analytics_shrinkflation AS SELECT r.refreshed_at, f.* FROM analytics_run r JOIN analytics_shrinkflation_stats f ON f.run_id = r.id;

-- Options that a product on a menu had, and has no more.
CREATE TABLE gone_options (
  product_id               bigint NOT NULL,
  option                   text NOT NULL,
  regular                  numeric,                -- its last regular price
  seen_to                  timestamptz NOT NULL,
  PRIMARY KEY (product_id, option)
);

-- Figures by day (UTC), which are kept: as of the last refresh of the day, of menus that were not stale then. `state` and `category` are `all` for
-- all of them together.
CREATE TABLE market_days (
  day                      date NOT NULL,
  state                    text NOT NULL COLLATE "C",
  category                 text NOT NULL COLLATE "C",
  products                 integer NOT NULL,       -- on the menus
  in_stock                 integer NOT NULL,
  out_of_stock             integer NOT NULL,       -- listed as such
  unknown_stock            integer GENERATED ALWAYS AS (products - in_stock - out_of_stock) STORED,  -- the menu does not say
  priced                   integer NOT NULL,       -- on offer, with a regular price
  on_special               integer NOT NULL,       -- of these, with an option below it
  depth_median             numeric,
  depth_mean               numeric,
  stores                   integer NOT NULL,
  known_stores             integer NOT NULL,
  PRIMARY KEY (day, state, category)
);
CREATE TABLE brand_days (
  day                      date NOT NULL,
  state                    text NOT NULL COLLATE "C",
  brand_id                 integer NOT NULL,
  products                 integer NOT NULL,
  in_stock                 integer NOT NULL,
  of_products              integer NOT NULL,       -- all on the menus there
  stores                   integer NOT NULL,
  of_stores                integer NOT NULL,
  PRIMARY KEY (day, state, brand_id)
);
CREATE INDEX brand_days_brand ON brand_days (brand_id, state, day);

-- The last check of each special, and when the specials of each store were checked (analytics/special_checks.py).
CREATE TABLE special_checks (
  product_id               bigint NOT NULL,
  size                     text NOT NULL,          -- empty for options without one
  dispensary_id            integer NOT NULL,
  price                    numeric NOT NULL,
  regular                  numeric NOT NULL,
  verdict                  text NOT NULL CHECK (verdict IN ('genuine', 'doubtful', 'never_asked', 'unknown')),
  score                    integer CHECK (score BETWEEN 0 AND 100),  -- null: observed for too short a time
  usual                    numeric,                -- price for half of the observed time
  observed_days            numeric NOT NULL,       -- of the last 90
  began_at                 timestamptz NOT NULL,   -- since when it has been on special
  observed_from            timestamptz,
  regular_until            timestamptz,            -- when the regular price, or more, was asked for the last time
  PRIMARY KEY (product_id, size)
);
CREATE INDEX special_checks_store ON special_checks (dispensary_id);
CREATE TABLE special_check_stores (
  dispensary_id            integer PRIMARY KEY REFERENCES dispensaries (id) ON DELETE CASCADE,
  checked_at               timestamptz NOT NULL
);

-- The price index (docs/explanation/analytics.md#price-index). Days stay as they were computed. `state` and `category` are `all` for all of
-- them together; `change` is the mean logarithm of price relatives, `level` the sum of all changes, and `deviations` what each of 20 groups of
-- stores added to the level beyond its share.
CREATE TABLE price_index_days (
  state                    text NOT NULL,
  category                 text NOT NULL,
  day                      date NOT NULL,
  stores                   integer NOT NULL,       -- with matched items
  known_stores             integer NOT NULL,       -- with matched or carried items
  matched                  integer NOT NULL,
  carried                  integer NOT NULL,
  entered                  integer NOT NULL,
  expired                  integer NOT NULL,
  outliers                 integer NOT NULL,
  change                   double precision,
  level                    double precision NOT NULL,
  deviations               double precision[] NOT NULL,
  PRIMARY KEY (state, category, day)
);
CREATE INDEX price_index_days_day ON price_index_days (day);

-- The last crawl of each store that a day has counted, and that day.
CREATE TABLE price_index_stores (
  dispensary_id            integer PRIMARY KEY REFERENCES dispensaries (id) ON DELETE CASCADE,
  day                      date NOT NULL,
  crawled_at               timestamptz NOT NULL
);

-- The last counted price of each item; `day` is null while it is that of its store, so that an unchanged item writes nothing.
CREATE TABLE price_index_items (
  product_id               bigint NOT NULL,
  option                   text NOT NULL,
  price                    double precision NOT NULL,
  day                      date,
  PRIMARY KEY (product_id, option)
) WITH (fillfactor = 80);
