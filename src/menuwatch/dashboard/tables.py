"""Tables of lists: which page is shown, how many rows it has, and by which column it is sorted. All of it is in the address."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import Request
from msgspec import Struct

from menuwatch.dashboard import screen
from menuwatch.web import paging

R = TypeVar("R")

SIZES = (25, 50, 100)
"""Rows of a page to choose from."""
_SIZE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of a list: rows `first` to `last`, from 1. `sizes` are the numbers of rows with their addresses."""

    first: int
    last: int
    size: int
    sizes: Sequence[tuple[int, str]]
    next_href: str | None
    first_href: str | None


class Sort(Struct, frozen=True, kw_only=True):
    """By which column a list is sorted. `code` is the order in the address; `hrefs` sort by a column, or turn the order of the
    present one."""

    code: str
    key: str
    descending: bool
    hrefs: Mapping[str, str]


def page_size(request: Request) -> int:
    """The rows of a page that the address asks for."""
    asked = request.query_params.get("rows", "")
    return int(asked) if asked in map(str, SIZES) else _SIZE


def page(request: Request, rows: Sequence[R], *keys: str) -> tuple[Sequence[R], Page]:
    """The rows to show of up to one more than fit, and their page. `keys` are the fields that the list is sorted by."""
    size = page_size(request)
    shown = rows[:size]
    after = None
    if len(rows) > size:
        last = shown[-1]
        after = paging.encode(*(last[key] if isinstance(last, Mapping) else getattr(last, key) for key in keys))
    return shown, page_of(request, len(shown), after)


def page_of(request: Request, shown: int, after: str | None) -> Page:
    """The page with that many rows; `after` is the cursor of the next one."""
    links = screen.page_links(request, None)
    given = request.query_params.get("from", "")
    on_first = links["first_href"] is None
    before = int(given) - 1 if not on_first and given.isascii() and given.isdigit() and 0 < len(given) < 10 else 0
    next_href = None if after is None else screen.query(request, cursor=after, **{"from": before + shown + 1})
    return Page(
        first=before + 1,
        last=before + shown,
        size=page_size(request),
        sizes=[(size, screen.query(request, rows=None if size == _SIZE else size)) for size in SIZES],
        next_href=next_href,
        first_href=links["first_href"],
    )


def sorting(request: Request, orders: Sequence[str], falling: Collection[str] = ()) -> Sort:
    """The order that the address asks for, one of `orders`: the name of a column, with `-` for descending. The first is the default;
    of a column that can be sorted both ways the first one named is that of the first click. `falling` are orders without `-` that
    descend."""
    asked = request.query_params.get("sort", "")
    code = asked if asked in orders else orders[0]
    key = code.removeprefix("-")

    def href(name: str) -> str:
        both = [order for order in orders if order.removeprefix("-") == name]
        wanted = next((order for order in both if order != code), code)
        changes: dict[str, Any] = {"sort": None if wanted == orders[0] else wanted}
        return screen.query(request, **changes)

    names = {order.removeprefix("-") for order in orders}
    return Sort(
        code=code,
        key=key,
        descending=code.startswith("-") or code in falling,
        hrefs={name: href(name) for name in sorted(names)},
    )
