"""Search for anything by number or name: the search at the top of the dashboard, its palette, and the API."""

from __future__ import annotations

import difflib
import re
from enum import StrEnum
from typing import Annotated

from msgspec import Struct

from menuwatch.core.shapes import doc
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_structs, like_pattern

_q = sql.load(__package__, "quick_search.sql")

MOST = 6
"""Results of each kind."""
_SIMILAR = 0.75
"""Share of equal characters (difflib) from which on a word is taken for a misspelling of another."""
_SHORTEST = 4
"""Characters of a word that may be misspelled."""


class ResultKind(StrEnum):
    """What was found."""

    STORE = "store"
    TASK = "task"
    PAYLOAD = "payload"
    HOST = "host"
    WORKER = "worker"
    PROXY = "proxy"
    SCHEDULE = "schedule"
    USER = "user"


class SearchResult(Struct, kw_only=True, frozen=True):
    """An object that a search found."""

    kind: ResultKind
    id: Annotated[str, doc("Identifies it in the addresses of its kind.")]
    name: str
    detail: Annotated[str | None, doc("What distinguishes it from others with the same name.")] = None
    state: Annotated[
        str | None, doc("Hosts: active or paused; proxies: enabled or disabled; workers: their status, or silent.")
    ] = None
    exact: Annotated[bool, doc("The text is its whole name, number or slug.")] = False


async def search(
    conn: Connection, text: str, *, accounts: bool = False, everything: bool = False, most: int = MOST
) -> list[SearchResult]:
    """What has this number, or contains all words in its name: up to `most` of each kind, the best first. Stores also where a word is
    misspelled and nothing contains it. `accounts`: users too; `everything`: no words find the first of each kind, not nothing."""
    words = text.replace("\x00", " ").lower().split()[:8]
    if not words and not everything:
        return []
    number = words[0].removeprefix("#") if len(words) == 1 else ""
    found: list[SearchResult] = []
    if number.isascii() and number.isdigit() and 0 < int(number) < 2**63:
        small = int(number) if int(number) < 2**31 else None
        found += await fetch_structs(conn, SearchResult, _q.by_number, {"number": int(number), "small": small})
    pattern = like_pattern(" ".join(words))
    values = {
        "patterns": [like_pattern(word) for word in words],
        "text": " ".join(words),
        "first": pattern.removeprefix("%"),
        "inner": f"% {pattern.removeprefix('%')}",
        "accounts": accounts,
        "most": most,
    }
    for row in await fetch_structs(conn, SearchResult, _q.by_words, values):
        if all((row.kind, row.id) != (one.kind, one.id) for one in found):
            found.append(row)
    return found or await _similar_stores(conn, words, most)


async def _similar_stores(conn: Connection, words: list[str], most: int) -> list[SearchResult]:
    long = [word for word in words if len(word) >= _SHORTEST]
    if not long:
        return []
    halves = [like_pattern(half) for word in long for half in (word[: len(word) // 2], word[len(word) // 2 :])]
    whole = [like_pattern(word) for word in words if word not in long]
    rows = await fetch_structs(conn, SearchResult, _q.similar_stores, {"halves": halves, "whole": whole})
    scored = [(_similarity(long, re.findall(r"\w+", row.name.lower())), row) for row in rows]
    scored.sort(key=lambda one: (-one[0], one[1].name))
    return [row for score, row in scored if score >= _SIMILAR][:most]


def _similarity(words: list[str], names: list[str]) -> float:
    """That of the word which fits worst, each with the part of the name that it fits best."""
    return min(
        max((difflib.SequenceMatcher(None, word, name[: len(word) + 1]).ratio() for name in names), default=0.0)
        for word in words
    )
