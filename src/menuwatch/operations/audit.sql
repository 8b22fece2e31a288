-- What people did.

-- name: record
INSERT INTO audit_log (actor, actor_kind, user_id, token_id, via, action, subject_kind, subject_id, details, request_id)
VALUES (%(actor)s, %(actor_kind)s, %(user_id)s, %(token_id)s, %(via)s, %(action)s, %(subject_kind)s, %(subject_id)s, %(details)s, %(request_id)s)

-- name: page
SELECT id, at, actor, actor_kind, user_id, token_id, via, action, subject_kind, subject_id, details, request_id
FROM audit_log
WHERE (%(after)s::bigint IS NULL OR id < %(after)s)
  AND (%(actor)s::text IS NULL OR lower(actor) = lower(%(actor)s))
  AND (%(action)s::text IS NULL OR action = %(action)s)
  AND (%(subject_kind)s::text IS NULL OR subject_kind = %(subject_kind)s)
  AND (%(subject_id)s::text IS NULL OR subject_id = %(subject_id)s)
  AND (%(since)s::timestamptz IS NULL OR at >= %(since)s)
  AND (%(until)s::timestamptz IS NULL OR at < %(until)s)
ORDER BY id DESC LIMIT %(limit)s
