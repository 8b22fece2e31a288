-- Read models: what screens and the API show. Every list is a keyset page: the last row's sort values and id are the next page's
-- start, so a page costs the same wherever it lies and rows that are inserted meanwhile shift nothing.

-- piece: task_filter
-- Which tasks: lists, counts, and what is done to all that match, must never differ in this. A reason that is plain ASCII, as nearly
-- all are, is looked for in half the time.
AND (%(roles)s::text[] IS NULL OR role = ANY (%(roles)s))
AND (%(statuses)s::text[] IS NULL OR status = ANY (%(statuses)s))
AND (%(dispensary_id)s::integer IS NULL OR dispensary_id = %(dispensary_id)s)
AND (%(platform)s::text IS NULL OR platform = %(platform)s)
AND (%(created_after)s::timestamptz IS NULL OR (created_at >= %(created_after)s AND (completed_at IS NULL OR completed_at >= %(created_after)s)))
AND (%(created_before)s::timestamptz IS NULL OR created_at < %(created_before)s)
AND (%(worker_id)s::text IS NULL OR worker_id = %(worker_id)s)
AND (%(worked_from)s::timestamptz IS NULL OR completed_at IS NULL OR (completed_at >= %(worked_from)s AND completed_at < %(worked_until)s)
       OR completed_at >= %(uncounted_from)s)
AND (%(ended_after)s::timestamptz IS NULL OR completed_at >= %(ended_after)s)
AND (%(ended_before)s::timestamptz IS NULL OR completed_at < %(ended_before)s)
AND (%(priority_min)s::integer IS NULL OR priority >= %(priority_min)s)
AND (%(priority_max)s::integer IS NULL OR priority <= %(priority_max)s)
AND (%(payload_id)s::text IS NULL OR (payload ->> 'payload_id' = %(payload_id)s AND id = ANY (ARRAY (
       SELECT t.id FROM task_live t WHERE t.payload ->> 'payload_id' = %(payload_id)s UNION ALL
       SELECT h.id FROM task_history h WHERE h.payload ->> 'payload_id' = %(payload_id)s))))
