"""What is done about each verdict. Expected values are the issue's and SPEC section 8's, not the table's."""

from __future__ import annotations

import pytest

from menuwatch.core.errors import Blocked, MenuwatchError, Permanent, Throttled, Transient
from menuwatch.fetch.classify import Blame, Classification, Verdict
from menuwatch.fetch.retry_policy import COLUMNS, REACTIONS, Action, Tries, failure, react, rows
from menuwatch.proxies.health import ProxyOutcome

RETURN, RETRY, ROTATE_IDENTITY, CHANGE_PROXY, GIVE_UP = (
    Action.RETURN,
    Action.RETRY,
    Action.ROTATE_IDENTITY,
    Action.CHANGE_PROXY,
    Action.GIVE_UP,
)

# verdict, whether the target answered, the moves one after the other when it never gets better.
MOVES: list[tuple[str, bool, list[Action]]] = [
    ("ok", True, [RETURN]),
    ("empty_suspect", True, [RETURN]),
    ("schema_changed", True, [RETURN]),
    ("client_bug", True, [RETURN]),
    ("client_bug", False, [GIVE_UP]),
    ("rate_limited", True, [GIVE_UP]),
    ("rate_limited", False, [GIVE_UP]),
    ("too_large", False, [GIVE_UP]),
    ("blocked", True, [ROTATE_IDENTITY] * 3 + [GIVE_UP]),
    ("challenge", True, [ROTATE_IDENTITY] * 3 + [GIVE_UP]),
    ("proxy_config", False, [CHANGE_PROXY] * 5 + [GIVE_UP]),
    ("proxy_down", False, [CHANGE_PROXY] * 5 + [GIVE_UP]),
    ("tls_untrusted", False, [CHANGE_PROXY] * 5 + [GIVE_UP]),
    ("path_reset", False, [RETRY] + [CHANGE_PROXY] * 5 + [GIVE_UP]),
    ("target_down", True, [RETRY, RETRY, GIVE_UP]),
    ("target_down", False, [RETRY, RETRY, GIVE_UP]),
]


@pytest.mark.parametrize(("name", "answered", "moves"), MOVES)
def test_moves(name: str, answered: bool, moves: list[Action]) -> None:
    tries = Tries()
    assert [react(Verdict(name), tries, answered=answered) for _ in moves] == moves
    assert tries.total == len(moves) - 1
    # What is used up stays so.
    assert react(Verdict(name), tries, answered=answered) is moves[-1]


def test_no_request_changes_its_identity_for_refusals_more_than_three_times() -> None:
    tries = Tries()
    met = [Verdict.BLOCKED, Verdict.CHALLENGE, Verdict.PROXY_DOWN, Verdict.TARGET_DOWN] * 4
    assert [react(verdict, tries, answered=True) for verdict in met].count(Action.ROTATE_IDENTITY) == 3


def test_every_verdict_has_its_reaction() -> None:
    assert set(REACTIONS) == set(Verdict)


# verdict → what is counted for the proxy, for the identity, whether the host cools down, the error, whether the task is put off
CONSEQUENCES: dict[str, tuple[ProxyOutcome | None, str | None, bool, type[MenuwatchError] | None, bool]] = {
    "ok": (ProxyOutcome.SUCCESS, "good", False, None, False),
    "empty_suspect": (ProxyOutcome.SUCCESS, None, False, None, False),
    "schema_changed": (ProxyOutcome.SUCCESS, None, False, None, False),
    "client_bug": (ProxyOutcome.SUCCESS, None, False, Permanent, False),
    "rate_limited": (None, None, True, Throttled, True),
    "blocked": (ProxyOutcome.REFUSED, "bad", False, Blocked, True),
    "challenge": (ProxyOutcome.REFUSED, "bad", False, Blocked, True),
    "proxy_config": (ProxyOutcome.FAULT, None, False, Transient, False),
    "proxy_down": (ProxyOutcome.FAULT, None, False, Transient, False),
    "tls_untrusted": (ProxyOutcome.FAULT, None, False, Transient, False),
    "path_reset": (None, None, False, Transient, False),
    "target_down": (None, None, False, Transient, False),
    "too_large": (None, None, False, Permanent, False),
}


@pytest.mark.parametrize("name", CONSEQUENCES)
def test_consequences(name: str) -> None:
    reaction = REACTIONS[Verdict(name)]
    assert (
        reaction.proxy_event, reaction.identity, reaction.triggers_cooldown, reaction.error, reaction.postpones
    ) == CONSEQUENCES[name]  # fmt: skip


def test_only_a_host_in_trouble_is_slowed_down() -> None:
    assert {str(verdict) for verdict, row in REACTIONS.items() if row.reduces_rate} == {"rate_limited", "target_down"}


@pytest.mark.parametrize("verdict", [verdict for verdict in Verdict if REACTIONS[verdict].error is not None])
def test_the_error_names_host_and_reason(verdict: Verdict) -> None:
    classification = Classification(verdict=verdict, blame=Blame.NONE, reason="because", retry_after=77.0)
    error = failure(classification, "menus.example", 4)
    assert type(error) is REACTIONS[verdict].error
    assert "menus.example" in str(error)
    assert "because" in str(error)
    assert getattr(error, "retry_after", 77.0) == 77.0


def test_the_table_for_people_has_a_row_for_each_verdict() -> None:
    table = {row[0]: row for row in rows()}
    assert list(table) == [str(verdict) for verdict in Verdict]
    assert all(len(row) == len(COLUMNS) and all(row) for row in table.values())
    assert table["blocked"][1] == "refused; another proxy and browser are tried, 3 times at most"
    assert "|" not in "".join(cell for row in table.values() for cell in row), "it goes into a Markdown table"
