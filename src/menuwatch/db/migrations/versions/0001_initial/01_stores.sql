-- Stores, and the locations where discovery found them.

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
  shown                    boolean,       -- on the public site, as a person decided; null: while it is crawled
  details_by_person        jsonb NOT NULL DEFAULT '{}',  -- name, address, city …: what a platform says of these is not taken
  crawl_interval_hours     numeric NOT NULL DEFAULT 4 CHECK (crawl_interval_hours > 0),
  first_crawled_at         timestamptz,
  last_crawled_at          timestamptz,   -- the newest crawl whose menu was applied to the catalogue
  last_crawl_at            timestamptz,   -- the same under its former name
  last_payload_id          bigint,
  last_attempt_at          timestamptz,
  last_fetch_at            timestamptz,   -- the newest menu that was fetched whole, whether or not it has been applied yet
  last_error               text,
  product_count            integer,
  created_at               timestamptz NOT NULL DEFAULT now(),
  updated_at               timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT dispensaries_position CHECK (latitude >= -90 AND latitude <= 90 AND longitude >= -180 AND longitude <= 180)
);
-- A slug may change hands when a shop is renamed; the platform's id never does.
CREATE UNIQUE INDEX dispensaries_platform_id ON dispensaries (platform, platform_dispensary_id) WHERE platform_dispensary_id IS NOT NULL;
CREATE INDEX dispensaries_slug ON dispensaries (platform, slug);
-- A store added by its address alone is known by the slug until its id is resolved.
CREATE UNIQUE INDEX dispensaries_unresolved_slug ON dispensaries (platform, slug) WHERE platform_dispensary_id IS NULL;
CREATE INDEX dispensaries_state ON dispensaries (state);

-- A statement that names only one of the two names of a store gives both; `last_crawl_at` follows `last_crawled_at`.
CREATE FUNCTION complete_store() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.last_crawl_at IS DISTINCT FROM NEW.last_crawled_at
     AND NEW.last_crawl_at IS DISTINCT FROM (CASE TG_OP WHEN 'UPDATE' THEN OLD.last_crawl_at END) THEN
    RAISE EXCEPTION 'dispensaries.last_crawl_at is derived from crawls and cannot be set' USING ERRCODE = 'generated_always',
      HINT = 'To crawl a store now: INSERT INTO worker_tasks (role, dispensary_id, priority) VALUES (''payload_fetch'', <id>, 20).';
  END IF;
  NEW.last_crawl_at := NEW.last_crawled_at;
  NEW.name := coalesce(NEW.name, NEW.name_raw);
  NEW.name_raw := coalesce(NEW.name_raw, NEW.name);
  RETURN NEW;
END $$;

CREATE TRIGGER dispensaries_complete BEFORE INSERT OR UPDATE OF last_crawled_at, last_crawl_at ON dispensaries
  FOR EACH ROW EXECUTE FUNCTION complete_store();

-- How fresh a store's menu is now, and when its interval is over: the key of lists, which does not move with the clock. The year
-- 1900 is for stores that never had a menu, 9000 for stores that are not crawled.
CREATE FUNCTION store_freshness(store dispensaries) RETURNS TABLE (status text, key timestamptz) LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN NOT store.crawl_enabled THEN 'off'
              WHEN store.platform_dispensary_id IS NULL THEN 'unresolved'
              WHEN store.last_crawled_at IS NULL THEN 'never'
              WHEN now() - store.last_crawled_at > 2 * store.crawl_interval_hours * interval '1 hour' THEN 'stale'
              WHEN now() - store.last_crawled_at > 1.25 * store.crawl_interval_hours * interval '1 hour' THEN 'late'
              ELSE 'fresh' END,
         CASE WHEN NOT store.crawl_enabled OR store.platform_dispensary_id IS NULL THEN '9000-01-01Z'::timestamptz
              WHEN store.last_crawled_at IS NULL THEN '1900-01-01Z'::timestamptz
              ELSE store.last_crawled_at + store.crawl_interval_hours * interval '1 hour' END
$$;

-- A time zone that this server knows, or UTC.
CREATE FUNCTION known_timezone(name text) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
  PERFORM now() AT TIME ZONE name;
  RETURN coalesce(name, 'UTC');
EXCEPTION WHEN invalid_parameter_value THEN
  RETURN 'UTC';
END $$;

-- Stores that discovery found, of every platform: the name is that of the first platform, which SQL of other people relies on. The
-- platforms number their stores independently, so an id is unique within its platform only.
CREATE TABLE dutchie_discovery_locations (
  id                       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  platform                 text NOT NULL DEFAULT 'dutchie',
  platform_dispensary_id   text NOT NULL,
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
CREATE UNIQUE INDEX dutchie_discovery_locations_store ON dutchie_discovery_locations (platform, platform_dispensary_id);
