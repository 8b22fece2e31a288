-- Product matching (docs/explanation/product-matching.md): which listings are the same product, across stores and platforms. A *listing* is one row of
-- `catalog_products`: one item of one store. A *signature* is what is compared: brand, words, form and numbers as the parser read them, once for
-- all listings that are written alike. Signatures that the matcher judges to be one product share a *canonical product*. All but numbers,
-- corrections and aliases derives from the catalogue; matching/engine.py updates it after a menu was applied, in transactions of its own.

-- A brand has one number. Another spelling of it is an alias; a brand that was merged into another one keeps its row as a redirect.
CREATE TABLE brands (
  id                       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  slug                     text NOT NULL UNIQUE COLLATE "C",
  name                     text NOT NULL,
  named_by_person          boolean NOT NULL DEFAULT false,
  merged_into              integer REFERENCES brands (id),
  created_at               timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT brands_merged CHECK (merged_into <> id)
);
CREATE INDEX brands_merged_into ON brands (merged_into) WHERE merged_into IS NOT NULL;

-- How menus write a brand: `alias` is the spelling in comparable form (lower case, no accents, no punctuation).
CREATE TABLE brand_aliases (
  alias                    text PRIMARY KEY COLLATE "C",
  spelling                 text NOT NULL,
  brand_id                 integer NOT NULL REFERENCES brands (id),
  origin                   text NOT NULL CHECK (origin IN ('spelling', 'learned', 'person')),
  moved_from               integer REFERENCES brands (id),   -- that a person merged into this one, to undo it
  created_at               timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX brand_aliases_brand ON brand_aliases (brand_id);

-- One product of one brand: its line, strain or flavour, and form, in all sizes. A number is never used again; one that was merged into
-- another product stays as a redirect to it.
CREATE TABLE canonical_products (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  brand_id                 integer REFERENCES brands (id),   -- null: the menus name no brand
  name                     text NOT NULL,
  category                 text COLLATE "C",
  form                     text COLLATE "C",
  strain                   text COLLATE "C",
  anchor_product_id        bigint,           -- the listing that it was made for: a rebuild without links finds the number by it
  listings                 integer NOT NULL DEFAULT 0,
  stores                   integer NOT NULL DEFAULT 0,
  merged_into              bigint REFERENCES canonical_products (id),
  created_at               timestamptz NOT NULL DEFAULT now(),
  changed_at               timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT canonical_products_merged CHECK (merged_into <> id)
);
CREATE INDEX canonical_products_stores ON canonical_products (stores DESC, id) WHERE merged_into IS NULL;
CREATE INDEX canonical_products_brand ON canonical_products (brand_id);
CREATE INDEX canonical_products_anchor ON canonical_products (anchor_product_id);
CREATE INDEX canonical_products_merged_into ON canonical_products (merged_into) WHERE merged_into IS NOT NULL;

-- A size of a canonical product in which some store has offered it, as sizes are written everywhere ("3.5 g", "100 mg").
CREATE TABLE canonical_sizes (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  canonical_product_id     bigint NOT NULL REFERENCES canonical_products (id),
  size                     text NOT NULL COLLATE "C",
  UNIQUE (canonical_product_id, size)
);

-- Signatures of one block are compared with each other, and with no other ones.
CREATE TABLE match_signatures (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  key                      uuid NOT NULL UNIQUE,     -- of the parsed text and the version of the parser
  block                    text NOT NULL COLLATE "C",
  parsed                   json NOT NULL,            -- matching/model.py: Signature
  canonical_product_id     bigint REFERENCES canonical_products (id),  -- null until its block was matched
  linked_to                bigint,                   -- the signature that it joined the product by; null: the product's first, or alone
  confidence               double precision,                     -- that it belongs there, 0 to 1
  reasons                  json,                     -- codes with their details (matching/model.py: Reason)
  component                bigint                    -- the lowest signature that pairs which are one product, or may be, lead to; null until matched
);
CREATE INDEX match_signatures_block ON match_signatures (block);
CREATE INDEX match_signatures_component ON match_signatures (component);
CREATE INDEX match_signatures_product ON match_signatures (canonical_product_id);

-- The link of each listing. `source_version` is that of the values that it was made from: another one means that it is outdated.
CREATE TABLE product_matches (
  product_id               bigint PRIMARY KEY,
  dispensary_id            integer NOT NULL,
  source_version           bigint NOT NULL,
  signature_id             bigint NOT NULL REFERENCES match_signatures (id),
  canonical_product_id     bigint REFERENCES canonical_products (id),  -- null until its block was matched
  platform_ids             text[] NOT NULL DEFAULT '{}' COLLATE "C",   -- ids that hold beyond one store, as "jane:2312356"
  sizes                    text[] NOT NULL DEFAULT '{}' COLLATE "C",
  name_words               text[] COLLATE "C",       -- by which a brand can be found in its name; null: its brand field names the brand
  matched_at               timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX product_matches_signature ON product_matches (signature_id);
CREATE INDEX product_matches_product ON product_matches (canonical_product_id);
CREATE INDEX product_matches_store ON product_matches (dispensary_id);
CREATE INDEX product_matches_ids ON product_matches USING gin (platform_ids);
-- Listings whose names may begin with a brand that becomes known.
CREATE INDEX product_matches_words ON product_matches USING gin (name_words) WHERE name_words IS NOT NULL;

-- Which menu of which store has been taken in.
CREATE TABLE match_stores (
  dispensary_id            integer PRIMARY KEY,
  crawled_at               timestamptz NOT NULL,
  rules_version            integer NOT NULL,  -- 0: to be taken in again; -1: because all is rebuilt; -2: because a person changed a brand
  matched_at               timestamptz NOT NULL DEFAULT now()
);

-- Blocks to be matched again: they have new signatures or listings, or a correction.
CREATE TABLE match_dirty_blocks (
  block                    text PRIMARY KEY COLLATE "C",
  cause                    text NOT NULL DEFAULT 'correction' CHECK (cause IN ('menu', 'correction', 'rules'))
);

-- Pairs that a person should judge, the most doubtful and the most used first. Derived: replaced with each block.
CREATE TABLE match_reviews (
  a                        bigint NOT NULL,          -- signatures
  b                        bigint NOT NULL,
  confidence               double precision NOT NULL,            -- that both are one product
  together                 boolean NOT NULL,         -- whether they are in one canonical product now
  impact                   integer NOT NULL,         -- listings that a decision moves
  reasons                  json NOT NULL,
  skipped_at               timestamptz,
  PRIMARY KEY (a, b),
  CONSTRAINT match_reviews_order CHECK (a < b)
);
CREATE INDEX match_reviews_b ON match_reviews (b);
CREATE INDEX match_reviews_queue ON match_reviews (((0.5 - abs(confidence - 0.5)) * ln(1 + impact)) DESC, a, b) WHERE skipped_at IS NULL;

-- What people said of two listings. It holds for everything that is written like them, and is kept with the texts that they were judged
-- by, so that it outlives signatures, parsers and the listings themselves.
CREATE TABLE match_corrections (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  same                     boolean NOT NULL,
  a_key                    uuid NOT NULL,            -- of its signature, as the present parser reads `a`
  b_key                    uuid NOT NULL,
  a                        json NOT NULL,            -- matching/model.py: Listing
  b                        json NOT NULL,
  note                     text,
  made_by                  text NOT NULL,
  made_at                  timestamptz NOT NULL DEFAULT now(),
  withdrawn_at             timestamptz,
  withdrawn_by             text,                     -- null with a time: a newer one superseded it
  CONSTRAINT match_corrections_order CHECK (a_key < b_key),
  CONSTRAINT match_corrections_withdrawn CHECK (withdrawn_by IS NULL OR withdrawn_at IS NOT NULL)
);
CREATE UNIQUE INDEX match_corrections_pair ON match_corrections (a_key, b_key) WHERE withdrawn_at IS NULL;
CREATE INDEX match_corrections_b ON match_corrections (b_key) WHERE withdrawn_at IS NULL;

-- What became of numbers, for the feed of changes: products that became one, and listings that left one.
CREATE TABLE match_events (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at                       timestamptz NOT NULL DEFAULT now(),
  kind                     text NOT NULL CHECK (kind IN ('merged', 'split')),
  from_id                  bigint NOT NULL REFERENCES canonical_products (id),
  to_id                    bigint NOT NULL REFERENCES canonical_products (id),
  listings                 integer NOT NULL,
  cause                    text NOT NULL CHECK (cause IN ('menu', 'correction', 'rules')),
  position                 bigint            -- in the feed of changes, after commit (number_crawls)
);
CREATE UNIQUE INDEX match_events_position ON match_events (position) WHERE position IS NOT NULL;
CREATE INDEX match_events_unnumbered ON match_events (id) WHERE position IS NULL;
CREATE INDEX match_events_at ON match_events (at, id);
CREATE INDEX match_events_from ON match_events (from_id);
CREATE INDEX match_events_to ON match_events (to_id);

-- One shop at one place, across platforms and licences; each row of `dispensaries` is one menu of it. Merged ones stay as redirects.
CREATE TABLE locations (
  id                       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name                     text NOT NULL,
  chain                    text,
  address                  text,
  city                     text,
  state                    text,
  zipcode                  text,
  latitude                 double precision,
  longitude                double precision,
  phone                    text,
  merged_into              integer REFERENCES locations (id),
  created_at               timestamptz NOT NULL DEFAULT now(),
  changed_at               timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT locations_merged CHECK (merged_into <> id)
);
CREATE INDEX locations_state ON locations (state);
CREATE INDEX locations_merged_into ON locations (merged_into) WHERE merged_into IS NOT NULL;

-- A licence of a state's register, as imported.
CREATE TABLE licences (
  id                       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  state                    text NOT NULL,
  number                   text NOT NULL COLLATE "C",
  holder                   text NOT NULL,            -- legal name
  trade_name               text,
  kind                     text,                     -- the register's own word
  status                   text,                     -- the register's own word
  operating                boolean,                  -- null: the register does not say
  address                  text,
  city                     text,
  zipcode                  text,
  latitude                 double precision,
  longitude                double precision,
  phone                    text,
  issued_on                date,
  expires_on               date,
  imported_at              timestamptz NOT NULL DEFAULT now(),
  gone_at                  timestamptz,              -- since when a newer register no longer has it
  UNIQUE (state, number)
);

-- Which location a menu or a licence belongs to, and why. A person's word is never overwritten by the matcher.
CREATE TABLE location_links (
  location_id              integer NOT NULL REFERENCES locations (id),
  dispensary_id            integer UNIQUE REFERENCES dispensaries (id) ON DELETE CASCADE,
  licence_id               integer UNIQUE REFERENCES licences (id) ON DELETE CASCADE,
  confidence               double precision NOT NULL,
  reasons                  json NOT NULL,
  decided_by               text,                     -- the user who said so; null: the matcher
  linked_at                timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT location_links_one CHECK (num_nonnulls(dispensary_id, licence_id) = 1)
);
CREATE INDEX location_links_location ON location_links (location_id);
