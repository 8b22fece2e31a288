-- What a platform's words mean in the vocabulary of all platforms (catalog/canon), beside the words themselves. Null where they mean nothing
-- that is known. They are filled by the next crawl of each store, because the normalizers' versions were raised.
ALTER TABLE catalog_products
  ADD COLUMN category_canon    text,
  ADD COLUMN subcategory_canon text,
  ADD COLUMN strain_canon      text;

CREATE OR REPLACE VIEW store_products AS
SELECT p.id, p.dispensary_id, p.provider, p.provider_product_id, p.name_raw, p.name, p.brand_name_raw, p.brand_name,
       p.category, p.subcategory, p.strain_type, p.status_raw,
       p.price_rec, p.price_rec_special, p.price_med, p.price_med_special, p.variants,
       p.is_in_stock, p.stock_status, p.quantity, p.quantity_capped,
       p.thc_lo, p.thc_hi, p.thc_unit, p.cbd_lo, p.cbd_hi, p.cbd_unit, p.cannabinoids, p.specials,
       p.image_url, p.images, p.local_image_path, p.description, p.platform_created_at, p.platform_updated_at, p.extra,
       p.consecutive_misses, p.first_seen_at,
       coalesce(p.last_seen_at, d.last_crawled_at) AS last_seen_at,
       p.changed_at AS updated_at,
       p.category_canon, p.subcategory_canon, p.strain_canon
  FROM catalog_products p JOIN dispensaries d ON d.id = p.dispensary_id;
