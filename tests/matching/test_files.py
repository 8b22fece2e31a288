"""Listings of a file: groups, sizes, and what is refused."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from menuwatch.core.errors import InvalidField
from menuwatch.matching.files import group_listings, read_listings, write_groups
from tests.recorded import matching_truth as truth


def groups_of(tmp_path: Path, *rows: dict[str, Any]) -> list[int]:
    file = tmp_path / "listings.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [one.group_id for one in group_listings(read_listings(file))]


def row(number: int, name: str, **more: Any) -> dict[str, Any]:
    return {"id": number, "store": f"store {number}", "name": name, "brand": "Acme", **more}


def test_one_item_listed_thirty_times_is_one_group(tmp_path: Path) -> None:
    assert set(groups_of(tmp_path, *(row(n, "Blue Dream 3.5g", store="s") for n in range(30)))) == {1}


def test_nothing_is_merged_on_emptiness(tmp_path: Path) -> None:
    rows = [
        row(n, name, brand=brand)
        for n, (name, brand) in enumerate(
            [("", None), ("🔥", None), ("", ""), ("3.5g", None), ("Blue Dream", "N/A"), ("Blue Dream", None)]
        )
    ]
    assert len(set(groups_of(tmp_path, *rows))) == len(rows)


def test_packages_are_groups_and_sizes_of_flower_are_not(tmp_path: Path) -> None:
    carts = [row(1, "Blue Dream Cart 1g"), row(2, "Blue Dream Cart 500mg"), row(3, "Acme Blue Dream Cart | 1g")]
    assert groups_of(tmp_path, *carts) == [1, 2, 1]
    flower = [row(n, f"Blue Dream {size}", category="flower") for n, size in enumerate(("3.5g", "7g"))]
    assert groups_of(tmp_path, *flower) == [1, 1]


def test_a_size_that_contradicts_the_name_gives_way(tmp_path: Path) -> None:
    rows = [
        row(1, "Blue Dream Cart 1g", size="1/2 g"),
        row(2, "Blue Dream Cart 1g"),
        row(3, "Blue Dream Cart", size=0.5),
    ]
    assert groups_of(tmp_path, *rows)[:2] == [1, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"id": 1}', "line 1 is not a listing"),
        ("not json", "line 1 is not a listing"),
        ('{"id": 1, "name": "x"}\n{"id": "1", "name": "y"}', "line 2 has the id '1' of line 1"),
        ("\n\n", "has no listing"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text(text)
    with pytest.raises(InvalidField, match=message):
        read_listings(file)


def test_a_damaged_gzip_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "cut.jsonl.gz"
    file.write_bytes(gzip.compress(b'{"id": 1, "name": "x"}\n' * 100)[:30])
    with pytest.raises(InvalidField, match="damaged"):
        read_listings(file)


def test_the_result_is_a_table_in_the_order_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "listings.jsonl.gz"
    file.write_bytes(
        gzip.compress(
            b'{"id": "b", "name": "Blue Dream", "brand": "Acme"}\n{"id": "a", "name": "Sour Diesel", "brand": "Acme"}\n'
        )
    )
    out = tmp_path / "groups.csv"
    write_groups(out, group_listings(read_listings(file)))
    with out.open(newline="") as table:
        assert list(csv.reader(table)) == [
            ["listing_id", "group_id", "confidence"],
            ["b", "1", "1.0"],
            ["a", "2", "1.0"],
        ]


@pytest.mark.skipif(not (truth.DATA / "matching").is_dir(), reason="recorded menus are not here")
def test_recorded_pairs_are_judged_as_labelled() -> None:
    found = truth.pennsylvania()
    groups = {one.listing_id: one.group_id for one in group_listings(found.listings)}
    pairs = truth.between_sellers(found)
    total = truth.score(pairs, groups)
    assert (total.precision or 0) >= 0.98
    assert (total.recall or 0) >= 0.95
