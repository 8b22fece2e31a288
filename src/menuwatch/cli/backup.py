"""`menuwatch backup` and `menuwatch restore`: an installation as a folder, and back."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from menuwatch.backup import check as checks
from menuwatch.backup import restore as restores
from menuwatch.backup.folder import Folder
from menuwatch.backup.make import Made, make
from menuwatch.backup.manifest import readable
from menuwatch.backup.progress import Step, Told
from menuwatch.cli.output import console, errors, plain, plural, print_json
from menuwatch.cli.process import settings
from menuwatch.core.errors import Refused
from menuwatch.core.settings import variables
from menuwatch.db import embedded
from menuwatch.db.pool import connect
from menuwatch.operations import backups

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
_FEW = 5


def backup(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder of the backup: empty, new, or that of an earlier one.")
    ],
    reread: Annotated[
        bool,
        typer.Option(
            "--reread", help="Read every file again, and the backup's own as well: what is damaged there is replaced."
        ),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Back up database, archive, pictures and packed history, beside whatever runs. What was cut off goes on; files that an earlier
    backup in DIR has are not copied again."""
    ours = settings()
    if not ours.database_url and not (ours.home / "postgres").is_dir():
        raise Refused(f"{ours.home} holds no installation: set MENUWATCH_HOME or DATABASE_URL to the one to back up")
    with _shown() as told, embedded.database_url(ours) as url:
        made = make(url, ours.storage, folder, settings=_set(), reread=reread, told=told)
        asyncio.run(_note(url, folder.resolve(), made))
    if json:
        print_json(msgspec.to_builtins(made) | {"folder": str(folder)})
    else:
        console.print(
            f"Backed up {plural(made.rows, 'row')} of {plural(made.tables, 'table')} and {plural(made.files, 'file')} in {folder}: "
            f"{made.bytes:,} bytes; {plural(made.copied, 'file')} copied ({made.copied_bytes:,} bytes), the others were there.",
            markup=False,
            soft_wrap=True,
        )
    _few(made.missing, "file that a row names was not there", "files that rows name were not there")
    _few(made.left_out, "table is not Menuwatch's and was left out", "tables are not Menuwatch's and were left out")


def restore(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the backup.")],
    check: Annotated[
        bool, typer.Option("--check", help="Read all of the backup and hold it against its hashes; restore nothing.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Bring a backup back into an empty installation. Everything is checked before and after; what was cut off goes on."""
    if check:
        _check(folder, json=json)
        return
    Folder(folder).finished()  # said before a database is made for it
    ours = settings()
    with _shown() as told, embedded.database_url(ours) as url:
        done = restores.restore(url, ours.storage, folder, settings=_set(), told=told)
    if json:
        print_json(msgspec.to_builtins(done) | {"folder": str(folder)})
    else:
        migrated = f", and migrated from {done.before} to {done.revision}" if done.before != done.revision else ""
        console.print(
            f"Restored {plural(done.rows, 'row')} of {plural(done.tables, 'table')} and {plural(done.files, 'file')}, as they were at "
            f"{done.made_at:%Y-%m-%d %H:%M:%S} UTC{migrated}.",
            markup=False,
            soft_wrap=True,
        )
    if done.unset:
        errors.print(
            f"Set where the backup was made, and not here: {', '.join(done.unset)}. Sealed passwords need the same SECRET_KEY."
            if "SECRET_KEY" in done.unset
            else f"Set where the backup was made, and not here: {', '.join(done.unset)}.",
            markup=False,
            soft_wrap=True,
        )


async def _note(url: str, folder: Path, made: Made) -> None:
    async with await connect(url) as conn, conn.transaction():
        await backups.note(
            conn,
            folder,
            backup=made.backup,
            made_at=made.made_at,
            count=made.rows,
            files=made.files,
            size=made.bytes,
            missing=len(made.missing),
        )


def _check(place: Path, *, json: bool) -> None:
    folder = Folder(place)
    with folder.reading(), _shown() as told:
        manifest = folder.finished()
        found = list(checks.faults(folder, manifest, told))
        extra = list(checks.extras(folder, manifest))
    objects = manifest.objects()
    if json:
        print_json(
            {
                "ok": not found,
                "folder": str(place),
                "backup": manifest.sha256,
                "made_at": manifest.made_at,
                "menuwatch": manifest.menuwatch,
                "postgresql": manifest.postgresql,
                "revision": manifest.revision,
                "tables": len(manifest.tables),
                "rows": sum(table.rows for table in manifest.tables),
                "files": len(manifest.files),
                "bytes": sum(objects.values()),
                "missing": manifest.missing,
                "faults": [*found, *extra],
            }
        )
    else:
        console.print(
            f"Made {manifest.made_at:%Y-%m-%d %H:%M:%S} UTC by Menuwatch {manifest.menuwatch} (schema {manifest.revision}, PostgreSQL "
            f"{manifest.postgresql}): {plural(len(manifest.tables), 'table')}, {plural(len(manifest.files), 'file')}, "
            f"{sum(objects.values()):,} bytes.",
            markup=False,
            soft_wrap=True,
        )
        for fault in (*found, *extra):
            console.print(plain(f"{fault.kind}: {fault.path}: {fault.detail}"), markup=False, soft_wrap=True)
        console.print("Every hash is right." if not found else f"{plural(len(found), 'fault')}.")
    if found:
        raise typer.Exit(1)
    readable(manifest)


def _set() -> list[str]:
    """Names of the settings that are set."""
    return [name for name, _, _ in variables() if os.environ.get(name)]


def _few(names: list[str], one: str, many: str) -> None:
    if names:
        more = f" and {len(names) - _FEW:,} more" if len(names) > _FEW else ""
        said = f"{len(names):,} {one if len(names) == 1 else many}: {', '.join(names[:_FEW])}{more}"
        errors.print(plain(said), markup=False, soft_wrap=True)


@contextlib.contextmanager
def _shown() -> Iterator[Told]:
    """Progress on standard error, where somebody looks."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as progress:
        bar = progress.add_task("", total=None)

        def told(step: Step) -> None:
            progress.update(bar, description=step.what, completed=step.done, total=step.total or None)

        yield told
