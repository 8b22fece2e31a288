"""Worker processes of this machine, as many as people order: a supervisor whose number changes.

    wanted rises ──► starts ──registers──► runs ──┬── crash, or an end nobody asked for ──► starts again, later each time
                                                  └── one too many, or told by an operator ──► finishes what it has, ends
    stop: SIGTERM to all ──► they have the grace time ──► SIGKILL

The number lies in the database (`hold`), and one supervisor holds it. Another one stands by and takes over; one that finds somebody
else holding it has its workers leave, so that for a moment there are too many rather than too few. Every step looks at what is there
and decides by that alone: what happened in between, and to whom, does not matter.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random

import psycopg
from psycopg_pool import PoolTimeout

from menuwatch.cluster import hold
from menuwatch.cluster.base import Limits
from menuwatch.cluster.hold import Count, Holder, Member
from menuwatch.cluster.process import REFUSED, cause, end, launch, send
from menuwatch.cluster.supervisor import Ended, Rules
from menuwatch.core.machine import processors
from menuwatch.core.telemetry import get_logger
from menuwatch.db.pool import Connection, Pool
from menuwatch.workers import commands
from menuwatch.workers.commands import Command
from menuwatch.workers.names import worker_name

log = get_logger(__name__)

_SLOW = 30.0
"""Seconds after which one that still has not registered does not hold up the start of others."""
_MUTE = 60.0
"""Seconds after which one that should leave and has not registered is asked by a signal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace(Rules):
    """Times in seconds: between two looks at what is ordered, and for how long the number is held after a look."""

    interval: float = 0.5
    lasting: float = 15.0


@dataclass(slots=True, eq=False)
class Post:
    """One worker, whichever process fills it. `leaving`: it is not to be filled again; `told`: its worker knows."""

    ordinal: int
    process: Process | None = None
    ended: asyncio.Task[int] | None = None
    since: datetime = field(default_factory=lambda: datetime.now(UTC))
    started: float = 0.0
    worker_id: str | None = None
    tasks: int = 0
    leaving: bool = False
    told: bool = False
    crashes: int = 0
    again: float = 0.0
    died_of: str | None = None

    @property
    def name(self) -> str:
        """What its worker is called."""
        return worker_name(self.ordinal)

    def can_be_spared(self) -> tuple[bool, bool, int, float, int]:
        """Who leaves first has the least: one without a process, one that has not begun, one with few tasks, the youngest."""
        return self.process is not None, self.worker_id is not None, self.tasks, -self.started, -self.ordinal


