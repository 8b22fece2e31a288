-- A payload whose answers are those of an earlier one refers to that one's file (docs/decisions/0012-same-answers-one-file.md), so that a
-- path may stand in several rows. What kept two documents from one name was that they are of different stores or instants: that stays.
ALTER TABLE raw_crawl_payloads DROP CONSTRAINT raw_crawl_payloads_path_key;
CREATE INDEX raw_crawl_payloads_path ON raw_crawl_payloads (path);
CREATE UNIQUE INDEX raw_crawl_payloads_instant ON raw_crawl_payloads (dispensary_id, fetched_at);
