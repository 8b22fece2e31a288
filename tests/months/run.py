"""Whole months of whole stores, with faults at random, through the real pipeline. `make months` runs it; SEED=… repeats a run.

    shelves (market) ──► pages, sound or spoiled (wire, faults) ──► PayloadFetch ──► archive ──► ProductRefresh ──► PostgreSQL
        └──────────────► what must be there (ledger) ◄──────────────────── compared after every crawl ──────────────────┘

Only the network and the clock are made up. Each store has a month of its own: thirty days of four to six crawls, on which its shelves
move, and about one crawl in four meets a fault that lasts for one to nine crawls. In some months the shop really gives up most of its
menu, or really sells most of what it has: then a person looks, some crawls later, and releases the menu.

What must hold for every product of every store after every crawl:

- nothing is out of stock, and no miss is counted, because of a fault. Of a menu that shrinks step by step nobody can know the first
  step, so it may count as a miss, and never up to the third: what was really away before and comes back just then may be out of
  stock a crawl too soon (`hurried`), and so may what leaves the shelf just then (`early`);
- what is really gone is out of stock at the third good crawl without it, no sooner and no later;
- a sound menu is always taken, but for the shop that really changed, or was not to be seen for days: that one may wait for its person,
  and counts from then on;
- the snapshots are those of the good crawls, product by product, and what was not seen has none.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from menuwatch.archive import service as payload_operations
from menuwatch.archive.files import FileArchive
from menuwatch.core import logging as telemetry
from menuwatch.core.clock import ManualClock
from menuwatch.core.http import Response
from menuwatch.db import migrate
from menuwatch.db.pool import Pool, open_pool
from menuwatch.pipeline.context import HandlerContext
from menuwatch.pipeline.payload_fetch import PayloadFetch
from menuwatch.pipeline.product_refresh import ProductRefresh
from menuwatch.queue.model import Role, Task
from menuwatch.queue.outcome import Done, Fail, Outcome, Wrote
from menuwatch.sim.platform import platform_names
from menuwatch.stores import store as stores
from menuwatch.stores.store import Details
from tests.chaos.server import Server
from tests.chaos.worker_processes import Leash
from tests.months.expected_catalog import OUT_AFTER, Book
from tests.months.faults import FAULTS, Answer, Episode, Served, Shop, begin, serve
from tests.months.market import Good, Shelves
from tests.months.simulated_wire import SimulatedWire
from tests.months.wire import WIRES, Wire

START = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)
_SHOWN = 40
_LONG = timedelta(days=2)
"""These shelves lose a tenth a day: after so long without a good crawl a sound menu may look like a loss at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much a run is: months, each of so many `stores` of each platform; `share_of_faults`: how likely a calm crawl begins one."""

    months: int
    stores: int
    days: int = 30
    share_of_faults: float = 0.09


FULL = Size(months=20, stores=5)
SHORT = Size(months=1, stores=2)


@dataclass(slots=True)
class Report:
    """What a run came to. `wrong` is empty when all that must hold held."""

    seed: int
    wrong: list[str] = field(default_factory=list)
    count: Counter[str] = field(default_factory=Counter)
    met: Counter[str] = field(default_factory=Counter)
    """Crawls by fault."""
    became: dict[str, Counter[str]] = field(default_factory=dict)
    """By fault, what became of its crawls."""

    def note(self, kind: str, became: str) -> None:
        self.met[kind] += 1
        self.became.setdefault(kind, Counter())[became] += 1

    def lines(self) -> list[str]:
        """For people."""
        table = [
            f"  {kind:<12}{n:>7}  " + ", ".join(f"{name} {m}" for name, m in sorted(self.became[kind].items()))
            for kind, n in sorted(self.met.items())
        ]
        return [
            f"seed {self.seed}: {'FAILED' if self.wrong else 'all held'}",
            *(f"  {name}: {self.count[name]}" for name in _FIGURES),
            "  crawls by what they met, and what became of them:",
            *table,
            *(f"  WRONG: {line}" for line in self.wrong[:_SHOWN]),
            *([f"  and {len(self.wrong) - _SHOWN} more"] if len(self.wrong) > _SHOWN else []),
        ]


_FIGURES = (
    "months", "store months", "crawls", "crawls with a fault", "taken", "rejected", "partial", "quarantined", "superseded",
    "no answer",
    "released by a person", "false out of stock", "false misses", "missed out of stock", "early out of stock",
    "hurried out of stock", "really out of stock", "sound menus kept out", "faults taken", "snapshots",
)  # fmt: skip


class _Visit:
    """A session in which one answer is all that the network has."""

    def __init__(self, wire: Wire, answer: Answer, store: str) -> None:
        self._wire = wire
        self._store = store
        self._answer = answer

    async def request(
        self, method: str, url: str, *, params: Mapping[str, str] | None = None, json: Any | None = None, **_: Any
    ) -> Response:
        number = self._wire.number(params or {}, json, url, self._store)
        if number is None:
            return await self._wire.respond(method, url, params=params, json=json, **_)
        body = self._answer.page(number)
        return Response(500 if body is None else 200, {}, body or b"", url, 1.0)

    def mark_unusable(self, kind: str, reason: str) -> None:
        pass

    @property
    def figures(self) -> Mapping[str, int]:
        return {}


class _Attempt:
    async def pause(self, seconds: float) -> None:
        pass


class StoreMonth:
    """One store's month."""

    def __init__(
        self, size: Size, pool: Pool, folder: Path, report: Report, wire: Wire, number: int, seed: str
    ) -> None:
        self._size = size
        self._pool = pool
        self._report = report
        self._rng = rng = Random(seed)
        self._name = f"{wire.name} store {number} ({seed})"
        rows = rng.choice((25, 25, 40, 100))
        self._shop = Shop(wire, wire.store_id(number), rows, wire.store_id(number + 100_000))
        goods = rng.choice((16, 40, 60, 60, 90))
        self._shelves = Shelves(Random(f"shelves/{seed}"), goods, number * 10_000, wire.selling_out)
        self._wire = wire
        self._book = Book()
        self._clock = ManualClock(START)
        self._answer = Answer((), b"")
        self._serial = 0
        self._open: Episode | None = None
        self._late: tuple[int, Served, dict[int, Any], datetime, bool] | None = None
        self._waiting: tuple[int, Served, dict[int, Any], datetime, bool] | None = None
        self._person_in = 0
        self._parts = HandlerContext(
            pool=pool,
            clock=self._clock,
            archive=FileArchive(folder),
            platforms={wire.name: wire.platform()},
            open_session=self._session,
            suspect_share=0.4,
        )
        self._store = 0

    @asynccontextmanager
    async def _session(self, **_: Any) -> AsyncIterator[Any]:
        yield _Visit(self._wire, self._answer, self._shop.id)

    # the pipeline

    async def _wrote(self, outcome: Outcome) -> Mapping[str, Any]:
        """Does what the engine does with an outcome; returns what was written of it."""
        wrote: Wrote | None = None
        if outcome.writes is not None:
            async with self._pool.connection() as conn, conn.transaction():
                wrote = await outcome.writes(conn)
        settle = getattr(outcome, "settle", None)
        if settle is not None:
            settle(True)
        found = dict((wrote.result if wrote is not None else None) or {})
        return {**(getattr(outcome, "result", None) or {}), **found, "then": tuple(wrote.then) if wrote else ()}

    def _task(self, role: Role, payload: Mapping[str, Any]) -> Task:
        self._serial += 1
        now = self._clock.now()
        return Task(
            id=self._serial, role=role, dispensary_id=self._store, platform=self._wire.name, status="running", priority=0,  # type: ignore[arg-type]
            scheduled_for=None, worker_id="w", claimed_at=now, started_at=now, completed_at=None, last_heartbeat_at=now, result=None,
            error_message=None, retry_count=0, max_retries=3, payload=payload, created_at=now, updated_at=now,
        )  # fmt: skip

    async def _fetch(self, served: Served) -> tuple[str, int | None]:
        """(what became of the answer, the payload to be refreshed)"""
        self._answer = served.answer
        task = self._task(Role.PAYLOAD_FETCH, {})
        outcome = await PayloadFetch(self._parts)(task, _Attempt())
        wrote = await self._wrote(outcome)
        if isinstance(outcome, Done):
            if wrote["status"] == "ok":
                (then,) = wrote["then"]
                return "ok", int(then.payload["payload_id"])
            return str(wrote["status"]), None
        async with self._pool.connection() as conn:
            query = "SELECT status FROM raw_crawl_payloads WHERE task_id = %s AND dispensary_id = %s"
            row = await (await conn.execute(query, (task.id, self._store))).fetchone()
        return (str(row[0]) if row is not None else "no answer"), None

    async def _why(self) -> str | None:
        """What the store says is the matter."""
        async with self._pool.connection() as conn:
            store = await stores.get(conn, self._store)
        return None if store is None else store.last_error

    async def _refresh(self, payload_id: int) -> str:
        outcome = await ProductRefresh(self._parts)(self._task(Role.PRODUCT_REFRESH, {"payload_id": payload_id}), None)
        wrote = await self._wrote(outcome)
        if isinstance(outcome, Fail) or "quarantined" in wrote:
            return "quarantined"
        return next((name for name in ("superseded", "already_applied") if wrote.get(name)), "taken")

    # the month

    async def run(self) -> None:
        """The whole of it."""
        name = self._shop.id
        details = Details(platform_dispensary_id=name, slug=name, name=name, name_raw=name)
        async with self._pool.connection() as conn:
            self._store, _ = await stores.promote(conn, self._wire.name, details)
        crawls = self._size.days * self._rng.choice((4, 5, 6))
        step = timedelta(days=self._size.days) / crawls
        # A shop that really changes does so once in a while; the first days are those in which it becomes known.
        upheaval = self._rng.choice((None, "clearance", "great day"))
        when = self._rng.randrange(crawls // 6, crawls - crawls // 6)
        for number in range(crawls):
            if number:
                self._shelves.move()
            if number == when and upheaval == "clearance":
                self._shelves.clear()
                self._person_in = self._rng.randrange(0, 9)
                self._open = None
            elif number == when and upheaval == "great day":
                self._shelves.sell_out()
                self._person_in = self._rng.randrange(0, 9)
                self._open = None
            changed = number >= when and upheaval is not None
            await self._crawl(number, changed=changed)
            self._clock.advance(step - timedelta(minutes=3))
        await self._judge_history()
        self._report.count["store months"] += 1

    _settled = False
    """The shop's upheaval is in the catalogue."""
    _strange = 0
    """Crawls during which the shop may look like another one to whoever had not seen it for long."""

    def _serve(self, number: int, truth: dict[int, Any]) -> tuple[str, Served]:
        if self._open is not None and self._open.over:
            self._open = None
        if self._open is None and number > 3 and self._rng.random() < self._size.share_of_faults:
            self._open = begin(self._rng, self._rng.choice(FAULTS), self._shop)
        if self._open is not None:
            served = serve(self._open, self._shop, truth)
            if served is not None:
                return self._open.kind, served
            self._open = None
        return "none", self._shop.sound(truth)

    def _on_menu(self) -> dict[int, Good]:
        """The goods that the shop's menu has, as the platform shows them: some leave out what is sold out."""
        shown = {number: self._wire.visible(good) for number, good in self._shelves.goods.items()}
        return {number: good for number, good in shown.items() if good is not None}

    async def _crawl(self, number: int, *, changed: bool) -> None:
        truth = self._on_menu()
        kind, served = self._serve(number, truth)
        at = self._clock.now()
        became, payload_id = await self._fetch(served)
        retried = timedelta(minutes=3)
        if became in ("rejected", "partial", "no answer") and self._rng.random() < 0.25:
            # The task is tried again, and the fault is gone.
            self._count(kind, became)
            self._clock.advance(retried)
            retried = timedelta(0)
            kind, served, self._open = "none", self._shop.sound(truth), None
            at = self._clock.now()
            became, payload_id = await self._fetch(served)
        self._clock.advance(retried)
        pending, self._late = self._late, None
        if kind == "late" and payload_id is not None and pending is None:
            self._late = (payload_id, served, truth, at, changed)
            self._count(kind, "put off")
        else:
            if payload_id is not None:
                became = await self._refresh(payload_id)
            await self._settle(kind, served, truth, at, became, changed=changed)
            if payload_id is not None and became == "taken" and self._rng.random() < 0.05:
                again = await self._refresh(payload_id)
                if again != "already_applied":
                    self._wrong(f"{at}: the same payload again is {again}")
        if pending is not None:
            await self._late_one(pending)
        await self._person()
        await self._compare(at, kind)

    async def _late_one(self, pending: tuple[int, Served, dict[int, Any], datetime, bool]) -> None:
        payload_id, served, truth, at, changed = pending
        became = await self._refresh(payload_id)
        if self._book.crawls and self._book.crawls[-1] > at:
            if became != "superseded":
                self._wrong(f"{at}: a payload older than the last crawl is {became}")
            self._count("late", became)
        else:
            await self._settle("late", served, truth, at, became, changed=changed)

    async def _settle(
        self, kind: str, served: Served, truth: dict[int, Any], at: datetime, became: str, *, changed: bool
    ) -> None:
        """Books what a crawl must have led to, and holds against it what it did lead to."""
        self._count(kind, became)
        taken = became == "taken"
        # Who was not to be seen for long has changed as well, and a person may have to look.
        if self._book.crawls and at - self._book.crawls[-1] > _LONG:
            self._strange = OUT_AFTER + 1
        waits = self._strange > 0 or (changed and not self._settled)
        if served.verdict == "kept out":
            if taken:
                self._report.count["faults taken"] += 1
                self._wrong(f"{at}: a menu with the fault {kind} ({served.what}) was taken")
            return
        if taken:
            self._strange = max(0, self._strange - 1)
            self._book.take(served, truth, at)
            if changed and served.verdict == "taken":
                self._settled = True
        elif served.verdict == "taken":
            if waits and became == "quarantined":
                async with self._pool.connection() as conn:
                    newest = await payload_operations.latest_payload(conn, self._store, "quarantined")
                self._waiting = (newest.id, served, truth, at, changed)
            else:
                self._report.count["sound menus kept out"] += 1
                self._wrong(
                    f"{at}: a sound menu ({kind} {served.what}) was not taken: it is {became}, {await self._why()}"
                )

    async def _person(self) -> None:
        """Somebody looks at what waits, and releases the menu that is the shop's truth."""
        if self._waiting is None:
            return
        if self._person_in > 0:
            self._person_in -= 1
            return
        payload_id, served, truth, at, changed = self._waiting
        self._waiting = None
        if self._book.crawls and self._book.crawls[-1] > at:
            return
        async with self._pool.connection() as conn, conn.transaction():
            await payload_operations.release(conn, payload_id)
        became = await self._refresh(payload_id)
        self._report.count["released by a person"] += 1
        if became != "taken":
            self._wrong(f"{at}: a payload that a person released is {became}")
            return
        self._settled = self._settled or changed
        self._book.take(served, truth, at)

    def _count(self, kind: str, became: str) -> None:
        count = self._report.count
        count["crawls"] += became != "put off"
        count["crawls with a fault"] += kind != "none" and became != "put off"
        count[became] += 1
        if became != "put off":
            self._report.note(kind, became)

    def _wrong(self, said: str) -> None:
        self._report.wrong.append(f"{self._name}: {said}")

    # the judgement

    async def _compare(self, at: datetime, kind: str) -> None:
        async with self._pool.connection() as conn:
            rows = await (
                await conn.execute(
                    "SELECT provider_product_id, consecutive_misses, stock_status, quantity, (price_rec * 100)::integer,"
                    " is_in_stock IS NOT DISTINCT FROM CASE stock_status WHEN 'in_stock' THEN true WHEN 'oos' THEN false END"
                    "  FROM store_products WHERE dispensary_id = %s",
                    (self._store,),
                )
            ).fetchall()
        found = {row[0]: row[1:] for row in rows}
        names = {number: self._wire.product_id(number) for number in self._book.products}
        more = found.keys() - names.values()
        if more:
            self._wrong(f"{at} ({kind}): {len(more)} products too many, such as {min(more)}")
        wrong = []
        count = self._report.count
        listed = self._on_menu()
        for number, known in self._book.products.items():
            row = found.get(names[number])
            if row is None:
                wrong.append(f"{names[number]} is not there")
                continue
            misses, stock = row[0], row[1]
            on_shelf = number in listed
            by_absence = misses == OUT_AFTER
            doubtful = by_absence and on_shelf and known.honest < OUT_AFTER
            hurried = doubtful and 0 < known.deceived < OUT_AFTER
            false = (doubtful and not hurried) or (stock == "oos" and known.stock != "oos")
            count["hurried out of stock"] += hurried
            count["false out of stock"] += false
            count["false misses"] += misses > known.misses
            count["missed out of stock"] += known.honest == OUT_AFTER and stock != "oos"
            count["early out of stock"] += by_absence and not on_shelf and known.honest < OUT_AFTER
            if tuple(row[:4]) != known.row or not row[4]:
                wrong.append(f"{names[number]} is {tuple(row[:4])}, and should be {known.row}")
            elif false:
                wrong.append(f"{names[number]} is out of stock, and lies on the shelf")
        if wrong:
            self._wrong(f"{at} ({kind}): {len(wrong)} products are wrong: {wrong[0]}")

    async def _judge_history(self) -> None:
        """Snapshots are those of the good crawls, and no others."""
        async with self._pool.connection() as conn:
            crawls = await (
                await conn.execute("SELECT crawled_at FROM store_crawls WHERE dispensary_id = %s ORDER BY 1", (self._store,))
            ).fetchall()  # fmt: skip
            rows = await (
                await conn.execute(
                    "SELECT crawled_at, provider_product_id, stock_status, quantity, (price_rec * 100)::integer"
                    "  FROM store_product_snapshots WHERE dispensary_id = %s",
                    (self._store,),
                )
            ).fetchall()
        if sorted(self._book.crawls) != [at for (at,) in crawls]:
            self._wrong(f"{len(crawls)} crawls are on record, {len(self._book.crawls)} were good")
        have = {(at, product): tuple(state) for at, product, *state in rows}
        want = {(at, self._wire.product_id(number)): state for (at, number), state in self._book.seen.items()}
        self._report.count["snapshots"] += len(have)
        self._report.count["really out of stock"] += self._book.declared
        if len(have) != len(rows):
            self._wrong(f"{len(rows) - len(have)} snapshots are there twice")
        if have != want:
            apart = sorted(key for key in have.keys() | want.keys() if have.get(key) != want.get(key))
            self._wrong(
                f"{len(apart)} snapshots of {len(want)} are wrong: {apart[0]} is {have.get(apart[0])}, "
                f"and should be {want.get(apart[0])}"
            )


def all_wires() -> tuple[Wire, ...]:
    """Those written by hand, whose Weedmaps has the shape of the recordings, and every other one of the simulator, with today's."""
    return (*WIRES, *(SimulatedWire(name) for name in platform_names()))


async def run(
    size: Size,
    seed: int,
    url: str,
    folder: Path,
    say: Callable[[str], None] = lambda _: None,
    wires: Sequence[Wire] = WIRES,
) -> Report:
    """That many months in that folder, against that database, which is at the newest schema and empty."""
    report = Report(seed)
    began = time.monotonic()
    number = 0
    async with open_pool(url, max_size=6, name="menuwatch-months") as pool:
        for month in range(size.months):
            work = []
            archive = folder / f"month-{month}"
            for wire in wires:
                for store in range(size.stores):
                    number += 1
                    month_seed = f"{seed}/{month}/{wire.name}/{store}"
                    work.append(StoreMonth(size, pool, archive, report, wire, number, month_seed).run())
            await asyncio.gather(*work)
            # Tens of thousands of files would take longer to remove at the end than the month took.
            await asyncio.to_thread(shutil.rmtree, archive)
            report.count["months"] += 1
            say(
                f"month {month + 1} of {size.months}: {report.count['crawls']} crawls, {len(report.wrong)} things wrong, "
                f"{time.monotonic() - began:.0f} s"
            )
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=None, help="repeats that run")
    parser.add_argument("--months", type=int, default=FULL.months, help="months of each store (%(default)s)")
    parser.add_argument("--stores", type=int, default=FULL.stores, help="stores of each platform (%(default)s)")
    parser.add_argument(
        "--platform", default="all", help="one platform, with the simulator's items (%(default)s: every platform)"
    )
    given = parser.parse_args()
    seed = int(time.time()) if given.seed is None else given.seed
    wires = all_wires() if given.platform == "all" else (SimulatedWire(given.platform),)
    print(f"seed {seed}; platforms {', '.join(wire.name for wire in wires)}", flush=True)
    telemetry.configure("json", "error")
    folder = Path(tempfile.mkdtemp(prefix="mw-months-", dir="/tmp" if Path("/tmp").is_dir() else None))
    folder.chmod(0o755)
    with Leash(folder) as leash:
        server = Server(folder, started=leash.hold, ended=leash.let_go)
        try:
            migrate.migrate(server.url)
            size = Size(months=given.months, stores=given.stores)
            report = asyncio.run(run(size, seed, server.url, folder, lambda line: print(line, flush=True), wires))
            print("\n".join(report.lines()), flush=True)
        finally:
            server.stop()
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
