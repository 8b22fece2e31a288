"""Corrections: recorded once, refused where they contradict earlier ones, and withdrawn."""

from __future__ import annotations

import asyncio

import pytest

from menuwatch.accounts.audit import Actor, actor_context
from menuwatch.core.errors import Conflict, InvalidField, NotFound
from menuwatch.db.pool import Connection, Pool
from menuwatch.matching.corrections import (
    Contradicts,
    CorrectionFilter,
    CorrectionState,
    Outcome,
    correct,
    decode_listing,
    list_corrections,
    withdraw,
)
from tests.matching.match_rows import MatchRows, key


async def test_a_correction_is_kept_with_both_texts(rows: MatchRows, conn: Connection) -> None:
    b, a = rows.written("zkittlez", "zkittles")  # keys in the order of the words: `zkittles` comes first
    result = await correct(conn, b, a, True, note="  misspelt ")
    assert result.outcome is Outcome.RECORDED
    assert result.correction is not None
    said = result.correction
    assert (said.same, said.note, said.made_by, said.state) == (True, "misspelt", "ann", CorrectionState.WAITING)
    assert (decode_listing(said.a).name, decode_listing(said.b).name) == ("zkittles", "zkittlez")
    assert (said.a_product_id, said.b_product_id) == (a, b)
    assert rows.sql("SELECT a_key, b_key FROM match_corrections") == [(key("zkittles"), key("zkittlez"))]
    assert rows.sql("SELECT block FROM match_dirty_blocks") == [("acme|flower",)]
    assert rows.sql("SELECT actor, action, subject_id, details->>'same' FROM audit_log") == [
        ("ann", "match_corrected", str(said.id), "true")
    ]


async def test_both_blocks_are_matched_again(rows: MatchRows, conn: Connection) -> None:
    one, other = rows.product("one"), rows.product("other", category="vaporizer")
    rows.signature("one", [one], block="acme|flower")
    rows.signature("other", [other], block="acme|vape")
    await correct(conn, one, other, True)
    assert sorted(rows.sql("SELECT block FROM match_dirty_blocks")) == [("acme|flower",), ("acme|vape",)]


async def test_a_listing_that_is_not_matched_yet_can_be_corrected(rows: MatchRows, conn: Connection) -> None:
    result = await correct(conn, rows.product("Blue Dream"), rows.product("Sour Diesel"), False)
    assert result.correction is not None
    assert result.correction.state == CorrectionState.UNLISTED
    assert rows.sql("SELECT count(*) > 0 FROM match_dirty_blocks") == [(True,)]


async def test_the_same_verdict_again_changes_nothing(rows: MatchRows, conn: Connection) -> None:
    a, b = rows.written("one", "two")
    first = await correct(conn, a, b, True)
    with actor_context(Actor(name="bob", kind="user", via="api")):
        again = await correct(conn, b, a, True)
    assert again.outcome is Outcome.REPEATED
    assert again.correction == first.correction
    assert "ann decided the same" in again.detail
    assert rows.sql("SELECT count(*) FROM match_corrections") == [(1,)]
    assert rows.sql("SELECT count(*) FROM audit_log") == [(1,)]


async def test_the_opposite_is_refused_naming_the_earlier_one(rows: MatchRows, conn: Connection) -> None:
    a, b = rows.written("one", "two")
    first = await correct(conn, a, b, True)
    assert first.correction is not None
    with pytest.raises(
        Contradicts, match=rf"ann decided at .* the same product \(correction {first.correction.id}\)"
    ) as refused:
        await correct(conn, a, b, False)
    assert refused.value.correction_id == first.correction.id
    assert f"menuwatch match withdraw {first.correction.id}" in str(refused.value)


async def test_the_opposite_replaces_if_asked_to(rows: MatchRows, conn: Connection) -> None:
    a, b = rows.written("one", "two")
    await correct(conn, a, b, True)
    with actor_context(Actor(name="bob", kind="user", via="api")):
        result = await correct(conn, a, b, False, replace=True)
    assert result.outcome is Outcome.REPLACED
    assert rows.sql("SELECT same, made_by, withdrawn_by FROM match_corrections ORDER BY id") == [
        (True, "ann", "bob"),
        (False, "bob", None),
    ]


async def test_different_is_refused_where_same_follows_from_others(rows: MatchRows, conn: Connection) -> None:
    a, b, c, d = rows.written("one", "two", "three", "four")
    for pair in ((a, b), (b, c), (c, d)):
        await correct(conn, *pair, True)
    with pytest.raises(Conflict, match="the same product") as refused:
        await correct(conn, a, d, False)
    text = str(refused.value)
    assert [text.count(f"(correction {n} by ann") for n in (1, 2, 3)] == [1, 1, 1]
    assert text.index("correction 1") < text.index("correction 2") < text.index("correction 3")
    # One link less, and nothing contradicts it.
    await withdraw(conn, 2)
    assert (await correct(conn, a, d, False)).outcome is Outcome.RECORDED


