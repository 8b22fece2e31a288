-- Target hosts: one request budget per host for all workers, cool-down, circuit breaker, robots.txt, and leases of identities.
--
-- Lock order: the host's row first, then proxies (each by id), then scores. So no two transactions wait for each other in a ring.

-- One row per host that was ever requested. Operators set the first group of columns; the others follow from the host's responses.
CREATE TABLE hosts (
  host                     text PRIMARY KEY CHECK (host <> '' AND host = lower(host)),   -- with its port, where the address names one
  rate                     double precision NOT NULL CHECK (rate > 0 AND rate <= 1000000),              -- most requests per second
  burst                    integer NOT NULL CHECK (burst BETWEEN 1 AND 10000),           -- requests that may be sent without a pause
  concurrency              integer NOT NULL CHECK (concurrency BETWEEN 1 AND 10000),     -- identities that use it at the same time
  min_gap                  double precision NOT NULL DEFAULT 0 CHECK (min_gap BETWEEN 0 AND 86400),     -- seconds between two requests
  paused_at                timestamptz,                              -- an operator paused it
  paused_reason            text,
  paused_until             timestamptz,                              -- the pause ends automatically; null: until an operator resumes the host

  current_rate             double precision NOT NULL,                -- requests per second now: at most `rate`, halved on trouble
  rate_changed_at          timestamptz NOT NULL DEFAULT now(),       -- when `current_rate` last changed
  rate_reduced_at          timestamptz,                              -- when it was last halved
  tat                      timestamptz,                              -- theoretical arrival time of the next request (GCRA)
  last_slot_at             timestamptz,                              -- the latest slot that was allocated
  cooldown_until           timestamptz,
  cooldown_reason          text,
  consecutive_throttles    integer NOT NULL DEFAULT 0,               -- requests to slow down (HTTP 429 and the like) in a row
  consecutive_errors       integer NOT NULL DEFAULT 0,               -- failures in a row
  circuit                  text NOT NULL DEFAULT 'closed' CHECK (circuit IN ('closed', 'open')),
  circuit_opened_at        timestamptz,
  circuit_until            timestamptz,                              -- from then on one identity may probe; its result decides
  consecutive_opens        integer NOT NULL DEFAULT 0,               -- times in a row that the circuit opened
  circuit_reason           text,
  blocked_identities       jsonb NOT NULL DEFAULT '[]',              -- [proxy, profile] of each identity refused since the last success
  last_ok_at               timestamptz,
  last_refused_at          timestamptz,

  -- robots.txt: `robots_checked_at` and `robots_status` describe the last attempt to read it. `robots_body` is the last text that could
  -- be read (empty where the host has none, a 4xx) and survives times at which it cannot be read.
  robots_checked_at        timestamptz,
  robots_status            integer,                                  -- HTTP status of /robots.txt; null: no response
  robots_body              text,
  crawl_delay              double precision,                         -- seconds, as its robots.txt asks; 0 or more
  robots_body_at           timestamptz,                              -- when `robots_body` was read
  robots_due_at            timestamptz,                              -- when it is to be fetched next; null: now
  robots_claimed_until     timestamptz,                              -- until then one process is fetching it, and no other does

  created_at               timestamptz NOT NULL DEFAULT now(),
  updated_at               timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT hosts_current_rate CHECK (current_rate > 0 AND current_rate <= rate),
  CONSTRAINT hosts_circuit CHECK ((circuit = 'open') = (circuit_until IS NOT NULL) AND (circuit = 'open') = (circuit_reason IS NOT NULL)),
  CONSTRAINT hosts_cooldown CHECK ((cooldown_until IS NULL) = (cooldown_reason IS NULL)),
  CONSTRAINT hosts_paused CHECK ((paused_at IS NULL) = (paused_reason IS NULL) AND (paused_until IS NULL OR paused_at IS NOT NULL))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Events of hosts, for operators.
CREATE TABLE host_events (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  host                     text NOT NULL,
  kind                     text NOT NULL CHECK (kind IN ('cooldown', 'rate_reduced', 'circuit_opened', 'circuit_closed', 'changed', 'robots')),
  reason                   text NOT NULL,
  until                    timestamptz,
  happened_at              timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX host_events_host ON host_events (host, happened_at DESC);
CREATE INDEX host_events_time ON host_events (happened_at);

-- Why no request to a host is allowed now: `code` is null where requests are allowed, else `paused`, `circuit` or `cooling`; `until` is the
-- end of that, `wait` the seconds until then (null: until an operator changes it).
CREATE FUNCTION host_block_reason(h hosts, at timestamptz, OUT code text, OUT reason text, OUT wait double precision, OUT until timestamptz)
LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF h.paused_at IS NOT NULL AND (h.paused_until IS NULL OR h.paused_until > at) THEN
    code := 'paused'; reason := h.paused_reason; until := h.paused_until;
  ELSIF h.circuit = 'open' AND h.circuit_until > at THEN
    code := 'circuit'; reason := h.circuit_reason; until := h.circuit_until;
  ELSIF h.cooldown_until > at THEN
    code := 'cooling'; reason := h.cooldown_reason; until := h.cooldown_until;
  END IF;
  wait := extract(epoch FROM until - at);
END $$;

-- The hosts that get no requests now, and the platforms all of whose hosts are among them, each with one of these:
-- {"hosts": {"dutchie.com": "paused"}, "platforms": {"dutchie": "dutchie.com"}}. Null where requests go to every host, as nearly always.
-- Write `(SELECT blocked_hosts())`: so it is read once per statement.
CREATE FUNCTION blocked_hosts() RETURNS jsonb LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT jsonb_build_object('hosts', b.hosts, 'platforms', (
           SELECT coalesce(jsonb_object_agg(p.key, p.value ->> 0), '{}') FROM queue_settings s, jsonb_each(s.platform_hosts) p
            WHERE p.value <> '[]' AND b.hosts ?& ARRAY(SELECT jsonb_array_elements_text(p.value))))
    FROM (SELECT jsonb_object_agg(h.host, c.code) AS hosts
            FROM hosts h CROSS JOIN LATERAL host_block_reason(h, clock_timestamp()) c WHERE c.code IS NOT NULL) b
   WHERE b.hosts IS NOT NULL
$$;

-- Allocates slots, the moments at which the host may be requested, in seconds from now. At most `count`; after the first
-- only those within `window_seconds` seconds. None where the first would be later than `max_wait` seconds: `wait` then says how late.
--
-- Generic cell rate algorithm: a request conforms from tat - (burst - 1) / pace on; each moves tat on by 1 / pace. The row is locked by the
-- caller, so all workers share one sequence of moments.
CREATE FUNCTION allocate_slots(h hosts, at timestamptz, count integer, max_wait double precision, window_seconds double precision,
                           OUT slots double precision[], OUT wait double precision) LANGUAGE plpgsql AS $$
DECLARE
  each CONSTANT interval := make_interval(secs => 1 / h.current_rate);
  slack CONSTANT interval := make_interval(secs => least((h.burst - 1) / h.current_rate, 1e9));   -- 30 years: the calendar begins somewhere
  gap CONSTANT interval := make_interval(secs => greatest(h.min_gap, coalesce(h.crawl_delay, 0)));
  next_tat timestamptz := h.tat;
  latest timestamptz := h.last_slot_at;
  t timestamptz;
BEGIN
  slots := '{}';
  FOR i IN 1 .. count LOOP
    t := greatest(at, next_tat - slack, latest + gap);
    EXIT WHEN i > 1 AND t > at + make_interval(secs => window_seconds);
    IF i = 1 AND t > at + make_interval(secs => max_wait) THEN
      wait := extract(epoch FROM t - at);
      RETURN;
    END IF;
    next_tat := greatest(next_tat, t) + each;
    latest := t;
    slots := slots || extract(epoch FROM t - at)::double precision;
  END LOOP;
  UPDATE hosts SET tat = next_tat, last_slot_at = latest WHERE host = h.host;
END $$;

-- A proxy in use on a host: exclusive there while the lease lasts. The holder renews it; an abandoned lease expires.
CREATE TABLE identity_leases (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  host                     text NOT NULL REFERENCES hosts ON DELETE CASCADE,
  proxy_id                 integer NOT NULL REFERENCES proxies ON DELETE CASCADE,
  task_id                  bigint,
  leased_at                timestamptz NOT NULL,
  expires_at               timestamptz NOT NULL,
  UNIQUE (host, proxy_id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Leases a proxy on a host, and allocates the first slots. `ranked` are the proxies to choose from, the best first; `release_lease_id` is
-- a lease that ends with this call, whatever its result (the identity is replaced).
-- `code` is null where it was granted, else why not: `unknown` (no such host yet), `paused`, `circuit`, `cooling`, `busy` (its
-- `concurrency` is used up), `no_free_proxy`, `pace` (the slot would come too late). `wait`: seconds until another try makes sense.
CREATE FUNCTION lease_identity(p_host text, ranked integer[], task bigint, lease_seconds double precision, count integer,
                               max_wait double precision, window_seconds double precision, release_lease_id bigint)
RETURNS TABLE (lease bigint, proxy_id integer, slots double precision[], code text, reason text, wait double precision, probing boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  soon CONSTANT double precision := 0.5;
  at timestamptz;
  h hosts;
  taken integer;
BEGIN
  SELECT * INTO h FROM hosts WHERE host = p_host FOR NO KEY UPDATE;
  -- After the host is locked: the transaction that holds the lock may be deleting this very lease.
  IF release_lease_id IS NOT NULL THEN
    DELETE FROM identity_leases l WHERE l.id = release_lease_id;
  END IF;
  IF h.host IS NULL THEN
    code := 'unknown'; RETURN NEXT; RETURN;
  END IF;
  at := clock_timestamp();
  SELECT c.code, c.reason, c.wait INTO code, reason, wait FROM host_block_reason(h, at) c;
  IF code IS NOT NULL THEN
    RETURN NEXT; RETURN;
  END IF;
  -- Abandoned leases: expired, of an earlier attempt of this task, or of a task that was recovered from a worker that died.
  DELETE FROM identity_leases l
   WHERE l.host = p_host AND (l.expires_at <= at OR l.task_id = task
                              OR EXISTS (SELECT FROM task_live t WHERE t.id = l.task_id AND t.state <> 'a'));
  SELECT count(*) INTO taken FROM identity_leases l WHERE l.host = p_host;
  -- An open circuit whose time is over lets one identity through as a probe.
  probing := h.circuit = 'open';
  IF taken >= (CASE WHEN probing THEN 1 ELSE h.concurrency END) THEN
    code := CASE WHEN probing THEN 'circuit' ELSE 'busy' END;
    reason := CASE WHEN probing THEN 'one identity is trying whether it lets anybody in again' ELSE format('%s identities are talking to it, and no more may', taken) END;
    wait := soon;
    RETURN NEXT; RETURN;
  END IF;
  SELECT r.id INTO proxy_id
    FROM unnest(ranked) WITH ORDINALITY r(id, place) JOIN proxies p ON p.id = r.id AND p.is_active
   WHERE NOT EXISTS (SELECT FROM identity_leases l WHERE l.host = p_host AND l.proxy_id = r.id)
   ORDER BY r.place LIMIT 1;
  IF proxy_id IS NULL THEN
    code := 'no_free_proxy'; reason := format('all of %s proxies are in use on it or out of use', cardinality(ranked)); wait := soon;
    RETURN NEXT; RETURN;
  END IF;
  SELECT g.slots, g.wait INTO slots, wait FROM allocate_slots(h, at, count, max_wait, window_seconds) g;
  IF wait IS NOT NULL THEN
    code := 'pace'; reason := format('its budget is used up for the next %s s', round(wait::numeric, 1)); proxy_id := NULL;
    RETURN NEXT; RETURN;
  END IF;
  INSERT INTO identity_leases AS l (host, proxy_id, task_id, leased_at, expires_at)
  VALUES (p_host, lease_identity.proxy_id, task, at, at + make_interval(secs => lease_seconds)) RETURNING l.id INTO lease;
  RETURN NEXT;
END $$;

-- More slots for the holder of a lease on the host; otherwise as lease_identity.
CREATE FUNCTION acquire_slots(p_host text, count integer, max_wait double precision, window_seconds double precision)
RETURNS TABLE (slots double precision[], code text, reason text, wait double precision) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  at timestamptz;
  h hosts;
BEGIN
  SELECT * INTO h FROM hosts WHERE host = p_host FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    code := 'unknown'; RETURN NEXT; RETURN;
  END IF;
  at := clock_timestamp();
  SELECT c.code, c.reason, c.wait INTO code, reason, wait FROM host_block_reason(h, at) c;
  IF code IS NULL THEN
    SELECT g.slots, g.wait INTO slots, wait FROM allocate_slots(h, at, count, max_wait, window_seconds) g;
    IF wait IS NOT NULL THEN
      code := 'pace'; reason := format('its budget is used up for the next %s s', round(wait::numeric, 1));
    END IF;
  END IF;
  RETURN NEXT;
END $$;
