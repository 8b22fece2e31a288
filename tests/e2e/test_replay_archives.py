"""Archives of recorded answers of several menus and platforms; what cannot be used is named and the others go on."""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from menuwatch.core.errors import Refused
from menuwatch.pipeline import recorded_files as recorded
from menuwatch.pipeline import recording_reader as reader
from tests.e2e.recordings import NOW, SHOP, archived, page, product
from tests.e2e.test_replay import Command
from tests.unit.test_coverage import PLATFORMS
from tests.unit.test_weedmaps import item
from tests.unit.test_weedmaps import page as weedmaps_page

SHOP_B = "5f00000000000000000000bb"


@pytest.fixture
def command(database_url: str, tmp_path: Path) -> Command:
    return Command(database_url, tmp_path / "home")


def tar(path: Path, members: dict[str, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:
        folder = tarfile.TarInfo("menus/")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, body in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(body)
            archive.addfile(info, io.BytesIO(body))
    return path


MENUS = {
    "menus/a.json": page([product(n) for n in range(3)]),
    "menus/b.json.gz": gzip.compress(page([product(n, store=SHOP_B) for n in range(2)])),
    "menus/c.json": weedmaps_page([item(n) for n in range(1, 5)]),
    "menus/again.json": weedmaps_page([item(n) for n in range(1, 5)]),
    "menus/archived.json": archived(
        NOW, page([product(9, store="5f00000000000000000000cc")]), store="5f00000000000000000000cc"
    ),
}


@pytest.mark.parametrize(("name", "mode"), [("menus.tar", "w"), ("menus.tar.gz", "w:gz"), ("menus.anything", "w:gz")])
def test_all_menus_of_an_archive(command: Command, tmp_path: Path, name: str, mode: str) -> None:
    path = tar(tmp_path / name, MENUS, mode)
    first = command.report(path)
    assert {key: first[key] for key in ("products", "new", "files", "menus", "repeated_files", "left_out")} == {
        "products": 10, "new": 10, "files": 5, "menus": 4, "repeated_files": 1, "left_out": [],
    }  # fmt: skip
    assert {(store["platform"], store["slug"]) for store in first["stores"]} == {
        ("dutchie", SHOP), ("dutchie", SHOP_B), ("dutchie", "5f00000000000000000000cc"), ("weedmaps", "a-shop"),
    }  # fmt: skip
    again = command.report(path)
    assert (again["products"], again["unchanged"], again["new"]) == (10, 10, 0)


def test_several_menus_of_one_store_are_counted_once(command: Command, tmp_path: Path) -> None:
    paths = []
    for day, count in enumerate((3, 3, 4)):
        paths.append(tmp_path / f"{day}.json")
        paths[-1].write_bytes(archived(NOW - timedelta(days=5 - day), page([product(n) for n in range(count)])))
    run = command.run(*paths)
    assert run.returncode == 0, run.stderr
    lines = [" ".join(line.split()) for line in run.stdout.splitlines()]
    assert lines == [
        f"4 products at {SHOP}, from 3 menus",
        "over all menus", "new 4", "changed 0", "unchanged 6", "missing 0",
        "after the last one", "in stock 4", "out of stock 0", "unknown stock 0",
    ]  # fmt: skip


@pytest.mark.parametrize("layout", [{}, {"indent": 2}, {"separators": (",", ":")}, {"sort_keys": True}])
def test_an_archive_file_is_known_whatever_its_layout(tmp_path: Path, layout: dict[str, Any]) -> None:
    path = tmp_path / "menu.json"
    path.write_text(json.dumps(json.loads(archived(NOW, page([product(1), product(2)]))), **layout))
    (menu,) = recorded.collect(PLATFORMS, None, [path], store=None).menus
    assert (menu.store, menu.fetched_at, menu.product_count) == (SHOP, NOW, 2)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(Refused):
        recorded.collect(PLATFORMS, None, [path], store=None)


@pytest.mark.parametrize(
    "at", ["0001-01-01T00:00:00+00:00", "0999-12-31T00:00:00+00:00", "1999-12-31T23:59:59+00:00", "3000-01-01T00:00:00+00:00",
           "2026-03-01T00:00:00"],
)  # fmt: skip
def test_an_archive_file_of_a_time_that_cannot_be_is_refused(tmp_path: Path, at: str) -> None:
    path = tmp_path / "menu.json"
    path.write_bytes(archived(datetime.fromisoformat(at), page([product(1)])))
    with pytest.raises(Refused, match="fetched_at " + re.escape(at)):
        recorded.collect(PLATFORMS, None, [path], store=None)


def test_a_bad_member_is_named_and_the_others_go_on(command: Command, tmp_path: Path) -> None:
    cut = MENUS["menus/c.json"][:-30]
    path = tar(
        tmp_path / "menus.tar.gz",
        {
            "cut.json": cut,
            "block.json": b"<html><title>Just a moment...</title></html>",
            "empty.json": b"",
            "no-menu.json": b'{"x": 1}',
            "cut.json.gz": gzip.compress(cut)[:-9],
            "nobody.json": page([product(1, store=None)]),
            "none.json": weedmaps_page([]),
            "../../menus/a.json": MENUS["menus/a.json"],
        },
        "w:gz",
    )
    run = command.run(path)
    assert run.returncode == 1
    assert "3 products at" in run.stdout
    lines = [line for line in run.stderr.splitlines() if "skipped: " in line]
    said = {line.split(": ")[2]: line for line in lines if "menus.tar.gz" in line}
    bad = {"cut.json", "block.json", "empty.json", "no-menu.json", "cut.json.gz", "nobody.json"}
    assert said.keys() == bad | {"none.json"}
    assert "truncated: the response was truncated" in said["cut.json"]
    assert "html: the response is a web page titled “Just a moment...”" in said["block.json"]
    assert "the file is empty" in said["empty.json"]
    assert "unrecognized format, not a menu of any known platform (dutchie, " in said["no-menu.json"]
    assert "it is an object with x; " in said["no-menu.json"]
    assert "end-of-stream marker" in said["cut.json.gz"]
    assert "does not identify its store: pass --store" in said["nobody.json"]
    assert any("1 file skipped: a menu without products" in line for line in run.stderr.splitlines())
    report = command.run(path, "--json")
    assert report.returncode == 1
    assert '"empty":true' in report.stdout


def test_an_archive_of_empty_menus_only_is_refused(command: Command, tmp_path: Path) -> None:
    path = tar(tmp_path / "none.tar", {"a.json": weedmaps_page([]), "b.json": weedmaps_page([])})
    assert "empty: the menu has no products" in command.refused(path)


@pytest.mark.parametrize("where", ["header", "broken header", "content"])
def test_a_damaged_archive_gives_what_came_before_the_damage(tmp_path: Path, where: str) -> None:
    whole = tar(tmp_path / "whole.tar", MENUS).read_bytes()
    at = whole.index(b"menus/c.json")
    damaged = {
        "header": whole[: at + 100],
        "broken header": whole[:at] + b"\xff" * 512 + whole[at + 512 :],
        "content": whole[: at + 700],
    }[where]
    path = tmp_path / "damaged.tar"
    path.write_bytes(damaged)
    found = list(reader.read_file(path))
    assert [source for source, what in found if not isinstance(what, reader.LeftOut)] == [
        f"{path}: menus/a.json", f"{path}: menus/b.json.gz",
    ]  # fmt: skip
    left_out = [what.reason for _, what in found if isinstance(what, reader.LeftOut)]
    assert left_out
    assert any("the archive is damaged" in reason or "unexpected end of data" in reason for reason in left_out)


def test_what_is_no_plain_file_or_too_large_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "menus.tar"
    with tarfile.open(path, "w") as archive:
        link = tarfile.TarInfo("link.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
        for name, body in (
            ("large.json", b"x" * 2000),
            ("bomb.json", gzip.compress(b" " * 2000)),
            ("fine.json", b"{}"),
        ):
            info = tarfile.TarInfo(name)
            info.size = len(body)
            archive.addfile(info, io.BytesIO(body))
    monkeypatch.setattr(reader, "LARGEST_MEMBER", 1000)
    found = {source.split(": ")[1]: what for source, what in reader.read_file(path)}
    assert found["fine.json"] == b"{}"
    reasons = {name: what.reason for name, what in found.items() if isinstance(what, reader.LeftOut)}
    assert reasons == {
        "link.json": "is not a regular file",
        "large.json": "has 2,000 bytes, more than 1,000",
        "bomb.json": "unpacks to more than 1,000 bytes",
    }


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "LARGEST_FILE", 1000)
    for name, body, said in (
        ("bomb.json.gz", gzip.compress(b" " * 2000, mtime=0), "unpacks to more than 1,000 bytes"),
        ("large.json", b" " * 2000, "has more than 1,000 bytes"),
    ):
        (tmp_path / name).write_bytes(body)
        with pytest.raises(Refused, match=said):
            list(reader.read_file(tmp_path / name))


def test_a_platform_may_be_named(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(MENUS["menus/a.json"])
    assert "schema: " in command.refused(path, "--platform", "weedmaps")
    assert "--platform leafly: unknown platform 'leafly'; use one of: dutchie, " in command.refused(
        path, "--platform", "leafly"
    )
    assert command.report(path, "--platform", "dutchie")["new"] == 3


def test_a_store_of_another_platform_is_refused(command: Command, tmp_path: Path) -> None:
    a, c = tmp_path / "a.json", tmp_path / "c.json"
    a.write_bytes(MENUS["menus/a.json"])
    c.write_bytes(MENUS["menus/c.json"])
    command.report(a, "--store", "my-shop")
    assert "--store my-shop: is a store of dutchie, " in command.refused(c, "--store", "my-shop")


def test_the_state_of_stores_of_which_nobody_says_it(command: Command, tmp_path: Path) -> None:
    """First without, then with it; a second word changes nothing."""
    path = tar(tmp_path / "menus.tar", MENUS)
    run = command.run(path)
    assert "4 stores without a known state" in run.stderr
    with psycopg.connect(command.database_url) as conn:
        conn.execute("UPDATE dispensaries SET state = 'ON' WHERE platform_dispensary_id = %s", (SHOP_B,))
    again = command.report(path, "--state", "nm")
    assert (again["unchanged"], again["new"], again["changed"]) == (10, 0, 0)
    assert sorted(one["state"] for one in again["stores"]) == ["NM", "NM", "NM", "ON"], "a person's word stands"
    third = command.run(path, "--state", "AZ")
    assert (third.returncode, third.stderr.count("which state")) == (0, 0)
    with psycopg.connect(command.database_url) as conn:
        rows = conn.execute(
            "SELECT d.state, count(*) FROM store_products p JOIN dispensaries d ON d.id = p.dispensary_id GROUP BY 1 ORDER BY 1"
        ).fetchall()
    assert rows == [("NM", 8), ("ON", 2)]


def test_a_state_that_does_not_exist(command: Command, tmp_path: Path) -> None:
    path = tar(tmp_path / "menus.tar", MENUS)
    assert "--state: unknown state 'New Mexico': use two letters such as AZ or ON" in command.refused(
        path, "--state", "New Mexico"
    )


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("menus.zip", b"PK\x03\x04" + bytes(40), "is a ZIP archive; supported are JSON, plain or gzip-compressed"),
        ("menus.tar.xz", b"\xfd7zXZ\0" + bytes(40), "is compressed with xz; supported are"),
        ("menus.tar", bytes(10_240), "is an empty tar archive, or nothing but zeros; supported are"),
        ("program", b"\x7fELF\x02\x01\0\0" + bytes(range(256)), "is binary data; supported are"),
        ("unpacked.gz", gzip.compress(b"BZh91AY&SY", mtime=0), "is compressed with bzip2; supported are"),
        ("cut.gz", gzip.compress(b"{}" * 500, mtime=0)[:20], "cannot be read: Compressed file ended before"),
        ("words.txt", b"hello", "html: the response is text, not JSON: “hello”"),
        ("braces.json", b"{}", "no_data: unrecognized format, not a menu of any known platform (dutchie, "),
        ("nothing.json", b" \n", "the file is empty"),
    ],
)
def test_files_that_are_no_recordings(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    """Whoever reads recordings (`replay`, `coverage`) says in one line what a file is."""
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(Refused) as refused:
        recorded.collect(PLATFORMS, None, [path], store=None)
    assert str(refused.value).startswith(f"{path}: {said}")
    assert "\n" not in str(refused.value)
    inside = tar(tmp_path / "two.tar", {"bad": data, "good.json": MENUS["menus/c.json"]})
    found = recorded.collect(PLATFORMS, None, [inside], store=None)
    assert [left.source for left in found.left_out] == [f"{inside}: bad"]
    assert [menu.product_count for menu in found.menus] == [4]
