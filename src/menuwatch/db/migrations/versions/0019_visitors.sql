-- Who looks at the public site, without saying who: salts that do not last, visits, and their sums.

-- A day (UTC) has one salt, made by whoever counts first that day. It is deleted before it is 48 hours old, and with it every mark that was
-- made with it: what is left can be traced to nobody, by us neither.
CREATE TABLE visitor_salts (
  day        date PRIMARY KEY,
  salt       bytea NOT NULL CHECK (octet_length(salt) = 32),
  created_at timestamptz NOT NULL DEFAULT now()
);

-- That somebody was here that day, saw a kind of page, saw a page: one mark for each, which cannot be told from each other, nor be joined.
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
