"""`menuwatch quality`: findings of the data quality monitors, the quality of stores, rules."""

from __future__ import annotations

from typing import Annotated

import typer

from menuwatch.cli.options import (
    Commands,
    JsonOption,
    LimitedOutput,
    Output,
    StoresOption,
    check_platform,
    check_text,
    find_store_id,
    find_store_ids,
    parse_states,
)
from menuwatch.cli.output import Column, ago, echo, notice, print_json, print_list
from menuwatch.cli.startup import in_connection, in_transaction, read
from menuwatch.core.errors import Refused, unknown_value
from menuwatch.core.format import percent, pluralize
from menuwatch.db.pool import Connection
from menuwatch.quality import service as quality
from menuwatch.quality.audit import AuditedValue, audit_sample, list_audits
from menuwatch.quality.check import CheckResult, check
from menuwatch.quality.labels import band_text, cause_text, measure_label, value_text
from menuwatch.quality.service import (
    SCOPES,
    SEVERITIES,
    STATUSES,
    CategoryWord,
    Finding,
    FindingFilter,
    QualityRule,
    StoreQuality,
    StoreQualityDetail,
)
from menuwatch.stores import store as stores
from menuwatch.system import System

app = Commands("Show what is unusual in menus, and the data quality of stores.")
rules_app = Commands("Manage rules of data quality monitors.")
app.add_typer(rules_app, name="rules")

_FINDING_COLUMNS = (
    Column("#", "id"),
    Column("Severity", "severity", rank=3),
    Column("Store", "store", rank=1),
    Column("Measure", "measure", rank=0),
    Column("Value", lambda one: value_text(one.measure, one.value), rank=2, align="right"),
    Column("Usual", lambda one: band_text(one.measure, one.low, one.high) or f"rule {one.rule_id}"),
    Column("Cause", cause_text, rank=4),
    Column("Since (UTC)", "opened_at"),
    Column("Crawls", "crawls"),
    Column("Ended", "outcome"),
)
_STORE_COLUMNS = (
    Column("#", "dispensary_id"),
    Column("Store", "store", rank=1),
    Column("Platform", "platform"),
    Column("State", "state"),
    Column("Score", "score", rank=0),
    Column("Complete", "completeness", lambda value: None if value is None else percent(value), align="right"),
    Column("Critical", "critical"),
    Column("Warnings", "warning"),
    Column("Info", "info"),
    Column("Menu (UTC)", "crawled_at"),
    Column("No score", "reason"),
)
_BAND_COLUMNS = (
    Column("Measure", "measure", rank=0),
    Column("Value", lambda one: value_text(one.measure, one.value), align="right"),
    Column("Usual", lambda one: value_text(one.measure, one.expected), align="right"),
    Column("Band", lambda one: band_text(one.measure, one.low, one.high)),
    Column("Outside", "is_out"),
    Column("Crawls", "crawls"),
    Column("Weekday", "weekday"),
)
_WORD_COLUMNS = (
    Column("Platform", "platform"),
    Column("Word", "word", rank=0),
    Column("Category", "category"),
    Column("First store", "store"),
    Column("First menu (UTC)", "first_seen_at"),
)
_AUDIT_COLUMNS = (
    Column("#", "id"),
    Column("Result", "result", rank=0),
    Column("Store", "store"),
    Column("Product", "name"),
    Column("Field", "field", rank=1),
    Column("Catalog", "value", rank=2),
    Column("Payload says", "found", rank=3),
    Column("Payload", "payload_id"),
    Column("Page", "page"),
    Column("Offset", "offset"),
    Column("Bytes", "length"),
    Column("Audited (UTC)", "audited_at"),
    Column("Detail", "detail"),
)
_RULE_COLUMNS = (
    Column("#", "id"),
    Column("Measure", "measure", rank=0),
    Column("Condition", lambda one: one.condition if one.amount is None else f"{one.condition} {one.amount:g}"),
    Column("Severity", "severity"),
    Column("Platform", "platform"),
    Column("Store", "store"),
    Column("Findings", "open_findings"),
    Column("By", "created_by"),
    Column("Note", "note"),
)


