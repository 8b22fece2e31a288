"""Replays one recorded file, and compares every field of every item with a reader of the tests' own."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from menuwatch.archive.files import FileArchive
from menuwatch.config.settings import Settings
from menuwatch.db.pool import Pool
from menuwatch.pipeline.context import HandlerContext, offline_context
from menuwatch.pipeline.replay import replay
from menuwatch.platforms.base import Platform
from menuwatch.platforms.fields import coverage
from menuwatch.platforms.registry import platforms
from tests.recorded import stored
from tests.recorded.plain import read


def recording(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.is_file():
        pytest.skip(f"{name} is not among the recorded answers")
    return path


def replay_context(pool: Pool, archive: Path) -> HandlerContext:
    """What a replay needs: every platform, and no network."""
    return offline_context(pool, FileArchive(archive), platforms(Settings()))


NEW_FIELDS = ("terpenes", "batch", "quantity_sold")
"""Fields of the canonical model that are compared with `normalize` itself, as the catalog may have no columns for them."""


def body_of(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


async def assert_replayed(
    context: HandlerContext,
    platform: Platform,
    path: Path,
    items: Sequence[dict[str, Any]],
    product: Callable[[dict[str, Any]], dict[str, Any]],
    product_id: Callable[[dict[str, Any]], str],
) -> None:
    """The file gives exactly these products, a second time changes nothing, and no field of it is undeclared."""
    (done,) = (await replay(context, None, [path])).menus
    assert (done.warnings, done.refused) == ((), None)
    assert done.counts["new"] == len(items)
    (found,) = (await stored.products(context.pool)).values()
    assert found.keys() == {product_id(item) for item in items}
    for item in items:
        expected = product(item)
        row = found[product_id(item)]
        expected = {name: value for name, value in expected.items() if name in row or name not in NEW_FIELDS}
        assert stored.differences(expected, row) == {}, product_id(item)
    (again,) = (await replay(context, None, [path])).menus
    assert (again.counts["new"], again.counts["changed"], again.counts["unchanged"]) == (0, 0, len(items))
    undeclared = [row.path for row in coverage(platform.fields, [body_of(path)]) if row.use == "undeclared"]
    assert undeclared == []


def assert_new_fields(
    platform: Platform,
    path: Path,
    items: Sequence[dict[str, Any]],
    product: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    """Terpenes, batch and sold packages of every item."""
    made = platform.normalize(platform.split(body_of(path)))
    assert made.warnings == ()
    for one, item in zip(made.products, items, strict=True):
        expected = product(item)
        terpenes = [{"name": row.name, "value": row.value, "unit": row.unit} for row in one.terpenes] or None
        batch = one.batch
        said = (
            None
            if batch is None
            else {name: value for name in batch.__struct_fields__ if (value := getattr(batch, name))}
        )
        assert (terpenes, said, one.quantity_sold) == tuple(expected[name] for name in NEW_FIELDS), one.name
        assert read_back(one.cannabinoids) == expected["cannabinoids"], one.name


def read_back(rows: Sequence[Any]) -> Any:
    return [{"name": row.name, "value": row.value, "unit": row.unit} for row in rows] or None


def listing(path: Path) -> Any:
    return read(body_of(path))
