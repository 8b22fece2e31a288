"""A pool whose opening is cancelled leaves nothing behind that the event loop would wait for."""

from __future__ import annotations

import asyncio

import pytest

from menuwatch.db.pool import open_pool


@pytest.mark.parametrize("milliseconds", [0, 0.5, 1, 2, 3, 3.5, 4, 4.5, 5, 8])
async def test_a_cancelled_opening_ends_its_tasks(database_url: str, milliseconds: float) -> None:
    async def opened() -> None:
        async with open_pool(database_url, name="cancelled"):
            await asyncio.Event().wait()

    task = asyncio.create_task(opened())
    await asyncio.sleep(0)
    assert [one for one in asyncio.all_tasks() if one.get_name().startswith("cancelled-worker")]
    await asyncio.sleep(milliseconds / 1000)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    left = [one for one in asyncio.all_tasks() if one.get_name().startswith("cancelled-")]
    for one in left:  # else the test would not end
        one.cancel()
    assert not left
