"""Statistics of requests: arrivals, counts by operation and fault, and which menus were read completely."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from menuwatch.sim.fault_injection import ApiRequest
from menuwatch.sim.model import SimStore

KEPT = 100_000
"""Arrivals kept; the oldest are dropped first."""


@dataclass(slots=True)
class _Reading:
    """A menu that is being read: the pages served whole so far, at one tick."""

    tick: int
    pages: int
    seen: set[int] = field(default_factory=set)


class Stats:
    """Counters since the last reset. The number of requests is never reset, because chance depends on it."""

    def __init__(self) -> None:
        self._number = 0
        self._readings: dict[str, _Reading] = {}
        self.reset()

    def reset(self) -> None:
        """Resets the counters."""
        self.requests: dict[str, int] = {}
        self.statuses: dict[int, int] = {}
        self.spoiled: dict[str, int] = {}
        self.invalid = 0
        self.images = 0
        self.identities: set[str] = set()
        self.direct = 0
        self.crawls: list[tuple[str, int]] = []
        self._readings.clear()

    def begin(self, operation: str) -> int:
        """Counts a request and numbers it."""
        self._number += 1
        self.requests[operation] = self.requests.get(operation, 0) + 1
        return self._number

    def end(self, asked: ApiRequest, status: int, kind: str | None) -> None:
        """How a request was answered."""
        self.statuses[status] = self.statuses.get(status, 0) + 1
        if kind is not None:
            self.note(kind)
        proxy, agent = asked.identity
        self.direct += proxy is None
        self.identities.add(f"{proxy}|{agent}")

    def note(self, kind: str) -> None:
        """One more answer that this kind of misbehaviour had a part in."""
        self.spoiled[kind] = self.spoiled.get(kind, 0) + 1

    def refused(self) -> None:
        """A request that was wrong in itself."""
        self.invalid += 1

    def served(self, store: SimStore, tick: int, page: int, pages: int) -> None:
        """A page of a whole menu was served as it is. When all have been since the first one, the menu was crawled."""
        reading = self._readings.get(store.slug)
        if page == 0 or reading is None or (reading.tick, reading.pages) != (tick, pages):
            reading = self._readings[store.slug] = _Reading(tick, pages)
        reading.seen.add(page)
        if len(reading.seen) >= max(pages, 1):
            self.crawls.append((store.slug, tick))
            del self._readings[store.slug]

    def document(self) -> dict[str, Any]:
        """All of it, as JSON."""
        return {
            "requests": self.requests,
            "statuses": {str(status): n for status, n in sorted(self.statuses.items())},
            "spoiled": self.spoiled,
            "blocked": self.statuses.get(403, 0),
            "invalid": self.invalid,
            "images": self.images,
            "identities": len(self.identities),
            "direct": self.direct,
            "crawls": self.crawls,
        }


@dataclass(slots=True, kw_only=True)
class Arrival:
    """When a request arrived and how it was answered. `at` is on the monotonic clock, in seconds; `host` is the requested address,
    `proxy` the number of the proxy, None for none of ours; `status` is 0 until the response."""

    number: int
    at: float
    host: str
    path: str
    proxy: int | None
    agent: str
    status: int = 0


class Arrivals:
    """Log of requests in the order of arrival; numbers begin with 1."""

    def __init__(self) -> None:
        self._kept: deque[Arrival] = deque(maxlen=KEPT)
        self._number = 0

    def note(self, host: str, path: str, proxy: int | None, agent: str) -> Arrival:
        """Log a request; the handler sets its status."""
        self._number += 1
        arrival = Arrival(number=self._number, at=time.monotonic(), host=host, path=path, proxy=proxy, agent=agent)
        self._kept.append(arrival)
        return arrival

    def since(self, number: int) -> list[Arrival]:
        """Arrivals after this number. Raises ValueError if some of them were dropped."""
        oldest = self._number - len(self._kept) + 1
        if number + 1 < oldest:
            raise ValueError(f"arrivals before {oldest} were dropped: read more often than every {KEPT} requests")
        return [arrival for arrival in self._kept if arrival.number > number]


def busiest(arrivals: Iterable[Arrival], seconds: float) -> int:
    """Most arrivals within any span of that length."""
    times = sorted(arrival.at for arrival in arrivals)
    return max((bisect_right(times, start + seconds) - index for index, start in enumerate(times)), default=0)
