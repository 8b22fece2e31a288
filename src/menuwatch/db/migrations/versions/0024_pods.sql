-- An order for more or fewer pods of Kubernetes, until it is carried out: one row. The number itself is the StatefulSet's; `wanted` is null
-- while nothing is under way. `looked_at` is when a server last did something for it, `trouble` what was in the way then.
CREATE TABLE pod_order (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  wanted integer CHECK (wanted >= 0),
  ordered_at timestamptz,
  looked_at timestamptz,
  trouble text,
  CHECK (num_nulls(wanted, ordered_at) IN (0, 2)),
  CHECK (trouble IS NULL OR wanted IS NOT NULL)
) WITH (fillfactor = 10);
INSERT INTO pod_order DEFAULT VALUES;
