-- What programs of the former system write: statements that cannot break the rules work, the others end in an error that names the
-- replacement (docs/how-to/coming-from-the-old-system.md).

-- The former enum types, for casts such as 'payload_fetch'::task_role.
CREATE DOMAIN task_role AS text CHECK (VALUE IN ('store_discovery', 'entry_point_discovery', 'product_discovery', 'payload_fetch',
                                                 'product_refresh', 'analytics_refresh', 'product_resync'));
CREATE DOMAIN task_status AS text CHECK (VALUE IN ('pending', 'claimed', 'running', 'completed', 'failed', 'stale', 'cancelled'));

-- UPDATE worker_tasks: retry finished tasks, cancel live ones, change the priority of waiting ones, send a heartbeat of claimed ones. A finished task stays as it is; its
-- retry is a new task.
CREATE FUNCTION worker_tasks_update() RETURNS trigger LANGUAGE plpgsql AS $$
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

CREATE TRIGGER worker_tasks_update INSTEAD OF UPDATE ON worker_tasks FOR EACH ROW EXECUTE FUNCTION worker_tasks_update();

-- DELETE FROM worker_tasks: a finished task is removed, a live one cancelled (its row stays as cancelled).
CREATE FUNCTION worker_tasks_delete() RETURNS trigger LANGUAGE plpgsql AS $$
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

CREATE TRIGGER worker_tasks_delete INSTEAD OF DELETE ON worker_tasks FOR EACH ROW EXECUTE FUNCTION worker_tasks_delete();

-- Views of what crawls saw. INSTEAD OF triggers make the statements known to the view; the one per statement refuses also those that
-- match no row.
CREATE FUNCTION refuse_catalog_write() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is derived from crawls and cannot be written', TG_TABLE_NAME USING ERRCODE = 'object_not_in_prerequisite_state',
    HINT = 'To read a menu again, crawl the store: INSERT INTO worker_tasks (role, dispensary_id, priority) VALUES (''payload_fetch'', <id>, 20). '
           'To apply archived menus again: menuwatch rebuild. To bring in former rows: menuwatch migrate-legacy import.';
END $$;

CREATE TRIGGER store_products_refused BEFORE INSERT OR UPDATE OR DELETE ON store_products
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_catalog_write();
CREATE TRIGGER store_products_refused_row INSTEAD OF INSERT OR UPDATE OR DELETE ON store_products
  FOR EACH ROW EXECUTE FUNCTION refuse_catalog_write();
CREATE TRIGGER store_product_snapshots_refused BEFORE INSERT OR UPDATE OR DELETE ON store_product_snapshots
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_catalog_write();
CREATE TRIGGER store_product_snapshots_refused_row INSTEAD OF INSERT OR UPDATE OR DELETE ON store_product_snapshots
  FOR EACH ROW EXECUTE FUNCTION refuse_catalog_write();

-- INSERT INTO crawl_queue without next_attempt_at, or with null: the page is due now. The job submits it in its turn.
CREATE FUNCTION crawl_queue_insert() RETURNS trigger LANGUAGE plpgsql AS $$
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

CREATE TRIGGER crawl_queue_insert BEFORE INSERT ON crawl_queue
  FOR EACH ROW WHEN (NEW.next_attempt_at IS NULL) EXECUTE FUNCTION crawl_queue_insert();

-- Pages are submitted and ended together with their attempts, under the lock of their job.
CREATE FUNCTION refuse_crawl_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'page % of crawl job % is %: UPDATE cannot change %', OLD.id, OLD.job_id, OLD.status,
    CASE WHEN NEW.status <> OLD.status THEN format('its status to %s', NEW.status) ELSE 'these columns' END USING ERRCODE = 'object_not_in_prerequisite_state',
    HINT = 'Retry failed pages: POST /api/crawl/jobs/<job>/retry, or menuwatch crawl retry <job>. The server submits pages; deliveries end them.';
END $$;

CREATE TRIGGER crawl_queue_refused BEFORE UPDATE OF status, next_attempt_at ON crawl_queue
  FOR EACH ROW WHEN ((NEW.status = 'submitted') <> (NEW.deadline_at IS NOT NULL) OR NEW.next_attempt_at IS NULL
                     OR (NEW.status IN ('completed', 'failed')) <> (NEW.completed_at IS NOT NULL))
  EXECUTE FUNCTION refuse_crawl_update();
