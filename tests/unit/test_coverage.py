"""What adapters declare of fields: complete for everything recorded, and true of what their decoders read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from menuwatch.pipeline import recorded_files as files
from menuwatch.platforms.base import Platform
from menuwatch.platforms.dovetail import payload as dovetail
from menuwatch.platforms.dovetail.adapter import Dovetail
from menuwatch.platforms.dutchie import payload as dutchie
from menuwatch.platforms.dutchie.adapter import Dutchie
from menuwatch.platforms.dutchie_plus import payload as plus
from menuwatch.platforms.dutchie_plus.adapter import DutchiePlus
from menuwatch.platforms.fields import Table, coverage, declare, steps, values, written
from menuwatch.platforms.weedmaps import payload as weedmaps
from menuwatch.platforms.weedmaps.adapter import Weedmaps
from menuwatch.platforms.weedmaps.live_payload import LiveItem
from tests.commands import menuwatch
from tests.e2e.recordings import page, product

PLATFORMS: dict[str, Platform] = {one.name: one for one in (Dutchie(), Weedmaps(), DutchiePlus(), Dovetail())}
RECORDED = [
    ("dutchie/pa_filteredProducts_page_2025-11-09.json", "dutchie"),
    ("dutchie/on_filteredProducts_last_page_2023-11-29.json", "dutchie"),
    ("weedmaps/nm_menus_2024-05.tar.gz", "weedmaps"),
    ("weedmaps/ca_discovery_v1_menu_2021.json", "weedmaps"),
    ("dutchie_plus/mpxnj_products_list_2025-06-25.json", "dutchie_plus"),
    ("dovetail/cookies_tampa_premium_flower_2026-01-20.json", "dovetail"),
]


@pytest.mark.parametrize(("name", "platform"), RECORDED)
def test_every_recorded_field_is_declared(recorded: Path, name: str, platform: str) -> None:
    path = recorded / name
    if not path.is_file():
        pytest.skip(f"{name} is not among the recorded answers")
    found = files.collect(PLATFORMS, None, [path], store=None, anonymous=True)
    assert {menu.platform.name for menu in found.menus} == {platform}
    rows = coverage(PLATFORMS[platform].fields, [page for menu in found.menus for page in menu.pages])
    assert [row.path for row in rows if row.use == "undeclared"] == []
    assert {row.use for row in rows} == {"used", "kept", "ignored"}
    assert all(row.note for row in rows)


def test_every_field_of_2548_real_products_is_declared(recorded: Path) -> None:
    """The statistics name their paths without brackets."""
    path = recorded / "dutchie" / "dutchie_2548_products_fields.tsv"
    if not path.is_file():
        pytest.skip("the statistics are not among the recorded answers")
    prefix = "data.filteredProducts.products[]."
    table = Table(
        msgspec.structs.replace(field, path=field.path.removeprefix(prefix).replace("[]", ""))
        for field in Dutchie.fields
        if field.path.startswith(prefix)
    )
    names = [line.split("\t")[0] for line in path.read_text().splitlines()[1:]]
    assert len(names) > 300
    assert [name for name in names if table.find(steps(name), holds_nothing=True) is None] == []


def read_by(kind: Any, path: str) -> Iterator[str]:
    """The paths that a decoder reads."""
    if isinstance(kind, msgspec.inspect.UnionType):
        for one in kind.types:
            yield from read_by(one, path)
    elif isinstance(kind, msgspec.inspect.StructType):
        for field in kind.fields:
            yield from read_by(field.type, f"{path}.{field.encode_name}")
    elif isinstance(kind, msgspec.inspect.ListType):
        yield from read_by(kind.item_type, f"{path}[]")
    elif isinstance(kind, msgspec.inspect.DictType):
        yield from read_by(kind.value_type, f"{path}.*")
    elif not isinstance(kind, msgspec.inspect.NoneType):
        yield path


@pytest.mark.parametrize(
    ("platform", "item", "prefix"),
    [
        (Dutchie, dutchie.Item, "data.filteredProducts.products[]"),
        (Weedmaps, LiveItem, "data.menu_items[]"),
        (DutchiePlus, plus.Item, "data.products_list[]"),
        (Dovetail, dovetail.Item, "products.results[]"),
    ],
)
def test_what_is_read_is_what_is_declared_as_used_or_kept(platform: Any, item: type, prefix: str) -> None:
    said = {field.path for field in platform.fields if field.use != "ignored" and field.path.startswith(f"{prefix}.")}
    # Logos are read apart from the products (`product_refresh.brand_logos`); a value of any shape may have parts.
    said = {path.removesuffix(".**") for path in said} - {f"{prefix}.brand.imageUrl"}
    assert said == set(read_by(msgspec.inspect.type_info(item), prefix))


def test_what_is_read_of_recorded_weedmaps_items_is_declared() -> None:
    """Their type also has the fields of live items, which have a path of their own."""
    paths = set(read_by(msgspec.inspect.type_info(weedmaps.Item), "data[]"))
    live = set(read_by(msgspec.inspect.type_info(LiveItem), "data[]")) - {"data[].id"}
    said = {field.path for field in Weedmaps.fields if field.use != "ignored" and field.path.startswith("data[].")}
    assert said == paths - live


def test_counts_nulls_and_what_is_empty() -> None:
    fields = declare(
        "", used={"a[].x": "x"}, kept={"a[].y": "y"}, ignored={"a[].more.**": "who cares", "a[].by.*": "by"}
    )
    document = {
        "a": [{"x": 1, "y": "", "more": {"p": 1, "q": [2]}}, {"x": None, "y": "w", "by": {"m": 1, "n": 2}}],
        "z": {},
    }
    rows = coverage(fields, [json.dumps(document).encode(), b'\xef\xbb\xbf{"a": [{"x": 1e400, "y": "\\ud83d"}]}'])
    assert [(row.path, row.use, row.count, row.nulls, row.empty, row.example) for row in rows] == [
        ("a[].x", "used", 3, 1, 0, "1"),
        ("a[].y", "kept", 3, 0, 1, "w"),
        ("a[].more.**", "ignored", 2, 0, 0, "1"),
        ("a[].by.*", "ignored", 2, 0, 0, "1"),
        ("z", "undeclared", 1, 0, 1, None),
    ]


def test_the_most_specific_declaration_counts() -> None:
    table = Table(declare("", used={"a.b.c": "c"}, kept={"a.*.c": "any"}, ignored={"a.**": "rest", "d[].e": "e"}))
    uses = {path: (field.use if (field := table.find(steps(path), holds_nothing=True)) else None) for path in
            ("a.b.c", "a.x.c", "a.x.d", "a.b", "d[].e", "d", "d[]", "e", "d.e")}  # fmt: skip
    assert uses == {
        "a.b.c": "used", "a.x.c": "kept", "a.x.d": "ignored", "a.b": "ignored",
        "d[].e": "ignored", "d": "ignored", "d[]": "ignored", "e": None, "d.e": None,
    }  # fmt: skip
    assert table.find(steps("d")) is None, "a text where there is a list elsewhere"


def test_paths_are_written_as_they_are_declared() -> None:
    document = {"a": [{"b": [1, 2], "c": {"d": None}}], "e": []}
    assert [written(path) for path, _ in values(document)] == ["a[].b[]", "a[].b[]", "a[].c.d", "e"]
    assert steps("a[].c.d") == ("a", "[]", "c", "d")


def test_the_command_tells_of_a_field_that_nobody_declared(tmp_path: Path) -> None:
    file = tmp_path / "menu.json"
    file.write_bytes(page([product(1, newField={"deep": [1]})]))
    env = {**os.environ, "MENUWATCH_HOME": str(tmp_path / "home")}
    env.pop("DATABASE_URL", None)
    run = menuwatch("coverage", str(file), "--json", env=env)
    assert run.returncode == 1, run.stderr
    rows = {row["path"]: row for row in json.loads(run.stdout)}
    assert rows["data.filteredProducts.products[].newField.deep[]"]["use"] == "undeclared"
    assert rows["data.filteredProducts.products[].Name"] == {
        "platform": "dutchie", "path": "data.filteredProducts.products[].Name", "use": "used",
        "note": "name_raw, name", "count": 1, "nulls": 0, "empty": 0, "example": "Thing 1",
    }  # fmt: skip
    assert "1 undeclared" in run.stderr
    assert not (tmp_path / "home").exists(), "nothing is stored, no database is started"
