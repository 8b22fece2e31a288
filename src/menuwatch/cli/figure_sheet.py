"""Figures as text for people and programs: when they were made, what they rest on, and no more columns than say something."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from decimal import Decimal
from json import loads
from typing import Any

import msgspec

from menuwatch import bootstrap
from menuwatch.cli.output import Format, ago, chosen_format, errors, plain, plural, print_json, print_rows
from menuwatch.cli.process import settings
from menuwatch.operations.analytics import Page

_TABLE_LIMIT, _ALL_ROWS = 100, 10_000_000
_RESTS_ON = (("coverage_stores", "Stores"), ("coverage_stale_stores", "Stale"), ("coverage_share", "Crawls ok"))

Reading = Callable[[Any, int], Awaitable[Page]]
"""How a page of a figure is read: on this connection, at most so many rows."""


def printed(
    read: Reading,
    columns: Sequence[tuple[str, str]],
    fmt: Format | None,
    json: bool,
    limit: int | None,
    *,
    rests_on: Sequence[tuple[str, str]] = _RESTS_ON,
    weighed: bool = False,
) -> None:
    """Reads a figure and prints it. `rests_on`: columns that tell what it rests on. `weighed`: a table
    has only rows with options, and says how many it leaves out."""
    form = chosen_format(json, fmt)
    most = limit or (_TABLE_LIMIT if form is Format.TABLE else _ALL_ROWS)
    found = asyncio.run(_read(read, most))
    if form is Format.JSON:
        print_json({**found.head, "items": found.rows})
        return
    rows = [_flat(row) for row in found.rows]
    left_out = [row for row in rows if weighed and form is Format.TABLE and not row["options"]]
    if form is Format.TABLE:
        rows = [row for row in rows if row not in left_out]
        # Columns in which no row has anything say nothing.
        rows = [row | _spoken(row) for row in rows]
        columns = [(key, heading) for key, heading in columns if any(row.get(key) is not None for row in rows)]
    empty = (
        "Nothing of that kind." if found.head["run_id"] else "No figures yet: `menuwatch analytics refresh` makes them."
    )
    if left_out:
        empty = "No row has a price per gram."
    print_rows(rows, [*columns, *rests_on], form, empty=empty, keep=[key for key, _ in rests_on])
    if left_out:
        options = sum(row["without_weight"] for row in left_out)
        errors.print(
            f"Left out: {plural(len(left_out), 'row')} in which no option has a weight ({plural(options, 'option')}); "
            "--json has them.",
            soft_wrap=True,
        )
    if form is Format.TABLE:
        _said(found, limit)


async def _read(read: Reading, limit: int) -> Page:
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn:
        return await read(conn, limit)


def _said(found: Page, limit: int | None) -> None:
    head = found.head
    if head["run_id"] is not None:
        errors.print(
            f"Made {ago(head['refreshed_at'])}, of the time since {head['window']['from']:%Y-%m-%d %H:%M} UTC."
        )
    if head["failed"] is not None:
        errors.print(
            f"Making them anew failed {ago(head['failed']['at'])}: {plain(head['failed']['error'])}",
            markup=False,
            soft_wrap=True,
        )
    if found.next is not None and limit is None:
        errors.print(f"The first {plural(_TABLE_LIMIT, 'row')}; --limit or --format csv prints more.")


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """Objects in a row as columns of their own: `coverage_share`, `regular_median`."""
    flat: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, msgspec.Raw):
            inner = loads(bytes(value), parse_float=Decimal)
            flat |= {f"{key}_{name}": one for name, one in inner.items()}
        else:
            flat[key] = value
    return flat


def _spoken(row: dict[str, Any]) -> dict[str, Any]:
    """What a table says where a value means something else than nothing, and shares as percent."""
    shares = {
        key: f"{100 * value:.1f} %"
        for key, value in row.items()
        if key.endswith("share") and isinstance(value, Decimal | int)
    }
    depths = {
        key: f"{100 * value:.0f} %" for key, value in row.items() if key.startswith("depth_") and value is not None
    }
    where = "all" if row.get("all_states") else row.get("state")
    what = "all" if row.get("all_categories") else row.get("category")
    return {"where": where, "what": what, **shares, **depths}
