"""A session: one identity for all requests of a task, changed only if it is refused or its proxy is at fault."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from menuwatch.core.clock import Clock
from menuwatch.core.errors import MenuwatchError, Permanent, Transient
from menuwatch.core.http import Expect, Response
from menuwatch.core.postpone import PostponeCode
from menuwatch.fetch.attempts import Attempt
from menuwatch.fetch.classify import Blame, Verdict
from menuwatch.fetch.identity_pool import LeasedIdentity
from menuwatch.fetch.leases import Denied
from menuwatch.fetch.reports import LONGEST_ERROR, ReportBuffer
from menuwatch.fetch.request_history import RequestHistory
from menuwatch.fetch.retry_policy import Action, Tries, failure, react
from menuwatch.fetch.transport import Method, with_params
from menuwatch.hosts.model import FIRST_TURN, host_of

if TYPE_CHECKING:
    from menuwatch.fetch.robots import Policy
    from menuwatch.fetch.rotator import Rotator

Pause = Callable[[float], Awaitable[None]]
"""Waits for this many seconds."""
Permit = Callable[[], Awaitable[None]]
"""Called before a request, which is not made if it raises."""

_DISCREDITING = (Blame.IDENTITY, Blame.PROXY, Blame.PROXY_OR_TARGET)
"""Blame after which the identity makes no more requests."""
_FLUSH_SECONDS = 10.0
"""Longest delay in seconds before successes are reported."""
_ACQUIRE_ATTEMPTS = 20
"""Attempts of a session in progress to acquire an identity while all are in use."""
MAX_REDIRECTS = 5
"""Redirects followed per request."""


class FetchSession:
    """Makes the requests of one task, one at a time, as in one browser tab. Implements `core.http.Session`."""

    def __init__(
        self,
        rotator: Rotator,
        *,
        task_id: int | None,
        task_attempt: int | None = None,
        dispensary_id: int | None,
        state: str | None,
        hosts: Collection[str],
        clock: Clock,
        retry_base_seconds: float,
        rng: random.Random,
        pause: Pause = asyncio.sleep,
        permit: Permit | None = None,
        robots: Policy | None = None,
    ) -> None:
        self._rotator = rotator
        self._task_id = task_id
        self._task_attempt = task_attempt
        self._dispensary_id = dispensary_id
        self._state = state
        self._hosts = frozenset(host.lower() for host in hosts)
        self._clock = clock
        self._base = retry_base_seconds
        self._rng = rng
        self._pause = pause
        self._permit = permit
        self.robots = robots
        """How robots.txt is applied to hosts without a policy of their own, such as shops' own sites."""
        self._turn = asyncio.Lock()
        self._leased: LeasedIdentity | None = None
        self._ended: int | None = None
        """Lease of a retired identity, to be released with the next one or at the end."""
        self._reports = ReportBuffer()

    @property
    def attempts(self) -> list[Attempt]:
        """Requests made so far."""
        return self._reports.attempts

    @property
    def figures(self) -> Mapping[str, int]:
        """Totals of the requests so far; see `ReportBuffer`."""
        return self._reports.figures

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
        """Send a request, rotating identities if that helps, and following redirects to permitted hosts. Raises Blocked, Throttled
        (Denied and NoProxy among them), Transient, Permanent; see `retry_policy`."""
        async with self._turn:
            return await self._follow(method, url, params=params, json=json, headers=headers, expect=expect)

    async def fetch_unchecked(self, url: str) -> Response:
        """Request robots.txt itself, within a request of this session and without the robots.txt check."""
        return await self._follow("GET", url, expect="html", admitted=True)

    def mark_unusable(self, kind: str, reason: str) -> None:
        """The caller could not use the last response; `kind` is a BadPayload's."""
        self._reports.mark_unusable(kind, reason)

    async def wait(self, seconds: float) -> None:
        """Wait as the session's task does."""
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
        chain = RedirectChain(method, url, params=params, json=json, hosts=self._hosts)
        while True:
            if not admitted:
                await self._rotator.check_robots(self, chain.address)
            answer = await self._request_with_history(
                chain.method, chain.url, params=chain.params, json=chain.json, headers=headers, expect=expect
            )
            if not chain.follow(answer):
                return answer

    async def _request_with_history(self, method: Method, url: str, **what: Any) -> Response:
        history = RequestHistory()
        try:
            answer = await self._ask(history, method, url, **what)
        except MenuwatchError as error:
            circuit_open = isinstance(error, Denied) and error.code is PostponeCode.CIRCUIT
            self._reports.settle(host_of(url), history, None, host_refuses=circuit_open)
            raise
        self._reports.settle(host_of(url), history, self._leased.lease.proxy_id if self._leased else None)
        if history.refused or history.probing or self._reports.age >= _FLUSH_SECONDS:
            # Other sessions must not conclude that the host refuses all requests.
            await self._flush_report()
        return answer

    async def _ask(self, history: RequestHistory, method: Method, url: str, *, expect: Expect, **what: Any) -> Response:
        host = host_of(url)
        tries = Tries()
        while True:
            leased, waited = await self._ready(host, history, tries)
            if self._permit is not None:
                await self._permit()
            identity = leased.pooled.transport.identity
            started = self._clock.now()
            exchange = await leased.pooled.transport.send(method, url, expect=expect, **what)
            classification = exchange.classify(expect, self._clock.now())
            if exchange.error is not None and exchange.error.sent and exchange.error.connections > 1:
                # libcurl retried internally when the target refused its connections.
                await self._rotator.charge(host, exchange.error.connections - 1)
            answered = exchange.answer is not None
            history.add(identity.proxy.id, identity.profile.name, classification, answered=answered)
            action = react(classification.verdict, tries, answered=answered)
            good = classification.verdict is Verdict.OK
            self._reports.note(
                Attempt(
                    task_id=self._task_id,
                    task_attempt=self._task_attempt,
                    dispensary_id=self._dispensary_id,
                    host=host,
                    proxy_id=identity.proxy.id,
                    profile=identity.profile.name,
                    verdict=classification.verdict,
                    blame=classification.blame,
                    reaction=action,
                    status=exchange.answer.status if exchange.answer is not None else None,
                    rotated=action in (Action.ROTATE_IDENTITY, Action.CHANGE_PROXY),
                    waited_ms=waited * 1000,
                    bytes=exchange.bytes,
                    elapsed_ms=exchange.elapsed_ms,
                    error=None if good else classification.reason[:LONGEST_ERROR],
                    attempted_at=started,
                ),
                classification,
            )
            if action is Action.RETURN:
                assert exchange.answer is not None, "only answers are returned"
                if not good:
                    await self._flush_report()
                return exchange.answer
            if action is not Action.RETRY and (action is not Action.GIVE_UP or classification.blame in _DISCREDITING):
                await self._discard_identity(keep=False)
            await self._flush_report()
            if action is Action.GIVE_UP:
                raise failure(classification, host, tries.total + 1)
            if action in (Action.ROTATE_IDENTITY, Action.RETRY):
                await self._wait(tries)

    async def _ready(self, host: str, history: RequestHistory, tries: Tries) -> tuple[LeasedIdentity, float]:
        """An identity with a request slot, and the seconds waited for it."""
        waited = 0.0
        while True:
            leased = self._leased
            if leased is None:
                before = time.monotonic()
                leased = self._leased = await self._lease(host, history, tries)
                history.probing = history.probing or leased.lease.probing
                history.known(
                    leased.lease.proxy_id,
                    leased.pooled.transport.identity.profile.name,
                    leased.proxy_score,
                    leased.profile_score,
                )
                waited += time.monotonic() - before
            waited += await self._rotator.wait_for_slot(leased, host, pause=self._pause)
            if not leased.lost:
                return leased, waited
            await self._discard_identity(keep=False)

    async def _lease(self, host: str, history: RequestHistory, tries: Tries) -> LeasedIdentity:
        first = not self.attempts
        for left in range(_ACQUIRE_ATTEMPTS, -1, -1):
            release_lease_id, self._ended = self._ended, None
            try:
                leased = await self._rotator.acquire(
                    host,
                    task_id=self._task_id,
                    state=self._state,
                    avoid=history.avoid,
                    profiles=history.profiles,
                    release_lease_id=release_lease_id,
                    max_wait=FIRST_TURN if first else 86_400.0,
                )
            except BaseException as error:
                self._ended = release_lease_id
                if not isinstance(error, MenuwatchError):
                    raise
                # No request has been made yet, so the task itself can wait.
                if first or not (isinstance(error, Denied) and error.is_brief and left):
                    raise
                await self._pause(error.retry_after or 0.5)
            else:
                if tries.reroutes and leased.lease.proxy_id in history.faulty:
                    self._leased = leased
                    raise Transient(f"no other proxy is active: {self.attempts[-1].error}")
                return leased
        raise AssertionError("the last try returns or raises")

    async def _wait(self, tries: Tries) -> None:
        """Exponential backoff with 50 % jitter, so that workers refused together do not return together. Replacing a faulty proxy
        neither waits nor increases the backoff."""
        seconds = self._base * 2 ** (tries.total - tries.reroutes - 1) * self._rng.uniform(0.5, 1.5)
        if seconds > 0:
            await self._pause(seconds)

    async def _flush_report(self) -> None:
        """Write new reports now, so that other sessions learn of failures."""
        await self._rotator.report(self._reports.drain())

    async def _discard_identity(self, *, keep: bool) -> None:
        leased, self._leased = self._leased, None
        if leased is not None:
            self._release_ended_lease()
            self._ended = leased.lease.id
            await self._rotator.retire(leased, keep=keep and not leased.lost)

    def _release_ended_lease(self) -> None:
        if self._ended is not None:
            self._reports.release_lease(self._ended)
            self._ended = None

    async def close(self) -> None:
        """Put the identity away and write the remaining reports, once no request is running."""
        async with self._turn:
            await self._discard_identity(keep=True)
            self._release_ended_lease()
            await self._flush_report()


