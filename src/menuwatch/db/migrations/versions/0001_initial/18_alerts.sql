-- Alerts: rules about changes of products, their state per product, events, and deliveries.

-- One rule. Its scope is whatever of the columns from product_id to platform is given, all together.
CREATE TABLE alert_rules (
  id                       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name                     text NOT NULL UNIQUE CHECK (name <> ''),
  condition                text NOT NULL CHECK (condition IN (
                             'price_below', 'price_drops_by', 'back_in_stock', 'out_of_stock', 'new_product', 'circuit_opened',
                             'proxies_down', 'proxies_below', 'no_worker', 'backlog_age', 'failure_rate', 'stores_stale',
                             'quarantined', 'schema_drift', 'disk_low', 'backup_age', 'coverage_below', 'quality_findings',
                             'new_category_words')),
  reach                    text NOT NULL CHECK (reach IN ('product', 'canonical_product', 'brand', 'category', 'search', 'store', 'operations')),
  product_id               bigint,
  canonical_product_id     bigint REFERENCES canonical_products (id),
  dispensary_id            integer REFERENCES dispensaries (id) ON DELETE CASCADE,
  brand                    text,
  category                 text,
  search                   text,
  state                    text,
  platform                 text,
  latitude                 double precision,  -- stores within `miles` of here
  longitude                double precision,
  miles                    double precision,
  amount                   numeric,       -- the threshold, or by how much a price drops, in the store's currency; of operations in the condition's unit
  percent                  numeric,       -- by what share of the price before; of failure_rate the share of tasks, of coverage_below of stores
  option                   text,          -- of a product that has several; null: the cheapest
  price                    text NOT NULL DEFAULT 'effective' CHECK (price IN ('effective', 'rec', 'special', 'med', 'med_special')),
  hysteresis_percent       numeric NOT NULL DEFAULT 2 CHECK (hysteresis_percent >= 0),
  debounce_crawls          integer NOT NULL DEFAULT 1 CHECK (debounce_crawls >= 1),
  debounce_minutes         integer NOT NULL DEFAULT 0 CHECK (debounce_minutes >= 0),
  cooldown_minutes         integer NOT NULL DEFAULT 0 CHECK (cooldown_minutes >= 0),
  digest                   text NOT NULL DEFAULT 'immediately' CHECK (digest IN ('immediately', 'hourly', 'daily')),
  digest_at                time,
  timezone                 text NOT NULL DEFAULT 'UTC',
  on_existing              text NOT NULL DEFAULT 'skip' CHECK (on_existing IN ('skip', 'fire')),
  enabled                  boolean NOT NULL DEFAULT true,
  armed_at                 timestamptz NOT NULL,   -- events before it do not fire the rule
  muted_until              timestamptz,   -- events until then are recorded and not sent
  holds                    boolean NOT NULL DEFAULT false,  -- of operations: whether it is firing
  unlike_since             timestamptz,   -- of operations: since when the reading contradicts `holds`
  read_at                  timestamptz,   -- of operations: the last reading
  created_at               timestamptz NOT NULL,
  updated_at               timestamptz NOT NULL,
  CONSTRAINT alert_rules_near CHECK (num_nulls(latitude, longitude, miles) IN (0, 3)),
  CONSTRAINT alert_rules_daily CHECK ((digest = 'daily') = (digest_at IS NOT NULL))
);
-- A menu looks for its rules by what its changed products are, so that rules about others cost it nothing.
CREATE INDEX alert_rules_product  ON alert_rules (product_id) WHERE enabled AND reach = 'product';
CREATE INDEX alert_rules_canonical ON alert_rules (canonical_product_id) WHERE enabled AND reach = 'canonical_product';
CREATE INDEX alert_rules_brand    ON alert_rules (lower(brand)) WHERE enabled AND reach = 'brand';
CREATE INDEX alert_rules_category ON alert_rules (lower(category)) WHERE enabled AND reach = 'category';
CREATE INDEX alert_rules_store    ON alert_rules (dispensary_id) WHERE enabled AND reach = 'store';
CREATE INDEX alert_rules_others   ON alert_rules (reach) WHERE enabled AND reach IN ('search', 'operations');
CREATE INDEX alert_rules_removed  ON alert_rules (dispensary_id);

