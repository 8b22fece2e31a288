-- Tasks that wait because of a host.

-- name: put_off_by
-- As fetch/leases.py and fetch/reaction.py word it; those that are due by now wait for other reasons.
SELECT id, scheduled_for FROM task_live
 WHERE state = 's' AND attempt > 0 AND scheduled_for > clock_timestamp()
   AND (starts_with(error_message, %(host)s::text || ' is not asked now (') OR starts_with(error_message, %(host)s::text || ' asked to slow down: ')
        OR starts_with(error_message, %(host)s::text || ' refused every identity: '))
 ORDER BY id;
