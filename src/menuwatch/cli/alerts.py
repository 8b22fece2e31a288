"""`menuwatch alerts`: rules, tests and deliveries."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from menuwatch.alerts import events as alert_events
from menuwatch.alerts import format as alert_format
from menuwatch.alerts import secret_keys as alert_secrets
from menuwatch.alerts import service
from menuwatch.alerts.delivery_worker import AlertDeliverer
from menuwatch.alerts.events import AlertDelivery, AlertEvent, DeliveryStatus
from menuwatch.alerts.model import Condition
from menuwatch.alerts.service import AlertRule, CreatedRule, RulePreview
from menuwatch.alerts.validate import AlertSettings
from menuwatch.cli.alert_options import RuleOptions, name_option
from menuwatch.cli.options import Commands, DryRunOption, JsonOption, LimitedOutput, Output, limit_option, parse_since
from menuwatch.cli.output import Column, echo, notice, print_detail, print_json, print_list
from menuwatch.cli.startup import in_transaction, read, with_system
from menuwatch.core.errors import Refused
from menuwatch.core.format import pluralize, timestamp
from menuwatch.db.pool import Connection
from menuwatch.ops import alert_readings
from menuwatch.proxies import passwords as proxy_passwords
from menuwatch.system import System

app = Commands("Manage alerts about prices, stock, new products and operations.")

RuleArgument = Annotated[str, typer.Argument(help="Name or id of the rule.", metavar="RULE")]


def _alert_settings(system: System) -> AlertSettings:
    return AlertSettings.of(system.settings, tuple(system.platforms))


def _print_rule(rule: CreatedRule, what: str, json: bool) -> None:
    if json:
        print_json(rule)
        return
    echo(f"Rule {rule.rule.id}, {rule.rule.name}, is {what}.")
    for one in rule.secrets:
        echo(f"Secret of {one.channel}, shown only once: {one.secret}")
    if rule.fired:
        echo(f"{pluralize(rule.fired, 'product')} already matched and triggered alerts.")
    notice(*(f"Note: {warning}{'' if warning.endswith('?') else '.'}" for warning in rule.warnings))


def _scope(rule: AlertRule) -> str | None:
    names = ("product_id", "canonical_product_id", "miles", "store", "brand", "category", "search", "state", "platform")
    values = {name.removesuffix("_id"): getattr(rule, name) for name in names}
    return ", ".join(f"{name} {value}" for name, value in values.items() if value is not None) or None


def _condition(rule: AlertRule) -> str:
    size = alert_format.size(rule)
    return f"{rule.condition} {size}" if size else rule.condition


def _event_delivery(event: AlertEvent) -> str:
    return "; ".join(f"{one.channel} {one.status}" for one in event.decode_deliveries()) or event.delivery.replace(
        "_", " "
    )


DETAILS = (
    Column("Id", "id"),
    Column("Name", "name"),
    Column("Rule", alert_format.sentence),
    Column("Enabled", "enabled"),
    Column("Firing", lambda rule: rule.firing or None),
    Column("Muted until", lambda rule: rule.muted_until and timestamp(rule.muted_until)),
    Column("Channels", lambda rule: ", ".join(one.shown for one in rule.decode_channels()) or "none (events only)"),
    Column("Existing matches", lambda rule: "reported" if rule.on_existing == "fire" else None),
    Column("In debounce", lambda rule: rule.pending or None),
    Column("Armed", "armed_at", timestamp),
    Column("Last fired", "last_fired_at", timestamp),
    Column("Created", "created_at", timestamp),
    Column("Changed", "updated_at", timestamp),
)
EVENT_COLUMNS = (
    Column("#", "id"),
    Column("Fired", "fired_at"),
    Column("Rule", "rule", rank=2),
    Column("Event", alert_format.event_line, rank=1),
    Column("Notification", _event_delivery, rank=3),
)
RULE_COLUMNS = (
    Column("#", "id"),
    Column("Name", "name", rank=1),
    Column("Enabled", "enabled"),
    Column("Condition", _condition, rank=2),
    Column("Scope", _scope),
    Column("Digest", "digest"),
    Column("Last fired", "last_fired_at"),
)
DELIVERY_COLUMNS = (
    Column("#", "id"),
    Column("Created", "created_at"),
    Column("Rule", "rule", rank=2),
    Column("Channel", "channel", rank=4),
    Column("Events", "events"),
    Column("Status", "status", rank=1),
    Column("Attempts", "attempts"),
    Column("Code", "response_code"),
    Column("Error", "error", rank=3),
    Column("Next", "next_attempt_at"),
)


@app.command("list")
def list_(out: LimitedOutput) -> None:
    """List alert rules."""
    rules = read(lambda _, conn: service.list_rules(conn, limit=100_000))
    out.show(rules, RULE_COLUMNS, "rule", empty="No alert rules. Create one with `menuwatch alerts add`.")


@app.command("show")
def show(rule: RuleArgument, json: JsonOption = False) -> None:
    """Show an alert rule."""

    async def act(_: System, conn: Connection) -> AlertRule:
        return await service.get_rule(conn, (await service.find_rule(conn, rule)).id)

    result = read(act)
    if json:
        print_json(result)
        return
    print_detail(result, DETAILS)


@app.command("add")
def add(
    name: Annotated[str, typer.Argument(help="Name of the rule.")],
    when: Annotated[Condition, typer.Option("--when", help="Condition that triggers the rule.")],
    options: RuleOptions,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> None:
    """Create an alert rule. Its scope is the combination of product, store, brand, category, search, state and platform."""
    values = {**options.values(), "name": name, "condition": when}
    if dry_run:
        _preview(values, json)
        return
    rule = in_transaction(
        lambda system, conn: name_option(
            values, service.add_rule(conn, values, settings=_alert_settings(system), now=system.clock.now())
        )
    )
    _print_rule(rule, "created", json)


def _preview(values: dict[str, Any], json: bool) -> None:
    async def act(system: System, conn: Connection) -> RulePreview:
        settings, read = _alert_settings(system), alert_readings.reader(system.settings)
        result = service.preview(conn, values, settings=settings, now=system.clock.now(), read=read)
        return await name_option(values, result)

    result = in_transaction(act)
    if json:
        print_json(result)
        return
    echo(result.detail)
    notice(*(f"Note: {warning}." for warning in result.warnings))


@app.command("edit")
def edit(
    rule: RuleArgument,
    name: Annotated[str | None, typer.Option("--name", help="New name of the rule.")] = None,
    when: Annotated[Condition | None, typer.Option("--when", help="Condition that triggers the rule.")] = None,
    *,
    options: RuleOptions,
    without: Annotated[
        list[str] | None,
        typer.Option("--without", help="Field to remove from the rule: `amount`, `brand`, `channels` …"),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Change an alert rule. Channels are replaced as a whole; a new scope or condition resets the rule."""
    values = options.values()
    values |= {field: value for field, value in (("name", name), ("condition", when)) if value is not None}
    for field in without or ():
        if field not in _REMOVABLE:
            raise Refused(f"--without {field!r} is not possible; use one of: {', '.join(_REMOVABLE)}")
        column = {"product": "product_id", "canonical-product": "canonical_product_id", "store": "dispensary_id"}.get(
            field, field
        )
        values |= (
            dict.fromkeys(("latitude", "longitude", "miles"))
            if field == "place"
            else {column: [] if field == "channels" else None}
        )
    if not values:
        raise Refused("nothing to change: give at least one option")
    _print_rule(_change(rule, values), "changed", json)


