"""What people type to find tasks, shared by the API (`q=`) and the dashboard.

    role:payload_fetch state:failed,cancelled store:green-leaf worker:Xylos-2 platform:dutchie id:12,13
    priority:>=10 created:>2026-11-01 created:>=-24h args.payload_id:5 cause:3f2a91c04d7e error:"HTTP 403" timeout

A word without a qualifier is text in the reason (`error_message`), as after `error:`; every one of several must be in it. Several
roles, states or ids are separated by commas. Dates are days in UTC; `-24h` is a time ago (m, h, d). A value with blanks, quotes or a
colon in it stands in double quotes, in which `\\"` and `\\\\` are a quote and a backslash.

`parse` reads it, `TaskSearch.text` writes it in its one canonical form, which reads as the same; what cannot be read is told with its
place, what is wrong with it and what would be right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from psycopg import AsyncConnection

from menuwatch.core.errors import Refused
from menuwatch.operations.refusals import Unusable
from menuwatch.operations.tasks import TaskFilter
from menuwatch.operations.terms import (
    PRIORITY_MAX,
    PRIORITY_MIN,
    Fault,
    Moment,
    Term,
    Wrong,
    bounds_of,
    moment_text,
    moments_of,
    numbers_of,
    one_text,
    quoted,
    terms_of,
    words_of,
)
from menuwatch.stores import store as stores
from menuwatch.tasks.model import ROLE_ALIASES, Role, Status, parse_role

QUALIFIERS = {
    "role": "kind of work: role:payload_fetch",
    "state": "where it stands: state:failed,cancelled",
    "store": "the store's slug, platform id or number: store:green-leaf",
    "worker": "who has or had it: worker:NAME",
    "platform": "the platform: platform:dutchie",
    "id": "number of the task: id:123,124",
    "priority": "how soon: priority:>=10, priority:0..5",
    "created": "when it was enqueued: created:>2026-11-01, created:>=-24h",
    "ended": "when it was over: ended:>=-24h",
    "error": 'text in its reason: error:"HTTP 403"',
    "cause": "failed of the same cause, as Failures names it: cause:3f2a91c04d7e",
    "args.": "an argument it was asked with: args.payload_id:5",
}
"""Every qualifier, with what it means and an example."""

SAME = {
    "completed": "ended",
    "status": "state",
    "roles": "role",
    "text": "error",
    "payload": "args",
    "dispensary": "store",
}
"""Other names of qualifiers, that are taken for them."""

T = TypeVar("T", Role, Status, int)

_ARGUMENT = re.compile(r"args((?:\.[\w-]+)+)", re.ASCII)
_CAUSE = re.compile(r"[0-9a-f]{12}", re.ASCII)
_ONCE = "it is given twice, and a task has one: leave one of them out"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSearch:
    """What was typed, as values. `…_after` is inclusive, `…_before` is not; a timedelta is a time ago. Of `arguments`
    each is a path and the text of the value there."""

    roles: tuple[Role, ...] = ()
    states: tuple[Status, ...] = ()
    store: str | None = None
    worker: str | None = None
    platform: str | None = None
    ids: tuple[int, ...] = ()
    priority_min: int | None = None
    priority_max: int | None = None
    created_after: Moment | None = None
    created_before: Moment | None = None
    ended_after: Moment | None = None
    ended_before: Moment | None = None
    arguments: tuple[tuple[str, str], ...] = ()
    cause: str | None = None
    texts: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """As it is written canonically: reads as the same search."""
        return " ".join(self._written())

    def _written(self) -> Iterator[str]:
        if self.roles:
            yield "role:" + ",".join(self.roles)
        if self.states:
            yield "state:" + ",".join(self.states)
        for name in ("store", "worker", "platform"):
            if (value := getattr(self, name)) is not None:
                yield f"{name}:{quoted(value)}"
        if self.ids:
            yield "id:" + ",".join(map(str, self.ids))
        if self.priority_min is not None and self.priority_min == self.priority_max:
            yield f"priority:{self.priority_min}"
        else:
            if self.priority_min is not None:
                yield f"priority:>={self.priority_min}"
            if self.priority_max is not None:
                yield f"priority:<={self.priority_max}"
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
        """As the queue is asked, times ago being told from `now`; raises Refused for a store that does not exist or is several."""
        moment = now or datetime.now(UTC)
        return TaskFilter(
            roles=self.roles or None,
            statuses=self.states or None,
            dispensary_id=None if self.store is None else await _store_id(conn, self.store),
            worker_id=self.worker,
            platform=self.platform,
            ids=self.ids or None,
            priority_min=self.priority_min,
            priority_max=self.priority_max,
            created_after=_resolved(self.created_after, moment),
            created_before=_resolved(self.created_before, moment),
            ended_after=_resolved(self.ended_after, moment),
            ended_before=_resolved(self.ended_before, moment),
            arguments=self.arguments or None,
            cause=self.cause,
            texts=self.texts or None,
        )


class Unreadable(Unusable):
    """A search that cannot be read, or not together with what else was asked for. `faults` say where and why."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("q", "; ".join(map(str, faults)))
        self.faults = tuple(faults)


