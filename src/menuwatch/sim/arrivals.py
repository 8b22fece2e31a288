"""When each request arrived, through which proxy, as which browser, and how it was answered."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

KEPT = 100_000
"""Arrivals on record; the oldest are forgotten first."""


@dataclass(slots=True, kw_only=True)
class Arrival:
    """`at` is on the machine's monotonic clock, in seconds. `host` is the address that was asked, `proxy` the number of the proxy,
    None for none of ours; `status` is 0 until it was answered."""

    number: int
    at: float
    host: str
    path: str
    proxy: int | None
    agent: str
    status: int = 0


class Arrivals:
    """The log, in the order of arrival; numbers begin with 1."""

    def __init__(self) -> None:
        self._kept: deque[Arrival] = deque(maxlen=KEPT)
        self._number = 0

    def note(self, host: str, path: str, proxy: int | None, agent: str) -> Arrival:
        """One more, now; whoever answers it sets its status."""
        self._number += 1
        arrival = Arrival(number=self._number, at=time.monotonic(), host=host, path=path, proxy=proxy, agent=agent)
        self._kept.append(arrival)
        return arrival

    def since(self, number: int) -> list[Arrival]:
        """Those after this number. Raises ValueError where some of them are forgotten."""
        oldest = self._number - len(self._kept) + 1
        if number + 1 < oldest:
            raise ValueError(f"arrivals before {oldest} are forgotten: ask more often than every {KEPT} requests")
        return [arrival for arrival in self._kept if arrival.number > number]


def busiest(arrivals: Iterable[Arrival], seconds: float) -> int:
    """The most arrivals within any span of so many seconds."""
    times = sorted(arrival.at for arrival in arrivals)
    return max((bisect_right(times, start + seconds) - index for index, start in enumerate(times)), default=0)
