-- The storefront index (docs/how-to/public-site.md): every listing on the menu of a watched store, once for each of its sizes as an *offer* (this
-- canonical product, in this size, at this store), and summed up for each size and each *item*: the canonical product that it was matched to, under
-- the same number. All derive from the catalogue and from product matching; storefront/indexer.py updates them after a menu was applied or matched,
-- outside these transactions, so a refresh does not pay for them.
--
-- Every sort key is an integer: prices in cents, price per gram or per 10 mg in hundredths of a cent, THC in hundredths of a percent, times in seconds
-- since 1970. So one statement serves every order, and each order has its index.

-- Which crawl of which store has been taken in, and where the store is: its own position, or that of its postcode. Stores with one
-- `location_key` are menus of one location and count as one store.
CREATE TABLE storefront_stores (
  dispensary_id            integer PRIMARY KEY,
  crawled_at               timestamptz NOT NULL,
  payload_id               bigint,
  index_version            integer NOT NULL,     -- version of the rules that made its rows (indexer.RULES)
  location_key             integer NOT NULL,     -- its location; minus its own number where it is linked to none
  offers                   integer NOT NULL,
  latitude                 double precision,
  longitude                double precision,
  indexed_at               timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX storefront_stores_location ON storefront_stores (location_key);

CREATE TABLE storefront_items (
  id                       bigint PRIMARY KEY,   -- of its canonical product
  name                     text NOT NULL,
  brand_id                 integer,
  category                 text NOT NULL COLLATE "C",
  subcategory              text,
  strain                   text COLLATE "C",
  -- Of all its offers. `stores` counts locations; it is 0 where no store has it now: it keeps its URL, as it may come back.
  stores                   integer NOT NULL DEFAULT 0,
  in_stock                 integer NOT NULL DEFAULT 0,    -- stores that say that they have it
  price                    integer,                       -- the lowest of those that are not out of stock, if there are any
  per_gram                 integer,                       -- likewise
  per_dose                 integer,
  thc                      integer,
  on_special               boolean NOT NULL DEFAULT false,
  popularity               integer NOT NULL DEFAULT 0,    -- more at more stores that have it; negative without a price and for accessories
  sizes                    text[] NOT NULL DEFAULT '{}',  -- by weight
  first_seen               integer NOT NULL,
  changed_at               timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX storefront_items_brand ON storefront_items (brand_id, (-popularity), id) WHERE stores > 0;
CREATE INDEX storefront_items_gone ON storefront_items (changed_at) WHERE stores = 0;
CREATE INDEX storefront_items_popular ON storefront_items ((-popularity), id) WHERE stores > 0;
CREATE INDEX storefront_items_price ON storefront_items ((coalesce(price + CASE WHEN category IN ('accessory', 'apparel') THEN 1000000000 ELSE 0 END, 2147483647)), id) WHERE stores > 0;
CREATE INDEX storefront_items_per_gram ON storefront_items (coalesce(per_gram, 1000000000 + per_dose, 2147483647), id) WHERE stores > 0;
CREATE INDEX storefront_items_thc ON storefront_items ((-coalesce(thc, -1)), id) WHERE stores > 0;
CREATE INDEX storefront_items_newest ON storefront_items ((-first_seen), id) WHERE stores > 0;
CREATE INDEX storefront_items_category_popular ON storefront_items (category, (-popularity), id) WHERE stores > 0;
CREATE INDEX storefront_items_category_price ON storefront_items (category, (coalesce(price + CASE WHEN category IN ('accessory', 'apparel') THEN 1000000000 ELSE 0 END, 2147483647)), id) WHERE stores > 0;
CREATE INDEX storefront_items_category_per_gram ON storefront_items (category, coalesce(per_gram, 1000000000 + per_dose, 2147483647), id) WHERE stores > 0;
CREATE INDEX storefront_items_category_thc ON storefront_items (category, (-coalesce(thc, -1)), id) WHERE stores > 0;
CREATE INDEX storefront_items_category_newest ON storefront_items (category, (-first_seen), id) WHERE stores > 0;

-- What an item is found by: its name and brand, and other words that menus write for it. Apart from it, for these words rarely change, and
-- an item's price often does: an index of words is dear to write.
CREATE TABLE storefront_item_words (
  item_id                  bigint PRIMARY KEY REFERENCES storefront_items (id) ON DELETE CASCADE,
  words                    tsvector NOT NULL
);
CREATE INDEX storefront_item_words_index ON storefront_item_words USING gin (words) WITH (fastupdate = off);

-- One size of an item, of all stores. Prices are those of offers that are not out of stock, if there are any.
CREATE TABLE storefront_item_sizes (
  item_id                  bigint NOT NULL REFERENCES storefront_items (id) ON DELETE CASCADE,
  size                     text NOT NULL COLLATE "C",     -- as of the offers
  size_rank                integer NOT NULL,
  stores                   integer NOT NULL,
  in_stock                 integer NOT NULL,
  price                    integer,
  per_gram                 integer,
  per_dose                 integer,
  special_price            integer,                       -- the lowest of those on special that are not out of stock
  special_per_gram         integer,
  special_per_dose         integer,
  PRIMARY KEY (item_id, size)
);
CREATE INDEX storefront_item_sizes_size ON storefront_item_sizes (size, price);
CREATE INDEX storefront_item_sizes_special ON storefront_item_sizes (special_price) WHERE special_price IS NOT NULL;

-- One size of one listing. What is the item's stands here a second time, so that a search near a place reads one table.
CREATE TABLE storefront_offers (
  product_id               bigint NOT NULL,
  size                     text NOT NULL COLLATE "C",     -- as in canonical_sizes; empty for options without one
  size_rank                integer NOT NULL,              -- sizes by weight, then by content, then others
  from_name                boolean NOT NULL,              -- the size was read from the listing's name
  store_id                 integer NOT NULL,
  location_key             integer NOT NULL,     -- as of its store
  item_id                  bigint NOT NULL,
  source_version           bigint NOT NULL,      -- of the product as it was taken in: another one means that it changed
  changed_at               timestamptz NOT NULL, -- when the listing came to be as it is
  first_seen               integer NOT NULL,
  price                    integer,              -- what the cheapest option of the size costs that can be bought, specials included
  regular                  integer,              -- the same option without specials, if that is more
  previous_price           integer,              -- what the size cost before `changed_at`, if that was more
  per_gram                 integer,              -- of goods sold by weight; null where it is implausible
  per_dose                 integer,              -- per 10 mg, of goods sold by content
  thc                      integer,              -- null for goods sold by content
  brand_id                 integer,
  in_stock                 boolean,              -- null: the menu does not say
  category                 text NOT NULL COLLATE "C",
  strain                   text COLLATE "C",
  PRIMARY KEY (product_id, size)
);
CREATE INDEX storefront_offers_store ON storefront_offers (store_id);
CREATE INDEX storefront_offers_item ON storefront_offers (item_id, (in_stock IS false OR coalesce(price, 10) < 10), price, product_id);
CREATE INDEX storefront_offers_drops ON storefront_offers (changed_at DESC) WHERE previous_price IS NOT NULL;

-- Sizes that a store offers below their struck price and that are not out of stock. How long ago a store asked another price does not change while
-- a price lasts, so it is worked out once.
CREATE TABLE storefront_deals (
  product_id               bigint NOT NULL,
  size                     text NOT NULL,        -- empty for options without one
  store_id                 integer NOT NULL,
  price                    integer NOT NULL,
  regular                  integer NOT NULL,     -- the struck price
  percent                  integer NOT NULL,     -- by which the price is lower
  medical                  boolean NOT NULL,     -- the price is for patients
  special                  text,                 -- name of the special, if the menu says
  ends                     integer,              -- when it ends, if the menu says
  began                    integer NOT NULL,     -- since when the size has been on special
  observed_from            timestamptz NOT NULL, -- since when its price is known, three months back at most
  offered_until            timestamptz,          -- when the store asked the struck price, or more, for the last time
  lower_until              timestamptz,          -- when it asked less than now for the last time
  PRIMARY KEY (product_id, size)
);
CREATE INDEX storefront_deals_store ON storefront_deals (store_id);
CREATE INDEX storefront_deals_off ON storefront_deals ((-percent));
CREATE INDEX storefront_deals_newest ON storefront_deals ((-began));
CREATE INDEX storefront_deals_ending ON storefront_deals (ends) WHERE ends IS NOT NULL;

-- Specials of a store by how many products of its menu they name.
CREATE TABLE storefront_promotions (
  store_id                 integer NOT NULL,
  name                     text NOT NULL,
  kind                     text NOT NULL,        -- as in the specials of a product
  products                 integer NOT NULL,
  of_products              integer NOT NULL,     -- on the whole menu
  value                    numeric,
  required_quantity        integer,
  reward_quantity          integer,
  ends_at                  timestamptz,
  PRIMARY KEY (store_id, name, kind)
);

-- Items whose offers are not what their row says any more: written with the offers, and summed up for many stores at once.
CREATE TABLE storefront_dirty_items (item_id bigint PRIMARY KEY);

-- Stores whose listings were matched to another product, and canonical products that were renamed or merged: noted by the transactions that
-- do so. Rows are only added, several for one number if need be: of one unique row the indexer could delete what it does not see the cause of.
CREATE TABLE storefront_dirty_stores (dispensary_id integer NOT NULL);
CREATE INDEX storefront_dirty_stores_store ON storefront_dirty_stores (dispensary_id);
CREATE TABLE storefront_dirty_products (canonical_product_id bigint NOT NULL);
CREATE INDEX storefront_dirty_products_product ON storefront_dirty_products (canonical_product_id);

-- An offer of a listing that is not matched any more keeps its item, so only new links count. Plans are made for the number of rows of each
-- statement: one that was made for a few would compare a million with each other.
CREATE FUNCTION note_matches() RETURNS trigger LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO storefront_dirty_stores SELECT DISTINCT n.dispensary_id FROM new_rows n WHERE n.canonical_product_id IS NOT NULL;
  ELSE
    INSERT INTO storefront_dirty_stores
    SELECT DISTINCT n.dispensary_id FROM new_rows n JOIN old_rows o ON o.product_id = n.product_id
     WHERE n.canonical_product_id IS NOT NULL AND n.canonical_product_id IS DISTINCT FROM o.canonical_product_id;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER product_matches_made AFTER INSERT ON product_matches
  REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION note_matches();
CREATE TRIGGER product_matches_moved AFTER UPDATE ON product_matches
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION note_matches();

CREATE FUNCTION note_canonical_products() RETURNS trigger LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan AS $$
BEGIN
  INSERT INTO storefront_dirty_products
  SELECT n.id FROM new_rows n JOIN old_rows o ON o.id = n.id
   WHERE (n.name, n.brand_id, n.category, n.form, n.strain, n.merged_into) IS DISTINCT FROM (o.name, o.brand_id, o.category, o.form, o.strain, o.merged_into);
  RETURN NULL;
END $$;
CREATE TRIGGER canonical_products_changed AFTER UPDATE ON canonical_products
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION note_canonical_products();

CREATE FUNCTION note_brands() RETURNS trigger LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan AS $$
BEGIN
  INSERT INTO storefront_dirty_products
  SELECT i.id FROM new_rows n JOIN old_rows o ON o.id = n.id JOIN storefront_items i ON i.brand_id = n.id
   WHERE (n.name, n.merged_into) IS DISTINCT FROM (o.name, o.merged_into);
  RETURN NULL;
END $$;
CREATE TRIGGER brands_changed AFTER UPDATE ON brands
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION note_brands();

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
  per_gram                 integer,              -- median of the category
  made_at                  timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (kind, name)
);

-- Metres between two points, along the great circle.
CREATE FUNCTION distance_meters(lat_a double precision, lon_a double precision, lat_b double precision, lon_b double precision) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT round(12742017.6 * asin(sqrt(least(1, sin(radians(lat_a - lat_b) / 2) ^ 2
                                          + cos(radians(lat_a)) * cos(radians(lat_b)) * sin(radians(lon_a - lon_b) / 2) ^ 2))))::integer
$$;

-- Searches that shoppers watch, each once: what it asks of an item and of an offer, so that it can be compared with what changed.
CREATE TABLE watched_searches (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  query                    text NOT NULL UNIQUE,          -- as in the address of its page, without place and order
  words                    tsquery,
  category                 text,
  brands                   integer[],
  strains                  text[],
  sizes                    text[],
  in_stock                 boolean NOT NULL,
  special                  boolean NOT NULL,
  price_min                integer,                       -- units as in storefront_offers
  price_max                integer,
  per_gram_max             integer,
  thc_min                  integer,
  thc_max                  integer
);

-- Watches of shoppers: notifications about one product, or about the products of a brand, a search or a store. The token gives the right to read
-- and end a watch: of a feed only its hash is stored, of others also the token, encrypted like the address, because every message contains it.
CREATE TABLE price_watches (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  token_hash               bytea NOT NULL UNIQUE CHECK (octet_length(token_hash) = 32),
  channel                  text NOT NULL CHECK (channel IN ('feed', 'mail', 'ntfy', 'push')),
  address                  text,                          -- encrypted (core/encryption.py): of a mail, a topic, or a browser's subscription
  token                    text,                          -- encrypted
  address_mark             bytea,                         -- of the address, to limit watches per address
  subject                  text NOT NULL CHECK (subject IN ('item', 'brand', 'search', 'store')),
  item_id                  bigint REFERENCES storefront_items (id) ON DELETE CASCADE,
  brand_id                 integer,
  search_id                bigint REFERENCES watched_searches (id),
  size                     text,                          -- only this size, as in canonical_sizes
  store_id                 integer,                       -- only at this store
  place                    text,                          -- or stores around it,
  latitude                 double precision,
  longitude                double precision,
  miles                    integer,                       -- as far as that
  condition                text NOT NULL CHECK (condition IN ('any_drop', 'price_below', 'back_in_stock', 'new_deal', 'new_product')),
  currency                 text NOT NULL CHECK (currency IN ('USD', 'CAD')),  -- of `amount`, `reference` and a search's price limits; other prices do not count
  amount                   numeric,
  phase                    text NOT NULL CHECK (phase IN ('armed', 'pending', 'fired')),
  reference                numeric,
  fired_at                 timestamptz,
  created_at               timestamptz NOT NULL,
  confirmed_at             timestamptz,                   -- its creation where nothing has to be confirmed
  due_at                   timestamptz,                   -- when there is something to send
  sent_at                  timestamptz,
  attempts                 integer NOT NULL DEFAULT 0,
  ends_at                  timestamptz,                   -- when it ends unless it is used before; null for mail
  CONSTRAINT price_watches_ends CHECK ((channel = 'mail') = (ends_at IS NULL)),
  CONSTRAINT price_watches_address CHECK ((channel <> 'feed') = (address IS NOT NULL) AND (channel <> 'feed') = (token IS NOT NULL)
                                         AND (channel <> 'feed') = (address_mark IS NOT NULL)),
  CONSTRAINT price_watches_amount CHECK ((condition = 'price_below') = (amount IS NOT NULL)),
  CONSTRAINT price_watches_subject CHECK ((subject = 'item') = (item_id IS NOT NULL) AND (subject = 'brand') = (brand_id IS NOT NULL)
                                         AND (subject = 'search') = (search_id IS NOT NULL) AND (subject <> 'store' OR store_id IS NOT NULL)),
  CONSTRAINT price_watches_place CHECK (num_nulls(place, latitude, longitude, miles) IN (0, 4) AND (store_id IS NULL OR place IS NULL))
);
CREATE INDEX price_watches_item ON price_watches (item_id) WHERE confirmed_at IS NOT NULL AND subject = 'item';
CREATE INDEX price_watches_brand ON price_watches (brand_id) WHERE confirmed_at IS NOT NULL AND subject = 'brand';
CREATE INDEX price_watches_search ON price_watches (search_id) WHERE subject = 'search';
CREATE INDEX price_watches_store ON price_watches (store_id) WHERE confirmed_at IS NOT NULL AND subject = 'store';
CREATE INDEX price_watches_changes ON price_watches (id) WHERE subject <> 'item' OR condition = 'new_deal';
CREATE INDEX price_watches_address ON price_watches (address_mark) WHERE address_mark IS NOT NULL;
CREATE INDEX price_watches_due ON price_watches (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX price_watches_ends ON price_watches (ends_at) WHERE ends_at IS NOT NULL;
CREATE INDEX price_watches_unconfirmed ON price_watches (created_at) WHERE confirmed_at IS NULL;

-- What changed offers were before, until the watches of changes were evaluated: without such watches nothing is noted.
CREATE TABLE storefront_former_offers (
  store_id                 integer NOT NULL,
  product_id               bigint NOT NULL,
  size                     text NOT NULL COLLATE "C",
  listed                   boolean NOT NULL,              -- false: there was no such offer
  price                    integer,
  regular                  integer,
  in_stock                 boolean,
  PRIMARY KEY (store_id, product_id, size)
);

-- The first note of an offer counts: of several changes between two evaluations the state before all of them.
CREATE FUNCTION note_former_offers() RETURNS trigger LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM price_watches WHERE subject <> 'item' OR condition = 'new_deal') THEN RETURN NULL; END IF;
  IF TG_OP = 'INSERT' THEN
    INSERT INTO storefront_former_offers (store_id, product_id, size, listed)
    SELECT n.store_id, n.product_id, n.size, false FROM new_rows n ON CONFLICT DO NOTHING;
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO storefront_former_offers (store_id, product_id, size, listed, price, regular, in_stock)
    SELECT o.store_id, o.product_id, o.size, true, o.price, o.regular, o.in_stock FROM old_rows o ON CONFLICT DO NOTHING;
  ELSE
    INSERT INTO storefront_former_offers (store_id, product_id, size, listed, price, regular, in_stock)
    SELECT o.store_id, o.product_id, o.size, true, o.price, o.regular, o.in_stock FROM old_rows o JOIN new_rows n ON n.product_id = o.product_id AND n.size = o.size
     WHERE (n.price, n.regular, n.in_stock) IS DISTINCT FROM (o.price, o.regular, o.in_stock)
        ON CONFLICT DO NOTHING;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER storefront_offers_added AFTER INSERT ON storefront_offers
  REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION note_former_offers();
CREATE TRIGGER storefront_offers_changed AFTER UPDATE ON storefront_offers
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION note_former_offers();
CREATE TRIGGER storefront_offers_removed AFTER DELETE ON storefront_offers
  REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION note_former_offers();

CREATE TABLE price_watch_events (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  watch_id                 bigint NOT NULL REFERENCES price_watches (id) ON DELETE CASCADE,
  happened_at              timestamptz NOT NULL,
  facts                    jsonb NOT NULL,                -- content of the notification: price, previous price, store
  notified                 boolean NOT NULL DEFAULT false,
  UNIQUE (watch_id, happened_at)
);
CREATE INDEX price_watch_events_happened ON price_watch_events (happened_at);  -- what is old is looked for every few seconds
