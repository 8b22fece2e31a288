"""How many products there are of each kind, for the filters of a list: counted as far as that is quick, and said to be more beyond."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import psycopg

from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.operations.products import ProductFilter, names_with
from menuwatch.operations.reading import rows

_q = sql.load(__package__, "product_facets.sql")

MOST = 2_000
"""Products that are counted at most."""
_PATIENCE_MS = 60
"""Longest time of a count; a page without counts is better than one that is waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """`values` by facet (category, strain, stock, brand), each with how many products it has among what the other facets leave.
    `total` is what the whole filter selects. `whole` False: more than MOST were there, so that all figures are at least that.
    `counted` False: counting took too long, and there are none."""

    values: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    total: int = 0
    whole: bool = True
    counted: bool = True

    def of(self, facet: str) -> Mapping[str, int]:
        """The values of one facet, the most frequent first."""
        return self.values.get(facet, {})


async def facets(conn: Connection, where: ProductFilter) -> Facets:
    """Counts what a filter selects, by facet. The caller is in no transaction, or in one that it can do without."""
    values = {**where.values(), "most": MOST + 1, "brands_lower": None}
    if where.brands is not None:
        values["brands_lower"] = [brand.lower() for brand in where.brands]
    values["names"] = names = await names_with(conn, where)
    if names == []:
        return Facets()
    try:
        async with conn.transaction():
            await conn.execute(_q.patience, {"patience": f"{_PATIENCE_MS}ms"})
            found = await rows(conn, _q.facets, values, prepare=False)
    except psycopg.errors.QueryCanceled:
        return Facets(counted=False)
    by: dict[str, dict[str, int]] = {}
    total = looked = 0
    for one in found:
        if one["facet"] == "all":
            total, looked = one["n"], one["looked"]
        elif one["value"] is not None and one["n"]:
            by.setdefault(one["facet"], {})[one["value"]] = one["n"]
    return Facets(values=by, total=min(total, MOST), whole=looked <= MOST)
