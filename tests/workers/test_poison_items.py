"""Every loop has one rule: an item that raises is charged and put aside, the others go on, and the log names it. A new loop without
an entry here fails."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from structlog.testing import capture_logs

import menuwatch
from menuwatch.db import items
from menuwatch.db.clock import ClockReader
from menuwatch.db.loop import Loop
from menuwatch.db.pool import Pool
from menuwatch.ops.disk_space import DiskReadings
from menuwatch.workers.engine.heartbeat import HeartbeatLoop, RunningMarker
from menuwatch.workers.engine.notifications import Listener, Notifier
from menuwatch.workers.engine.resources import ResourceMonitor
from tests.alerts.rule_factory import add_rule, fired, rows
from tests.alerts.test_evaluate import crawl
from tests.market import add_store, item
from tests.workers.poison_cases import CASES
from tests.workers.poison_context import World

NO_ITEMS: dict[type[Loop], str] = {
    ClockReader: "it reads the database's clock, and no rows",
    HeartbeatLoop: "one statement for all tasks of the worker, of values that the worker made itself",
    Listener: "only the first word of a notification is read, and what they announce is read by other loops",
    RunningMarker: "one statement for all long tasks of the worker, of values that the worker made itself",
    Notifier: "one notice, which says nothing but that there is work",
    ResourceMonitor: "it reads the machine, and no rows",
    DiskReadings: "it reads the machine, and writes one row of its own",
}


def _loops(kind: type[Loop] = Loop) -> Iterator[type[Loop]]:
    for found in kind.__subclasses__():
        if found.__module__.startswith("menuwatch."):
            yield found
        yield from _loops(found)


def test_every_loop_has_an_entry() -> None:
    source = Path(menuwatch.__file__).parent
    for path in source.rglob("*.py"):
        if "db.loop import" in path.read_text(encoding="utf-8"):
            importlib.import_module(".".join(path.relative_to(source.parent).with_suffix("").parts))
    assert set(_loops()) == set(CASES) | set(NO_ITEMS)


@pytest.mark.parametrize("kind", CASES, ids=lambda kind: kind.__name__)
async def test_one_item_that_raises_hinders_no_other(kind: type[Loop], pool: Pool, tmp_path: Path, make: Any) -> None:
    with capture_logs() as logs:
        expected = await CASES[kind](World(pool, tmp_path, make))
    named = [(line["kind"], line["id"]) for line in logs if line["action"] == "item_failed"]
    if kind.name == "janitor":
        named = [("duty", line["job"]) for line in logs if line["action"] == "maintenance_failed"]
    assert set(named) == set(expected)
    assert not [line for line in logs if line["action"] in ("loop_failed", "item_not_charged")]
    assert "password" not in repr(logs)


@pytest.mark.parametrize("kind", [*CASES, *NO_ITEMS], ids=lambda kind: kind.__name__)
async def test_a_step_that_raises_ends_no_loop(kind: type[Loop]) -> None:
    async def step(self: Loop) -> None:
        self.turns += 1  # type: ignore[attr-defined]
        if self.turns == 1:  # type: ignore[attr-defined]
            error = ZeroDivisionError("secret")
            error.add_note("item 7")
            raise error
        self.stop()

    loop = object.__new__(type(kind.__name__, (kind,), {"__module__": __name__, "step": step, "turns": 0}))
    Loop.__init__(loop, interval=0.001)
    with capture_logs() as logs:
        await asyncio.wait_for(Loop.run(loop), 5)
    (line,) = [line for line in logs if line["action"] == "loop_failed"]
    assert (line["loop"], line["item"], line["at"][:21]) == (kind.name, "item 7", "test_poison_items.py:")
    assert ("secret" in line["error"]) is not kind.private


async def test_a_rule_that_cannot_be_judged_says_so_and_others_fire(pool: Pool) -> None:
    async with pool.connection() as conn:
        store = await add_store(conn)
        for name, more in (
            ("no such zone", {"digest": "daily", "digest_at": "08:00", "timezone": "Mars/Olympus"}),
            ("good", {}),
            ("not a number", {"amount": Decimal("NaN")}),
        ):
            await add_rule(
                conn, name, "store", "price_below", **{"dispensary_id": store, "amount": Decimal(25), **more}
            )
        await crawl(conn, store, 0, item("a", price="30"))
        with capture_logs() as logs:
            for hour, price in ((1, "20"), (2, "30"), (3, "20")):
                await crawl(conn, store, hour, item("a", price=price))
        assert await fired(conn) == [("good", "a")] * 2
        noted = await rows(conn, "SELECT rule_id, status, error FROM alert_deliveries ORDER BY rule_id")
    assert [(one["rule_id"], one["status"]) for one in noted] == [(1, "failed"), (3, "failed")]
    assert "ZoneInfoNotFoundError" in noted[0]["error"]
    assert {line["id"] for line in logs if line["action"] == "item_failed"} == {1, 3}


@pytest.mark.parametrize(
    ("error", "outage"),
    [
        (psycopg.OperationalError(), True), (psycopg.InterfaceError(), True), (psycopg.errors.DiskFull(), True),
        (psycopg.errors.DeadlockDetected(), True), (psycopg.errors.AdminShutdown(), True), (psycopg.errors.QueryCanceled(), False),
        (psycopg.errors.ProgramLimitExceeded(), False), (psycopg.DataError(), False), (ValueError(), False),
    ],
)  # fmt: skip
async def test_outages_are_no_items_fault(error: Exception, outage: bool) -> None:
    charged: list[str] = []

    async def fail() -> None:
        raise error

    async def charge(reason: str) -> None:
        charged.append(reason)

    assert items.is_outage(error) is outage
    if outage:
        with pytest.raises(type(error)):
            await items.run_item("loop", "thing", 1, fail(), charge)
        assert error.__notes__ == ["thing 1"]
    else:
        assert not await items.run_item("loop", "thing", 1, fail(), charge)
    assert len(charged) == (not outage)


def test_what_is_put_aside_waits_longer_each_time() -> None:
    aside = items.Aside()
    waits = [aside.put(7) for _ in range(8)]
    assert 30 <= waits[0] <= 60 <= waits[1] <= 120
    assert 1800 <= waits[7] <= 3600
    assert list(aside.now()) == [7]
    aside.clear(7)
    assert list(aside.now()) == []
