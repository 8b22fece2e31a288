-- Saved views: a screen with its filters.

-- name: list_views
SELECT id, screen, name, query FROM saved_views
 WHERE owner = %(owner)s AND (%(screen)s::text IS NULL OR screen = %(screen)s) ORDER BY screen, lower(name), id;

-- name: save_view
INSERT INTO saved_views (owner, screen, name, query)
SELECT %(owner)s, %(screen)s, %(name)s, %(query)s
 WHERE (SELECT count(*) FROM saved_views WHERE owner = %(owner)s AND screen = %(screen)s AND name <> %(name)s) < %(most)s
ON CONFLICT (owner, screen, name) DO UPDATE SET query = excluded.query
RETURNING id, screen, name, query;

-- name: delete_views_of
DELETE FROM saved_views WHERE owner = %(owner)s;

-- name: delete_view
DELETE FROM saved_views WHERE id = %(id)s AND owner = %(owner)s RETURNING id, screen, name, query;
