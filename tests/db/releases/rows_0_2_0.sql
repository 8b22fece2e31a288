SET check_function_bodies = false;
SET client_min_messages = warning;
SELECT pg_catalog.set_config('search_path', '', false);
INSERT INTO public.alembic_version VALUES
	('0001');
INSERT INTO public.alert_channels OVERRIDING SYSTEM VALUE VALUES
	(1, 1, 'webhook', 'x', NULL, 'x');
INSERT INTO public.alert_deliveries OVERRIDING SYSTEM VALUE VALUES
	(1, 1, NULL, 'x', 'alert', '00000000-0000-4000-8000-000000000001', '{1}', '{}', 'waiting', 0, 0, NULL, NULL, NULL, '[]', '2026-11-01 00:00:00+00', NULL);
INSERT INTO public.alert_events OVERRIDING SYSTEM VALUE VALUES
	(1, 1, 'x', NULL, NULL, '2026-11-01 00:00:00+00', '2026-11-01 00:00:00+00', false, false, '{}', '2026-11-01 00:00:00+00');
INSERT INTO public.alert_matches VALUES
	(1, 1, 1, 'armed', NULL, 0, NULL, NULL);
INSERT INTO public.alert_rules OVERRIDING SYSTEM VALUE VALUES
	(1, 'x', 'price_below', 'product', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'effective', 2, 1, 0, 0, 'immediately', NULL, 'UTC', 'skip', true, '2026-11-01 00:00:00+00', NULL, false, NULL, NULL, '2026-11-01 00:00:00+00', '2026-11-01 00:00:00+00');
INSERT INTO public.analytics_brand_distribution_stats VALUES
	(1, 1, false, NULL, 1, false, NULL, 1, 1, 1, 1, NULL);
INSERT INTO public.analytics_brand_stats VALUES
	(1, 1, false, NULL, NULL, NULL, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, NULL);
INSERT INTO public.analytics_category_stats VALUES
	(1, 1, false, NULL, NULL, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, NULL);
INSERT INTO public.analytics_cheapest_stats VALUES
	(1, 1, 'all', 'x', NULL, NULL, NULL, 1, 1, 1);
INSERT INTO public.analytics_daily_stats VALUES
	(1, '2026-11-01', 1, NULL, 1, 1, 1, 1, 1, 1, 1, 1, 1);
INSERT INTO public.analytics_discount_stats VALUES
	(1, 1, false, NULL, false, NULL, 1, 1, 1, NULL, NULL, NULL, 1, 1, 1, 1, 1, 1, NULL);
