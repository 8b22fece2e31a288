"""Reads findings, and the quality of stores; lists, adds and removes rules."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, get_args

from msgspec import Struct, convert

from menuwatch.accounts import audit
from menuwatch.core.errors import InvalidField, NotFound, unknown_value
from menuwatch.core.shapes import Instant, doc
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import Row, fetch_all, fetch_one, fetch_struct, fetch_structs
from menuwatch.quality.attribution import Scope
from menuwatch.quality.measures import FAMILIES, NAMES, Direction, Severity, measure_of

_q = sql.load(__package__, "service.sql")

FindingStatus = Literal["open", "closed", "all"]
STATUSES: tuple[FindingStatus, ...] = get_args(FindingStatus)
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
SCOPES: tuple[Scope, ...] = get_args(Scope)
Outcome = Literal["recovered", "accepted", "worsened", "unmeasured", "ignored"]
Condition = Literal["above", "below", "ignore"]
LONGEST_NAME = 60
CONDITIONS: tuple[Condition, ...] = get_args(Condition)


class Finding(Struct, kw_only=True, frozen=True):
    """A measure of a store outside its band, or one that meets a rule, from the first crawl that has it on."""

    id: int
    dispensary_id: Annotated[int, doc("Id of the store.")]
    store: Annotated[str, doc("Name of the store.")]
    platform: str
    state: Annotated[str | None, doc("State of the store; null if unknown.")]
    measure: Annotated[str, doc("What was measured, for example `null.brand` or `level.price`.")]
    direction: Annotated[Direction, doc("`up`: above the band or the limit; `down`: below.")]
    severity: Severity
    opened_at: Annotated[Instant, doc("First crawl with it.")]
    seen_at: Annotated[Instant, doc("Last crawl with it.")]
    crawls: Annotated[int, doc("Number of crawls with it.")]
    value: Annotated[float, doc("Value at the last of these crawls.")]
    expected: Annotated[float | None, doc("Usual value; null for a rule.")]
    low: Annotated[float | None, doc("Lower limit of the band at the first crawl; null for a rule.")]
    high: Annotated[float | None, doc("Upper limit of the band at the first crawl; null for a rule.")]
    scope: Annotated[
        Scope,
        doc(
            "Cause, inferred from the stores that show it: `normalizer` is a release of Menuwatch itself, `store` this one alone."
        ),
    ]
    scope_key: Annotated[str | None, doc("The chain, point of sale or platform; null for a single store.")]
    scope_affected: Annotated[int, doc("Stores of the scope that show it.")]
    scope_stores: Annotated[int, doc("Stores of the scope that were measured in that time.")]
    release_changed: Annotated[
        bool, doc("Whether Menuwatch was updated between the previous crawl and the first with it.")
    ]
    rule_id: Annotated[int | None, doc("Rule that it meets; null for a band.")]
    closed_at: Annotated[Instant | None, doc("Crawl that ended it; null while it is open.")]
    outcome: Annotated[
        Outcome | None,
        doc(
            "How it ended. `recovered`: inside the band again; `accepted`: it lasted a week and is the usual level now; `worsened`: "
            "a further finding follows; `unmeasured`: the menu has nothing left to measure; `ignored`: a rule excludes it."
        ),
    ]


class QualitySummary(Struct, kw_only=True, frozen=True):
    """Data quality of the installation."""

    checked_at: Annotated[Instant | None, doc("Time of the last check of a menu; null if none was checked.")]
    checked: Annotated[int, doc("Stores with a measured menu.")]
    scored: Annotated[int, doc("Of these, stores with a score.")]
    median_score: Annotated[int | None, doc("Median of the scores; null without any.")]
    critical: Annotated[int, doc("Open critical findings.")]
    warning: Annotated[int, doc("Open warnings.")]
    info: Annotated[int, doc("Other open findings: changes that are not faults.")]


class StoreQuality(Struct, kw_only=True, frozen=True):
    """The data quality of a store."""

    dispensary_id: Annotated[int, doc("Id of the store.")]
    store: Annotated[str, doc("Name of the store.")]
    platform: str
    state: Annotated[str | None, doc("State of the store; null if unknown.")]
    crawled_at: Annotated[Instant | None, doc("Last measured menu; null without one.")]
    score: Annotated[
        int | None, doc("From 0 to 100, as the guide to data quality monitors defines; null with a `reason`.")
    ]
    reason: Annotated[str | None, doc("Why there is no score.")]
    completeness: Annotated[
        float | None,
        doc("Mean share of products with price, stock, brand, category, weight and THC; null without a menu."),
    ]
    crawls: Annotated[int, doc("Earlier menus that the bands are learned from.")]
    critical: Annotated[int, doc("Open critical findings.")]
    warning: Annotated[int, doc("Open warnings.")]
    info: Annotated[int, doc("Other open findings.")]
    point_of_sale: Annotated[
        str | None, doc("The shop's point-of-sale software, as an operator entered it; null if unknown.")
    ]


class StoreBand(Struct, kw_only=True, frozen=True):
    """One measure of a store's last menu, with its band."""

    measure: str
    value: float
    expected: float
    low: float
    high: float
    is_out: Annotated[bool, doc("Whether the value is outside the band.")]
    crawls: Annotated[int, doc("Earlier menus that the band is learned from.")]
    weekday: Annotated[bool, doc("Whether the band is that of the day of the week.")]


