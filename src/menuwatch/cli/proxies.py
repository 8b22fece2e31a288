"""`menuwatch proxies`: the proxies that every request goes through."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from menuwatch import bootstrap
from menuwatch.cli import proxy_sheet
from menuwatch.cli.output import Format, chosen_format, console, errors, plain, plural, print_json, print_rows
from menuwatch.cli.process import settings
from menuwatch.core.errors import Refused
from menuwatch.operations import alert_secrets, proxy_passwords
from menuwatch.operations import proxies as operations
from menuwatch.operations.proxies import ProxyView
from menuwatch.operations.proxy_intake import Intake, bring_in
from menuwatch.operations.proxy_trial import Tested
from menuwatch.proxies import sheet
from menuwatch.proxies.parse import parse_line
from menuwatch.proxies.sheet import Given, Rejected
from menuwatch.proxies.vault import new_key

app = typer.Typer(help="The proxies that every request goes through.", no_args_is_help=True)

FormatOption = Annotated[Format | None, typer.Option("--format", help="How to print: table, json or csv.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
UrlOption = Annotated[
    str | None, typer.Option(help="What to test with; the platform's own address when none is given.")
]
Numbers = Annotated[list[int], typer.Argument(help="Numbers of the proxies.", metavar="NUMBER...")]

_LONG_SECONDS = 60.0
_EMPTY = "No proxies yet. Add one with `menuwatch proxies add http://USER:PASSWORD@HOST:PORT`."


@app.command("add")
def add(
    proxies: Annotated[
        list[str],
        typer.Argument(
            help="http://USER:PASSWORD@HOST:PORT, https://…, socks5://…, HOST:PORT or HOST:PORT:USER:PASSWORD.",
            metavar="PROXY...",
        ),
    ],
    state: Annotated[
        str | None, typer.Option(help="State it stands in, two letters; decides language and headers.")
    ] = None,
    city: Annotated[str | None, typer.Option(help="City it stands in.")] = None,
    country: Annotated[str | None, typer.Option(help="Country it stands in, two letters.")] = None,
    timezone: Annotated[str | None, typer.Option(help="Its time zone, as America/Phoenix.")] = None,
    url: UrlOption = None,
    force: Annotated[bool, typer.Option("--force", help="Put it to work without a test.")] = False,
    fmt: FormatOption = None,
    json: JsonOption = False,
) -> None:
    """Add proxies, each after a test. One that is known already gets its new password and place.

    One that fails its test is added inactive, with the reason, and tried again by itself. Exit code 1 then.
    """
    chosen = chosen_format(json, fmt)
    given = []
    for number, line in enumerate(proxies, 1):
        try:
            proxy = sheet.placed(parse_line(line), city=city, state=state, country=country, timezone=timezone)
        except Refused as error:
            which = f"proxy {number} of {len(proxies)}: " if len(proxies) > 1 else ""
            raise Refused(f"{which}{error}") from None
        given.append(Given(number=number, proxy=proxy))
    intake = asyncio.run(_bring_in(given, [], test=not force, url=url))
    if chosen is Format.TABLE:
        for one in intake.brought:
            done = "Added" if one.created else "Updated"
            console.print(f"{done} proxy {one.id}: {one.address}", markup=False, soft_wrap=True)
            if not one.active:
                errors.print(plain(f"  {proxy_sheet.out(one.disabled, one.reason)}"), markup=False, soft_wrap=True)
    else:
        proxy_sheet.brought(intake, chosen)
    if intake.failed:
        raise typer.Exit(1)


@app.command("import")
def import_(
    file: Annotated[
        str, typer.Argument(help="A list of proxies, or a table (CSV) with a header; `-` reads standard input.")
    ],
    no_test: Annotated[bool, typer.Option("--no-test", help="Put them to work without a test.")] = False,
    url: UrlOption = None,
    fmt: FormatOption = None,
    json: JsonOption = False,
) -> None:
    """Add all proxies of a list.

    One proxy a line, in any form that `add` takes, `#` before comments; or a table with columns host, port, username, password,
    protocol, city, state, country, timezone in any order. A line that is no proxy is named with its number, and the others are
    imported. Exit code 1 where a line was no proxy, or a proxy failed its test.
    """
    chosen = chosen_format(json, fmt)
    given, rejected = sheet.read(sheet.text_of(_content(file)))
    if not given and not rejected:
        raise Refused("the list is empty: write one proxy on each line, as http://USER:PASSWORD@HOST:PORT")
    intake = asyncio.run(_bring_in(given, rejected, test=not no_test, url=url))
    for line in intake.rejected:
        errors.print(plain(f"line {line.number}: {line.reason}"), markup=False, soft_wrap=True)
    if chosen is not Format.TABLE:
        proxy_sheet.brought(intake, chosen)
    else:
        proxy_sheet.intake(intake)
    if intake.rejected or intake.failed:
        raise typer.Exit(1)


@app.command("list")
def list_(
    active: Annotated[
        bool | None, typer.Option("--active/--inactive", help="Only those at work, or only those that are not.")
    ] = None,
    fmt: FormatOption = None,
    json: JsonOption = False,
) -> None:
    """List proxies with their health. Passwords are never shown."""
    found = asyncio.run(_list(active))
    if active is False:
        proxy_sheet.idle(found, chosen_format(json, fmt))
    else:
        empty = _EMPTY if active is None else "No proxy is active: `menuwatch proxies list --inactive` says why."
        proxy_sheet.proxies(found, chosen_format(json, fmt), empty=empty)


@app.command("test")
def try_out(
    numbers: Annotated[
        list[int] | None, typer.Argument(help="Numbers of the proxies; all of them when none is given.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="What to ask for; the platform's own address when none is given.")
    ] = None,
    fmt: FormatOption = None,
    json: JsonOption = False,
) -> None:
    """Make one request through each proxy and say what came back. Exit code 1 when one does not answer."""
    chosen = chosen_format(json, fmt)
    results = asyncio.run(_test(numbers or [], url))
    rows: list[dict[str, Any]] = [dataclasses.asdict(result) for result in results]
    if chosen is Format.TABLE:
        rows = [
            row | {"elapsed_ms": round(row["elapsed_ms"]), "ok": result.words}
            for row, result in zip(rows, results, strict=True)
        ]
    print_rows(
        rows,
        (
            ("id", "#"),
            ("address", "Proxy"),
            ("ok", "Result"),
            ("status", "Answer"),
            ("elapsed_ms", "ms"),
            ("reason", "What came of it"),
        ),
        chosen,
        empty="No proxies to test. Add one with `menuwatch proxies add http://USER:PASSWORD@HOST:PORT`.",
    )
    if not all(result.ok for result in results):
        raise typer.Exit(1)


@app.command("enable")
def enable(
    numbers: Numbers,
    url: UrlOption = None,
    force: Annotated[bool, typer.Option("--force", help="Put them to work without a test.")] = False,
    fmt: FormatOption = None,
    json: JsonOption = False,
) -> None:
    """Put proxies to work again, each after a test, with their counters cleared.

    One that fails its test stays inactive and is tried again by itself. Exit code 1 then.
    """
    found = asyncio.run(_enable(numbers, url, force=force))
    proxy_sheet.enabled(found, chosen_format(json, fmt))
    if any(proxy.status != "active" for proxy in found):
        raise typer.Exit(1)


@app.command("disable")
def disable(
    numbers: Numbers,
    reason: Annotated[str | None, typer.Option(help="Why; shown wherever the proxy is.")] = None,
    fmt: FormatOption = None,
    json: JsonOption = False,
) -> None:
    """Take proxies out until they are enabled again. What runs through them now comes to its end."""
    proxy_sheet.changed(asyncio.run(_disable(numbers, reason)), chosen_format(json, fmt), "Disabled")


@app.command("remove")
def remove(numbers: Numbers, fmt: FormatOption = None, json: JsonOption = False) -> None:
    """Delete proxies. What runs through them now comes to its end."""
    proxy_sheet.changed(asyncio.run(_remove(numbers)), chosen_format(json, fmt), "Removed")


@app.command("key")
def key() -> None:
    """Print a fresh key for SECRET_KEY. It is stored nowhere: keep it where you keep passwords."""
    sys.stdout.write(new_key() + "\n")


@app.command("seal")
def seal(json: JsonOption = False) -> None:
    """Seal the passwords of all proxies in the database under the first key of SECRET_KEY."""
    written, total, left = asyncio.run(_seal())
    if json:
        print_json({"sealed": written, "passwords": total})
    else:
        others = "; the others were under this key already" if written < total else ""
        console.print(f"Sealed {written:,} of {plural(total, 'password')}{others}.")
        if left:
            errors.print(f"Note: {plural(left, 'alert channel')} not under this key yet: `menuwatch alerts seal`.")


def _content(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise Refused(f"{file} cannot be read: {error.strerror}") from None


@contextlib.contextmanager
def _progress(total: int, what: str) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, where it is worth one."""
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=errors,
        transient=True,
        disable=not errors.is_terminal or total < 2,
    ) as progress:
        bar = progress.add_task(what, total=total)
        yield lambda done: progress.advance(bar, done)


