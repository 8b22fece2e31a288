-- Upkeep: what keeps the database in shape, done now and then by whichever process comes first (engine/janitor.py).

CREATE TABLE upkeep (
  duty                     text PRIMARY KEY CHECK (duty <> ''),
  done_at                  timestamptz,                              -- when it last ended well
  tried_at                 timestamptz,
  error                    text                                      -- why it did not, the last time; null once it has
);

-- Quarantined payloads wait for somebody, and are counted often; there are few of them.
CREATE INDEX raw_crawl_payloads_quarantined ON raw_crawl_payloads (id) WHERE status = 'quarantined';

-- One that is due at no time would be read by nobody, and keep every other schedule from being looked at.
ALTER TABLE task_schedules ADD CONSTRAINT task_schedules_next CHECK (isfinite(next_run_at));
