-- What analysts read in SQL (docs/how-to/sql.md): views in a schema of their own, for roles that see nothing else. Exports read the same
-- views. Every view and column has a comment; docs/reference/sql is made from them. Views run with the rights of their owner, so a role
-- needs rights on this schema alone.

CREATE SCHEMA IF NOT EXISTS analyst;

CREATE VIEW analyst.stores AS
SELECT d.id AS dispensary_id, d.platform, d.platform_dispensary_id, d.slug, d.name, d.menu_url, d.address, d.city, d.state, d.country, d.zipcode,
       d.latitude::numeric AS latitude, d.longitude::numeric AS longitude, d.timezone, currency_of(d.state) AS currency, d.phone,
       d.is_recreational, d.is_medical, l.location_id, d.crawl_enabled, d.crawl_interval_hours, d.first_crawled_at, d.last_crawled_at, d.product_count
  FROM dispensaries d LEFT JOIN store_locations l ON l.dispensary_id = d.id;

CREATE VIEW analyst.crawls AS
SELECT c.dispensary_id, d.name AS store, d.state, c.crawled_at, c.payload_id, c.products, c.new_products, c.changed, c.unchanged, c.returned,
       c.missing, c.out_of_stock, c.price_changes, c.stock_changes
  FROM store_crawls c JOIN dispensaries d ON d.id = c.dispensary_id;

CREATE VIEW analyst.products AS
SELECT p.id AS product_id, p.dispensary_id, d.name AS store, d.state, p.provider, p.provider_product_id, p.name, p.name_raw,
       p.brand_name, p.brand_name_raw, p.category, p.subcategory, p.strain_type, p.category_canon, p.subcategory_canon,
       p.strain_canon, p.status_raw, p.price_rec, p.price_rec_special, p.price_med, p.price_med_special, p.is_in_stock,
       p.stock_status, p.quantity, p.quantity_capped, p.thc_lo, p.thc_hi, p.thc_unit, p.cbd_lo, p.cbd_hi, p.cbd_unit,
       p.variants, p.cannabinoids, p.terpenes, p.batch ->> 'batch_id' AS batch_id, p.batch ->> 'package_tag' AS package_tag,
       (p.batch ->> 'tested_on')::date AS tested_on, (p.batch ->> 'packaged_on')::date AS packaged_on,
       (p.batch ->> 'expires_on')::date AS expires_on, p.batch ->> 'certificate_url' AS certificate_url, p.quantity_sold,
       p.specials, p.image_url, p.local_image_path, p.description, p.consecutive_misses, p.first_seen_at, p.last_seen_at,
       p.updated_at, p.platform_created_at, p.platform_updated_at, i.canonical_product_id, i.brand_id, l.location_id
  FROM store_products p JOIN dispensaries d ON d.id = p.dispensary_id
  LEFT JOIN product_identities i ON i.product_id = p.id
  LEFT JOIN store_locations l ON l.dispensary_id = p.dispensary_id;

CREATE VIEW analyst.offers AS
SELECT p.id AS product_id, v.position, p.dispensary_id, d.name AS store, d.state, p.provider, p.provider_product_id, p.name, p.brand_name,
       p.category_canon, p.subcategory_canon, p.strain_canon, v.option, v.weight_g, v.content_mg, v.pieces, currency_of(d.state) AS currency,
       effective_price(v.price_rec, v.special_rec, v.price_med, v.special_med) AS price, v.price_rec, v.special_rec AS price_rec_special,
       v.price_med, v.special_med AS price_med_special, v.price_per_g, coalesce(v.stock_status, 'unknown') AS stock_status, v.quantity,
       coalesce(v.capped, false) AS quantity_capped, p.last_seen_at, p.updated_at, i.canonical_product_id, i.brand_id, l.location_id
  FROM store_products p JOIN dispensaries d ON d.id = p.dispensary_id AND d.last_crawled_at = p.last_seen_at
 CROSS JOIN LATERAL ROWS FROM (jsonb_to_recordset(p.variants) AS (option text, weight_g numeric, content_mg numeric, pieces bigint, price_rec numeric,
       special_rec numeric, price_med numeric, special_med numeric, price_per_g numeric, stock_status text, quantity bigint, capped boolean))
       WITH ORDINALITY AS v(option, weight_g, content_mg, pieces, price_rec, special_rec, price_med, special_med, price_per_g, stock_status, quantity,
       capped, position)
  LEFT JOIN product_identities i ON i.product_id = p.id
  LEFT JOIN store_locations l ON l.dispensary_id = p.dispensary_id;

CREATE VIEW analyst.snapshots AS
SELECT s.crawled_at, s.payload_id, s.store_product_id AS product_id, s.dispensary_id, d.name AS store, d.state, s.provider,
       s.provider_product_id, p.name, p.brand_name, p.category_canon, s.price_rec, s.price_rec_special, s.price_med,
       s.price_med_special, s.is_in_stock, s.stock_status, s.quantity, s.quantity_capped, s.thc_lo, s.thc_hi, s.thc_unit,
       s.cbd_lo, s.cbd_hi, s.cbd_unit, s.prices, s.stock, s.state_since, i.canonical_product_id, i.brand_id, l.location_id
  FROM store_product_snapshots s
  JOIN catalog_products p ON p.id = s.store_product_id
  JOIN dispensaries d ON d.id = s.dispensary_id
  LEFT JOIN product_identities i ON i.product_id = p.id
  LEFT JOIN store_locations l ON l.dispensary_id = s.dispensary_id;

