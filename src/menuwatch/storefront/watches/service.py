"""Watches of shoppers: create them, evaluate them when a store was indexed, delete them.

The watch of an item is evaluated by the rules of alerts (`alerts.price_and_stock_rules`): it fires once for each crossing, and not for
prices that fluctuate around a threshold. What is evaluated is the item within the scope of the watch, so it does not matter which
store changed. Watches of brands, searches and stores, and those of new deals, are about offers that changed (`changed_offers`).
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

import msgspec
from psycopg import AsyncConnection

from menuwatch.alerts import ssrf_guard
from menuwatch.alerts.model import Facts, Terms
from menuwatch.alerts.price_and_stock_rules import MatchState, evaluate, initial
from menuwatch.config.settings import Settings
from menuwatch.core.encryption import SecretBox
from menuwatch.core.errors import InvalidField, Refused
from menuwatch.core.format import money
from menuwatch.core.logging import get_logger
from menuwatch.db import sql
from menuwatch.db.clock import database_now
from menuwatch.db.items import log_refused
from menuwatch.db.query import Row, fetch_all
from menuwatch.geo.units import currency, state_of
from menuwatch.storefront.indexer import IndexedStore
from menuwatch.storefront.parsed_query import parse_query
from menuwatch.storefront.search import SearchRequest
from menuwatch.storefront.watches import ntfy
from menuwatch.storefront.watches import store as watches
from menuwatch.storefront.watches.changed_offers import evaluate_changes
from menuwatch.storefront.watches.model import (
    CHANNELS,
    CONDITIONS,
    NEVER_READ,
    Channel,
    Condition,
    ItemScope,
    NewWatch,
    Phase,
    Scope,
    Watch,
    WatchedSearch,
    WatchTerms,
)
from menuwatch.storefront.watches.web_push import Subscription

log = get_logger(__name__)
_q = sql.load(__package__, "service.sql")
_encode = msgspec.json.Encoder(decimal_format="number").encode

MOST_OF_ADDRESS = 30
MOST_UNCONFIRMED = 3
"""Unconfirmed watches of one address: as many messages a stranger can make us send there in two days."""
MOST_UNCONFIRMED_OF_ALL = 5_000
"""The same of all addresses in an hour, as a last limit: one client may create ten in an hour (site/limits.py)."""

_BATCH = 5_000
"""Watches that are evaluated together."""

_ADDRESS = re.compile(
    r"[A-Za-z0-9.!#$&'*+/=?^_`{|}~-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,63}"
)


class TooMany(Refused):
    """A limit against abuse."""


def _terms(condition: Condition, amount: Decimal | None) -> Terms:
    match condition:
        case "price_below":
            return Terms(condition="price_below", amount=amount)
        case "any_drop":
            return Terms(condition="price_drops_by", percent=Decimal(0))
        case "back_in_stock":
            return Terms(condition="back_in_stock")
        case _:
            raise AssertionError(f"{condition} is not evaluated on a state")


def _item_scope(
    item_id: int, size: str | None, scope: Scope | Watch | WatchTerms, condition: Condition, paid: str
) -> ItemScope:
    # A product is back in stock wherever it is: the condition compares no prices.
    any_currency = condition == "back_in_stock"
    return ItemScope(item_id, size, scope.store_id, scope.miles, scope.latitude, scope.longitude, paid, any_currency)


async def _currency(conn: AsyncConnection[Any], new: NewWatch) -> str:
    """The currency of a watch: that of its place or its store, the one that the form showed, that of its item's cheapest offer, or
    else of most stores."""
    if new.scope.place is not None:
        return currency(state_of(new.scope.place))
    named = await watches.names(conn, item_id=new.item_id, brand_id=new.brand_id, store_id=new.scope.store_id)
    if new.scope.store_id is not None:
        return currency(named.state)
    if new.currency is not None:
        return new.currency
    return await watches.usual_currency(conn) if named.state is None else currency(named.state)


async def _facts(conn: AsyncConnection[Any], scopes: Sequence[ItemScope]) -> list[Row]:
    names = ("items", "sizes", "stores", "miles", "latitudes", "longitudes", "currencies", "any_currency")
    values = {name: list(column) for name, column in zip(names, zip(*scopes, strict=True), strict=True)}
    return await fetch_all(conn, _q.facts, values)


async def _fact(conn: AsyncConnection[Any], item_scope: ItemScope) -> Facts:
    (row,) = await _facts(conn, [item_scope])
    return _to_facts(row)


def _to_facts(row: Row) -> Facts:
    price = None if row["price"] is None else Decimal(row["price"]) / 100
    return Facts(price, row["stock"])


def offered_channels(settings: Settings) -> list[Channel]:
    """The ways to notify that this installation has, in the order of forms."""
    without = {
        *(("mail",) if settings.mail_url is None else ()),
        *(("ntfy",) if not settings.ntfy_server else ()),
    }
    return [name for name in CHANNELS if name not in without]


async def create(conn: AsyncConnection[Any], new: NewWatch, settings: Settings, *, now: datetime | None = None) -> str:
    """Creates a watch; returns its token. One by mail, or to a topic that was typed, is inactive until it is confirmed.

    Raises InvalidField for what cannot be watched, TooMany beyond a limit.
    """
    now = now or await database_now(conn)
    if new.channel not in offered_channels(settings):
        raise InvalidField("by", f"This site does not offer “{CHANNELS[new.channel].label}”. Choose another way.")
    state = MatchState(phase="armed", reference=None, fired_at=None)
    paid = await _currency(conn, new)
    if _by_state(new):
        assert new.item_id is not None, "states are those of items"
        facts = await _fact(conn, _item_scope(new.item_id, new.size, new.scope, new.condition, paid))
        state = initial(_terms(new.condition, new.amount), facts)
        if state.phase == "fired":
            _refuse(new, facts, paid)
    elif new.item_id is not None and not CONDITIONS[new.condition].of_item:
        raise InvalidField("condition", "A product is new only once: choose another condition.")
    token = secrets.token_urlsafe(32)
    address, confirmed = _address(new, settings)
    unused = NEVER_READ if new.channel == "feed" else CHANNELS[new.channel].unused
    secret_box = SecretBox(settings.secret_key)
    watch_id = await watches.insert(
        conn,
        new,
        currency=paid,
        token_hash=watches.hash_of(token),
        phase=state.phase,
        reference=state.reference,
        now=now,
        confirmed=confirmed,
        address=secret_box.encrypt(address),
        token=None if address is None else secret_box.encrypt(token),
        address_mark=None if address is None else await _counted(conn, new.channel, address, now),
        ends_at=None if unused is None else now + unused,
    )
    log.info("price watch created", action="watch_asked", watch_id=watch_id, subject=new.subject, channel=new.channel)
    return token


async def watched_search(conn: AsyncConnection[Any], query: str, request: SearchRequest) -> WatchedSearch:
    """A search as it can be watched; `query` is the address of its page. Its words are read as they are now."""
    return WatchedSearch(
        query=query,
        words=(await parse_query(conn, request.text)).query,
        category=request.category,
        brands=request.brands,
        strains=request.strains,
        sizes=request.sizes,
        in_stock=request.in_stock,
        special=request.special,
        price_min=request.price_min,
        price_max=request.price_max,
        per_gram_max=request.per_gram_max,
        thc_min=request.thc_min,
        thc_max=request.thc_max,
    )


def _by_state(watch: NewWatch | Watch) -> bool:
    return watch.item_id is not None and watch.condition not in ("new_deal", "new_product")


def _refuse(new: NewWatch, facts: Facts, paid: str) -> None:
    if new.condition == "back_in_stock":
        if facts.stock == "in_stock":
            raise InvalidField("condition", "It is already in stock.")
        raise InvalidField("condition", "No store reports stock for this product, so this alert could never trigger.")
    raise InvalidField(
        "amount", f"It already costs {money(facts.price, paid)}. Choose a lower price, or any price drop."
    )


def _address(new: NewWatch, settings: Settings) -> tuple[str | None, bool]:
    """Where to send, and whether that needs no confirmation. A random topic and a browser's subscription belong to who asks."""
    match new.channel:
        case "feed":
            return None, True
        case "ntfy":
            if not new.address:
                return ntfy.new_topic(settings.ntfy_server), True
            return ntfy.topic_address(new.address, settings.ntfy_server), False
        case "push":
            try:
                endpoint = Subscription.parse(new.address or "").endpoint
            except Refused as error:
                raise InvalidField("by", str(error)) from None
            if not ssrf_guard.may_be_public(urlsplit(endpoint).hostname or ""):
                raise InvalidField("by", "The browser’s push service is not on the internet. Choose another way.")
            return new.address, True
        case "mail":
            address = new.address or ""
            if len(address) > 254 or _ADDRESS.fullmatch(address) is None:
                raise InvalidField("email", "That is not an e-mail address: use the form name@example.com.")
            return address, False


