"""Sends mails of price watches, confirmations and events, until the mail server accepts them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import ClassVar
from urllib.parse import urlencode, urlsplit, urlunsplit

from menuwatch.alerts import notify
from menuwatch.alerts.ssrf_guard import Forbidden
from menuwatch.alerts.webhook import NotDelivered
from menuwatch.catalog.taxonomy.text import slug
from menuwatch.config.settings import Settings
from menuwatch.core.backoff import Backoff
from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.encryption import DecryptionError, SecretBox
from menuwatch.core.errors import Refused
from menuwatch.core.logging import get_logger
from menuwatch.db.loop import Loop
from menuwatch.db.pool import Pool
from menuwatch.storefront import page_queries
from menuwatch.storefront.watches import store as watches
from menuwatch.storefront.watches.messages import Mail, confirmation, digest
from menuwatch.storefront.watches.model import Event, Watch
from menuwatch.storefront.watches.service import PACE_SECONDS

log = get_logger(__name__)

_BATCH = 8
_MAX_EVENTS = 20
_SLACK_SECONDS = 30.0
_MAX_BACKOFF_SECONDS = 6 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """URLs for mails; `base` is the public URL of the server."""

    base: str

    def item(self, item_id: int, name: str) -> str:
        return f"{self.base}/p/{item_id}-{slug(name)}".rstrip("-")

    def confirm(self, token: str) -> str:
        return f"{self.base}/alerts/{token}/confirm"

    def stop(self, token: str) -> str:
        """A page that deletes the watch, and the URL for one-click unsubscribe (RFC 8058)."""
        return f"{self.base}/alerts/{token}/stop"


class WatchMailer(Loop):
    """Any number may run: each mail is leased by one. If its sender dies, another sends it."""

    name: ClassVar[str] = "watch_mailer"
    private: ClassVar[bool] = True  # errors may hold the mail server's password and addresses of shoppers

    def __init__(self, pool: Pool, settings: Settings, *, clock: Clock | None = None, interval: float = 5.0) -> None:
        """Raises Refused for an unusable MAIL_URL."""
        super().__init__(interval=interval)
        self._pool = pool
        self._mail_url = settings.mail_url
        self._links = Links(base=(settings.public_url or f"http://{settings.host}:{settings.port}").rstrip("/"))
        self._secret_box = SecretBox(settings.secret_key)
        self._timeout = settings.alert_timeout_seconds
        self._attempts = settings.alert_attempts
        self._backoff = Backoff(base=settings.alert_retry_seconds, cap=_MAX_BACKOFF_SECONDS)
        self._clock = clock or SystemClock()
        self._rng = random.Random()  # noqa: S311 - jitter, no secret
        if self._mail_url is not None:
            self._check_url()

    def _check_url(self) -> None:
        """Raises Refused, without showing the URL, which holds a password."""
        try:
            notify.check(self._url("shopper@example.org", self._links.stop("token")), allow_private=True)
        except Refused as error:
            raise Refused(f"invalid MAIL_URL: {error}") from None

    async def step(self) -> float | None:
        return 0.0 if await self.send() else None

    async def send(self) -> int:
        """Sends due mails; returns how many were tried."""
        if self._mail_url is None:
            return 0
        now = self._clock.now()
        async with self._pool.connection() as conn:
            # They are sent one by one, and each may take up to four timeouts.
            lease_seconds = self._timeout * 4 * _BATCH + _SLACK_SECONDS
            due = await watches.lease_due(conn, now, _BATCH, lease_seconds=lease_seconds)
        for watch in due:
            await self.attend("price_watch", watch.id, self._send(watch), partial(self._failed, watch))
        return len(due)

    async def _send(self, watch: Watch) -> None:
        try:
            address, token = self._secret_box.decrypt(watch.address), self._secret_box.decrypt(watch.token)
        except DecryptionError as error:
            await self._failed(watch, str(error))
            return
        assert address is not None, "a watch by mail has an address"
        assert token is not None, "a watch by mail has a token"
        events, mail = await self._compose(watch, token)
        if mail is None:
            async with self._pool.connection() as conn:
                await watches.not_mailed(conn, watch.id, None)
            return
        try:
            await notify.send(
                self._url(address, self._links.stop(token)),
                mail.subject,
                mail.text,
                seconds=self._timeout,
                # The mail server is the operator's choice.
                allow_private=True,
            )
        except (NotDelivered, Forbidden) as error:
            await self._failed(watch, str(error))
            return
        async with self._pool.connection() as conn:
            event_ids = [event.id for event in events]
            await watches.mailed(conn, watch.id, event_ids, now=self._clock.now(), pace=PACE_SECONDS)
        log.info("price watch mail sent", action="watch_mailed", watch_id=watch.id, events=len(events))

    async def _compose(self, watch: Watch, token: str) -> tuple[list[Event], Mail | None]:
        async with self._pool.connection() as conn:
            item = await page_queries.get_item(conn, watch.item_id)
            store = await page_queries.get_store(conn, watch.store_id) if watch.store_id is not None else None
            events = await watches.unsent_events(conn, watch.id, _MAX_EVENTS) if watch.confirmed_at is not None else []
        if item is None:
            return [], None
        stop = self._links.stop(token)
        if watch.confirmed_at is None:
            store_name = store.name if store else None
            return [], confirmation(watch, item.name, store_name, confirm=self._links.confirm(token), stop=stop)
        if not events:
            return [], None
        page = self._links.item(watch.item_id, item.name)
        return events, digest(watch, item.name, events, page=page, stop=stop)

    def _url(self, address: str, stop: str) -> str:
        """MAIL_URL with this receiver and the headers for one-click unsubscribe (RFC 8058)."""
        parts = urlsplit(self._mail_url or "")
        query = urlencode(
            {
                "to": address,
                "format": "text",
                "+List-Unsubscribe": f"<{stop}>",
                "+List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
                "+Auto-Submitted": "auto-generated",
            }
        )
        # Receivers in the path are for other uses of the same URL.
        return urlunsplit((parts.scheme, parts.netloc, "", "&".join(q for q in (parts.query, query) if q), ""))

    async def _failed(self, watch: Watch, error: str) -> None:
        again_at = None
        if watch.attempts < self._attempts:
            again_at = self._clock.now() + timedelta(seconds=self._backoff.delay(watch.attempts - 1, self._rng))
        async with self._pool.connection() as conn:
            await watches.not_mailed(conn, watch.id, again_at)
        log.warning(
            "price watch mail failed",
            action="watch_not_mailed",
            watch_id=watch.id,
            attempt=watch.attempts,
            again_at=again_at and again_at.isoformat(),
            error=error,
        )
