"""What was taken over, what was not, and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

EXAMPLES = 3


@dataclass(slots=True)
class Tally:
    """The rows of one table. `taken` are new here; `skipped` counts the others by reason, with the first examples of each."""

    read: int = 0
    taken: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def skip(self, reason: str, example: str = "", count: int = 1) -> None:
        """Rows that are not taken."""
        self.skipped[reason] += count
        shown = self.examples.setdefault(reason, [])
        if example and len(shown) < EXAMPLES:
            shown.append(example)

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        skipped = [
            {"reason": reason, "rows": count, "examples": self.examples.get(reason, [])}
            for reason, count in self.skipped.most_common()
        ]
        return {"read": self.read, "taken": self.taken, "skipped": skipped}


@dataclass(slots=True)
class Report:
    """All of it. `crawls` are menus that were put together from snapshots; `without_zone` are times that were taken as UTC."""

    dry_run: bool
    stores: Tally = field(default_factory=Tally)
    products: Tally = field(default_factory=Tally)
    snapshots: Tally = field(default_factory=Tally)
    crawls: int = 0
    without_zone: int = 0
    failed: list[str] = field(default_factory=list)
    """Stores whose history could not be taken, with the reason."""

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "dry_run": self.dry_run,
            "stores": self.stores.plain(),
            "products": self.products.plain(),
            "snapshots": self.snapshots.plain(),
            "crawls": self.crawls,
            "times_without_zone": self.without_zone,
            "failed": self.failed,
        }