class RedirectChain:
    """Chain of URLs of one request. `method`, `url`, `params` and `json` describe the next request."""

    def __init__(
        self, method: Method, url: str, *, params: Mapping[str, str] | None, json: Any | None, hosts: Collection[str]
    ) -> None:
        """`hosts` are the permitted hosts besides the request's own."""
        self.method: Method = method
        self.url = url
        self.params = params
        self.json = json
        self._origin = host_of(url)
        self._allowed = {self._origin, *hosts}
        self._hops = 0

    @property
    def address(self) -> str:
        """The next URL, with its parameters."""
        return with_params(self.url, self.params)

    def follow(self, answer: Response) -> bool:
        """Whether the response redirects; the target is then the next URL. Raises Permanent if it may not be followed."""
        target = _redirect_target(answer)
        if target is None:
            return False
        self._check(answer.url, target)
        if answer.status == 303 or (answer.status in (301, 302) and self.method == "POST"):
            self.method, self.json = "GET", None
        self.url, self.params = target, None
        self._hops += 1
        if self._hops > MAX_REDIRECTS:
            raise Permanent(f"{self._origin} redirects more than {MAX_REDIRECTS} times in a row, at last to {target}")
        return True

    def _check(self, source: str, target: str) -> None:
        """Raises Permanent for a redirect to a host that is not permitted."""
        parts = urlsplit(target)
        if parts.scheme not in ("http", "https") or (parts.scheme == "http" and source.startswith("https:")):
            raise Permanent(
                f"{host_of(source)} redirects to {parts.scheme}: only https, or http from http, is followed"
            )
        if host_of(target) not in self._allowed:
            allowed = ", ".join(sorted(self._allowed))
            raise Permanent(f"{host_of(source)} redirects to {host_of(target)}, which is not allowed: only {allowed}")
        if parts.username is not None:
            raise Permanent(
                f"{host_of(source)} redirects to {host_of(target)} with credentials in the URL, which is not allowed"
            )


def _redirect_target(answer: Response) -> str | None:
    """Redirect target of a response, None if there is none. Raises Permanent for an invalid URL."""
    location = answer.headers.get("location")
    if answer.status not in (301, 302, 303, 307, 308) or not location:
        return None
    try:
        target = urljoin(answer.url, location)
        urlsplit(target)
    except ValueError as error:
        raise Permanent(f"{host_of(answer.url)} redirects to an invalid URL: {location[:200]!r}") from error
    return target
