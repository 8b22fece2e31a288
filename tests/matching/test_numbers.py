"""Numbers of canonical products outlive every way in which listings are grouped again."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from menuwatch.matching.numbers import Holder, Move, Numbering, Retired, carry

LISTINGS = range(1, 13)
partitions = st.lists(st.integers(0, 4), min_size=len(LISTINGS), max_size=len(LISTINGS)).map(
    lambda places: [
        tuple(n for n, place in zip(LISTINGS, places, strict=True) if place == at) for at in sorted(set(places))
    ]
)
formers = st.dictionaries(st.sampled_from(list(LISTINGS)), st.integers(100, 104))


def numbered(groups: Sequence[Sequence[int]], numbering: Numbering, first_new: int = 900) -> list[int]:
    """The number of each group, new ones counted from `first_new`."""
    new = {at: first_new + n for n, at in enumerate(numbering.new)}
    return [number if number is not None else new[at] for at, number in enumerate(numbering.numbers)]


def test_new_numbers_are_given_by_the_lowest_listing() -> None:
    assert numbered([(7, 9), (3,), (5, 1)], carry([(7, 9), (3,), (5, 1)], {})) == [902, 901, 900]


def test_the_biggest_share_wins_and_the_other_number_redirects() -> None:
    numbering = carry([(1, 2, 3)], {1: 10, 2: 20, 3: 20})
    assert numbering.numbers == (20,)
    assert numbering.merged == {10: 0}
    assert numbering.moves == (Move(10, 0, 1),)


def test_of_equal_shares_the_lower_number_wins() -> None:
    assert carry([(1, 2)], {1: 20, 2: 10}).numbers == (10,)


def test_a_number_stays_with_most_of_its_listings_and_the_others_get_a_new_one() -> None:
    numbering = carry([(1,), (2, 3)], {1: 10, 2: 10, 3: 10})
    assert numbering.numbers == (None, 10)
    assert numbering.new == (0,)
    assert numbering.merged == {}
    assert numbering.moves == (Move(10, 0, 1),)


def test_of_equal_parts_the_one_with_the_anchor_keeps_the_number() -> None:
    assert carry([(1,), (2,)], {1: 10, 2: 10}, anchors={10: 2}).numbers == (None, 10)
    assert carry([(1,), (2,)], {1: 10, 2: 10}).numbers == (10, None)


def test_of_equal_parts_the_one_that_is_written_as_before_keeps_the_number() -> None:
    assert carry([(1,), (2,)], {1: 10, 2: 10}, anchors={10: 1}, unchanged={2}).numbers == (None, 10)


def test_a_listing_that_moves_takes_the_number_along_only_if_nobody_else_has_it() -> None:
    former = {1: 10}
    assert carry([(1,)], former).numbers == (10,)
    assert carry([(1,)], former, elsewhere={10: [Holder(1, 2, True)]}).numbers == (None,)


def test_of_two_waiting_blocks_exactly_one_keeps_the_number() -> None:
    few, many = [(1, 2)], [(3, 4, 5)]
    former = dict.fromkeys(LISTINGS, 10)
    assert carry(few, former, elsewhere={10: [Holder(3, 3, False)]}).numbers == (None,)
    assert carry(many, former, elsewhere={10: [Holder(2, 1, False)]}).numbers == (10,)


def test_a_number_that_is_held_elsewhere_does_not_end() -> None:
    numbering = carry([(1, 2, 3)], {1: 10, 2: 20, 3: 20}, elsewhere={10: [Holder(4, 8, True)]})
    assert numbering.numbers == (20,)
    assert numbering.merged == {}
    assert numbering.moves == (Move(10, 0, 1),)


def test_a_merged_number_returns_when_its_listings_separate() -> None:
    numbering = carry([(1,), (2, 3)], dict.fromkeys((1, 2, 3), 20), retired=[Retired(10, 20, 1)])
    assert numbering.numbers == (10, 20)
    assert numbering.returned == {10: 0}
    assert numbering.new == ()


def test_a_merged_number_returns_though_its_part_has_grown() -> None:
    former = dict.fromkeys(range(1, 6), 20)
    numbering = carry([(1, 4, 5), (2, 3)], former, anchors={20: 2}, retired=[Retired(10, 20, 1)])
    assert numbering.numbers == (10, 20)


def test_what_was_merged_into_a_returning_number_follows_it() -> None:
    numbering = carry(
        [(1, 4), (2, 3, 5)], dict.fromkeys(range(1, 6), 20), retired=[Retired(10, 20, 1), Retired(12, 20, 4)]
    )
    assert numbering.numbers == (10, 20)
    assert numbering.redirected == {12: 0}


@given(partitions, formers)
def test_each_number_goes_to_one_group_or_redirects(groups: list[tuple[int, ...]], former: dict[int, int]) -> None:
    numbering = carry(groups, former)
    kept = [number for number in numbering.numbers if number is not None]
    assert len(kept) == len(set(kept))
    assert set(kept) | numbering.merged.keys() == set(former.values())
    assert not set(kept) & numbering.merged.keys()
    for at, number in enumerate(numbering.numbers):
        assert number is None or number in {former.get(listing) for listing in groups[at]}
    for at in numbering.merged.values():
        assert numbering.numbers[at] is not None


@given(partitions, formers, st.randoms(use_true_random=False))
def test_order_does_not_matter(groups: list[tuple[int, ...]], former: dict[int, int], random: object) -> None:
    shuffled = list(groups)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    pairs = sorted(former.items(), reverse=True)
    one = dict(zip(groups, numbered(groups, carry(groups, former)), strict=True))
    other = dict(zip(shuffled, numbered(shuffled, carry(shuffled, dict(pairs))), strict=True))
    assert one == other


@given(partitions)
def test_the_same_groups_keep_their_numbers(groups: list[tuple[int, ...]]) -> None:
    first = numbered(groups, carry(groups, {}))
    former = {listing: number for listings, number in zip(groups, first, strict=True) for listing in listings}
    again = carry(groups, former)
    assert list(again.numbers) == first
    assert (again.new, again.merged, again.moves) == ((), {}, ())


@given(partitions)
def test_merging_all_and_separating_them_again_gives_the_same_numbers(groups: list[tuple[int, ...]]) -> None:
    first = numbered(groups, carry(groups, {}))
    former = {listing: number for listings, number in zip(groups, first, strict=True) for listing in listings}
    anchors = {number: min(listings) for listings, number in zip(groups, first, strict=True)}
    merged = carry([tuple(LISTINGS)], former, anchors=anchors)
    (number,) = merged.numbers
    assert number is not None
    retired = [Retired(one, number, anchors[one]) for one in merged.merged]
    apart = carry(groups, dict.fromkeys(LISTINGS, number), anchors=anchors, retired=retired)
    assert list(apart.numbers) == first
