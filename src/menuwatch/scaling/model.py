"""Interface for changing the number of workers, whatever runs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, Protocol

from msgspec import Struct

from menuwatch.core.shapes import doc
from menuwatch.db.pool import Connection

NO_SUPERVISOR = "no supervisor or Kubernetes scaler is connected: run `menuwatch up` or `menuwatch supervisor`"
"""Why the number cannot be changed while no supervisor holds the lease."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Minimum and maximum number that may be requested."""

    low: int
    high: int


class ScaleStatus(Struct, frozen=True, kw_only=True):
    """Status of a scaler: current and desired number; progress or obstacles in words; why scaling is impossible, if it is; and its
    own limits, None if only the settings limit it."""

    current: int
    desired: int | None
    progress: str | None = None
    unavailable_reason: str | None = None
    limits: Limits | None = None


class ReplicaCount(Struct, kw_only=True, frozen=True):
    """Current, desired and allowed number of workers."""

    current: Annotated[int, doc("Number of running workers.")]
    desired: Annotated[int | None, doc("Desired number of workers; null if none is set.")]
    low: Annotated[int, doc("Minimum that can be set (`WORKERS_MIN`).")]
    high: Annotated[int, doc("Maximum that can be set (`WORKERS_MAX`).")]
    backend: Annotated[str, doc("What runs the workers; `none` if nothing that can scale them is connected.")]
    unit: Annotated[Literal["pod", "worker"], doc("Unit that is counted.")]
    doing: Annotated[str | None, doc("Current progress or obstacle in words; null if there is none.")]
    why_not: Annotated[str | None, doc("Why the number cannot be changed here; null if it can.")]


class Scaler(Protocol):
    """Interface of a system that runs workers and can change their number."""

    @property
    def backend(self) -> str:
        """Name: `kubernetes`, `local`, …"""
        ...

    @property
    def unit(self) -> Literal["pod", "worker"]:
        """What is counted: "pod" or "worker"."""
        ...

    async def replicas(self, conn: Connection, *, ordering: bool = False) -> ScaleStatus:
        """Current scale; raises a MenuwatchError if it cannot be determined. `conn` is for scalers that keep their number in the
        database. A caller that is `ordering` goes on to `scale` in the same transaction."""
        ...

    async def scale(self, conn: Connection, replicas: int) -> None:
        """Request that many; returns when that is stored, not when it is done. Raises a MenuwatchError if it is refused."""
        ...
