"""docs/reference/data-quality.md explains every field that an analyst meets and no other, and counts as the recorded answers do."""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from menuwatch.catalog.changes import Change, ChangeSide
from menuwatch.catalog.history import ProductDetails, ProductState, Snapshot
from menuwatch.catalog.model import Batch, LabValue, Special, Variant
from menuwatch.catalog.service import ProductDetail
from menuwatch.exports.tables import TABLES, ExportTable
from menuwatch.platforms.dovetail import payload as dovetail
from menuwatch.platforms.dutchie import payload as dutchie
from menuwatch.platforms.dutchie_plus import payload as dutchie_plus
from menuwatch.platforms.weedmaps import payload as weedmaps

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reference" / "data-quality.md").read_text(encoding="utf-8")

FIGURES = (
    "analytics_price_per_gram", "analytics_brand_distribution", "analytics_category_distribution", "analytics_discounts",
    "analytics_out_of_stock",    "analytics_out_of_stock_products", "analytics_new_and_gone", "analytics_stores",
    "analytics_distribution", "analytics_distribution_of_brands", "analytics_price_dispersion", "analytics_cheapest_quarter",
    "analytics_specials", "analytics_special_groups", "analytics_shrinkflation",
)  # fmt: skip

PRODUCT_SECTIONS = (
    "Identification", "Name and category", "Price", "Stock", "Potency", "Batch and sales", "Texts and images", "Times",
)  # fmt: skip

API_NAMES = {
    "price": "price", "thc": "thc_lo", "cbd": "cbd_lo", "from_": "seen_from", "to": "seen_to",
    "before": "prices_before", "after": "prices_after",
}  # fmt: skip
"""Fields of the API that have another name or shape than columns, and what the page explains them by."""


def documented(heading: str) -> set[str]:
    """The fields that the table below a heading explains, each once."""
    match = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert match is not None, f"the page has no heading {heading!r}"
    cells = [line.split("|")[1] for line in match[1].splitlines() if line.startswith("| `")]
    names = [name for cell in cells for name in re.findall(r"`([a-z0-9_]+)`", cell)]
    assert len(names) == len(set(names)), f"{heading}: explained twice"
    return set(names)


def of_products() -> set[str]:
    return set().union(*(documented(heading) for heading in PRODUCT_SECTIONS))


def sheet(what: ExportTable) -> set[str]:
    return {column.name for column in TABLES[what]}


@pytest.fixture
def columns(database_url: str) -> dict[str, set[str]]:
    """The columns of every table and view of a database at the newest schema."""
    with psycopg.connect(database_url) as conn:
        found: dict[str, set[str]] = {}
        for relation, column in conn.execute(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"
        ):
            found.setdefault(relation, set()).add(column)
    return found


def test_every_field_of_products(columns: dict[str, set[str]]) -> None:
    assert of_products() == columns["store_products"] | sheet(ExportTable.PRODUCTS)


def test_every_field_of_snapshots_and_states(columns: dict[str, set[str]]) -> None:
    there = (
        columns["store_product_snapshots"]
        | columns["product_states"]
        | sheet(ExportTable.SNAPSHOTS)
        | sheet(ExportTable.STATES)
    )
    assert documented("Snapshots and states") == there - of_products()


def test_every_field_of_changes(columns: dict[str, set[str]]) -> None:
    there = columns["product_changes"] | sheet(ExportTable.CHANGES)
    assert documented("Changes") == there - of_products() - documented("Snapshots and states")


def test_every_field_of_details(columns: dict[str, set[str]]) -> None:
    there = columns["product_details"] | sheet(ExportTable.DETAILS)
    assert documented("Details") == there - of_products() - documented("Snapshots and states")


def test_every_field_of_crawls_and_stores(columns: dict[str, set[str]]) -> None:
    assert documented("Crawls") == columns["store_crawls"]
    assert documented("Stores") == columns["dispensaries"]


def test_every_field_of_the_figures(columns: dict[str, set[str]]) -> None:
    # The views are what readers use; they are made of the tables `analytics_*_stats` and the runs.
    tables = {name for name in columns if name.startswith("analytics_") and name.endswith(("_run", "_runs", "_stats"))}
    assert {name for name in columns if name.startswith("analytics_")} - tables == set(FIGURES)
    assert documented("Analytics views") == set().union(*(columns[view] for view in FIGURES))


def test_every_field_within_a_field() -> None:
    assert documented("Options: `variants`") == set(Variant.__struct_fields__)
    assert documented("Lab rows: `cannabinoids` and `terpenes`") == set(LabValue.__struct_fields__)
    assert documented("Batch and sales") - {"batch", "quantity_sold"} == set(Batch.__struct_fields__)
    assert documented("Promotions: `specials`") == set(Special.__struct_fields__)


def test_every_key_of_extra_that_a_platform_is_declared_to_fill() -> None:
    declared = {
        key
        for platform in (dutchie, dutchie_plus, dovetail, weedmaps)
        for field in platform.FIELDS
        for key in re.findall(r"extra\.([a-z_]+)", field.note)
    }
    assert documented("Other values: `extra`") - {"placeholder_image"} == declared


def test_every_field_of_the_api_is_explained_under_its_name_or_another() -> None:
    known = of_products() | documented("Snapshots and states") | documented("Changes") | {"currency", "price", "type"}
    shapes = (ProductDetail, Snapshot, ProductState, ProductDetails, ChangeSide, Change)
    unknown = {name for shape in shapes for name in shape.__struct_fields__ if API_NAMES.get(name, name) not in known}
    assert unknown == set()
    assert "`price` in the API" in PAGE
    assert "`currency` in the API" in PAGE
    assert "`type` in the API" in PAGE


