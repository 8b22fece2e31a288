"""What was asked and served: requests by kind, what spoiled them, and which menus were read from end to end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from menuwatch.sim.misbehave import Asked
from menuwatch.sim.model import SimStore


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
        """Begins to count anew."""
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

    def end(self, asked: Asked, status: int, kind: str | None) -> None:
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
