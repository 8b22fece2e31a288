"""`menuwatch alerts`: what people want to be told of, and whether they were."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer

from menuwatch import bootstrap
from menuwatch.bootstrap import System
from menuwatch.cli.alert_wish import OPTIONS, Condition, Wish
from menuwatch.cli.inside import inside
from menuwatch.cli.option_set import spread
from menuwatch.cli.output import Format, chosen_format, console, errors, plain, plural, print_json, print_rows
from menuwatch.cli.process import settings
from menuwatch.core.errors import Refused
from menuwatch.db.pool import Connection
from menuwatch.engine.courier import Courier
from menuwatch.operations import alert_secrets, proxy_passwords
from menuwatch.operations import alerts as operations
from menuwatch.operations.alerts import Made, Means
from menuwatch.operations.refusals import Unusable

app = typer.Typer(help="Rules that tell people of prices, stock and new products.", no_args_is_help=True)


class Status(StrEnum):
    """States of a delivery."""

    WAITING = "waiting"
    SENDING = "sending"
    DELIVERED = "delivered"
    FAILED = "failed"


RuleArgument = Annotated[str, typer.Argument(help="Name or number of the rule.", metavar="RULE")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
FormatOption = Annotated[Format | None, typer.Option("--format", help="How to print.", show_default="table")]


async def _named(wish: Mapping[str, Any], act: Awaitable[Made]) -> Made:
    """Says which option it was, of those that were given, that cannot be used."""
    try:
        return await act
    except Unusable as error:
        if _WISHED.get(error.field, error.field) in wish and error.field in OPTIONS:
            raise Refused(f"{OPTIONS[error.field]}: {error}") from None
        raise


_WISHED = {"store_id": "store"}


def _means(system: System) -> Means:
    return Means.of(system.settings, tuple(system.platforms))


def _said(made: Made, what: str, json: bool) -> None:
    if json:
        print_json({"rule": made.rule, "warnings": made.warnings, "fired": made.fired})
        return
    console.print(f"Rule {made.rule['id']}, {plain(made.rule['name'])}, is {what}.", markup=False, soft_wrap=True)
    if made.fired:
        console.print(f"It holds already for {plural(made.fired, 'product')}, and told so.")
    for warning in made.warnings:
        errors.print(f"Note: {plain(warning)}{'' if warning.endswith('?') else '.'}", markup=False, soft_wrap=True)


@app.command("list")
def list_(json: JsonOption = False, fmt: FormatOption = None) -> None:
    """List rules."""
    fmt = chosen_format(json, fmt)
    found = inside(lambda _, conn: operations.page(conn, limit=100_000))
    rows = [row | ({"scope": _scope(row), "when": _when(row)} if fmt is Format.TABLE else {}) for row in found]
    columns = (
        ("id", "#"), ("name", "Name"), ("enabled", "Enabled"), ("when", "When"), ("scope", "Scope"), ("digest", "Told"),
        ("last_fired_at", "Last fired"),
    )  # fmt: skip
    print_rows(rows, columns, fmt, empty="No alert rules: `menuwatch alerts add` makes one.", keep=("name", "when"))


def _scope(row: dict[str, Any]) -> str:
    names = ("product_id", "store", "brand", "category", "search", "state", "platform")
    return ", ".join(f"{name.removesuffix('_id')} {row[name]}" for name in names if row[name] is not None) or "-"


def _when(row: dict[str, Any]) -> str:
    size = f" {row['amount']}" if row["amount"] is not None else ""
    return f"{row['condition']}{size}" + (f" {row['percent']} %" if row["percent"] is not None else "")


@app.command("show")
def show(rule: RuleArgument, json: JsonOption = False) -> None:
    """Show a rule."""

    async def act(_: System, conn: Connection) -> Any:
        return await operations.one(conn, (await operations.find(conn, rule)).id)

    found = inside(act)
    if json:
        print_json(found)
        return
    for name, value in found.items():
        text = ", ".join(one["shown"] for one in _decoded(value)) if name == "channels" else value
        if text not in (None, ""):
            console.print(f"{name.replace('_', ' '):20} {plain(str(text))}", markup=False, soft_wrap=True)


def _decoded(raw: Any) -> Any:
    import msgspec

    return msgspec.json.decode(raw)


@app.command("add")
@spread
def add(
    name: Annotated[str, typer.Argument(help="Name of the rule.")],
    when: Annotated[Condition, typer.Option("--when", help="What it waits for.")],
    options: Wish,
    json: JsonOption = False,
) -> None:
    """Make a rule. Its scope is all that is given of product, store, brand, category, search, state and platform."""
    wish = {**options.asked(), "name": name, "condition": str(when)}
    made = inside(
        lambda system, conn: _named(wish, operations.add(conn, wish, means=_means(system), now=system.clock.now()))
    )
    _said(made, "made", json)


@app.command("edit")
@spread
def edit(
    rule: RuleArgument,
    name: Annotated[str | None, typer.Option("--name", help="Another name.")] = None,
    when: Annotated[Condition | None, typer.Option("--when", help="What it waits for.")] = None,
    *,
    options: Wish,
    without: Annotated[
        list[str] | None, typer.Option("--without", help="Take this out of the rule: `amount`, `brand`, `channels` …")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Change a rule. Channels are replaced as a whole; with another scope or condition the rule begins anew."""
    wish = options.asked()
    wish |= {"name": name} if name is not None else {}
    wish |= {"condition": str(when)} if when is not None else {}
    for one in without or ():
        if one not in _REMOVABLE:
            raise Refused(f"--without {one!r} cannot be: it takes {', '.join(_REMOVABLE)}")
        wish[_REMOVABLE[one]] = [] if one == "channels" else None
    if not wish:
        raise Refused("nothing to change: name what is to be another")

    async def act(system: System, conn: Connection) -> Made:
        found = await operations.find(conn, rule)
        changing = operations.change(conn, found.id, wish, means=_means(system), now=system.clock.now())
        return await _named(wish, changing)

    _said(inside(act), "changed", json)


