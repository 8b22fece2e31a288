"""What whoever waits for a backup or a restore is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that is done. `what` is in words; `done` of `total` of its kind, 0 where nobody knows how many there are."""

    what: str
    done: int = 0
    total: int = 0


Told = Callable[[Step], object]


def nobody(_: Step) -> None:
    """Where nobody waits."""
