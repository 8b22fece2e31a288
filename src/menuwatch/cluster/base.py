"""What can change how many workers there are, whatever runs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from menuwatch.db.pool import Connection

NOBODY = (
    "nothing that starts and stops workers is connected to this installation; `menuwatch up` serves and runs workers, `menuwatch "
    "supervisor` runs workers for servers elsewhere. Without them, start another `menuwatch worker` for more, and decommission "
    "workers for fewer"
)
"""Why the number cannot be changed, where nobody holds one."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The least and the most that may be asked for."""

    low: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a scaler says: how many run and should; what is under way or in the way, in words; why nothing can be ordered, where that
    is so; its own limits, None where the installation's settings are all there is."""

    current: int
    desired: int | None
    doing: str | None = None
    why_not: str | None = None
    limits: Limits | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """How many there are and should be, of what `unit` says ("pod" or "worker"). `current` are those that run; `desired` None where
    nobody holds a number; `doing` is what is under way between the two. `low` and `high` are the limits. `why_not` says why the number
    cannot be changed from here; None: it can."""

    current: int
    desired: int | None
    low: int
    high: int
    backend: str
    unit: str
    doing: str | None = None
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

    async def replicas(self, conn: Connection, *, ordering: bool = False) -> Standing:
        """How it stands; raises a MenuwatchError where that cannot be found out. `conn` is for those that keep their number in the
        database: nobody needs a second connection. One that is `ordering` goes on to `scale` in the same transaction."""
        ...

    async def scale(self, conn: Connection, replicas: int) -> None:
        """Has that many run; returns when that is ordered, not when it is done. Raises a MenuwatchError where it is refused."""
        ...
