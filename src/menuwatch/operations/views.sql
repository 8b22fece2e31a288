-- Views that people saved: a screen with its filters.

-- name: list_views
SELECT id, name, query FROM saved_views WHERE owner = %(owner)s AND screen = %(screen)s ORDER BY lower(name), id;

-- name: save_view
INSERT INTO saved_views (owner, screen, name, query)
SELECT %(owner)s, %(screen)s, %(name)s, %(query)s
 WHERE (SELECT count(*) FROM saved_views WHERE owner = %(owner)s AND screen = %(screen)s AND name <> %(name)s) < %(most)s
ON CONFLICT (owner, screen, name) DO UPDATE SET query = excluded.query
RETURNING id;

-- name: remove_views_of
DELETE FROM saved_views WHERE owner = %(owner)s;

-- name: remove_view
DELETE FROM saved_views WHERE id = %(id)s AND owner = %(owner)s RETURNING name;
