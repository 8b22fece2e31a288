"""`store_discovery`: lists a platform's stores, notes each, and makes those that can be crawled into stores of ours."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from menuwatch.core.errors import MenuwatchError, Permanent
from menuwatch.pipeline import trouble
from menuwatch.pipeline.parts import Context, Parts, details
from menuwatch.platforms.base import FoundStore
from menuwatch.stores import store as stores
from menuwatch.tasks.model import PRIORITY_CHAINED, NewTask, Role, Task
from menuwatch.tasks.outcome import Done, Outcome, Wrote


class StoreDiscovery:
    """Payload: `{"state": …, "city": …}`, both optional. The result names `newStoreIds`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def __call__(self, task: Task, ctx: Context) -> Outcome:
        platform = self._parts.platform(task)
        state, city = _text(task, "state"), _text(task, "city")
        found: dict[str, FoundStore] = {}
        async with self._parts.session(task, platform, ctx, state=state) as session:
            try:
                async for store in platform.discover(session, state=state, city=city):
                    found[store.platform_dispensary_id] = store
            except MenuwatchError as error:
                return trouble.outcome_of(self._parts, error)

        async def writes(conn: AsyncConnection[Any]) -> Wrote:
            new: list[int] = []
            rejected = 0
            for store in sorted(found.values(), key=lambda s: s.platform_dispensary_id):
                store_id = None
                if store.problem is None:
                    store_id, inserted = await stores.promote(conn, task.platform, details(store))
                    if inserted:
                        new.append(store_id)
                else:
                    rejected += 1
                await stores.record_location(
                    conn,
                    task.platform,
                    details(store),
                    raw=store.raw,
                    dispensary_id=store_id,
                    rejected=store.problem,
                )
            return Wrote(
                result={"newStoreIds": new, "found": len(found), "rejected": rejected},
                then=tuple(
                    NewTask(
                        role=Role.PRODUCT_DISCOVERY,
                        dispensary_id=store_id,
                        platform=task.platform,
                        priority=PRIORITY_CHAINED,
                    )
                    for store_id in new
                ),
            )

        return Done(result=dict(session.figures), writes=writes)


def _text(task: Task, key: str) -> str | None:
    value = task.payload.get(key)
    if value is not None and not isinstance(value, str):
        raise Permanent(f"{key} in the payload must be a text, got {value!r}")
    return value
