"""Stored Sweed products against the raw files, field by field; store records; files that are no menus."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from menuwatch.core.errors import BadPayload, Refused
from menuwatch.pipeline.context import HandlerContext
from menuwatch.pipeline.replay import replay
from menuwatch.platforms.fields import coverage
from menuwatch.platforms.sweed.adapter import Sweed
from menuwatch.platforms.sweed.answers import store_of_page
from menuwatch.platforms.sweed.stores import found_store
from tests.recorded import stored, sweed
from tests.recorded.plain import read
from tests.recorded.test_recorded_menus import recording

LIST = "sweed/GetProductList_2025-12-31.json"
ROWS = "sweed/GetProductCarouselList_2025-12-31.json"
PAGE = "sweed/ssr_page_gleaf_rockville_2025-12-31.html.gz"


def cached(html: str, operation: str) -> Any:
    """The answer to one query in a shop's page; the cache is the first JSON after its name."""
    start = html.index("window.__sw_qc = ") + len("window.__sw_qc = ")
    decoder = json.JSONDecoder(parse_float=sweed.Decimal)
    cache, _ = decoder.raw_decode(html, start)
    return next(query["state"]["data"] for query in cache["queries"] if query["queryKey"][0].endswith(operation))


async def check(parts: HandlerContext, expected: dict[str, dict[str, Any]], count: int) -> None:
    (found,) = (await stored.products(parts.pool)).values()
    assert found.keys() == expected.keys()
    assert len(found) == count
    for name, product in expected.items():
        assert stored.differences(product, found[name]) == {}, name


async def test_the_product_list(parts: HandlerContext, recorded: Path) -> None:
    path = recording(recorded, LIST)
    raw = read(path.read_bytes())["data"]
    with pytest.raises(Refused, match="does not identify its store: pass --store"):
        await replay(parts, None, [path])
    (done,) = (await replay(parts, None, [path], store="gleaf")).menus
    assert (done.counts["new"], done.part, done.warnings) == (24, "24 of 142 products", ())
    await check(parts, sweed.products(raw["list"], raw["promos"]), 24)
    (again,) = (await replay(parts, None, [path], store="gleaf")).menus
    assert (again.counts["unchanged"], again.counts["changed"]) == (24, 0)


async def test_bare_answers_are_read_as_well(parts: HandlerContext, recorded: Path, tmp_path: Path) -> None:
    path = recording(recorded, LIST)
    bare = tmp_path / "bare.json"
    # The bytes of the body itself, cut out of the recorder's wrapper.
    text = path.read_text()
    bare.write_text(text[text.index("{", text.index('"data"')) : text.rindex("}")].strip())
    (done,) = (await replay(parts, None, [bare], store="gleaf")).menus
    assert done.counts["new"] == 24


async def test_the_rows_of_the_front_page(parts: HandlerContext, recorded: Path) -> None:
    path = recording(recorded, ROWS)
    rows = [row for titled in read(path.read_bytes())["data"] for row in titled["products"]]
    assert (len(rows), len({row["id"] for row in rows})) == (157, 136)
    (done,) = (await replay(parts, None, [path], store="gleaf")).menus
    assert (done.counts["new"], done.part, done.warnings) == (136, "136 products", ())
    await check(parts, sweed.products(rows, []), 136)
    (drink,) = [one for one in (await stored.products(parts.pool))["gleaf"].values() if one["name"] == "Socials"]
    assert len(drink["variants"]) == 6, "six flavours in six rows are one product"
    (again,) = (await replay(parts, None, [path], store="gleaf")).menus
    assert (again.counts["unchanged"], again.counts["changed"]) == (136, 0)


async def test_the_page_of_a_shop(parts: HandlerContext, recorded: Path) -> None:
    path = recording(recorded, PAGE)
    html = gzip.decompress(path.read_bytes()).decode()
    rows = [row for titled in cached(html, "/GetProductCarouselList") for row in titled["products"]]
    (done,) = (await replay(parts, None, [path])).menus
    assert (done.counts["new"], done.part) == (135, "136 products")
    assert [(one["product_id"], one["field"], one["fatal"]) for one in done.warnings] == [("204934", "name", True)]
    await check(parts, sweed.products(rows, []), 135)
    async with parts.pool.connection() as conn:
        cursor = await conn.execute(
            "SELECT platform_dispensary_id, slug, name, city, state, zipcode, timezone, is_medical, menu_url FROM dispensaries"
        )
        assert await cursor.fetchall() == [
            ("376", "gleaf-rockville-376", "gLeaf - Rockville", "Rockville", "MD", "20850", "America/New_York", True,
             "https://www.gleaf.com/stores/maryland/rockville/shop")
        ]  # fmt: skip
    assert store_of_page(html.encode()) == "376"
    (again,) = (await replay(parts, None, [path])).menus
    assert (again.counts["unchanged"], again.counts["changed"]) == (135, 0)


