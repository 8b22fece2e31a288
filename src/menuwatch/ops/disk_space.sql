-- Free disk space by machine.

-- name: record
INSERT INTO disk_readings (machine, place, free_bytes)
SELECT %(machine)s, %(place)s, %(free)s WHERE EXISTS (SELECT FROM alert_rules WHERE condition = 'disk_low' AND enabled)
ON CONFLICT (machine, place) DO UPDATE SET free_bytes = excluded.free_bytes, read_at = clock_timestamp();

-- name: prune
DELETE FROM disk_readings WHERE read_at < now() - interval '1 hour';

-- name: recent
-- Of processes that still run, but for this one's.
SELECT machine, place, free_bytes FROM disk_readings WHERE (machine, place) <> (%(machine)s, %(place)s) AND read_at > now() - interval '2 minutes';
