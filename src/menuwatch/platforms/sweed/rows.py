"""Rows of product lists: which product and options a row is of, and products put together from several rows. Pure.

A list has one row for each option that the shop shows apart: six rows for six flavours of one drink, with the id of the product and
one variant each. `total` counts rows. A product is all of its rows: its variants in the order of their ids, so that it stays the same
when the list is sorted in another way, everything else as in its last row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from menuwatch.platforms.items import oversized
from menuwatch.platforms.sweed.payload import Identifier, Promo, id_text


class _Variant(msgspec.Struct, gc=False):
    id: Identifier | None = None


class RowIds(msgspec.Struct, gc=False):
    """Fields that identify a row."""

    id: Identifier | None = None
    variants: list[_Variant | None] | None = None

    def key(self) -> str | None:
        """Product and variants: a product in several rows has several keys."""
        product_id = id_text(self.id)
        if product_id is None:
            return None
        variants = [id_text(variant.id) or "" for variant in self.variants or () if variant is not None]
        return ":".join((product_id, *variants))


class _PromoIds(msgspec.Struct, gc=False):
    promos: list[_Variant | None] | None = None


class _Promoted(msgspec.Struct, gc=False):
    variants: list[_PromoIds | None] | None = None


_row = msgspec.json.Decoder(RowIds)
_promoted = msgspec.json.Decoder(_Promoted)
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_raws = msgspec.json.Decoder(list[msgspec.Raw])
_promo = msgspec.json.Decoder(Promo)
_encode = msgspec.json.Encoder(decimal_format="number").encode
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def row_key(raw: msgspec.Raw) -> str | None:
    """`RowIds.key` of a raw row; None if it cannot be read."""
    try:
        return _row.decode(raw).key()
    except _UNREADABLE:
        return None


def with_field(raw: msgspec.Raw, name: str, value: bytes) -> msgspec.Raw:
    """The row with one more field, which must be JSON; unchanged if it is no object."""
    text = bytes(raw).rstrip()
    if not text.startswith(b"{") or not text.endswith(b"}"):
        return raw
    comma = b"," if text[1:-1].strip() else b""
    return msgspec.Raw(b'%b%b"%b":%b}' % (text[:-1], comma, name.encode(), value))


def promo_terms(promos: Sequence[msgspec.Raw]) -> dict[str, bytes]:
    """The fields that are read of each promotion of an answer, by its id; unreadable ones are left out."""
    terms = {}
    for raw in promos:
        try:
            promo = _promo.decode(raw)
        except _UNREADABLE:
            continue
        if (promo_id := id_text(promo.id)) is not None:
            terms[promo_id] = _encode(promo)
    return terms


def with_terms(raw: msgspec.Raw, terms: dict[str, bytes]) -> msgspec.Raw:
    """The row with the terms of its promotions in `pagePromos`."""
    try:
        variants = _promoted.decode(raw).variants
    except _UNREADABLE:
        return raw
    ids = {id_text(p.id): None for v in variants or () if v is not None for p in v.promos or () if p is not None}
    named = [terms[promo_id] for promo_id in ids if promo_id in terms]
    return with_field(raw, "pagePromos", b"[%b]" % b",".join(named)) if named else raw


def merge(
    pages: Sequence[Sequence[msgspec.Raw]], identity: Callable[[msgspec.Raw], str | None]
) -> list[Sequence[msgspec.Raw]]:
    """The items of a whole menu, each product in the place of its first row, put together from all of its rows."""
    rows: dict[str, list[msgspec.Raw]] = {}
    for page in pages:
        for raw in page:
            if (product_id := identity(raw)) is not None:
                rows.setdefault(product_id, []).append(raw)
    if all(len(found) == 1 for found in rows.values()):
        return list(pages)
    merged: list[Sequence[msgspec.Raw]] = []
    for page in pages:
        items = []
        for raw in page:
            product_id = identity(raw)
            if product_id is None:
                items.append(raw)
            elif (found := rows.pop(product_id, None)) is not None:
                items.extend(_joined(found))
        merged.append(items)
    return merged


def _joined(rows: Sequence[msgspec.Raw]) -> Sequence[msgspec.Raw]:
    """One row of several of a product; the rows as they are if one cannot be read. Of rows with the same variant the last counts."""
    last = rows[-1]
    if len(rows) == 1:
        return rows
    variants: dict[tuple[int, str], msgspec.Raw] = {}
    promos: dict[bytes, None] = {}
    store: msgspec.Raw | None = None
    try:
        for raw in rows:
            if oversized(raw):
                return rows
            fields = _fields.decode(raw)
            for variant in _raws.decode(fields["variants"]):
                variants[_order(variant)] = variant
            promos |= dict.fromkeys(bytes(promo) for promo in _raws.decode(fields.get("pagePromos", b"[]")))
            store = fields.get("pageStore", store)
    except (*_UNREADABLE, KeyError):
        return rows
    fields["variants"] = _array([bytes(variants[key]) for key in sorted(variants)])
    if promos:
        fields["pagePromos"] = _array(list(promos))
    if store is not None:
        fields["pageStore"] = store
    joined = msgspec.Raw(_encode(fields))
    return [last if len(variants) == 1 and store is None else joined]


_variant = msgspec.json.Decoder(_Variant)


def _order(raw: msgspec.Raw) -> tuple[int, str]:
    """Sorts numbers by value; raises msgspec's errors without a usable id."""
    text = id_text(_variant.decode(raw).id)
    if text is None:
        raise msgspec.ValidationError("a variant without an id")
    return (int(text), "") if text.isascii() and text.isdecimal() and len(text) < 20 else (0, text)


def _array(values: Sequence[bytes]) -> msgspec.Raw:
    return msgspec.Raw(b"[%b]" % b",".join(values))
