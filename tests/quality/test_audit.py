"""The audit sample: values of a recorded menu are traced to their bytes, and changed values and lost files are found out."""

from __future__ import annotations

import json
from pathlib import Path

from menuwatch.pipeline.context import HandlerContext
from menuwatch.pipeline.replay import replay
from menuwatch.quality.audit import audit_sample, list_audits
from tests.recorded.conftest import parts
from tests.recorded.replayed import recording

__all__ = ["parts"]


async def test_values_are_traced_to_the_bytes_of_their_payload(parts: HandlerContext, recorded: Path) -> None:
    path = recording(recorded, "dutchie/pa_filteredProducts_page_2025-11-09.json")
    await replay(parts, None, [path], store="somewhere", state="PA")
    async with parts.pool.connection() as conn:
        found = await audit_sample(conn, parts.archive, parts.platforms, count=200)
        assert len(found) == 200
        assert {one.result for one in found} == {"equal"}
        assert len({one.field for one in found}) >= 8
        names = {
            one["id"]: one["Name"] for one in json.loads(path.read_bytes())["data"]["filteredProducts"]["products"]
        }
        cursor = await conn.execute("SELECT path, sha256, raw_bytes FROM raw_crawl_payloads")
        ((place, sha256, size),) = await cursor.fetchall()
        pages = parts.archive.read(place, sha256, size).pages
        for one in found:
            assert one.page is not None
            assert one.offset is not None
            assert one.length is not None
            item = json.loads(pages[one.page - 1][one.offset : one.offset + one.length])
            assert " ".join(names[item["id"]].split()) == one.name
        # A value that somebody changed in the database, and one that the payload has not.
        await conn.execute(
            "UPDATE catalog_products SET name = name || ' (changed)', price_rec = 1, price_med = 1, stock_status = 'oos',"
            " is_in_stock = false, quantity = 3"
        )
        changed = await audit_sample(conn, parts.archive, parts.platforms, count=200)
        wrong = {one.field for one in changed if one.result == "different"}
        assert "name" in wrong
        assert wrong <= {"name", "price_rec", "price_med", "stock_status", "quantity"}
        named = next(one for one in changed if one.field == "name")
        assert named.value == f"{named.found} (changed)"
        await conn.execute("UPDATE catalog_products SET provider_product_id = provider_product_id || 'x'")
        lost = await audit_sample(conn, parts.archive, parts.platforms, count=5)
        assert {(one.result, one.page) for one in lost} == {("not_found", None)}
        await conn.execute("UPDATE raw_crawl_payloads SET sha256 = repeat('0', 64)")
        damaged = await audit_sample(conn, parts.archive, parts.platforms, count=2)
        assert {one.result for one in damaged} == {"unreadable"}
        assert all(one.detail for one in damaged)
        assert len(await list_audits(conn, limit=500)) == 407
        newest = await list_audits(conn, limit=2)
        assert [one.id for one in await list_audits(conn, before=newest[0].id, limit=1)] == [newest[1].id]


async def test_without_archived_menus_there_is_nothing_to_audit(parts: HandlerContext) -> None:
    async with parts.pool.connection() as conn:
        assert await audit_sample(conn, parts.archive, parts.platforms) == []
