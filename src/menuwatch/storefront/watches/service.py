"""Price watches of shoppers: create them, evaluate them when a store was indexed, delete them.

A watch is evaluated by the rules of alerts (`alerts.price_and_stock_rules`): it fires once for each crossing, and not for prices that
fluctuate around a threshold. What is evaluated is the item within the scope of the watch, so it does not matter which store changed.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec
from psycopg import AsyncConnection

from menuwatch.alerts.model import Facts, Terms
from menuwatch.alerts.price_and_stock_rules import MatchState, evaluate, initial
from menuwatch.config.settings import Settings
from menuwatch.core.encryption import SecretBox
from menuwatch.core.errors import InvalidField, Refused
from menuwatch.core.logging import get_logger
from menuwatch.db import sql
from menuwatch.db.clock import database_now
from menuwatch.db.items import log_refused
from menuwatch.db.query import Row, fetch_all
from menuwatch.storefront.indexer import IndexedStore
from menuwatch.storefront.watches import store as watches
from menuwatch.storefront.watches.model import NEVER_READ, UNREAD, Condition, ItemScope, Phase, Scope, Watch, WatchTerms

log = get_logger(__name__)
_q = sql.load(__package__, "service.sql")
_encode = msgspec.json.Encoder(decimal_format="number").encode

MOST_OF_ADDRESS = 30
MOST_UNCONFIRMED = 3
"""Unconfirmed watches of one address: as many mails a stranger can make us send there in two days."""
MOST_UNCONFIRMED_OF_ALL = 5_000
"""The same of all addresses in an hour, as a last limit: one client may create ten in an hour (site/limits.py)."""
PACE_SECONDS = 6 * 3600.0
"""Between two mails of one watch; later events wait for the next one."""

_BATCH = 5_000
"""Watches that are evaluated together."""

_ADDRESS = re.compile(
    r"[A-Za-z0-9.!#$&'*+/=?^_`{|}~-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,63}"
)


class TooMany(Refused):
    """A limit against abuse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWatch:
    """A watch to create. Without an `address` it is a feed."""

    item_id: int
    size: str | None = None
    """Only this size of the item."""
    condition: Condition
    amount: Decimal | None = None
    scope: Scope = Scope()
    address: str | None = None


def _terms(condition: Condition, amount: Decimal | None) -> Terms:
    match condition:
        case "price_below":
            return Terms(condition="price_below", amount=amount)
        case "any_drop":
            return Terms(condition="price_drops_by", percent=Decimal(0))
        case "back_in_stock":
            return Terms(condition="back_in_stock")


def _item_scope(item_id: int, size: str | None, scope: Scope | Watch) -> ItemScope:
    return ItemScope(item_id, size, scope.store_id, scope.miles, scope.latitude, scope.longitude)


async def _facts(conn: AsyncConnection[Any], scopes: Sequence[ItemScope]) -> list[Row]:
    items, sizes, stores, miles, latitudes, longitudes = (list(column) for column in zip(*scopes, strict=True))
    values = {
        "items": items,
        "sizes": sizes,
        "stores": stores,
        "miles": miles,
        "latitudes": latitudes,
        "longitudes": longitudes,
    }
    return await fetch_all(conn, _q.facts, values)


async def _fact(conn: AsyncConnection[Any], item_scope: ItemScope) -> Facts:
    (row,) = await _facts(conn, [item_scope])
    return _to_facts(row)


def _to_facts(row: Row) -> Facts:
    price = None if row["price"] is None else Decimal(row["price"]) / 100
    return Facts(price, row["stock"])


async def create(conn: AsyncConnection[Any], new: NewWatch, settings: Settings, *, now: datetime | None = None) -> str:
    """Creates a watch; returns its token. A watch by mail is inactive until it is confirmed.

    Raises InvalidField for what cannot be watched, TooMany beyond a limit.
    """
    now = now or await database_now(conn)
    terms = _terms(new.condition, new.amount)
    facts = await _fact(conn, _item_scope(new.item_id, new.size, new.scope))
    state = initial(terms, facts)
    if state.phase == "fired":
        _refuse(new, facts)
    token = secrets.token_urlsafe(32)
    mail: dict[str, Any] = {}
    if new.address is not None:
        mail = await _mail_fields(conn, new.address, token, settings, now)
    watch_id = await watches.insert(
        conn,
        token_hash=watches.hash_of(token),
        kind="feed" if new.address is None else "mail",
        item_id=new.item_id,
        size=new.size,
        scope=new.scope,
        condition=new.condition,
        amount=new.amount,
        phase=state.phase,
        reference=state.reference,
        now=now,
        ends_at=now + NEVER_READ if new.address is None else None,
        **mail,
    )
    log.info("price watch created", action="watch_asked", watch_id=watch_id, item_id=new.item_id)
    return token


