"""The cache on disk: what is kept, what goes, and that many who ask at once make one picture."""

from __future__ import annotations

import asyncio
import os
import time
from hashlib import sha256
from pathlib import Path

import pytest

from menuwatch.images.cache import ImageCache
from menuwatch.images.files import ImageFiles
from menuwatch.images.limits import MAX_PENDING, MAX_UNSIGNED_PENDING
from menuwatch.images.params import Params
from menuwatch.images.serving import ImageServer, Overloaded
from tests.images.image_factory import decoded, encoded, noise

PATH = "products/az/shop/brand/1/image-000102030405060708090a0b0c0d0e0f.webp"


def key(number: int) -> str:
    return sha256(str(number).encode()).hexdigest()


def age(folder: Path, name: str, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(folder / name[:2] / name[2:], (then, then))


def on_disk(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_what_is_put_is_got(tmp_path: Path) -> None:
    kept = ImageCache(tmp_path / "cache", 1_000_000)
    assert kept.get(key(1)) is None
    kept.put(key(1), b"one")
    assert kept.get(key(1)) == b"one"
    assert ImageCache(tmp_path / "cache", 1_000_000).get(key(1)) == b"one", "also for the next process"


def test_the_least_recently_used_go_first_and_the_cap_holds(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    kept = ImageCache(folder, 10_000)
    for number in range(9):
        kept.put(key(number), bytes(1000))
        age(folder, key(number), 1000 - number)
    assert kept.get(key(0)) is not None, "a use makes it young"
    kept.put(key(9), bytes(1000))
    assert kept.get(key(0)) is not None
    assert kept.get(key(9)) is not None
    assert kept.get(key(1)) is None
    for number in range(10, 200):
        kept.put(key(number), bytes(1000))
        assert on_disk(folder) <= 10_000


def test_two_processes_share_the_room(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    one, two = ImageCache(folder, 10_000), ImageCache(folder, 10_000)
    for number in range(100):
        (one if number % 2 else two).put(key(number), bytes(1000))
    assert on_disk(folder) <= 20_000, "each is at most wrong by what it did not see"
    one._used = None
    one.put(key(1000), bytes(1000))
    assert on_disk(folder) <= 10_000


def test_no_room_and_too_much(tmp_path: Path) -> None:
    none = ImageCache(tmp_path / "none", 0)
    none.put(key(1), b"x")
    assert none.get(key(1)) is None
    assert not (tmp_path / "none").exists()
    small = ImageCache(tmp_path / "small", 100)
    small.put(key(1), bytes(100))
    assert small.get(key(1)) is None


def test_what_was_cut_short_is_made_anew(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    kept = ImageCache(folder, 1_000_000)
    kept.put(key(1), bytes(1000))
    place = folder / key(1)[:2] / key(1)[2:]
    place.write_bytes(place.read_bytes()[:500])
    assert kept.get(key(1)) is None
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(b"")
    assert kept.get(key(1)) is None


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    kept = ImageCache(tmp_path / "cache", 1_000_000)
    kept.put(key(1), b"x")
    assert kept.get(key(1)) is None


def gallery(tmp_path: Path, *, threads: int = 2) -> ImageServer:
    files = ImageFiles(tmp_path / "storage")
    files.store(f"images/{PATH}", encoded(noise(600, 400), ".webp"))
    return ImageServer(files, ImageCache(tmp_path / "cache", 10_000_000), threads=threads)


async def test_many_at_once_make_one(tmp_path: Path) -> None:
    pictures = gallery(tmp_path)

    async def ask() -> bytes:
        return await pictures.data(await pictures.find(PATH, Params(w=100), None))

    found = await asyncio.gather(*(ask() for _ in range(50)))
    assert len(set(found)) == 1
    assert pictures.transformed == 1
    assert await ask() == found[0]
    assert pictures.transformed == 1, "it was kept"
    again = gallery(tmp_path)
    assert await again.data(await again.find(PATH, Params(w=100), None)) == found[0]
    assert again.transformed == 0, "another process finds it on disk"
    assert decoded(found[0]).width == 100


async def test_who_goes_away_leaves_it_to_the_others(tmp_path: Path) -> None:
    pictures = gallery(tmp_path)
    picture = await pictures.find(PATH, Params(w=100, blur=5), None)
    first = asyncio.create_task(pictures.data(picture))
    second = asyncio.create_task(pictures.data(picture))
    await asyncio.sleep(0)
    first.cancel()
    assert await second
    assert pictures.transformed == 1


async def test_too_many_different_ones_are_asked_to_come_again(tmp_path: Path) -> None:
    pictures = gallery(tmp_path, threads=1)
    wanted = [await pictures.find(PATH, Params(w=number), None) for number in range(1, MAX_PENDING + 2)]
    found = await asyncio.gather(*(pictures.data(picture) for picture in wanted), return_exceptions=True)
    assert sum(isinstance(one, Overloaded) for one in found) == 1
    assert sum(isinstance(one, bytes) for one in found) == MAX_PENDING


async def test_strangers_wait_behind_one_another_and_leave_room_for_the_pages(tmp_path: Path) -> None:
    pictures = gallery(tmp_path, threads=1)
    others = [await pictures.find(PATH, Params(w=number), None, free=True) for number in range(1, 60)]
    ours = await pictures.find(PATH, Params(w=400), None)
    found = await asyncio.gather(*(pictures.data(one) for one in [*others, ours]), return_exceptions=True)
    assert sum(isinstance(one, bytes) for one in found[:-1]) == MAX_UNSIGNED_PENDING
    assert sum(isinstance(one, Overloaded) for one in found) == len(others) - MAX_UNSIGNED_PENDING
    assert isinstance(found[-1], bytes)
    assert await pictures.data(others[-1]), "there is room again"


async def test_an_error_is_everybodys_and_is_not_kept(tmp_path: Path) -> None:
    pictures = gallery(tmp_path)
    files = ImageFiles(tmp_path / "storage")
    broken = PATH.replace("/1/", "/2/").replace("0f.webp", "0e.webp")
    files.store(f"images/{broken}", encoded(noise(100, 100), ".webp")[:300])
    picture = await pictures.find(broken, Params(w=10), None)
    found = await asyncio.gather(*(pictures.data(picture) for _ in range(3)), return_exceptions=True)
    assert {type(one).__name__ for one in found} == {"Damaged"}
    (tmp_path / "storage" / "images" / broken).write_bytes(encoded(noise(100, 100), ".webp"))
    assert await pictures.data(picture)


async def test_names_of_one_picture_share_the_result(tmp_path: Path) -> None:
    pictures = gallery(tmp_path)
    ImageFiles(tmp_path / "storage").link(f"images/{PATH}", f"images/{PATH.replace('/1/', '/2/')}")
    one = await pictures.find(PATH, Params(w=10), None)
    two = await pictures.find(PATH.replace("/1/", "/2/"), Params(w=10), None)
    assert one.etag == two.etag
    assert await pictures.data(one) == await pictures.data(two)
    assert pictures.transformed == 1


@pytest.mark.parametrize("accept", [None, "image/avif,image/webp,*/*"])
async def test_the_stored_file_itself_is_neither_decoded_nor_kept_twice(tmp_path: Path, accept: str | None) -> None:
    pictures = gallery(tmp_path)
    picture = await pictures.find(PATH, Params(), accept)
    assert await pictures.data(picture) == (tmp_path / "storage" / "images" / PATH).read_bytes()
    assert pictures.transformed == 0
    assert not (tmp_path / "cache").exists()
