"""A store with weeks of history, which a market that was crawled three times has not: prices that moved, a special, times out of
stock, days when nobody looked, an answer in quarantine and one that failed. Its words are what a test says, so also hostile ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

Sql = Callable[..., list[tuple[Any, ...]]]

_STORE = """
INSERT INTO dispensaries (platform, platform_dispensary_id, slug, name, name_raw, city, state, crawl_interval_hours, first_crawled_at,
                          last_crawled_at, last_attempt_at, product_count, timezone)
VALUES ('dutchie', md5(%(slug)s), %(slug)s, %(store)s, %(store)s, %(city)s, 'AZ', 6, %(now)s - interval '20 days',
  %(now)s - interval '2 hours',
        %(now)s - interval '2 hours', 1, 'America/Phoenix') RETURNING id
"""
_CRAWLS = """
WITH times AS (
  -- Every six hours of twenty days, the last one two hours ago; nobody looked from the ninth to the twelfth day.
  SELECT n, %(now)s - interval '2 hours' - (80 - n) * interval '6 hours' AS at FROM generate_series(0, 80) n
   WHERE n NOT BETWEEN 36 AND 47
), kept AS (
  INSERT INTO raw_crawl_payloads (dispensary_id, platform, status, reason, product_count, page_count, fetched_at, path, bytes,
                                  raw_bytes, sha256, content_sha256, applied_at)
  SELECT %(id)s, 'dutchie', CASE WHEN n = 60 THEN 'quarantined' ELSE 'ok' END,
         CASE WHEN n = 60 THEN 'it has 9 products, the store usually has 40: ' || %(special)s END,
         CASE WHEN n = 60 THEN 9 ELSE 40 + n %% 5 END, 1, at, 'payloads/chronicle/' || %(id)s || '/' || n || '.json.gz',
           20000 + 40 * n, 180000,
         md5(n::text) || md5('x'), md5((n / 2)::text) || md5('y'), CASE WHEN n <> 60 THEN at END
    FROM times RETURNING id, fetched_at, status)
INSERT INTO store_crawls (dispensary_id, crawled_at, payload_id, products, new_products, changed, unchanged, returned, missing,
                          out_of_stock, price_changes, stock_changes)
SELECT %(id)s, fetched_at, id, 40, 0, 1, 39, 0, 0, 0, 1, 0 FROM kept WHERE status = 'ok'
"""
_PRODUCT = """
INSERT INTO catalog_products (dispensary_id, provider, provider_product_id, content_hash, first_seen_at, state_from, changed_at,
  name_raw, name,
                              brand_name_raw, brand_name, category, category_canon, subcategory, strain_type, price_rec,
                                stock_status, is_in_stock,
                              quantity, thc_lo, thc_hi, thc_unit, variants, specials, cannabinoids, terpenes, batch,
                              quantity_sold, details_from, description, extra)
VALUES (%(id)s, 'dutchie', 'chronicle', '', %(now)s - interval '20 days', %(now)s - interval '4 days 2 hours',
  %(now)s - interval '4 days 2 hours',
        %(product)s, %(product)s, %(brand)s, %(brand)s, %(category)s, 'flower', %(category)s, %(category)s, 42, 'in_stock', true,
          7, 24.5, 26, 'PERCENTAGE',
        %(variants)s, %(specials)s, %(cannabinoids)s, %(terpenes)s, %(batch)s, 1280,
        %(now)s - interval '4 days 2 hours', %(product)s, '{}') RETURNING id
"""
_STATE = """
INSERT INTO product_history (product_id, dispensary_id, seen_from, seen_to, ended_at, present, quantity_capped, quantity, stock_status,
  price_rec,
                         price_rec_special, thc_lo, thc_hi, thc_unit, prices, stock)
SELECT %(product)s, %(id)s, %(now)s - interval '2 hours' - %(from)s * interval '6 hours',
  %(now)s - interval '2 hours' - %(to)s * interval '6 hours',
       %(now)s - interval '2 hours' - (%(to)s - 1) * interval '6 hours', true, false, %(left)s, %(stock)s, %(price)s, %(special)s,
         22, 23.5, 'PERCENTAGE',
       %(prices)s, %(stocks)s
