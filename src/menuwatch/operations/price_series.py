"""What one product cost over time, as a chart draws it: steps that join, and the stretches of which nothing is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from menuwatch.db.pool import Connection
from menuwatch.exports.packs import Packs
from menuwatch.operations.products import History, Span, history
from menuwatch.operations.reading import Row

STEPS = 1000
"""Most steps of one chart: the newest ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """From `start` to before `end` (None: it lasts) it cost that. `regular` is the price of the cheapest option, `special` what it
    costs less (None where it does not); both None where there is no price. `in_stock` None: the menu does not say; not `listed`: the
    product was on no menu."""

    start: datetime
    end: datetime | None
    regular: Decimal | None
    special: Decimal | None
    in_stock: bool | None
    listed: bool

    @property
    def price(self) -> Decimal | None:
        """What it cost, special included."""
        return self.regular if self.special is None else self.special


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A stretch of which nothing is known, or (`absent`) in which it was on no menu; `end` None: it lasts."""

    start: datetime
    end: datetime | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Oldest first. `cut`: there are older steps."""

    steps: Sequence[Step]
    gaps: Sequence[Gap]
    cut: bool


async def price_series(conn: Connection, product_id: int, span: Span, *, packs: Packs | None = None) -> Series:
    """The prices of one product that touch `span`; raises NotFound."""
    return series_of(await history(conn, product_id, span, limit=STEPS, packs=packs))


def series_of(found: History) -> Series:
    """The same of a history that was read already. Pure."""
    return Series(
        steps=[step(one) for one in reversed(found.states)],
        gaps=[Gap(start=one["from"], end=one["to"], reason=one["reason"]) for one in reversed(found.gaps)],
        cut=found.next is not None,
    )


def step(state: Row) -> Step:
    """A state as a step; pure. Medical prices count only where there is no recreational one, as in every list."""
    recreational = state["price_rec"] is not None or state["price_rec_special"] is not None
    regular, special = (
        (state["price_rec"], state["price_rec_special"])
        if recreational
        else (
            state["price_med"],
            state["price_med_special"],
        )
    )
    return Step(
        start=state["from"],
        end=state["to"],
        regular=special if regular is None else regular,
        special=special if regular is not None and special is not None and special < regular else None,
        in_stock={"in_stock": True, "oos": False}.get(state["stock_status"]),
        listed=state["present"],
    )
