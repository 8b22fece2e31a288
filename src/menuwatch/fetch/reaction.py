"""From a verdict to what is done about it: one table, and how often each is done within one request. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from menuwatch.core.errors import Blocked, MenuwatchError, Permanent, Throttled, Transient
from menuwatch.fetch.verdict import Judgement, Verdict

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


def react(verdict: Verdict, tries: Tries, *, answered: bool) -> Move:
    """The next move; counts it in `tries`. `answered`: the target gave a whole answer."""
    match verdict:
        case Verdict.OK:
            return Move.RETURN
        case Verdict.CLIENT_BUG:
            return Move.RETURN if answered else Move.GIVE_UP
        case Verdict.BLOCKED | Verdict.CHALLENGE if tries.rotations < ROTATIONS:
            tries.rotations += 1
            return Move.ROTATE
        case Verdict.PATH_RESET if tries.resets < RESETS:
            tries.resets += 1
            return Move.AGAIN
        case Verdict.PROXY_CONFIG | Verdict.PROXY_DOWN | Verdict.TLS_UNTRUSTED | Verdict.PATH_RESET if (
            tries.reroutes < REROUTES
        ):
            tries.reroutes += 1
            return Move.REROUTE
        case Verdict.TARGET_DOWN if tries.repeats < REPEATS:
            tries.repeats += 1
            return Move.AGAIN
        case _:
            return Move.GIVE_UP


def failure(judgement: Judgement, host: str, asked: int) -> MenuwatchError:
    """The error that asks for the right reaction of whoever wanted the answer. `asked` counts the requests that were made."""
    times = "" if asked == 1 else f" (asked {asked} times)"
    match judgement.verdict:
        case Verdict.BLOCKED | Verdict.CHALLENGE:
            return Blocked(f"{host} refused every identity: {judgement.reason}{times}")
        case Verdict.RATE_LIMITED:
            return Throttled(f"{host} asked to slow down: {judgement.reason}", judgement.retry_after)
        case Verdict.TOO_LARGE | Verdict.CLIENT_BUG:
            return Permanent(f"{host}: {judgement.reason}")
        case _:
            return Transient(f"{host}: {judgement.reason}{times}")
