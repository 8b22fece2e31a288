"""Whose fault it was, once the end of a request shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.fetch.classify import Blame, Classification, Verdict
from menuwatch.fetch.request_history import RequestHistory
from menuwatch.hosts.scores import Score
from menuwatch.proxies.health import ProxyOutcome

BLOCKED = Classification(verdict=Verdict.BLOCKED, blame=Blame.IDENTITY, reason="refused with HTTP 403")
CHALLENGE = Classification(verdict=Verdict.CHALLENGE, blame=Blame.IDENTITY, reason="a challenge page")
MITM = Classification(
    verdict=Verdict.TLS_UNTRUSTED, blame=Blame.PROXY_OR_TARGET, reason="the certificate is not trusted"
)
DOWN = Classification(verdict=Verdict.PROXY_DOWN, blame=Blame.PROXY, reason="the proxy does not respond")
RESET = Classification(verdict=Verdict.PATH_RESET, blame=Blame.NONE, reason="connection lost")
OK = Classification(verdict=Verdict.OK, blame=Blame.NONE, reason="HTTP 200")
ANSWERED = {Verdict.BLOCKED, Verdict.CHALLENGE, Verdict.OK}

Step = tuple[int, str, Classification]


def history(*steps: Step) -> RequestHistory:
    made = RequestHistory()
    for proxy_id, profile, classification in steps:
        made.add(proxy_id, profile, classification, answered=classification.verdict in ANSWERED)
    return made


def counted(made: RequestHistory, let_in: int | None, *, host_refuses: bool = False) -> dict[int, ProxyOutcome]:
    found = made.events(let_in, host_refuses=host_refuses)
    assert max(Counter(item.proxy_id for item in found).values(), default=0) <= 1, "one event a request and proxy"
    assert all(item.error for item in found)
    return {item.proxy_id: item.event for item in found}


@pytest.mark.parametrize(
    ("steps", "let_in", "host_refuses", "expected"),
    [
        ([], None, False, {}),
        ([(1, "a", OK)], 1, False, {}),
        # Refused alone, another let in: the proxy's.
        ([(1, "a", BLOCKED), (2, "b", OK)], 2, False, {1: ProxyOutcome.REFUSED}),
        (
            [(1, "a", CHALLENGE), (2, "b", BLOCKED), (3, "c", OK)],
            3,
            False,
            {1: ProxyOutcome.REFUSED, 2: ProxyOutcome.REFUSED},
        ),
        # The same proxy with another browser was let in: not the proxy's.
        ([(1, "a", BLOCKED), (1, "b", OK)], 1, False, {}),
        ([(1, "a", BLOCKED), (2, "b", BLOCKED), (1, "c", OK)], 1, False, {2: ProxyOutcome.REFUSED}),
        # Several refused and none let in: the host.
        (
            [(n, "a", BLOCKED) for n in (1, 2, 3, 4)],
            None,
            False,
            dict.fromkeys((1, 2, 3, 4), ProxyOutcome.HOST_REFUSES),
        ),
        # A pool of one: once a request, whatever it wore.
        ([(1, p, BLOCKED) for p in "abcd"], None, False, {1: ProxyOutcome.REFUSED}),
        # It was known that the host refuses everybody.
        ([(1, "a", BLOCKED)], None, True, {1: ProxyOutcome.HOST_REFUSES}),
        ([(1, "a", BLOCKED), (2, "b", OK)], 2, True, {1: ProxyOutcome.REFUSED}),
        # A certificate that nobody trusts.
        ([(1, "a", MITM), (2, "a", OK)], 2, False, {1: ProxyOutcome.FAULT}),
        ([(1, "a", MITM), (2, "a", MITM), (3, "a", MITM)], None, False, {}),
        ([(1, "a", MITM), (2, "b", BLOCKED)], None, False, {1: ProxyOutcome.FAULT, 2: ProxyOutcome.REFUSED}),
        ([(1, "a", MITM), (1, "a", OK)], 1, False, {}),
        ([(1, "a", OK), (1, "a", MITM), (2, "a", OK)], 2, False, {}),
        # Known at once, and counted then.
        ([(1, "a", DOWN), (2, "a", OK)], 2, False, {}),
        ([(1, "a", MITM), (2, "a", DOWN)], None, False, {}),
    ],
)
def test_events(steps: list[Step], let_in: int | None, host_refuses: bool, expected: dict[int, ProxyOutcome]) -> None:
    assert counted(history(*steps), let_in, host_refuses=host_refuses) == expected


def test_who_is_avoided() -> None:
    made = history((1, "a", BLOCKED), (2, "b", DOWN), (3, "c", MITM), (4, "d", RESET), (5, "e", OK))
    assert made.avoid == {1, 2, 3, 4}
    assert made.profiles == {"a"}


def test_a_refusal_is_shared_by_what_was_feared_of_each() -> None:
    made = RequestHistory()
    made.known(1, "feared", Score(good=40.0), Score(bad=36.0))
    made.add(1, "feared", BLOCKED, answered=True)
    made.add(2, "b", OK, answered=True)
    (item,) = made.observations("h", 2)
    # Fears: 1 - 44/45 of the proxy, 1 - 4/41 of the browser.
    assert item.proxy_bad == pytest.approx((1 / 45) / (1 / 45 + 37 / 41))
    assert item.profile_bad == pytest.approx(1 - item.proxy_bad)


def test_the_same_proxy_let_in_with_another_browser_blames_the_browser_alone() -> None:
    (item,) = history((1, "a", BLOCKED), (1, "b", OK)).observations("h", 1)
    assert (item.profile, item.proxy_bad, item.profile_bad) == ("a", 0.0, 1.0)


steps = st.lists(
    st.tuples(st.integers(1, 4), st.sampled_from("abc"), st.sampled_from([BLOCKED, CHALLENGE, MITM, DOWN, RESET])),
    max_size=10,
)


@given(before=steps, last=st.none() | st.integers(1, 4))
def test_whatever_the_story(before: Sequence[Step], last: int | None) -> None:
    made = history(*before, *([(last, "z", OK)] if last else []))
    found = counted(made, last)
    refused = {proxy_id for proxy_id, _, classification in before if classification in (BLOCKED, CHALLENGE)}
    for proxy_id, event in found.items():
        assert proxy_id != last, "who was let in has no fault"
        if event is ProxyOutcome.FAULT:
            assert any((number, classification) == (proxy_id, MITM) for number, _, classification in before)
            assert made.reached - {proxy_id}
        else:
            assert proxy_id in refused
            assert event is (ProxyOutcome.HOST_REFUSES if last is None and len(refused) > 1 else ProxyOutcome.REFUSED)
    observations = made.observations("h", last)
    assert len(observations) == (sum(j in (BLOCKED, CHALLENGE) for _, _, j in before) if last else 0)
    for item in observations:
        assert item.proxy_bad + item.profile_bad == pytest.approx(1)
        assert item.proxy_good == item.profile_good == 0
