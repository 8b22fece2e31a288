"""What the days are like: which trouble each crawl of the market meets, and when a worker dies. All of it follows from the seed.

Time is compressed: an hour takes `Size.hour` seconds, and the settings that are times (circuit, cool-down, waits, first probe) are
their defaults on the same scale. Rates are not: the budget is in requests a second of the wall. What the scale cannot reach
(a pace that grows back by a tenth a minute, scores that halve in six hours) is said where it matters, in `run`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

REFUSED_BROWSERS = (
    ("chrome-136-macos", "(Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/136"),
    ("edge-136-windows", "Chrome/136.0.0.0 Safari/537.36 Edg/136"),
    ("safari-18.4-macos", "Version/18.4 Safari"),
)
"""One of them is refused for the whole run: its name, and the part of its User-Agent that no other browser has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How big a run is. In seconds: `hour`, `stale` (silence after which a worker counts as dead) and `patience` (the longest that a
    crawl of the market may take); `pause` is what a Retry-After asks for, `above` the requests within a second that bring it on;
    a proxy is tired after so many requests (`tires_after`) in so many seconds (`tires_within`)."""

    workers: int
    slots: int
    stores: int
    products: int
    proxies: int
    days: int
    hour: float
    rate: float
    burst: int
    concurrency: int
    above: int
    pause: int
    stale: float
    patience: float
    tires_after: int
    tires_within: float
    fetch_timeout: float = 5.0
    troubles: tuple[str, ...] = ("calm", "tired", "storm", "storm by date", "challenge", "refuse all")

    @property
    def dead(self) -> tuple[int, ...]:
        """The proxies (by number) that are dead from the start: a tenth."""
        return tuple(range(4, self.proxies, 10))

    @property
    def pages(self) -> int:
        """Requests that a menu takes at most, while it grows: 100 products a page."""
        return self.products // 100 + 2

    def settings(self) -> dict[str, str]:
        """Of the workers."""
        scale = self.hour / 3600
        return {
            "HOST_RATE": f"{self.rate:g}",
            "HOST_BURST": str(self.burst),
            "HOST_CONCURRENCY": str(self.concurrency),
            "HOST_MIN_GAP_SECONDS": "0",
            "HOST_COOLDOWN_SECONDS": f"{60 * scale:g}",
            "CIRCUIT_SECONDS": f"{900 * scale:g}",
            "BLOCKED_WAIT_SECONDS": f"{900 * scale:g}",
            "TASK_RETRY_BASE_SECONDS": f"{30 * scale:g}",
            "PROXY_PROBE_SECONDS": f"{max(60 * scale, 0.05):g}",
            "FETCH_RETRY_BASE_SECONDS": "0.05",
            "FETCH_TIMEOUT_SECONDS": f"{self.fetch_timeout:g}",
            "STALE_AFTER_MINUTES": f"{self.stale / 60:g}",
            "HEARTBEAT_INTERVAL_MS": str(int(self.stale * 1000 / 6)),
            "MAX_CONCURRENT_TASKS": str(self.slots),
            "POLL_INTERVAL_MS": "500",
            # A busy machine is no reason to wait here.
            "CPU_BACKOFF_THRESHOLD": "1",
            "MEMORY_BACKOFF_THRESHOLD": "1",
            "EVENT_LOOP_LAG_BACKOFF_MS": "60000",
        }


FULL = Size(
    workers=8, slots=3, stores=40, products=220, proxies=30, days=3, hour=12.0, rate=10.0, burst=4, concurrency=6, above=9,
    pause=3, stale=10.0, patience=180.0, tires_after=4, tires_within=12.0,
)  # fmt: skip
SHORT = Size(
    workers=3, slots=3, stores=8, products=120, proxies=10, days=1, hour=1.5, rate=8.0, burst=4, concurrency=4, above=7,
    pause=1, stale=3.0, patience=60.0, tires_after=2, tires_within=6.0, troubles=("tired", "storm", "refuse all"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One crawl of all stores. `pause`: the seconds that a 429 asks for, whole seconds rounded off; 0 where there is none. `kill`:
    a worker dies in it."""

    number: int
    day: int
    trouble: str
    faults: dict[str, Any] = field(default_factory=dict)
    pause: float = 0.0
    kill: bool = False

    @property
    def everybody(self) -> bool:
        """Whether nobody is let in for an hour."""
        return self.trouble in ("challenge", "refuse all")

    @property
    def afterwards(self) -> dict[str, Any]:
        """What the simulator is told when that hour is over."""
        return {"forbidden": self.faults["forbidden"]}


class Plan:
    """The rounds of a run. The first of each is what every store's first crawl meets: nothing but dead proxies."""

    def __init__(self, size: Size, seed: int) -> None:
        rng = Random(f"soak/{seed}")
        self.refused, self._agent = rng.choice(REFUSED_BROWSERS)
        self.rounds = [Round(number=0, day=0, trouble="first crawl")]
        for day in range(size.days):
            troubles = list(size.troubles)
            rng.shuffle(troubles)
            fatal = rng.randrange(len(troubles))
            for place, trouble in enumerate(troubles):
                faults, pause = self._faults(trouble, size)
                self.rounds.append(
                    Round(
                        number=len(self.rounds),
                        day=day,
                        trouble=trouble,
                        faults=faults,
                        pause=pause,
                        kill=place == fatal,
                    )
                )

    def _faults(self, trouble: str, size: Size) -> tuple[dict[str, Any], float]:
        """What the simulator is told, and the seconds that a 429 asks for at least."""
        always = {"forbidden": {"agents": [self._agent], "lasts": 0}}
        match trouble:
            case "tired":
                return {**always, "tired": {"requests": size.tires_after, "seconds": size.tires_within}}, 0.0
            case "storm":
                return {**always, "rate_limited": {"above": size.above, "retry_after": size.pause}}, float(size.pause)
            case "storm by date":
                more = {"above": size.above, "retry_after": size.pause + 1, "date": True}
                return {**always, "rate_limited": more}, float(size.pause)
            case "challenge":
                return {**always, "challenge": {}}, 0.0
            case "refuse all":
                return {**always, "refuse_all": {}}, 0.0
        return always, 0.0
