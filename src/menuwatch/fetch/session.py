"""A session: one identity for all requests of a task, changed only when it is refused or its proxy is at fault."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol
from urllib.parse import urljoin, urlsplit

from menuwatch.core.clock import Clock
from menuwatch.core.errors import MenuwatchError, Permanent, Transient
from menuwatch.core.http import Expect, Response
from menuwatch.core.telemetry import get_logger
from menuwatch.fetch.admission import Asker
from menuwatch.fetch.attempts import Attempt
from menuwatch.fetch.leases import Denied, Lease
from menuwatch.fetch.ledger import Report
from menuwatch.fetch.reaction import REACTIONS, Move, Tries, failure, react
from menuwatch.fetch.scores import Experience, Score
from menuwatch.fetch.trail import Trail
from menuwatch.fetch.transport import Exchange, Method, with_params
from menuwatch.fetch.verdict import HEAD, Blame, Happening, Judgement, Verdict, judge
from menuwatch.fetch.wardrobe import Worn
from menuwatch.hosts.model import FIRST_TURN, host_of
from menuwatch.hosts.rules import LetIn, SlowDown, Trouble, TurnedAway
from menuwatch.proxies.health import Event, Happened

log = get_logger(__name__)

REFUSALS = (Verdict.BLOCKED, Verdict.CHALLENGE)
_DISCREDITING = (Blame.IDENTITY, Blame.PROXY, Blame.PROXY_OR_TARGET)
"""Blame after which the same identity asks nothing more."""
_NOTHING_IN_IT = ("empty", "no_data")
_LONGEST_ERROR = 500
_HOPS = 5
"""Redirects that are followed for one request."""
_QUIET_SECONDS = 10.0
"""For how long good news may wait."""
_BRIEF_TRIES = 20
"""Times that a session in the middle of its work tries again for an identity where all are in use at the moment."""

Pause = Callable[[float], Awaitable[None]]
Permit = Callable[[], Awaitable[None]]


async def sleep(seconds: float) -> None:
    """The plain way to wait."""
    await asyncio.sleep(seconds)


@dataclass(slots=True, eq=False)
class Holding:
    """An identity at work: its lease, what it wears, and what was known of both when it was chosen."""

    lease: Lease
    worn: Worn
    proxy_score: Score = field(default_factory=Score)
    profile_score: Score = field(default_factory=Score)
    renewed: float = field(default_factory=time.monotonic)
    lost: bool = False
    """The lease lapsed: somebody else may be using the proxy."""
    _turned: bool = False

    def first_turn(self) -> float | None:
        """The moment that came with the lease, once, where it has not gone by."""
        if self._turned:
            return None
        self._turned = True
        return self.lease.turn if self.lease.turn >= time.monotonic() - 1.0 else None


class Desk(Protocol):
    """Where a session gets identities and turns, and tells what happened."""

    async def assume(
        self,
        host: str,
        *,
        task_id: int | None,
        state: str | None,
        avoid: Collection[int],
        profiles: Collection[str],
        give_back: int | None,
        patience: float,
    ) -> Holding:
        """A fresh identity for the host; proxies to `avoid` and `profiles` that were refused only where there is no other. `give_back`
        is the lease of the one before. Raises Denied, NoProxy."""
        ...

    async def turn(self, holding: Holding, host: str, *, pause: Pause) -> float:
        """Waits until the host may be asked, and says how many seconds that took; `host` is another one than the lease's where a
        redirect led there. Raises Denied."""
        ...

    async def charge(self, host: str, times: int) -> None:
        """Counts requests that were made without a turn."""
        ...

    async def retire(self, holding: Holding, *, keep: bool) -> None:
        """Puts an identity away, to be used again or not."""
        ...

    async def report(self, report: Report) -> None:
        """Writes down what happened."""
        ...

    async def admit(self, asker: Asker, url: str) -> None:
        """Returns where the host's robots.txt lets the address be asked; see `admission`."""
        ...


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
        self._report = Report()
        self._told = time.monotonic()
        self.attempts: list[Attempt] = []

    @property
    def figures(self) -> Mapping[str, int]:
        """`requests` made, `blocked` among them, `rotations` of the identity, `bytes` of answers, so far."""
        return {
            "requests": len(self.attempts),
            "blocked": sum(attempt.verdict in REFUSALS for attempt in self.attempts),
            "rotations": sum(attempt.rotated for attempt in self.attempts),
            "bytes": sum(attempt.bytes for attempt in self.attempts),
        }

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
        """Whoever asked could not use the last answer; `kind` is a BadPayload's. Its attempt is put down for what it was, unless it is
        written already."""
        last = self.attempts[-1] if self.attempts else None
        if last is None or last.verdict is not Verdict.OK or last not in self._report.attempts:
            return
        verdict = Verdict.EMPTY_SUSPECT if kind in _NOTHING_IN_IT else Verdict.SCHEMA_CHANGED
        seen = replace(last, verdict=verdict, blame=Blame.TARGET, error=reason[:_LONGEST_ERROR])
        self.attempts[-1] = seen
        self._report.attempts[self._report.attempts.index(last)] = seen

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
        origin = host_of(url)
        for _ in range(_HOPS + 1):
            if not admitted:
                await self._desk.admit(self, with_params(url, params))
            answer = await self._settled(method, url, params=params, json=json, headers=headers, expect=expect)
            target = _redirect(answer)
            if target is None:
                return answer
            self._check_hop(answer.url, target, origin)
            if answer.status == 303 or (answer.status in (301, 302) and method == "POST"):
                method, json = "GET", None
            url, params = target, None
        raise Permanent(f"{origin} redirects more than {_HOPS} times in a row, at last to {url}")

    def _check_hop(self, source: str, target: str, origin: str) -> None:
        """Raises Permanent for a redirect that leads where nobody was sent to."""
        parts = urlsplit(target)
        if parts.scheme not in ("http", "https") or (parts.scheme == "http" and source.startswith("https:")):
            raise Permanent(
                f"{host_of(source)} redirects to {parts.scheme}: only https, or http from http, is followed"
            )
        if host_of(target) not in {origin, *self._hosts}:
            allowed = ", ".join(sorted({origin, *self._hosts}))
            raise Permanent(f"{host_of(source)} redirects to {host_of(target)}, which may not be asked: only {allowed}")
        if parts.username is not None:
            raise Permanent(f"{host_of(source)} redirects to {host_of(target)} with a login, which is not followed")

    async def _settled(self, method: Method, url: str, **what: Any) -> Response:
        trail = Trail()
        try:
            answer = await self._ask(trail, method, url, **what)
        except MenuwatchError as error:
            shut = isinstance(error, Denied) and error.code == "circuit"
            self._settle(host_of(url), trail, None, host_refuses=shut)
            raise
        self._settle(host_of(url), trail, self._holding.lease.proxy_id if self._holding else None)
        if trail.refused or trail.probing or time.monotonic() - self._told >= _QUIET_SECONDS:
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
            self._note(
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
                    error=None if good else judgement.reason[:_LONGEST_ERROR],
                    attempted_at=started,
                ),
                holding,
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

    def _note(self, attempt: Attempt, holding: Holding, judgement: Judgement) -> None:
        """Puts down what one request means: for the record, for the host, for the proxy."""
        self.attempts.append(attempt)
        report = self._report
        report.attempts.append(attempt)
        proxy_id, profile, host = attempt.proxy_id, attempt.profile, attempt.host
        reaction = REACTIONS[judgement.verdict]
        if attempt.verdict is not Verdict.OK:
            log.info(
                "request was not answered as asked",
                action="fetch_attempt",
                task_id=self._task_id,
                dispensary_id=self._dispensary_id,
                proxy_id=proxy_id,
                profile=profile,
                host=host,
                verdict=attempt.verdict,
                blame=attempt.blame,
                reaction=attempt.reaction,
                reason=judgement.reason,
            )
        if reaction.identity == "good":
            report.news.append((host, LetIn()))
            report.experiences.append(Experience(host, proxy_id, profile, proxy_good=1.0, profile_good=1.0))
        elif reaction.identity == "bad":
            report.news.append((host, TurnedAway(proxy_id, profile, judgement.reason)))
        elif reaction.cools_host:
            report.news.append((host, SlowDown(judgement.retry_after, judgement.reason)))
        elif reaction.slows_host:
            report.news.append((host, Trouble(judgement.reason)))
        if judgement.blame is Blame.PROXY:
            report.proxies.append(Happened(proxy_id=proxy_id, event=Event.FAULT, error=judgement.reason))
        elif reaction.proxy_event is Event.SUCCESS and attempt.status is not None:
            report.proxies.append(Happened(proxy_id=proxy_id, event=Event.SUCCESS, elapsed_ms=attempt.elapsed_ms))

    def _settle(self, host: str, trail: Trail, let_in: int | None, *, host_refuses: bool = False) -> None:
        """What could only be known at the end of a request: whose fault refusals were, and faults that two may have caused."""
        self._report.proxies += trail.events(let_in, host_refuses=host_refuses or trail.probing)
        self._report.experiences += trail.experiences(host, let_in)

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
        report, self._report = self._report, Report()
        self._told = time.monotonic()
        await self._desk.report(report)

    async def _drop(self, *, keep: bool) -> None:
        holding, self._holding = self._holding, None
        if holding is not None:
            self._give_back()
            self._ended = holding.lease.id
            await self._desk.retire(holding, keep=keep and not holding.lost)

    def _give_back(self) -> None:
        if self._ended is not None:
            self._report.leases.append(self._ended)
            self._ended = None

    async def close(self) -> None:
        """Puts the identity away and writes down what is left to tell, once no request is under way."""
        async with self._turn:
            await self._drop(keep=True)
            self._give_back()
            await self._tell()


def _redirect(answer: Response) -> str | None:
    """Where an answer sends on to, None where it does not. Raises Permanent for what is no address."""
    location = answer.headers.get("location")
    if answer.status not in (301, 302, 303, 307, 308) or not location:
        return None
    try:
        target = urljoin(answer.url, location)
        urlsplit(target)
    except ValueError as error:
        raise Permanent(f"{host_of(answer.url)} redirects to an address that is none: {location[:200]!r}") from error
    return target
