"""Evaluates the rules on an applied menu: its changes become events, in the transaction that applied it.

Only products whose price, stock or potency changed are evaluated, and those whose condition is pending: the cost follows the number of
changes. Quarantined menus are not applied and never come here; products that a partial menu lacks are not evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from psycopg import AsyncConnection

from menuwatch.alerts.model import CONDITIONS, SCOPE, Facts, OptionPrices, OptionStock, ProductState, Rule, facts
from menuwatch.alerts.price_and_stock_rules import (
    Evaluation,
    MatchState,
    evaluate,
    initial,
    initial_existing,
    should_store,
)
from menuwatch.alerts.store import record_rule_failure
from menuwatch.core.format import pluralize
from menuwatch.db import sql
from menuwatch.db.items import described, log_refused, run_item, uncharged
from menuwatch.db.query import fetch_structs

_q = sql.load(__package__)
_prices = msgspec.json.Decoder(tuple[OptionPrices, ...])
_stock = msgspec.json.Decoder(tuple[OptionStock, ...])
_encode = msgspec.json.Encoder(decimal_format="number").encode

MOST_EXISTING = 1000
"""Products for which a new rule fires because they match already, at most; a chunk that reaches it is completed."""
MOST_CHECKED = 20_000
"""Products that a preview evaluates at most."""
_CHUNK = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawl:
    """A menu that was applied. If it is not `live` (a replay), states of rules change but nothing fires."""

    dispensary_id: int
    provider: str
    crawled_at: datetime
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
    now: ProductState
    before: ProductState | None


def _product_state(row: Sequence[Any]) -> ProductState:
    status, rec, special, med, med_special, prices, stock = row
    return ProductState(
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
    products = {}
    for row in await cursor.fetchall():
        try:
            before = None if row[17] is None else _product_state(row[17:24])
            products[row[0]] = _Product._make((*row[:10], _product_state(row[10:17]), before))
        except Exception as error:
            log_refused("alerts", "product", row[0], error)
    return products


async def _rules(conn: AsyncConnection[Any], ids: list[int]) -> dict[int, Rule]:
    return {rule.id: rule for rule in await fetch_structs(conn, Rule, _q.rules, {"ids": ids})}


async def has_rules(conn: AsyncConnection[Any]) -> bool:
    """Whether any enabled rule is about products."""
    row = await (await conn.execute(_q.has_rules)).fetchone()
    return row is not None and bool(row[0])


async def evaluate_menu(conn: AsyncConnection[Any], crawl: Crawl) -> int:
    """Evaluates what the crawl changed; returns how many events it created. The caller's transaction has applied the menu.

    A rule that cannot be evaluated gets a failed delivery, once a day; other rules and the menu are not affected."""
    events = 0

    async def run() -> None:
        nonlocal events
        async with conn.transaction():
            events = await _evaluate_menu(conn, crawl)

    await run_item("alerts", "store", crawl.dispensary_id, run(), uncharged)
    return events


async def _evaluate_menu(conn: AsyncConnection[Any], crawl: Crawl) -> int:
    at = {"dispensary_id": crawl.dispensary_id, "provider": crawl.provider, "crawled_at": crawl.crawled_at}
    pairs, fresh = await _pairs(conn, at)
    if not pairs:
        return 0
    ids = list({product_id for _, product_id, _ in pairs})
    rule_ids = list({rule_id for rule_id, _, _ in pairs})
    rules = await _rules(conn, rule_ids)
    products = await _products(conn, ids)
    states = {
        (row[0], row[1]): MatchState(phase=row[2], since=row[3], crawls=row[4], reference=row[5], fired_at=row[6])
        for row in await (await conn.execute(_q.states, {"ids": ids, "rules": rule_ids})).fetchall()
    }
    known = (
        await _had_whole_menu(conn, crawl) if fresh or any(one.before is None for one in products.values()) else True
    )
    writes = _PendingWrites(conn)
    failed: dict[int, str] = {}
    for rule_id, product_id, changed in pairs:
        rule, product = rules.get(rule_id), products.get(product_id)
        if rule is None or product is None:
            continue  # removed or disabled a moment ago, or unreadable
        if rule.reach == "canonical_product" and product_id in fresh:
            product = product._replace(before=None)  # new to the rule: it was not matched when it was new
        state = states.get((rule_id, product_id))
        try:
            _evaluate_product(rule, product, state, changed, known, crawl, writes)
        except Exception as error:
            if rule_id not in failed:
                log_refused("alerts", "alert_rule", rule_id, error)
            failed[rule_id] = described(error)
    await writes.execute()
    for rule_id, reason in failed.items():
        await record_rule_failure(conn, [rule_id], f"the rule could not be evaluated: {reason}", crawl.crawled_at)
    return len(writes.events)


def _evaluate_product(
    rule: Rule,
    product: _Product,
    state: MatchState | None,
    changed: bool,
    known: bool,
    crawl: Crawl,
    writes: _PendingWrites,
) -> None:
    if not product.observed and rule.condition != "out_of_stock" and not changed:
        return  # not on this menu
    now = facts(rule, product.now)
    stored = state is not None
    if state is None:
        before = None if product.before is None else facts(rule, product.before)
        state = initial(rule, before) if known or before else initial_existing(rule, now)
    result = evaluate(rule, state, now, crawl.crawled_at)
    if result.fires and crawl.live:
        # First what may raise: if no event can be made, the state does not change.
        before = None if product.before is None or not changed else facts(rule, product.before)
        writes.queue_notification(rule, product, before, now, result.reference, crawl.crawled_at)
    if result.state != state or not stored:
        writes.save_state(rule, product, result.state, now, stored=stored)


class _ChangedProduct(NamedTuple):
    """A product by what rules match, in the database's lower case."""

    id: int
    name: str
    brand: str | None
    category: str | None
    canon: str | None


