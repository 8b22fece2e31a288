"""Suggestions for a task search (search.py) while it is typed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Struct
from psycopg import AsyncConnection

from menuwatch.db import sql
from menuwatch.db.query import fetch_all, like_pattern
from menuwatch.queue.model import STATES, Role, WaitState
from menuwatch.queue.search import QUALIFIER_ALIASES, QUALIFIERS
from menuwatch.queue.search_terms import Term, quoted, terms_of

_q = sql.load(__package__, "search_suggestions.sql")

SHOWN = 10
"""Most suggestions returned."""

_TIMES = [
    (">=-1h", "in the last hour"),
    (">=-24h", "in the last 24 hours"),
    (">=-7d", "in the last 7 days"),
    ("<-24h", "more than 24 hours ago"),
]
_VALUES: Mapping[str, Sequence[tuple[str, str]]] = {
    "role": [(str(role), "") for role in Role],
    "state": [(str(state), "pending tasks" if isinstance(state, WaitState) else "") for state in STATES],
    "priority": [(">=10", "chained and on demand"), (">=20", "urgent"), ("0", "scheduled")],
    "created": _TIMES,
    "ended": _TIMES,
}
_LISTS = frozenset({"role", "state", "id"})
_LOOKED_UP = frozenset({"store", "worker"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """`text` may replace the range from `start` to before `end`; `about` describes it."""

    text: str
    about: str
    start: int
    end: int


class CursorContext(Struct, frozen=True, kw_only=True):
    """Context of the cursor: in the value of `key`, or (None) where a qualifier may begin. `typed` is the text before the cursor."""

    key: str | None
    typed: str
    start: int
    end: int


def cursor_context(text: str, cursor: int) -> CursorContext:
    """Find what is being typed at the cursor."""
    cursor = max(0, min(cursor, len(text)))
    # Only the text before the cursor decides what is typed; the text after it up to the next blank is replaced as well.
    last: Term | None = None
    for term in terms_of(text[:cursor]):
        if isinstance(term, Term):
            last = term
        else:
            key = text[: term.start].rpartition(" ")[2].removesuffix(":") or None
            return CursorContext(
                key=_canonical(key), typed=text[term.start + 1 : cursor], start=term.start, end=len(text)
            )
    end = cursor
    while end < len(text) and not text[end].isspace():
        end += 1
    if last is None or last.end < cursor:
        return CursorContext(key=None, typed="", start=cursor, end=cursor)
    if last.key is None:
        return CursorContext(key=None, typed=last.value, start=last.start, end=end)
    key = _canonical(last.key)
    start, typed = last.value_start, last.value
    if key in _LISTS and "," in typed:
        start += typed.rindex(",") + 1
        typed = typed[typed.rindex(",") + 1 :]
    return CursorContext(key=key, typed=typed, start=start, end=end)


def _canonical(key: str | None) -> str | None:
    return None if key is None else QUALIFIER_ALIASES.get(key.lower(), key.lower())


def suggest(text: str, cursor: int, known: Mapping[str, Sequence[tuple[str, str]]] | None = None) -> list[Suggestion]:
    """Suggestions at the cursor; `known` are current values with descriptions, of qualifiers whose values vary."""
    at = cursor_context(text, cursor)
    if at.key is None:
        suggestions = _qualifiers(at.typed)
    else:
        values = (known or {}).get(at.key, _VALUES.get(at.key, ()))
        suggestions = (
            (quoted(value) if at.key in (known or {}) else value, about) for value, about in _fitting(values, at.typed)
        )
    return [Suggestion(text=value, about=about, start=at.start, end=at.end) for value, about in suggestions][:SHOWN]


def _qualifiers(typed: str) -> Iterator[tuple[str, str]]:
    for name, about in QUALIFIERS.items():
        if name.startswith(typed.lower()):
            yield ("args.payload_id:" if name == "args." else f"{name}:"), about


def _fitting(values: Sequence[tuple[str, str]], typed: str) -> list[tuple[str, str]]:
    """Values that start with the text, then those that contain it."""
    typed = typed.lower()
    first = [value for value in values if value[0].lower().startswith(typed)]
    return first + [value for value in values if typed in f"{value[0]} {value[1]}".lower() and value not in first]


async def suggest_terms(
    conn: AsyncConnection[Any], text: str, cursor: int, *, platforms: Sequence[str] = ()
) -> list[Suggestion]:
    """As `suggest`, with the existing stores and workers."""
    at = cursor_context(text, cursor)
    known: dict[str, Sequence[tuple[str, str]]] = {"platform": [(name, "") for name in platforms]}
    if at.key in _LOOKED_UP:
        query = _q.stores_like if at.key == "store" else _q.workers_like
        rows = await fetch_all(conn, query, {"typed": like_pattern(at.typed), "limit": SHOWN})
        known[at.key] = [(row["value"], row["about"] or "") for row in rows]
    return suggest(text, cursor, known)
