"""What has been measured so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
from program import Failed


class Results:
    """Per contestant the figure of each round, and what could not be measured and why."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.figures: dict[str, dict[str, list[float]]] = {}
        self.failures: dict[str, dict[str, str]] = {}
        self.versions: dict[str, str] = {}
        self.claims: dict[str, list[float]] = {}
        self._say = say

    def add(self, name: str, figures: dict[str, float]) -> None:
        """One round's figures."""
        for key, value in figures.items():
            self.figures.setdefault(name, {}).setdefault(key, []).append(value)
        self._say(
            "  "
            + ", ".join(
                f"{key} {value:,.2f}" if value < 100 else f"{key} {value:,.0f}" for key, value in figures.items()
            )
        )

    @contextmanager
    def phase(self, name: str, phase: str) -> Iterator[bool]:
        """Says whether to go on with it: a contestant that fails once is left out of that phase from then on, and the rest goes on."""
        try:
            yield phase not in self.failures.get(name, {})
        except (Failed, psycopg.Error) as error:
            self._say(f"  {phase} failed: {error}")
            self.failures.setdefault(name, {})[phase] = str(error)
