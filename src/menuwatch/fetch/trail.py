"""What one request has met so far, kept until its end shows who was to blame. State, no input or output.

A refusal is the proxy's when another proxy was let in, and the host's when several proxies were refused and none let in. A fault that
proxy or target may have caused is the proxy's when another proxy reached the target.
"""

from __future__ import annotations

from menuwatch.fetch.scores import Experience, Score, blame
from menuwatch.fetch.verdict import REFUSALS, Blame, Judgement, Verdict
from menuwatch.proxies.health import Event, Happened


class Trail:
    """One request's."""

    def __init__(self) -> None:
        self.refused: list[tuple[int, str]] = []
        self.suspects: dict[int, str] = {}
        self.faulty: set[int] = set()
        self.reached: set[int] = set()
        self.probing = False
        """An identity was to find out whether the host still refuses everybody."""
        self._reason: dict[int, str] = {}
        self._known: dict[tuple[int, str], tuple[Score, Score]] = {}

    @property
    def avoid(self) -> set[int]:
        """Proxies that are not worth another try."""
        return self.faulty | {proxy_id for proxy_id, _ in self.refused}

    @property
    def profiles(self) -> set[str]:
        """Browsers that were refused."""
        return {profile for _, profile in self.refused}

    def known(self, proxy_id: int, profile: str, proxy_score: Score, profile_score: Score) -> None:
        """What was known of an identity when it was chosen."""
        self._known[proxy_id, profile] = (proxy_score, profile_score)

    def add(self, proxy_id: int, profile: str, judgement: Judgement, *, answered: bool) -> None:
        """One try's outcome."""
        if answered:
            self.reached.add(proxy_id)
        if judgement.verdict in REFUSALS:
            self.refused.append((proxy_id, profile))
            self._reason[proxy_id] = judgement.reason
        elif judgement.blame is Blame.PROXY_OR_TARGET:
            self.suspects[proxy_id] = judgement.reason
        if judgement.blame in (Blame.PROXY, Blame.PROXY_OR_TARGET) or judgement.verdict is Verdict.PATH_RESET:
            self.faulty.add(proxy_id)

    def events(self, let_in: int | None, *, host_refuses: bool = False) -> list[Happened]:
        """What is to be counted for proxies, once it is known which one was let in (None: none was).

        One refusal a request and proxy, however many browsers it tried: a pool of one is not used up by a single request. The same
        proxy with another browser was let in: the proxy was not the trouble. `host_refuses`: it is known that the host
        refuses everybody.
        """
        found: list[Happened] = []
        refused = dict.fromkeys(proxy_id for proxy_id, _ in self.refused)
        everybody = let_in is None and (host_refuses or len(refused) > 1)
        event = Event.HOST_REFUSES if everybody else Event.REFUSED
        found.extend(
            Happened(proxy_id=proxy_id, event=event, error=self._reason[proxy_id])
            for proxy_id in refused
            if proxy_id != let_in
        )
        for proxy_id, reason in self.suspects.items():
            if self.reached - {proxy_id} and proxy_id not in self.reached:
                found.append(Happened(proxy_id=proxy_id, event=Event.FAULT, error=reason))
        return found

    def experiences(self, host: str, let_in: int | None) -> list[Experience]:
        """Refusals as experiences of proxy and browser: none where nobody was let in, for then it was the host."""
        if let_in is None:
            return []
        found = []
        for proxy_id, profile in self.refused:
            proxy_share, profile_share = blame(*self._known.get((proxy_id, profile), (Score(), Score())))
            if proxy_id == let_in:
                # The same proxy was let in with another browser.
                proxy_share, profile_share = 0.0, 1.0
            found.append(Experience(host, proxy_id, profile, proxy_bad=proxy_share, profile_bad=profile_share))
        return found
