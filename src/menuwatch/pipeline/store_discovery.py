"""`store_discovery` and `entry_point_discovery`: find stores, add one by its menu URL, and resolve its platform id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psycopg import AsyncConnection

from menuwatch.accounts import audit
from menuwatch.core.errors import Conflict, InvalidField, MenuwatchError, Permanent, Refused, unknown_value
from menuwatch.db.pool import Connection
from menuwatch.pipeline import fetch_errors
from menuwatch.pipeline.context import AttemptContext, HandlerContext, store_details
from menuwatch.platforms.base import Platform
from menuwatch.platforms.model import FoundStore
from menuwatch.queue import store as tasks
from menuwatch.queue.model import PRIORITY_CHAINED, NewTask, Role, Task
from menuwatch.queue.outcome import Done, Fail, Outcome, Wrote
from menuwatch.stores import store as stores
from menuwatch.stores.store import Store


class StoreDiscovery:
    """Payload: `{"state": …, "city": …}`, both optional; `state_code` is another name of `state`. The result names `newStoreIds`."""

    def __init__(self, context: HandlerContext) -> None:
        self._context = context

    async def __call__(self, task: Task, ctx: AttemptContext) -> Outcome:
        platform = self._context.platform(task)
        state, city = searched_state(task), _text(task, "city")
        found: dict[str, FoundStore] = {}
        async with self._context.session(task, platform, ctx, state=state) as session:
            try:
                async for store in platform.discover(session, state=state, city=city):
                    found[store.platform_dispensary_id] = store
            except MenuwatchError as error:
                return fetch_errors.to_outcome(self._context, error)

        async def writes(conn: AsyncConnection[Any]) -> Wrote:
            new: list[int] = []
            rejected = 0
            for store in sorted(found.values(), key=lambda s: s.platform_dispensary_id):
                store_id = None
                if store.problem is None:
                    store_id, inserted = await stores.promote(conn, task.platform, store_details(store))
                    if inserted:
                        new.append(store_id)
                else:
                    rejected += 1
                await stores.record_location(
                    conn,
                    task.platform,
                    store_details(store),
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


def searched_state(task: Task) -> str | None:
    """The state to search; None for all. Raises Permanent for two different ones.

    Tasks inserted with SQL may call it `state_code`, as the API does, which translates it.
    """
    state, code = _text(task, "state"), _text(task, "state_code")
    if state is not None and code is not None and state != code:
        raise Permanent(f"state {state!r} and state_code {code!r} in the payload are the same argument: omit one")
    return code if state is None else state


def _text(task: Task, key: str) -> str | None:
    value = task.payload.get(key)
    if value is not None and not isinstance(value, str):
        raise Permanent(f"{key} in the payload must be a string, not {value!r}")
    return value


class EntryPointDiscovery:
    """Resolves the slug in `menu_url`, then enqueues the store's first crawl."""

    def __init__(self, context: HandlerContext) -> None:
        self._context = context

    async def __call__(self, task: Task, ctx: AttemptContext) -> Outcome:
        store = await self._context.store(task)
        if not store.crawl_enabled:
            raise Permanent(f"crawling of store {store.id} ({store.name}) is disabled")
        platform = self._context.platform(task)
        slug = store.slug or (platform.slug_of(store.menu_url) if store.menu_url else None)
        if slug is None:
            raise Permanent(f"store {store.id} has no slug, and its menu_url {store.menu_url!r} names none")
        async with self._context.session(task, platform, ctx, store=store) as session:
            try:
                found = await platform.resolve(session, slug)
                if found is None:
                    raise Permanent(f"store {slug!r} not found on {platform.name}")
                if found.problem is not None:
                    raise Permanent(f"store {slug!r} cannot be crawled: {found.problem}")
            except MenuwatchError as error:
                return fetch_errors.to_outcome(self._context, error, store.id)

        async with self._context.pool.connection() as conn:
            other = await stores.by_platform_id(conn, store.platform, found.platform_dispensary_id)
        if other is not None and other.id != store.id:
            return self._duplicate(store, other)

        async def writes(conn: AsyncConnection[Any]) -> None:
            await stores.update_details(conn, store.id, store_details(found))

        return Done(
            result={"platform_dispensary_id": found.platform_dispensary_id, **session.figures},
            then=(
                NewTask(
                    role=Role.PRODUCT_DISCOVERY,
                    dispensary_id=store.id,
                    platform=task.platform,
                    priority=PRIORITY_CHAINED,
                ),
            ),
            writes=writes,
        )

    def _duplicate(self, store: Store, other: Store) -> Fail:
        """Handles two rows for one shop: the one with the platform id stays, this one is never crawled."""
        reason = (
            f"store {store.id} ({store.slug or store.menu_url}) is a duplicate of store {other.id} ({other.name}) "
            f"of {other.platform}, {other.platform_dispensary_id}: crawling of this one was disabled"
        )

        async def writes(conn: AsyncConnection[Any]) -> None:
            await stores.close_duplicate(conn, store.id, self._context.clock.now(), reason)

        return Fail(reason=reason, writes=writes)


async def add_store(
    conn: Connection, platforms: Mapping[str, Platform], menu_url: str, platform: str | None = None
) -> tuple[Store, int]:
    """Adds a store by its menu URL, and enqueues the task that resolves it; returns the store and the task's id. The platform need be
    named only for menus on shops' own sites.

    Raises InvalidField for a URL that is not a menu of a configured platform, Conflict for a known store.
    """
    platform, slug = parse_menu_url(platforms, menu_url, platform)
    try:
        store = await stores.add_by_url(conn, platform=platform, slug=slug, menu_url=menu_url)
    except Refused as error:
        raise Conflict(str(error)) from error
    task = NewTask(
        role=Role.ENTRY_POINT_DISCOVERY, dispensary_id=store.id, platform=platform, priority=PRIORITY_CHAINED
    )
    (enqueued,) = await tasks.enqueue(conn, [task])
    await audit.record(conn, "store_added", ("store", store.id), platform=platform, slug=slug, task=enqueued.id)
    return store, enqueued.id


def parse_menu_url(platforms: Mapping[str, Platform], menu_url: str, named: str | None = None) -> tuple[str, str]:
    """(platform, slug) of a menu URL; `named`: the platform that the caller says it is of. Raises InvalidField."""
    if named is not None and named not in platforms:
        raise InvalidField("platform", unknown_value("platform", named, list(platforms)))
    for platform in platforms.values():
        if named not in (None, platform.name):
            continue
        slug = platform.slug_of(menu_url) if named is None else platform.slug_on_site(menu_url)
        if slug is None:
            continue
        if lacking := platform.lacks():
            raise InvalidField(
                "menu_url",
                f"{menu_url!r} is a menu of {platform.name}, which is not configured: set {' and '.join(lacking)}, or import "
                "recorded responses with `menuwatch replay`",
            )
        return platform.name, slug
    if named is not None:
        example = platforms[named].example_url
        hint = f": expected a URL such as {example}" if example else ": its menus have no URL"
        raise InvalidField("menu_url", f"{menu_url!r} is not a menu URL of {named}{hint}")
    examples = ", ".join(f"{each.name} ({each.example_url})" for each in platforms.values() if each.example_url)
    own = [each.name for each in platforms.values() if type(each).slug_on_site is not Platform.slug_on_site]
    hint = f"; for a menu on a shop's own site, name its platform ({' or '.join(own)})" if own else ""
    raise InvalidField("menu_url", f"{menu_url!r} is not a menu URL of a known platform: {examples}{hint}")
