"""The recorded Joint menu, field by field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from menuwatch.db.pool import Pool
from menuwatch.platforms.joint.adapter import Joint
from tests.recorded import joint
from tests.recorded.replayed import assert_new_fields, assert_replayed, body_of, listing, recording, replay_context


@pytest.fixture
def path(recorded: Path) -> Path:
    return recording(recorded, "jointcommerce/shopcuzzies_nj_2025-06-30.json.gz")


@pytest.fixture
def items(path: Path) -> Any:
    found = [hit["_source"] for hit in listing(path)["hits"]["hits"]]
    assert len(found) == 114
    return found


async def test_every_field_of_every_product(pool: Pool, tmp_path: Path, path: Path, items: Any) -> None:
    context = replay_context(pool, tmp_path / "storage")
    await assert_replayed(context, Joint(), path, items, joint.product, lambda item: str(item["jointId"]))
    async with pool.connection() as conn:
        cursor = await conn.execute(
            "SELECT platform, platform_dispensary_id, is_recreational, crawl_enabled FROM dispensaries"
        )
        assert await cursor.fetchall() == [("joint", "5731", True, False)]


def test_terpenes_and_cannabinoids(path: Path, items: Any) -> None:
    assert_new_fields(Joint(), path, items, joint.product)


def test_capped_quantities(path: Path, items: Any) -> None:
    """The README: 31 of 114."""
    made = Joint().normalize(Joint().split(body_of(path))).products
    assert sum(product.quantity_capped for product in made) == 31
