"""Measures new menus, compares them with their bands, and keeps findings with their causes.

A step of maintenance, every few minutes: crawls do nothing for it. One check runs at a time; each menu is compared in a transaction of
its own, in the order of crawls. A finding lasts until a menu is inside the band again (`recovered`). Menus meanwhile do not move
the band, but after ACCEPT the new level is taken for usual (`accepted`), and the band is learned from there on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import Any

import msgspec
from msgspec import Struct

from menuwatch import __version__
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import Row, fetch_all
from menuwatch.quality.attribution import WINDOW, Cause, MeasuredStore, attribute
from menuwatch.quality.bands import Band, Observation, band
from menuwatch.quality.measures import Measure, measure_of
from menuwatch.quality.score import completeness, score

_q = sql.load(__package__, "measure.sql")

MEMORY = timedelta(days=35)
MOST_CRAWLS = 60
"""The past that bands are learned from: at most this many crawls, none older."""
ACCEPT = timedelta(days=7)
ACCEPT_CRAWLS = 5
"""A finding that lasted this long, in this many crawls, becomes the usual level."""
_BATCH = 200


class CheckResult(Struct, frozen=True, kw_only=True):
    """Menus that were measured and compared, and findings that opened and closed."""

    menus: int = 0
    opened: int = 0
    closed: int = 0


class _Menu(msgspec.Struct):
    crawled_at: datetime
    release: str
    is_quarantined: bool
    values: dict[str, float]
    weekday: int


class _Finding(msgspec.Struct):
    id: int
    measure: str
    rule_id: int | None
    direction: str
    opened_at: datetime
    seen_at: datetime
    crawls: int
    closed_at: datetime | None
    outcome: str | None


Pools = Mapping[tuple[str, str], float]


async def check(conn: Connection, normalizers: Mapping[str, int], *, most: int = 2000) -> CheckResult | None:
    """Checks menus that were not checked yet, up to a limit; None while another check runs. `normalizers` are the versions of the
    platforms' normalizers. The connection has no transaction open."""
    row = await (await conn.execute(_q.take_lock)).fetchone()
    if row is None or not row[0]:
        return None
    try:
        return await _check(conn, normalizers, most)
    finally:
        if not conn.closed:
            await conn.execute(_q.free_lock)


async def prune(conn: Connection, before: datetime) -> int:
    """Deletes measures and closed findings from before that time; returns how many."""
    measures = (await conn.execute(_q.prune_measures, {"before": before})).rowcount
    return measures + (await conn.execute(_q.prune_findings, {"before": before})).rowcount


async def _check(conn: Connection, normalizers: Mapping[str, int], most: int) -> CheckResult:
    await _measure(conn, normalizers)
    due = await fetch_all(conn, _q.unchecked, {"most": most})
    if not due:
        return CheckResult()
    await conn.execute(_q.note_words, {"stores": list({menu["dispensary_id"] for menu in due})})
    pools = {(one["platform"], one["measure"]): one["scale"] for one in await fetch_all(conn, _q.pools, {})}
    opened = closed = 0
    for menu in due:
        async with conn.transaction():
            store = _Check(conn, menu["dispensary_id"], menu["crawled_at"], pools)
            await store.run()
        opened, closed = opened + store.opened, closed + store.closed
    await _attribute(conn)
    return CheckResult(menus=len(due), opened=opened, closed=closed)


async def _measure(conn: Connection, normalizers: Mapping[str, int]) -> None:
    releases = json.dumps({name: f"{__version__}/{version}" for name, version in normalizers.items()})
    values = {"releases": releases, "version": __version__, "most": _BATCH}
    while (await conn.execute(_q.measure_menus, values)).rowcount == _BATCH:
        pass
    await conn.execute(_q.measure_quarantined, values)


