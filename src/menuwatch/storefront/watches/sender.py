"""Sends the messages of watches, confirmations and events, until a mail server, ntfy or a push service accepts them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import ClassVar
from urllib.parse import urlencode, urlsplit, urlunsplit

from menuwatch.alerts import notify, outgoing
from menuwatch.alerts.outgoing import NotDelivered
from menuwatch.alerts.ssrf_guard import Forbidden
from menuwatch.catalog.taxonomy.text import slug
from menuwatch.config.settings import Settings
from menuwatch.core.backoff import Backoff
from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.encryption import DecryptionError, SecretBox
from menuwatch.core.errors import Refused
from menuwatch.core.logging import get_logger
from menuwatch.db.loop import Loop
from menuwatch.db.pool import Pool
from menuwatch.storefront.watches import ntfy
from menuwatch.storefront.watches import store as watches
from menuwatch.storefront.watches.messages import Message, clipped, confirmation, describe, digest, notification
from menuwatch.storefront.watches.model import CHANNELS, Event, Named, Watch
from menuwatch.storefront.watches.service import offered_channels
from menuwatch.storefront.watches.web_push import Subscription, push_key

log = get_logger(__name__)

_BATCH = 8
_MAX_EVENTS = 20
_SLACK_SECONDS = 30.0
_MAX_BACKOFF_SECONDS = 6 * 3600.0
_GONE = (404, 410)
"""Statuses of a push service for a subscription that has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """URLs for messages; `base` is the public URL of the server."""

    base: str

    def item(self, item_id: int, name: str) -> str:
        return f"{self.base}/p/{item_id}-{slug(name)}".rstrip("-")

    def alert(self, token: str) -> str:
        return f"{self.base}/alerts/{token}"

    def confirm(self, token: str) -> str:
        return f"{self.base}/alerts/{token}/confirm"

    def stop(self, token: str) -> str:
        """A page that deletes the watch, and the URL for one-click unsubscribe (RFC 8058)."""
        return f"{self.base}/alerts/{token}/stop"


class WatchSender(Loop):
    """Any number may run: each message is leased by one. If its sender dies, another sends it."""

    name: ClassVar[str] = "watch_sender"
    private: ClassVar[bool] = True  # errors may hold the mail server's password and addresses of shoppers

    def __init__(
        self,
        pool: Pool,
        settings: Settings,
        *,
        clock: Clock | None = None,
        interval: float = 5.0,
        private_push: bool = False,
    ) -> None:
        """`private_push`: push services inside the network are allowed, which strangers could abuse. Raises Refused for an unusable
        MAIL_URL."""
        super().__init__(interval=interval)
        self._private_push = private_push
        self._pool = pool
        self._mail_url = settings.mail_url
        self._ntfy_server = settings.ntfy_server
        self._channels = [name for name in offered_channels(settings) if name != "feed"]
        self._contact = settings.public_url if (settings.public_url or "").startswith("https://") else None
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
        """Sends due messages; returns how many were tried."""
        now = self._clock.now()
        async with self._pool.connection() as conn:
            # They are sent one by one, and each may take up to four timeouts.
            lease_seconds = self._timeout * 4 * _BATCH + _SLACK_SECONDS
            due = await watches.lease_due(conn, now, _BATCH, channels=self._channels, lease_seconds=lease_seconds)
        for watch in due:
            await self.attend("price_watch", watch.id, self._send(watch), partial(self._failed, watch))
        return len(due)

    async def _send(self, watch: Watch) -> None:
        try:
            address, token = self._secret_box.decrypt(watch.address), self._secret_box.decrypt(watch.token)
        except DecryptionError as error:
            await self._failed(watch, str(error))
            return
        assert address is not None, "a watch that is sent has an address"
        assert token is not None, "a watch that is sent has a token"
        async with self._pool.connection() as conn:
            named = await watches.names_of(conn, watch)
            events = await watches.unsent_events(conn, watch.id, _MAX_EVENTS) if watch.confirmed_at is not None else []
        if watch.confirmed_at is not None and not events:
            async with self._pool.connection() as conn:
                await watches.not_sent(conn, watch.id, None)
            return
        try:
            await self._deliver(watch, named, events, address, token)
        except (NotDelivered, Forbidden, DecryptionError) as error:
            if watch.channel == "push" and isinstance(error, NotDelivered) and error.code in _GONE:
                await self._gone(watch)
            else:
                await self._failed(watch, str(error))
            return
        async with self._pool.connection() as conn:
            event_ids = [event.id for event in events]
            pace = CHANNELS[watch.channel].pace
            await watches.sent(conn, watch.id, event_ids, now=self._clock.now(), pace=pace)
        log.info("price watch sent", action="watch_sent", watch_id=watch.id, channel=watch.channel, events=len(events))

    async def _deliver(self, watch: Watch, named: Named, events: Sequence[Event], address: str, token: str) -> None:
        stop, confirm, alert = self._links.stop(token), self._links.confirm(token), self._links.alert(token)
        page = alert if watch.item_id is None else self._links.item(watch.item_id, named.item or "")
        match watch.channel:
            case "mail":
                mail = (
                    digest(watch, named, events, page=page, stop=stop)
                    if events
                    else confirmation(watch, named, confirm=confirm, stop=stop)
                )
                # The mail server is the operator's choice.
                url = self._url(address, stop)
                await notify.send(url, mail.subject, mail.text, seconds=self._timeout, allow_private=True)
            case "ntfy":
                first = Message("Confirm your alert", f"You will be notified when {describe(watch, named)}.")
                message = notification(watch, named, events) if events else first
                await ntfy.send(
                    address,
                    title=message.subject,
                    text=message.text,
                    click=page if events else confirm,
                    actions=[("Alert", alert)] if events else [("Confirm", confirm), ("Delete", stop)],
                    server=self._ntfy_server,
                    seconds=self._timeout,
                )
            case "push":
                message = notification(watch, named, events)
                content = {"title": clipped(message.subject, 250), "body": clipped(message.text, 1_500), "url": page}
                async with self._pool.connection() as conn:
                    key = await push_key(conn, self._secret_box)
                push = key.push(Subscription.parse(address), content, now=self._clock.now(), contact=self._contact)
                await outgoing.post(
                    push.url, push.body, push.headers, seconds=self._timeout, allow_private=self._private_push
                )
            case "feed":
                raise AssertionError("a feed is read, not sent")

    async def _gone(self, watch: Watch) -> None:
        """The browser withdrew its permission, or is no more."""
        async with self._pool.connection() as conn:
            await watches.remove(conn, watch.id)
        log.info("price watch ended", action="watch_ended", watch_id=watch.id, reason="unsubscribed")

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
            await watches.not_sent(conn, watch.id, again_at)
        log.warning(
            "price watch not sent",
            action="watch_not_sent",
            watch_id=watch.id,
            channel=watch.channel,
            attempt=watch.attempts,
            again_at=again_at and again_at.isoformat(),
            error=error,
        )
