-- Requests that carry an Idempotency-Key.

-- name: claim
-- The key for this request. One whose server died meanwhile can be claimed again after a while.
INSERT INTO idempotency_keys AS k (actor, key, fingerprint, claim)
VALUES (%(actor)s, %(key)s, %(fingerprint)s, %(claim)s::uuid)
ON CONFLICT (actor, key) DO UPDATE
SET fingerprint = excluded.fingerprint, claim = excluded.claim, status = NULL, headers = NULL, body = NULL, created_at = now()
WHERE k.created_at < now() - interval '1 day' OR (k.status IS NULL AND k.created_at < now() - interval '10 minutes' AND k.fingerprint = excluded.fingerprint)
RETURNING claim

-- name: claimed
SELECT fingerprint, status, headers, body FROM idempotency_keys WHERE actor = %(actor)s AND key = %(key)s

-- name: settle
UPDATE idempotency_keys SET status = %(status)s, headers = %(headers)s, body = %(body)s
WHERE actor = %(actor)s AND key = %(key)s AND claim = %(claim)s::uuid

-- name: give_back
-- Nothing was done: the same may be tried again.
DELETE FROM idempotency_keys WHERE actor = %(actor)s AND key = %(key)s AND claim = %(claim)s::uuid

-- name: prune
DELETE FROM idempotency_keys WHERE created_at < now() - interval '1 day'
