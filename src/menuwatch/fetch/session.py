"""A session: one identity for all requests of a task, changed only when it is refused or its proxy is at fault."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Collection, Mapping
from typing import Any

from menuwatch.core.clock import Clock
from menuwatch.core.errors import MenuwatchError, Transient
from menuwatch.core.http import Expect, Response
from menuwatch.fetch.attempts import Attempt
from menuwatch.fetch.desk import Desk, Holding, Pause, Permit, sleep
from menuwatch.fetch.leases import Denied
from menuwatch.fetch.notebook import LONGEST_ERROR, Notebook
from menuwatch.fetch.reaction import Move, Tries, failure, react
from menuwatch.fetch.redirects import Journey
from menuwatch.fetch.trail import Trail
from menuwatch.fetch.transport import Exchange, Method
from menuwatch.fetch.verdict import HEAD, Blame, Happening, Judgement, Verdict, judge
from menuwatch.hosts.model import FIRST_TURN, host_of

_DISCREDITING = (Blame.IDENTITY, Blame.PROXY, Blame.PROXY_OR_TARGET)
"""Blame after which the same identity asks nothing more."""
_QUIET_SECONDS = 10.0
"""For how long good news may wait."""
_BRIEF_TRIES = 20
"""Times that a session in the middle of its work tries again for an identity where all are in use at the moment."""


class FetchSession:
    """Asks for one task. Implements `core.http.Session`; requests of one session wait for each other, as in one browser tab."""

    def __init__(
        self,
        desk: Desk,
        *,
        task_id: int | None,
        dispensary_id: int | None,
        state: str | None,
        hosts: Collection[str],
        clock: Clock,
        retry_base_seconds: float,
        rng: random.Random,
        pause: Pause = sleep,
        permit: Permit | None = None,
    ) -> None:
        self._desk = desk
        self._task_id = task_id
        self._dispensary_id = dispensary_id
        self._state = state
        self._hosts = frozenset(host.lower() for host in hosts)
        self._clock = clock
        self._base = retry_base_seconds
        self._rng = rng
        self._pause = pause
        self._permit = permit
        self._turn = asyncio.Lock()
        self._holding: Holding | None = None
        self._ended: int | None = None
        """The lease of an identity that was put away, to be given back with the next one or at the end."""
        self._notebook = Notebook()

    @property
    def attempts(self) -> list[Attempt]:
        """The requests that were made so far."""
        return self._notebook.attempts

    @property
    def figures(self) -> Mapping[str, int]:
        """Of the requests so far; see `Notebook`."""
        return self._notebook.figures

    async def request(
        self,
        method: Method,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        json: Any | None = None,
        headers: Mapping[str, str] | None = None,
        expect: Expect = "json",
    ) -> Response:
        """Asks, rotating where that helps, and follows redirects to hosts that may be asked. Raises Blocked, Throttled (Denied and
        NoProxy among them), Transient, Permanent; see `reaction`."""
        async with self._turn:
            return await self._follow(method, url, params=params, json=json, headers=headers, expect=expect)

    async def plain(self, url: str) -> Response:
        """A document, asked for within a request of this session and without a look at robots.txt: it is that which is asked for."""
        return await self._follow("GET", url, expect="html", admitted=True)

    def doubt(self, kind: str, reason: str) -> None:
        """Whoever asked could not use the last answer; `kind` is a BadPayload's."""
        self._notebook.doubt(kind, reason)

    async def wait(self, seconds: float) -> None:
        """Waits as the session's task does."""
        await self._pause(seconds)

    async def _follow(
        self,
        method: Method,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        json: Any | None = None,
        headers: Mapping[str, str] | None = None,
        expect: Expect,
        admitted: bool = False,
    ) -> Response:
        way = Journey(method, url, params=params, json=json, hosts=self._hosts)
        while True:
            if not admitted:
                await self._desk.admit(self, way.address)
            answer = await self._settled(
                way.method, way.url, params=way.params, json=way.json, headers=headers, expect=expect
            )
            if not way.leads_on(answer):
                return answer

    async def _settled(self, method: Method, url: str, **what: Any) -> Response:
        trail = Trail()
        try:
            answer = await self._ask(trail, method, url, **what)
        except MenuwatchError as error:
            shut = isinstance(error, Denied) and error.code == "circuit"
            self._notebook.settle(host_of(url), trail, None, host_refuses=shut)
            raise
        self._notebook.settle(host_of(url), trail, self._holding.lease.proxy_id if self._holding else None)
        if trail.refused or trail.probing or self._notebook.age >= _QUIET_SECONDS:
            # Others must not take the host for one that lets nobody in.
            await self._tell()
        return answer

    async def _ask(self, trail: Trail, method: Method, url: str, *, expect: Expect, **what: Any) -> Response:
        host = host_of(url)
        tries = Tries()
        while True:
            holding, waited = await self._ready(host, trail, tries)
            if self._permit is not None:
                await self._permit()
            identity = holding.worn.transport.identity
            started = self._clock.now()
            exchange = await holding.worn.transport.send(method, url, expect=expect, **what)
            judgement = self._judge(exchange, expect)
            if exchange.fault is not None and exchange.fault.sent and exchange.fault.connections > 1:
                # libcurl asked again by itself when the target turned its connections away.
                await self._desk.charge(host, exchange.fault.connections - 1)
            answered = exchange.answer is not None
            trail.add(identity.proxy.id, identity.profile.name, judgement, answered=answered)
            move = react(judgement.verdict, tries, answered=answered)
            good = judgement.verdict is Verdict.OK
            self._notebook.note(
                Attempt(
                    task_id=self._task_id,
                    dispensary_id=self._dispensary_id,
                    host=host,
                    proxy_id=identity.proxy.id,
                    profile=identity.profile.name,
                    verdict=judgement.verdict,
                    blame=judgement.blame,
                    reaction=move,
                    status=exchange.answer.status if exchange.answer is not None else None,
                    rotated=move in (Move.ROTATE, Move.REROUTE),
                    waited_ms=waited * 1000,
                    bytes=exchange.bytes,
                    elapsed_ms=exchange.elapsed_ms,
                    error=None if good else judgement.reason[:LONGEST_ERROR],
                    attempted_at=started,
                ),
                judgement,
            )
            if move is Move.RETURN:
                assert exchange.answer is not None, "only answers are returned"
                if not good:
                    await self._tell()
                return exchange.answer
            if move is not Move.AGAIN and (move is not Move.GIVE_UP or judgement.blame in _DISCREDITING):
                await self._drop(keep=False)
            await self._tell()
            if move is Move.GIVE_UP:
                raise failure(judgement, host, tries.total + 1)
            if move in (Move.ROTATE, Move.AGAIN):
                await self._wait(tries)

    async def _ready(self, host: str, trail: Trail, tries: Tries) -> tuple[Holding, float]:
        """An identity whose turn it is, and how many seconds it waited for that."""
        waited = 0.0
        while True:
            holding = self._holding
            if holding is None:
                before = time.monotonic()
                holding = self._holding = await self._lease(host, trail, tries)
                trail.probing = trail.probing or holding.lease.probing
                trail.known(
                    holding.lease.proxy_id,
                    holding.worn.transport.identity.profile.name,
                    holding.proxy_score,
                    holding.profile_score,
                )
                waited += time.monotonic() - before
            waited += await self._desk.turn(holding, host, pause=self._pause)
            if not holding.lost:
                return holding, waited
            await self._drop(keep=False)

    async def _lease(self, host: str, trail: Trail, tries: Tries) -> Holding:
        first = not self.attempts
        for left in range(_BRIEF_TRIES, -1, -1):
            give_back, self._ended = self._ended, None
            try:
                holding = await self._desk.assume(
                    host,
                    task_id=self._task_id,
                    state=self._state,
                    avoid=trail.avoid,
                    profiles=trail.profiles,
                    give_back=give_back,
                    patience=FIRST_TURN if first else 86_400.0,
                )
            except BaseException as error:
                self._ended = give_back
                if not isinstance(error, MenuwatchError):
                    raise
                # Nothing has been asked yet: the task can wait as well as this session.
                if first or not (isinstance(error, Denied) and error.is_brief and left):
                    raise
                await self._pause(error.retry_after or 0.5)
            else:
                if tries.reroutes and holding.lease.proxy_id in trail.faulty:
                    self._holding = holding
                    raise Transient(f"no other proxy is active: {self.attempts[-1].error}")
                return holding
        raise AssertionError("the last try returns or raises")

    def _judge(self, exchange: Exchange, expect: Expect) -> Judgement:
        answer = exchange.answer
        if answer is None:
            return judge(Happening(fault=exchange.fault, expect=expect, now=self._clock.now()))
        return judge(
            Happening(
                status=answer.status,
                headers=answer.headers,
                start=answer.body[:HEAD],
                size=len(answer.body),
                expect=expect,
                now=self._clock.now(),
            )
        )

    async def _wait(self, tries: Tries) -> None:
        """Twice as long each time, spread by half to either side, so that workers refused together do not return together. Another
        proxy in the place of one at fault waits for nothing, and makes nothing wait longer."""
        seconds = self._base * 2 ** (tries.total - tries.reroutes - 1) * self._rng.uniform(0.5, 1.5)
        if seconds > 0:
            await self._pause(seconds)

    async def _tell(self) -> None:
        """Writes down what is new: others should hear of bad news at once."""
        await self._desk.report(self._notebook.torn_out())

    async def _drop(self, *, keep: bool) -> None:
        holding, self._holding = self._holding, None
        if holding is not None:
            self._give_back()
            self._ended = holding.lease.id
            await self._desk.retire(holding, keep=keep and not holding.lost)

    def _give_back(self) -> None:
        if self._ended is not None:
            self._notebook.give_back(self._ended)
            self._ended = None

    async def close(self) -> None:
        """Puts the identity away and writes down what is left to tell, once no request is under way."""
        async with self._turn:
            await self._drop(keep=True)
            self._give_back()
            await self._tell()
