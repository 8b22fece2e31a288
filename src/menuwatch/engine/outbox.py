"""Attempts that are over, and whose end the database does not know yet."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from menuwatch.engine.slots import Attempt
from menuwatch.tasks.ending import Ending
from menuwatch.tasks.outcome import Done


@dataclass(slots=True, eq=False)
class Ended:
    """An attempt that worked and has nothing of its own to write. It keeps its slot until the database knows."""

    attempt: Attempt
    outcome: Done
    ending: Ending
    in_doubt: bool = False
    """A transaction that wrote it may have been committed: nobody heard the answer."""
    waiting_since: float | None = None
    """When writing it failed first, on the clock of `Attempt.started`."""


class Outbox:
    """In the order in which they ended. `empty` is set while there are none, and none is being written."""

    def __init__(self) -> None:
        self._waiting: deque[Ended] = deque()
        self._taken = 0
        self.empty = asyncio.Event()
        self.empty.set()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, ended: Ended) -> None:
        """One more."""
        self._waiting.append(ended)
        self.empty.clear()

    def take(self, most: int) -> list[Ended]:
        """The oldest, to be written; each take is followed by `settled` or `put_back`."""
        taken = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
        self._taken += len(taken)
        return taken

    def put_back(self, taken: Sequence[Ended]) -> None:
        """They could not be written for now."""
        self._waiting.extendleft(reversed(taken))
        self.settled(len(taken))

    def settled(self, n: int) -> None:
        """So many of those taken are dealt with."""
        self._taken -= n
        if not self._taken and not self._waiting:
            self.empty.set()
