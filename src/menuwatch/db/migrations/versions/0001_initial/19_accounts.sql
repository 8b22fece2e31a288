-- Accounts: users, sessions, tokens, login failures, the audit log, idempotency keys, saved views.
--
-- A reader of these tables cannot log in with them: passwords are argon2 hashes, cookies and tokens SHA-256 hashes of 256 random bits,
-- addresses keyed hashes whose key is replaced every day.

CREATE TABLE users (
  id                       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name                     text NOT NULL CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$'),
  role                     text NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
  password_hash            text NOT NULL CHECK (password_hash LIKE '$argon2%'),
  must_change_password     boolean NOT NULL DEFAULT false,  -- it was given to them: until they have their own they may do nothing else
  disabled_at              timestamptz,
  created_at               timestamptz NOT NULL DEFAULT now(),
  updated_at               timestamptz NOT NULL DEFAULT now(),
  password_changed_at      timestamptz NOT NULL DEFAULT now(),
  last_login_at            timestamptz
);
CREATE UNIQUE INDEX users_name ON users (lower(name));
CREATE INDEX users_admins ON users (id) WHERE role = 'admin' AND disabled_at IS NULL;

-- A browser that is logged in. `id` may be shown; the cookie holds a secret of which only the hash is here.
CREATE TABLE sessions (
  id                       uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  user_id                  integer NOT NULL REFERENCES users ON DELETE CASCADE,
  secret_hash              bytea NOT NULL UNIQUE CHECK (octet_length(secret_hash) = 32),
  created_at               timestamptz NOT NULL DEFAULT now(),
  seen_at                  timestamptz NOT NULL DEFAULT now(),
  idle_seconds             integer NOT NULL CHECK (idle_seconds > 0),
  expires_at               timestamptz NOT NULL     -- whatever is done in it
);
CREATE INDEX sessions_user ON sessions (user_id);
CREATE INDEX sessions_expires ON sessions (expires_at);

-- A program that acts for a user. What it may do is what its scopes and the user's role both allow at that moment.
CREATE TABLE api_tokens (
  id                       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  user_id                  integer NOT NULL REFERENCES users ON DELETE CASCADE,
  name                     text NOT NULL CHECK (name <> '' AND length(name) <= 100),
  secret_hash              bytea NOT NULL CHECK (octet_length(secret_hash) = 32),
  scopes                   text[] NOT NULL CHECK (cardinality(scopes) > 0),
  created_at               timestamptz NOT NULL DEFAULT now(),
  expires_at               timestamptz,
  last_used_at             timestamptz,
  revoked_at               timestamptz
);
CREATE INDEX api_tokens_user ON api_tokens (user_id);

-- Logins that failed, by the name that was tried and by the address that tried. Both are keyed hashes: a password typed in the place
-- of a name is not kept either. UNLOGGED: a crash empties it. The key of the hashes is in `app_secrets` and is replaced every day.
CREATE UNLOGGED TABLE login_failures (
  kind                     text NOT NULL CHECK (kind IN ('user', 'address')),
  key                      bytea NOT NULL CHECK (octet_length(key) = 32),
  failures                 integer NOT NULL CHECK (failures > 0),
  failed_at                timestamptz NOT NULL,
  PRIMARY KEY (kind, key)
);
CREATE INDEX login_failures_failed ON login_failures (failed_at);

-- What people, and programs for them, did. Rows outlive the users that they name.
CREATE TABLE audit_log (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at                       timestamptz NOT NULL DEFAULT now(),
  actor                    text NOT NULL,
  actor_kind               text NOT NULL CHECK (actor_kind IN ('user', 'token', 'cli')),
  user_id                  integer,
  token_id                 integer,
  via                      text NOT NULL CHECK (via IN ('api', 'dashboard', 'cli')),
  action                   text NOT NULL,
  subject_kind             text,
  subject_id               text,
  details                  jsonb NOT NULL DEFAULT '{}',     -- never a secret
  request_id               text
);
CREATE INDEX audit_log_at      ON audit_log (at);
CREATE INDEX audit_log_actor   ON audit_log (lower(actor), id);
CREATE INDEX audit_log_action  ON audit_log (action, id);
CREATE INDEX audit_log_subject ON audit_log (subject_kind, subject_id, id);

-- Requests that carried an Idempotency-Key, and their answers. Without a status the request is under way.
CREATE TABLE idempotency_keys (
  actor                    text NOT NULL,
  key                      text NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
  fingerprint              bytea NOT NULL CHECK (octet_length(fingerprint) = 32),
  claim                    uuid NOT NULL,            -- of the one request that is carried out
  status                   smallint,
  headers                  jsonb,
  body                     bytea,
  created_at               timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (actor, key),
  CHECK ((status IS NULL) = (headers IS NULL) AND (status IS NULL) = (body IS NULL))
);
CREATE INDEX idempotency_keys_created ON idempotency_keys (created_at);

-- What people keep of the dashboard: views they saved. A view is a screen with its filters, as the query of its address.
CREATE TABLE saved_views (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  owner text NOT NULL,
  screen text NOT NULL CHECK (length(screen) BETWEEN 1 AND 64),
  name text NOT NULL CHECK (length(name) BETWEEN 1 AND 80),
  query text NOT NULL CHECK (length(query) <= 2000),
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (owner, screen, name)
);
