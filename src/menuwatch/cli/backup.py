"""`menuwatch backup` and `menuwatch restore`: an installation as a folder, and back."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from menuwatch.cli.options import JsonOption
from menuwatch.cli.output import ProgressBar, echo, notice, print_json, progress_bar
from menuwatch.cli.startup import load_settings
from menuwatch.config.settings import variables
from menuwatch.core.errors import Refused
from menuwatch.core.format import pluralize, timestamp
from menuwatch.db import embedded
from menuwatch.db.pool import connect
from menuwatch.ops.backup import folder as contents
from menuwatch.ops.backup import log as backups
from menuwatch.ops.backup import restore as restores
from menuwatch.ops.backup.folder import Folder, OnProgress
from menuwatch.ops.backup.make import BackupResult, make
from menuwatch.ops.backup.manifest import readable
from menuwatch.ops.backup.mark import read_mark
from menuwatch.storage.service import open_storage

_FEW = 5


def backup(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Directory of the backup: empty, new, or of an earlier backup.")
    ],
    reread: Annotated[
        bool,
        typer.Option(
            "--reread", help="Read all files again, including those of the backup; damaged ones are replaced."
        ),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Back up database, archive, images and packed history while the system runs. An interrupted backup is continued; files of an
    earlier backup in DIR are not copied again."""
    settings = load_settings()
    if not settings.database_url and not (settings.home / "postgres").is_dir():
        raise Refused(
            f"{settings.home} holds no installation: set MENUWATCH_HOME or DATABASE_URL to the one to back up"
        )
    with progress_bar("", remaining=False) as bar, embedded.database_url(settings) as url:
        result = make(
            url, open_storage(settings), folder, settings=_set_variables(), reread=reread, progress=_on_step(bar)
        )
        asyncio.run(_note(url, folder.resolve(), result))
    if json:
        print_json(msgspec.to_builtins(result) | {"folder": str(folder)})
    else:
        echo(
            f"Backed up {pluralize(result.rows, 'row')} of {pluralize(result.tables, 'table')} and {pluralize(result.files, 'file')} "
            f"in {folder}: {result.bytes:,} bytes; {pluralize(result.copied, 'file')} copied ({result.copied_bytes:,} bytes), "
            "the others already existed."
        )
    _print_some(result.missing, "file named by a row did not exist", "files named by rows did not exist")
    _print_some(
        result.left_out,
        "table does not belong to Menuwatch and was left out",
        "tables do not belong to Menuwatch and were left out",
    )


def restore(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Directory of the backup.")],
    check: Annotated[
        bool, typer.Option("--check", help="Verify the hashes of the whole backup without restoring it.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Restore a backup into an empty installation. Everything is verified before and after; an interrupted restore is continued."""
    if check:
        _check(folder, json=json)
        return
    Folder(folder).finished()  # raises before a database is created
    settings = load_settings()
    # A restore that was begun and lost its database continues with the files already copied.
    begun = read_mark(open_storage(settings)) is not None
    with progress_bar("", remaining=False) as bar, embedded.database_url(settings, empty=begun) as url:
        done = restores.restore(url, open_storage(settings), folder, settings=_set_variables(), progress=_on_step(bar))
    if json:
        print_json(msgspec.to_builtins(done) | {"folder": str(folder)})
    else:
        migrated = f", and migrated from {done.before} to {done.revision}" if done.before != done.revision else ""
        echo(
            f"Restored {pluralize(done.rows, 'row')} of {pluralize(done.tables, 'table')} and "
            f"{pluralize(done.files, 'file')}, as they were at {timestamp(done.made_at)}{migrated}."
        )
    if done.unset:
        key = " Encrypted passwords need the same SECRET_KEY." if "SECRET_KEY" in done.unset else ""
        notice(f"Settings of the backed-up installation that are not set here: {', '.join(done.unset)}.{key}")


async def _note(url: str, folder: Path, result: BackupResult) -> None:
    async with await connect(url) as conn, conn.transaction():
        await backups.note(
            conn,
            folder,
            backup=result.backup,
            made_at=result.made_at,
            count=result.rows,
            files=result.files,
            size=result.bytes,
            missing=len(result.missing),
        )


def _check(path: Path, *, json: bool) -> None:
    folder = Folder(path)
    with folder.reading(), progress_bar("", remaining=False) as bar:
        manifest = folder.finished()
        faults = list(contents.faults(folder, manifest, _on_step(bar)))
        extra = list(contents.extras(folder, manifest))
    size = sum(manifest.objects().values())
    if json:
        print_json(
            {
                "ok": not faults,
                "folder": str(path),
                "backup": manifest.sha256,
                "made_at": manifest.made_at,
                "menuwatch": manifest.menuwatch,
                "postgresql": manifest.postgresql,
                "revision": manifest.revision,
                "tables": len(manifest.tables),
                "rows": sum(table.rows for table in manifest.tables),
                "files": len(manifest.files),
                "bytes": size,
                "missing": manifest.missing,
                "faults": [*faults, *extra],
            }
        )
    else:
        echo(
            f"Made {timestamp(manifest.made_at)} by Menuwatch {manifest.menuwatch} (schema {manifest.revision}, PostgreSQL "
            f"{manifest.postgresql}): {pluralize(len(manifest.tables), 'table')}, {pluralize(len(manifest.files), 'file')}, "
            f"{size:,} bytes.",
            *(f"{fault.kind}: {fault.path}: {fault.detail}" for fault in (*faults, *extra)),
            "All hashes match." if not faults else f"{pluralize(len(faults), 'fault')}.",
        )
    if faults:
        raise typer.Exit(1)
    readable(manifest)


def _set_variables() -> list[str]:
    """Names of the settings that are set."""
    return [name for name, _, _ in variables() if os.environ.get(name)]


def _print_some(names: list[str], one: str, many: str) -> None:
    if names:
        more = f" and {len(names) - _FEW:,} more" if len(names) > _FEW else ""
        notice(f"{pluralize(len(names), one, many)}: {', '.join(names[:_FEW])}{more}")


def _on_step(bar: ProgressBar) -> OnProgress:
    """Shows the steps on the bar."""
    return lambda step: bar(step.done, step.total or None, description=step.what)
