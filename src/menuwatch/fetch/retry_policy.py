"""Map each verdict to a reaction: one table. Pure.

`session`, the host's budget and the proxies' health each use their columns of the verdict's row. The docs show the same table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from menuwatch.core.errors import Blocked, MenuwatchError, Permanent, Throttled, Transient
from menuwatch.fetch.classify import Classification, Verdict
from menuwatch.proxies.health import ProxyOutcome

ROTATIONS = 3
"""Identities tried after the first is refused (SPEC section 7)."""
REROUTES = 5
"""Proxies tried after the first fails: in a pool with a tenth dead, five dead in a row occur once in 100,000 requests."""
RESETS = 1
"""Connection resets accepted on one identity before another proxy is tried."""
REPEATS = 2
"""Retries of a target that is down."""


class Action(StrEnum):
    """Action taken after a request."""

    RETURN = "return"
    RETRY = "again"
    ROTATE_IDENTITY = "rotate"
    CHANGE_PROXY = "reroute"
    GIVE_UP = "give_up"


class Tries(Struct):
    """Number of each action within one request."""

    rotations: int = 0
    reroutes: int = 0
    resets: int = 0
    repeats: int = 0

    @property
    def total(self) -> int:
        return self.rotations + self.reroutes + self.resets + self.repeats


@dataclass(frozen=True, slots=True)
class Step:
    """An action, taken at most `limit` times within one request; `counted` is the field of `Tries` that counts it."""

    action: Action
    limit: int
    counted: Literal["rotations", "reroutes", "resets", "repeats"]


_ROTATE = Step(Action.ROTATE_IDENTITY, ROTATIONS, "rotations")
_REROUTE = Step(Action.CHANGE_PROXY, REROUTES, "reroutes")
_RESET = Step(Action.RETRY, RESETS, "resets")
_REPEAT = Step(Action.RETRY, REPEATS, "repeats")


class Reaction(Struct, frozen=True, kw_only=True):
    """Reaction to one verdict.

    `steps` are taken in order, each up to its limit; then `end` follows. `error` is raised in the end, None if the response is
    returned. `postpones`: the task is postponed without using up a retry. `triggers_cooldown`: the host gets no requests until the
    time it named; `reduces_rate`: its rate is halved.

    `proxy_event` is what is counted for the proxy; for an ambiguous fault (proxy or target), only once another
    proxy reached the target. `identity` is what the verdict says about (proxy, host) and (profile, host).
    """

    description: str
    steps: tuple[Step, ...] = ()
    end: Action = Action.GIVE_UP
    error: type[MenuwatchError] | None = Transient
    postpones: bool = False
    triggers_cooldown: bool = False
    reduces_rate: bool = False
    proxy_event: ProxyOutcome | None = None
    identity: Literal["good", "bad"] | None = None


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _refused(description: str) -> Reaction:
    return Reaction(
        description=f"{description}; another proxy and browser are tried, {_times(ROTATIONS)} at most",
        steps=(_ROTATE,),
        error=Blocked,
        postpones=True,
        proxy_event=ProxyOutcome.REFUSED,
        identity="bad",
    )


def _faulty(description: str) -> Reaction:
    return Reaction(
        description=f"{description}; another proxy is tried, {_times(REROUTES)} at most",
        steps=(_REROUTE,),
        proxy_event=ProxyOutcome.FAULT,
    )


REACTIONS: Mapping[Verdict, Reaction] = MappingProxyType(
    {
        Verdict.OK: Reaction(
            description="succeeded",
            end=Action.RETURN,
            error=None,
            proxy_event=ProxyOutcome.SUCCESS,
            identity="good",
        ),
        Verdict.RATE_LIMITED: Reaction(
            description="rate-limited; no requests to this host until the time it gave, and the task is postponed",
            error=Throttled,
            postpones=True,
            triggers_cooldown=True,
            reduces_rate=True,
        ),
        Verdict.BLOCKED: _refused("refused"),
        Verdict.CHALLENGE: _refused("challenge page"),
        Verdict.EMPTY_SUSPECT: Reaction(
            description="empty response; archived but not applied",
            end=Action.RETURN,
            error=None,
            proxy_event=ProxyOutcome.SUCCESS,
        ),
        Verdict.SCHEMA_CHANGED: Reaction(
            description="unexpected response; archived but not applied",
            end=Action.RETURN,
            error=None,
            proxy_event=ProxyOutcome.SUCCESS,
        ),
        Verdict.PROXY_CONFIG: _faulty("the proxy rejects the credentials or speaks another protocol"),
        Verdict.PROXY_DOWN: _faulty("the proxy does not connect"),
        Verdict.TARGET_DOWN: Reaction(
            description=f"the host is down; the same identity retries, {_times(REPEATS)} at most, at a lower rate",
            steps=(_REPEAT,),
            reduces_rate=True,
        ),
        Verdict.PATH_RESET: Reaction(
            description=f"the connection was lost; the same identity retries {_times(RESETS)}, then another proxy is tried",
            steps=(_RESET, _REROUTE),
        ),
        Verdict.TLS_UNTRUSTED: _faulty("the certificate is not trusted and nothing was sent"),
        Verdict.TOO_LARGE: Reaction(description="response exceeds FETCH_MAX_BYTES; not retried", error=Permanent),
        Verdict.CLIENT_BUG: Reaction(
            description="invalid request; not retried",
            end=Action.RETURN,
            error=Permanent,
            proxy_event=ProxyOutcome.SUCCESS,
        ),
    }
)
"""Reactions by verdict. A request that could not be made (client_bug without a response) fails and does not count for the proxy."""


def react(verdict: Verdict, tries: Tries, *, answered: bool) -> Action:
    """The next action; counts it in `tries`. `answered`: the host sent a complete response."""
    reaction = REACTIONS[verdict]
    for step in reaction.steps:
        count: int = getattr(tries, step.counted)
        if count < step.limit:
            setattr(tries, step.counted, count + 1)
            return step.action
    return reaction.end if answered else Action.GIVE_UP


def failure(classification: Classification, host: str, requests: int) -> MenuwatchError:
    """The error to raise for the caller, after that number of `requests`."""
    times = "" if requests == 1 else f" ({requests} requests)"
    error = REACTIONS[classification.verdict].error
    if error is Blocked:
        return Blocked(f"{host} refused every identity: {classification.reason}{times}", host)
    if error is Throttled:
        return Throttled(f"{host} rate-limited us: {classification.reason}", classification.retry_after, host=host)
    if error is Permanent:
        return Permanent(f"{host}: {classification.reason}")
    return Transient(f"{host}: {classification.reason}{times}")


COLUMNS = ("verdict", "reaction", "outcome", "effect on the proxy", "on the identity", "on the host")
"""Columns of `rows`."""

_OUTCOMES: Mapping[type[MenuwatchError] | None, str] = {
    None: "the caller gets the response",
    Blocked: "the task is postponed without using up a retry",
    Throttled: "the task is postponed without using up a retry",
    Transient: "the task is retried later, using one retry",
    Permanent: "the task fails permanently",
}
_PROXY_EFFECTS: Mapping[ProxyOutcome | None, str] = {
    None: "nothing",
    ProxyOutcome.SUCCESS: "a success",
    ProxyOutcome.FAULT: "a failure",
    ProxyOutcome.REFUSED: "a refusal",
}


def rows() -> Iterator[tuple[str, ...]]:
    """The table for the documentation (docs/explanation/politeness.md), in the order of `Verdict`; see `COLUMNS`."""
    for verdict in Verdict:
        reaction = REACTIONS[verdict]
        host = "cools down" if reaction.triggers_cooldown else "slows down" if reaction.reduces_rate else "nothing"
        yield (
            verdict.value,
            reaction.description,
            _OUTCOMES[reaction.error],
            _PROXY_EFFECTS[reaction.proxy_event],
            reaction.identity or "nothing",
            host,
        )