@dataclass(frozen=True)
class NewMexico:
    """The recorded menus of New Mexico, read from their files and nothing else."""

    menus: list[dict[str, Any]]

    @property
    def items(self) -> list[dict[str, Any]]:
        """The items of all menus, each id once."""
        return list({item["id"]: item for menu in self.menus for item in menu["data"]}.values())


@pytest.fixture(scope="session")
def new_mexico(recorded: Path) -> NewMexico:
    with tarfile.open(recorded / "weedmaps" / "nm_menus_2024-05.tar.gz") as archive:
        files = [archive.extractfile(member) for member in archive if member.isfile()]
        return NewMexico([json.loads(file.read()) for file in files if file is not None])


def dutchie_items(recorded: Path, name: str) -> list[dict[str, Any]]:
    answer = json.loads((recorded / "dutchie" / name).read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = answer.get("data", answer)["filteredProducts"]["products"]
    return found


def says(*phrases: str) -> None:
    text = " ".join(PAGE.split())  # the page is wrapped
    assert [phrase for phrase in phrases if phrase not in text] == []


def test_what_the_page_says_of_the_recorded_menus_of_new_mexico(new_mexico: NewMexico) -> None:
    menus, items = new_mexico.menus, new_mexico.items
    rows = sum(len(menu["data"]) for menu in menus)
    cut = [menu for menu in menus if menu["data"] and menu["meta"]["total"] > len(menu["data"])]
    total = sum(menu["meta"]["total"] for menu in menus)
    stores = {item["relationships"]["listing"]["data"]["id"] for item in items}
    says(
        f"menus of {len(stores)} stores",
        f"for {len(cut)} of them only the first 100 items were recorded: {rows:,} of {total:,}",
    )
    says(f"| {len(items):,} |")
    assert {len(menu["data"]) for menu in cut} == {100}

    of = [item["attributes"] for item in items]
    brands = {name for at in of if (name := " ".join((at["brand_name"] or "").split()))}
    bare = {re.sub(r"[^a-z0-9]", "", name.casefold()) for name in brands}
    says(
        f"NM {share(not at['brand_name'] for at in of)} (flower",
        f"NM {len(brands)} brands are {len({b.casefold() for b in brands})} without",
    )
    says(f"{len(bare)} without regard to spaces")
    says(f"NM {share(not at['genetics'] for at in of)} | also contains")
    prices = [price for at in of if (price := lowest(at)) is not None]
    says(
        f"NM has {sum(price <= 1 for price in prices)} products at a dollar or less, "
        f"{sum(price == Decimal('0.01') for price in prices)} of them at 0.01"
    )
    medical = [at for at in of if at["license_type"] == "medical" and lowest(at) is not None]
    none = [at for at in of if lowest(at) is None]
    says(f"NM {len(medical) + len(none)} of {len(items):,}, of which {len(medical)} are medical items")
    says(
        f"{share(at['picture_url'] is None or '/placeholder' in at['picture_url'] for at in of)}: a placeholder of the category"
    )
    lab = [Decimal(row["value"]) for at in of for row in at["measurements"]]
    says(f"{sum(value == 0 for value in lab):,} of {len(lab):,} rows are 0")


def test_what_the_page_says_of_the_recorded_pages_of_dutchie(recorded: Path) -> None:
    pa = dutchie_items(recorded, "pa_filteredProducts_page_2025-11-09.json")
    on = dutchie_items(recorded, "on_filteredProducts_last_page_2023-11-29.json")
    same = [sum(item["recPrices"] == item["medicalPrices"] for item in items) for items in (pa, on)]
    says(f"equals `price_med` in {same[0]} of {len(pa)}", f"a recreational market, in {same[1]} of {len(on)}")
    ranges = [item["THCContent"]["range"] for item in on]
    says(f"ON {sum(len(range_) == 2 for range_ in ranges)} of {len(on)} have one")
    counted = [child for item in on for child in item["POSMetaData"]["children"]]
    fewer = [child for child in counted if child["quantityAvailable"] < child["quantity"]]
    none = [child for child in fewer if child["quantityAvailable"] == 0]
    says(f"in {len(fewer)} of {len(counted)} rows, in {len(none)} of them 0")
    specials = [
        special
        for item in pa
        for kind in ("saleSpecials", "bogoSpecials")
        for special in (item["specialData"] or {}).get(kind) or ()
    ]
    says(f"almost always: PA {sum(special.get('endStamp') is None for special in specials)} of {len(specials)}")
    potent = [item for item in pa if item["THCContent"]["range"] and item["THCContent"]["unit"] == "PERCENTAGE"]
    sums = [item for item in potent if Decimal(str(item["THCContent"]["range"][0])) == thc_of_the_lab(item)]
    says(f"PA {len(sums)} of {len(potent)}; in the last one the rows contradict it")


def thc_of_the_lab(item: dict[str, Any]) -> Decimal:
    """THCA and delta 9 THC, added."""
    rows = [(row["cannabinoid"]["name"], row["value"]) for row in item["cannabinoidsV2"]]
    return sum((Decimal(str(value)) for name, value in rows if name.startswith(("THCA", "THC-D9"))), Decimal(0))


def lowest(at: dict[str, Any]) -> Decimal | None:
    """The lowest price of an item of Weedmaps; 0 is none."""
    amounts = [variant["price"]["amount"] for variant in at["variants"] or ()] or [at["prices"]["price_unit"]]
    return min((Decimal(str(amount)) for amount in amounts if amount), default=None)


def share(which: Iterable[bool]) -> str:
    flags = list(which)
    return f"{100 * sum(flags) / len(flags):.0f} %"
