"""Two signatures share a place exactly if one store listed both in one size at one time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from menuwatch.matching.places import Lifetime, places


def overlap(a: Lifetime, b: Lifetime) -> bool:
    ends = [float("inf") if one.until is None else max(one.until, one.since) for one in (a, b)]
    return (a.store, a.size) == (b.store, b.size) and a.since <= ends[1] and b.since <= ends[0]


lifetimes = st.lists(
    st.builds(
        Lifetime,
        signature=st.integers(1, 5),
        store=st.integers(1, 2),
        size=st.sampled_from(["", "3.5 g"]),
        since=st.integers(0, 9).map(float),
        until=st.none() | st.integers(0, 12).map(float),
    ),
    max_size=8,
)


@given(lifetimes)
def test_places_are_shared_by_those_who_were_there_together(there: list[Lifetime]) -> None:
    found = places(there)
    for a in range(1, 6):
        for b in range(a + 1, 6):
            together = any(overlap(x, y) for x in there for y in there if (x.signature, y.signature) == (a, b))
            assert bool(found.get(a, frozenset()) & found.get(b, frozenset())) == together


def test_a_store_and_size_without_ends_is_one_place() -> None:
    found = places([Lifetime(1, 7, "3.5 g", 0.0, None), Lifetime(2, 7, "3.5 g", 5.0, None)])
    assert found == {1: frozenset({("7", "3.5 g")}), 2: frozenset({("7", "3.5 g")})}
