-- Schedules: what is enqueued regularly, and when. Each firing is a row, written in the transaction that enqueues its tasks, so a
-- firing happens once, however many servers try.
--
--   due (next_run_at passed) ──taken FOR UPDATE SKIP LOCKED──► fire_schedule: run row + tasks + next_run_at, all or nothing
--                                                                │
--                                                                └─ error ──► in last_error and in the run; still due

CREATE TABLE task_schedules (
  id                       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name                     text NOT NULL UNIQUE CHECK (name <> ''),
  role                     text NOT NULL,
  platform                 text NOT NULL DEFAULT 'dutchie',
  enabled                  boolean NOT NULL DEFAULT true,
  interval_hours           numeric NOT NULL,
  priority                 integer NOT NULL DEFAULT 0,
  state_code               text,
  cron                     text CHECK (length(cron) BETWEEN 1 AND 200),   -- runs by this line, and not by the interval
  timezone                 text,                          -- of the line: a name, or `store`: in every store's own, for the stores there
  paused_at                timestamptz,                   -- disabled together with all others: enabled again with them
  catch_up                 text NOT NULL DEFAULT 'once',  -- runs that were missed collapse into one
  last_run_at              timestamptz,
  next_run_at              timestamptz NOT NULL,
  last_task_count          integer CHECK (last_task_count >= 0),
  last_error               text,
  created_at               timestamptz NOT NULL DEFAULT now(),
  updated_at               timestamptz NOT NULL DEFAULT now(),
  -- The roles of which a schedule can know what to enqueue: the others need a payload, or follow from these.
  CONSTRAINT task_schedules_role CHECK (role IN ('payload_fetch', 'store_discovery', 'analytics_refresh')),
  CONSTRAINT task_schedules_interval CHECK (interval_hours BETWEEN 0.01 AND 8760),
  CONSTRAINT task_schedules_priority CHECK (priority BETWEEN -1000 AND 1000),
  CONSTRAINT task_schedules_state CHECK (state_code ~ '^[A-Z]{2}$'),
  CONSTRAINT task_schedules_next CHECK (isfinite(next_run_at)),  -- one that is never due would keep the other schedules from being found
  CONSTRAINT task_schedules_cron CHECK ((cron IS NULL) = (timezone IS NULL) AND (timezone <> 'store' OR role = 'payload_fetch')),
  CONSTRAINT task_schedules_paused CHECK (paused_at IS NULL OR NOT enabled),
  CONSTRAINT task_schedules_catch_up CHECK (catch_up = 'once')
);

-- Statements of the former system: without the next run a schedule is due at once, and a role may have its former name.
CREATE FUNCTION task_schedules_former() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.next_run_at := coalesce(NEW.next_run_at, now());
  NEW.role := (task_roles(ARRAY[NEW.role]))[1];
  RETURN NEW;
END $$;

CREATE TRIGGER task_schedules_former BEFORE INSERT OR UPDATE OF role, next_run_at ON task_schedules
  FOR EACH ROW EXECUTE FUNCTION task_schedules_former();

CREATE INDEX task_schedules_due ON task_schedules (next_run_at) WHERE enabled;

CREATE TABLE schedule_runs (
  schedule_id              integer NOT NULL REFERENCES task_schedules (id) ON DELETE CASCADE,
  fire_at                  timestamptz NOT NULL,          -- the moment it stands for, not the one at which it was done
  ran_at                   timestamptz NOT NULL,
  task_count               integer NOT NULL DEFAULT 0 CHECK (task_count >= 0),
  error                    text,
  PRIMARY KEY (schedule_id, fire_at)
);

-- Makes one firing of a schedule: enqueues its tasks and says how many are new. `next` is when it fires again; null leaves that as
-- it is (an operator triggered it). A firing that was made already enqueues nothing and returns null; one that failed is repeated.
--
-- Of the stores those are crawled whose interval is over at the firing nearest to that: a crawl ends some time after
-- its firing, and with "over by now" a store of 4 hours would be passed over by every other firing of 4 hours.
-- `zones`: only stores whose time zone is among them ('' for those without one); null: all.
CREATE FUNCTION fire_schedule(which integer, fire timestamptz, at timestamptz, next timestamptz, zones text[] DEFAULT NULL) RETURNS integer LANGUAGE plpgsql AS $$
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

-- One row for each store and day that was planned: planning a day again adds only what is new.
CREATE TABLE resync_plan (
  day                      date NOT NULL,
  dispensary_id            integer NOT NULL REFERENCES dispensaries (id) ON DELETE CASCADE,
  scheduled_for            timestamptz NOT NULL,
  task_id                  bigint,
  PRIMARY KEY (day, dispensary_id)
);

-- Plans one crawl of every crawlable store for a day, dealt out evenly over the batches (6: 00:00, 04:00 … 20:00) and, inside a
-- batch, at a moment that depends on store and day alone. The hours are those of `timezone`, or, without one, of each store's own
-- time zone (UTC where it is unknown). Returns how many tasks were enqueued. A store that has a crawl waiting gets no second
-- one; a moment that is past already is due at once; the same day again enqueues only for stores that were not planned.
CREATE FUNCTION generate_resync_tasks(batches_per_day integer DEFAULT 6, date date DEFAULT CURRENT_DATE, timezone text DEFAULT NULL)
RETURNS integer LANGUAGE plpgsql AS $$
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
END $$;