class Crew:
    """Keeps as many worker processes as are ordered, for as long as it holds the number. One instance is one run."""

    def __init__(
        self,
        pool: Pool,
        command: Callable[[int], Sequence[str]],
        limits: Limits,
        *,
        first: int = 1,
        asked: int | None = None,
        env: Mapping[str, str] | None = None,
        may_start: Callable[[], Awaitable[str | None]] | None = None,
        on_end: Ended | None = None,
        pace: Pace | None = None,
        who: Holder | None = None,
        rng: Random | None = None,
    ) -> None:
        """`command` gives the program and its arguments for the n-th worker (from 0); `env` None passes ours on. `asked` is ordered
        now, if nobody else holds the number; `first` is for when nobody ever ordered. `may_start` says why none can start now."""
        self._pool = pool
        self._command = command
        self._limits = limits
        self._first = first
        self._asked = asked
        self._env = env
        self._may_start = may_start
        self._on_end = on_end
        self._pace = pace or Pace()
        self._who = who or Holder()
        self._rng = rng or Random()  # noqa: S311 - jitter, no secret
        self._at_once = max(2, processors())
        self._first_look: float | None = None
        self._woken = asyncio.Event()
        self._stopping = False
        self.standing_by = False
        self._obeyed: int | None = None
        self._left = 0
        self._hindrance: str | None = None
        self._said: Count | None = None
        self._said_at = 0.0
        self.posts: list[Post] = []
        self.looked = asyncio.Event()
        """Set once it has looked for the first time, and started whom it may."""

    @property
    def holding(self) -> bool:
        """Whether it is this supervisor that obeys."""
        return self._obeyed is not None

    def stop(self) -> None:
        """Asks for a graceful stop; `run` returns when it is done. May be called from a signal handler of the event loop."""
        self._stopping = True
        self._woken.set()

    async def run(self) -> None:
        """Runs until stopped. What fails in a step (the database is away) is tried again; what runs goes on meanwhile."""
        try:
            while not self._stopping:
                self._woken.clear()
                try:
                    await self.step()
                except Exception as error:
                    away = isinstance(error, (psycopg.Error, PoolTimeout))
                    log.warning(
                        "the supervisor could not look", action="crew_step_failed", error=str(error), exc_info=not away
                    )
                self.looked.set()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._pace.interval):
                        await self._woken.wait()
            await self._wind_down()
        finally:
            for process in self.processes:
                send(process, signal.SIGKILL)
            gone = [asyncio.create_task(process.wait()) for process in self.processes]
            if gone:
                await asyncio.wait(gone, timeout=5)

    async def step(self) -> None:
        """One look, and what follows from it."""
        async with self._pool.connection(timeout=5) as conn:
            wanted = await self._wanted(conn)
            members = await hold.crew(
                conn, self._who.host, [(post.process.pid, post.since) for post in self.posts if post.process]
            )
            await self._bury(members)
            self._notice(members)
            if wanted is not None and self._left:
                wanted = await self._say(conn)
            self._left = 0
            self._obey(wanted)
            await self._tell(conn)
            await self._fill()
            if wanted is not None:
                await self._say(conn)

    async def _wanted(self, conn: Connection) -> int | None:
        """How many should run; None where another supervisor holds the number."""
        if self._obeyed is not None:
            found = await hold.look(conn)
            if found.holder == self._who.name:
                if not found.held:  # it was away for longer than it held it, and nobody else came
                    self._said = None
                return found.wanted
            log.warning("another supervisor holds the workers now", action="crew_lost", host=found.host, pid=found.pid)
            self._obeyed = None
        now = time.monotonic()
        self._first_look = self._first_look or now
        # Whoever died just before us may still count as holding it; what was asked of us long ago is nobody's wish any more.
        fresh = now - self._first_look < 2 * self._pace.lasting
        wanted = await hold.take(
            conn,
            self._who,
            self._limits,
            lasting=self._pace.lasting,
            asked=self._asked if fresh else None,
            first=self._first,
        )
        if wanted is not None:
            log.info("this supervisor holds the workers", action="crew_held", wanted=wanted)
            self._asked, self._said, self.standing_by = None, None, False
        elif not self.standing_by:
            found = await hold.look(conn)
            log.info(
                "another supervisor holds the workers; this one stands by",
                action="crew_standing_by",
                host=found.host,
                pid=found.pid,
            )
            self.standing_by = True
        return wanted

    async def _bury(self, members: Mapping[int, Member]) -> None:
        """What follows from the end of a process."""
        for post in list(self.posts):
            if post.process is None or post.ended is None or not post.ended.done():
                continue
            pid, code = post.process.pid, post.ended.result()
            told = pid in members and members[pid].told
            if self._on_end is not None:
                await self._on_end(pid=pid, since=post.since)
            post.process = post.ended = post.worker_id = None
            if post.leaving or told:
                self._left += not post.leaving
                self.posts.remove(post)
                log.info("a worker has left", action="crew_worker_left", name=post.name, pid=pid)
            else:
                self._crashed(post, code)

    def _crashed(self, post: Post, code: int) -> None:
        if time.monotonic() - post.started >= self._pace.proven:
            post.crashes = 0
        pause = self._pace.restart.delay(post.crashes, self._rng)
        post.crashes += 1
        post.again = time.monotonic() + pause
        post.died_of = "refused to start, its log says why" if code == REFUSED else f"ended: {cause(code)}"
        log.warning(
            "a worker crashed and is started again",
            action="crew_worker_crashed",
            name=post.name,
            died_of=cause(code),
            crashes=post.crashes,
            again_in_seconds=round(pause, 2),
        )

    def _notice(self, members: Mapping[int, Member]) -> None:
        """What the registry says of those that run: that they have begun, and whom somebody told to leave."""
        for post in self.posts:
            if post.process is None or (member := members.get(post.process.pid)) is None:
                continue
            post.worker_id, post.tasks, post.died_of = member.worker_id, member.tasks, None
            if member.told:
                self._left += not post.leaving
                post.leaving = post.told = True

    def _obey(self, wanted: int | None) -> None:
        """Has as many posts as are wanted, beside those that leave; none where somebody else holds the number."""
        if wanted is not None and wanted != self._obeyed and self._obeyed is not None:
            log.info("another number is wanted", action="crew_wanted", was=self._obeyed, wanted=wanted)
        self._obeyed = wanted
        target = min(wanted or 0, self._limits.high)
        staying = [post for post in self.posts if not post.leaving]
        taken = {post.ordinal for post in self.posts}
        free = (ordinal for ordinal in range(len(taken) + target) if ordinal not in taken)
        self.posts += [Post(next(free)) for _ in range(target - len(staying))]
        for post in sorted(staying, key=Post.can_be_spared)[: max(len(staying) - target, 0)]:
            post.leaving = True
            if post.process is None:
                self.posts.remove(post)

    async def _tell(self, conn: Connection) -> None:
        """Those that should leave are told as an operator would tell them."""
        for post in self.posts:
            if not post.leaving or post.told or post.process is None:
                continue
            if post.worker_id is not None:
                await commands.give(conn, post.worker_id, Command.DECOMMISSION, "supervisor")
                post.told = True
            elif time.monotonic() - post.started > _MUTE:
                send(post.process, signal.SIGTERM)

    async def _fill(self) -> None:
        """Starts what should run and does not, a few at a time: each needs a processor until it has loaded."""
        now = time.monotonic()
        due = [post for post in self.posts if post.process is None and post.again <= now]
        self._hindrance = await self._may_start() if due and self._may_start is not None else None
        if self._hindrance is not None:
            return
        loading = sum(
            post.process is not None and post.worker_id is None and now - post.started < _SLOW for post in self.posts
        )
        for post in due[: max(self._at_once - loading, 0)]:
            post.since, post.started = datetime.now(UTC), now
            try:
                post.process = await launch(self._command(post.ordinal), self._env)
            except OSError as error:
                # No memory, no more processes: as good as a crash, and worth another try.
                log.warning("a worker could not be started", action="crew_worker_unstarted", error=str(error))
                self._crashed(post, 1)
                continue
            post.ended = asyncio.create_task(post.process.wait(), name=f"worker-{post.process.pid}")
            post.ended.add_done_callback(lambda _: self._woken.set())
            log.info("worker process started", action="crew_worker_started", name=post.name, pid=post.process.pid)

    async def _say(self, conn: Connection) -> int | None:
        """Says how it stands, if that is new or the time is nearly over; returns how many are wanted."""
        count, now = self._count(), time.monotonic()
        if count == self._said and not self._left and now - self._said_at < self._pace.lasting / 4:
            return self._obeyed
        wanted = await hold.keep(
            conn,
            self._who,
            count,
            lasting=self._pace.lasting,
            obeyed=0 if self._obeyed is None else self._obeyed,
            left=self._left,
        )
        self._said, self._said_at = count, now
        return wanted

    def _count(self) -> Count:
        working = [post for post in self.posts if post.process is not None]
        staying = [post for post in working if not post.leaving]
        running = sum(post.worker_id is not None for post in staying)
        return Count(
            running=running,
            starting=len(staying) - running,
            leaving=len(working) - len(staying),
            trouble=self._trouble(),
        )

    def _trouble(self) -> str | None:
        if self._hindrance is not None:
            return f"none can start now: {self._hindrance}"
        fallen = [post for post in self.posts if post.process is None and post.died_of is not None]
        if not fallen:
            return None
        others = f", and {len(fallen) - 1:,} more," if len(fallen) > 1 else ""
        return f"{fallen[0].name}{others} {fallen[0].died_of}; started again in a moment"

    @property
    def processes(self) -> list[Process]:
        """Those that run."""
        return [post.process for post in self.posts if post.process is not None and post.process.returncode is None]

    async def _wind_down(self) -> None:
        """Gives the number to whoever stands by, and has everybody stop."""
        try:
            async with self._pool.connection(timeout=5) as conn:
                await hold.let_go(conn, self._who)
        except (psycopg.Error, PoolTimeout) as error:
            log.warning("the number could not be given up", action="crew_step_failed", error=str(error))
        working = [(post, post.process, post.ended) for post in self.posts if post.process and post.ended]
        await asyncio.gather(
            *(end(process, ended, grace=self._pace.grace) for _, process, ended in working if not ended.done())
        )
        for post, process, ended in working:
            await ended
            if self._on_end is not None:
                await self._on_end(pid=process.pid, since=post.since)
        log.info("the supervisor has stopped", action="crew_stopped", workers=len(working))
