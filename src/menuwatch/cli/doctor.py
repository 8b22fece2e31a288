"""`menuwatch doctor`: diagnose an installation and suggest fixes."""

from __future__ import annotations

import asyncio
import platform as machine
from collections.abc import Iterator

import psycopg
import typer

import menuwatch
from menuwatch.cli.options import JsonOption
from menuwatch.cli.output import console, echo, print_json
from menuwatch.cli.startup import load_settings
from menuwatch.config.settings import Settings
from menuwatch.core import logging as telemetry
from menuwatch.core.errors import Refused
from menuwatch.core.format import pluralize
from menuwatch.db import address, embedded, migrate
from menuwatch.db.pool import open_pool
from menuwatch.ops import doctor as operations
from menuwatch.ops.assessment import Finding, Level
from menuwatch.ops.backup.mark import refuse_unfinished
from menuwatch.storage.service import open_storage


def doctor(json: JsonOption = False) -> None:
    """Check this installation and its work. Exit code 1 if a finding is a problem (the installation is broken) or critical (work has
    stopped), 0 otherwise."""
    findings = list(_examine())
    ok = not _count(findings, Level.PROBLEM) and not _count(findings, Level.CRITICAL)
    if json:
        print_json({"ok": ok, "findings": findings})
    else:
        _print(findings)
    if not ok:
        raise typer.Exit(1)


def _print(findings: list[Finding]) -> None:
    marks = {
        Level.OK: "[green]ok[/]      ",
        Level.WARNING: "[yellow]warning[/] ",
        Level.CRITICAL: "[red]critical[/]",
        Level.PROBLEM: "[red]problem[/] ",
    }
    width = max(len(finding.check) for finding in findings)
    for finding in findings:
        console.print(f"{marks[finding.level]}  {finding.check:{width}}  ", end="")
        echo(finding.detail)
        if finding.mend:
            echo(f"          {'':{width}}  → {finding.mend}")
    counts = [
        pluralize(n, noun)
        for n, noun in (
            (_count(findings, Level.PROBLEM), "problem"),
            (_count(findings, Level.CRITICAL), "critical finding"),
            (_count(findings, Level.WARNING), "warning"),
        )
        if n
    ]
    echo(f"{', '.join(counts)}." if counts else "No problems found.")


def _count(findings: list[Finding], level: Level) -> int:
    return sum(finding.level == level for finding in findings)


def _examine() -> Iterator[Finding]:
    yield Finding(
        check="version", level=Level.OK, detail=f"Menuwatch {menuwatch.__version__}, Python {machine.python_version()}"
    )
    try:
        settings = load_settings()
    except Refused as error:
        telemetry.configure()
        yield Finding(check="settings", level=Level.PROBLEM, detail=str(error), mend="correct or unset that variable")
        return
    yield Finding(check="settings", level=Level.OK, detail=f"data directory {settings.home.resolve()}")
    try:
        refuse_unfinished(open_storage(settings))
    except Refused as error:
        yield Finding(check="restore", level=Level.PROBLEM, detail=str(error), mend="stop it first")
    yield from operations.machine(settings)
    yield from _database(settings)


def _database(settings: Settings) -> Iterator[Finding]:
    where = "DATABASE_URL" if settings.database_url else "embedded"
    mend = (
        "check DATABASE_URL (host, port, user, password) and that the server is running"
        if settings.database_url
        else (
            "fix the named problem; see also postgres/log in the data directory. `menuwatch restore DIR` restores a "
            "backup"
        )
    )
    try:
        with embedded.database_url(settings) as url:
            with psycopg.connect(url, connect_timeout=10) as conn:
                row = conn.execute("SHOW server_version").fetchone()
            version = str(row[0]) if row else "unknown"
            about = operations.server(version, where=where)
            yield about
            if about.level == Level.PROBLEM:
                return
            at = migrate.current(url)
            yield operations.schema(at)
            if at == migrate.newest():
                yield from asyncio.run(_work(url, settings))
    except (Refused, psycopg.Error) as error:
        detail = address.safe_reason(error)
        yield Finding(check="database", level=Level.PROBLEM, detail=f"{where}: {detail}", mend=mend)


async def _work(url: str, settings: Settings) -> list[Finding]:
    async with open_pool(url, max_size=2) as pool:
        return await operations.work(pool, settings)
