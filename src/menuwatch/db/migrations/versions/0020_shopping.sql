-- What shoppers look through (docs/how-to/public-site.md): every product that is on the menu of a store that is watched, once as an
-- *offer* (this product at this store) and once as an *item* (the same thing, whoever has it). Both follow from the catalogue; they are
-- kept up by operations/shopping_shelf.py after a menu was applied, never by the transaction that applies it, so a refresh costs what it did.
--
-- Whatever a list is sorted by is a whole number: prices in cents, price per gram in hundredths of a cent, THC in hundredths of a percent,
-- times in seconds since 1970. So one statement has every order, and each order its index.

-- Which crawl of which store has been taken in, and where the store is: its own position, or that of its postcode.
CREATE TABLE shop_stores (
  dispensary_id            integer PRIMARY KEY,
  crawled_at               timestamptz NOT NULL,
  payload_id               bigint,
  rules                    integer NOT NULL,     -- version of the rules that made its rows (shopping_keys.RULES)
  offers                   integer NOT NULL,
  latitude                 double precision,
  longitude                double precision,
  shelved_at               timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE shop_brands (
  id                       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  slug                     text NOT NULL UNIQUE COLLATE "C",
  name                     text NOT NULL
);

CREATE TABLE shop_items (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  key                      uuid NOT NULL UNIQUE,  -- of brand, name and category as they are compared
  name                     text NOT NULL,
  brand_id                 integer,
  category                 text NOT NULL COLLATE "C",
  subcategory              text,
  strain                   text COLLATE "C",
  -- Of all its offers. `stores` is 0 for what nobody has at the moment: it keeps its address, for it may come back.
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
CREATE INDEX shop_items_brand ON shop_items (brand_id, (-in_stock), id) WHERE stores > 0;
CREATE INDEX shop_items_gone ON shop_items (changed_at) WHERE stores = 0;
CREATE INDEX shop_items_popular ON shop_items ((-in_stock), id) WHERE stores > 0;
CREATE INDEX shop_items_price ON shop_items (coalesce(price, 2147483647), id) WHERE stores > 0;
CREATE INDEX shop_items_per_gram ON shop_items (coalesce(per_gram, 2147483647), id) WHERE stores > 0;
CREATE INDEX shop_items_thc ON shop_items ((-coalesce(thc, -1)), id) WHERE stores > 0;
CREATE INDEX shop_items_newest ON shop_items ((-first_seen), id) WHERE stores > 0;
CREATE INDEX shop_items_category_popular ON shop_items (category, (-in_stock), id) WHERE stores > 0;
CREATE INDEX shop_items_category_price ON shop_items (category, coalesce(price, 2147483647), id) WHERE stores > 0;
CREATE INDEX shop_items_category_per_gram ON shop_items (category, coalesce(per_gram, 2147483647), id) WHERE stores > 0;
CREATE INDEX shop_items_category_thc ON shop_items (category, (-coalesce(thc, -1)), id) WHERE stores > 0;
CREATE INDEX shop_items_category_newest ON shop_items (category, (-first_seen), id) WHERE stores > 0;

-- What an item is found by. Apart from it, for these words never change, and an item's price often does: an index of words is dear to write.
CREATE TABLE shop_item_words (
  item_id                  bigint PRIMARY KEY REFERENCES shop_items (id) ON DELETE CASCADE,
  words                    tsvector NOT NULL
);
CREATE INDEX shop_item_words_index ON shop_item_words USING gin (words) WITH (fastupdate = off);

-- One product at one store. What is the item's stands here a second time, so that a search near a place reads one table.
CREATE TABLE shop_offers (
  product_id               bigint PRIMARY KEY,
  store_id                 integer NOT NULL,
  item_id                  bigint NOT NULL,
  stamp                    bigint NOT NULL,      -- of the product as it was taken in: another one means that it changed
  since                    timestamptz NOT NULL, -- when it came to be as it is
  first_seen               integer NOT NULL,
  price                    integer,              -- what its cheapest option costs, specials included
  regular                  integer,              -- the same without specials, where there is one
  was                      integer,              -- what it cost before `since`, where that was more
  per_gram                 integer,
  thc                      integer,
  brand_id                 integer,
  in_stock                 boolean,              -- null: the menu does not say
  category                 text NOT NULL COLLATE "C",
  strain                   text COLLATE "C",
  sizes                    text[] NOT NULL COLLATE "C"
);
CREATE INDEX shop_offers_store ON shop_offers (store_id);
CREATE INDEX shop_offers_item ON shop_offers (item_id, store_id);
CREATE INDEX shop_offers_drops ON shop_offers (since DESC) WHERE was IS NOT NULL;
CREATE INDEX shop_offers_specials ON shop_offers (since DESC) WHERE regular IS NOT NULL;

-- Items whose offers are not what their row says any more: written with the offers, and summed up for many stores at once.
CREATE TABLE shop_touched (item_id bigint PRIMARY KEY);

-- Every word of names and brands, and under which spellings it is looked for: itself, and itself with one letter left out.
-- Two words are one typing error apart (a letter wrong, missing, too many, or two swapped) only where they share a spelling.
CREATE TABLE shop_words (
  word                     text PRIMARY KEY COLLATE "C",
  items                    integer NOT NULL DEFAULT 0
);
CREATE TABLE shop_spellings (
  spelling                 text NOT NULL COLLATE "C",
  word                     text NOT NULL COLLATE "C",
  PRIMARY KEY (spelling, word)
);

-- How much there is of what, for pages that show all of it. Made anew now and then.
CREATE TABLE shop_totals (
  kind                     text NOT NULL CHECK (kind IN ('all', 'category', 'brand')),
  name                     text NOT NULL,
  items                    integer NOT NULL,
  stores                   integer NOT NULL,
  price                    integer,
  made_at                  timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (kind, name)
);

-- Metres between two points, along the great circle.
CREATE FUNCTION shop_meters(lat_a double precision, lon_a double precision, lat_b double precision, lon_b double precision) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT round(12742017.6 * asin(sqrt(least(1, sin(radians(lat_a - lat_b) / 2) ^ 2
                                          + cos(radians(lat_a)) * cos(radians(lat_b)) * sin(radians(lon_a - lon_b) / 2) ^ 2))))::integer
$$;

-- What shoppers want to be told of one item, by mail or by a feed of their own. Whoever knows the token may read and end it: of a feed
-- only its hash is here, of a mail also the token, sealed like the address, for it stands in every mail. Nothing else is known of anybody.
CREATE TABLE shop_watches (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  token_hash               bytea NOT NULL UNIQUE CHECK (octet_length(token_hash) = 32),
  kind                     text NOT NULL CHECK (kind IN ('mail', 'feed')),
  address                  text,                          -- sealed (proxies/vault.py)
  token                    text,                          -- sealed
  address_mark             bytea,                         -- of the address, to count by
  item_id                  bigint NOT NULL REFERENCES shop_items (id) ON DELETE CASCADE,
  store_id                 integer,                       -- this store alone
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
  ends_at                  timestamptz,                   -- of a feed: when it ends unless somebody reads it before
  CONSTRAINT shop_watches_feed CHECK ((kind = 'feed') = (ends_at IS NOT NULL)),
  CONSTRAINT shop_watches_mail CHECK ((kind = 'mail') = (address IS NOT NULL) AND (kind = 'mail') = (token IS NOT NULL)
                                      AND (kind = 'mail') = (address_mark IS NOT NULL)),
  CONSTRAINT shop_watches_amount CHECK ((condition = 'price_below') = (amount IS NOT NULL)),
  CONSTRAINT shop_watches_place CHECK (num_nulls(place, latitude, longitude, miles) IN (0, 4) AND (store_id IS NULL OR place IS NULL))
);
CREATE INDEX shop_watches_item ON shop_watches (item_id) WHERE confirmed_at IS NOT NULL;
CREATE INDEX shop_watches_address ON shop_watches (address_mark) WHERE address_mark IS NOT NULL;
CREATE INDEX shop_watches_due ON shop_watches (mail_due_at) WHERE mail_due_at IS NOT NULL;
CREATE INDEX shop_watches_ends ON shop_watches (ends_at) WHERE ends_at IS NOT NULL;
CREATE INDEX shop_watches_unconfirmed ON shop_watches (created_at) WHERE confirmed_at IS NULL;

CREATE TABLE shop_watch_events (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  watch_id                 bigint NOT NULL REFERENCES shop_watches (id) ON DELETE CASCADE,
  happened_at              timestamptz NOT NULL,
  facts                    jsonb NOT NULL,                -- what is told: price, the price before, where
  told                     boolean NOT NULL DEFAULT false,
  UNIQUE (watch_id, happened_at)
);
CREATE INDEX shop_watch_events_happened ON shop_watch_events (happened_at);  -- what is old is looked for every few seconds

-- What addresses are marked with: without it a mark cannot be guessed from an address.
CREATE TABLE shop_pepper (pepper text NOT NULL);
INSERT INTO shop_pepper VALUES (gen_random_uuid()::text || gen_random_uuid()::text);
