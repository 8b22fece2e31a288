-- Numbers of tasks that were given.

-- name: newest_task
SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS id FROM task_ids;
