-- Visitors of the public site, without identifying them: salts that are deleted, marks, and daily totals.

-- A day (UTC) has one salt, made by the first visit counted that day. It is deleted before it is 48 hours old, and with it every mark
-- made with it: the remaining totals cannot be traced to a visitor.
CREATE TABLE visitor_salts (
  day        date PRIMARY KEY,
  salt       bytea NOT NULL CHECK (octet_length(salt) = 32),
  created_at timestamptz NOT NULL DEFAULT now()
);

-- One mark each for: a visitor came that day, saw a kind of page, saw a page. Marks can be neither distinguished nor joined.
CREATE TABLE visitor_marks (
  day  date  NOT NULL REFERENCES visitor_salts ON DELETE CASCADE,
  mark bytea NOT NULL CHECK (octet_length(mark) = 16),
  PRIMARY KEY (day, mark)
);

-- The sums, which stay. What is not known of a place is ''. `uniques`: visitors who saw that kind of page that day; `arrivals`: those whose
-- first page of the day it was, so that the sum of a day's arrivals, over kinds and places, is the number of its visitors.
CREATE TABLE visitor_days (
  day      date    NOT NULL,
  country  text    NOT NULL,
  region   text    NOT NULL,
  city     text    NOT NULL,
  kind     text    NOT NULL,
  views    bigint  NOT NULL,
  uniques  integer NOT NULL,
  arrivals integer NOT NULL,
  PRIMARY KEY (day, country, region, city, kind)
);

CREATE TABLE visitor_pages (
  day     date    NOT NULL,
  kind    text    NOT NULL,
  page    text    NOT NULL,
  views   bigint  NOT NULL,
  uniques integer NOT NULL,
  PRIMARY KEY (day, kind, page)
);
