"""One applied menu, looked at by the rules: the changes that it made become events, in the transaction that made them.

Only products whose price, stock or potency changed are looked at, and those that a rule waits on: what a crawl costs here follows
what it changed. A menu that was quarantined was not applied and never comes here; a part of a menu says nothing of what it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from psycopg import AsyncConnection
from psycopg.rows import class_row

from menuwatch.alerts import digest
from menuwatch.alerts.judge import Standing, existing, initial, judge, worth_noting
from menuwatch.alerts.model import Facts, Moment, OptionPrices, OptionStock, Rule, facts
from menuwatch.db import sql

_q = sql.load(__package__)
_prices = msgspec.json.Decoder(tuple[OptionPrices, ...])
_stock = msgspec.json.Decoder(tuple[OptionStock, ...])
_encode = msgspec.json.Encoder(decimal_format="number").encode

MOST_EXISTING = 1000
"""Products that a new rule tells of at most because they hold already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawl:
    """A menu that was applied. One that is not `live` is history: it moves rules on, and nobody is told."""

    dispensary_id: int
    provider: str
    crawled_at: datetime
    part_note: str
    """What the notes of a payload say that is not a whole menu."""
    live: bool = True


class _Product(NamedTuple):
    id: int
    dispensary_id: int
    provider_product_id: str
    name: str
    brand_name: str | None
    category: str | None
    store: str
    slug: str | None
    state: str | None
    observed: bool
    now: Moment
    before: Moment | None


def _moment(row: Sequence[Any]) -> Moment:
    status, rec, special, med, med_special, prices, stock = row
    return Moment(
        stock_status=status,
        rec=rec,
        special=special,
        med=med,
        med_special=med_special,
        prices=_prices.decode(prices),
        stock=_stock.decode(stock),
    )


async def _products(conn: AsyncConnection[Any], ids: list[int]) -> dict[int, _Product]:
    cursor = await conn.execute(_q.products, {"ids": ids})
    found = {}
    for row in await cursor.fetchall():
        before = None if row[17] is None else _moment(row[17:24])
        found[row[0]] = _Product._make((*row[:10], _moment(row[10:17]), before))
    return found


async def _rules(conn: AsyncConnection[Any], ids: list[int]) -> dict[int, Rule]:
    async with conn.cursor(row_factory=class_row(Rule)) as cur:
        await cur.execute(_q.rules, {"ids": ids})
        return {rule.id: rule for rule in await cur.fetchall()}


async def look(conn: AsyncConnection[Any], crawl: Crawl) -> int:
    """Judges what the crawl changed; returns how many events it made. The caller's transaction has applied the menu."""
    at = {"dispensary_id": crawl.dispensary_id, "provider": crawl.provider, "crawled_at": crawl.crawled_at}
    pairs = await _pairs(conn, at)
    if not pairs:
        return 0
    ids = list({product_id for _, product_id, _ in pairs})
    numbers = list({rule_id for rule_id, _, _ in pairs})
    rules = await _rules(conn, numbers)
    products = await _products(conn, ids)
    standings = {
        (row[0], row[1]): Standing(phase=row[2], since=row[3], crawls=row[4], reference=row[5], fired_at=row[6])
        for row in await (await conn.execute(_q.standings, {"ids": ids, "rules": numbers})).fetchall()
    }
    known = await _known_whole(conn, crawl) if any(one.before is None for one in products.values()) else True
    writes = _Writes(conn)
    for rule_id, product_id, changed in pairs:
        rule, product = rules.get(rule_id), products[product_id]
        if rule is None:
            continue  # it was removed or disabled this very moment
        standing = standings.get((rule_id, product_id))
        if not product.observed and rule.condition != "out_of_stock" and not changed:
            continue  # not seen by this crawl, so nothing was learned
        now = facts(rule, product.now)
        noted = standing is not None
        if standing is None:
            before = None if product.before is None else facts(rule, product.before)
            standing = initial(rule, before) if known or before else existing(rule, now)
        verdict = judge(rule, standing, now, crawl.crawled_at)
        if verdict.standing != standing or not noted:
            writes.stand(rule, product, verdict.standing, now, noted=noted)
        if verdict.fires and crawl.live:
            before = None if product.before is None or not changed else facts(rule, product.before)
            writes.tell(rule, product, before, now, verdict.reference, crawl.crawled_at)
    await writes.done()
    return len(writes.events)


class _Changed(NamedTuple):
    """A product by what rules look for, in the database's lower case."""

    id: int
    name: str
    brand: str | None
    category: str | None
    canon: str | None


class _Candidate(NamedTuple):
    """A rule by what it looks for; None looks for nothing."""

    id: int
    product_id: int | None
    brand: str | None
    category: str | None
    search: str | None

    def takes(self, one: _Changed) -> bool:
        return (
            (self.product_id is None or self.product_id == one.id)
            and (self.brand is None or self.brand == one.brand)
            and (self.category is None or self.category in (one.category, one.canon))
            and (self.search is None or self.search in one.name)
        )