@app.command("findings")
def list_findings(
    out: LimitedOutput,
    status: Annotated[str, typer.Option(help=f"One of: {', '.join(STATUSES)}.")] = "open",
    severity: Annotated[
        list[str] | None, typer.Option(help=f"Only this severity (repeatable): {', '.join(SEVERITIES)}.")
    ] = None,
    scope: Annotated[str | None, typer.Option(help=f"Only findings with this cause: {', '.join(SCOPES)}.")] = None,
    measure: Annotated[
        str | None, typer.Option(help="Only this measure, or a family of measures such as null.")
    ] = None,
    store: StoresOption = None,
    platform: Annotated[str | None, typer.Option("--platform", help="Only stores on this platform.")] = None,
    state: Annotated[str | None, typer.Option("--state", help="Only stores in this state (two letters).")] = None,
) -> None:
    """List findings: unusual measures of menus, newest first."""
    for name, value, known in (("status", status, STATUSES), ("scope", scope, SCOPES)):
        if value is not None and value not in known:
            raise Refused(f"--{name}: {unknown_value(name, value, known)}")
    for one in severity or ():
        if one not in SEVERITIES:
            raise Refused(f"--severity: {unknown_value('severity', one, SEVERITIES)}")
    states = parse_states([state] if state else None)

    async def act(system: System, conn: Connection) -> list[Finding]:
        check_platform(system.platforms, platform)
        where = FindingFilter(
            status=status,  # type: ignore[arg-type]
            severity=severity, scope=scope, measure=measure, platform=platform, state=states[0] if states else None,
            store=await find_store_ids(conn, store),
        )  # fmt: skip
        return await quality.list_findings(conn, where, limit=out.rows + 1)

    out.show(read(act), _FINDING_COLUMNS, "finding", empty="No matching findings.")


@app.command("stores")
def list_stores(
    out: LimitedOutput,
    platform: Annotated[str | None, typer.Option("--platform", help="Only stores on this platform.")] = None,
    state: Annotated[str | None, typer.Option("--state", help="Only stores in this state (two letters).")] = None,
) -> None:
    """List the data quality of stores, the worst first."""
    states = parse_states([state] if state else None)

    async def act(system: System, conn: Connection) -> list[StoreQuality]:
        check_platform(system.platforms, platform)
        where = states[0] if states else None
        return await quality.list_stores(conn, platform=platform, state=where, limit=out.rows + 1)

    out.show(read(act), _STORE_COLUMNS, "store", empty="No stores.")


@app.command("show")
def show_store(
    store: Annotated[str, typer.Argument(help="Store: name, slug or ID.", metavar="STORE")], json: JsonOption = False
) -> None:
    """Show the measures of a store's last menu with their bands, and its open findings."""

    async def act(_: System, conn: Connection) -> StoreQualityDetail:
        return await quality.get_store(conn, (await stores.resolve(conn, store)).id)

    found = read(act)
    if json:
        print_json(found)
        return
    score = f"score {found.score} of 100" if found.score is not None else f"no score: {found.reason}"
    echo(f"{found.store} (store {found.dispensary_id}): {score}.")
    if found.crawled_at is None:
        return
    complete = percent(found.completeness or 0.0)
    echo(
        f"Last menu {ago(found.crawled_at)}; {complete} complete; {pluralize(found.crawls, 'earlier menu')} measured.",
        "",
    )
    table = Output()
    print_list(found.bands, _BAND_COLUMNS, table.format, empty="No bands yet: too few menus are measured.")
    if found.findings:
        echo("", "Open findings:")
        for one in found.findings:
            usual = band_text(one.measure, one.low, one.high)
            band = f"usually {usual}" if usual else f"rule {one.rule_id}"
            echo(
                f"- {one.severity}: {measure_label(one.measure)} {value_text(one.measure, one.value)}, {band}; "
                f"since {one.opened_at:%Y-%m-%d %H:%M} UTC; {cause_text(one)}"
            )


@app.command("words")
def list_words(
    out: LimitedOutput,
    platform: Annotated[str | None, typer.Option("--platform", help="Only this platform.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Include the words of a platform's first day.")] = False,
    unknown: Annotated[bool, typer.Option("--unknown", help="Only words that the taxonomy does not know.")] = False,
) -> None:
    """List new category words of platforms, newest first."""

    async def act(system: System, conn: Connection) -> list[CategoryWord]:
        check_platform(system.platforms, platform)
        return await quality.list_words(conn, platform=platform, events=not all_, unknown=unknown, limit=out.rows + 1)

    out.show(read(act), _WORD_COLUMNS, "word", empty="No matching category words.")


