-- The storefront index (docs/how-to/public-site.md): every product on the menu of a watched store, once as an *offer* (this product at this
-- store) and once as an *item* (the same thing at any store). Both derive from the catalogue; storefront/indexer.py updates them after
-- a menu was applied, outside the transaction that applies it, so a refresh does not pay for them.
--
-- Every sort key is an integer: prices in cents, price per gram in hundredths of a cent, THC in hundredths of a percent, times in seconds
-- since 1970. So one statement serves every order, and each order has its index.

-- Which crawl of which store has been taken in, and where the store is: its own position, or that of its postcode.
CREATE TABLE storefront_stores (
  dispensary_id            integer PRIMARY KEY,
  crawled_at               timestamptz NOT NULL,
  payload_id               bigint,
  index_version            integer NOT NULL,     -- version of the rules that made its rows (shopping_keys.RULES)
  offers                   integer NOT NULL,
  latitude                 double precision,
  longitude                double precision,
  indexed_at               timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE storefront_brands (
  id                       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  slug                     text NOT NULL UNIQUE COLLATE "C",
  name                     text NOT NULL
);

CREATE TABLE storefront_items (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  key                      uuid NOT NULL UNIQUE,  -- of brand, name and category as they are compared
  name                     text NOT NULL,
  brand_id                 integer,
  category                 text NOT NULL COLLATE "C",
  subcategory              text,
  strain                   text COLLATE "C",
  -- Of all its offers. `stores` is 0 where no store has it now: it keeps its URL, as it may come back.
  stores                   integer NOT NULL DEFAULT 0,
  in_stock                 integer NOT NULL DEFAULT 0,    -- stores that say that they have it
  price                    integer,                       -- the lowest of those that are not out of stock
  per_gram                 integer,
  thc                      integer,
  on_special               boolean NOT NULL DEFAULT false,
  best_product_id          bigint,                        -- the cheapest that is not out of stock
  sizes                    text[] NOT NULL DEFAULT '{}',
  first_seen               integer NOT NULL,
  changed_at               timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX storefront_items_brand ON storefront_items (brand_id, (-in_stock), id) WHERE stores > 0;
CREATE INDEX storefront_items_gone ON storefront_items (changed_at) WHERE stores = 0;
CREATE INDEX storefront_items_popular ON storefront_items ((-in_stock), id) WHERE stores > 0;
CREATE INDEX storefront_items_price ON storefront_items (coalesce(price, 2147483647), id) WHERE stores > 0;
CREATE INDEX storefront_items_per_gram ON storefront_items (coalesce(per_gram, 2147483647), id) WHERE stores > 0;
CREATE INDEX storefront_items_thc ON storefront_items ((-coalesce(thc, -1)), id) WHERE stores > 0;
CREATE INDEX storefront_items_newest ON storefront_items ((-first_seen), id) WHERE stores > 0;
CREATE INDEX storefront_items_category_popular ON storefront_items (category, (-in_stock), id) WHERE stores > 0;
CREATE INDEX storefront_items_category_price ON storefront_items (category, coalesce(price, 2147483647), id) WHERE stores > 0;
CREATE INDEX storefront_items_category_per_gram ON storefront_items (category, coalesce(per_gram, 2147483647), id) WHERE stores > 0;
CREATE INDEX storefront_items_category_thc ON storefront_items (category, (-coalesce(thc, -1)), id) WHERE stores > 0;
CREATE INDEX storefront_items_category_newest ON storefront_items (category, (-first_seen), id) WHERE stores > 0;

-- What an item is found by. Apart from it, for these words never change, and an item's price often does: an index of words is dear to write.
CREATE TABLE storefront_item_words (
  item_id                  bigint PRIMARY KEY REFERENCES storefront_items (id) ON DELETE CASCADE,
  words                    tsvector NOT NULL
);
CREATE INDEX storefront_item_words_index ON storefront_item_words USING gin (words) WITH (fastupdate = off);

-- One product at one store. What is the item's stands here a second time, so that a search near a place reads one table.
CREATE TABLE storefront_offers (
  product_id               bigint PRIMARY KEY,
  store_id                 integer NOT NULL,
  item_id                  bigint NOT NULL,
  source_version           bigint NOT NULL,      -- of the product as it was taken in: another one means that it changed
  changed_at               timestamptz NOT NULL, -- when it came to be as it is
  first_seen               integer NOT NULL,
  price                    integer,              -- what its cheapest option costs, specials included
  regular                  integer,              -- the same without specials, where there is one
  previous_price           integer,              -- what it cost before `changed_at`, where that was more
  per_gram                 integer,
  thc                      integer,
  brand_id                 integer,
  in_stock                 boolean,              -- null: the menu does not say
  category                 text NOT NULL COLLATE "C",
  strain                   text COLLATE "C",
  sizes                    text[] NOT NULL COLLATE "C"
);
CREATE INDEX storefront_offers_store ON storefront_offers (store_id);
CREATE INDEX storefront_offers_item ON storefront_offers (item_id, store_id);
CREATE INDEX storefront_offers_drops ON storefront_offers (changed_at DESC) WHERE previous_price IS NOT NULL;
CREATE INDEX storefront_offers_specials ON storefront_offers (changed_at DESC) WHERE regular IS NOT NULL;

-- Items whose offers are not what their row says any more: written with the offers, and summed up for many stores at once.
CREATE TABLE storefront_dirty_items (item_id bigint PRIMARY KEY);

-- Every word of names and brands, and under which spellings it is looked for: itself, and itself with one letter left out.
-- Two words are one typing error apart (a letter wrong, missing, too many, or two swapped) only where they share a spelling.
CREATE TABLE storefront_words (
  word                     text PRIMARY KEY COLLATE "C",
  items                    integer NOT NULL DEFAULT 0
);

CREATE TABLE storefront_spellings (
  spelling                 text NOT NULL COLLATE "C",
  word                     text NOT NULL COLLATE "C",
  PRIMARY KEY (spelling, word)
);

-- Totals for overview pages, refreshed from time to time.
CREATE TABLE storefront_totals (
  kind                     text NOT NULL CHECK (kind IN ('all', 'category', 'brand')),
  name                     text NOT NULL,
  items                    integer NOT NULL,
  stores                   integer NOT NULL,
  price                    integer,
  made_at                  timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (kind, name)
);

-- Metres between two points, along the great circle.
CREATE FUNCTION distance_meters(lat_a double precision, lon_a double precision, lat_b double precision, lon_b double precision) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT round(12742017.6 * asin(sqrt(least(1, sin(radians(lat_a - lat_b) / 2) ^ 2
                                          + cos(radians(lat_a)) * cos(radians(lat_b)) * sin(radians(lon_a - lon_b) / 2) ^ 2))))::integer
$$;

-- Price watches of shoppers: notifications about one item, by mail or by a personal feed. The token gives the right to read and end a
-- watch: of a feed only its hash is stored, of a mail also the token, encrypted like the address, because every mail contains it.
CREATE TABLE price_watches (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  token_hash               bytea NOT NULL UNIQUE CHECK (octet_length(token_hash) = 32),
  kind                     text NOT NULL CHECK (kind IN ('mail', 'feed')),
  address                  text,                          -- encrypted (core/encryption.py)
  token                    text,                          -- encrypted
  address_mark             bytea,                         -- of the address, to limit watches per address
  item_id                  bigint NOT NULL REFERENCES storefront_items (id) ON DELETE CASCADE,
  store_id                 integer,                       -- only at this store
  place                    text,                          -- or stores around it,
  latitude                 double precision,
  longitude                double precision,
  miles                    integer,                       -- as far as that
  condition                text NOT NULL CHECK (condition IN ('price_below', 'any_drop', 'back_in_stock')),
  amount                   numeric,
  phase                    text NOT NULL CHECK (phase IN ('armed', 'pending', 'fired')),
  reference                numeric,
  fired_at                 timestamptz,
  created_at               timestamptz NOT NULL,
  confirmed_at             timestamptz,                   -- a feed's is its creation
  mail_due_at              timestamptz,                   -- when there is something to send
  mailed_at                timestamptz,
  attempts                 integer NOT NULL DEFAULT 0,
  ends_at                  timestamptz,                   -- of a feed: when it ends unless it is read before
  CONSTRAINT price_watches_feed CHECK ((kind = 'feed') = (ends_at IS NOT NULL)),
  CONSTRAINT price_watches_mail CHECK ((kind = 'mail') = (address IS NOT NULL) AND (kind = 'mail') = (token IS NOT NULL)
                                      AND (kind = 'mail') = (address_mark IS NOT NULL)),
  CONSTRAINT price_watches_amount CHECK ((condition = 'price_below') = (amount IS NOT NULL)),
  CONSTRAINT price_watches_place CHECK (num_nulls(place, latitude, longitude, miles) IN (0, 4) AND (store_id IS NULL OR place IS NULL))
);
CREATE INDEX price_watches_item ON price_watches (item_id) WHERE confirmed_at IS NOT NULL;
CREATE INDEX price_watches_address ON price_watches (address_mark) WHERE address_mark IS NOT NULL;
CREATE INDEX price_watches_due ON price_watches (mail_due_at) WHERE mail_due_at IS NOT NULL;
CREATE INDEX price_watches_ends ON price_watches (ends_at) WHERE ends_at IS NOT NULL;
CREATE INDEX price_watches_unconfirmed ON price_watches (created_at) WHERE confirmed_at IS NULL;

CREATE TABLE price_watch_events (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  watch_id                 bigint NOT NULL REFERENCES price_watches (id) ON DELETE CASCADE,
  happened_at              timestamptz NOT NULL,
  facts                    jsonb NOT NULL,                -- content of the notification: price, previous price, store
  notified                 boolean NOT NULL DEFAULT false,
  UNIQUE (watch_id, happened_at)
);
CREATE INDEX price_watch_events_happened ON price_watch_events (happened_at);  -- what is old is looked for every few seconds
