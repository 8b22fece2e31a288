-- Read models: what screens and the API show. Every list is a keyset page: the last row's sort values and id are the next page's
-- start, so a page costs the same wherever it lies and rows that are inserted meanwhile shift nothing.

-- piece: task_filter
-- Which tasks: lists, counts, and what is done to all that match, must never differ in this. A reason that is plain ASCII, as nearly
-- all are, is looked for in half the time.
AND (%(roles)s::text[] IS NULL OR role = ANY (%(roles)s))
AND (%(statuses)s::text[] IS NULL OR status = ANY (%(statuses)s))
AND (%(waits)s::text[] IS NULL OR status <> 'pending' OR id = ANY (ARRAY (
       SELECT l.id FROM live_tasks l WHERE l.wait_state = ANY (%(waits)s))))
AND (%(dispensary_id)s::integer IS NULL OR dispensary_id = %(dispensary_id)s)
AND (%(platform)s::text IS NULL OR platform = %(platform)s)
AND (%(created_after)s::timestamptz IS NULL OR (created_at >= %(created_after)s AND (completed_at IS NULL OR completed_at >= %(created_after)s)))
AND (%(created_before)s::timestamptz IS NULL OR created_at < %(created_before)s)
AND (%(worker_ids)s::text[] IS NULL OR worker_id = ANY (%(worker_ids)s))
AND (%(worked_from)s::timestamptz IS NULL OR completed_at IS NULL OR (completed_at >= %(worked_from)s AND completed_at < %(worked_until)s)
       OR completed_at >= %(uncounted_from)s)
AND (%(ended_after)s::timestamptz IS NULL OR completed_at >= %(ended_after)s)
AND (%(ended_before)s::timestamptz IS NULL OR completed_at < %(ended_before)s)
AND (%(priority_min)s::integer IS NULL OR priority >= %(priority_min)s)
AND (%(priority_max)s::integer IS NULL OR priority <= %(priority_max)s)
AND (%(attempts_min)s::integer IS NULL OR attempt >= %(attempts_min)s)
AND (%(attempts_max)s::integer IS NULL OR attempt <= %(attempts_max)s)
AND (%(took_over)s::float8 IS NULL OR coalesce(completed_at, now()) - started_at > make_interval(secs => %(took_over)s))
AND (%(took_under)s::float8 IS NULL OR coalesce(completed_at, now()) - started_at < make_interval(secs => %(took_under)s))
AND (%(payload_id)s::text IS NULL OR (payload ->> 'payload_id' = %(payload_id)s AND id = ANY (ARRAY (
       SELECT t.id FROM task_live t WHERE t.payload ->> 'payload_id' = %(payload_id)s UNION ALL
       SELECT h.id FROM task_history h WHERE h.payload ->> 'payload_id' = %(payload_id)s))))
