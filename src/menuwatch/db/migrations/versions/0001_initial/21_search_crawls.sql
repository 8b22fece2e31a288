-- Search crawls: sites searched by keyword, whose pages a fetching service, or our own identities, deliver later. All times are the
-- application's clock: every delay is a row, so a restart changes nothing and tests set the time.

CREATE TABLE crawl_jobs (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  site                     text NOT NULL,
  provider                 text NOT NULL,
  status                   text NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'completed', 'cancelled')),
  keywords                 text[] NOT NULL CHECK (cardinality(keywords) > 0),
  max_pages                integer NOT NULL CHECK (max_pages > 0),     -- pages of results for each keyword
  country                  text,
  -- When pages are submitted and retried: stored, so that a running job keeps its values.
  gap_min_seconds          double precision NOT NULL DEFAULT 5,
  gap_max_seconds          double precision NOT NULL DEFAULT 15 CHECK (gap_max_seconds >= gap_min_seconds),
  mixing_threshold         integer NOT NULL DEFAULT 15,
  max_retries              integer NOT NULL DEFAULT 3,
  retry_base_minutes       double precision NOT NULL DEFAULT 15,
  unthrottled_since        timestamptz,           -- since when pages of all kinds are submitted
  next_submit_after        timestamptz NOT NULL,  -- a gap after the previous submission
  submitting_until         timestamptz,           -- deadline of the submission under way; no other is made meanwhile
  next_submission_at       timestamptz,           -- when it is checked next; null: there is nothing more to do
  created_at               timestamptz NOT NULL,
  created_by               text,
  completed_at             timestamptz,
  cancelled_at             timestamptz,
  CONSTRAINT crawl_jobs_looked_at CHECK ((status = 'running') = (next_submission_at IS NOT NULL))
);
CREATE INDEX crawl_jobs_due ON crawl_jobs (next_submission_at) WHERE status = 'running';

CREATE TABLE crawl_queue (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  job_id                   bigint NOT NULL REFERENCES crawl_jobs (id) ON DELETE CASCADE,
  url                      text NOT NULL CHECK (octet_length(url) BETWEEN 1 AND 2000),
  url_type                 text NOT NULL CHECK (url_type IN ('search', 'pagination', 'product')),
  keyword                  text NOT NULL,          -- whose results led to it first
  page                     integer,                -- of the results; null for products
  priority                 smallint NOT NULL DEFAULT 2 CHECK (priority IN (1, 2)),
  status                   text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'submitted', 'completed', 'failed')),
  retry_count              integer NOT NULL DEFAULT 0,
  attempt                  integer NOT NULL DEFAULT 0,   -- attempts in all; the present one is in the reference that goes out
  next_attempt_at          timestamptz NOT NULL,
  created_at               timestamptz NOT NULL DEFAULT now(),
  submitted_at             timestamptz,            -- of the latest attempt
  deadline_at              timestamptz,            -- until when its page must have come; null unless it is under way
  completed_at             timestamptz,            -- when it ended, well or not
  error_message            text,                   -- of the latest attempt that failed; stays when a later one succeeds
  parent_id                bigint REFERENCES crawl_queue (id) ON DELETE CASCADE,
  new_urls                 integer,                -- URLs on its page that the job did not have yet
  removed                  boolean NOT NULL DEFAULT false,   -- the page says that the product is no longer sold
  UNIQUE (job_id, url),
  CONSTRAINT crawl_queue_deadline CHECK ((status = 'submitted') = (deadline_at IS NOT NULL)),
  CONSTRAINT crawl_queue_ended CHECK ((status IN ('completed', 'failed')) = (completed_at IS NOT NULL))
);
CREATE INDEX crawl_queue_ready ON crawl_queue (job_id, priority, next_attempt_at, id) WHERE status = 'pending';
CREATE INDEX crawl_queue_status ON crawl_queue (job_id, status, id);
CREATE INDEX crawl_queue_deadline ON crawl_queue (job_id, deadline_at) WHERE status = 'submitted';
CREATE INDEX crawl_queue_parent ON crawl_queue (parent_id) WHERE parent_id IS NOT NULL;

-- Every submission and its result. A delivered page is kept (search_crawl/pages.py), so it can be read again.
CREATE TABLE crawl_attempts (
  item_id                  bigint NOT NULL REFERENCES crawl_queue (id) ON DELETE CASCADE,
  attempt                  integer NOT NULL,
  job_id                   bigint NOT NULL REFERENCES crawl_jobs (id) ON DELETE CASCADE,
  submitted_at             timestamptz NOT NULL,
  request_id               text,                   -- what the provider calls it
  ended_at                 timestamptz,
  ok                       boolean,
  error                    text,
  path                     text,                   -- of the page in the archive
  PRIMARY KEY (item_id, attempt)
);
CREATE INDEX crawl_attempts_job ON crawl_attempts (job_id, submitted_at, item_id);

-- Deliveries not processed yet: a webhook is answered as soon as its row is stored.
CREATE TABLE crawl_deliveries (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  item_id                  bigint NOT NULL REFERENCES crawl_queue (id) ON DELETE CASCADE,
  attempt                  integer NOT NULL,
  received_at              timestamptz NOT NULL,
  visible_at               timestamptz NOT NULL,   -- a reader moves it on while it works; another takes over when that one dies
  tries                    integer NOT NULL DEFAULT 0,
  ok                       boolean NOT NULL,
  error                    text,
  html                     bytea,
  html_url                 text,
  request_id               text
);
CREATE INDEX crawl_deliveries_due ON crawl_deliveries (visible_at, id);
CREATE INDEX crawl_deliveries_item ON crawl_deliveries (item_id);

-- Orders for our own identities: a worker takes one, fetches the page and stores it as a delivery.
CREATE TABLE crawl_fetches (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  item_id                  bigint NOT NULL REFERENCES crawl_queue (id) ON DELETE CASCADE,
  attempt                  integer NOT NULL,
  reference                text NOT NULL,          -- of that attempt, as it is brought back
  url                      text NOT NULL,
  country                  text,
  visible_at               timestamptz NOT NULL,
  UNIQUE (item_id, attempt)
);
CREATE INDEX crawl_fetches_due ON crawl_fetches (visible_at, id);

CREATE TABLE crawl_products (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  job_id                   bigint NOT NULL REFERENCES crawl_jobs (id) ON DELETE CASCADE,
  item_id                  bigint NOT NULL REFERENCES crawl_queue (id) ON DELETE CASCADE,
  site                     text NOT NULL,
  site_product_id          text NOT NULL,
  keyword                  text NOT NULL,
  name                     text NOT NULL,
  url                      text NOT NULL,
  price_min                numeric,
  price_max                numeric,
  currency                 text NOT NULL,
  weight_g                 numeric,
  listed                   integer,                -- shops that have it on offer, by the site's own count
  score                    numeric NOT NULL CHECK (score BETWEEN 0 AND 100),   -- see search_crawl/rules.py
  images                   text[] NOT NULL DEFAULT '{}',
  seen_at                  timestamptz NOT NULL,
  UNIQUE (job_id, site_product_id)
);
CREATE INDEX crawl_products_score ON crawl_products (job_id, score DESC, id DESC);
CREATE INDEX crawl_products_item ON crawl_products (item_id);

CREATE TABLE crawl_variants (
  product_id               bigint NOT NULL REFERENCES crawl_products (id) ON DELETE CASCADE,
  variant_id               text NOT NULL,
  place                    integer NOT NULL,       -- in the order of the page
  sku                      text,
  name                     text,
  price                    numeric,
  weight_g                 numeric,
  PRIMARY KEY (product_id, variant_id)
);
