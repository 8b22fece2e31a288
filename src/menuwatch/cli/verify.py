"""`menuwatch verify`: the archive held against its rows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from menuwatch import bootstrap
from menuwatch.cli.output import Format, console, errors, plural, print_json, print_rows
from menuwatch.cli.process import settings
from menuwatch.operations import audit
from menuwatch.operations import verify as operations
from menuwatch.operations.verify import Fault, Verified


def verify(
    repair: Annotated[bool, typer.Option("--repair", help="Put right what can be without guessing.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Read every file of the archive and hold it against its row; find files that no row has. Exit code 1 when faults remain."""
    found = asyncio.run(_verify(repair=repair))
    remain = sum(fault.repaired is None for fault in found.faults)
    rows: list[dict[str, Any]] = [msgspec.structs.asdict(fault) for fault in found.faults]
    if json:
        print_json({"payloads": found.payloads, "bytes": found.bytes, "faults": rows})
    else:
        said = f"{plural(found.payloads, 'payload')}, {found.bytes:,} bytes: "
        said += "all as it should be." if not rows else f"{plural(len(rows), 'fault')}, {remain} of them not repaired."
        console.print(said)
        if rows:
            columns = (
                ("kind", "Fault"),
                ("payload_id", "Payload"),
                ("path", "File"),
                ("detail", "What is wrong"),
                ("repaired", "Repaired"),
            )
            print_rows(rows, columns, Format.TABLE, empty="")
        for line in _advice(found.faults, repair=repair):
            console.print(line, markup=False, soft_wrap=True)
    if remain:
        raise typer.Exit(1)


def _advice(faults: Sequence[Fault], *, repair: bool) -> list[str]:
    """What to do about what is still wrong."""
    left = [fault for fault in faults if fault.repaired is None]
    if not left:
        return []
    if not repair:
        return ["`menuwatch verify --repair` puts right what can be without guessing."]
    lost = [fault for fault in left if fault.kind in ("missing", "damaged")]
    if not lost:
        return []
    said = (
        f"{plural(len(lost), 'file')} cannot be made again: nothing in the archive has that content. Put it back from a backup of the "
        f"storage folder and run `menuwatch verify` again; `menuwatch payloads show {lost[0].payload_id}` says what it was."
    )
    return [said]


async def _verify(*, repair: bool) -> Verified:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    async with bootstrap.open_system(settings()) as system:
        if repair:
            async with system.pool.connection() as conn:
                await audit.record(conn, "archive_repair_begun")
        with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as progress:
            bar = progress.add_task("Reading payloads", total=None)

            def told(done: int, of: int) -> None:
                progress.update(bar, completed=done, total=of)

            return await operations.verify(system.pool, system.archive, system.platforms, repair=repair, told=told)
