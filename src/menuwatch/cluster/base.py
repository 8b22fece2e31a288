"""What can change how many workers there are, whatever runs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """How many there are and should be, of what `unit` says ("pod" or "worker"). `current` are those that run; `desired` None where
    nobody holds a number; `low` and `high` are the limits. `why_not` says why the number cannot be changed from here; None: it can."""

    current: int
    desired: int | None
    low: int
    high: int
    backend: str
    unit: str
    why_not: str | None = None


class Scaler(Protocol):
    """Something that runs workers and can run more or fewer of them."""

    @property
    def backend(self) -> str:
        """Its name: `kubernetes`, `local`, …"""
        ...

    @property
    def unit(self) -> str:
        """What it counts: "pod" or "worker"."""
        ...

    async def replicas(self) -> tuple[int, int]:
        """How many run, and how many should; raises a MenuwatchError where that cannot be found out."""
        ...

    async def scale(self, replicas: int) -> None:
        """Has that many run; returns when that is ordered, not when it is done. Raises a MenuwatchError where it is refused."""
        ...
