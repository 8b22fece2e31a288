"""`menuwatch doctor`: what is wrong with an installation, and how to mend it."""

from __future__ import annotations

import asyncio
import platform as machine
from collections.abc import Iterator
from typing import Annotated

import psycopg
import typer

import menuwatch
from menuwatch.backup.marker import refuse_unfinished
from menuwatch.cli.output import console, plural, print_json
from menuwatch.cli.process import settings as process_settings
from menuwatch.core import telemetry
from menuwatch.core.errors import Refused
from menuwatch.core.settings import Settings
from menuwatch.db import address, embedded, migrate
from menuwatch.db.pool import open_pool
from menuwatch.operations import doctor as operations
from menuwatch.operations.doctor import Finding


def doctor(json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> None:
    """Check this installation. Exit code 1 when something does not work."""
    findings = list(_examine())
    if json:
        print_json({"ok": all(f.level != "problem" for f in findings), "findings": findings})
    else:
        _print(findings)
    if any(f.level == "problem" for f in findings):
        raise typer.Exit(1)


def _print(findings: list[Finding]) -> None:
    marks = {"ok": "[green]ok[/]     ", "warning": "[yellow]warning[/]", "problem": "[red]problem[/]"}
    width = max(len(f.check) for f in findings)
    for finding in findings:
        console.print(f"{marks[finding.level]}  {finding.check:{width}}  ", end="")
        console.print(finding.detail, markup=False, soft_wrap=True)
        if finding.mend:
            console.print(f"         {'':{width}}  → {finding.mend}", markup=False, soft_wrap=True)
    bad = sum(f.level == "problem" for f in findings)
    odd = sum(f.level == "warning" for f in findings)
    if bad:
        console.print(f"{plural(bad, 'problem')} to mend.")
    else:
        console.print(f"It works; {plural(odd, 'warning')}." if odd else "Nothing is wrong.")


def _examine() -> Iterator[Finding]:
    yield Finding(
        check="version", level="ok", detail=f"Menuwatch {menuwatch.__version__}, Python {machine.python_version()}"
    )
    try:
        settings = process_settings()
    except Refused as error:
        telemetry.configure()
        yield Finding(check="settings", level="problem", detail=str(error), mend="correct or unset that variable")
        return
    yield Finding(check="settings", level="ok", detail=f"data folder {settings.home.resolve()}")
    try:
        refuse_unfinished(settings.storage)
    except Refused as error:
        yield Finding(check="restore", level="problem", detail=str(error), mend="end it before anything else is done")
    yield from operations.machine(settings)
    yield from _database(settings)


def _database(settings: Settings) -> Iterator[Finding]:
    where = "DATABASE_URL" if settings.database_url else "embedded"
    mend = (
        "check DATABASE_URL (host, port, user, password) and that the server runs"
        if settings.database_url
        else "read the log in the data folder's postgres/log; moving the folder postgres/ away starts with an empty database"
    )
    try:
        with embedded.database_url(settings) as url:
            with psycopg.connect(url, connect_timeout=10) as conn:
                row = conn.execute("SHOW server_version").fetchone()
            version = str(row[0]) if row else "unknown"
            about = operations.server(version, where=where)
            yield about
            if about.level == "problem":
                return
            at = migrate.current(url)
            yield operations.schema(at)
            if at == migrate.newest():
                yield from asyncio.run(_work(url, settings))
    except (Refused, psycopg.Error) as error:
        detail = address.safe_reason(error)
        yield Finding(check="database", level="problem", detail=f"{where}: {detail}", mend=mend)


async def _work(url: str, settings: Settings) -> list[Finding]:
    async with open_pool(url, max_size=2) as pool:
        return await operations.work(pool, settings)
