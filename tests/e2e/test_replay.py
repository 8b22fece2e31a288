"""`menuwatch replay` as a person runs it: exit codes, one-line refusals, and the recorded real answers."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.commands import menuwatch
from tests.e2e.recordings import NOW, archived, page, product


@dataclass
class Command:
    """`menuwatch replay` as a person runs it."""

    database_url: str
    home: Path

    def run(self, *args: object) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "DATABASE_URL": self.database_url, "MENUWATCH_HOME": str(self.home)}
        return menuwatch("replay", *map(str, args), env=env)

    def report(self, *args: object) -> dict[str, Any]:
        run = self.run(*args, "--json")
        assert run.returncode == 0, run.stderr
        return dict(json.loads(run.stdout))

    def refused(self, *args: object) -> str:
        """The one line that says why."""
        run = self.run(*args)
        assert (run.returncode, run.stdout) == (2, "")
        (line,) = run.stderr.splitlines()
        return line


@pytest.fixture
def command(database_url: str, tmp_path: Path) -> Command:
    return Command(database_url, tmp_path / "home")


@pytest.mark.parametrize(
    ("name", "products", "part"),
    [
        ("pa_filteredProducts_page_2025-11-09.json", 25, "25 of 814 products"),
        ("on_filteredProducts_last_page_2023-11-29.json", 38, "38 of 138 products"),
    ],
)
def test_a_recorded_page(command: Command, recorded: Path, tmp_path: Path, name: str, products: int, part: str) -> None:
    file = recorded / "dutchie" / name
    first = command.report(file)
    assert {key: first[key] for key in ("products", "new", "changed", "unchanged", "missing")} == {
        "products": products, "new": products, "changed": 0, "unchanged": 0, "missing": 0,
    }  # fmt: skip
    assert first["in_stock"] + first["out_of_stock"] + first["unknown_stock"] == products
    assert [store["part"] for store in first["stores"]] == [part]
    packed = tmp_path / "again.json.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    for again in (command.report(file), command.report(packed)):
        assert (again["products"], again["new"], again["changed"], again["unchanged"]) == (products, 0, 0, products)
        assert [(s["payload_id"], s["already_applied"]) for s in again["stores"]] == [
            (first["stores"][0]["payload_id"], True)
        ]


def test_what_is_no_menu_is_refused_in_one_line(command: Command, recorded: Path, tmp_path: Path) -> None:
    truncated = recorded / "dutchie" / "on_truncated_body_2023-11-30.txt"
    assert command.refused(truncated).endswith("truncated: the response was truncated after 8,694 bytes")
    html = tmp_path / "block.json"
    html.write_text("<html><title>Just a moment...</title></html>")
    assert f"{html}: html: " in command.refused(html)
    empty = tmp_path / "empty.json"
    empty.write_bytes(b"")
    assert command.refused(empty).endswith(f"{empty}: the file is empty")
    assert command.refused(tmp_path / "none.json").endswith("no such file")
    assert command.refused(tmp_path).endswith("is a folder; name the files in it")
    cut = tmp_path / "cut.json.gz"
    cut.write_bytes(gzip.compress(page([product(1)]))[:-9])
    assert f"{cut}: cannot be read" in command.refused(cut)
    nameless = tmp_path / "nameless.json"
    nameless.write_bytes(page([product(1, store=None)]))
    assert command.refused(nameless).endswith("does not identify its store: pass --store")


def test_an_old_archive_file_exits_with_1_and_says_why(command: Command, tmp_path: Path) -> None:
    new, old = tmp_path / "new.json", tmp_path / "old.json"
    new.write_bytes(page([product(1)]))
    old.write_bytes(archived(NOW, page([product(1, price=9)])))
    command.report(new)
    run = command.run(old)
    assert run.returncode == 1
    assert (
        "not applied: superseded: the catalog shows a newer crawl of the store than the one of 2026-03-01 12:00:00 UTC"
        in run.stderr
    )


def test_every_dropped_item_is_named_with_its_position(command: Command, tmp_path: Path) -> None:
    items = [product(number) for number in range(400)]
    for number in range(60):
        items[5 * number] = product(5 * number, Name=f"Thing  {5 * number}", Prices=["dear"], recPrices=["dear"])
    items[399] = {"Name": "Nobody's", "DispensaryID": items[1]["DispensaryID"]}
    file = tmp_path / "menu.json"
    file.write_bytes(page(items))
    run = command.run(file)
    assert run.returncode == 0, run.stderr
    assert "61 warnings, 61 items dropped:" in run.stdout
    lines = [line for line in run.stdout.splitlines() if line.startswith("  dropped: ")]
    assert len(lines) == 61
    assert any(line.startswith('  dropped: item 11 "Thing 10" (') for line in lines)
    assert any(line.startswith('  dropped: item 400 "Nobody\'s" (no id): id: ') for line in lines)
    again = command.report(file)
    assert (again["dropped"], again["warning_count"], again["unchanged"]) == (61, 61, 339)
    assert {one["position"] for one in again["warnings"]} == {5 * number + 1 for number in range(60)} | {400}
    assert {one["payload_id"] for one in again["warnings"]} == {again["stores"][0]["payload_id"]}


def test_menus_without_a_time_are_counted_in_a_note(command: Command, tmp_path: Path) -> None:
    """Two raw menus count as crawled now; an archive file keeps its time, and what is imported again the one that it got."""
    files = [tmp_path / "a.json", tmp_path / "b.json", tmp_path / "dated.json"]
    files[0].write_bytes(page([product(1, store="a" * 24)]))
    files[1].write_bytes(page([product(1, store="b" * 24)]))
    files[2].write_bytes(archived(NOW, page([product(1)])))
    first = command.run(*files)
    assert first.returncode == 0, first.stderr
    assert (
        "menuwatch: 2 menus without a crawl time: imported as crawled now (archived payloads keep their own time)"
        in first.stderr
    )
    again = command.run(*files)
    assert (again.returncode, "crawled now" in again.stderr) == (0, False)
    files[0].write_bytes(page([product(1, price=9, store="a" * 24)]))
    assert command.report(*files)["undated"] == 1


def test_an_empty_menu_among_others_is_skipped(command: Command, tmp_path: Path) -> None:
    empty, other = tmp_path / "empty.json", tmp_path / "menu.json"
    empty.write_bytes(page([]))
    other.write_bytes(page([product(1)]))
    run = command.run(empty, other)
    assert run.returncode == 0, run.stderr
    assert f"{empty}: skipped: the menu has no products" in run.stderr
    assert "1 product at" in run.stdout
    report = command.report(empty, other)
    assert [(one["file"], one["empty"]) for one in report["left_out"]] == [(str(empty), True)]
    assert "empty: the menu has no products" in command.refused(empty)
    assert "empty: the menu has no products" in command.refused(empty, empty)
