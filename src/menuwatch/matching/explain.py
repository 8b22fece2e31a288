"""Explains why two listings are, or are not, one canonical product."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Annotated

import msgspec
from msgspec import Struct

from menuwatch.core.errors import InvalidField, NotFound
from menuwatch.core.shapes import doc, json_of
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import Row, fetch_all, fetch_one
from menuwatch.matching.compare import block_of, compare
from menuwatch.matching.model import Reason, Signature

_q = sql.load(__package__, "report.sql")
_reasons = msgspec.json.Decoder(list[Reason]).decode
_signature = msgspec.json.Decoder(Signature).decode


class ExplainedListing(Struct, kw_only=True, frozen=True):
    """A listing as the matcher reads it."""

    product_id: int
    name: str
    brand: str | None
    category: str | None
    store_id: int
    store: str
    platform: str
    sizes: list[str]
    platform_ids: Annotated[list[str], doc("Ids that name the same product in several stores.")]
    canonical_product_id: Annotated[int | None, doc("Null until it is matched, seconds after its menu.")]
    signature: Annotated[
        Annotated[msgspec.Raw, json_of(Signature)] | None, doc("How it is compared; null until it is matched.")
    ]


class MatchStep(Struct, kw_only=True, frozen=True):
    """A link between two signatures of a canonical product."""

    a: Annotated[str, doc("Name of the first.")]
    b: Annotated[str, doc("Name of the second.")]
    confidence: Annotated[float, doc("Probability that both are one product, from 0 to 1.")]
    reasons: list[Reason]


class MatchExplanation(Struct, kw_only=True, frozen=True):
    """Why two listings are, or are not, one canonical product."""

    a: ExplainedListing
    b: ExplainedListing
    together: Annotated[bool, doc("Whether they are one canonical product now.")]
    written_alike: Annotated[bool, doc("Whether they have one signature, so that nothing is left to compare.")]
    confidence: Annotated[
        float | None,
        doc(
            "That both are one product, from 0 to 1: of the weakest step if they are together. Null until both are matched."
        ),
    ]
    steps: Annotated[list[MatchStep], doc("The links that lead from one to the other; empty if they are not together.")]
    reasons: Annotated[list[Reason], doc("Evidence of the direct comparison of both, for and against.")]
    corrected: Annotated[
        bool | None, doc("Decision of a person: the same (true) or different (false); null if there is none.")
    ]


async def explain(conn: Connection, a: int, b: int) -> MatchExplanation:
    """Explains two listings by their product ids. Raises NotFound, and InvalidField if they are one listing."""
    if a == b:
        raise InvalidField("b", f"both products are {a}: give two different products")
    rows = {row["product_id"]: row for row in await fetch_all(conn, _q.listings, {"ids": [a, b]})}
    for number in (a, b):
        if number not in rows:
            raise NotFound(f"product {number} does not exist")
    one, other = rows[a], rows[b]
    matched = one["signature_id"] is not None and other["signature_id"] is not None
    number = one["canonical_product_id"]
    together = number is not None and number == other["canonical_product_id"]
    alike = matched and one["signature_id"] == other["signature_id"]
    steps = await _steps(conn, number, one["signature_id"], other["signature_id"]) if together and not alike else []
    confidence, reasons = await _evidence(conn, one, other) if matched and not alike else (None, [])
    said = await fetch_one(conn, _q.correction, {"a": one["key"], "b": other["key"]}) if matched and not alike else None
    if alike:
        confidence = 1.0
    elif steps:
        confidence = min(step.confidence for step in steps)
    return MatchExplanation(
        a=_listing(one),
        b=_listing(other),
        together=together,
        written_alike=alike,
        confidence=confidence,
        steps=steps,
        reasons=reasons,
        corrected=said["same"] if said else None,
    )


def _listing(row: Row) -> ExplainedListing:
    return ExplainedListing(**{name: row[name] for name in ExplainedListing.__struct_fields__})


async def _steps(conn: Connection, number: int, a: int, b: int) -> list[MatchStep]:
    """The shortest way between two signatures over the links of their product."""
    rows = {row["id"]: row for row in await fetch_all(conn, _q.links, {"id": number})}
    beside: dict[int, dict[int, Row]] = {key: {} for key in rows}
    for key, row in rows.items():
        if (to := row["linked_to"]) in rows:
            beside[key][to] = beside[to][key] = row
    before: dict[int, int] = {a: a}
    ahead = deque([a])
    while ahead and b not in before:
        at = ahead.popleft()
        for to in sorted(beside.get(at, {})):
            if to not in before:
                before[to] = at
                ahead.append(to)
    steps: list[MatchStep] = []
    while b in before and b != a:
        link = beside[before[b]][b]
        names = (rows[before[b]]["name"], rows[b]["name"])
        steps.append(
            MatchStep(a=names[0], b=names[1], confidence=link["confidence"], reasons=_reasons(link["reasons"]))
        )
        b = before[b]
    return steps[::-1]


async def _evidence(conn: Connection, one: Row, other: Row) -> tuple[float, list[Reason]]:
    """What the matcher found between both, or would find."""
    review = await fetch_one(conn, _q.review, {"a": one["signature_id"], "b": other["signature_id"]})
    if review is not None:
        return review["confidence"], _reasons(review["reasons"])
    blocks = {"blocks": [one["block"], other["block"]]}
    texts = [text for (text,) in await (await conn.execute(_q.block, blocks)).fetchall()]
    a, b = _signature(one["signature"]), _signature(other["signature"])
    found = await asyncio.to_thread(lambda: compare(a, b, block_of([_signature(text) for text in texts])))
    return found.confidence, list(found.reasons)
