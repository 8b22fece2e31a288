-- What ended last.

-- name: ended_lately
-- Of each role the newest, by its index, then the newest of all; names are looked up for those alone. Days before yesterday are not
-- looked at.
SELECT h.id, h.role, h.status, h.completed_at, h.worker_id, w.friendly_name AS worker, w.pod, h.dispensary_id, d.name AS store,
       h.error_message, round(extract(epoch FROM h.completed_at - h.started_at)::numeric, 1)::double precision AS seconds
  FROM (SELECT t.* FROM unnest(task_roles(NULL)) r(role)
         CROSS JOIN LATERAL (
           SELECT i.id, i.role, i.status, i.completed_at, i.started_at, i.worker_id, i.dispensary_id, i.error_message
             FROM task_history i WHERE i.role = r.role AND i.completed_at >= now() - interval '24 hours'
            ORDER BY i.completed_at DESC LIMIT %(limit)s) t
         ORDER BY t.completed_at DESC, t.id DESC LIMIT %(limit)s) h
  LEFT JOIN worker_registry w ON w.worker_id = h.worker_id
  LEFT JOIN dispensaries d ON d.id = h.dispensary_id
 ORDER BY h.completed_at DESC, h.id DESC;