async def _pairs(conn: AsyncConnection[Any], at: Mapping[str, Any]) -> list[tuple[int, int, bool]]:
    """(rule, product, whether it changed) of all that is to be judged."""
    changed = [_Changed._make(row) for row in await (await conn.execute(_q.changed, at)).fetchall()]
    pairs = [(rule, product, False) for rule, product in await (await conn.execute(_q.awaited, at)).fetchall()]
    if not changed:
        return pairs
    values = {
        **at,
        "ids": [one.id for one in changed],
        "brands": list({one.brand for one in changed if one.brand is not None}),
        "categories": list({word for one in changed for word in (one.category, one.canon) if word is not None}),
    }
    for row in await (await conn.execute(_q.candidates, values)).fetchall():
        rule = _Candidate._make(row)
        pairs += [(rule.id, one.id, True) for one in changed if rule.takes(one)]
    return pairs


async def _known_whole(conn: AsyncConnection[Any], crawl: Crawl) -> bool:
    values = {"dispensary_id": crawl.dispensary_id, "crawled_at": crawl.crawled_at, "part": crawl.part_note}
    row = await (await conn.execute(_q.known_whole, values)).fetchone()
    return row is not None and bool(row[0])


async def look_at_existing(conn: AsyncConnection[Any], rule: Rule, now: datetime) -> int:
    """Fires a rule that was just made for what holds already; returns for how many products."""
    scope = ("product_id", "dispensary_id", "state", "platform", "brand", "category", "search")
    cursor = await conn.execute(_q.in_scope, {name: getattr(rule, name) for name in scope})
    ids = [row[0] for row in await cursor.fetchall()]
    writes = _Writes(conn)
    for start in range(0, len(ids), 1000):
        for product in (await _products(conn, ids[start : start + 1000])).values():
            seen = facts(rule, product.now)
            if not product.observed and rule.condition != "out_of_stock":
                continue
            verdict = judge(rule, existing(rule, seen), seen, now)
            if verdict.fires or verdict.standing.phase == "pending":
                writes.stand(rule, product, verdict.standing, seen, noted=False)
            if verdict.fires:
                writes.tell(rule, product, None, seen, verdict.reference, now)
        if len(writes.events) >= MOST_EXISTING:
            break
    await writes.done()
    return len(writes.events)


class _Writes:
    """Rows to be written, in a few statements for all of them."""

    def __init__(self, conn: AsyncConnection[Any]) -> None:
        self._conn = conn
        self._noted: list[dict[str, Any]] = []
        self._forgotten: list[tuple[int, int]] = []
        self.events: list[dict[str, Any]] = []

    def stand(self, rule: Rule, product: _Product, standing: Standing, now: Facts, *, noted: bool) -> None:
        if worth_noting(rule, standing, now):
            key = {"rule_id": rule.id, "product_id": product.id, "dispensary_id": product.dispensary_id}
            self._noted.append({**key, **asdict(standing)})
        elif noted:
            self._forgotten.append((rule.id, product.id))

    def tell(
        self, rule: Rule, product: _Product, before: Facts | None, now: Facts, reference: Any, fired_at: datetime
    ) -> None:
        told = {
            "product": {
                "id": product.id,
                "provider_product_id": product.provider_product_id,
                "name": product.name,
                "brand": product.brand_name,
                "category": product.category,
            },
            "store": {"id": product.dispensary_id, "name": product.store, "slug": product.slug, "state": product.state},
            "option": rule.option,
            "before": None if before is None else {"price": before.price, "stock_status": before.stock},
            "after": {"price": now.price, "stock_status": now.stock},
            "reference_price": reference,
        }
        self.events.append(
            {
                "rule_id": rule.id,
                "source": f"product/{product.id}/{fired_at.isoformat()}",
                "product_id": product.id,
                "dispensary_id": product.dispensary_id,
                "fired_at": fired_at,
                "due_at": digest.due(rule, fired_at),
                "facts": told,
            }
        )

    async def done(self) -> None:
        if self._noted:
            await self._conn.execute(_q.note_standings, {"rows": _rows(self._noted)})
        if self._forgotten:
            rules, products = zip(*self._forgotten, strict=True)
            await self._conn.execute(_q.drop_standings, {"rules": list(rules), "products": list(products)})
        if self.events:
            await self._conn.execute(_q.insert_events, {"rows": _rows(self.events)})


def _rows(values: list[dict[str, Any]]) -> str:
    """Rows as one JSON text, numbers exact. (Names of products hold no NUL: the catalogue takes none.)"""
    return _encode(values).decode()