async def narrowed(conn: AsyncConnection[Any], where: TaskFilter, text: str) -> TaskFilter:
    """What the filter and the search select both; raises Unreadable, also where both name the same thing."""
    search = parse(text)
    if isinstance(search, list):
        raise Unreadable(search)
    try:
        found = await search.filter(conn)
    except Refused as error:
        whole = Fault(start=0, end=len(text), wrong=str(error), right="`menuwatch stores list` shows all")
        raise Unreadable([whole]) from None
    asked = {one.name: getattr(found, one.name) for one in fields(found) if getattr(found, one.name) is not None}
    twice = [name for name in asked if getattr(where, name) is not None]
    if twice:
        right = f"leave out {' and '.join(twice)} there, or in the search"
        raise Unreadable([Fault(start=0, end=len(text), wrong="it names what a parameter names", right=right)])
    return replace(where, **asked)


def parse(text: str) -> TaskSearch | list[Fault]:
    """What was typed, or everything that is wrong with it, in the order of the text."""
    found = TaskSearch()
    faults: list[Fault] = []
    for term in terms_of(text):
        if isinstance(term, Fault):
            faults.append(term)
            continue
        try:
            found = _with(found, term)
        except Wrong as wrong:
            faults.append(Fault(start=term.start, end=term.end, wrong=wrong.wrong, right=wrong.right))
    return faults or found


def _with(search: TaskSearch, term: Term) -> TaskSearch:
    """The search with one more term; raises Wrong."""
    if term.key is None:
        return _add_text(search, term.value)
    key = term.key.lower()
    head, dot, rest = key.partition(".")
    key = SAME.get(head, head) + dot + rest
    if key.startswith("args"):
        return _add_argument(search, term)
    match key:
        case "role":
            return replace(search, roles=_union(search.roles, [_role(word) for word in words_of(term)]))
        case "state":
            return replace(search, states=_union(search.states, [_state(word) for word in words_of(term)]))
        case "id":
            return replace(search, ids=_union(search.ids, numbers_of(term, 1, 2**63 - 1)))
        case "store":
            _once(search.store)
            return replace(search, store=one_text(term))
        case "worker":
            _once(search.worker)
            return replace(search, worker=one_text(term))
        case "platform":
            _once(search.platform)
            return replace(search, platform=one_text(term))
        case "error":
            return _add_text(search, one_text(term))
        case "cause":
            _once(search.cause)
            if not _CAUSE.fullmatch(cause := term.value.lower()):
                raise Wrong("a cause is 12 hexadecimal digits", "copy it from Failures: cause:3f2a91c04d7e")
            return replace(search, cause=cause)
        case "priority":
            return _add_priority(search, term)
        case "created" | "ended":
            return _add_time(search, key, term)
    if key.startswith("-") and key[1:] in QUALIFIERS:
        raise Wrong("nothing can be left out of a search", f"name what it shall find, as in {key[1:]}:…")
    names = ", ".join(f"{name}:" if not name.endswith(".") else f"{name}NAME:" for name in QUALIFIERS)
    raise Wrong(
        f"there is no qualifier {term.key}:",
        f'use one of {names}, or put text that holds a colon in quotes: "{term.key}:…"',
    )


