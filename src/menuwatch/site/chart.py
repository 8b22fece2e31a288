"""Price chart as server-side SVG: price paid, regular price while on special, and gaps without data. Pure. Numbers only, so no
text of a menu gets into the SVG.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec

from menuwatch.catalog.history import Gap, ProductState
from menuwatch.catalog.shapes import OptionPrices, OptionStock
from menuwatch.site import format as words

_prices = msgspec.json.Decoder(list[OptionPrices])
_stock = msgspec.json.Decoder(list[OptionStock])

WIDTH, HEIGHT = 720, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 14, 28
_SHORTEST = timedelta(minutes=10)
_YOUNG = timedelta(hours=1)


class Line(NamedTuple):
    """A label with its position."""

    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Paths of an SVG of WIDTH × HEIGHT, and the same data as table rows, newest first."""

    price: str
    regular: str
    bands: list[tuple[float, float]]
    """x and width of each period without data."""
    rules: list[Line]
    ticks: list[Line]
    dot: tuple[float, float] | None
    rows: list[dict[str, Any]]
    summary: str
    young: bool
    """There is too little data for a visible line."""
    now: int
    lowest: int
    highest: int
    width: int = WIDTH
    height: int = HEIGHT
    left: int = _LEFT
    right: int = WIDTH - _RIGHT
    bottom: int = HEIGHT - _BOTTOM


class _Piece(NamedTuple):
    since: datetime
    until: datetime
    price: int
    regular: int | None
    stock: str


def draw(
    states: Sequence[ProductState],
    gaps: Sequence[Gap],
    *,
    option: str | None = None,
    until: datetime,
    timezone: str | None,
    state: str | None = None,
) -> Chart | None:
    """Draws the prices of one option, or of the cheapest, in some states, newest first; None if there was no price."""
    pieces = [piece for one in reversed(states) if (piece := _piece(one, option, until)) is not None]
    if not pieces:
        return None
    start, end = pieces[0].since, max(until, pieces[-1].until)
    start = min(start, end - _SHORTEST)
    tops = [p.regular or p.price for p in pieces]
    low, high = _scale(min(p.price for p in pieces), max(tops))

    def x(moment: datetime) -> float:
        return round(_LEFT + (WIDTH - _LEFT - _RIGHT) * ((moment - start) / (end - start)), 1)

    def y(cents: float) -> float:
        return round(_TOP + (HEIGHT - _TOP - _BOTTOM) * (1 - (cents - low) / (high - low)), 1)

    last = pieces[-1]
    prices = [p.price for p in pieces]
    summary = (
        f"Now {words.dollars(last.price, state)}."
        f" Low {words.dollars(min(prices), state)}, high {words.dollars(max(prices), state)}"
        f" since {words.local(pieces[0].since, timezone)}."
    )
    return Chart(
        price=_steps([(p.since, p.until, p.price) for p in pieces], x, y),
        regular=_steps([(p.since, p.until, p.regular) for p in pieces if p.regular is not None], x, y),
        bands=_bands(gaps, start, end, x),
        rules=[Line(y(level), words.dollars(level, state)) for level in _levels(low, high)],
        ticks=_ticks(start, end, x),
        dot=(x(last.until), y(last.price)),
        rows=[_row(p, timezone) for p in reversed(pieces)],
        summary=summary,
        young=end - pieces[0].since < _YOUNG,
        now=last.price,
        lowest=min(prices),
        highest=max(prices),
    )


def _piece(state: ProductState, option: str | None, until: datetime) -> _Piece | None:
    prices: ProductState | OptionPrices | None = state
    price: Decimal | None = state.price
    stock: str = state.stock_status
    if option is not None:
        prices = next((one for one in _prices.decode(state.prices) if one.option == option), None)
        price = _option_price(prices) if prices is not None else None
        stock = next((one.stock_status for one in _stock.decode(state.stock) if one.option == option), stock)
    if price is None or prices is None or not state.present:
        return None
    regular: Decimal | None = prices.price_rec if prices.price_rec is not None else prices.price_med
    special = regular is not None and regular > price
    return _Piece(
        since=state.from_,
        until=max(state.to or until, state.from_),
        price=round(price * 100),
        regular=round(regular * 100) if special and regular is not None else None,
        stock=stock,
    )


def _option_price(prices: OptionPrices) -> Decimal | None:
    """Specials included; the medical price only if there is no other."""
    for regular, special in (
        (prices.price_rec, prices.price_rec_special),
        (prices.price_med, prices.price_med_special),
    ):
        if regular is not None:
            return regular if special is None else min(regular, special)
    return None


def _steps(pieces: list[tuple[datetime, datetime, int | None]], x: Any, y: Any) -> str:
    """SVG path of a step line, interrupted where a piece does not meet the next."""
    path: list[str] = []
    before: datetime | None = None
    for since, until, cents in pieces:
        joined = before is not None and since - before < timedelta(hours=9)
        path.append(f"{'L' if joined else 'M'}{x(since)} {y(cents)}H{max(x(until), x(since) + 1)}")
        before = until
    return "".join(path)


def _bands(gaps: Sequence[Gap], start: datetime, end: datetime, x: Any) -> list[tuple[float, float]]:
    found = []
    for gap in gaps:
        since, until = max(gap.from_, start), min(gap.to or end, end)
        if until > since:
            found.append((x(since), round(x(until) - x(since), 1)))
    return found


def _scale(low: int, high: int) -> tuple[float, float]:
    room = max((high - low) * 0.25, high * 0.08, 50)
    return max(0.0, low - room), high + room


def _levels(low: float, high: float) -> list[int]:
    rough = (high - low) / 4
    step = next(
        s for s in (25, 50, 100, 200, 250, 500, 1000, 2000, 2500, 5000, 10_000, 25_000, 100_000, 10**9) if s >= rough
    )
    first = int(low // step + 1) * step
    return list(range(first, int(high) + 1, step))


def _ticks(start: datetime, end: datetime, x: Any) -> list[Line]:
    span = end - start
    form = "%H:%M" if span < timedelta(days=2) else "%b %d"
    return [Line(x(start + span * share), f"{start + span * share:{form}}") for share in (0.02, 0.34, 0.66, 0.97)]


def _row(piece: _Piece, timezone: str | None) -> dict[str, Any]:
    return {
        "since": words.local(piece.since, timezone),
        "until": words.local(piece.until, timezone),
        "price": piece.price,
        "regular": piece.regular,
        "stock": {"in_stock": "In stock", "oos": "Out of stock"}.get(piece.stock, "Unknown"),
    }
