"""From a verdict to what is done about it: one table. Pure.

Whoever asks (`session`, the host's budget, the proxies' health) reads what concerns it in the row of the verdict; the row says it
to people too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Literal

from menuwatch.core.errors import Blocked, MenuwatchError, Permanent, Throttled, Transient
from menuwatch.fetch.verdict import Judgement, Verdict
from menuwatch.proxies.health import Event

ROTATIONS = 3
"""Identities tried after the first was refused (SPEC section 7)."""
REROUTES = 5
"""Proxies tried after the first was at fault: in a pool where a tenth is dead, five dead in a row are one request in 100,000."""
RESETS = 1
"""Connections that may break off on one identity before another proxy is tried."""
REPEATS = 2
"""Times a target that is down is asked again."""


class Move(StrEnum):
    """What happens next."""

    RETURN = "return"
    AGAIN = "again"
    ROTATE = "rotate"
    REROUTE = "reroute"
    GIVE_UP = "give_up"


@dataclass(slots=True)
class Tries:
    """How often each move was made within one request."""

    rotations: int = 0
    reroutes: int = 0
    resets: int = 0
    repeats: int = 0

    @property
    def total(self) -> int:
        return self.rotations + self.reroutes + self.resets + self.repeats


@dataclass(frozen=True, slots=True)
class Step:
    """A move, made at most `limit` times within one request; `counted` is the field of `Tries` that counts it."""

    move: Move
    limit: int
    counted: Literal["rotations", "reroutes", "resets", "repeats"]


_ROTATE = Step(Move.ROTATE, ROTATIONS, "rotations")
_REROUTE = Step(Move.REROUTE, REROUTES, "reroutes")
_RESET = Step(Move.AGAIN, RESETS, "resets")
_REPEAT = Step(Move.AGAIN, REPEATS, "repeats")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaction:
    """What is done about one verdict.

    `steps` are made in order, each until its limit is used up; `end` follows when all are. `error` is what is raised in the end,
    None where the answer is returned. `postpones`: the task is put off without using up a retry. `cools_host`: nobody asks the
    host until the time it named; `slows_host`: its rate is halved.

    `proxy_event` is what is counted for the proxy; for a fault of which proxy or target may be the cause, only once another
    proxy reached the target. `identity` is what the verdict says about (proxy, host) and (profile, host).
    """

    says: str
    steps: tuple[Step, ...] = ()
    end: Move = Move.GIVE_UP
    error: type[MenuwatchError] | None = Transient
    postpones: bool = False
    cools_host: bool = False
    slows_host: bool = False
    proxy_event: Event | None = None
    identity: Literal["good", "bad"] | None = None


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _refused(says: str) -> Reaction:
    return Reaction(
        says=f"{says}; another proxy and browser are tried, {_times(ROTATIONS)} at most",
        steps=(_ROTATE,),
        error=Blocked,
        postpones=True,
        proxy_event=Event.REFUSED,
        identity="bad",
    )


def _faulty(says: str) -> Reaction:
    return Reaction(
        says=f"{says}; another proxy is tried, {_times(REROUTES)} at most",
        steps=(_REROUTE,),
        proxy_event=Event.FAULT,
    )


REACTIONS: Mapping[Verdict, Reaction] = MappingProxyType(
    {
        Verdict.OK: Reaction(
            says="answered as asked",
            end=Move.RETURN,
            error=None,
            proxy_event=Event.SUCCESS,
            identity="good",
        ),
        Verdict.RATE_LIMITED: Reaction(
            says="asked to slow down; nobody asks this host until the time it named, and the task is put off",
            error=Throttled,
            postpones=True,
            cools_host=True,
            slows_host=True,
        ),
        Verdict.BLOCKED: _refused("refused"),
        Verdict.CHALLENGE: _refused("a page that wants a browser to prove itself"),
        Verdict.EMPTY_SUSPECT: Reaction(
            says="answered with nothing in it; the answer is kept and not believed",
            end=Move.RETURN,
            error=None,
            proxy_event=Event.SUCCESS,
        ),
        Verdict.SCHEMA_CHANGED: Reaction(
            says="answered with something else than was asked for; the answer is kept and not believed",
            end=Move.RETURN,
            error=None,
            proxy_event=Event.SUCCESS,
        ),
        Verdict.PROXY_CONFIG: _faulty("the proxy refuses our login or speaks another protocol"),
        Verdict.PROXY_DOWN: _faulty("the proxy does not connect"),
        Verdict.TARGET_DOWN: Reaction(
            says=f"the site is down; the same identity asks again, {_times(REPEATS)} at most, more slowly",
            steps=(_REPEAT,),
            slows_host=True,
        ),
        Verdict.PATH_RESET: Reaction(
            says=f"the connection broke off; the same identity asks again {_times(RESETS)}, then another proxy is tried",
            steps=(_RESET, _REROUTE),
        ),
        Verdict.TLS_UNTRUSTED: _faulty("the certificate is not trusted and nothing was sent"),
        Verdict.TOO_LARGE: Reaction(
            says="larger than a client takes (FETCH_MAX_BYTES); asking again would not help", error=Permanent
        ),
        Verdict.CLIENT_BUG: Reaction(
            says="the request itself was wrong; asking again would not help",
            end=Move.RETURN,
            error=Permanent,
            proxy_event=Event.SUCCESS,
        ),
    }
)
"""Every verdict's. A request that could not even be made (client_bug without an answer) is given up and says nothing of a proxy."""