def _add_text(search: TaskSearch, value: str) -> TaskSearch:
    if not value:
        raise Wrong("the text is empty", "write what the reason shall hold, or leave it out")
    return replace(search, texts=tuple(dict.fromkeys((*search.texts, value))))


def _add_argument(search: TaskSearch, term: Term) -> TaskSearch:
    assert term.key is not None, "a term with a qualifier"
    _, dot, path = term.key.partition(".")
    if not dot or not _ARGUMENT.fullmatch(f"args.{path}"):
        raise Wrong(f"{term.key}: names no argument", "name one with letters, digits, - and _: args.payload_id:5")
    if any(known == path for known, _ in search.arguments):
        raise Wrong(_ONCE, f"one args.{path}:")
    return replace(search, arguments=tuple(sorted((*search.arguments, (path, one_text(term))))))


def _add_priority(search: TaskSearch, term: Term) -> TaskSearch:
    low, high = bounds_of(term, PRIORITY_MIN, PRIORITY_MAX)
    lows = [value for value in (search.priority_min, low) if value is not None]
    highs = [value for value in (search.priority_max, high) if value is not None]
    if lows and highs and max(lows) > min(highs):
        raise Wrong(f"no priority is at least {max(lows)} and at most {min(highs)}", "priority:0..10")
    return replace(search, priority_min=max(lows) if lows else None, priority_max=min(highs) if highs else None)


def _add_time(search: TaskSearch, key: str, term: Term) -> TaskSearch:
    first: Moment | None = getattr(search, f"{key}_after")
    last: Moment | None = getattr(search, f"{key}_before")
    after, before = moments_of(term)
    if after is not None and first is not None:
        raise Wrong("a beginning is given twice", f"one {key}:>=…")
    if before is not None and last is not None:
        raise Wrong("an end is given twice", f"one {key}:<…")
    after = first if after is None else after
    before = last if before is None else before
    if _empty(after, before):
        raise Wrong("it ends before it begins", f"{key}:2026-11-01..2026-11-05")
    if key == "created":
        return replace(search, created_after=after, created_before=before)
    return replace(search, ended_after=after, ended_before=before)


def _empty(after: Moment | None, before: Moment | None) -> bool:
    if isinstance(after, datetime) and isinstance(before, datetime):
        return after >= before
    if isinstance(after, timedelta) and isinstance(before, timedelta):
        return after <= before
    return False


def _once(before: object) -> None:
    if before is not None:
        raise Wrong(_ONCE, "one of them")


def _union(known: tuple[T, ...], more: list[T]) -> tuple[T, ...]:
    every = set(known)
    every.update(more)
    return tuple(sorted(every))


def _role(word: str) -> Role:
    try:
        return parse_role(word.lower())
    except Refused:
        raise Wrong(f"there is no role {word!r}", f"one of {', '.join([*Role, *ROLE_ALIASES])}") from None


def _state(word: str) -> Status:
    try:
        return Status(word.lower())
    except ValueError:
        raise Wrong(f"there is no state {word!r}", f"one of {', '.join(Status)}") from None


def _resolved(moment: Moment | None, now: datetime) -> datetime | None:
    return now - moment if isinstance(moment, timedelta) else moment


async def _store_id(conn: AsyncConnection[Any], text: str) -> int:
    found = await stores.find(conn, text)
    if found is None:
        raise Refused(f"store {text!r} does not exist: name it by its slug, its platform's id or its number")
    return found.id
