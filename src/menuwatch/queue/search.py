"""Search queries for tasks, shared by the API (`q=`) and the dashboard.

    role:payload_fetch state:failed,cancelled -role:product_refresh store:green-leaf worker:Xylos-2 platform:dutchie id:12,13
    host:dutchie.com attempts:>2 took:>30s
    priority:>=10 created:>2026-11-01 created:>=-24h args.payload_id:5 cause:3f2a91c04d7e error:"HTTP 403" timeout

A word without a qualifier is text in the reason (`error_message`), as after `error:`; several words must all occur. Several roles,
states or ids are separated by commas. Dates are days in UTC; `-24h` is a relative time (m, h, d). A value that contains blanks, quotes
or a colon is put in double quotes, in which `\\"` and `\\\\` are a quote and a backslash.

`parse` reads a query; `TaskSearch.text` writes it in its canonical form, which parses to the same. Errors give the position, what is
wrong and what to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from psycopg import AsyncConnection

from menuwatch.core.errors import InvalidField, Refused
from menuwatch.queue.model import (
    PRIORITY_MAX,
    PRIORITY_MIN,
    ROLE_ALIASES,
    STATES,
    Role,
    Status,
    WaitState,
    parse_role,
    parse_state,
)
from menuwatch.queue.search_terms import (
    Fault,
    Moment,
    Term,
    Wrong,
    bounds_of,
    durations_of,
    moments_of,
    numbers_of,
    one_text,
    terms_of,
    words_of,
)
from menuwatch.queue.search_values import TaskSearch
from menuwatch.queue.task_list import TaskFilter

QUALIFIERS = {
    "role": "task type: role:payload_fetch",
    "state": "state: state:failed,cancelled; of pending tasks state:ready, blocked or scheduled",
    "store": 'store by name, slug or id: store:green-leaf, store:"Green Leaf"',
    "worker": "worker by name or id: worker:Ada, worker:Xylos/Ada",
    "host": "tasks that request this host: host:dutchie.com",
    "platform": "the platform: platform:dutchie",
    "id": "number of the task: id:123,124",
    "priority": "priority: priority:>=10, priority:0..5",
    "attempts": "attempts so far: attempts:>2",
    "took": "duration of the last attempt: took:>30s, took:<500ms",
    "created": "enqueued at: created:>2026-11-01, created:>=-24h",
    "ended": "finished at: ended:>=-24h",
    "error": 'error message: error:"HTTP 403"',
    "cause": "failure cause (from Failures): cause:3f2a91c04d7e",
    "args.": "payload argument: args.payload_id:5",
    "-role": "other roles, or with -state other states: -role:payload_fetch",
}
"""Every qualifier with a description and an example."""

QUALIFIER_ALIASES = {
    "completed": "ended",
    "status": "state",
    "roles": "role",
    "text": "error",
    "payload": "args",
    "dispensary": "store",
}
"""Aliases of qualifiers."""

T = TypeVar("T", Role, Status | WaitState, int)

_ARGUMENT = re.compile(r"args((?:\.[\w-]+)+)", re.ASCII)
_CAUSE = re.compile(r"[0-9a-f]{12}", re.ASCII)
MAX_ATTEMPTS = 100_000
MAX_QUERY = 2000
"""Most characters of a search."""
_ONCE = "given twice: remove one of them"


class InvalidQuery(InvalidField):
    """A query that cannot be parsed, or contradicts other parameters. `faults` say where and why."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("q", "; ".join(map(str, faults)))
        self.faults = tuple(faults)


async def apply_query(conn: AsyncConnection[Any], where: TaskFilter, text: str) -> TaskFilter:
    """Combine the filter and the query; raises InvalidQuery, also if both set the same field."""
    search = parse(text)
    if isinstance(search, list):
        raise InvalidQuery(search)
    try:
        selected = await search.filter(conn)
    except InvalidField as error:
        wrong, _, right = str(error).partition(": ")
        places = [
            (term.start, term.end) for term in terms_of(text) if isinstance(term, Term) and _names(term, error.field)
        ]
        start, end = places[0] if places else (0, len(text))
        raise InvalidQuery([Fault(start=start, end=end, wrong=wrong, right=right or "name another one")]) from None
    values = {
        field.name: getattr(selected, field.name)
        for field in fields(selected)
        if getattr(selected, field.name) is not None
    }
    twice = [name for name in values if getattr(where, name) is not None]
    if twice:
        right = f"omit {' and '.join(twice)} in one of them"
        raise InvalidQuery(
            [Fault(start=0, end=len(text), wrong="given both in the search and as a parameter", right=right)]
        )
    return replace(where, **values)


def _names(term: Term, qualifier: str) -> bool:
    key = (term.key or "").lower()
    return QUALIFIER_ALIASES.get(key, key) == qualifier


