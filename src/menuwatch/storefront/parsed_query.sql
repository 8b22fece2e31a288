-- The words of item names and brands, which a search text is parsed with.

-- name: known_words
-- For each word whether it occurs in a name, and whether an occurring word begins with it.
SELECT w.word, EXISTS (SELECT FROM storefront_words s WHERE s.word = w.word) AS whole,
       EXISTS (SELECT FROM storefront_words s WHERE s.word >= w.word COLLATE "C" AND s.word < w.word || U&'\+10FFFD' COLLATE "C") AS begins
  FROM unnest(%(words)s::text[]) w(word);

-- name: similar_words
-- Words one typing error away, and brands that differ in doubled letters alone.
SELECT w.word, EXISTS (SELECT FROM brands b WHERE b.slug = w.word) AS brand
  FROM (SELECT DISTINCT word FROM storefront_spellings WHERE spelling = ANY (%(spellings)s::text[]) ORDER BY word LIMIT 200) w
UNION SELECT b.slug, true FROM brands b JOIN storefront_words s ON s.word = b.slug
 WHERE left(b.slug, 1) = left(%(squeezed)s, 1) AND regexp_replace(b.slug, '(.)\1+', '\1', 'g') = %(squeezed)s;

-- name: matches_of_queries
-- How many items each of the queries matches, counted up to a limit.
SELECT q.query, q.place::integer AS place, (SELECT count(*) FROM (SELECT FROM storefront_item_words w WHERE w.words @@ q.query::tsquery LIMIT 2000) m) AS items
  FROM unnest(%(queries)s::text[]) WITH ORDINALITY q(query, place) ORDER BY q.place;
