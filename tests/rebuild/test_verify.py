"""The archive held against its rows: each fault is found, named, and put right where that needs no guess."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import time
from pathlib import Path

from menuwatch.archive.document import Document
from menuwatch.archive.verify import FOUND, Fault, VerifyResult, verify
from tests.api.shop import Shop, at, item, menu
from tests.commands import menuwatch


async def _verify(shop: Shop, *, repair: bool = False) -> VerifyResult:
    return await verify(shop.pool, shop.archive, shop.platforms, repair=repair)


def _said(found: VerifyResult) -> list[tuple[str, int | None, str | None]]:
    return [(fault.kind, fault.payload_id, fault.repaired) for fault in found.faults]


async def _file(shop: Shop, payload_id: int) -> Path:
    return shop.storage / (await shop.ask(f"/api/payloads/{payload_id}"))["path"]


async def test_a_whole_archive_has_no_fault(shop: Shop) -> None:
    store = await shop.store()
    for hour in range(3):
        await shop.crawl(store, hour, [item("a")])
    await shop.archived(store, 4, b"<html>", status="rejected", reason="html: a page")
    found = await _verify(shop)
    assert (found.payloads, found.faults) == (4, ())
    assert found.bytes == sum(file.stat().st_size for file in shop.storage.rglob("*.gz"))


async def test_a_file_that_is_gone_or_damaged_is_written_again_from_one_with_the_same_answers(shop: Shop) -> None:
    store = await shop.store()
    same = [await shop.crawl(store, hour, [item("a")]) for hour in range(3)]
    alone = [await shop.crawl(store, 3 + hour, [item("a"), item(f"b{hour}")]) for hour in range(2)]
    files = {payload_id: await _file(shop, payload_id) for payload_id in same + alone}
    before = {payload_id: file.read_bytes() for payload_id, file in files.items()}
    files[same[0]].unlink()
    files[same[1]].write_bytes(before[same[1]][:50])
    files[alone[0]].write_bytes(before[alone[1]])  # whole, and another's
    files[alone[1]].unlink()
    kinds = [("missing", same[0]), ("damaged", same[1]), ("damaged", alone[0]), ("missing", alone[1])]

    assert _said(await _verify(shop)) == [(*kind, None) for kind in kinds]
    again = f"restored from {files[same[2]].relative_to(shop.storage).as_posix()}"
    repaired = [
        (*kinds[0], again),
        (*kinds[1], f"restored from {files[same[0]].relative_to(shop.storage).as_posix()}"),
    ]
    assert _said(await _verify(shop, repair=True)) == [*repaired, (*kinds[2], None), (*kinds[3], None)]
    assert [files[payload_id].read_bytes() == before[payload_id] for payload_id in same] == [True] * 3
    assert _said(await _verify(shop)) == [(*kinds[2], None), (*kinds[3], None)], (
        "what nobody has any more stays a fault"
    )


async def test_a_file_under_another_name_is_moved_back(shop: Shop) -> None:
    store = await shop.store()
    ids = [await shop.crawl(store, hour, [item("a"), item(f"b{hour}")]) for hour in range(3)]
    files = [await _file(shop, payload_id) for payload_id in ids]
    before = [file.read_bytes() for file in files]
    away = shop.storage / "payloads" / "away.json.gz"
    beside = files[1].with_name("renamed.json.gz")
    files[0].rename(away)
    files[1].rename(beside)
    files[1].write_bytes(before[1][:50])

    plain = await _verify(shop)
    assert _said(plain) == [("missing", ids[0], None), ("damaged", ids[1], None)]
    assert "its content is at payloads/away.json.gz" in plain.faults[0].detail
    repaired = await _verify(shop, repair=True)
    name = beside.relative_to(shop.storage).as_posix()
    assert [fault.repaired for fault in repaired.faults] == [
        "moved back from payloads/away.json.gz",
        f"moved back from {name}",
    ]
    assert [fault.detail for fault in repaired.faults] == [fault.detail for fault in plain.faults]
    assert [file.read_bytes() for file in files] == before
    assert (await _verify(shop)).faults == ()


async def test_a_size_that_is_not_the_rows(shop: Shop) -> None:
    payload_id = await shop.crawl(await shop.store(), 0, [item("a")])
    file = await _file(shop, payload_id)
    file.write_bytes(gzip.compress(gzip.decompress(file.read_bytes()), 9) + gzip.compress(b""))  # another's compression
    assert _said(await _verify(shop)) == [("size", payload_id, None)]
    size = file.stat().st_size
    assert _said(await _verify(shop, repair=True)) == [("size", payload_id, f"the row has {size} bytes")]
    assert (await _verify(shop)).faults == ()


async def test_a_file_without_a_row_is_looked_at_by_a_person(shop: Shop) -> None:
    store = await shop.store("one")
    await shop.crawl(store, 0, [item("a")])
    for platform_id, body in (("id-one", menu([item("a"), item("b")])), ("id-gone", menu([item("a")]))):
        doc = Document(platform="dutchie", platform_dispensary_id=platform_id, fetched_at=at(1), pages=(body,))
        shop.archive.publish(shop.archive.stage(1 if platform_id == "id-one" else 7, doc))
    stray = shop.storage / "payloads" / "2026" / "notes.txt"
    stray.write_text("not ours")

    plain = await _verify(shop)
    assert [kind for kind, _, _ in _said(plain)] == ["orphaned"] * 3
    found = await _verify(shop, repair=True)
    assert [fault.detail for fault in found.faults] == [fault.detail for fault in plain.faults]
    newest = await shop.ask(f"/api/payloads/store/{store}/latest")
    assert (newest["status"], newest["reason"], newest["product_count"]) == ("quarantined", FOUND, 2)
    assert newest["fetched_at"] == "2026-03-01T13:00:00Z"
    told: dict[bool, list[Fault]] = {True: [], False: []}
    for fault in found.faults:
        told[fault.repaired is not None].append(fault)
    assert [fault.repaired for fault in told[True]] == [f"payload {newest['id']}, quarantined"]
    assert [
        "'id-gone' is not known" in fault.detail or "not an archive file" in fault.detail for fault in told[False]
    ] == [
        True,
        True,
    ]
    assert stray.read_text() == "not ours"
    assert len((await _verify(shop)).faults) == 2


async def test_what_a_crash_left_staged(shop: Shop) -> None:
    store = await shop.store()
    payload_id = await shop.crawl(store, 0, [item("a")])
    final = await _file(shop, payload_id)
    waiting = shop.storage / "payloads" / ".incoming"
    name = final.relative_to(shop.storage).as_posix().replace("/", "__")
    final.rename(waiting / f"{name}~1")
    shop.archive.stage(
        store, Document(platform="dutchie", platform_dispensary_id="x", fetched_at=at(5), pages=(b"{}",))
    )
    old = shop.archive.stage(
        store, Document(platform="dutchie", platform_dispensary_id="x", fetched_at=at(6), pages=(b"{}",))
    )
    os.utime(waiting / old.name, (time.time() - 7200,) * 2)

    assert _said(await _verify(shop)) == [("staged", None, None)] * 3, "its row finds its file there"
    found = await _verify(shop, repair=True)
    assert sorted(str(fault.repaired) for fault in found.faults) == ["None", "published", "removed"]
    assert final.exists()
    assert len((await _verify(shop)).faults) == 1, "the young one may be somebody's who is about to commit"


async def test_the_command_says_what_to_do(shop: Shop, database_url: str, tmp_path: Path) -> None:
    payload_id = await shop.crawl(await shop.store(), 0, [item("a")])
    (await _file(shop, payload_id)).unlink()
    (shop.storage / "payloads" / "junk.txt").write_text("not ours")
    env = {**os.environ, "DATABASE_URL": database_url, "STORAGE_PATH": str(shop.storage), "LOG_LEVEL": "error"}

    async def told(*args: str) -> str:
        done = await asyncio.to_thread(menuwatch, "verify", *args, env=env, timeout=60, cwd=tmp_path)
        assert done.returncode == 1, done.stderr
        return " ".join(done.stdout.split())

    plain, repaired = await told(), await told("--repair")
    for said in (plain, repaired):
        assert "2 faults, 2 of them not repaired" in said
    assert "Run `menuwatch verify --repair`" in plain
    assert "from a backup of the storage directory" in repaired
    assert f"`menuwatch payloads show {payload_id}`" in repaired
    faults = json.loads(await told("--json"))["faults"]
    assert [(fault["kind"], "not an archive file" in fault["detail"]) for fault in faults] == [
        ("missing", False),
        ("orphaned", True),
    ]
