-- What operators tell workers, and what workers say of themselves while they do not claim.

ALTER TABLE worker_registry DROP CONSTRAINT worker_registry_status_check;
ALTER TABLE worker_registry ADD CONSTRAINT worker_registry_status
  CHECK (status IN ('active', 'paused', 'backing_off', 'stopping', 'stopped'));
CREATE INDEX worker_registry_started ON worker_registry (started_at, worker_id);

-- A command is for one worker, which takes it at once (the trigger tells it) or when it looks next, and says so.
CREATE TABLE worker_commands (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  worker_id                text NOT NULL REFERENCES worker_registry (worker_id) ON UPDATE CASCADE ON DELETE CASCADE,
  command                  text NOT NULL CHECK (command IN ('decommission', 'pause', 'resume')),
  created_at               timestamptz NOT NULL DEFAULT now(),
  created_by               text,
  acknowledged_at          timestamptz,
  CONSTRAINT worker_commands_order CHECK (acknowledged_at >= created_at)
);
CREATE INDEX worker_commands_open ON worker_commands (worker_id, id) WHERE acknowledged_at IS NULL;
CREATE INDEX worker_commands_worker ON worker_commands (worker_id, id);

CREATE FUNCTION worker_commands_tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('menuwatch_tasks', 'command ' || NEW.worker_id);
  RETURN NULL;
END $$;
CREATE TRIGGER worker_commands_tell AFTER INSERT ON worker_commands FOR EACH ROW EXECUTE FUNCTION worker_commands_tell();

-- As before, but for the workers that count as active: one that backs off for a moment does, one that an operator paused does not.
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
    SELECT count(*) AS active_workers, avg(coalesce((g.heartbeat ->> 'max_concurrent_tasks')::double precision, 1)) AS slots
      FROM worker_registry g
     WHERE g.status IN ('active', 'backing_off') AND g.last_heartbeat_at > now() - interval '2 minutes' AND (g.roles IS NULL OR r.role = ANY (g.roles))) w
 CROSS JOIN LATERAL (
    SELECT 3600 / nullif(h.avg_duration_sec, 0) * coalesce(w.slots, 1) AS tasks_per_worker_hour) x
 ORDER BY r.place;