async def test_same_is_refused_where_different_follows_from_others(rows: MatchRows, conn: Connection) -> None:
    a, b, c, d = rows.written("one", "two", "three", "four")
    await correct(conn, a, b, True)
    await correct(conn, c, d, True)
    await correct(conn, b, c, False)
    with pytest.raises(Conflict, match="different products") as refused:
        await correct(conn, a, d, True)
    assert all(f"(correction {n} by ann" in str(refused.value) for n in (1, 2, 3))
    assert "≠" in str(refused.value)
    # Different products may have further same ones of their own.
    (e,) = rows.written("five")
    assert (await correct(conn, d, e, True)).outcome is Outcome.RECORDED


async def test_replacing_does_not_overrule_what_follows_from_others(rows: MatchRows, conn: Connection) -> None:
    a, b, c = rows.written("one", "two", "three")
    for pair in ((a, b), (b, c), (a, c)):
        await correct(conn, *pair, True)
    with pytest.raises(Conflict, match="correction 1 by ann"):
        async with conn.transaction():
            await correct(conn, a, c, False, replace=True)
    assert rows.sql("SELECT count(*) FROM match_corrections WHERE withdrawn_at IS NULL") == [(3,)]


async def test_two_contradicting_at_once_are_not_both_recorded(rows: MatchRows, pool: Pool) -> None:
    a, b, c = rows.written("one", "two", "three")

    async def say(one: int, other: int, same: bool) -> bool:
        async with pool.connection() as conn:
            try:
                await correct(conn, one, other, same)
            except Conflict:
                return False
            return True

    assert sorted(await asyncio.gather(say(a, b, True), say(b, c, True), say(a, c, False))) == [False, True, True]


async def test_listings_that_are_written_alike(rows: MatchRows, conn: Connection) -> None:
    a, b = rows.product("Blue Dream"), rows.product("Blue Dream", store="Other")
    rows.signature("blue dream", [a, b])
    assert (await correct(conn, a, b, True)).outcome is Outcome.ALIKE
    with pytest.raises(Conflict, match=r"written alike .*“Acme Blue Dream”"):
        await correct(conn, a, b, False)
    assert rows.sql("SELECT count(*) FROM match_corrections") == [(0,)]


async def test_what_cannot_be_corrected(rows: MatchRows, conn: Connection) -> None:
    (a,) = rows.written("one")
    with pytest.raises(InvalidField, match="given twice"):
        await correct(conn, a, a, True)
    with pytest.raises(NotFound, match="product 987654 does not exist"):
        await correct(conn, a, 987_654, True)
    with pytest.raises(InvalidField, match="at most 500"):
        await correct(conn, a, rows.written("two")[0], True, note="x" * 501)
    with pytest.raises(NotFound, match="correction 5 does not exist"):
        await withdraw(conn, 5)


async def test_a_correction_is_withdrawn_once(rows: MatchRows, conn: Connection) -> None:
    a, b = rows.written("one", "two")
    await correct(conn, a, b, True)
    rows.sql("DELETE FROM match_dirty_blocks")
    with actor_context(Actor(name="bob", kind="user", via="api")):
        gone = await withdraw(conn, 1)
    assert (gone.state, gone.withdrawn_by) == (CorrectionState.WITHDRAWN, "bob")
    assert rows.sql("SELECT block FROM match_dirty_blocks") == [("acme|flower",)]
    with pytest.raises(Conflict, match="already withdrawn by bob"):
        await withdraw(conn, 1)


async def test_whether_the_matcher_has_applied_it(rows: MatchRows, conn: Connection) -> None:
    one, two = rows.canonical("One"), rows.canonical("Two")
    a, b, c = rows.written("one", "two", "three", canonical=(one, two, one))
    for pair, same in (((a, b), True), ((a, c), True), ((b, c), False)):
        if not same:
            await withdraw(conn, 1)
        await correct(conn, *pair, same)
    waiting = [row.state for row in await list_corrections(conn, CorrectionFilter(active=True))]
    assert waiting == [CorrectionState.WAITING] * 2  # the block is to be matched again
    rows.sql("DELETE FROM match_dirty_blocks")
    states = {row.id: str(row.state) for row in await list_corrections(conn, CorrectionFilter())}
    assert states == {1: "withdrawn", 2: "applied", 3: "applied"}
    rows.sql("UPDATE match_signatures SET canonical_product_id = %s", [one])
    states = {row.id: str(row.state) for row in await list_corrections(conn, CorrectionFilter(active=True))}
    assert states == {2: "applied", 3: "waiting"}


async def test_corrections_are_listed_by_filters_and_pages(rows: MatchRows, conn: Connection) -> None:
    a, b, c, d = rows.written("one", "two", "three", "four")
    await correct(conn, a, b, True)
    await correct(conn, c, d, False)

    async def ids(where: CorrectionFilter, **page: int) -> list[int]:
        return [row.id for row in await list_corrections(conn, where, **page)]

    assert await ids(CorrectionFilter()) == [2, 1]
    assert await ids(CorrectionFilter(), limit=1) == [2]
    assert await ids(CorrectionFilter(), after=2) == [1]
    assert await ids(CorrectionFilter(same=False)) == [2]
    assert await ids(CorrectionFilter(products=[a])) == [1]
    assert await ids(CorrectionFilter(made_by="ANN")) == [2, 1]
    assert await ids(CorrectionFilter(made_by="bob")) == []
    assert await ids(CorrectionFilter(active=False)) == []
