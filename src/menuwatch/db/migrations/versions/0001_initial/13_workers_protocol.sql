-- The protocol of workers written in any language (docs/reference/worker-protocol.md); the API calls the same functions.
--
-- A task belongs to its worker for one attempt (I4 in 06_tasks.sql): whatever comes from another worker or for an earlier attempt is
-- refused and changes nothing. What came already is answered as it was, so that a lost response does not matter. SQLSTATE of refusals:
-- MW404 there is no such worker or task; MW409 the attempt is not the worker's any more, or the worker has left; 22023 a value is invalid.

-- Refuses to work on an attempt: says whose the task is, or how it ended.
CREATE FUNCTION refuse_attempt(worker text, task bigint, number integer) RETURNS void LANGUAGE plpgsql AS $$
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

-- Gives back the tasks that a worker holds, but for those in `holding`: `verb` as in finish_tasks. Returns how many.
CREATE FUNCTION return_tasks_of(worker text, holding bigint[], verb text, reason text) RETURNS integer LANGUAGE plpgsql AS $$
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

-- Registers a worker at its start, for these roles (null: all). A known id restarts that worker: tasks that its last process left behind
-- return to the queue, with one retry used up. Returns whether the id is new.
CREATE FUNCTION worker_register(worker text, roles text[] DEFAULT NULL, host text DEFAULT 'unknown', friendly_name text DEFAULT NULL,
                                pid integer DEFAULT NULL, pod text DEFAULT NULL, version text DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql AS $$
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
END $$;

-- Locks the row of a worker that works, against its leaving; refuses one that is unknown or has left.
CREATE FUNCTION require_worker(worker text) RETURNS worker_registry LANGUAGE plpgsql AS $$
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

-- A heartbeat: the worker lives, and so do the tasks that it runs (`attempts` runs parallel to `tasks`; null: whichever it holds).
-- `acknowledged` are the ids of commands that it has received. Answered are the tasks that it has lost, which it must stop, and its open
-- commands: [{"id": 1, "command": "pause" | "resume" | "decommission", "created_at": …, "created_by": …}].
CREATE FUNCTION worker_heartbeat(worker text, tasks bigint[] DEFAULT '{}', attempts integer[] DEFAULT NULL, status text DEFAULT 'active',
                                 acknowledged bigint[] DEFAULT '{}', heartbeat jsonb DEFAULT NULL)
RETURNS TABLE (lost bigint[], commands jsonb) LANGUAGE plpgsql AS $$
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

-- Which of the roles (null: all that it is registered for) a worker may claim now, and why not the others: none while it is paused or
-- stopping, or has such a command; no role that makes requests while all of these `hosts` are blocked.
CREATE FUNCTION worker_claimable(worker text, roles text[], hosts text[], OUT claimable text[], OUT reason text) LANGUAGE plpgsql AS $$
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

-- Claims up to `n` due tasks for a registered worker, in the order in which they are to be worked. `hosts` are those that its requests go
-- to. `holding`: all tasks that it has; others that it owns, because the response to a claim was lost, return to the queue first.
-- As for our own workers one task in four is of the role whose next task has waited longest (queue/claim.py).
CREATE FUNCTION worker_claim(worker text, roles text[] DEFAULT NULL, n integer DEFAULT 1, hosts text[] DEFAULT NULL, holding bigint[] DEFAULT NULL)
RETURNS SETOF worker_tasks LANGUAGE plpgsql AS $$
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

-- Work on an attempt begins. For attempts of some seconds and more; shorter ones may end without it.
CREATE FUNCTION worker_start(worker text, task bigint, attempt integer) RETURNS SETOF worker_tasks LANGUAGE plpgsql AS $$
#variable_conflict use_variable
BEGIN
  UPDATE task_live t
     SET started_at = coalesce(t.started_at, clock_timestamp()), last_heartbeat_at = clock_timestamp(), updated_at = clock_timestamp()
   WHERE t.id = task AND t.worker_id = worker AND t.attempt = worker_start.attempt;
  IF NOT FOUND THEN PERFORM refuse_attempt(worker, task, attempt); END IF;
  RETURN QUERY SELECT * FROM worker_tasks w WHERE w.id = task;
END $$;

-- Ends an attempt, as finish_tasks; true. False where this worker had ended it in the same way before; otherwise refused.
CREATE FUNCTION end_attempt(worker text, task bigint, attempt integer, verb text, reason text, result jsonb, wait double precision,
                            due timestamptz, ran double precision, code text DEFAULT NULL, host text DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql AS $$
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

-- The attempt succeeded. Its follow-up tasks are enqueued in the same transaction: a JSON array of objects with `role` and, where needed,
-- `dispensary_id`, `platform` (default: this task's), `priority` (10), `scheduled_for`, `payload`. `ran`: how many seconds it took.
CREATE FUNCTION worker_complete(worker text, task bigint, attempt integer, result jsonb DEFAULT NULL, follow_ups jsonb DEFAULT '[]',
                                ran double precision DEFAULT NULL)
RETURNS SETOF worker_tasks LANGUAGE plpgsql AS $$
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
END $$;

-- The attempt failed and may succeed later: after `wait` seconds, or after the back-off of our own workers (core/backoff.py). It uses up a
-- retry; where none is left the task fails.
CREATE FUNCTION worker_retry(worker text, task bigint, attempt integer, reason text, wait double precision DEFAULT NULL,
                             result jsonb DEFAULT NULL, ran double precision DEFAULT NULL)
RETURNS SETOF worker_tasks LANGUAGE plpgsql AS $$
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

-- The task cannot be worked on now: it waits until `due`, or for `wait` seconds. That uses up no retry; where the attempt made requests
-- (`counted`), it may happen 50 times. `code` is one of those of `worker_tasks.postpone_code`, `host` the host that is the reason.
CREATE FUNCTION worker_postpone(worker text, task bigint, attempt integer, reason text, due timestamptz DEFAULT NULL,
                                wait double precision DEFAULT NULL, code text DEFAULT 'other', host text DEFAULT NULL,
                                counted boolean DEFAULT true, ran double precision DEFAULT NULL)
RETURNS SETOF worker_tasks LANGUAGE plpgsql AS $$
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

-- The task will never succeed.
CREATE FUNCTION worker_fail(worker text, task bigint, attempt integer, reason text, result jsonb DEFAULT NULL, ran double precision DEFAULT NULL)
RETURNS SETOF worker_tasks LANGUAGE plpgsql AS $$
#variable_conflict use_variable
BEGIN
  PERFORM end_attempt(worker, task, attempt, 'fail', reason, result, NULL, NULL, ran);
  RETURN QUERY SELECT * FROM worker_tasks w WHERE w.id = task;
END $$;

-- The worker stops: tasks that it still holds return to the queue as they were. Returns how many; again: none.
CREATE FUNCTION worker_leave(worker text) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
  UPDATE worker_registry r SET status = 'stopped', last_heartbeat_at = now() WHERE r.worker_id = worker;
  IF NOT FOUND THEN PERFORM require_worker(worker); END IF;
  RETURN return_tasks_of(worker, '{}', 'release', NULL);
END $$;
