"""The page walk against servers that behave like the real one, and against ones that do anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.platforms.paging import MAX_PAGES, Ask, Pager, Stop

Answer = tuple[list[str | None], int | None, int | None]


def walk(answer: Callable[[int, int], Answer], per_page: int = 100) -> tuple[Pager, Stop, list[int], set[str | None]]:
    """Runs a crawl; `answer` is given the page and how many requests there were before. Returns what was asked and got."""
    pager = Pager(per_page)
    asked: list[int] = []
    got: set[str | None] = set()
    step: Ask | Stop = Ask(0)
    while isinstance(step, Ask):
        ids, total, pages = answer(step.page, len(asked))
        asked.append(step.page)
        got.update(ids)
        step = pager.feed(ids, total, pages)
        assert len(asked) <= 3 * 2 * MAX_PAGES, "it never ends"
    return pager, step, asked, got


@dataclass
class Server:
    """A menu behind a server: `clamp` rows a page, `pinned` products repeated on top of every page after the first."""

    size: int
    clamp: int = 100
    pinned: int = 0
    lie: int = 0
    tells_pages: bool = True
    honest_pages: bool = False
    empty_once: set[int] = field(default_factory=set)

    def __call__(self, page: int, _before: int) -> Answer:
        ids = [f"p{i}" for i in range(self.size)]
        total = self.size + self.lie
        pages = -(-(self.size if self.honest_pages else total) // self.clamp) if self.tells_pages else None
        if page in self.empty_once:
            self.empty_once.discard(page)
            return [], total, pages
        rows: list[str | None] = list(ids[page * self.clamp : (page + 1) * self.clamp])
        if page and rows:
            rows = [*ids[: self.pinned], *rows]
        return rows, total, pages


def ids(*spans: tuple[int, int]) -> list[str | None]:
    return [f"p{i}" for start, end in spans for i in range(start, end)]


def test_the_recorded_shape_138_products_on_2_pages() -> None:
    pager, stop, asked, got = walk(Server(138))
    assert (stop, asked, len(got), pager.product_count) == (Stop(complete=True), [0, 1], 138, 138)
    assert pager.notes == ()


def test_one_short_page() -> None:
    pager, stop, asked, _ = walk(Server(38))
    assert (stop, asked, pager.notes) == (Stop(complete=True), [0], ())


def test_clamped_to_50_with_pinned_duplicates() -> None:
    pager, stop, asked, got = walk(Server(138, clamp=50, pinned=3))
    assert (stop.complete, asked, len(got), pager.product_count) == (True, [0, 1, 2], 138, 138)
    assert pager.notes == ("6 rows were repeats",)


def test_clamped_without_total_pages() -> None:
    _, stop, asked, got = walk(Server(138, clamp=50, tells_pages=False))
    assert (stop.complete, asked, len(got)) == (True, [0, 1, 2], 138)


def test_empty_page_after_a_full_one_is_asked_again() -> None:
    pager, stop, asked, got = walk(Server(138, empty_once={1}))
    assert (stop.complete, asked, len(got)) == (True, [0, 1, 1], 138)
    assert pager.notes == ("page 2 was empty and fetched again",)


def test_page_that_stays_empty_makes_the_menu_partial() -> None:
    pager, stop, asked, _ = walk(lambda page, _: (ids((0, 100)) if page == 0 else [], 238, 3))
    assert (stop, asked) == (Stop(complete=False), [0, 1, 1, 1])
    assert pager.notes[-1] == "page 2 stayed empty, 100 of 238 rows received"
    assert pager.product_count == 100


def test_empty_menu() -> None:
    assert walk(lambda *_: ([], 0, 0))[1:3] == (Stop(complete=False, empty=True), [0])
    assert walk(lambda *_: ([], None, None))[1:3] == (Stop(complete=False, empty=True), [0])
    assert walk(lambda *_: ([], 50, 1))[1:3] == (Stop(complete=False, empty=True), [0, 0, 0])
    _, stop, asked, got = walk(Server(50, empty_once={0}))
    assert (stop.complete, asked, len(got)) == (True, [0, 0], 50)


def test_server_that_ignores_the_page() -> None:
    pager, stop, asked, _ = walk(lambda *_: (ids((0, 100)), 238, 3))
    # The second page is a copy; once more from the start gives the same; 138 of 238 are missing.
    assert (stop, asked) == (Stop(complete=False), [0, 1, 0, 1])
    assert "page 2 contained only repeated products" in pager.notes
    assert pager.notes[-1] == "138 of 238 products are missing"


def test_last_page_of_pinned_products_only() -> None:
    pager, stop, asked, _ = walk(lambda page, _: (ids((0, 100)) if page == 0 else ids((0, 3)), 103, 2))
    assert (stop.complete, asked, pager.product_count) == (True, [0, 1], 100)


def test_total_too_high() -> None:
    pager, stop, asked, got = walk(Server(150, lie=70))
    assert (stop.complete, asked, len(got)) == (True, [0, 1, 2], 150)
    assert pager.notes[-1] == "the total of 220 is too high: the menu ended after 150 rows"
    # One page, said to be the only one: one page more is asked, to tell a clamp from a lie.
    assert walk(Server(40, lie=9))[1:3] == (Stop(complete=True), [0, 1])


def test_total_too_low() -> None:
    pager, stop, asked, got = walk(Server(150, lie=-60))
    assert (stop.complete, asked, len(got)) == (True, [0, 1], 150)
    assert pager.notes == ("the total of 90 is too low: 150 products came",)


def test_menu_of_exactly_full_pages() -> None:
    _, stop, asked, got = walk(Server(200))
    assert (stop.complete, asked, len(got)) == (True, [0, 1, 2], 200)


def test_a_menu_that_changes_is_read_once_more() -> None:
    # p0 is sold out after the first page: p100 moves to page 0 and would be missed.
    def changing(page: int, before: int) -> Answer:
        left = ids((1, 138)) if before else ids((0, 138))
        return left[page * 100 : page * 100 + 100], len(left), 2

    pager, stop, asked, got = walk(changing)
    assert (stop.complete, asked) == (True, [0, 1, 0, 1])
    assert set(ids((1, 138))) <= got, "the second pass brings the one that moved"
    assert "the total changed from 138 to 137 in pass 1" in pager.notes
    assert "fetched again from the first page" in pager.notes


def test_a_short_middle_page_is_looked_at_again() -> None:
    pages: list[list[str | None]] = [ids((0, 100)), ids((100, 160)), ids((200, 238))]

    def glitch(page: int, before: int) -> Answer:
        return ids((100, 200)) if page == 1 and before > 2 else pages[page], 238, 3

    _, stop, asked, got = walk(glitch)
    assert (stop.complete, asked, len(got)) == (True, [0, 1, 2, 0, 1, 2], 238)


def test_two_percent_may_be_missing_after_two_passes() -> None:
    def short_by(missing: int) -> Callable[[int, int], Answer]:
        return lambda page, _: (([ids((0, 100 - missing)), ids((100, 200))][page] if page < 2 else []), 200, 2)

    pager, stop, _, _ = walk(short_by(4))
    assert stop.complete
    assert pager.notes[-1] == "4 of 200 products are missing"
    pager, stop, _, _ = walk(short_by(5))
    assert not stop.complete


def test_items_without_an_id_are_rows() -> None:
    pager, stop, asked, _ = walk(lambda page, _: ([*ids((0, 30)), None, None], 32, 1))
    assert (stop.complete, asked, pager.product_count) == (True, [0], 32)


def test_no_totals_at_all() -> None:
    def bare(page: int, _before: int) -> Answer:
        return ids((0, 130))[page * 50 : page * 50 + 50], None, None

    _, stop, asked, got = walk(bare)
    assert (stop.complete, len(got)) == (True, 130)
    assert asked == [0, 1, 2]


def test_endless_menu_is_left() -> None:
    pager, stop, asked, _ = walk(lambda page, _: (ids((page * 10, page * 10 + 10)), 10**9, 10**8))
    assert (stop, len(asked)) == (Stop(complete=False), MAX_PAGES)
    assert pager.notes[-1] == f"stopped after {MAX_PAGES} pages"


@given(
    size=st.integers(1, 900),
    clamp=st.integers(20, 100),
    pinned=st.integers(0, 5),
    tells_pages=st.booleans(),
    empty_once=st.sets(st.integers(0, 5), max_size=3),
)
def test_honest_servers_are_read_whole(size: int, clamp: int, pinned: int, tells_pages: bool, empty_once: Any) -> None:
    server = Server(size, clamp=clamp, pinned=pinned, tells_pages=tells_pages, empty_once=set(empty_once))
    pager, stop, asked, got = walk(server)
    if tells_pages:
        assert stop.complete
        assert len(got) == pager.product_count == size
    # Without totalPages, pinned repeats count towards the total and may end the walk early: never more than they are.
    assert len(got) >= size - pinned * len(asked)
    assert len(asked) <= 2 * (-(-size // clamp) + 2) + 2 * len(empty_once)
    assert all(after in (before, before + 1, 0) for before, after in pairwise(asked))


@given(size=st.integers(1, 900), clamp=st.integers(20, 100), lie=st.integers(-300, 300), tells_pages=st.booleans())
def test_a_lying_total_never_hides_products_that_came(size: int, clamp: int, lie: int, tells_pages: bool) -> None:
    server = Server(size, clamp=clamp, lie=max(lie, -size), tells_pages=tells_pages)
    pager, stop, _, got = walk(server)
    if stop.empty:
        return
    assert pager.product_count == len(got)
    # Nothing tells a clamped page apart from a whole menu when the total happens to be the clamp.
    if stop.complete and not size + lie == clamp < 100:
        assert len(got) == size, "a menu that counts as whole is whole"


@given(
    size=st.integers(1, 900), clamp=st.sampled_from([25, 50, 100]), lie=st.integers(-30, 60), pinned=st.integers(0, 3)
)
def test_a_lying_total_beside_honest_pages_is_seen_through(size: int, clamp: int, lie: int, pinned: int) -> None:
    server = Server(size, clamp=clamp, lie=max(lie, 1 - size), honest_pages=True, pinned=0 if lie > 0 else pinned)
    _, stop, _, got = walk(server)
    assert stop.complete
    assert len(got) == size


@given(st.data())
def test_any_server_at_all_ends(data: st.DataObject) -> None:
    names = st.one_of(st.none(), st.integers(0, 60).map("p{}".format))
    numbers = st.one_of(st.none(), st.integers(0, 120))
    answers = data.draw(st.lists(st.tuples(st.lists(names, max_size=30), numbers, numbers), max_size=40))

    def anything(_page: int, before: int) -> Answer:
        return answers[before] if before < len(answers) else ([], None, None)

    pager, stop, _, got = walk(anything, per_page=25)
    assert isinstance(stop, Stop)
    assert pager.product_count >= len(got - {None})
    assert not (stop.empty and stop.complete)


@pytest.mark.parametrize("missing", [1, 3, 50])
def test_never_complete_while_an_honest_total_says_otherwise(missing: int) -> None:
    """A page cut off on every pass: a total that stood still, a full last page, rows missing."""

    def cut(page: int, _before: int) -> Answer:
        if page == 0:
            return ids((0, 100 - missing)), 200, 2
        return (ids((100, 200)), 200, 2) if page == 1 else ([], 200, 2)

    pager, stop, _, _ = walk(cut)
    assert stop.complete == (missing <= 4)
    assert pager.notes[-1] == f"{missing} of 200 products are missing"