def _refuse(new: NewWatch, facts: Facts) -> None:
    if new.condition == "back_in_stock":
        if facts.stock == "in_stock":
            raise InvalidField("condition", "It is already in stock.")
        raise InvalidField("condition", "No store reports stock for this product, so this alert could never trigger.")
    raise InvalidField("amount", f"It already costs ${facts.price:,.2f}. Choose a lower price, or any price drop.")


async def _mail_fields(
    conn: AsyncConnection[Any], address: str, token: str, settings: Settings, now: datetime
) -> dict[str, Any]:
    if settings.mail_url is None:
        raise InvalidField("by", "This site sends no e-mail: choose a feed.")
    if len(address) > 254 or _ADDRESS.fullmatch(address) is None:
        raise InvalidField("email", "That is not an e-mail address: use the form name@example.com.")
    mark = await watches.mark_of(conn, address)
    own, unconfirmed, of_all = await watches.counts(conn, mark, now)
    if of_all >= MOST_UNCONFIRMED_OF_ALL:
        log.warning("too many unconfirmed price watches", action="watches_braked", unconfirmed=of_all)
        raise TooMany("Too many e-mail alerts are being requested right now. Try again in an hour, or choose a feed.")
    if own >= MOST_OF_ADDRESS or unconfirmed >= MOST_UNCONFIRMED:
        raise TooMany("That address has too many alerts or unconfirmed ones. Check your inbox, or choose a feed.")
    secret_box = SecretBox(settings.secret_key)
    return {"address": secret_box.encrypt(address), "token": secret_box.encrypt(token), "address_mark": mark}


async def confirm(conn: AsyncConnection[Any], token: str, *, now: datetime | None = None) -> Watch | None:
    """Activates a watch; idempotent. None if it does not exist."""
    watch = await watches.by_token(conn, token)
    if watch is None or watch.confirmed_at is not None:
        return watch
    now = now or await database_now(conn)
    state = initial(
        _terms(watch.condition, watch.amount), await _fact(conn, _item_scope(watch.item_id, watch.size, watch))
    )
    await watches.confirm(conn, watch.id, phase=state.phase, reference=state.reference, now=now)
    log.info("price watch confirmed", action="watch_confirmed", watch_id=watch.id)
    return replace(watch, confirmed_at=now)


async def was_read(conn: AsyncConnection[Any], watch: Watch, *, now: datetime | None = None) -> None:
    """Extends the life of a feed that was read."""
    await watches.was_read(conn, watch.id, (now or await database_now(conn)) + UNREAD)


async def end(conn: AsyncConnection[Any], token: str) -> bool:
    """Deletes a watch with its address; returns whether it existed."""
    ended = await watches.end(conn, token)
    if ended:
        log.info("price watch ended", action="watch_ended")
    return ended


async def evaluate_store(conn: AsyncConnection[Any], indexed: IndexedStore) -> None:
    """Evaluates the watches of the items whose offers changed, in the transaction that indexed it, in batches; watches with the same
    item and scope share one query."""
    now = await database_now(conn)
    after = 0
    while batch := await watches.of_items(conn, indexed.items, indexed.store_id, after=after, limit=_BATCH):
        await _evaluate_batch(conn, batch, now)
        after = batch[-1].id
        if len(batch) < _BATCH:
            return


async def _evaluate_batch(conn: AsyncConnection[Any], batch: Sequence[WatchTerms], now: datetime) -> None:
    scopes = list(dict.fromkeys(watch.item_scope for watch in batch))
    facts = dict(zip(scopes, await _facts(conn, scopes), strict=True))
    changes: list[tuple[int, Phase, Decimal | None, datetime | None]] = []
    events: dict[int, str] = {}
    for watch in batch:
        try:
            _evaluate_watch(watch, facts[watch.item_scope], now, changes, events)
        except Exception as error:  # pure: only the fields of this watch can raise
            log_refused("storefront_indexer", "price_watch", watch.id, error)
    await watches.save_states(conn, changes)
    await watches.add_events(conn, events, now=now, pace=PACE_SECONDS)


def _evaluate_watch(
    watch: WatchTerms,
    row: Row,
    now: datetime,
    changes: list[tuple[int, Phase, Decimal | None, datetime | None]],
    events: dict[int, str],
) -> None:
    facts = _to_facts(row)
    state = MatchState(phase=watch.phase, reference=watch.reference, fired_at=watch.fired_at)
    result = evaluate(_terms(watch.condition, watch.amount), state, facts, now)
    if result.state != state:
        after = result.state
        changes.append((watch.id, after.phase, after.reference, after.fired_at))
    if result.fires:
        event = {"price": facts.price, "before": result.reference, "stock": facts.stock, "store": row["store"]}
        events[watch.id] = _encode(event).decode()
