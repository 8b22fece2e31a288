"""What a session has to tell: what each request means for the record, for the host, and for the proxy and browser that made it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from menuwatch.core.telemetry import get_logger
from menuwatch.fetch.attempts import Attempt
from menuwatch.fetch.ledger import Report
from menuwatch.fetch.reaction import REACTIONS
from menuwatch.fetch.scores import Experience
from menuwatch.fetch.trail import Trail
from menuwatch.fetch.verdict import REFUSALS, Blame, Judgement, Verdict
from menuwatch.hosts.rules import LetIn, SlowDown, Trouble, TurnedAway
from menuwatch.proxies.health import Event, Happened

log = get_logger(__name__)

_NOTHING_IN_IT = ("empty", "no_data")
LONGEST_ERROR = 500
"""Characters of a reason that are kept."""


class Notebook:
    """One session's. What is new since it was last `torn_out` is not written down anywhere else yet."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self._new = Report()
        self._torn_out = time.monotonic()

    @property
    def age(self) -> float:
        """Seconds since others last heard of it."""
        return time.monotonic() - self._torn_out

    @property
    def figures(self) -> Mapping[str, int]:
        """`requests` made, `blocked` among them, `rotations` of the identity, `bytes` of answers, so far."""
        return {
            "requests": len(self.attempts),
            "blocked": sum(attempt.verdict in REFUSALS for attempt in self.attempts),
            "rotations": sum(attempt.rotated for attempt in self.attempts),
            "bytes": sum(attempt.bytes for attempt in self.attempts),
        }

    def note(self, attempt: Attempt, judgement: Judgement) -> None:
        """Puts down what one request means."""
        self.attempts.append(attempt)
        self._new.attempts.append(attempt)
        if attempt.verdict is not Verdict.OK:
            log.info(
                "request was not answered as asked",
                action="fetch_attempt",
                task_id=attempt.task_id,
                dispensary_id=attempt.dispensary_id,
                proxy_id=attempt.proxy_id,
                profile=attempt.profile,
                host=attempt.host,
                verdict=attempt.verdict,
                blame=attempt.blame,
                reaction=attempt.reaction,
                reason=judgement.reason,
            )
        self._note_for_host(attempt, judgement)
        self._note_for_proxy(attempt, judgement)

    def _note_for_host(self, attempt: Attempt, judgement: Judgement) -> None:
        new, host, reaction = self._new, attempt.host, REACTIONS[judgement.verdict]
        if reaction.identity == "good":
            new.news.append((host, LetIn()))
            new.experiences.append(
                Experience(host, attempt.proxy_id, attempt.profile, proxy_good=1.0, profile_good=1.0)
            )
        elif reaction.identity == "bad":
            new.news.append((host, TurnedAway(attempt.proxy_id, attempt.profile, judgement.reason)))
        elif reaction.cools_host:
            new.news.append((host, SlowDown(judgement.retry_after, judgement.reason)))
        elif reaction.slows_host:
            new.news.append((host, Trouble(judgement.reason)))

    def _note_for_proxy(self, attempt: Attempt, judgement: Judgement) -> None:
        proxy_id = attempt.proxy_id
        if judgement.blame is Blame.PROXY:
            self._new.proxies.append(Happened(proxy_id=proxy_id, event=Event.FAULT, error=judgement.reason))
        elif REACTIONS[judgement.verdict].proxy_event is Event.SUCCESS and attempt.status is not None:
            self._new.proxies.append(Happened(proxy_id=proxy_id, event=Event.SUCCESS, elapsed_ms=attempt.elapsed_ms))

    def doubt(self, kind: str, reason: str) -> None:
        """The last answer could not be used; `kind` is a BadPayload's. Its attempt is put down for what it was, unless it is written
        already."""
        last = self.attempts[-1] if self.attempts else None
        if last is None or last.verdict is not Verdict.OK or last not in self._new.attempts:
            return
        verdict = Verdict.EMPTY_SUSPECT if kind in _NOTHING_IN_IT else Verdict.SCHEMA_CHANGED
        seen = replace(last, verdict=verdict, blame=Blame.TARGET, error=reason[:LONGEST_ERROR])
        self.attempts[-1] = seen
        self._new.attempts[self._new.attempts.index(last)] = seen

    def settle(self, host: str, trail: Trail, let_in: int | None, *, host_refuses: bool = False) -> None:
        """What could only be known at the end of a request: whose fault refusals were, and faults that two may have caused."""
        self._new.proxies += trail.events(let_in, host_refuses=host_refuses or trail.probing)
        self._new.experiences += trail.experiences(host, let_in)

    def give_back(self, lease_id: int) -> None:
        """The lease is not needed any more."""
        self._new.leases.append(lease_id)

    def torn_out(self) -> Report:
        """What is new, to be written down by whoever takes it."""
        found, self._new = self._new, Report()
        self._torn_out = time.monotonic()
        return found
