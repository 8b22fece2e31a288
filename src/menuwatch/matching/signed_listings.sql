-- Items of stores as the matcher reads them.

-- name: listings
-- The listings of those ids, with the signature that each was matched by, if any.
SELECT p.id, p.dispensary_id, d.name AS store, d.enterprise_id, p.name, p.brand_name AS brand, coalesce(p.category_canon, p.category) AS category, p.subcategory,
       coalesce(p.strain_canon, p.strain_type) AS strain, p.variants, coalesce(p.local_image_path, p.image_url) AS image,
       coalesce(m.platform_ids, '{}') AS platform_ids, s.id AS signature_id, s.key, s.block, m.canonical_product_id
  FROM catalog_products p
  LEFT JOIN dispensaries d ON d.id = p.dispensary_id
  LEFT JOIN product_matches m ON m.product_id = p.id
  LEFT JOIN match_signatures s ON s.id = m.signature_id
 WHERE p.id = ANY (%(ids)s::bigint[]);
