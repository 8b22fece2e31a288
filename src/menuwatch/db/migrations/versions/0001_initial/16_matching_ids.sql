-- The numbers that product rows carry: of the canonical product, its brand and the store's location. What was merged away is followed to
-- what it was merged into; a circle of redirects, which no writer makes, gives null. Views of the schema `analyst` call these for roles that
-- may not read tables, so they run with the rights of their owner.

CREATE FUNCTION live_canonical_product(id bigint) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path FROM CURRENT AS $$
  WITH RECURSIVE r AS (
    SELECT c.id, c.merged_into FROM canonical_products c WHERE c.id = $1
     UNION SELECT c.id, c.merged_into FROM r JOIN canonical_products c ON c.id = r.merged_into)
  SELECT r.id FROM r WHERE r.merged_into IS NULL
$$;

CREATE FUNCTION live_brand(id integer) RETURNS integer
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path FROM CURRENT AS $$
  WITH RECURSIVE r AS (
    SELECT b.id, b.merged_into FROM brands b WHERE b.id = $1
     UNION SELECT b.id, b.merged_into FROM r JOIN brands b ON b.id = r.merged_into)
  SELECT r.id FROM r WHERE r.merged_into IS NULL
$$;

CREATE FUNCTION live_location(id integer) RETURNS integer
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path FROM CURRENT AS $$
  WITH RECURSIVE r AS (
    SELECT l.id, l.merged_into FROM locations l WHERE l.id = $1
     UNION SELECT l.id, l.merged_into FROM r JOIN locations l ON l.id = r.merged_into)
  SELECT r.id FROM r WHERE r.merged_into IS NULL
$$;

-- These numbers, what they were merged into, and all that was merged into the same.
CREATE FUNCTION merged_canonical_products(ids bigint[]) RETURNS bigint[] LANGUAGE sql STABLE PARALLEL SAFE AS $$
  WITH RECURSIVE r AS (
    SELECT live_canonical_product(n) AS id FROM unnest($1) n
     UNION SELECT c.id FROM r JOIN canonical_products c ON c.merged_into = r.id)
  SELECT coalesce(array_agg(r.id), '{}') FROM r WHERE r.id IS NOT NULL
$$;

CREATE FUNCTION merged_brands(ids integer[]) RETURNS integer[] LANGUAGE sql STABLE PARALLEL SAFE AS $$
  WITH RECURSIVE r AS (
    SELECT live_brand(n) AS id FROM unnest($1) n UNION SELECT b.id FROM r JOIN brands b ON b.merged_into = r.id)
  SELECT coalesce(array_agg(r.id), '{}') FROM r WHERE r.id IS NOT NULL
$$;

CREATE FUNCTION merged_locations(ids integer[]) RETURNS integer[] LANGUAGE sql STABLE PARALLEL SAFE AS $$
  WITH RECURSIVE r AS (
    SELECT live_location(n) AS id FROM unnest($1) n UNION SELECT l.id FROM r JOIN locations l ON l.merged_into = r.id)
  SELECT coalesce(array_agg(r.id), '{}') FROM r WHERE r.id IS NOT NULL
$$;

-- The listings of these canonical products, or of all that have one of these brands; null takes all.
CREATE FUNCTION listings_of(products bigint[], brand_ids integer[]) RETURNS bigint[] LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT coalesce(array_agg(m.product_id), '{}')
    FROM canonical_products c JOIN product_matches m ON m.canonical_product_id = c.id
   WHERE ($1 IS NULL OR c.id = ANY (merged_canonical_products($1))) AND ($2 IS NULL OR c.brand_id = ANY (merged_brands($2)))
$$;

-- The menus of these locations.
CREATE FUNCTION menus_at(location_ids integer[]) RETURNS integer[] LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT coalesce(array_agg(k.dispensary_id), '{}')
    FROM location_links k WHERE k.location_id = ANY (merged_locations($1)) AND k.dispensary_id IS NOT NULL
$$;

CREATE VIEW canonical_product_brands AS
SELECT c.id AS canonical_product_id, c.name, c.category, CASE WHEN b.merged_into IS NULL THEN b.id ELSE live_brand(b.id) END AS brand_id
  FROM canonical_products c LEFT JOIN brands b ON b.id = c.brand_id;

-- Listings are moved when their product is merged, so the brand is that of the live product.
CREATE VIEW product_identities AS
SELECT m.product_id,
       CASE WHEN c.merged_into IS NULL THEN c.id ELSE live_canonical_product(c.id) END AS canonical_product_id,
       CASE WHEN b.merged_into IS NULL THEN b.id ELSE live_brand(b.id) END AS brand_id
  FROM product_matches m
  LEFT JOIN canonical_products c ON c.id = m.canonical_product_id
  LEFT JOIN brands b ON b.id = c.brand_id;

CREATE VIEW store_locations AS
SELECT k.dispensary_id, CASE WHEN l.merged_into IS NULL THEN l.id ELSE live_location(l.id) END AS location_id
  FROM location_links k JOIN locations l ON l.id = k.location_id
 WHERE k.dispensary_id IS NOT NULL;