_REMOVABLE = (
    "amount", "percent", "product", "canonical-product", "place",
    "store", "brand", "category", "search", "state", "platform", "option", "channels",
)  # fmt: skip


def _change(rule: str, values: dict[str, Any]) -> CreatedRule:
    async def act(system: System, conn: Connection) -> CreatedRule:
        rule_id = (await service.find_rule(conn, rule)).id
        change = service.change_rule(conn, rule_id, values, settings=_alert_settings(system), now=system.clock.now())
        return await name_option(values, change)

    return in_transaction(act)


@app.command("enable")
def enable(rule: RuleArgument, json: JsonOption = False) -> None:
    """Enable an alert rule; its state is reset."""
    _print_rule(_change(rule, {"enabled": True}), "enabled", json)


@app.command("disable")
def disable(rule: RuleArgument, json: JsonOption = False) -> None:
    """Disable an alert rule."""
    _print_rule(_change(rule, {"enabled": False}), "disabled", json)


@app.command("mute")
def mute(
    rule: RuleArgument,
    until: Annotated[
        str,
        typer.Option("--until", help="Until when: a time (ISO 8601), or a duration such as 8h or 7d; at most 90 days."),
    ] = "1d",
    json: JsonOption = False,
) -> None:
    """Mute an alert rule: its events are recorded, and no notification is sent."""
    _mute(rule, until, json)


