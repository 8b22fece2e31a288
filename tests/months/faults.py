"""What can be wrong with an answer: each fault makes of a shop's true menu the pages that a crawl is given, and says what must become
of them.

| fault | what the crawl is given |
|-------|-------------------------|
| third | a third of the menu or less, its totals agree with it |
| slow | the same, reached in two to five steps |
| middle | a page in the middle with a third of its rows or less; the totals agree with what came, or still tell the truth |
| last | the last page with a third of its rows or less, the totals still tell the truth |
| missing | pages from the second on that stay empty, or answer with a server's fault |
| block | a web page in place of a page, with status 200 |
| empty | no product: an empty list, with or without a total, or no byte at all |
| schema | items or envelope in a shape of another day: renamed, of other types, null, wrapped |
| cut | JSON that ends too soon |
| stranger | one page of another shop, or all of them |
| repeats | rows that come twice, pages that come twice |
| malformed | up to a sixth of the items unreadable |
| nameless | one or two items without an id that can be read, the same ones for as long as it lasts |
| late | the menu is sound, and is refreshed after the next one |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from tests.months.market import Good
from tests.months.wire import Item, Wire

Verdict = Literal["taken", "kept out", "either"]
"""Whether the catalogue must show the crawl, must not, or may: of a slow shrinking nobody can know the first step."""

BLOCK = b"<!DOCTYPE html><html><head><title>Just a moment...</title></head><body>Enable JavaScript and cookies</body></html>"

FAULTS = (
    "third", "slow", "middle", "last", "missing", "block", "empty", "schema", "cut", "stranger", "repeats", "malformed", "nameless",
    "late",
)  # fmt: skip
LONGEST = {"slow": 3, "late": 1}
"""Crawls that a fault lasts at most, where it is not `_LONGEST`; a slow one stays so long at its end."""
_LONGEST = 9
STUBBORN = frozenset({"third", "block", "empty", "schema", "stranger"})
"""Once in a while one of these lasts for one to three weeks, and nobody does anything about it."""
SMALL = 24
"""Of a shop with fewer products than this, the loss of some at once is nothing out of the ordinary: it has no slow shrinking."""
TINY = 12
"""Of so few products two thirds may go at once (`quarantine.ALWAYS_LOST`): other signs must tell that something is wrong."""
TINY_STRANGER = "all pages, tiny shop"
TINY_THIRD = "third, tiny shop"
"""Faults of shops with no more products than `TINY`, for the platforms that have no other signs (`Wire.unshown`)."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Pages by their number from 0, and what any later page is. None is a server's fault."""

    pages: tuple[bytes | None, ...]
    beyond: bytes

    def page(self, number: int) -> bytes | None:
        return self.pages[number] if number < len(self.pages) else self.beyond


@dataclass(frozen=True, slots=True)
class Served:
    """What one crawl is given. `shown` are the goods that can be read in it, `unread` those that are there and cannot; `hidden`: there
    are items of which nobody knows what they are."""

    answer: Answer
    verdict: Verdict
    shown: dict[int, Good]
    unread: frozenset[int] = frozenset()
    hidden: bool = False
    what: str = ""


@dataclass(frozen=True, slots=True)
class Shop:
    """A store as a platform serves it, `size` items to a page."""

    wire: Wire
    id: str
    size: int
    other: str
    """The id of another shop on the same platform."""

    def items(self, goods: Sequence[Good]) -> list[Item]:
        return [self.wire.item(good, self.id) for good in goods]

    def paged(self, items: Sequence[Item]) -> list[list[Item]]:
        return [list(items[at : at + self.size]) for at in range(0, len(items), self.size)] or [[]]

    def answer(self, pages: Sequence[Sequence[Item]], *, total: int | None = None) -> Answer:
        """The pages as they are; `total` is what they say of the whole, the number of items where it is not given."""
        if total is None:
            total = sum(map(len, pages))
        made = [self.wire.page(page, number=n, size=self.size, total=total) for n, page in enumerate(pages)]
        return Answer(tuple(made), self.wire.page([], number=len(pages), size=self.size, total=total))

    def sound(self, goods: dict[int, Good]) -> Served:
        listed = list(goods.values())
        return Served(self.answer(self.paged(self.items(listed))), "taken", dict(goods))


