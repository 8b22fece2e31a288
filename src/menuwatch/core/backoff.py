"""Delays between retries. Pure: the random source is passed in."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Exponential waits with jitter, in seconds.

    Failure n (from 0) waits `base * factor**n`, at most `cap`, less a random share of up to `jitter` of it, so that what failed
    together does not come back together.
    """

    base: float
    cap: float = 3600.0
    factor: float = 2.0
    jitter: float = 0.5

    def __post_init__(self) -> None:
        if self.base < 0 or self.cap < 0:
            raise ValueError(f"base and cap must not be negative, got {self.base} and {self.cap}")
        if self.factor < 1:
            raise ValueError(f"factor must be at least 1, got {self.factor}")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter must be between 0 and 1, got {self.jitter}")

    def ceiling(self, failures: int) -> float:
        """The longest wait after `failures` failures before this one."""
        if failures < 0:
            raise ValueError(f"failures must not be negative, got {failures}")
        try:
            return min(self.cap, self.base * self.factor**failures)
        except OverflowError:
            return self.cap if self.base else 0.0

    def delay(self, failures: int, rng: Random) -> float:
        """The wait itself: between `(1 - jitter) * ceiling` and `ceiling`."""
        return self.ceiling(failures) * (1.0 - self.jitter * rng.random())
