-- Another priority for a task that waits.

-- name: limit_waits
SELECT set_config('lock_timeout', '500ms', true);

-- name: hold_waiting
SELECT id, state::text AS state, role, dispensary_id, priority FROM task_live WHERE id = %(id)s FOR NO KEY UPDATE;

-- name: set_priority
UPDATE task_live SET priority = %(priority)s, updated_at = clock_timestamp() WHERE id = %(id)s;

-- name: reorder
-- Of its store and role another one may come first now, or it may.
SELECT task_reorder(ARRAY[%(dispensary_id)s::integer], ARRAY[%(role)s::text]);
