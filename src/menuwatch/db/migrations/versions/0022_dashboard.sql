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

-- Whether a product costs less than it usually does; medical prices count only where there is no recreational one, as in effective_price.
CREATE FUNCTION on_special(price_rec numeric, price_rec_special numeric, price_med numeric, price_med_special numeric) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN price_rec IS NOT NULL OR price_rec_special IS NOT NULL THEN coalesce(price_rec_special < price_rec, false)
              ELSE coalesce(price_med_special < price_med, false) END
$$;

-- Answers that were not simply a menu, newest first: among millions of others they are few.
CREATE INDEX raw_crawl_payloads_odd ON raw_crawl_payloads (status, fetched_at DESC, id DESC) WHERE status <> 'ok';

-- What a rule found lately, for whoever looks at the rule; there may be very many events, and few of them its.
CREATE INDEX alert_events_rule ON alert_events (rule_id, id DESC);

-- Who waits for a picture that is under way: few among all who have theirs.
CREATE INDEX IF NOT EXISTS image_uses_waiting ON image_uses (id) WHERE status = 'waiting';
