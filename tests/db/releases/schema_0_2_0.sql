SET check_function_bodies = false;
SET client_min_messages = warning;
SELECT pg_catalog.set_config('search_path', '', false);
CREATE SCHEMA analyst;
CREATE DOMAIN public.task_role AS text
	CONSTRAINT task_role_check CHECK ((VALUE = ANY (ARRAY['store_discovery'::text, 'entry_point_discovery'::text, 'product_discovery'::text, 'payload_fetch'::text, 'product_refresh'::text, 'analytics_refresh'::text, 'product_resync'::text])));
CREATE DOMAIN public.task_status AS text
	CONSTRAINT task_status_check CHECK ((VALUE = ANY (ARRAY['pending'::text, 'claimed'::text, 'running'::text, 'completed'::text, 'failed'::text, 'stale'::text, 'cancelled'::text])));
CREATE FUNCTION public.acquire_slots(p_host text, count integer, max_wait double precision, window_seconds double precision) RETURNS TABLE(slots double precision[], code text, reason text, wait double precision)
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION public.age_tasks(every interval DEFAULT '00:15:00'::interval, ceiling integer DEFAULT 19, most integer DEFAULT 1000) RETURNS integer
    LANGUAGE plpgsql
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
DECLARE
  at CONSTANT timestamptz := clock_timestamp();
  raised integer := 0;
  more integer;
  asked text;
  level integer;
BEGIN
  FOREACH asked IN ARRAY task_roles(NULL) LOOP
    level := -2147483648;
    LOOP  -- a loose index scan over the levels that are in use, from the top
      level := (SELECT -(t.priority + t.aged) FROM task_live t WHERE t.state = 'r' AND t.role = asked AND -(t.priority + t.aged) > level
                 ORDER BY -(t.priority + t.aged) LIMIT 1);
      EXIT WHEN level IS NULL;
      CONTINUE WHEN -level >= ceiling;
      UPDATE task_live t SET aged = least(ceiling - t.priority, floor(extract(epoch FROM at - greatest(t.created_at, t.scheduled_for))
                                                                      / extract(epoch FROM every)))
       WHERE t.id = ANY (ARRAY(
               SELECT x.id FROM task_live x
                WHERE x.state = 'r' AND x.role = asked AND -(x.priority + x.aged) = level AND x.created_at <= at - every
                  AND greatest(x.created_at, x.scheduled_for) <= at - every * (x.aged + 1)
                ORDER BY x.created_at, x.id LIMIT most FOR NO KEY UPDATE SKIP LOCKED));
      GET DIAGNOSTICS more = ROW_COUNT;
      raised := raised + more;
    END LOOP;
  END LOOP;
  RETURN raised;
END $$;
CREATE TABLE public.hosts (
    host text NOT NULL,
    rate double precision NOT NULL,
    burst integer NOT NULL,
    concurrency integer NOT NULL,
    min_gap double precision DEFAULT 0 NOT NULL,
    paused_at timestamp with time zone,
    paused_reason text,
    paused_until timestamp with time zone,
    current_rate double precision NOT NULL,
    rate_changed_at timestamp with time zone DEFAULT now() NOT NULL,
    rate_reduced_at timestamp with time zone,
    tat timestamp with time zone,
    last_slot_at timestamp with time zone,
    cooldown_until timestamp with time zone,
    cooldown_reason text,
    consecutive_throttles integer DEFAULT 0 NOT NULL,
    consecutive_errors integer DEFAULT 0 NOT NULL,
    circuit text DEFAULT 'closed'::text NOT NULL,
    circuit_opened_at timestamp with time zone,
    circuit_until timestamp with time zone,
    consecutive_opens integer DEFAULT 0 NOT NULL,
    circuit_reason text,
    blocked_identities jsonb DEFAULT '[]'::jsonb NOT NULL,
    last_ok_at timestamp with time zone,
    last_refused_at timestamp with time zone,
    robots_checked_at timestamp with time zone,
    robots_status integer,
    robots_body text,
    crawl_delay double precision,
    robots_body_at timestamp with time zone,
    robots_due_at timestamp with time zone,
    robots_claimed_until timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT hosts_burst_check CHECK (((burst >= 1) AND (burst <= 10000))),
    CONSTRAINT hosts_circuit CHECK ((((circuit = 'open'::text) = (circuit_until IS NOT NULL)) AND ((circuit = 'open'::text) = (circuit_reason IS NOT NULL)))),
    CONSTRAINT hosts_circuit_check CHECK ((circuit = ANY (ARRAY['closed'::text, 'open'::text]))),
    CONSTRAINT hosts_concurrency_check CHECK (((concurrency >= 1) AND (concurrency <= 10000))),
    CONSTRAINT hosts_cooldown CHECK (((cooldown_until IS NULL) = (cooldown_reason IS NULL))),
    CONSTRAINT hosts_current_rate CHECK (((current_rate > (0)::double precision) AND (current_rate <= rate))),
    CONSTRAINT hosts_host_check CHECK (((host <> ''::text) AND (host = lower(host)))),
    CONSTRAINT hosts_min_gap_check CHECK (((min_gap >= (0)::double precision) AND (min_gap <= (86400)::double precision))),
    CONSTRAINT hosts_paused CHECK ((((paused_at IS NULL) = (paused_reason IS NULL)) AND ((paused_until IS NULL) OR (paused_at IS NOT NULL)))),
    CONSTRAINT hosts_rate_check CHECK (((rate > (0)::double precision) AND (rate <= (1000000)::double precision)))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='500');
CREATE FUNCTION public.allocate_slots(h public.hosts, at timestamp with time zone, count integer, max_wait double precision, window_seconds double precision, OUT slots double precision[], OUT wait double precision) RETURNS record
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION public.beat_tasks(worker text, ids bigint[], attempts integer[], ran double precision[]) RETURNS TABLE(id bigint, attempt integer)
    LANGUAGE sql
    AS $$
  WITH f AS MATERIALIZED (
    SELECT * FROM unnest(ids, attempts, ran) u(id, attempt, ran)),
  free AS MATERIALIZED (
    SELECT t.id, f.ran FROM f JOIN task_live t ON t.id = f.id AND t.attempt = f.attempt
     WHERE t.worker_id = worker FOR NO KEY UPDATE OF t SKIP LOCKED),
  beat AS (
    UPDATE task_live t
       SET last_heartbeat_at = clock_timestamp(), updated_at = clock_timestamp(),
           started_at = coalesce(t.started_at, greatest(t.claimed_at, clock_timestamp() - make_interval(secs => free.ran)))
      FROM free WHERE t.id = free.id RETURNING t.id)
  SELECT f.id, f.attempt FROM f JOIN task_live t ON t.id = f.id AND t.attempt = f.attempt WHERE t.worker_id = worker
$$;
CREATE FUNCTION public.blocked_hosts() RETURNS jsonb
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT jsonb_build_object('hosts', b.hosts, 'platforms', (
           SELECT coalesce(jsonb_object_agg(p.key, p.value ->> 0), '{}') FROM queue_settings s, jsonb_each(s.platform_hosts) p
            WHERE p.value <> '[]' AND b.hosts ?& ARRAY(SELECT jsonb_array_elements_text(p.value))))
    FROM (SELECT jsonb_object_agg(h.host, c.code) AS hosts
            FROM hosts h CROSS JOIN LATERAL host_block_reason(h, clock_timestamp()) c WHERE c.code IS NOT NULL) b
   WHERE b.hosts IS NOT NULL
$$;
CREATE FUNCTION public.cancel_tasks(ids bigint[], reason text DEFAULT 'cancelled'::text) RETURNS SETOF bigint
    LANGUAGE plpgsql
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
  at CONSTANT timestamptz := clock_timestamp();
  gone bigint[];
  running bigint[];
  stores integer[];
  freed text[];
BEGIN
  PERFORM FROM task_live t WHERE t.id = ANY (ids) ORDER BY t.id FOR UPDATE OF t;
  PERFORM ensure_task_history_partition(at);
  WITH d AS (DELETE FROM task_live t WHERE t.id = ANY (ids) RETURNING t.*),
  h AS (
    INSERT INTO task_history (id, created_at, scheduled_for, claimed_at, started_at, completed_at, last_heartbeat_at, dispensary_id,
                              priority, attempt, retry_count, max_retries, postpone_count, role, platform, status, worker_id,
                              error_message, payload, result, earlier_attempts)
    SELECT d.id, d.created_at, d.scheduled_for, d.claimed_at, d.started_at, greatest(at, d.claimed_at, d.started_at), d.last_heartbeat_at,
           d.dispensary_id, d.priority, d.attempt, d.retry_count, d.max_retries, d.postpone_count, d.role, d.platform, 'cancelled',
           d.worker_id, coalesce(nullif(reason, ''), 'cancelled'), d.payload, d.result, d.earlier_attempts
      FROM d)
  SELECT array_agg(d.id), array_agg(d.id) FILTER (WHERE d.state = 'a'),
         array_agg(d.dispensary_id) FILTER (WHERE d.state IN ('r', 'a') AND d.dispensary_id IS NOT NULL),
         array_agg(d.role) FILTER (WHERE d.state IN ('r', 'a') AND d.dispensary_id IS NOT NULL)
    INTO gone, running, stores, freed FROM d;
  IF stores IS NOT NULL THEN PERFORM task_promote_parked(stores, freed); END IF;
  IF running IS NOT NULL THEN PERFORM pg_notify('menuwatch_tasks', 'lost ' || x) FROM unnest(running) x; END IF;
  RETURN QUERY SELECT unnest(gone);
END $$;
CREATE FUNCTION public.cancel_tasks_in_bulk(ids bigint[], reason text DEFAULT 'cancelled'::text, OUT cancelled integer, OUT interrupted integer, OUT busy integer) RETURNS record
    LANGUAGE plpgsql
    SET lock_timeout TO '500ms'
    AS $$
DECLARE
  chunk CONSTANT integer := 10000;
  rounds CONSTANT integer := 10;
  pause CONSTANT double precision := 0.02;
  mine bigint[] := '{}';
  others bigint[] := ids;
  got bigint[];
  n integer;
BEGIN
  FOR round IN 1 .. rounds LOOP
    SELECT array_agg(l.id) INTO got
      FROM (SELECT t.id FROM task_live t WHERE t.id = ANY (others) ORDER BY t.id FOR UPDATE OF t SKIP LOCKED) l;
    mine := mine || coalesce(got, '{}');
    SELECT array_agg(o.id) INTO others
      FROM (SELECT t.id FROM task_live t WHERE t.id = ANY (others) EXCEPT SELECT unnest(got)) o;
    EXIT WHEN others IS NULL;
    PERFORM pg_sleep(pause);
  END LOOP;
  busy := coalesce(cardinality(others), 0);
  SELECT count(*) INTO interrupted FROM task_live t WHERE t.id = ANY (mine) AND t.state = 'a';
  cancelled := 0;
  FOR i IN 1 .. cardinality(mine) BY chunk LOOP
    SELECT count(*) INTO n FROM cancel_tasks(mine[i:i + chunk - 1], reason);
    cancelled := cancelled + n;
  END LOOP;
