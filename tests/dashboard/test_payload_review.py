"""The quarantine beside the last good menu, and the differences of two payloads."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import httpx
import pytest

from menuwatch.archive.files import FileArchive
from menuwatch.db.pool import Pool
from menuwatch.platforms.dutchie.adapter import Dutchie
from tests.api.shop import START, Shop, item, menu

SAME = {"Sec-Fetch-Site": "same-origin"}
GOOD = [item(f"p{n}", f"Product {n}", options=[("1g", 10 + n, 5)]) for n in range(6)]


@pytest.fixture
async def shop(admin: httpx.AsyncClient, pool: Pool, tmp_path: Path) -> Shop:
    async with pool.connection() as conn:
        await conn.execute("SELECT ensure_product_history_partition(%s)", [START])
    archive = FileArchive(tmp_path / "storage")
    return Shop(pool=pool, archive=archive, platforms={"dutchie": Dutchie()}, http=admin, description={})


async def held(shop: Shop, slug: str, hours: int) -> tuple[int, int]:
    """A store with a good menu of six products and a quarantined one of four: (payload, store)."""
    store = await shop.store(slug)
    await shop.crawl(store, hours, GOOD)
    short = menu(GOOD[:4])
    return await shop.archived(store, hours + 1, short, count=4, status="quarantined", reason="too short"), store


async def status(shop: Shop, payload: int) -> tuple[str, list[str]]:
    async with shop.pool.connection() as conn:
        cursor = await conn.execute("SELECT status, notes FROM raw_crawl_payloads WHERE id = %s", [payload])
        row = await cursor.fetchone()
    assert row is not None
    return row[0], row[1]


async def test_the_inbox_shows_each_beside_the_last_good_menu(shop: Shop) -> None:
    (first, _), (second, _) = await held(shop, "one", 0), await held(shop, "two", 5)
    page = (await shop.http.get("/admin/quarantine")).text
    assert re.findall(r"data-open data-stay dir=\"auto\" href=\"/admin/quarantine\?payload=(\d+)\"", page) == [
        str(second),
        str(first),
    ]
    assert f'action="/admin/quarantine/{second}/release"' in page, "the newest is open"
    assert 'data-count="/quarantine"><span class="n">2</span>' in page
    page = (await shop.http.get(f"/admin/quarantine?payload={first}")).text
    assert f'action="/admin/quarantine/{first}/release"' in page
    assert "too short" in page
    (products,) = re.findall(r'<th scope="row">Products</th><td>(\d+)</td><td>(\d+)</td>', page)
    assert products == ("6", "4")
    assert re.search(r'Removed</div><div class="value">2<', page)
    assert "Product 5" in page


async def test_release_and_reject_with_a_note(shop: Shop) -> None:
    (first, _), (second, _) = await held(shop, "one", 0), await held(shop, "two", 5)
    answer = await shop.http.post(f"/admin/quarantine/{first}/reject", data={"note": "wrong shop"}, headers=SAME)
    assert answer.headers["location"] == "/admin/quarantine"
    state, notes = await status(shop, first)
    assert state == "rejected"
    assert notes[-1].endswith(": wrong shop")
    await shop.http.post(f"/admin/quarantine/{second}/release", data={"note": "it moved"}, headers=SAME)
    state, notes = await status(shop, second)
    assert state == "ok"
    assert notes[-1].startswith("Released by")
    async with shop.pool.connection() as conn:
        cursor = await conn.execute("SELECT role, payload ->> 'payload_id' FROM task_live")
        assert await cursor.fetchall() == [("product_refresh", str(second))]
        cursor = await conn.execute(
            "SELECT action, details ->> 'note' FROM audit_log WHERE subject_kind = 'payload' ORDER BY id"
        )
        assert await cursor.fetchall() == [("payload_rejected", "wrong shop"), ("payload_released", "it moved")]
    page = (await shop.http.get("/admin/quarantine")).text
    assert "No payloads in quarantine" in page
    again = await shop.http.post(f"/admin/quarantine/{first}/release", headers=SAME)
    assert again.status_code == 303
    assert (await status(shop, first))[0] == "rejected"


async def test_a_viewer_decides_nothing(viewer: httpx.AsyncClient, shop: Shop) -> None:
    payload, _ = await held(shop, "one", 0)
    assert f"/quarantine/{payload}/release" not in (await viewer.get("/admin/quarantine")).text
    for action in ("release", "reject"):
        assert (await viewer.post(f"/admin/quarantine/{payload}/{action}", headers=SAME)).status_code == 403


async def compared(shop: Shop) -> tuple[int, int, int]:
    """(store, payload before, payload after): p0 is dearer, p1 is cheaper, p2 is gone, p9 is new, p3 has less left."""
    store = await shop.store("one")
    before = await shop.crawl(store, 0, GOOD[:5])
    after = await shop.crawl(
        store,
        1,
        [
            item("p0", "Product 0", options=[("1g", 12, 5)]),
            item("p1", "Product 1", options=[("1g", "5.50", 5)]),
            item("p3", "Product 3", options=[("1g", 13, 2)]),
            GOOD[4],
            item("p9", "Product 9", options=[("1g", 19, 5)]),
        ],
    )
    return store, before, after


def changes(page: str) -> dict[str, str]:
    """The change of each price, by product."""
    rows = re.findall(r"<tr>(.*?)</tr>", page[page.index('id="prices"') :].split("</details>")[0], re.DOTALL)
    cells = [re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "|", row)) for row in rows]
    return {found[1]: found[2] for cell in cells if (found := re.search(r"(Product \d).*\|([▲▼] [\d.]+ %)", cell))}


async def test_prices_say_in_which_direction_and_how_much(shop: Shop) -> None:
    _, before, after = await compared(shop)
    page = (await shop.http.get(f"/admin/payloads/{after}/diff?with={before}")).text
    assert changes(page) == {"Product 0": "▲ 20.0 %", "Product 1": "▼ 50.0 %"}
    assert page.count('class="by worse"') == 1
    assert page.count('class="by better"') == 1
    swapped = (await shop.http.get(f"/admin/payloads/{after}/diff?with={before}&swap=true")).text
    assert changes(swapped) == {"Product 0": "▼ 16.7 %", "Product 1": "▲ 100.0 %"}


async def test_a_diff_is_narrowed_and_explained(shop: Shop) -> None:
    _, before, after = await compared(shop)
    page = (await shop.http.get(f"/admin/payloads/{after}/diff?with={before}")).text
    assert "Why these numbers differ" in page
    assert all(f'id="{section}"' in page for section in ("added", "removed", "prices", "stock"))
    only = (await shop.http.get(f"/admin/payloads/{after}/diff?with={before}&only=prices")).text
    assert 'id="prices"' in only
    assert 'id="added"' not in only
    one = (await shop.http.get(f"/admin/payloads/{after}/diff?with={before}&q=product+9")).text
    assert 'id="added"' in one
    assert 'id="prices"' not in one


async def test_a_diff_is_downloaded(shop: Shop) -> None:
    _, before, after = await compared(shop)
    answer = await shop.http.get(f"/admin/payloads/{after}/diff/export?with={before}&format=csv")
    assert answer.headers["content-disposition"] == f'attachment; filename="menuwatch-diff-{before}-{after}.csv"'
    rows = {(row["change"], row["provider_product_id"]): row for row in csv.DictReader(io.StringIO(answer.text))}
    assert set(rows) == {("price", "p0"), ("price", "p1"), ("removed", "p2"), ("added", "p9"), ("stock", "p3")}
    assert float(rows["price", "p1"]["percent"]) == -50
    assert (rows["price", "p0"]["before"], rows["price", "p0"]["after"]) == ("10", "12")
    for fmt in ("jsonl", "parquet"):
        answer = await shop.http.get(f"/admin/payloads/{after}/diff/export?with={before}&format={fmt}")
        assert answer.status_code == 200
        assert answer.content


async def test_payloads_of_two_stores_are_compared(shop: Shop) -> None:
    _, before, _ = await compared(shop)
    other = await shop.store("two")
    payload = await shop.crawl(other, 3, GOOD[:5])
    page = await shop.http.get(f"/admin/payloads/{before}/diff?with={payload}")
    assert page.status_code == 200
    assert "is of another store" in page.text
    assert "No differences" in page.text


async def test_the_list_to_compare_with_is_in_time_order(shop: Shop) -> None:
    store = await shop.store("one")
    ids = [await shop.crawl(store, hour, [*GOOD[:5], item("x", options=[("1g", 5 + hour, 1)])]) for hour in range(5)]
    page = (await shop.http.get(f"/admin/payloads/{ids[2]}/diff")).text
    select = page[page.index('id="f-with"') :].split("</select>")[0]
    assert [int(number) for number in re.findall(r'option value="(\d+)"', select)] == [ids[4], ids[3], ids[1], ids[0]]
