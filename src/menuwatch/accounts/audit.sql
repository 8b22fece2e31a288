-- The audit log.

-- name: record
INSERT INTO audit_log (actor, actor_kind, user_id, token_id, via, action, subject_kind, subject_id, details, request_id)
VALUES (%(actor)s, %(actor_kind)s, %(user_id)s, %(token_id)s, %(via)s, %(action)s, %(subject_kind)s, %(subject_id)s, %(details)s, %(request_id)s)

-- name: list_entries
SELECT id, at, actor, actor_kind, user_id, token_id, via, action, subject_kind, subject_id, details, request_id
FROM audit_log
WHERE (%(after)s::bigint IS NULL OR id < %(after)s)
  AND (%(actor)s::text IS NULL OR lower(actor) = lower(%(actor)s))
  AND (%(action)s::text IS NULL OR action = %(action)s)
  AND (%(subject_kind)s::text IS NULL OR subject_kind = %(subject_kind)s)
  AND (%(subject_id)s::text IS NULL OR subject_id = %(subject_id)s)
  AND (%(since)s::timestamptz IS NULL OR at >= %(since)s)
  AND (%(until)s::timestamptz IS NULL OR at < %(until)s)
ORDER BY id DESC LIMIT %(limit)s;

-- name: filter_options
-- Who acted, what was done, and to which kinds of things: each once, by walking an index from one to the next.
WITH RECURSIVE a AS (
  (SELECT action AS v FROM audit_log ORDER BY action LIMIT 1)
  UNION ALL SELECT (SELECT l.action FROM audit_log l WHERE l.action > a.v ORDER BY l.action LIMIT 1) FROM a WHERE a.v IS NOT NULL),
k AS (
  (SELECT subject_kind AS v FROM audit_log WHERE subject_kind IS NOT NULL ORDER BY subject_kind LIMIT 1)
  UNION ALL SELECT (SELECT l.subject_kind FROM audit_log l WHERE l.subject_kind > k.v ORDER BY l.subject_kind LIMIT 1) FROM k WHERE k.v IS NOT NULL),
w AS (
  (SELECT lower(actor) AS v, actor FROM audit_log ORDER BY lower(actor), id LIMIT 1)
  UNION ALL
  SELECT n.v, n.actor FROM w LEFT JOIN LATERAL (
    SELECT lower(l.actor) AS v, l.actor FROM audit_log l WHERE lower(l.actor) > w.v ORDER BY lower(l.actor), l.id LIMIT 1) n ON true
   WHERE w.v IS NOT NULL)
SELECT ARRAY(SELECT v FROM a WHERE v IS NOT NULL LIMIT %(limit)s) AS actions,
       ARRAY(SELECT v FROM k WHERE v IS NOT NULL LIMIT %(limit)s) AS kinds,
       ARRAY(SELECT actor FROM w WHERE v IS NOT NULL LIMIT %(limit)s) AS actors;
