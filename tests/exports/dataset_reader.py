"""Reads a published dataset as its users do, and the database by SQL of its own to compare it with."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from menuwatch.db.pool import Connection
from menuwatch.exports import ducklake
from tests.api.shop import Shop, at, item

MONTH = 24 * 31
"""Hours: the crawl that many later is in the next month."""
Row = tuple[Any, ...]


async def market(shop: Shop, crawls: range = range(8), *, seed: int = 7) -> None:
    """Three stores, one of them in no known state, with 25 products each; a fifth of each menu differs from the crawl before, a tenth
    of it is missing. Two crawls a month; ranges that follow on each other make one market."""
    stores = [
        await shop.store("oak", state="AZ"),
        await shop.store("elm", state="NM"),
        await shop.store("ash"),
    ]
    for crawl in crawls:
        hours = (crawl // 2) * MONTH + crawl % 2
        await shop.execute("SELECT ensure_product_history_partition(%s)", [at(hours)])
        for store in stores:
            await shop.crawl(store, hours, [*_menu(store, crawl, seed)])


def _menu(store: int, crawl: int, seed: int) -> Iterator[dict[str, Any]]:
    for number in range(25):
        times = sum(random.Random(f"{seed} {store} {number} {one}").random() < 0.2 for one in range(1, crawl + 1))
        if random.Random(f"{seed} {store} {number} {crawl} gone").random() < 0.1:
            continue
        options = [("1g", f"{10 + number + times}.50", 5 + times), ("1/8oz", 30 + number, None)][: 1 + number % 2]
        special = [8 + times] if number % 5 == 0 else []
        names = {"brandName": f'Brand "{number % 4}", Inc', "type": ("Flower", "Edible")[number % 2]}
        yield item(f"{store}-{number}", f"Item {number}, é", options=options, special=special, thc=20 + times, **names)


HISTORY = (
    "product_id, seen_from, seen_to, present, dispensary_id, state, position, option, price_rec, price_rec_special, price_med,"
    " price_med_special, stock_status, quantity, quantity_capped, thc_lo, thc_hi, thc_unit, cbd_lo, cbd_hi, cbd_unit"
)
_STATE = "thc_lo, thc_hi, thc_unit, cbd_lo, cbd_hi, cbd_unit"


async def history_of(conn: Connection) -> list[Row]:
    """The columns of HISTORY from the tables; nothing may be packed."""
    cursor = await conn.execute(
        f"SELECT h.product_id, h.seen_from, h.seen_to, h.present, p.dispensary_id, d.state, h.prices::text, h.stock::text,"
        f" h.stock_status, h.quantity, h.quantity_capped, {', '.join('h.' + name for name in _STATE.split(', '))}"
        " FROM product_history h JOIN catalog_products p ON p.id = h.product_id JOIN dispensaries d ON d.id = p.dispensary_id"
    )
    rows: list[Row] = []
    for row in await cursor.fetchall():
        prices, stock = (json.loads(text, parse_float=str, parse_int=str) for text in row[6:8])
        options = [
            (price[0], *price[1:], entry[1], entry[2], entry[3]) for price, entry in zip(prices, stock, strict=True)
        ]
        rows += _expanded(row, options)
    cursor = await conn.execute(
        "SELECT p.id, p.state_from, p.state_seen_to, p.present, p.dispensary_id, d.state, p.variants::text, NULL, p.stock_status,"
        f" p.quantity, p.quantity_capped, {', '.join('p.' + name for name in _STATE.split(', '))}"
        " FROM catalog_products p JOIN dispensaries d ON d.id = p.dispensary_id"
    )
    names = ("option", "price_rec", "special_rec", "price_med", "special_med")
    for row in await cursor.fetchall():
        options = [
            (*(variant.get(name) for name in names), variant.get("stock_status") or "unknown", variant.get("quantity"),
             variant.get("capped") or False)
            for variant in json.loads(row[6], parse_float=str, parse_int=str)
        ]  # fmt: skip
        rows += _expanded(row, options)
    return normal(rows)


def _expanded(row: Row, options: list[Any]) -> Iterator[Row]:
    whole = (None, None, None, None, None, *row[8:11])
    for position, option in enumerate(options, 1) if options else [(0, whole)]:
        yield (*row[:6], position, *option, *row[11:])


def normal(rows: list[Row]) -> list[Row]:
    """Comparable and sorted: numbers without trailing zeros, times in UTC, JSON without spaces."""
    return sorted((tuple(_normal(value) for value in row) for row in rows), key=repr)


def _normal(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (dict, list)):
        return json.dumps(value, sort_keys=True)
    text = str(value)
    if text[:1] in "[{":
        return json.dumps(json.loads(text), sort_keys=True)
    try:
        return f"{round(float(text), 6):.6f}"
    except ValueError:
        return text


class Dataset:
    """One version, as its manifest says at the time."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.package: dict[str, Any] = json.loads((root / "datapackage.json").read_bytes())

    @property
    def version(self) -> int:
        return int(self.package["menuwatch"]["version"])

    def files(self, table: str) -> list[str]:
        (resource,) = [one for one in self.package["resources"] if one["name"] == table]
        path = resource["path"]
        return [path] if isinstance(path, str) else list(path)

    def everything(self) -> dict[str, list[str]]:
        return {one["name"]: self.files(one["name"]) for one in self.package["resources"]}

    def rows(self, table: str, columns: str = "*") -> list[Row]:
        """From the Parquet files."""
        paths = [str(self.root / path) for path in self.files(table)]
        with duckdb.connect() as db:
            return db.execute(f"SELECT {columns} FROM read_parquet(?)", [paths]).fetchall()

    def check(self) -> None:
        """Every file is there and is what the manifest says."""
        for resource in self.package["resources"]:
            for file in resource["files"]:
                data = (self.root / file["path"]).read_bytes()
                assert (len(data), f"sha256:{hashlib.sha256(data).hexdigest()}") == (file["bytes"], file["hash"])


@contextmanager
def lake(root: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The catalogue, attached as `lake`."""
    with ducklake.connect() as db:
        where = f"READ_ONLY, DATA_PATH '{root}/', OVERRIDE_DATA_PATH true"
        db.execute(f"ATTACH 'ducklake:{root}/catalog.ducklake' AS lake ({where})")
        yield db
