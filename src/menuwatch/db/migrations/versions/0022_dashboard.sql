-- What people keep of the dashboard: views they saved. A view is a screen with its filters, as the query of its address.
CREATE TABLE saved_views (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  owner text NOT NULL,
  screen text NOT NULL CHECK (length(screen) BETWEEN 1 AND 64),
  name text NOT NULL CHECK (length(name) BETWEEN 1 AND 80),
  query text NOT NULL CHECK (length(query) <= 2000),
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (owner, screen, name)
);

-- Whether a product costs less than it usually does; medical prices count only where there is no recreational one, as in effective_price.
CREATE FUNCTION on_special(price_rec numeric, price_rec_special numeric, price_med numeric, price_med_special numeric) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN price_rec IS NOT NULL OR price_rec_special IS NOT NULL THEN coalesce(price_rec_special < price_rec, false)
              ELSE coalesce(price_med_special < price_med, false) END
$$;

-- Answers that were not simply a menu, newest first: among millions of others they are few.
CREATE INDEX raw_crawl_payloads_odd ON raw_crawl_payloads (status, fetched_at DESC, id DESC) WHERE status <> 'ok';

-- What a rule found lately, for whoever looks at the rule; there may be very many events, and few of them its.
CREATE INDEX alert_events_rule ON alert_events (rule_id, id DESC);

-- Who waits for a picture that is under way: few among all who have theirs.
CREATE INDEX IF NOT EXISTS image_uses_waiting ON image_uses (id) WHERE status = 'waiting';

-- How many workers a supervisor is to run, and how it stands with that: one row. `wanted` is what people order (null: nobody has yet) and
-- outlives every supervisor; the rest is said by the one that holds the row, and by nobody once `held_until` is past.
CREATE TABLE worker_supervision (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  wanted integer CHECK (wanted >= 0),
  holder text,
  host text,
  pid integer,
  place text,
  held_until timestamptz,
  low integer,
  high integer,
  running integer NOT NULL DEFAULT 0,
  starting integer NOT NULL DEFAULT 0,
  leaving integer NOT NULL DEFAULT 0,
  trouble text,
  CHECK (num_nulls(holder, host, pid, place, held_until, low, high) IN (0, 7))
) WITH (fillfactor = 10);
INSERT INTO worker_supervision DEFAULT VALUES;

-- How many tasks a worker runs at once, as its heartbeat says it. Somebody else's worker may say anything, or nothing: that is one.
CREATE FUNCTION worker_slots(heartbeat jsonb) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN jsonb_typeof(heartbeat -> 'max_concurrent_tasks') = 'number'
              THEN least(greatest((heartbeat ->> 'max_concurrent_tasks')::numeric, 1), 1000)::integer ELSE 1 END
$$;

-- Which version of the software a worker runs; null for workers that do not say.
ALTER TABLE worker_registry ADD COLUMN version text CHECK (length(version) <= 40);

-- As 0004 has it, but for the slots of workers whose heartbeat says no number.
CREATE OR REPLACE VIEW v_worker_capacity AS
SELECT r.role, l.pending_tasks, l.ready_tasks, l.claimed_tasks, l.running_tasks, h.completed_last_hour, h.failed_last_hour,
       w.active_workers, h.avg_duration_sec, x.tasks_per_worker_hour,
       CASE WHEN l.pending_tasks = 0 THEN 0
            ELSE l.pending_tasks / nullif(w.active_workers * x.tasks_per_worker_hour, 0) END AS estimated_hours_to_drain
  FROM unnest(task_roles(NULL)) WITH ORDINALITY r(role, place)
  LEFT JOIN (
    SELECT t.role AS live_role, count(*) FILTER (WHERE t.state <> 'a') AS pending,
           count(*) FILTER (WHERE t.state IN ('r', 'p') OR (t.state = 's' AND t.scheduled_for <= now())) AS ready,
           count(*) FILTER (WHERE t.state = 'a' AND t.started_at IS NULL) AS claimed,
           count(*) FILTER (WHERE t.state = 'a' AND t.started_at IS NOT NULL) AS running
      FROM task_live t GROUP BY t.role) c ON c.live_role = r.role
 CROSS JOIN LATERAL (
    SELECT coalesce(c.pending, 0) AS pending_tasks, coalesce(c.ready, 0) AS ready_tasks, coalesce(c.claimed, 0) AS claimed_tasks,
           coalesce(c.running, 0) AS running_tasks) l
 CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE e.status = 'completed') AS completed_last_hour,
           count(*) FILTER (WHERE e.status = 'failed') AS failed_last_hour,
           avg(extract(epoch FROM e.completed_at - e.started_at)::double precision)
             FILTER (WHERE e.status = 'completed') AS avg_duration_sec
      FROM task_history e WHERE e.role = r.role AND e.completed_at > now() - interval '1 hour') h
 CROSS JOIN LATERAL (
    SELECT count(*) AS active_workers, avg(worker_slots(g.heartbeat)::double precision) AS slots
      FROM worker_registry g
     WHERE g.status IN ('active', 'backing_off') AND g.last_heartbeat_at > now() - interval '2 minutes'
       AND (g.roles IS NULL OR r.role = ANY (g.roles))) w
 CROSS JOIN LATERAL (
    SELECT 3600 / nullif(h.avg_duration_sec, 0) * coalesce(w.slots, 1) AS tasks_per_worker_hour) x
 ORDER BY r.place;

-- Specials by what they cost: where these are few among millions, or cheap where the dearest come first, no walk along all prices finds them soon.
CREATE INDEX catalog_products_special ON catalog_products (effective_price(price_rec, price_rec_special, price_med, price_med_special), id)
 WHERE on_special(price_rec, price_rec_special, price_med, price_med_special);