AND (%(paths)s::text[] IS NULL OR (payload ?& %(keys)s::text[] AND NOT EXISTS (
       SELECT FROM unnest(%(paths)s::text[], %(values)s::text[]) a(path, value)
       WHERE payload #>> string_to_array(a.path, '.') IS DISTINCT FROM a.value)))
AND (%(cause)s::text IS NULL OR (status = 'failed' AND id IN (
       SELECT h.id FROM task_history h WHERE h.cause = %(cause)s AND h.status = 'failed')))
AND (%(errors)s::text[] IS NULL OR (status <> 'completed' AND
       CASE WHEN %(ascii_patterns)s::text[] IS NOT NULL THEN lower(error_message COLLATE "C") LIKE ALL (%(ascii_patterns)s) ELSE error_message ILIKE ALL (%(errors)s) END))

-- piece: task_columns
id, role, dispensary_id, platform, status, priority, scheduled_for, worker_id, claimed_at, started_at, completed_at,
       last_heartbeat_at, result, error_message, retry_count, max_retries, payload, attempt, postpone_code, postpone_host, created_at, updated_at,
       (SELECT l.wait_state FROM live_tasks l WHERE l.id = worker_tasks.id) AS wait_state,
       (SELECT l.blocked_by FROM live_tasks l WHERE l.id = worker_tasks.id) AS blocked_by

-- piece: ended_columns
-- The same of tasks that are over.
id, role, dispensary_id, platform, status, priority, scheduled_for, worker_id, claimed_at, started_at, completed_at,
       last_heartbeat_at, result, error_message, retry_count, max_retries, payload, attempt, NULL AS postpone_code,
       NULL AS postpone_host, created_at, completed_at AS updated_at, NULL AS wait_state, NULL AS blocked_by

-- name: list_tasks
-- Newest first. Ids are given in the order of enqueueing, and both tables behind the view have an index on them, so a page
-- reads no more of the history than it shows. These statements are planned at each execution (queue/task_list.py): a
-- filter that is not set must not cost anything, and `status <> 'completed'` must be seen to be implied by the states that are asked for.
-- What was enqueued at a time or later ended no sooner, so earlier days are not read.
SELECT {task_columns}
  FROM worker_tasks
 WHERE (%(ids)s::bigint[] IS NULL OR id = ANY (%(ids)s))
   {task_filter}
   AND (%(after)s::bigint IS NULL OR id < %(after)s)
 ORDER BY id DESC LIMIT %(limit)s;

-- name: list_failed
-- The same of one cause, which the index of causes finds: nothing that lives has one.
SELECT {ended_columns}
  FROM task_history
 WHERE cause = %(of_cause)s::text AND status = 'failed'
   AND (%(ids)s::bigint[] IS NULL OR id = ANY (%(ids)s))
   {task_filter}
   AND (%(after)s::bigint IS NULL OR id < %(after)s)
 ORDER BY id DESC LIMIT %(limit)s;

-- name: list_oldest
-- Oldest first, by the same indexes.
SELECT {task_columns}
  FROM worker_tasks
 WHERE (%(ids)s::bigint[] IS NULL OR id = ANY (%(ids)s))
   {task_filter}
   AND (%(after)s::bigint IS NULL OR id > %(after)s)
 ORDER BY id LIMIT %(limit)s;

-- name: list_failed_oldest
SELECT {ended_columns}
  FROM task_history
 WHERE cause = %(of_cause)s::text AND status = 'failed'
   AND (%(ids)s::bigint[] IS NULL OR id = ANY (%(ids)s))
   {task_filter}
   AND (%(after)s::bigint IS NULL OR id > %(after)s)
 ORDER BY id LIMIT %(limit)s;

-- name: list_ended
-- By their end, latest first: each role's part of the index of roles is sorted by it, and that of stores.
SELECT {ended_columns}
  FROM unnest(task_roles(%(roles)s)) r(of_role) CROSS JOIN LATERAL (
    SELECT * FROM task_history
     WHERE role = r.of_role AND (%(of_cause)s::text IS NULL OR (cause = %(of_cause)s AND status = 'failed'))
       AND (%(ids)s::bigint[] IS NULL OR id = ANY (%(ids)s))
       {task_filter}
       AND (%(after_at)s::timestamptz IS NULL OR (completed_at, id) < (%(after_at)s, %(after)s::bigint))
     ORDER BY completed_at DESC, id DESC LIMIT %(limit)s::bigint) h
 ORDER BY completed_at DESC, id DESC LIMIT %(limit)s::bigint;

-- name: list_ended_oldest
SELECT {ended_columns}
  FROM unnest(task_roles(%(roles)s)) r(of_role) CROSS JOIN LATERAL (
    SELECT * FROM task_history
     WHERE role = r.of_role AND (%(of_cause)s::text IS NULL OR (cause = %(of_cause)s AND status = 'failed'))
       AND (%(ids)s::bigint[] IS NULL OR id = ANY (%(ids)s))
       {task_filter}
       AND (%(after_at)s::timestamptz IS NULL OR (completed_at, id) > (%(after_at)s, %(after)s::bigint))
     ORDER BY completed_at, id LIMIT %(limit)s::bigint) h
 ORDER BY completed_at, id LIMIT %(limit)s::bigint;

-- name: list_recent
-- By their end, which the index of roles is sorted by: a page reads no more of the history than it shows, and what was skipped.
SELECT {ended_columns}
  FROM task_history
 WHERE role = %(role)s::text AND status = ANY (%(statuses)s::text[])
   AND (%(after_at)s::timestamptz IS NULL OR (completed_at, id) < (%(after_at)s::timestamptz, %(after_id)s::bigint))
 ORDER BY completed_at DESC, id DESC LIMIT %(limit)s;

-- name: get_task
SELECT {task_columns}
  FROM worker_tasks WHERE id = %(id)s;

-- name: count_tasks
SELECT role, status, count(*) AS n
  FROM worker_tasks
 WHERE (%(ids)s::bigint[] IS NULL OR id = ANY (%(ids)s))
   {task_filter}
   AND (%(below)s::bigint IS NULL OR id < %(below)s)
 GROUP BY role, status;

-- name: count_failed
SELECT role, status, count(*) AS n
  FROM task_history
 WHERE cause = %(of_cause)s::text AND status = 'failed'
   AND (%(ids)s::bigint[] IS NULL OR id = ANY (%(ids)s))
   {task_filter}
   AND (%(below)s::bigint IS NULL OR id < %(below)s)
 GROUP BY role, status;

-- name: facets
-- By what a search can be narrowed, counted among the newest tasks that it finds: roles, hosts that they request, stores, workers, and
-- how long ago they were enqueued.
WITH newest AS MATERIALIZED (
  SELECT role, platform, dispensary_id, worker_id, created_at
    FROM worker_tasks
   WHERE (%(ids)s::bigint[] IS NULL OR id = ANY (%(ids)s))
     {task_filter}
   ORDER BY id DESC LIMIT %(limit)s)
SELECT 'all' AS facet, NULL AS value, NULL AS label, count(*) AS n FROM newest
UNION ALL (SELECT 'role', role, NULL, count(*) FROM newest GROUP BY role ORDER BY 4 DESC, 2)
UNION ALL (SELECT 'host', h.host, NULL, count(*)
             FROM queue_settings s, jsonb_each(s.platform_hosts) p, jsonb_array_elements_text(p.value) h(host), newest t
            WHERE t.platform = p.key AND t.role = ANY (%(network)s::text[]) GROUP BY h.host ORDER BY 4 DESC, 2 LIMIT 8)
UNION ALL (SELECT 'store', coalesce(d.slug, d.id::text), d.name, t.n
             FROM (SELECT dispensary_id, count(*) AS n FROM newest WHERE dispensary_id IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 12) t
             JOIN dispensaries d ON d.id = t.dispensary_id ORDER BY t.n DESC, d.name)
UNION ALL (SELECT 'worker', t.worker_id, concat_ws('/', w.pod, w.friendly_name), t.n
             FROM (SELECT worker_id, count(*) AS n FROM newest WHERE worker_id IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 12) t
             LEFT JOIN worker_registry w USING (worker_id) ORDER BY t.n DESC, 2)
UNION ALL (SELECT 'age', a.age, NULL, count(t.created_at) FROM (VALUES ('1h'), ('24h'), ('7d')) a(age)
             LEFT JOIN newest t ON t.created_at >= now() - a.age::interval GROUP BY a.age);

-- name: days_of_workers
-- Between which moments these workers ended something on days that are counted (null: on none), and from when on days are not counted.
SELECT (SELECT min(w.day)::timestamp AT TIME ZONE 'UTC' FROM task_day_workers w WHERE w.worker_id = ANY (%(worker_ids)s::text[])) AS first,
       (SELECT (max(w.day) + 1)::timestamp AT TIME ZONE 'UTC' FROM task_day_workers w WHERE w.worker_id = ANY (%(worker_ids)s::text[])) AS last,
       (SELECT min(h.day)::timestamp AT TIME ZONE 'UTC' FROM task_history_days h WHERE NOT EXISTS (SELECT FROM task_days t WHERE t.day = h.day)) AS uncounted;

-- name: task_id_bound
SELECT task_id_bound(%(moment)s::timestamptz) AS id;

-- name: tasks_to_cancel
-- What a filter selects: those that can be cancelled, and how many are over already.
SELECT coalesce(array_agg(id ORDER BY id) FILTER (WHERE status IN ('pending', 'claimed', 'running', 'stale')), '{}') AS ids, count(*) AS matched,
       count(*) FILTER (WHERE status IN ('completed', 'failed', 'cancelled')) AS finished
  FROM worker_tasks
 WHERE (%(ids)s::bigint[] IS NULL OR id = ANY (%(ids)s))
   {task_filter};

-- name: tasks_to_retry
-- What a filter selects: those that are retried, and how many are not, by the reason; what retry_tasks() then does is the same unless
-- something changed. Without `named` only what failed and what backs off: completed and cancelled tasks, and those scheduled for later, are
-- only repeated on explicit request. `joined` ones are finished, and an equal task waits already or is enqueued for another one of these:
-- the key is that of enqueue_tasks(), the role and the store, or without a store the platform and the payload; each refresh has a payload of its own.
SELECT k.outcome, count(*) AS n, array_agg(k.id ORDER BY k.id) FILTER (WHERE k.outcome IN ('retry', 'joined')) AS ids
  FROM (
    SELECT c.id,
           CASE WHEN c.outcome <> 'retry' OR c.status = 'pending' OR c.role = 'product_refresh' THEN c.outcome
                WHEN row_number() OVER (PARTITION BY c.outcome, c.status = 'pending', c.role, c.dispensary_id, c.print ORDER BY c.id) > 1 THEN 'joined'
                WHEN c.dispensary_id IS NULL THEN
                  CASE WHEN EXISTS (SELECT FROM task_live w WHERE w.uniq <> 0 AND w.state <> 'a' AND w.dispensary_id IS NULL AND w.role = c.role
                                       AND md5(w.platform || w.payload::text) = c.print) THEN 'joined' ELSE 'retry' END
                WHEN EXISTS (SELECT FROM task_live w WHERE w.state = 'r' AND w.dispensary_id = c.dispensary_id AND w.role = c.role)
                  OR EXISTS (SELECT FROM task_live w WHERE w.state IN ('p', 's') AND w.dispensary_id = c.dispensary_id AND w.role = c.role) THEN 'joined'
                ELSE 'retry' END AS outcome
      FROM (
        SELECT id, role, status, dispensary_id, CASE WHEN dispensary_id IS NULL THEN md5(platform || payload::text) END AS print,
               CASE WHEN role = ANY (%(unhandled)s::text[]) THEN 'unhandled'
                    WHEN status = 'failed' OR (%(named)s::boolean AND status IN ('completed', 'cancelled')) THEN 'retry'
                    WHEN status IN ('completed', 'cancelled') THEN status
                    WHEN status <> 'pending' THEN 'active'
                    WHEN scheduled_for <= now() OR scheduled_for IS NULL THEN 'waiting'
                    WHEN %(named)s::boolean OR attempt > 0 THEN 'retry'
                    ELSE 'scheduled' END AS outcome
          FROM worker_tasks
         WHERE (%(ids)s::bigint[] IS NULL OR id = ANY (%(ids)s))
           {task_filter}) c) k
 GROUP BY k.outcome;

-- name: retry_tasks
SELECT id, task_id, outcome FROM retry_tasks(%(ids)s::bigint[], %(priority)s::integer, %(unhandled)s::text[]);

-- name: cancel_tasks_in_bulk
SELECT cancelled, interrupted, busy FROM cancel_tasks_in_bulk(%(ids)s::bigint[], %(reason)s::text);

-- name: last_completion
SELECT {task_columns}
  FROM worker_tasks WHERE role = %(role)s AND status = 'completed'
 ORDER BY completed_at DESC, id DESC LIMIT 1;

-- name: active_of_store
SELECT {task_columns}
  FROM worker_tasks WHERE dispensary_id = %(dispensary_id)s AND status IN ('claimed', 'running', 'stale');

-- name: last_task_id
-- 0 where no task was ever enqueued.
SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS id FROM task_ids;

-- name: recently_finished
-- Of each role the newest, by its index, then the newest of all; names are looked up for those alone. Days before yesterday are not
-- read.
SELECT h.id, h.role, h.status, h.completed_at, h.worker_id, w.friendly_name AS worker, w.pod, h.dispensary_id, d.name AS store,
       h.error_message, round(extract(epoch FROM h.completed_at - h.started_at)::numeric, 3)::double precision AS seconds
  FROM (SELECT t.* FROM unnest(task_roles(NULL)) r(role)
         CROSS JOIN LATERAL (
           SELECT i.id, i.role, i.status, i.completed_at, i.started_at, i.worker_id, i.dispensary_id, i.error_message
             FROM task_history i WHERE i.role = r.role AND i.completed_at >= now() - interval '24 hours'
            ORDER BY i.completed_at DESC LIMIT %(limit)s) t
         ORDER BY t.completed_at DESC, t.id DESC LIMIT %(limit)s) h
  LEFT JOIN worker_registry w ON w.worker_id = h.worker_id
  LEFT JOIN dispensaries d ON d.id = h.dispensary_id
 ORDER BY h.completed_at DESC, h.id DESC;

-- name: stores_named
SELECT id, name, slug, state FROM dispensaries WHERE id = ANY (%(ids)s::integer[]);

-- name: platform_of_host
SELECT p.key AS platform FROM queue_settings s, jsonb_each(s.platform_hosts) p WHERE p.value ? %(host)s::text ORDER BY 1 LIMIT 1;

-- name: workers_called
SELECT worker_id FROM worker_registry
 WHERE worker_id = %(text)s::text OR lower(friendly_name) = lower(%(text)s::text) OR lower(pod || '/' || friendly_name) = lower(%(text)s::text)
 ORDER BY started_at DESC, worker_id;

-- name: worker_known
-- Whether a worker that is no longer registered has, or ended, a task that is kept.
SELECT 1 WHERE EXISTS (SELECT FROM task_day_workers w WHERE w.worker_id = %(worker_id)s)
            OR EXISTS (SELECT FROM task_live t WHERE t.worker_id = %(worker_id)s)
            OR EXISTS (SELECT FROM task_history h WHERE h.worker_id = %(worker_id)s AND h.completed_at >= (
                 SELECT min(d.day)::timestamp AT TIME ZONE 'UTC' FROM task_history_days d WHERE NOT EXISTS (SELECT FROM task_days t WHERE t.day = d.day)));

-- name: workers_named
SELECT worker_id, friendly_name FROM worker_registry WHERE worker_id = ANY (%(ids)s::text[]);

-- name: limit_lock_wait
SELECT set_config('lock_timeout', '500ms', true);

-- name: lock_waiting
SELECT id, state::text AS state, role, dispensary_id, priority FROM task_live WHERE id = %(id)s FOR NO KEY UPDATE;

-- name: set_priority
UPDATE task_live SET priority = %(priority)s, updated_at = clock_timestamp() WHERE id = %(id)s;

-- name: reorder
-- Another task of its store and role may come first now, or this one may.
SELECT task_reorder(ARRAY[%(dispensary_id)s::integer], ARRAY[%(role)s::text]);

-- name: postponed_by_host
-- Tasks that are due by now wait for other reasons.
SELECT id, scheduled_for, postpone_code FROM task_live
 WHERE state = 's' AND attempt > 0 AND scheduled_for > clock_timestamp()
   AND postpone_host = %(host)s
 ORDER BY id;

-- name: end_pause
-- What a pause of the host postponed is due a second apart on average, within a minute, and no later than before.
WITH w AS MATERIALIZED (
  SELECT id FROM task_live
   WHERE state = 's' AND attempt > 0 AND scheduled_for > clock_timestamp() AND postpone_host = %(host)s AND postpone_code = 'paused'
   ORDER BY id FOR NO KEY UPDATE SKIP LOCKED),
u AS (
  UPDATE task_live t
     SET scheduled_for = least(t.scheduled_for, clock_timestamp() + random() * least((SELECT count(*) FROM w), 60) * interval '1 second'),
         updated_at = clock_timestamp()
    FROM w WHERE t.id = w.id RETURNING t.id)
SELECT u.id FROM u;
