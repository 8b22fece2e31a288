"""Screens of data quality: audited values and the point of sale of a store."""

from __future__ import annotations

import httpx
import psycopg

from tests.dashboard.test_catalogue import words

STORE = """
INSERT INTO dispensaries (platform_dispensary_id, slug, name, name_raw, state, last_crawled_at, first_crawled_at)
VALUES ('a', 'a', 'Green Leaf', 'A', 'NM', now(), now()) RETURNING id
"""
PRODUCT = """
INSERT INTO catalog_products (dispensary_id, provider, provider_product_id, content_hash, first_seen_at, state_from, changed_at,
       name_raw, name, category_canon, stock_status, is_in_stock, variants, extra)
VALUES (%s, 'dutchie', '1', '', now(), now(), now(), 'Blue', 'Blue', 'flower', 'in_stock', true, '[]', '{}') RETURNING id
"""
PAYLOAD = """
INSERT INTO raw_crawl_payloads (dispensary_id, platform, path, sha256, content_sha256, bytes, raw_bytes, status, fetched_at,
       product_count)
VALUES (%s, 'dutchie', 'p', '', '', 1, 1, 'ok', now(), 1) RETURNING id
"""
AUDIT = """
INSERT INTO quality_audits (dispensary_id, product_id, payload_id, field, value, found, result, detail, page, item_offset, item_length)
VALUES (%(store)s, %(product)s, %(payload)s, 'price_rec', '25.00', '30.00', 'different', NULL, 2, 1234, 560),
       (%(store)s, %(product)s, %(payload)s, 'name', 'Blue', NULL, 'unreadable', 'the file is missing', NULL, NULL, NULL)
"""


async def test_audited_values_with_their_bytes(viewer: httpx.AsyncClient, database_url: str) -> None:
    assert "Nothing audited yet" in words(await viewer.get("/admin/quality/audits"))
    with psycopg.connect(database_url) as conn:
        ids = {"store": _id(conn, STORE)}
        ids |= {"product": _id(conn, PRODUCT, ids["store"]), "payload": _id(conn, PAYLOAD, ids["store"])}
        conn.execute(AUDIT, ids)
    shown = words(await viewer.get("/admin/quality/audits"))
    assert "price_rec 25.00 30.00 different" in shown
    assert "page 2, 560 bytes from byte 1,234" in shown
    assert "name Blue the file is missing payload unreadable" in shown


async def test_the_point_of_sale_of_a_store(
    admin: httpx.AsyncClient, viewer: httpx.AsyncClient, database_url: str
) -> None:
    with psycopg.connect(database_url) as conn:
        path = f"/admin/quality/stores/{_id(conn, STORE)}"
    assert "Software of the shop: not known." in words(await viewer.get(path))
    assert "point-of-sale" not in (await viewer.get(path)).text
    origin = {"Origin": "http://menuwatch"}
    refused = await viewer.post(f"{path}/point-of-sale", data={"name": "Dutchie POS"}, headers=origin)
    assert refused.status_code == 403
    saved = await admin.post(f"{path}/point-of-sale", data={"name": "  Dutchie   POS "}, headers=origin)
    assert (saved.status_code, saved.headers["location"]) == (303, path)
    assert "Software of the shop: Dutchie POS ." in words(await viewer.get(path))
    assert 'value="Dutchie POS"' in (await admin.get(path)).text
    wrong = await admin.post(f"{path}/point-of-sale", data={"name": "x" * 150}, headers=origin)
    assert wrong.status_code == 422
    assert "a point of sale needs a name of 1 to" in words(wrong)
    await admin.post(f"{path}/point-of-sale", data={"name": ""}, headers=origin)
    assert "Software of the shop: not known." in words(await viewer.get(path))


def _id(conn: psycopg.Connection, statement: str, *values: int) -> int:
    row = conn.execute(statement.encode(), values or None).fetchone()
    assert row is not None
    return int(row[0])
