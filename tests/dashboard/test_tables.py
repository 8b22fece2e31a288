"""Tables of lists: sorting, page sizes, which rows are shown, on every screen that has them."""

from __future__ import annotations

import re
from html import unescape

import httpx
import pytest

from menuwatch.db.pool import Pool
from tests.dashboard import task_rows as given


def stores_of(page: httpx.Response) -> list[str]:
    return [
        unescape(name) for name in re.findall(r'<a class="row wrap" href="/admin/stores/\d+"[^>]*>([^<]+)<', page.text)
    ]


async def three(pool: Pool) -> None:
    """Three stores, last crawled 1, 3 and 2 hours ago, one never; with 5, 20, 10 and no products."""
    for name, hours, products in (("bravo", 1, 5), ("Alpha", 3, 20), ("charlie", 2, 10), ("delta", None, None)):
        number = await given.store(pool, name, name)
        await given.one(
            pool,
            "UPDATE dispensaries SET last_crawled_at = now() - %s * interval '1 hour', product_count = %s WHERE id = %s RETURNING 1",
            [hours, products, number],
        )


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("name", ["Alpha", "bravo", "charlie", "delta"]),
        ("-name", ["delta", "charlie", "bravo", "Alpha"]),
        ("-crawled", ["bravo", "charlie", "Alpha", "delta"]),
        ("crawled", ["Alpha", "charlie", "bravo", "delta"]),
        ("-products", ["Alpha", "charlie", "bravo", "delta"]),
        ("products", ["bravo", "charlie", "Alpha", "delta"]),
        ("due", ["delta", "Alpha", "charlie", "bravo"]),
        ("-due", ["bravo", "charlie", "Alpha", "delta"]),
    ],
)
async def test_stores_in_each_order(admin: httpx.AsyncClient, pool: Pool, sort: str, names: list[str]) -> None:
    await three(pool)
    page = await admin.get(f"/admin/stores?sort={sort}")
    assert stores_of(page) == names
    assert "1–4 of 4 stores" in page.text
    assert page.text.count("aria-sort=") == 1
    assert f'aria-sort="{"descending" if sort.startswith("-") else "ascending"}"' in page.text


async def test_pages_of_sorted_stores(admin: httpx.AsyncClient, pool: Pool) -> None:
    for n in range(60):
        await given.store(pool, f"s{n:02}", f"Store {n:02}")
    page = await admin.get("/admin/stores?sort=-name&rows=25")
    seen = stores_of(page)
    assert "1–25 of 60 stores" in page.text
    while following := re.search(r'rel="next" href="([^"]+)"', page.text):
        page = await admin.get(unescape(following[1]))
        seen += stores_of(page)
    assert seen == [f"Store {n:02}" for n in reversed(range(60))]
    assert "51–60 of 60 stores" in page.text
    assert "First page" in page.text


@pytest.mark.parametrize("path", ["tasks", "stores", "audit"])
async def test_each_list_has_its_columns_and_sizes(admin: httpx.AsyncClient, pool: Pool, path: str) -> None:
    await three(pool)
    await admin.post(f"/admin/tasks/{await given.waiting(pool)}/cancel")
    page = await admin.get(f"/admin/{path}?rows=100&sort=nonsense")
    assert page.status_code == 200
    columns = re.findall(r'data-column="(\w+)"', page.text)
    choices = re.findall(r'<input type="checkbox" value="(\w+)" checked', page.text)
    assert columns == choices
    assert columns
    assert re.search(r'aria-current="true">100</a>', page.text)