-- Where a rule's messages go. Addresses and secrets are encrypted where SECRET_KEY is set; `shown` is safe to display.
CREATE TABLE alert_channels (
  id                       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  rule_id                  integer NOT NULL REFERENCES alert_rules ON DELETE CASCADE,
  kind                     text NOT NULL CHECK (kind IN ('webhook', 'apprise')),
  address                  text NOT NULL,
  secret                   text,
  shown                    text NOT NULL
);
CREATE INDEX alert_channels_rule ON alert_channels (rule_id);

-- The state of a product under a rule. Rows exist only where it does not follow from the product itself.
CREATE TABLE alert_matches (
  rule_id                  integer NOT NULL REFERENCES alert_rules ON DELETE CASCADE,
  product_id               bigint NOT NULL,
  dispensary_id            integer NOT NULL REFERENCES dispensaries (id) ON DELETE CASCADE,
  phase                    text NOT NULL CHECK (phase IN ('armed', 'pending', 'fired')),
  since                    timestamptz,   -- of a pending one: the crawl that first found it so
  crawls                   integer NOT NULL DEFAULT 0,
  reference                numeric,       -- the price that a drop is counted from
  fired_at                 timestamptz,
  PRIMARY KEY (rule_id, product_id)
) WITH (fillfactor = 80);
CREATE INDEX alert_matches_product ON alert_matches (product_id);
CREATE INDEX alert_matches_store   ON alert_matches (dispensary_id);
CREATE INDEX alert_matches_pending ON alert_matches (dispensary_id) WHERE phase = 'pending';

-- Something that a rule was waiting for. `source` names what it was found in: the same thing found again is the same event.
CREATE TABLE alert_events (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  rule_id                  integer NOT NULL REFERENCES alert_rules ON DELETE CASCADE,
  source                   text NOT NULL,
  product_id               bigint,
  dispensary_id            integer,
  fired_at                 timestamptz NOT NULL,   -- of a product: the crawl
  due_at                   timestamptz NOT NULL,   -- when it is put into a message
  notified                 boolean NOT NULL DEFAULT false,  -- put into a message for each channel, if the rule has any and is not muted
  muted                    boolean NOT NULL DEFAULT false,  -- the rule was muted, so there is no message
  facts                    jsonb NOT NULL,         -- product and store by name, before and after; of operations the reading
  created_at               timestamptz NOT NULL DEFAULT now(),
  UNIQUE (rule_id, source)
);
CREATE INDEX alert_events_due  ON alert_events (due_at) WHERE NOT notified;
CREATE INDEX alert_events_time ON alert_events (fired_at DESC, id DESC);
-- The latest events of a rule.
CREATE INDEX alert_events_rule ON alert_events (rule_id, id DESC);

-- One message to one channel, with every try to get it there.
CREATE TABLE alert_deliveries (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  rule_id                  integer NOT NULL REFERENCES alert_rules ON DELETE CASCADE,
  channel_id               integer REFERENCES alert_channels ON DELETE SET NULL,
  channel                  text NOT NULL,         -- as it is shown
  kind                     text NOT NULL DEFAULT 'alert' CHECK (kind IN ('alert', 'test')),
  key                      uuid NOT NULL UNIQUE DEFAULT gen_random_uuid(),  -- lets the receiver recognize a repeated delivery
  event_ids                bigint[] NOT NULL,
  payload                  jsonb NOT NULL,
  status                   text NOT NULL DEFAULT 'waiting' CHECK (status IN ('waiting', 'sending', 'delivered', 'failed')),
  attempts                 integer NOT NULL DEFAULT 0,  -- since it was made or replayed
  replays                  integer NOT NULL DEFAULT 0,
  next_attempt_at          timestamptz,
  response_code            integer,
  error                    text,
  tries                    jsonb NOT NULL DEFAULT '[]',  -- {at, ms, code, error} of each
  created_at               timestamptz NOT NULL,
  delivered_at             timestamptz
);
CREATE INDEX alert_deliveries_due  ON alert_deliveries (next_attempt_at) WHERE status IN ('waiting', 'sending');
CREATE INDEX alert_deliveries_rule ON alert_deliveries (rule_id, id DESC);
CREATE INDEX alert_deliveries_channel ON alert_deliveries (channel_id);
-- The messages of an event.
CREATE INDEX alert_deliveries_events ON alert_deliveries USING gin (event_ids);
