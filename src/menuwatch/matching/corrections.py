"""Corrections: people's decisions about two listings. They apply to everything that is written like them, and override the matcher.

Corrections in force never contradict each other, neither directly nor through what follows from several: whatever is said to be the
same forms groups, and no two listings of one group are said to be different.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import Raw, Struct

from menuwatch.accounts import audit
from menuwatch.core.errors import Conflict, InvalidField, NotFound
from menuwatch.core.format import timestamp
from menuwatch.core.shapes import Instant, doc, json_of
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import Row, fetch_all, fetch_structs
from menuwatch.matching import signed_listings
from menuwatch.matching.blocks import mark_dirty
from menuwatch.matching.model import Listing
from menuwatch.matching.signed_listings import SignedListing

_q = sql.load(__package__, "corrections.sql")
_listing = msgspec.json.Decoder(Listing)

MAX_NOTE_CHARS = 500


class CorrectionState(StrEnum):
    """Whether the matcher has applied a correction."""

    WAITING = "waiting"
    APPLIED = "applied"
    UNLISTED = "unlisted"
    WITHDRAWN = "withdrawn"
    SUPERSEDED = "superseded"

    @property
    def explanation(self) -> str:
        """What it means, in one sentence."""
        return _STATES[self]


_STATES = {
    CorrectionState.WAITING: "The matcher applies it with its next run, within seconds.",
    CorrectionState.APPLIED: "The products agree with it.",
    CorrectionState.UNLISTED: "No menu has a listing written like one of them; it applies when one appears.",
    CorrectionState.WITHDRAWN: "It no longer applies.",
    CorrectionState.SUPERSEDED: "A newer correction is of the same listings, as they are read now.",
}


class Contradicts(Conflict):
    """A correction in force says the opposite of the same two listings; `correction_id` can be replaced."""

    def __init__(self, message: str, correction_id: int) -> None:
        super().__init__(message)
        self.correction_id = correction_id


class Outcome(StrEnum):
    """What became of a request to correct a pair."""

    RECORDED = "recorded"
    REPEATED = "repeated"
    REPLACED = "replaced"
    ALIKE = "alike"


ListingJson = Annotated[Raw, json_of(Listing)]


class Correction(Struct, kw_only=True, frozen=True):
    """A person's decision about two listings, and about everything that is written like them."""

    id: int
    same: Annotated[bool, doc("Whether they are one product.")]
    a: Annotated[ListingJson, doc("The listing as it was judged.")]
    b: Annotated[ListingJson, doc("The listing as it was judged.")]
    a_product_id: Annotated[int | None, doc("A product that is written like `a`; null if there is none now.")]
    b_product_id: Annotated[int | None, doc("A product that is written like `b`; null if there is none now.")]
    note: str | None
    made_by: str
    made_at: Instant
    withdrawn_at: Annotated[Instant | None, doc("Null if it is in force.")]
    withdrawn_by: Annotated[str | None, doc("Who withdrew it; null if it is in force, or superseded by a newer one.")]
    state: Annotated[
        CorrectionState,
        doc(
            "`waiting` for the matcher, `applied`, `unlisted` (no menu has such listings now), `withdrawn`, or "
            "`superseded` by a newer one."
        ),
    ]