class StoreQualityDetail(StoreQuality, kw_only=True, frozen=True):
    """The data quality of a store, with all its measures and open findings."""

    bands: Annotated[list[StoreBand], doc("Measures that have a band, by name.")]
    findings: Annotated[list[Finding], doc("Open findings, newest first.")]


class CategoryWord(Struct, kw_only=True, frozen=True):
    """A word that a platform uses for a category, from the first menu that has it."""

    platform: str
    word: Annotated[str, doc("In lower case.")]
    category: Annotated[
        str | None, doc("Canonical category, as of the first menu; null if the taxonomy does not know the word.")
    ]
    dispensary_id: Annotated[int | None, doc("Store of the first menu; null if it was removed.")]
    store: Annotated[str | None, doc("Name of that store.")]
    first_seen_at: Instant
    is_event: Annotated[
        bool, doc("Whether the platform was known for a day by then; false for the words that it began with.")
    ]


class QualityRule(Struct, kw_only=True, frozen=True):
    """A rule of an operator."""

    id: int
    measure: Annotated[str, doc("A measure, or a family such as `null.*`.")]
    condition: Annotated[
        Condition,
        doc("`above`, `below`: a finding is reported if the value is above or below `value`; `ignore`: not monitored."),
    ]
    amount: Annotated[float | None, doc("Limit; null for `ignore`.")]
    severity: Annotated[Severity | None, doc("Severity of its findings; null for `ignore`.")]
    platform: Annotated[str | None, doc("Only stores of this platform; null for all.")]
    dispensary_id: Annotated[int | None, doc("Only this store; null for all.")]
    store: Annotated[str | None, doc("Name of that store.")]
    note: str | None
    created_by: str
    created_at: Instant
    open_findings: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingFilter:
    """Which findings; None takes all. `measure` is a measure or a family, as `null`."""

    status: FindingStatus = "open"
    severity: Sequence[str] | None = None
    scope: str | None = None
    measure: str | None = None
    platform: str | None = None
    state: str | None = None
    store: Sequence[int] | None = None


async def list_findings(
    conn: Connection, filters: FindingFilter, *, before: tuple[datetime, int] | None = None, limit: int = 50
) -> list[Finding]:
    """Findings, newest first, those before (opened_at, id)."""
    at, number = before or (None, None)
    values = asdict(filters) | {"before_at": at, "before_id": number, "limit": limit}
    return await fetch_structs(conn, Finding, _q.list_findings, values, prepare=False)


async def get_summary(conn: Connection) -> QualitySummary:
    """Counts of stores and open findings."""
    summary = await fetch_struct(conn, QualitySummary, _q.summary, {})
    assert summary is not None, "an aggregate answers with one row"
    return summary


async def list_stores(
    conn: Connection, *, platform: str | None = None, state: str | None = None, after: tuple[int, int] | None = None, limit: int = 50
) -> list[StoreQuality]:  # fmt: skip
    """Stores, the worst score first, those behind (score, id); 101 stands for no score."""
    score, number = after or (None, None)
    values = {"platform": platform, "state": state, "after_score": score, "after_id": number, "limit": limit}
    return [_store(row) for row in await fetch_all(conn, _q.list_stores, values, prepare=False)]


def store_key(store: StoreQuality) -> tuple[int, int]:
    """The sort values of a store in the list."""
    return (101 if store.score is None else store.score, store.dispensary_id)


async def get_store(conn: Connection, store_id: int) -> StoreQualityDetail:
    """One store with its measures and open findings; raises NotFound."""
    row = await fetch_one(conn, _q.get_store, {"id": store_id})
    if row is None:
        raise NotFound(f"store {store_id} does not exist")
    findings = await list_findings(conn, FindingFilter(store=[store_id]), limit=200)
    known = json.loads(bytes(row.pop("bands") or b"{}"))
    bands = [
        StoreBand(
            measure=name, value=one["value"], expected=one["expected"], low=one["low"], high=one["high"],
            is_out=not one["low"] <= one["value"] <= one["high"], crawls=one["crawls"], weekday=one["weekday"],
        )
        for name, one in sorted(known.items())
    ]  # fmt: skip
    return StoreQualityDetail(**row, bands=bands, findings=findings)