async def _counted(conn: AsyncConnection[Any], channel: Channel, address: str, now: datetime) -> bytes:
    """The mark of an address that may have one more watch; raises TooMany."""
    known = Subscription.parse(address).endpoint if channel == "push" else address
    mark = await watches.mark_of(conn, known.lower() if channel == "mail" else known)
    own, unconfirmed, of_all = await watches.counts(conn, mark, now)
    if channel != "push" and of_all >= MOST_UNCONFIRMED_OF_ALL:
        log.warning("too many unconfirmed price watches", action="watches_braked", unconfirmed=of_all)
        raise TooMany("Too many alerts are being requested right now. Try again in an hour, or choose a feed.")
    if own >= MOST_OF_ADDRESS or unconfirmed >= MOST_UNCONFIRMED:
        raise TooMany("That address has too many alerts or unconfirmed ones. Check your inbox, or choose a feed.")
    return mark


async def confirm(conn: AsyncConnection[Any], token: str, *, now: datetime | None = None) -> Watch | None:
    """Activates a watch; idempotent. None if it does not exist."""
    watch = await watches.by_token(conn, token)
    if watch is None or watch.confirmed_at is not None:
        return watch
    now = now or await database_now(conn)
    state = MatchState(phase=watch.phase, reference=watch.reference, fired_at=watch.fired_at)
    if _by_state(watch):
        assert watch.item_id is not None, "states are those of items"
        facts = await _fact(conn, _item_scope(watch.item_id, watch.size, watch, watch.condition, watch.currency))
        state = initial(_terms(watch.condition, watch.amount), facts)
    await watches.confirm(conn, watch.id, phase=state.phase, reference=state.reference, now=now)
    log.info("price watch confirmed", action="watch_confirmed", watch_id=watch.id)
    return replace(watch, confirmed_at=now)


