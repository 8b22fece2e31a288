-- Who may ask which host when, through whom, and what came of it.
--
-- Whoever changes a host locks its row first, proxies after it (each in the order of their ids), scores last: so nobody waits in a ring.

-- One row per host that was ever asked. An operator sets the first group; the rest is what the host made of it.
CREATE TABLE hosts (
  host                     text PRIMARY KEY CHECK (host <> '' AND host = lower(host)),   -- with its port, where the address names one
  rate                     double precision NOT NULL CHECK (rate > 0 AND rate <= 1000000),              -- most requests in a second
  burst                    integer NOT NULL CHECK (burst BETWEEN 1 AND 10000),           -- requests that may follow each other at once
  concurrency              integer NOT NULL CHECK (concurrency BETWEEN 1 AND 10000),     -- identities that talk to it at the same time
  min_gap                  double precision NOT NULL DEFAULT 0 CHECK (min_gap BETWEEN 0 AND 86400),     -- seconds between two requests
  paused_at                timestamptz,                              -- an operator closed it
  paused_reason            text,

  pace                     double precision NOT NULL,                -- requests in a second at present: at most `rate`, halved on trouble
  paced_at                 timestamptz NOT NULL DEFAULT now(),       -- when the pace was last changed
  slowed_at                timestamptz,                              -- when it was last halved
  tat                      timestamptz,                              -- theoretical arrival time of the next request (GCRA)
  last_slot_at             timestamptz,                              -- the latest moment that was given away
  cooldown_until           timestamptz,
  cooldown_reason          text,
  throttles                integer NOT NULL DEFAULT 0,               -- times in a row that it asked to slow down
  troubles                 integer NOT NULL DEFAULT 0,               -- times in a row that it failed
  circuit                  text NOT NULL DEFAULT 'closed' CHECK (circuit IN ('closed', 'open')),
  circuit_opened_at        timestamptz,
  circuit_until            timestamptz,                              -- from then on one identity may try; whatever it meets decides
  circuit_opens            integer NOT NULL DEFAULT 0,               -- times in a row that it opened
  circuit_reason           text,
  refused                  jsonb NOT NULL DEFAULT '[]',              -- [proxy, profile] of each identity refused since one was let in
  last_ok_at               timestamptz,
  last_refused_at          timestamptz,

  robots_checked_at        timestamptz,
  robots_status            integer,                                  -- its answer when /robots.txt was asked for; null: it gave none
  robots_body              text,
  crawl_delay              double precision,                         -- seconds, as its robots.txt asks; 0 or more

  created_at               timestamptz NOT NULL DEFAULT now(),
  updated_at               timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT hosts_pace CHECK (pace > 0 AND pace <= rate),
  CONSTRAINT hosts_circuit CHECK ((circuit = 'open') = (circuit_until IS NOT NULL) AND (circuit = 'open') = (circuit_reason IS NOT NULL)),
  CONSTRAINT hosts_cooldown CHECK ((cooldown_until IS NULL) = (cooldown_reason IS NULL)),
  CONSTRAINT hosts_paused CHECK ((paused_at IS NULL) = (paused_reason IS NULL))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- What befell a host, for people.
CREATE TABLE host_events (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  host                     text NOT NULL,
  kind                     text NOT NULL CHECK (kind IN ('cooldown', 'slower', 'circuit_opened', 'circuit_closed', 'changed', 'robots')),
  reason                   text NOT NULL,
  until                    timestamptz,
  happened_at              timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX host_events_host ON host_events (host, happened_at DESC);
CREATE INDEX host_events_time ON host_events (happened_at);

-- A proxy in use on a host: nobody else uses it there. Whoever holds a lease renews it; one that was left behind lapses.
CREATE TABLE identity_leases (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  host                     text NOT NULL REFERENCES hosts ON DELETE CASCADE,
  proxy_id                 integer NOT NULL REFERENCES proxies ON DELETE CASCADE,
  task_id                  bigint,
  leased_at                timestamptz NOT NULL,
  expires_at               timestamptz NOT NULL,
  UNIQUE (host, proxy_id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- How often a proxy, and a browser, was let in or refused by a host. Both numbers halve every six hours (fetch/scores.py).
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

-- One request: which store, through which proxy, as which browser, how long it had to wait for its turn, and what came of it.
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
  rotated                  boolean NOT NULL DEFAULT false,           -- the identity was changed because of this answer
  waited_ms                double precision NOT NULL DEFAULT 0,      -- for the host's budget
  bytes                    bigint NOT NULL DEFAULT 0,                -- of the answer, decoded
  elapsed_ms               double precision NOT NULL DEFAULT 0,
  error                    text,
  attempted_at             timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (id, attempted_at)
) PARTITION BY RANGE (attempted_at);
CREATE INDEX fetch_attempts_task ON fetch_attempts (task_id) WHERE task_id IS NOT NULL;
CREATE INDEX fetch_attempts_time ON fetch_attempts (attempted_at);

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

-- The same in sums, kept when the rows are long gone.
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

-- Whether a host may be asked at all: null where it may, else why not (`paused`, `circuit`, `cooling`) and for how many seconds yet
-- (null: until somebody changes it).
CREATE FUNCTION host_closed(h hosts, at timestamptz, OUT code text, OUT reason text, OUT wait double precision) LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF h.paused_at IS NOT NULL THEN
    code := 'paused'; reason := h.paused_reason;
  ELSIF h.circuit = 'open' AND h.circuit_until > at THEN
    code := 'circuit'; reason := h.circuit_reason; wait := extract(epoch FROM h.circuit_until - at);
  ELSIF h.cooldown_until > at THEN
    code := 'cooling'; reason := h.cooldown_reason; wait := extract(epoch FROM h.cooldown_until - at);
  END IF;
END $$;

-- Gives away moments at which the host may be asked, as seconds from now, and moves the host's row on. At most `want`; after the first
-- only those within `ahead` seconds. None where the first would be later than `patience` seconds: `wait` then says how late.
--
-- Generic cell rate algorithm: a request conforms from tat - (burst - 1) / pace on; each moves tat on by 1 / pace. The row is locked by the
-- caller, so all workers share one sequence of moments.
CREATE FUNCTION give_slots(h hosts, at timestamptz, want integer, patience double precision, ahead double precision,
                           OUT slots double precision[], OUT wait double precision) LANGUAGE plpgsql AS $$
DECLARE
  each CONSTANT interval := make_interval(secs => 1 / h.pace);
  slack CONSTANT interval := make_interval(secs => least((h.burst - 1) / h.pace, 1e9));   -- 30 years: the calendar begins somewhere
  gap CONSTANT interval := make_interval(secs => greatest(h.min_gap, coalesce(h.crawl_delay, 0)));
  next_tat timestamptz := h.tat;
  latest timestamptz := h.last_slot_at;
  t timestamptz;
BEGIN
  slots := '{}';
  FOR i IN 1 .. want LOOP
    t := greatest(at, next_tat - slack, latest + gap);
    EXIT WHEN i > 1 AND t > at + make_interval(secs => ahead);
    IF i = 1 AND t > at + make_interval(secs => patience) THEN
      wait := extract(epoch FROM t - at);
      RETURN;
    END IF;
    next_tat := greatest(next_tat, t) + each;
    latest := t;
    slots := slots || extract(epoch FROM t - at)::double precision;
  END LOOP;
  UPDATE hosts SET tat = next_tat, last_slot_at = latest WHERE host = h.host;
END $$;

-- Leases a proxy on a host, and gives the first moments to ask it at. `ranked` are the proxies to choose from, the best first; `give_back` is
-- a lease that ends with this call (an identity that is changed), whatever comes of it.
-- `code` is null where it was granted, else why not: `unknown` (no such host yet), `paused`, `circuit`, `cooling`, `busy` (as many identities
-- as may be are talking to it), `no_free_proxy`, `pace` (its turn would come too late). `wait` says when to ask again, in seconds.
CREATE FUNCTION lease_identity(p_host text, ranked integer[], task bigint, lasting double precision, want integer,
                               patience double precision, ahead double precision, give_back bigint)
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
  -- Behind the host's lock: whoever has that may be clearing this very lease away.
  IF give_back IS NOT NULL THEN
    DELETE FROM identity_leases l WHERE l.id = give_back;
  END IF;
  IF h.host IS NULL THEN
    code := 'unknown'; RETURN NEXT; RETURN;
  END IF;
  at := clock_timestamp();
  SELECT c.code, c.reason, c.wait INTO code, reason, wait FROM host_closed(h, at) c;
  IF code IS NOT NULL THEN
    RETURN NEXT; RETURN;
  END IF;
  -- Leases that were left behind: lapsed, of an earlier attempt at this task, or of one that was taken back from a worker that died.
  DELETE FROM identity_leases l
   WHERE l.host = p_host AND (l.expires_at <= at OR l.task_id = task
                              OR EXISTS (SELECT FROM task_live t WHERE t.id = l.task_id AND t.state <> 'a'));
  SELECT count(*) INTO taken FROM identity_leases l WHERE l.host = p_host;
  -- An open circuit whose time is over lets one identity through to see.
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
  SELECT g.slots, g.wait INTO slots, wait FROM give_slots(h, at, want, patience, ahead) g;
  IF wait IS NOT NULL THEN
    code := 'pace'; reason := format('its budget is used up for the next %s s', round(wait::numeric, 1)); proxy_id := NULL;
    RETURN NEXT; RETURN;
  END IF;
  INSERT INTO identity_leases AS l (host, proxy_id, task_id, leased_at, expires_at)
  VALUES (p_host, lease_identity.proxy_id, task, at, at + make_interval(secs => lasting)) RETURNING l.id INTO lease;
  RETURN NEXT;
END $$;

-- More moments for whoever holds a lease on the host; otherwise as lease_identity.
CREATE FUNCTION take_slots(p_host text, want integer, patience double precision, ahead double precision)
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
  SELECT c.code, c.reason, c.wait INTO code, reason, wait FROM host_closed(h, at) c;
  IF code IS NULL THEN
    SELECT g.slots, g.wait INTO slots, wait FROM give_slots(h, at, want, patience, ahead) g;
    IF wait IS NOT NULL THEN
      code := 'pace'; reason := format('its budget is used up for the next %s s', round(wait::numeric, 1));
    END IF;
  END IF;
  RETURN NEXT;
END $$;