@app.command("audit")
def audit(
    out: LimitedOutput,
    sample: Annotated[
        int | None,
        typer.Option(min=1, max=1000, help="Number of values to audit now. Without it, earlier results are listed."),
    ] = None,
) -> None:
    """List audited values, or audit a sample now: values traced back to the bytes of their payload."""

    async def act(system: System, conn: Connection) -> list[AuditedValue]:
        if sample is None:
            return await list_audits(conn, limit=out.rows + 1)
        return await audit_sample(conn, system.archive, system.platforms, count=sample)

    values = in_connection(act, read_only=sample is None)
    out.show(
        values, _AUDIT_COLUMNS, "value", empty="Nothing audited yet. Use --sample 20, or wait for the weekly sample."
    )
    if sample is not None and out.is_table and values:
        odd = sum(value.result != "equal" for value in values)
        notice(f"{len(values) - odd} of {pluralize(len(values), 'value')} equal to the value in the payload.")


@app.command("point-of-sale")
def set_point_of_sale(
    store: Annotated[str, typer.Argument(help="Store: name, slug or ID.", metavar="STORE")],
    name: Annotated[
        str | None, typer.Argument(help="Name of its software. Without it: unknown.", metavar="NAME")
    ] = None,
) -> None:
    """Set the point of sale of a store, so that faults that its stores share are recognized."""

    async def act(_: System, conn: Connection) -> StoreQuality:
        return await quality.set_point_of_sale(conn, (await stores.resolve(conn, store)).id, name)

    found = in_transaction(act)
    echo(f"{found.store}: point of sale {found.point_of_sale or 'not known'}.")


@app.command("check")
def check_now(json: JsonOption = False) -> None:
    """Check new menus now, instead of within five minutes."""

    async def act(system: System, conn: Connection) -> CheckResult | None:
        return await check(conn, {name: platform.normalizer_version for name, platform in system.platforms.items()})

    result = in_connection(act)
    if result is None:
        raise Refused("another check is running: try again in a minute")
    if json:
        print_json(result)
    else:
        echo(
            f"Checked {pluralize(result.menus, 'menu')}: {pluralize(result.opened, 'finding')} opened, {result.closed} closed."
        )


@rules_app.command("list")
def list_rules(out: Output) -> None:
    """List rules."""

    async def act(_: System, conn: Connection) -> list[QualityRule]:
        return await quality.list_rules(conn)

    print_list(read(act), _RULE_COLUMNS, out.format, empty="No rules. `menuwatch quality rules add` adds one.")


@rules_app.command("add")
def add_rule(
    measure: Annotated[
        str, typer.Argument(help="Measure, such as null.brand, or a family, such as null.*.", metavar="MEASURE")
    ],
    above: Annotated[
        float | None, typer.Option(help="Report a finding above this value; shares are from 0 to 1.")
    ] = None,
    below: Annotated[float | None, typer.Option(help="Report a finding below this value.")] = None,
    ignore: Annotated[bool, typer.Option("--ignore", help="Do not monitor the measure.")] = False,
    severity: Annotated[
        str | None, typer.Option(help=f"One of: {', '.join(SEVERITIES)}.", show_default="warning")
    ] = None,
    platform: Annotated[str | None, typer.Option("--platform", help="Only stores on this platform.")] = None,
    store: Annotated[str | None, typer.Option("--store", help="Only this store: name, slug or ID.")] = None,
    note: Annotated[str | None, typer.Option(help="Reason for the rule.")] = None,
    json: JsonOption = False,
) -> None:
    """Add a rule: a limit for a measure, or its exclusion from monitoring."""
    if (above is not None) + (below is not None) + ignore != 1:
        raise Refused("give one of --above, --below and --ignore")
    if note is not None:
        check_text("--note", note)
    condition = "ignore" if ignore else "below" if above is None else "above"

    async def act(system: System, conn: Connection) -> QualityRule:
        check_platform(system.platforms, platform)
        return await quality.add_rule(
            conn, measure=measure, condition=condition, amount=below if above is None else above, severity=severity,
            platform=platform, store=await find_store_id(conn, store), note=note,
        )  # fmt: skip

    rule = in_transaction(act)
    if json:
        print_json(rule)
    else:
        echo(f"Added rule {rule.id}. It applies to menus checked from now on.")


@rules_app.command("remove")
def remove_rule(number: Annotated[int, typer.Argument(min=1, help="Id of the rule.", metavar="NUMBER")]) -> None:
    """Remove a rule with its findings."""
    rule = in_transaction(lambda _, conn: quality.remove_rule(conn, number))
    echo(f"Removed rule {rule.id} for {rule.measure}.")
    if rule.open_findings:
        notice(
            f"{pluralize(rule.open_findings, 'open finding')} of it {'was' if rule.open_findings == 1 else 'were'} removed too."
        )
