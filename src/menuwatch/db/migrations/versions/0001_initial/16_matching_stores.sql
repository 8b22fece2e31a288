-- What people and time do to locations (the tables themselves are in 16_matching.sql).

-- "This menu (or licence) is not of this location", said by a person. That it *is* of one stands in location_links.decided_by.
CREATE TABLE location_refusals (
  location_id              integer NOT NULL REFERENCES locations (id),
  dispensary_id            integer REFERENCES dispensaries (id) ON DELETE CASCADE,
  licence_id               integer REFERENCES licences (id) ON DELETE CASCADE,
  decided_by               text NOT NULL,
  decided_at               timestamptz NOT NULL DEFAULT now(),
  UNIQUE (location_id, dispensary_id),
  UNIQUE (location_id, licence_id),
  CONSTRAINT location_refusals_one CHECK (num_nonnulls(dispensary_id, licence_id) = 1)
);
CREATE INDEX location_refusals_dispensary ON location_refusals (dispensary_id) WHERE dispensary_id IS NOT NULL;
CREATE INDEX location_refusals_licence ON location_refusals (licence_id) WHERE licence_id IS NOT NULL;

-- What became of locations, for their pages and the feed of changes. `before` and `after` are names, or addresses in one line; where
-- locations merged, `other_id` is the one that ended, and where one split, the new one.
CREATE TABLE location_events (
  id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at                       timestamptz NOT NULL DEFAULT now(),
  location_id              integer NOT NULL REFERENCES locations (id),
  kind                     text NOT NULL CHECK (kind IN ('moved', 'renamed', 'merged', 'split', 'ended', 'returned')),
  before                   text,
  after                    text,
  other_id                 integer REFERENCES locations (id),
  made_by                  text                      -- null: the matcher
);
CREATE INDEX location_events_location ON location_events (location_id, at);
CREATE INDEX location_events_at ON location_events (at, id);
CREATE INDEX location_events_other ON location_events (other_id) WHERE other_id IS NOT NULL;

-- The menus of each location. `preferred` is true for exactly one of them: the one that a page shows where it shows one. A menu that is
-- crawled and has products goes before one that is not or has none, then the one that was read last counts; so the answer changes when
-- another menu becomes the fresher one. To join: `JOIN location_menus m ON m.dispensary_id = … AND m.preferred`. A store that was
-- discovered seconds ago has no row yet: use LEFT JOIN and `coalesce(m.preferred, true)`.
CREATE VIEW location_menus AS
SELECT l.location_id, l.dispensary_id,
       row_number() OVER (PARTITION BY l.location_id
                          ORDER BY d.crawl_enabled DESC, d.product_count > 0 DESC NULLS LAST, d.last_crawled_at DESC NULLS LAST, d.id) = 1 AS preferred
  FROM location_links l JOIN dispensaries d ON d.id = l.dispensary_id;