AND (%(paths)s::text[] IS NULL OR (payload ?& %(keys)s::text[] AND NOT EXISTS (
       SELECT FROM unnest(%(paths)s::text[], %(values)s::text[]) a(path, value)
       WHERE payload #>> string_to_array(a.path, '.') IS DISTINCT FROM a.value)))
AND (%(cause)s::text IS NULL OR (status = 'failed' AND id IN (
       SELECT h.id FROM task_history h WHERE h.cause = %(cause)s AND h.status = 'failed')))
AND (%(errors)s::text[] IS NULL OR (status <> 'completed' AND
       CASE WHEN %(lowered)s::text[] IS NOT NULL THEN lower(error_message COLLATE "C") LIKE ALL (%(lowered)s) ELSE error_message ILIKE ALL (%(errors)s) END))

-- piece: product_filter
-- Which products, in whatever order they are listed.
AND (%(brands)s::text[] IS NULL OR p.brand_name = ANY (%(brands)s))
AND (%(categories)s::text[] IS NULL OR p.category = ANY (%(categories)s))
AND (%(strain_types)s::text[] IS NULL OR p.strain_type = ANY (%(strain_types)s))
AND (%(categories_canon)s::text[] IS NULL OR p.category_canon = ANY (%(categories_canon)s))
AND (%(subcategories_canon)s::text[] IS NULL OR p.subcategory_canon = ANY (%(subcategories_canon)s))
AND (%(strains_canon)s::text[] IS NULL OR p.strain_canon = ANY (%(strains_canon)s))
AND (%(stock)s::text[] IS NULL OR p.stock_status = ANY (%(stock)s))
AND (%(present)s::boolean IS NULL OR (p.last_seen_at IS NULL) = %(present)s)
AND (%(states)s::text[] IS NULL OR p.dispensary_id IN (SELECT d.id FROM dispensaries d WHERE d.state = ANY (%(states)s)))
AND (%(special)s::boolean IS NULL OR on_special(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special) = %(special)s)
AND (%(q)s::text IS NULL OR p.name ILIKE %(q)s)
AND (%(names)s::text[] IS NULL OR lower(p.name) = ANY (%(names)s))
AND (%(price_min)s::numeric IS NULL
       OR effective_price(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special) >= %(price_min)s)
AND (%(price_max)s::numeric IS NULL
       OR effective_price(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special) <= %(price_max)s)

-- name: list_stores
SELECT id, platform, platform_dispensary_id, slug, name, menu_url, address, city, state, country, zipcode, latitude, longitude,
       timezone, phone, is_recreational, is_medical, crawl_enabled, crawl_interval_hours, first_crawled_at, last_crawled_at,
       last_payload_id, last_attempt_at, last_error, product_count, created_at, updated_at
  FROM dispensaries
 WHERE (%(platform)s::text IS NULL OR platform = %(platform)s)
   AND (%(states)s::text[] IS NULL OR state = ANY (%(states)s))
   AND (%(crawl_enabled)s::boolean IS NULL OR crawl_enabled = %(crawl_enabled)s)
   AND (%(q)s::text IS NULL OR name ILIKE %(q)s OR city ILIKE %(q)s OR slug ILIKE %(q)s)
   AND (%(after)s::integer IS NULL OR id > %(after)s)
 ORDER BY id LIMIT %(limit)s;

-- name: get_store
SELECT id, platform, platform_dispensary_id, slug, name, menu_url, address, city, state, country, zipcode, latitude, longitude,
       timezone, phone, is_recreational, is_medical, crawl_enabled, crawl_interval_hours, first_crawled_at, last_crawled_at,
       last_payload_id, last_attempt_at, last_error, product_count, created_at, updated_at
  FROM dispensaries WHERE id = %(id)s;

-- name: last_crawl
SELECT crawled_at, payload_id, products, new_products, changed, unchanged, returned, missing, out_of_stock, price_changes,
       stock_changes, warnings
  FROM store_crawls WHERE dispensary_id = %(id)s ORDER BY crawled_at DESC LIMIT 1;

-- name: names_with
-- Names of products that hold this text, of at least three characters.
SELECT name FROM catalog_names WHERE trigrams(name) @> trigrams(lower(%(text)s::text)) AND name LIKE lower(%(pattern)s::text)
UNION
SELECT name FROM catalog_new_names WHERE name LIKE lower(%(pattern)s::text)
LIMIT %(limit)s;

-- name: products_by_name
-- The price that is filtered and sorted by is what the cheapest option costs, specials included; medical only where there
-- is no recreational one; `present` asks for what the last crawl of the store holds. An order is a statement of its own, so that
-- each can have the index it needs.
SELECT p.id, lower(p.name) AS key
  FROM catalog_products p
 WHERE (%(stores)s::integer[] IS NULL OR p.dispensary_id = ANY (%(stores)s))
   {product_filter}
   AND (%(after_id)s::bigint IS NULL OR (lower(p.name), p.id) > (%(after_key)s::text, %(after_id)s))
 ORDER BY lower(p.name), p.id LIMIT %(limit)s;

-- name: products_by_price
-- Those that have a price, and (`priced` false) those that have none, by number: the others come after them, in an index that has both.
SELECT p.id, coalesce(effective_price(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special), 'Infinity') AS key
  FROM catalog_products p
 WHERE (%(stores)s::integer[] IS NULL OR p.dispensary_id = ANY (%(stores)s))
   {product_filter}
   AND (effective_price(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special) IS NOT NULL) = %(priced)s::boolean
   AND (%(after_id)s::bigint IS NULL OR %(priced)s
        OR p.id > %(after_id)s)
   AND (%(after_id)s IS NULL OR NOT %(priced)s
        OR (effective_price(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special), p.id) > (%(after_key)s::numeric, %(after_id)s))
 ORDER BY effective_price(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special), p.id LIMIT %(limit)s;

-- name: products_by_price_descending
SELECT p.id, coalesce(effective_price(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special), '-Infinity') AS key
  FROM catalog_products p
 WHERE (%(stores)s::integer[] IS NULL OR p.dispensary_id = ANY (%(stores)s))
   {product_filter}
   AND (effective_price(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special) IS NOT NULL) = %(priced)s::boolean
   AND (%(after_id)s::bigint IS NULL OR %(priced)s
        OR p.id < %(after_id)s)
   AND (%(after_id)s IS NULL OR NOT %(priced)s
        OR (effective_price(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special), p.id) < (%(after_key)s::numeric, %(after_id)s))
 ORDER BY effective_price(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special) DESC, p.id DESC LIMIT %(limit)s;

-- name: products_by_updated
-- Newest change first. A product that changes while someone pages moves in front of where they are.
SELECT p.id, p.changed_at AS key
  FROM catalog_products p
 WHERE (%(stores)s::integer[] IS NULL OR p.dispensary_id = ANY (%(stores)s))
   {product_filter}
   AND (%(after_id)s::bigint IS NULL OR (p.changed_at, p.id) < (%(after_key)s::timestamptz, %(after_id)s))
 ORDER BY p.changed_at DESC, p.id DESC LIMIT %(limit)s;

-- name: products_in_brief
-- The products of those ids, in the order of the ids.
SELECT p.id, p.dispensary_id, d.name AS store, p.provider, p.provider_product_id, p.name, p.brand_name, p.category, p.subcategory,
       p.strain_type, p.category_canon, p.subcategory_canon, p.strain_canon,
       effective_price(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special) AS price,
       p.price_rec, p.price_rec_special, p.price_med, p.price_med_special, p.stock_status, p.is_in_stock, p.quantity,
       p.quantity_capped, p.variants,
       CASE WHEN p.thc_lo IS NOT NULL THEN json_build_object('lo', p.thc_lo, 'hi', p.thc_hi, 'unit', p.thc_unit) END AS thc,
       CASE WHEN p.cbd_lo IS NOT NULL THEN json_build_object('lo', p.cbd_lo, 'hi', p.cbd_hi, 'unit', p.cbd_unit) END AS cbd,
       p.image_url, p.local_image_path, p.consecutive_misses, p.first_seen_at, p.last_seen_at, p.updated_at
  FROM store_products p JOIN dispensaries d ON d.id = p.dispensary_id
 WHERE p.id = ANY (%(ids)s::bigint[])
 ORDER BY array_position(%(ids)s::bigint[], p.id);

-- name: get_product
SELECT p.id, p.dispensary_id, d.name AS store, p.provider, p.provider_product_id, p.name, p.brand_name, p.category, p.subcategory,
       p.strain_type, p.category_canon, p.subcategory_canon, p.strain_canon,
       effective_price(p.price_rec, p.price_rec_special, p.price_med, p.price_med_special) AS price,
       p.price_rec, p.price_rec_special, p.price_med, p.price_med_special, p.stock_status, p.is_in_stock, p.quantity,
       p.quantity_capped, p.variants,
       CASE WHEN p.thc_lo IS NOT NULL THEN json_build_object('lo', p.thc_lo, 'hi', p.thc_hi, 'unit', p.thc_unit) END AS thc,
       CASE WHEN p.cbd_lo IS NOT NULL THEN json_build_object('lo', p.cbd_lo, 'hi', p.cbd_hi, 'unit', p.cbd_unit) END AS cbd,
       p.image_url, p.local_image_path, p.consecutive_misses, p.first_seen_at, p.last_seen_at, p.updated_at,
       p.name_raw, p.brand_name_raw, p.status_raw, p.description,
       coalesce(p.cannabinoids, '[]') AS cannabinoids, coalesce(p.specials, '[]') AS specials, coalesce(p.images, '[]') AS images,
       p.platform_created_at, p.platform_updated_at, p.extra
  FROM store_products p JOIN dispensaries d ON d.id = p.dispensary_id
 WHERE p.id = %(id)s;

-- name: product_states
-- What a product cost, how much there was and how strong it was, newest first; "to" is null while a state lasts. `packed` are its
-- states that were moved to files, as rows of the table; one that is in both places is there once.
SELECT s.seen_from AS "from", s.seen_to AS "to", s.present,
       effective_price(s.price_rec, s.price_rec_special, s.price_med, s.price_med_special) AS price,
       s.price_rec, s.price_rec_special, s.price_med, s.price_med_special,
       prices_by_option(s.prices) AS prices,
       s.stock_status, s.quantity, s.quantity_capped,
       stock_by_option(s.stock) AS stock,
       CASE WHEN s.thc_lo IS NOT NULL THEN json_build_object('lo', s.thc_lo, 'hi', s.thc_hi, 'unit', s.thc_unit) END AS thc,
       CASE WHEN s.cbd_lo IS NOT NULL THEN json_build_object('lo', s.cbd_lo, 'hi', s.cbd_hi, 'unit', s.cbd_unit) END AS cbd
  FROM (SELECT * FROM product_states WHERE product_id = %(id)s
        UNION SELECT * FROM jsonb_populate_recordset(NULL::product_states, %(packed)s::jsonb)) s
 WHERE (%(since)s::timestamptz IS NULL OR s.seen_to IS NULL OR s.seen_to >= %(since)s)
   AND (%(until)s::timestamptz IS NULL OR s.seen_from < %(until)s)
   AND (%(after)s::timestamptz IS NULL OR s.seen_from < %(after)s)
 ORDER BY s.seen_from DESC LIMIT %(limit)s;

-- name: product_gaps
-- Times of which nothing is known. `absent`: the store was crawled, and the product was in none of the menus. `unobserved`: the store
-- was not crawled for more than twice its interval. A gap reaches from the last crawl before it to the first one after it.
WITH product AS (
  SELECT p.dispensary_id, p.first_seen_at, 2 * d.crawl_interval_hours * interval '1 hour' AS longest
    FROM catalog_products p JOIN dispensaries d ON d.id = p.dispensary_id WHERE p.id = %(id)s
), spans AS (
  SELECT present, seen_to, lead(seen_from) OVER (ORDER BY seen_from) AS next_from
    FROM (SELECT present, seen_from, seen_to FROM product_states WHERE product_id = %(id)s
          UNION SELECT present, seen_from, seen_to FROM jsonb_populate_recordset(NULL::product_states, %(packed)s::jsonb)) s
), crawls AS (
  SELECT c.crawled_at, lead(c.crawled_at) OVER (ORDER BY c.crawled_at) AS next_at
    FROM store_crawls c JOIN product p ON p.dispensary_id = c.dispensary_id AND c.crawled_at >= p.first_seen_at
), gaps AS (
  SELECT 'absent' AS reason, s.seen_to AS "from", s.next_from AS "to"
    FROM spans s
   WHERE s.present AND s.seen_to IS NOT NULL
     AND EXISTS (SELECT FROM crawls c WHERE c.crawled_at > s.seen_to AND (s.next_from IS NULL OR c.crawled_at < s.next_from))
  UNION ALL
  SELECT 'unobserved', c.crawled_at, c.next_at
    FROM crawls c, product p
   WHERE coalesce(c.next_at, now()) - c.crawled_at > p.longest
)
SELECT "from", "to", reason FROM gaps
 WHERE (%(since)s::timestamptz IS NULL OR "to" IS NULL OR "to" > %(since)s)
   AND (%(until)s::timestamptz IS NULL OR "from" < %(until)s)
 ORDER BY "from" DESC, reason;

-- name: product_snapshots
-- One row per crawl that saw the product, newest first: store_product_snapshots of one product, and of its packed states.
SELECT c.crawled_at, c.payload_id, s.seen_from AS state_since,
       effective_price(s.price_rec, s.price_rec_special, s.price_med, s.price_med_special) AS price,
       s.price_rec, s.price_rec_special, s.price_med, s.price_med_special,
       prices_by_option(s.prices) AS prices,
       s.stock_status, CASE s.stock_status WHEN 'in_stock' THEN true WHEN 'oos' THEN false END AS is_in_stock, s.quantity, s.quantity_capped,
       stock_by_option(s.stock) AS stock,
       CASE WHEN s.thc_lo IS NOT NULL THEN json_build_object('lo', s.thc_lo, 'hi', s.thc_hi, 'unit', s.thc_unit) END AS thc,
       CASE WHEN s.cbd_lo IS NOT NULL THEN json_build_object('lo', s.cbd_lo, 'hi', s.cbd_hi, 'unit', s.cbd_unit) END AS cbd
  FROM (SELECT * FROM product_states WHERE product_id = %(id)s
        UNION SELECT * FROM jsonb_populate_recordset(NULL::product_states, %(packed)s::jsonb)) s
  JOIN catalog_products p ON p.id = s.product_id
  JOIN store_crawls c ON c.dispensary_id = p.dispensary_id AND c.crawled_at >= s.seen_from
                     AND (s.seen_to IS NULL OR c.crawled_at <= s.seen_to)
 WHERE s.present
   AND (%(since)s::timestamptz IS NULL OR c.crawled_at >= %(since)s)
   AND (%(until)s::timestamptz IS NULL OR c.crawled_at < %(until)s)
   AND (%(after)s::timestamptz IS NULL OR c.crawled_at < %(after)s)
 ORDER BY c.crawled_at DESC LIMIT %(limit)s;

-- name: totals
-- Brands or categories as they were counted last; none where the catalogue is small.
SELECT name, products, in_stock, stores FROM catalog_totals
 WHERE kind = %(kind)s AND (%(q)s::text IS NULL OR name ILIKE %(q)s) AND (%(after)s::text IS NULL OR name > %(after)s)
 ORDER BY name LIMIT %(limit)s;

-- name: are_there_totals
SELECT EXISTS (SELECT FROM catalog_totals WHERE kind = %(kind)s) AS found;

-- name: list_brands
SELECT p.brand_name AS name, count(*) AS products, count(*) FILTER (WHERE p.is_in_stock) AS in_stock,
       count(DISTINCT p.dispensary_id) AS stores
  FROM catalog_products p
 WHERE p.brand_name IS NOT NULL
   AND (%(stores)s::integer[] IS NULL OR p.dispensary_id = ANY (%(stores)s))
   AND (%(q)s::text IS NULL OR p.brand_name ILIKE %(q)s)
   AND (%(after)s::text IS NULL OR p.brand_name > %(after)s)
 GROUP BY p.brand_name ORDER BY p.brand_name LIMIT %(limit)s;

-- name: list_categories
SELECT p.category AS name, count(*) AS products, count(*) FILTER (WHERE p.is_in_stock) AS in_stock,
       count(DISTINCT p.dispensary_id) AS stores
  FROM catalog_products p
 WHERE p.category IS NOT NULL
   AND (%(stores)s::integer[] IS NULL OR p.dispensary_id = ANY (%(stores)s))
   AND (%(q)s::text IS NULL OR p.category ILIKE %(q)s)
   AND (%(after)s::text IS NULL OR p.category > %(after)s)
 GROUP BY p.category ORDER BY p.category LIMIT %(limit)s;

-- name: two_newest_ok
-- The payloads that a diff compares when none is named: the newest ok one up to `to`'s time, and the ok one before it.
SELECT id FROM raw_crawl_payloads
 WHERE dispensary_id = %(dispensary_id)s AND status = 'ok'
   AND (%(before_at)s::timestamptz IS NULL OR (fetched_at, id) < (%(before_at)s, %(before_id)s::bigint))
 ORDER BY fetched_at DESC, id DESC LIMIT %(limit)s;

-- name: payload_counts
SELECT status, count(*) AS n FROM raw_crawl_payloads GROUP BY status;

-- name: list_tasks
-- Newest first. Ids are given in the order of enqueueing, and both tables behind the view have an index on them, so a page
-- reads no more of the history than it shows. These statements are planned anew each time (operations/tasks.py): a
-- filter that is not set must not cost anything, and `status <> 'completed'` must be seen to be implied by the states that are asked for.
-- What was enqueued at a time or later ended no sooner, so days before it are not looked at.
SELECT id, role, dispensary_id, platform, status, priority, scheduled_for, worker_id, claimed_at, started_at, completed_at,
       last_heartbeat_at, result, error_message, retry_count, max_retries, payload, attempt, created_at, updated_at
  FROM worker_tasks
 WHERE (%(ids)s::bigint[] IS NULL OR id = ANY (%(ids)s))
   {task_filter}
   AND (%(after)s::bigint IS NULL OR id < %(after)s)
 ORDER BY id DESC LIMIT %(limit)s;

-- name: list_failed
-- The same of one cause, which the index of causes finds: nothing that lives has one.
SELECT id, role, dispensary_id, platform, status, priority, scheduled_for, worker_id, claimed_at, started_at, completed_at,
       last_heartbeat_at, result, error_message, retry_count, max_retries, payload, attempt, created_at, completed_at AS updated_at
  FROM task_history
 WHERE cause = %(of_cause)s::text AND status = 'failed'
   AND (%(ids)s::bigint[] IS NULL OR id = ANY (%(ids)s))
   {task_filter}
   AND (%(after)s::bigint IS NULL OR id < %(after)s)
 ORDER BY id DESC LIMIT %(limit)s;

-- name: get_task
SELECT id, role, dispensary_id, platform, status, priority, scheduled_for, worker_id, claimed_at, started_at, completed_at,
       last_heartbeat_at, result, error_message, retry_count, max_retries, payload, attempt, created_at, updated_at
  FROM worker_tasks WHERE id = %(id)s;

-- name: count_tasks
SELECT role, status, count(*) AS n
  FROM worker_tasks
 WHERE (%(ids)s::bigint[] IS NULL OR id = ANY (%(ids)s))
   {task_filter}
   AND (%(below)s::bigint IS NULL OR id < %(below)s)
 GROUP BY role, status;

-- name: count_failed
SELECT role, status, count(*) AS n
  FROM task_history
 WHERE cause = %(of_cause)s::text AND status = 'failed'
   AND (%(ids)s::bigint[] IS NULL OR id = ANY (%(ids)s))
   {task_filter}
   AND (%(below)s::bigint IS NULL OR id < %(below)s)
 GROUP BY role, status;

-- name: days_of_worker
-- Between which moments a worker ended something on days that are counted (null: on none), and from when on days are not counted.
SELECT (SELECT min(w.day)::timestamp AT TIME ZONE 'UTC' FROM task_day_workers w WHERE w.worker_id = %(worker_id)s) AS first,
       (SELECT (max(w.day) + 1)::timestamp AT TIME ZONE 'UTC' FROM task_day_workers w WHERE w.worker_id = %(worker_id)s) AS last,
       (SELECT min(h.day)::timestamp AT TIME ZONE 'UTC' FROM task_history_days h WHERE NOT EXISTS (SELECT FROM task_days t WHERE t.day = h.day)) AS uncounted;

-- name: task_id_bound
SELECT task_id_bound(%(moment)s::timestamptz) AS id;

-- name: tasks_to_cancel
-- What a filter selects: those that can be cancelled, and how many are over already.
SELECT coalesce(array_agg(id ORDER BY id) FILTER (WHERE status IN ('pending', 'claimed', 'running', 'stale')), '{}') AS ids, count(*) AS matched,
       count(*) FILTER (WHERE status IN ('completed', 'failed', 'cancelled')) AS finished
  FROM worker_tasks
 WHERE (%(ids)s::bigint[] IS NULL OR id = ANY (%(ids)s))
   {task_filter};

-- name: tasks_to_retry
-- What a filter selects: those that are retried, and how many are not, by the reason. Without `named` only what failed and what backs
-- off: completed and cancelled work, and what is planned for later, is done anew only by who says so.
SELECT k.outcome, count(*) AS n, array_agg(k.id ORDER BY k.id) FILTER (WHERE k.outcome = 'retry') AS ids
  FROM (
    SELECT id,
           CASE WHEN role = ANY (%(unhandled)s::text[]) THEN 'unhandled'
                WHEN status = 'failed' OR (%(named)s::boolean AND status IN ('completed', 'cancelled')) THEN 'retry'
                WHEN status IN ('completed', 'cancelled') THEN status
                WHEN status <> 'pending' THEN 'active'
                WHEN scheduled_for <= now() OR scheduled_for IS NULL THEN 'waiting'
                WHEN %(named)s::boolean OR attempt > 0 THEN 'retry'
                ELSE 'scheduled' END AS outcome
      FROM worker_tasks
     WHERE (%(ids)s::bigint[] IS NULL OR id = ANY (%(ids)s))
       {task_filter}) k
 GROUP BY k.outcome;

-- name: retry_tasks
SELECT id, task_id, outcome FROM retry_tasks(%(ids)s::bigint[], %(priority)s::integer, %(unhandled)s::text[]);

-- name: cancel_tasks_in_bulk
SELECT cancelled, interrupted, busy FROM cancel_tasks_in_bulk(%(ids)s::bigint[], %(reason)s::text);

-- name: stores_asked_for
-- What decides which work can be done for a store.
SELECT id, platform, crawl_enabled, platform_dispensary_id IS NOT NULL AS resolved FROM dispensaries WHERE id = ANY (%(ids)s::integer[]);

-- name: payloads_asked_for
SELECT id, dispensary_id FROM raw_crawl_payloads WHERE id = ANY (%(ids)s::bigint[]);

-- name: stores_of_state
-- The stores of one state and whether each can be crawled.
SELECT id, platform, crawl_enabled, platform_dispensary_id IS NOT NULL AS resolved
  FROM dispensaries
 WHERE state = %(state)s AND (%(platform)s::text IS NULL OR platform = %(platform)s)
 ORDER BY id;

-- name: states_with_stores
SELECT DISTINCT state FROM dispensaries WHERE state IS NOT NULL AND (%(platform)s::text IS NULL OR platform = %(platform)s) ORDER BY state;

-- name: last_completion
SELECT id, role, dispensary_id, platform, status, priority, scheduled_for, worker_id, claimed_at, started_at, completed_at,
       last_heartbeat_at, result, error_message, retry_count, max_retries, payload, attempt, created_at, updated_at
  FROM worker_tasks WHERE role = %(role)s AND status = 'completed'
 ORDER BY completed_at DESC, id DESC LIMIT 1;

-- name: active_of_store
SELECT id, role, dispensary_id, platform, status, priority, scheduled_for, worker_id, claimed_at, started_at, completed_at,
       last_heartbeat_at, result, error_message, retry_count, max_retries, payload, attempt, created_at, updated_at
  FROM worker_tasks WHERE dispensary_id = %(dispensary_id)s AND status IN ('claimed', 'running', 'stale');

-- name: schema_revision
SELECT version_num FROM alembic_version;