async def _bring_in(given: Sequence[Given], rejected: Sequence[Rejected], *, test: bool, url: str | None) -> Intake:
    found = settings()
    if test and len(given) / found.host_rate > _LONG_SECONDS:
        minutes = round(len(given) / found.host_rate / 60)
        errors.print(
            f"Testing {len(given):,} proxies at {found.host_rate:g} requests a second (HOST_RATE) takes about "
            f"{plural(minutes, 'minute')}; Ctrl-C keeps what is done, --no-test skips it.",
            soft_wrap=True,
        )
    async with bootstrap.open_system(found) as system:
        with _progress(len(given), "Testing" if test else "Adding") as on_done:
            return await bring_in(system.pool, found, given, rejected, test=test, url=url, on_done=on_done)


async def _list(active: bool | None) -> list[ProxyView]:
    async with bootstrap.open_system(settings()) as system:
        return await operations.listed(system.pool, active=active)


async def _test(numbers: list[int], url: str | None) -> list[Tested]:
    found = settings()
    async with bootstrap.open_system(found) as system:
        total = len(numbers) or len(await operations.listed(system.pool))
        with _progress(total, "Testing") as on_done:
            return await operations.test(system.pool, found, proxy_ids=numbers, url=url, on_tested=lambda: on_done(1))


async def _enable(numbers: list[int], url: str | None, *, force: bool) -> list[ProxyView]:
    found = settings()
    async with bootstrap.open_system(found) as system:
        return await operations.enable(system.pool, found, numbers, force=force, url=url)


async def _disable(numbers: list[int], reason: str | None) -> list[ProxyView]:
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn, conn.transaction():
        return await operations.disable(conn, numbers, reason)


async def _remove(numbers: list[int]) -> list[ProxyView]:
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn, conn.transaction():
        return await operations.remove(conn, numbers)


async def _seal() -> tuple[int, int, int]:
    found = settings()
    async with bootstrap.open_system(found) as system:
        written, total = await proxy_passwords.seal(system.pool, found)
        return written, total, await alert_secrets.not_sealed(system.pool, found)
