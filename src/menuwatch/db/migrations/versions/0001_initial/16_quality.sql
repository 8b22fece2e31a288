-- Data quality monitors (docs/how-to/data-quality-monitors.md).

-- What one menu says about its fields: one row for each measured crawl of a store. `values` has the measures by name
-- (quality/measures.py); those that the menu has no data for are not in it. A quarantined menu is not in the catalogue: only its products
-- are counted.
CREATE TABLE quality_measures (
  dispensary_id            integer NOT NULL REFERENCES dispensaries (id) ON DELETE CASCADE,
  crawled_at               timestamptz NOT NULL,
  platform                 text NOT NULL,
  is_quarantined           boolean NOT NULL DEFAULT false,
  release                  text NOT NULL,          -- version of Menuwatch and of the platform's normalizer
  values                   jsonb NOT NULL,
  checked_at               timestamptz,            -- null: not compared with its bands yet
  PRIMARY KEY (dispensary_id, crawled_at)
);
CREATE INDEX quality_measures_time ON quality_measures (crawled_at);
CREATE INDEX quality_measures_unchecked ON quality_measures (crawled_at) WHERE checked_at IS NULL;

-- Rules of operators: a measure, where it applies, and a limit; or that a measure is not monitored there (`ignore`).
CREATE TABLE quality_rules (
  id                       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  measure                  text NOT NULL,
  condition                text NOT NULL CHECK (condition IN ('above', 'below', 'ignore')),
  amount                   double precision,
  severity                 text CHECK (severity IN ('critical', 'warning', 'info')),
  platform                 text,
  dispensary_id            integer REFERENCES dispensaries (id) ON DELETE CASCADE,
  note                     text,
  created_by               text NOT NULL,
  created_at               timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT quality_rules_amount CHECK ((condition = 'ignore') = (amount IS NULL) AND (condition = 'ignore') = (severity IS NULL))
);

-- A measure of a store outside its band, or one that meets a rule, from the first crawl that has it on.
CREATE TABLE quality_findings (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  dispensary_id            integer NOT NULL REFERENCES dispensaries (id) ON DELETE CASCADE,
  measure                  text NOT NULL,
  rule_id                  integer REFERENCES quality_rules (id) ON DELETE CASCADE,
  direction                text NOT NULL CHECK (direction IN ('up', 'down')),
  severity                 text NOT NULL CHECK (severity IN ('critical', 'warning', 'info')),
  opened_at                timestamptz NOT NULL,   -- the first crawl that has it,
  seen_at                  timestamptz NOT NULL,   -- and the last one
  crawls                   integer NOT NULL DEFAULT 1,
  value                    double precision NOT NULL,  -- at the last one
  expected                 double precision,       -- null: of a rule
  low                      double precision,
  high                     double precision,
  release_changed          boolean NOT NULL,       -- Menuwatch or its normalizer was updated between the crawl before and the first one
  scope                    text NOT NULL DEFAULT 'store'
                             CHECK (scope IN ('store', 'chain', 'point_of_sale', 'platform', 'normalizer')),
  scope_key                text,                   -- the chain, point of sale or platform
  scope_affected           integer NOT NULL DEFAULT 1,   -- stores of the scope with the same finding at the same time,
  scope_stores             integer NOT NULL DEFAULT 1,   -- of so many that were measured
  closed_at                timestamptz,
  outcome                  text CHECK (outcome IN ('recovered', 'accepted', 'worsened', 'unmeasured', 'ignored')),
  CONSTRAINT quality_findings_closed CHECK ((closed_at IS NULL) = (outcome IS NULL))
);
CREATE UNIQUE INDEX quality_findings_open ON quality_findings (dispensary_id, measure, coalesce(rule_id, 0)) WHERE closed_at IS NULL;
CREATE INDEX quality_findings_store ON quality_findings (dispensary_id, opened_at);
CREATE INDEX quality_findings_time ON quality_findings (opened_at DESC, id DESC);

-- Words that platforms use for categories, from the first menu that has each. `is_event`: the platform was known for a day by then.
CREATE TABLE quality_category_words (
  platform                 text NOT NULL,
  word                     text NOT NULL,
  category                 text,                   -- canonical, at that time; null: not known to the taxonomy
  dispensary_id            integer REFERENCES dispensaries (id) ON DELETE SET NULL,
  first_seen_at            timestamptz NOT NULL,
  is_event                 boolean NOT NULL,
  PRIMARY KEY (platform, word)
);
CREATE INDEX quality_category_words_time ON quality_category_words (first_seen_at DESC) WHERE is_event;

-- Values of the weekly audit sample, traced back to the bytes of their payload.
CREATE TABLE quality_audits (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  audited_at               timestamptz NOT NULL DEFAULT now(),
  dispensary_id            integer NOT NULL REFERENCES dispensaries (id) ON DELETE CASCADE,
  product_id               bigint NOT NULL,
  payload_id               bigint NOT NULL,
  field                    text NOT NULL,
  value                    text NOT NULL,          -- what the catalogue said
  found                    text,                   -- what the payload says, normalized again
  result                   text NOT NULL CHECK (result IN ('equal', 'different', 'not_found', 'unreadable')),
  detail                   text,
  page                     integer,                -- from 1; the item's place in the payload
  item_offset              bigint,
  item_length              bigint
);

-- The point of sale (the shop's own software) of a store, as people say: menus do not name it.
CREATE TABLE quality_points_of_sale (
  dispensary_id            integer PRIMARY KEY REFERENCES dispensaries (id) ON DELETE CASCADE,
  name                     text NOT NULL
);

-- The newest check of each store: its bands as {measure: {value, expected, low, high, scale, crawls, weekday}}, and its score.
CREATE TABLE quality_stores (
  dispensary_id            integer PRIMARY KEY REFERENCES dispensaries (id) ON DELETE CASCADE,
  platform                 text NOT NULL,
  crawled_at               timestamptz NOT NULL,
  crawls                   integer NOT NULL,       -- measured crawls that the bands are learned from
  bands                    jsonb NOT NULL,
  score                    integer CHECK (score BETWEEN 0 AND 100),
  reason                   text,                   -- why there is no score
  completeness             double precision NOT NULL,
  CONSTRAINT quality_stores_reason CHECK ((score IS NULL) = (reason IS NOT NULL))
) WITH (fillfactor = 70);