CREATE VIEW analyst.states AS
SELECT s.seen_from, s.seen_to, s.present, s.product_id, p.dispensary_id, d.name AS store, d.state, p.provider,
       p.provider_product_id, p.name, p.brand_name, p.category_canon, s.price_rec, s.price_rec_special, s.price_med,
       s.price_med_special, s.stock_status, s.quantity, s.quantity_capped, s.thc_lo, s.thc_hi, s.thc_unit, s.cbd_lo, s.cbd_hi,
       s.cbd_unit, s.prices, s.stock, i.canonical_product_id, i.brand_id, l.location_id
  FROM product_states s
  JOIN catalog_products p ON p.id = s.product_id
  JOIN dispensaries d ON d.id = p.dispensary_id
  LEFT JOIN product_identities i ON i.product_id = p.id
  LEFT JOIN store_locations l ON l.dispensary_id = p.dispensary_id;

CREATE VIEW analyst.changes AS
SELECT c.changed_at, c.product_id, c.dispensary_id, d.name AS store, d.state, p.provider, c.provider_product_id, c.name,
       c.brand_name, p.category_canon, c.price_changed, c.stock_changed, c.present, c.price_rec_before, c.price_rec_after,
       c.price_rec_special_before, c.price_rec_special_after, c.price_med_before, c.price_med_after, c.price_med_special_before,
       c.price_med_special_after, c.stock_status_before, c.stock_status_after, c.quantity_before, c.quantity_after,
       c.prices_before, c.prices_after, c.stock_before, c.stock_after, i.canonical_product_id, i.brand_id, l.location_id
  FROM product_changes c
  JOIN catalog_products p ON p.id = c.product_id
  JOIN dispensaries d ON d.id = c.dispensary_id
  LEFT JOIN product_identities i ON i.product_id = p.id
  LEFT JOIN store_locations l ON l.dispensary_id = c.dispensary_id;

CREATE VIEW analyst.details AS
SELECT p.seen_from, p.ended_at, p.product_id, c.dispensary_id, d.name AS store, d.state, c.provider, c.provider_product_id, c.name,
       c.brand_name, c.category_canon, p.cannabinoids, p.terpenes, p.batch ->> 'batch_id' AS batch_id, p.batch ->> 'package_tag' AS package_tag,
       (p.batch ->> 'tested_on')::date AS tested_on, (p.batch ->> 'packaged_on')::date AS packaged_on,
       (p.batch ->> 'expires_on')::date AS expires_on, p.batch ->> 'certificate_url' AS certificate_url, p.quantity_sold,
       i.canonical_product_id, i.brand_id, l.location_id
  FROM product_details p
  JOIN catalog_products c ON c.id = p.product_id
  JOIN dispensaries d ON d.id = c.dispensary_id
  LEFT JOIN product_identities i ON i.product_id = c.id
  LEFT JOIN store_locations l ON l.dispensary_id = c.dispensary_id;

CREATE VIEW analyst.canonical_products AS
SELECT c.id AS canonical_product_id, live_brand(c.brand_id) AS brand_id, c.name, c.category, c.form, c.strain, c.listings, c.stores,
       live_canonical_product(c.merged_into) AS merged_into, c.created_at, c.changed_at
  FROM canonical_products c;

CREATE VIEW analyst.brands AS
SELECT b.id AS brand_id, b.slug, b.name, live_brand(b.merged_into) AS merged_into, b.created_at
  FROM brands b;

CREATE VIEW analyst.locations AS
SELECT l.id AS location_id, l.name, l.chain, l.address, l.city, l.state, l.zipcode, l.latitude::numeric AS latitude,
       l.longitude::numeric AS longitude, l.phone, live_location(l.merged_into) AS merged_into, l.created_at, l.changed_at
  FROM locations l;

CREATE VIEW analyst.product_matches AS
SELECT m.product_id, m.dispensary_id, i.canonical_product_id, i.brand_id, l.location_id, round(s.confidence::numeric, 4) AS confidence,
       s.reasons, to_json(m.sizes) AS sizes, m.matched_at
  FROM product_matches m
  JOIN match_signatures s ON s.id = m.signature_id
  LEFT JOIN product_identities i ON i.product_id = m.product_id
  LEFT JOIN store_locations l ON l.dispensary_id = m.dispensary_id;

CREATE VIEW analyst.match_events AS
SELECT e.id, e.at, e.kind, e.from_id AS from_canonical_product_id, f.name AS from_name, e.to_id AS canonical_product_id, t.name, e.listings, e.cause
  FROM match_events e JOIN canonical_products f ON f.id = e.from_id JOIN canonical_products t ON t.id = e.to_id;

