"""Stored products against the raw files, field by field, and the market of New Mexico as a whole."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest

from menuwatch.pipeline.context import HandlerContext
from menuwatch.pipeline.replay import Outcome, replay
from tests.recorded import dutchie, dutchie_plus, stored, weedmaps
from tests.recorded.plain import read

MENUS = 20


def recording(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.is_file():
        pytest.skip(f"{name} is not among the recorded answers")
    return path


def menus_in(path: Path) -> dict[str, Any]:
    """Every answer of the archive, by the name of its file."""
    with tarfile.open(path) as archive:
        return {
            Path(member.name).stem: read(file.read())
            for member in archive
            if member.isfile() and (file := archive.extractfile(member)) is not None
        }


def figures(outcome: Outcome) -> dict[str, int]:
    names = ("products", "new", "changed", "unchanged", "missing")
    return {name: sum(menu.counts.get(name, 0) for menu in outcome.menus) for name in names}


@pytest.mark.slow
async def test_the_market_of_new_mexico(parts: HandlerContext, recorded: Path) -> None:
    """It takes its seconds: 84 menus, each in transactions of its own, twice, and 7,117 products compared in every field."""
    path = recording(recorded, "weedmaps/nm_menus_2024-05.tar.gz")
    raw = menus_in(path)
    assert len(raw) == 133
    assert sum(len(menu["data"]) for menu in raw.values()) == 7151
    # 48 menus are empty. Two files, 65114 and 67606, hold the same menu of a third listing: 34 items twice.
    told: list[tuple[int, int]] = []
    first = await replay(parts, None, [path], progress=lambda done, of: told.append((done, of)))
    assert told == [(number, 84) for number in range(85)]
    assert (first.files, len(first.menus), first.repeated) == (133, 84, 1)
    assert len(first.left_out) == 48
    assert all(one.empty and "the total is 0" in one.reason for one in first.left_out)
    assert figures(first) == {"products": 7117, "new": 7117, "changed": 0, "unchanged": 0, "missing": 0}
    assert [menu.refused for menu in first.menus if menu.refused] == []
    assert [warning for menu in first.menus for warning in menu.warnings] == []
    # 63 menus are their first page alone.
    assert sum(menu.part is not None for menu in first.menus) == 63

    found = await stored.products(parts.pool)
    assert sum(len(products) for products in found.values()) == 7117
    # Twenty menus, evenly spread over the names of the files.
    names = sorted(name for name, menu in raw.items() if menu["data"])
    chosen = names[:: len(names) // MENUS][:MENUS]
    assert len(chosen) == MENUS
    for name in chosen:
        _compare(found, raw[name]["data"])
    # And the rest of them: it costs no more.
    for name in set(names) - set(chosen):
        _compare(found, raw[name]["data"])

    await _stores_are_what_it_says(parts, raw)

    again = await replay(parts, None, [path])
    assert figures(again) == {"products": 7117, "new": 0, "changed": 0, "unchanged": 7117, "missing": 0}
    async with parts.pool.connection() as conn:
        counts = await (
            await conn.execute(
                "SELECT (SELECT count(*) FROM store_crawls), (SELECT count(*) FROM raw_crawl_payloads), "
                "(SELECT count(*) FROM product_states)"
            )
        ).fetchone()
    assert counts == (84, 84, 7117)


def _compare(found: dict[str, dict[str, dict[str, Any]]], items: list[dict[str, Any]]) -> None:
    store = str(items[0]["relationships"]["listing"]["data"]["id"])
    assert found[store].keys() == {str(item["id"]) for item in items}
    for item in items:
        assert stored.differences(weedmaps.product(item), found[store][str(item["id"])]) == {}, item["id"]


async def _stores_are_what_it_says(parts: HandlerContext, raw: dict[str, Any]) -> None:
    expected = set()
    for menu in raw.values():
        for item in menu["data"]:
            slug = item["links"]["order"].split("/")[4]
            listing = str(item["relationships"]["listing"]["data"]["id"])
            expected.add((listing, slug, f"https://weedmaps.com/dispensaries/{slug}", False))
    assert len(expected) == 84
    async with parts.pool.connection() as conn:
        cursor = await conn.execute(
            "SELECT platform_dispensary_id, slug, menu_url, crawl_enabled FROM dispensaries WHERE platform = 'weedmaps'"
        )
        # Without WEEDMAPS_BASE_URL nobody is asked, so these are not crawled until a person says so.
        assert {tuple(row) for row in await cursor.fetchall()} == expected


async def test_the_dutchie_plus_page(parts: HandlerContext, recorded: Path) -> None:
    path = recording(recorded, "dutchie_plus/mpxnj_products_list_2025-06-25.json")
    raw = read(path.read_bytes())["data"]["products_list"]
    (done,) = (await replay(parts, None, [path], store="mpx-nj")).menus
    assert (done.counts["new"], done.part, done.warnings) == (20, "20 of 101 products", ())
    (products,) = (await stored.products(parts.pool)).values()
    assert products.keys() == {item["id"] for item in raw}
    for item in raw:
        assert stored.differences(dutchie_plus.product(item), products[item["id"]]) == {}, item["id"]
    (again,) = (await replay(parts, None, [path], store="mpx-nj")).menus
    assert again.counts["unchanged"] == 20


@pytest.mark.parametrize(
    ("name", "count", "part"),
    [
        ("pa_filteredProducts_page_2025-11-09.json", 25, "25 of 814 products"),
        ("on_filteredProducts_last_page_2023-11-29.json", 38, "38 of 138 products"),
    ],
)
async def test_the_dutchie_pages(parts: HandlerContext, recorded: Path, name: str, count: int, part: str) -> None:
    path = recording(recorded, f"dutchie/{name}")
    raw = read(path.read_bytes())["data"]["filteredProducts"]["products"]
    (done,) = (await replay(parts, None, [path])).menus
    assert (done.counts["new"], done.part, done.warnings) == (count, part, ())
    (products,) = (await stored.products(parts.pool)).values()
    assert products.keys() == {item["id"] for item in raw}
    for item in raw:
        assert stored.differences(dutchie.product(item), products[item["id"]]) == {}, item["id"]
