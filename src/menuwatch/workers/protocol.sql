-- The protocol of workers in any language: the functions of 13_workers_protocol.sql.

-- name: register
SELECT worker_register(%(worker)s::text, %(roles)s::text[], %(host)s::text, %(name)s::text, %(pid)s::integer, %(pod)s::text,
                       %(version)s::text) AS created;

-- name: heartbeat
SELECT lost FROM worker_heartbeat(%(worker)s::text, %(tasks)s::bigint[], %(attempts)s::integer[], %(status)s::text,
                                  %(acknowledged)s::bigint[], %(heartbeat)s::text::jsonb);

-- name: claimable
SELECT reason FROM worker_claimable(%(worker)s::text, %(roles)s::text[], %(hosts)s::text[]);

-- name: claim
SELECT id, role, dispensary_id, platform, status, priority, scheduled_for, worker_id, claimed_at, started_at, completed_at,
       last_heartbeat_at, result, error_message, retry_count, max_retries, payload, attempt, postpone_code, postpone_host,
       NULL AS wait_state, NULL AS blocked_by, created_at, updated_at
  FROM worker_claim(%(worker)s::text, %(roles)s::text[], %(n)s::integer, %(hosts)s::text[], %(holding)s::bigint[]);

-- name: start
SELECT id FROM worker_start(%(worker)s::text, %(task)s::bigint, %(attempt)s::integer);

-- name: complete
-- The follow-up tasks are checked and enqueued after it, in the same transaction, if it ended the attempt.
SELECT end_attempt(%(worker)s::text, %(task)s::bigint, %(attempt)s::integer, 'done', NULL, %(result)s::text::jsonb, NULL, NULL,
                   %(ran)s::double precision) AS ended;

-- name: retry
SELECT id
  FROM worker_retry(%(worker)s::text, %(task)s::bigint, %(attempt)s::integer, %(reason)s::text, %(wait)s::double precision,
                    %(result)s::text::jsonb, %(ran)s::double precision);

-- name: postpone
SELECT id
  FROM worker_postpone(%(worker)s::text, %(task)s::bigint, %(attempt)s::integer, %(reason)s::text, %(due)s::timestamptz,
                       %(wait)s::double precision, %(code)s::text, %(host)s::text, %(counted)s::boolean, %(ran)s::double precision);

-- name: fail
SELECT id
  FROM worker_fail(%(worker)s::text, %(task)s::bigint, %(attempt)s::integer, %(reason)s::text, %(result)s::text::jsonb,
                   %(ran)s::double precision);

-- name: leave
SELECT worker_leave(%(worker)s::text) AS returned;
