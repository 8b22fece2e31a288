-- Requests: a row for each attempt, totals per host, and scores of proxies and browser profiles.

-- One request: which store, through which proxy, as which browser, how long it waited for its slot, and its result.
CREATE TABLE fetch_attempts (
  id                       bigint GENERATED ALWAYS AS IDENTITY,
  task_id                  bigint,
  dispensary_id            integer,
  host                     text NOT NULL,
  proxy_id                 integer,
  profile                  text,
  verdict                  text NOT NULL,
  blame                    text NOT NULL,
  reaction                 text NOT NULL,
  status                   integer,
  rotated                  boolean NOT NULL DEFAULT false,           -- the identity was replaced because of this response
  waited_ms                double precision NOT NULL DEFAULT 0,      -- for a slot of the host
  bytes                    bigint NOT NULL DEFAULT 0,                -- of the response body, decoded
  elapsed_ms               double precision NOT NULL DEFAULT 0,
  error                    text,
  attempted_at             timestamptz NOT NULL DEFAULT now(),
  task_attempt             integer,                                  -- attempt of the task that sent it
  PRIMARY KEY (id, attempted_at)
) PARTITION BY RANGE (attempted_at);
CREATE INDEX fetch_attempts_task ON fetch_attempts (task_id) WHERE task_id IS NOT NULL;
CREATE INDEX fetch_attempts_time ON fetch_attempts (attempted_at);
-- Requests by store, proxy and host, and the errors among them. Rows are written in small batches, while workers wait for responses.
CREATE INDEX fetch_attempts_store ON fetch_attempts (dispensary_id, attempted_at) WHERE dispensary_id IS NOT NULL;
CREATE INDEX fetch_attempts_proxy ON fetch_attempts (proxy_id, attempted_at) WHERE proxy_id IS NOT NULL;
CREATE INDEX fetch_attempts_host ON fetch_attempts (host, attempted_at);
CREATE INDEX fetch_attempts_errors ON fetch_attempts (verdict, attempted_at) WHERE verdict <> 'ok';

-- As ensure_task_history_partition, for the same reasons.
CREATE FUNCTION ensure_fetch_attempts_partition(instant timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  day date := (instant AT TIME ZONE 'UTC')::date;
  part text := 'fetch_attempts_' || to_char(day, 'YYYYMMDD');
BEGIN
  IF to_regclass(part) IS NOT NULL THEN RETURN false; END IF;
  PERFORM pg_advisory_xact_lock(hashtext('fetch_attempts'));
  EXECUTE format('CREATE TABLE %I (LIKE fetch_attempts INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES)', part);
  EXECUTE format('ALTER TABLE fetch_attempts ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', part,
                 day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC');
  RETURN true;
EXCEPTION WHEN duplicate_table THEN
  RETURN false;
END $$;

SELECT ensure_fetch_attempts_partition(now() + make_interval(days => d)) FROM generate_series(0, 3) d;

-- Totals per host, kept after the rows are deleted.
CREATE TABLE fetch_totals (
  host                     text NOT NULL,
  verdict                  text NOT NULL,
  requests                 bigint NOT NULL,
  rotations                bigint NOT NULL,
  bytes                    bigint NOT NULL,
  waited_ms                double precision NOT NULL,
  elapsed_ms               double precision NOT NULL,
  PRIMARY KEY (host, verdict)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Successes and refusals of each proxy, and of each browser profile, at a host. Both numbers halve every six hours (hosts/scores.py).
CREATE TABLE proxy_scores (
  host                     text NOT NULL,
  proxy_id                 integer NOT NULL REFERENCES proxies ON DELETE CASCADE,
  good                     double precision NOT NULL,
  bad                      double precision NOT NULL,
  as_of                    timestamptz NOT NULL,
  PRIMARY KEY (host, proxy_id)
) WITH (fillfactor = 70);

CREATE TABLE profile_scores (
  host                     text NOT NULL,
  profile                  text NOT NULL,
  good                     double precision NOT NULL,
  bad                      double precision NOT NULL,
  as_of                    timestamptz NOT NULL,
  PRIMARY KEY (host, profile)
) WITH (fillfactor = 70);
