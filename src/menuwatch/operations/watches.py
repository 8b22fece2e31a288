"""What shoppers want to be told of: asking for it, judging it when a menu was taken in, ending it.

The judging is that of the alerts of operators (`alerts.judge`): a watch tells once for each crossing, and prices that tremble around a
threshold tell nothing. What is judged is the item within the watch's reach, so it does not matter which store brings the change.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
from psycopg import AsyncConnection

from menuwatch.alerts.judge import Standing, initial, judge
from menuwatch.alerts.model import Facts, Terms
from menuwatch.core.clock import SystemClock
from menuwatch.core.errors import Refused
from menuwatch.core.settings import Settings
from menuwatch.core.telemetry import get_logger
from menuwatch.db import sql
from menuwatch.operations.reading import Row, rows
from menuwatch.operations.refusals import Unusable
from menuwatch.operations.shopping_shelf import Taken
from menuwatch.proxies.vault import Vault
from menuwatch.shoppers import store as watches
from menuwatch.shoppers.model import Condition, Judged, Phase, Reach, Scope, Watch

log = get_logger(__name__)
_q = sql.load(__package__, "watches.sql")
_encode = msgspec.json.Encoder(decimal_format="number").encode

MOST_OF_ADDRESS = 30
MOST_UNCONFIRMED = 3
"""Watches that wait for the word of one address: as many mails somebody else can have us send there, in two days."""
MOST_UNCONFIRMED_OF_ALL = 5_000
"""The same of everybody, in an hour: a last brake. A client may ask ten times in an hour (site/limits.py): it takes hundreds of
them to keep others out."""
UNCONFIRMED = timedelta(hours=48)
KEPT = timedelta(days=60)
"""How long a feed keeps what it told."""
NEVER_READ = timedelta(days=7)
UNREAD = timedelta(days=60)
"""After so long a feed ends that nobody has read: at all, or any more."""
PACE_SECONDS = 6 * 3600.0
"""Between two mails of one watch; what happens meanwhile is in the second one."""

_AT_ONCE = 5_000
"""Watches that are judged together."""

_ADDRESS = re.compile(
    r"[A-Za-z0-9.!#$&'*+/=?^_`{|}~-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,63}"
)


class TooMany(Refused):
    """A limit against abuse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A watch as it was asked for. Without an `address` it is a feed."""

    item_id: int
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


def _reach(item_id: int, scope: Scope | Watch) -> Reach:
    return Reach(item_id, scope.store_id, scope.miles, scope.latitude, scope.longitude)


async def _facts(conn: AsyncConnection[Any], reaches: Sequence[Reach]) -> list[Row]:
    items, stores, miles, latitudes, longitudes = (list(column) for column in zip(*reaches, strict=True))
    values = {"items": items, "stores": stores, "miles": miles, "latitudes": latitudes, "longitudes": longitudes}
    return await rows(conn, _q.facts, values)


async def _fact(conn: AsyncConnection[Any], reach: Reach) -> Facts:
    (found,) = await _facts(conn, [reach])
    return _seen(found)


def _seen(found: Row) -> Facts:
    price = None if found["price"] is None else Decimal(found["price"]) / 100
    return Facts(price, found["stock"])


async def ask(conn: AsyncConnection[Any], asked: Asked, settings: Settings, *, now: datetime | None = None) -> str:
    """Stores a watch; returns the token that opens and ends it. One by mail is silent until it is confirmed.

    Raises Unusable for what cannot be watched, TooMany where an address or everybody asks for too much.
    """
    now = now or SystemClock().now()
    terms = _terms(asked.condition, asked.amount)
    seen = await _fact(conn, _reach(asked.item_id, asked.scope))
    standing = initial(terms, seen)
    if standing.phase == "fired":
        _refuse(asked, seen)
    token = secrets.token_urlsafe(32)
    known: dict[str, Any] = {}
    if asked.address is not None:
        known = await _of_address(conn, asked.address, token, settings, now)
    watch_id = await watches.insert(
        conn,
        token_hash=watches.hash_of(token),
        kind="feed" if asked.address is None else "mail",
        item_id=asked.item_id,
        scope=asked.scope,
        condition=asked.condition,
        amount=asked.amount,
        phase=standing.phase,
        reference=standing.reference,
        now=now,
        ends_at=now + NEVER_READ if asked.address is None else None,
        **known,
    )
    log.info("a shopper watches an item", action="watch_asked", watch_id=watch_id, item_id=asked.item_id)
    return token


def _refuse(asked: Asked, seen: Facts) -> None:
    if asked.condition == "back_in_stock":
        if seen.stock == "in_stock":
            raise Unusable("condition", "It is in stock already.")
        raise Unusable("condition", "Nobody there says whether it is in stock, so we could not tell you.")
    raise Unusable("amount", f"It costs ${seen.price:,.2f} already. Choose a lower price, or any drop.")


async def _of_address(
    conn: AsyncConnection[Any], address: str, token: str, settings: Settings, now: datetime
) -> dict[str, Any]:
    if settings.mail_url is None:
        raise Unusable("by", "This site sends no mail: choose a feed.")
    if len(address) > 254 or _ADDRESS.fullmatch(address) is None:
        raise Unusable("email", "That is no e-mail address: it looks like name@example.com.")
    mark = await watches.mark_of(conn, address)
    mine, unconfirmed, of_all = await watches.counts(conn, mark, now)
    if of_all >= MOST_UNCONFIRMED_OF_ALL:
        log.warning("very many alerts wait to be confirmed", action="watches_braked", unconfirmed=of_all)
        raise TooMany("Very many people ask for alerts by mail right now. Try again in an hour, or choose a feed.")
    if mine >= MOST_OF_ADDRESS or unconfirmed >= MOST_UNCONFIRMED:
        raise TooMany(
            "That address has enough alerts, or some that wait to be confirmed. Look into your mail, or choose a feed."
        )
    vault = Vault.from_settings(settings)
    return {"address": vault.seal(address), "token": vault.seal(token), "address_mark": mark}


async def confirm(conn: AsyncConnection[Any], token: str, *, now: datetime | None = None) -> Watch | None:
    """From now on it is watched; None where there is no such watch (any more). Twice is once."""
    watch = await watches.by_token(conn, token)
    if watch is None or watch.confirmed_at is not None:
        return watch
    now = now or SystemClock().now()
    standing = initial(_terms(watch.condition, watch.amount), await _fact(conn, _reach(watch.item_id, watch)))
    await watches.confirm(conn, watch.id, phase=standing.phase, reference=standing.reference, now=now)
    log.info("a watch is confirmed", action="watch_confirmed", watch_id=watch.id)
    return replace(watch, confirmed_at=now)


async def was_read(conn: AsyncConnection[Any], watch: Watch, *, now: datetime | None = None) -> None:
    """Somebody reads a feed, which therefore lives on."""
    await watches.was_read(conn, watch.id, (now or SystemClock().now()) + UNREAD)


async def end(conn: AsyncConnection[Any], token: str) -> bool:
    """Deletes a watch and all that is known of whoever asked for it."""
    ended = await watches.end(conn, token)
    if ended:
        log.info("a watch has ended", action="watch_ended")
    return ended


async def look(conn: AsyncConnection[Any], taken: Taken) -> None:
    """Judges the watches of what a store changed, in the transaction that took it in: some thousand at a time, each question once for
    all that look at the same."""
    now = SystemClock().now()
    after = 0
    while found := await watches.of_items(conn, taken.items, taken.store_id, after=after, most=_AT_ONCE):
        await _judge(conn, found, now)
        after = found[-1].id
        if len(found) < _AT_ONCE:
            return


async def _judge(conn: AsyncConnection[Any], found: Sequence[Judged], now: datetime) -> None:
    reaches = list(dict.fromkeys(watch.reach for watch in found))
    facts = dict(zip(reaches, await _facts(conn, reaches), strict=True))
    moved: list[tuple[int, Phase, Decimal | None, datetime | None]] = []
    news: dict[int, str] = {}
    for watch in found:
        there = facts[watch.reach]
        seen = _seen(there)
        standing = Standing(phase=watch.phase, reference=watch.reference, fired_at=watch.fired_at)
        verdict = judge(_terms(watch.condition, watch.amount), standing, seen, now)
        if verdict.standing != standing:
            after = verdict.standing
            moved.append((watch.id, after.phase, after.reference, after.fired_at))
        if verdict.fires:
            told = {"price": seen.price, "before": verdict.reference, "stock": seen.stock, "store": there["store"]}
            news[watch.id] = _encode(told).decode()
    await watches.stand(conn, moved)
    await watches.tell(conn, news, now=now, pace=PACE_SECONDS)
