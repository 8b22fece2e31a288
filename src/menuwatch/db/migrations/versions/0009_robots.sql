-- robots.txt of a host (fetch/admission.py). `robots_checked_at` and `robots_status` are of the last time it was asked for; `robots_body` is the
-- last that could be read, empty where the host has none (4xx), and outlives times at which it cannot be read.
ALTER TABLE hosts
  ADD COLUMN robots_body_at       timestamptz,                       -- when `robots_body` was read
  ADD COLUMN robots_due_at        timestamptz,                       -- when it is to be asked for next; null: now
  ADD COLUMN robots_claimed_until timestamptz;                       -- until then nobody else asks for it: somebody does
