"""Screens that show canonical products: changes, products and the reports of analytics."""

from __future__ import annotations

import httpx

from menuwatch.analytics.refresh import refresh
from menuwatch.db.pool import Pool
from menuwatch.matching.locations.engine import match_locations
from tests.market import add_store, crawl, item
from tests.matching.location_rows import add_licence, locations
from tests.matching.location_rows import add_store as add_shop
from tests.matching_rows import add_brand, add_event, add_product, listing, match


async def test_screens_show_canonical_products(admin: httpx.AsyncClient, pool: Pool) -> None:
    async with pool.connection() as conn:
        dream = await add_product(conn, "Blue <Dream>", await add_brand(conn, "Acme"))
        old = await add_product(conn, "Blu Dream", merged_into=dream)
        for number in range(3):
            store = await add_store(conn, f"s-{number}")
            await crawl(conn, store, 0, [item("a", price="10"), item("b", price="9", name="Other")])
            await match(conn, dream, await listing(conn, store, "a"))
        await add_event(conn, "merged", old, dream)
        await add_event(conn, "split", dream, old, listings=2)
    await refresh(pool)
    changes = (await admin.get("/admin/changes")).text
    assert f"Blu Dream ({old}) is now Blue &lt;Dream&gt; ({dream})" in changes
    assert f"2 listings of Blue &lt;Dream&gt; ({dream}) became Blu Dream ({old})" in changes
    assert "is now" not in (await admin.get("/admin/changes?kind=split")).text
    products = (await admin.get(f"/admin/products?canonical_product={old}")).text
    assert products.count("s-0") == 1
    assert "Other" not in products
    assert "is too small" in (await admin.get("/admin/products?canonical_product=0")).text
    assert "is not one of" in (await admin.get("/admin/locations?status=x")).text
    assert (await admin.get("/admin/locations?status=%20")).status_code == 200
    for report in ("distribution", "distribution/brands", "price-dispersion", "widest-gaps", "cheapest-quarter"):
        page = await admin.get(f"/admin/analytics/{report}")
        assert page.status_code == 200
        if report == "distribution":
            assert f'/admin/products?canonical_product={dream}"' in page.text
            assert "Blue &lt;Dream&gt;" in page.text
    link = "/admin/analytics/price-dispersion?canonical_product="
    assert f'{link}{dream}"' in (await admin.get(f"/admin/matching/products/{dream}")).text
    found = (await admin.get(f"/admin/analytics/distribution?canonical_product={dream}")).text
    assert "Blue &lt;Dream&gt;" in found
    other = (await admin.get(f"/admin/analytics/distribution?canonical_product={dream + 1000}")).text
    assert "Blue &lt;Dream&gt;" not in other
    assert "is too small" in (await admin.get("/admin/analytics/price-dispersion?canonical_product=0")).text
    assert "is not an option" not in (await admin.get("/admin/analytics/by-day?category=all")).text
    for name in ("canonical-products", "brands", "locations", "product-matches", "match-events"):
        for fmt in ("csv", "parquet", "jsonl"):
            assert (await admin.get(f"/admin/exports/{name}?format={fmt}")).status_code == 200


async def test_a_location_shows_its_menus_and_licences(admin: httpx.AsyncClient, pool: Pool) -> None:
    """Addresses as menus give them: the street alone, and with the city; none."""
    street = await add_shop(pool, name="Green Mesa", address="3300 Central Ave SE", city="Albuquerque", state="NM")
    whole = await add_shop(
        pool,
        "dutchie",
        name="Green Mesa (REC)",
        address="3300 Central Ave SE, Albuquerque, NM 87106",
        city="Albuquerque",
    )
    licence = await add_licence(pool)
    await match_locations(pool)
    placed = await locations(pool)
    number = placed["menu", street]
    assert placed["menu", whole] == placed["licence", licence] == number
    page = await admin.get(f"/admin/locations/{number}")
    assert page.status_code == 200
    assert "3300 Central Ave SE, Albuquerque" in page.text
    assert "3300 Central Ave SE, Albuquerque, NM 87106" in page.text
    assert f"/admin/stores/{street}" in page.text
    assert (await admin.get("/admin/locations")).status_code == 200
    assert (await admin.get("/admin/locations/licences")).status_code == 200
    async with pool.connection() as conn:
        await conn.execute("UPDATE dispensaries SET address = NULL, city = NULL")
    assert (await admin.get(f"/admin/locations/{number}")).status_code == 200