def react(verdict: Verdict, tries: Tries, *, answered: bool) -> Move:
    """The next move; counts it in `tries`. `answered`: the target gave a whole answer."""
    reaction = REACTIONS[verdict]
    for step in reaction.steps:
        made: int = getattr(tries, step.counted)
        if made < step.limit:
            setattr(tries, step.counted, made + 1)
            return step.move
    return reaction.end if answered else Move.GIVE_UP


def failure(judgement: Judgement, host: str, asked: int) -> MenuwatchError:
    """The error that asks for the right reaction of whoever wanted the answer. `asked` counts the requests that were made."""
    times = "" if asked == 1 else f" (asked {asked} times)"
    error = REACTIONS[judgement.verdict].error
    if error is Blocked:
        return Blocked(f"{host} refused every identity: {judgement.reason}{times}")
    if error is Throttled:
        return Throttled(f"{host} asked to slow down: {judgement.reason}", judgement.retry_after)
    if error is Permanent:
        return Permanent(f"{host}: {judgement.reason}")
    return Transient(f"{host}: {judgement.reason}{times}")


COLUMNS = ("verdict", "what is done", "in the end", "counted for the proxy", "for the identity", "for the host")
"""Of `rows`."""

_ENDS: Mapping[type[MenuwatchError] | None, str] = {
    None: "whoever asked gets the answer",
    Blocked: "the task is put off, no retry is used up",
    Throttled: "the task is put off, no retry is used up",
    Transient: "the task is tried later, one retry used up",
    Permanent: "the task fails for good",
}
_COUNTED: Mapping[Event | None, str] = {
    None: "nothing",
    Event.SUCCESS: "a success",
    Event.FAULT: "a failure",
    Event.REFUSED: "a refusal",
}


def rows() -> Iterator[tuple[str, ...]]:
    """The table as people read it (docs/explanation/politeness.md), in the order of `Verdict`; see `COLUMNS`."""
    for verdict in Verdict:
        reaction = REACTIONS[verdict]
        host = "cools down" if reaction.cools_host else "slows down" if reaction.slows_host else "nothing"
        yield (
            verdict.value,
            reaction.says,
            _ENDS[reaction.error],
            _COUNTED[reaction.proxy_event],
            reaction.identity or "nothing",
            host,
        )