def parse(text: str) -> TaskSearch | list[Fault]:
    """Parse a query; raises InvalidQuery with all errors, in text order."""
    search = TaskSearch()
    faults: list[Fault] = []
    for term in terms_of(text):
        if isinstance(term, Fault):
            faults.append(term)
            continue
        try:
            search = _with(search, term)
        except Wrong as wrong:
            faults.append(Fault(start=term.start, end=term.end, wrong=wrong.wrong, right=wrong.right))
    return faults or search


def _with(search: TaskSearch, term: Term) -> TaskSearch:
    """Add one term to the search; raises Wrong."""
    if term.key is None:
        return _add_text(search, term.value)
    head, dot, rest = term.key.lower().partition(".")
    minus = "-" if head.startswith("-") else ""
    head = head.removeprefix("-")
    key = minus + QUALIFIER_ALIASES.get(head, head) + dot + rest
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
            return _add_bounds(search, "priority", term, PRIORITY_MIN, PRIORITY_MAX)
        case "attempts":
            return _add_bounds(search, "attempts", term, 0, MAX_ATTEMPTS)
        case "took":
            return _add_duration(search, term)
        case "host":
            _once(search.host)
            return replace(search, host=one_text(term).lower())
        case "-role":
            return replace(search, not_roles=_union(search.not_roles, [_role(word) for word in words_of(term)]))
        case "-state":
            return replace(search, not_states=_union(search.not_states, [_state(word) for word in words_of(term)]))
        case "created" | "ended":
            return _add_time(search, key, term)
    if key.startswith("-") and key[1:] in QUALIFIERS:
        raise Wrong(f"{key[1:]}: cannot be negated", "only -role:… and -state:… are supported")
    names = ", ".join(f"{name}:" if not name.endswith(".") else f"{name}NAME:" for name in QUALIFIERS)
    raise Wrong(
        f"unknown qualifier {term.key}:",
        f'one of {names}, or quotes around text that contains a colon: "{term.key}:…"',
    )


def _add_text(search: TaskSearch, value: str) -> TaskSearch:
    if not value:
        raise Wrong("the text is empty", "enter a text or remove the term")
    return replace(search, texts=tuple(dict.fromkeys((*search.texts, value))))


def _add_argument(search: TaskSearch, term: Term) -> TaskSearch:
    assert term.key is not None, "a term with a qualifier"
    _, dot, path = term.key.partition(".")
    if not dot or not _ARGUMENT.fullmatch(f"args.{path}"):
        raise Wrong(f"{term.key}: not an argument name", "name one with letters, digits, - and _: args.payload_id:5")
    if any(known == path for known, _ in search.arguments):
        raise Wrong(_ONCE, f"one args.{path}:")
    return replace(search, arguments=tuple(sorted((*search.arguments, (path, one_text(term))))))


def _add_bounds(search: TaskSearch, name: str, term: Term, lowest: int, highest: int) -> TaskSearch:
    low, high = bounds_of(term, lowest, highest)
    lows = [value for value in (getattr(search, f"{name}_min"), low) if value is not None]
    highs = [value for value in (getattr(search, f"{name}_max"), high) if value is not None]
    if lows and highs and max(lows) > min(highs):
        raise Wrong(f"empty {name} range: at least {max(lows)} and at most {min(highs)}", f"{name}:0..10")
    changes: dict[str, Any] = {
        f"{name}_min": max(lows) if lows else None,
        f"{name}_max": min(highs) if highs else None,
    }
    return replace(search, **changes)


def _add_duration(search: TaskSearch, term: Term) -> TaskSearch:
    over, under = durations_of(term)
    if (over is not None and search.took_over is not None) or (under is not None and search.took_under is not None):
        raise Wrong(_ONCE, "took:>30s, took:1m..5m")
    over, under = search.took_over if over is None else over, search.took_under if under is None else under
    if over is not None and under is not None and over >= under:
        raise Wrong("the longest is not more than the shortest", "took:1m..5m")
    return replace(search, took_over=over, took_under=under)


def _add_time(search: TaskSearch, key: str, term: Term) -> TaskSearch:
    first: Moment | None = getattr(search, f"{key}_after")
    last: Moment | None = getattr(search, f"{key}_before")
    after, before = moments_of(term)
    if after is not None and first is not None:
        raise Wrong("start given twice", f"one {key}:>=…")
    if before is not None and last is not None:
        raise Wrong("end given twice", f"one {key}:<…")
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
        raise Wrong(f"unknown role {word!r}", f"one of {', '.join([*Role, *ROLE_ALIASES])}") from None


def _state(word: str) -> Status | WaitState:
    try:
        return parse_state(word)
    except Refused:
        raise Wrong(f"unknown state {word!r}", f"one of {', '.join(STATES)}") from None
