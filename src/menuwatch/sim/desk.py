"""What the endpoint of every platform does with a request that it understood: it meets its fate, and is on record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

from menuwatch.sim.http import Answer
from menuwatch.sim.misbehave import Asked, Identity, Mischief
from menuwatch.sim.model import SimStore
from menuwatch.sim.spoil import spoiled
from menuwatch.sim.stats import Stats

MAX_PER_PAGE = 100


@dataclass(frozen=True, slots=True)
class Slice:
    """One page of a menu as it is served, and what it says of the whole; `pages` is how many there are in truth."""

    rows: Sequence[bytes]
    said_total: int
    said_pages: int
    pages: int


@dataclass(frozen=True, slots=True)
class Body:
    """A body to be sent. `crawled` is (page, pages) where it is a page of a whole menu."""

    data: bytes
    crawled: tuple[int, int] | None = None


class Desk:
    """Answers for one endpoint."""

    def __init__(self, mischief: Mischief, stats: Stats) -> None:
        self._mischief = mischief
        self._stats = stats

    def note(self, operation: str, identity: Identity, store: SimStore | None, page: int) -> Asked:
        """Puts a request on record; `page` counts from 0."""
        return Asked(
            number=self._stats.begin(operation),
            operation=operation,
            identity=identity,
            store=store.id if store is not None else None,
            slug=store.slug if store is not None else None,
            page=page,
        )

    def refused(self) -> None:
        """Puts a request on record that was wrong in itself."""
        self._stats.refused()

    def answer(self, asked: Asked, store: SimStore | None, tick: int, body: Callable[[bool], Body]) -> Answer:
        """The answer, spoiled or not; `body` is told whether its page is to be empty."""
        strike = self._mischief.strike(asked)
        emptied = strike is not None and strike[0] == "empty_page"
        if strike is not None and not emptied and strike[0] != "slow":
            spoiling = spoiled(strike[0], strike[1], asked.number)
            if spoiling is not None:
                self._stats.end(asked, spoiling.status, strike[0])
                return spoiling
        made = body(emptied)
        if strike is not None and strike[0] == "truncated":
            self._stats.end(asked, 200, "truncated")
            cut = max(1, len(made.data) * 2 // 3)
            return Answer(200, made.data, cut=cut) if strike[1].get("abrupt") else Answer(200, made.data[:cut])
        if made.crawled is not None and not emptied and store is not None:
            self._stats.served(store, tick, *made.crawled)
        self._stats.end(asked, 200, strike[0] if strike is not None else None)
        slow = float(strike[1].get("seconds", 1.0)) if strike is not None and strike[0] == "slow" else 0.0
        return Answer(200, made.data, wait=slow)

    def slice(self, rows: Sequence[bytes], asked: Asked, tick: int, per_page: int, *, emptied: bool) -> Slice:
        """The page that was asked for of a menu of these rows, with what the store's server does to pages."""
        page = max(0, asked.page or 0)
        clamp = self._mischief.of_store("clamp", asked, tick)
        if clamp is not None:
            per_page = min(per_page, int(clamp.get("per_page", 25)))
            self._stats.note("clamp")
        total = len(rows)
        pages = ceil(total / per_page)
        chosen = rows[page * per_page : (page + 1) * per_page]
        pinned = self._mischief.of_store("pinned", asked, tick)
        if pinned is not None and page and chosen:
            chosen = [*rows[: int(pinned.get("count", 3))], *chosen]
            self._stats.note("pinned")
        lie = self._mischief.of_store("total_lies", asked, tick)
        said, said_pages = total, pages
        if lie is not None and total:
            said, said_pages = max(0, total + int(lie.get("delta", 7))), max(0, pages + int(lie.get("page_delta", 0)))
            self._stats.note("total_lies")
        return Slice([] if emptied else chosen, said, said_pages, pages)