-- The reports of the last refresh.
CREATE VIEW analyst.report_stores AS SELECT * FROM analytics_stores;
CREATE VIEW analyst.report_price_per_gram AS SELECT * FROM analytics_price_per_gram;
CREATE VIEW analyst.report_brands AS SELECT * FROM analytics_brand_distribution;
CREATE VIEW analyst.report_categories AS SELECT * FROM analytics_category_distribution;
CREATE VIEW analyst.report_discounts AS SELECT * FROM analytics_discounts;
CREATE VIEW analyst.report_out_of_stock AS SELECT * FROM analytics_out_of_stock;
CREATE VIEW analyst.report_out_of_stock_products AS SELECT * FROM analytics_out_of_stock_products;
CREATE VIEW analyst.report_new_and_gone AS SELECT * FROM analytics_new_and_gone;
CREATE VIEW analyst.report_distribution AS SELECT * FROM analytics_distribution;
CREATE VIEW analyst.report_distribution_of_brands AS SELECT * FROM analytics_distribution_of_brands;
CREATE VIEW analyst.report_price_dispersion AS SELECT * FROM analytics_price_dispersion;
CREATE VIEW analyst.report_cheapest_quarter AS SELECT * FROM analytics_cheapest_quarter;
CREATE VIEW analyst.report_specials AS SELECT * FROM analytics_specials;
CREATE VIEW analyst.report_special_groups AS SELECT * FROM analytics_special_groups;
CREATE VIEW analyst.report_shrinkflation AS SELECT * FROM analytics_shrinkflation;
CREATE VIEW analyst.market_days AS SELECT * FROM market_days;
CREATE VIEW analyst.brand_days AS
SELECT d.day, d.state, live_brand(d.brand_id) AS brand_id, b.name AS brand, d.products, d.in_stock, d.of_products, d.stores, d.of_stores
  FROM brand_days d JOIN brands b ON b.id = d.brand_id;
CREATE VIEW analyst.price_index AS SELECT * FROM price_index_days;

CREATE VIEW analyst.quality_measures AS
SELECT m.dispensary_id, d.name AS store, d.platform, d.state, m.crawled_at, m.is_quarantined, m.release, v.key AS measure,
       v.value::double precision AS value
  FROM quality_measures m JOIN dispensaries d ON d.id = m.dispensary_id CROSS JOIN LATERAL jsonb_each(m.values) v;

CREATE VIEW analyst.quality_findings AS
SELECT f.id, f.dispensary_id, d.name AS store, d.platform, d.state, f.measure, f.direction, f.severity, f.opened_at,
       f.seen_at AS last_observed_at, f.crawls, f.value, f.expected, f.low, f.high, f.scope, f.scope_key, f.scope_affected, f.scope_stores,
       f.rule_id, f.closed_at, f.outcome
  FROM quality_findings f JOIN dispensaries d ON d.id = f.dispensary_id;

CREATE VIEW analyst.quality_scores AS
SELECT d.id AS dispensary_id, d.name AS store, d.platform, d.state, q.crawled_at, q.score,
       CASE WHEN q.dispensary_id IS NULL THEN 'no menu measured yet' ELSE q.reason END AS reason, q.completeness, q.crawls
  FROM dispensaries d LEFT JOIN quality_stores q ON q.dispensary_id = d.id;

COMMENT ON SCHEMA analyst IS 'Read-only views for analysts (docs/how-to/sql.md).';
COMMENT ON VIEW analyst.stores IS 'One row per store: one menu on one platform. A shop on two platforms has two, with one location_id.';
COMMENT ON VIEW analyst.crawls IS 'One row per menu that was applied to the catalog: one observation of a store.';
COMMENT ON VIEW analyst.products IS 'One row per item of one store, as of the last crawl that saw it.';
COMMENT ON VIEW analyst.offers IS 'One row per option (size or package) of each item on the last menu of its store.';
COMMENT ON VIEW analyst.snapshots IS 'One row per product and crawl that saw it: price, stock and potency at that moment. Large: filter by time and store.';
COMMENT ON VIEW analyst.states IS 'One row per period in which price, stock and potency of a product did not change. Use it for long histories.';
COMMENT ON VIEW analyst.changes IS 'One row each time the prices or the stock of a product changed. New products are not included.';
COMMENT ON VIEW analyst.details IS 'One row per period in which batch, lab values and sold packages of a product did not change.';
COMMENT ON VIEW analyst.canonical_products IS 'One row per canonical product: the same product in all stores and sizes. Merged products stay, with merged_into.';
COMMENT ON VIEW analyst.brands IS 'One row per brand, with all its spellings. Merged brands stay, with merged_into.';
COMMENT ON VIEW analyst.locations IS 'One row per shop, across platforms and licences. Merged locations stay, with merged_into.';
COMMENT ON VIEW analyst.product_matches IS 'One row per listing: the canonical product that it was matched to, and why.';
COMMENT ON VIEW analyst.match_events IS 'One row each time listings moved from one canonical product to another: merges and splits.';
COMMENT ON VIEW analyst.report_stores IS 'Freshness of each store and outcome of its crawls.';
COMMENT ON VIEW analyst.report_price_per_gram IS 'Price per gram by category and state.';
COMMENT ON VIEW analyst.report_brands IS 'Share of each brand on the menus, by state.';
COMMENT ON VIEW analyst.report_categories IS 'Share of each category on the menus, by state.';
COMMENT ON VIEW analyst.report_discounts IS 'Discounted products and the depth of their discounts, by state and category.';
COMMENT ON VIEW analyst.report_out_of_stock IS 'Time out of stock, in product seconds, by the level of each row.';
COMMENT ON VIEW analyst.report_out_of_stock_products IS 'Products that were out of stock in the window, longest first.';
COMMENT ON VIEW analyst.report_new_and_gone IS 'New, removed and changed products by store and day (UTC).';
COMMENT ON VIEW analyst.report_distribution IS 'Locations that offer each canonical product, by state. Menus that do not show stock count as in stock.';
COMMENT ON VIEW analyst.report_distribution_of_brands IS 'Locations that offer any product of each brand, by state and category. Menus that do not show stock count as in stock.';
COMMENT ON VIEW analyst.report_specials IS 'Specials on offer, and whether the store really charged the regular price within 90 days.';
COMMENT ON VIEW analyst.report_special_groups IS 'Specials by verdict, by state, store, brand and category: see the column by.';
COMMENT ON VIEW analyst.report_shrinkflation IS 'Smaller sizes of a product that replaced larger ones, at a higher price per unit.';
COMMENT ON VIEW analyst.market_days IS 'Stock and discounts by day, state and category, as of the last refresh of each day. Kept.';
COMMENT ON VIEW analyst.brand_days IS 'Share of each canonical brand on the menus by day and state, as of the last refresh of each day. Kept.';
COMMENT ON VIEW analyst.report_price_dispersion IS 'Prices of one size of a canonical product across locations, by state.';
COMMENT ON VIEW analyst.report_cheapest_quarter IS 'How often each location is in the cheapest quarter of its state, overall, by category and by brand.';
COMMENT ON VIEW analyst.quality_measures IS 'One row per menu and measure: shares of nulls, medians, mixes and changes, as the data quality monitors measured them. Large: filter by time and store.';
COMMENT ON VIEW analyst.quality_findings IS 'One row each time a measure of a store was unusual, or met a rule: from the first such crawl until it ended.';
COMMENT ON VIEW analyst.quality_scores IS 'One row per store: the data quality score of its last menu.';
COMMENT ON VIEW analyst.price_index IS 'Links of the price index by state, category and day (UTC): index = 100 * exp(level - level of the base day).';

