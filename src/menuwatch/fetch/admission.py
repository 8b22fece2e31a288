"""Whether a host's robots.txt lets a request pass: it is asked for once a day, by one session of all workers, as any other request.

The copy is in the host's row. Whoever finds it due claims it and asks; the others go on with the old copy, or wait for the new.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit, urlunsplit

from menuwatch.core.errors import Blocked, MenuwatchError, NotNow, Permanent, Throttled, Transient
from menuwatch.core.http import Response
from menuwatch.db.pool import Pool
from menuwatch.fetch.attempts import Attempt
from menuwatch.fetch.robots import (
    FRESH_SECONDS,
    PATH,
    RETRY_SECONDS,
    Answer,
    Known,
    Policy,
    Rules,
    decide,
    refusal,
    said,
)
from menuwatch.fetch.verdict import Blame, Verdict
from menuwatch.hosts import store as hosts
from menuwatch.hosts.model import Limits, Robots, host_of

_VIEW_SECONDS = 60.0
"""How long a process goes by what it read in the host's row."""
_LOOKS = 20
_LOOK_SECONDS = 0.25
"""Times, and how far apart, that a session looks whether somebody else has read it."""
_BUSY_SECONDS = 5.0
"""When the task comes back that has looked so often."""


class Asker(Protocol):
    """A session, as far as it is needed here."""

    @property
    def attempts(self) -> Sequence[Attempt]:
        """The requests that it made so far."""
        ...

    async def plain(self, url: str) -> Response:
        """Asks for a document, with all that this involves but a look at robots.txt."""
        ...

    async def wait(self, seconds: float) -> None:
        """Waits without keeping other work from the worker."""
        ...


@dataclass(frozen=True, slots=True)
class _View:
    """What was `read` in the row, and `until` when (both monotonic) that will do. `again` is the moment at which it is asked for next,
    `last` what came of it the last time."""

    known: Known
    read: float
    until: float
    again: float
    last: str


class Admission:
    """One per process. `policy` says what is made of a host's robots.txt; `lasting` (seconds) is how long asking for it may take."""

    def __init__(self, pool: Pool, *, limits: Limits, policy: Callable[[str], Policy], lasting: float) -> None:
        self._pool = pool
        self._limits = limits
        self._policy = policy
        self._lasting = lasting
        self._views: dict[str, _View] = {}
        self._forgotten: set[str] = set()

    async def admit(self, asker: Asker, url: str) -> None:
        """Returns when the address may be asked. Raises Permanent where the host forbids it, NotNow where that is not known yet, and
        whatever asking for its robots.txt raises that says nothing about it."""
        host = host_of(url)
        policy = self._policy(host)
        if not policy.respect:
            await self._forget(host)
            return
        view = self._views.get(host)
        if view is None or time.monotonic() >= view.until:
            view = self._views[host] = await self._read(asker, host, url)
        now = time.monotonic()
        decision = decide(policy, Known(rules=view.known.rules, age=view.known.age + now - view.read), url)
        if decision.code == "unknown":
            raise NotNow(
                f"{host} is not asked now: its robots.txt could not be read ({view.last}), and without it nothing is allowed",
                max(view.again - now, 1.0),
            )
        if decision.rule is not None:
            raise Permanent(refusal(policy, url, decision.rule))

    async def _forget(self, host: str) -> None:
        """What a host asked for whose robots.txt is ignored from now on does not slow it down any more."""
        if host not in self._forgotten:
            async with self._pool.connection() as conn:
                await hosts.forget_robots(conn, host)
            self._forgotten.add(host)

    async def _read(self, asker: Asker, host: str, url: str) -> _View:
        for _ in range(_LOOKS):
            async with self._pool.connection() as conn:
                row = await hosts.robots(conn, host)
                if row is None:
                    await hosts.add(conn, host, self._limits)
                    row = await hosts.robots(conn, host)
                assert row is not None, "it was added"
                claimed = row.due_in <= 0 and await hosts.claim_robots(conn, host, lasting=self._lasting)
            if claimed:
                await self._ask(asker, host, url)
                continue
            if row.body is not None or row.due_in > 0:
                return self._seen(host, row)
            await asker.wait(_LOOK_SECONDS)
        raise NotNow(f"{host} is not asked now: somebody else is asking for its robots.txt", _BUSY_SECONDS)

    def _seen(self, host: str, row: Robots) -> _View:
        now = time.monotonic()
        before = self._views.get(host)
        rules = None if row.body is None else Rules(row.body)
        if before is not None and before.known.rules is not None and before.known.rules.text == row.body:
            rules = before.known.rules
        # A copy that is due and being asked for by somebody else is looked at again soon.
        lasts = min(max(row.due_in, 1.0), _VIEW_SECONDS)
        last = "no usable answer" if row.status is None else f"HTTP {row.status}"
        return _View(Known(rules=rules, age=row.age), now, now + lasts, now + row.due_in, last)

    async def _ask(self, asker: Asker, host: str, url: str) -> None:
        """Asks for it and writes down what came of it. Raises what says nothing about it."""
        try:
            answer = await _answer(asker, url)
        except BaseException:
            await asyncio.shield(self._release(host))
            raise
        text = answer.text
        async with self._pool.connection() as conn:
            await hosts.save_robots(
                conn,
                host,
                status=answer.status,
                body=text,
                crawl_delay=None if text is None else Rules(text).delay,
                due_in=RETRY_SECONDS if text is None else FRESH_SECONDS,
                said=said(answer),
            )

    async def _release(self, host: str) -> None:
        async with self._pool.connection() as conn:
            await hosts.release_robots(conn, host)


async def _answer(asker: Asker, url: str) -> Answer:
    """What a host says when its robots.txt is asked for. A refusal of every identity by status is an answer (4xx: there is none); a
    challenge is not, nor is what is the proxies' fault."""
    parts = urlsplit(url)
    before = len(asker.attempts)
    try:
        found = await asker.plain(urlunsplit((parts.scheme, host_of(url), PATH, "", "")))
    except Throttled:
        raise
    except MenuwatchError as error:
        last = asker.attempts[-1] if len(asker.attempts) > before else None
        match error:
            case Blocked() if last is not None and last.verdict is Verdict.BLOCKED:
                return Answer(status=last.status, reason=str(error))
            case Transient() if last is not None and last.blame is not Blame.PROXY:
                return Answer(status=last.status, reason=str(error))
            case Permanent():
                return Answer(status=None, reason=str(error))
            case _:
                raise
    return Answer(status=found.status, body=found.body)
