"""What could come next in a search for tasks (task_search.py), while it is typed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection

from menuwatch.db import sql
from menuwatch.operations.reading import pattern, rows
from menuwatch.operations.task_search import QUALIFIERS, SAME
from menuwatch.operations.terms import Term, quoted, terms_of
from menuwatch.tasks.model import Role, Status

_q = sql.load(__package__, "task_search.sql")

SHOWN = 10
"""Most suggestions at once."""

_TIMES = [
    (">=-1h", "in the last hour"),
    (">=-24h", "in the last 24 hours"),
    (">=-7d", "in the last 7 days"),
    ("<-24h", "more than 24 hours ago"),
]
_VALUES: Mapping[str, Sequence[tuple[str, str]]] = {
    "role": [(str(role), "") for role in Role],
    "state": [(str(status), "") for status in Status],
    "priority": [(">=10", "chained and on demand"), (">=20", "urgent"), ("0", "scheduled")],
    "created": _TIMES,
    "ended": _TIMES,
}
_LISTS = frozenset({"role", "state", "id"})
_LOOKED_UP = frozenset({"store", "worker"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """`text` may replace what stands from `start` to before `end`; `about` says what it is."""

    text: str
    about: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the cursor stands: in the value of `key`, or (None) where a qualifier may begin. `begun` is what is typed there."""

    key: str | None
    begun: str
    start: int
    end: int


def place(text: str, cursor: int) -> Place:
    """What is being typed at the cursor."""
    cursor = max(0, min(cursor, len(text)))
    # Only what stands before the cursor decides what is typed; what follows it up to the next blank is replaced as well.
    last: Term | None = None
    for term in terms_of(text[:cursor]):
        if isinstance(term, Term):
            last = term
        else:
            key = text[: term.start].rpartition(" ")[2].removesuffix(":") or None
            return Place(key=_canonical(key), begun=text[term.start + 1 : cursor], start=term.start, end=len(text))
    end = cursor
    while end < len(text) and not text[end].isspace():
        end += 1
    if last is None or last.end < cursor:
        return Place(key=None, begun="", start=cursor, end=cursor)
    if last.key is None:
        return Place(key=None, begun=last.value, start=last.start, end=end)
    key = _canonical(last.key)
    start, begun = last.value_start, last.value
    if key in _LISTS and "," in begun:
        start += begun.rindex(",") + 1
        begun = begun[begun.rindex(",") + 1 :]
    return Place(key=key, begun=begun, start=start, end=end)


def _canonical(key: str | None) -> str | None:
    return None if key is None else SAME.get(key.lower(), key.lower())


def suggest(text: str, cursor: int, known: Mapping[str, Sequence[tuple[str, str]]] | None = None) -> list[Suggestion]:
    """What could stand at the cursor; `known` are values and what they are, of qualifiers whose values are not always the same."""
    at = place(text, cursor)
    if at.key is None:
        found = _qualifiers(at.begun)
    else:
        values = (known or {}).get(at.key, _VALUES.get(at.key, ()))
        found = (
            (quoted(value) if at.key in (known or {}) else value, about) for value, about in _fitting(values, at.begun)
        )
    return [Suggestion(text=value, about=about, start=at.start, end=at.end) for value, about in found][:SHOWN]


def _qualifiers(begun: str) -> Iterator[tuple[str, str]]:
    for name, about in QUALIFIERS.items():
        if name.startswith(begun.lower()):
            yield ("args.payload_id:" if name == "args." else f"{name}:"), about


def _fitting(values: Sequence[tuple[str, str]], begun: str) -> list[tuple[str, str]]:
    """Those that begin so, then those that hold it."""
    typed = begun.lower()
    first = [one for one in values if one[0].lower().startswith(typed)]
    return first + [one for one in values if typed in f"{one[0]} {one[1]}".lower() and one not in first]


async def suggestions(
    conn: AsyncConnection[Any], text: str, cursor: int, *, platforms: Sequence[str] = ()
) -> list[Suggestion]:
    """The same, with the stores and workers that there are."""
    at = place(text, cursor)
    known: dict[str, Sequence[tuple[str, str]]] = {"platform": [(name, "") for name in platforms]}
    if at.key in _LOOKED_UP:
        query = _q.stores_like if at.key == "store" else _q.workers_like
        found = await rows(conn, query, {"begun": pattern(at.begun), "limit": SHOWN})
        known[at.key] = [(one["value"], one["about"] or "") for one in found]
    return suggest(text, cursor, known)