@pytest.mark.parametrize("name", [LIST, ROWS])
def test_no_field_is_undeclared(recorded: Path, name: str) -> None:
    path = recording(recorded, name)
    body = path.read_bytes()
    for page in (body, msgspec.json.encode(json.loads(body)["data"])):
        assert [row.path for row in coverage(Sweed.fields, [page]) if row.use == "undeclared"] == []


def test_no_field_of_the_lists_in_a_page_is_undeclared(recorded: Path) -> None:
    lists = Sweed().documents(gzip.decompress(recording(recorded, PAGE).read_bytes()))
    rows = coverage(Sweed.fields, lists)
    assert len(lists) == 1
    assert {row.use for row in rows} == {"used", "kept", "ignored"}


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("GetBanners_2025-12-31.json", "banners"),
        ("GetProductCategoryList_2025-12-31.json", "categories"),
        ("GetStoreConfig_2025-12-31.json", "configuration"),
        ("GetStoreInfo_2025-12-31.json", "record of a store"),
        ("GetShopInShopsList_2025-12-31.json", "shops in the shop"),
        ("GetAvailableFulfillmentTypesV2_2025-12-31.json", "ways to order"),
        ("stores_160_2026-01.json", "list of stores"),
        ("category_list_samples_166_2026-01.json.gz", "category lists"),
        ("requests_2025-12-31.json", "requests"),
    ],
)
async def test_files_that_are_no_menus(parts: HandlerContext, recorded: Path, name: str, what: str) -> None:
    path = recording(recorded, f"sweed/{name}")
    with pytest.raises(Refused, match=rf"{path.name}: no_data: the response is .*{what}.* of Sweed, not a menu$"):
        await replay(parts, None, [path])
    packed = path.read_bytes()
    with pytest.raises(BadPayload):
        Sweed().split(gzip.decompress(packed) if name.endswith(".gz") else packed)


def test_every_store_record(recorded: Path) -> None:
    raw = json.loads(recording(recorded, "sweed/stores_160_2026-01.json").read_text())["stores"]
    stores = [found_store(msgspec.Raw(json.dumps(record).encode())) for record in raw]
    names = {
        "Illinois": "IL", "Colorado": "CO", "Michigan": "MI", "New Jersey": "NJ", "California": "CA", "Maryland": "MD",
        "Arizona": "AZ", "Nevada": "NV", "Florida": "FL", "Mississippi": "MS", "Connecticut": "CT", "New York": "NY", "Ohio": "OH",
    }  # fmt: skip
    for store, record in zip(stores, raw, strict=True):
        assert store.platform_dispensary_id == str(record["store_id"])
        assert store.name_raw == record["name"]
        assert store.state == names[record["state"]]
        assert (store.city, store.zipcode) == (record["city"], record["zip"])
        assert (store.latitude, store.longitude) == (record["lat"], record["lng"])
        assert store.menu_url == record["url"]
        assert store.is_recreational == ("Recreational" in record["sale_types"])
        assert store.is_medical == ("Medical" in record["sale_types"])
        assert store.slug.endswith(f"-{record['store_id']}")
    refused = {int(store.platform_dispensary_id): store.problem for store in stores if store.problem}
    # Sweed's own: eleven are called tests, and "Review Store" has a preview address.
    assert sorted(refused) == [1, 3, 25, 84, 85, 86, 87, 91, 560, 564, 574, 591]
    assert set(refused.values()) == {"a test shop of the platform"}
    assert Counter(store.slug for store in stores).most_common(1)[0][1] == 1


def test_the_record_of_one_store(recorded: Path) -> None:
    info, config = (
        json.loads(recording(recorded, f"sweed/{name}_2025-12-31.json").read_text())["data"]
        for name in ("GetStoreInfo", "GetStoreConfig")
    )
    store = found_store(msgspec.Raw(json.dumps(info).encode()), msgspec.Raw(json.dumps(config).encode()))
    assert (store.address, store.phone) == ("808 Hungerford Drive, Rockville, Maryland", "13019173665")
    assert (store.latitude, store.longitude) == (39.0948128, -77.15386389999999)
    assert store.raw["licenseCode"] == "DA-23-00092", (
        "the number in the register of Maryland, which has no blank before it"
    )
    assert store.raw["schedules"] == info["schedules"]
    assert "email" not in json.dumps(store.raw)
