"""Isolates products that the database refuses, so that the rest of their menu is still applied.

Platforms keep normalized values within what the columns accept; this module handles the remaining cases. A valid menu costs one
savepoint. A refused one is bisected, by inserting its rows for a store that does not exist, until the bad items are found; it is
then applied with these counted as unreadable.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import psycopg
from msgspec import Struct
from psycopg import AsyncConnection

from menuwatch.catalog import apply
from menuwatch.catalog import copy_format as rows
from menuwatch.catalog.apply import Applied, Examine, MenuToApply, Reader
from menuwatch.catalog.model import Product, ProductWarning
from menuwatch.catalog.taxonomy.limits import shorten_id

MOST_REFUSED = 20
"""Maximum refused products; above it the database's error is raised unchanged."""

_REFUSALS = (
    psycopg.DataError,
    psycopg.IntegrityError,
    psycopg.errors.ProgramLimitExceeded,  # an index row that is too large
    ArithmeticError,
    ValueError,  # half a surrogate pair, which has no bytes
)
_NOWHERE = 0
"""A store number that does not exist."""


Check = Callable[[AsyncConnection[Any], MenuToApply, Applied], Awaitable[None]]
"""Examines what was applied; raises SuspectMenu, which undoes it."""


async def apply_menu(
    conn: AsyncConnection[Any],
    menu: MenuToApply,
    reader: Reader,
    *,
    examine: Examine | None = None,
    check: Check | None = None,
) -> Applied:
    """Runs `apply.apply_menu` and `check`, leaving out each product that the database refuses, with a fatal warning. Raises the same
    errors, and psycopg.Error if no single product is the cause; the caller's transaction remains usable.
    """
    filtered = _FilteredReader(reader)
    while True:
        try:
            async with conn.transaction():
                applied = await apply.apply_menu(conn, menu, filtered if filtered.refused else reader, examine=examine)
                if check is not None:
                    await check(conn, menu, applied)
                return applied
        except _REFUSALS:
            # Repeat: an item that replaces a refused one with the same id may be refused as well.
            refused = await _TrialInsert(conn, menu).refused(_candidates(menu, filtered))
            if not refused or len(filtered.refused) + len(refused) > MOST_REFUSED:
                raise
            filtered.refused.update(refused)


class _Candidate(NamedTuple):
    raw: bytes
    product: Product


def _candidates(menu: MenuToApply, reader: Reader) -> list[_Candidate]:
    """Readable items; the last of several with one id, as in `apply`."""
    candidates: dict[str, _Candidate] = {}
    for raw in menu.items:
        for product in reader.normalize((raw,)).products:
            candidates[product.provider_product_id] = _Candidate(bytes(raw), product)
    return list(candidates.values())


class _TrialInsert(Struct):
    """Finds the products that the database refuses, without leaving changes behind."""

    conn: AsyncConnection[Any]
    menu: MenuToApply

    async def refused(self, candidates: Sequence[_Candidate]) -> dict[bytes, str]:
        """Refused raw items with the reason; at most MOST_REFUSED, the first ones."""
        reasons: dict[bytes, str] = {}
        waiting = [candidates]
        while waiting and len(reasons) <= MOST_REFUSED:
            batch = waiting.pop()
            reason = await self._refusal(batch)
            if reason is None:
                continue
            if len(batch) == 1:
                reasons[batch[0].raw] = reason
            else:
                half = len(batch) // 2
                waiting += [batch[half:], batch[:half]]
        return reasons

    async def _refusal(self, candidates: Sequence[_Candidate]) -> str | None:
        """The error of writing these rows; None if they can be written."""
        try:
            async with self.conn.transaction(force_rollback=True):
                await self._write(candidates)
        except _REFUSALS as error:
            return str(error).partition("\n")[0] or type(error).__name__
        return None

    async def _write(self, candidates: Sequence[_Candidate]) -> None:
        at = self.menu.crawled_at.isoformat()
        products = []
        for number, candidate in enumerate(candidates):
            row = -1 - number  # ids that no sequence generates
            identity = rows.identity_line(_NOWHERE, self.menu.provider, candidate.product, at)
            products.append(f"{rows.product_line(row, b'', candidate.product)}\t{identity}\n")
        async with (
            self.conn.cursor() as cur,
            cur.copy(f"COPY catalog_products ({rows.PRODUCT_COLUMNS}, {rows.IDENTITY_COLUMNS}) FROM STDIN") as copy,
        ):
            await copy.write("".join(products))


class _NormalizedItems(NamedTuple):
    products: Sequence[Product]
    warnings: Sequence[ProductWarning]


class _FilteredReader(Struct, frozen=True):
    """A reader that treats some items as unreadable."""

    reader: Reader
    refused: dict[bytes, str] = {}
    """Reason by the item's bytes."""

    @property
    def normalizer_version(self) -> int:
        return self.reader.normalizer_version

    def identity(self, item: msgspec.Raw) -> str | None:
        return self.reader.identity(item)

    def normalize(self, items: Iterable[msgspec.Raw]) -> _NormalizedItems:
        good: list[msgspec.Raw] = []
        warnings: list[ProductWarning] = []
        for item in items:
            reason = self.refused.get(bytes(item))
            if reason is None:
                good.append(item)
            else:
                product_id = shorten_id(self.reader.identity(item))
                warnings.append(ProductWarning(product_id, "", f"the database refuses it: {reason}", fatal=True))
        normalized = self.reader.normalize(good)
        return _NormalizedItems(normalized.products, (*warnings, *normalized.warnings))
