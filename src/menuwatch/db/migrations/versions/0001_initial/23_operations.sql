-- Operations: maintenance jobs, backups, secrets of the installation.

CREATE TABLE maintenance_runs (
  job                      text PRIMARY KEY CHECK (job <> ''),
  succeeded_at             timestamptz,      -- last success
  attempted_at             timestamptz,
  error                    text,             -- of the last run; null where it succeeded
  duration                 interval          -- of the last run; null where it was refused
);

-- The last reading of the clock before a deletion: one row, made by the first reading (ops/retention.py has the rules). `ran` is
-- how long processes have run since a look that was not trusted.
CREATE TABLE retention_clock (
  singleton                boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  trusted_at               timestamptz NOT NULL,
  seen_at                  timestamptz NOT NULL,
  ran                      interval NOT NULL DEFAULT '0'
);

-- The newest backup into each folder. `made_at` is the moment whose rows it holds; `folder` is its absolute path on `host`.
CREATE TABLE backups (
  host text NOT NULL,
  folder text NOT NULL,
  backup text NOT NULL,
  made_at timestamptz NOT NULL,
  rows bigint NOT NULL CHECK (rows >= 0),
  files bigint NOT NULL CHECK (files >= 0),
  bytes bigint NOT NULL CHECK (bytes >= 0),
  missing integer NOT NULL CHECK (missing >= 0),
  PRIMARY KEY (host, folder)
);

-- Random keys of this installation, by what they are for:
--   crawl_webhooks   addresses of webhooks are derived from it where SECRET_KEY is not set
--   watch_addresses  e-mail addresses are hashed with it, so that a hash cannot be guessed from an address
--   web_push         private key of web push, as core/encryption.py stores it; made when first needed
--   login_failures   names and addresses in `login_failures` are hashed with it; made when first needed, deleted after a day
CREATE TABLE app_secrets (
  name                     text PRIMARY KEY CHECK (name <> ''),
  value                    bytea NOT NULL CHECK (octet_length(value) >= 16),
  created_at               timestamptz NOT NULL DEFAULT now()
);
INSERT INTO app_secrets (name, value)
SELECT name, decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex')
  FROM unnest(ARRAY['crawl_webhooks', 'watch_addresses']) name;

-- Free space of each machine that runs servers or workers, on the fullest of its disks; while an alert rule asks for it.
CREATE TABLE disk_readings (
  machine                  text NOT NULL CHECK (machine <> ''),
  place                    text NOT NULL,
  free_bytes               bigint NOT NULL CHECK (free_bytes >= 0),
  read_at                  timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (machine, place)
);
