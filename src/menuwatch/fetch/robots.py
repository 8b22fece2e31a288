"""What a host's robots.txt allows (RFC 9309). Pure.

Menuwatch asks as browsers do, so it has no product token of its own, and the group that applies to it is that for everybody (`*`).

    2xx ──► its rules hold               4xx (but 429) ──► there is none: everything is allowed
    5xx, no answer, a redirect to elsewhere ──► not known: the last copy holds for 30 days, and without one nothing is allowed
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from protego import Protego

AGENT = "*"
FRESH_SECONDS = 86_400.0
"""How long an answer holds before it is asked for again."""
STALE_SECONDS = 30 * 86_400.0
"""How long a copy holds where it cannot be asked for again."""
RETRY_SECONDS = 300.0
"""When it is asked for again after it could not be read."""
PARSED_BYTES = 500 * 1024
"""What is looked at of it: RFC 9309 section 2.5 wants no less."""
SLOWEST_SECONDS = 86_400.0
"""The longest delay that is kept between two requests: as the longest that an operator may set."""
PATH = "/robots.txt"


@dataclass(frozen=True, slots=True)
class Policy:
    """What is made of a host's robots.txt, and the setting that says so."""

    respect: bool = True
    setting: str = "DUTCHIE_ROBOTS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of asking for it: a status, or a fault (`status` None)."""

    status: int | None
    body: bytes = b""
    reason: str = ""

    @property
    def text(self) -> str | None:
        """Its rules as they are kept: empty where there are none, None where they could not be read."""
        if self.status is None:
            return None
        if 200 <= self.status < 300:
            return _decoded(self.body)
        return "" if 400 <= self.status < 500 and self.status != 429 else None


def _decoded(body: bytes) -> str:
    """A line that the limit cuts through is left out: half a rule is another rule."""
    if len(body) > PARSED_BYTES:
        body = body[: max(body.rfind(b"\n", 0, PARSED_BYTES), body.rfind(b"\r", 0, PARSED_BYTES)) + 1]
    return body.decode("utf-8-sig", "replace").replace("\0", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of a host's robots.txt: the `rules` that were read last, None where they never were, and how many seconds
    ago that was."""

    rules: Rules | None = None
    age: float = 0.0


@dataclass(frozen=True, slots=True)
class Decision:
    """`rule` is the line that forbids it, as it stands there."""

    code: Literal["allowed", "forbidden", "unknown"]
    rule: str | None = None


def decide(policy: Policy, known: Known, url: str) -> Decision:
    """Whether this address may be asked."""
    if not policy.respect or urlsplit(url).path == PATH:
        return Decision("allowed")
    if known.rules is None or known.age >= STALE_SECONDS:
        return Decision("unknown")
    rule = known.rules.forbids(url)
    return Decision("allowed") if rule is None else Decision("forbidden", rule)


class Rules:
    """The rules for everybody in one robots.txt."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._parsed = Protego.parse(text)

    def forbids(self, url: str) -> str | None:
        """The line that forbids an address, None where none does. Its path and query are compared, the longest rule wins."""
        if self._parsed.can_fetch(url, AGENT):
            return None
        # The parser does not say which line it was, and there may be thousands.
        lines = sorted(_disallowed(self.text), key=len, reverse=True)
        while len(lines) > 1:
            longer = lines[: len(lines) // 2]
            lines = longer if _forbid(longer, url) else lines[len(longer) :]
        return lines[0] if lines and _forbid(lines, url) else "Disallow"

    @property
    def delay(self) -> float | None:
        """Seconds between two requests: the longer of what Crawl-delay and Request-rate ask for, None where neither does."""
        rate = self._parsed.request_rate(AGENT)
        asked = [
            seconds
            for seconds in (self._parsed.crawl_delay(AGENT), rate.seconds / rate.requests if rate else None)
            if seconds is not None
        ]
        return min(max(asked), SLOWEST_SECONDS) if asked else None


def _forbid(lines: list[str], url: str) -> bool:
    return not Protego.parse("\n".join(("User-agent: *", *lines))).can_fetch(url, AGENT)


_DISALLOW = frozenset({"disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"})
"""As the parser takes it: misspelled too."""


def _disallowed(text: str) -> list[str]:
    """The Disallow lines of the groups for everybody, written in one way."""
    found: list[str] = []
    ours = begun = False
    for line in text.splitlines():
        field, colon, value = (part.strip() for part in line.partition("#")[0].partition(":"))
        name = field.lower()
        if name in ("user-agent", "useragent", "user agent"):
            # Lines of agents that follow each other head one group.
            ours = (ours and not begun) or value == AGENT
            begun = False
        elif colon and name != "sitemap":
            begun = True
            if ours and value and name in _DISALLOW:
                found.append(f"Disallow: {value}")
    return found


def said(answer: Answer) -> str:
    """What an answer means, for people."""
    text = answer.text
    if text is None:
        return f"its robots.txt could not be read: {answer.reason or f'HTTP {answer.status}'}"
    if answer.status is not None and answer.status >= 400:
        return f"it has no robots.txt (HTTP {answer.status}): everything is allowed"
    delay = Rules(text).delay
    forbidden = len(_disallowed(text))
    rules = "forbids nothing" if not forbidden else f"forbids {forbidden} {'path' if forbidden == 1 else 'paths'}"
    return f"its robots.txt {rules}" + ("" if delay is None else f" and asks for {delay:g} s between two requests")


def refusal(policy: Policy, url: str, rule: str) -> str:
    """Why an address is not asked, and what a person can do about it."""
    parts = urlsplit(url)
    return (
        f"{parts.netloc.lower()} forbids {parts.path or '/'} to crawlers: {rule!r} in its robots.txt. "
        f"{policy.setting}=ignore asks all the same; whoever sets that needs the right to"
    )