@app.command("unmute")
def unmute(rule: RuleArgument, json: JsonOption = False) -> None:
    """Unmute an alert rule."""
    _mute(rule, None, json)


def _mute(rule: str, until: str | None, json: bool) -> None:
    async def act(system: System, conn: Connection) -> AlertRule:
        now = system.clock.now()
        end = None if until is None else parse_since(until, now, "--until", sign=1)
        return await service.mute_rule(conn, (await service.find_rule(conn, rule)).id, end, now=now)

    result = in_transaction(act)
    if json:
        print_json(result)
        return
    state = f"muted until {timestamp(result.muted_until)}" if result.muted_until else "not muted"
    echo(f"Rule {result.id}, {result.name}, is {state}.")


@app.command("remove")
def remove(rule: RuleArgument) -> None:
    """Remove an alert rule with its events and deliveries."""

    async def act(_: System, conn: Connection) -> AlertRule:
        return await service.remove_rule(conn, (await service.find_rule(conn, rule)).id)

    echo(f"Rule {in_transaction(act).name} is removed.")


@app.command("test")
def send_test(rule: RuleArgument, json: JsonOption = False) -> None:
    """Send a test notification to each channel of a rule now. Exit code 1 if one is not delivered."""

    async def act(system: System) -> list[AlertDelivery]:
        async with system.pool.connection() as conn, conn.transaction():
            rule_id = (await service.find_rule(conn, rule)).id
            ids = await service.send_test(conn, rule_id, now=system.clock.now())
        await AlertDeliverer(system.pool, system.settings, clock=system.clock).send(ids)
        async with system.pool.connection() as conn:
            return await alert_events.list_deliveries(conn, ids=ids)

    deliveries = with_system(act)
    if json:
        print_json(deliveries)
    else:
        for delivery in deliveries:
            result = "delivered" if delivery.status == "delivered" else delivery.error or delivery.status
            echo(f"{delivery.channel}: {result}")
    if any(delivery.status != "delivered" for delivery in deliveries):
        raise typer.Exit(1)


@app.command("seal")
def seal(json: JsonOption = False) -> None:
    """Encrypt addresses and secrets of all channels in the database with the first key of SECRET_KEY."""

    async def act(system: System) -> tuple[int, int, int]:
        written, total = await alert_secrets.encrypt_all(system.pool, system.settings)
        return written, total, await proxy_passwords.count_outdated(system.pool, system.settings)

    written, total, left = with_system(act)
    if json:
        print_json({"sealed": written, "channels": total})
        return
    others = "; the others already used this key" if written < total else ""
    echo(f"Encrypted {written:,} of {pluralize(total, 'channel')}{others}.")
    if left:
        passwords = pluralize(left, "password")
        notice(f"Note: {passwords} of proxies not yet encrypted with this key: `menuwatch proxies seal`.")


@app.command("events")
def events(
    out: Output,
    rule: Annotated[str | None, typer.Option("--rule", help="Only this rule.")] = None,
    limit: Annotated[int, limit_option(100_000)] = 50,
) -> None:
    """List alert events with the result of their notifications, newest first."""

    async def act(_: System, conn: Connection) -> list[AlertEvent]:
        rule_id = None if rule is None else (await service.find_rule(conn, rule)).id
        return await alert_events.list_events(conn, rule_id=rule_id, limit=limit)

    print_list(read(act), EVENT_COLUMNS, out.format, empty="No events.")


@app.command("deliveries")
def deliveries(
    out: Output,
    rule: Annotated[str | None, typer.Option("--rule", help="Only this rule.")] = None,
    status: Annotated[DeliveryStatus | None, typer.Option("--status", help="Only this status.")] = None,
    limit: Annotated[int, limit_option(100_000)] = 50,
) -> None:
    """List alert deliveries, newest first."""

    async def act(_: System, conn: Connection) -> list[AlertDelivery]:
        rule_id = None if rule is None else (await service.find_rule(conn, rule)).id
        return await alert_events.list_deliveries(conn, rule_id=rule_id, status=status, limit=limit)

    print_list(read(act), DELIVERY_COLUMNS, out.format, empty="No messages.")


@app.command("replay")
def replay(
    delivery: Annotated[int, typer.Argument(help="Id of the delivery, as `deliveries` lists it.", min=1)],
) -> None:
    """Replay a delivery with the same key. A running server or worker sends it within seconds."""
    in_transaction(lambda system, conn: alert_events.replay(conn, delivery, now=system.clock.now()))
    echo(f"Delivery {delivery} will be sent again.")