-- A column of one name means the same in every view, but for those that a view is named before.
DO $comments$
DECLARE described record;
BEGIN
  FOR described IN
    SELECT DISTINCT ON (c.table_name, c.column_name) c.table_name, c.column_name, t.meaning
      FROM information_schema.columns c
      JOIN (VALUES
        (NULL, 'id', 'Id of the row.'),
        (NULL, 'at', 'When it happened.'),
        (NULL, 'dispensary_id', 'Id of the store.'),
        (NULL, 'store', 'Name of the store today.'),
        (NULL, 'name', 'Name of the product today.'),
        ('stores', 'name', 'Name of the store; its slug until the name is known.'),
        ('brands', 'name', 'Name of the brand.'),
        ('locations', 'name', 'Name of the shop.'),
        ('report_stores', 'name', 'Name of the store.'),
        (NULL, 'state', 'State or province, usually two letters; null if unknown.'),
        (NULL, 'city', 'City, as the platform gives it.'),
        (NULL, 'country', 'Country, as the platform gives it.'),
        (NULL, 'zipcode', 'Postal code.'),
        (NULL, 'address', 'Street address, as the platform gives it.'),
        (NULL, 'latitude', 'Degrees north.'),
        (NULL, 'longitude', 'Degrees east.'),
        (NULL, 'timezone', 'IANA time zone.'),
        (NULL, 'currency', 'Currency of the prices: CAD in Canada, otherwise USD. Prices are not converted.'),
        (NULL, 'position', 'Number of the option among those of the product, from 1.'),
        (NULL, 'option', 'Size or package, as on the menu.'),
        (NULL, 'weight_g', 'Net weight in grams; null if the option is not a weight.'),
        (NULL, 'content_mg', 'Content in milligrams, for products sold by content.'),
        (NULL, 'pieces', 'Pieces in the package, if the option says so.'),
        (NULL, 'price', 'Price that a customer pays, specials included; the medical one only if there is no other.'),
        (NULL, 'price_per_g', 'That price per gram.'),
        (NULL, 'phone', 'Telephone number.'),
        (NULL, 'platform', 'Platform that serves its menu: dutchie, dutchie_plus, dovetail, weedmaps, jane, sweed, dispense or joint.'),
        (NULL, 'provider', 'Platform that serves its menu: dutchie, dutchie_plus, dovetail, weedmaps, jane, sweed, dispense or joint.'),
        (NULL, 'platform_dispensary_id', 'Id of the store on its platform; null until it is resolved.'),
        (NULL, 'slug', 'Name of the store in URLs of its platform; it may be reassigned.'),
        ('brands', 'slug', 'Name of the brand in URLs.'),
        (NULL, 'menu_url', 'Address of the menu.'),
        (NULL, 'is_recreational', 'Whether it sells to adults; null if unknown.'),
        (NULL, 'is_medical', 'Whether it sells to patients; null if unknown.'),
        (NULL, 'crawl_enabled', 'Whether the store is crawled today.'),
        (NULL, 'crawl_interval_hours', 'Hours between two crawls, as set today.'),
        (NULL, 'interval_hours', 'Hours between two crawls.'),
        (NULL, 'first_crawled_at', 'First crawl that was applied; null before it.'),
        (NULL, 'last_crawled_at', 'Last crawl that was applied; null before the first one.'),
        (NULL, 'product_count', 'Products on its last applied menu, out of stock or not.'),
        (NULL, 'location_id', 'Id of the shop, across platforms and licences; null if the store is not linked.'),
        (NULL, 'canonical_product_id', 'Id of the canonical product: the same in all stores; null until it is matched. Merges are resolved.'),
        (NULL, 'brand_id', 'Id of the brand; spellings and merges are resolved. Null if the product has no brand or is not matched yet.'),
        (NULL, 'merged_into', 'Id of the row that it was merged into; null if it is current.'),
        (NULL, 'crawled_at', 'When the menu was fetched (its last page).'),
        (NULL, 'payload_id', 'Id of the archived response; null if its file is no longer kept.'),
        (NULL, 'product_id', 'Id of the product: one item of one store.'),
        (NULL, 'provider_product_id', 'The platform''s id of the item; unique within a store only.'),
        (NULL, 'name_raw', 'Name exactly as on the menu.'),
        (NULL, 'brand_name', 'Brand as on the menu, with normalized spaces and characters; null if the menu names none.'),
        (NULL, 'brand_name_raw', 'Brand exactly as on the menu.'),
        (NULL, 'category', 'Category as on the menu.'),
        ('canonical_products', 'category', 'Canonical category; null if unknown.'),
        ('report', 'category', 'Canonical category; null if unknown, or not grouped by category.'),
        (NULL, 'subcategory', 'Subcategory as on the menu.'),
        (NULL, 'strain_type', 'Strain type as on the menu.'),
        (NULL, 'category_canon', 'Category in the vocabulary of all platforms; null if unknown.'),
        (NULL, 'subcategory_canon', 'Subcategory in the vocabulary of all platforms; null if unknown.'),
        (NULL, 'strain_canon', 'indica, sativa, hybrid or cbd; null if unknown.'),
        (NULL, 'status_raw', 'Status of the item, as on the menu.'),
        (NULL, 'form', 'Form: device, extract, cut or food; null if unknown.'),
        (NULL, 'strain', 'indica, sativa or hybrid; null if unknown.'),
        (NULL, 'listings', 'Listings matched to it, in stock or not.'),
        ('match_events', 'listings', 'Listings that moved.'),
        (NULL, 'stores', 'Stores that the row is based on.'),
        ('canonical_products', 'stores', 'Stores with such listings.'),
        (NULL, 'price_rec', 'Lowest price over the options for adults, before specials; null if it has none.'),
        ('offers', 'price_rec', 'Price for adults, before specials; null if it has none.'),
        (NULL, 'price_rec_special', 'Lowest special price over the options for adults.'),
        ('offers', 'price_rec_special', 'Special price for adults.'),
        (NULL, 'price_med', 'Lowest price over the options for patients, before specials.'),
        ('offers', 'price_med', 'Price for patients, before specials.'),
        (NULL, 'price_med_special', 'Lowest special price over the options for patients.'),
        ('offers', 'price_med_special', 'Special price for patients.'),
        (NULL, 'is_in_stock', 'Whether it is in stock; null if the menu does not say.'),
        (NULL, 'stock_status', 'in_stock, oos (out of stock) or unknown.'),
        (NULL, 'quantity', 'Packages in stock over the options that are counted; null if none is.'),
        ('offers', 'quantity', 'Packages in stock; null if they are not counted.'),
        (NULL, 'quantity_capped', 'Whether there may be more than quantity says.'),
        (NULL, 'thc_lo', 'THC, lower end of the label; null if not given.'),
        (NULL, 'thc_hi', 'THC, upper end of the label.'),
        (NULL, 'thc_unit', 'Unit of THC: % of mass, or mg of the whole package. Do not mix them.'),
        (NULL, 'cbd_lo', 'CBD, lower end of the label; null if not given.'),
        (NULL, 'cbd_hi', 'CBD, upper end of the label.'),
        (NULL, 'cbd_unit', 'Unit of CBD: % of mass, or mg of the whole package.'),
        (NULL, 'variants', 'Options as JSON: option, prices, stock, weight_g, price_per_g and more.'),
        (NULL, 'cannabinoids', 'Lab values of cannabinoids as JSON.'),
        (NULL, 'terpenes', 'Lab values of terpenes as JSON.'),
        (NULL, 'batch_id', 'Number of the batch on sale.'),
        (NULL, 'package_tag', 'Tag of the package in the state''s tracking system (METRC).'),
        (NULL, 'tested_on', 'Day of the laboratory test.'),
        (NULL, 'packaged_on', 'Day of packaging.'),
        (NULL, 'expires_on', 'Day until which it may be sold.'),
        (NULL, 'certificate_url', 'Certificate of analysis; text of the platform, unchecked.'),
        (NULL, 'quantity_sold', 'Packages sold since the platform''s record was created; null if it does not count them.'),
        (NULL, 'specials', 'Promotions that name the product, as JSON; for display.'),
        (NULL, 'image_url', 'Address of its image on the platform.'),
        (NULL, 'local_image_path', 'Path of the stored image.'),
        (NULL, 'description', 'Text of the shop.'),
        (NULL, 'consecutive_misses', 'Observations in a row without it, 0 to 3; 3 means 3 or more.'),
        (NULL, 'first_seen_at', 'First crawl that saw it.'),
        (NULL, 'last_seen_at', 'Last crawl that saw it. It is on the current menu if that is the store''s last crawl.'),
        (NULL, 'updated_at', 'Last crawl at which anything about it differed.'),
        (NULL, 'platform_created_at', 'Creation of the record, according to the platform.'),
        (NULL, 'platform_updated_at', 'Change of the record, according to the platform.'),
        (NULL, 'prices', 'Prices by option, as JSON: option, price_rec, special_rec, price_med, special_med.'),
        (NULL, 'stock', 'Stock by option, as JSON: option, stock_status, quantity, capped.'),
        (NULL, 'state_since', 'First crawl that saw this state.'),
        (NULL, 'seen_from', 'First crawl that saw it like this.'),
        (NULL, 'seen_to', 'Last crawl that saw it like this; null while it lasts.'),
        (NULL, 'present', 'Whether it is on the menu. Prices of absent products are those last seen: leave them out of statistics.'),
        (NULL, 'ended_at', 'First crawl with other values; null while they are current.'),
        (NULL, 'changed_at', 'The crawl that saw the change; it happened between the previous crawl and this one.'),
        ('canonical_products', 'changed_at', 'When the row was last changed.'),
        ('locations', 'changed_at', 'When the row was last changed.'),
        (NULL, 'price_changed', 'Whether the set of options or any price differs.'),
        (NULL, 'stock_changed', 'Whether status, quantity or cap of any option differs.'),
        (NULL, 'price_rec_before', 'price_rec before the change.'),
        (NULL, 'price_rec_after', 'price_rec after the change.'),
        (NULL, 'price_rec_special_before', 'price_rec_special before the change.'),
        (NULL, 'price_rec_special_after', 'price_rec_special after the change.'),
        (NULL, 'price_med_before', 'price_med before the change.'),
        (NULL, 'price_med_after', 'price_med after the change.'),
        (NULL, 'price_med_special_before', 'price_med_special before the change.'),
        (NULL, 'price_med_special_after', 'price_med_special after the change.'),
        (NULL, 'stock_status_before', 'stock_status before the change.'),
        (NULL, 'stock_status_after', 'stock_status after the change.'),
        (NULL, 'quantity_before', 'quantity before the change.'),
        (NULL, 'quantity_after', 'quantity after the change.'),
        (NULL, 'prices_before', 'Prices by option before the change, as JSON.'),
        (NULL, 'prices_after', 'Prices by option after the change, as JSON.'),
        (NULL, 'stock_before', 'Stock by option before the change, as JSON.'),
        (NULL, 'stock_after', 'Stock by option after the change, as JSON.'),
        (NULL, 'created_at', 'When the row was created.'),
        (NULL, 'chain', 'Chain that the shop belongs to; null if none is known.'),
        (NULL, 'confidence', 'Probability that the listing is this product, 0 to 1.'),
        (NULL, 'reasons', 'Evidence for the match, as JSON.'),
        (NULL, 'sizes', 'Sizes that the listing offers, as JSON.'),
        (NULL, 'matched_at', 'When the listing was last matched.'),
        (NULL, 'kind', 'merged or split.'),
        (NULL, 'cause', 'Why: menu, rules or correction.'),
        (NULL, 'from_canonical_product_id', 'The canonical product that the listings had.'),
        (NULL, 'from_name', 'Its name.'),
        ('match_events', 'canonical_product_id', 'The canonical product that the listings have now.'),
        ('crawls', 'products', 'Readable products on the menu.'),
        (NULL, 'new_products', 'Products seen for the first time.'),
        (NULL, 'changed', 'Known products that differ from the previous crawl.'),
        (NULL, 'unchanged', 'Known products that do not differ.'),
        (NULL, 'returned', 'Products that had been absent.'),
        (NULL, 'missing', 'Products whose misses increased.'),
        (NULL, 'out_of_stock', 'Products that went out of stock, according to the menu or by the third miss.'),
        (NULL, 'price_changes', 'Products whose prices differ.'),
        (NULL, 'stock_changes', 'Products whose stock differs.'),
        (NULL, 'refreshed_at', 'When the report was computed.'),
        (NULL, 'run_id', 'The refresh that computed it.'),
        (NULL, 'place', 'Position in the report.'),
        (NULL, 'all_states', 'Whether the row covers all states together.'),
        (NULL, 'all_categories', 'Whether the row covers all categories together.'),
        (NULL, 'brand', 'Brand in its most frequent spelling; null for products without one.'),
        (NULL, 'level', 'Level of the row: what it covers.'),
        (NULL, 'products', 'Products that the row is based on.'),
        (NULL, 'stale_stores', 'Of stores, those not crawled for more than twice their interval.'),
        (NULL, 'partial', 'Of stores, those whose last menu is only part of the whole one.'),
        (NULL, 'is_partial', 'Whether its last menu is only part of the whole one.'),
        (NULL, 'known_stores', 'Known stores in the same scope, crawled or not.'),
        (NULL, 'scheduled', 'Crawls scheduled in the window.'),
        (NULL, 'succeeded', 'Of scheduled, those whose menu was accepted.'),
        (NULL, 'failed', 'Crawls in the window that failed.'),
        (NULL, 'quarantined', 'Crawls in the window whose menu was quarantined.'),
        (NULL, 'never_begun', 'Crawls that were due in the window and never started.'),
        (NULL, 'undecided', 'Crawls not yet accepted.'),
        (NULL, 'observed_seconds', 'Seconds of the window in which the offer was known.'),
        (NULL, 'oldest_crawl_at', 'Oldest of the last crawls of these stores.'),
        (NULL, 'is_scheduled', 'Whether an enabled schedule crawls the store.'),
        (NULL, 'is_stale', 'Whether it was not crawled for more than twice its interval.'),
        (NULL, 'options', 'Options that the row is based on: with a price, a known weight and a plausible price per gram.'),
        (NULL, 'without_weight', 'Options left out because their weight is unknown.'),
        (NULL, 'without_price', 'Options left out because they have no price.'),
        (NULL, 'implausible', 'Options left out because their price per gram is more than eight times the median of the category, or less than an eighth.'),
        (NULL, 'regular_n', 'Number of options with a regular price per gram.'),
        (NULL, 'regular_p10', 'Regular price per gram, 10th percentile.'),
        (NULL, 'regular_median', 'Regular price per gram, median.'),
        (NULL, 'regular_p90', 'Regular price per gram, 90th percentile.'),
        (NULL, 'regular_mean', 'Regular price per gram, mean.'),
        (NULL, 'effective_n', 'Number of options with a price per gram including specials.'),
        (NULL, 'effective_p10', 'Price per gram with specials, 10th percentile.'),
        (NULL, 'effective_median', 'Price per gram with specials, median.'),
        (NULL, 'effective_p90', 'Price per gram with specials, 90th percentile.'),
        (NULL, 'effective_mean', 'Price per gram with specials, mean.'),
        (NULL, 'in_stock', 'Of those, in stock.'),
        (NULL, 'of_products', 'All products on the menus in that scope.'),
        (NULL, 'of_stores', 'All stores with a menu in that scope.'),
        (NULL, 'on_special', 'Products with an option below its regular price.'),
        (NULL, 'named_only', 'Products named by a special that lowers no price.'),
        (NULL, 'depth_median', 'Median discount, 0 to 1.'),
        (NULL, 'depth_p90', '90th percentile of the discount, 0 to 1.'),
        (NULL, 'depth_mean', 'Mean discount, 0 to 1.'),
        (NULL, 'out_products', 'Of products, those out of stock at some time.'),
        (NULL, 'times_out', 'How often it went out of stock in the window.'),
        (NULL, 'in_seconds', 'Product seconds in stock.'),
        (NULL, 'out_seconds', 'Product seconds out of stock.'),
        (NULL, 'absent_seconds', 'Product seconds in which it was not on the menu.'),
        (NULL, 'unknown_seconds', 'Product seconds on a menu without stock information.'),
        (NULL, 'day', 'Day in UTC.'),
        (NULL, 'gone_products', 'Products seen for the last time and missed by three crawls since.'),
        (NULL, 'crawls', 'Menus accepted on that day.'),
        (NULL, 'locations', 'Shops that offer it.'),
        (NULL, 'stale_locations', 'Further locations left out because their menu is stale, or a newer one is in quarantine.'),
        (NULL, 'implausible_locations', 'Further locations left out because their price is more than five times the median, or less than a fifth.'),
        (NULL, 'cheapest_dispensary_id', 'Store with the lowest price.'),
        (NULL, 'dearest_dispensary_id', 'Store with the highest price.'),
        (NULL, 'of_locations', 'Shops with a menu in that scope.'),
        (NULL, 'of_category', 'Shops with anything of the category.'),
        (NULL, 'listed', 'Products of the brand, summed over shops.'),
        (NULL, 'size', 'Normalized size, such as 3.5 g.'),
        (NULL, 'gap_place', 'Position by the widest gap.'),
        (NULL, 'min', 'Lowest price.'),
        (NULL, 'p25', 'First quartile of prices.'),
        (NULL, 'median', 'Median price.'),
        (NULL, 'p75', 'Third quartile of prices.'),
        (NULL, 'max', 'Highest price.'),
        (NULL, 'mean', 'Mean price.'),
        (NULL, 'cv', 'Standard deviation of prices divided by their mean.'),
        ('report_specials', 'price', 'Price of the special.'),
        ('report_specials', 'size', 'Size; empty for options without one.'),
        (NULL, 'regular', 'Regular price according to the menu.'),
        (NULL, 'verdict', 'genuine, doubtful, never_asked or unknown; see docs/how-to/bargains.md.'),
        (NULL, 'score', 'How much of the stated saving is real, measured against the usual price, 0 to 100; null if observed for less than 30 days.'),
        (NULL, 'usual', 'Median price over the observed time; null if observed for less than 30 days.'),
        (NULL, 'observed_days', 'Days of the last 90 in which it could be bought and the store was observed.'),
        (NULL, 'began_at', 'Start of the special.'),
        (NULL, 'observed_from', 'Start of the observed time; null if there is none.'),
        (NULL, 'regular_until', 'When the store last charged the regular price or more; null if not within 90 days.'),
        (NULL, 'checked_at', 'When the special was checked.'),
        (NULL, 'by', 'What the row covers: state, store, brand or category.'),
        ('report_special_groups', 'specials', 'Specials on offer.'),
        (NULL, 'genuine', 'Of specials, those that are genuine.'),
        (NULL, 'doubtful', 'Of specials, those that are doubtful.'),
        (NULL, 'never_asked', 'Of specials, those whose regular price was never charged.'),
        (NULL, 'unknown', 'Of specials, those that were observed for too short a time.'),
        (NULL, 'never_asked_share', 'never_asked as a share of specials without unknown, 0 to 1.'),
        (NULL, 'score_median', 'Median of the scores.'),
        (NULL, 'oldest_check_at', 'When the oldest of them was checked.'),
        ('report_shrinkflation', 'dispensary_id', 'Store; null for evidence across stores.'),
        ('report_shrinkflation', 'stores', 'Stores at which this size replaced the larger one; 0 for evidence across stores.'),
        (NULL, 'unit', 'Unit of the sizes: g, mg or pieces.'),
        (NULL, 'larger', 'The larger size, which is no longer on any menu.'),
        (NULL, 'smaller', 'The smaller size that replaced it.'),
        (NULL, 'larger_price', 'Last regular price of the larger size; across stores the median.'),
        (NULL, 'smaller_price', 'Regular price of the smaller size now; across stores the median.'),
        (NULL, 'larger_until', 'Last crawl that saw the larger size.'),
        (NULL, 'smaller_from', 'First crawl that saw the smaller size.'),
        (NULL, 'larger_product_id', 'Listing of the larger size; null for evidence across stores.'),
        (NULL, 'smaller_product_id', 'Listing of the smaller size; null for evidence across stores.'),
        (NULL, 'size_change', 'Change of the size: -0.2 is a fifth less.'),
        (NULL, 'unit_price_change', 'Change of the regular price per unit: 0.25 is a quarter more.'),
        ('report_new_and_gone', 'partial', 'Of crawls, those whose menu is only part of the whole one.'),
        ('market_days', 'state', 'State or province; all: all of them together; unknown.'),
        ('market_days', 'category', 'Canonical category; all: all of them together; unknown.'),
        ('market_days', 'products', 'Products on the menus.'),
        ('market_days', 'stores', 'Stores with such products on a menu that was not stale.'),
        ('market_days', 'out_of_stock', 'Of products, those that are listed as out of stock.'),
        ('market_days', 'unknown_stock', 'Of products, those on menus without stock information.'),
        (NULL, 'priced', 'Products on offer with a regular price.'),
        ('brand_days', 'state', 'State or province; all: all of them together; unknown.'),
        ('brand_days', 'brand', 'Name of the brand now.'),
        ('brand_days', 'products', 'Its products on the menus.'),
        ('brand_days', 'stores', 'Stores with its products on a menu that was not stale.'),
        (NULL, 'compared', 'Products and sizes that at least two other shops of the state offer.'),
        (NULL, 'cheapest', 'Of compared, those in the cheapest quarter.'),
        ('price_index', 'state', 'State or province; all: all of them together; unknown.'),
        ('price_index', 'category', 'Canonical category; all: all of them together; unknown.'),
        ('price_index', 'stores', 'Stores with matched items.'),
        ('price_index', 'known_stores', 'Stores with matched or carried items.'),
        (NULL, 'matched', 'Items that were observed on the day and have an earlier price.'),
        (NULL, 'carried', 'Items with an earlier price that were not observed on the day, or are outliers.'),
        (NULL, 'entered', 'Items that were observed on the day and have no earlier price.'),
        (NULL, 'expired', 'Items whose last price became too old.'),
        (NULL, 'outliers', 'Of carried, those whose price is more than five times the earlier one, or less than a fifth.'),
        (NULL, 'change', 'Mean logarithm of the price relatives of matched items; null without any.'),
        ('price_index', 'level', 'Sum of all changes; read the difference between two days.'),
        (NULL, 'measure', 'What was measured, for example null.brand or level.price.'),
        ('quality_measures', 'value', 'A share from 0 to 1, a count, a median or a level, by the measure.'),
        ('quality_findings', 'value', 'Value at the last crawl with it.'),
        (NULL, 'is_quarantined', 'Whether the menu is in quarantine: only its products are counted.'),
        (NULL, 'release', 'Version of Menuwatch and of the normalizer of the platform that read the menu.'),
        (NULL, 'direction', 'up: above the band or the limit; down: below.'),
        (NULL, 'severity', 'critical, warning or info.'),
        (NULL, 'opened_at', 'First crawl with it.'),
        (NULL, 'closed_at', 'Crawl that ended it; null while it is open.'),
        ('quality_findings', 'crawls', 'Number of crawls with it.'),
        ('quality_scores', 'crawls', 'Earlier menus that were measured.'),
        (NULL, 'expected', 'Usual value; null for a rule.'),
        ('quality_findings', 'low', 'Lower limit of the band at the first crawl; null for a rule.'),
        ('quality_findings', 'high', 'Upper limit of the band at the first crawl; null for a rule.'),
        ('quality_findings', 'last_observed_at', 'Last crawl with it.'),
        (NULL, 'scope', 'Cause: store, chain, point_of_sale, platform, or normalizer for a release of Menuwatch.'),
        (NULL, 'scope_key', 'The chain, point of sale or platform; null for a single store.'),
        (NULL, 'scope_affected', 'Stores of the scope that show it.'),
        (NULL, 'scope_stores', 'Stores of the scope that were measured in that time.'),
        (NULL, 'rule_id', 'Rule that it meets; null for a band.'),
        ('quality_findings', 'outcome', 'How it ended: recovered, accepted, worsened, unmeasured or ignored; null while it is open.'),
        ('quality_scores', 'score', 'From 0 to 100; null with a reason.'),
        ('quality_scores', 'reason', 'Why there is no score.'),
        (NULL, 'completeness', 'Mean share of products with price, stock, brand, category, weight and THC; null without a menu.'),
        (NULL, 'deviations', 'Deviation of each of 20 groups of stores from its share of the level, for confidence intervals.')
      ) t(view_name, column_name, meaning)
        ON t.column_name = c.column_name AND (t.view_name IS NULL OR c.table_name = t.view_name OR c.table_name LIKE t.view_name || '\_%')
     WHERE c.table_schema = 'analyst'
     ORDER BY c.table_name, c.column_name, t.view_name NULLS LAST
  LOOP
    EXECUTE format('COMMENT ON COLUMN analyst.%I.%I IS %L', described.table_name, described.column_name, described.meaning);
  END LOOP;
END $comments$;
