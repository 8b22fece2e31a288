-- The archive of raw answers: metadata of each file.

-- One raw answer of a platform for one store. The row and its file are written together or not at all (archive/__init__.py).
CREATE TABLE raw_crawl_payloads (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  task_id                  bigint,
  dispensary_id            integer NOT NULL REFERENCES dispensaries (id) ON DELETE CASCADE,
  platform                 text NOT NULL,
  status                   text NOT NULL CHECK (status IN ('ok', 'partial', 'quarantined', 'rejected')),
  reason                   text,
  product_count            integer NOT NULL DEFAULT 0 CHECK (product_count >= 0),
  total_count              integer,
  page_count               integer NOT NULL DEFAULT 0,
  is_first                 boolean NOT NULL DEFAULT false,
  is_partial               boolean NOT NULL DEFAULT false,  -- deliberately a part of a menu (replayed): absent products are no misses
  fetched_at               timestamptz NOT NULL,
  path                     text NOT NULL,
  bytes                    bigint NOT NULL,
  raw_bytes                bigint NOT NULL,
  sha256                   text NOT NULL,                -- of the document before compression
  content_sha256           text NOT NULL,                -- of the page bodies alone: equal menus have equal ones
  notes                    jsonb NOT NULL DEFAULT '[]',
  applied_at               timestamptz,                  -- when product_refresh applied it to the catalogue
  released_at              timestamptz,
  created_at               timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT payload_reason CHECK (status = 'ok' OR reason IS NOT NULL),
  CONSTRAINT payload_applied CHECK (applied_at IS NULL OR status = 'ok')
);
CREATE INDEX raw_crawl_payloads_store ON raw_crawl_payloads (dispensary_id, fetched_at DESC, id DESC);
CREATE INDEX raw_crawl_payloads_content ON raw_crawl_payloads (dispensary_id, content_sha256);
-- Payloads with equal content share one file (docs/decisions/0012-payload-deduplication.md), so a path may occur in several rows. Two
-- documents never get one name because no two rows have the same store and instant.
CREATE INDEX raw_crawl_payloads_newest ON raw_crawl_payloads (fetched_at DESC, id DESC);
-- Quarantined payloads are few, and counted often.
CREATE INDEX raw_crawl_payloads_quarantined ON raw_crawl_payloads (id) WHERE status = 'quarantined';
CREATE INDEX raw_crawl_payloads_path ON raw_crawl_payloads (path);
CREATE INDEX raw_crawl_payloads_partial ON raw_crawl_payloads (id) WHERE is_partial;  -- parts of menus, counted by the reports
CREATE UNIQUE INDEX raw_crawl_payloads_instant ON raw_crawl_payloads (dispensary_id, fetched_at);
-- Payloads that are not ok, newest first: a few among millions.
CREATE INDEX raw_crawl_payloads_not_ok ON raw_crawl_payloads (status, fetched_at DESC, id DESC) WHERE status <> 'ok';