INSERT INTO public.analytics_dispersion_stats VALUES
	(1, 1, 1, false, NULL, 1, 'x', NULL, NULL, 'x', 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
INSERT INTO public.analytics_distribution_stats VALUES
	(1, 1, false, NULL, 1, NULL, NULL, 1, 1, 1, NULL);
INSERT INTO public.analytics_out_product_stats VALUES
	(1, 1, 1, 1, NULL, NULL, NULL, 1, 1.5, 1.5, 1.5, 1.5);
INSERT INTO public.analytics_price_stats VALUES
	(1, 1, false, NULL, 'x', NULL, 1, 1, 1, 1, 1, 1, NULL, NULL, NULL, NULL, 1, NULL, NULL, NULL, NULL, 1, 1, 1, 1, 1, 1, NULL);
INSERT INTO public.analytics_runs OVERRIDING SYSTEM VALUE VALUES
	(1, 'done', '2026-11-01 00:00:00+00', '2026-11-01 06:00:00+00', '2026-11-01 00:00:00+00', '2026-11-01 00:00:00+00', NULL, '[]', NULL);
INSERT INTO public.analytics_shrinkflation_stats VALUES
	(1, 1, 1, NULL, NULL, NULL, NULL, 'x', 1, 'g', 'x', 'x', 1, 1, '2026-11-01 00:00:00+00', '2026-11-01 00:00:00+00', NULL, NULL, 1, 1);
INSERT INTO public.analytics_special_group_stats VALUES
	(1, 1, 'store', false, NULL, NULL, NULL, NULL, NULL, 1, 1, 1, 1, 1, NULL, NULL, '2026-11-01 00:00:00+00');
INSERT INTO public.analytics_special_stats VALUES
	(1, 1, 1, 'x', 1, NULL, NULL, NULL, NULL, 1, 1, 'x', NULL, NULL, 1, '2026-11-01 00:00:00+00', NULL, NULL, '2026-11-01 00:00:00+00');
INSERT INTO public.analytics_stock_stats VALUES
	(1, 1, 'all', NULL, NULL, NULL, 1, 1, 1.5, 1.5, 1.5, 1.5, 1, 1, 1, 1, 1, 1, NULL);
INSERT INTO public.analytics_store_stats VALUES
	(1, 1, 'x', 'x', NULL, false, 1, false, NULL, false, false, NULL, 1, 1, 1, 1, 1, 1, 1.5);
INSERT INTO public.api_tokens OVERRIDING SYSTEM VALUE VALUES
	(1, 1, 'x', '\x0101010101010101010101010101010101010101010101010101010101010101', '{x}', '2026-11-01 00:00:00+00', NULL, NULL, NULL);
INSERT INTO public.app_secrets VALUES
	('crawl_webhooks', '\xd825a7ed0f4bff59a0377436682ff1ad2a6d6b1681b806a48e7b015b09c0ac3f', '2026-11-01 00:00:00+00'),
	('watch_addresses', '\x53661ddc8f50c91f4c02f3ffd21fadff83c87f24da700bbe8481986398b95eb6', '2026-11-01 00:00:00+00');
INSERT INTO public.audit_log OVERRIDING SYSTEM VALUE VALUES
	(1, '2026-11-01 00:00:00+00', 'x', 'user', NULL, NULL, 'api', 'x', NULL, NULL, '{}', NULL);
INSERT INTO public.backups VALUES
	('x', 'x', 'x', '2026-11-01 00:00:00+00', 1, 1, 1, 1);
INSERT INTO public.brand_aliases VALUES
	('x', 'x', 1, 'spelling', NULL, '2026-11-01 00:00:00+00');
INSERT INTO public.brand_days VALUES
	('2026-11-01', 'x', 1, 1, 1, 1, 1, 1);
INSERT INTO public.brand_descriptions VALUES
	('00000000-0000-4000-8000-000000000001', 'x');
INSERT INTO public.brands OVERRIDING SYSTEM VALUE VALUES
	(1, 'x', 'x', false, NULL, '2026-11-01 00:00:00+00');
INSERT INTO public.canonical_products OVERRIDING SYSTEM VALUE VALUES
	(1, NULL, 'x', NULL, NULL, NULL, NULL, 0, 0, NULL, '2026-11-01 00:00:00+00', '2026-11-01 00:00:00+00');
INSERT INTO public.canonical_sizes OVERRIDING SYSTEM VALUE VALUES
	(1, 1, 'x');
INSERT INTO public.catalog_names VALUES
	('x');
INSERT INTO public.catalog_new_names VALUES
	('x');
INSERT INTO public.catalog_products VALUES
	(1, 1, 'x', 'x', '\x0101010101010101010101010101010101010101010101010101010101010101', 0, '2026-11-01 00:00:00+00', NULL, '2026-11-01 00:00:00+00', NULL, true, '2026-11-01 00:00:00+00', 'x', 'x', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'in_stock', true, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, '[{"option": "1g", "quantity": 3, "price_rec": 10, "stock_status": "in_stock"}]', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{}', NULL);
INSERT INTO public.catalog_totals VALUES
	('brand', 'x', 1, 1, 1);
INSERT INTO public.crawl_attempts VALUES
	(1, 1, 1, '2026-11-01 00:00:00+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.crawl_deliveries OVERRIDING SYSTEM VALUE VALUES
	(1, 1, 1, '2026-11-01 00:00:00+00', '2026-11-01 00:00:00+00', 0, false, NULL, NULL, NULL, NULL);
INSERT INTO public.crawl_feed VALUES
	(1, '2026-11-01 00:00:00+00', NULL);
INSERT INTO public.crawl_fetches OVERRIDING SYSTEM VALUE VALUES
	(1, 1, 1, 'x', 'x', NULL, '2026-11-01 00:00:00+00');
INSERT INTO public.crawl_jobs OVERRIDING SYSTEM VALUE VALUES
	(1, 'x', 'x', 'running', '{x}', 1, NULL, 5, 15, 15, 3, 15, NULL, '2026-11-01 00:00:00+00', NULL, '2026-11-01 00:00:00+00', '2026-11-01 00:00:00+00', NULL, NULL, NULL);
INSERT INTO public.crawl_products OVERRIDING SYSTEM VALUE VALUES
	(1, 1, 1, 'x', 'x', 'x', 'x', 'x', NULL, NULL, 'x', NULL, NULL, 1, '{}', '2026-11-01 00:00:00+00');
INSERT INTO public.crawl_queue OVERRIDING SYSTEM VALUE VALUES
	(1, 1, 'x', 'search', 'x', NULL, 2, 'pending', 0, 0, '2026-11-01 00:00:00+00', '2026-11-01 00:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, false);
INSERT INTO public.crawl_variants VALUES
	(1, 'x', 1, NULL, NULL, NULL, NULL);
INSERT INTO public.disk_readings VALUES
	('x', 'x', 1, '2026-11-01 00:00:00+00');
INSERT INTO public.dispensaries OVERRIDING SYSTEM VALUE VALUES
	(1, 'dutchie', '5f0000000000000000000001', NULL, 'x', 'x', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL, '{}', 4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-01 00:00:00+00', '2026-11-01 00:00:00+00');
INSERT INTO public.dutchie_discovery_locations OVERRIDING SYSTEM VALUE VALUES
	(1, 'dutchie', 'x', 'x', 'x', NULL, NULL, NULL, 'found', NULL, NULL, '{}', '2026-11-01 00:00:00+00', '2026-11-01 00:00:00+00');
INSERT INTO public.failure_mutes VALUES
	('x', 'x', 'x', 'x', NULL, 'x', '2026-11-01 00:00:00+00');
INSERT INTO public.fetch_attempts_20261101 OVERRIDING SYSTEM VALUE VALUES
	(1, NULL, NULL, 'x', NULL, NULL, 'x', 'x', 'x', NULL, false, 0, 0, 0, NULL, '2026-11-01 00:00:00+00', NULL);
INSERT INTO public.fetch_totals VALUES
	('x', 'x', 1, 1, 1, 1.5, 1.5);
INSERT INTO public.gone_options VALUES
	(1, 'x', NULL, '2026-11-01 00:00:00+00');
INSERT INTO public.history_revisions VALUES
	(1, '2026-11-01', '00000000-0000-4000-8000-000000000001');
INSERT INTO public.host_events OVERRIDING SYSTEM VALUE VALUES
	(1, 'x', 'changed', 'x', NULL, '2026-11-01 00:00:00+00');
INSERT INTO public.hosts VALUES
	('dutchie.com', 1.5, 1, 1, 0, NULL, NULL, NULL, 1.5, '2026-11-01 00:00:00+00', NULL, NULL, NULL, NULL, NULL, 0, 0, 'closed', NULL, NULL, 0, NULL, '[]', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-01 00:00:00+00', '2026-11-01 00:00:00+00');
INSERT INTO public.idempotency_keys VALUES
	('x', 'x', '\x0101010101010101010101010101010101010101010101010101010101010101', '00000000-0000-4000-8000-000000000001', NULL, NULL, NULL, '2026-11-01 00:00:00+00');
INSERT INTO public.identity_leases OVERRIDING SYSTEM VALUE VALUES
	(1, 'dutchie.com', 1, NULL, '2026-11-01 00:00:00+00', '2026-11-01 06:00:00+00');
INSERT INTO public.image_references VALUES
	(1, 1, NULL, 'x', 'queued', NULL, NULL, NULL, '2026-11-01 00:00:00+00', NULL);
INSERT INTO public.image_urls VALUES
	(1, 'x', 'x', 'waiting', 0, '2026-11-01 00:00:00+00', NULL, NULL, NULL, '2026-11-01 00:00:00+00');
INSERT INTO public.images VALUES
	('\x0101010101010101010101010101010101010101010101010101010101010101', 'x', 1, 1, 1, 'x', 1, 'x', '2026-11-01 00:00:00+00');
INSERT INTO public.licences OVERRIDING SYSTEM VALUE VALUES
	(1, 'x', 'x', 'x', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-01 00:00:00+00', NULL);
INSERT INTO public.location_events OVERRIDING SYSTEM VALUE VALUES
	(1, '2026-11-01 00:00:00+00', 1, 'moved', NULL, NULL, NULL, NULL);
INSERT INTO public.location_links VALUES
	(1, 1, NULL, 1.5, '[]', NULL, '2026-11-01 00:00:00+00');
INSERT INTO public.location_refusals VALUES
	(1, 1, NULL, 'x', '2026-11-01 00:00:00+00');
INSERT INTO public.locations OVERRIDING SYSTEM VALUE VALUES
	(1, 'x', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-01 00:00:00+00', '2026-11-01 00:00:00+00');
INSERT INTO public.log_lines VALUES
	('x', 1, '2026-11-01 00:00:00+00', 'x', NULL, 'x', NULL, NULL, '{}', 0, NULL);
INSERT INTO public.login_failures VALUES
	('user', '\x0101010101010101010101010101010101010101010101010101010101010101', 1, '2026-11-01 00:00:00+00');
INSERT INTO public.maintenance_runs VALUES
	('x', NULL, NULL, NULL, NULL);
INSERT INTO public.market_days VALUES
	('2026-11-01', 'x', 'x', 1, 1, 1, DEFAULT, 1, 1, NULL, NULL, 1, 1);
INSERT INTO public.match_corrections OVERRIDING SYSTEM VALUE VALUES
	(1, false, '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002', '[]', '[]', NULL, 'x', '2026-11-01 00:00:00+00', NULL, NULL);
INSERT INTO public.match_dirty_blocks VALUES
	('x', 'correction');
INSERT INTO public.match_events OVERRIDING SYSTEM VALUE VALUES
	(1, '2026-11-01 00:00:00+00', 'merged', 1, 1, 1, 'menu', NULL);
INSERT INTO public.match_reviews VALUES
	(1, 2, 1.5, false, 1, '[]', NULL);
INSERT INTO public.match_signatures OVERRIDING SYSTEM VALUE VALUES
	(1, '00000000-0000-4000-8000-000000000001', 'x', '[]', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.match_stores VALUES
	(1, '2026-11-01 00:00:00+00', 1, '2026-11-01 00:00:00+00');
INSERT INTO public.pod_scale_request VALUES
	(true, NULL, NULL, NULL, NULL);
INSERT INTO public.price_index_days VALUES
	('x', 'x', '2026-11-01', 1, 1, 1, 1, 1, 1, 1, NULL, 1.5, '{1.5}');
INSERT INTO public.price_index_items VALUES
	(1, 'x', 1.5, NULL);
INSERT INTO public.price_index_stores VALUES
	(1, '2026-11-01', '2026-11-01 00:00:00+00');
INSERT INTO public.price_watch_events OVERRIDING SYSTEM VALUE VALUES
	(1, 1, '2026-11-01 00:00:00+00', '{}', false);
INSERT INTO public.price_watches OVERRIDING SYSTEM VALUE VALUES
	(1, '\x0101010101010101010101010101010101010101010101010101010101010101', 'feed', NULL, NULL, NULL, 'item', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'any_drop', 'USD', NULL, 'armed', NULL, NULL, '2026-11-01 00:00:00+00', NULL, NULL, NULL, 0, '2026-11-01 06:00:00+00');
INSERT INTO public.product_detail_history_2026_11 VALUES
	(1, '2026-11-01 00:00:00+00', '2026-11-01 06:00:00+00', NULL, false, NULL, NULL, NULL);
INSERT INTO public.product_history_2026_11 VALUES
	(1, '2026-11-01 00:00:00+00', '2026-11-01 00:00:00+00', '2026-11-01 06:00:00+00', 1, NULL, false, false, 'oos', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', '[]');
INSERT INTO public.product_matches VALUES
	(1, 1, 1, 1, NULL, '{}', '{}', NULL, '2026-11-01 00:00:00+00');
INSERT INTO public.profile_scores VALUES
	('x', 'x', 1.5, 1.5, '2026-11-01 00:00:00+00');
INSERT INTO public.proxies OVERRIDING SYSTEM VALUE VALUES
	(1, 'http', 'x', 1, NULL, NULL, true, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, '{}', '2026-11-01 00:00:00+00', '2026-11-01 00:00:00+00');
INSERT INTO public.proxy_scores VALUES
	('x', 1, 1.5, 1.5, '2026-11-01 00:00:00+00');
INSERT INTO public.quality_audits OVERRIDING SYSTEM VALUE VALUES
	(1, '2026-11-01 00:00:00+00', 1, 1, 1, 'x', 'x', NULL, 'equal', NULL, NULL, NULL, NULL);
INSERT INTO public.quality_category_words VALUES
	('x', 'x', NULL, NULL, '2026-11-01 00:00:00+00', false);
INSERT INTO public.quality_findings OVERRIDING SYSTEM VALUE VALUES
	(1, 1, 'x', NULL, 'up', 'warning', '2026-11-01 00:00:00+00', '2026-11-01 00:00:00+00', 1, 1.5, NULL, NULL, NULL, false, 'store', NULL, 1, 1, NULL, NULL);
INSERT INTO public.quality_measures VALUES
	(1, '2026-11-01 00:00:00+00', 'x', false, 'x', '{}', NULL);
INSERT INTO public.quality_points_of_sale VALUES
	(1, 'x');
INSERT INTO public.quality_rules OVERRIDING SYSTEM VALUE VALUES
	(1, 'x', 'above', 0.2, 'warning', NULL, NULL, NULL, 'x', '2026-11-01 00:00:00+00');
INSERT INTO public.quality_stores VALUES
	(1, 'x', '2026-11-01 00:00:00+00', 1, '{}', 90, NULL, 1.5);
INSERT INTO public.queue_settings VALUES
	(true, '00:10:00', '00:00:30', '{}');
INSERT INTO public.raw_crawl_payloads OVERRIDING SYSTEM VALUE VALUES
	(1, NULL, 1, 'x', 'ok', NULL, 0, NULL, 0, false, false, '2026-11-01 00:00:00+00', 'x', 1, 1, 'x', 'x', '[]', NULL, NULL, '2026-11-01 00:00:00+00');
INSERT INTO public.resync_plan VALUES
	('2026-11-01', 1, '2026-11-01 00:00:00+00', NULL);
INSERT INTO public.retention_clock VALUES
	(true, '2026-11-01 00:00:00+00', '2026-11-01 00:00:00+00', '00:00:00');
INSERT INTO public.saved_views OVERRIDING SYSTEM VALUE VALUES
	(1, 'x', 'x', 'x', 'x', '2026-11-01 00:00:00+00');
INSERT INTO public.schedule_runs VALUES
	(1, '2026-11-01 00:00:00+00', '2026-11-01 00:00:00+00', 0, NULL);
INSERT INTO public.sessions VALUES
	('00000000-0000-4000-8000-000000000001', 1, '\x0101010101010101010101010101010101010101010101010101010101010101', '2026-11-01 00:00:00+00', '2026-11-01 00:00:00+00', 1, '2026-11-01 00:00:00+00');
INSERT INTO public.special_check_stores VALUES
	(1, '2026-11-01 00:00:00+00');
INSERT INTO public.special_checks VALUES
	(1, 'x', 1, 1, 1, 'genuine', NULL, NULL, 1, '2026-11-01 00:00:00+00', NULL, NULL);
INSERT INTO public.store_crawls VALUES
	(1, '2026-11-01 00:00:00+00', NULL, 1, 1, 1, 1, 1, 1, 1, 1, 1, '[]');
INSERT INTO public.storefront_deals VALUES
	(1, 'x', 1, 1, 1, 1, false, NULL, NULL, 1, '2026-11-01 00:00:00+00', NULL, NULL);
INSERT INTO public.storefront_dirty_items VALUES
	(1);
INSERT INTO public.storefront_dirty_products VALUES
	(1);
INSERT INTO public.storefront_dirty_stores VALUES
	(1);
INSERT INTO public.storefront_former_offers VALUES
	(1, 1, 'x', false, NULL, NULL, NULL);
INSERT INTO public.storefront_item_sizes VALUES
	(1, 'x', 1, 1, 1, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.storefront_item_words VALUES
	(1, '''x''');
INSERT INTO public.storefront_items VALUES
	(1, 'x', NULL, 'x', NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, false, 0, '{}', 1, '2026-11-01 00:00:00+00');
INSERT INTO public.storefront_offers VALUES
	(1, 'x', 1, false, 1, 1, 1, 1, '2026-11-01 00:00:00+00', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'x', NULL);
INSERT INTO public.storefront_promotions VALUES
	(1, 'x', 'x', 1, 1, NULL, NULL, NULL, NULL);
INSERT INTO public.storefront_spellings VALUES
	('x', 'x');
INSERT INTO public.storefront_stores VALUES
	(1, '2026-11-01 00:00:00+00', NULL, 1, 1, 1, NULL, NULL, '2026-11-01 00:00:00+00');
INSERT INTO public.storefront_totals VALUES
	('all', 'x', 1, 1, NULL, NULL, '2026-11-01 00:00:00+00');
INSERT INTO public.storefront_words VALUES
	('x', 0);
INSERT INTO public.supervisor_lease VALUES
	(true, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL);
INSERT INTO public.task_day_counts VALUES
	('2026-11-01', 'x', 'x', 'x', 1);
INSERT INTO public.task_day_workers VALUES
	('x', '2026-11-01');
INSERT INTO public.task_days VALUES
	('2026-11-01', '2026-11-01 00:00:00+00');
INSERT INTO public.task_history_20261101 VALUES
	(1, '2026-11-01 00:00:00+00', NULL, NULL, NULL, '2026-11-01 00:00:00+00', NULL, NULL, 1, 1, 1, 1, 1, 'payload_fetch', 'x', 'failed', NULL, 'store 1 answered: HTTP 500', DEFAULT, '{}', NULL, NULL);
INSERT INTO public.task_live VALUES
	(2, '2026-11-01 00:00:00+00', '2026-11-01 00:00:00+00', NULL, NULL, NULL, NULL, 1, 0, 0, 0, 3, 0, 0, 0, 'r', 'payload_fetch', 'dutchie', NULL, NULL, NULL, NULL, '{}', NULL, NULL);
INSERT INTO public.task_schedules OVERRIDING SYSTEM VALUE VALUES
	(1, 'x', 'payload_fetch', 'dutchie', true, 1, 0, NULL, NULL, NULL, NULL, 'once', NULL, '2026-11-01 00:00:00+00', NULL, NULL, '2026-11-01 00:00:00+00', '2026-11-01 00:00:00+00');
INSERT INTO public.users OVERRIDING SYSTEM VALUE VALUES
	(1, 'x', 'admin', '$argon2id$x', false, NULL, '2026-11-01 00:00:00+00', '2026-11-01 00:00:00+00', '2026-11-01 00:00:00+00', NULL);
INSERT INTO public.visitor_days VALUES
	('2026-11-01', 'x', 'x', 'x', 'x', 1, 1, 1);
INSERT INTO public.visitor_marks VALUES
	('2026-11-01', '\x01010101010101010101010101010101');
INSERT INTO public.visitor_pages VALUES
	('2026-11-01', 'x', 'x', 1, 1);
INSERT INTO public.visitor_salts VALUES
	('2026-11-01', '\x0101010101010101010101010101010101010101010101010101010101010101', '2026-11-01 00:00:00+00');
INSERT INTO public.watched_searches OVERRIDING SYSTEM VALUE VALUES
	(1, 'x', NULL, NULL, NULL, NULL, NULL, false, false, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.worker_commands OVERRIDING SYSTEM VALUE VALUES
	(1, 'x', 'pause', '2026-11-01 00:00:00+00', NULL, NULL);
INSERT INTO public.worker_registry VALUES
	('x', 'x', NULL, 'x', NULL, NULL, NULL, 'active', '2026-11-01 00:00:00+00', '2026-11-01 00:00:00+00', '{}');
SELECT pg_catalog.setval('public.alert_channels_id_seq', 1, true);
SELECT pg_catalog.setval('public.alert_deliveries_id_seq', 1, true);
SELECT pg_catalog.setval('public.alert_events_id_seq', 1, true);
SELECT pg_catalog.setval('public.alert_rules_id_seq', 1, true);
SELECT pg_catalog.setval('public.analytics_runs_id_seq', 1, true);
SELECT pg_catalog.setval('public.api_tokens_id_seq', 1, true);
SELECT pg_catalog.setval('public.audit_log_id_seq', 1, true);
SELECT pg_catalog.setval('public.brands_id_seq', 1, true);
SELECT pg_catalog.setval('public.canonical_products_id_seq', 1, true);
SELECT pg_catalog.setval('public.canonical_sizes_id_seq', 1, true);
SELECT pg_catalog.setval('public.catalog_products_id_seq', 1, true);
SELECT pg_catalog.setval('public.crawl_deliveries_id_seq', 1, true);
SELECT pg_catalog.setval('public.crawl_fetches_id_seq', 1, true);
SELECT pg_catalog.setval('public.crawl_jobs_id_seq', 1, true);
SELECT pg_catalog.setval('public.crawl_positions', 1, false);
SELECT pg_catalog.setval('public.crawl_products_id_seq', 1, true);
SELECT pg_catalog.setval('public.crawl_queue_id_seq', 1, true);
SELECT pg_catalog.setval('public.dispensaries_id_seq', 1, true);
SELECT pg_catalog.setval('public.dutchie_discovery_locations_id_seq', 1, true);
SELECT pg_catalog.setval('public.fetch_attempts_id_seq', 1, true);
SELECT pg_catalog.setval('public.host_events_id_seq', 1, true);
SELECT pg_catalog.setval('public.identity_leases_id_seq', 1, true);
SELECT pg_catalog.setval('public.image_references_id_seq', 1, true);
SELECT pg_catalog.setval('public.image_urls_id_seq', 1, true);
SELECT pg_catalog.setval('public.licences_id_seq', 1, true);
SELECT pg_catalog.setval('public.location_events_id_seq', 1, true);
SELECT pg_catalog.setval('public.locations_id_seq', 1, true);
SELECT pg_catalog.setval('public.match_corrections_id_seq', 1, true);
SELECT pg_catalog.setval('public.match_events_id_seq', 1, true);
SELECT pg_catalog.setval('public.match_signatures_id_seq', 1, true);
SELECT pg_catalog.setval('public.price_watch_events_id_seq', 1, true);
SELECT pg_catalog.setval('public.price_watches_id_seq', 1, true);
SELECT pg_catalog.setval('public.proxies_id_seq', 1, true);
SELECT pg_catalog.setval('public.quality_audits_id_seq', 1, true);
SELECT pg_catalog.setval('public.quality_findings_id_seq', 1, true);
SELECT pg_catalog.setval('public.quality_rules_id_seq', 1, true);
SELECT pg_catalog.setval('public.raw_crawl_payloads_id_seq', 1, true);
SELECT pg_catalog.setval('public.saved_views_id_seq', 1, true);
SELECT pg_catalog.setval('public.task_ids', 2, true);
SELECT pg_catalog.setval('public.task_schedules_id_seq', 1, true);
SELECT pg_catalog.setval('public.users_id_seq', 1, true);
SELECT pg_catalog.setval('public.watched_searches_id_seq', 1, true);
SELECT pg_catalog.setval('public.worker_commands_id_seq', 1, true);
ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY public.alert_channels
    ADD CONSTRAINT alert_channels_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.alert_deliveries
    ADD CONSTRAINT alert_deliveries_key_key UNIQUE (key);
ALTER TABLE ONLY public.alert_deliveries
    ADD CONSTRAINT alert_deliveries_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.alert_events
    ADD CONSTRAINT alert_events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.alert_events
    ADD CONSTRAINT alert_events_rule_id_source_key UNIQUE (rule_id, source);
ALTER TABLE ONLY public.alert_matches
    ADD CONSTRAINT alert_matches_pkey PRIMARY KEY (rule_id, product_id);
ALTER TABLE ONLY public.alert_rules
    ADD CONSTRAINT alert_rules_name_key UNIQUE (name);
ALTER TABLE ONLY public.alert_rules
    ADD CONSTRAINT alert_rules_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.analytics_brand_distribution_stats
    ADD CONSTRAINT analytics_brand_distribution_stats_pkey PRIMARY KEY (run_id, place);
ALTER TABLE ONLY public.analytics_brand_stats
    ADD CONSTRAINT analytics_brand_stats_pkey PRIMARY KEY (run_id, place);
ALTER TABLE ONLY public.analytics_category_stats
    ADD CONSTRAINT analytics_category_stats_pkey PRIMARY KEY (run_id, place);
ALTER TABLE ONLY public.analytics_cheapest_stats
    ADD CONSTRAINT analytics_cheapest_stats_pkey PRIMARY KEY (run_id, place);
ALTER TABLE ONLY public.analytics_daily_stats
    ADD CONSTRAINT analytics_daily_stats_pkey PRIMARY KEY (run_id, day, dispensary_id);
ALTER TABLE ONLY public.analytics_discount_stats
    ADD CONSTRAINT analytics_discount_stats_pkey PRIMARY KEY (run_id, place);
ALTER TABLE ONLY public.analytics_dispersion_stats
    ADD CONSTRAINT analytics_dispersion_stats_pkey PRIMARY KEY (run_id, place);
ALTER TABLE ONLY public.analytics_distribution_stats
    ADD CONSTRAINT analytics_distribution_stats_pkey PRIMARY KEY (run_id, place);
ALTER TABLE ONLY public.analytics_out_product_stats
    ADD CONSTRAINT analytics_out_product_stats_pkey PRIMARY KEY (run_id, place);
ALTER TABLE ONLY public.analytics_price_stats
    ADD CONSTRAINT analytics_price_stats_pkey PRIMARY KEY (run_id, place);
ALTER TABLE ONLY public.analytics_runs
    ADD CONSTRAINT analytics_runs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.analytics_shrinkflation_stats
    ADD CONSTRAINT analytics_shrinkflation_stats_pkey PRIMARY KEY (run_id, place);
ALTER TABLE ONLY public.analytics_special_group_stats
    ADD CONSTRAINT analytics_special_group_stats_pkey PRIMARY KEY (run_id, place);
ALTER TABLE ONLY public.analytics_special_stats
    ADD CONSTRAINT analytics_special_stats_pkey PRIMARY KEY (run_id, place);
ALTER TABLE ONLY public.analytics_stock_stats
    ADD CONSTRAINT analytics_stock_stats_pkey PRIMARY KEY (run_id, place);
ALTER TABLE ONLY public.analytics_store_stats
    ADD CONSTRAINT analytics_store_stats_pkey PRIMARY KEY (run_id, dispensary_id);
ALTER TABLE ONLY public.api_tokens
    ADD CONSTRAINT api_tokens_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.app_secrets
    ADD CONSTRAINT app_secrets_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.audit_log
    ADD CONSTRAINT audit_log_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.backups
    ADD CONSTRAINT backups_pkey PRIMARY KEY (host, folder);
ALTER TABLE ONLY public.brand_aliases
    ADD CONSTRAINT brand_aliases_pkey PRIMARY KEY (alias);
ALTER TABLE ONLY public.brand_days
    ADD CONSTRAINT brand_days_pkey PRIMARY KEY (day, state, brand_id);
ALTER TABLE ONLY public.brands
    ADD CONSTRAINT brands_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.brands
    ADD CONSTRAINT brands_slug_key UNIQUE (slug);
ALTER TABLE ONLY public.canonical_products
    ADD CONSTRAINT canonical_products_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.canonical_sizes
    ADD CONSTRAINT canonical_sizes_canonical_product_id_size_key UNIQUE (canonical_product_id, size);
ALTER TABLE ONLY public.canonical_sizes
    ADD CONSTRAINT canonical_sizes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.catalog_products
    ADD CONSTRAINT catalog_products_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.catalog_totals
    ADD CONSTRAINT catalog_totals_pkey PRIMARY KEY (kind, name);
ALTER TABLE ONLY public.crawl_attempts
    ADD CONSTRAINT crawl_attempts_pkey PRIMARY KEY (item_id, attempt);
ALTER TABLE ONLY public.crawl_deliveries
    ADD CONSTRAINT crawl_deliveries_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.crawl_feed
    ADD CONSTRAINT crawl_feed_pkey PRIMARY KEY (dispensary_id, crawled_at);
ALTER TABLE ONLY public.crawl_fetches
    ADD CONSTRAINT crawl_fetches_item_id_attempt_key UNIQUE (item_id, attempt);
ALTER TABLE ONLY public.crawl_fetches
    ADD CONSTRAINT crawl_fetches_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.crawl_jobs
    ADD CONSTRAINT crawl_jobs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.crawl_products
    ADD CONSTRAINT crawl_products_job_id_site_product_id_key UNIQUE (job_id, site_product_id);
ALTER TABLE ONLY public.crawl_products
    ADD CONSTRAINT crawl_products_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.crawl_queue
    ADD CONSTRAINT crawl_queue_job_id_url_key UNIQUE (job_id, url);
ALTER TABLE ONLY public.crawl_queue
    ADD CONSTRAINT crawl_queue_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.crawl_variants
    ADD CONSTRAINT crawl_variants_pkey PRIMARY KEY (product_id, variant_id);
ALTER TABLE ONLY public.disk_readings
    ADD CONSTRAINT disk_readings_pkey PRIMARY KEY (machine, place);
ALTER TABLE ONLY public.dispensaries
    ADD CONSTRAINT dispensaries_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.dutchie_discovery_locations
    ADD CONSTRAINT dutchie_discovery_locations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.failure_mutes
    ADD CONSTRAINT failure_mutes_pkey PRIMARY KEY (cause, role, platform);
ALTER TABLE ONLY public.fetch_attempts
    ADD CONSTRAINT fetch_attempts_pkey PRIMARY KEY (id, attempted_at);
ALTER TABLE ONLY public.fetch_attempts_20261101
    ADD CONSTRAINT fetch_attempts_20261101_pkey PRIMARY KEY (id, attempted_at);
ALTER TABLE ONLY public.fetch_totals
    ADD CONSTRAINT fetch_totals_pkey PRIMARY KEY (host, verdict);
ALTER TABLE ONLY public.gone_options
    ADD CONSTRAINT gone_options_pkey PRIMARY KEY (product_id, option);
ALTER TABLE ONLY public.history_revisions
    ADD CONSTRAINT history_revisions_pkey PRIMARY KEY (dispensary_id, month);
ALTER TABLE ONLY public.host_events
    ADD CONSTRAINT host_events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.hosts
    ADD CONSTRAINT hosts_pkey PRIMARY KEY (host);
ALTER TABLE ONLY public.idempotency_keys
    ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (actor, key);
ALTER TABLE ONLY public.identity_leases
    ADD CONSTRAINT identity_leases_host_proxy_id_key UNIQUE (host, proxy_id);
ALTER TABLE ONLY public.identity_leases
    ADD CONSTRAINT identity_leases_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.image_references
    ADD CONSTRAINT image_references_brand_key UNIQUE (brand);
ALTER TABLE ONLY public.image_references
    ADD CONSTRAINT image_references_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.image_references
    ADD CONSTRAINT image_references_product_id_key UNIQUE (product_id);
ALTER TABLE ONLY public.image_urls
    ADD CONSTRAINT image_urls_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.image_urls
    ADD CONSTRAINT image_urls_url_key UNIQUE (url);
ALTER TABLE ONLY public.images
    ADD CONSTRAINT images_pkey PRIMARY KEY (sha256);
ALTER TABLE ONLY public.licences
    ADD CONSTRAINT licences_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.licences
    ADD CONSTRAINT licences_state_number_key UNIQUE (state, number);
ALTER TABLE ONLY public.location_events
    ADD CONSTRAINT location_events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.location_links
    ADD CONSTRAINT location_links_dispensary_id_key UNIQUE (dispensary_id);
ALTER TABLE ONLY public.location_links
    ADD CONSTRAINT location_links_licence_id_key UNIQUE (licence_id);
ALTER TABLE ONLY public.location_refusals
    ADD CONSTRAINT location_refusals_location_id_dispensary_id_key UNIQUE (location_id, dispensary_id);
ALTER TABLE ONLY public.location_refusals
    ADD CONSTRAINT location_refusals_location_id_licence_id_key UNIQUE (location_id, licence_id);
ALTER TABLE ONLY public.locations
    ADD CONSTRAINT locations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.log_lines
    ADD CONSTRAINT log_lines_pkey PRIMARY KEY (worker_id, seq);
ALTER TABLE ONLY public.login_failures
    ADD CONSTRAINT login_failures_pkey PRIMARY KEY (kind, key);
ALTER TABLE ONLY public.maintenance_runs
    ADD CONSTRAINT maintenance_runs_pkey PRIMARY KEY (job);
ALTER TABLE ONLY public.market_days
    ADD CONSTRAINT market_days_pkey PRIMARY KEY (day, state, category);
ALTER TABLE ONLY public.match_corrections
    ADD CONSTRAINT match_corrections_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.match_dirty_blocks
    ADD CONSTRAINT match_dirty_blocks_pkey PRIMARY KEY (block);
ALTER TABLE ONLY public.match_events
    ADD CONSTRAINT match_events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.match_reviews
    ADD CONSTRAINT match_reviews_pkey PRIMARY KEY (a, b);
ALTER TABLE ONLY public.match_signatures
    ADD CONSTRAINT match_signatures_key_key UNIQUE (key);
ALTER TABLE ONLY public.match_signatures
    ADD CONSTRAINT match_signatures_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.match_stores
    ADD CONSTRAINT match_stores_pkey PRIMARY KEY (dispensary_id);
ALTER TABLE ONLY public.pod_scale_request
    ADD CONSTRAINT pod_scale_request_pkey PRIMARY KEY (singleton);
ALTER TABLE ONLY public.price_index_days
    ADD CONSTRAINT price_index_days_pkey PRIMARY KEY (state, category, day);
ALTER TABLE ONLY public.price_index_items
    ADD CONSTRAINT price_index_items_pkey PRIMARY KEY (product_id, option);
ALTER TABLE ONLY public.price_index_stores
    ADD CONSTRAINT price_index_stores_pkey PRIMARY KEY (dispensary_id);
ALTER TABLE ONLY public.price_watch_events
    ADD CONSTRAINT price_watch_events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.price_watch_events
    ADD CONSTRAINT price_watch_events_watch_id_happened_at_key UNIQUE (watch_id, happened_at);
ALTER TABLE ONLY public.price_watches
    ADD CONSTRAINT price_watches_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.price_watches
    ADD CONSTRAINT price_watches_token_hash_key UNIQUE (token_hash);
ALTER TABLE ONLY public.product_detail_history
    ADD CONSTRAINT product_detail_history_pkey PRIMARY KEY (product_id, ended_at);
ALTER TABLE ONLY public.product_detail_history_2026_11
    ADD CONSTRAINT product_detail_history_2026_11_pkey PRIMARY KEY (product_id, ended_at);
ALTER TABLE ONLY public.product_history
    ADD CONSTRAINT product_history_pkey PRIMARY KEY (product_id, ended_at);
ALTER TABLE ONLY public.product_history_2026_11
    ADD CONSTRAINT product_history_2026_11_pkey PRIMARY KEY (product_id, ended_at);
ALTER TABLE ONLY public.product_matches
    ADD CONSTRAINT product_matches_pkey PRIMARY KEY (product_id);
ALTER TABLE ONLY public.profile_scores
    ADD CONSTRAINT profile_scores_pkey PRIMARY KEY (host, profile);
ALTER TABLE ONLY public.proxies
    ADD CONSTRAINT proxies_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.proxy_scores
    ADD CONSTRAINT proxy_scores_pkey PRIMARY KEY (host, proxy_id);
ALTER TABLE ONLY public.quality_audits
    ADD CONSTRAINT quality_audits_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.quality_category_words
    ADD CONSTRAINT quality_category_words_pkey PRIMARY KEY (platform, word);
ALTER TABLE ONLY public.quality_findings
    ADD CONSTRAINT quality_findings_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.quality_measures
    ADD CONSTRAINT quality_measures_pkey PRIMARY KEY (dispensary_id, crawled_at);
ALTER TABLE ONLY public.quality_points_of_sale
    ADD CONSTRAINT quality_points_of_sale_pkey PRIMARY KEY (dispensary_id);
ALTER TABLE ONLY public.quality_rules
    ADD CONSTRAINT quality_rules_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.quality_stores
    ADD CONSTRAINT quality_stores_pkey PRIMARY KEY (dispensary_id);
ALTER TABLE ONLY public.queue_settings
    ADD CONSTRAINT queue_settings_pkey PRIMARY KEY (singleton);
ALTER TABLE ONLY public.raw_crawl_payloads
    ADD CONSTRAINT raw_crawl_payloads_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.resync_plan
    ADD CONSTRAINT resync_plan_pkey PRIMARY KEY (day, dispensary_id);
ALTER TABLE ONLY public.retention_clock
    ADD CONSTRAINT retention_clock_pkey PRIMARY KEY (singleton);
ALTER TABLE ONLY public.saved_views
    ADD CONSTRAINT saved_views_owner_screen_name_key UNIQUE (owner, screen, name);
ALTER TABLE ONLY public.saved_views
    ADD CONSTRAINT saved_views_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.schedule_runs
    ADD CONSTRAINT schedule_runs_pkey PRIMARY KEY (schedule_id, fire_at);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_secret_hash_key UNIQUE (secret_hash);
ALTER TABLE ONLY public.special_check_stores
    ADD CONSTRAINT special_check_stores_pkey PRIMARY KEY (dispensary_id);
ALTER TABLE ONLY public.special_checks
    ADD CONSTRAINT special_checks_pkey PRIMARY KEY (product_id, size);
ALTER TABLE ONLY public.store_crawls
    ADD CONSTRAINT store_crawls_payload_id_key UNIQUE (payload_id);
ALTER TABLE ONLY public.store_crawls
    ADD CONSTRAINT store_crawls_pkey PRIMARY KEY (dispensary_id, crawled_at);
ALTER TABLE ONLY public.storefront_deals
    ADD CONSTRAINT storefront_deals_pkey PRIMARY KEY (product_id, size);
ALTER TABLE ONLY public.storefront_dirty_items
    ADD CONSTRAINT storefront_dirty_items_pkey PRIMARY KEY (item_id);
ALTER TABLE ONLY public.storefront_former_offers
    ADD CONSTRAINT storefront_former_offers_pkey PRIMARY KEY (store_id, product_id, size);
ALTER TABLE ONLY public.storefront_item_sizes
    ADD CONSTRAINT storefront_item_sizes_pkey PRIMARY KEY (item_id, size);
ALTER TABLE ONLY public.storefront_item_words
    ADD CONSTRAINT storefront_item_words_pkey PRIMARY KEY (item_id);
ALTER TABLE ONLY public.storefront_items
    ADD CONSTRAINT storefront_items_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.storefront_offers
    ADD CONSTRAINT storefront_offers_pkey PRIMARY KEY (product_id, size);
ALTER TABLE ONLY public.storefront_promotions
    ADD CONSTRAINT storefront_promotions_pkey PRIMARY KEY (store_id, name, kind);
ALTER TABLE ONLY public.storefront_spellings
    ADD CONSTRAINT storefront_spellings_pkey PRIMARY KEY (spelling, word);
ALTER TABLE ONLY public.storefront_stores
    ADD CONSTRAINT storefront_stores_pkey PRIMARY KEY (dispensary_id);
ALTER TABLE ONLY public.storefront_totals
    ADD CONSTRAINT storefront_totals_pkey PRIMARY KEY (kind, name);
ALTER TABLE ONLY public.storefront_words
    ADD CONSTRAINT storefront_words_pkey PRIMARY KEY (word);
ALTER TABLE ONLY public.supervisor_lease
    ADD CONSTRAINT supervisor_lease_pkey PRIMARY KEY (singleton);
ALTER TABLE ONLY public.task_day_counts
    ADD CONSTRAINT task_day_counts_pkey PRIMARY KEY (day, role, status, platform);
ALTER TABLE ONLY public.task_day_workers
    ADD CONSTRAINT task_day_workers_pkey PRIMARY KEY (worker_id, day);
ALTER TABLE ONLY public.task_days
    ADD CONSTRAINT task_days_pkey PRIMARY KEY (day);
ALTER TABLE ONLY public.task_history
    ADD CONSTRAINT task_history_pkey PRIMARY KEY (id, completed_at);
ALTER TABLE ONLY public.task_history_20261101
    ADD CONSTRAINT task_history_20261101_pkey PRIMARY KEY (id, completed_at);
ALTER TABLE ONLY public.task_live
    ADD CONSTRAINT task_live_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.task_schedules
    ADD CONSTRAINT task_schedules_name_key UNIQUE (name);
ALTER TABLE ONLY public.task_schedules
    ADD CONSTRAINT task_schedules_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.visitor_days
    ADD CONSTRAINT visitor_days_pkey PRIMARY KEY (day, country, region, city, kind);
ALTER TABLE ONLY public.visitor_marks
    ADD CONSTRAINT visitor_marks_pkey PRIMARY KEY (day, mark);
ALTER TABLE ONLY public.visitor_pages
    ADD CONSTRAINT visitor_pages_pkey PRIMARY KEY (day, kind, page);
ALTER TABLE ONLY public.visitor_salts
    ADD CONSTRAINT visitor_salts_pkey PRIMARY KEY (day);
ALTER TABLE ONLY public.watched_searches
    ADD CONSTRAINT watched_searches_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.watched_searches
    ADD CONSTRAINT watched_searches_query_key UNIQUE (query);
ALTER TABLE ONLY public.worker_commands
    ADD CONSTRAINT worker_commands_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.worker_registry
    ADD CONSTRAINT worker_registry_pkey PRIMARY KEY (worker_id);
CREATE INDEX alert_channels_rule ON public.alert_channels USING btree (rule_id);
CREATE INDEX alert_deliveries_channel ON public.alert_deliveries USING btree (channel_id);
CREATE INDEX alert_deliveries_due ON public.alert_deliveries USING btree (next_attempt_at) WHERE (status = ANY (ARRAY['waiting'::text, 'sending'::text]));
CREATE INDEX alert_deliveries_events ON public.alert_deliveries USING gin (event_ids);
CREATE INDEX alert_deliveries_rule ON public.alert_deliveries USING btree (rule_id, id DESC);
CREATE INDEX alert_events_due ON public.alert_events USING btree (due_at) WHERE (NOT notified);
CREATE INDEX alert_events_rule ON public.alert_events USING btree (rule_id, id DESC);
CREATE INDEX alert_events_time ON public.alert_events USING btree (fired_at DESC, id DESC);
CREATE INDEX alert_matches_pending ON public.alert_matches USING btree (dispensary_id) WHERE (phase = 'pending'::text);
CREATE INDEX alert_matches_product ON public.alert_matches USING btree (product_id);
CREATE INDEX alert_matches_store ON public.alert_matches USING btree (dispensary_id);
CREATE INDEX alert_rules_brand ON public.alert_rules USING btree (lower(brand)) WHERE (enabled AND (reach = 'brand'::text));
CREATE INDEX alert_rules_canonical ON public.alert_rules USING btree (canonical_product_id) WHERE (enabled AND (reach = 'canonical_product'::text));
CREATE INDEX alert_rules_category ON public.alert_rules USING btree (lower(category)) WHERE (enabled AND (reach = 'category'::text));
CREATE INDEX alert_rules_others ON public.alert_rules USING btree (reach) WHERE (enabled AND (reach = ANY (ARRAY['search'::text, 'operations'::text])));
CREATE INDEX alert_rules_product ON public.alert_rules USING btree (product_id) WHERE (enabled AND (reach = 'product'::text));
CREATE INDEX alert_rules_removed ON public.alert_rules USING btree (dispensary_id);
CREATE INDEX alert_rules_store ON public.alert_rules USING btree (dispensary_id) WHERE (enabled AND (reach = 'store'::text));
CREATE INDEX analytics_brand_distribution_stats_brand ON public.analytics_brand_distribution_stats USING btree (run_id, brand_id, place);
CREATE INDEX analytics_brand_distribution_stats_state ON public.analytics_brand_distribution_stats USING btree (run_id, all_states, state, place);
CREATE INDEX analytics_brand_stats_state ON public.analytics_brand_stats USING btree (run_id, all_states, state, place);
CREATE INDEX analytics_cheapest_stats_brand ON public.analytics_cheapest_stats USING btree (run_id, brand_id, place) WHERE (brand_id IS NOT NULL);
CREATE INDEX analytics_cheapest_stats_level ON public.analytics_cheapest_stats USING btree (run_id, level, state, place);
CREATE INDEX analytics_cheapest_stats_store ON public.analytics_cheapest_stats USING btree (run_id, dispensary_id, place);
CREATE INDEX analytics_daily_stats_store ON public.analytics_daily_stats USING btree (run_id, dispensary_id, day);
CREATE INDEX analytics_dispersion_stats_brand ON public.analytics_dispersion_stats USING btree (run_id, brand_id, place);
CREATE INDEX analytics_dispersion_stats_gap ON public.analytics_dispersion_stats USING btree (run_id, gap_place);
CREATE INDEX analytics_dispersion_stats_product ON public.analytics_dispersion_stats USING btree (run_id, canonical_product_id);
CREATE INDEX analytics_dispersion_stats_state ON public.analytics_dispersion_stats USING btree (run_id, all_states, state, place);
CREATE INDEX analytics_dispersion_stats_state_gap ON public.analytics_dispersion_stats USING btree (run_id, all_states, state, gap_place);
CREATE INDEX analytics_distribution_stats_brand ON public.analytics_distribution_stats USING btree (run_id, brand_id, place);
CREATE INDEX analytics_distribution_stats_product ON public.analytics_distribution_stats USING btree (run_id, canonical_product_id);
CREATE INDEX analytics_distribution_stats_state ON public.analytics_distribution_stats USING btree (run_id, all_states, state, place);
CREATE INDEX analytics_out_product_stats_product ON public.analytics_out_product_stats USING btree (run_id, product_id);
CREATE INDEX analytics_out_product_stats_store ON public.analytics_out_product_stats USING btree (run_id, dispensary_id, place);
CREATE INDEX analytics_runs_done ON public.analytics_runs USING btree (id) WHERE (status = 'done'::text);
CREATE INDEX analytics_special_stats_store ON public.analytics_special_stats USING btree (run_id, dispensary_id, place);
CREATE INDEX analytics_stock_stats_level ON public.analytics_stock_stats USING btree (run_id, level, place);
CREATE INDEX analytics_stock_stats_store ON public.analytics_stock_stats USING btree (run_id, dispensary_id, place) WHERE (dispensary_id IS NOT NULL);
CREATE INDEX api_tokens_user ON public.api_tokens USING btree (user_id);
CREATE INDEX audit_log_action ON public.audit_log USING btree (action, id);
CREATE INDEX audit_log_actor ON public.audit_log USING btree (lower(actor), id);
CREATE INDEX audit_log_at ON public.audit_log USING btree (at);
CREATE INDEX audit_log_subject ON public.audit_log USING btree (subject_kind, subject_id, id);
CREATE INDEX brand_aliases_brand ON public.brand_aliases USING btree (brand_id);
CREATE INDEX brand_days_brand ON public.brand_days USING btree (brand_id, state, day);
CREATE INDEX brand_descriptions_hash ON public.brand_descriptions USING btree (hash);
CREATE INDEX brands_merged_into ON public.brands USING btree (merged_into) WHERE (merged_into IS NOT NULL);
CREATE INDEX canonical_products_anchor ON public.canonical_products USING btree (anchor_product_id);
CREATE INDEX canonical_products_brand ON public.canonical_products USING btree (brand_id);
CREATE INDEX canonical_products_merged_into ON public.canonical_products USING btree (merged_into) WHERE (merged_into IS NOT NULL);
CREATE INDEX canonical_products_stores ON public.canonical_products USING btree (stores DESC, id) WHERE (merged_into IS NULL);
CREATE UNIQUE INDEX catalog_names_name ON public.catalog_names USING btree (md5(name));
CREATE INDEX catalog_names_parts ON public.catalog_names USING gin (public.trigrams(name));
CREATE INDEX catalog_products_brand ON public.catalog_products USING btree (lower(brand_name));
CREATE INDEX catalog_products_brand_name ON public.catalog_products USING btree (brand_name, dispensary_id) INCLUDE (is_in_stock) WHERE (brand_name IS NOT NULL);
CREATE INDEX catalog_products_changed ON public.catalog_products USING btree (changed_at, id);
CREATE INDEX catalog_products_first_seen ON public.catalog_products USING btree (first_seen_at);
CREATE UNIQUE INDEX catalog_products_item ON public.catalog_products USING btree (dispensary_id, provider, provider_product_id);
CREATE INDEX catalog_products_name ON public.catalog_products USING btree (lower(name), id);
CREATE INDEX catalog_products_price ON public.catalog_products USING btree (public.effective_price(price_rec, price_rec_special, price_med, price_med_special), id);
CREATE INDEX catalog_products_special ON public.catalog_products USING btree (public.effective_price(price_rec, price_rec_special, price_med, price_med_special), id) WHERE public.on_special(price_rec, price_rec_special, price_med, price_med_special);
CREATE INDEX crawl_attempts_job ON public.crawl_attempts USING btree (job_id, submitted_at, item_id);
CREATE INDEX crawl_deliveries_due ON public.crawl_deliveries USING btree (visible_at, id);
CREATE INDEX crawl_deliveries_item ON public.crawl_deliveries USING btree (item_id);
CREATE UNIQUE INDEX crawl_feed_position ON public.crawl_feed USING btree ("position") WHERE ("position" IS NOT NULL);
CREATE INDEX crawl_feed_unnumbered ON public.crawl_feed USING btree (crawled_at, dispensary_id) WHERE ("position" IS NULL);
CREATE INDEX crawl_fetches_due ON public.crawl_fetches USING btree (visible_at, id);
CREATE INDEX crawl_jobs_due ON public.crawl_jobs USING btree (next_submission_at) WHERE (status = 'running'::text);
CREATE INDEX crawl_products_item ON public.crawl_products USING btree (item_id);
CREATE INDEX crawl_products_score ON public.crawl_products USING btree (job_id, score DESC, id DESC);
CREATE INDEX crawl_queue_deadline ON public.crawl_queue USING btree (job_id, deadline_at) WHERE (status = 'submitted'::text);
CREATE INDEX crawl_queue_parent ON public.crawl_queue USING btree (parent_id) WHERE (parent_id IS NOT NULL);
CREATE INDEX crawl_queue_ready ON public.crawl_queue USING btree (job_id, priority, next_attempt_at, id) WHERE (status = 'pending'::text);
CREATE INDEX crawl_queue_status ON public.crawl_queue USING btree (job_id, status, id);
CREATE UNIQUE INDEX dispensaries_platform_id ON public.dispensaries USING btree (platform, platform_dispensary_id) WHERE (platform_dispensary_id IS NOT NULL);
CREATE INDEX dispensaries_slug ON public.dispensaries USING btree (platform, slug);
CREATE INDEX dispensaries_state ON public.dispensaries USING btree (state);
CREATE UNIQUE INDEX dispensaries_unresolved_slug ON public.dispensaries USING btree (platform, slug) WHERE (platform_dispensary_id IS NULL);
CREATE UNIQUE INDEX dutchie_discovery_locations_store ON public.dutchie_discovery_locations USING btree (platform, platform_dispensary_id);
CREATE INDEX fetch_attempts_time ON ONLY public.fetch_attempts USING btree (attempted_at);
CREATE INDEX fetch_attempts_20261101_attempted_at_idx ON public.fetch_attempts_20261101 USING btree (attempted_at);
CREATE INDEX fetch_attempts_store ON ONLY public.fetch_attempts USING btree (dispensary_id, attempted_at) WHERE (dispensary_id IS NOT NULL);
CREATE INDEX fetch_attempts_20261101_dispensary_id_attempted_at_idx ON public.fetch_attempts_20261101 USING btree (dispensary_id, attempted_at) WHERE (dispensary_id IS NOT NULL);
CREATE INDEX fetch_attempts_host ON ONLY public.fetch_attempts USING btree (host, attempted_at);
CREATE INDEX fetch_attempts_20261101_host_attempted_at_idx ON public.fetch_attempts_20261101 USING btree (host, attempted_at);
CREATE INDEX fetch_attempts_proxy ON ONLY public.fetch_attempts USING btree (proxy_id, attempted_at) WHERE (proxy_id IS NOT NULL);
CREATE INDEX fetch_attempts_20261101_proxy_id_attempted_at_idx ON public.fetch_attempts_20261101 USING btree (proxy_id, attempted_at) WHERE (proxy_id IS NOT NULL);
CREATE INDEX fetch_attempts_task ON ONLY public.fetch_attempts USING btree (task_id) WHERE (task_id IS NOT NULL);
CREATE INDEX fetch_attempts_20261101_task_id_idx ON public.fetch_attempts_20261101 USING btree (task_id) WHERE (task_id IS NOT NULL);
CREATE INDEX fetch_attempts_errors ON ONLY public.fetch_attempts USING btree (verdict, attempted_at) WHERE (verdict <> 'ok'::text);
CREATE INDEX fetch_attempts_20261101_verdict_attempted_at_idx ON public.fetch_attempts_20261101 USING btree (verdict, attempted_at) WHERE (verdict <> 'ok'::text);
CREATE INDEX host_events_host ON public.host_events USING btree (host, happened_at DESC);
CREATE INDEX host_events_time ON public.host_events USING btree (happened_at);
CREATE INDEX idempotency_keys_created ON public.idempotency_keys USING btree (created_at);
CREATE INDEX image_references_failed ON public.image_references USING btree (id) WHERE (status = 'failed'::text);
CREATE INDEX image_references_queued ON public.image_references USING btree (id) WHERE (status = 'queued'::text);
CREATE INDEX image_references_url ON public.image_references USING btree (url_id, status);
CREATE INDEX image_references_waiting ON public.image_references USING btree (id) WHERE (status = 'waiting'::text);
CREATE INDEX image_urls_due ON public.image_urls USING btree (due_at, id) WHERE (due_at IS NOT NULL);
CREATE INDEX image_urls_image ON public.image_urls USING btree (sha256) WHERE (sha256 IS NOT NULL);
CREATE INDEX location_events_at ON public.location_events USING btree (at, id);
CREATE INDEX location_events_location ON public.location_events USING btree (location_id, at);
CREATE INDEX location_events_other ON public.location_events USING btree (other_id) WHERE (other_id IS NOT NULL);
CREATE INDEX location_links_location ON public.location_links USING btree (location_id);
CREATE INDEX location_refusals_dispensary ON public.location_refusals USING btree (dispensary_id) WHERE (dispensary_id IS NOT NULL);
CREATE INDEX location_refusals_licence ON public.location_refusals USING btree (licence_id) WHERE (licence_id IS NOT NULL);
CREATE INDEX locations_merged_into ON public.locations USING btree (merged_into) WHERE (merged_into IS NOT NULL);
CREATE INDEX locations_state ON public.locations USING btree (state);
CREATE INDEX log_lines_gaps ON public.log_lines USING btree (worker_id, at) WHERE (dropped > 0);
CREATE INDEX log_lines_task ON public.log_lines USING btree (task_id, at, worker_id, seq) WHERE (task_id IS NOT NULL);
CREATE INDEX log_lines_time ON public.log_lines USING btree (at);
CREATE INDEX login_failures_failed ON public.login_failures USING btree (failed_at);
CREATE INDEX match_corrections_b ON public.match_corrections USING btree (b_key) WHERE (withdrawn_at IS NULL);
CREATE UNIQUE INDEX match_corrections_pair ON public.match_corrections USING btree (a_key, b_key) WHERE (withdrawn_at IS NULL);
CREATE INDEX match_events_at ON public.match_events USING btree (at, id);
CREATE INDEX match_events_from ON public.match_events USING btree (from_id);
CREATE UNIQUE INDEX match_events_position ON public.match_events USING btree ("position") WHERE ("position" IS NOT NULL);
CREATE INDEX match_events_to ON public.match_events USING btree (to_id);
CREATE INDEX match_events_unnumbered ON public.match_events USING btree (id) WHERE ("position" IS NULL);
CREATE INDEX match_reviews_b ON public.match_reviews USING btree (b);
CREATE INDEX match_reviews_queue ON public.match_reviews USING btree (((((0.5)::double precision - abs((confidence - (0.5)::double precision))) * ln(((1 + impact))::double precision))) DESC, a, b) WHERE (skipped_at IS NULL);
CREATE INDEX match_signatures_block ON public.match_signatures USING btree (block);
CREATE INDEX match_signatures_component ON public.match_signatures USING btree (component);
CREATE INDEX match_signatures_product ON public.match_signatures USING btree (canonical_product_id);
CREATE INDEX price_index_days_day ON public.price_index_days USING btree (day);
CREATE INDEX price_watch_events_happened ON public.price_watch_events USING btree (happened_at);
CREATE INDEX price_watches_address ON public.price_watches USING btree (address_mark) WHERE (address_mark IS NOT NULL);
CREATE INDEX price_watches_brand ON public.price_watches USING btree (brand_id) WHERE ((confirmed_at IS NOT NULL) AND (subject = 'brand'::text));
CREATE INDEX price_watches_changes ON public.price_watches USING btree (id) WHERE ((subject <> 'item'::text) OR (condition = 'new_deal'::text));
CREATE INDEX price_watches_due ON public.price_watches USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX price_watches_ends ON public.price_watches USING btree (ends_at) WHERE (ends_at IS NOT NULL);
CREATE INDEX price_watches_item ON public.price_watches USING btree (item_id) WHERE ((confirmed_at IS NOT NULL) AND (subject = 'item'::text));
CREATE INDEX price_watches_search ON public.price_watches USING btree (search_id) WHERE (subject = 'search'::text);
CREATE INDEX price_watches_store ON public.price_watches USING btree (store_id) WHERE ((confirmed_at IS NOT NULL) AND (subject = 'store'::text));
CREATE INDEX price_watches_unconfirmed ON public.price_watches USING btree (created_at) WHERE (confirmed_at IS NULL);
CREATE INDEX product_history_store ON ONLY public.product_history USING btree (dispensary_id, ended_at);
CREATE INDEX product_history_2026_11_dispensary_id_ended_at_idx ON public.product_history_2026_11 USING btree (dispensary_id, ended_at);
CREATE INDEX product_history_time ON ONLY public.product_history USING btree (ended_at);
CREATE INDEX product_history_2026_11_ended_at_idx ON public.product_history_2026_11 USING btree (ended_at);
CREATE INDEX product_matches_ids ON public.product_matches USING gin (platform_ids);
CREATE INDEX product_matches_product ON public.product_matches USING btree (canonical_product_id);
CREATE INDEX product_matches_signature ON public.product_matches USING btree (signature_id);
CREATE INDEX product_matches_store ON public.product_matches USING btree (dispensary_id);
CREATE INDEX product_matches_words ON public.product_matches USING gin (name_words) WHERE (name_words IS NOT NULL);
CREATE UNIQUE INDEX proxies_address ON public.proxies USING btree (protocol, host, port, COALESCE(username, ''::text));
CREATE INDEX proxies_probe ON public.proxies USING btree (probe_at) WHERE ((disabled_at IS NULL) AND (probe_at IS NOT NULL));
CREATE INDEX quality_category_words_time ON public.quality_category_words USING btree (first_seen_at DESC) WHERE is_event;
CREATE UNIQUE INDEX quality_findings_open ON public.quality_findings USING btree (dispensary_id, measure, COALESCE(rule_id, 0)) WHERE (closed_at IS NULL);
CREATE INDEX quality_findings_store ON public.quality_findings USING btree (dispensary_id, opened_at);
CREATE INDEX quality_findings_time ON public.quality_findings USING btree (opened_at DESC, id DESC);
CREATE INDEX quality_measures_time ON public.quality_measures USING btree (crawled_at);
CREATE INDEX quality_measures_unchecked ON public.quality_measures USING btree (crawled_at) WHERE (checked_at IS NULL);
CREATE INDEX raw_crawl_payloads_content ON public.raw_crawl_payloads USING btree (dispensary_id, content_sha256);
CREATE UNIQUE INDEX raw_crawl_payloads_instant ON public.raw_crawl_payloads USING btree (dispensary_id, fetched_at);
CREATE INDEX raw_crawl_payloads_newest ON public.raw_crawl_payloads USING btree (fetched_at DESC, id DESC);
CREATE INDEX raw_crawl_payloads_not_ok ON public.raw_crawl_payloads USING btree (status, fetched_at DESC, id DESC) WHERE (status <> 'ok'::text);
CREATE INDEX raw_crawl_payloads_partial ON public.raw_crawl_payloads USING btree (id) WHERE is_partial;
CREATE INDEX raw_crawl_payloads_path ON public.raw_crawl_payloads USING btree (path);
CREATE INDEX raw_crawl_payloads_quarantined ON public.raw_crawl_payloads USING btree (id) WHERE (status = 'quarantined'::text);
CREATE INDEX raw_crawl_payloads_store ON public.raw_crawl_payloads USING btree (dispensary_id, fetched_at DESC, id DESC);
CREATE INDEX sessions_expires ON public.sessions USING btree (expires_at);
CREATE INDEX sessions_user ON public.sessions USING btree (user_id);
CREATE INDEX special_checks_store ON public.special_checks USING btree (dispensary_id);
CREATE INDEX store_crawls_time ON public.store_crawls USING btree (crawled_at) INCLUDE (price_changes);
CREATE INDEX storefront_deals_ending ON public.storefront_deals USING btree (ends) WHERE (ends IS NOT NULL);
CREATE INDEX storefront_deals_newest ON public.storefront_deals USING btree (((- began)));
CREATE INDEX storefront_deals_off ON public.storefront_deals USING btree (((- percent)));
CREATE INDEX storefront_deals_store ON public.storefront_deals USING btree (store_id);
CREATE INDEX storefront_dirty_products_product ON public.storefront_dirty_products USING btree (canonical_product_id);
CREATE INDEX storefront_dirty_stores_store ON public.storefront_dirty_stores USING btree (dispensary_id);
CREATE INDEX storefront_item_sizes_size ON public.storefront_item_sizes USING btree (size, price);
CREATE INDEX storefront_item_sizes_special ON public.storefront_item_sizes USING btree (special_price) WHERE (special_price IS NOT NULL);
CREATE INDEX storefront_item_words_index ON public.storefront_item_words USING gin (words) WITH (fastupdate=off);
CREATE INDEX storefront_items_brand ON public.storefront_items USING btree (brand_id, ((- popularity)), id) WHERE (stores > 0);
CREATE INDEX storefront_items_category_newest ON public.storefront_items USING btree (category, ((- first_seen)), id) WHERE (stores > 0);
CREATE INDEX storefront_items_category_per_gram ON public.storefront_items USING btree (category, COALESCE(per_gram, (1000000000 + per_dose), 2147483647), id) WHERE (stores > 0);
CREATE INDEX storefront_items_category_popular ON public.storefront_items USING btree (category, ((- popularity)), id) WHERE (stores > 0);
CREATE INDEX storefront_items_category_price ON public.storefront_items USING btree (category, COALESCE((price +
CASE
    WHEN (category = ANY (ARRAY['accessory'::text, 'apparel'::text])) THEN 1000000000
    ELSE 0
END), 2147483647), id) WHERE (stores > 0);
CREATE INDEX storefront_items_category_thc ON public.storefront_items USING btree (category, ((- COALESCE(thc, '-1'::integer))), id) WHERE (stores > 0);
CREATE INDEX storefront_items_gone ON public.storefront_items USING btree (changed_at) WHERE (stores = 0);
CREATE INDEX storefront_items_newest ON public.storefront_items USING btree (((- first_seen)), id) WHERE (stores > 0);
CREATE INDEX storefront_items_per_gram ON public.storefront_items USING btree (COALESCE(per_gram, (1000000000 + per_dose), 2147483647), id) WHERE (stores > 0);
CREATE INDEX storefront_items_popular ON public.storefront_items USING btree (((- popularity)), id) WHERE (stores > 0);
CREATE INDEX storefront_items_price ON public.storefront_items USING btree (COALESCE((price +
CASE
    WHEN (category = ANY (ARRAY['accessory'::text, 'apparel'::text])) THEN 1000000000
    ELSE 0
END), 2147483647), id) WHERE (stores > 0);
CREATE INDEX storefront_items_thc ON public.storefront_items USING btree (((- COALESCE(thc, '-1'::integer))), id) WHERE (stores > 0);
CREATE INDEX storefront_offers_drops ON public.storefront_offers USING btree (changed_at DESC) WHERE (previous_price IS NOT NULL);
CREATE INDEX storefront_offers_item ON public.storefront_offers USING btree (item_id, (((in_stock IS FALSE) OR (COALESCE(price, 10) < 10))), price, product_id);
CREATE INDEX storefront_offers_store ON public.storefront_offers USING btree (store_id);
CREATE INDEX storefront_stores_location ON public.storefront_stores USING btree (location_key);
CREATE UNIQUE INDEX task_active ON public.task_live USING btree (dispensary_id) WHERE (state = 'a'::"char");
CREATE INDEX task_day_workers_day ON public.task_day_workers USING btree (day);
CREATE UNIQUE INDEX task_head ON public.task_live USING btree (dispensary_id, role) WHERE ((state = ANY (ARRAY['r'::"char", 'a'::"char"])) AND (dispensary_id IS NOT NULL));
CREATE INDEX task_history_cause ON ONLY public.task_history USING btree (cause, completed_at) INCLUDE (role, platform, id, dispensary_id) WHERE (status = 'failed'::text);
CREATE INDEX task_history_20261101_cause_completed_at_role_platform_id_d_idx ON public.task_history_20261101 USING btree (cause, completed_at) INCLUDE (role, platform, id, dispensary_id) WHERE (status = 'failed'::text);
CREATE INDEX task_history_store ON ONLY public.task_history USING btree (dispensary_id, completed_at) WHERE (dispensary_id IS NOT NULL);
CREATE INDEX task_history_20261101_dispensary_id_completed_at_idx ON public.task_history_20261101 USING btree (dispensary_id, completed_at) WHERE (dispensary_id IS NOT NULL);
CREATE INDEX task_history_payload ON ONLY public.task_history USING btree (((payload ->> 'payload_id'::text))) WHERE ((payload ->> 'payload_id'::text) IS NOT NULL);
CREATE INDEX task_history_20261101_expr_idx ON public.task_history_20261101 USING btree (((payload ->> 'payload_id'::text))) WHERE ((payload ->> 'payload_id'::text) IS NOT NULL);
CREATE INDEX task_history_not_completed ON ONLY public.task_history USING btree (id) INCLUDE (role, status) WHERE (status <> 'completed'::text);
CREATE INDEX task_history_20261101_id_role_status_idx ON public.task_history_20261101 USING btree (id) INCLUDE (role, status) WHERE (status <> 'completed'::text);
CREATE INDEX task_history_role ON ONLY public.task_history USING btree (role, completed_at);
CREATE INDEX task_history_20261101_role_completed_at_idx ON public.task_history_20261101 USING btree (role, completed_at);
CREATE INDEX task_ready ON public.task_live USING btree (role, ((- (priority + aged))), created_at, id) WHERE (state = 'r'::"char");
CREATE INDEX task_scheduled ON public.task_live USING btree (scheduled_for) WHERE (state = 's'::"char");
CREATE INDEX task_schedules_due ON public.task_schedules USING btree (next_run_at) WHERE enabled;
CREATE UNIQUE INDEX task_unique_payload ON public.task_live USING btree (role, md5((platform || (payload)::text))) WHERE ((uniq = 1) AND (dispensary_id IS NULL));
CREATE UNIQUE INDEX task_unique_store ON public.task_live USING btree (dispensary_id, role) WHERE ((uniq = 1) AND (dispensary_id IS NOT NULL));
CREATE INDEX task_waiting ON public.task_live USING btree (dispensary_id, role, ((- priority)), created_at, id) WHERE ((state = ANY (ARRAY['p'::"char", 's'::"char"])) AND (dispensary_id IS NOT NULL));
CREATE INDEX task_waiting_payload ON public.task_live USING btree (role, md5((platform || (payload)::text))) WHERE ((uniq <> 0) AND (state <> 'a'::"char") AND (dispensary_id IS NULL));
CREATE INDEX users_admins ON public.users USING btree (id) WHERE ((role = 'admin'::text) AND (disabled_at IS NULL));
CREATE UNIQUE INDEX users_name ON public.users USING btree (lower(name));
CREATE INDEX worker_commands_open ON public.worker_commands USING btree (worker_id, id) WHERE (acknowledged_at IS NULL);
CREATE INDEX worker_commands_worker ON public.worker_commands USING btree (worker_id, id);
CREATE INDEX worker_registry_started ON public.worker_registry USING btree (started_at, worker_id);
ALTER INDEX public.fetch_attempts_time ATTACH PARTITION public.fetch_attempts_20261101_attempted_at_idx;
ALTER INDEX public.fetch_attempts_store ATTACH PARTITION public.fetch_attempts_20261101_dispensary_id_attempted_at_idx;
ALTER INDEX public.fetch_attempts_host ATTACH PARTITION public.fetch_attempts_20261101_host_attempted_at_idx;
ALTER INDEX public.fetch_attempts_pkey ATTACH PARTITION public.fetch_attempts_20261101_pkey;
ALTER INDEX public.fetch_attempts_proxy ATTACH PARTITION public.fetch_attempts_20261101_proxy_id_attempted_at_idx;
ALTER INDEX public.fetch_attempts_task ATTACH PARTITION public.fetch_attempts_20261101_task_id_idx;
ALTER INDEX public.fetch_attempts_errors ATTACH PARTITION public.fetch_attempts_20261101_verdict_attempted_at_idx;
ALTER INDEX public.product_detail_history_pkey ATTACH PARTITION public.product_detail_history_2026_11_pkey;
ALTER INDEX public.product_history_store ATTACH PARTITION public.product_history_2026_11_dispensary_id_ended_at_idx;
ALTER INDEX public.product_history_time ATTACH PARTITION public.product_history_2026_11_ended_at_idx;
ALTER INDEX public.product_history_pkey ATTACH PARTITION public.product_history_2026_11_pkey;
ALTER INDEX public.task_history_cause ATTACH PARTITION public.task_history_20261101_cause_completed_at_role_platform_id_d_idx;
ALTER INDEX public.task_history_store ATTACH PARTITION public.task_history_20261101_dispensary_id_completed_at_idx;
ALTER INDEX public.task_history_payload ATTACH PARTITION public.task_history_20261101_expr_idx;
ALTER INDEX public.task_history_not_completed ATTACH PARTITION public.task_history_20261101_id_role_status_idx;
ALTER INDEX public.task_history_pkey ATTACH PARTITION public.task_history_20261101_pkey;
ALTER INDEX public.task_history_role ATTACH PARTITION public.task_history_20261101_role_completed_at_idx;
CREATE TRIGGER brands_changed AFTER UPDATE ON public.brands REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.note_brands();
CREATE TRIGGER canonical_products_changed AFTER UPDATE ON public.canonical_products REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.note_canonical_products();
CREATE TRIGGER catalog_products_names AFTER INSERT ON public.catalog_products REFERENCING NEW TABLE AS made FOR EACH STATEMENT EXECUTE FUNCTION public.note_names();
CREATE TRIGGER catalog_products_removed AFTER DELETE ON public.catalog_products REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION public.remove_image_references();
CREATE TRIGGER catalog_products_renamed AFTER UPDATE OF name ON public.catalog_products FOR EACH ROW WHEN ((old.name IS DISTINCT FROM new.name)) EXECUTE FUNCTION public.note_name();
CREATE TRIGGER catalog_products_revised_by_delete AFTER DELETE ON public.catalog_products REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION public.revise_by_products();
CREATE TRIGGER catalog_products_revised_by_insert AFTER INSERT ON public.catalog_products REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION public.revise_by_products();
CREATE TRIGGER catalog_products_revised_by_update AFTER UPDATE OF id, dispensary_id, provider, provider_product_id, content_hash, consecutive_misses, first_seen_at, last_seen_at, state_from, state_seen_to, present, changed_at, name_raw, name, brand_name_raw, brand_name, category, subcategory, strain_type, category_canon, subcategory_canon, strain_canon, status_raw, price_rec, price_rec_special, price_med, price_med_special, stock_status, is_in_stock, quantity, quantity_capped, thc_lo, thc_hi, thc_unit, cbd_lo, cbd_hi, cbd_unit, variants, cannabinoids, terpenes, batch, quantity_sold, details_from, specials, image_url, images, description, platform_created_at, platform_updated_at, extra, brand_description_hash ON public.catalog_products FOR EACH ROW WHEN ((((new.state_from <= old.state_from) OR (new.id <> old.id) OR (new.dispensary_id <> old.dispensary_id)) AND (old.* IS DISTINCT FROM new.*))) EXECUTE FUNCTION public.revise_by_product();
CREATE TRIGGER crawl_queue_insert BEFORE INSERT ON public.crawl_queue FOR EACH ROW WHEN ((new.next_attempt_at IS NULL)) EXECUTE FUNCTION public.crawl_queue_insert();
CREATE TRIGGER crawl_queue_refused BEFORE UPDATE OF status, next_attempt_at ON public.crawl_queue FOR EACH ROW WHEN ((((new.status = 'submitted'::text) <> (new.deadline_at IS NOT NULL)) OR (new.next_attempt_at IS NULL) OR ((new.status = ANY (ARRAY['completed'::text, 'failed'::text])) <> (new.completed_at IS NOT NULL)))) EXECUTE FUNCTION public.refuse_crawl_update();
CREATE TRIGGER dispensaries_complete BEFORE INSERT OR UPDATE OF last_crawled_at, last_crawl_at ON public.dispensaries FOR EACH ROW EXECUTE FUNCTION public.complete_store();
CREATE TRIGGER dispensaries_removed AFTER DELETE ON public.dispensaries FOR EACH ROW EXECUTE FUNCTION public.remove_catalog_of_store();
CREATE TRIGGER product_history_revised_by_delete AFTER DELETE ON public.product_history REFERENCING OLD TABLE AS removed FOR EACH STATEMENT WHEN ((current_setting('menuwatch.packing'::text, true) IS DISTINCT FROM 'on'::text)) EXECUTE FUNCTION public.revise_by_history();
CREATE TRIGGER product_history_revised_by_insert AFTER INSERT ON public.product_history REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION public.revise_by_history();
CREATE TRIGGER product_history_revised_by_update AFTER UPDATE ON public.product_history REFERENCING OLD TABLE AS removed NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION public.revise_by_history();
CREATE TRIGGER product_matches_made AFTER INSERT ON public.product_matches REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.note_matches();
CREATE TRIGGER product_matches_moved AFTER UPDATE ON public.product_matches REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.note_matches();
CREATE TRIGGER store_crawls_fed AFTER INSERT ON public.store_crawls FOR EACH ROW EXECUTE FUNCTION public.feed_crawl();
CREATE TRIGGER store_product_snapshots_refused BEFORE INSERT OR DELETE OR UPDATE ON public.store_product_snapshots FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_catalog_write();
CREATE TRIGGER store_product_snapshots_refused_row INSTEAD OF INSERT OR DELETE OR UPDATE ON public.store_product_snapshots FOR EACH ROW EXECUTE FUNCTION public.refuse_catalog_write();
CREATE TRIGGER store_products_refused BEFORE INSERT OR DELETE OR UPDATE ON public.store_products FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_catalog_write();
CREATE TRIGGER store_products_refused_row INSTEAD OF INSERT OR DELETE OR UPDATE ON public.store_products FOR EACH ROW EXECUTE FUNCTION public.refuse_catalog_write();
CREATE TRIGGER storefront_offers_added AFTER INSERT ON public.storefront_offers REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.note_former_offers();
CREATE TRIGGER storefront_offers_changed AFTER UPDATE ON public.storefront_offers REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.note_former_offers();
CREATE TRIGGER storefront_offers_removed AFTER DELETE ON public.storefront_offers REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION public.note_former_offers();
CREATE TRIGGER task_schedules_former BEFORE INSERT OR UPDATE OF role, next_run_at ON public.task_schedules FOR EACH ROW EXECUTE FUNCTION public.task_schedules_former();
CREATE TRIGGER worker_commands_tell AFTER INSERT ON public.worker_commands FOR EACH ROW EXECUTE FUNCTION public.worker_commands_tell();
CREATE TRIGGER worker_tasks_delete INSTEAD OF DELETE ON public.worker_tasks FOR EACH ROW EXECUTE FUNCTION public.worker_tasks_delete();
CREATE TRIGGER worker_tasks_insert INSTEAD OF INSERT ON public.worker_tasks FOR EACH ROW EXECUTE FUNCTION public.worker_tasks_insert();
CREATE TRIGGER worker_tasks_update INSTEAD OF UPDATE ON public.worker_tasks FOR EACH ROW EXECUTE FUNCTION public.worker_tasks_update();
ALTER TABLE ONLY public.alert_channels
    ADD CONSTRAINT alert_channels_rule_id_fkey FOREIGN KEY (rule_id) REFERENCES public.alert_rules(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.alert_deliveries
    ADD CONSTRAINT alert_deliveries_channel_id_fkey FOREIGN KEY (channel_id) REFERENCES public.alert_channels(id) ON DELETE SET NULL;
ALTER TABLE ONLY public.alert_deliveries
    ADD CONSTRAINT alert_deliveries_rule_id_fkey FOREIGN KEY (rule_id) REFERENCES public.alert_rules(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.alert_events
    ADD CONSTRAINT alert_events_rule_id_fkey FOREIGN KEY (rule_id) REFERENCES public.alert_rules(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.alert_matches
    ADD CONSTRAINT alert_matches_dispensary_id_fkey FOREIGN KEY (dispensary_id) REFERENCES public.dispensaries(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.alert_matches
    ADD CONSTRAINT alert_matches_rule_id_fkey FOREIGN KEY (rule_id) REFERENCES public.alert_rules(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.alert_rules
    ADD CONSTRAINT alert_rules_canonical_product_id_fkey FOREIGN KEY (canonical_product_id) REFERENCES public.canonical_products(id);
ALTER TABLE ONLY public.alert_rules
    ADD CONSTRAINT alert_rules_dispensary_id_fkey FOREIGN KEY (dispensary_id) REFERENCES public.dispensaries(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.analytics_brand_distribution_stats
    ADD CONSTRAINT analytics_brand_distribution_stats_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.analytics_runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.analytics_brand_stats
    ADD CONSTRAINT analytics_brand_stats_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.analytics_runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.analytics_category_stats
    ADD CONSTRAINT analytics_category_stats_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.analytics_runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.analytics_cheapest_stats
    ADD CONSTRAINT analytics_cheapest_stats_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.analytics_runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.analytics_daily_stats
    ADD CONSTRAINT analytics_daily_stats_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.analytics_runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.analytics_discount_stats
    ADD CONSTRAINT analytics_discount_stats_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.analytics_runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.analytics_dispersion_stats
    ADD CONSTRAINT analytics_dispersion_stats_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.analytics_runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.analytics_distribution_stats
    ADD CONSTRAINT analytics_distribution_stats_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.analytics_runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.analytics_out_product_stats
    ADD CONSTRAINT analytics_out_product_stats_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.analytics_runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.analytics_price_stats
    ADD CONSTRAINT analytics_price_stats_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.analytics_runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.analytics_shrinkflation_stats
    ADD CONSTRAINT analytics_shrinkflation_stats_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.analytics_runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.analytics_special_group_stats
    ADD CONSTRAINT analytics_special_group_stats_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.analytics_runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.analytics_special_stats
    ADD CONSTRAINT analytics_special_stats_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.analytics_runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.analytics_stock_stats
    ADD CONSTRAINT analytics_stock_stats_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.analytics_runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.analytics_store_stats
    ADD CONSTRAINT analytics_store_stats_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.analytics_runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.api_tokens
    ADD CONSTRAINT api_tokens_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.brand_aliases
    ADD CONSTRAINT brand_aliases_brand_id_fkey FOREIGN KEY (brand_id) REFERENCES public.brands(id);
ALTER TABLE ONLY public.brand_aliases
    ADD CONSTRAINT brand_aliases_moved_from_fkey FOREIGN KEY (moved_from) REFERENCES public.brands(id);
ALTER TABLE ONLY public.brands
    ADD CONSTRAINT brands_merged_into_fkey FOREIGN KEY (merged_into) REFERENCES public.brands(id);
ALTER TABLE ONLY public.canonical_products
    ADD CONSTRAINT canonical_products_brand_id_fkey FOREIGN KEY (brand_id) REFERENCES public.brands(id);
ALTER TABLE ONLY public.canonical_products
    ADD CONSTRAINT canonical_products_merged_into_fkey FOREIGN KEY (merged_into) REFERENCES public.canonical_products(id);
ALTER TABLE ONLY public.canonical_sizes
    ADD CONSTRAINT canonical_sizes_canonical_product_id_fkey FOREIGN KEY (canonical_product_id) REFERENCES public.canonical_products(id);
ALTER TABLE ONLY public.crawl_attempts
    ADD CONSTRAINT crawl_attempts_item_id_fkey FOREIGN KEY (item_id) REFERENCES public.crawl_queue(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.crawl_attempts
    ADD CONSTRAINT crawl_attempts_job_id_fkey FOREIGN KEY (job_id) REFERENCES public.crawl_jobs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.crawl_deliveries
    ADD CONSTRAINT crawl_deliveries_item_id_fkey FOREIGN KEY (item_id) REFERENCES public.crawl_queue(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.crawl_feed
    ADD CONSTRAINT crawl_feed_dispensary_id_crawled_at_fkey FOREIGN KEY (dispensary_id, crawled_at) REFERENCES public.store_crawls(dispensary_id, crawled_at) ON DELETE CASCADE;
ALTER TABLE ONLY public.crawl_fetches
    ADD CONSTRAINT crawl_fetches_item_id_fkey FOREIGN KEY (item_id) REFERENCES public.crawl_queue(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.crawl_products
    ADD CONSTRAINT crawl_products_item_id_fkey FOREIGN KEY (item_id) REFERENCES public.crawl_queue(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.crawl_products
    ADD CONSTRAINT crawl_products_job_id_fkey FOREIGN KEY (job_id) REFERENCES public.crawl_jobs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.crawl_queue
    ADD CONSTRAINT crawl_queue_job_id_fkey FOREIGN KEY (job_id) REFERENCES public.crawl_jobs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.crawl_queue
    ADD CONSTRAINT crawl_queue_parent_id_fkey FOREIGN KEY (parent_id) REFERENCES public.crawl_queue(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.crawl_variants
    ADD CONSTRAINT crawl_variants_product_id_fkey FOREIGN KEY (product_id) REFERENCES public.crawl_products(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.dutchie_discovery_locations
    ADD CONSTRAINT dutchie_discovery_locations_dispensary_id_fkey FOREIGN KEY (dispensary_id) REFERENCES public.dispensaries(id) ON DELETE SET NULL;
ALTER TABLE ONLY public.identity_leases
    ADD CONSTRAINT identity_leases_host_fkey FOREIGN KEY (host) REFERENCES public.hosts(host) ON DELETE CASCADE;
ALTER TABLE ONLY public.identity_leases
    ADD CONSTRAINT identity_leases_proxy_id_fkey FOREIGN KEY (proxy_id) REFERENCES public.proxies(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.image_references
    ADD CONSTRAINT image_references_url_id_fkey FOREIGN KEY (url_id) REFERENCES public.image_urls(id);
ALTER TABLE ONLY public.image_urls
    ADD CONSTRAINT image_urls_sha256_fkey FOREIGN KEY (sha256) REFERENCES public.images(sha256);
ALTER TABLE ONLY public.location_events
    ADD CONSTRAINT location_events_location_id_fkey FOREIGN KEY (location_id) REFERENCES public.locations(id);
ALTER TABLE ONLY public.location_events
    ADD CONSTRAINT location_events_other_id_fkey FOREIGN KEY (other_id) REFERENCES public.locations(id);
ALTER TABLE ONLY public.location_links
    ADD CONSTRAINT location_links_dispensary_id_fkey FOREIGN KEY (dispensary_id) REFERENCES public.dispensaries(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.location_links
    ADD CONSTRAINT location_links_licence_id_fkey FOREIGN KEY (licence_id) REFERENCES public.licences(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.location_links
    ADD CONSTRAINT location_links_location_id_fkey FOREIGN KEY (location_id) REFERENCES public.locations(id);
ALTER TABLE ONLY public.location_refusals
    ADD CONSTRAINT location_refusals_dispensary_id_fkey FOREIGN KEY (dispensary_id) REFERENCES public.dispensaries(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.location_refusals
    ADD CONSTRAINT location_refusals_licence_id_fkey FOREIGN KEY (licence_id) REFERENCES public.licences(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.location_refusals
    ADD CONSTRAINT location_refusals_location_id_fkey FOREIGN KEY (location_id) REFERENCES public.locations(id);
ALTER TABLE ONLY public.locations
    ADD CONSTRAINT locations_merged_into_fkey FOREIGN KEY (merged_into) REFERENCES public.locations(id);
ALTER TABLE ONLY public.match_events
    ADD CONSTRAINT match_events_from_id_fkey FOREIGN KEY (from_id) REFERENCES public.canonical_products(id);
ALTER TABLE ONLY public.match_events
    ADD CONSTRAINT match_events_to_id_fkey FOREIGN KEY (to_id) REFERENCES public.canonical_products(id);
ALTER TABLE ONLY public.match_signatures
    ADD CONSTRAINT match_signatures_canonical_product_id_fkey FOREIGN KEY (canonical_product_id) REFERENCES public.canonical_products(id);
ALTER TABLE ONLY public.price_index_stores
    ADD CONSTRAINT price_index_stores_dispensary_id_fkey FOREIGN KEY (dispensary_id) REFERENCES public.dispensaries(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.price_watch_events
    ADD CONSTRAINT price_watch_events_watch_id_fkey FOREIGN KEY (watch_id) REFERENCES public.price_watches(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.price_watches
    ADD CONSTRAINT price_watches_item_id_fkey FOREIGN KEY (item_id) REFERENCES public.storefront_items(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.price_watches
    ADD CONSTRAINT price_watches_search_id_fkey FOREIGN KEY (search_id) REFERENCES public.watched_searches(id);
ALTER TABLE ONLY public.product_matches
    ADD CONSTRAINT product_matches_canonical_product_id_fkey FOREIGN KEY (canonical_product_id) REFERENCES public.canonical_products(id);
ALTER TABLE ONLY public.product_matches
    ADD CONSTRAINT product_matches_signature_id_fkey FOREIGN KEY (signature_id) REFERENCES public.match_signatures(id);
ALTER TABLE ONLY public.proxy_scores
    ADD CONSTRAINT proxy_scores_proxy_id_fkey FOREIGN KEY (proxy_id) REFERENCES public.proxies(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.quality_audits
    ADD CONSTRAINT quality_audits_dispensary_id_fkey FOREIGN KEY (dispensary_id) REFERENCES public.dispensaries(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.quality_category_words
    ADD CONSTRAINT quality_category_words_dispensary_id_fkey FOREIGN KEY (dispensary_id) REFERENCES public.dispensaries(id) ON DELETE SET NULL;
ALTER TABLE ONLY public.quality_findings
    ADD CONSTRAINT quality_findings_dispensary_id_fkey FOREIGN KEY (dispensary_id) REFERENCES public.dispensaries(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.quality_findings
    ADD CONSTRAINT quality_findings_rule_id_fkey FOREIGN KEY (rule_id) REFERENCES public.quality_rules(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.quality_measures
    ADD CONSTRAINT quality_measures_dispensary_id_fkey FOREIGN KEY (dispensary_id) REFERENCES public.dispensaries(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.quality_points_of_sale
    ADD CONSTRAINT quality_points_of_sale_dispensary_id_fkey FOREIGN KEY (dispensary_id) REFERENCES public.dispensaries(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.quality_rules
    ADD CONSTRAINT quality_rules_dispensary_id_fkey FOREIGN KEY (dispensary_id) REFERENCES public.dispensaries(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.quality_stores
    ADD CONSTRAINT quality_stores_dispensary_id_fkey FOREIGN KEY (dispensary_id) REFERENCES public.dispensaries(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.raw_crawl_payloads
    ADD CONSTRAINT raw_crawl_payloads_dispensary_id_fkey FOREIGN KEY (dispensary_id) REFERENCES public.dispensaries(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.resync_plan
    ADD CONSTRAINT resync_plan_dispensary_id_fkey FOREIGN KEY (dispensary_id) REFERENCES public.dispensaries(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.schedule_runs
    ADD CONSTRAINT schedule_runs_schedule_id_fkey FOREIGN KEY (schedule_id) REFERENCES public.task_schedules(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.special_check_stores
    ADD CONSTRAINT special_check_stores_dispensary_id_fkey FOREIGN KEY (dispensary_id) REFERENCES public.dispensaries(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.store_crawls
    ADD CONSTRAINT store_crawls_dispensary_id_fkey FOREIGN KEY (dispensary_id) REFERENCES public.dispensaries(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.store_crawls
    ADD CONSTRAINT store_crawls_payload_id_fkey FOREIGN KEY (payload_id) REFERENCES public.raw_crawl_payloads(id) ON DELETE SET NULL;
ALTER TABLE ONLY public.storefront_item_sizes
    ADD CONSTRAINT storefront_item_sizes_item_id_fkey FOREIGN KEY (item_id) REFERENCES public.storefront_items(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.storefront_item_words
    ADD CONSTRAINT storefront_item_words_item_id_fkey FOREIGN KEY (item_id) REFERENCES public.storefront_items(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.task_day_counts
    ADD CONSTRAINT task_day_counts_day_fkey FOREIGN KEY (day) REFERENCES public.task_days(day) ON DELETE CASCADE;
ALTER TABLE ONLY public.task_day_workers
    ADD CONSTRAINT task_day_workers_day_fkey FOREIGN KEY (day) REFERENCES public.task_days(day) ON DELETE CASCADE;
ALTER TABLE ONLY public.visitor_marks
    ADD CONSTRAINT visitor_marks_day_fkey FOREIGN KEY (day) REFERENCES public.visitor_salts(day) ON DELETE CASCADE;
ALTER TABLE ONLY public.worker_commands
    ADD CONSTRAINT worker_commands_worker_id_fkey FOREIGN KEY (worker_id) REFERENCES public.worker_registry(worker_id) ON UPDATE CASCADE ON DELETE CASCADE;
