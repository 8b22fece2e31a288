"""What an adapter makes of recorded pages: fields, columns, items that are dropped, and warnings. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
from msgspec import Struct

from menuwatch.catalog.model import Product
from menuwatch.core.errors import BadPayload
from menuwatch.core.shapes import doc
from menuwatch.platforms import fields
from menuwatch.platforms.base import Platform
from menuwatch.platforms.fields import Coverage
from menuwatch.platforms.json_repair import read_leniently, storable


class Dropped(Struct, frozen=True, kw_only=True):
    """An item that gave no product."""

    source: Annotated[str, doc("File.")]
    position: Annotated[int, doc("Position in the file, from 1.")]
    product_id: str | None
    name: Annotated[str | None, doc("The first text that looks like a name.")]
    field: str
    reason: str


class FieldReport(Struct, frozen=True, kw_only=True):
    """One field of the pages."""

    field: str
    use: Annotated[str, doc("`used`, `kept`, `ignored` or `undeclared`.")]
    note: Annotated[str, doc("Columns that it goes to, or why it is ignored.")]
    count: int
    filled: Annotated[
        float, doc("Share of items in which it is neither null nor empty; of entries, for fields inside lists.")
    ]
    example: str | None
    odd: Annotated[int, doc("Values that the adapter left out or warned of.")]
    odd_example: str | None


class ColumnReport(Struct, frozen=True, kw_only=True):
    """One column of the products."""

    column: str
    filled: Annotated[float, doc("Share of products with a value.")]
    values: Annotated[int, doc("Number of distinct values.")]


@dataclass(slots=True, kw_only=True)
class Report:
    """What an adapter makes of some pages."""

    platform: str
    pages: int = 0
    items: int = 0
    products: int = 0
    repeated: Annotated[int, doc("Items whose product another item of the same file gave, too.")] = 0
    fields: list[FieldReport] = field(default_factory=list)
    columns: list[ColumnReport] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    unread: Annotated[list[str], doc("Files that are not a menu of the platform, with the reason.")] = field(
        default_factory=list
    )

    @property
    def undeclared(self) -> list[str]:
        """Fields that the adapter does not declare."""
        return [row.field for row in self.fields if row.use == fields.UNDECLARED]


def report(platform: Platform, pages: Iterable[tuple[str, bytes]]) -> Report:
    """The report of (file, page) pairs; empty menus count as pages."""
    result = Report(platform=platform.name)
    products: list[Product] = []
    odd: dict[str, list[str]] = {}
    read: list[bytes] = []
    for source, page in pages:
        try:
            items = platform.split(page)
        except BadPayload as error:
            if error.kind != "empty":
                result.unread.append(f"{source}: {error.kind}: {error}")
                continue
            items = []
        read.append(page)
        before = len(products)
        for position, item in enumerate(items, 1):
            made = platform.normalize([item])
            products.extend(made.products)
            for warning in made.warnings:
                odd.setdefault(_plain(warning.field), []).append(f"{warning.product_id}: {warning.message}")
                if warning.fatal:
                    result.dropped.append(
                        Dropped(
                            source=source,
                            position=position,
                            product_id=warning.product_id,
                            name=_name(item),
                            field=warning.field,
                            reason=warning.message,
                        )
                    )
        names = [product.provider_product_id for product in products[before:]]
        result.repeated += len(names) - len(set(names))
        result.items += len(items)
    result.pages, result.products = len(read), len(products)
    documents = [document for page in read for document in platform.documents(page)]
    result.fields = _fields(
        fields.coverage(platform.fields, documents), odd, f"{platform.items_path}[].", max(result.items, 1)
    )
    result.columns = _columns(products)
    return result


def _plain(path: str) -> str:
    """The path of a field without positions: `variants[3].price` as `variants[].price`."""
    return re.sub(r"\[\d+\]", "[]", path)


def _fields(rows: Sequence[Coverage], odd: dict[str, list[str]], within: str, items: int) -> list[FieldReport]:
    known = {row.path: row for row in rows}
    holders = {known_path[:end] for known_path in known for end, sign in enumerate(known_path) if sign in ".["}
    reports = []
    for path, row in known.items():
        if path in holders and row.count == row.nulls + row.empty:
            continue  # an object or list that is null or empty in some items: its fields tell
        inside = path.removeprefix(within)
        of_items = path.startswith(within) and "[]" not in inside and "*" not in inside
        notes = odd.get(inside, [])
        reports.append(
            FieldReport(
                field=path,
                use=row.use,
                note=row.note,
                count=row.count,
                filled=round((row.count - row.nulls - row.empty) / (items if of_items else row.count), 4),
                example=row.example,
                odd=len(notes),
                odd_example=notes[0] if notes else None,
            )
        )
    return reports


def _columns(products: Sequence[Product]) -> list[ColumnReport]:
    columns = []
    for name in Product.__struct_fields__:
        values = [value for product in products if (value := getattr(product, name)) not in (None, "", (), {})]
        distinct = Counter(msgspec.json.encode(value) for value in values)
        share = round(len(values) / len(products), 4) if products else 0.0
        columns.append(ColumnReport(column=name, filled=share, values=len(distinct)))
    return columns


def _name(item: msgspec.Raw) -> str | None:
    """The value of the first key that ends in `name`, for people who look for the item."""
    try:
        content = storable(read_leniently(bytes(item)))
    except (ValueError, RecursionError):
        return None
    for path, value in fields.values(content):
        if path and path[-1].lower().endswith("name") and isinstance(value, str) and value:
            return value[:200]
    return None
