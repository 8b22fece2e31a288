-- Proxies: addresses, health and location. Nothing is ever requested without one.

CREATE TABLE proxies (
  id                       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  protocol                 text NOT NULL DEFAULT 'http' CHECK (protocol IN ('http', 'https', 'socks5')),
  host                     text NOT NULL CHECK (host <> ''),
  port                     integer NOT NULL CHECK (port BETWEEN 1 AND 65535),
  username                 text,
  password                 text,                         -- `fernet:…` where it is encrypted (core/encryption.py)
  is_active                boolean NOT NULL DEFAULT true,   -- may be picked
  city                     text,
  state                    text,
  country                  text,
  timezone                 text,
  last_used_at             timestamptz,
  failure_count            integer NOT NULL DEFAULT 0,   -- consecutive failures that were the proxy's fault
  success_count            bigint  NOT NULL DEFAULT 0,
  consecutive_403_count    integer NOT NULL DEFAULT 0,
  avg_response_time_ms     double precision,
  last_failure_at          timestamptz,
  last_error               text,
  deactivated_at           timestamptz,
  disabled_at              timestamptz,                  -- disabled by an operator, and enabled by operators only
  disabled_reason          text,
  -- When a proxy that its health deactivated is probed next, or an active one is tested again because an operator asked for it.
  probe_at                 timestamptz,
  probe_failures           integer NOT NULL DEFAULT 0,   -- probes in a row that failed
  -- Result of the last test or probe, null where it passed. `untested`: the test itself could not be run.
  probe_state              text CHECK (probe_state IN ('untested', 'failed')),
  tags                     text[] NOT NULL DEFAULT '{}',    -- an operator's labels, such as a provider or a pool; sorted
  created_at               timestamptz NOT NULL DEFAULT now(),
  updated_at               timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT proxies_disabled CHECK ((disabled_at IS NULL) = (disabled_reason IS NULL) AND (disabled_at IS NULL OR NOT is_active))
);
CREATE UNIQUE INDEX proxies_address ON proxies (protocol, host, port, coalesce(username, ''));
CREATE INDEX proxies_probe ON proxies (probe_at) WHERE disabled_at IS NULL AND probe_at IS NOT NULL;
