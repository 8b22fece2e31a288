"""A session: one identity for all requests of a task, changed only when it is refused or its proxy is at fault."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, Protocol
from urllib.parse import urlsplit

from psycopg import AsyncConnection

from menuwatch.core.clock import Clock
from menuwatch.core.errors import MenuwatchError, Transient
from menuwatch.core.http import Expect, Response
from menuwatch.core.telemetry import get_logger
from menuwatch.fetch import attempts as rows
from menuwatch.fetch.attempts import Attempt
from menuwatch.fetch.reaction import Move, Tries, failure, react
from menuwatch.fetch.transport import Exchange, Method, Transport
from menuwatch.fetch.verdict import Blame, Judgement, Verdict, judge_answer, judge_fault
from menuwatch.proxies.health import Event

log = get_logger(__name__)

_REFUSALS = (Verdict.BLOCKED, Verdict.CHALLENGE)
_LONGEST_ERROR = 500


class Desk(Protocol):
    """Where a session gets identities, and tells how their proxies did."""

    async def assume(self, *, state: str | None, avoid: Collection[int], profiles: Collection[str]) -> Transport:
        """A fresh identity; proxies to `avoid` and `profiles` that were refused only where there is no other. Raises NoProxy."""
        ...

    async def retire(self, transport: Transport) -> None:
        """Closes an identity that is no longer used."""
        ...

    async def record(
        self, proxy_id: int, event: Event, *, elapsed_ms: float | None = None, error: str | None = None
    ) -> None:
        """Counts an event for a proxy."""
        ...


class _Trail:
    """What one request has met so far, kept until its end shows who was to blame.

    A refusal is the proxy's when another proxy was let in, and the host's when several proxies were refused and none let in. A
    fault that proxy or target may have caused is the proxy's when another proxy reached the target.
    """

    def __init__(self) -> None:
        self.refused: Counter[int] = Counter()
        self.profiles: set[str] = set()
        self.suspects: dict[int, str] = {}
        self.faulty: set[int] = set()
        self.reached: set[int] = set()
        self.reason: dict[int, str] = {}

    @property
    def avoid(self) -> set[int]:
        return self.faulty | set(self.refused)

    def add(self, proxy_id: int, profile: str, judgement: Judgement, *, answered: bool) -> None:
        if answered:
            self.reached.add(proxy_id)
        if judgement.verdict in _REFUSALS:
            self.refused[proxy_id] += 1
            self.profiles.add(profile)
            self.reason[proxy_id] = judgement.reason
        elif judgement.blame is Blame.PROXY_OR_TARGET:
            self.suspects[proxy_id] = judgement.reason
        if judgement.blame in (Blame.PROXY, Blame.PROXY_OR_TARGET) or judgement.verdict is Verdict.PATH_RESET:
            self.faulty.add(proxy_id)

    def verdicts(self, let_in: int | None) -> list[tuple[int, Event, str]]:
        """What is to be counted, once it is known which proxy was let in (None: none was)."""
        found: list[tuple[int, Event, str]] = []
        event = Event.HOST_REFUSES if let_in is None and len(self.refused) > 1 else Event.REFUSED
        # One refusal a request and proxy, however many browsers it tried: a pool of one is not used up by a single request. The same
        # proxy with another browser was let in: the proxy was not the trouble.
        found.extend((proxy_id, event, self.reason[proxy_id]) for proxy_id in self.refused if proxy_id != let_in)
        for proxy_id, reason in self.suspects.items():
            if self.reached - {proxy_id} and proxy_id not in self.reached:
                found.append((proxy_id, Event.FAULT, reason))
        return found


class FetchSession:
    """Asks for one task. Implements `core.http.Session`; requests of one session wait for each other, as in one browser tab."""

    def __init__(
        self,
        desk: Desk,
        *,
        task_id: int | None,
        dispensary_id: int | None,
        state: str | None,
        clock: Clock,
        retry_base_seconds: float,
        rng: random.Random,
    ) -> None:
        self._desk = desk
        self._task_id = task_id
        self._dispensary_id = dispensary_id
        self._state = state
        self._clock = clock
        self._base = retry_base_seconds
        self._rng = rng
        self._turn = asyncio.Lock()
        self._transport: Transport | None = None
        self.attempts: list[Attempt] = []

    @property
    def figures(self) -> Mapping[str, int]:
        """`requests` made, `blocked` among them, `rotations` of the identity, `bytes` of answers, so far."""
        return {
            "requests": len(self.attempts),
            "blocked": sum(attempt.verdict in _REFUSALS for attempt in self.attempts),
            "rotations": sum(attempt.rotated for attempt in self.attempts),
            "bytes": sum(attempt.bytes for attempt in self.attempts),
        }

    async def write_attempts(self, conn: AsyncConnection[Any]) -> None:
        """Inserts a row per request made so far, within the caller's transaction."""
        await rows.insert(conn, self.attempts)

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
        """Asks, rotating where that helps. Raises Blocked, Throttled (NoProxy among them), Transient, Permanent; see `reaction`."""
        async with self._turn:
            trail = _Trail()
            try:
                answer = await self._ask(trail, method, url, params=params, json=json, headers=headers, expect=expect)
            except MenuwatchError:
                await self._settle(trail, None)
                raise
            await self._settle(trail, self._transport.identity.proxy.id if self._transport else None)
            return answer

    async def _ask(self, trail: _Trail, method: Method, url: str, *, expect: Expect, **what: Any) -> Response:
        host = urlsplit(url).netloc.rpartition("@")[2]
        tries = Tries()
        while True:
            transport = await self._identity(trail, tries)
            identity = transport.identity
            started = self._clock.now()
            exchange = await transport.send(method, url, expect=expect, **what)
            judgement = self._judge(exchange, expect)
            answered = exchange.answer is not None
            trail.add(identity.proxy.id, identity.profile.name, judgement, answered=answered)
            move = react(judgement.verdict, tries, answered=answered)
            good = judgement.verdict is Verdict.OK
            self.attempts.append(
                Attempt(
                    task_id=self._task_id,
                    dispensary_id=self._dispensary_id,
                    host=host,
                    proxy_id=identity.proxy.id,
                    profile=identity.profile.name,
                    verdict=judgement.verdict,
                    status=exchange.answer.status if exchange.answer is not None else None,
                    rotated=move in (Move.ROTATE, Move.REROUTE),
                    bytes=exchange.bytes,
                    elapsed_ms=exchange.elapsed_ms,
                    error=None if good else judgement.reason[:_LONGEST_ERROR],
                    attempted_at=started,
                )
            )
            if not good:
                log.info(
                    "request was not answered as asked",
                    action="fetch_attempt",
                    task_id=self._task_id,
                    dispensary_id=self._dispensary_id,
                    proxy_id=identity.proxy.id,
                    profile=identity.profile.name,
                    host=host,
                    verdict=judgement.verdict,
                    blame=judgement.blame,
                    reaction=move,
                    reason=judgement.reason,
                )
            if judgement.blame is Blame.PROXY:
                await self._desk.record(identity.proxy.id, Event.FAULT, error=judgement.reason)
            if move is Move.RETURN:
                assert exchange.answer is not None, "only answers are returned"
                await self._desk.record(identity.proxy.id, Event.SUCCESS, elapsed_ms=exchange.elapsed_ms)
                return exchange.answer
            if move is Move.GIVE_UP:
                raise failure(judgement, host, tries.total + 1)
            if move in (Move.ROTATE, Move.REROUTE):
                await self._drop()
            if move in (Move.ROTATE, Move.AGAIN):
                await self._wait(tries)

    async def _identity(self, trail: _Trail, tries: Tries) -> Transport:
        """The identity at hand, else a fresh one."""
        if self._transport is None:
            self._transport = await self._desk.assume(state=self._state, avoid=trail.avoid, profiles=trail.profiles)
            proxy_id = self._transport.identity.proxy.id
            if tries.reroutes and proxy_id in trail.faulty:
                raise Transient(f"no other proxy is active: {self.attempts[-1].error}")
        return self._transport

    def _judge(self, exchange: Exchange, expect: Expect) -> Judgement:
        if exchange.fault is not None:
            return judge_fault(exchange.fault)
        answer = exchange.answer
        assert answer is not None, "an exchange holds an answer or a fault"
        return judge_answer(answer.status, answer.headers, answer.body, expect=expect, now=self._clock.now())

    async def _settle(self, trail: _Trail, let_in: int | None) -> None:
        for proxy_id, event, reason in trail.verdicts(let_in):
            await self._desk.record(proxy_id, event, error=reason)

    async def _wait(self, tries: Tries) -> None:
        """Twice as long each time, spread by half to either side, so that workers refused together do not return together."""
        seconds = self._base * 2 ** (tries.total - 1) * self._rng.uniform(0.5, 1.5)
        await asyncio.sleep(seconds)

    async def start(self) -> None:
        """Takes the first identity; raises NoProxy."""
        self._transport = await self._desk.assume(state=self._state, avoid=(), profiles=())

    async def _drop(self) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            await self._desk.retire(transport)

    async def close(self) -> None:
        """Retires the identity, once no request is under way."""
        async with self._turn:
            await self._drop()