_REMOVABLE = {
    "amount": "amount", "percent": "percent", "product": "product_id", "store": "dispensary_id", "brand": "brand",
    "category": "category", "search": "search", "state": "state", "platform": "platform", "option": "option", "channels": "channels",
}  # fmt: skip


def _switch(rule: str, enabled: bool) -> Made:
    async def act(system: System, conn: Connection) -> Made:
        found = await operations.find(conn, rule)
        return await operations.change(
            conn, found.id, {"enabled": enabled}, means=_means(system), now=system.clock.now()
        )

    made: Made = inside(act)
    return made


@app.command("enable")
def enable(rule: RuleArgument, json: JsonOption = False) -> None:
    """Let a rule look again; it begins anew."""
    _said(_switch(rule, True), "enabled", json)


@app.command("disable")
def disable(rule: RuleArgument, json: JsonOption = False) -> None:
    """Keep a rule from looking."""
    _said(_switch(rule, False), "disabled", json)


@app.command("remove")
def remove(rule: RuleArgument) -> None:
    """Remove a rule with all that it found and sent."""

    async def act(_: System, conn: Connection) -> Any:
        return await operations.remove(conn, (await operations.find(conn, rule)).id)

    console.print(f"Rule {plain(inside(act)['name'])} is removed.", markup=False, soft_wrap=True)


@app.command("test")
def try_out(rule: RuleArgument, json: JsonOption = False) -> None:
    """Send a test message to each channel of a rule now. Exit code 1 when one does not arrive."""

    async def run() -> list[dict[str, Any]]:
        async with bootstrap.open_system(settings()) as system:
            async with system.pool.connection() as conn, conn.transaction():
                found = await operations.find(conn, rule)
                numbers = await operations.test(conn, found.id, now=system.clock.now())
            await Courier(system.pool, system.settings, clock=system.clock).send(numbers)
            async with system.pool.connection() as conn:
                return await operations.deliveries(conn, ids=numbers)

    found = asyncio.run(run())
    if json:
        print_json(found)
    else:
        for one in found:
            how = "delivered" if one["status"] == "delivered" else one["error"] or one["status"]
            console.print(f"{one['channel']}: {plain(how)}", markup=False, soft_wrap=True)
    if any(one["status"] != "delivered" for one in found):
        raise typer.Exit(1)


@app.command("seal")
def seal(json: JsonOption = False) -> None:
    """Seal addresses and secrets of all channels in the database under the first key of SECRET_KEY."""

    async def run() -> tuple[int, int, int]:
        found = settings()
        async with bootstrap.open_system(found) as system:
            written, total = await alert_secrets.seal(system.pool, found)
            return written, total, await proxy_passwords.not_sealed(system.pool, found)

    written, total, left = asyncio.run(run())
    if json:
        print_json({"sealed": written, "channels": total})
        return
    others = "; the others were under this key already" if written < total else ""
    console.print(f"Sealed {written:,} of {plural(total, 'channel')}{others}.")
    if left:
        errors.print(f"Note: {plural(left, 'password')} of proxies not under this key yet: `menuwatch proxies seal`.")


@app.command("deliveries")
def deliveries(
    rule: Annotated[str | None, typer.Option("--rule", help="Only of this rule.")] = None,
    status: Annotated[Status | None, typer.Option("--status", help="Only in this state.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="Most lines.")] = 50,
    json: JsonOption = False,
    fmt: FormatOption = None,
) -> None:
    """List messages, newest first, and how they fared."""

    async def act(_: System, conn: Connection) -> Any:
        number = None if rule is None else (await operations.find(conn, rule)).id
        return await operations.deliveries(
            conn, rule_id=number, status=None if status is None else str(status), limit=limit
        )

    columns = (
        ("id", "#"), ("created_at", "Made"), ("rule", "Rule"), ("channel", "Channel"), ("events", "Events"), ("status", "Status"),
        ("attempts", "Tries"), ("response_code", "Code"), ("error", "Error"), ("next_attempt_at", "Next"),
    )  # fmt: skip
    print_rows(
        inside(act),
        columns,
        chosen_format(json, fmt),
        empty="No messages.",
        keep=("status", "rule", "error", "channel"),
    )


@app.command("replay")
def replay(
    delivery: Annotated[int, typer.Argument(help="Number of the message, as `deliveries` lists it.", min=1)],
) -> None:
    """Send a message again, under the same key. A running server or worker does so within seconds."""
    inside(lambda system, conn: operations.replay(conn, delivery, now=system.clock.now()))
    console.print(f"Message {delivery} is sent again.")