END $$;
CREATE FUNCTION public.change_is(kind text, price_changed boolean, stock_changed boolean, price_before numeric, price_after numeric, status_before text, status_after text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
  SELECT CASE kind
           WHEN 'price' THEN price_changed
           WHEN 'stock' THEN stock_changed
           WHEN 'price_drop' THEN price_after < price_before
           WHEN 'price_rise' THEN price_after > price_before
           WHEN 'out_of_stock' THEN status_after = 'oos' AND status_before <> 'oos'
           WHEN 'back_in_stock' THEN status_after = 'in_stock' AND status_before = 'oos'
           ELSE true END
$$;
CREATE FUNCTION public.error_template(reason text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
  SELECT left(btrim(regexp_replace(regexp_replace(regexp_replace(left(reason, 600),
    '"[^"]*"|`[^`]*`|(?<!\w)''[^'']*''(?!\w)|\([^()]*\)', '…', 'g'),
    '(?<![\w-])(?<!HTTP )[\w-]*[0-9][\w-]*([.:,][\w-]*[0-9][\w-]*)*', '#', 'g'),
    '\s+', ' ', 'g')), 200)
$$;
CREATE FUNCTION public.error_fingerprint(reason text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN "left"(md5(public.error_template(reason)), 12);
CREATE FUNCTION public.live_task_status(state "char", claimed_at timestamp with time zone, started_at timestamp with time zone, last_heartbeat_at timestamp with time zone, stale_before timestamp with time zone) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
  SELECT CASE WHEN state <> 'a' THEN 'pending'
              WHEN coalesce(last_heartbeat_at, claimed_at) < stale_before THEN 'stale'
              WHEN started_at IS NULL THEN 'claimed'
              ELSE 'running' END
$$;
CREATE FUNCTION public.stale_before() RETURNS timestamp with time zone
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT now() - stale_after FROM queue_settings
$$;
CREATE TABLE public.task_history (
    id bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    scheduled_for timestamp with time zone,
    claimed_at timestamp with time zone,
    started_at timestamp with time zone,
    completed_at timestamp with time zone NOT NULL,
    last_heartbeat_at timestamp with time zone,
    dispensary_id integer,
    priority integer NOT NULL,
    attempt integer NOT NULL,
    retry_count integer NOT NULL,
    max_retries integer NOT NULL,
    postpone_count integer NOT NULL,
    role text NOT NULL,
    platform text NOT NULL,
    status text NOT NULL,
    worker_id text,
    error_message text,
    cause text GENERATED ALWAYS AS (
CASE
    WHEN (status = 'failed'::text) THEN public.error_fingerprint(error_message)
    ELSE NULL::text
END) STORED,
    payload jsonb NOT NULL,
    result jsonb,
    earlier_attempts jsonb,
    CONSTRAINT task_history_order CHECK (((started_at >= claimed_at) AND (completed_at >= started_at))),
    CONSTRAINT task_history_reason CHECK (((status = 'completed'::text) = (error_message IS NULL))),
    CONSTRAINT task_history_status CHECK ((status = ANY (ARRAY['completed'::text, 'failed'::text, 'cancelled'::text]))),
    CONSTRAINT task_history_worked CHECK (((status <> 'completed'::text) OR ((worker_id IS NOT NULL) AND (started_at IS NOT NULL))))
)
PARTITION BY RANGE (completed_at);
CREATE SEQUENCE public.task_ids
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE public.task_live (
    id bigint DEFAULT nextval('public.task_ids'::regclass) NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    scheduled_for timestamp with time zone,
    claimed_at timestamp with time zone,
    started_at timestamp with time zone,
    last_heartbeat_at timestamp with time zone,
    dispensary_id integer,
    priority integer DEFAULT 0 NOT NULL,
    attempt integer DEFAULT 0 NOT NULL,
    retry_count integer DEFAULT 0 NOT NULL,
    max_retries integer DEFAULT 3 NOT NULL,
    postpone_count integer DEFAULT 0 NOT NULL,
    uniq smallint DEFAULT 0 NOT NULL,
    aged smallint DEFAULT 0 NOT NULL,
    state "char" DEFAULT 'r'::"char" NOT NULL,
    role text NOT NULL,
    platform text DEFAULT 'dutchie'::text NOT NULL,
    worker_id text,
    error_message text,
    postpone_code text,
    postpone_host text,
    payload jsonb DEFAULT '{}'::jsonb NOT NULL,
    result jsonb,
    earlier_attempts jsonb,
    CONSTRAINT task_live_owner CHECK ((((state = 'a'::"char") = (worker_id IS NOT NULL)) AND ((state = 'a'::"char") = (claimed_at IS NOT NULL)))),
    CONSTRAINT task_live_parked CHECK (((state <> 'p'::"char") OR (dispensary_id IS NOT NULL))),
    CONSTRAINT task_live_payload CHECK ((jsonb_typeof(payload) = 'object'::text)),
    CONSTRAINT task_live_postpone_code CHECK ((postpone_code = ANY (ARRAY['paused'::text, 'circuit'::text, 'cooling'::text, 'pace'::text, 'busy'::text, 'no_free_proxy'::text, 'unknown'::text, 'throttled'::text, 'blocked'::text, 'robots'::text, 'no_proxy'::text, 'refresh_running'::text, 'other'::text]))),
    CONSTRAINT task_live_priority CHECK (((priority >= '-1000'::integer) AND (priority <= 1000))),
    CONSTRAINT task_live_retries CHECK (((retry_count >= 0) AND (retry_count <= max_retries) AND (max_retries <= 1000))),
    CONSTRAINT task_live_role CHECK ((role = ANY (ARRAY['store_discovery'::text, 'entry_point_discovery'::text, 'product_discovery'::text, 'payload_fetch'::text, 'product_refresh'::text, 'analytics_refresh'::text]))),
    CONSTRAINT task_live_running CHECK (((state = 'a'::"char") OR ((started_at IS NULL) AND (last_heartbeat_at IS NULL)))),
    CONSTRAINT task_live_scheduled CHECK (((state <> 's'::"char") OR (scheduled_for IS NOT NULL))),
    CONSTRAINT task_live_state CHECK ((state = ANY (ARRAY['r'::"char", 's'::"char", 'p'::"char", 'a'::"char"]))),
    CONSTRAINT task_live_uniq CHECK (((uniq = ANY (ARRAY[0, 1, 2])) AND ((uniq <> 1) OR (state <> 'a'::"char"))))
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_delay='0', autovacuum_analyze_scale_factor='0.05');
CREATE VIEW public.worker_tasks AS
 SELECT t.id,
    t.role,
    t.dispensary_id,
    t.platform,
    public.live_task_status(t.state, t.claimed_at, t.started_at, t.last_heartbeat_at, ( SELECT public.stale_before() AS stale_before)) AS status,
    t.priority,
    t.scheduled_for,
    t.worker_id,
    t.claimed_at,
    t.started_at,
    NULL::timestamp with time zone AS completed_at,
    t.last_heartbeat_at,
    t.result,
    t.error_message,
    t.retry_count,
    t.max_retries,
    t.payload,
    t.created_at,
    t.updated_at,
    t.attempt,
    t.postpone_count,
        CASE
            WHEN (t.state = 's'::"char") THEN t.postpone_code
            ELSE NULL::text
        END AS postpone_code,
        CASE
            WHEN (t.state = 's'::"char") THEN t.postpone_host
            ELSE NULL::text
        END AS postpone_host
   FROM public.task_live t
UNION ALL
 SELECT h.id,
    h.role,
    h.dispensary_id,
    h.platform,
    h.status,
    h.priority,
    h.scheduled_for,
    h.worker_id,
    h.claimed_at,
    h.started_at,
    h.completed_at,
    h.last_heartbeat_at,
    h.result,
    h.error_message,
    h.retry_count,
    h.max_retries,
    h.payload,
    h.created_at,
    h.completed_at AS updated_at,
    h.attempt,
    h.postpone_count,
    NULL::text AS postpone_code,
    NULL::text AS postpone_host
   FROM public.task_history h;
CREATE FUNCTION public.claim_task(role text, worker_id text) RETURNS SETOF public.worker_tasks
    LANGUAGE sql
    AS $_$
  SELECT * FROM claim_tasks(CASE WHEN $1 IS NOT NULL THEN ARRAY[$1] END, $2, 1)
$_$;
CREATE FUNCTION public.claim_tasks(roles text[], worker text, n integer) RETURNS SETOF public.worker_tasks
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
BEGIN
  PERFORM task_before_claim(worker);
  RETURN QUERY
    SELECT c.id, c.role, c.dispensary_id, c.platform, 'claimed', c.priority, c.scheduled_for, c.worker_id, c.claimed_at,
           c.started_at, NULL::timestamptz, c.last_heartbeat_at, c.result, c.error_message, c.retry_count, c.max_retries, c.payload,
           c.created_at, c.updated_at, c.attempt, c.postpone_count, NULL::text, NULL::text
      FROM task_claim(task_roles(roles), worker, n, 0, NULL, NULL, NULL) c ORDER BY -(c.priority + c.aged), c.created_at, c.id;
END $$;
CREATE FUNCTION public.complete_store() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION public.count_task_days() RETURNS integer
    LANGUAGE plpgsql
    AS $$
DECLARE
  d date;
  counted integer := 0;
BEGIN
  DELETE FROM task_days t WHERE NOT EXISTS (SELECT FROM task_history_days h WHERE h.day = t.day);
  FOR d IN SELECT h.day FROM task_history_days h
            WHERE (h.day + 1)::timestamp AT TIME ZONE 'UTC' < now() - interval '6 hours' AND NOT EXISTS (SELECT FROM task_days t WHERE t.day = h.day)
            ORDER BY 1 LOOP
    INSERT INTO task_days (day) VALUES (d) ON CONFLICT DO NOTHING;
    CONTINUE WHEN NOT FOUND;
    INSERT INTO task_day_counts (day, role, status, platform, n)
      SELECT d, h.role, h.status, h.platform, count(*) FROM task_history h
       WHERE h.completed_at >= d::timestamp AT TIME ZONE 'UTC' AND h.completed_at < (d + 1)::timestamp AT TIME ZONE 'UTC' GROUP BY 2, 3, 4;
    INSERT INTO task_day_workers (worker_id, day)
      SELECT DISTINCT h.worker_id, d FROM task_history h
       WHERE h.completed_at >= d::timestamp AT TIME ZONE 'UTC' AND h.completed_at < (d + 1)::timestamp AT TIME ZONE 'UTC' AND h.worker_id IS NOT NULL;
    counted := counted + 1;
  END LOOP;
  RETURN counted;
END $$;
CREATE FUNCTION public.crawl_queue_insert() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  UPDATE crawl_jobs j SET next_submission_at = least(j.next_submission_at, greatest(j.next_submit_after, now()))
   WHERE j.id = NEW.job_id AND j.status = 'running' RETURNING coalesce(NEW.keyword, j.keywords[1]) INTO NEW.keyword;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'crawl job % is not running: it takes no more pages', NEW.job_id USING ERRCODE = 'object_not_in_prerequisite_state',
      HINT = 'Start a job: POST /api/crawl/jobs, or menuwatch crawl start.';
  END IF;
  NEW.next_attempt_at := now();
  RETURN NEW;
END $$;
CREATE FUNCTION public.currency_of(state text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
  SELECT CASE WHEN state = ANY ('{AB,BC,MB,NB,NL,NS,NT,NU,ON,PE,QC,SK,YT}') THEN 'CAD' ELSE 'USD' END $$;
CREATE FUNCTION public.cycle_tasks(worker text, ids bigint[], attempts integer[], verbs text[], reasons text[], results jsonb[], wait double precision[], due timestamp with time zone[], ran double precision[], parents bigint[], then_roles text[], then_stores integer[], then_priorities integer[], then_payloads jsonb[], then_due timestamp with time zone[], then_platforms text[], then_retries integer[], then_alone boolean[], roles text[], n integer, fair integer, low integer[], since timestamp with time zone[], past bigint[], codes text[] DEFAULT NULL::text[], hosts text[] DEFAULT NULL::text[]) RETURNS TABLE(id bigint, role text, dispensary_id integer, platform text, priority integer, aged smallint, scheduled_for timestamp with time zone, claimed_at timestamp with time zone, retry_count integer, max_retries integer, payload jsonb, created_at timestamp with time zone, attempt integer, postpone_count integer, result jsonb, error_message text, lost bigint[], next_due double precision)
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
  ended bigint[];
  missing bigint[];
  u record;
  got integer;
BEGIN
  IF cardinality(ids) > 0 THEN
    SELECT array_agg(f.id) INTO ended FROM finish_tasks(worker, ids, attempts, verbs, reasons, results, wait, due, ran, codes, hosts) f;
    IF coalesce(cardinality(ended), 0) < cardinality(ids) THEN
      SELECT array_agg(x) INTO missing FROM unnest(ids) x WHERE x <> ALL (coalesce(ended, '{}'));
    END IF;
    IF cardinality(parents) > 0 THEN
      IF missing IS NOT NULL THEN
        SELECT array_agg(x.role) AS r, array_agg(x.store) AS s, array_agg(x.priority) AS p, array_agg(x.payload) AS j, array_agg(x.due) AS d,
               array_agg(x.platform) AS f, array_agg(x.retries) AS m, array_agg(x.alone) AS a INTO u
          FROM unnest(parents, then_roles, then_stores, then_priorities, then_payloads, then_due, then_platforms, then_retries, then_alone)
               x(parent, role, store, priority, payload, due, platform, retries, alone)
         WHERE x.parent <> ALL (missing);
        PERFORM enqueue_tasks(u.r, u.s, u.p, u.j, u.d, u.f, u.m, u.a, false);
      ELSE
        PERFORM enqueue_tasks(then_roles, then_stores, then_priorities, then_payloads, then_due, then_platforms, then_retries, then_alone, false);
      END IF;
    END IF;
    IF missing IS NOT NULL THEN
      lost := missing;
      RETURN NEXT;
    END IF;
  END IF;
  IF n > 0 THEN
    PERFORM task_before_claim(worker);
    RETURN QUERY
      SELECT c.id, c.role, c.dispensary_id, c.platform, c.priority, c.aged, c.scheduled_for, c.claimed_at, c.retry_count, c.max_retries,
             nullif(c.payload, '{}'), c.created_at, c.attempt, c.postpone_count, c.result, c.error_message, NULL::bigint[], NULL::double precision
        FROM task_claim(task_roles(roles), worker, n, fair, low, since, past) c;
    GET DIAGNOSTICS got = ROW_COUNT;
    IF got < n THEN
      id := NULL;
      lost := NULL;
      next_due := extract(epoch FROM (SELECT t.scheduled_for FROM task_live t WHERE t.state = 's' ORDER BY t.scheduled_for LIMIT 1)
                                     - clock_timestamp());
      RETURN NEXT;
    END IF;
  END IF;
END $$;
CREATE FUNCTION public.distance_meters(lat_a double precision, lon_a double precision, lat_b double precision, lon_b double precision) RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
  SELECT round(12742017.6 * asin(sqrt(least(1, sin(radians(lat_a - lat_b) / 2) ^ 2
                                          + cos(radians(lat_a)) * cos(radians(lat_b)) * sin(radians(lon_a - lon_b) / 2) ^ 2))))::integer
$$;
CREATE FUNCTION public.effective_price(rec numeric, rec_special numeric, med numeric, med_special numeric) RETURNS numeric
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT coalesce(least(rec, rec_special), least(med, med_special)) $$;
CREATE FUNCTION public.end_attempt(worker text, task bigint, attempt integer, verb text, reason text, result jsonb, wait double precision, due timestamp with time zone, ran double precision, code text DEFAULT NULL::text, host text DEFAULT NULL::text) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_variable
DECLARE
  why CONSTANT text := CASE WHEN verb <> 'done' THEN coalesce(nullif(left(btrim(reason), 4000), ''), 'no reason given') END;
  ended bigint;
BEGIN
  IF jsonb_typeof(result) NOT IN ('object', 'null') THEN
    RAISE EXCEPTION 'result must be a JSON object, not %', jsonb_typeof(result) USING ERRCODE = 'invalid_parameter_value';
  END IF;
  SELECT f.id INTO ended
    FROM finish_tasks(worker, ARRAY[task], ARRAY[attempt], ARRAY[verb], ARRAY[why], ARRAY[nullif(result, 'null')], ARRAY[wait], ARRAY[due],
                      ARRAY[greatest(ran, 0)], ARRAY[code], ARRAY[host]) f;
  IF ended IS NOT NULL THEN RETURN true; END IF;
  -- Of a task that waits again nothing says who ended its last attempt: a worker that gives the same reason for that attempt did.
  IF EXISTS (SELECT FROM task_history h
              WHERE h.id = task AND h.worker_id = worker AND h.attempt = end_attempt.attempt
                AND h.status = CASE verb WHEN 'done' THEN 'completed' ELSE 'failed' END AND h.error_message IS NOT DISTINCT FROM why)
     OR EXISTS (SELECT FROM task_live t
                 WHERE t.id = task AND t.attempt = end_attempt.attempt AND t.state <> 'a' AND t.error_message = why
                   AND verb IN ('retry', 'postpone', 'wait') AND (t.postpone_code IS NULL) = (verb = 'retry')) THEN
    RETURN false;
  END IF;
  PERFORM refuse_attempt(worker, task, attempt);
END $$;
CREATE FUNCTION public.enqueue_tasks(roles text[], stores integer[], priorities integer[], payloads jsonb[], due timestamp with time zone[], platforms text[], retries integer[], alone boolean[], wake boolean DEFAULT true) RETURNS TABLE(ord integer, id bigint, created boolean)
    LANGUAGE plpgsql
    SET enable_mergejoin TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
  n CONSTANT integer := coalesce(cardinality(roles), 0);
  at CONSTANT timestamptz := clock_timestamp();
  names CONSTANT text[] := task_roles(coalesce(roles, '{}'));
  ids bigint[];
  leads integer[];
  todo integer[];
  met integer[] := '{}';
  put bigint[];
  crowded_stores integer[] := '{}';
  crowded_roles text[] := '{}';
  ready boolean := false;
  rounds integer := 0;
  r record;
BEGIN
  IF n = 0 THEN RETURN; END IF;
  SELECT array_agg(nextval('task_ids')) INTO ids FROM generate_series(1, n);

  IF NOT true = ANY (alone) AND cardinality(array_remove(stores, NULL)) = 0 THEN
    INSERT INTO task_live (id, role, priority, payload, scheduled_for, state, platform, max_retries)
    SELECT u.id, u.role, u.priority, coalesce(u.payload, '{}'), u.due, CASE WHEN u.due > at THEN 's' ELSE 'r' END::"char", u.platform, u.retries
      FROM unnest(ids, names, priorities, payloads, due, platforms, retries) u(id, role, priority, payload, due, platform, retries);
    IF wake THEN PERFORM pg_notify('menuwatch_tasks', ''); END IF;
    RETURN QUERY SELECT x.ord::integer, x.id, true FROM unnest(ids) WITH ORDINALITY x(id, ord);
    RETURN;
  END IF;

  -- Within the batch: a task with `alone` is merged into an earlier one of its key, which takes over the higher priority and the
  -- earlier time.
  IF true = ANY (alone) THEN
    WITH i AS (
      SELECT u.*, CASE WHEN u.store IS NULL THEN md5(u.platform || coalesce(u.payload, '{}')::text) END AS print
        FROM unnest(names, stores, priorities, payloads, due, platforms, alone) WITH ORDINALITY
             u(role, store, priority, payload, due, platform, alone, ord)),
    l AS (
      SELECT i.*, CASE WHEN i.alone THEN min(i.ord) FILTER (WHERE i.alone OR i.store IS NOT NULL) OVER (PARTITION BY i.store, i.role, i.print)
                       ELSE i.ord END AS first
        FROM i),
    m AS (
      SELECT l.ord, l.first, max(l.priority) OVER f AS priority,
             nullif(min(coalesce(l.due, '-infinity')) OVER f, '-infinity') AS due
        FROM l WINDOW f AS (PARTITION BY l.first))
    SELECT array_agg(m.first ORDER BY m.ord), array_agg(m.priority ORDER BY m.ord), array_agg(m.due ORDER BY m.ord),
           array_agg(m.ord) FILTER (WHERE m.ord = m.first)
      INTO leads, priorities, due, todo FROM m;
  ELSE
    SELECT array_agg(g) INTO todo FROM generate_series(1, n) g;
    leads := todo;
  END IF;

  WHILE cardinality(todo) > 0 LOOP
    rounds := rounds + 1;
    IF rounds > 50 THEN
      RAISE EXCEPTION 'enqueue met the same tasks being claimed 50 times over' USING ERRCODE = 'serialization_failure';
    END IF;

    -- 1. Is one waiting already?
    IF true = ANY (alone) THEN
      FOR r IN
        SELECT o.ord, o.store, o.role, o.priority, o.due,
               CASE WHEN o.store IS NULL
                 THEN (SELECT w.id FROM task_live w WHERE w.uniq <> 0 AND w.state <> 'a' AND w.dispensary_id IS NULL
                          AND w.role = o.role AND md5(w.platform || w.payload::text) = md5(o.platform || coalesce(o.payload, '{}')::text)
                        ORDER BY w.id LIMIT 1)
                 ELSE coalesce(
                   (SELECT w.id FROM task_live w WHERE w.state = 'r' AND w.dispensary_id = o.store AND w.role = o.role LIMIT 1),
                   (SELECT w.id FROM task_live w WHERE w.state IN ('p', 's') AND w.dispensary_id = o.store AND w.role = o.role
                     ORDER BY -w.priority, w.created_at, w.id LIMIT 1))
               END AS there
          FROM unnest(names, stores, priorities, payloads, due, platforms, alone) WITH ORDINALITY
               o(role, store, priority, payload, due, platform, alone, ord)
         WHERE o.alone AND o.ord IN (SELECT unnest(todo))
         ORDER BY there
      LOOP
        CONTINUE WHEN r.there IS NULL;
        met := met || r.ord;
        ids[r.ord] := r.there;
        -- Wanted earlier: an untried task is pulled forward; one that is backing off only where the new one is more urgent.
        UPDATE task_live w SET priority = greatest(w.priority, r.priority), updated_at = at,
               scheduled_for = CASE WHEN w.state = 's' AND (w.attempt = 0 OR r.priority > w.priority)
                                    THEN least(w.scheduled_for, coalesce(r.due, at)) ELSE w.scheduled_for END
         WHERE w.id = r.there AND w.state::text <> 'a'
           AND (r.priority > w.priority OR (w.state::text = 's' AND w.attempt = 0 AND coalesce(r.due, at) < w.scheduled_for));
        IF FOUND THEN
          ready := ready OR coalesce(r.due, at) <= at;
          IF r.store IS NOT NULL THEN
            crowded_stores := crowded_stores || r.store;
            crowded_roles := crowded_roles || r.role;
          END IF;
        END IF;
      END LOOP;
      IF cardinality(met) > 0 THEN
        SELECT coalesce(array_agg(o.ord), '{}') INTO todo FROM (SELECT unnest(todo) EXCEPT SELECT unnest(met)) o(ord);
        EXIT WHEN cardinality(todo) = 0;
      END IF;
    END IF;

    -- 2. Lock the heads that some will park behind (I3), then insert all; tasks that lose a race are tried again.
    WITH i AS MATERIALIZED (
      SELECT u.*, coalesce(u.due > at, false) AS later
        FROM unnest(ids, names, stores, priorities, payloads, due, platforms, retries, alone) WITH ORDINALITY
             u(id, role, store, priority, payload, due, platform, retries, alone, ord)
       WHERE u.ord IN (SELECT unnest(todo))),
    k AS MATERIALIZED (SELECT DISTINCT i.store, i.role FROM i WHERE i.store IS NOT NULL AND NOT i.later),
    held AS MATERIALIZED (
      SELECT h.dispensary_id, h.role, h.priority, h.created_at
        FROM k CROSS JOIN LATERAL (
          SELECT x.id FROM task_live x WHERE x.state IN ('r', 'a') AND x.dispensary_id = k.store AND x.role = k.role OFFSET 0) c
        JOIN task_live h ON h.id = c.id AND h.state IN ('r', 'a')
       ORDER BY h.dispensary_id, h.role FOR KEY SHARE OF h),
    placed AS MATERIALIZED (
      SELECT i.*, held.role IS NOT NULL AS behind, i.priority > held.priority OR now() < held.created_at AS first,
             row_number() OVER (PARTITION BY i.store, i.role, i.later ORDER BY i.priority DESC, i.ord) AS place
        FROM i LEFT JOIN held ON NOT i.later AND held.dispensary_id = i.store AND held.role = i.role),
    puts AS (
      INSERT INTO task_live (id, role, dispensary_id, priority, payload, scheduled_for, state, platform, max_retries, uniq)
      SELECT p.id, p.role, p.store, p.priority, coalesce(p.payload, '{}'), p.due,
             CASE WHEN p.later THEN 's' WHEN p.behind THEN 'p' ELSE 'r' END::"char", p.platform, p.retries, p.alone::integer
        FROM placed p
       WHERE p.store IS NULL OR p.later OR p.behind OR p.place = 1
       ORDER BY p.store, p.role, p.ord
      ON CONFLICT DO NOTHING
      RETURNING id, state),
    -- Tasks that come before the head that they are parked behind: they will change places.
    early AS (SELECT array_agg(p.store) AS stores, array_agg(p.role) AS roles FROM placed p WHERE p.behind AND p.first)
    SELECT array_agg(p.id), ready OR coalesce(bool_or(p.state = 'r'), false),
           crowded_stores || (SELECT e.stores FROM early e), crowded_roles || (SELECT e.roles FROM early e)
      INTO put, ready, crowded_stores, crowded_roles FROM puts p;
    EXIT WHEN cardinality(put) = cardinality(todo);
    SELECT coalesce(array_agg(o.ord), '{}') INTO todo
      FROM (SELECT u.ord, u.id FROM unnest(ids) WITH ORDINALITY u(id, ord) WHERE u.ord IN (SELECT unnest(todo))) o
     WHERE NOT EXISTS (SELECT FROM unnest(put) x(id) WHERE x.id = o.id);
  END LOOP;

  IF cardinality(crowded_stores) > 0 THEN PERFORM task_reorder(crowded_stores, crowded_roles); END IF;
  IF wake AND ready THEN PERFORM pg_notify('menuwatch_tasks', ''); END IF;
  IF true = ANY (alone) THEN
    RETURN QUERY SELECT x.ord::integer, i.id, x.lead = x.ord AND m.ord IS NULL
                   FROM unnest(leads) WITH ORDINALITY x(lead, ord)
                   JOIN unnest(ids) WITH ORDINALITY i(id, ord) ON i.ord = x.lead
                   LEFT JOIN unnest(met) m(ord) ON m.ord = x.lead
                  ORDER BY x.ord;
  ELSE
    RETURN QUERY SELECT x.ord::integer, x.id, true FROM unnest(ids) WITH ORDINALITY x(id, ord);
  END IF;
END $$;
CREATE FUNCTION public.ensure_fetch_attempts_partition(instant timestamp with time zone) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION public.ensure_month_partition(parent text, instant timestamp with time zone) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
DECLARE
  month timestamptz := date_trunc('month', instant, 'UTC');
  next_month timestamptz := ((month AT TIME ZONE 'UTC') + interval '1 month') AT TIME ZONE 'UTC';
  part text := parent || '_' || to_char(month AT TIME ZONE 'UTC', 'YYYY_MM');
BEGIN
  IF to_regclass(part) IS NOT NULL THEN RETURN false; END IF;
  PERFORM pg_advisory_xact_lock(hashtext(parent));
  EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES)', part, parent);
  EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, part, month, next_month);
  RETURN true;
EXCEPTION WHEN duplicate_table THEN
  -- Another session made it while this one waited; a second to_regclass would still answer from the cache.
  RETURN false;
END $$;
CREATE FUNCTION public.ensure_product_detail_history_partition(instant timestamp with time zone) RETURNS boolean
    LANGUAGE sql
    AS $$
  SELECT ensure_month_partition('product_detail_history', instant)
$$;
CREATE FUNCTION public.ensure_product_history_partition(instant timestamp with time zone) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
BEGIN
  PERFORM ensure_product_detail_history_partition(instant);
  RETURN ensure_month_partition('product_history', instant);
END $$;
CREATE FUNCTION public.ensure_task_history_partition(instant timestamp with time zone) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
DECLARE
  day date := (instant AT TIME ZONE 'UTC')::date;
  part text := 'task_history_' || to_char(day, 'YYYYMMDD');
BEGIN
  IF to_regclass(part) IS NOT NULL THEN RETURN false; END IF;
  PERFORM pg_advisory_xact_lock(hashtext('task_history'));
  EXECUTE format('CREATE TABLE %I (LIKE task_history INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES INCLUDING GENERATED)', part);
  EXECUTE format('ALTER TABLE task_history ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', part,
                 day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC');
  RETURN true;
EXCEPTION WHEN duplicate_table THEN
  -- Another session made it while this one waited; a second to_regclass would still answer from the cache.
  RETURN false;
END $$;
CREATE FUNCTION public.failed_units(since timestamp with time zone) RETURNS TABLE(cause text, role text, platform text, dispensary_id integer, print text, n bigint, last_hour bigint, last_day bigint, first_at timestamp with time zone, last_at timestamp with time zone, resolved_at timestamp with time zone, is_open boolean, is_retried boolean, is_muted boolean)
    LANGUAGE sql STABLE
    AS $$
  SELECT u.*, r.at, r.at IS NULL AND (u.dispensary_id IS NULL OR EXISTS (
           SELECT FROM dispensaries d WHERE d.id = u.dispensary_id AND (d.crawl_enabled OR u.role = 'product_refresh')
              AND (u.role <> 'entry_point_discovery' OR d.platform_dispensary_id IS NULL))),
         CASE WHEN u.dispensary_id IS NULL
              THEN EXISTS (SELECT FROM live_tasks t WHERE t.role = u.role AND t.dispensary_id IS NULL AND t.wait_state IS DISTINCT FROM 'scheduled'
                              AND t.wait_state IS DISTINCT FROM 'blocked' AND md5(t.platform || t.payload::text) = u.print)
              ELSE EXISTS (SELECT FROM live_tasks t WHERE t.dispensary_id = u.dispensary_id AND t.state IN ('r', 'a') AND t.role = ANY (k.roles)
                              AND t.wait_state IS DISTINCT FROM 'blocked') END,
         EXISTS (SELECT FROM failure_mutes m WHERE m.cause = u.cause AND m.role = u.role AND m.platform = u.platform
                    AND (m.until IS NULL OR m.until > now()))
    FROM (
      SELECT h.cause, h.role, h.platform, h.dispensary_id, NULL AS print, count(*) AS n,
             count(*) FILTER (WHERE h.completed_at >= now() - interval '1 hour') AS last_hour,
             count(*) FILTER (WHERE h.completed_at >= now() - interval '24 hours') AS last_day,
             min(h.completed_at) AS first_at, max(h.completed_at) AS last_at
        FROM task_history h
       WHERE h.status = 'failed' AND h.completed_at >= since AND h.dispensary_id IS NOT NULL GROUP BY 1, 2, 3, 4
      UNION ALL
      -- The index of causes says which these are; the rows of the others are not read for their payload.
      SELECT h.cause, h.role, h.platform, NULL, md5(x.platform || x.payload::text), count(*),
             count(*) FILTER (WHERE h.completed_at >= now() - interval '1 hour'),
             count(*) FILTER (WHERE h.completed_at >= now() - interval '24 hours'), min(h.completed_at), max(h.completed_at)
        FROM (SELECT i.cause, i.role, i.platform, i.id, i.completed_at FROM task_history i
               WHERE i.status = 'failed' AND i.completed_at >= since AND i.dispensary_id IS NULL OFFSET 0) h
        JOIN task_history x ON x.id = h.id AND x.completed_at = h.completed_at
       GROUP BY 1, 2, 3, 5) u
   CROSS JOIN LATERAL (
      SELECT CASE WHEN u.role IN ('payload_fetch', 'product_discovery') THEN ARRAY['payload_fetch', 'product_discovery'] ELSE ARRAY[u.role] END AS roles) k
   CROSS JOIN LATERAL (
      SELECT CASE WHEN u.dispensary_id IS NULL
                  THEN (SELECT s.completed_at FROM task_history s
                         WHERE s.role = u.role AND s.completed_at > u.last_at AND s.status = 'completed' AND s.dispensary_id IS NULL
                           AND md5(s.platform || s.payload::text) = u.print ORDER BY s.completed_at LIMIT 1)
                  ELSE (SELECT s.completed_at FROM task_history s
                         WHERE s.dispensary_id = u.dispensary_id AND s.completed_at > u.last_at AND s.status = 'completed' AND s.role = ANY (k.roles)
                         ORDER BY s.completed_at LIMIT 1) END AS at OFFSET 0) r  -- OFFSET: looked up once, and not at each mention
$$;
CREATE FUNCTION public.feed_crawl() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  INSERT INTO crawl_feed (dispensary_id, crawled_at) VALUES (NEW.dispensary_id, NEW.crawled_at);
  RETURN NULL;
END $$;
CREATE FUNCTION public.finish_tasks(worker text, ids bigint[], attempts integer[], verbs text[], reasons text[], results jsonb[], wait double precision[], due timestamp with time zone[], ran double precision[], codes text[] DEFAULT NULL::text[], hosts text[] DEFAULT NULL::text[]) RETURNS TABLE(id bigint, status text)
    LANGUAGE plpgsql
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
  postponements CONSTANT integer := 50;
  at CONSTANT timestamptz := clock_timestamp();
  stores integer[];
  freed text[];
  more_stores integer[];
  more_freed text[];
  gone bigint[];
  outcomes text[];
BEGIN
  IF verbs && ARRAY['retry', 'postpone', 'wait'] THEN
    -- An UPDATE frees the head slot without waiting for those who hold it to park behind it: lock as a DELETE would (I3).
    PERFORM FROM task_live t WHERE t.id = ANY (ids) AND t.worker_id = worker ORDER BY t.id FOR UPDATE OF t;
  END IF;
  PERFORM ensure_task_history_partition(at);
  WITH f AS MATERIALIZED (
    SELECT u.id, u.attempt, coalesce(u.verb, 'done') AS verb, u.reason, u.result, u.ran
      FROM unnest(ids, attempts, verbs, reasons, results, ran) u(id, attempt, verb, reason, result, ran)),
  d AS (
    -- No `state = 'a'` here: it would invite a scan of the whole active index. worker_id says as much.
    DELETE FROM task_live t USING f
     WHERE t.id = f.id AND t.worker_id = worker AND t.attempt = f.attempt
       AND (f.verb IN ('done', 'fail')
            OR (f.verb = 'retry' AND t.retry_count >= t.max_retries)
            OR (f.verb = 'postpone' AND t.postpone_count >= postponements AND t.retry_count >= t.max_retries))
    RETURNING t.*, f.verb, f.reason, f.result AS said, f.ran),
  h AS (
    INSERT INTO task_history (id, created_at, scheduled_for, claimed_at, started_at, completed_at, last_heartbeat_at, dispensary_id,
                              priority, attempt, retry_count, max_retries, postpone_count, role, platform, status, worker_id,
                              error_message, payload, result, earlier_attempts)
    SELECT d.id, d.created_at, d.scheduled_for, d.claimed_at,
           coalesce(d.started_at, greatest(d.claimed_at, at - make_interval(secs => coalesce(d.ran, 0)))), greatest(at, d.claimed_at, d.started_at),
           d.last_heartbeat_at, d.dispensary_id, d.priority, d.attempt, d.retry_count, d.max_retries, d.postpone_count, d.role, d.platform,
           CASE d.verb WHEN 'done' THEN 'completed' ELSE 'failed' END, d.worker_id,
           CASE WHEN d.verb <> 'done' THEN coalesce(nullif(d.reason, ''), 'no reason given') END, d.payload, coalesce(d.said, d.result), d.earlier_attempts
      FROM d)
  -- From `d` alone: a join of what was deleted with what was inserted would be a nested loop over both.
  SELECT array_agg(d.id), array_agg(CASE d.verb WHEN 'done' THEN 'completed' ELSE 'failed' END),
         array_agg(d.dispensary_id) FILTER (WHERE d.dispensary_id IS NOT NULL), array_agg(d.role) FILTER (WHERE d.dispensary_id IS NOT NULL)
    INTO gone, outcomes, stores, freed FROM d;
  RETURN QUERY SELECT * FROM unnest(gone, outcomes);

  IF coalesce(cardinality(gone), 0) < cardinality(ids) AND verbs && ARRAY['retry', 'postpone', 'wait', 'release'] THEN
    WITH f AS MATERIALIZED (
      SELECT u.id, u.attempt, u.verb, u.reason, u.result, u.code, u.host, u.ran,
             CASE u.verb WHEN 'retry' THEN at + make_interval(secs => greatest(coalesce(u.wait, 0), 0))
                         WHEN 'postpone' THEN coalesce(u.due, at + make_interval(secs => greatest(coalesce(u.wait, 0), 0)))
                         WHEN 'wait' THEN coalesce(u.due, at + make_interval(secs => greatest(coalesce(u.wait, 0), 0))) END AS due
        FROM unnest(ids, attempts, verbs, reasons, results, wait, due, ran, codes, hosts)
             u(id, attempt, verb, reason, result, wait, due, ran, code, host)
       WHERE u.verb IN ('retry', 'postpone', 'wait', 'release')),
    b AS (
      UPDATE task_live t
         SET state = CASE WHEN f.due > at THEN 's' ELSE 'r' END::"char",
             scheduled_for = CASE WHEN f.verb = 'release' THEN t.scheduled_for ELSE f.due END,
             retry_count = t.retry_count + CASE WHEN f.verb = 'retry' OR (f.verb = 'postpone' AND t.postpone_count >= postponements) THEN 1 ELSE 0 END,
             postpone_count = t.postpone_count + CASE WHEN f.verb = 'postpone' AND t.postpone_count < postponements THEN 1 ELSE 0 END,
             error_message = CASE WHEN f.verb = 'release' THEN t.error_message ELSE f.reason END,
             postpone_code = CASE WHEN f.verb IN ('postpone', 'wait') THEN coalesce(f.code, 'other') END,
             postpone_host = CASE WHEN f.verb IN ('postpone', 'wait') THEN f.host END,
             result = coalesce(f.result, t.result),
             earlier_attempts = task_attempts_with(t, at, CASE f.verb WHEN 'retry' THEN 'retried' WHEN 'release' THEN 'released' ELSE 'postponed' END,
                                                   f.reason, f.ran),
             aged = CASE WHEN f.verb IN ('release', 'wait') THEN t.aged ELSE 0 END,
             worker_id = NULL, claimed_at = NULL, started_at = NULL, last_heartbeat_at = NULL, updated_at = at
        FROM f WHERE t.id = f.id AND t.worker_id = worker AND t.attempt = f.attempt
      RETURNING t.id, t.dispensary_id, t.role)
    SELECT array_agg(b.id), array_agg(b.dispensary_id) FILTER (WHERE b.dispensary_id IS NOT NULL),
           array_agg(b.role) FILTER (WHERE b.dispensary_id IS NOT NULL)
      INTO gone, more_stores, more_freed FROM b;
    RETURN QUERY SELECT x, 'pending' FROM unnest(gone) x;
    IF more_stores IS NOT NULL THEN
      PERFORM task_promote_parked(more_stores, more_freed);
      PERFORM task_reorder(more_stores, more_freed);
    END IF;
  END IF;
  IF stores IS NOT NULL THEN PERFORM task_promote_next(stores, freed); END IF;
END $$;
CREATE FUNCTION public.fire_schedule(which integer, fire timestamp with time zone, at timestamp with time zone, next timestamp with time zone, zones text[] DEFAULT NULL::text[]) RETURNS integer
    LANGUAGE plpgsql
    AS $$
DECLARE
  s task_schedules;
  stores integer[];
  n integer;
  made integer;
BEGIN
  SELECT * INTO s FROM task_schedules WHERE id = which FOR UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'schedule % does not exist', which USING ERRCODE = 'no_data_found';
  END IF;
  INSERT INTO schedule_runs AS r (schedule_id, fire_at, ran_at) VALUES (which, fire, at)
      ON CONFLICT (schedule_id, fire_at) DO UPDATE SET ran_at = excluded.ran_at, error = NULL WHERE r.error IS NOT NULL;
  IF NOT FOUND THEN
    UPDATE task_schedules SET next_run_at = coalesce(next, next_run_at) WHERE id = which;
    RETURN NULL;
  END IF;
  IF s.role = 'payload_fetch' THEN
    SELECT coalesce(array_agg(d.id ORDER BY d.id), '{}') INTO stores FROM dispensaries d
     WHERE d.crawl_enabled AND d.platform_dispensary_id IS NOT NULL AND d.platform = s.platform
       AND (s.state_code IS NULL OR d.state = s.state_code) AND (zones IS NULL OR coalesce(d.timezone, '') = ANY (zones))
       AND (d.last_crawled_at IS NULL
            OR d.last_crawled_at + make_interval(secs => (d.crawl_interval_hours * 3600)::double precision)
               <= at + make_interval(secs => (s.interval_hours * 1800)::double precision));
  ELSE
    stores := ARRAY[NULL::integer];
  END IF;
  n := cardinality(stores);
  SELECT count(*) FILTER (WHERE e.created) INTO made
    FROM enqueue_tasks(array_fill(s.role, ARRAY[n]), stores, array_fill(s.priority, ARRAY[n]),
                       array_fill(CASE WHEN s.role = 'store_discovery' AND s.state_code IS NOT NULL
                                       THEN jsonb_build_object('state', s.state_code) ELSE '{}' END, ARRAY[n]),
                       array_fill(NULL::timestamptz, ARRAY[n]), array_fill(s.platform, ARRAY[n]), array_fill(3, ARRAY[n]),
                       array_fill(true, ARRAY[n])) e;
  UPDATE schedule_runs SET task_count = made WHERE schedule_id = which AND fire_at = fire;
  UPDATE task_schedules
     SET last_run_at = at, last_task_count = made, last_error = NULL, next_run_at = coalesce(next, next_run_at), updated_at = now()
   WHERE id = which;
  RETURN made;
END $$;
CREATE FUNCTION public.fold_catalog_names(most integer) RETURNS bigint
    LANGUAGE sql
    AS $$
  WITH taken AS (
    DELETE FROM catalog_new_names c
     WHERE c.ctid = ANY (ARRAY (SELECT n.ctid FROM catalog_new_names n LIMIT most FOR UPDATE SKIP LOCKED)) RETURNING c.name),
  kept AS (INSERT INTO catalog_names SELECT name FROM (SELECT DISTINCT name FROM taken) n ORDER BY md5(name) ON CONFLICT DO NOTHING)
  SELECT count(*) FROM taken
$$;
CREATE FUNCTION public.generate_resync_tasks(batches_per_day integer DEFAULT 6, date date DEFAULT CURRENT_DATE, timezone text DEFAULT NULL::text) RETURNS integer
    LANGUAGE plpgsql
    AS $_$
#variable_conflict use_column
DECLARE
  batches CONSTANT integer := $1;
  wanted CONSTANT date := $2;
  zone CONSTANT text := $3;
  ids integer[];
  names text[];
  moments timestamptz[];
  n integer;
  made integer;
BEGIN
  IF batches IS NULL OR batches NOT BETWEEN 1 AND 1440 THEN
    RAISE EXCEPTION 'batches_per_day must be from 1 to 1440, got %', batches USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF wanted IS NULL OR NOT isfinite(wanted) THEN
    RAISE EXCEPTION 'date must be a day, got %', wanted USING ERRCODE = 'invalid_parameter_value';
  END IF;
  PERFORM now() AT TIME ZONE zone;  -- one that does not exist is an error here, not UTC
  WITH zones AS MATERIALIZED (
    SELECT z.timezone, known_timezone(coalesce(zone, z.timezone)) AS known
      FROM (SELECT DISTINCT d.timezone FROM dispensaries d) z),
  dealt AS (
    -- In the order of their zones, so that the stores of each zone are spread evenly as well.
    SELECT d.id, d.platform, z.known,
           (row_number() OVER (ORDER BY z.known, md5(d.id::text || wanted), d.id) - 1) % batches AS batch,
           ('x' || left(md5(wanted || ' ' || d.id), 8))::bit(32)::bigint / 4294967296.0::double precision AS jitter
      FROM dispensaries d JOIN zones z ON z.timezone IS NOT DISTINCT FROM d.timezone
     WHERE d.crawl_enabled AND d.platform_dispensary_id IS NOT NULL),
  planned AS (
    INSERT INTO resync_plan AS p (day, dispensary_id, scheduled_for)
    SELECT wanted, x.id, (wanted::timestamp + interval '24 hours' / batches * (x.batch + x.jitter)) AT TIME ZONE x.known
      FROM dealt x
     WHERE NOT EXISTS (SELECT FROM task_live t WHERE t.dispensary_id = x.id AND t.role = 'payload_fetch' AND t.state <> 'a')
     ORDER BY x.id
    ON CONFLICT DO NOTHING
    RETURNING p.dispensary_id, p.scheduled_for)
  SELECT coalesce(array_agg(p.dispensary_id ORDER BY p.dispensary_id), '{}'), array_agg(d.platform ORDER BY p.dispensary_id),
         array_agg(p.scheduled_for ORDER BY p.dispensary_id)
    INTO ids, names, moments FROM planned p JOIN dispensaries d ON d.id = p.dispensary_id;
  n := cardinality(ids);
  IF n = 0 THEN RETURN 0; END IF;
  WITH e AS MATERIALIZED (
    SELECT e.* FROM enqueue_tasks(array_fill('payload_fetch'::text, ARRAY[n]), ids, array_fill(0, ARRAY[n]), array_fill('{}'::jsonb, ARRAY[n]),
                                  moments, names, array_fill(3, ARRAY[n]), array_fill(true, ARRAY[n])) e),
  kept AS (
    UPDATE resync_plan p SET task_id = e.id FROM e WHERE e.created AND p.day = wanted AND p.dispensary_id = ids[e.ord]),
  met AS (
    -- A crawl of this store was enqueued meanwhile: it is not planned.
    DELETE FROM resync_plan p USING e WHERE NOT e.created AND p.day = wanted AND p.dispensary_id = ids[e.ord])
  SELECT count(*) FILTER (WHERE e.created) INTO made FROM e;
  RETURN made;
END $_$;
CREATE FUNCTION public.host_block_reason(h public.hosts, at timestamp with time zone, OUT code text, OUT reason text, OUT wait double precision, OUT until timestamp with time zone) RETURNS record
    LANGUAGE plpgsql STABLE
    AS $$
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
CREATE FUNCTION public.known_timezone(name text) RETURNS text
    LANGUAGE plpgsql STABLE
    AS $$
BEGIN
  PERFORM now() AT TIME ZONE name;
  RETURN coalesce(name, 'UTC');
EXCEPTION WHEN invalid_parameter_value THEN
  RETURN 'UTC';
END $$;
CREATE FUNCTION public.lease_identity(p_host text, ranked integer[], task bigint, lease_seconds double precision, count integer, max_wait double precision, window_seconds double precision, release_lease_id bigint) RETURNS TABLE(lease bigint, proxy_id integer, slots double precision[], code text, reason text, wait double precision, probing boolean)
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION public.listings_of(products bigint[], brand_ids integer[]) RETURNS bigint[]
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $_$
  SELECT coalesce(array_agg(m.product_id), '{}')
    FROM canonical_products c JOIN product_matches m ON m.canonical_product_id = c.id
   WHERE ($1 IS NULL OR c.id = ANY (merged_canonical_products($1))) AND ($2 IS NULL OR c.brand_id = ANY (merged_brands($2)))
$_$;
CREATE FUNCTION public.live_brand(id integer) RETURNS integer
    LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE
    SET search_path TO '$user', 'public'
    AS $_$
  WITH RECURSIVE r AS (
    SELECT b.id, b.merged_into FROM brands b WHERE b.id = $1
     UNION SELECT b.id, b.merged_into FROM r JOIN brands b ON b.id = r.merged_into)
  SELECT r.id FROM r WHERE r.merged_into IS NULL
$_$;
CREATE FUNCTION public.live_canonical_product(id bigint) RETURNS bigint
    LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE
    SET search_path TO '$user', 'public'
    AS $_$
  WITH RECURSIVE r AS (
    SELECT c.id, c.merged_into FROM canonical_products c WHERE c.id = $1
     UNION SELECT c.id, c.merged_into FROM r JOIN canonical_products c ON c.id = r.merged_into)
  SELECT r.id FROM r WHERE r.merged_into IS NULL
$_$;
CREATE FUNCTION public.live_location(id integer) RETURNS integer
    LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE
    SET search_path TO '$user', 'public'
    AS $_$
  WITH RECURSIVE r AS (
    SELECT l.id, l.merged_into FROM locations l WHERE l.id = $1
     UNION SELECT l.id, l.merged_into FROM r JOIN locations l ON l.id = r.merged_into)
  SELECT r.id FROM r WHERE r.merged_into IS NULL
$_$;
CREATE FUNCTION public.menus_at(location_ids integer[]) RETURNS integer[]
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $_$
  SELECT coalesce(array_agg(k.dispensary_id), '{}')
    FROM location_links k WHERE k.location_id = ANY (merged_locations($1)) AND k.dispensary_id IS NOT NULL
$_$;
CREATE FUNCTION public.merged_brands(ids integer[]) RETURNS integer[]
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $_$
  WITH RECURSIVE r AS (
    SELECT live_brand(n) AS id FROM unnest($1) n UNION SELECT b.id FROM r JOIN brands b ON b.merged_into = r.id)
  SELECT coalesce(array_agg(r.id), '{}') FROM r WHERE r.id IS NOT NULL
$_$;
CREATE FUNCTION public.merged_canonical_products(ids bigint[]) RETURNS bigint[]
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $_$
  WITH RECURSIVE r AS (
    SELECT live_canonical_product(n) AS id FROM unnest($1) n
     UNION SELECT c.id FROM r JOIN canonical_products c ON c.merged_into = r.id)
  SELECT coalesce(array_agg(r.id), '{}') FROM r WHERE r.id IS NOT NULL
$_$;
CREATE FUNCTION public.merged_locations(ids integer[]) RETURNS integer[]
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $_$
  WITH RECURSIVE r AS (
    SELECT live_location(n) AS id FROM unnest($1) n UNION SELECT l.id FROM r JOIN locations l ON l.merged_into = r.id)
  SELECT coalesce(array_agg(r.id), '{}') FROM r WHERE r.id IS NOT NULL
$_$;
CREATE FUNCTION public.note_brands() RETURNS trigger
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
BEGIN
  INSERT INTO storefront_dirty_products
  SELECT i.id FROM new_rows n JOIN old_rows o ON o.id = n.id JOIN storefront_items i ON i.brand_id = n.id
   WHERE (n.name, n.merged_into) IS DISTINCT FROM (o.name, o.merged_into);
  RETURN NULL;
END $$;
CREATE FUNCTION public.note_canonical_products() RETURNS trigger
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
BEGIN
  INSERT INTO storefront_dirty_products
  SELECT n.id FROM new_rows n JOIN old_rows o ON o.id = n.id
   WHERE (n.name, n.brand_id, n.category, n.form, n.strain, n.merged_into) IS DISTINCT FROM (o.name, o.brand_id, o.category, o.form, o.strain, o.merged_into);
  RETURN NULL;
END $$;
CREATE FUNCTION public.note_former_offers() RETURNS trigger
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
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
CREATE FUNCTION public.note_matches() RETURNS trigger
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
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
CREATE FUNCTION public.note_name() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  INSERT INTO catalog_new_names VALUES (lower(NEW.name));
  RETURN NULL;
END $$;
CREATE FUNCTION public.note_names() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  INSERT INTO catalog_new_names SELECT DISTINCT lower(m.name) FROM made m;
  RETURN NULL;
END $$;
CREATE FUNCTION public.number_crawls(most integer DEFAULT 10000) RETURNS integer
    LANGUAGE plpgsql
    AS $$
DECLARE
  given integer;
  events integer;
BEGIN
  IF NOT EXISTS (SELECT FROM crawl_feed WHERE position IS NULL) AND NOT EXISTS (SELECT FROM match_events WHERE position IS NULL) THEN
    RETURN 0;
  END IF;
  IF NOT pg_try_advisory_xact_lock(hashtext('number_crawls')) THEN RETURN 0; END IF;
  -- With the lock, and a snapshot taken after it: no position is given twice, and none is given before a smaller one can be seen.
  WITH next AS MATERIALIZED (
    SELECT c.dispensary_id, c.crawled_at FROM crawl_feed c WHERE c.position IS NULL ORDER BY c.crawled_at, c.dispensary_id LIMIT most),
  numbered AS MATERIALIZED (
    SELECT n.dispensary_id, n.crawled_at, nextval('crawl_positions') AS position FROM next n)
  UPDATE crawl_feed c SET position = n.position FROM numbered n
   WHERE c.dispensary_id = n.dispensary_id AND c.crawled_at = n.crawled_at;
  GET DIAGNOSTICS given = ROW_COUNT;
  WITH next AS MATERIALIZED (SELECT e.id FROM match_events e WHERE e.position IS NULL ORDER BY e.id LIMIT most),
  numbered AS MATERIALIZED (SELECT n.id, nextval('crawl_positions') AS position FROM next n)
  UPDATE match_events e SET position = n.position FROM numbered n WHERE e.id = n.id;
  GET DIAGNOSTICS events = ROW_COUNT;
  RETURN given + events;
END $$;
CREATE FUNCTION public.on_special(price_rec numeric, price_rec_special numeric, price_med numeric, price_med_special numeric) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
  SELECT CASE WHEN price_rec IS NOT NULL OR price_rec_special IS NOT NULL THEN coalesce(price_rec_special < price_rec, false)
              ELSE coalesce(price_med_special < price_med, false) END
$$;
CREATE FUNCTION public.option_prices(variants jsonb) RETURNS jsonb
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
  SELECT coalesce(jsonb_agg(jsonb_build_array(v -> 'option', v -> 'price_rec', v -> 'special_rec', v -> 'price_med', v -> 'special_med') ORDER BY n), '[]')
    FROM jsonb_array_elements(variants) WITH ORDINALITY e(v, n)
$$;
CREATE FUNCTION public.option_stock(variants jsonb) RETURNS jsonb
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
  SELECT coalesce(jsonb_agg(jsonb_build_array(v -> 'option', coalesce(v -> 'stock_status', '"unknown"'), v -> 'quantity', coalesce(v -> 'capped', 'false'))
                            ORDER BY n), '[]')
    FROM jsonb_array_elements(variants) WITH ORDINALITY e(v, n)
$$;
CREATE FUNCTION public.prices_by_option(prices jsonb) RETURNS json
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
  SELECT coalesce(json_agg(json_build_object('option', e -> 0, 'price_rec', e -> 1, 'price_rec_special', e -> 2, 'price_med', e -> 3,
                                             'price_med_special', e -> 4)), '[]')
    FROM jsonb_array_elements(prices) e
$$;
CREATE FUNCTION public.promote_due_tasks(most integer DEFAULT 2000) RETURNS integer
    LANGUAGE plpgsql
    SET lock_timeout TO '20ms'
    AS $$
DECLARE
  ids bigint[];
  moved integer := 0;
  blocked integer := 0;
  one bigint;
BEGIN
  SELECT array_agg(d.id) INTO ids FROM (
    SELECT t.id FROM task_live t WHERE t.state = 's' AND t.scheduled_for <= (SELECT clock_timestamp()) ORDER BY t.scheduled_for LIMIT most) d;
  IF ids IS NULL THEN RETURN 0; END IF;
  BEGIN
    RETURN task_promote_due(ids);
  EXCEPTION WHEN unique_violation OR lock_not_available THEN NULL;
  END;
  -- Then one task at a time, in random order, until too many were locked: unlocked tasks get through over several calls, and the claim
  -- that this is part of is not delayed.
  PERFORM set_config('lock_timeout', '1ms', true);
  FOR one IN SELECT x FROM unnest(ids) x ORDER BY random() LOOP
    BEGIN
      moved := moved + task_promote_due(ARRAY[one]);
    EXCEPTION WHEN unique_violation OR lock_not_available THEN
      blocked := blocked + 1;
      EXIT WHEN blocked >= 20;
    END;
  END LOOP;
  RETURN moved;
END $$;
CREATE FUNCTION public.recover_stale_tasks(threshold_minutes numeric DEFAULT 10) RETURNS integer
    LANGUAGE plpgsql
    AS $$
DECLARE
  at CONSTANT timestamptz := clock_timestamp();
  stale bigint[];
  stores integer[];
  freed text[];
  returned_stores integer[];
  returned text[];
BEGIN
  IF threshold_minutes IS NULL OR threshold_minutes < 0 THEN
    RAISE EXCEPTION 'threshold_minutes must not be negative, got %', threshold_minutes USING ERRCODE = 'invalid_parameter_value';
  END IF;
  -- A worker that is committing an outcome right now is not silent: its row is locked, and passed over.
  SELECT array_agg(s.id) INTO stale FROM (
    SELECT t.id FROM task_live t
     WHERE t.state = 'a' AND coalesce(t.last_heartbeat_at, t.claimed_at) < at - make_interval(secs => threshold_minutes::double precision * 60)
     FOR UPDATE OF t SKIP LOCKED) s;
  IF stale IS NULL THEN RETURN 0; END IF;
  PERFORM ensure_task_history_partition(at);
  WITH d AS (DELETE FROM task_live t WHERE t.id = ANY (stale) AND t.retry_count >= t.max_retries RETURNING t.*),
  h AS (
    INSERT INTO task_history (id, created_at, scheduled_for, claimed_at, started_at, completed_at, last_heartbeat_at, dispensary_id,
                              priority, attempt, retry_count, max_retries, postpone_count, role, platform, status, worker_id,
                              error_message, payload, result, earlier_attempts)
    SELECT d.id, d.created_at, d.scheduled_for, d.claimed_at, d.started_at, greatest(at, d.claimed_at, d.started_at), d.last_heartbeat_at,
           d.dispensary_id, d.priority, d.attempt, d.retry_count, d.max_retries, d.postpone_count, d.role, d.platform, 'failed', d.worker_id,
           format('worker %s fell silent at %s, and no retry is left', d.worker_id, coalesce(d.last_heartbeat_at, d.claimed_at)), d.payload, d.result, d.earlier_attempts
      FROM d)
  SELECT array_agg(d.dispensary_id) FILTER (WHERE d.dispensary_id IS NOT NULL), array_agg(d.role) FILTER (WHERE d.dispensary_id IS NOT NULL)
    INTO stores, freed FROM d;
  WITH b AS (
    UPDATE task_live t
       SET state = 'r', retry_count = t.retry_count + 1,
           earlier_attempts = task_attempts_with(t, at, 'lost', format('worker %s fell silent at %s', t.worker_id,
                                                                       coalesce(t.last_heartbeat_at, t.claimed_at)), NULL),
           error_message = format('worker %s fell silent at %s', t.worker_id, coalesce(t.last_heartbeat_at, t.claimed_at)),
           worker_id = NULL, claimed_at = NULL, started_at = NULL, last_heartbeat_at = NULL, updated_at = at
     WHERE t.id = ANY (stale)
    RETURNING t.dispensary_id, t.role)
  SELECT array_agg(b.dispensary_id) FILTER (WHERE b.dispensary_id IS NOT NULL), array_agg(b.role) FILTER (WHERE b.dispensary_id IS NOT NULL)
    INTO returned_stores, returned FROM b;
  IF stores IS NOT NULL THEN PERFORM task_promote_parked(stores, freed); END IF;
  IF returned_stores IS NOT NULL THEN PERFORM task_reorder(returned_stores, returned); END IF;
  PERFORM pg_notify('menuwatch_tasks', '');
  RETURN cardinality(stale);
END $$;
CREATE FUNCTION public.refresh_catalog_totals(large bigint DEFAULT 100000) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
DECLARE
  n bigint := 0;
BEGIN
  DELETE FROM catalog_totals;
  IF (SELECT c.reltuples FROM pg_class c WHERE c.oid = 'catalog_products'::regclass) >= large THEN
    -- One scan for both: the table may be larger than memory.
    INSERT INTO catalog_totals
      SELECT b.kind, b.name, sum(b.n), sum(b.in_stock), count(*)
        FROM (SELECT CASE grouping(p.brand_name) WHEN 0 THEN 'brand' ELSE 'category' END AS kind, coalesce(p.brand_name, p.category) AS name,
                     count(*) AS n, count(*) FILTER (WHERE p.is_in_stock) AS in_stock
                FROM catalog_products p GROUP BY GROUPING SETS ((p.brand_name, p.dispensary_id), (p.category, p.dispensary_id))) b
       WHERE b.name IS NOT NULL GROUP BY 1, 2;
    GET DIAGNOSTICS n = ROW_COUNT;
  END IF;
  RETURN n;
END $$;
CREATE FUNCTION public.refuse_attempt(worker text, task bigint, number integer) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
  t worker_tasks;
  why text;
BEGIN
  SELECT * INTO t FROM worker_tasks w WHERE w.id = task;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'task % does not exist', task USING ERRCODE = 'MW404';
  END IF;
  why := CASE WHEN number IS NULL THEN 'the number of the attempt is missing'
              WHEN number > t.attempt THEN format('there was no attempt %s yet, the last one is %s', number, t.attempt)
              WHEN t.completed_at IS NOT NULL THEN format('the task is %s', t.status)
              WHEN t.worker_id IS NULL THEN format('attempt %s has ended, and the task is pending', number)
              WHEN t.attempt <> number THEN format('worker %s runs attempt %s', t.worker_id, t.attempt)
              ELSE format('worker %s runs it', t.worker_id) END;
  RAISE EXCEPTION 'attempt % of task % does not belong to worker %: %', number, task, worker, why
    USING ERRCODE = CASE WHEN number IS NULL THEN '22023' ELSE 'MW409' END, HINT = 'Stop working on this attempt.';
END $$;
CREATE FUNCTION public.refuse_catalog_write() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  RAISE EXCEPTION '% is derived from crawls and cannot be written', TG_TABLE_NAME USING ERRCODE = 'object_not_in_prerequisite_state',
    HINT = 'To read a menu again, crawl the store: INSERT INTO worker_tasks (role, dispensary_id, priority) VALUES (''payload_fetch'', <id>, 20). '
           'To apply archived menus again: menuwatch rebuild. To bring in former rows: menuwatch migrate-legacy import.';
END $$;
CREATE FUNCTION public.refuse_crawl_update() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  RAISE EXCEPTION 'page % of crawl job % is %: UPDATE cannot change %', OLD.id, OLD.job_id, OLD.status,
    CASE WHEN NEW.status <> OLD.status THEN format('its status to %s', NEW.status) ELSE 'these columns' END USING ERRCODE = 'object_not_in_prerequisite_state',
    HINT = 'Retry failed pages: POST /api/crawl/jobs/<job>/retry, or menuwatch crawl retry <job>. The server submits pages; deliveries end them.';
END $$;
CREATE FUNCTION public.remove_catalog_of_store() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  DELETE FROM product_history s WHERE s.dispensary_id = OLD.id;
  DELETE FROM product_detail_history h USING catalog_products p WHERE p.dispensary_id = OLD.id AND h.product_id = p.id;
  DELETE FROM catalog_products p WHERE p.dispensary_id = OLD.id;
  DELETE FROM history_revisions r WHERE r.dispensary_id = OLD.id;
  RETURN NULL;
END $$;
CREATE FUNCTION public.remove_image_references() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  DELETE FROM image_references u USING gone g WHERE u.product_id = g.id;
  RETURN NULL;
END $$;
CREATE TABLE public.worker_registry (
    worker_id text NOT NULL,
    friendly_name text NOT NULL,
    pod text,
    host text NOT NULL,
    pid integer,
    version text,
    roles text[],
    status text DEFAULT 'active'::text NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    last_heartbeat_at timestamp with time zone DEFAULT now() NOT NULL,
    heartbeat jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT worker_registry_status CHECK ((status = ANY (ARRAY['active'::text, 'paused'::text, 'backing_off'::text, 'stopping'::text, 'stopped'::text]))),
    CONSTRAINT worker_registry_version_check CHECK ((length(version) <= 40))
)
WITH (fillfactor='50');
CREATE FUNCTION public.require_worker(worker text) RETURNS public.worker_registry
    LANGUAGE plpgsql
    AS $$
DECLARE
  w worker_registry;
BEGIN
  SELECT * INTO w FROM worker_registry r WHERE r.worker_id = worker FOR SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'unknown worker %: register it first', quote_nullable(worker) USING ERRCODE = 'MW404';
  END IF;
  IF w.status = 'stopped' THEN
    RAISE EXCEPTION 'worker % has left the registry: register it again', quote_nullable(worker) USING ERRCODE = 'MW409';
  END IF;
  RETURN w;
END $$;
CREATE FUNCTION public.retry_tasks(ids bigint[], at_least integer DEFAULT 10, unhandled text[] DEFAULT '{}'::text[]) RETURNS TABLE(id bigint, task_id bigint, outcome text)
    LANGUAGE plpgsql
    SET lock_timeout TO '500ms'
    AS $$
#variable_conflict use_column
DECLARE
  chunk CONSTANT integer := 5000;
  at CONSTANT timestamptz := clock_timestamp();
  pulled bigint[];
  raised bigint[];
  raised_stores integer[];
  raised_roles text[];
  over bigint[];
  names text[];
  stores integer[];
  priorities integer[];
  payloads jsonb[];
  platforms text[];
  retries integer[];
  n integer;
  k integer;
  seen bigint[] := '{}';
BEGIN
  -- It stays scheduled, with a time in the past: the next claim promotes it, so that this needs no lock on its head.
  PERFORM FROM task_live t
    WHERE t.id = ANY (ids) AND (t.state = 's' OR (t.state IN ('r', 'p') AND t.priority < at_least)) ORDER BY t.id FOR NO KEY UPDATE OF t;
  WITH p AS (
    UPDATE task_live t SET scheduled_for = at, priority = greatest(t.priority, at_least), updated_at = at
     WHERE t.id = ANY (ids) AND t.state = 's' AND t.scheduled_for > at AND t.role <> ALL (unhandled)
    RETURNING t.id)
  SELECT array_agg(p.id) INTO pulled FROM p;
  IF pulled IS NOT NULL THEN
    PERFORM pg_notify('menuwatch_tasks', '');
    RETURN QUERY SELECT x, x, 'pulled' FROM unnest(pulled) x;
    seen := pulled;
  END IF;

  -- What is due already cannot be sooner than due, but comes before what is less urgent, of its own store as well.
  WITH u AS (
    UPDATE task_live t SET priority = at_least, updated_at = at
     WHERE t.id = ANY (ids) AND t.priority < at_least AND t.role <> ALL (unhandled)
       AND (t.state IN ('r', 'p') OR (t.state = 's' AND t.scheduled_for <= at)) AND t.id <> ALL (seen)
    RETURNING t.id, t.state, t.dispensary_id, t.role)
  SELECT array_agg(u.id), array_agg(u.dispensary_id) FILTER (WHERE u.state = 'p'), array_agg(u.role) FILTER (WHERE u.state = 'p')
    INTO raised, raised_stores, raised_roles FROM u;
  IF raised IS NOT NULL THEN
    IF raised_stores IS NOT NULL THEN PERFORM task_reorder(raised_stores, raised_roles); END IF;
    RETURN QUERY SELECT x, x, 'raised' FROM unnest(raised) x;
    seen := seen || raised;
  END IF;

  SELECT array_agg(h.id ORDER BY h.dispensary_id, h.role, h.id), array_agg(h.role ORDER BY h.dispensary_id, h.role, h.id),
         array_agg(h.dispensary_id ORDER BY h.dispensary_id, h.role, h.id),
         array_agg(greatest(h.priority, at_least) ORDER BY h.dispensary_id, h.role, h.id),
         array_agg(h.payload ORDER BY h.dispensary_id, h.role, h.id), array_agg(h.platform ORDER BY h.dispensary_id, h.role, h.id),
         array_agg(h.max_retries ORDER BY h.dispensary_id, h.role, h.id)
    INTO over, names, stores, priorities, payloads, platforms, retries
    FROM task_history h WHERE h.id = ANY (ids) AND h.role <> ALL (unhandled);
  -- The heads that some will park behind, in the order of their ids: as those are held who end tasks. enqueue_tasks takes them by store.
  PERFORM FROM task_live h
    WHERE h.id = ANY (ARRAY(
            SELECT (SELECT x.id FROM task_live x WHERE x.state IN ('r', 'a') AND x.dispensary_id = o.store AND x.role = o.role LIMIT 1)
              FROM (SELECT DISTINCT u.store, u.role FROM unnest(stores, names) u(store, role) WHERE u.store IS NOT NULL) o))
    ORDER BY h.id FOR KEY SHARE OF h;
  FOR i IN 1 .. coalesce(cardinality(over), 0) BY chunk LOOP
    k := least(i + chunk - 1, cardinality(over));
    n := k - i + 1;
    RETURN QUERY
      SELECT (over[i:k])[e.ord], e.id, CASE WHEN e.created THEN 'created' ELSE 'joined' END
        FROM enqueue_tasks(names[i:k], stores[i:k], priorities[i:k], payloads[i:k], array_fill(NULL::timestamptz, ARRAY[n]), platforms[i:k],
                           -- As worker_tasks_insert has it: each refresh has a payload of its own.
                           retries[i:k], ARRAY(SELECT r <> 'product_refresh' FROM unnest(names[i:k]) WITH ORDINALITY u(r, o) ORDER BY o)) e;
  END LOOP;
  seen := seen || coalesce(over, '{}');

  IF cardinality(seen) < cardinality(ids) THEN
    RETURN QUERY
      SELECT x.id, w.id,
             CASE WHEN w.id IS NULL THEN 'missing' WHEN w.role = ANY (unhandled) THEN 'unhandled'
                  WHEN w.status = 'pending' THEN 'waiting' ELSE 'active' END
        FROM (SELECT unnest(ids) EXCEPT SELECT unnest(seen)) x(id) LEFT JOIN worker_tasks w ON w.id = x.id;
  END IF;
END $$;
CREATE FUNCTION public.return_tasks_of(worker text, holding bigint[], verb text, reason text) RETURNS integer
    LANGUAGE plpgsql
    AS $$
DECLARE
  ids bigint[];
  attempts integer[];
  n integer;
BEGIN
  SELECT array_agg(t.id ORDER BY t.id), array_agg(t.attempt ORDER BY t.id) INTO ids, attempts
    FROM task_live t WHERE t.state = 'a' AND t.worker_id = worker AND t.id <> ALL (holding);
  IF ids IS NULL THEN RETURN 0; END IF;
  SELECT count(*) INTO n
    FROM finish_tasks(worker, ids, attempts, array_fill(verb, ARRAY[cardinality(ids)]), array_fill(reason, ARRAY[cardinality(ids)]),
                      NULL, NULL, NULL, NULL);
  PERFORM pg_notify('menuwatch_tasks', '');
  RETURN n;
END $$;
CREATE FUNCTION public.revise_by_history() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    PERFORM revise_history(array_agg(x.store), array_agg(x.month)) FROM (
      SELECT DISTINCT w.dispensary_id, m FROM written w CROSS JOIN unnest(ARRAY[utc_month(w.ended_at), 'infinity']) m) x(store, month);
  ELSIF TG_OP = 'DELETE' THEN
    PERFORM revise_history(array_agg(x.store), array_agg(x.month)) FROM (
      SELECT DISTINCT w.dispensary_id, m FROM removed w CROSS JOIN unnest(ARRAY[utc_month(w.ended_at), utc_month(w.seen_from), 'infinity']) m) x(store, month);
  ELSE
    PERFORM revise_history(array_agg(x.store), array_agg(x.month)) FROM (
      SELECT DISTINCT w.dispensary_id, m FROM (TABLE removed UNION ALL TABLE written) w
       CROSS JOIN unnest(ARRAY[utc_month(w.ended_at), utc_month(w.seen_from), 'infinity']) m) x(store, month);
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION public.revise_by_product() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF (OLD.id, OLD.dispensary_id) <> (NEW.id, NEW.dispensary_id) THEN
    PERFORM revise_history(ARRAY[OLD.dispensary_id, OLD.dispensary_id, NEW.dispensary_id, NEW.dispensary_id],
                           '{-infinity,infinity,-infinity,infinity}');
  ELSE
    IF current_setting('menuwatch.revised_store', true) IS DISTINCT FROM NEW.dispensary_id::text THEN  -- once for each transaction and store
      PERFORM revise_history(ARRAY[NEW.dispensary_id], '{infinity}');
      PERFORM set_config('menuwatch.revised_store', NEW.dispensary_id::text, true);
    END IF;
    IF (OLD.state_from, OLD.present, OLD.stock_status, OLD.quantity, OLD.price_rec, OLD.price_rec_special, OLD.price_med, OLD.price_med_special)
       IS DISTINCT FROM
       (NEW.state_from, NEW.present, NEW.stock_status, NEW.quantity, NEW.price_rec, NEW.price_rec_special, NEW.price_med, NEW.price_med_special)
       OR (OLD.variants <> NEW.variants AND (option_prices(OLD.variants), option_stock(OLD.variants))
                                            <> (option_prices(NEW.variants), option_stock(NEW.variants))) THEN
      PERFORM revise_history(ARRAY[NEW.dispensary_id, NEW.dispensary_id], ARRAY[utc_month(OLD.state_from), utc_month(NEW.state_from)]);
    END IF;
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION public.revise_by_products() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    PERFORM revise_history(array_agg(x.store), array_agg('infinity'::date)) FROM (SELECT DISTINCT w.dispensary_id FROM written w) x(store);
  ELSE
    PERFORM revise_history(array_agg(x.store), array_agg(x.month)) FROM (
      SELECT DISTINCT w.dispensary_id, m FROM removed w CROSS JOIN unnest('{-infinity,infinity}'::date[]) m) x(store, month);
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION public.revise_history(stores integer[], months date[]) RETURNS void
    LANGUAGE sql
    AS $$
  INSERT INTO history_revisions AS r (dispensary_id, month, revision)
  SELECT DISTINCT w.store, w.month, transaction_revision() FROM unnest(stores, months) w(store, month)
   WHERE w.store > 0 ORDER BY 1, 2  -- a rebuild sets products aside under the negative number
      ON CONFLICT (dispensary_id, month) DO UPDATE SET revision = excluded.revision WHERE r.revision <> excluded.revision
$$;
CREATE FUNCTION public.size_key(weight_g double precision, content_mg numeric, pieces integer, option text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
  SELECT CASE WHEN weight_g > 0 THEN 'g' || weight_g WHEN content_mg IS NOT NULL THEN 'm' || content_mg
              WHEN pieces IS NOT NULL THEN 'p' || pieces ELSE 'o' || coalesce(option, '') END
$$;
CREATE FUNCTION public.stock_by_option(stock jsonb) RETURNS json
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
  SELECT coalesce(json_agg(json_build_object('option', e -> 0, 'stock_status', e -> 1, 'quantity', e -> 2, 'capped', e -> 3)), '[]')
    FROM jsonb_array_elements(stock) e
$$;
CREATE TABLE public.dispensaries (
    id integer NOT NULL,
    platform text DEFAULT 'dutchie'::text NOT NULL,
    platform_dispensary_id text,
    slug text,
    name text NOT NULL,
    name_raw text NOT NULL,
    menu_url text,
    address text,
    city text,
    state text,
    country text,
    zipcode text,
    latitude double precision,
    longitude double precision,
    timezone text,
    phone text,
    is_recreational boolean,
    is_medical boolean,
    enterprise_id text,
    crawl_enabled boolean DEFAULT true NOT NULL,
    shown boolean,
    details_by_person jsonb DEFAULT '{}'::jsonb NOT NULL,
    crawl_interval_hours numeric DEFAULT 4 NOT NULL,
    first_crawled_at timestamp with time zone,
    last_crawled_at timestamp with time zone,
    last_crawl_at timestamp with time zone,
    last_payload_id bigint,
    last_attempt_at timestamp with time zone,
    last_fetch_at timestamp with time zone,
    last_error text,
    product_count integer,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT dispensaries_crawl_interval_hours_check CHECK ((crawl_interval_hours > (0)::numeric)),
    CONSTRAINT dispensaries_position CHECK (((latitude >= ('-90'::integer)::double precision) AND (latitude <= (90)::double precision) AND (longitude >= ('-180'::integer)::double precision) AND (longitude <= (180)::double precision)))
);
CREATE FUNCTION public.store_freshness(store public.dispensaries) RETURNS TABLE(status text, key timestamp with time zone)
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
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
CREATE FUNCTION public.task_attempts_with(t public.task_live, at timestamp with time zone, outcome text, reason text, ran double precision) RETURNS jsonb
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT (coalesce(t.earlier_attempts, '[]') || jsonb_build_array(jsonb_build_object(
            'attempt', t.attempt, 'worker_id', t.worker_id, 'claimed_at', t.claimed_at,
            'started_at', coalesce(t.started_at, greatest(t.claimed_at, at - make_interval(secs => coalesce(ran, 0)))),
            'ended_at', greatest(at, t.claimed_at, t.started_at), 'outcome', outcome, 'error', left(reason, 500))))
         - CASE WHEN jsonb_array_length(t.earlier_attempts) >= 50 THEN 0 ELSE 50 END
$$;
CREATE FUNCTION public.task_before_claim(worker text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF coalesce(worker, '') = '' THEN
    RAISE EXCEPTION 'a claim needs the id of a worker' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  -- The time in a subquery: as a volatile function it would filter all that is scheduled, instead of ending the index scan.
  IF EXISTS (SELECT FROM task_live t WHERE t.state = 's' AND t.scheduled_for <= (SELECT clock_timestamp()) LIMIT 1) THEN
    PERFORM promote_due_tasks();
  END IF;
END $$;
CREATE FUNCTION public.task_claim(wanted text[], worker text, n integer, fair integer, low integer[], since timestamp with time zone[], past bigint[]) RETURNS SETOF public.task_live
    LANGUAGE plpgsql
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_seqscan TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
  want integer := n;
  got integer := 0;
  seen integer;
  more integer;
  window_size integer;
  misses integer := 0;
  heads bigint[];
  turn integer;
BEGIN
  IF low IS NULL THEN
    low := array_fill(-2147483648, ARRAY[cardinality(wanted)]);
    since := array_fill('-infinity'::timestamptz, ARRAY[cardinality(wanted)]);
    past := array_fill(0::bigint, ARRAY[cardinality(wanted)]);
  END IF;
  IF cardinality(wanted) > 1 THEN
    -- Roles that have nothing ready are left out: a claim of one role costs half of a merge. `turn` is the one that has waited longest.
    SELECT array_agg(f.role ORDER BY f.place), array_agg(low[f.place] ORDER BY f.place), array_agg(since[f.place] ORDER BY f.place),
           array_agg(past[f.place] ORDER BY f.place), (array_agg(f.number ORDER BY f.due, f.place))[1]
      INTO wanted, low, since, past, turn FROM (
        SELECT r.role, r.place, first.due, row_number() OVER (ORDER BY r.place) AS number
          FROM unnest(wanted) WITH ORDINALITY r(role, place) CROSS JOIN LATERAL (
            SELECT greatest(t.created_at, t.scheduled_for) AS due FROM task_live t
             WHERE t.state = 'r' AND t.role = r.role AND (-(t.priority + t.aged), t.created_at, t.id) >= (low[r.place], since[r.place], past[r.place])
             ORDER BY -(t.priority + t.aged), t.created_at, t.id LIMIT 1) first) f;
    IF wanted IS NULL THEN RETURN; END IF;
  END IF;
  IF fair > 0 AND cardinality(wanted) > 1 THEN
    RETURN QUERY SELECT * FROM task_claim(wanted[turn:turn], worker, least(fair, n), 0, low[turn:turn], since[turn:turn], past[turn:turn]);
    GET DIAGNOSTICS got = ROW_COUNT;
    want := n - got;
  END IF;
  WHILE want > 0 AND misses < 5 LOOP
    -- Where other sessions had locked all candidates, read more of them.
    window_size := want + CASE misses WHEN 0 THEN 0 ELSE 4 ^ (misses + 1) END::integer;
    -- The busy check is a scalar subquery with LIMIT: always one index probe. NOT EXISTS would be planned as an anti join over
    -- the active set, whose statistics are always stale.
    IF cardinality(wanted) = 1 THEN
      WITH w AS MATERIALIZED (
        SELECT t.id, t.dispensary_id FROM task_live t
         WHERE t.state = 'r' AND t.role = wanted[1] AND (-(t.priority + t.aged), t.created_at, t.id) >= (low[1], since[1], past[1])
           AND (t.dispensary_id IS NULL
                OR (SELECT a.id FROM task_live a WHERE a.state = 'a' AND a.dispensary_id = t.dispensary_id LIMIT 1) IS NULL)
         ORDER BY -(t.priority + t.aged), t.created_at, t.id LIMIT window_size FOR NO KEY UPDATE OF t SKIP LOCKED)
      SELECT count(*), array_agg(w.id) FILTER (WHERE CASE WHEN w.dispensary_id IS NULL THEN true
                                                         ELSE pg_try_advisory_xact_lock(7001, w.dispensary_id) END)
        INTO seen, heads FROM w;
    ELSE
      -- One ordered stream per role, merged; rows are locked as they are taken from the merge, so no more than that are.
      WITH m AS (
        SELECT s.id FROM (
          (SELECT t.id, t.dispensary_id, -(t.priority + t.aged) AS rank, t.created_at FROM task_live t
            WHERE t.state = 'r' AND t.role = wanted[1] AND (-(t.priority + t.aged), t.created_at, t.id) >= (low[1], since[1], past[1])
            ORDER BY 3, 4, 1)
          UNION ALL
          (SELECT t.id, t.dispensary_id, -(t.priority + t.aged) AS rank, t.created_at FROM task_live t
            WHERE t.state = 'r' AND t.role = wanted[2] AND (-(t.priority + t.aged), t.created_at, t.id) >= (low[2], since[2], past[2])
            ORDER BY 3, 4, 1)
          UNION ALL
          (SELECT t.id, t.dispensary_id, -(t.priority + t.aged) AS rank, t.created_at FROM task_live t
            WHERE t.state = 'r' AND t.role = wanted[3] AND (-(t.priority + t.aged), t.created_at, t.id) >= (low[3], since[3], past[3])
            ORDER BY 3, 4, 1)
          UNION ALL
          (SELECT t.id, t.dispensary_id, -(t.priority + t.aged) AS rank, t.created_at FROM task_live t
            WHERE t.state = 'r' AND t.role = wanted[4] AND (-(t.priority + t.aged), t.created_at, t.id) >= (low[4], since[4], past[4])
            ORDER BY 3, 4, 1)
          UNION ALL
          (SELECT t.id, t.dispensary_id, -(t.priority + t.aged) AS rank, t.created_at FROM task_live t
            WHERE t.state = 'r' AND t.role = wanted[5] AND (-(t.priority + t.aged), t.created_at, t.id) >= (low[5], since[5], past[5])
            ORDER BY 3, 4, 1)
          UNION ALL
          (SELECT t.id, t.dispensary_id, -(t.priority + t.aged) AS rank, t.created_at FROM task_live t
            WHERE t.state = 'r' AND t.role = wanted[6] AND (-(t.priority + t.aged), t.created_at, t.id) >= (low[6], since[6], past[6])
            ORDER BY 3, 4, 1)
        ) s
        WHERE s.dispensary_id IS NULL
           OR (SELECT a.id FROM task_live a WHERE a.state = 'a' AND a.dispensary_id = s.dispensary_id LIMIT 1) IS NULL
        ORDER BY s.rank, s.created_at, s.id),
      w AS MATERIALIZED (
        SELECT l.* FROM m CROSS JOIN LATERAL (
          SELECT t.id, t.dispensary_id, -(t.priority + t.aged) AS rank, t.created_at FROM task_live t WHERE t.id = m.id AND t.state::text = 'r'
             FOR NO KEY UPDATE OF t SKIP LOCKED) l
         LIMIT window_size),
      one AS MATERIALIZED (  -- two roles of one store may both have a head here
        SELECT w.*, row_number() OVER (PARTITION BY w.dispensary_id ORDER BY w.rank, w.created_at, w.id) AS place FROM w)
      SELECT count(*), array_agg(o.id ORDER BY o.rank, o.created_at, o.id) FILTER (WHERE CASE WHEN o.dispensary_id IS NULL THEN true WHEN o.place > 1 THEN false
                                                         ELSE pg_try_advisory_xact_lock(7001, o.dispensary_id) END)
        INTO seen, heads FROM one o;
    END IF;
    EXIT WHEN seen = 0;
    RETURN QUERY
      UPDATE task_live t
         SET state = 'a', worker_id = worker, claimed_at = clock_timestamp(), updated_at = clock_timestamp(), attempt = t.attempt + 1,
             uniq = CASE t.uniq WHEN 0 THEN 0 ELSE 2 END
       WHERE t.id = ANY (heads[:want])
         AND (t.dispensary_id IS NULL
              OR (SELECT a.id FROM task_live a WHERE a.state = 'a' AND a.dispensary_id = t.dispensary_id LIMIT 1) IS NULL)
      RETURNING t.*;
    GET DIAGNOSTICS more = ROW_COUNT;
    got := got + more;
    EXIT WHEN seen < window_size;
    IF more = 0 THEN misses := misses + 1; END IF;  -- other sessions had locked all of these
    want := n - got;
  END LOOP;
END $$;
CREATE FUNCTION public.task_id_bound(moment timestamp with time zone) RETURNS bigint
    LANGUAGE plpgsql STABLE
    AS $$
DECLARE
  low bigint := 0;
  high bigint;
  middle bigint;
  made timestamptz;
BEGIN
  SELECT last_value + 1 INTO high FROM task_ids;
  IF moment + interval '1 hour' >= now() THEN RETURN high; END IF;
  WHILE low < high LOOP
    middle := (low + high) / 2;
    SELECT x.created_at INTO made FROM (
      (SELECT h.id, h.created_at FROM task_history h WHERE h.id >= middle ORDER BY h.id LIMIT 1)
      UNION ALL
      (SELECT t.id, t.created_at FROM task_live t WHERE t.id >= middle ORDER BY t.id LIMIT 1)) x ORDER BY x.id LIMIT 1;
    IF made IS NULL OR made > moment + interval '1 hour' THEN high := middle; ELSE low := middle + 1; END IF;
  END LOOP;
  RETURN high;
END $$;
CREATE FUNCTION public.task_promote_due(ids bigint[]) RETURNS integer
    LANGUAGE plpgsql
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
  moved integer;
  stores integer[];
  roles text[];
BEGIN
  WITH due AS MATERIALIZED (
    SELECT t.id, t.dispensary_id, t.role FROM task_live t
     WHERE t.id = ANY (ids) AND t.state::text = 's' AND t.scheduled_for <= clock_timestamp() FOR NO KEY UPDATE OF t SKIP LOCKED),
  heads AS MATERIALIZED (
    SELECT h.id, h.dispensary_id, h.role FROM (SELECT DISTINCT d.dispensary_id, d.role FROM due d) k
      JOIN task_live h ON h.state IN ('r', 'a') AND h.dispensary_id = k.dispensary_id AND h.role = k.role),
  -- A locked head may be about to be freed and is not waited for; tasks that would park behind it stay until the next call.
  held AS MATERIALIZED (
    SELECT h.dispensary_id, h.role FROM task_live h WHERE h.id IN (SELECT x.id FROM heads x) FOR KEY SHARE OF h SKIP LOCKED),
  moving AS MATERIALIZED (
    SELECT d.* FROM due d
     WHERE d.dispensary_id IS NULL
        OR NOT EXISTS (SELECT FROM heads x WHERE x.dispensary_id = d.dispensary_id AND x.role = d.role)
        OR EXISTS (SELECT FROM held x WHERE x.dispensary_id = d.dispensary_id AND x.role = d.role)),
  moves AS (
    UPDATE task_live t SET state = CASE WHEN t.dispensary_id IS NULL THEN 'r' ELSE 'p' END::"char", updated_at = clock_timestamp()
      FROM moving m WHERE t.id = m.id AND t.state::text = 's' RETURNING t.dispensary_id, t.role)
  SELECT count(*), array_agg(v.dispensary_id) FILTER (WHERE v.dispensary_id IS NOT NULL),
         array_agg(v.role) FILTER (WHERE v.dispensary_id IS NOT NULL) INTO moved, stores, roles FROM moves v;
  IF stores IS NOT NULL THEN
    PERFORM task_promote_parked(stores, roles);
    PERFORM task_reorder(stores, roles);
  END IF;
  RETURN moved;
END $$;
CREATE FUNCTION public.task_promote_next(stores integer[], roles text[]) RETURNS void
    LANGUAGE plpgsql
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
BEGIN
  UPDATE task_live t SET state = 'r', updated_at = clock_timestamp()
   WHERE t.id = ANY (ARRAY(
           SELECT (SELECT p.id FROM task_live p WHERE p.state = 'p' AND p.dispensary_id = k.store AND p.role = k.role
                    ORDER BY -p.priority, p.created_at, p.id LIMIT 1)
             FROM unnest(stores, roles) k(store, role)))
     AND t.state::text = 'p';
END $$;
CREATE FUNCTION public.task_promote_parked(stores integer[], roles text[]) RETURNS void
    LANGUAGE sql
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
  UPDATE task_live t SET state = 'r', updated_at = clock_timestamp()
   WHERE t.id = ANY (ARRAY(
           SELECT (SELECT p.id FROM task_live p WHERE p.state = 'p' AND p.dispensary_id = k.store AND p.role = k.role
                    ORDER BY -p.priority, p.created_at, p.id LIMIT 1)
             FROM (SELECT DISTINCT u.store, u.role FROM unnest(stores, roles) u(store, role)) k
            WHERE (SELECT h.id FROM task_live h WHERE h.state IN ('r', 'a') AND h.dispensary_id = k.store AND h.role = k.role
                    LIMIT 1) IS NULL))
     AND t.state::text = 'p'  -- the cast keeps the planner on the primary key
$$;
CREATE FUNCTION public.task_reorder(stores integer[], roles text[]) RETURNS void
    LANGUAGE plpgsql
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
DECLARE
  heads bigint[];
  nexts bigint[];
  held bigint[];
BEGIN
  SELECT array_agg(c.head), array_agg(c.next) INTO heads, nexts FROM (
    SELECT h.id AS head,
           (SELECT p.id FROM task_live p WHERE p.state = 'p' AND p.dispensary_id = k.store AND p.role = k.role
               AND (-p.priority, p.created_at, p.id) < (-h.priority, h.created_at, h.id)
             ORDER BY -p.priority, p.created_at, p.id LIMIT 1) AS next
      FROM (SELECT DISTINCT u.store, u.role FROM unnest(stores, roles) u(store, role)) k
      -- One probe of task_head each. Joined by `state = 'r'`, the planner would go through all that is ready, once per key.
      CROSS JOIN LATERAL (SELECT x.* FROM task_live x WHERE x.state IN ('r', 'a') AND x.dispensary_id = k.store AND x.role = k.role LIMIT 1) h
     WHERE h.state = 'r') c
   WHERE c.next IS NOT NULL;
  IF heads IS NULL THEN RETURN; END IF;
  SELECT array_agg(l.id) INTO held FROM (
    SELECT t.id FROM task_live t WHERE t.id = ANY (heads || nexts) AND t.state IN ('r', 'p') FOR NO KEY UPDATE OF t SKIP LOCKED) l;
  SELECT array_agg(c.head), array_agg(c.next) INTO heads, nexts
    FROM unnest(heads, nexts) c(head, next)
    JOIN task_live h ON h.id = c.head AND h.state::text = 'r'
    JOIN task_live p ON p.id = c.next AND p.state::text = 'p'
   WHERE c.head = ANY (held) AND c.next = ANY (held);
  UPDATE task_live t SET state = 'p', updated_at = clock_timestamp() WHERE t.id = ANY (heads);
  UPDATE task_live t SET state = 'r', updated_at = clock_timestamp() WHERE t.id = ANY (nexts);
END $$;
CREATE FUNCTION public.task_roles(asked text[]) RETURNS text[]
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
DECLARE
  known CONSTANT text[] := '{store_discovery,entry_point_discovery,product_discovery,payload_fetch,product_refresh,analytics_refresh}';
  named text[];
  unknown text;
BEGIN
  IF asked IS NULL THEN RETURN known; END IF;
  -- The former name of a role is accepted as well.
  named := array_replace(asked, 'product_resync', 'payload_fetch');
  IF NOT named <@ known OR array_position(named, NULL) IS NOT NULL THEN
    SELECT coalesce(min(r), 'null') INTO unknown FROM unnest(named) r WHERE r IS NULL OR r <> ALL (known);
    RAISE EXCEPTION 'role "%" does not exist: it is one of %, product_resync', unknown, array_to_string(known, ', ')
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  RETURN named;
END $$;
CREATE FUNCTION public.task_schedules_former() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  NEW.next_run_at := coalesce(NEW.next_run_at, now());
  NEW.role := (task_roles(ARRAY[NEW.role]))[1];
  RETURN NEW;
END $$;
CREATE FUNCTION public.transaction_revision() RETURNS uuid
    LANGUAGE plpgsql
    AS $$
DECLARE
  own text := current_setting('menuwatch.revision', true);
BEGIN
  IF coalesce(own, '') = '' THEN own := set_config('menuwatch.revision', gen_random_uuid()::text, true); END IF;
  RETURN own::uuid;
END $$;
CREATE FUNCTION public.trigrams(name text) RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
  SELECT coalesce(array_agg(DISTINCT substr(name, n, 3)), '{}') FROM generate_series(1, length(name) - 2) n
$$;
CREATE FUNCTION public.unpark_stranded_tasks() RETURNS integer
    LANGUAGE plpgsql
    AS $$
DECLARE
  mended integer := 0;
  key record;
BEGIN
  FOR key IN
    WITH RECURSIVE k AS (  -- a loose index scan: one probe per key, however long its queue
      (SELECT p.dispensary_id, p.role FROM task_live p WHERE p.state IN ('p', 's') AND p.dispensary_id IS NOT NULL
        ORDER BY p.dispensary_id, p.role LIMIT 1)
      UNION ALL
      SELECT n.dispensary_id, n.role FROM k CROSS JOIN LATERAL (
        SELECT p.dispensary_id, p.role FROM task_live p WHERE p.state IN ('p', 's') AND p.dispensary_id IS NOT NULL
           AND (p.dispensary_id, p.role) > (k.dispensary_id, k.role) ORDER BY p.dispensary_id, p.role LIMIT 1) n)
    SELECT k.dispensary_id, k.role FROM k
     WHERE NOT EXISTS (SELECT FROM task_live h WHERE h.state IN ('r', 'a') AND h.dispensary_id = k.dispensary_id AND h.role = k.role)
       AND EXISTS (SELECT FROM task_live p WHERE p.state = 'p' AND p.dispensary_id = k.dispensary_id AND p.role = k.role)
  LOOP
    BEGIN
      PERFORM task_promote_parked(ARRAY[key.dispensary_id], ARRAY[key.role]);
      mended := mended + 1;
    EXCEPTION WHEN unique_violation THEN NULL;  -- another session was faster
    END;
  END LOOP;
  RETURN mended;
END $$;
CREATE FUNCTION public.utc_month(instant timestamp with time zone) RETURNS date
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
  SELECT date_trunc('month', instant AT TIME ZONE 'UTC')::date
$$;
CREATE FUNCTION public.worker_alive(status text, last_heartbeat_at timestamp with time zone) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT status <> 'stopped' AND last_heartbeat_at > now() - worker_alive_for()
$$;
CREATE FUNCTION public.worker_alive_for() RETURNS interval
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT interval '2 minutes' $$;
CREATE FUNCTION public.worker_claim(worker text, roles text[] DEFAULT NULL::text[], n integer DEFAULT 1, hosts text[] DEFAULT NULL::text[], holding bigint[] DEFAULT NULL::bigint[]) RETURNS SETOF public.worker_tasks
    LANGUAGE plpgsql
    AS $$
DECLARE
  wanted text[];
BEGIN
  IF n IS NULL OR n NOT BETWEEN 1 AND 1000 THEN
    RAISE EXCEPTION 'n must be between 1 and 1000, got %', n USING ERRCODE = 'invalid_parameter_value';
  END IF;
  SELECT c.claimable INTO wanted FROM worker_claimable(worker, roles, hosts) c;
  IF holding IS NOT NULL THEN PERFORM return_tasks_of(worker, holding, 'release', NULL); END IF;
  IF cardinality(wanted) = 0 THEN RETURN; END IF;
  PERFORM task_before_claim(worker);
  RETURN QUERY
    SELECT c.id, c.role, c.dispensary_id, c.platform, 'claimed', c.priority, c.scheduled_for, c.worker_id, c.claimed_at,
           c.started_at, NULL::timestamptz, c.last_heartbeat_at, c.result, c.error_message, c.retry_count, c.max_retries, c.payload,
           c.created_at, c.updated_at, c.attempt, c.postpone_count, NULL::text, NULL::text
      FROM task_claim(wanted, worker, n, CASE WHEN cardinality(wanted) > 1 THEN floor(n / 4.0 + random())::integer ELSE 0 END, NULL, NULL, NULL) c
     ORDER BY -(c.priority + c.aged), c.created_at, c.id;
END $$;
CREATE FUNCTION public.worker_claimable(worker text, roles text[], hosts text[], OUT claimable text[], OUT reason text) RETURNS record
    LANGUAGE plpgsql
    AS $$
DECLARE
  network CONSTANT text[] := '{store_discovery,entry_point_discovery,product_discovery,payload_fetch}';
  w worker_registry := require_worker(worker);
  ordered text;
BEGIN
  claimable := task_roles(coalesce(roles, w.roles));
  IF NOT claimable <@ task_roles(w.roles) THEN
    RAISE EXCEPTION 'worker % is registered only for %: claim tasks of these roles, or register it with other roles', worker, array_to_string(w.roles, ', ')
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  SELECT c.command INTO ordered FROM worker_commands c
   WHERE c.worker_id = worker AND c.acknowledged_at IS NULL ORDER BY c.command = 'decommission' DESC, c.id DESC LIMIT 1;
  IF ordered IN ('pause', 'decommission') OR w.status IN ('paused', 'stopping') THEN
    claimable := '{}';
    reason := CASE WHEN ordered IN ('pause', 'decommission') THEN format('the command %s is not acknowledged', ordered)
                   ELSE format('the worker is %s', w.status) END;
  ELSIF claimable && network AND cardinality(hosts) > 0 THEN
    SELECT string_agg(format('%s is blocked: %s', h.host, b.reason), '; ' ORDER BY h.host) INTO reason
      FROM hosts h, host_block_reason(h, clock_timestamp()) b
     WHERE h.host = ANY (worker_claimable.hosts) AND b.code IS NOT NULL
    HAVING count(*) = (SELECT count(DISTINCT x) FROM unnest(worker_claimable.hosts) x);
    IF reason IS NOT NULL THEN
      SELECT coalesce(array_agg(r ORDER BY o), '{}') INTO claimable FROM unnest(claimable) WITH ORDINALITY u(r, o) WHERE r <> ALL (network);
    END IF;
  END IF;
END $$;
CREATE FUNCTION public.worker_commands_tell() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  PERFORM pg_notify('menuwatch_tasks', 'command ' || NEW.worker_id);
  RETURN NULL;
END $$;
CREATE FUNCTION public.worker_complete(worker text, task bigint, attempt integer, result jsonb DEFAULT NULL::jsonb, follow_ups jsonb DEFAULT '[]'::jsonb, ran double precision DEFAULT NULL::double precision) RETURNS SETOF public.worker_tasks
    LANGUAGE plpgsql
    AS $_$
#variable_conflict use_variable
DECLARE
  known CONSTANT text[] := '{role,dispensary_id,platform,priority,scheduled_for,payload}';
  wrong text;
BEGIN
  IF coalesce(jsonb_typeof(follow_ups), 'null') <> 'array' OR jsonb_path_exists(follow_ups, 'strict $[*] ? (@.type() != "object")') THEN
    RAISE EXCEPTION 'follow_ups must be a JSON array of objects' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  SELECT k INTO wrong FROM jsonb_array_elements(follow_ups) e, jsonb_object_keys(e) k WHERE k <> ALL (known) LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'a follow-up task has no field "%": its fields are %', wrong, array_to_string(known, ', ')
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF end_attempt(worker, task, attempt, 'done', NULL, result, NULL, NULL, ran) AND jsonb_array_length(follow_ups) > 0 THEN
    PERFORM enqueue_tasks(f.roles, f.stores, f.priorities, f.payloads, f.due, f.platforms, f.retries, f.alone)
       FROM (SELECT array_agg(r.role ORDER BY o) AS roles, array_agg(r.dispensary_id ORDER BY o) AS stores,
                    array_agg(coalesce(r.priority, 10) ORDER BY o) AS priorities, array_agg(r.payload ORDER BY o) AS payloads,
                    array_agg(r.scheduled_for ORDER BY o) AS due, array_agg(coalesce(r.platform, h.platform) ORDER BY o) AS platforms,
                    array_agg(3 ORDER BY o) AS retries, array_agg(r.role IS DISTINCT FROM 'product_refresh' ORDER BY o) AS alone
               FROM worker_tasks h, jsonb_array_elements(follow_ups) WITH ORDINALITY u(e, o),
                    jsonb_to_record(e) r(role text, dispensary_id integer, platform text, priority integer, scheduled_for timestamptz, payload jsonb)
              WHERE h.id = task) f;
  END IF;
  RETURN QUERY SELECT * FROM worker_tasks w WHERE w.id = task;
END $_$;
CREATE FUNCTION public.worker_fail(worker text, task bigint, attempt integer, reason text, result jsonb DEFAULT NULL::jsonb, ran double precision DEFAULT NULL::double precision) RETURNS SETOF public.worker_tasks
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_variable
BEGIN
  PERFORM end_attempt(worker, task, attempt, 'fail', reason, result, NULL, NULL, ran);
  RETURN QUERY SELECT * FROM worker_tasks w WHERE w.id = task;
END $$;
CREATE FUNCTION public.worker_heartbeat(worker text, tasks bigint[] DEFAULT '{}'::bigint[], attempts integer[] DEFAULT NULL::integer[], status text DEFAULT 'active'::text, acknowledged bigint[] DEFAULT '{}'::bigint[], heartbeat jsonb DEFAULT NULL::jsonb) RETURNS TABLE(lost bigint[], commands jsonb)
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_variable
BEGIN
  IF status IS NULL OR status NOT IN ('active', 'paused', 'backing_off', 'stopping') THEN
    RAISE EXCEPTION 'unknown status %: use one of active, paused, backing_off, stopping', quote_nullable(status)
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF cardinality(attempts) <> cardinality(tasks) THEN
    RAISE EXCEPTION 'attempts must have one number for each of the % tasks, not %', cardinality(tasks), cardinality(attempts)
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  UPDATE worker_registry r
     SET status = worker_heartbeat.status, last_heartbeat_at = now(),
         heartbeat = coalesce(worker_heartbeat.heartbeat,
                              jsonb_build_object('worker_id', worker, 'current_task_id', tasks[1], 'current_task_ids', tasks,
                                                 'active_task_count', cardinality(tasks), 'max_concurrent_tasks', greatest(cardinality(tasks), 1),
                                                 'status', worker_heartbeat.status))
   WHERE r.worker_id = worker AND r.status <> 'stopped';
  IF NOT FOUND THEN PERFORM require_worker(worker); END IF;
  SELECT coalesce(array_agg(u.id ORDER BY u.ord), '{}') INTO lost
    FROM unnest(tasks) WITH ORDINALITY u(id, ord)
   WHERE u.id NOT IN (
     SELECT b.id FROM (SELECT array_agg(u.id) AS ids, array_agg(coalesce(u.attempt, t.attempt)) AS attempts, array_agg(0::float8) AS ran
                         FROM unnest(tasks, attempts) u(id, attempt) JOIN task_live t ON t.id = u.id AND t.worker_id = worker) h,
                      beat_tasks(worker, h.ids, h.attempts, h.ran) b);
  UPDATE worker_commands c SET acknowledged_at = greatest(clock_timestamp(), c.created_at)
   WHERE c.worker_id = worker AND c.id = ANY (acknowledged) AND c.acknowledged_at IS NULL;
  SELECT coalesce(jsonb_agg(jsonb_build_object('id', c.id, 'command', c.command, 'created_at', c.created_at, 'created_by', c.created_by)
                            ORDER BY c.id), '[]')
    INTO commands FROM worker_commands c WHERE c.worker_id = worker AND c.acknowledged_at IS NULL;
  RETURN NEXT;
END $$;
CREATE FUNCTION public.worker_leave(worker text) RETURNS integer
    LANGUAGE plpgsql
    AS $$
BEGIN
  UPDATE worker_registry r SET status = 'stopped', last_heartbeat_at = now() WHERE r.worker_id = worker;
  IF NOT FOUND THEN PERFORM require_worker(worker); END IF;
  RETURN return_tasks_of(worker, '{}', 'release', NULL);
END $$;
CREATE FUNCTION public.worker_postpone(worker text, task bigint, attempt integer, reason text, due timestamp with time zone DEFAULT NULL::timestamp with time zone, wait double precision DEFAULT NULL::double precision, code text DEFAULT 'other'::text, host text DEFAULT NULL::text, counted boolean DEFAULT true, ran double precision DEFAULT NULL::double precision) RETURNS SETOF public.worker_tasks
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_variable
DECLARE
  known CONSTANT text[] := '{paused,circuit,cooling,pace,busy,no_free_proxy,unknown,throttled,blocked,robots,no_proxy,refresh_running,other}';
BEGIN
  IF num_nulls(due, wait) <> 1 OR NOT isfinite(coalesce(due, now())) THEN
    RAISE EXCEPTION 'a postponed task needs a time: give either due or wait (seconds)' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF code IS NULL OR code <> ALL (known) THEN
    RAISE EXCEPTION 'unknown code %: use one of %', quote_nullable(code), array_to_string(known, ', ')
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  PERFORM end_attempt(worker, task, attempt, CASE WHEN counted THEN 'postpone' ELSE 'wait' END, reason, NULL, wait, due, ran, code, host);
  RETURN QUERY SELECT * FROM worker_tasks w WHERE w.id = task;
END $$;
CREATE FUNCTION public.worker_register(worker text, roles text[] DEFAULT NULL::text[], host text DEFAULT 'unknown'::text, friendly_name text DEFAULT NULL::text, pid integer DEFAULT NULL::integer, pod text DEFAULT NULL::text, version text DEFAULT NULL::text) RETURNS boolean
    LANGUAGE plpgsql
    AS $_$
#variable_conflict use_column
DECLARE
  created boolean;
BEGIN
  IF worker IS NULL OR worker <> btrim(worker) OR worker !~ '^[^[:cntrl:]/]{1,200}$' THEN
    RAISE EXCEPTION 'a worker id must have 1 to 200 printable characters, without slashes and without leading or trailing spaces'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  INSERT INTO worker_registry AS r (worker_id, friendly_name, pod, host, pid, roles, version)
  VALUES (worker, coalesce(worker_register.friendly_name, worker), worker_register.pod, worker_register.host, worker_register.pid,
          CASE WHEN worker_register.roles IS NOT NULL THEN task_roles(worker_register.roles) END, worker_register.version)
  ON CONFLICT (worker_id) DO UPDATE
     SET status = 'active', started_at = now(), last_heartbeat_at = now(), friendly_name = excluded.friendly_name, pod = excluded.pod,
         host = excluded.host, pid = excluded.pid, roles = excluded.roles, version = excluded.version
  RETURNING xmax = 0 INTO created;
  IF NOT created THEN
    -- Commands were for the process before.
    UPDATE worker_commands c SET acknowledged_at = greatest(clock_timestamp(), c.created_at) WHERE c.worker_id = worker AND c.acknowledged_at IS NULL;
    PERFORM return_tasks_of(worker, '{}', 'retry', format('worker %s was started again', worker));
  END IF;
  RETURN created;
END $_$;
CREATE FUNCTION public.worker_retry(worker text, task bigint, attempt integer, reason text, wait double precision DEFAULT NULL::double precision, result jsonb DEFAULT NULL::jsonb, ran double precision DEFAULT NULL::double precision) RETURNS SETOF public.worker_tasks
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_variable
DECLARE
  retries integer;
  base double precision;
BEGIN
  IF wait IS NULL THEN
    SELECT t.retry_count INTO retries FROM task_live t WHERE t.id = task;
    SELECT extract(epoch FROM s.retry_base) INTO base FROM queue_settings s;
    wait := least(3600, base * 2 ^ least(retries, 40)) * (1 - 0.5 * random());
  END IF;
  PERFORM end_attempt(worker, task, attempt, 'retry', reason, result, wait, NULL, ran);
  RETURN QUERY SELECT * FROM worker_tasks w WHERE w.id = task;
END $$;
CREATE FUNCTION public.worker_slots(heartbeat jsonb) RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
  SELECT CASE WHEN jsonb_typeof(heartbeat -> 'max_concurrent_tasks') = 'number'
              THEN least(greatest((heartbeat ->> 'max_concurrent_tasks')::numeric, 1), 1000)::integer ELSE 1 END
$$;
CREATE FUNCTION public.worker_start(worker text, task bigint, attempt integer) RETURNS SETOF public.worker_tasks
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_variable
BEGIN
  UPDATE task_live t
     SET started_at = coalesce(t.started_at, clock_timestamp()), last_heartbeat_at = clock_timestamp(), updated_at = clock_timestamp()
   WHERE t.id = task AND t.worker_id = worker AND t.attempt = worker_start.attempt;
  IF NOT FOUND THEN PERFORM refuse_attempt(worker, task, attempt); END IF;
  RETURN QUERY SELECT * FROM worker_tasks w WHERE w.id = task;
END $$;
CREATE FUNCTION public.worker_tasks_delete() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF OLD.completed_at IS NULL THEN
    PERFORM cancel_tasks(ARRAY[OLD.id], 'deleted');
  ELSE
    DELETE FROM task_history h WHERE h.id = OLD.id AND h.completed_at = OLD.completed_at;
    -- That day is counted again.
    DELETE FROM task_days d WHERE d.day = (OLD.completed_at AT TIME ZONE 'UTC')::date;
  END IF;
  RETURN OLD;
END $$;
CREATE FUNCTION public.worker_tasks_insert() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
  given timestamptz := NEW.created_at;
  made record;
BEGIN
  IF coalesce(NEW.status, 'pending') <> 'pending' THEN
    RAISE EXCEPTION 'a task starts as pending, not as %: claim_task and the workers take it from there', NEW.status
      USING ERRCODE = 'check_violation';
  END IF;
  SELECT e.id, e.created INTO made
    FROM enqueue_tasks(ARRAY[NEW.role], ARRAY[NEW.dispensary_id], ARRAY[coalesce(NEW.priority, 0)], ARRAY[NEW.payload],
                       ARRAY[NEW.scheduled_for], ARRAY[coalesce(NEW.platform, 'dutchie')], ARRAY[coalesce(NEW.max_retries, 3)],
                       ARRAY[NEW.role IS DISTINCT FROM 'product_refresh']) e;
  IF made.created AND given IS NOT NULL THEN
    UPDATE task_live SET created_at = given WHERE id = made.id;
    IF NEW.dispensary_id IS NOT NULL THEN PERFORM task_reorder(ARRAY[NEW.dispensary_id], task_roles(ARRAY[NEW.role])); END IF;
  END IF;
  SELECT * INTO NEW FROM worker_tasks w WHERE w.id = made.id;
  RETURN NEW;
END $$;
CREATE FUNCTION public.worker_tasks_update() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
  finished CONSTANT boolean := OLD.status IN ('completed', 'failed', 'cancelled');
  retried CONSTANT boolean := NEW.status = 'pending' AND OLD.status IN ('failed', 'cancelled');
  cancelled CONSTANT boolean := NEW.status = 'cancelled' AND NOT finished;
  hint CONSTANT text := 'Retry: retry_tasks(ARRAY[id]). Cancel: cancel_tasks(ARRAY[id]). Take back from silent workers: recover_stale_tasks(minutes). '
                        'Claim and complete tasks: claim_task(role, worker_id), or worker_claim, worker_complete and so on. Any other change: cancel the task and insert a new one.';
BEGIN
  IF (NEW.id, NEW.role, NEW.dispensary_id, NEW.platform, NEW.payload, NEW.max_retries, NEW.created_at)
     IS DISTINCT FROM (OLD.id, OLD.role, OLD.dispensary_id, OLD.platform, OLD.payload, OLD.max_retries, OLD.created_at) THEN
    RAISE EXCEPTION 'id, role, dispensary_id, platform, payload, max_retries and created_at of task % cannot be changed',
      OLD.id USING ERRCODE = 'object_not_in_prerequisite_state', HINT = hint;
  ELSIF retried THEN
    PERFORM retry_tasks(ARRAY[OLD.id], CASE WHEN NEW.priority <> OLD.priority THEN NEW.priority ELSE 10 END);
  ELSIF cancelled THEN
    PERFORM cancel_tasks(ARRAY[OLD.id], coalesce(NEW.error_message, 'cancelled'));
  ELSIF (NEW.result, NEW.error_message, NEW.retry_count, NEW.attempt, NEW.postpone_count, NEW.postpone_code, NEW.postpone_host)
        IS DISTINCT FROM (OLD.result, OLD.error_message, OLD.retry_count, OLD.attempt, OLD.postpone_count, OLD.postpone_code, OLD.postpone_host) THEN
    RAISE EXCEPTION 'task % is %: UPDATE cannot change its result, error_message, retry_count, attempt or postponement', OLD.id, OLD.status
      USING ERRCODE = 'object_not_in_prerequisite_state', HINT = hint;
  ELSIF OLD.status = 'pending' AND NEW.status = 'pending' AND NEW.scheduled_for IS NOT DISTINCT FROM OLD.scheduled_for THEN
    UPDATE task_live SET priority = NEW.priority, updated_at = clock_timestamp()
     WHERE id = OLD.id AND state <> 'a' AND priority <> NEW.priority;
    IF FOUND AND OLD.dispensary_id IS NOT NULL THEN PERFORM task_reorder(ARRAY[OLD.dispensary_id], ARRAY[OLD.role]); END IF;
  ELSIF OLD.status = 'pending' AND NEW.status = 'pending' AND coalesce(NEW.scheduled_for, now()) <= now() THEN
    PERFORM retry_tasks(ARRAY[OLD.id], NEW.priority);
  ELSIF NEW.status <> OLD.status OR (NEW.worker_id, NEW.claimed_at, NEW.started_at, NEW.completed_at, NEW.scheduled_for, NEW.priority)
        IS DISTINCT FROM (OLD.worker_id, OLD.claimed_at, OLD.started_at, OLD.completed_at, OLD.scheduled_for, OLD.priority) THEN
    RAISE EXCEPTION 'task % is %: UPDATE cannot change %', OLD.id, OLD.status,
      CASE WHEN NEW.status <> OLD.status THEN format('its status to %s', NEW.status) ELSE 'these columns' END
      USING ERRCODE = 'object_not_in_prerequisite_state', HINT = hint;
  ELSIF NEW.last_heartbeat_at IS DISTINCT FROM OLD.last_heartbeat_at THEN
    UPDATE task_live SET last_heartbeat_at = clock_timestamp()
     WHERE id = OLD.id AND state = 'a' AND worker_id = OLD.worker_id AND attempt = OLD.attempt;
  END IF;
  RETURN NEW;
END $$;
CREATE TABLE public.brand_days (
    day date NOT NULL,
    state text NOT NULL COLLATE pg_catalog."C",
    brand_id integer NOT NULL,
    products integer NOT NULL,
    in_stock integer NOT NULL,
    of_products integer NOT NULL,
    stores integer NOT NULL,
    of_stores integer NOT NULL
);
CREATE TABLE public.brands (
    id integer NOT NULL,
    slug text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    named_by_person boolean DEFAULT false NOT NULL,
    merged_into integer,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT brands_merged CHECK ((merged_into <> id))
);
CREATE VIEW analyst.brand_days AS
 SELECT d.day,
    d.state,
    public.live_brand(d.brand_id) AS brand_id,
    b.name AS brand,
    d.products,
    d.in_stock,
    d.of_products,
    d.stores,
    d.of_stores
   FROM (public.brand_days d
     JOIN public.brands b ON ((b.id = d.brand_id)));
CREATE VIEW analyst.brands AS
 SELECT id AS brand_id,
    slug,
    name,
    public.live_brand(merged_into) AS merged_into,
    created_at
   FROM public.brands b;
CREATE TABLE public.canonical_products (
    id bigint NOT NULL,
    brand_id integer,
    name text NOT NULL,
    category text COLLATE pg_catalog."C",
    form text COLLATE pg_catalog."C",
    strain text COLLATE pg_catalog."C",
    anchor_product_id bigint,
    listings integer DEFAULT 0 NOT NULL,
    stores integer DEFAULT 0 NOT NULL,
    merged_into bigint,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    changed_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT canonical_products_merged CHECK ((merged_into <> id))
);
CREATE VIEW analyst.canonical_products AS
 SELECT id AS canonical_product_id,
    public.live_brand(brand_id) AS brand_id,
    name,
    category,
    form,
    strain,
    listings,
    stores,
    public.live_canonical_product(merged_into) AS merged_into,
    created_at,
    changed_at
   FROM public.canonical_products c;
CREATE TABLE public.catalog_products (
    id bigint NOT NULL,
    dispensary_id integer NOT NULL,
    provider text NOT NULL,
    provider_product_id text NOT NULL,
    content_hash bytea NOT NULL,
    consecutive_misses smallint DEFAULT 0 NOT NULL,
    first_seen_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone,
    state_from timestamp with time zone NOT NULL,
    state_seen_to timestamp with time zone,
    present boolean DEFAULT true NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    name_raw text NOT NULL,
    name text NOT NULL,
    brand_name_raw text,
    brand_name text,
    category text,
    subcategory text,
    strain_type text,
    category_canon text,
    subcategory_canon text,
    strain_canon text,
    status_raw text,
    price_rec numeric,
    price_rec_special numeric,
    price_med numeric,
    price_med_special numeric,
    stock_status text NOT NULL,
    is_in_stock boolean,
    quantity integer,
    quantity_capped boolean DEFAULT false NOT NULL,
    thc_lo numeric,
    thc_hi numeric,
    thc_unit text,
    cbd_lo numeric,
    cbd_hi numeric,
    cbd_unit text,
    variants jsonb NOT NULL,
    cannabinoids jsonb,
    terpenes jsonb,
    batch jsonb,
    quantity_sold bigint,
    details_from timestamp with time zone,
    specials jsonb,
    image_url text,
    images jsonb,
    local_image_path text,
    description text,
    platform_created_at timestamp with time zone,
    platform_updated_at timestamp with time zone,
    extra jsonb NOT NULL,
    brand_description_hash uuid,
    CONSTRAINT catalog_gone CHECK (((consecutive_misses < 3) OR (stock_status = 'oos'::text))),
    CONSTRAINT catalog_missing CHECK (((consecutive_misses = 0) OR (last_seen_at IS NOT NULL))),
    CONSTRAINT catalog_products_consecutive_misses_check CHECK (((consecutive_misses >= 0) AND (consecutive_misses <= 3))),
    CONSTRAINT catalog_products_stock_status_check CHECK ((stock_status = ANY (ARRAY['in_stock'::text, 'oos'::text, 'unknown'::text]))),
    CONSTRAINT catalog_stock CHECK ((NOT (is_in_stock IS DISTINCT FROM
CASE stock_status
    WHEN 'in_stock'::text THEN true
    WHEN 'oos'::text THEN false
    ELSE NULL::boolean
END)))
)
WITH (fillfactor='80');
CREATE TABLE public.location_links (
    location_id integer NOT NULL,
    dispensary_id integer,
    licence_id integer,
    confidence double precision NOT NULL,
    reasons json NOT NULL,
    decided_by text,
    linked_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT location_links_one CHECK ((num_nonnulls(dispensary_id, licence_id) = 1))
);
CREATE TABLE public.locations (
    id integer NOT NULL,
    name text NOT NULL,
    chain text,
    address text,
    city text,
    state text,
    zipcode text,
    latitude double precision,
    longitude double precision,
    phone text,
    merged_into integer,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    changed_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT locations_merged CHECK ((merged_into <> id))
);
CREATE TABLE public.product_history (
    product_id bigint NOT NULL,
    seen_from timestamp with time zone NOT NULL,
    seen_to timestamp with time zone NOT NULL,
    ended_at timestamp with time zone NOT NULL,
    dispensary_id integer NOT NULL,
    quantity integer,
    present boolean NOT NULL,
    quantity_capped boolean NOT NULL,
    stock_status text NOT NULL,
    price_rec numeric,
    price_rec_special numeric,
    price_med numeric,
    price_med_special numeric,
    thc_lo numeric,
    thc_hi numeric,
    thc_unit text,
    cbd_lo numeric,
    cbd_hi numeric,
    cbd_unit text,
    prices json NOT NULL,
    stock json NOT NULL,
    CONSTRAINT product_history_span CHECK (((seen_to >= seen_from) AND (ended_at > seen_to)))
)
PARTITION BY RANGE (ended_at);
CREATE VIEW public.product_changes AS
 SELECT o.product_id,
    o.dispensary_id,
    p.provider_product_id,
    p.name,
    p.brand_name,
    p.category,
    o.ended_at AS changed_at,
    ((o.prices)::jsonb IS DISTINCT FROM s.prices) AS price_changed,
    (((o.stock)::jsonb IS DISTINCT FROM s.stock) OR (o.stock_status <> s.stock_status)) AS stock_changed,
    o.price_rec AS price_rec_before,
    s.price_rec AS price_rec_after,
    o.price_rec_special AS price_rec_special_before,
    s.price_rec_special AS price_rec_special_after,
    o.price_med AS price_med_before,
    s.price_med AS price_med_after,
    o.price_med_special AS price_med_special_before,
    s.price_med_special AS price_med_special_after,
    o.stock_status AS stock_status_before,
    s.stock_status AS stock_status_after,
    o.quantity AS quantity_before,
    s.quantity AS quantity_after,
    (o.prices)::jsonb AS prices_before,
    s.prices AS prices_after,
    (o.stock)::jsonb AS stock_before,
    s.stock AS stock_after,
    s.present
   FROM ((public.product_history o
     JOIN public.catalog_products p ON ((p.id = o.product_id)))
     CROSS JOIN LATERAL ( SELECT n.price_rec,
            n.price_rec_special,
            n.price_med,
            n.price_med_special,
            n.stock_status,
            n.quantity,
            n.present,
            (n.prices)::jsonb AS prices,
            (n.stock)::jsonb AS stock
           FROM public.product_history n
          WHERE ((n.product_id = o.product_id) AND (n.ended_at > o.ended_at) AND (n.seen_from = o.ended_at))
        UNION ALL
         SELECT p.price_rec,
            p.price_rec_special,
            p.price_med,
            p.price_med_special,
            p.stock_status,
            p.quantity,
            p.present,
            public.option_prices(p.variants) AS option_prices,
            public.option_stock(p.variants) AS option_stock
          WHERE (p.state_from = o.ended_at)) s)
  WHERE (((o.prices)::jsonb IS DISTINCT FROM s.prices) OR ((o.stock)::jsonb IS DISTINCT FROM s.stock) OR (o.stock_status <> s.stock_status));
CREATE TABLE public.product_matches (
    product_id bigint NOT NULL,
    dispensary_id integer NOT NULL,
    source_version bigint NOT NULL,
    signature_id bigint NOT NULL,
    canonical_product_id bigint,
    platform_ids text[] DEFAULT '{}'::text[] NOT NULL COLLATE pg_catalog."C",
    sizes text[] DEFAULT '{}'::text[] NOT NULL COLLATE pg_catalog."C",
    name_words text[] COLLATE pg_catalog."C",
    matched_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE VIEW public.product_identities AS
 SELECT m.product_id,
        CASE
            WHEN (c.merged_into IS NULL) THEN c.id
            ELSE public.live_canonical_product(c.id)
        END AS canonical_product_id,
        CASE
            WHEN (b.merged_into IS NULL) THEN b.id
            ELSE public.live_brand(b.id)
        END AS brand_id
   FROM ((public.product_matches m
     LEFT JOIN public.canonical_products c ON ((c.id = m.canonical_product_id)))
     LEFT JOIN public.brands b ON ((b.id = c.brand_id)));
CREATE VIEW public.store_locations AS
 SELECT k.dispensary_id,
        CASE
            WHEN (l.merged_into IS NULL) THEN l.id
            ELSE public.live_location(l.id)
        END AS location_id
   FROM (public.location_links k
     JOIN public.locations l ON ((l.id = k.location_id)))
  WHERE (k.dispensary_id IS NOT NULL);
CREATE VIEW analyst.changes AS
 SELECT c.changed_at,
    c.product_id,
    c.dispensary_id,
    d.name AS store,
    d.state,
    p.provider,
    c.provider_product_id,
    c.name,
    c.brand_name,
    p.category_canon,
    c.price_changed,
    c.stock_changed,
    c.present,
    c.price_rec_before,
    c.price_rec_after,
    c.price_rec_special_before,
    c.price_rec_special_after,
    c.price_med_before,
    c.price_med_after,
    c.price_med_special_before,
    c.price_med_special_after,
    c.stock_status_before,
    c.stock_status_after,
    c.quantity_before,
    c.quantity_after,
    c.prices_before,
    c.prices_after,
    c.stock_before,
    c.stock_after,
    i.canonical_product_id,
    i.brand_id,
    l.location_id
   FROM ((((public.product_changes c
     JOIN public.catalog_products p ON ((p.id = c.product_id)))
     JOIN public.dispensaries d ON ((d.id = c.dispensary_id)))
     LEFT JOIN public.product_identities i ON ((i.product_id = p.id)))
     LEFT JOIN public.store_locations l ON ((l.dispensary_id = c.dispensary_id)));
CREATE TABLE public.store_crawls (
    dispensary_id integer NOT NULL,
    crawled_at timestamp with time zone NOT NULL,
    payload_id bigint,
    products integer NOT NULL,
    new_products integer NOT NULL,
    changed integer NOT NULL,
    unchanged integer NOT NULL,
    returned integer NOT NULL,
    missing integer NOT NULL,
    out_of_stock integer NOT NULL,
    price_changes integer NOT NULL,
    stock_changes integer NOT NULL,
    warnings jsonb DEFAULT '[]'::jsonb NOT NULL,
    CONSTRAINT store_crawls_products_check CHECK ((products >= 0))
);
CREATE VIEW analyst.crawls AS
 SELECT c.dispensary_id,
    d.name AS store,
    d.state,
    c.crawled_at,
    c.payload_id,
    c.products,
    c.new_products,
    c.changed,
    c.unchanged,
    c.returned,
    c.missing,
    c.out_of_stock,
    c.price_changes,
    c.stock_changes
   FROM (public.store_crawls c
     JOIN public.dispensaries d ON ((d.id = c.dispensary_id)));
CREATE TABLE public.product_detail_history (
    product_id bigint NOT NULL,
    seen_from timestamp with time zone NOT NULL,
    ended_at timestamp with time zone NOT NULL,
    quantity_sold bigint,
    details_kept boolean NOT NULL,
    batch json,
    cannabinoids json,
    terpenes json,
    CONSTRAINT product_detail_history_kept CHECK (((NOT details_kept) OR ((batch IS NULL) AND (cannabinoids IS NULL) AND (terpenes IS NULL)))),
    CONSTRAINT product_detail_history_span CHECK ((ended_at > seen_from))
)
PARTITION BY RANGE (ended_at);
CREATE VIEW public.product_details AS
 SELECT h.product_id,
    h.seen_from,
    h.ended_at,
        CASE
            WHEN (n.product_id IS NULL) THEN p.batch
            ELSE (n.batch)::jsonb
        END AS batch,
        CASE
            WHEN (n.product_id IS NULL) THEN p.cannabinoids
            ELSE (n.cannabinoids)::jsonb
        END AS cannabinoids,
        CASE
            WHEN (n.product_id IS NULL) THEN p.terpenes
            ELSE (n.terpenes)::jsonb
        END AS terpenes,
    h.quantity_sold
   FROM ((public.product_detail_history h
     JOIN public.catalog_products p ON ((p.id = h.product_id)))
     LEFT JOIN LATERAL ( SELECT n_1.product_id,
            n_1.seen_from,
            n_1.ended_at,
            n_1.quantity_sold,
            n_1.details_kept,
            n_1.batch,
            n_1.cannabinoids,
            n_1.terpenes
           FROM public.product_detail_history n_1
          WHERE ((n_1.product_id = h.product_id) AND (n_1.ended_at >= h.ended_at) AND (NOT n_1.details_kept))
          ORDER BY n_1.ended_at
         LIMIT 1) n ON (true))
UNION ALL
 SELECT catalog_products.id AS product_id,
    COALESCE(catalog_products.details_from, catalog_products.first_seen_at) AS seen_from,
    NULL::timestamp with time zone AS ended_at,
    catalog_products.batch,
    catalog_products.cannabinoids,
    catalog_products.terpenes,
    catalog_products.quantity_sold
   FROM public.catalog_products
  WHERE ((catalog_products.batch IS NOT NULL) OR (catalog_products.cannabinoids IS NOT NULL) OR (catalog_products.terpenes IS NOT NULL) OR (catalog_products.quantity_sold IS NOT NULL));
CREATE VIEW analyst.details AS
 SELECT p.seen_from,
    p.ended_at,
    p.product_id,
    c.dispensary_id,
    d.name AS store,
    d.state,
    c.provider,
    c.provider_product_id,
    c.name,
    c.brand_name,
    c.category_canon,
    p.cannabinoids,
    p.terpenes,
    (p.batch ->> 'batch_id'::text) AS batch_id,
    (p.batch ->> 'package_tag'::text) AS package_tag,
    ((p.batch ->> 'tested_on'::text))::date AS tested_on,
    ((p.batch ->> 'packaged_on'::text))::date AS packaged_on,
    ((p.batch ->> 'expires_on'::text))::date AS expires_on,
    (p.batch ->> 'certificate_url'::text) AS certificate_url,
    p.quantity_sold,
    i.canonical_product_id,
    i.brand_id,
    l.location_id
   FROM ((((public.product_details p
     JOIN public.catalog_products c ON ((c.id = p.product_id)))
     JOIN public.dispensaries d ON ((d.id = c.dispensary_id)))
     LEFT JOIN public.product_identities i ON ((i.product_id = c.id)))
     LEFT JOIN public.store_locations l ON ((l.dispensary_id = c.dispensary_id)));
CREATE VIEW analyst.locations AS
 SELECT id AS location_id,
    name,
    chain,
    address,
    city,
    state,
    zipcode,
    (latitude)::numeric AS latitude,
    (longitude)::numeric AS longitude,
    phone,
    public.live_location(merged_into) AS merged_into,
    created_at,
    changed_at
   FROM public.locations l;
CREATE TABLE public.market_days (
    day date NOT NULL,
    state text NOT NULL COLLATE pg_catalog."C",
    category text NOT NULL COLLATE pg_catalog."C",
    products integer NOT NULL,
    in_stock integer NOT NULL,
    out_of_stock integer NOT NULL,
    unknown_stock integer GENERATED ALWAYS AS (((products - in_stock) - out_of_stock)) STORED,
    priced integer NOT NULL,
    on_special integer NOT NULL,
    depth_median numeric,
    depth_mean numeric,
    stores integer NOT NULL,
    known_stores integer NOT NULL
);
CREATE VIEW analyst.market_days AS
 SELECT day,
    state,
    category,
    products,
    in_stock,
    out_of_stock,
    unknown_stock,
    priced,
    on_special,
    depth_median,
    depth_mean,
    stores,
    known_stores
   FROM public.market_days;
CREATE TABLE public.match_events (
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    kind text NOT NULL,
    from_id bigint NOT NULL,
    to_id bigint NOT NULL,
    listings integer NOT NULL,
    cause text NOT NULL,
    "position" bigint,
    CONSTRAINT match_events_cause_check CHECK ((cause = ANY (ARRAY['menu'::text, 'correction'::text, 'rules'::text]))),
    CONSTRAINT match_events_kind_check CHECK ((kind = ANY (ARRAY['merged'::text, 'split'::text])))
);
CREATE VIEW analyst.match_events AS
 SELECT e.id,
    e.at,
    e.kind,
    e.from_id AS from_canonical_product_id,
    f.name AS from_name,
    e.to_id AS canonical_product_id,
    t.name,
    e.listings,
    e.cause
   FROM ((public.match_events e
     JOIN public.canonical_products f ON ((f.id = e.from_id)))
     JOIN public.canonical_products t ON ((t.id = e.to_id)));
CREATE TABLE public.brand_descriptions (
    hash uuid NOT NULL,
    description text NOT NULL
);
CREATE VIEW public.store_products AS
 SELECT p.id,
    p.dispensary_id,
    p.provider,
    p.provider_product_id,
    p.name_raw,
    p.name,
    p.brand_name_raw,
    p.brand_name,
    p.category,
    p.subcategory,
    p.strain_type,
    p.status_raw,
    p.price_rec,
    p.price_rec_special,
    p.price_med,
    p.price_med_special,
    p.variants,
    p.is_in_stock,
    p.stock_status,
    p.quantity,
    p.quantity_capped,
    p.thc_lo,
    p.thc_hi,
    p.thc_unit,
    p.cbd_lo,
    p.cbd_hi,
    p.cbd_unit,
    p.cannabinoids,
    p.specials,
    p.image_url,
    NULLIF(COALESCE(p.images,
        CASE
            WHEN (p.image_url IS NOT NULL) THEN jsonb_build_array(p.image_url)
            ELSE NULL::jsonb
        END), '[]'::jsonb) AS images,
    p.local_image_path,
    p.description,
    p.platform_created_at,
    p.platform_updated_at,
        CASE
            WHEN (p.brand_description_hash IS NULL) THEN p.extra
            ELSE (p.extra || jsonb_build_object('brand_description', ( SELECT b.description
               FROM public.brand_descriptions b
              WHERE (b.hash = p.brand_description_hash)
             LIMIT 1)))
        END AS extra,
    p.consecutive_misses,
    p.first_seen_at,
    COALESCE(p.last_seen_at, d.last_crawled_at) AS last_seen_at,
    p.changed_at AS updated_at,
    p.category_canon,
    p.subcategory_canon,
    p.strain_canon,
    p.terpenes,
    p.batch,
    p.quantity_sold
   FROM (public.catalog_products p
     JOIN public.dispensaries d ON ((d.id = p.dispensary_id)));
CREATE VIEW analyst.offers AS
 SELECT p.id AS product_id,
    v."position",
    p.dispensary_id,
    d.name AS store,
    d.state,
    p.provider,
    p.provider_product_id,
    p.name,
    p.brand_name,
    p.category_canon,
    p.subcategory_canon,
    p.strain_canon,
    v.option,
    v.weight_g,
    v.content_mg,
    v.pieces,
    public.currency_of(d.state) AS currency,
    public.effective_price(v.price_rec, v.special_rec, v.price_med, v.special_med) AS price,
    v.price_rec,
    v.special_rec AS price_rec_special,
    v.price_med,
    v.special_med AS price_med_special,
    v.price_per_g,
    COALESCE(v.stock_status, 'unknown'::text) AS stock_status,
    v.quantity,
    COALESCE(v.capped, false) AS quantity_capped,
    p.last_seen_at,
    p.updated_at,
    i.canonical_product_id,
    i.brand_id,
    l.location_id
   FROM ((((public.store_products p
     JOIN public.dispensaries d ON (((d.id = p.dispensary_id) AND (d.last_crawled_at = p.last_seen_at))))
     CROSS JOIN LATERAL ROWS FROM(jsonb_to_recordset(p.variants) AS (option text, weight_g numeric, content_mg numeric, pieces bigint, price_rec numeric, special_rec numeric, price_med numeric, special_med numeric, price_per_g numeric, stock_status text, quantity bigint, capped boolean)) WITH ORDINALITY v(option, weight_g, content_mg, pieces, price_rec, special_rec, price_med, special_med, price_per_g, stock_status, quantity, capped, "position"))
     LEFT JOIN public.product_identities i ON ((i.product_id = p.id)))
     LEFT JOIN public.store_locations l ON ((l.dispensary_id = p.dispensary_id)));
CREATE TABLE public.price_index_days (
    state text NOT NULL,
    category text NOT NULL,
    day date NOT NULL,
    stores integer NOT NULL,
    known_stores integer NOT NULL,
    matched integer NOT NULL,
    carried integer NOT NULL,
    entered integer NOT NULL,
    expired integer NOT NULL,
    outliers integer NOT NULL,
    change double precision,
    level double precision NOT NULL,
    deviations double precision[] NOT NULL
);
CREATE VIEW analyst.price_index AS
 SELECT state,
    category,
    day,
    stores,
    known_stores,
    matched,
    carried,
    entered,
    expired,
    outliers,
    change,
    level,
    deviations
   FROM public.price_index_days;
CREATE TABLE public.match_signatures (
    id bigint NOT NULL,
    key uuid NOT NULL,
    block text NOT NULL COLLATE pg_catalog."C",
    parsed json NOT NULL,
    canonical_product_id bigint,
    linked_to bigint,
    confidence double precision,
    reasons json,
    component bigint
);
CREATE VIEW analyst.product_matches AS
 SELECT m.product_id,
    m.dispensary_id,
    i.canonical_product_id,
    i.brand_id,
    l.location_id,
    round((s.confidence)::numeric, 4) AS confidence,
    s.reasons,
    to_json(m.sizes) AS sizes,
    m.matched_at
   FROM (((public.product_matches m
     JOIN public.match_signatures s ON ((s.id = m.signature_id)))
     LEFT JOIN public.product_identities i ON ((i.product_id = m.product_id)))
     LEFT JOIN public.store_locations l ON ((l.dispensary_id = m.dispensary_id)));
CREATE VIEW analyst.products AS
 SELECT p.id AS product_id,
    p.dispensary_id,
    d.name AS store,
    d.state,
    p.provider,
    p.provider_product_id,
    p.name,
    p.name_raw,
    p.brand_name,
    p.brand_name_raw,
    p.category,
    p.subcategory,
    p.strain_type,
    p.category_canon,
    p.subcategory_canon,
    p.strain_canon,
    p.status_raw,
    p.price_rec,
    p.price_rec_special,
    p.price_med,
    p.price_med_special,
    p.is_in_stock,
    p.stock_status,
    p.quantity,
    p.quantity_capped,
    p.thc_lo,
    p.thc_hi,
    p.thc_unit,
    p.cbd_lo,
    p.cbd_hi,
    p.cbd_unit,
    p.variants,
    p.cannabinoids,
    p.terpenes,
    (p.batch ->> 'batch_id'::text) AS batch_id,
    (p.batch ->> 'package_tag'::text) AS package_tag,
    ((p.batch ->> 'tested_on'::text))::date AS tested_on,
    ((p.batch ->> 'packaged_on'::text))::date AS packaged_on,
    ((p.batch ->> 'expires_on'::text))::date AS expires_on,
    (p.batch ->> 'certificate_url'::text) AS certificate_url,
    p.quantity_sold,
    p.specials,
    p.image_url,
    p.local_image_path,
    p.description,
    p.consecutive_misses,
    p.first_seen_at,
    p.last_seen_at,
    p.updated_at,
    p.platform_created_at,
    p.platform_updated_at,
    i.canonical_product_id,
    i.brand_id,
    l.location_id
   FROM (((public.store_products p
     JOIN public.dispensaries d ON ((d.id = p.dispensary_id)))
     LEFT JOIN public.product_identities i ON ((i.product_id = p.id)))
     LEFT JOIN public.store_locations l ON ((l.dispensary_id = p.dispensary_id)));
CREATE TABLE public.quality_findings (
    id bigint NOT NULL,
    dispensary_id integer NOT NULL,
    measure text NOT NULL,
    rule_id integer,
    direction text NOT NULL,
    severity text NOT NULL,
    opened_at timestamp with time zone NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    crawls integer DEFAULT 1 NOT NULL,
    value double precision NOT NULL,
    expected double precision,
    low double precision,
    high double precision,
    release_changed boolean NOT NULL,
    scope text DEFAULT 'store'::text NOT NULL,
    scope_key text,
    scope_affected integer DEFAULT 1 NOT NULL,
    scope_stores integer DEFAULT 1 NOT NULL,
    closed_at timestamp with time zone,
    outcome text,
    CONSTRAINT quality_findings_closed CHECK (((closed_at IS NULL) = (outcome IS NULL))),
    CONSTRAINT quality_findings_direction_check CHECK ((direction = ANY (ARRAY['up'::text, 'down'::text]))),
    CONSTRAINT quality_findings_outcome_check CHECK ((outcome = ANY (ARRAY['recovered'::text, 'accepted'::text, 'worsened'::text, 'unmeasured'::text, 'ignored'::text]))),
    CONSTRAINT quality_findings_scope_check CHECK ((scope = ANY (ARRAY['store'::text, 'chain'::text, 'point_of_sale'::text, 'platform'::text, 'normalizer'::text]))),
    CONSTRAINT quality_findings_severity_check CHECK ((severity = ANY (ARRAY['critical'::text, 'warning'::text, 'info'::text])))
);
CREATE VIEW analyst.quality_findings AS
 SELECT f.id,
    f.dispensary_id,
    d.name AS store,
    d.platform,
    d.state,
    f.measure,
    f.direction,
    f.severity,
    f.opened_at,
    f.seen_at AS last_observed_at,
    f.crawls,
    f.value,
    f.expected,
    f.low,
    f.high,
    f.scope,
    f.scope_key,
    f.scope_affected,
    f.scope_stores,
    f.rule_id,
    f.closed_at,
    f.outcome
   FROM (public.quality_findings f
     JOIN public.dispensaries d ON ((d.id = f.dispensary_id)));
CREATE TABLE public.quality_measures (
    dispensary_id integer NOT NULL,
    crawled_at timestamp with time zone NOT NULL,
    platform text NOT NULL,
    is_quarantined boolean DEFAULT false NOT NULL,
    release text NOT NULL,
    "values" jsonb NOT NULL,
    checked_at timestamp with time zone
);
CREATE VIEW analyst.quality_measures AS
 SELECT m.dispensary_id,
    d.name AS store,
    d.platform,
    d.state,
    m.crawled_at,
    m.is_quarantined,
    m.release,
    v.key AS measure,
    (v.value)::double precision AS value
   FROM ((public.quality_measures m
     JOIN public.dispensaries d ON ((d.id = m.dispensary_id)))
     CROSS JOIN LATERAL jsonb_each(m."values") v(key, value));
CREATE TABLE public.quality_stores (
    dispensary_id integer NOT NULL,
    platform text NOT NULL,
    crawled_at timestamp with time zone NOT NULL,
    crawls integer NOT NULL,
    bands jsonb NOT NULL,
    score integer,
    reason text,
    completeness double precision NOT NULL,
    CONSTRAINT quality_stores_reason CHECK (((score IS NULL) = (reason IS NOT NULL))),
    CONSTRAINT quality_stores_score_check CHECK (((score >= 0) AND (score <= 100)))
)
WITH (fillfactor='70');
CREATE VIEW analyst.quality_scores AS
 SELECT d.id AS dispensary_id,
    d.name AS store,
    d.platform,
    d.state,
    q.crawled_at,
    q.score,
        CASE
            WHEN (q.dispensary_id IS NULL) THEN 'no menu measured yet'::text
            ELSE q.reason
        END AS reason,
    q.completeness,
    q.crawls
   FROM (public.dispensaries d
     LEFT JOIN public.quality_stores q ON ((q.dispensary_id = d.id)));
CREATE TABLE public.analytics_brand_stats (
    run_id bigint NOT NULL,
    place integer NOT NULL,
    all_states boolean NOT NULL,
    state text,
    brand text,
    brand_id integer,
    products integer NOT NULL,
    in_stock integer NOT NULL,
    of_products integer NOT NULL,
    of_stores integer NOT NULL,
    stores integer NOT NULL,
    stale_stores integer NOT NULL,
    partial integer NOT NULL,
    known_stores integer NOT NULL,
    scheduled bigint NOT NULL,
    succeeded bigint NOT NULL,
    oldest_crawl_at timestamp with time zone
);
CREATE TABLE public.analytics_runs (
    id bigint NOT NULL,
    status text DEFAULT 'running'::text NOT NULL,
    started_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    finished_at timestamp with time zone,
    window_from timestamp with time zone NOT NULL,
    window_to timestamp with time zone NOT NULL,
    seconds double precision,
    steps jsonb DEFAULT '[]'::jsonb NOT NULL,
    error text,
    CONSTRAINT analytics_runs_ended CHECK ((((status = 'running'::text) = (finished_at IS NULL)) AND ((status = 'failed'::text) = (error IS NOT NULL)))),
    CONSTRAINT analytics_runs_status_check CHECK ((status = ANY (ARRAY['running'::text, 'done'::text, 'failed'::text])))
);
CREATE VIEW public.analytics_run AS
 SELECT id,
    finished_at AS refreshed_at,
    started_at,
    window_from,
    window_to,
    seconds,
    steps
   FROM public.analytics_runs
  WHERE (status = 'done'::text)
  ORDER BY id DESC
 LIMIT 1;
CREATE VIEW public.analytics_brand_distribution AS
 SELECT r.refreshed_at,
    f.run_id,
    f.place,
    f.all_states,
    f.state,
    f.brand,
    f.brand_id,
    f.products,
    f.in_stock,
    f.of_products,
    f.of_stores,
    f.stores,
    f.stale_stores,
    f.partial,
    f.known_stores,
    f.scheduled,
    f.succeeded,
    f.oldest_crawl_at
   FROM (public.analytics_run r
     JOIN public.analytics_brand_stats f ON ((f.run_id = r.id)));
CREATE VIEW analyst.report_brands AS
 SELECT refreshed_at,
    run_id,
    place,
    all_states,
    state,
    brand,
    brand_id,
    products,
    in_stock,
    of_products,
    of_stores,
    stores,
    stale_stores,
    partial,
    known_stores,
    scheduled,
    succeeded,
    oldest_crawl_at
   FROM public.analytics_brand_distribution;
CREATE TABLE public.analytics_category_stats (
    run_id bigint NOT NULL,
    place integer NOT NULL,
    all_states boolean NOT NULL,
    state text,
    category text,
    products integer NOT NULL,
    in_stock integer NOT NULL,
    of_products integer NOT NULL,
    of_stores integer NOT NULL,
    stores integer NOT NULL,
    stale_stores integer NOT NULL,
    partial integer NOT NULL,
    known_stores integer NOT NULL,
    scheduled bigint NOT NULL,
    succeeded bigint NOT NULL,
    oldest_crawl_at timestamp with time zone
);
CREATE VIEW public.analytics_category_distribution AS
 SELECT r.refreshed_at,
    f.run_id,
    f.place,
    f.all_states,
    f.state,
    f.category,
    f.products,
    f.in_stock,
    f.of_products,
    f.of_stores,
    f.stores,
    f.stale_stores,
    f.partial,
    f.known_stores,
    f.scheduled,
    f.succeeded,
    f.oldest_crawl_at
   FROM (public.analytics_run r
     JOIN public.analytics_category_stats f ON ((f.run_id = r.id)));
CREATE VIEW analyst.report_categories AS
 SELECT refreshed_at,
    run_id,
    place,
    all_states,
    state,
    category,
    products,
    in_stock,
    of_products,
    of_stores,
    stores,
    stale_stores,
    partial,
    known_stores,
    scheduled,
    succeeded,
    oldest_crawl_at
   FROM public.analytics_category_distribution;
CREATE TABLE public.analytics_cheapest_stats (
    run_id bigint NOT NULL,
    place integer NOT NULL,
    level text NOT NULL,
    state text NOT NULL,
    category text,
    brand_id integer,
    location_id integer,
    dispensary_id integer NOT NULL,
    compared integer NOT NULL,
    cheapest integer NOT NULL,
    CONSTRAINT analytics_cheapest_stats_level_check CHECK ((level = ANY (ARRAY['all'::text, 'category'::text, 'brand'::text])))
);
CREATE VIEW public.analytics_cheapest_quarter AS
 SELECT r.refreshed_at,
    f.run_id,
    f.place,
    f.level,
    f.state,
    f.category,
    f.brand_id,
    f.location_id,
    f.dispensary_id,
    f.compared,
    f.cheapest
   FROM (public.analytics_run r
     JOIN public.analytics_cheapest_stats f ON ((f.run_id = r.id)));
CREATE VIEW analyst.report_cheapest_quarter AS
 SELECT refreshed_at,
    run_id,
    place,
    level,
    state,
    category,
    brand_id,
    location_id,
    dispensary_id,
    compared,
    cheapest
   FROM public.analytics_cheapest_quarter;
CREATE TABLE public.analytics_discount_stats (
    run_id bigint NOT NULL,
    place integer NOT NULL,
    all_states boolean NOT NULL,
    state text,
    all_categories boolean NOT NULL,
    category text,
    products integer NOT NULL,
    on_special integer NOT NULL,
    named_only integer NOT NULL,
    depth_median numeric,
    depth_p90 numeric,
    depth_mean numeric,
    stores integer NOT NULL,
    stale_stores integer NOT NULL,
    partial integer NOT NULL,
    known_stores integer NOT NULL,
    scheduled bigint NOT NULL,
    succeeded bigint NOT NULL,
    oldest_crawl_at timestamp with time zone
);
CREATE VIEW public.analytics_discounts AS
 SELECT r.refreshed_at,
    f.run_id,
    f.place,
    f.all_states,
    f.state,
    f.all_categories,
    f.category,
    f.products,
    f.on_special,
    f.named_only,
    f.depth_median,
    f.depth_p90,
    f.depth_mean,
    f.stores,
    f.stale_stores,
    f.partial,
    f.known_stores,
    f.scheduled,
    f.succeeded,
    f.oldest_crawl_at
   FROM (public.analytics_run r
     JOIN public.analytics_discount_stats f ON ((f.run_id = r.id)));
CREATE VIEW analyst.report_discounts AS
 SELECT refreshed_at,
    run_id,
    place,
    all_states,
    state,
    all_categories,
    category,
    products,
    on_special,
    named_only,
    depth_median,
    depth_p90,
    depth_mean,
    stores,
    stale_stores,
    partial,
    known_stores,
    scheduled,
    succeeded,
    oldest_crawl_at
   FROM public.analytics_discounts;
CREATE TABLE public.analytics_distribution_stats (
    run_id bigint NOT NULL,
    place integer NOT NULL,
    all_states boolean NOT NULL,
    state text,
    canonical_product_id bigint NOT NULL,
    brand_id integer,
    category text,
    locations integer NOT NULL,
    in_stock integer NOT NULL,
    of_locations integer NOT NULL,
    of_category integer
);
CREATE VIEW public.analytics_distribution AS
 SELECT r.refreshed_at,
    f.run_id,
    f.place,
    f.all_states,
    f.state,
    f.canonical_product_id,
    f.brand_id,
    f.category,
    f.locations,
    f.in_stock,
    f.of_locations,
    f.of_category
   FROM (public.analytics_run r
     JOIN public.analytics_distribution_stats f ON ((f.run_id = r.id)));
CREATE VIEW analyst.report_distribution AS
 SELECT refreshed_at,
    run_id,
    place,
    all_states,
    state,
    canonical_product_id,
    brand_id,
    category,
    locations,
    in_stock,
    of_locations,
    of_category
   FROM public.analytics_distribution;
CREATE TABLE public.analytics_brand_distribution_stats (
    run_id bigint NOT NULL,
    place integer NOT NULL,
    all_states boolean NOT NULL,
    state text,
    brand_id integer NOT NULL,
    all_categories boolean NOT NULL,
    category text,
    locations integer NOT NULL,
    in_stock integer NOT NULL,
    listed integer NOT NULL,
    of_locations integer NOT NULL,
    of_category integer
);
CREATE VIEW public.analytics_distribution_of_brands AS
 SELECT r.refreshed_at,
    f.run_id,
    f.place,
    f.all_states,
    f.state,
    f.brand_id,
    f.all_categories,
    f.category,
    f.locations,
    f.in_stock,
    f.listed,
    f.of_locations,
    f.of_category
   FROM (public.analytics_run r
     JOIN public.analytics_brand_distribution_stats f ON ((f.run_id = r.id)));
CREATE VIEW analyst.report_distribution_of_brands AS
 SELECT refreshed_at,
    run_id,
    place,
    all_states,
    state,
    brand_id,
    all_categories,
    category,
    locations,
    in_stock,
    listed,
    of_locations,
    of_category
   FROM public.analytics_distribution_of_brands;
CREATE TABLE public.analytics_daily_stats (
    run_id bigint NOT NULL,
    day date NOT NULL,
    dispensary_id integer NOT NULL,
    state text,
    new_products integer NOT NULL,
    gone_products integer NOT NULL,
    returned integer NOT NULL,
    price_changes integer NOT NULL,
    stock_changes integer NOT NULL,
    crawls integer NOT NULL,
    partial integer NOT NULL,
    scheduled integer NOT NULL,
    succeeded integer NOT NULL
);
CREATE VIEW public.analytics_new_and_gone AS
 SELECT r.refreshed_at,
    f.run_id,
    f.day,
    f.dispensary_id,
    f.state,
    f.new_products,
    f.gone_products,
    f.returned,
    f.price_changes,
    f.stock_changes,
    f.crawls,
    f.partial,
    f.scheduled,
    f.succeeded
   FROM (public.analytics_run r
     JOIN public.analytics_daily_stats f ON ((f.run_id = r.id)));
CREATE VIEW analyst.report_new_and_gone AS
 SELECT refreshed_at,
    run_id,
    day,
    dispensary_id,
    state,
    new_products,
    gone_products,
    returned,
    price_changes,
    stock_changes,
    crawls,
    partial,
    scheduled,
    succeeded
   FROM public.analytics_new_and_gone;
CREATE TABLE public.analytics_stock_stats (
    run_id bigint NOT NULL,
    place integer NOT NULL,
    level text NOT NULL,
    state text,
    category text,
    dispensary_id integer,
    products integer NOT NULL,
    out_products integer NOT NULL,
    in_seconds double precision NOT NULL,
    out_seconds double precision NOT NULL,
    absent_seconds double precision NOT NULL,
    unknown_seconds double precision NOT NULL,
    stores integer NOT NULL,
    stale_stores integer NOT NULL,
    partial integer NOT NULL,
    known_stores integer NOT NULL,
    scheduled bigint NOT NULL,
    succeeded bigint NOT NULL,
    oldest_crawl_at timestamp with time zone,
    CONSTRAINT analytics_stock_stats_level_check CHECK ((level = ANY (ARRAY['all'::text, 'category'::text, 'state'::text, 'state_category'::text, 'store'::text, 'store_category'::text])))
);
CREATE VIEW public.analytics_out_of_stock AS
 SELECT r.refreshed_at,
    f.run_id,
    f.place,
    f.level,
    f.state,
    f.category,
    f.dispensary_id,
    f.products,
    f.out_products,
    f.in_seconds,
    f.out_seconds,
    f.absent_seconds,
    f.unknown_seconds,
    f.stores,
    f.stale_stores,
    f.partial,
    f.known_stores,
    f.scheduled,
    f.succeeded,
    f.oldest_crawl_at
   FROM (public.analytics_run r
     JOIN public.analytics_stock_stats f ON ((f.run_id = r.id)));
CREATE VIEW analyst.report_out_of_stock AS
 SELECT refreshed_at,
    run_id,
    place,
    level,
    state,
    category,
    dispensary_id,
    products,
    out_products,
    in_seconds,
    out_seconds,
    absent_seconds,
    unknown_seconds,
    stores,
    stale_stores,
    partial,
    known_stores,
    scheduled,
    succeeded,
    oldest_crawl_at
   FROM public.analytics_out_of_stock;
CREATE TABLE public.analytics_out_product_stats (
    run_id bigint NOT NULL,
    place integer NOT NULL,
    product_id bigint NOT NULL,
    dispensary_id integer NOT NULL,
    state text,
    category text,
    brand text,
    times_out integer NOT NULL,
    in_seconds double precision NOT NULL,
    out_seconds double precision NOT NULL,
    absent_seconds double precision NOT NULL,
    unknown_seconds double precision NOT NULL
);
CREATE VIEW public.analytics_out_of_stock_products AS
 SELECT r.refreshed_at,
    f.run_id,
    f.place,
    f.product_id,
    f.dispensary_id,
    f.state,
    f.category,
    f.brand,
    f.times_out,
    f.in_seconds,
    f.out_seconds,
    f.absent_seconds,
    f.unknown_seconds
   FROM (public.analytics_run r
     JOIN public.analytics_out_product_stats f ON ((f.run_id = r.id)));
CREATE VIEW analyst.report_out_of_stock_products AS
 SELECT refreshed_at,
    run_id,
    place,
    product_id,
    dispensary_id,
    state,
    category,
    brand,
    times_out,
    in_seconds,
    out_seconds,
    absent_seconds,
    unknown_seconds
   FROM public.analytics_out_of_stock_products;
CREATE TABLE public.analytics_dispersion_stats (
    run_id bigint NOT NULL,
    place integer NOT NULL,
    gap_place integer NOT NULL,
    all_states boolean NOT NULL,
    state text,
    canonical_product_id bigint NOT NULL,
    size text NOT NULL COLLATE pg_catalog."C",
    brand_id integer,
    category text,
    currency text NOT NULL,
    locations integer NOT NULL,
    stale_locations integer NOT NULL,
    implausible_locations integer NOT NULL,
    min numeric NOT NULL,
    p25 numeric NOT NULL,
    median numeric NOT NULL,
    p75 numeric NOT NULL,
    max numeric NOT NULL,
    mean numeric NOT NULL,
    cv numeric NOT NULL,
    cheapest_dispensary_id integer NOT NULL,
    dearest_dispensary_id integer NOT NULL
);
CREATE VIEW public.analytics_price_dispersion AS
 SELECT r.refreshed_at,
    f.run_id,
    f.place,
    f.gap_place,
    f.all_states,
    f.state,
    f.canonical_product_id,
    f.size,
    f.brand_id,
    f.category,
    f.currency,
    f.locations,
    f.stale_locations,
    f.implausible_locations,
    f.min,
    f.p25,
    f.median,
    f.p75,
    f.max,
    f.mean,
    f.cv,
    f.cheapest_dispensary_id,
    f.dearest_dispensary_id
   FROM (public.analytics_run r
     JOIN public.analytics_dispersion_stats f ON ((f.run_id = r.id)));
CREATE VIEW analyst.report_price_dispersion AS
 SELECT refreshed_at,
    run_id,
    place,
    gap_place,
    all_states,
    state,
    canonical_product_id,
    size,
    brand_id,
    category,
    currency,
    locations,
    stale_locations,
    implausible_locations,
    min,
    p25,
    median,
    p75,
    max,
    mean,
    cv,
    cheapest_dispensary_id,
    dearest_dispensary_id
   FROM public.analytics_price_dispersion;
CREATE TABLE public.analytics_price_stats (
    run_id bigint NOT NULL,
    place integer NOT NULL,
    all_states boolean NOT NULL,
    state text,
    currency text NOT NULL,
    category text,
    products integer NOT NULL,
    options integer NOT NULL,
    without_weight integer NOT NULL,
    without_price integer NOT NULL,
    implausible integer NOT NULL,
    regular_n integer NOT NULL,
    regular_p10 numeric,
    regular_median numeric,
    regular_p90 numeric,
    regular_mean numeric,
    effective_n integer NOT NULL,
    effective_p10 numeric,
    effective_median numeric,
    effective_p90 numeric,
    effective_mean numeric,
    stores integer NOT NULL,
    stale_stores integer NOT NULL,
    partial integer NOT NULL,
    known_stores integer NOT NULL,
    scheduled bigint NOT NULL,
    succeeded bigint NOT NULL,
    oldest_crawl_at timestamp with time zone
);
CREATE VIEW public.analytics_price_per_gram AS
 SELECT r.refreshed_at,
    f.run_id,
    f.place,
    f.all_states,
    f.state,
    f.currency,
    f.category,
    f.products,
    f.options,
    f.without_weight,
    f.without_price,
    f.implausible,
    f.regular_n,
    f.regular_p10,
    f.regular_median,
    f.regular_p90,
    f.regular_mean,
    f.effective_n,
    f.effective_p10,
    f.effective_median,
    f.effective_p90,
    f.effective_mean,
    f.stores,
    f.stale_stores,
    f.partial,
    f.known_stores,
    f.scheduled,
    f.succeeded,
    f.oldest_crawl_at
   FROM (public.analytics_run r
     JOIN public.analytics_price_stats f ON ((f.run_id = r.id)));
CREATE VIEW analyst.report_price_per_gram AS
 SELECT refreshed_at,
    run_id,
    place,
    all_states,
    state,
    currency,
    category,
    products,
    options,
    without_weight,
    without_price,
    implausible,
    regular_n,
    regular_p10,
    regular_median,
    regular_p90,
    regular_mean,
    effective_n,
    effective_p10,
    effective_median,
    effective_p90,
    effective_mean,
    stores,
    stale_stores,
    partial,
    known_stores,
    scheduled,
    succeeded,
    oldest_crawl_at
   FROM public.analytics_price_per_gram;
CREATE TABLE public.analytics_shrinkflation_stats (
    run_id bigint NOT NULL,
    place integer NOT NULL,
    canonical_product_id bigint NOT NULL,
    brand_id integer,
    category text,
    dispensary_id integer,
    state text,
    currency text NOT NULL,
    stores integer NOT NULL,
    unit text NOT NULL,
    larger text NOT NULL,
    smaller text NOT NULL,
    larger_price numeric NOT NULL,
    smaller_price numeric NOT NULL,
    larger_until timestamp with time zone NOT NULL,
    smaller_from timestamp with time zone NOT NULL,
    larger_product_id bigint,
    smaller_product_id bigint,
    size_change numeric NOT NULL,
    unit_price_change numeric NOT NULL,
    CONSTRAINT analytics_shrinkflation_stats_unit_check CHECK ((unit = ANY (ARRAY['g'::text, 'mg'::text, 'pieces'::text])))
);
CREATE VIEW public.analytics_shrinkflation AS
 SELECT r.refreshed_at,
    f.run_id,
    f.place,
    f.canonical_product_id,
    f.brand_id,
    f.category,
    f.dispensary_id,
    f.state,
    f.currency,
    f.stores,
    f.unit,
    f.larger,
    f.smaller,
    f.larger_price,
    f.smaller_price,
    f.larger_until,
    f.smaller_from,
    f.larger_product_id,
    f.smaller_product_id,
    f.size_change,
    f.unit_price_change
   FROM (public.analytics_run r
     JOIN public.analytics_shrinkflation_stats f ON ((f.run_id = r.id)));
CREATE VIEW analyst.report_shrinkflation AS
 SELECT refreshed_at,
    run_id,
    place,
    canonical_product_id,
    brand_id,
    category,
    dispensary_id,
    state,
    currency,
    stores,
    unit,
    larger,
    smaller,
    larger_price,
    smaller_price,
    larger_until,
    smaller_from,
    larger_product_id,
    smaller_product_id,
    size_change,
    unit_price_change
   FROM public.analytics_shrinkflation;
CREATE TABLE public.analytics_special_group_stats (
    run_id bigint NOT NULL,
    place integer NOT NULL,
    by text NOT NULL,
    all_states boolean NOT NULL,
    state text,
    dispensary_id integer,
    brand_id integer,
    brand text,
    category text,
    specials integer NOT NULL,
    genuine integer NOT NULL,
    doubtful integer NOT NULL,
    never_asked integer NOT NULL,
    unknown integer NOT NULL,
    never_asked_share numeric,
    score_median numeric,
    oldest_check_at timestamp with time zone NOT NULL,
    CONSTRAINT analytics_special_group_stats_by_check CHECK ((by = ANY (ARRAY['state'::text, 'store'::text, 'brand'::text, 'category'::text])))
);
CREATE VIEW public.analytics_special_groups AS
 SELECT r.refreshed_at,
    f.run_id,
    f.place,
    f.by,
    f.all_states,
    f.state,
    f.dispensary_id,
    f.brand_id,
    f.brand,
    f.category,
    f.specials,
    f.genuine,
    f.doubtful,
    f.never_asked,
    f.unknown,
    f.never_asked_share,
    f.score_median,
    f.oldest_check_at
   FROM (public.analytics_run r
     JOIN public.analytics_special_group_stats f ON ((f.run_id = r.id)));
CREATE VIEW analyst.report_special_groups AS
 SELECT refreshed_at,
    run_id,
    place,
    by,
    all_states,
    state,
    dispensary_id,
    brand_id,
    brand,
    category,
    specials,
    genuine,
    doubtful,
    never_asked,
    unknown,
    never_asked_share,
    score_median,
    oldest_check_at
   FROM public.analytics_special_groups;
CREATE TABLE public.analytics_special_stats (
    run_id bigint NOT NULL,
    place integer NOT NULL,
    product_id bigint NOT NULL,
    size text NOT NULL,
    dispensary_id integer NOT NULL,
    state text,
    category text,
    brand_id integer,
    brand text,
    price numeric NOT NULL,
    regular numeric NOT NULL,
    verdict text NOT NULL,
    score integer,
    usual numeric,
    observed_days numeric NOT NULL,
    began_at timestamp with time zone NOT NULL,
    observed_from timestamp with time zone,
    regular_until timestamp with time zone,
    checked_at timestamp with time zone NOT NULL
);
CREATE VIEW public.analytics_specials AS
 SELECT r.refreshed_at,
    f.run_id,
    f.place,
    f.product_id,
    f.size,
    f.dispensary_id,
    f.state,
    f.category,
    f.brand_id,
    f.brand,
    f.price,
    f.regular,
    f.verdict,
    f.score,
    f.usual,
    f.observed_days,
    f.began_at,
    f.observed_from,
    f.regular_until,
    f.checked_at,
    public.currency_of(f.state) AS currency
   FROM (public.analytics_run r
     JOIN public.analytics_special_stats f ON ((f.run_id = r.id)));
CREATE VIEW analyst.report_specials AS
 SELECT refreshed_at,
    run_id,
    place,
    product_id,
    size,
    dispensary_id,
    state,
    category,
    brand_id,
    brand,
    price,
    regular,
    verdict,
    score,
    usual,
    observed_days,
    began_at,
    observed_from,
    regular_until,
    checked_at,
    currency
   FROM public.analytics_specials;
CREATE TABLE public.analytics_store_stats (
    run_id bigint NOT NULL,
    dispensary_id integer NOT NULL,
    platform text NOT NULL,
    name text NOT NULL,
    state text,
    crawl_enabled boolean NOT NULL,
    interval_hours numeric NOT NULL,
    is_scheduled boolean NOT NULL,
    last_crawled_at timestamp with time zone,
    is_stale boolean NOT NULL,
    is_partial boolean NOT NULL,
    products integer,
    scheduled integer NOT NULL,
    succeeded integer NOT NULL,
    failed integer NOT NULL,
    quarantined integer NOT NULL,
    never_begun integer NOT NULL,
    undecided integer NOT NULL,
    observed_seconds double precision NOT NULL
);
CREATE VIEW public.analytics_stores AS
 SELECT r.refreshed_at,
    f.run_id,
    f.dispensary_id,
    f.platform,
    f.name,
    f.state,
    f.crawl_enabled,
    f.interval_hours,
    f.is_scheduled,
    f.last_crawled_at,
    f.is_stale,
    f.is_partial,
    f.products,
    f.scheduled,
    f.succeeded,
    f.failed,
    f.quarantined,
    f.never_begun,
    f.undecided,
    f.observed_seconds
   FROM (public.analytics_run r
     JOIN public.analytics_store_stats f ON ((f.run_id = r.id)));
CREATE VIEW analyst.report_stores AS
 SELECT refreshed_at,
    run_id,
    dispensary_id,
    platform,
    name,
    state,
    crawl_enabled,
    interval_hours,
    is_scheduled,
    last_crawled_at,
    is_stale,
    is_partial,
    products,
    scheduled,
    succeeded,
    failed,
    quarantined,
    never_begun,
    undecided,
    observed_seconds
   FROM public.analytics_stores;
CREATE VIEW public.product_states AS
 SELECT product_history.product_id,
    product_history.seen_from,
    product_history.seen_to,
    product_history.present,
    product_history.quantity_capped,
    product_history.quantity,
    product_history.stock_status,
    product_history.price_rec,
    product_history.price_rec_special,
    product_history.price_med,
    product_history.price_med_special,
    product_history.thc_lo,
    product_history.thc_hi,
    product_history.thc_unit,
    product_history.cbd_lo,
    product_history.cbd_hi,
    product_history.cbd_unit,
    (product_history.prices)::jsonb AS prices,
    (product_history.stock)::jsonb AS stock
   FROM public.product_history
UNION ALL
 SELECT catalog_products.id AS product_id,
    catalog_products.state_from AS seen_from,
    catalog_products.state_seen_to AS seen_to,
    catalog_products.present,
    catalog_products.quantity_capped,
    catalog_products.quantity,
    catalog_products.stock_status,
    catalog_products.price_rec,
    catalog_products.price_rec_special,
    catalog_products.price_med,
    catalog_products.price_med_special,
    catalog_products.thc_lo,
    catalog_products.thc_hi,
    catalog_products.thc_unit,
    catalog_products.cbd_lo,
    catalog_products.cbd_hi,
    catalog_products.cbd_unit,
    public.option_prices(catalog_products.variants) AS prices,
    public.option_stock(catalog_products.variants) AS stock
   FROM public.catalog_products;
CREATE VIEW public.store_product_snapshots AS
 SELECT s.product_id AS store_product_id,
    p.dispensary_id,
    p.provider,
    p.provider_product_id,
    c.crawled_at,
    c.payload_id,
    s.price_rec,
    s.price_rec_special,
    s.price_med,
    s.price_med_special,
    s.prices,
        CASE s.stock_status
            WHEN 'in_stock'::text THEN true
            WHEN 'oos'::text THEN false
            ELSE NULL::boolean
        END AS is_in_stock,
    s.stock_status,
    s.quantity,
    s.quantity_capped,
    s.stock,
    s.thc_lo,
    s.thc_hi,
    s.thc_unit,
    s.cbd_lo,
    s.cbd_hi,
    s.cbd_unit,
    s.seen_from AS state_since
   FROM ((public.product_states s
     JOIN public.catalog_products p ON ((p.id = s.product_id)))
     JOIN public.store_crawls c ON (((c.dispensary_id = p.dispensary_id) AND (c.crawled_at >= s.seen_from) AND ((s.seen_to IS NULL) OR (c.crawled_at <= s.seen_to)))))
  WHERE s.present;
CREATE VIEW analyst.snapshots AS
 SELECT s.crawled_at,
    s.payload_id,
    s.store_product_id AS product_id,
    s.dispensary_id,
    d.name AS store,
    d.state,
    s.provider,
    s.provider_product_id,
    p.name,
    p.brand_name,
    p.category_canon,
    s.price_rec,
    s.price_rec_special,
    s.price_med,
    s.price_med_special,
    s.is_in_stock,
    s.stock_status,
    s.quantity,
    s.quantity_capped,
    s.thc_lo,
    s.thc_hi,
    s.thc_unit,
    s.cbd_lo,
    s.cbd_hi,
    s.cbd_unit,
    s.prices,
    s.stock,
    s.state_since,
    i.canonical_product_id,
    i.brand_id,
    l.location_id
   FROM ((((public.store_product_snapshots s
     JOIN public.catalog_products p ON ((p.id = s.store_product_id)))
     JOIN public.dispensaries d ON ((d.id = s.dispensary_id)))
     LEFT JOIN public.product_identities i ON ((i.product_id = p.id)))
     LEFT JOIN public.store_locations l ON ((l.dispensary_id = s.dispensary_id)));
CREATE VIEW analyst.states AS
 SELECT s.seen_from,
    s.seen_to,
    s.present,
    s.product_id,
    p.dispensary_id,
    d.name AS store,
    d.state,
    p.provider,
    p.provider_product_id,
    p.name,
    p.brand_name,
    p.category_canon,
    s.price_rec,
    s.price_rec_special,
    s.price_med,
    s.price_med_special,
    s.stock_status,
    s.quantity,
    s.quantity_capped,
    s.thc_lo,
    s.thc_hi,
    s.thc_unit,
    s.cbd_lo,
    s.cbd_hi,
    s.cbd_unit,
    s.prices,
    s.stock,
    i.canonical_product_id,
    i.brand_id,
    l.location_id
   FROM ((((public.product_states s
     JOIN public.catalog_products p ON ((p.id = s.product_id)))
     JOIN public.dispensaries d ON ((d.id = p.dispensary_id)))
     LEFT JOIN public.product_identities i ON ((i.product_id = p.id)))
     LEFT JOIN public.store_locations l ON ((l.dispensary_id = p.dispensary_id)));
CREATE VIEW analyst.stores AS
 SELECT d.id AS dispensary_id,
    d.platform,
    d.platform_dispensary_id,
    d.slug,
    d.name,
    d.menu_url,
    d.address,
    d.city,
    d.state,
    d.country,
    d.zipcode,
    (d.latitude)::numeric AS latitude,
    (d.longitude)::numeric AS longitude,
    d.timezone,
    public.currency_of(d.state) AS currency,
    d.phone,
    d.is_recreational,
    d.is_medical,
    l.location_id,
    d.crawl_enabled,
    d.crawl_interval_hours,
    d.first_crawled_at,
    d.last_crawled_at,
    d.product_count
   FROM (public.dispensaries d
     LEFT JOIN public.store_locations l ON ((l.dispensary_id = d.id)));
CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.alert_channels (
    id integer NOT NULL,
    rule_id integer NOT NULL,
    kind text NOT NULL,
    address text NOT NULL,
    secret text,
    shown text NOT NULL,
    CONSTRAINT alert_channels_kind_check CHECK ((kind = ANY (ARRAY['webhook'::text, 'apprise'::text])))
);
ALTER TABLE public.alert_channels ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.alert_channels_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.alert_deliveries (
    id bigint NOT NULL,
    rule_id integer NOT NULL,
    channel_id integer,
    channel text NOT NULL,
    kind text DEFAULT 'alert'::text NOT NULL,
    key uuid DEFAULT gen_random_uuid() NOT NULL,
    event_ids bigint[] NOT NULL,
    payload jsonb NOT NULL,
    status text DEFAULT 'waiting'::text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    replays integer DEFAULT 0 NOT NULL,
    next_attempt_at timestamp with time zone,
    response_code integer,
    error text,
    tries jsonb DEFAULT '[]'::jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL,
    delivered_at timestamp with time zone,
    CONSTRAINT alert_deliveries_kind_check CHECK ((kind = ANY (ARRAY['alert'::text, 'test'::text]))),
    CONSTRAINT alert_deliveries_status_check CHECK ((status = ANY (ARRAY['waiting'::text, 'sending'::text, 'delivered'::text, 'failed'::text])))
);
ALTER TABLE public.alert_deliveries ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.alert_deliveries_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.alert_events (
    id bigint NOT NULL,
    rule_id integer NOT NULL,
    source text NOT NULL,
    product_id bigint,
    dispensary_id integer,
    fired_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone NOT NULL,
    notified boolean DEFAULT false NOT NULL,
    muted boolean DEFAULT false NOT NULL,
    facts jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.alert_events ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.alert_events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.alert_matches (
    rule_id integer NOT NULL,
    product_id bigint NOT NULL,
    dispensary_id integer NOT NULL,
    phase text NOT NULL,
    since timestamp with time zone,
    crawls integer DEFAULT 0 NOT NULL,
    reference numeric,
    fired_at timestamp with time zone,
    CONSTRAINT alert_matches_phase_check CHECK ((phase = ANY (ARRAY['armed'::text, 'pending'::text, 'fired'::text])))
)
WITH (fillfactor='80');
CREATE TABLE public.alert_rules (
    id integer NOT NULL,
    name text NOT NULL,
    condition text NOT NULL,
    reach text NOT NULL,
    product_id bigint,
    canonical_product_id bigint,
    dispensary_id integer,
    brand text,
    category text,
    search text,
    state text,
    platform text,
    latitude double precision,
    longitude double precision,
    miles double precision,
    amount numeric,
    percent numeric,
    option text,
    price text DEFAULT 'effective'::text NOT NULL,
    hysteresis_percent numeric DEFAULT 2 NOT NULL,
    debounce_crawls integer DEFAULT 1 NOT NULL,
    debounce_minutes integer DEFAULT 0 NOT NULL,
    cooldown_minutes integer DEFAULT 0 NOT NULL,
    digest text DEFAULT 'immediately'::text NOT NULL,
    digest_at time without time zone,
    timezone text DEFAULT 'UTC'::text NOT NULL,
    on_existing text DEFAULT 'skip'::text NOT NULL,
    enabled boolean DEFAULT true NOT NULL,
    armed_at timestamp with time zone NOT NULL,
    muted_until timestamp with time zone,
    holds boolean DEFAULT false NOT NULL,
    unlike_since timestamp with time zone,
    read_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT alert_rules_condition_check CHECK ((condition = ANY (ARRAY['price_below'::text, 'price_drops_by'::text, 'back_in_stock'::text, 'out_of_stock'::text, 'new_product'::text, 'circuit_opened'::text, 'proxies_down'::text, 'proxies_below'::text, 'no_worker'::text, 'backlog_age'::text, 'failure_rate'::text, 'stores_stale'::text, 'quarantined'::text, 'schema_drift'::text, 'disk_low'::text, 'backup_age'::text, 'coverage_below'::text, 'quality_findings'::text, 'new_category_words'::text]))),
    CONSTRAINT alert_rules_cooldown_minutes_check CHECK ((cooldown_minutes >= 0)),
    CONSTRAINT alert_rules_daily CHECK (((digest = 'daily'::text) = (digest_at IS NOT NULL))),
    CONSTRAINT alert_rules_debounce_crawls_check CHECK ((debounce_crawls >= 1)),
    CONSTRAINT alert_rules_debounce_minutes_check CHECK ((debounce_minutes >= 0)),
    CONSTRAINT alert_rules_digest_check CHECK ((digest = ANY (ARRAY['immediately'::text, 'hourly'::text, 'daily'::text]))),
    CONSTRAINT alert_rules_hysteresis_percent_check CHECK ((hysteresis_percent >= (0)::numeric)),
    CONSTRAINT alert_rules_name_check CHECK ((name <> ''::text)),
    CONSTRAINT alert_rules_near CHECK ((num_nulls(latitude, longitude, miles) = ANY (ARRAY[0, 3]))),
    CONSTRAINT alert_rules_on_existing_check CHECK ((on_existing = ANY (ARRAY['skip'::text, 'fire'::text]))),
    CONSTRAINT alert_rules_price_check CHECK ((price = ANY (ARRAY['effective'::text, 'rec'::text, 'special'::text, 'med'::text, 'med_special'::text]))),
    CONSTRAINT alert_rules_reach_check CHECK ((reach = ANY (ARRAY['product'::text, 'canonical_product'::text, 'brand'::text, 'category'::text, 'search'::text, 'store'::text, 'operations'::text])))
);
ALTER TABLE public.alert_rules ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.alert_rules_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE public.analytics_runs ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.analytics_runs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.api_tokens (
    id integer NOT NULL,
    user_id integer NOT NULL,
    name text NOT NULL,
    secret_hash bytea NOT NULL,
    scopes text[] NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone,
    last_used_at timestamp with time zone,
    revoked_at timestamp with time zone,
    CONSTRAINT api_tokens_name_check CHECK (((name <> ''::text) AND (length(name) <= 100))),
    CONSTRAINT api_tokens_scopes_check CHECK ((cardinality(scopes) > 0)),
    CONSTRAINT api_tokens_secret_hash_check CHECK ((octet_length(secret_hash) = 32))
);
ALTER TABLE public.api_tokens ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.api_tokens_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.app_secrets (
    name text NOT NULL,
    value bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT app_secrets_name_check CHECK ((name <> ''::text)),
    CONSTRAINT app_secrets_value_check CHECK ((octet_length(value) >= 16))
);
CREATE TABLE public.audit_log (
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    actor text NOT NULL,
    actor_kind text NOT NULL,
    user_id integer,
    token_id integer,
    via text NOT NULL,
    action text NOT NULL,
    subject_kind text,
    subject_id text,
    details jsonb DEFAULT '{}'::jsonb NOT NULL,
    request_id text,
    CONSTRAINT audit_log_actor_kind_check CHECK ((actor_kind = ANY (ARRAY['user'::text, 'token'::text, 'cli'::text]))),
    CONSTRAINT audit_log_via_check CHECK ((via = ANY (ARRAY['api'::text, 'dashboard'::text, 'cli'::text])))
);
ALTER TABLE public.audit_log ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.audit_log_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.backups (
    host text NOT NULL,
    folder text NOT NULL,
    backup text NOT NULL,
    made_at timestamp with time zone NOT NULL,
    rows bigint NOT NULL,
    files bigint NOT NULL,
    bytes bigint NOT NULL,
    missing integer NOT NULL,
    CONSTRAINT backups_bytes_check CHECK ((bytes >= 0)),
    CONSTRAINT backups_files_check CHECK ((files >= 0)),
    CONSTRAINT backups_missing_check CHECK ((missing >= 0)),
    CONSTRAINT backups_rows_check CHECK ((rows >= 0))
);
CREATE TABLE public.brand_aliases (
    alias text NOT NULL COLLATE pg_catalog."C",
    spelling text NOT NULL,
    brand_id integer NOT NULL,
    origin text NOT NULL,
    moved_from integer,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT brand_aliases_origin_check CHECK ((origin = ANY (ARRAY['spelling'::text, 'learned'::text, 'person'::text])))
);
ALTER TABLE public.brands ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.brands_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE VIEW public.canonical_product_brands AS
 SELECT c.id AS canonical_product_id,
    c.name,
    c.category,
        CASE
            WHEN (b.merged_into IS NULL) THEN b.id
            ELSE public.live_brand(b.id)
        END AS brand_id
   FROM (public.canonical_products c
     LEFT JOIN public.brands b ON ((b.id = c.brand_id)));
ALTER TABLE public.canonical_products ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.canonical_products_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.canonical_sizes (
    id bigint NOT NULL,
    canonical_product_id bigint NOT NULL,
    size text NOT NULL COLLATE pg_catalog."C"
);
ALTER TABLE public.canonical_sizes ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.canonical_sizes_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.catalog_names (
    name text NOT NULL
);
CREATE TABLE public.catalog_new_names (
    name text NOT NULL
);
ALTER TABLE public.catalog_products ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.catalog_products_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.catalog_totals (
    kind text NOT NULL,
    name text NOT NULL,
    products integer NOT NULL,
    in_stock integer NOT NULL,
    stores integer NOT NULL,
    CONSTRAINT catalog_totals_kind_check CHECK ((kind = ANY (ARRAY['brand'::text, 'category'::text])))
);
CREATE TABLE public.crawl_attempts (
    item_id bigint NOT NULL,
    attempt integer NOT NULL,
    job_id bigint NOT NULL,
    submitted_at timestamp with time zone NOT NULL,
    request_id text,
    ended_at timestamp with time zone,
    ok boolean,
    error text,
    path text
);
CREATE TABLE public.crawl_deliveries (
    id bigint NOT NULL,
    item_id bigint NOT NULL,
    attempt integer NOT NULL,
    received_at timestamp with time zone NOT NULL,
    visible_at timestamp with time zone NOT NULL,
    tries integer DEFAULT 0 NOT NULL,
    ok boolean NOT NULL,
    error text,
    html bytea,
    html_url text,
    request_id text
);
ALTER TABLE public.crawl_deliveries ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.crawl_deliveries_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.crawl_feed (
    dispensary_id integer NOT NULL,
    crawled_at timestamp with time zone NOT NULL,
    "position" bigint
);
CREATE TABLE public.crawl_fetches (
    id bigint NOT NULL,
    item_id bigint NOT NULL,
    attempt integer NOT NULL,
    reference text NOT NULL,
    url text NOT NULL,
    country text,
    visible_at timestamp with time zone NOT NULL
);
ALTER TABLE public.crawl_fetches ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.crawl_fetches_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.crawl_jobs (
    id bigint NOT NULL,
    site text NOT NULL,
    provider text NOT NULL,
    status text DEFAULT 'running'::text NOT NULL,
    keywords text[] NOT NULL,
    max_pages integer NOT NULL,
    country text,
    gap_min_seconds double precision DEFAULT 5 NOT NULL,
    gap_max_seconds double precision DEFAULT 15 NOT NULL,
    mixing_threshold integer DEFAULT 15 NOT NULL,
    max_retries integer DEFAULT 3 NOT NULL,
    retry_base_minutes double precision DEFAULT 15 NOT NULL,
    unthrottled_since timestamp with time zone,
    next_submit_after timestamp with time zone NOT NULL,
    submitting_until timestamp with time zone,
    next_submission_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    created_by text,
    completed_at timestamp with time zone,
    cancelled_at timestamp with time zone,
    CONSTRAINT crawl_jobs_check CHECK ((gap_max_seconds >= gap_min_seconds)),
    CONSTRAINT crawl_jobs_keywords_check CHECK ((cardinality(keywords) > 0)),
    CONSTRAINT crawl_jobs_looked_at CHECK (((status = 'running'::text) = (next_submission_at IS NOT NULL))),
    CONSTRAINT crawl_jobs_max_pages_check CHECK ((max_pages > 0)),
    CONSTRAINT crawl_jobs_status_check CHECK ((status = ANY (ARRAY['running'::text, 'completed'::text, 'cancelled'::text])))
);
ALTER TABLE public.crawl_jobs ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.crawl_jobs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE SEQUENCE public.crawl_positions
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE public.crawl_products (
    id bigint NOT NULL,
    job_id bigint NOT NULL,
    item_id bigint NOT NULL,
    site text NOT NULL,
    site_product_id text NOT NULL,
    keyword text NOT NULL,
    name text NOT NULL,
    url text NOT NULL,
    price_min numeric,
    price_max numeric,
    currency text NOT NULL,
    weight_g numeric,
    listed integer,
    score numeric NOT NULL,
    images text[] DEFAULT '{}'::text[] NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    CONSTRAINT crawl_products_score_check CHECK (((score >= (0)::numeric) AND (score <= (100)::numeric)))
);
ALTER TABLE public.crawl_products ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.crawl_products_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.crawl_queue (
    id bigint NOT NULL,
    job_id bigint NOT NULL,
    url text NOT NULL,
    url_type text NOT NULL,
    keyword text NOT NULL,
    page integer,
    priority smallint DEFAULT 2 NOT NULL,
    status text DEFAULT 'pending'::text NOT NULL,
    retry_count integer DEFAULT 0 NOT NULL,
    attempt integer DEFAULT 0 NOT NULL,
    next_attempt_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    submitted_at timestamp with time zone,
    deadline_at timestamp with time zone,
    completed_at timestamp with time zone,
    error_message text,
    parent_id bigint,
    new_urls integer,
    removed boolean DEFAULT false NOT NULL,
    CONSTRAINT crawl_queue_deadline CHECK (((status = 'submitted'::text) = (deadline_at IS NOT NULL))),
    CONSTRAINT crawl_queue_ended CHECK (((status = ANY (ARRAY['completed'::text, 'failed'::text])) = (completed_at IS NOT NULL))),
    CONSTRAINT crawl_queue_priority_check CHECK ((priority = ANY (ARRAY[1, 2]))),
    CONSTRAINT crawl_queue_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'submitted'::text, 'completed'::text, 'failed'::text]))),
    CONSTRAINT crawl_queue_url_check CHECK (((octet_length(url) >= 1) AND (octet_length(url) <= 2000))),
    CONSTRAINT crawl_queue_url_type_check CHECK ((url_type = ANY (ARRAY['search'::text, 'pagination'::text, 'product'::text])))
);
ALTER TABLE public.crawl_queue ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.crawl_queue_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.crawl_variants (
    product_id bigint NOT NULL,
    variant_id text NOT NULL,
    place integer NOT NULL,
    sku text,
    name text,
    price numeric,
    weight_g numeric
);
CREATE TABLE public.disk_readings (
    machine text NOT NULL,
    place text NOT NULL,
    free_bytes bigint NOT NULL,
    read_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT disk_readings_free_bytes_check CHECK ((free_bytes >= 0)),
    CONSTRAINT disk_readings_machine_check CHECK ((machine <> ''::text))
);
ALTER TABLE public.dispensaries ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.dispensaries_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.dutchie_discovery_locations (
    id integer NOT NULL,
    platform text DEFAULT 'dutchie'::text NOT NULL,
    platform_dispensary_id text NOT NULL,
    slug text NOT NULL,
    name text NOT NULL,
    city text,
    state text,
    country text,
    status text DEFAULT 'found'::text NOT NULL,
    reason text,
    dispensary_id integer,
    raw jsonb NOT NULL,
    first_seen_at timestamp with time zone DEFAULT now() NOT NULL,
    last_seen_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT discovery_reason CHECK (((status = 'rejected'::text) = (reason IS NOT NULL))),
    CONSTRAINT dutchie_discovery_locations_status_check CHECK ((status = ANY (ARRAY['found'::text, 'promoted'::text, 'rejected'::text])))
);
ALTER TABLE public.dutchie_discovery_locations ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.dutchie_discovery_locations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.failure_mutes (
    cause text NOT NULL,
    role text NOT NULL,
    platform text NOT NULL,
    reason text NOT NULL,
    until timestamp with time zone,
    muted_by text NOT NULL,
    muted_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT failure_mutes_cause_check CHECK ((cause <> ''::text)),
    CONSTRAINT failure_mutes_reason_check CHECK (((length(reason) >= 1) AND (length(reason) <= 500)))
);
CREATE TABLE public.fetch_attempts (
    id bigint NOT NULL,
    task_id bigint,
    dispensary_id integer,
    host text NOT NULL,
    proxy_id integer,
    profile text,
    verdict text NOT NULL,
    blame text NOT NULL,
    reaction text NOT NULL,
    status integer,
    rotated boolean DEFAULT false NOT NULL,
    waited_ms double precision DEFAULT 0 NOT NULL,
    bytes bigint DEFAULT 0 NOT NULL,
    elapsed_ms double precision DEFAULT 0 NOT NULL,
    error text,
    attempted_at timestamp with time zone DEFAULT now() NOT NULL,
    task_attempt integer
)
PARTITION BY RANGE (attempted_at);
CREATE TABLE public.fetch_attempts_20261101 (
    id bigint CONSTRAINT fetch_attempts_id_not_null NOT NULL,
    task_id bigint,
    dispensary_id integer,
    host text CONSTRAINT fetch_attempts_host_not_null NOT NULL,
    proxy_id integer,
    profile text,
    verdict text CONSTRAINT fetch_attempts_verdict_not_null NOT NULL,
    blame text CONSTRAINT fetch_attempts_blame_not_null NOT NULL,
    reaction text CONSTRAINT fetch_attempts_reaction_not_null NOT NULL,
    status integer,
    rotated boolean DEFAULT false CONSTRAINT fetch_attempts_rotated_not_null NOT NULL,
    waited_ms double precision DEFAULT 0 CONSTRAINT fetch_attempts_waited_ms_not_null NOT NULL,
    bytes bigint DEFAULT 0 CONSTRAINT fetch_attempts_bytes_not_null NOT NULL,
    elapsed_ms double precision DEFAULT 0 CONSTRAINT fetch_attempts_elapsed_ms_not_null NOT NULL,
    error text,
    attempted_at timestamp with time zone DEFAULT now() CONSTRAINT fetch_attempts_attempted_at_not_null NOT NULL,
    task_attempt integer
);
ALTER TABLE public.fetch_attempts ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.fetch_attempts_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.fetch_totals (
    host text NOT NULL,
    verdict text NOT NULL,
    requests bigint NOT NULL,
    rotations bigint NOT NULL,
    bytes bigint NOT NULL,
    waited_ms double precision NOT NULL,
    elapsed_ms double precision NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='500');
CREATE TABLE public.gone_options (
    product_id bigint NOT NULL,
    option text NOT NULL,
    regular numeric,
    seen_to timestamp with time zone NOT NULL
);
CREATE TABLE public.history_revisions (
    dispensary_id integer NOT NULL,
    month date NOT NULL,
    revision uuid NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE public.host_events (
    id bigint NOT NULL,
    host text NOT NULL,
    kind text NOT NULL,
    reason text NOT NULL,
    until timestamp with time zone,
    happened_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT host_events_kind_check CHECK ((kind = ANY (ARRAY['cooldown'::text, 'rate_reduced'::text, 'circuit_opened'::text, 'circuit_closed'::text, 'changed'::text, 'robots'::text])))
);
ALTER TABLE public.host_events ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.host_events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.idempotency_keys (
    actor text NOT NULL,
    key text NOT NULL,
    fingerprint bytea NOT NULL,
    claim uuid NOT NULL,
    status smallint,
    headers jsonb,
    body bytea,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT idempotency_keys_check CHECK ((((status IS NULL) = (headers IS NULL)) AND ((status IS NULL) = (body IS NULL)))),
    CONSTRAINT idempotency_keys_fingerprint_check CHECK ((octet_length(fingerprint) = 32)),
    CONSTRAINT idempotency_keys_key_check CHECK (((length(key) >= 1) AND (length(key) <= 255)))
);
CREATE TABLE public.identity_leases (
    id bigint NOT NULL,
    host text NOT NULL,
    proxy_id integer NOT NULL,
    task_id bigint,
    leased_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='500');
ALTER TABLE public.identity_leases ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.identity_leases_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.image_references (
    id bigint NOT NULL,
    product_id bigint,
    brand text,
    url text NOT NULL,
    status text DEFAULT 'queued'::text NOT NULL,
    url_id bigint,
    path text,
    error text,
    queued_at timestamp with time zone DEFAULT now() NOT NULL,
    settled_at timestamp with time zone,
    CONSTRAINT image_references_brand_check CHECK ((brand ~ '^[a-z0-9-]{1,80}$'::text)),
    CONSTRAINT image_references_known CHECK (((status = ANY (ARRAY['queued'::text, 'failed'::text])) OR (url_id IS NOT NULL))),
    CONSTRAINT image_references_status_check CHECK ((status = ANY (ARRAY['queued'::text, 'waiting'::text, 'stored'::text, 'failed'::text]))),
    CONSTRAINT image_references_stored CHECK (((status = 'stored'::text) = (path IS NOT NULL))),
    CONSTRAINT image_references_whose CHECK ((num_nonnulls(product_id, brand) = 1))
);
ALTER TABLE public.image_references ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.image_references_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.image_urls (
    id bigint NOT NULL,
    url text NOT NULL,
    host text NOT NULL,
    status text DEFAULT 'waiting'::text NOT NULL,
    attempts smallint DEFAULT 0 NOT NULL,
    due_at timestamp with time zone DEFAULT now(),
    tried_at timestamp with time zone,
    error text,
    sha256 bytea,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT image_urls_status_check CHECK ((status = ANY (ARRAY['waiting'::text, 'stored'::text, 'failed'::text]))),
    CONSTRAINT image_urls_stored CHECK (((status = 'stored'::text) = (sha256 IS NOT NULL))),
    CONSTRAINT image_urls_url_check CHECK (((octet_length(url) >= 1) AND (octet_length(url) <= 2000)))
);
ALTER TABLE public.image_urls ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.image_urls_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.images (
    sha256 bytea NOT NULL,
    path text NOT NULL,
    width integer NOT NULL,
    height integer NOT NULL,
    bytes integer NOT NULL,
    source_format text NOT NULL,
    source_bytes integer NOT NULL,
    colour text NOT NULL,
    first_seen_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT images_bytes_check CHECK ((bytes > 0)),
    CONSTRAINT images_height_check CHECK ((height > 0)),
    CONSTRAINT images_sha256_check CHECK ((octet_length(sha256) = 32)),
    CONSTRAINT images_source_bytes_check CHECK ((source_bytes > 0)),
    CONSTRAINT images_width_check CHECK ((width > 0))
);
CREATE TABLE public.licences (
    id integer NOT NULL,
    state text NOT NULL,
    number text NOT NULL COLLATE pg_catalog."C",
    holder text NOT NULL,
    trade_name text,
    kind text,
    status text,
    operating boolean,
    address text,
    city text,
    zipcode text,
    latitude double precision,
    longitude double precision,
    phone text,
    issued_on date,
    expires_on date,
    imported_at timestamp with time zone DEFAULT now() NOT NULL,
    gone_at timestamp with time zone
);
ALTER TABLE public.licences ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.licences_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE VIEW public.live_tasks AS
 SELECT t.id,
    t.created_at,
    t.updated_at,
    t.scheduled_for,
    t.claimed_at,
    t.started_at,
    t.last_heartbeat_at,
    t.dispensary_id,
    t.priority,
    t.attempt,
    t.retry_count,
    t.max_retries,
    t.postpone_count,
    t.uniq,
    t.aged,
    t.state,
    t.role,
    t.platform,
    t.worker_id,
    t.error_message,
    t.postpone_code,
    t.postpone_host,
    t.payload,
    t.result,
    t.earlier_attempts,
    b.host AS blocked_by,
        CASE
            WHEN (t.state = 'a'::"char") THEN NULL::text
            WHEN (b.host IS NOT NULL) THEN 'blocked'::text
            WHEN ((t.state = 's'::"char") AND (t.scheduled_for > now())) THEN 'scheduled'::text
            ELSE 'ready'::text
        END AS wait_state
   FROM ((public.task_live t
     CROSS JOIN LATERAL ( SELECT ( SELECT public.blocked_hosts() AS blocked_hosts) AS blocked) x)
     CROSS JOIN LATERAL ( SELECT
                CASE
                    WHEN ((x.blocked IS NULL) OR (t.state = 'a'::"char")) THEN NULL::text
                    WHEN ((t.state = 's'::"char") AND (t.scheduled_for > now())) THEN
                    CASE
                        WHEN ((x.blocked -> 'hosts'::text) ? t.postpone_host) THEN t.postpone_host
                        ELSE NULL::text
                    END
                    WHEN (t.role = ANY (ARRAY['store_discovery'::text, 'entry_point_discovery'::text, 'product_discovery'::text, 'payload_fetch'::text])) THEN ((x.blocked -> 'platforms'::text) ->> t.platform)
                    ELSE NULL::text
                END AS host) b);
CREATE TABLE public.location_events (
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    location_id integer NOT NULL,
    kind text NOT NULL,
    before text,
    after text,
    other_id integer,
    made_by text,
    CONSTRAINT location_events_kind_check CHECK ((kind = ANY (ARRAY['moved'::text, 'renamed'::text, 'merged'::text, 'split'::text, 'ended'::text, 'returned'::text])))
);
ALTER TABLE public.location_events ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.location_events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE VIEW public.location_menus AS
 SELECT l.location_id,
    l.dispensary_id,
    (row_number() OVER (PARTITION BY l.location_id ORDER BY d.crawl_enabled DESC, (d.product_count > 0) DESC NULLS LAST, d.last_crawled_at DESC NULLS LAST, d.id) = 1) AS preferred
   FROM (public.location_links l
     JOIN public.dispensaries d ON ((d.id = l.dispensary_id)));
CREATE TABLE public.location_refusals (
    location_id integer NOT NULL,
    dispensary_id integer,
    licence_id integer,
    decided_by text NOT NULL,
    decided_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT location_refusals_one CHECK ((num_nonnulls(dispensary_id, licence_id) = 1))
);
ALTER TABLE public.locations ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.locations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.log_lines (
    worker_id text NOT NULL,
    seq bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    level text NOT NULL,
    action text,
    message text NOT NULL,
    task_id bigint,
    attempt integer,
    details json DEFAULT '{}'::json NOT NULL,
    dropped integer DEFAULT 0 NOT NULL,
    dropped_since timestamp with time zone,
    CONSTRAINT log_lines_dropped CHECK (((dropped > 0) = (dropped_since IS NOT NULL)))
);
CREATE UNLOGGED TABLE public.login_failures (
    kind text NOT NULL,
    key bytea NOT NULL,
    failures integer NOT NULL,
    failed_at timestamp with time zone NOT NULL,
    CONSTRAINT login_failures_failures_check CHECK ((failures > 0)),
    CONSTRAINT login_failures_key_check CHECK ((octet_length(key) = 32)),
    CONSTRAINT login_failures_kind_check CHECK ((kind = ANY (ARRAY['user'::text, 'address'::text])))
);
CREATE TABLE public.maintenance_runs (
    job text NOT NULL,
    succeeded_at timestamp with time zone,
    attempted_at timestamp with time zone,
    error text,
    duration interval,
    CONSTRAINT maintenance_runs_job_check CHECK ((job <> ''::text))
);
CREATE TABLE public.match_corrections (
    id bigint NOT NULL,
    same boolean NOT NULL,
    a_key uuid NOT NULL,
    b_key uuid NOT NULL,
    a json NOT NULL,
    b json NOT NULL,
    note text,
    made_by text NOT NULL,
    made_at timestamp with time zone DEFAULT now() NOT NULL,
    withdrawn_at timestamp with time zone,
    withdrawn_by text,
    CONSTRAINT match_corrections_order CHECK ((a_key < b_key)),
    CONSTRAINT match_corrections_withdrawn CHECK (((withdrawn_by IS NULL) OR (withdrawn_at IS NOT NULL)))
);
ALTER TABLE public.match_corrections ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.match_corrections_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.match_dirty_blocks (
    block text NOT NULL COLLATE pg_catalog."C",
    cause text DEFAULT 'correction'::text NOT NULL,
    CONSTRAINT match_dirty_blocks_cause_check CHECK ((cause = ANY (ARRAY['menu'::text, 'correction'::text, 'rules'::text])))
);
ALTER TABLE public.match_events ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.match_events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.match_reviews (
    a bigint NOT NULL,
    b bigint NOT NULL,
    confidence double precision NOT NULL,
    together boolean NOT NULL,
    impact integer NOT NULL,
    reasons json NOT NULL,
    skipped_at timestamp with time zone,
    CONSTRAINT match_reviews_order CHECK ((a < b))
);
ALTER TABLE public.match_signatures ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.match_signatures_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.match_stores (
    dispensary_id integer NOT NULL,
    crawled_at timestamp with time zone NOT NULL,
    rules_version integer NOT NULL,
    matched_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.pod_scale_request (
    singleton boolean DEFAULT true NOT NULL,
    desired integer,
    requested_at timestamp with time zone,
    checked_at timestamp with time zone,
    error text,
    CONSTRAINT pod_scale_request_check CHECK ((num_nulls(desired, requested_at) = ANY (ARRAY[0, 2]))),
    CONSTRAINT pod_scale_request_check1 CHECK (((error IS NULL) OR (desired IS NOT NULL))),
    CONSTRAINT pod_scale_request_desired_check CHECK ((desired >= 0)),
    CONSTRAINT pod_scale_request_singleton_check CHECK (singleton)
)
WITH (fillfactor='10');
CREATE TABLE public.price_index_items (
    product_id bigint NOT NULL,
    option text NOT NULL,
    price double precision NOT NULL,
    day date
)
WITH (fillfactor='80');
CREATE TABLE public.price_index_stores (
    dispensary_id integer NOT NULL,
    day date NOT NULL,
    crawled_at timestamp with time zone NOT NULL
);
CREATE TABLE public.price_watch_events (
    id bigint NOT NULL,
    watch_id bigint NOT NULL,
    happened_at timestamp with time zone NOT NULL,
    facts jsonb NOT NULL,
    notified boolean DEFAULT false NOT NULL
);
ALTER TABLE public.price_watch_events ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.price_watch_events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.price_watches (
    id bigint NOT NULL,
    token_hash bytea NOT NULL,
    channel text NOT NULL,
    address text,
    token text,
    address_mark bytea,
    subject text NOT NULL,
    item_id bigint,
    brand_id integer,
    search_id bigint,
    size text,
    store_id integer,
    place text,
    latitude double precision,
    longitude double precision,
    miles integer,
    condition text NOT NULL,
    currency text NOT NULL,
    amount numeric,
    phase text NOT NULL,
    reference numeric,
    fired_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    confirmed_at timestamp with time zone,
    due_at timestamp with time zone,
    sent_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    ends_at timestamp with time zone,
    CONSTRAINT price_watches_address CHECK ((((channel <> 'feed'::text) = (address IS NOT NULL)) AND ((channel <> 'feed'::text) = (token IS NOT NULL)) AND ((channel <> 'feed'::text) = (address_mark IS NOT NULL)))),
    CONSTRAINT price_watches_amount CHECK (((condition = 'price_below'::text) = (amount IS NOT NULL))),
    CONSTRAINT price_watches_channel_check CHECK ((channel = ANY (ARRAY['feed'::text, 'mail'::text, 'ntfy'::text, 'push'::text]))),
    CONSTRAINT price_watches_condition_check CHECK ((condition = ANY (ARRAY['any_drop'::text, 'price_below'::text, 'back_in_stock'::text, 'new_deal'::text, 'new_product'::text]))),
    CONSTRAINT price_watches_currency_check CHECK ((currency = ANY (ARRAY['USD'::text, 'CAD'::text]))),
    CONSTRAINT price_watches_ends CHECK (((channel = 'mail'::text) = (ends_at IS NULL))),
    CONSTRAINT price_watches_phase_check CHECK ((phase = ANY (ARRAY['armed'::text, 'pending'::text, 'fired'::text]))),
    CONSTRAINT price_watches_place CHECK (((num_nulls(place, latitude, longitude, miles) = ANY (ARRAY[0, 4])) AND ((store_id IS NULL) OR (place IS NULL)))),
    CONSTRAINT price_watches_subject CHECK ((((subject = 'item'::text) = (item_id IS NOT NULL)) AND ((subject = 'brand'::text) = (brand_id IS NOT NULL)) AND ((subject = 'search'::text) = (search_id IS NOT NULL)) AND ((subject <> 'store'::text) OR (store_id IS NOT NULL)))),
    CONSTRAINT price_watches_subject_check CHECK ((subject = ANY (ARRAY['item'::text, 'brand'::text, 'search'::text, 'store'::text]))),
    CONSTRAINT price_watches_token_hash_check CHECK ((octet_length(token_hash) = 32))
);
ALTER TABLE public.price_watches ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.price_watches_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.product_detail_history_2026_11 (
    product_id bigint CONSTRAINT product_detail_history_product_id_not_null NOT NULL,
    seen_from timestamp with time zone CONSTRAINT product_detail_history_seen_from_not_null NOT NULL,
    ended_at timestamp with time zone CONSTRAINT product_detail_history_ended_at_not_null NOT NULL,
    quantity_sold bigint,
    details_kept boolean CONSTRAINT product_detail_history_details_kept_not_null NOT NULL,
    batch json,
    cannabinoids json,
    terpenes json,
    CONSTRAINT product_detail_history_kept CHECK (((NOT details_kept) OR ((batch IS NULL) AND (cannabinoids IS NULL) AND (terpenes IS NULL)))),
    CONSTRAINT product_detail_history_span CHECK ((ended_at > seen_from))
);
CREATE TABLE public.product_history_2026_11 (
    product_id bigint CONSTRAINT product_history_product_id_not_null NOT NULL,
    seen_from timestamp with time zone CONSTRAINT product_history_seen_from_not_null NOT NULL,
    seen_to timestamp with time zone CONSTRAINT product_history_seen_to_not_null NOT NULL,
    ended_at timestamp with time zone CONSTRAINT product_history_ended_at_not_null NOT NULL,
    dispensary_id integer CONSTRAINT product_history_dispensary_id_not_null NOT NULL,
    quantity integer,
    present boolean CONSTRAINT product_history_present_not_null NOT NULL,
    quantity_capped boolean CONSTRAINT product_history_quantity_capped_not_null NOT NULL,
    stock_status text CONSTRAINT product_history_stock_status_not_null NOT NULL,
    price_rec numeric,
    price_rec_special numeric,
    price_med numeric,
    price_med_special numeric,
    thc_lo numeric,
    thc_hi numeric,
    thc_unit text,
    cbd_lo numeric,
    cbd_hi numeric,
    cbd_unit text,
    prices json CONSTRAINT product_history_prices_not_null NOT NULL,
    stock json CONSTRAINT product_history_stock_not_null NOT NULL,
    CONSTRAINT product_history_span CHECK (((seen_to >= seen_from) AND (ended_at > seen_to)))
);
CREATE TABLE public.profile_scores (
    host text NOT NULL,
    profile text NOT NULL,
    good double precision NOT NULL,
    bad double precision NOT NULL,
    as_of timestamp with time zone NOT NULL
)
WITH (fillfactor='70');
CREATE TABLE public.proxies (
    id integer NOT NULL,
    protocol text DEFAULT 'http'::text NOT NULL,
    host text NOT NULL,
    port integer NOT NULL,
    username text,
    password text,
    is_active boolean DEFAULT true NOT NULL,
    city text,
    state text,
    country text,
    timezone text,
    last_used_at timestamp with time zone,
    failure_count integer DEFAULT 0 NOT NULL,
    success_count bigint DEFAULT 0 NOT NULL,
    consecutive_403_count integer DEFAULT 0 NOT NULL,
    avg_response_time_ms double precision,
    last_failure_at timestamp with time zone,
    last_error text,
    deactivated_at timestamp with time zone,
    disabled_at timestamp with time zone,
    disabled_reason text,
    probe_at timestamp with time zone,
    probe_failures integer DEFAULT 0 NOT NULL,
    probe_state text,
    tags text[] DEFAULT '{}'::text[] NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT proxies_disabled CHECK ((((disabled_at IS NULL) = (disabled_reason IS NULL)) AND ((disabled_at IS NULL) OR (NOT is_active)))),
    CONSTRAINT proxies_host_check CHECK ((host <> ''::text)),
    CONSTRAINT proxies_port_check CHECK (((port >= 1) AND (port <= 65535))),
    CONSTRAINT proxies_probe_state_check CHECK ((probe_state = ANY (ARRAY['untested'::text, 'failed'::text]))),
    CONSTRAINT proxies_protocol_check CHECK ((protocol = ANY (ARRAY['http'::text, 'https'::text, 'socks5'::text])))
);
ALTER TABLE public.proxies ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.proxies_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.proxy_scores (
    host text NOT NULL,
    proxy_id integer NOT NULL,
    good double precision NOT NULL,
    bad double precision NOT NULL,
    as_of timestamp with time zone NOT NULL
)
WITH (fillfactor='70');
CREATE TABLE public.quality_audits (
    id bigint NOT NULL,
    audited_at timestamp with time zone DEFAULT now() NOT NULL,
    dispensary_id integer NOT NULL,
    product_id bigint NOT NULL,
    payload_id bigint NOT NULL,
    field text NOT NULL,
    value text NOT NULL,
    found text,
    result text NOT NULL,
    detail text,
    page integer,
    item_offset bigint,
    item_length bigint,
    CONSTRAINT quality_audits_result_check CHECK ((result = ANY (ARRAY['equal'::text, 'different'::text, 'not_found'::text, 'unreadable'::text])))
);
ALTER TABLE public.quality_audits ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.quality_audits_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.quality_category_words (
    platform text NOT NULL,
    word text NOT NULL,
    category text,
    dispensary_id integer,
    first_seen_at timestamp with time zone NOT NULL,
    is_event boolean NOT NULL
);
ALTER TABLE public.quality_findings ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.quality_findings_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.quality_points_of_sale (
    dispensary_id integer NOT NULL,
    name text NOT NULL
);
CREATE TABLE public.quality_rules (
    id integer NOT NULL,
    measure text NOT NULL,
    condition text NOT NULL,
    amount double precision,
    severity text,
    platform text,
    dispensary_id integer,
    note text,
    created_by text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT quality_rules_amount CHECK ((((condition = 'ignore'::text) = (amount IS NULL)) AND ((condition = 'ignore'::text) = (severity IS NULL)))),
    CONSTRAINT quality_rules_condition_check CHECK ((condition = ANY (ARRAY['above'::text, 'below'::text, 'ignore'::text]))),
    CONSTRAINT quality_rules_severity_check CHECK ((severity = ANY (ARRAY['critical'::text, 'warning'::text, 'info'::text])))
);
ALTER TABLE public.quality_rules ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.quality_rules_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.queue_settings (
    singleton boolean DEFAULT true NOT NULL,
    stale_after interval DEFAULT '00:10:00'::interval NOT NULL,
    retry_base interval DEFAULT '00:00:30'::interval NOT NULL,
    platform_hosts jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT queue_settings_platform_hosts_check CHECK ((jsonb_typeof(platform_hosts) = 'object'::text)),
    CONSTRAINT queue_settings_retry_base_check CHECK ((retry_base >= '00:00:00'::interval)),
    CONSTRAINT queue_settings_singleton_check CHECK (singleton),
    CONSTRAINT queue_settings_stale_after_check CHECK ((stale_after > '00:00:00'::interval))
);
CREATE TABLE public.raw_crawl_payloads (
    id bigint NOT NULL,
    task_id bigint,
    dispensary_id integer NOT NULL,
    platform text NOT NULL,
    status text NOT NULL,
    reason text,
    product_count integer DEFAULT 0 NOT NULL,
    total_count integer,
    page_count integer DEFAULT 0 NOT NULL,
    is_first boolean DEFAULT false NOT NULL,
    is_partial boolean DEFAULT false NOT NULL,
    fetched_at timestamp with time zone NOT NULL,
    path text NOT NULL,
    bytes bigint NOT NULL,
    raw_bytes bigint NOT NULL,
    sha256 text NOT NULL,
    content_sha256 text NOT NULL,
    notes jsonb DEFAULT '[]'::jsonb NOT NULL,
    applied_at timestamp with time zone,
    released_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT payload_applied CHECK (((applied_at IS NULL) OR (status = 'ok'::text))),
    CONSTRAINT payload_reason CHECK (((status = 'ok'::text) OR (reason IS NOT NULL))),
    CONSTRAINT raw_crawl_payloads_product_count_check CHECK ((product_count >= 0)),
    CONSTRAINT raw_crawl_payloads_status_check CHECK ((status = ANY (ARRAY['ok'::text, 'partial'::text, 'quarantined'::text, 'rejected'::text])))
);
ALTER TABLE public.raw_crawl_payloads ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.raw_crawl_payloads_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.resync_plan (
    day date NOT NULL,
    dispensary_id integer NOT NULL,
    scheduled_for timestamp with time zone NOT NULL,
    task_id bigint
);
CREATE TABLE public.retention_clock (
    singleton boolean DEFAULT true NOT NULL,
    trusted_at timestamp with time zone NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    ran interval DEFAULT '00:00:00'::interval NOT NULL,
    CONSTRAINT retention_clock_singleton_check CHECK (singleton)
);
CREATE TABLE public.saved_views (
    id bigint NOT NULL,
    owner text NOT NULL,
    screen text NOT NULL,
    name text NOT NULL,
    query text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT saved_views_name_check CHECK (((length(name) >= 1) AND (length(name) <= 80))),
    CONSTRAINT saved_views_query_check CHECK ((length(query) <= 2000)),
    CONSTRAINT saved_views_screen_check CHECK (((length(screen) >= 1) AND (length(screen) <= 64)))
);
ALTER TABLE public.saved_views ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.saved_views_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.schedule_runs (
    schedule_id integer NOT NULL,
    fire_at timestamp with time zone NOT NULL,
    ran_at timestamp with time zone NOT NULL,
    task_count integer DEFAULT 0 NOT NULL,
    error text,
    CONSTRAINT schedule_runs_task_count_check CHECK ((task_count >= 0))
);
CREATE TABLE public.sessions (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    user_id integer NOT NULL,
    secret_hash bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    seen_at timestamp with time zone DEFAULT now() NOT NULL,
    idle_seconds integer NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT sessions_idle_seconds_check CHECK ((idle_seconds > 0)),
    CONSTRAINT sessions_secret_hash_check CHECK ((octet_length(secret_hash) = 32))
);
CREATE TABLE public.special_check_stores (
    dispensary_id integer NOT NULL,
    checked_at timestamp with time zone NOT NULL
);
CREATE TABLE public.special_checks (
    product_id bigint NOT NULL,
    size text NOT NULL,
    dispensary_id integer NOT NULL,
    price numeric NOT NULL,
    regular numeric NOT NULL,
    verdict text NOT NULL,
    score integer,
    usual numeric,
    observed_days numeric NOT NULL,
    began_at timestamp with time zone NOT NULL,
    observed_from timestamp with time zone,
    regular_until timestamp with time zone,
    CONSTRAINT special_checks_score_check CHECK (((score >= 0) AND (score <= 100))),
    CONSTRAINT special_checks_verdict_check CHECK ((verdict = ANY (ARRAY['genuine'::text, 'doubtful'::text, 'never_asked'::text, 'unknown'::text])))
);
CREATE TABLE public.storefront_deals (
    product_id bigint NOT NULL,
    size text NOT NULL,
    store_id integer NOT NULL,
    price integer NOT NULL,
    regular integer NOT NULL,
    percent integer NOT NULL,
    medical boolean NOT NULL,
    special text,
    ends integer,
    began integer NOT NULL,
    observed_from timestamp with time zone NOT NULL,
    offered_until timestamp with time zone,
    lower_until timestamp with time zone
);
CREATE TABLE public.storefront_dirty_items (
    item_id bigint NOT NULL
);
CREATE TABLE public.storefront_dirty_products (
    canonical_product_id bigint NOT NULL
);
CREATE TABLE public.storefront_dirty_stores (
    dispensary_id integer NOT NULL
);
CREATE TABLE public.storefront_former_offers (
    store_id integer NOT NULL,
    product_id bigint NOT NULL,
    size text NOT NULL COLLATE pg_catalog."C",
    listed boolean NOT NULL,
    price integer,
    regular integer,
    in_stock boolean
);
CREATE TABLE public.storefront_item_sizes (
    item_id bigint NOT NULL,
    size text NOT NULL COLLATE pg_catalog."C",
    size_rank integer NOT NULL,
    stores integer NOT NULL,
    in_stock integer NOT NULL,
    price integer,
    per_gram integer,
    per_dose integer,
    special_price integer,
    special_per_gram integer,
    special_per_dose integer
);
CREATE TABLE public.storefront_item_words (
    item_id bigint NOT NULL,
    words tsvector NOT NULL
);
CREATE TABLE public.storefront_items (
    id bigint NOT NULL,
    name text NOT NULL,
    brand_id integer,
    category text NOT NULL COLLATE pg_catalog."C",
    subcategory text,
    strain text COLLATE pg_catalog."C",
    stores integer DEFAULT 0 NOT NULL,
    in_stock integer DEFAULT 0 NOT NULL,
    price integer,
    per_gram integer,
    per_dose integer,
    thc integer,
    on_special boolean DEFAULT false NOT NULL,
    popularity integer DEFAULT 0 NOT NULL,
    sizes text[] DEFAULT '{}'::text[] NOT NULL,
    first_seen integer NOT NULL,
    changed_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.storefront_offers (
    product_id bigint NOT NULL,
    size text NOT NULL COLLATE pg_catalog."C",
    size_rank integer NOT NULL,
    from_name boolean NOT NULL,
    store_id integer NOT NULL,
    location_key integer NOT NULL,
    item_id bigint NOT NULL,
    source_version bigint NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    first_seen integer NOT NULL,
    price integer,
    regular integer,
    previous_price integer,
    per_gram integer,
    per_dose integer,
    thc integer,
    brand_id integer,
    in_stock boolean,
    category text NOT NULL COLLATE pg_catalog."C",
    strain text COLLATE pg_catalog."C"
);
CREATE TABLE public.storefront_promotions (
    store_id integer NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    products integer NOT NULL,
    of_products integer NOT NULL,
    value numeric,
    required_quantity integer,
    reward_quantity integer,
    ends_at timestamp with time zone
);
CREATE TABLE public.storefront_spellings (
    spelling text NOT NULL COLLATE pg_catalog."C",
    word text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.storefront_stores (
    dispensary_id integer NOT NULL,
    crawled_at timestamp with time zone NOT NULL,
    payload_id bigint,
    index_version integer NOT NULL,
    location_key integer NOT NULL,
    offers integer NOT NULL,
    latitude double precision,
    longitude double precision,
    indexed_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.storefront_totals (
    kind text NOT NULL,
    name text NOT NULL,
    items integer NOT NULL,
    stores integer NOT NULL,
    price integer,
    per_gram integer,
    made_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT storefront_totals_kind_check CHECK ((kind = ANY (ARRAY['all'::text, 'category'::text, 'brand'::text])))
);
CREATE TABLE public.storefront_words (
    word text NOT NULL COLLATE pg_catalog."C",
    items integer DEFAULT 0 NOT NULL
);
CREATE TABLE public.supervisor_lease (
    singleton boolean DEFAULT true NOT NULL,
    desired integer,
    holder text,
    host text,
    pid integer,
    place text,
    expires_at timestamp with time zone,
    low integer,
    high integer,
    running integer DEFAULT 0 NOT NULL,
    starting integer DEFAULT 0 NOT NULL,
    draining integer DEFAULT 0 NOT NULL,
    error text,
    CONSTRAINT supervisor_lease_check CHECK ((num_nulls(holder, host, pid, place, expires_at, low, high) = ANY (ARRAY[0, 7]))),
    CONSTRAINT supervisor_lease_desired_check CHECK ((desired >= 0)),
    CONSTRAINT supervisor_lease_singleton_check CHECK (singleton)
)
WITH (fillfactor='10');
CREATE TABLE public.task_day_counts (
    day date NOT NULL,
    role text NOT NULL,
    status text NOT NULL,
    platform text NOT NULL,
    n bigint NOT NULL
);
CREATE TABLE public.task_day_workers (
    worker_id text NOT NULL,
    day date NOT NULL
);
CREATE TABLE public.task_days (
    day date NOT NULL,
    counted_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.task_history_20261101 (
    id bigint CONSTRAINT task_history_id_not_null NOT NULL,
    created_at timestamp with time zone CONSTRAINT task_history_created_at_not_null NOT NULL,
    scheduled_for timestamp with time zone,
    claimed_at timestamp with time zone,
    started_at timestamp with time zone,
    completed_at timestamp with time zone CONSTRAINT task_history_completed_at_not_null NOT NULL,
    last_heartbeat_at timestamp with time zone,
    dispensary_id integer,
    priority integer CONSTRAINT task_history_priority_not_null NOT NULL,
    attempt integer CONSTRAINT task_history_attempt_not_null NOT NULL,
    retry_count integer CONSTRAINT task_history_retry_count_not_null NOT NULL,
    max_retries integer CONSTRAINT task_history_max_retries_not_null NOT NULL,
    postpone_count integer CONSTRAINT task_history_postpone_count_not_null NOT NULL,
    role text CONSTRAINT task_history_role_not_null NOT NULL,
    platform text CONSTRAINT task_history_platform_not_null NOT NULL,
    status text CONSTRAINT task_history_status_not_null NOT NULL,
    worker_id text,
    error_message text,
    cause text GENERATED ALWAYS AS (
CASE
    WHEN (status = 'failed'::text) THEN public.error_fingerprint(error_message)
    ELSE NULL::text
END) STORED,
    payload jsonb CONSTRAINT task_history_payload_not_null NOT NULL,
    result jsonb,
    earlier_attempts jsonb,
    CONSTRAINT task_history_order CHECK (((started_at >= claimed_at) AND (completed_at >= started_at))),
    CONSTRAINT task_history_reason CHECK (((status = 'completed'::text) = (error_message IS NULL))),
    CONSTRAINT task_history_status CHECK ((status = ANY (ARRAY['completed'::text, 'failed'::text, 'cancelled'::text]))),
    CONSTRAINT task_history_worked CHECK (((status <> 'completed'::text) OR ((worker_id IS NOT NULL) AND (started_at IS NOT NULL))))
);
CREATE VIEW public.task_history_days AS
 SELECT to_date("right"((c.relname)::text, 8), 'YYYYMMDD'::text) AS day
   FROM (pg_inherits i
     JOIN pg_class c ON ((c.oid = i.inhrelid)))
  WHERE ((i.inhparent = ('public.task_history'::regclass)::oid) AND (NOT i.inhdetachpending) AND (c.relname ~ '^task_history_\d{8}$'::text));
CREATE TABLE public.task_schedules (
    id integer NOT NULL,
    name text NOT NULL,
    role text NOT NULL,
    platform text DEFAULT 'dutchie'::text NOT NULL,
    enabled boolean DEFAULT true NOT NULL,
    interval_hours numeric NOT NULL,
    priority integer DEFAULT 0 NOT NULL,
    state_code text,
    cron text,
    timezone text,
    paused_at timestamp with time zone,
    catch_up text DEFAULT 'once'::text NOT NULL,
    last_run_at timestamp with time zone,
    next_run_at timestamp with time zone NOT NULL,
    last_task_count integer,
    last_error text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT task_schedules_catch_up CHECK ((catch_up = 'once'::text)),
    CONSTRAINT task_schedules_cron CHECK ((((cron IS NULL) = (timezone IS NULL)) AND ((timezone <> 'store'::text) OR (role = 'payload_fetch'::text)))),
    CONSTRAINT task_schedules_cron_check CHECK (((length(cron) >= 1) AND (length(cron) <= 200))),
    CONSTRAINT task_schedules_interval CHECK (((interval_hours >= 0.01) AND (interval_hours <= (8760)::numeric))),
    CONSTRAINT task_schedules_last_task_count_check CHECK ((last_task_count >= 0)),
    CONSTRAINT task_schedules_name_check CHECK ((name <> ''::text)),
    CONSTRAINT task_schedules_next CHECK (isfinite(next_run_at)),
    CONSTRAINT task_schedules_paused CHECK (((paused_at IS NULL) OR (NOT enabled))),
    CONSTRAINT task_schedules_priority CHECK (((priority >= '-1000'::integer) AND (priority <= 1000))),
    CONSTRAINT task_schedules_role CHECK ((role = ANY (ARRAY['payload_fetch'::text, 'store_discovery'::text, 'analytics_refresh'::text]))),
    CONSTRAINT task_schedules_state CHECK ((state_code ~ '^[A-Z]{2}$'::text))
);
ALTER TABLE public.task_schedules ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.task_schedules_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.users (
    id integer NOT NULL,
    name text NOT NULL,
    role text NOT NULL,
    password_hash text NOT NULL,
    must_change_password boolean DEFAULT false NOT NULL,
    disabled_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    password_changed_at timestamp with time zone DEFAULT now() NOT NULL,
    last_login_at timestamp with time zone,
    CONSTRAINT users_name_check CHECK ((name ~ '^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$'::text)),
    CONSTRAINT users_password_hash_check CHECK ((password_hash ~~ '$argon2%'::text)),
    CONSTRAINT users_role_check CHECK ((role = ANY (ARRAY['viewer'::text, 'operator'::text, 'admin'::text])))
);
ALTER TABLE public.users ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.users_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE VIEW public.v_worker_capacity AS
 SELECT r.role,
    l.pending_tasks,
    l.ready_tasks,
    l.claimed_tasks,
    l.running_tasks,
    h.completed_last_hour,
    h.failed_last_hour,
    w.active_workers,
    h.avg_duration_sec,
    x.tasks_per_worker_hour,
        CASE
            WHEN (l.pending_tasks = l.blocked_tasks) THEN (0)::double precision
            ELSE (((l.pending_tasks - l.blocked_tasks))::double precision / NULLIF(((w.active_workers)::double precision * x.tasks_per_worker_hour), (0)::double precision))
        END AS estimated_hours_to_drain,
    l.blocked_tasks,
    l.blocked_by
   FROM (((((unnest(public.task_roles(NULL::text[])) WITH ORDINALITY r(role, place)
     LEFT JOIN ( SELECT t.role AS live_role,
            count(*) FILTER (WHERE (t.state <> 'a'::"char")) AS pending,
            count(*) FILTER (WHERE (t.wait_state = 'ready'::text)) AS ready,
            count(*) FILTER (WHERE (t.wait_state = 'blocked'::text)) AS blocked,
            array_agg(DISTINCT t.blocked_by) FILTER (WHERE (t.wait_state = 'blocked'::text)) AS blocked_by,
            count(*) FILTER (WHERE ((t.state = 'a'::"char") AND (t.started_at IS NULL))) AS claimed,
            count(*) FILTER (WHERE ((t.state = 'a'::"char") AND (t.started_at IS NOT NULL))) AS running
           FROM public.live_tasks t
          GROUP BY t.role) c ON ((c.live_role = r.role)))
     CROSS JOIN LATERAL ( SELECT COALESCE(c.pending, (0)::bigint) AS pending_tasks,
            COALESCE(c.ready, (0)::bigint) AS ready_tasks,
            COALESCE(c.claimed, (0)::bigint) AS claimed_tasks,
            COALESCE(c.running, (0)::bigint) AS running_tasks,
            COALESCE(c.blocked, (0)::bigint) AS blocked_tasks,
            COALESCE(c.blocked_by, '{}'::text[]) AS blocked_by) l)
     CROSS JOIN LATERAL ( SELECT count(*) FILTER (WHERE (e.status = 'completed'::text)) AS completed_last_hour,
            count(*) FILTER (WHERE (e.status = 'failed'::text)) AS failed_last_hour,
            avg((EXTRACT(epoch FROM (e.completed_at - e.started_at)))::double precision) FILTER (WHERE (e.status = 'completed'::text)) AS avg_duration_sec
           FROM public.task_history e
          WHERE ((e.role = r.role) AND (e.completed_at > (now() - '01:00:00'::interval)))) h)
     CROSS JOIN LATERAL ( SELECT count(*) AS active_workers,
            avg((public.worker_slots(g.heartbeat))::double precision) AS slots
           FROM public.worker_registry g
          WHERE ((g.status = ANY (ARRAY['active'::text, 'backing_off'::text])) AND public.worker_alive(g.status, g.last_heartbeat_at) AND ((g.roles IS NULL) OR (r.role = ANY (g.roles))))) w)
     CROSS JOIN LATERAL ( SELECT (((3600)::double precision / NULLIF(h.avg_duration_sec, (0)::double precision)) * COALESCE(w.slots, (1)::double precision)) AS tasks_per_worker_hour) x)
  ORDER BY r.place;
CREATE TABLE public.visitor_days (
    day date NOT NULL,
    country text NOT NULL,
    region text NOT NULL,
    city text NOT NULL,
    kind text NOT NULL,
    views bigint NOT NULL,
    uniques integer NOT NULL,
    arrivals integer NOT NULL
);
CREATE TABLE public.visitor_marks (
    day date NOT NULL,
    mark bytea NOT NULL,
    CONSTRAINT visitor_marks_mark_check CHECK ((octet_length(mark) = 16))
);
CREATE TABLE public.visitor_pages (
    day date NOT NULL,
    kind text NOT NULL,
    page text NOT NULL,
    views bigint NOT NULL,
    uniques integer NOT NULL
);
CREATE TABLE public.visitor_salts (
    day date NOT NULL,
    salt bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT visitor_salts_salt_check CHECK ((octet_length(salt) = 32))
);
CREATE TABLE public.watched_searches (
    id bigint NOT NULL,
    query text NOT NULL,
    words tsquery,
    category text,
    brands integer[],
    strains text[],
    sizes text[],
    in_stock boolean NOT NULL,
    special boolean NOT NULL,
    price_min integer,
    price_max integer,
    per_gram_max integer,
    thc_min integer,
    thc_max integer
);
ALTER TABLE public.watched_searches ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.watched_searches_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.worker_commands (
    id bigint NOT NULL,
    worker_id text NOT NULL,
    command text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    created_by text,
    acknowledged_at timestamp with time zone,
    CONSTRAINT worker_commands_command_check CHECK ((command = ANY (ARRAY['decommission'::text, 'pause'::text, 'resume'::text]))),
    CONSTRAINT worker_commands_order CHECK ((acknowledged_at >= created_at))
);
ALTER TABLE public.worker_commands ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.worker_commands_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY public.fetch_attempts ATTACH PARTITION public.fetch_attempts_20261101 FOR VALUES FROM ('2026-11-01 00:00:00+00') TO ('2026-11-02 00:00:00+00');
ALTER TABLE ONLY public.product_detail_history ATTACH PARTITION public.product_detail_history_2026_11 FOR VALUES FROM ('2026-11-01 00:00:00+00') TO ('2026-12-01 00:00:00+00');
ALTER TABLE ONLY public.product_history ATTACH PARTITION public.product_history_2026_11 FOR VALUES FROM ('2026-11-01 00:00:00+00') TO ('2026-12-01 00:00:00+00');
ALTER TABLE ONLY public.task_history ATTACH PARTITION public.task_history_20261101 FOR VALUES FROM ('2026-11-01 00:00:00+00') TO ('2026-11-02 00:00:00+00');
