"""The Jupyter files of docs/notebooks, run against a server and its database, with figures that are worked out here."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from menuwatch.accounts import sql_roles
from menuwatch.analytics.refresh import refresh
from menuwatch.matching.engine import match_all
from menuwatch.matching.locations.engine import match_locations
from tests.api.shop import START, Shop, at, item
from tests.clients.conftest import Address
from tests.conftest import unique

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
FILES = sorted(FOLDER.glob("*.ipynb"))

STORES = {
    "mesa": {"state": "NM", "address": "12 Main St", "city": "Albuquerque", "latitude": 35.08, "longitude": -106.65},
    "piñon": {"state": "NM", "address": "4 Canyon Rd", "city": "Santa Fe", "latitude": 35.69, "longitude": -105.94},
    "aspen": {"state": "CO", "address": "9 Elm Ave", "city": "Denver", "latitude": 39.74, "longitude": -104.99},
    "cedar": {"state": "CO", "address": "70 Oak Blvd", "city": "Pueblo", "latitude": 38.25, "longitude": -104.61},
}  # fmt: skip
NAMES = ("Blue Dream", "Sour Diesel", "Gelato", "Wedding Cake")
FLOWER = {"NM": (20, 30, 40, 50), "CO": (16, 24, 36, 44)}
"""Prices of 3.5 g on the first day."""
FACTORS = {"NM": (1.0, 1.1, 0.9, 0.9), "CO": (1.0, 1.0, 1.0, 1.0)}
"""By day, of the price of the first day."""
HASH = {"NM": 18, "CO": 14}
"""Price of 1 g of concentrate, always the same. Only the first store of each state has it, of the brand Bud."""


@pytest.fixture
async def market(shop: Shop) -> Shop:
    """Four days of four stores, matched, with reports."""
    ids = {name: await shop.store(name, **place) for name, place in STORES.items()}
    for day in range(4):
        for name, place in STORES.items():
            state = str(place["state"])
            menu = [
                item(f"f{n}", NAMES[n], options=[("1/8oz", round(price * FACTORS[state][day], 2), 5)])
                for n, price in enumerate(FLOWER[state])
            ]
            if name in ("mesa", "aspen"):
                menu.append(
                    item("h", "Ice Hash", options=[("1g", HASH[state], 5)], type="Concentrate", brandName="Bud")
                )
            await shop.crawl(ids[name], 24 * day, menu)
    await match_locations(shop.pool)
    await match_all(shop.pool)
    await refresh(shop.pool, now=START + timedelta(days=4))
    return shop


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's files are those of one test."""
    for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR", "MPLCONFIGDIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")


async def _run(path: Path, names: dict[str, str], environment: dict[str, str]) -> tuple[dict[str, Any], int]:
    """The values of these expressions after the file ran, and how many charts it showed."""
    document = nbformat.read(path, as_version=4)
    values = ", ".join(f"{name!r}: {expression}" for name, expression in names.items())
    document.cells.append(nbformat.v4.new_code_cell(f"import json\nprint(json.dumps({{{values}}}))"))
    client = NotebookClient(document, timeout=120, kernel_name="python3")
    await client.async_execute(env=os.environ | environment)
    charts = sum("image/png" in output.get("data", {}) for cell in document.cells for output in cell.get("outputs", []))
    return json.loads(document.cells[-1].outputs[0].text), charts


async def _add_other_changes(market: Shop) -> None:
    """Products whose prices changed more often than any that the file may read: in another state, and before the 30 days."""
    other, earlier = await market.store("birch", state="CO"), await market.store("juniper", state="NM")
    for n in range(6):
        for store, first_hour in ((other, 24), (earlier, -24 * 45)):
            hours = first_hour + n
            await market.execute("SELECT ensure_product_history_partition(%s)", [at(hours)])
            await market.crawl(store, hours, [item("f0", "Blue Dream", options=[("1/8oz", 20 + n, 5)])])


@pytest.mark.slow
async def test_prices_through_the_client(market: Shop, address: Address) -> None:
    await _add_other_changes(market)
    found, charts = await _run(
        FOLDER / "prices.ipynb",
        {
            "median": "price_per_gram.to_dict()",
            "stores": "report.set_index(['state', 'category']).stores.unstack().to_dict()",
            "product": "[product.name, product.store]",
            "history": "[[at.isoformat(), price] for at, price in history.items()]",
            "changes": "len(changes)",
        },
        {"MENUWATCH_URL": address.url, "MENUWATCH_TOKEN": address.token},
    )
    for state, prices in FLOWER.items():
        # Two stores with the same prices: the median is that of one.
        wanted = median(price * FACTORS[state][-1] / 3.5 for price in prices)
        assert found["median"][state]["flower"] == pytest.approx(wanted, abs=0.01)
        assert found["median"][state]["concentrate"] == pytest.approx(HASH[state], abs=0.01)
    assert found["stores"] == {"flower": {"NM": 2, "CO": 2}, "concentrate": {"NM": 1, "CO": 1}}
    assert found["product"] == ["Blue Dream", "Mesa"]
    # Days three and four have the same price: one period.
    assert found["history"] == [
        ["2026-03-01T12:00:00+00:00", 20.0],
        ["2026-03-02T12:00:00+00:00", 22.0],
        ["2026-03-03T12:00:00+00:00", 18.0],
    ]
    # Two changes of four products at two stores: nothing else was read.
    assert found["changes"] == 16
    assert charts == 2


@pytest.mark.slow
async def test_the_market_through_sql(market: Shop, database_url: str) -> None:
    name = unique("analyst").replace("-", "_")
    async with market.pool.connection() as conn, conn.transaction():
        password = await sql_roles.put_sql_role(conn, name)
    try:
        found, charts = await _run(
            FOLDER / "market.ipynb",
            {"shares": "shares.to_dict()", "index": "{state: list(index[state]) for state in index}"},
            {"MENUWATCH_SQL_URL": sql_roles.connection_url(database_url, name, password)},
        )
    finally:
        async with market.pool.connection() as conn, conn.transaction():
            await sql_roles.remove_sql_role(conn, name)
    assert found["shares"] == {state: {"Acme": 1.0, "Bud": 0.5} for state in ("NM", "CO")}
    # Every item moved by the same factor, so their geometric mean did.
    assert set(found["index"]) == {"NM", "CO"}
    assert found["index"]["NM"] == pytest.approx([100.0, 110.0, 90.0, 90.0], abs=0.05)
    assert found["index"]["CO"] == pytest.approx([100.0] * 4)
    assert charts == 2


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_are_small_and_without_outputs(path: Path) -> None:
    assert path.stat().st_size < 20_000
    document = nbformat.read(path, as_version=4)
    nbformat.validate(document)
    for cell in document.cells:
        if cell.cell_type == "code":
            assert (cell.outputs, cell.execution_count) == ([], None)


def test_there_are_two() -> None:
    assert [path.name for path in FILES] == ["market.ipynb", "prices.ipynb"]
