"""Who is chosen and who is blamed, over thousands of requests with the real functions."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.fetch.choose_identity import choose_identity
from menuwatch.fetch.classify import Blame, Classification, Verdict
from menuwatch.fetch.profiles import PROFILES, plausible
from menuwatch.fetch.request_history import RequestHistory
from menuwatch.fetch.retry_policy import Action, Tries, react
from menuwatch.hosts.scores import Candidate, Observation, Score, aggregate, attribute_blame, rank
from menuwatch.proxies.health import Health, ProxyOutcome, apply_event
from menuwatch.proxies.model import Proxy

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
TODAY = date(2026, 3, 1)

amounts = st.floats(0, 1e6)
scores = st.builds(Score, amounts, amounts, st.just(NOW))


def proxy(number: int) -> Proxy:
    return Proxy(
        id=number, protocol="http", host="proxy.invalid", port=8080, username=None, password=None, is_active=True, city=None,
        state="AZ", country="US", timezone=None, last_used_at=None, failure_count=0, success_count=0, consecutive_403_count=0,
        avg_response_time_ms=None, last_failure_at=None, last_error=None, deactivated_at=None, created_at=NOW, updated_at=NOW,
    )  # fmt: skip


@given(score=scores, hours=st.floats(0, 1000))
def test_experiences_halve_every_six_hours(score: Score, hours: float) -> None:
    later = score.at(NOW + timedelta(hours=hours))
    assert later.good == pytest.approx(score.good / 2 ** (hours / 6), rel=1e-6, abs=1e-12)
    assert later.bad == pytest.approx(score.bad / 2 ** (hours / 6), rel=1e-6, abs=1e-12)
    twice = score.at(NOW + timedelta(hours=hours / 2)).at(NOW + timedelta(hours=hours))
    assert twice.good == pytest.approx(later.good, rel=1e-6, abs=1e-12)


def test_a_clock_that_goes_back_makes_nothing_grow() -> None:
    assert Score(4.0, 2.0, NOW).at(NOW - timedelta(days=1)).good == 4.0


@given(proxy_score=scores, profile_score=scores)
def test_shares_of_the_blame_add_up_to_one(proxy_score: Score, profile_score: Score) -> None:
    shares = attribute_blame(proxy_score, profile_score)
    assert sum(shares) == pytest.approx(1)
    assert min(shares) > 0
    # Whoever is more to be feared has the larger share.
    riskier = proxy_score.success_probability <= profile_score.success_probability
    assert (shares[0] >= 0.5) is riskier or shares[0] == pytest.approx(0.5)
    assert attribute_blame(profile_score, proxy_score) == pytest.approx(shares[::-1])


@given(score=scores)
def test_chances_are_chances(score: Score) -> None:
    assert 0 < score.success_probability < 1
    drawn = score.sample(random.Random(1))
    assert 0 <= drawn <= 1
    assert score.bad >= 0.05 or drawn == 1.0


def test_proxies_that_were_never_refused_are_used_evenly_the_longest_rested_first() -> None:
    rng = random.Random(3)
    used: dict[int, float] = {}
    order = []
    for now in range(1, 201):
        candidates = [Candidate(n, Score(good=n * 10.0, as_of=NOW), used.get(n)) for n in range(1, 21)]
        first = rank(candidates, rng)[0]
        used[first] = float(now)
        order.append(first)
    assert order == list(range(1, 21)) * 10


def test_a_proxy_that_was_refused_three_times_is_seldom_first_and_still_now_and_then() -> None:
    rng = random.Random(4)
    used = dict.fromkeys(range(1, 11), 0.0)
    first: Counter[int] = Counter()
    for now in range(1, 5001):
        candidates = [Candidate(n, Score(good=20.0, bad=3.0 if n == 1 else 0.0), used[n]) for n in range(1, 11)]
        candidates[0] = Candidate(1, Score(bad=3.0), used[1])
        chosen = rank(candidates, rng)[0]
        used[chosen] = float(now)
        first[chosen] += 1
    assert 0 < first[1] < 500 / 2, "less than half of an even share, never nothing"
    assert max(first[n] for n in range(2, 11)) - min(first[n] for n in range(2, 11)) <= 2


def test_nobody_is_left_out() -> None:
    candidates = [Candidate(n, Score(bad=float(n)), None) for n in range(1, 9)]
    assert sorted(rank(candidates, random.Random(5))) == list(range(1, 9))
    assert rank([], random.Random(5)) == []


def test_experiences_are_summed_by_host_and_party() -> None:
    one = Observation("a", 1, "x", proxy_good=1, profile_good=1)
    two = Observation("a", 1, "y", proxy_bad=0.25, profile_bad=0.75)
    three = Observation("b", 1, "x", proxy_bad=0.5, profile_bad=0.5)
    by_proxy, by_profile = aggregate([one, two, three])
    assert by_proxy == {("a", 1): [1, 0.25], ("b", 1): [0, 0.5]}
    assert by_profile == {("a", "x"): [1, 0], ("a", "y"): [0, 0.75], ("b", "x"): [0, 0.5]}


class World:
    """Requests one after the other, every two seconds, behind 20 proxies; `refuses` is the host."""

    def __init__(self, seed: int, refuses: Callable[[int, str], bool]) -> None:
        self.rng = random.Random(seed)
        self.refuses = refuses
        self.proxies = {n: proxy(n) for n in range(1, 21)}
        self.health = {n: Health() for n in self.proxies}
        self.proxy_scores: dict[int, Score] = {}
        self.profile_scores: dict[str, Score] = {}
        self.used: dict[int, float] = {}
        self.now = NOW
        self.requests: list[tuple[int, str, bool]] = []
        self.most_403 = dict.fromkeys(self.proxies, 0)
        self.gave_up = 0

    def run(self, many: int) -> None:
        for _ in range(many):
            self.one()

    def one(self) -> None:
        history, tries, let_in = RequestHistory(), Tries(), None
        while True:
            self.now += timedelta(seconds=2)
            active = [n for n, health in self.health.items() if health.is_active]
            others = [n for n in active if n not in history.avoid] or active
            known = {n: self.proxy_scores.get(n, Score()).at(self.now) for n in active}
            number = rank([Candidate(n, known[n], self.used.get(n)) for n in others], self.rng)[0]
            self.used[number] = self.now.timestamp()
            profiles = {name: score.at(self.now) for name, score in self.profile_scores.items()}
            identity = choose_identity(
                self.proxies[number],
                store_state="AZ",
                rng=self.rng,
                today=TODAY,
                avoid=history.profiles,
                scores=profiles,
            )
            name = identity.profile.name
            history.known(number, name, known[number], profiles.get(name, Score()))
            refused = self.refuses(number, name)
            self.requests.append((number, name, refused))
            verdict = Verdict.BLOCKED if refused else Verdict.OK
            classification = Classification(
                verdict=verdict, blame=Blame.IDENTITY if refused else Blame.NONE, reason="403"
            )
            history.add(number, name, classification, answered=True)
            move = react(verdict, tries, answered=True)
            if not refused:
                let_in = number
                self.learn([Observation("h", number, name, proxy_good=1, profile_good=1)])
                self.health[number] = apply_event(self.health[number], ProxyOutcome.SUCCESS)
                break
            if move is Action.GIVE_UP:
                self.gave_up += 1
                break
        for happened in history.events(let_in):
            health = self.health[happened.proxy_id] = apply_event(self.health[happened.proxy_id], happened.event)
            self.most_403[happened.proxy_id] = max(self.most_403[happened.proxy_id], health.consecutive_403_count)
        self.learn(history.observations("h", let_in))

    def learn(self, observations: list[Observation]) -> None:
        by_proxy, by_profile = aggregate(observations)
        for (_, number), (good, bad) in by_proxy.items():
            old = self.proxy_scores.get(number, Score()).at(self.now)
            self.proxy_scores[number] = Score(old.good + good, old.bad + bad, self.now)
        for (_, name), (good, bad) in by_profile.items():
            old = self.profile_scores.get(name, Score()).at(self.now)
            self.profile_scores[name] = Score(old.good + good, old.bad + bad, self.now)

    def share(self, of: Callable[[int, str], bool], last: int) -> float:
        lately = self.requests[-last:]
        return sum(of(number, name) for number, name, _ in lately) / len(lately)


HEAVIEST = max(plausible(PROFILES, "US", TODAY), key=lambda item: item[1])[0].name
LIGHTEST = min(plausible(PROFILES, "US", TODAY), key=lambda item: item[1])[0].name


@pytest.mark.parametrize("bad", [HEAVIEST, LIGHTEST])
@pytest.mark.parametrize("seed", range(2))
def test_a_browser_that_is_always_refused_burns_no_proxy_and_is_soon_seldom_tried(bad: str, seed: int) -> None:
    world = World(seed, lambda _, name: name == bad)
    world.run(3000)
    assert max(world.most_403.values()) < 5
    assert all(health.is_active for health in world.health.values())
    assert world.share(lambda _, name: name == bad, 2000) < 0.02
    assert world.gave_up == 0
    assert len({number for number, _, _ in world.requests[-200:]}) == 20, "all proxies are still in use"


@pytest.mark.parametrize("seed", range(2))
def test_a_proxy_that_is_always_refused_is_found_and_no_browser_suffers(seed: int) -> None:
    world = World(seed, lambda number, _: number == 7)
    world.run(3000)
    assert world.share(lambda number, _: number == 7, 2000) < 0.02
    assert all(health.is_active for number, health in world.health.items() if number != 7)
    counts = Counter(name for _, name, _ in world.requests[-2000:])
    weights = {profile.name: weight for profile, weight in plausible(PROFILES, "US", TODAY)}
    total = sum(weights.values())
    for name, weight in weights.items():
        assert counts[name] / 2000 == pytest.approx(weight / total, rel=0.5, abs=0.015), name


@pytest.mark.parametrize("seed", range(2))
def test_a_tired_proxy_rests_and_comes_back(seed: int) -> None:
    """Refused whenever it was asked more than three times within the last ten minutes; the others never are."""
    asked: list[float] = []
    world = World(seed, lambda number, _: False)

    def refuses(number: int, _name: str) -> bool:
        if number != 7:
            return False
        at = world.now.timestamp()
        asked.append(at)
        return sum(at - before < 600 for before in asked) > 3

    world.refuses = refuses
    world.run(3000)
    assert [n for n, health in world.health.items() if not health.is_active] in ([], [7])
    assert world.share(lambda number, _: number == 7, 2000) < 0.03
    assert world.gave_up == 0


def test_a_host_that_refuses_everybody_teaches_nothing_about_anybody() -> None:
    world = World(1, lambda *_: True)
    world.run(50)
    assert world.gave_up == 50
    assert world.proxy_scores == world.profile_scores == {}
    assert all(health.is_active and health.consecutive_403_count == 0 for health in world.health.values())


def test_a_browser_that_was_refused_is_tried_again_the_next_day() -> None:
    world = World(2, lambda _, name: name == HEAVIEST)
    world.run(1000)
    world.refuses = lambda *_: False
    world.now += timedelta(hours=48)
    world.run(500)
    assert world.share(lambda _, name: name == HEAVIEST, 400) > 0.05
