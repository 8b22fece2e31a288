-- Stores, where they were found, the proxies that reach them, and the archive's metadata.

CREATE TABLE dispensaries (
  id                       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  platform                 text NOT NULL DEFAULT 'dutchie',
  platform_dispensary_id   text,
  slug                     text,
  name                     text NOT NULL,
  name_raw                 text NOT NULL,
  menu_url                 text,
  address                  text,
  city                     text,
  state                    text,
  country                  text,
  zipcode                  text,
  latitude                 double precision,
  longitude                double precision,
  timezone                 text,
  phone                    text,
  is_recreational          boolean,
  is_medical               boolean,
  enterprise_id            text,
  crawl_enabled            boolean NOT NULL DEFAULT true,
  crawl_interval_hours     numeric NOT NULL DEFAULT 4 CHECK (crawl_interval_hours > 0),
  first_crawled_at         timestamptz,
  last_crawled_at          timestamptz,   -- the newest crawl whose menu was applied to the catalogue
  last_payload_id          bigint,
  last_attempt_at          timestamptz,
  last_error               text,
  product_count            integer,
  created_at               timestamptz NOT NULL DEFAULT now(),
  updated_at               timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT dispensaries_position CHECK (latitude BETWEEN -90 AND 90 AND longitude BETWEEN -180 AND 180)
);
-- A slug may change hands when a shop is renamed; the platform's id never does.
CREATE UNIQUE INDEX dispensaries_platform_id ON dispensaries (platform, platform_dispensary_id) WHERE platform_dispensary_id IS NOT NULL;
CREATE INDEX dispensaries_slug ON dispensaries (platform, slug);
-- A store added by its address alone is known by the slug until its id is resolved.
CREATE UNIQUE INDEX dispensaries_unresolved_slug ON dispensaries (platform, slug) WHERE platform_dispensary_id IS NULL;
CREATE INDEX dispensaries_state ON dispensaries (state);

CREATE TABLE dutchie_discovery_locations (
  id                       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  platform_dispensary_id   text NOT NULL UNIQUE,
  slug                     text NOT NULL,
  name                     text NOT NULL,
  city                     text,
  state                    text,
  country                  text,
  status                   text NOT NULL DEFAULT 'found' CHECK (status IN ('found', 'promoted', 'rejected')),
  reason                   text,
  dispensary_id            integer REFERENCES dispensaries (id) ON DELETE SET NULL,
  raw                      jsonb NOT NULL,
  first_seen_at            timestamptz NOT NULL DEFAULT now(),
  last_seen_at             timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT discovery_reason CHECK ((status = 'rejected') = (reason IS NOT NULL))
);

CREATE TABLE proxies (
  id                       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  protocol                 text NOT NULL DEFAULT 'http' CHECK (protocol IN ('http', 'https', 'socks5')),
  host                     text NOT NULL CHECK (host <> ''),
  port                     integer NOT NULL CHECK (port BETWEEN 1 AND 65535),
  username                 text,
  password                 text,                         -- `fernet:…` where it is sealed (proxies/vault.py)
  is_active                boolean NOT NULL DEFAULT true,   -- may be picked
  city                     text,
  state                    text,
  country                  text,
  timezone                 text,
  last_used_at             timestamptz,
  failure_count            integer NOT NULL DEFAULT 0,   -- consecutive failures that were the proxy's fault
  success_count            bigint  NOT NULL DEFAULT 0,
  consecutive_403_count    integer NOT NULL DEFAULT 0,
  avg_response_time_ms     double precision,
  last_failure_at          timestamptz,
  last_error               text,
  deactivated_at           timestamptz,
  disabled_at              timestamptz,                  -- an operator took it out: nothing but an operator brings it back
  disabled_reason          text,
  probe_at                 timestamptz,                  -- when one that its health took out is tried again
  probe_failures           integer NOT NULL DEFAULT 0,   -- probes in a row that failed
  created_at               timestamptz NOT NULL DEFAULT now(),
  updated_at               timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT proxies_disabled CHECK ((disabled_at IS NULL) = (disabled_reason IS NULL) AND (disabled_at IS NULL OR NOT is_active))
);
CREATE UNIQUE INDEX proxies_address ON proxies (protocol, host, port, coalesce(username, ''));
CREATE INDEX proxies_probe ON proxies (probe_at) WHERE NOT is_active AND disabled_at IS NULL;

-- One raw answer of a platform for one store. The row and its file are written together or not at all (archive/__init__.py).
CREATE TABLE raw_crawl_payloads (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  task_id                  bigint,
  dispensary_id            integer NOT NULL REFERENCES dispensaries (id) ON DELETE CASCADE,
  platform                 text NOT NULL,
  status                   text NOT NULL CHECK (status IN ('ok', 'partial', 'quarantined', 'rejected')),
  reason                   text,
  product_count            integer NOT NULL DEFAULT 0 CHECK (product_count >= 0),
  total_count              integer,
  page_count               integer NOT NULL DEFAULT 0,
  is_first                 boolean NOT NULL DEFAULT false,
  fetched_at               timestamptz NOT NULL,
  path                     text NOT NULL UNIQUE,
  bytes                    bigint NOT NULL,
  raw_bytes                bigint NOT NULL,
  sha256                   text NOT NULL,                -- of the document before compression
  content_sha256           text NOT NULL,                -- of the page bodies alone: equal menus have equal ones
  notes                    jsonb NOT NULL DEFAULT '[]',
  applied_at               timestamptz,                  -- when product_refresh took it into the catalogue
  released_at              timestamptz,
  created_at               timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT payload_reason CHECK (status = 'ok' OR reason IS NOT NULL),
  CONSTRAINT payload_applied CHECK (applied_at IS NULL OR status = 'ok')
);
CREATE INDEX raw_crawl_payloads_store ON raw_crawl_payloads (dispensary_id, fetched_at DESC, id DESC);
CREATE INDEX raw_crawl_payloads_content ON raw_crawl_payloads (dispensary_id, content_sha256);
CREATE INDEX raw_crawl_payloads_newest ON raw_crawl_payloads (fetched_at DESC, id DESC);
