"""Who caused the failures of a request: proxy, browser or host."""

from __future__ import annotations

from menuwatch.fetch.classify import REFUSALS, Blame, Classification, Verdict
from menuwatch.hosts.scores import Observation, Score, attribute_blame
from menuwatch.proxies.health import ProxyEvent, ProxyOutcome


class RequestHistory:
    """Results of one request's attempts, kept until its end shows who caused the failures. No I/O.

    A refusal counts against the proxy if another proxy was accepted, and against the host if several were refused and none accepted.
    An ambiguous fault (proxy or target) counts against the proxy if another proxy reached the target.
    """

    def __init__(self) -> None:
        self.refused: list[tuple[int, str]] = []
        self.suspects: dict[int, str] = {}
        self.faulty: set[int] = set()
        self.reached: set[int] = set()
        self.probing = False
        """An identity was testing whether the host still refuses all requests."""
        self._reason: dict[int, str] = {}
        self._known: dict[tuple[int, str], tuple[Score, Score]] = {}

    @property
    def avoid(self) -> set[int]:
        """Proxies not worth another attempt."""
        return self.faulty | {proxy_id for proxy_id, _ in self.refused}

    @property
    def profiles(self) -> set[str]:
        """Browsers that were refused."""
        return {profile for _, profile in self.refused}

    def known(self, proxy_id: int, profile: str, proxy_score: Score, profile_score: Score) -> None:
        """Record the scores of an identity as of its selection."""
        self._known[proxy_id, profile] = (proxy_score, profile_score)

    def add(self, proxy_id: int, profile: str, classification: Classification, *, answered: bool) -> None:
        """Record the result of one attempt."""
        if answered:
            self.reached.add(proxy_id)
        if classification.verdict in REFUSALS:
            self.refused.append((proxy_id, profile))
            self._reason[proxy_id] = classification.reason
        elif classification.blame is Blame.PROXY_OR_TARGET:
            self.suspects[proxy_id] = classification.reason
        if classification.blame in (Blame.PROXY, Blame.PROXY_OR_TARGET) or classification.verdict is Verdict.PATH_RESET:
            self.faulty.add(proxy_id)

    def events(self, accepted: int | None, *, host_refuses: bool = False) -> list[ProxyEvent]:
        """Events to count for proxies, once it is known which one was accepted (None: none).

        One refusal per request and proxy, however many browsers it tried, so that a single request cannot exhaust a pool of one.
        If the same proxy was accepted with another browser, the proxy was not the cause. `host_refuses`: the host is known to
        refuse all requests.
        """
        events: list[ProxyEvent] = []
        refused = dict.fromkeys(proxy_id for proxy_id, _ in self.refused)
        all_refused = accepted is None and (host_refuses or len(refused) > 1)
        event = ProxyOutcome.HOST_REFUSES if all_refused else ProxyOutcome.REFUSED
        events.extend(
            ProxyEvent(proxy_id=proxy_id, event=event, error=self._reason[proxy_id])
            for proxy_id in refused
            if proxy_id != accepted
        )
        for proxy_id, reason in self.suspects.items():
            if self.reached - {proxy_id} and proxy_id not in self.reached:
                events.append(ProxyEvent(proxy_id=proxy_id, event=ProxyOutcome.FAULT, error=reason))
        return events

    def observations(self, host: str, accepted: int | None) -> list[Observation]:
        """Refusals as observations of proxy and browser; none if no proxy was accepted, since then the host was the cause."""
        if accepted is None:
            return []
        observations = []
        for proxy_id, profile in self.refused:
            proxy_share, profile_share = attribute_blame(*self._known.get((proxy_id, profile), (Score(), Score())))
            if proxy_id == accepted:
                # The same proxy was accepted with another browser.
                proxy_share, profile_share = 0.0, 1.0
            observations.append(Observation(host, proxy_id, profile, proxy_bad=proxy_share, profile_bad=profile_share))
        return observations
