"""`menuwatch licences`: registers of licences."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from menuwatch.cli.options import Commands, LimitedOutput, Output, StatesOption
from menuwatch.cli.output import Column, echo, notice, print_json, print_list
from menuwatch.cli.startup import read, with_system
from menuwatch.core.errors import Refused
from menuwatch.core.format import pluralize
from menuwatch.geo.states import parse_state
from menuwatch.matching.locations import service
from menuwatch.matching.locations.engine import MatchRun, match_locations
from menuwatch.matching.locations.model import LicenceFilter, LicenceImport
from menuwatch.system import System

app = Commands("Import and list licence registers.")

_SHOWN = 20
COLUMNS = (
    Column("#", "id"),
    Column("State", "state"),
    Column("Number", "number"),
    Column("Holder", "holder"),
    Column("Trade name", "trade_name", rank=3),
    Column("Kind", "kind", rank=2),
    Column("Status", "status", rank=4),
    Column("Ended", "ended", rank=5),
    Column("City", "city", rank=6),
    Column("Location", "location_id", rank=1),
)


@app.command("import")
def import_(
    file: Annotated[
        str,
        typer.Argument(
            help="Register: CSV with a header, JSON lines or a JSON list, also .gz; `-` reads standard input."
        ),
    ],
    state: Annotated[str, typer.Option("--state", help="State of the register, two letters.")],
    out: Output,
    partial: Annotated[
        bool, typer.Option("--partial", help="The file lists only some licences: mark none as gone.")
    ] = False,
) -> None:
    """Import the licence register of a state, and link stores to its licences. Columns: number, holder, trade_name, kind, status,
    operating, address, city, zipcode, latitude, longitude, phone, issued_on, expires_on, or as New York, Maryland, Massachusetts and
    Colorado name them. Importing again updates: licences that the file no longer has are marked as gone. Invalid lines are reported
    with their number, and the others are imported. Exit code 1 if a line was invalid."""
    content = _content(file)
    code = parse_state(state)

    async def act(system: System) -> tuple[LicenceImport, MatchRun]:
        async with system.pool.connection() as conn, conn.transaction():
            result = await service.import_register(conn, content, code, partial=partial)
        return result, await match_locations(system.pool)

    result, run = with_system(act)
    notice(*(f"line {line.line}: {line.reason}" for line in result.rejected[:_SHOWN]))
    if len(result.rejected) > _SHOWN:
        notice(f"… and {len(result.rejected) - _SHOWN:,} more invalid lines")
    if out.is_table:
        repeated = f", {pluralize(len(result.repeated), 'line')} repeated" if result.repeated else ""
        echo(
            f"{code}: {result.added:,} added, {result.updated:,} updated, {result.unchanged:,} unchanged, {result.gone:,} gone, "
            f"{len(result.rejected):,} rejected{repeated}",
            f"{run.linked_licences:,} of {pluralize(run.licences, 'licence')} of shops are linked to a location.",
        )
    else:
        print_json(result) if out.json else print_list([result], (Column("State", "state"),), out.format)
    if result.rejected:
        raise typer.Exit(1)


@app.command("list")
def list_(
    out: LimitedOutput,
    state: StatesOption = None,
    linked: Annotated[
        bool | None, typer.Option("--linked/--unlinked", help="Only licences with or without a location.")
    ] = None,
    ended: Annotated[
        bool | None,
        typer.Option("--ended/--valid", help="Only licences that are gone, expired or inactive, or only valid ones."),
    ] = None,
    q: Annotated[
        str | None, typer.Option("--search", help="Only licences with this text in number, holder, trade name or city.")
    ] = None,
) -> None:
    """List licences with their locations."""
    where = LicenceFilter(states=state, linked=linked, ended=ended, q=q)
    rows = read(lambda _, conn: service.list_licences(conn, where, limit=1_000_000))
    empty = "No matching licences."
    if where == LicenceFilter():
        empty = "No licences yet. Import a register with `menuwatch licences import FILE --state NY`."
    out.show(rows, COLUMNS, "licence", empty=empty)


def _content(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise Refused(f"{file} cannot be read: {error.strerror}") from None
