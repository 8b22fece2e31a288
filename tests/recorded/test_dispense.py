"""The recorded Dispense menu, field by field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from menuwatch.db.pool import Pool
from menuwatch.platforms.dispense.adapter import Dispense
from tests.recorded import dispense
from tests.recorded.replayed import assert_new_fields, assert_replayed, listing, recording, replay_context


@pytest.fixture
def path(recorded: Path) -> Path:
    return recording(recorded, "dispense/indigo_nj_edibles_2025-06-30.json.gz")


@pytest.fixture
def items(path: Path) -> Any:
    found = listing(path)["data"]
    assert len(found) == 100
    return found


async def test_every_field_of_every_product(pool: Pool, tmp_path: Path, path: Path, items: Any) -> None:
    context = replay_context(pool, tmp_path / "storage")
    await assert_replayed(context, Dispense(), path, items, dispense.product, lambda item: item["id"])
    async with pool.connection() as conn:
        cursor = await conn.execute("SELECT platform, platform_dispensary_id, slug FROM dispensaries")
        assert await cursor.fetchall() == [("dispense", "041444e70b831110", "041444e70b831110")]


def test_terpenes_batches_and_sales(path: Path, items: Any) -> None:
    assert_new_fields(Dispense(), path, items, dispense.product)


def test_no_counter_of_sales_is_below_the_next(items: Any) -> None:
    """The reason why quantitySold is the one that is stored."""
    assert all(item["quantitySold"] >= item["totalQuantitySold"] >= item["totalSold"] for item in items)
