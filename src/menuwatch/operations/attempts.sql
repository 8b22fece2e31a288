-- Requests as people look at them: one row each, as long as they are kept.

-- name: list_attempts
-- Newest first. Planned anew each time (operations/attempts.py): a filter that is not set costs nothing.
SELECT a.id, a.attempted_at, a.task_id, a.dispensary_id, a.host, a.proxy_id, a.profile, a.verdict, a.blame, a.reaction, a.rotated, a.status,
       a.waited_ms, a.elapsed_ms, a.bytes, a.error, p.protocol AS proxy_protocol, p.host AS proxy_host, p.port AS proxy_port, p.username AS proxy_user
  FROM fetch_attempts a LEFT JOIN proxies p ON p.id = a.proxy_id
 WHERE (%(task_id)s::bigint IS NULL OR a.task_id = %(task_id)s)
   AND (%(dispensary_id)s::integer IS NULL OR a.dispensary_id = %(dispensary_id)s)
   AND (%(host)s::text IS NULL OR a.host = %(host)s)
   AND (%(proxy_id)s::integer IS NULL OR a.proxy_id = %(proxy_id)s)
   AND (%(verdicts)s::text[] IS NULL OR a.verdict = ANY (%(verdicts)s))
   AND (%(since)s::timestamptz IS NULL OR a.attempted_at >= %(since)s)
   AND (%(until)s::timestamptz IS NULL OR a.attempted_at < %(until)s)
   AND (%(after_at)s::timestamptz IS NULL OR (a.attempted_at, a.id) < (%(after_at)s, %(after_id)s::bigint))
 ORDER BY a.attempted_at DESC, a.id DESC LIMIT %(limit)s;