@dataclass(slots=True)
class Episode:
    """A fault for as long as it lasts. What it draws is drawn once: a fault that lasts shows the same face."""

    kind: str
    rng: Random
    crawls: int
    step: int = 0
    shares: list[float] = field(default_factory=list)
    seed: int = 0
    variant: str = ""

    @property
    def over(self) -> bool:
        return self.step >= self.crawls


def begin(rng: Random, kind: str, shop: Shop) -> Episode:
    """A new episode of that kind."""
    found = Episode(kind, rng, rng.randrange(1, LONGEST.get(kind, _LONGEST) + 1), seed=rng.randrange(1 << 30))
    if kind in STUBBORN and rng.random() < 0.1:
        found.crawls = rng.randrange(40, 80)
    last = rng.uniform(0.03, 1 / 3)
    if kind == "slow":
        steps = rng.randrange(2, 6)
        found.shares = [1 - (1 - last) * (n + 1) / steps for n in range(steps)]
        found.shares += [last] * found.crawls
        found.crawls = len(found.shares)
    elif kind in ("third", "middle", "last"):
        found.shares = [last] * found.crawls
    choices = {
        "middle": ["totals agree", "totals are true"],
        "missing": ["empty", "server fault"],
        "block": ["first page", "later page"],
        "empty": ["no total", "total as usual", "total 0", "no byte"],
        "schema": [*shop.wire.renames, *shop.wire.odd_envelopes([])],
        "stranger": ["one page", "all pages"],
        "repeats": ["rows", "pages"],
        "malformed": [*shop.wire.malformed],
    }
    if kind in choices:
        found.variant = rng.choice([one for one in choices[kind] if one not in shop.wire.unshown])
    return found


def serve(episode: Episode, shop: Shop, goods: dict[int, Good]) -> Served | None:
    """What the next crawl of an episode is given; None where the shop cannot have this fault (a middle page of a single one)."""
    number, episode.step = episode.step, episode.step + 1
    rng = Random(episode.seed)
    match episode.kind:
        case "slow" if number == 0 and len(goods) < SMALL:
            return None
        case "third" if len(goods) <= TINY and TINY_THIRD in shop.wire.unshown:
            return None
        case "third" | "slow":
            return _shrunk(episode, number, shop, goods, rng)
        case "middle" | "last":
            return _short_page(episode, number, shop, goods, rng)
        case "missing" | "block" | "cut":
            return _broken_page(episode, shop, goods, rng)
        case "empty":
            return _empty(episode, shop, goods)
        case "schema":
            return _schema(episode, shop, goods)
        case "stranger":
            return _stranger(episode, shop, goods, rng)
        case "repeats":
            return _repeats(episode, shop, goods)
        case "malformed" | "nameless":
            return _malformed(episode, shop, goods, rng)
    return shop.sound(goods)


def _shrunk(episode: Episode, number: int, shop: Shop, goods: dict[int, Good], rng: Random) -> Served:
    # The same products are lost first every time, whatever comes and goes meanwhile.
    ranked = sorted(goods, key=lambda good: Random(f"{episode.seed}/{good}").random())
    share = episode.shares[number]
    kept = set(ranked[: max(1, int(share * len(goods)))])
    shown = {i: good for i, good in goods.items() if i in kept}
    early = episode.kind == "slow" and share > 1 / 3
    answer = shop.answer(shop.paged(shop.items(list(shown.values()))))
    return Served(answer, "either" if early else "kept out", shown, what=f"{share:.0%}")


def _short_page(episode: Episode, number: int, shop: Shop, goods: dict[int, Good], rng: Random) -> Served | None:
    pages = shop.paged(shop.items(list(goods.values())))
    at = len(pages) // 2 if episode.kind == "middle" else len(pages) - 1
    if len(pages) < (3 if episode.kind == "middle" else 2) or len(pages[at]) < shop.size // 2:
        return None
    pages[at] = pages[at][: max(1, int(episode.shares[number] * len(pages[at])))]
    total = None if episode.variant == "totals agree" else len(goods)
    return Served(shop.answer(pages, total=total), "kept out", {}, what=episode.variant)


