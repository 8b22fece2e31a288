"""What a host's robots.txt allows (RFC 9309), and the check before each request.

Menuwatch sends browser headers, so it has no product token of its own, and the group for all agents (`*`) applies.

    2xx ──► its rules apply               4xx (but 429) ──► none: everything is allowed
    5xx, no response, a redirect to another host ──► unknown: the last copy applies for 30 days; without one nothing is allowed
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit, urlunsplit

from msgspec import Struct
from protego import Protego

from menuwatch.core.errors import Blocked, MenuwatchError, NotNow, Permanent, Throttled, Transient
from menuwatch.core.postpone import PostponeCode
from menuwatch.db.pool import Pool
from menuwatch.fetch.classify import Blame, Verdict
from menuwatch.hosts import store as hosts
from menuwatch.hosts.model import Limits, Robots, host_of

if TYPE_CHECKING:
    from menuwatch.fetch.session import FetchSession

AGENT = "*"
FRESH_SECONDS = 86_400.0
"""Validity of a response in seconds."""
STALE_SECONDS = 30 * 86_400.0
"""Seconds for which a copy applies if robots.txt cannot be fetched again."""
RETRY_SECONDS = 300.0
"""Seconds until the next attempt after a failure."""
PARSED_BYTES = 500 * 1024
"""Bytes that are parsed: RFC 9309 section 2.5 requires at least this."""
SLOWEST_SECONDS = 86_400.0
"""Longest delay between two requests that is kept: the longest that an operator may set."""
PATH = "/robots.txt"
_VIEW_SECONDS = 60.0
"""Seconds for which a process caches the host's row."""
_CHECKS = 20
_CHECK_SECONDS = 0.25
"""Number of checks, and the seconds between them, while another session fetches robots.txt."""
_BUSY_SECONDS = 5.0
"""Delay in seconds of a task that has used up these checks."""


class Policy(Struct, frozen=True):
    """How a host's robots.txt is applied, and the name of the setting."""

    respect: bool = True
    setting: str = "DUTCHIE_ROBOTS"


class Answer(Struct, frozen=True, kw_only=True):
    """Result of fetching robots.txt: a status, or a fault (`status` None)."""

    status: int | None
    body: bytes = b""
    reason: str = ""

    @property
    def text(self) -> str | None:
        """The rules as stored: empty if there are none, None if they could not be read."""
        if self.status is None:
            return None
        if 200 <= self.status < 300:
            return _decoded(self.body)
        return "" if 400 <= self.status < 500 and self.status != 429 else None


