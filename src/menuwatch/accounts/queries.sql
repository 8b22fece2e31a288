-- Users, sessions, tokens and login failures.

-- name: lock_users
-- Every change of users takes this lock first: changes run one after the other and cannot deadlock.
LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE

-- name: any_user
SELECT EXISTS (SELECT FROM users)

-- name: admins
SELECT id FROM users WHERE role = 'admin' AND disabled_at IS NULL

-- name: insert_user
INSERT INTO users (name, role, password_hash, must_change_password)
VALUES (%(name)s, %(role)s, %(password_hash)s, %(must_change)s)
ON CONFLICT (lower(name)) DO NOTHING
RETURNING id, name, role, must_change_password, disabled_at, created_at, updated_at, password_changed_at, last_login_at

-- name: users
SELECT id, name, role, must_change_password, disabled_at, created_at, updated_at, password_changed_at, last_login_at
FROM users
WHERE id > %(after)s AND (%(id)s::int IS NULL OR id = %(id)s) AND (%(name)s::text IS NULL OR lower(name) = lower(%(name)s))
ORDER BY id LIMIT %(limit)s

-- name: password_of
SELECT id, password_hash, disabled_at IS NOT NULL FROM users WHERE lower(name) = lower(%(name)s)

-- name: password_by_id
SELECT password_hash FROM users WHERE id = %(id)s AND disabled_at IS NULL

-- name: set_role
UPDATE users SET role = %(role)s, updated_at = now() WHERE id = %(id)s

-- name: set_disabled
UPDATE users SET disabled_at = CASE WHEN %(disabled)s THEN coalesce(disabled_at, now()) END, updated_at = now() WHERE id = %(id)s

-- name: set_password
UPDATE users
SET password_hash = %(password_hash)s, must_change_password = %(must_change)s, password_changed_at = now(), updated_at = now()
WHERE id = %(id)s

-- name: rehash
-- The same password under newer parameters; not where it was changed meanwhile.
UPDATE users SET password_hash = %(password_hash)s WHERE id = %(id)s AND password_hash = %(before)s

-- name: delete_user
DELETE FROM users WHERE id = %(id)s

-- name: insert_session
-- Only while the user may log in: who is disabled between the check of the password and this has no session.
WITH who AS (
  UPDATE users SET last_login_at = now() WHERE id = %(user_id)s AND disabled_at IS NULL AND password_hash = %(password_hash)s RETURNING id
)
INSERT INTO sessions (user_id, secret_hash, idle_seconds, expires_at)
SELECT id, %(secret_hash)s, %(idle_seconds)s, now() + make_interval(secs => %(longest_seconds)s) FROM who
RETURNING id::text

-- name: session_user
SELECT s.id::text AS session, u.id AS user_id, u.name, u.role, u.must_change_password,
       s.seen_at < now() - interval '1 minute' AS is_stale
FROM sessions s JOIN users u ON u.id = s.user_id
WHERE s.secret_hash = %(secret_hash)s AND s.expires_at > now()
  AND s.seen_at > now() - make_interval(secs => s.idle_seconds) AND u.disabled_at IS NULL

-- name: session_permissions
SELECT s.id::text AS id, u.role, u.must_change_password
FROM sessions s JOIN users u ON u.id = s.user_id
WHERE s.id = ANY(%(ids)s::uuid[]) AND s.expires_at > now()
  AND s.seen_at > now() - make_interval(secs => s.idle_seconds) AND u.disabled_at IS NULL

-- name: touch_session
UPDATE sessions SET seen_at = now() WHERE id = %(id)s::uuid

-- name: delete_session
DELETE FROM sessions WHERE id = %(id)s::uuid

-- name: delete_sessions
DELETE FROM sessions WHERE user_id = %(user_id)s AND (%(keep)s::uuid IS NULL OR id <> %(keep)s::uuid)

-- name: insert_token
INSERT INTO api_tokens (user_id, name, secret_hash, scopes, expires_at)
VALUES (%(user_id)s, %(name)s, %(secret_hash)s, %(scopes)s, %(expires_at)s)
RETURNING id

