"""What is to be done, and how each task must end: a forest of tasks that follows from a seed alone.

Workers look up here what a task does and what follows it; the checks look up here what must have happened. Nothing of it is passed
through the queue but a task's name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from random import Random
from typing import Literal

from menuwatch.queue.model import NewTask, Role, Status

End = Literal["done", "fail", "raise", "exhaust", "cancel"]

ON_PURPOSE = "on purpose"
ENOUGH = 1000
"""Retries of a task that must not run out of them, however often its workers die."""
EXHAUST_RETRIES = 2
_ENDS: dict[End, Status] = {
    "done": Status.COMPLETED,
    "fail": Status.FAILED,
    "raise": Status.FAILED,
    "exhaust": Status.FAILED,
    "cancel": Status.CANCELLED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One task. `delay` and `work` in seconds."""

    name: str
    role: Role
    store: int | None
    priority: int
    delay: float
    work: float
    end: End
    tries: int
    """Retries asked for before the end; counted in the task's own result, so that lost attempts do not count."""
    postpones: int
    writes: bool
    """Its outcomes carry rows of their own; without, the engine may settle many in one go."""
    trips: bool
    """Its writes break, after having written, at every odd attempt."""
    deaf: bool
    """Its handler does not listen when it is cancelled."""
    children: int

    @property
    def status(self) -> Status:
        """How it must end."""
        return _ENDS[self.end]

    @property
    def names(self) -> list[str]:
        """Its follow-ups."""
        return [f"{self.name}.{n}" for n in range(self.children)]

    def task(self, now: datetime | None = None) -> NewTask:
        """What to enqueue."""
        due = None if self.delay == 0 else (now or datetime.now(UTC)) + timedelta(seconds=self.delay)
        return NewTask(
            role=self.role,
            dispensary_id=self.store,
            priority=self.priority,
            scheduled_for=due,
            payload={"n": self.name, "end": self.end},
            max_retries=EXHAUST_RETRIES if self.end == "exhaust" else ENOUGH,
            # Without a store the payload is the key, and every name is there once: `unique` changes nothing, but goes its own way.
            unique=self.store is None and len(self.name) % 2 == 0,
        )


class Plan:
    """`count` tasks or a few more, over `stores` stores and none."""

    def __init__(self, seed: int, *, count: int, stores: int) -> None:
        self.seed = seed
        self.stores = stores
        self.node = lru_cache(maxsize=100_000)(self._node)
        self.trees: list[list[Node]] = []
        total = 0
        while total < count:
            tree = list(self._walk(self.node(str(len(self.trees)))))
            self.trees.append(tree)
            total += len(tree)
        self.total = total

    def nodes(self) -> dict[str, Node]:
        """Every task by its name."""
        return {node.name: node for tree in self.trees for node in tree}

    def _walk(self, node: Node) -> Iterator[Node]:
        yield node
        for name in node.names:
            yield from self._walk(self.node(name))

    def _node(self, name: str) -> Node:
        rng = Random(f"{self.seed}/{name}")
        depth = name.count(".")
        parent = name.rpartition(".")[0]
        if rng.random() < 0.08:
            store = None
        elif parent and rng.random() < 0.75:
            store = self.node(parent).store
        else:
            # Some stores are much busier than others.
            store = rng.randint(1, self.stores if rng.random() < 0.8 else max(1, self.stores // 20))
        (end,) = rng.choices(("done", "fail", "raise", "exhaust", "cancel"), (92, 2.5, 2.5, 2, 1))
        children = 0
        if end == "done" and depth < 4:
            (children,) = rng.choices((0, 1, 2, 3, 5), (35, 35, 18, 8, 4) if depth else (5, 40, 30, 20, 5))
        writes = rng.random() < 0.5
        return Node(
            name=name,
            role=rng.choice(list(Role)),
            store=store,
            priority=rng.choice((0, 0, 0, 5, 10, 10, 20, -3)),
            delay=round(rng.uniform(0.05, 1.5), 3) if rng.random() < 0.12 else 0.0,
            work=round(rng.uniform(0.2, 0.8) if rng.random() < 0.04 else rng.uniform(0, 0.02), 4),
            end=end,
            tries=rng.choice((1, 1, 2)) if end in ("done", "fail") and rng.random() < 0.12 else 0,
            postpones=rng.choice((1, 2)) if end in ("done", "raise") and rng.random() < 0.08 else 0,
            writes=writes,
            trips=writes and end == "done" and rng.random() < 0.06,
            deaf=end != "cancel" and rng.random() < 0.15,
            children=children,
        )