class _Candidate(NamedTuple):
    """A rule by its scope; None: not limited."""

    id: int
    product_id: int | None
    canonical: int | None
    brand: str | None
    category: str | None
    search: str | None

    def matches(self, product: _ChangedProduct, canonical: int | None) -> bool:
        return (
            (self.product_id is None or self.product_id == product.id)
            and (self.canonical is None or self.canonical == canonical)
            and (self.brand is None or self.brand == product.brand)
            and (self.category is None or self.category in (product.category, product.canon))
            and (self.search is None or self.search in product.name)
        )


async def _pairs(
    conn: AsyncConnection[Any], at: Mapping[str, Any]
) -> tuple[list[tuple[int, int, bool]], frozenset[int]]:
    """(rule, product, whether it changed) of all that is to be evaluated, and the products that were matched since they were new."""
    changed = [_ChangedProduct._make(row) for row in await (await conn.execute(_q.changed, at)).fetchall()]
    pairs = [(rule, product, False) for rule, product in await (await conn.execute(_q.awaited, at)).fetchall()]
    matched = [_ChangedProduct._make(row) for row in await (await conn.execute(_q.matched_since, at)).fetchall()]
    fresh = frozenset(one.id for one in matched)
    ids = {one.id for one in changed}
    other = [one for one in matched if one.id not in ids]
    if not changed and not other:
        return pairs, fresh
    canonical: dict[int, int] = dict(
        await (await conn.execute(_q.canonical_products, {"ids": list(ids | fresh)})).fetchall()
    )
    values = {
        **at,
        "ids": [one.id for one in changed],
        "canonical": list(set(canonical.values())),
        "brands": list({one.brand for one in changed if one.brand is not None}),
        "categories": list({word for one in changed for word in (one.category, one.canon) if word is not None}),
    }
    for row in await (await conn.execute(_q.candidates, values)).fetchall():
        rule = _Candidate._make(row)
        seen = changed if rule.canonical is None else changed + other
        pairs += [(rule.id, one.id, True) for one in seen if rule.matches(one, canonical.get(one.id))]
    return pairs, fresh


async def _had_whole_menu(conn: AsyncConnection[Any], crawl: Crawl) -> bool:
    values = {"dispensary_id": crawl.dispensary_id, "crawled_at": crawl.crawled_at}
    row = await (await conn.execute(_q.known_whole, values)).fetchone()
    return row is not None and bool(row[0])


class _Existing(NamedTuple):
    """A product that existed before a rule, and what the rule makes of it."""

    product: _Product
    now: Facts
    result: Evaluation


async def _existing(conn: AsyncConnection[Any], rule: Rule, ids: list[int], now: datetime) -> list[_Existing]:
    evaluated = []
    for product in (await _products(conn, ids)).values():
        if product.observed or rule.condition == "out_of_stock":
            now_facts = facts(rule, product.now)
            result = evaluate(rule, initial_existing(rule, now_facts), now_facts, now)
            evaluated.append(_Existing(product, now_facts, result))
    return evaluated


async def _may_match(conn: AsyncConnection[Any], rule: Rule, scope: Mapping[str, Any]) -> list[int]:
    values = {
        **scope,
        "out": rule.condition == "out_of_stock" and rule.option is None,
        "below": rule.amount if rule.condition == "price_below" and rule.option is None else None,
    }
    return [row[0] for row in await (await conn.execute(_q.candidates_in_scope, values)).fetchall()]