-- name: tokens
SELECT t.id, t.user_id, u.name AS owner, t.name, t.scopes, t.created_at, t.expires_at, t.last_used_at, t.revoked_at
FROM api_tokens t JOIN users u ON u.id = t.user_id
WHERE t.id > %(after)s AND (%(id)s::int IS NULL OR t.id = %(id)s) AND (%(user_id)s::int IS NULL OR t.user_id = %(user_id)s)
ORDER BY t.id LIMIT %(limit)s

-- name: token_user
SELECT t.id AS token_id, t.secret_hash, t.scopes, u.id AS user_id, u.name, u.role,
       t.revoked_at IS NOT NULL AS is_revoked, coalesce(t.expires_at <= now(), false) AS is_expired,
       u.disabled_at IS NOT NULL AS is_disabled,
       coalesce(t.last_used_at < now() - interval '1 minute', true) AS is_stale
FROM api_tokens t JOIN users u ON u.id = t.user_id
WHERE t.id = %(id)s

-- name: token_permissions
SELECT t.id, t.scopes, u.role
FROM api_tokens t JOIN users u ON u.id = t.user_id
WHERE t.id = ANY(%(ids)s::int[]) AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now()) AND u.disabled_at IS NULL

-- name: touch_token
UPDATE api_tokens SET last_used_at = now() WHERE id = %(id)s

-- name: revoke_token
UPDATE api_tokens SET revoked_at = now() WHERE id = %(id)s AND revoked_at IS NULL

-- name: throttle_key
SELECT value FROM app_secrets WHERE name = 'login_failures'

-- name: make_throttle_key
-- By the first caller.
INSERT INTO app_secrets (name, value) VALUES ('login_failures', %(key)s) ON CONFLICT DO NOTHING

-- name: note_failure
-- Counted before the password is looked at, so that many at once are not one; not while it has to wait: then there is no row. After
-- `free` of them each waits twice as long as the one before.
INSERT INTO login_failures AS f (kind, key, failures, failed_at) VALUES (%(kind)s, %(key)s, 1, now())
ON CONFLICT (kind, key) DO UPDATE
SET failures = CASE WHEN f.failed_at < now() - interval '1 day' THEN 1 ELSE f.failures + 1 END, failed_at = now()
WHERE f.failures < %(free)s
   OR f.failed_at + make_interval(secs => least(%(longest)s, %(first)s * 2 ^ least(f.failures - %(free)s, 20))) <= now()
RETURNING failures

-- name: wait_left
SELECT extract(epoch FROM failed_at + make_interval(secs => least(%(longest)s, %(first)s * 2 ^ least(failures - %(free)s, 20))) - now())::float8
FROM login_failures WHERE kind = %(kind)s AND key = %(key)s AND failures >= %(free)s

-- name: forget_failures
DELETE FROM login_failures WHERE kind = %(kind)s AND key = %(key)s

-- name: take_back_failure
-- It was none.
WITH gone AS (DELETE FROM login_failures WHERE kind = %(kind)s AND key = %(key)s AND failures = 1)
UPDATE login_failures SET failures = failures - 1 WHERE kind = %(kind)s AND key = %(key)s AND failures > 1

-- name: prune_sessions
DELETE FROM sessions WHERE expires_at <= now() OR seen_at <= now() - make_interval(secs => idle_seconds)

-- name: prune_audit
-- So many at once that it is soon done; the rest follows in an hour.
DELETE FROM audit_log WHERE id IN (SELECT id FROM audit_log WHERE at < %(before)s ORDER BY at LIMIT 200000)

-- name: prune_failures
DELETE FROM login_failures WHERE failed_at < now() - interval '1 day'

-- name: prune_throttle_key
-- Without the key the hashes mean nothing: all counts start over.
WITH gone AS (DELETE FROM app_secrets WHERE name = 'login_failures' AND created_at < now() - interval '1 day' RETURNING name)
DELETE FROM login_failures WHERE EXISTS (SELECT FROM gone)