async def was_used(conn: AsyncConnection[Any], watch: Watch, *, now: datetime | None = None) -> None:
    """Extends the life of a watch whose feed or page was read."""
    if (unused := CHANNELS[watch.channel].unused) is not None:
        await watches.was_used(conn, watch.id, (now or await database_now(conn)) + unused)


async def end(conn: AsyncConnection[Any], token: str) -> bool:
    """Deletes a watch with its address; returns whether it existed."""
    ended = await watches.end(conn, token)
    if ended:
        log.info("price watch ended", action="watch_ended")
    return ended


async def evaluate_store(conn: AsyncConnection[Any], indexed: IndexedStore) -> None:
    """Evaluates the watches that the changed offers concern, in the transaction that indexed the store; those of items in batches, in
    which equal items and scopes share one query."""
    now = await database_now(conn)
    await evaluate_changes(conn, indexed.store_id, now)
    after = 0
    while batch := await watches.of_items(conn, indexed.items, indexed.store_id, after=after, limit=_BATCH):
        await _evaluate_batch(conn, batch, now)
        after = batch[-1].id
        if len(batch) < _BATCH:
            return


async def _evaluate_batch(conn: AsyncConnection[Any], batch: Sequence[WatchTerms], now: datetime) -> None:
    scope_of = {
        watch.id: _item_scope(watch.item_id, watch.size, watch, watch.condition, watch.currency) for watch in batch
    }
    scopes = list(dict.fromkeys(scope_of.values()))
    facts = dict(zip(scopes, await _facts(conn, scopes), strict=True))
    changes: list[tuple[int, Phase, Decimal | None, datetime | None]] = []
    events: dict[int, str] = {}
    for watch in batch:
        try:
            _evaluate_watch(watch, facts[scope_of[watch.id]], now, changes, events)
        except Exception as error:  # pure: only the fields of this watch can raise
            log_refused("storefront_indexer", "price_watch", watch.id, error)
    await watches.save_states(conn, changes)
    await watches.add_events(conn, events, now=now)


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
