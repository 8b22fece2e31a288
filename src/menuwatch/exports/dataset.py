"""Tables of the published dataset: their columns, keys, order and files. Pure.

Columns of an export are published unless they are left out here; a test has the list of all. Links to images, certificates and menus,
telephone numbers, descriptions and package tags are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from menuwatch.exports.tables import TABLES, Column, ExportTable, Kind


class DatasetTable(Struct, frozen=True, kw_only=True):
    """One table. `view` is the view of the schema `analyst` that its columns share their meaning with; `texts` are the meanings of
    columns that the view does not have. `key` identifies a row, `order` is that of the rows in a file."""

    name: str
    meaning: str
    view: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    order: tuple[str, ...]
    monthly: bool = False
    """A file for each month and state; the first two columns are the month and the state. Else there is one file."""
    lasting: bool = False
    """Rows that last have a file for each state; its month is CURRENT."""
    texts: Mapping[str, str] = {}
    references: Mapping[str, str] = {}
    """Columns that hold the key of another table."""


_MONTHLY = (Column("month", Kind.TEXT), Column("state", Kind.TEXT))
CURRENT = "current"
_FILE_TEXT = "Each file holds one month of one state."
_PRODUCT = {"product_id": "products", "dispensary_id": "stores"}
_MATCHED = {"canonical_product_id": "canonical_products", "brand_id": "brands", "location_id": "locations"}


def _of(table: ExportTable, without: str = "", first: Sequence[Column] = ()) -> tuple[Column, ...]:
    left_out = {*without.split(), *(column.name for column in first)}
    return (*first, *(column for column in TABLES[table] if column.name not in left_out))


def _kinds(*kinds: tuple[Kind, str]) -> tuple[Column, ...]:
    return tuple(Column(name, kind) for kind, names in kinds for name in names.split())


_NAMES = "store provider provider_product_id name brand_name category_canon canonical_product_id brand_id location_id"
"""Columns of the history that the table of products has once for each product."""

DATASET: tuple[DatasetTable, ...] = (
    DatasetTable(
        name="price_history",
        meaning=(
            "One row per product, option (size or package) and period in which the product did not change: a crawl that confirms what "
            "is known adds no row. A product without options has one row with option null."
        ),
        view="states",
        columns=(
            *_MONTHLY,
            *_kinds(
                (Kind.WHOLE, "dispensary_id product_id position"),
                (Kind.TEXT, "option"),
                (Kind.TIME, "seen_from seen_to"),
                (Kind.FLAG, "present"),
                (Kind.NUMBER, "price_rec price_rec_special price_med price_med_special"),
                (Kind.TEXT, "stock_status"),
                (Kind.WHOLE, "quantity"),
                (Kind.FLAG, "quantity_capped"),
                (Kind.NUMBER, "thc_lo thc_hi"),
                (Kind.TEXT, "thc_unit"),
                (Kind.NUMBER, "cbd_lo cbd_hi"),
                (Kind.TEXT, "cbd_unit"),
            ),
        ),
        key=("product_id", "seen_from", "position"),
        order=("month", "state", "product_id", "seen_from", "position"),
        monthly=True,
        lasting=True,
        texts={
            "month": f"Month in UTC, as 2026-03, of the crawl that saw it otherwise; {CURRENT} while it lasts. {_FILE_TEXT}",
            "position": "Place of the option on the menu, from 1; 0 for a product without options.",
            "option": "Size or package, as on the menu; null for a product without options.",
            "price_rec": "Price of the option for adults, before specials, in `stores.currency`; null if it has none.",
            "price_rec_special": "Special price of the option for adults, in `stores.currency`.",
            "price_med": "Price of the option for patients, before specials, in `stores.currency`.",
            "price_med_special": "Special price of the option for patients, in `stores.currency`.",
            "stock_status": "Stock of the option: in_stock, oos (out of stock) or unknown.",
            "quantity": "Packages of the option in stock; null if they are not counted.",
        },
        references=_PRODUCT,
    ),
    DatasetTable(
        name="changes",
        meaning="One row each time the prices or the stock of a product changed. New products are not included.",
        view="changes",
        columns=_of(ExportTable.CHANGES, _NAMES, _MONTHLY),
        key=("product_id", "changed_at"),
        order=("month", "state", "product_id", "changed_at"),
        monthly=True,
        texts={"month": f"Month in UTC, as 2026-03, of changed_at. {_FILE_TEXT}"},
        references=_PRODUCT,
    ),
    DatasetTable(
        name="menus",
        meaning="One row per option (size or package) of each item on the last menu of its store.",
        view="offers",
        columns=_of(ExportTable.OFFERS),
        key=("product_id", "position"),
        order=("product_id", "position"),
        references=_PRODUCT | _MATCHED,
    ),
    DatasetTable(
        name="products",
        meaning="One row per item of one store, as of the last crawl that saw it. Items that left the menu stay.",
        view="products",
        columns=_of(
            ExportTable.PRODUCTS,
            "name_raw brand_name_raw status_raw variants specials image_url local_image_path description certificate_url package_tag "
            "consecutive_misses",
        ),
        key=("product_id",),
        order=("product_id",),
        references={"dispensary_id": "stores"} | _MATCHED,
    ),
    DatasetTable(
        name="canonical_products",
        meaning="One row per canonical product: the same product in all stores and sizes. Merged products stay, with merged_into.",
        view="canonical_products",
        columns=_of(ExportTable.CANONICAL_PRODUCTS),
        key=("canonical_product_id",),
        order=("canonical_product_id",),
        references={"brand_id": "brands"},
    ),
    DatasetTable(
        name="brands",
        meaning="One row per brand, with all its spellings. Merged brands stay, with merged_into.",
        view="brands",
        columns=_of(ExportTable.BRANDS),
        key=("brand_id",),
        order=("brand_id",),
    ),
    DatasetTable(
        name="stores",
        meaning="One row per store: one menu on one platform. A shop on two platforms has two, with one location_id.",
        view="stores",
        columns=_of(ExportTable.STORES, "menu_url phone crawl_enabled crawl_interval_hours"),
        key=("dispensary_id",),
        order=("dispensary_id",),
        references={"location_id": "locations"},
    ),
    DatasetTable(
        name="locations",
        meaning="One row per shop, across platforms and licences. Merged locations stay, with merged_into.",
        view="locations",
        columns=_of(ExportTable.LOCATIONS, "phone"),
        key=("location_id",),
        order=("location_id",),
    ),
    DatasetTable(
        name="price_index",
        meaning="Links of the price index by state, category and day (UTC): index = 100 * exp(level - level of the base day).",
        view="price_index",
        columns=_kinds(
            (Kind.TEXT, "state category"),
            (Kind.DATE, "day"),
            (Kind.WHOLE, "stores known_stores matched carried entered expired outliers"),
            (Kind.REAL, "change level"),
            (Kind.JSON, "deviations"),
        ),
        key=("state", "category", "day"),
        order=("state", "category", "day"),
    ),
)
"""The tables, the largest first."""