def _decoded(body: bytes) -> str:
    """Drops a line that the limit cuts: half a rule is another rule."""
    if len(body) > PARSED_BYTES:
        body = body[: max(body.rfind(b"\n", 0, PARSED_BYTES), body.rfind(b"\r", 0, PARSED_BYTES)) + 1]
    return body.decode("utf-8-sig", "replace").replace("\0", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is stored of a host's robots.txt: the last `rules` that were read, None if never, and their age in seconds."""

    rules: Rules | None = None
    age: float = 0.0


class Decision(Struct, frozen=True):
    """`rule` is the line that forbids the URL, verbatim."""

    code: Literal["allowed", "forbidden", "unknown"]
    rule: str | None = None


def decide(policy: Policy, known: Known, url: str) -> Decision:
    """Decide whether this URL may be requested."""
    if not policy.respect or urlsplit(url).path == PATH:
        return Decision("allowed")
    if known.rules is None or known.age >= STALE_SECONDS:
        return Decision("unknown")
    rule = known.rules.forbids(url)
    return Decision("allowed") if rule is None else Decision("forbidden", rule)


class Rules:
    """The rules for all agents in one robots.txt."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._parsed = Protego.parse(text)

    def forbids(self, url: str) -> str | None:
        """The line that forbids a URL, None if none does. Compares path and query; the longest rule wins."""
        if self._parsed.can_fetch(url, AGENT):
            return None
        # The parser does not report which line matched, and there may be thousands.
        lines = sorted(_disallowed(self.text), key=len, reverse=True)
        while len(lines) > 1:
            longer = lines[: len(lines) // 2]
            lines = longer if _forbid(longer, url) else lines[len(longer) :]
        return lines[0] if lines and _forbid(lines, url) else "Disallow"

    @property
    def delay(self) -> float | None:
        """Seconds between two requests: the longer of Crawl-delay and Request-rate, None without either."""
        rate = self._parsed.request_rate(AGENT)
        delays = [
            seconds
            for seconds in (self._parsed.crawl_delay(AGENT), rate.seconds / rate.requests if rate else None)
            if seconds is not None
        ]
        return min(max(delays), SLOWEST_SECONDS) if delays else None


def _forbid(lines: list[str], url: str) -> bool:
    return not Protego.parse("\n".join(("User-agent: *", *lines))).can_fetch(url, AGENT)


_DISALLOW = frozenset({"disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"})
"""Spellings that the parser accepts, misspellings included."""


def _disallowed(text: str) -> list[str]:
    """The Disallow lines of the groups for all agents, normalized."""
    lines: list[str] = []
    ours = begun = False
    for line in text.splitlines():
        field, colon, value = (part.strip() for part in line.partition("#")[0].partition(":"))
        name = field.lower()
        if name in ("user-agent", "useragent", "user agent"):
            # Consecutive User-agent lines start one group.
            ours = (ours and not begun) or value == AGENT
            begun = False
        elif colon and name != "sitemap":
            begun = True
            if ours and value and name in _DISALLOW:
                lines.append(f"Disallow: {value}")
    return lines


def describe(answer: Answer) -> str:
    """Describe a response for people."""
    text = answer.text
    if text is None:
        return f"its robots.txt could not be read: {answer.reason or f'HTTP {answer.status}'}"
    if answer.status is not None and answer.status >= 400:
        return f"it has no robots.txt (HTTP {answer.status}): everything is allowed"
    delay = Rules(text).delay
    forbidden = len(_disallowed(text))
    rules = "forbids nothing" if not forbidden else f"forbids {forbidden} {'path' if forbidden == 1 else 'paths'}"
    return f"its robots.txt {rules}" + ("" if delay is None else f" and sets a crawl delay of {delay:g} s")


def refusal(policy: Policy, url: str, rule: str) -> str:
    """Explain why a URL is not requested, and what an operator can do about it."""
    parts = urlsplit(url)
    return (
        f"{parts.netloc.lower()} forbids {parts.path or '/'} to crawlers: {rule!r} in its robots.txt. "
        f"{policy.setting}=ignore overrides this and requires the site's permission"
    )


class _View(Struct, frozen=True):
    """A host's row as of `read_at`, cached until `valid_until`. `next_fetch_at` is the time of the next fetch (all monotonic), `last`
    the result of the last one."""

    known: Known
    read_at: float
    valid_until: float
    next_fetch_at: float
    last: str


class RobotsGuard:
    """Checks requests against the host's robots.txt, which one session among all workers fetches once a day, like any other
    request. One per process.

    The copy is in the host's row. The first session that finds it due claims and fetches it; the others use the old copy, or wait for
    the new one. `policy` says how a host's robots.txt is applied; for hosts without one (None) the session does. `lease_seconds` is
    the longest time that fetching it may take.
    """

    def __init__(
        self, pool: Pool, *, limits: Limits, policy: Callable[[str], Policy | None], lease_seconds: float
    ) -> None:
        self._pool = pool
        self._limits = limits
        self._policy = policy
        self._lease_seconds = lease_seconds
        self._views: dict[str, _View] = {}
        self._forgotten: set[str] = set()

    async def check_robots(self, session: FetchSession, url: str) -> None:
        """Return if the URL may be requested. Raises Permanent if the host forbids it, NotNow if that is not known yet, and errors of
        fetching robots.txt that say nothing about the rules."""
        host = host_of(url)
        policy = self._policy(host) or session.robots or Policy()
        if not policy.respect:
            await self._forget(host)
            return
        view = self._views.get(host)
        if view is None or time.monotonic() >= view.valid_until:
            view = self._views[host] = await self._read(session, host, url)
        now = time.monotonic()
        decision = decide(policy, Known(rules=view.known.rules, age=view.known.age + now - view.read_at), url)
        if decision.code == "unknown":
            raise NotNow(
                f"requests to {host} are blocked: its robots.txt could not be read ({view.last})",
                max(view.next_fetch_at - now, 1.0),
                code=PostponeCode.ROBOTS,
                host=host,
            )
        if decision.rule is not None:
            raise Permanent(refusal(policy, url, decision.rule))

    async def _forget(self, host: str) -> None:
        """Drop the crawl delay of a host whose robots.txt is ignored from now on."""
        if host not in self._forgotten:
            async with self._pool.connection() as conn:
                await hosts.forget_robots(conn, host)
            self._forgotten.add(host)

    async def _read(self, session: FetchSession, host: str, url: str) -> _View:
        for _ in range(_CHECKS):
            async with self._pool.connection() as conn:
                row = await hosts.robots(conn, host)
                if row is None:
                    await hosts.add(conn, host, self._limits)
                    row = await hosts.robots(conn, host)
                assert row is not None, "it was added"
                claimed = row.due_in <= 0 and await hosts.claim_robots(conn, host, lease_seconds=self._lease_seconds)
            if claimed:
                await self._fetch(session, host, url)
                continue
            if row.body is not None or row.due_in > 0:
                return self._cache(host, row)
            await session.wait(_CHECK_SECONDS)
        raise NotNow(
            f"requests to {host} wait: another session is fetching its robots.txt",
            _BUSY_SECONDS,
            code=PostponeCode.ROBOTS,
            host=host,
        )

    def _cache(self, host: str, row: Robots) -> _View:
        now = time.monotonic()
        before = self._views.get(host)
        rules = None if row.body is None else Rules(row.body)
        if before is not None and before.known.rules is not None and before.known.rules.text == row.body:
            rules = before.known.rules
        # A due copy that another session is fetching is checked again soon.
        lasts = min(max(row.due_in, 1.0), _VIEW_SECONDS)
        last = "no usable answer" if row.status is None else f"HTTP {row.status}"
        return _View(Known(rules=rules, age=row.age), now, now + lasts, now + row.due_in, last)

    async def _fetch(self, session: FetchSession, host: str, url: str) -> None:
        """Fetch robots.txt and save the result. Raises errors that say nothing about the rules."""
        try:
            answer = await _answer(session, url)
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
                reason=describe(answer),
            )

    async def _release(self, host: str) -> None:
        async with self._pool.connection() as conn:
            await hosts.release_robots(conn, host)


async def _answer(session: FetchSession, url: str) -> Answer:
    """The host's response for robots.txt. A refusal of all identities by status is a response (4xx: no robots.txt); a challenge or a
    fault of the proxies is not."""
    parts = urlsplit(url)
    before = len(session.attempts)
    try:
        response = await session.fetch_unchecked(urlunsplit((parts.scheme, host_of(url), PATH, "", "")))
    except Throttled:
        raise
    except MenuwatchError as error:
        last = session.attempts[-1] if len(session.attempts) > before else None
        match error:
            case Blocked() if last is not None and last.verdict is Verdict.BLOCKED:
                return Answer(status=last.status, reason=str(error))
            case Transient() if last is not None and last.blame is not Blame.PROXY:
                return Answer(status=last.status, reason=str(error))
            case Permanent():
                return Answer(status=None, reason=str(error))
            case _:
                raise
    return Answer(status=response.status, body=response.body)
