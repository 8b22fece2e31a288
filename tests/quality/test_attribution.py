"""Which cause findings have in common."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from menuwatch.quality.attribution import Cause, MeasuredStore, attribute


def _stores(
    out: set[int], count: int = 20, *, leaning: set[int] | None = None, changed: bool = False
) -> list[MeasuredStore]:
    """Stores 0 to 9 are of platform a, the others of b; each five in a row are a chain, odd ones have a point of sale of their own."""
    return [
        MeasuredStore(
            id=n, platform="a" if n < 10 else "b", chain=f"chain {n // 5}", point_of_sale="till" if n % 2 else None,
            is_out=n in out, leans=n in (leaning or set()), release_changed=changed,
        )
        for n in range(count)
    ]  # fmt: skip


def test_one_store_is_one_store() -> None:
    assert attribute(_stores({3})) == {3: Cause("store", None, 1, 1)}
    assert attribute(_stores(set())) == {}
    # Two of two chains are two stores.
    assert {cause.scope for cause in attribute(_stores({3, 7})).values()} == {"store"}


def test_a_chain_a_platform_a_point_of_sale_and_a_release() -> None:
    chain = attribute(_stores({0, 1, 2, 3, 4}))
    assert set(chain.values()) == {Cause("chain", "chain 0", 5, 5)}
    platform = attribute(_stores(set(range(10))))
    assert set(platform.values()) == {Cause("platform", "a", 10, 10)}
    release = attribute(_stores(set(range(10)), changed=True))
    assert set(release.values()) == {Cause("normalizer", "a", 10, 10)}
    till = attribute(_stores({1, 3, 5, 7, 9, 11, 13, 15, 17, 19}))
    assert set(till.values()) == {Cause("point_of_sale", "till", 10, 10)}
    # A release changes all stores: a single one that is out is still a single one.
    assert attribute(_stores({4}, changed=True)) == {4: Cause("store", None, 1, 1)}


def test_stores_that_lean_count_for_their_scope() -> None:
    some = {0, 2, 5, 9}
    assert {cause.scope for cause in attribute(_stores(some)).values()} == {"store"}
    leaning = attribute(_stores(some, leaning={1, 3, 4, 6}))
    assert set(leaning.values()) == {Cause("platform", "a", 8, 10)}


def test_two_causes_at_once() -> None:
    found = attribute(_stores({0, 1, 2, 3, 4, 12}))
    assert {n: found[n].scope for n in found} == {**dict.fromkeys(range(5), "chain"), 12: "store"}


@given(st.sets(st.integers(0, 19)), st.sets(st.integers(0, 19)), st.booleans())
def test_every_store_that_is_out_has_one_cause(out: set[int], leaning: set[int], changed: bool) -> None:
    stores = _stores(out, leaning=leaning, changed=changed)
    found = attribute(stores)
    assert found.keys() == out
    assert attribute(reversed(stores)) == found
    for store_id, cause in found.items():
        assert 1 <= cause.affected <= cause.stores
        if cause.scope == "store":
            assert cause == Cause("store", None, 1, 1)
        else:
            assert cause.key == getattr(stores[store_id], "platform" if cause.scope == "normalizer" else cause.scope)
            assert cause.affected >= 0.6 * cause.stores
            assert cause.scope != "normalizer" or changed