async def evaluate_existing(conn: AsyncConnection[Any], rule: Rule, now: datetime) -> int:
    """Fires a new rule for products that match already; returns for how many."""
    ids = await _may_match(conn, rule, {name: getattr(rule, name) for name in SCOPE})
    writes = _PendingWrites(conn)
    for start in range(0, len(ids), _CHUNK):
        for product, now_facts, result in await _existing(conn, rule, ids[start : start + _CHUNK], now):
            if result.fires or result.state.phase == "pending":
                writes.save_state(rule, product, result.state, now_facts, stored=False)
            if result.fires:
                writes.queue_notification(rule, product, None, now_facts, result.reference, now)
        if len(writes.events) >= MOST_EXISTING:
            break
    await writes.execute()
    return len(writes.events)


class ExistingCount(Struct, frozen=True, kw_only=True):
    """Products in the scope of a new rule, how many of them match (None: the condition is a change), and for how many the rule
    would fire at once. Not `complete`: there are more candidates than were checked."""

    in_scope: int
    matching: int | None
    would_fire: int
    fires_existing: bool
    debounced: bool
    complete: bool

    def text(self) -> str:
        """The count as a sentence."""
        least = "" if self.complete else "at least "
        scope = f"{pluralize(self.in_scope, 'product')} in scope"
        if self.matching is None:
            return f"Would fire for 0 products now: it reports changes only. {scope}."
        match = f"{least}{self.matching:,} of {scope} match"
        if self.fires_existing and not self.debounced:
            fires = "" if self.would_fire >= MOST_EXISTING else least
            return f"Would fire for {fires}{pluralize(self.would_fire, 'product')} now: {match}."
        why = (
            "they are reported once they have matched for long enough"
            if self.fires_existing
            else "existing matches are not reported"
        )
        return f"Would fire for 0 products now: {match}, and {why}."


async def count_existing(conn: AsyncConnection[Any], rule: Rule, now: datetime) -> ExistingCount:
    """What `evaluate_existing` would do, and how many products match at all."""
    scope = {name: getattr(rule, name) for name in SCOPE}
    row = await (await conn.execute(_q.count_in_scope, scope)).fetchone()
    assert row is not None, "a count gives a row"
    can_hold = CONDITIONS[rule.condition].can_hold
    ids = await _may_match(conn, rule, scope) if can_hold else []
    matching = fires = checked = 0
    while checked < min(len(ids), MOST_CHECKED):
        for one in await _existing(conn, replace(rule, on_existing="fire"), ids[checked : checked + _CHUNK], now):
            matching += one.result.fires or one.result.state.phase == "pending"
            fires += one.result.fires
        checked += _CHUNK
        if rule.on_existing == "fire" and fires >= MOST_EXISTING:
            break  # the rule fires for no more
    return ExistingCount(
        in_scope=row[0],
        matching=matching if can_hold else None,
        would_fire=fires if rule.on_existing == "fire" else 0,
        fires_existing=rule.on_existing == "fire",
        debounced=rule.debounce_crawls > 1 or rule.debounce_minutes > 0,
        complete=checked >= len(ids),
    )


class _PendingWrites:
    """Collects rows, to write them in few statements."""

    def __init__(self, conn: AsyncConnection[Any]) -> None:
        self._conn = conn
        self._states: list[dict[str, Any]] = []
        self._deleted: list[tuple[int, int]] = []
        self.events: list[dict[str, Any]] = []

    def save_state(self, rule: Rule, product: _Product, state: MatchState, now: Facts, *, stored: bool) -> None:
        if should_store(rule, state, now):
            key = {"rule_id": rule.id, "product_id": product.id, "dispensary_id": product.dispensary_id}
            self._states.append({**key, **asdict(state)})
        elif stored:
            self._deleted.append((rule.id, product.id))

    def queue_notification(
        self, rule: Rule, product: _Product, before: Facts | None, now: Facts, reference: Any, fired_at: datetime
    ) -> None:
        event = {
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
                "due_at": rule.due_at(fired_at),
                "facts": event,
            }
        )

    async def execute(self) -> None:
        if self._states:
            await self._conn.execute(_q.save_states, {"rows": _rows(self._states)})
        if self._deleted:
            rules, products = zip(*self._deleted, strict=True)
            await self._conn.execute(_q.drop_states, {"rules": list(rules), "products": list(products)})
        if self.events:
            await self._conn.execute(_q.insert_events, {"rows": _rows(self.events)})


def _rows(values: list[dict[str, Any]]) -> str:
    """Rows as one JSON text, numbers exact. (The catalog admits no NUL in names.)"""
    return _encode(values).decode()
