"""`menuwatch verify`: compare the archive with its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from menuwatch.accounts import audit
from menuwatch.archive import verify as archive_check
from menuwatch.archive.verify import Fault, VerifyResult
from menuwatch.cli.options import JsonOption
from menuwatch.cli.output import Column, Format, echo, print_json, print_list, progress_bar
from menuwatch.cli.startup import with_system
from menuwatch.core.format import pluralize
from menuwatch.system import System

COLUMNS = (
    Column("Fault", "kind"),
    Column("Payload", "payload_id"),
    Column("File", "path"),
    Column("Details", "detail"),
    Column("Repaired", "repaired"),
)


def verify(
    repair: Annotated[bool, typer.Option("--repair", help="Repair what can be repaired without guessing.")] = False,
    json: JsonOption = False,
) -> None:
    """Verify the archive: compare every file with its row and find orphaned files. Exit code 1 if faults remain."""

    async def act(system: System) -> VerifyResult:
        if repair:
            async with system.pool.connection() as conn:
                await audit.record(conn, "archive_repair_begun")
        with progress_bar("Reading payloads") as update:
            return await archive_check.verify(
                system.pool, system.archive, system.platforms, repair=repair, progress=update
            )

    result = with_system(act, read_only=not repair)
    remaining = [fault for fault in result.faults if fault.repaired is None]
    if json:
        print_json({"payloads": result.payloads, "bytes": result.bytes, "faults": result.faults})
    else:
        faults = f"{pluralize(len(result.faults), 'fault')}, {len(remaining)} of them not repaired."
        echo(
            f"{pluralize(result.payloads, 'payload')}, {result.bytes:,} bytes: {faults if result.faults else 'no faults.'}"
        )
        print_list(result.faults, COLUMNS, Format.TABLE)
        if remaining:
            echo(*_advice(remaining, repair=repair))
    if remaining:
        raise typer.Exit(1)


def _advice(faults: Sequence[Fault], *, repair: bool) -> list[str]:
    """Advice on the remaining problems."""
    if not repair:
        return ["Run `menuwatch verify --repair` to repair what can be repaired without guessing."]
    lost = [fault for fault in faults if fault.kind in ("missing", "damaged")]
    if not lost:
        return []
    advice = (
        f"{pluralize(len(lost), 'file')} cannot be recovered: nothing in the archive has that content. Restore from a "
        "backup of the storage directory and run `menuwatch verify` again; `menuwatch payloads show "
        f"{lost[0].payload_id}` shows the metadata."
    )
    return [advice]
