"""Mails to shoppers: confirmations and what was found, sent until the mail server takes them. A mail whose sender dies is sent
again."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlencode, urlsplit, urlunsplit

from menuwatch.alerts import notify
from menuwatch.alerts.guard import Forbidden
from menuwatch.alerts.webhook import NotDelivered
from menuwatch.core.backoff import Backoff
from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.settings import Settings
from menuwatch.core.telemetry import get_logger
from menuwatch.db.pool import Pool
from menuwatch.operations import shopping
from menuwatch.operations import shopping_places as places
from menuwatch.operations.shopping_keys import slug
from menuwatch.operations.watch_words import Mail, confirmation, digest
from menuwatch.operations.watches import KEPT, PACE_SECONDS, UNCONFIRMED
from menuwatch.proxies.vault import Locked, Vault
from menuwatch.shoppers import store as watches
from menuwatch.shoppers.model import Event, Watch

log = get_logger(__name__)

_AT_ONCE = 8
_MOST_EVENTS = 20
_SLACK_SECONDS = 30.0
_LONGEST_WAIT = 6 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Where things are, for links: `base` is the address at which people reach the server."""

    base: str

    def item(self, item_id: int, name: str) -> str:
        """An item's page."""
        return f"{self.base}/p/{item_id}-{slug(name)}".rstrip("-")

    def confirm(self, token: str) -> str:
        """Where a watch is confirmed."""
        return f"{self.base}/alerts/{token}/confirm"

    def stop(self, token: str) -> str:
        """Where a watch is ended: a page for people, and for RFC 8058 the address that is posted to."""
        return f"{self.base}/alerts/{token}/stop"


class Post:
    """Any number of them may send: each mail is sent by one."""

    def __init__(self, pool: Pool, settings: Settings, *, clock: Clock | None = None) -> None:
        self._pool = pool
        self._mail_url = settings.mail_url
        self._addresses = Addresses(base=(settings.public_url or f"http://{settings.host}:{settings.port}").rstrip("/"))
        self._vault = Vault.from_settings(settings)
        self._timeout = settings.alert_timeout_seconds
        self._attempts = settings.alert_attempts
        self._backoff = Backoff(base=settings.alert_retry_seconds, cap=_LONGEST_WAIT)
        self._clock = clock or SystemClock()
        self._rng = random.Random()  # noqa: S311 - jitter, no secret

    async def send(self) -> int:
        """Sends what is due and forgets what is past its time; returns how many mails were tried."""
        now = self._clock.now()
        async with self._pool.connection() as conn:
            await watches.prune(conn, now=now, unconfirmed=now - UNCONFIRMED, events=now - KEPT)
            if self._mail_url is None:
                return 0
            # One is sent after the other, and each may take up to four timeouts: nobody else may take the last one meanwhile.
            hold = self._timeout * 4 * _AT_ONCE + _SLACK_SECONDS
            due = await watches.take_due(conn, now, _AT_ONCE, hold=hold)
        for watch in due:
            await self._send(watch)
        return len(due)

    async def _send(self, watch: Watch) -> None:
        try:
            address, token = self._vault.open(watch.address), self._vault.open(watch.token)
        except Locked as error:
            await self._failed(watch, str(error))
            return
        assert address is not None, "a watch by mail has one"
        assert token is not None, "and the other"
        events, mail = await self._written(watch, token)
        if mail is None:
            async with self._pool.connection() as conn:
                await watches.not_mailed(conn, watch.id, None)
            return
        try:
            await notify.send(
                self._url(address, self._addresses.stop(token)),
                mail.subject,
                mail.text,
                seconds=self._timeout,
                # The server is the operator's own; whoever asked for the mail has no say in where it goes through.
                allow_private=True,
            )
        except (NotDelivered, Forbidden) as error:
            await self._failed(watch, str(error))
            return
        async with self._pool.connection() as conn:
            told = [one.id for one in events]
            await watches.mailed(conn, watch.id, told, now=self._clock.now(), pace=PACE_SECONDS)
        log.info("a shopper was told", action="watch_mailed", watch_id=watch.id, events=len(events))

    async def _written(self, watch: Watch, token: str) -> tuple[list[Event], Mail | None]:
        async with self._pool.connection() as conn:
            item = await shopping.item(conn, watch.item_id)
            store = await places.store(conn, watch.store_id) if watch.store_id is not None else None
            events = await watches.untold(conn, watch.id, _MOST_EVENTS) if watch.confirmed_at is not None else []
        if item is None:
            return [], None
        stop = self._addresses.stop(token)
        if watch.confirmed_at is None:
            named = store["name"] if store else None
            return [], confirmation(watch, item["name"], named, confirm=self._addresses.confirm(token), stop=stop)
        if not events:
            return [], None
        page = self._addresses.item(watch.item_id, item["name"])
        return events, digest(watch, item["name"], events, page=page, stop=stop)

    def _url(self, address: str, stop: str) -> str:
        """The mail server with this one receiver, and the headers by which a mail program ends the alert with one click (RFC 8058)."""
        parts = urlsplit(self._mail_url or "")
        more = urlencode(
            {
                "to": address,
                "format": "text",
                "+List-Unsubscribe": f"<{stop}>",
                "+List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
                "+Auto-Submitted": "auto-generated",
            }
        )
        # Receivers that stand in the path are for other uses of the same URL.
        return urlunsplit((parts.scheme, parts.netloc, "", "&".join(q for q in (parts.query, more) if q), ""))

    async def _failed(self, watch: Watch, error: str) -> None:
        again_at = None
        if watch.attempts < self._attempts:
            again_at = self._clock.now() + timedelta(seconds=self._backoff.delay(watch.attempts - 1, self._rng))
        async with self._pool.connection() as conn:
            await watches.not_mailed(conn, watch.id, again_at)
        log.warning(
            "a shopper could not be told",
            action="watch_not_mailed",
            watch_id=watch.id,
            attempt=watch.attempts,
            again_at=again_at and again_at.isoformat(),
            error=error,
        )
