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
