-- Upkeep: what keeps the database in shape, done now and then by whichever process comes first (engine/janitor.py).

CREATE TABLE upkeep (
  duty                     text PRIMARY KEY CHECK (duty <> ''),
  done_at                  timestamptz,                              -- when it last ended well
  tried_at                 timestamptz,
  error                    text                                      -- why it did not, the last time; null once it has
);

-- Quarantined payloads wait for somebody, and are counted often; there are few of them.
CREATE INDEX raw_crawl_payloads_quarantined ON raw_crawl_payloads (id) WHERE status = 'quarantined';
