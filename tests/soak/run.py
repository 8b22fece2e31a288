"""Simulated days against a host that does not want to be crawled. `make soak` runs it; SEED=… repeats a run's plan.

    8 x `menuwatch worker` ──► proxies, a tenth of them dead ──► the simulator: 403 for one browser, all the time; by turns 403 for
             ▲                                                    tired proxies, storms of 429, a challenge for an hour,
             └── kill -9 of one of them a day                     403 for everybody for an hour

A round is one crawl of all stores at one tick of the market, under one trouble; it ends when its last menu is in the catalogue, so
that every menu can be compared with the expected state. An hour takes a few seconds, and the settings that are times are on
the same scale (`plan`). One thing is not: a host's pace grows back by a tenth a minute after a storm. Hours go by between two
crawls, and here they do not, so the pace is given back at the end of each round; turns are left as they are. Scores, which halve in
six hours, do not fade within a run: what is learned on the first day is known on the last.

What must hold, by what the simulator saw and the database holds, not by what the workers say:

- every menu of every round arrives, and every product, price and stock is as expected after each; nothing is quarantined;
- no span of time holds more requests than rate and burst allow (`evidence.windows` says what delays may add), no more identities are
  at work than `concurrency`, none in two hands, and nothing is asked while a Retry-After runs but what was on its way;
- each request that arrived is in `fetch_attempts` once and none besides, but for the last ones of a killed worker;
- proxies that are dead end deactivated, none that lives is while the host refuses everybody, and at the end all that live work.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

from menuwatch.config.platforms import platform_variables
from menuwatch.config.settings import Settings
from menuwatch.core import logging as telemetry
from menuwatch.db import migrate
from menuwatch.db.pool import open_pool
from menuwatch.fetch.profiles import PROFILES
from menuwatch.platforms.registry import platforms
from menuwatch.proxies import service as proxy_operations
from menuwatch.queue import store as tasks
from menuwatch.queue.model import PRIORITY_DISCOVERY, NewTask, Role
from menuwatch.sim.expected import Row, follow
from menuwatch.sim.local_session import simulated_platforms
from menuwatch.sim.process import Simulator
from menuwatch.sim.stats import Arrival
from menuwatch.stores import store as stores
from menuwatch.stores.store import Details
from tests.chaos.server import Server
from tests.chaos.worker_processes import Leash, Member
from tests.e2e.expected_catalog import catalogue, expected, snapshot_of, snapshots
from tests.soak import evidence
from tests.soak.evidence import Attempt, Hold, Kill
from tests.soak.plan import FULL, SHORT, Plan, Round, Size
from tests.soak.worker_processes import Workers

_TABLES = """
CREATE TABLE soak_turns (proxy_id integer, is_active boolean, error text, at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE FUNCTION soak_turned() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO soak_turns (proxy_id, is_active, error) VALUES (NEW.id, NEW.is_active, NEW.last_error);
  RETURN NEW;
END $$;
CREATE TRIGGER soak_turned AFTER UPDATE OF is_active ON proxies FOR EACH ROW
  WHEN (OLD.is_active IS DISTINCT FROM NEW.is_active) EXECUTE FUNCTION soak_turned();
CREATE TABLE soak_leases (lease_id bigint PRIMARY KEY, task_id bigint, proxy_id integer, began timestamptz, ended timestamptz);
CREATE FUNCTION soak_leased() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO soak_leases VALUES (NEW.id, NEW.task_id, NEW.proxy_id, clock_timestamp());
  ELSE
    UPDATE soak_leases SET ended = least(clock_timestamp(), OLD.expires_at) WHERE lease_id = OLD.id;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER soak_leased AFTER INSERT OR DELETE ON identity_leases FOR EACH ROW EXECUTE FUNCTION soak_leased();
"""
_LEASE_SECONDS = 90.0
"""What a lease that nobody renews lasts at most, and a little."""
_ENOUGH = 1000
"""Requests from which on what is a matter of chance (who is drawn how often) is judged, and not only said."""


@dataclass(slots=True)
class Report:
    """What a run was like. `faults` is empty when all that must hold held."""

    seed: int
    faults: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    menus: int = 0
    """That arrived complete and correct."""

    def lines(self) -> list[str]:
        """For people."""
        return [
            f"seed {self.seed}: {'FAILED' if self.faults else 'all held'}",
            *(f"  {name}: {value}" for name, value in self.figures.items()),
            *(f"  WRONG: {fault}" for fault in self.faults[:50]),
            *([f"  and {len(self.faults) - 50} more"] if len(self.faults) > 50 else []),
        ]


@dataclass(slots=True)
class _Passed:
    """A round that is over: the numbers of the last request before it and of its own last one, its beginning and end by the
    database's clock."""

    round: Round
    first: int
    last: int
    began: datetime
    ended: datetime


class Soak:
    """One run, against a database of its own."""

    def __init__(
        self, size: Size, seed: int, url: str, folder: Path, leash: Leash, say: Callable[[str], None], platform: str
    ) -> None:
        self._size = size
        self._platform = platform
        self._lists_stores = platforms(Settings())[platform].lists_stores
        self._url = url
        self._folder = folder
        self._leash = leash
        self._say = say
        self._rng = Random(f"kills/{seed}")
        self._plan = Plan(size, seed)
        self._seed = seed
        self._report = Report(seed)
        self._crawls: dict[str, list[dict[str, Row]]] = {}
        self._passed: list[_Passed] = []
        self._kills: list[Kill] = []
        self._orphans: dict[str, list[int]] = {}
        """By killed worker, the tasks that it had in hand."""
        self._numbers: dict[int, int] = {}
        """Of proxies: the database's id to the simulator's number."""

    async def run(self) -> Report:
        """The whole of it. Whatever happens, no process is left when it returns."""
        began = time.monotonic()
        size = self._size
        async with (
            Simulator(
                stores=size.stores if self._platform == "dutchie" else 0,
                platforms={} if self._platform == "dutchie" else {self._platform: size.stores},
                products=size.products,
                seed=self._seed,
                proxies=size.proxies,
            ) as simulator,
            open_pool(self._url, max_size=4, name="menuwatch-soak") as pool,
        ):
            self._simulator, self._pool = simulator, pool
            await self._prepare()
            crew = self._crew = Workers(
                self._leash,
                self._folder,
                {
                    **size.settings(),
                    "DATABASE_URL": self._url,
                    "MENUWATCH_HOME": str(self._folder / "home"),
                    "DUTCHIE_BASE_URL": simulator.base_url,
                    **platform_variables(simulator.platforms),
                },
            )
            try:
                for _ in range(size.workers):
                    await crew.hire(None, size.slots)
                for number in self._plan.rounds:
                    await self._round(number)
                await self._recovered()
                for name, code in await crew.dismiss():
                    if code != 0:
                        self._fault(f"worker {name} ended with {code} when told to stop")
                await self._judge()
            except TimeoutError as error:
                self._fault(str(error))
            finally:
                await crew.kill()
        self._report.figures["warnings of workers"] = dict(sorted(crew.said().items()))
        self._report.figures["seconds"] = round(time.monotonic() - began)
        return self._report

    def _fault(self, text: str) -> None:
        self._report.faults.append(text)
        self._say(f"WRONG: {text}")

    async def _ask(self, statement: str, values: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        async with self._pool.connection() as conn:
            cursor = await conn.execute(statement, values)  # type: ignore[arg-type]
            return await cursor.fetchall() if cursor.description else []

    async def _prepare(self) -> None:
        await self._ask(_TABLES)
        for number, proxy in enumerate(self._simulator.proxies):
            added = await proxy_operations.add(self._pool, proxy.url, state=proxy.state, timezone=proxy.timezone)
            self._numbers[added.id] = number
        for number in self._size.dead:
            await self._simulator.break_proxy(number, "dead")

    # the days

    async def _round(self, now: Round) -> None:
        size, simulator = self._size, self._simulator
        if now.number:
            await simulator.tick()
        await simulator.inject_faults(now.faults)
        before = time.monotonic()
        ((began,),) = await self._ask("SELECT clock_timestamp()")
        await self._feed(now)
        if now.kill:
            await self._kill()
        if now.everybody:
            await self._hour(now, began, before + size.patience)
        await self._drained(now, before + size.patience)
        ((ended,),) = await self._ask("SELECT clock_timestamp()")
        first = self._passed[-1].last if self._passed else 0
        arrivals = await simulator.arrivals(first)
        last = arrivals[-1].number if arrivals else first
        self._passed.append(_Passed(now, first, last, began, ended))
        good = await self._compare(now)
        ((pace,),) = await self._ask("SELECT coalesce(min(current_rate / rate), 1) FROM hosts")
        statuses = Counter(arrival.status for arrival in arrivals)
        ((active,),) = await self._ask("SELECT count(*) FROM proxies WHERE is_active")
        self._say(
            f"day {now.day + 1}, round {now.number:2} {now.trouble:14}{' and a kill' if now.kill else '':11} "
            f"{good:3} of {size.stores} menus, "
            f"{len(arrivals):4} requests {dict(sorted(statuses.items()))}, pace {pace:.0%}, {active} of {size.proxies} proxies, "
            f"{time.monotonic() - before:.1f} s"
        )
        if now.everybody:
            await self._closed_again(now)
        await self._ask("UPDATE hosts SET current_rate = rate, rate_changed_at = clock_timestamp()")

    async def _hour(self, now: Round, began: datetime, deadline: float) -> None:
        """An hour in which nobody is let in. It begins when that is known (the circuit opens), so a slow machine has the same one."""
        while not await self._ask(
            "SELECT 1 FROM host_events WHERE kind = 'circuit_opened' AND happened_at >= %s", (began,)
        ):
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"round {now.number} ({now.trouble}): nobody was let in, and the circuit did not open"
                )
            await asyncio.sleep(0.05)
        await asyncio.sleep(self._size.hour)
        await self._simulator.inject_faults(now.afterwards)

    async def _feed(self, now: Round) -> None:
        async with self._pool.connection() as conn, conn.transaction():
            name = self._platform
            if now.number == 0 and self._lists_stores:
                new = [NewTask(role=Role.STORE_DISCOVERY, platform=name, priority=PRIORITY_DISCOVERY)]
            else:
                if now.number == 0:
                    for shop in self._simulator.market.stores:
                        known = {"slug": shop.slug, "name": shop.name, "name_raw": shop.name}
                        await stores.promote(conn, name, Details(platform_dispensary_id=shop.id, **known))
                crawled = await stores.crawlable(conn)
                new = [NewTask(role=Role.PAYLOAD_FETCH, platform=name, dispensary_id=store) for store in crawled]
            await tasks.enqueue(conn, new)

    async def _drained(self, now: Round, deadline: float) -> None:
        """Until nothing waits or runs. Raises TimeoutError saying what is left."""
        while True:
            rows = await self._ask(
                "SELECT role, status, count(*), min(scheduled_for), min(error_message) FROM worker_tasks"
                " WHERE status NOT IN ('completed', 'failed', 'cancelled') GROUP BY role, status"
            )
            if not rows:
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"round {now.number} ({now.trouble}) did not end in time; left: {rows}")
            self._note_the_fallen()
            await asyncio.sleep(0.1)

    def _note_the_fallen(self) -> None:
        for member in self._crew.members:
            if member.process.returncode is not None and not member.busy:
                member.busy = True
                self._fault(
                    f"worker {member.name} ended by itself with {member.process.returncode}: {self._crew.last_words(member)}"
                )

    async def _kill(self) -> None:
        """SIGKILL for a worker in the midst of asking; others take what it had in hand."""
        deadline = time.monotonic() + self._size.patience / 2
        while True:
            rows = await self._ask(
                "SELECT t.worker_id, array_agg(t.id) FROM worker_tasks t JOIN identity_leases l ON l.task_id = t.id"
                " WHERE t.status IN ('claimed', 'running') GROUP BY t.worker_id ORDER BY 1"
            )
            there = {member.name: member for member in self._crew.members}
            found = [(there[worker], ids) for worker, ids in rows if worker in there]
            if found:
                break
            if time.monotonic() > deadline:
                raise TimeoutError("no worker had anything in hand that it could be killed with")
            await asyncio.sleep(0.02)
        victim: Member
        victim, _ = self._rng.choice(found)
        victim.busy = True
        victim.signal(signal.SIGKILL)
        await victim.process.wait()
        self._kills.append(Kill(time.monotonic(), self._size.slots, self._size.pages))
        held = await self._ask(
            "SELECT id FROM worker_tasks WHERE status IN ('claimed', 'running') AND worker_id = %s",
            (victim.name,),
        )
        self._orphans[victim.name] = [row[0] for row in held]
        await self._crew.replace(victim)

    async def _compare(self, now: Round) -> int:
        """The catalogue beside the simulator's expected state after this round; how many stores are as they should be."""
        found = await catalogue(self._pool)
        good = 0
        for store in self._simulator.market.stores:
            crawls = self._crawls.setdefault(store.slug, [])
            crawls.append(self._simulator.expected.rows(store.slug, now.number))
            known, _ = follow(crawls)
            have = found.get(store.slug, {})
            wrong = [product for product in known if have.get(product) != expected(known[product])]
            more = have.keys() - known.keys()
            if wrong or more:
                example = wrong[0] if wrong else next(iter(more))
                truth = expected(known[example]) if example in known else {}
                seen = have.get(example, {})
                apart = {key: (seen.get(key), value) for key, value in truth.items() if seen.get(key) != value}
                self._fault(
                    f"round {now.number} ({now.trouble}), {store.slug}: {len(wrong)} products are wrong, {len(more)} "
                    f"too many; {example}: {dict(list(apart.items())[:3]) if seen else 'not there'}"
                )
            else:
                good += 1
        return good

    async def _closed_again(self, now: Round) -> None:
        ((circuit,),) = await self._ask("SELECT max(circuit) FROM hosts")
        if circuit != "closed":
            self._fault(f"round {now.number} ({now.trouble}): the circuit is {circuit} when all menus are there")

    async def _recovered(self) -> None:
        """Until proxies that were tired work again, and no lease is left."""
        dead = set(self._size.dead)
        deadline = time.monotonic() + _LEASE_SECONDS
        while True:
            out = {self._numbers[i] for (i,) in await self._ask("SELECT id FROM proxies WHERE NOT is_active")}
            leases = await self._ask(
                "SELECT proxy_id, task_id FROM identity_leases WHERE expires_at > clock_timestamp()"
            )
            # A dead proxy is found out at its fifth failure, which a short run may not come to.
            known = out == dead if self._passed[-1].last >= _ENOUGH else out <= dead
            if known and not leases:
                break
            if time.monotonic() > deadline:
                self._fault(f"proxies {sorted(out)} are out of work, and {sorted(dead)} are dead; leases: {leases}")
                break
            await asyncio.sleep(0.2)
        self._report.figures["proxies lost"] = f"{len(out - dead)} of {self._size.proxies - len(dead)} that live"
        self._report.figures["dead proxies found out"] = f"{len(out & dead)} of {len(dead)}"

    # the judgement

    async def _judge(self) -> None:
        arrivals = await self._simulator.arrivals()
        attempts = await self._attempts()
        await self._judge_menus()
        await self._judge_pool()
        await self._judge_budget(arrivals, attempts)
        self._judge_books(arrivals, attempts)
        self._judge_browsers(arrivals)
        self._judge_refusals(arrivals)
        ((blocked, rotations, verdicts),) = await self._ask(
            "SELECT (SELECT count(*) FROM fetch_attempts WHERE verdict IN ('blocked', 'challenge')),"
            " (SELECT count(*) FROM fetch_attempts WHERE rotated),"
            " (SELECT jsonb_object_agg(verdict, n) FROM (SELECT verdict, count(*) AS n FROM fetch_attempts GROUP BY 1 ORDER BY 1) v)"
        )
        self._report.figures |= {
            "requests that arrived": len(arrivals),
            "blocks": blocked,
            "rotations": rotations,
            "verdicts": verdicts,
        }

    async def _attempts(self) -> list[Attempt]:
        offset = time.time() - time.monotonic()
        agents = {profile.name: profile.user_agent for profile in PROFILES}
        rows = await self._ask(
            "SELECT id, task_id, proxy_id, profile, status, extract(epoch FROM attempted_at)::float8, elapsed_ms"
            "  FROM fetch_attempts ORDER BY attempted_at"
        )
        return [
            Attempt(
                id=number,
                task=task,
                proxy=self._numbers.get(proxy),
                agent=agents.get(profile, ""),
                status=status,
                began=at - offset,
                ended=at - offset + elapsed / 1000,
            )
            for number, task, proxy, profile, status, at, elapsed in rows
        ]

    async def _holds(self) -> list[Hold]:
        """The leases of tasks; those that were never deleted last until their end, or until now."""
        offset = time.time() - time.monotonic()
        rows = await self._ask(
            "SELECT s.task_id, s.proxy_id, extract(epoch FROM s.began)::float8,"
            "       extract(epoch FROM coalesce(s.ended, least(l.expires_at, clock_timestamp())))::float8"
            "  FROM soak_leases s LEFT JOIN identity_leases l ON l.id = s.lease_id WHERE s.task_id IS NOT NULL"
        )
        return [Hold(task, self._numbers[proxy], began - offset, ended - offset) for task, proxy, began, ended in rows]

    async def _judge_menus(self) -> None:
        """Every crawl as it was served, none of them twice, none mistrusted."""
        found = await snapshots(self._pool)
        complete = 0
        for slug, crawls in self._crawls.items():
            have = found.get(slug, [])
            if len(have) != len(crawls):
                self._fault(f"{slug} was crawled {len(have)} times, and should have been {len(crawls)} times")
            for number, (shown, rows) in enumerate(zip(have, crawls, strict=False)):
                if shown == {product: snapshot_of(row) for product, row in rows.items()}:
                    complete += 1
                else:
                    self._fault(f"crawl {number} of {slug} is not the menu that was served")
        payloads = await self._ask(
            "SELECT status, reason, count(*) FROM raw_crawl_payloads WHERE status <> 'ok' GROUP BY 1, 2"
        )
        self._judge_payloads(payloads)
        ended = dict(await self._ask("SELECT status, count(*) FROM worker_tasks GROUP BY 1"))
        if set(ended) != {"completed"}:
            why = await self._ask(
                "SELECT DISTINCT role, status, error_message FROM worker_tasks WHERE status <> 'completed'"
            )
            self._fault(f"tasks that did not end well: {ended}: {why[:5]}")
        taken = 0
        for name, ids in self._orphans.items():
            rows = await self._ask("SELECT id, status, worker_id FROM worker_tasks WHERE id = ANY (%s)", (ids,))
            for number, status, worker in rows:
                if status == "completed" and worker != name:
                    taken += 1
                else:
                    self._fault(f"task {number} of worker {name}, which was killed, is {status} by {worker}")
        self._report.menus = complete
        self._report.figures |= {
            "menus complete": f"{complete} of {len(self._plan.rounds) * self._size.stores}",
            "workers killed": f"{len(self._kills)}, {taken} tasks in hand taken over",
        }

    def _judge_payloads(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """No menu was mistrusted: the simulator never serves one that deserves it here."""
        for status, reason, count in rows:
            self._fault(f"{count} menus are {status}: {reason}")

    async def _judge_pool(self) -> None:
        turns = await self._ask("SELECT proxy_id, is_active, error, at FROM soak_turns ORDER BY at")
        dead = set(self._size.dead)
        out = [(self._numbers[i], error, at) for i, active, error, at in turns if not active]
        for number, error, at in out:
            for passed in self._passed:
                if number not in dead and passed.round.everybody and passed.began <= at <= passed.ended:
                    self._fault(
                        f"proxy {number} lives, and was deactivated while everybody was refused "
                        f"(round {passed.round.number}, {passed.round.trouble}): {error}"
                    )
        living = Counter(number for number, _, _ in out if number not in dead)
        self._report.figures["living proxies out for a while"] = f"{sum(living.values())} times, {len(living)} of them"

    async def _judge_budget(self, arrivals: Sequence[Arrival], attempts: Sequence[Attempt]) -> None:
        size = self._size
        found = evidence.windows(arrivals, rate=size.rate, burst=size.burst)
        self._report.faults += evidence.over_budget(found, concurrency=size.concurrency)
        self._report.figures["busiest spans"] = _said(found)
        left = [_departure(attempt) for attempt in attempts if attempt.status is not None]
        self._report.figures["busiest spans, as they left"] = _said(
            evidence.windows(left, rate=size.rate, burst=size.burst)
        )
        held = await self._holds()
        self._report.faults += evidence.shared(held)
        self._report.faults += evidence.unleased(attempts, held)
        most = evidence.at_once(held)
        if most > size.concurrency:
            self._fault(f"{most} identities talked to the host at the same time, and {size.concurrency} may")
        self._report.figures["identities at once"] = f"{most} of {size.concurrency}"
        late: list[float] = []
        throttled = 0
        for passed in self._passed:
            if passed.round.pause:
                within = [arrival for arrival in arrivals if passed.first < arrival.number <= passed.last]
                after = evidence.stragglers(within, passed.round.pause)
                self._report.faults += evidence.ignored(after, concurrency=size.concurrency, timeout=size.fetch_timeout)
                throttled += len(after)
                late += [seconds for _, delays in after for seconds in delays]
        self._report.figures["requests after a 429"] = (
            f"{len(late)} that were on their way, after {throttled} of them; the last {max(late, default=0):.2f} s later"
        )

    def _judge_books(self, arrivals: Sequence[Arrival], attempts: Sequence[Attempt]) -> None:
        books = evidence.compare(arrivals, attempts)
        session = self._size.patience
        self._report.faults += evidence.unexplained(books, self._kills, session=min(session, 30.0))
        self._report.figures["arrivals and rows"] = (
            f"{books.matched} pairs, {len(books.unwritten)} requests without a row, {len(books.invented)} rows without a request"
        )

    def _judge_refusals(self, arrivals: Sequence[Arrival]) -> None:
        """Of an hour in which everybody is refused a few requests find out, and after it one at a time asks; a proxy that was tired is
        let in again later."""
        size = self._size
        hours: list[int] = []
        tired: dict[int | None, float] = {}
        agent = _agent(self._plan.refused)
        for passed in self._passed:
            within = [arrival for arrival in arrivals if passed.first < arrival.number <= passed.last]
            refused = [arrival for arrival in within if arrival.status == 403 and arrival.agent != agent]
            if passed.round.everybody:
                hours.append(len(refused))
            if passed.round.trouble == "tired":
                tired |= {arrival.proxy: arrival.at for arrival in refused}
        # Six refused identities open the circuit; as many as may be at work can be on their way then, and each is tried once more.
        if any(count > 6 + 2 * size.concurrency for count in hours):
            self._fault(f"in an hour in which everybody was refused so many asked: {hours}")
        again = [
            proxy
            for proxy, at in tired.items()
            if any(a.proxy == proxy and a.at > at and a.status == 200 for a in arrivals)
        ]
        self._report.figures["refusals in each hour in which everybody is refused"] = ", ".join(map(str, hours))
        self._report.figures["tired proxies"] = f"{len(tired)}, {len(again)} of them let in again"
        if len(arrivals) >= _ENOUGH and 2 * len(again) < len(tired):
            self._fault(f"of {len(tired)} proxies that were tired only {len(again)} were let in again")

    def _judge_browsers(self, arrivals: Sequence[Arrival]) -> None:
        """The browser that is refused is asked with less and less."""
        agent = _agent(self._plan.refused)

        def share(number: Callable[[Round], bool]) -> float:
            spans = [(p.first, p.last) for p in self._passed if number(p.round) and not p.round.everybody]
            asked = [a for a in arrivals if any(first < a.number <= last for first, last in spans)]
            return sum(a.agent == agent for a in asked) / max(len(asked), 1)

        whole = sum(profile.weight for profile in PROFILES)
        usual = next(profile.weight for profile in PROFILES if profile.name == self._plan.refused) / whole
        half = len(self._plan.rounds) // 2
        late = share(lambda r: r.number > half)
        self._report.figures["share of the refused browser"] = (
            f"{self._plan.refused}: {usual:.1%} by its weight, {share(lambda r: r.number == 0):.1%} before it was refused, "
            f"{share(lambda r: 0 < r.number <= half):.1%} in the first half, {late:.1%} in the second"
        )
        if len(arrivals) >= _ENOUGH and late > 0.6 * usual:
            self._fault(f"{self._plan.refused} is refused all the time, and is still {late:.1%} of all requests")


def _said(found: Sequence[evidence.Window]) -> str:
    return ", ".join(f"{w.requests} in {w.seconds:g} s ({w.beyond:+g} to {w.allowed:g})" for w in found)


def _departure(attempt: Attempt) -> Arrival:
    return Arrival(
        number=attempt.id, at=attempt.began, host="", path="", proxy=attempt.proxy, agent=attempt.agent, status=0
    )


def _agent(name: str) -> str:
    return next(profile.user_agent for profile in PROFILES if profile.name == name)


async def run(
    size: Size,
    seed: int,
    url: str,
    folder: Path,
    leash: Leash,
    say: Callable[[str], None] = lambda _: None,
    platform: str = "dutchie",
) -> Report:
    """One run of one platform in that folder, against that database, which is at the newest schema and empty."""
    return await Soak(size, seed, url, folder, leash, say, platform).run()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=None, help="repeats the plan of that run")
    parser.add_argument("--short", action="store_true", help="the form that is part of `make test`")
    parser.add_argument(
        "--platform", default="all", help="one platform (%(default)s: three days of Dutchie, a day of each other)"
    )
    given = parser.parse_args()
    seed = int(time.time()) if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    telemetry.configure("json", "error")
    names = simulated_platforms() if given.platform == "all" else [given.platform]
    return max(_run_on(name, FULL if name == names[0] and not given.short else SHORT, seed) for name in names)


def _run_on(platform: str, size: Size, seed: int) -> int:
    """One platform, on a database of its own; the exit code."""
    print(f"platform {platform}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="mw-soak-", dir="/tmp" if Path("/tmp").is_dir() else None))
    folder.chmod(0o755)
    with Leash(folder) as leash:
        server = Server(folder, started=leash.hold, ended=leash.let_go)
        try:
            migrate.migrate(server.url)
            report = asyncio.run(
                run(size, seed, server.url, folder, leash, lambda line: print(line, flush=True), platform)
            )
        finally:
            server.stop()
    print("\n".join(report.lines()), flush=True)
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main())
