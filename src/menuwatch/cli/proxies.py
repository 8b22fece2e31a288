"""`menuwatch proxies`: manage the proxies used for all requests."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from msgspec import structs

from menuwatch.alerts import secret_keys as alert_secrets
from menuwatch.cli.options import Commands, JsonOption, LimitedOutput, Output
from menuwatch.cli.output import Column, Format, echo, notice, print_json, print_list, progress_bar
from menuwatch.cli.proxy_selection import (
    ProxySelection,
    SearchOption,
    StatusOption,
    TagOption,
    change_tag,
    select_proxies,
)
from menuwatch.cli.proxy_sheet import COLUMNS, INACTIVE_COLUMNS, TEST_COLUMNS, print_sheet
from menuwatch.cli.startup import in_transaction, load_settings, read, with_system
from menuwatch.core.encryption import new_key
from menuwatch.core.errors import Refused
from menuwatch.core.format import pluralize
from menuwatch.db.pool import Connection
from menuwatch.proxies import import_file, passwords, service
from menuwatch.proxies.bulk import ProxyAction
from menuwatch.proxies.import_file import ParsedProxy, Rejected
from menuwatch.proxies.importer import ImportResult, import_proxies
from menuwatch.proxies.location import Location
from menuwatch.proxies.parse import parse_line
from menuwatch.proxies.service import Proxy, ProxyFilter
from menuwatch.proxies.statistics import ProxyStatistics, get_statistics
from menuwatch.proxies.tags import split_tags
from menuwatch.proxies.testing import ProxyTest
from menuwatch.system import System

app = Commands("Manage the proxies that all requests go through.")

UrlOption = Annotated[str | None, typer.Option(help="Test URL; default: the platform's URL.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Activate without a test.")]
Number = Annotated[int, typer.Argument(help="Id of the proxy.", metavar="NUMBER")]
SomeNumbers = Annotated[
    list[int] | None, typer.Argument(help="Ids of the proxies; or give a filter or --all.", metavar="NUMBER")
]
TagArgument = Annotated[str, typer.Argument(help="The tag.", metavar="TAG")]


@dataclasses.dataclass(frozen=True, slots=True)
class LocationOptions:
    """Where the exit IP of a proxy is."""

    state: Annotated[
        str | None, typer.Option(help="State or province of the exit IP (two letters); sets the locale.")
    ] = None
    city: Annotated[str | None, typer.Option(help="City of the exit IP.")] = None
    country: Annotated[str | None, typer.Option(help="Country of the exit IP (two letters).")] = None
    timezone: Annotated[str | None, typer.Option(help="Time zone of the exit IP, for example America/Phoenix.")] = None


_SHOWN = 10
"""Proxies that failed their test and are named one by one."""
_LONG_SECONDS = 60.0
_ADD = "Add one with `menuwatch proxies add http://USER:PASSWORD@HOST:PORT`."


@app.command("add")
def add(
    proxies: Annotated[
        list[str],
        typer.Argument(
            help="http://USER:PASSWORD@HOST:PORT, https://…, socks5://…, HOST:PORT or HOST:PORT:USER:PASSWORD. `-` "
            "reads them from standard input, one per line: other users of this machine can see arguments, and "
            "shells record them.",
            metavar="PROXY...",
        ),
    ],
    options: LocationOptions,
    out: Output,
    url: UrlOption = None,
    force: ForceOption = False,
) -> None:
    """Add proxies after testing each one. A known proxy gets its new password and location. A proxy that fails its test is added
    as inactive and probed again automatically; exit code 1 then."""
    location = Location.parse(
        city=options.city, state=options.state, country=options.country, timezone=options.timezone
    )
    if proxies == ["-"]:
        proxies = [line for line in import_file.text_of(_content("-")).splitlines() if line.strip()]
        if not proxies:
            raise Refused("standard input is empty: write one proxy per line, as http://USER:PASSWORD@HOST:PORT")
    parsed = []
    for number, line in enumerate(proxies, 1):
        try:
            parsed.append(ParsedProxy(number=number, proxy=location.of(parse_line(line))))
        except Refused as error:
            which = f"proxy {number} of {len(proxies)}: " if len(proxies) > 1 else ""
            raise Refused(f"{which}{error}") from None
    result = _import(parsed, [], test=not force, url=url)
    if not out.is_table:
        _print_import(result, out.format)
    for proxy in result.proxies if out.is_table else ():
        echo(f"{'Added' if proxy.created else 'Updated'} proxy {proxy.id}: {proxy.address}")
        if not proxy.active:
            status = "It stays disabled (by an operator)" if proxy.disabled else "Inactive, probed again automatically"
            notice(f"  {status}: {proxy.reason}")
    if result.failed:
        raise typer.Exit(1)


@app.command("import")
def import_(
    file: Annotated[
        str, typer.Argument(help="List of proxies, or a table (CSV) with a header; `-` reads standard input.")
    ],
    out: Output,
    no_test: Annotated[bool, typer.Option("--no-test", help="Activate without a test.")] = False,
    url: UrlOption = None,
) -> None:
    """Import a list of proxies. One proxy per line, in any form that `add` accepts, `#` before comments; or a table with columns
    host, port, username, password, protocol, city, state, country, timezone in any order. Invalid lines are reported with
    their number, and the others are imported. Exit code 1 if a line was invalid or a proxy failed its test."""
    parsed, rejected = import_file.read(import_file.text_of(_content(file)))
    if not parsed and not rejected:
        raise Refused("the list is empty: write one proxy per line, as http://USER:PASSWORD@HOST:PORT")
    result = _import(parsed, rejected, test=not no_test, url=url)
    notice(*(f"line {line.number}: {line.reason}" for line in result.rejected))
    if out.is_table:
        _print_import_summary(result)
    else:
        _print_import(result, out.format)
    if result.rejected or result.failed:
        raise typer.Exit(1)


@app.command("list")
def list_(
    out: LimitedOutput,
    active: Annotated[
        bool | None, typer.Option("--active/--inactive", help="Only active proxies, or only inactive ones.")
    ] = None,
    status: StatusOption = None,
    tag: TagOption = None,
    search: SearchOption = None,
) -> None:
    """List proxies with their health. Passwords are never shown."""
    where = ProxyFilter(active=active, status=status, tag=None if tag is None else tag.strip().lower(), q=search)
    rows = read(lambda _, conn: service.list_proxies(conn, where))
    inactive = active is False or status in ("untested", "inactive", "disabled")
    if search or status or tag:
        empty = "No matching proxies."
    elif active is None:
        empty = f"No proxies yet. {_ADD}"
    else:
        empty = (
            "No active proxies: `menuwatch proxies list --inactive` shows why." if active else "All proxies are active."
        )
    out.show(rows, INACTIVE_COLUMNS if inactive else COLUMNS, "proxy", "proxies", empty=empty)


@app.command("show")
def show(number: Number, json: JsonOption = False) -> None:
    """Show one proxy: its health, and its requests of the last 24 hours by hour and by host."""

    async def act(_: System, conn: Connection) -> tuple[Proxy, ProxyStatistics]:
        return await service.get_proxy(conn, number), await get_statistics(conn, number)

    proxy, statistics = read(act)
    if json:
        print_json({**structs.asdict(proxy), "last_24_hours": statistics})
        return
    print_sheet(proxy, statistics)


@app.command("set")
def set_(
    number: Number,
    options: LocationOptions,
    out: Output,
    tags: Annotated[
        str | None, typer.Option(help="Tags that replace its current ones, separated by commas.", metavar="TAG,...")
    ] = None,
) -> None:
    """Set the location and tags of a proxy. An empty value (`--city ""`) clears it."""
    changes = {name: text.strip() or None for name, text in dataclasses.asdict(options).items() if text is not None}
    if not changes and tags is None:
        raise Refused("nothing to set: give --city, --state, --country, --timezone or --tags")
    new_tags = None if tags is None else split_tags(tags)
    proxy = in_transaction(lambda _, conn: service.set_details(conn, number, changes, tags=new_tags))
    _print_changed([proxy], out, "Changed")


@app.command("tag")
def tag_(label: TagArgument, selection: ProxySelection, out: Output, numbers: SomeNumbers = None) -> None:
    """Add a tag to proxies, given by id or by a filter."""
    change_tag(ProxyAction.TAG, label, numbers, selection, out)


@app.command("untag")
def untag(label: TagArgument, selection: ProxySelection, out: Output, numbers: SomeNumbers = None) -> None:
    """Remove a tag from proxies, given by id or by a filter."""
    change_tag(ProxyAction.UNTAG, label, numbers, selection, out)


@app.command("test")
def run_test(
    selection: ProxySelection,
    out: Output,
    numbers: Annotated[list[int] | None, typer.Argument(help="Ids of the proxies; default: all.")] = None,
    url: UrlOption = None,
) -> None:
    """Send one request through each proxy and show the result. Exit code 1 if one does not respond. A filter leaves out disabled
    proxies."""
    if selection.is_filter or selection.dry_run:
        every = not numbers and not selection.is_filter
        numbers = select_proxies(ProxyAction.TEST, numbers, dataclasses.replace(selection, everything=every), out)

    async def act(system: System) -> list[ProxyTest]:
        async with system.pool.connection() as conn:
            total = len(numbers or await service.list_proxies(conn))
        with progress_bar("Testing", total=total) as update:
            return await service.run_tests(
                system.pool, system.settings, proxy_ids=numbers or [], url=url, on_tested=update.advance
            )

    results = with_system(act)
    print_list(results, TEST_COLUMNS, out.format, empty=f"No proxies to test. {_ADD}")
    if not all(result.ok for result in results):
        raise typer.Exit(1)


@app.command("enable")
def enable(
    selection: ProxySelection,
    out: Output,
    numbers: SomeNumbers = None,
    url: UrlOption = None,
    force: ForceOption = False,
) -> None:
    """Enable proxies after testing each one, and reset their counters. A proxy that fails its test is inactive and probed again
    automatically; exit code 1 then."""
    # Here tests are made at once: untested proxies are among those that would be enabled.
    ids = select_proxies(ProxyAction.ENABLE, numbers, selection, out, force=True)
    proxies = with_system(lambda system: service.enable(system.pool, system.settings, ids, force=force, url=url))
    failed = [proxy for proxy in proxies if proxy.status != "active"]
    _print_changed([proxy for proxy in proxies if not out.is_table or proxy not in failed], out, "Enabled")
    for proxy in failed if out.is_table else ():
        notice(f"Proxy {proxy.id} stays inactive and is probed again automatically: {proxy.address}: {proxy.reason}")
    if failed:
        raise typer.Exit(1)


@app.command("disable")
def disable(
    selection: ProxySelection,
    out: Output,
    numbers: SomeNumbers = None,
    reason: Annotated[str | None, typer.Option(help="Reason, shown with the proxy.")] = None,
) -> None:
    """Disable proxies until they are enabled again. Running requests finish."""
    ids = select_proxies(ProxyAction.DISABLE, numbers, selection, out)
    _print_changed(in_transaction(lambda _, conn: service.disable(conn, ids, reason)), out, "Disabled")


@app.command("remove")
def remove(selection: ProxySelection, out: Output, numbers: SomeNumbers = None) -> None:
    """Delete proxies. Running requests finish."""
    ids = select_proxies(ProxyAction.REMOVE, numbers, selection, out)
    _print_changed(in_transaction(lambda _, conn: service.remove(conn, ids)), out, "Removed")


@app.command("key")
def key() -> None:
    """Generate a key for SECRET_KEY. It is not stored: keep it with your passwords."""
    echo(new_key())


@app.command("seal")
def seal(json: JsonOption = False) -> None:
    """Encrypt the passwords of all proxies in the database with the first key of SECRET_KEY."""

    async def act(system: System) -> tuple[int, int, int]:
        written, total = await passwords.encrypt_all(system.pool, system.settings)
        return written, total, await alert_secrets.count_outdated(system.pool, system.settings)

    written, total, left = with_system(act)
    if json:
        print_json({"sealed": written, "passwords": total})
        return
    others = "; the others already used this key" if written < total else ""
    echo(f"Encrypted {written:,} of {pluralize(total, 'password')}{others}.")
    if left:
        notice(f"Note: {pluralize(left, 'alert channel')} not yet encrypted with this key: `menuwatch alerts seal`.")


def _content(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise Refused(f"{file} cannot be read: {error.strerror}") from None


def _import(
    parsed: Sequence[ParsedProxy], rejected: Sequence[Rejected], *, test: bool, url: str | None
) -> ImportResult:
    rate = load_settings().host_rate
    if test and len(parsed) / rate > _LONG_SECONDS:
        notice(
            f"Testing {len(parsed):,} proxies at {rate:g} requests per second (HOST_RATE) takes about "
            f"{pluralize(round(len(parsed) / rate / 60), 'minute')}; Ctrl-C keeps finished ones, --no-test skips the test."
        )

    async def act(system: System) -> ImportResult:
        with progress_bar("Testing" if test else "Adding", total=len(parsed)) as update:
            return await import_proxies(
                system.pool, system.settings, parsed, rejected, test=test, url=url, on_done=update.advance
            )

    return with_system(act)


def _print_import(result: ImportResult, fmt: Format) -> None:
    """Prints the result of an import for programs."""
    proxies = []
    for proxy in result.proxies:
        row = dataclasses.asdict(proxy)
        proxies.append({"line": row.pop("number"), **row})
    if fmt is not Format.JSON:
        print_list(proxies, (Column("Line", "line"), Column("#", "id")), fmt)
        return
    print_json(
        {
            "added": result.added,
            "updated": result.updated,
            "inactive": result.failed,
            "disabled": result.disabled,
            "repeated": result.repeated,
            "rejected": [{"line": line.number, "reason": line.reason} for line in result.rejected],
            "proxies": proxies,
        }
    )


def _print_import_summary(result: ImportResult) -> None:
    failed = [proxy for proxy in result.proxies if not proxy.active and not proxy.disabled]
    notice(*(f"proxy {proxy.id} ({proxy.address}): {proxy.reason}" for proxy in failed[:_SHOWN]))
    if len(failed) > _SHOWN:
        notice(f"… and {len(failed) - _SHOWN:,} more: `menuwatch proxies list --inactive`")
    parts = [f"{result.added:,} added", f"{result.updated:,} updated", f"{len(result.rejected):,} rejected"]
    parts.append(f"{result.failed:,} inactive" + (" (failed their test)" if result.failed else ""))
    if result.disabled:
        parts.append(f"{result.disabled:,} stay disabled")
    if result.repeated:
        parts.append(f"{pluralize(len(result.repeated), 'line')} repeated")
    echo(", ".join(parts))


def _print_changed(proxies: Sequence[Proxy], out: Output, done: str) -> None:
    """Prints proxies that an action changed."""
    if out.is_table:
        echo(*(f"{done} proxy {proxy.id}: {proxy.address}" for proxy in proxies))
    else:
        print_list(proxies, COLUMNS, out.format)
