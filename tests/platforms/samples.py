"""A sample of every platform for the conformance checks: menus of the simulator, and recorded ones.

Both are found by the name of the platform. A platform that has neither has a function of its own in `OWN`, which gives its sample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import msgspec
import pytest

from menuwatch.config.settings import Settings
from menuwatch.core.errors import BadPayload
from menuwatch.pipeline.recording_reader import read_file
from menuwatch.platforms.base import Platform
from menuwatch.platforms.conformance import Sample
from menuwatch.platforms.registry import platforms
from menuwatch.sim.local_session import simulated_platforms
from tests.platforms.simulated import Simulated

RECORDED = Path(__file__).resolve().parents[3] / "shared" / "data"
MAX_ITEMS = 3000

TOTALS = {
    "dutchie": "data.filteredProducts.queryInfo.totalCount",
    "weedmaps": "meta.total_menu_items",
    "dutchie_plus": "data.products_count",
    "dispense": "count",
    "dovetail": "total",
    "jane": "nbHits",
    "joint": "hits.total",
    "sweed": "total",
}
"""Where a page has the number of products of the whole menu; platforms that are not listed have none, or in no single field."""

RECORDED_TOTALS = {"weedmaps": "meta.total"}
"""The same in recorded pages, where they have it elsewhere."""

PAGES = {"dutchie": "data.filteredProducts.queryInfo.totalPages", "dovetail": "pages", "jane": "nbPages"}
"""Where a page has the number of pages."""

FOLDERS = {"joint": "jointcommerce"}
"""Folders of recorded answers with another name than the platform."""


UNUSABLE = {"sweed": frozenset({"204934"})}
"""Ids of recorded items that are no products: one of Sweed's has an empty name."""


def simulated_sample(adapter: Platform, pages: Sequence[bytes]) -> Sample:
    """The sample of pages that the simulator served."""
    if adapter.name == "dovetail":
        # Answers without the address that they are archived with: items of a page then are as the shop gives them.
        pages = [msgspec.json.encode(msgspec.json.decode(page)["products"]) for page in pages]
    return replace(_sample(adapter, pages), items=SHAPES.get(adapter.name, ""))


SHAPES = {"weedmaps": "data.menu_items"}
"""Paths of the items where the simulator serves another shape than the recorded one: Weedmaps that of today's API."""

OWN: dict[str, Callable[[Platform], Sample]] = {}
"""Samples of platforms that have neither a simulator nor recordings."""


@lru_cache(maxsize=1)
def adapters() -> dict[str, Platform]:
    """Every adapter, as it reads recorded answers."""
    return platforms(Settings())


@lru_cache(maxsize=32)
def sample_of(name: str, source: str) -> Sample:
    """The sample of a platform; `source` is `simulator` or `recordings`. Skips the test where there are no recordings."""
    adapter = adapters()[name]
    if source == "simulator" and name in OWN:
        return OWN[name](adapter)
    if source == "simulator" and name in simulated_platforms():
        return simulated_sample(adapter, Simulated(name).menu().pages)
    pages = _recorded(adapter)
    if source == "recordings" and not pages:
        pytest.skip(f"no recorded menus of {name}")
    if source == "simulator" and not pages and RECORDED.is_dir():
        pytest.fail(
            f"platform {name} has no sample: add src/menuwatch/sim/platforms/{name}.py, or a function to OWN in "
            "tests/platforms/samples.py that gives a Sample"
        )
    if not pages:
        pytest.skip(f"{name} is not simulated, and there are no recordings")
    return replace(_sample(adapter, pages), total=(TOTALS | RECORDED_TOTALS).get(name, ""))


def _sample(adapter: Platform, pages: Sequence[bytes]) -> Sample:
    return Sample(
        adapter=adapter,
        pages=pages,
        total=TOTALS.get(adapter.name, ""),
        total_pages=PAGES.get(adapter.name, ""),
        unusable=UNUSABLE.get(adapter.name, frozenset()),
    )


def _recorded(adapter: Platform) -> list[bytes]:
    """Pages of recorded menus that the adapter reads."""
    pages: list[bytes] = []
    count = 0
    for path in sorted((RECORDED / FOLDERS.get(adapter.name, adapter.name)).glob("*")):
        if path.suffix not in (".json", ".gz", ".tar") or path.stat().st_size > 30_000_000:
            continue
        for _, body in read_file(path):
            if not isinstance(body, bytes):
                continue
            try:
                count += len(adapter.split(body))
            except BadPayload:
                continue
            pages.append(body)
            if count > MAX_ITEMS:
                return pages
    return pages
