"""Facets beside the task search: values to narrow it by, with counts, and the terms that it has, each with a link that removes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

from msgspec import Struct

from menuwatch.db.query import Row
from menuwatch.queue.counts import FACET_TASKS
from menuwatch.queue.model import STATES, Role
from menuwatch.queue.search_values import TaskSearch

_AGES = {
    "1h": ("last hour", timedelta(hours=1)),
    "24h": ("last 24 hours", timedelta(hours=24)),
    "7d": ("last 7 days", timedelta(days=7)),
}


class Choice(Struct, frozen=True, kw_only=True):
    """A value of a facet. Its link adds it to the search, or removes it if it is `current`; `without` excludes it. `count` None: not
    counted."""

    label: str
    title: str
    count: int | None
    href: str
    current: bool
    without: str | None = None


class Facet(Struct, frozen=True, kw_only=True):
    name: str
    choices: Sequence[Choice]


class Facets(Struct, frozen=True, kw_only=True):
    """`newest`: the counts are of this many newest tasks, not of all (None: of all)."""

    facets: Sequence[Facet]
    terms: Sequence[tuple[str, str]]
    newest: int | None


Address = Callable[[TaskSearch], str]


def facets(search: TaskSearch, rows: Sequence[Row] | None, states: dict[Any, int | None], address: Address) -> Facets:
    """The facets of a search. `rows` are those of `count_facets`, `states` the counts of the tabs."""
    found: dict[str, list[Row]] = {}
    for row in rows or ():
        found.setdefault(row["facet"], []).append(row)
    counted = {str(row["value"]): int(row["n"]) for row in found.get("role", ())}
    roles = sorted(Role, key=lambda role: -counted.get(role, 0))
    total = found["all"][0]["n"] if "all" in found else 0
    made = (
        ("Role", [_one_of(search, "roles", role, counted.get(role, 0) if rows else None, address) for role in roles]),
        ("State", [_one_of(search, "states", state, states.get(state), address) for state in STATES]),
        *(
            (name.capitalize(), [_only(search, name, row, address) for row in found.get(name, ())])
            for name in ("host", "store", "worker")
        ),
        ("Age", [_age(search, row, address) for row in sorted(found.get("age", ()), key=lambda row: row["n"])]),
    )
    return Facets(
        facets=[Facet(name=name, choices=choices) for name, choices in made if choices],
        terms=list(_terms(search, address)),
        newest=FACET_TASKS if total >= FACET_TASKS else None,
    )


def _one_of(search: TaskSearch, field: str, value: Any, count: int | None, address: Address) -> Choice:
    chosen = getattr(search, field)
    current = value in chosen
    more = tuple(sorted({*chosen, value})) if not current else tuple(one for one in chosen if one != value)
    excluded = getattr(search, f"not_{field}")
    changes: dict[str, Any] = {field: more}
    others: dict[str, Any] = {field: (), f"not_{field}": tuple(sorted({*excluded, value}))}
    return Choice(
        label=str(value),
        title=str(value),
        count=count,
        href=address(replace(search, **changes)),
        current=current,
        without=None if current or value in excluded else address(replace(search, **others)),
    )


def _only(search: TaskSearch, field: str, row: Row, address: Address) -> Choice:
    value = str(row["value"])
    chosen = getattr(search, field)
    current = chosen is not None and chosen.lower() in (value.lower(), str(row["label"] or "").lower())
    changes: dict[str, Any] = {field: None if current else value}
    label = row["label"] or value
    return Choice(label=label, title=value, count=row["n"], href=address(replace(search, **changes)), current=current)


def _age(search: TaskSearch, row: Row, address: Address) -> Choice:
    label, age = _AGES[row["value"]]
    current = search.created_after == age
    changed = replace(search, created_after=None if current else age)
    return Choice(
        label=label, title=f"created:>=-{row['value']}", count=row["n"], href=address(changed), current=current
    )


def _terms(search: TaskSearch, address: Address) -> Iterator[tuple[str, str]]:
    """Each term of the search with the address of the search without it."""
    for field in fields(search):
        value, default = getattr(search, field.name), field.default
        if value == default:
            continue
        for one in value if isinstance(value, tuple) else (value,):
            alone: dict[str, Any] = {field.name: (one,) if isinstance(value, tuple) else one}
            left: dict[str, Any] = {
                field.name: tuple(other for other in value if other != one) if isinstance(value, tuple) else default
            }
            yield TaskSearch(**alone).text, address(replace(search, **left))