class _Check:
    """The check of one menu."""

    def __init__(self, conn: Connection, dispensary_id: int, crawled_at: datetime, pools: Pools) -> None:
        self.conn, self.pools = conn, pools
        self.key = {"dispensary_id": dispensary_id, "crawled_at": crawled_at}
        self.opened = self.closed = 0

    async def run(self) -> None:
        values = {**self.key, "memory": MEMORY}
        rows = await fetch_all(self.conn, _q.menus, {**values, "most": MOST_CRAWLS + 1})
        *past, menu = [msgspec.convert({**row, "values": json.loads(bytes(row["values"]))}, _Menu) for row in rows]
        past = [one for one in past if not one.is_quarantined]
        findings = [msgspec.convert(row, _Finding) for row in await fetch_all(self.conn, _q.store_findings, values)]
        rules = await fetch_all(self.conn, _q.store_rules, self.key)
        self.release_changed = bool(past) and past[-1].release != menu.release
        ignored = [rule["measure"] for rule in rules if rule["condition"] == "ignore"]
        bands, usual = {}, await self._platform_pools()
        for name in _names(menu, past):
            measure = measure_of(name)
            value = _value(menu, name)
            if measure is None or value is None:
                continue
            own = [one for one in findings if one.measure == name and one.rule_id is None]
            open_one = next((one for one in own if one.closed_at is None), None)
            if any(_covers(pattern, name) for pattern in ignored):
                await self._close(open_one, "ignored")
                continue
            known = await self._compare(measure, name, value, menu, past, own, usual.get(name))
            if known is not None:
                bands[name] = {"value": value, **known._asdict()}
        for one in findings:
            if one.closed_at is None and not menu.is_quarantined and _value(menu, one.measure) is None:
                await self._close(one, "unmeasured")
        await self._apply_rules(menu, rules, findings)
        await self._put_store(menu, len(past), bands)
        await self.conn.execute(_q.checked, self.key)

    async def _platform_pools(self) -> dict[str, float]:
        row = await (
            await self.conn.execute("SELECT platform FROM dispensaries WHERE id = %(dispensary_id)s", self.key)
        ).fetchone()
        platform = row[0] if row else ""
        return {name: scale for (of, name), scale in self.pools.items() if of == platform}

    async def _compare(
        self, measure: Measure, name: str, value: float, menu: _Menu, past: Sequence[_Menu],
        findings: Sequence[_Finding], pool: float | None,
    ) -> Band | None:  # fmt: skip
        """Compares one value; returns its band."""
        open_one = next((one for one in findings if one.closed_at is None), None)
        if open_one is not None and open_one.crawls >= ACCEPT_CRAWLS and menu.crawled_at - open_one.opened_at >= ACCEPT:
            await self._close(open_one, "accepted")
            open_one.closed_at, open_one.outcome, open_one = menu.crawled_at, "accepted", None
        usual = _usual(past, name, findings)
        gap = _hours(past[-1].crawled_at, menu.crawled_at) if past else 0.0
        now = Observation(value, menu.weekday, gap, menu.crawled_at)
        products = median(_base(name, one.values) for one in past) if past else 0.0
        known = band(measure, usual, now, products=products, pool=pool)
        if known is None:
            return None
        direction = known.direction(value)
        if open_one is not None:
            since = [one for one in _observations(past, name) if one.at >= open_one.opened_at]
            lasting = band(measure, since, now, products=products, pool=pool)
            if open_one.direction != direction:
                await self._close(open_one, "recovered")
                open_one = None
            elif not measure.is_flow and lasting is not None and lasting.direction(value) == direction:
                await self._close(open_one, "worsened")
                open_one = None
        if direction is not None:
            severity = measure.up if direction == "up" else measure.down
            await self._keep(open_one, name, None, direction, severity, value, known)
        return known

    async def _apply_rules(self, menu: _Menu, rules: Sequence[Row], findings: Sequence[_Finding]) -> None:
        for rule in rules:
            if rule["condition"] == "ignore":
                continue
            for name, value in menu.values.items():
                if not _covers(rule["measure"], name):
                    continue
                open_one = next(
                    (
                        one
                        for one in findings
                        if (one.rule_id, one.measure) == (rule["id"], name) and one.closed_at is None
                    ),
                    None,
                )
                direction = "up" if rule["condition"] == "above" else "down"
                if value > rule["amount"] if direction == "up" else value < rule["amount"]:
                    await self._keep(open_one, name, rule["id"], direction, rule["severity"], value, None)
                else:
                    await self._close(open_one, "recovered")

    async def _keep(
        self, finding: _Finding | None, name: str, rule: int | None, direction: str, severity: str, value: float, known: Band | None
    ) -> None:  # fmt: skip
        values = {**self.key, "value": value, "severity": severity}
        if finding is not None:
            await self.conn.execute(_q.update_finding, {**values, "id": finding.id})
            return
        self.opened += 1
        limits = {"expected": None, "low": None, "high": None} if known is None else known._asdict()
        values |= {"measure": name, "rule_id": rule, "direction": direction, "release_changed": self.release_changed}
        await self.conn.execute(_q.open_finding, {**limits, **values})

    async def _close(self, finding: _Finding | None, outcome: str) -> None:
        if finding is not None:
            self.closed += 1
            await self.conn.execute(_q.close_finding, {**self.key, "id": finding.id, "outcome": outcome})

    async def _put_store(self, menu: _Menu, crawls: int, bands: Mapping[str, Any]) -> None:
        rows = await (await self.conn.execute(_q.open_severities, self.key)).fetchall()
        values = {**self.key, "crawls": crawls, "bands": json.dumps(bands)}
        if menu.is_quarantined:
            await self.conn.execute(_q.put_quarantined, values)
            return
        whole = completeness(menu.values)
        points, reason = score(whole, [row[0] for row in rows], crawls)
        await self.conn.execute(_q.put_store, {**values, "score": points, "reason": reason, "completeness": whole})


