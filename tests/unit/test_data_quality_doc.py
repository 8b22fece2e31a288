"""docs/explanation/data-quality.md explains every field that an analyst meets, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg
import pytest

from menuwatch.api.schemas import changes as change_schemas
from menuwatch.api.schemas import products as product_schemas
from menuwatch.catalog.model import Cannabinoid, Special, Variant
from menuwatch.exports.sheets import SHEETS, What
from menuwatch.platforms.dutchie import fields as dutchie
from menuwatch.platforms.dutchie_plus import fields as dutchie_plus
from menuwatch.platforms.weedmaps import fields as weedmaps

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "explanation" / "data-quality.md").read_text(encoding="utf-8")

FIGURES = (
    "analytics_price_per_gram", "analytics_brand_distribution", "analytics_discounts", "analytics_out_of_stock",
    "analytics_out_of_stock_products", "analytics_new_and_gone", "analytics_stores",
)  # fmt: skip

PRODUCT_SECTIONS = ("Which", "What", "Price", "Stock", "Potency", "Texts, pictures, the rest", "When")

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


def sheet(what: What) -> set[str]:
    return {column.name for column in SHEETS[what]}


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
    assert of_products() == columns["store_products"] | sheet(What.PRODUCTS)


def test_every_field_of_snapshots_and_states(columns: dict[str, set[str]]) -> None:
    there = columns["store_product_snapshots"] | columns["product_states"] | sheet(What.SNAPSHOTS) | sheet(What.STATES)
    assert documented("Snapshots and states") == there - of_products()


def test_every_field_of_changes(columns: dict[str, set[str]]) -> None:
    there = columns["product_changes"] | sheet(What.CHANGES)
    assert documented("Changes") == there - of_products() - documented("Snapshots and states")


def test_every_field_of_crawls_and_stores(columns: dict[str, set[str]]) -> None:
    assert documented("Crawls") == columns["store_crawls"]
    assert documented("Stores") == columns["dispensaries"]


def test_every_field_of_the_figures(columns: dict[str, set[str]]) -> None:
    assert {
        name for name in columns if name.startswith("analytics_") and name not in {"analytics_run", "analytics_runs"}
    } == set(FIGURES)
    assert documented("Figures") == set().union(*(columns[view] for view in FIGURES))


def test_every_field_within_a_field() -> None:
    assert documented("Options: `variants`") == set(Variant.__struct_fields__)
    assert documented("Lab rows: `cannabinoids`") == set(Cannabinoid.__struct_fields__)
    assert documented("Promotions: `specials`") == set(Special.__struct_fields__)


def test_every_key_of_extra_that_a_platform_is_declared_to_fill() -> None:
    declared = {
        key
        for platform in (dutchie, dutchie_plus, weedmaps)
        for field in platform.FIELDS
        for key in re.findall(r"extra\.([a-z_]+)", field.note)
    }
    assert documented("The rest: `extra`") - {"placeholder_image"} == declared


def test_every_field_of_the_api_is_explained_under_its_name_or_another() -> None:
    known = of_products() | documented("Snapshots and states") | documented("Changes") | {"price"}
    models = (
        product_schemas.ProductDetail, product_schemas.Snapshot, product_schemas.ProductState, product_schemas.ChangeSide,
        change_schemas.Change,
    )  # fmt: skip
    unknown = {name for model in models for name in model.model_fields if API_NAMES.get(name, name) not in known}
    assert unknown == set()
    assert "`price` in the API" in PAGE
