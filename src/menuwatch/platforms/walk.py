"""Walking over the pages of a menu, as `paging` decides, and over those of a list of stores."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

import msgspec

from menuwatch.core.errors import BadPayload
from menuwatch.platforms.base import FoundStore, Menu
from menuwatch.platforms.paging import Ask, Pager

MAX_STORE_PAGES = 200


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a menu. The totals are None where the answer names none that make sense."""

    items: list[msgspec.Raw]
    total_count: int | None
    total_pages: int | None

    def survey(self, identity: Callable[[msgspec.Raw], str | None]) -> Survey:
        """What paging wants to know of it; `identity` gives an item's product id."""
        return Survey(tuple([identity(item) for item in self.items]), self.total_count, self.total_pages, strict=False)


@dataclass(frozen=True, slots=True)
class Survey:
    """What paging wants to know of a page: `ids` has one entry per item, None where it has no id that can be read. `strict`: the body
    was found to be strict JSON."""

    ids: tuple[str | None, ...]
    total_count: int | None
    total_pages: int | None
    strict: bool


async def whole_menu(
    page: Callable[[int], Awaitable[tuple[bytes, Survey]]],
    *,
    per_page: int,
    store: str,
    pause: Callable[[], Awaitable[None]],
) -> Menu:
    """Every page of a store's menu; `page` asks for one by its number, from 0, `pause` waits before one is asked for again, and
    `store` names the store in messages. Raises BadPayload of kind empty where it has no products, and what `page` raises."""
    pager = Pager(per_page)
    bodies: list[bytes] = []
    strict: set[int] = set()
    step = Ask(0)
    while True:
        body, found = await page(step.page)
        if found.ids:
            # An empty page holds nothing to keep; that there was one is in the notes.
            if found.strict:
                strict.add(len(bodies))
            bodies.append(body)
        after = pager.feed(found.ids, found.total_count, found.total_pages)
        if isinstance(after, Ask):
            if after.again:
                await pause()
            step = after
            continue
        if after.empty:
            said = f", while its total says {pager.total_count}" if pager.total_count else ""
            raise BadPayload("empty", f"the menu of store {store} has no products{said}", body)
        return Menu(
            pages=tuple(bodies),
            product_count=pager.product_count,
            total_count=pager.total_count,
            complete=after.complete,
            notes=pager.notes,
            strict=frozenset(strict),
            short=pager.short,
        )


async def all_stores(page: Callable[[int], Awaitable[Sequence[FoundStore]]]) -> AsyncIterator[FoundStore]:
    """The stores of a list, each once; `page` asks for a page of it by its number, from 0.

    A server that ignores the paging gives the same list again, which ends it, as an empty page does, or one shorter than another.
    (A first page alone says nothing: it may be clamped.)
    """
    seen: set[str] = set()
    largest = 0
    for number in range(MAX_STORE_PAGES):
        stores = await page(number)
        new = 0
        for store in stores:
            if store.platform_dispensary_id in seen:
                continue
            new += 1
            seen.add(store.platform_dispensary_id)
            yield store
        largest = max(largest, len(stores))
        if not new or (number and len(stores) < largest):
            return
