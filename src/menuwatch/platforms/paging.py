"""Fetches the pages of a menu. `Pager` decides which page to request next, and whether the menu is complete.

A page's statements about the whole menu are unreliable. The server clamps `perPage`, repeats pinned products on several
pages, and menus change while they are read; blocks and races show as empty pages.

| answer | next step |
|-----------|--------------|
| page with new ids, more pages by `totalPages` | the next page |
| page with new ids, `totalPages` reached | end of the pass |
| the same, but a full page, or the only one and shorter than the total | one page more, beyond `totalPages` |
| page with new ids, no `totalPages` | end of the pass when the page is short or the total is reached, else the next page |
| page without a new id (a repeated page) | end of the pass |
| the same, but no copy of an earlier page and `totalPages` promises more | the next page; a second such page ends the pass |
| first page empty, total above 0 | retry, at most 2 times; then the menu is empty |
| first page empty, total 0 or unknown | the menu is empty |
| empty page after all products, beyond `totalPages`, or after a short page | end of the pass (noted) |
| empty page after a full page, products missing | retry, at most 2 times; then partial |
| the same, but the rows (repeats counted) are within 2 % of the total | end of the pass after those 2 retries |
| more than 500 pages | partial |

| end of a pass | outcome |
|---------------|---------|
| the total did not change and equals the number of rows (repeats counted) | complete |
| the total did not change and is too high, all pages full but the last (short, or last by `totalPages`) | complete, noted |
| first pass, the total changed or rows are missing | one more pass over all pages; the union counts |
| second pass, at most 2 % of the last total missing | complete, noted |
| second pass, more missing | partial |

A page is *full* when it has as many rows as the largest page so far, once a later page has shown that the server clamps;
until then, when it has as many rows as requested. A first page that stays the only one although more are promised counts
as clamped if its number of rows is a usual clamp size (tens and dozens), else as the menu's end. Each item without a readable id
counts as a separate row.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from menuwatch.core.errors import BadPayload
from menuwatch.platforms.envelope import check_count
from menuwatch.platforms.model import Menu, PageInfo

MAX_PAGES = 500
MAX_PASSES = 2
MAX_RETRIES = 2
TOLERATED_SHARE = 0.02
MAX_MENU_BYTES = 256_000_000
"""Maximum bytes of all pages of a menu, which are in memory together."""


class Ask(Struct, frozen=True):
    """Request this page (from 0). `again` says that it is a retry of the last one."""

    page: int
    again: bool = False


class Stop(Struct, frozen=True):
    """The crawl has ended. `complete` is false if products are known to be missing; `empty` if there were none at all."""

    complete: bool
    empty: bool = False


class _Pass(Struct):
    """Observations of one pass over the pages."""

    number: int
    page: int = 0
    rows: int = 0
    ids: set[str] = set()
    sizes: list[int] = []
    pages: set[frozenset[str]] = set()
    stale: int = 0
    totals: list[int] = []
    retries: int = 0


class Pager:
    """The paging state of one menu's crawl. Start with page 0, feed every answer, follow the returned step."""

    def __init__(self, per_page: int) -> None:
        self._per_page = per_page
        self._pass = _Pass(1)
        self._union: set[str] = set()
        self._nameless = 0
        self._repeats = 0
        self._notes: list[str] = []
        self._total: int | None = None
        self._total_pages: int | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """Anomalies, in order of occurrence."""
        return tuple(self._notes)

    @property
    def product_count(self) -> int:
        """Distinct products so far; items without a readable id count as one each."""
        return len(self._union) + self._nameless

    @property
    def total_count(self) -> int | None:
        """The latest total in the menu."""
        return self._total

    @property
    def short(self) -> int:
        """Rows that seem to be missing: the total counts them, or a page before the last had less than half the rows of another.
        Either may be normal (totals are inexact, pages are filtered); the caller can compare with earlier menus.
        """
        sizes = self._pass.sizes
        holes = sum(max(sizes) - size for size in sizes[:-1] if 2 * size < max(sizes))
        return max(holes, self._missing(), 0)

    def feed(self, ids: Sequence[str | None], total_count: int | None, total_pages: int | None) -> Ask | Stop:
        """Processes the answer for the requested page; `ids` has one entry per row."""
        if total_count is not None:
            self._total = total_count
            self._pass.totals.append(total_count)
        if total_pages is not None:
            self._total_pages = total_pages
        return self._filled(ids) if ids else self._empty()

    def _filled(self, ids: Sequence[str | None]) -> Ask | Stop:
        now = self._pass
        named = {i for i in ids if i is not None}
        nameless = sum(1 for i in ids if i is None)
        new = len(named - now.ids)
        now.retries = 0
        self._union |= named
        if now.number == 1:
            self._nameless += nameless
        if now.page and not new and not nameless:
            copy = named in now.pages
            now.stale += 1
            if not copy:
                # Rows that the total counts and the menu repeats: pinned products.
                self._count(ids, new)
            if copy or now.stale > 1 or not self._promised():
                self._note(f"page {now.page + 1} contained only repeated products")
                return self._end_of_pass()
            return self._next()
        now.stale = 0
        self._count(ids, new)
        now.sizes.append(len(ids))
        now.pages.add(frozenset(named))
        now.ids |= named
        if now.page + 1 >= MAX_PAGES:
            self._note(f"stopped after {MAX_PAGES} pages")
            return Stop(complete=False)
        return self._end_of_pass() if self._is_last() else self._next()

    def _is_last(self) -> bool:
        """Whether the current page was the last one of its pass."""
        now = self._pass
        if self._promised():
            return False
        if self._is_full(now.sizes[-1]):
            return False  # a total that is too low would end the crawl here, so request one more page
        if self._proven_clamp():
            return True  # shorter than the pages before it
        # The only page so far, shorter than requested: if the total differs, the page may be clamped, so request one
        # more.
        if self._total is None:
            return self._total_pages is not None
        return self._total in (now.rows, len(now.ids))

    def _promised(self) -> bool:
        return self._total_pages is not None and self._pass.page + 1 < self._total_pages

    def _count(self, ids: Sequence[str | None], new: int) -> None:
        self._pass.rows += len(ids)
        if self._pass.number == 1:
            self._repeats += sum(1 for i in ids if i is not None) - new

    def _empty(self) -> Ask | Stop:
        now = self._pass
        if now.page == 0:
            if self._total and now.retries < MAX_RETRIES:
                return self._again()
            if now.number == 1:
                return Stop(complete=False, empty=True)
            self._note("the second pass found the menu empty")
            return Stop(complete=False)
        beyond = self._total_pages is not None and now.page >= self._total_pages
        enough = self._total is None or now.rows >= self._total
        # Repeats count as rows, so the row count does not show whether a promised page has new products.
        settled = enough and (self._total is None or self._total_pages is None or len(now.ids) >= self._total)
        if beyond or settled or self._is_short(now.sizes[-1]):
            if not enough:
                self._note(f"page {now.page + 1} was empty before the total of {self._total}, after the menu's end")
            return self._end_of_pass()
        if now.retries < MAX_RETRIES:
            return self._again()
        self._note(f"page {now.page + 1} stayed empty, {now.rows} of {self._total} rows received")
        if self._too_many(self._missing()) and not self._ended():
            return Stop(complete=False)
        return self._end_of_pass()

    def _end_of_pass(self) -> Ask | Stop:
        now = self._pass
        if self._repeats and now.number == 1:
            self._note(f"{self._repeats} rows were repeats")
        changed = len(set(now.totals)) > 1
        missing = self._missing()
        if changed:
            self._note(f"the total changed from {now.totals[0]} to {now.totals[-1]} in pass {now.number}")
        elif missing <= 0:
            if missing < 0 and not self._repeats:
                self._note(f"the total of {self._total} is too low: {self.product_count} products came")
            return Stop(complete=True)
        elif self._ended():
            self._note(f"the total of {self._total} is too high: the menu ended after {now.rows} rows")
            return Stop(complete=True)
        if now.number < MAX_PASSES:
            self._note("fetched again from the first page")
            self._pass = _Pass(now.number + 1)
            return Ask(0)
        if missing > 0:
            self._note(f"{missing} of {self._total} products are missing")
        return Stop(complete=not self._too_many(missing))

    def _missing(self) -> int:
        """Rows short of the last total. Repeats count: the server counts them, and a product moved to the next page by a
        new one appears twice.
        """
        if self._total is None:
            return 0
        return self._total - max(self._pass.rows, self.product_count)

    def _too_many(self, missing: int) -> bool:
        return self._total is not None and missing >= 1 and missing > TOLERATED_SHARE * self._total

    def _proven_clamp(self) -> bool:
        """Page size known from later pages: once there are pages after the first, the largest is the size the server clamps to."""
        return len(self._pass.sizes) > 1

    def _is_full(self, size: int) -> bool:
        return size >= self._per_page or (self._proven_clamp() and size >= max(self._pass.sizes))

    def _is_short(self, size: int) -> bool:
        return self._proven_clamp() and size < max(self._pass.sizes)

    def _ended(self) -> bool:
        """Whether the pages look like a menu read to its end: all full but the last, which is short or followed by nothing
        according to `totalPages` and an empty answer.
        """
        sizes = self._pass.sizes
        if not sizes or any(size != max(sizes) for size in sizes[:-1]):
            return False
        if self._total_pages is not None and self._pass.page >= self._total_pages:
            return True
        if len(sizes) == 1:
            # One page, and nothing where more were promised: the end, unless a server could clamp to that number.
            return sizes[0] < self._per_page and sizes[0] % 10 != 0 and sizes[0] % 12 != 0
        return sizes[-1] < max(sizes)

    def _next(self) -> Ask:
        self._pass.page += 1
        self._pass.retries = 0
        return Ask(self._pass.page)

    def _again(self) -> Ask:
        self._pass.retries += 1
        self._note(f"page {self._pass.page + 1} was empty and fetched again")
        return Ask(self._pass.page, again=True)

    def _note(self, text: str) -> None:
        if text not in self._notes:
            self._notes.append(text)


async def whole_menu(
    page: Callable[[int], Awaitable[tuple[bytes, PageInfo]]],
    *,
    per_page: int,
    store: str,
    pause: Callable[[], Awaitable[None]],
) -> Menu:
    """Every page of a store's menu. `page` fetches one by its number, from 0; `pause` waits before a retry; `store` names the store in
    messages. Raises BadPayload of kind empty if the menu has no products, of kind limits if it is larger than any menu, and
    what `page` raises.
    """
    pager = Pager(per_page)
    bodies: list[bytes] = []
    strict: set[int] = set()
    rows = size = 0
    step = Ask(0)
    while True:
        body, found = await page(step.page)
        if found.ids:
            # An empty page is not kept; the notes mention it.
            if found.strict:
                strict.add(len(bodies))
            bodies.append(body)
            rows, size = rows + len(found.ids), size + len(body)
            check_count(rows, body)
            if size > MAX_MENU_BYTES:
                raise BadPayload("limits", f"the menu has more than {MAX_MENU_BYTES:,} bytes", body)
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