def _broken_page(episode: Episode, shop: Shop, goods: dict[int, Good], rng: Random) -> Served | None:
    sound = shop.sound(goods).answer
    pages: list[bytes | None] = list(sound.pages)
    if episode.kind == "missing":
        first = rng.randrange(1, max(len(pages), 2))
        if first >= len(pages):
            return None
        pages[first:] = [sound.beyond if episode.variant == "empty" else None] * (len(pages) - first)
        return Served(Answer(tuple(pages), sound.beyond), "kept out", {}, what=episode.variant)
    at = 0 if episode.variant == "first page" else rng.randrange(len(pages))
    whole = pages[at] or b""
    pages[at] = BLOCK if episode.kind == "block" else whole[: rng.randrange(len(whole) // 3, len(whole) - 1)]
    return Served(Answer(tuple(pages), sound.beyond), "kept out", {}, what=episode.variant)


def _empty(episode: Episode, shop: Shop, goods: dict[int, Good]) -> Served:
    totals = {"no total": None, "total as usual": len(goods), "total 0": 0}
    page = (
        b"" if episode.variant == "no byte"
        else shop.wire.page([], number=0, size=shop.size, total=totals[episode.variant])
    )  # fmt: skip
    return Served(Answer((page,), page), "kept out", {}, what=episode.variant)


def _schema(episode: Episode, shop: Shop, goods: dict[int, Good]) -> Served:
    items = shop.items(list(goods.values()))
    change = shop.wire.renames.get(episode.variant)
    if change is None:
        page = shop.wire.odd_envelopes(items)[episode.variant]
        return Served(Answer((page,), page), "kept out", {}, what=episode.variant)
    answer = shop.answer(shop.paged([change(item) for item in items]))
    return Served(answer, "kept out", {}, what=episode.variant)


def _stranger(episode: Episode, shop: Shop, goods: dict[int, Good], rng: Random) -> Served | None:
    if len(goods) <= TINY and TINY_STRANGER in shop.wire.unshown:
        return None
    pages = shop.paged(shop.items(list(goods.values())))
    which = range(len(pages)) if episode.variant == "all pages" else [rng.randrange(len(pages))]
    for at in which:
        strange = [
            Good(good.id + 5_000_000, good.cents, good.quantity) for good in list(goods.values())[: len(pages[at])]
        ]
        pages[at] = [
            shop.wire.item(Good(good.id + 1000 * at, good.cents, good.quantity), shop.other) for good in strange
        ]
    return Served(shop.answer(pages), "kept out", {}, what=episode.variant)


def _repeats(episode: Episode, shop: Shop, goods: dict[int, Good]) -> Served:
    items = shop.items(list(goods.values()))
    pages = shop.paged(items)
    if episode.variant == "rows":
        # Pinned products: the first three once more on every later page.
        pages = [pages[0], *([*items[:3], *page] for page in pages[1:])]
    else:
        pages.append(pages[-1])
    return Served(shop.answer(pages, total=len(items)), "taken", dict(goods), what=episode.variant)


def _malformed(episode: Episode, shop: Shop, goods: dict[int, Good], rng: Random) -> Served | None:
    ranked = sorted(goods, key=lambda good: Random(f"{episode.seed}/{good}").random())
    nameless = episode.kind == "nameless"
    most = min(2, len(goods) // 10) if nameless else len(goods) // 6
    if not most:
        return None
    chosen = frozenset(ranked[: 1 + episode.seed % most])
    items = []
    for good in goods.values():
        item = shop.wire.item(good, shop.id)
        if good.id in chosen:
            spoil = shop.wire.malformed.get(episode.variant)
            item = shop.wire.nameless(item) if spoil is None else spoil(item)
        items.append(item)
    shown = {i: good for i, good in goods.items() if i not in chosen}
    unread = frozenset() if nameless else chosen
    return Served(shop.answer(shop.paged(items)), "taken", shown, unread, hidden=nameless, what=episode.variant)
