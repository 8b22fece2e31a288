"""How sentences say times and numbers."""

from __future__ import annotations

from datetime import UTC, datetime


def span(seconds: float) -> str:
    """A length of time in words, by its two largest units."""
    whole = max(round(seconds), 0)
    for size, name, small, minor in ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // small
            return f"{whole // size} {name}" + (f" {rest} {minor}" if rest else "")
    return f"{whole} s"


def at(moment: datetime) -> str:
    """A moment."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def many(n: int, one: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{n:,} {one}{'' if n == 1 else 's'}"


def per_second(rate: float) -> str:
    """A rate, to three digits."""
    return plain(float(f"{rate:.3g}")) if rate < 100 else f"{rate:,.0f}"


def plain(value: float) -> str:
    """A number as people write it: no exponent, at most six decimals, none that say nothing."""
    return f"{value:.6f}".rstrip("0").rstrip(".")


def because(text: str | None) -> str:
    """A reason, as the end of a sentence without its stop."""
    return (text or "no reason given").strip().rstrip(".")
