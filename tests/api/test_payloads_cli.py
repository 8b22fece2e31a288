"""`menuwatch payloads show`, `data` and `diff`, and `menuwatch rebuild --since`: what the API says, on the command line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import Result

from menuwatch.core.errors import Refused
from tests.api.shop import Shop, item, menu
from tests.commands import run_here

Run = Callable[..., Awaitable[Result]]


@pytest.fixture
def run(shop: Shop, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("MENUWATCH_HOME", str(tmp_path))
    monkeypatch.setenv("STORAGE_PATH", str(shop.storage))

    async def invoke(*words: object, code: int = 0) -> Result:
        found = await asyncio.to_thread(run_here, [str(word) for word in words])
        if code == 2:
            # The entry point prints it, and ends with that code.
            assert isinstance(found.exception, Refused), (found.output, found.exception)
        else:
            assert found.exit_code == code, (found.output, found.exception)
        return found

    return invoke


async def test_show(shop: Shop, run: Run) -> None:
    store = await shop.store()
    one, two, three = [await shop.crawl(store, hour, [item("a"), item("b")][: 1 + (hour > 0)]) for hour in (0, 1, 1.5)]
    odd = await shop.archived(store, 2, menu([item("a")]), count=1, status="quarantined", reason="shrunk: 1 product")
    await shop.execute(
        "UPDATE raw_crawl_payloads p SET path = o.path FROM raw_crawl_payloads o WHERE p.id = %s AND o.id = %s",
        [three, two],
    )
    found = json.loads((await run("payloads", "show", two, "--json")).stdout)
    meta = await shop.ask(f"/api/payloads/{two}")
    assert {name: found[name] for name in meta} == meta
    assert found["store"] == {"id": store, "slug": "green-leaf", "name": "Green-Leaf"}
    assert (found["same_file"], found["same_answers"]) == ([three], [])
    assert (found["crawl"]["products"], found["crawl"]["new_products"], found["crawl"]["unchanged"]) == (2, 1, 1)
    text = (await run("payloads", "show", odd)).stdout
    assert f"Payload {odd}: quarantined, shrunk: 1 product" in text
    assert "not in the catalog" in text
    assert f"Same menu  payload {one}" in text
    assert "payload 99 does not exist" in str((await run("payloads", "show", 99, code=2)).exception)


async def test_data(shop: Shop, run: Run, tmp_path: Path) -> None:
    payload_id = await shop.crawl(await shop.store(), 0, [item("a")])
    meta = await shop.ask(f"/api/payloads/{payload_id}")
    told = await run("payloads", "data", payload_id)
    assert sha256(told.stdout_bytes).hexdigest() == meta["sha256"]
    file = tmp_path / "out.json"
    await run("payloads", "data", payload_id, "-o", file)
    assert sha256(file.read_bytes()).hexdigest() == meta["sha256"]
    assert "already exists" in str((await run("payloads", "data", payload_id, "-o", file, code=2)).exception)
    shop.storage.joinpath(meta["path"]).unlink()
    assert "is missing" in str((await run("payloads", "data", payload_id, "-o", file, "--overwrite", code=2)).exception)
    assert sha256(file.read_bytes()).hexdigest() == meta["sha256"], "what was there is there"


async def test_diff(shop: Shop, run: Run) -> None:
    store = await shop.store()
    one = await shop.crawl(store, 0, [item("a", "Apple"), item("b", "Berry"), item("gone", "Gone")])
    two = await shop.crawl(
        store,
        1,
        [
            item("a", "Apple", options=[("1/8oz", "35.50", 5)]),
            item("b", "Berry", options=[("1/8oz", 40, 0)]),
            item("n", "New"),
        ],
    )
    answer = await shop.ask(f"/api/payloads/store/{store}/diff")
    for words in (("--store", "green-leaf"), (one,), (one, two)):
        assert json.loads((await run("payloads", "diff", *words, "--json")).stdout) == answer
    lines = [line.split() for line in (await run("payloads", "diff", one, two)).stdout.splitlines()]
    assert ["1", "added,", "1", "removed,", "1", "price", "change,", "1", "stock", "change"] in lines
    assert ["new", "New", "-", "40.00,", "in", "stock", "n"] in lines
    assert ["price", "Apple", "1/8oz", "40.00", "1/8oz", "35.50", "a"] in lines
    assert ["stock", "Berry", "1/8oz", "5", "1/8oz", "out", "of", "stock", "b"] in lines
    assert "No differences." in (await run("payloads", "diff", one, one)).stdout
    stranger = await shop.crawl(await shop.store("other"), 0, [item("a")])
    assert "belongs to store" in str((await run("payloads", "diff", one, stranger, code=2)).exception)
    assert "give one or two payloads" in str((await run("payloads", "diff", code=2)).exception)
    bad = await shop.crawl(store, 9, [item("a"), item("b") | {"Name": 7}])
    good = await shop.crawl(store, 8, [item("a"), item("b")])
    said = (await run("payloads", "diff", good, bad)).stdout
    assert "0 removed" in said
    assert "1 unreadable" in said
    assert any(line.split()[:1] == ["unreadable"] for line in said.splitlines())


async def test_rebuild_since(shop: Shop, run: Run) -> None:
    store = await shop.store()
    for hour in range(4):
        await shop.crawl(store, hour, [item("a", options=[("1g", 5 + hour, 1)])])
    await shop.execute("DELETE FROM raw_crawl_payloads WHERE id = 1")
    assert "the archive lacks the payloads of 1 crawls" in str((await run("rebuild", "green-leaf", code=2)).exception)
    words = ("rebuild", "green-leaf", "--since", "2026-03-01T13:30")
    told = json.loads((await run(*words, "--dry-run", "--json")).stdout)
    (one,) = told["stores"]
    assert (told["since"], one["payloads"], one["same"], one["guessed"]) == ("2026-03-01T13:30:00Z", 2, True, 0)
    assert "rebuilt since 2026-03-01 13:30 UTC from 2 payloads; no differences." in (await run(*words)).stdout
    assert "is not a time" in str((await run("rebuild", "green-leaf", "--since", "soon", code=2)).exception)
    assert "UTC is in the future" in str(
        (await run("rebuild", "green-leaf", "--since", "2126-01-01", code=2)).exception
    )


async def test_rebuild_lists_damaged_files(shop: Shop, run: Run) -> None:
    store = await shop.store()
    ids = [await shop.crawl(store, hour, [item("a", options=[("1g", 5 + hour, 1)])]) for hour in range(4)]
    paths = {number: (await shop.ask(f"/api/payloads/{number}"))["path"] for number in ids}
    shop.storage.joinpath(paths[ids[1]]).unlink()
    shop.storage.joinpath(paths[ids[3]]).write_bytes(b"no gzip")
    told = json.loads((await run("rebuild", "--all", "--dry-run", "--json", code=1)).stdout)
    ((one,), refused) = told["stores"], told["refused"]
    assert (one["payloads"], refused) == (2, [])
    assert [(each["payload_id"], each["path"]) for each in one["damaged"]] == [(n, paths[n]) for n in (ids[1], ids[3])]
    said = (await run("rebuild", "green-leaf", code=1)).stderr
    assert all(f"payload {n} of Green-Leaf, {paths[n]}" in said for n in (ids[1], ids[3]))
    assert "menuwatch verify --repair" in said