class CorrectionResult(Struct, kw_only=True, frozen=True):
    """The result of a correction."""

    outcome: Annotated[
        Outcome,
        doc(
            "`recorded`; `repeated`: the same was decided before; `replaced`: the earlier one was withdrawn; `alike`: both are "
            "written alike, and so are one product without it."
        ),
    ]
    correction: Annotated[Correction | None, doc("The correction in force; null if both are written alike.")]
    detail: Annotated[str, doc("The outcome in words.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionFilter:
    """Which corrections; None takes all. `active`: in force; `products`: that concern one of these products."""

    same: bool | None = None
    active: bool | None = None
    made_by: str | None = None
    products: Sequence[int] | None = None


async def list_corrections(
    conn: Connection, where: CorrectionFilter, *, after: int | None = None, limit: int = 50
) -> list[Correction]:
    """Corrections, newest first, before the one with the id `after`."""
    values = {
        "id": None,
        "same": where.same,
        "active": where.active,
        "made_by": where.made_by,
        "products": None if where.products is None else list(where.products),
        "after": after,
        "limit": limit,
    }
    return await fetch_structs(conn, Correction, _q.list_corrections, values, prepare=False)


async def get_correction(conn: Connection, correction_id: int) -> Correction:
    """One correction; raises NotFound."""
    every = {"same": None, "active": None, "made_by": None, "products": None, "after": None, "limit": 1}
    rows = await fetch_structs(conn, Correction, _q.list_corrections, {**every, "id": correction_id})
    if not rows:
        raise NotFound(f"correction {correction_id} does not exist: `menuwatch match corrections` lists them")
    return rows[0]


async def correct(
    conn: Connection, a: int, b: int, same: bool, *, note: str | None = None, replace: bool = False
) -> CorrectionResult:
    """Says that two products are the same, or different. `replace` withdraws an earlier correction of the two that says otherwise.

    Raises NotFound for a product that does not exist, InvalidField for one given twice, and Conflict for a contradiction, naming the
    corrections that it contradicts.
    """
    if a == b:
        raise InvalidField("b", f"product {a} is given twice: give two different products")
    note = " ".join((note or "").split()) or None
    if note is not None and (len(note) > MAX_NOTE_CHARS or not note.isprintable()):
        raise InvalidField("note", f"the note must be text of at most {MAX_NOTE_CHARS} characters")
    found = await signed_listings.load(conn, (a, b))
    first, second = sorted((found[a], found[b]), key=lambda one: one.key)
    if first.key == second.key:
        return _of_alike(found[a], found[b], same)
    async with conn.transaction():
        await conn.execute(_q.take_lock)
        replaced = None
        if (earlier := await _direct(conn, first.key, second.key)) is not None:
            if earlier["same"] == same:
                detail = f"{earlier['made_by']} decided the same at {timestamp(earlier['made_at'])} (correction {earlier['id']})"
                return CorrectionResult(
                    outcome=Outcome.REPEATED, correction=await get_correction(conn, earlier["id"]), detail=detail
                )
            if not replace:
                raise Contradicts(
                    f"{earlier['made_by']} decided at {timestamp(earlier['made_at'])} that they are {_verdict(earlier['same'])} "
                    f"(correction {earlier['id']}): withdraw it with `menuwatch match withdraw {earlier['id']}`, or replace it",
                    earlier["id"],
                )
            await withdraw(conn, earlier["id"])
            replaced = earlier["id"]
        await _check_implied(conn, found[a], found[b], same)
        values = {
            "same": same,
            "a_key": first.key,
            "b_key": second.key,
            "a": _text(first.listing),
            "b": _text(second.listing),
            "note": note,
            "made_by": _actor_name(),
        }
        (row,) = await fetch_all(conn, _q.insert_correction, values)
        await _mark_dirty(conn, (first.key, second.key), (first.block, second.block))
        await audit.record(
            conn, "match_corrected", ("correction", row["id"]), same=same, a=a, b=b, note=note, replaced=replaced
        )
        correction = await get_correction(conn, row["id"])
        detail = f"recorded as {_verdict(same)} (correction {row['id']})"
        if replaced is not None:
            return CorrectionResult(
                outcome=Outcome.REPLACED, correction=correction, detail=f"{detail}, in place of correction {replaced}"
            )
        return CorrectionResult(outcome=Outcome.RECORDED, correction=correction, detail=detail)


async def withdraw(conn: Connection, correction_id: int) -> Correction:
    """Ends a correction: the matcher decides again. Raises NotFound, or Conflict if it was withdrawn before."""
    rows = await fetch_all(conn, _q.withdraw, {"id": correction_id, "by": _actor_name()})
    correction = await get_correction(conn, correction_id)
    if not rows:
        assert correction.withdrawn_at is not None, "one that is in force is withdrawn"
        how = (
            f"already withdrawn by {correction.withdrawn_by}"
            if correction.withdrawn_by
            else "superseded by a newer one"
        )
        raise Conflict(f"correction {correction_id} was {how} at {timestamp(correction.withdrawn_at)}")
    await _mark_dirty(conn, (rows[0]["a_key"], rows[0]["b_key"]), ())
    await audit.record(conn, "match_correction_withdrawn", ("correction", correction_id), same=correction.same)
    return correction


def decode_listing(text: Raw) -> Listing:
    """A listing of a correction as a Struct."""
    return _listing.decode(text)


def _text(listing: Listing) -> str:
    return msgspec.json.encode(listing).decode()


def _actor_name() -> str:
    who = audit.actor()
    return "menuwatch" if who is None else who.name


def _verdict(same: bool) -> str:
    return "the same product" if same else "different products"


def _of_alike(a: SignedListing, b: SignedListing, same: bool) -> CorrectionResult:
    if not same:
        raise Conflict(
            f"products {a.id} and {b.id} are written alike ({_named(a.listing)}): nothing that the parser reads distinguishes "
            "them. If a menu is wrong, its store has to correct it; if something else distinguishes them, report the pair"
        )
    return CorrectionResult(
        outcome=Outcome.ALIKE, correction=None, detail="both are written alike, so they are one product already"
    )


async def _direct(conn: Connection, a: UUID, b: UUID) -> Row | None:
    rows = await fetch_all(conn, _q.touching, {"keys": [a]})
    return next((row for row in rows if {row["a_key"], row["b_key"]} == {a, b}), None)


async def _mark_dirty(conn: Connection, keys: Iterable[UUID], blocks: Iterable[str]) -> None:
    rows = await fetch_all(conn, _q.blocks_of, {"keys": list(keys)})
    await mark_dirty(conn, [*blocks, *(row["block"] for row in rows)], "correction")


@dataclass(frozen=True, slots=True)
class _Group:
    """What is said to be the same as a listing: for each signature the correction that led to it. `apart`: corrections that say that
    one of them is different from something."""

    by: dict[UUID, Row | None]
    apart: list[Row]

    def chain(self, key: UUID) -> list[Row]:
        """Corrections from the listing to that signature."""
        steps = []
        while (row := self.by[key]) is not None:
            steps.append(row)
            key = row["b_key"] if row["a_key"] == key else row["a_key"]
        return steps[::-1]


async def _group_of(conn: Connection, start: UUID) -> _Group:
    by: dict[UUID, Row | None] = {start: None}
    apart: dict[int, Row] = {}
    edge = [start]
    while edge:
        rows = await fetch_all(conn, _q.touching, {"keys": edge})
        edge = []
        for row in rows:
            if not row["same"]:
                apart[row["id"]] = row
                continue
            for one, other in ((row["a_key"], row["b_key"]), (row["b_key"], row["a_key"])):
                if one in by and other not in by:
                    by[other] = row
                    edge.append(other)
    return _Group(by, list(apart.values()))


async def _check_implied(conn: Connection, a: SignedListing, b: SignedListing, same: bool) -> None:
    """Raises Conflict, naming the chain, if earlier corrections together say the opposite."""
    group = await _group_of(conn, a.key)
    if not same:
        if b.key in group.by:
            chain = group.chain(b.key)
            raise Conflict(
                f"earlier corrections say that they are the same product: {_in_words(chain)}. {_remedy(chain)}"
            )
        return
    if not group.apart:
        return
    other = await _group_of(conn, b.key)
    for row in group.apart:
        one, far = (row["a_key"], row["b_key"]) if row["a_key"] in group.by else (row["b_key"], row["a_key"])
        if far in other.by:
            chain = [*group.chain(one), row, *other.chain(far)[::-1]]
            raise Conflict(
                f"earlier corrections say that they are different products: {_in_words(chain)}. {_remedy(chain)}"
            )


def _in_words(chain: Sequence[Row]) -> str:
    return "; ".join(
        f"{_named(decode_listing(row['a']))} {'=' if row['same'] else '≠'} {_named(decode_listing(row['b']))} "
        f"(correction {row['id']} by {row['made_by']}, {timestamp(row['made_at'])})"
        for row in chain
    )


def _remedy(chain: Sequence[Row]) -> str:
    return f"Withdraw the one that is wrong first, for example with `menuwatch match withdraw {chain[-1]['id']}`"


def _named(listing: Listing) -> str:
    text = f"{listing.brand} {listing.name}" if listing.brand else listing.name
    return f"“{text if len(text) <= 80 else text[:79] + '…'}”"
