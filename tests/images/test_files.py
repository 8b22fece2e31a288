"""Paths: those that are made, those that are asked for, and that nothing outside the root is ever read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.core.errors import Refused
from menuwatch.images.files import BadPath, ImageFiles, NoFile, brand_path, parts_of, product_path, slug

SHA = bytes(range(32))
GOOD = "products/az/green-leaf/good-brand/17/image-000102030405060708090a0b0c0d0e0f.webp"


def test_where_pictures_belong() -> None:
    made = product_path(state="AZ", store="Green Leaf!", brand="Good/../Brand", product_id=17, sha256=SHA)
    assert made == f"images/{GOOD}"
    assert brand_path(brand="Ünïcode & Söhne", sha256=SHA).startswith("images/brands/unicode-sohne/logo-0001")
    nameless = product_path(state=None, store="店", brand="", product_id=1, sha256=SHA)
    assert nameless.startswith("images/products/unknown/unknown/unknown/1/")


@given(st.text(max_size=300))
def test_a_slug_is_always_one(text: str) -> None:
    made = slug(text)
    assert 1 <= len(made) <= 80
    assert set(made) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert slug(made) == made


@pytest.fixture
def files(tmp_path: Path) -> ImageFiles:
    found = ImageFiles(tmp_path / "storage")
    assert found.store(f"images/{GOOD}", b"picture")
    (tmp_path / "storage" / "secret.webp").write_bytes(b"secret")
    (tmp_path / "secret.webp").write_bytes(b"secret")
    return found


def test_a_stored_file_is_found_by_either_path(files: ImageFiles) -> None:
    for path in (GOOD, f"images/{GOOD}"):
        with files.find(path) as found:
            assert (found.read(), found.hashed, found.identity) == (
                b"picture",
                True,
                "000102030405060708090a0b0c0d0e0f",
            )


BAD = [
    "", "/", "..", ".", "../secret.webp", "../../secret.webp", "products/../../secret.webp", "./secret.webp", "/etc/passwd",
    "//etc/passwd", "products//x.webp", "products/x.webp/", "images/../secret.webp", "images", "images/", "~/x.webp",
    "..%2fsecret.webp", "%2e%2e/secret.webp", "..\\secret.webp", "products\\x.webp", "C:/x.webp", "c:x.webp", "x.webp\0", "\0",
    "x\0.webp", "x\n.webp", "x y.webp", "é.webp", "x.svg", "x.html", "x", ".webp", ".cache/x.webp", ".x.webp", "a/.../x.webp",
    "a/..../x.webp", "x.webp.", "x.webp ", "x.webp?", "x.webp#", "file:///etc/passwd", "http://x/y.webp", "a" * 601 + ".webp",
    "a" * 121 + ".webp", "a/" * 8 + "x.webp", "a/" * 5000 + "x.webp", "..;/x.webp", "\u2025/x.webp", "\uff0e\uff0e/x.webp",
    "x.webp;.png/",
]  # fmt: skip


@pytest.mark.parametrize("path", BAD)
def test_tricks_are_bad_paths(files: ImageFiles, path: str) -> None:
    with pytest.raises(BadPath), files.find(path):
        pass
    with pytest.raises(Refused):
        files.store(path, b"x")


@given(st.text(alphabet="./\\%~a\0e2f-x:webp", max_size=60))
def test_whatever_is_asked_for_stays_below_the_root(path: str) -> None:
    try:
        parts = parts_of(path)
    except BadPath:
        return
    assert parts
    assert all(
        part not in ("", ".", "..") and "/" not in part and "\\" not in part and "\0" not in part for part in parts
    )
    root = Path("/root/images")
    assert os.path.commonpath([root, os.path.normpath(root.joinpath(*parts))]) == str(root)


def test_links_are_not_followed(files: ImageFiles, tmp_path: Path) -> None:
    root = tmp_path / "storage" / "images"
    folder = root / "products"
    (folder / "link.webp").symlink_to(tmp_path / "secret.webp")
    (folder / "inside.webp").symlink_to(root / GOOD)
    (folder / "out").symlink_to(tmp_path)
    (folder / "up").symlink_to("..")
    (folder / "loop.webp").symlink_to("loop.webp")
    os.mkfifo(folder / "pipe.webp")
    (folder / "folder.webp").mkdir()
    for name in (
        "link.webp",
        "inside.webp",
        "out/secret.webp",
        "up/secret.webp",
        "loop.webp",
        "pipe.webp",
        "folder.webp",
    ):
        with pytest.raises(NoFile), files.find(f"products/{name}"):
            pass


def test_the_root_itself_may_be_a_link(files: ImageFiles, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "images").symlink_to(tmp_path / "storage" / "images")
    with ImageFiles(tmp_path / "other").find(GOOD) as found:
        assert found.read() == b"picture"


def test_what_is_not_there(files: ImageFiles, tmp_path: Path) -> None:
    for path in ("products/none.webp", f"{GOOD}/x.webp", "none/none/x.webp"):
        with pytest.raises(NoFile), files.find(path):
            pass
    with pytest.raises(NoFile), ImageFiles(tmp_path / "nowhere").find(GOOD):
        pass


def test_handles_are_closed(files: ImageFiles) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in [GOOD, "products/none.webp", "products", "a/b/c/x.webp"] * 20:
        try:
            with files.find(path):
                pass
        except (NoFile, BadPath):
            pass
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_file_that_is_there_is_kept(files: ImageFiles) -> None:
    assert not files.store(f"images/{GOOD}", b"picture")
    assert files.store(f"images/{GOOD}", b"was cut short")
    assert [entry.path for entry in files.every()] == [f"images/{GOOD}"]


def test_one_picture_with_several_names_is_one_file(files: ImageFiles, tmp_path: Path) -> None:
    other = f"images/{GOOD.replace('/17/', '/18/')}"
    assert files.link(f"images/{GOOD}", other)
    assert not files.link(f"images/{GOOD}", other)
    root = tmp_path / "storage"
    assert (root / other).stat().st_ino == (root / "images" / GOOD).stat().st_ino
    with pytest.raises(NoFile):
        files.link("images/products/none.webp", "images/products/x.webp")