"""
_DETAILS = """
INSERT INTO product_detail_history (product_id, seen_from, ended_at, quantity_sold, details_kept, batch)
VALUES (%(product)s, %(now)s - interval '20 days', %(now)s - interval '4 days 2 hours', 1204, false, %(batch)s)
"""
# (crawls ago that it was first seen so, and last; price, special, how many were left)
_STATES = ((80, 60, 45, None, 12), (59, 45, 45, 36, 9), (32, 25, 45, None, 0), (24, 17, 40, 32, 20))
_FAILED = """
INSERT INTO task_history (id, created_at, claimed_at, started_at, completed_at, dispensary_id, priority, attempt, retry_count,
                          max_retries, postpone_count, role, platform, status, worker_id, error_message, payload)
VALUES (nextval('task_ids'), %(now)s - interval '3 days', %(now)s - interval '3 days', %(now)s - interval '3 days',
  %(now)s - interval '1 day',
        %(id)s, 0, 4, 3, 3, 0, 'payload_fetch', 'dutchie', 'failed', NULL, %(special)s, '{}')
"""


@dataclass(frozen=True, slots=True)
class Words:
    """What the store and its product are called."""

    slug: str = "chronicle"
    store: str = "Chronicle of the Desert"
    city: str = "Tucson"
    product: str = "Long Memory | Flower | 1/8oz"
    brand: str = "Annals & Sons"
    category: str = "Flower"
    option: str = "1/8oz"
    special: str = "20% off on Mondays"


@dataclass(frozen=True, slots=True)
class Planted:
    """The numbers of what was planted. `payload` is the newest one that was applied."""

    store: int
    product: int
    payload: int
    quarantined: int


def plant(sql: Sql, words: Words | None = None) -> Planted:
    """Writes it; `clear` takes it back."""
    said = words or Words()
    # One instant for all of it: a state begins with the very crawl that saw it.
    given = {name: getattr(said, name) for name in Words.__slots__} | {"now": datetime.now(UTC)}
    ((store,),) = sql(_STORE, given)
    for days in (0, 1, 12, 20):
        sql("SELECT ensure_product_history_partition(now() - %s * interval '1 day')", [days])
        sql("SELECT ensure_task_history_partition(now() - %s * interval '1 day')", [days])
    sql(_CRAWLS, {"id": store, **given})
    option = {
        "option": said.option,
        "price_rec": 42,
        "price_per_g": 12,
        "weight_g": 3.5,
        "stock_status": "in_stock",
        "quantity": 7,
    }
    values = {
        "id": store,
        **given,
        "variants": _json([option]),
        "specials": _json([{"kind": "percent", "name": said.special, "value": 20}]),
        "cannabinoids": _json([{"name": said.special, "unit": "PERCENTAGE", "value": 1.5}]),
        "terpenes": _json([{"name": name, "unit": "%", "value": 0.4} for name in ("Myrcene", "Limonene", said.special)]),
        "batch": _json({
            "batch_id": said.option,
            "package_tag": "1A40D03000001CD000012345",
            "tested_on": "2026-01-05",
            "packaged_on": "2026-01-08",
            "expires_on": "2027-01-08",
            "certificate_url": f"javascript:{said.special}" if words else "https://lab.test/certificate.pdf",
        }),
    }  # fmt: skip
    ((product,),) = sql(_PRODUCT, values)
    earlier = _json({"batch_id": f"{said.option} before", "tested_on": "2025-11-20"})
    sql(_DETAILS, {"product": product, "now": given["now"], "batch": earlier})
    for since, until, price, special, left in _STATES:
        stock = "in_stock" if left else "oos"
        sql(
            _STATE,
            {
                "now": given["now"], "product": product, "id": store, "from": since, "to": until, "price": price,
                "special": special, "left": left,
                "stock": stock, "prices": _json([[said.option, price, special, None, None]]),
                "stocks": _json([[said.option, stock, left, False]]),
            },
        )  # fmt: skip
    sql(_FAILED, {"id": store, **given})
    newest = "SELECT max(id) FROM raw_crawl_payloads WHERE dispensary_id = %s AND status = %s"
    ((payload,),) = sql(newest, [store, "ok"])
    ((quarantined,),) = sql(newest, [store, "quarantined"])
    return Planted(store, product, payload, quarantined)


def clear(sql: Sql, planted: Planted) -> None:
    """Takes it out again, with all that hangs on it."""
    sql("DELETE FROM task_history WHERE dispensary_id = %s", [planted.store])
    sql("DELETE FROM task_live WHERE dispensary_id = %s", [planted.store])
    sql("DELETE FROM store_crawls WHERE dispensary_id = %s", [planted.store])
    sql("DELETE FROM raw_crawl_payloads WHERE dispensary_id = %s", [planted.store])
    sql("DELETE FROM dispensaries WHERE id = %s", [planted.store])


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
