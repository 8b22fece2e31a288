"""Payloads are written to a bucket that dies, is busy or slow at random. Afterwards rows and objects are the same.

`STORAGE_ROUNDS` sets how many are written (`make chaos`: 400), `STORAGE_SEED` repeats a run.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path

from menuwatch.archive import store as payloads
from menuwatch.archive.document import Document
from menuwatch.archive.files import FileArchive
from menuwatch.archive.service import recover_archive
from menuwatch.archive.store import NewPayload
from menuwatch.archive.verify import verify
from menuwatch.core.errors import MenuwatchError
from menuwatch.pipeline.archive_transaction import archive_transaction
from tests.api.shop import Shop, at
from tests.storage.server import proxied, running

ROUNDS = int(os.environ.get("STORAGE_ROUNDS", "12"))
SEED = int(os.environ.get("STORAGE_SEED", "0")) or random.randrange(1, 1_000_000)


class _RolledBack(Exception):
    pass


async def _write(shop: Shop, archive: FileArchive, store: int, doc: Document, *, rolls_back: bool) -> None:
    async with archive_transaction(shop.pool, archive) as (conn, transaction):
        staged = await transaction.put(store, doc)
        await payloads.insert(
            conn,
            NewPayload(
                task_id=None, dispensary_id=store, platform="dutchie", status="ok", reason=None, product_count=0, page_count=1,
                fetched_at=doc.fetched_at, path=staged.path, bytes=staged.size, raw_bytes=staged.raw_size, sha256=staged.sha256,
                content_sha256=staged.content_sha256,
            ),
        )  # fmt: skip
        if rolls_back:
            raise _RolledBack


async def test_rows_and_objects_are_the_same_after_faults(shop: Shop, tmp_path: Path) -> None:
    rng = random.Random(SEED)
    store = await shop.store(state="AZ")
    failed = 0
    with running(tmp_path / "s3") as server, proxied(server) as proxy:
        storage = server.storage(proxy.endpoint)
        storage.retries = 1
        archive = FileArchive(storage)
        for number in range(ROUNDS):
            fault = ("dies", "busy", "slow", "rolls back", "none")[number % 5]
            proxy.busy = rng.choice((1, 20)) if fault == "busy" else 0
            proxy.delay = rng.uniform(0, 0.05) if fault == "slow" else 0.0
            # Of one payload these are the bytes of all its requests; so it dies before, in or after the object.
            proxy.cut_after, proxy.on_cut = (rng.randrange(300, 40_000) if fault == "dies" else None), server.kill
            page = b'"' + rng.randbytes(12_000).hex().encode() + b'"'
            doc = Document(platform="dutchie", platform_dispensary_id="x", fetched_at=at(number), pages=(page,))
            try:
                await _write(shop, archive, store, doc, rolls_back=fault == "rolls back")
            except (MenuwatchError, _RolledBack):
                failed += 1
            if server.process is None:
                server.start()
        proxy.busy, proxy.delay, proxy.cut_after = 0, 0.0, None
        after = replace(shop, archive=FileArchive(server.storage())).archive
        await recover_archive(shop.pool, after, older_than=-60)
        result = await verify(shop.pool, after, {})
        async with shop.pool.connection() as conn:
            rows = {path for (path,) in await (await conn.execute("SELECT path FROM raw_crawl_payloads")).fetchall()}
        assert (list(result.faults), server.objects()) == ([], rows), f"STORAGE_SEED={SEED}"
        assert failed >= ROUNDS // 5, f"STORAGE_SEED={SEED}: faults are made"
        assert len(rows) >= ROUNDS // 5
