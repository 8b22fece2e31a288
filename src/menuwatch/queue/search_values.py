"""A task search as values: its canonical text, and the filter of the queue that it stands for."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from psycopg import AsyncConnection

from menuwatch.core.errors import InvalidField, Refused
from menuwatch.queue.model import NETWORK_ROLES, STATES, Role, Status, WaitState, split_states
from menuwatch.queue.search_terms import Moment, duration_text, moment_text, quoted
from menuwatch.queue.task_list import TaskFilter, find_workers, platform_of_host
from menuwatch.stores import store as stores

F = TypeVar("F")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSearch:
    """A parsed query. `…_after` is inclusive, `…_before` is exclusive; a timedelta is a relative time. Each of `arguments` is a path
    and the text of the value there."""

    roles: tuple[Role, ...] = ()
    states: tuple[Status | WaitState, ...] = ()
    not_roles: tuple[Role, ...] = ()
    not_states: tuple[Status | WaitState, ...] = ()
    store: str | None = None
    worker: str | None = None
    host: str | None = None
    platform: str | None = None
    ids: tuple[int, ...] = ()
    priority_min: int | None = None
    priority_max: int | None = None
    attempts_min: int | None = None
    attempts_max: int | None = None
    took_over: float | None = None
    took_under: float | None = None
    created_after: Moment | None = None
    created_before: Moment | None = None
    ended_after: Moment | None = None
    ended_before: Moment | None = None
    arguments: tuple[tuple[str, str], ...] = ()
    cause: str | None = None
    texts: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The canonical text, which parses to the same search."""
        return " ".join(self._written())

    @property
    def wanted_states(self) -> tuple[Status | WaitState, ...]:
        """The states that it selects; empty for all."""
        return _without(self.states, self.not_states)

    def _written(self) -> Iterator[str]:
        for name, values in (
            ("role", self.roles),
            ("state", self.states),
            ("-role", self.not_roles),
            ("-state", self.not_states),
        ):
            if values:
                yield f"{name}:" + ",".join(values)
        for name in ("store", "worker", "host", "platform"):
            if (value := getattr(self, name)) is not None:
                yield f"{name}:{quoted(value)}"
        if self.ids:
            yield "id:" + ",".join(map(str, self.ids))
        for name in ("priority", "attempts"):
            low, high = getattr(self, f"{name}_min"), getattr(self, f"{name}_max")
            if low is not None and low == high:
                yield f"{name}:{low}"
                continue
            if low is not None:
                yield f"{name}:>={low}"
            if high is not None:
                yield f"{name}:<={high}"
        if self.took_over is not None:
            yield f"took:>{duration_text(self.took_over)}"
        if self.took_under is not None:
            yield f"took:<{duration_text(self.took_under)}"
        for name in ("created", "ended"):
            if (after := getattr(self, f"{name}_after")) is not None:
                yield f"{name}:>={moment_text(after)}"
            if (before := getattr(self, f"{name}_before")) is not None:
                yield f"{name}:<{moment_text(before)}"
        for path, value in self.arguments:
            yield f"args.{path}:{quoted(value)}"
        if self.cause is not None:
            yield f"cause:{self.cause}"
        yield from map(quoted, self.texts)

    async def filter(self, conn: AsyncConnection[Any], *, now: datetime | None = None) -> TaskFilter:
        """The search as a filter of the queue, with times relative to `now`; raises InvalidField for an unknown store or worker, or
        an ambiguous name."""
        moment = now or datetime.now(UTC)
        statuses, waits = split_states(self.wanted_states)
        roles = tuple(role for role in self.roles or Role if role not in self.not_roles)
        platform = self.platform
        if self.host is not None:
            served = await platform_of_host(conn, self.host)
            if served is None:
                raise InvalidField("host", f"no task requests {self.host!r}: `menuwatch hosts list` lists the hosts")
            roles = tuple(role for role in roles if role in NETWORK_ROLES) if platform in (None, served) else ()
            platform = served
        return TaskFilter(
            roles=roles if self.roles or self.not_roles or self.host else None,
            statuses=statuses if self.states or self.not_states else None,
            waits=waits,
            dispensary_id=None if self.store is None else await _resolve("store", _store_id(conn, self.store)),
            worker_ids=None if self.worker is None else await _resolve("worker", find_workers(conn, self.worker)),
            platform=platform,
            ids=self.ids or None,
            **{name: getattr(self, name) for name in _BOUNDS},
            created_after=_resolved(self.created_after, moment),
            created_before=_resolved(self.created_before, moment),
            ended_after=_resolved(self.ended_after, moment),
            ended_before=_resolved(self.ended_before, moment),
            arguments=self.arguments or None,
            cause=self.cause,
            texts=self.texts or None,
        )


_BOUNDS = ("priority_min", "priority_max", "attempts_min", "attempts_max", "took_over", "took_under")


def _without(
    states: Sequence[Status | WaitState], unwanted: Sequence[Status | WaitState]
) -> tuple[Status | WaitState, ...]:
    """The states (none: all) but for the unwanted ones; pending is as its wait states."""
    if not unwanted:
        return tuple(states)
    wanted = set(states or Status)
    removed = set(unwanted)
    for some in (wanted, removed):
        if Status.PENDING in some:
            some.update(WaitState)
    left = wanted - removed - {Status.PENDING}
    if left >= set(WaitState):
        left = left - set(WaitState) | {Status.PENDING}
    return tuple(state for state in STATES if state in left)


async def _resolve(qualifier: str, found: Awaitable[F]) -> F:
    try:
        return await found
    except Refused as error:
        raise InvalidField(qualifier, str(error)) from None


async def _store_id(conn: AsyncConnection[Any], text: str) -> int:
    return (await stores.resolve(conn, text)).id


def _resolved(moment: Moment | None, now: datetime) -> datetime | None:
    return now - moment if isinstance(moment, timedelta) else moment
