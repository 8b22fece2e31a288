"""The net below `apply`: a product whose row the database refuses costs itself, and not the menu it stands on.

Platforms keep what they make of an item within what the columns take, so this is for what nobody thought of. A menu that
passes pays a savepoint for it. One that does not is tried out by halves, as rows of a store that does not exist, until the items to
blame are known; then it is applied with these as items that cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import psycopg
from psycopg import AsyncConnection

from menuwatch.catalog import apply, rows
from menuwatch.catalog.apply import Applied, MenuToApply, Reader
from menuwatch.catalog.model import Product, ProductWarning

MOST_REFUSED = 20
"""With more products refused than this the fault is not theirs, and the database's error is raised as it is."""

_REFUSALS = (
    psycopg.DataError,
    psycopg.IntegrityError,
    psycopg.errors.ProgramLimitExceeded,  # an index row that is too large
    ArithmeticError,
    ValueError,  # half a surrogate pair, which has no bytes
)
_NOWHERE = 0
"""No store has this number."""


async def apply_menu(conn: AsyncConnection[Any], menu: MenuToApply, reader: Reader) -> Applied:
    """`apply.apply_menu`, with each product that the database refuses left out by a fatal warning. Raises what that raises, and
    psycopg.Error where no single product is to blame; the caller's transaction can be used afterwards all the same."""
    sieve = _Sieve(reader)
    while True:
        try:
            async with conn.transaction():
                return await apply.apply_menu(conn, menu, sieve if sieve.refused else reader)
        except _REFUSALS:
            # More than once: an item that takes the place of a refused one with the same id may be refused as well.
            found = await _Trial(conn, menu).refused(_candidates(menu, sieve))
            if not found or len(sieve.refused) + len(found) > MOST_REFUSED:
                raise
            sieve.refused.update(found)


class _Candidate(NamedTuple):
    raw: bytes
    product: Product


def _candidates(menu: MenuToApply, reader: Reader) -> list[_Candidate]:
    """The items that can be read; of several with one id the last, as `apply` has it."""
    found: dict[str, _Candidate] = {}
    for raw in menu.items:
        for product in reader.normalize((raw,)).products:
            found[product.provider_product_id] = _Candidate(bytes(raw), product)
    return list(found.values())


@dataclass(slots=True)
class _Trial:
    """Tells which products the database refuses, leaving nothing behind."""

    conn: AsyncConnection[Any]
    menu: MenuToApply

    async def refused(self, candidates: Sequence[_Candidate]) -> dict[bytes, str]:
        """Raw items and the reason; of more than MOST_REFUSED only the first."""
        found: dict[bytes, str] = {}
        waiting = [candidates]
        while waiting and len(found) <= MOST_REFUSED:
            some = waiting.pop()
            reason = await self._refusal(some)
            if reason is None:
                continue
            if len(some) == 1:
                found[some[0].raw] = reason
            else:
                half = len(some) // 2
                waiting += [some[half:], some[:half]]
        return found

    async def _refusal(self, candidates: Sequence[_Candidate]) -> str | None:
        """Why these rows cannot be written, None where they can."""
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
            row = -1 - number  # ids that no sequence gives
            identity = rows.identity_line(_NOWHERE, self.menu.provider, candidate.product, at)
            products.append(f"{rows.product_line(row, b'', candidate.product)}\t{identity}\n")
        async with (
            self.conn.cursor() as cur,
            cur.copy(f"COPY catalog_products ({rows.PRODUCT_COLUMNS}, {rows.IDENTITY_COLUMNS}) FROM STDIN") as copy,
        ):
            await copy.write("".join(products))


class _Read(NamedTuple):
    products: Sequence[Product]
    warnings: Sequence[ProductWarning]


@dataclass(frozen=True, slots=True)
class _Sieve:
    """A reader that cannot read some items."""

    reader: Reader
    refused: dict[bytes, str] = field(default_factory=dict)
    """By their bytes, with the reason."""

    @property
    def normalizer_version(self) -> int:
        return self.reader.normalizer_version

    def identity(self, item: msgspec.Raw) -> str | None:
        return self.reader.identity(item)

    def normalize(self, items: Iterable[msgspec.Raw]) -> _Read:
        good: list[msgspec.Raw] = []
        warnings: list[ProductWarning] = []
        for item in items:
            reason = self.refused.get(bytes(item))
            if reason is None:
                good.append(item)
            else:
                name = self.reader.identity(item)
                told = name if name is None or len(name) <= 200 else f"{name[:40]}…"
                warnings.append(ProductWarning(told, "", f"the database refuses it: {reason}", fatal=True))
        made = self.reader.normalize(good)
        return _Read(made.products, (*warnings, *made.warnings))