def _store(row: Row) -> StoreQuality:
    return convert({name: value for name, value in row.items() if name != "bands"}, StoreQuality)


async def set_point_of_sale(conn: Connection, store_id: int, name: str | None) -> StoreQuality:
    """Says which software a shop uses, None if it is not known. Raises NotFound, InvalidField."""
    if await fetch_one(conn, _q.store_exists, {"id": store_id}) is None:
        raise NotFound(f"store {store_id} does not exist")
    name = None if name is None else " ".join(name.split())
    if name is not None and not (0 < len(name) <= LONGEST_NAME and name.isprintable()):
        raise InvalidField(
            "name", f"a point of sale needs a name of 1 to {LONGEST_NAME} characters, for example Dutchie POS"
        )
    query = _q.remove_point_of_sale if name is None else _q.put_point_of_sale
    await conn.execute(query, {"id": store_id, "name": name})
    await audit.record(conn, "point_of_sale_set", ("store", store_id), name=name or "unknown")
    row = await fetch_one(conn, _q.get_store, {"id": store_id})
    assert row is not None, "the store exists"
    return _store(row)


async def list_words(
    conn: Connection, *, platform: str | None = None, events: bool = True, unknown: bool = False,
    before: tuple[datetime, str, str] | None = None, limit: int = 50,
) -> list[CategoryWord]:  # fmt: skip
    """Category words, newest first, those before (first_seen_at, platform, word). `events`: only those that came later; `unknown`:
    only those that the taxonomy does not know."""
    at, of, word = before or (None, None, None)
    values = {
        "platform": platform, "events": events, "unknown": unknown, "before_at": at, "before_platform": of, "before_word": word,
        "limit": limit,
    }  # fmt: skip
    return await fetch_structs(conn, CategoryWord, _q.list_words, values, prepare=False)


async def count_new_words(conn: Connection) -> int:
    """Category words that platforms began to use in the last 24 hours."""
    (row,) = await fetch_all(conn, _q.count_new_words, {})
    return int(row["n"])


async def list_rules(conn: Connection) -> list[QualityRule]:
    """All rules, oldest first."""
    return await fetch_structs(conn, QualityRule, _q.list_rules, {"id": None})


async def add_rule(
    conn: Connection, *, measure: str, condition: str, amount: float | None = None, severity: str | None = None,
    platform: str | None = None, store: int | None = None, note: str | None = None,
) -> QualityRule:  # fmt: skip
    """Adds a rule, which applies to menus that are checked from now on. Raises InvalidField."""
    is_family = measure.endswith(".*") and measure.removesuffix(".*") in FAMILIES
    if not is_family and measure_of(measure) is None:
        known = ", ".join(NAMES)
        raise InvalidField("measure", f"unknown measure {measure!r}: use one of {known}, or a family as null.*")
    if condition not in CONDITIONS:
        raise InvalidField("condition", unknown_value("condition", condition, CONDITIONS))
    if condition == "ignore":
        if amount is not None or severity is not None:
            raise InvalidField("condition", "`ignore` takes neither an amount nor a severity")
    else:
        if amount is None or not math.isfinite(amount):
            raise InvalidField("amount", f"`{condition}` needs an amount: shares are from 0 to 1, 0.2 is a fifth")
        severity = severity or "warning"
        if severity not in SEVERITIES:
            raise InvalidField("severity", unknown_value("severity", severity, SEVERITIES))
    if store is not None and await fetch_one(conn, _q.store_exists, {"id": store}) is None:
        raise InvalidField("store", f"store {store} does not exist")
    who = audit.actor()
    values: dict[str, Any] = {
        "measure": measure, "condition": condition, "amount": amount, "severity": severity, "platform": platform,
        "dispensary_id": store, "note": note,
    }  # fmt: skip
    row = await fetch_one(conn, _q.add_rule, {**values, "created_by": who.name if who else "menuwatch"})
    assert row is not None, "an insert returns its row"
    await audit.record(conn, "quality_rule_added", ("quality_rule", row["id"]), **values)
    return await _rule(conn, row["id"])


async def remove_rule(conn: Connection, rule_id: int) -> QualityRule:
    """Removes a rule with its findings; returns it as it was. Raises NotFound."""
    rule = await _rule(conn, rule_id)
    await conn.execute(_q.remove_rule, {"id": rule_id})
    await audit.record(
        conn, "quality_rule_removed", ("quality_rule", rule_id), measure=rule.measure, condition=rule.condition
    )
    return rule


async def _rule(conn: Connection, rule_id: int) -> QualityRule:
    rule = await fetch_struct(conn, QualityRule, _q.list_rules, {"id": rule_id})
    if rule is None:
        raise NotFound(f"data quality rule {rule_id} does not exist")
    return rule
