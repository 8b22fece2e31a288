"""The recorded menus of New Mexico as a published dataset: every row as the database has it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from menuwatch.analytics.refresh import refresh
from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.db.pool import open_pool
from menuwatch.exports.dataset import DATASET
from menuwatch.ops import publish as publishing
from tests.exports.dataset_reader import HISTORY, Dataset, history_of, lake, normal
from tests.recorded.new_mexico import Market
from tests.recorded.replayed import replay_context


@pytest.mark.slow
async def test_new_mexico(new_mexico: Market, tmp_path: Path) -> None:
    root = tmp_path / "dataset"
    async with open_pool(new_mexico.url) as pool, pool.connection() as conn:
        await refresh(pool)
        archive = replay_context(pool, new_mexico.storage).archive
        expected = {"price_history": await history_of(conn)}
        done = await publishing.publish(
            conn, ParquetPartitions(archive.storage), publishing.open_destination(str(root), None), title="New Mexico",
            licence=None, keep_versions=2, now=datetime.now(UTC),
        )  # fmt: skip
        for table in DATASET[1:]:
            names = ", ".join(column.name for column in table.columns if column.name != "month")
            expected[table.name] = normal(
                await (await conn.execute(f"SELECT {names} FROM analyst.{table.view}")).fetchall()
            )
    dataset = Dataset(root)
    assert done.rows == {name: len(rows) for name, rows in expected.items()}
    assert done.rows["price_history"] > 7_000
    with lake(root) as db:
        for table in DATASET:
            names = ", ".join(column.name for column in table.columns if column.name != "month")
            names = HISTORY if table.name == "price_history" else names
            assert normal(dataset.rows(table.name, names)) == expected[table.name], table.name
            listed = db.execute(f"SELECT {names} FROM lake.{table.name}").fetchall()
            assert normal(listed) == expected[table.name], table.name
