-- When a task counts as stale, and when a worker counts as alive: every view, statement and function takes it from here.

-- A task is stale when its worker has sent no heartbeat for `stale_after`: it shows as such, and is taken back (09_task_recovery.sql). One
-- row; processes that take tasks back set it (STALE_AFTER_MINUTES). `retry_base` is the first wait before a task is tried again by workers
-- that give none of their own (TASK_RETRY_BASE_SECONDS). `platform_hosts` are the hosts that tasks of each platform request, as the last
-- server that started is configured: {"dutchie": ["dutchie.com"]}.
CREATE TABLE queue_settings (
  singleton                boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  stale_after              interval NOT NULL DEFAULT '10 minutes' CHECK (stale_after > interval '0'),
  retry_base               interval NOT NULL DEFAULT '30 seconds' CHECK (retry_base >= interval '0'),
  platform_hosts           jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(platform_hosts) = 'object')
);
INSERT INTO queue_settings DEFAULT VALUES;

-- A task whose last heartbeat is older than this moment is stale. Write `(SELECT stale_before())`: so it is read once per statement.
CREATE FUNCTION stale_before() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT now() - stale_after FROM queue_settings
$$;

-- The status of a live task. A claimed task counts as running from its first heartbeat on.
CREATE FUNCTION live_task_status(state "char", claimed_at timestamptz, started_at timestamptz, last_heartbeat_at timestamptz,
                                 stale_before timestamptz)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN state <> 'a' THEN 'pending'
              WHEN coalesce(last_heartbeat_at, claimed_at) < stale_before THEN 'stale'
              WHEN started_at IS NULL THEN 'claimed'
              ELSE 'running' END
$$;

-- Workers send a heartbeat every 30 seconds by default; one may be late or lost.
CREATE FUNCTION worker_alive_for() RETURNS interval LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT interval '2 minutes' $$;

CREATE FUNCTION worker_alive(status text, last_heartbeat_at timestamptz) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT status <> 'stopped' AND last_heartbeat_at > now() - worker_alive_for()
$$;
