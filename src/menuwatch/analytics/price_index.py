"""The price index: how prices of the same items changed, by category and state.

A chained, matched-model, geometric (Jevons) index, by day (UTC).

- **Item.** One option of one product at one store. Its price is the effective one: special included, medical only where there is no
  recreational price. Prices of 0 are none.
- **Observed.** An item is observed on a day if a crawl that no earlier day has counted saw it on the menu, not out of stock, with a
  price. The last such price by the end of the day counts.
- **Link.** The change from one day to the next is the mean of ln(price / former price) over matched items: those observed on the day
  that have a former price at most KEEP_DAYS days old. An item that enters has no former price, one that leaves no new one: neither has
  an effect.
- **Gaps.** An item that is not observed (store not crawled, out of stock, off the menu) takes no part in the links of these days, so
  that it moves with its group. When it is observed again, its whole change since its former price counts, less what the group did
  meanwhile. The level then is what it would have been without the gap. After KEEP_DAYS it enters as a new item.
- **Outliers.** A price that differs from the former one by more than OUTLIER_FACTOR either way is as if it had not been observed: the
  former one is kept. Once a fault is corrected, the item brings what it really changed by; one that stays so dear enters as a new
  item after KEEP_DAYS.
- **Late menus.** A day is computed DELAY after its end and stays as it is. A crawl that is applied later counts on the next day.

- **Confidence interval.** Of the sampling of stores, by random groups: every store belongs to one of GROUPS by its id, and what each
  group added to the level beyond its share is summed up over the days. Sums over the whole span also know that specials end, which the
  variances of single days do not. Interval: t(0.975, groups - 1) times the root of groups / (groups - 1) times the sum of squares.

Every link is stored for each state and category, for all states and for all categories.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Literal

import msgspec
from msgspec import Struct, field

from menuwatch.core.errors import InvalidField
from menuwatch.core.shapes import doc
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_one, fetch_structs

_q = sql.load(__package__, "price_index.sql")

KEEP_DAYS = 28
"""Days for which a price that is not observed again is kept."""
OUTLIER_FACTOR = 5
"""A price that is more than this many times, or less than this part of, the former one is left out."""
DELAY = timedelta(hours=6)
"""Time after the end of a day for its last menus to be applied."""
GROUPS = 20
"""Random groups of stores; stored sums depend on it."""
MOST_DAYS = 100
"""Days that one refresh computes, and days before the first refresh that the index begins at."""
_SECONDS = 120.0
"""Time after which a refresh begins no further day: an old installation catches up over several refreshes."""

LEAST_ITEMS, LEAST_STORES = 5, 2
"""Matched items and their stores below which a link is not stated."""
USUAL_DAYS = 90
LONGEST_DAYS = 1100
"""Days that are shown by default, and at most."""

_TEMPORARY = ("index_crawls", "index_listings", "index_prices", "index_sums")
_STEPS = (
    ("fill_index_crawls", "index_crawls"), ("fill_index_listings", "index_listings"), ("fill_index_prices", "index_prices"),
    ("fill_index_sums", "index_sums"), ("drop_outliers", None),
    ("insert_day", None), ("age_items", None), ("update_items", None), ("insert_items", None), ("put_stores", None),
    ("expire_items", None),
)  # fmt: skip


async def compute(conn: Connection, now: datetime, *, most: int = MOST_DAYS) -> int:
    """Computes the days that are over and not computed yet, oldest first, each in a transaction of its own; returns how many. The
    caller holds the lock of the refresh. A day that was computed never changes."""
    for name in _TEMPORARY:
        await conn.execute(_q[f"create_{name}"])
    row = await fetch_one(conn, _q.next_day, {"now": now, "most": most})
    if row is None:
        return 0
    began, done, day = time.monotonic(), 0, row["day"]
    while done < most and _start(day) + timedelta(days=1) + DELAY <= now and time.monotonic() - began < _SECONDS:
        await _compute_day(conn, day)
        day, done = day + timedelta(days=1), done + 1
    return done


async def _compute_day(conn: Connection, day: date) -> None:
    values = {"day": day, "start": _start(day), "keep": KEEP_DAYS, "factor": OUTLIER_FACTOR, "groups": GROUPS}
    async with conn.transaction():
        # Items, stores and crawls of one moment, though menus are applied meanwhile.
        await conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        await conn.execute("SET LOCAL work_mem = '64MB'")
        await conn.execute(_q.empty_index)
        for name, table in _STEPS:
            await conn.execute(_q[name], values, prepare=False)
            if table is not None:
                await conn.execute(f"ANALYZE {table}")


def _start(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


NoIndex = Literal["too_few_items", "too_few_observed", "before_base"]


class PriceIndexDay(Struct, kw_only=True, frozen=True):
    """The price index on one day (UTC)."""

    day: date
    index: Annotated[Decimal | None, doc("100 on the day `base`; null with a `reason`.")]
    low: Annotated[Decimal | None, doc("Lower limit of the 95 % confidence interval of the index.")]
    high: Annotated[Decimal | None, doc("Upper limit of the 95 % confidence interval of the index.")]
    change: Annotated[
        Decimal | None,
        doc("Mean change of matched items since the day before: 0.01 is one percent more. Null if it is not stated."),
    ]
    reason: Annotated[
        NoIndex | None,
        doc(
            "Why there is no index. `too_few_items`: fewer than 5 items or 2 stores have an earlier price, the chain ends here; "
            "`too_few_observed`: fewer than that were observed on the day; `before_base`: the chain was broken later."
        ),
    ]
    matched: Annotated[int, doc("Items that the change is based on.")]
    stores: Annotated[int, doc("Stores of these items.")]
    known_stores: Annotated[int, doc("Stores of matched and carried items.")]
    carried: Annotated[int, doc("Items with an earlier price that were not observed on the day, or are outliers.")]
    entered: Annotated[int, doc("Items without an earlier price: new, or not observed for more than 28 days.")]
    expired: Annotated[int, doc("Items that left: they were not observed for more than 28 days.")]
    outliers: Annotated[
        int, doc("Of `carried`, those whose price is more than five times the earlier one, or less than a fifth.")
    ]


class PriceIndex(Struct, kw_only=True, frozen=True):
    """The price index of a state and category."""

    state: Annotated[str, doc("Two-letter state, `all` or `unknown`.")]
    category: Annotated[str, doc("Canonical category, `all` or `unknown`.")]
    from_: Annotated[date, doc("First requested day.")] = field(name="from")
    to: Annotated[date, doc("Last requested day.")]
    base: Annotated[date | None, doc("The day on which the index is 100; null if there is no index.")]
    first_day: Annotated[date | None, doc("First computed day that is kept; null if none is kept.")]
    last_day: Annotated[date | None, doc("Last computed day; null if none is computed.")]
    notice: Annotated[str | None, doc("Why there is no index; null if there is one.")]
    items: Annotated[list[PriceIndexDay], doc("Computed days, oldest first.")]


class _Link(Struct, kw_only=True, frozen=True):
    day: date
    stores: int
    known_stores: int
    matched: int
    carried: int
    entered: int
    expired: int
    outliers: int
    change: float | None
    level: float | None
    deviations: list[float] | None

    @property
    def is_based(self) -> bool:
        """Whether enough was observed to state the link."""
        return self.matched >= LEAST_ITEMS and self.stores >= LEAST_STORES

    @property
    def is_broken(self) -> bool:
        """Whether too little is known to carry on: what is observed later cannot repair the link."""
        return self.matched + self.carried < LEAST_ITEMS or self.known_stores < LEAST_STORES


def _not_computed(first_crawl: datetime | None, now: datetime) -> str:
    """Why no day is computed, and when one will be."""
    if first_crawl is None:
        return "No day is computed: no store was crawled yet."
    day = first_crawl.astimezone(UTC).date()
    due = _start(day) + timedelta(days=1) + DELAY
    if now < due:
        return (
            f"No day is computed yet. The first crawl was on {day}, and that day is computed from {due:%Y-%m-%d %H:%M} UTC on; "
            "changes need a second day."
        )
    return (
        "No day is computed yet. The task `analytics_refresh` computes days; `menuwatch analytics refresh` does so now."
    )


async def read_price_index(
    conn: Connection,
    *,
    state: str = "all",
    category: str = "all",
    first: date | None = None,
    last: date | None = None,
    days: int = USUAL_DAYS,
) -> PriceIndex:
    """The index from `first` to `last`, both included; by default the last `days` that are computed. Raises InvalidField for a span
    that is empty or too long."""
    computed = await fetch_one(conn, _q.computed_days, {})
    assert computed is not None, "an aggregate answers with one row"
    newest = computed["last_day"] or datetime.now(UTC).date()
    last = last or max(newest, first or newest)
    first = first or last - timedelta(days=days - 1)
    if first > last:
        raise InvalidField("from", f"{first} is after the last day {last}: `from` must not be later than `to`")
    if (last - first).days >= LONGEST_DAYS:
        raise InvalidField("from", f"from {first} to {last} are more than {LONGEST_DAYS} days: request a shorter time")
    values = {"state": state, "category": category, "first": first, "last": last}
    links = await fetch_structs(conn, _Link, _q.index_days, values)
    base, items = _chain(links)
    notice = None
    if computed["last_day"] is None:
        notice = _not_computed(computed["first_crawl"], datetime.now(UTC))
    elif not links:
        notice = f"No day in this period is computed. Days are kept since {computed['first_day']}, up to {computed['last_day']}."
    elif base is None:
        notice = f"Too few items to state an index: at least {LEAST_ITEMS} of {LEAST_STORES} stores are needed."
    return PriceIndex(
        state=state, category=category, from_=first, to=last, base=base, first_day=computed["first_day"],
        last_day=computed["last_day"], notice=notice, items=items,
    )  # fmt: skip


def _chain(links: Sequence[_Link]) -> tuple[date | None, list[PriceIndexDay]]:
    """The base day, and the days with their index. The base is the first day of the chain that is unbroken to the end: the one on
    which its items entered, or else the first that states its link. Pure."""
    after = max((n + 1 for n, link in enumerate(links) if link.is_broken), default=0)
    start = next((n for n in range(after, len(links)) if links[n].is_based), None)
    if start is None:
        return None, [_day(link, reason=_reason(link)) for link in links]
    origin = links[start]
    if after > 0 and links[after - 1].matched + links[after - 1].carried == 0:
        start = after - 1
        level = (links[after].level or 0.0) - (links[after].change or 0.0)
        origin = msgspec.structs.replace(links[start], level=level)
    days = [_day(link, reason=_reason(link) or "before_base") for link in links[:start]]
    days.append(_day(links[start], 100.0, 0.0))
    for link in links[start + 1 :]:
        if link.is_based:
            days.append(_day(link, 100 * math.exp((link.level or 0.0) - (origin.level or 0.0)), _width(origin, link)))
        else:
            days.append(_day(link, reason="too_few_observed"))
    return links[start].day, days


def _width(base: _Link, link: _Link) -> float | None:
    """Half the width of the 95 % interval of the difference between the levels; None where it rests on a single group of stores."""
    before = base.deviations or [0.0] * GROUPS
    squares = [(now - then) ** 2 for now, then in zip(link.deviations or (), before, strict=True)]
    groups = sum(one > 1e-24 for one in squares)
    if groups == 0:
        return 0.0
    return None if groups == 1 else _T[groups - 2] * math.sqrt(sum(squares) * groups / (groups - 1))


def _reason(link: _Link) -> NoIndex | None:
    return "too_few_items" if link.is_broken else None if link.is_based else "too_few_observed"


def _day(
    link: _Link, index: float | None = None, width: float | None = None, *, reason: NoIndex | None = None
) -> PriceIndexDay:
    low, high = (None, None) if index is None or width is None else (index / math.exp(width), index * math.exp(width))
    change = math.expm1(link.change) if link.is_based and link.change is not None else None
    return PriceIndexDay(
        day=link.day, index=_decimal(index, 4), low=_decimal(low, 4), high=_decimal(high, 4), change=_decimal(change, 6),
        reason=reason, matched=link.matched, stores=link.stores, known_stores=link.known_stores, carried=link.carried,
        entered=link.entered, expired=link.expired, outliers=link.outliers,
    )  # fmt: skip


def _decimal(value: float | None, places: int) -> Decimal | None:
    return None if value is None else round(Decimal(value), places)


_T = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101,
    2.093,
)  # fmt: skip
"""97.5 % quantiles of Student's t by degrees of freedom, from 1 to GROUPS - 1."""