def _names(menu: _Menu, past: Sequence[_Menu]) -> list[str]:
    """Measures of the menu, and those that earlier menus had and this one has none of."""
    names = dict.fromkeys(menu.values)
    for one in past:
        names |= dict.fromkeys(one.values)
    return list(names)


def _value(menu: _Menu, name: str) -> float | None:
    """The value of a measure on a menu; None if the menu says nothing of it."""
    value = menu.values.get(name)
    measure = measure_of(name)
    if value is None and measure is not None and measure.is_open:
        family = name.partition(".")[0] + "."
        return 0.0 if any(one.startswith(family) for one in menu.values) else None
    return value


def _usual(past: Sequence[_Menu], name: str, findings: Sequence[_Finding]) -> list[Observation]:
    """The values that a band is learned from: without those of findings, and none from before a level that was accepted."""
    start = max((one.opened_at for one in findings if one.outcome == "accepted"), default=None)
    spans = [(one.opened_at, one.closed_at) for one in findings if one.outcome != "accepted"]

    def is_usual(at: datetime) -> bool:
        if start is not None and at < start:
            return False
        return not any(opened <= at and (closed is None or at < closed) for opened, closed in spans)

    return [one for one in _observations(past, name) if is_usual(one.at)]


def _observations(past: Sequence[_Menu], name: str) -> list[Observation]:
    """The values of a measure on these menus."""
    values = []
    for before, one in zip((None, *past), past, strict=False):
        value = _value(one, name)
        if value is not None:
            gap = _hours(before.crawled_at, one.crawled_at) if before else 0.0
            values.append(Observation(value, one.weekday, gap, one.crawled_at))
    return values


def _base(name: str, values: Mapping[str, float]) -> float:
    """The number of products that a measure of a menu is based on."""
    products = values.get("products", 0.0)
    family, _, of = name.partition(".")
    if family in ("price", "thc"):
        return products * values.get(f"category.{of}", 0.0)
    field = "price" if name == "level.price" else "thc" if name == "level.thc" or family == "unit" else None
    return products if field is None else products * (1 - values.get(f"null.{field}", 0.0))


def _hours(start: datetime, end: datetime) -> float:
    return (end - start) / timedelta(hours=1)


def _covers(pattern: str, name: str) -> bool:
    """Whether a rule's measure is that one: `null.*` are all of that family."""
    return name == pattern or (pattern.endswith(".*") and name.startswith(pattern[:-1]))


async def _attribute(conn: Connection) -> None:
    """Updates the causes of recent findings: other stores that were crawled since may show the same."""
    findings = await fetch_all(conn, _q.recent_findings, {"window": WINDOW})
    groups: dict[tuple[str, str], list[Row]] = {}
    for finding in findings:
        groups.setdefault((finding["measure"], finding["direction"]), []).append(finding)
    causes: list[dict[str, Any]] = []
    for (name, direction), group in groups.items():
        rows = await fetch_all(conn, _q.measured_stores, {"measure": name, "since": group[0]["opened_at"]})
        newest = {finding["dispensary_id"]: finding for finding in group}
        stores = [_measured(row, newest.get(row["dispensary_id"]), direction) for row in rows]
        by_store = attribute(stores)
        for finding in group:
            cause = by_store.get(finding["dispensary_id"], Cause("store", None, 1, 1))
            causes.append({"id": finding["id"], **cause._asdict()})
    if causes:
        await conn.execute(_q.attribute, {"causes": json.dumps(causes)})


def _measured(row: Row, finding: Row | None, direction: str) -> MeasuredStore:
    known = json.loads(bytes(row["band"]))
    value = known.pop("value")
    return MeasuredStore(
        id=row["dispensary_id"],
        platform=row["platform"],
        chain=None if row["chain"] is None else f"{row['platform']}:{row['chain']}",
        point_of_sale=row["point_of_sale"],
        is_out=finding is not None,
        leans=Band(**known).lean(value) == direction,
        release_changed=finding is not None and finding["release_changed"],
    )
