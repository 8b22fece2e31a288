-- Upkeep: which duties are due, and what became of them.

-- name: lock_upkeep
-- One janitor at a time, whatever the process; others pass it over.
SELECT pg_try_advisory_lock(hashtext('menuwatch'), hashtext('upkeep'));

-- name: unlock_upkeep
SELECT pg_advisory_unlock(hashtext('menuwatch'), hashtext('upkeep'));

-- name: enter_duties
INSERT INTO upkeep (duty) SELECT unnest(%(duties)s::text[]) ON CONFLICT DO NOTHING;

-- name: due_duties
SELECT d.duty FROM unnest(%(duties)s::text[], %(every)s::double precision[]) d(duty, every) JOIN upkeep u ON u.duty = d.duty
 WHERE u.done_at IS NULL OR u.done_at <= clock_timestamp() - make_interval(secs => d.every);

-- name: duty_done
UPDATE upkeep SET done_at = clock_timestamp(), tried_at = clock_timestamp(), error = NULL WHERE duty = %(duty)s::text;

-- name: duty_failed
UPDATE upkeep SET tried_at = clock_timestamp(), error = %(error)s::text WHERE duty = %(duty)s::text;
