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
