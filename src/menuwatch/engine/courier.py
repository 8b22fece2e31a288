"""Carries alerts to those who want them: gathers events into messages, sends each until its receiver has it, and keeps a log.

A message goes out directly, not through a proxy: it is no crawl, and its receiver is ours.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any, ClassVar

import msgspec

from menuwatch.alerts import message, notify, webhook
from menuwatch.alerts import store as alerts
from menuwatch.alerts.guard import Forbidden
from menuwatch.alerts.store import Channel, Delivery, Try
from menuwatch.alerts.webhook import NotDelivered
from menuwatch.core.backoff import Backoff
from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.settings import Settings
from menuwatch.core.telemetry import get_logger
from menuwatch.db.pool import Connection, Pool
from menuwatch.engine.loop import Loop
from menuwatch.proxies.vault import Locked, Vault

log = get_logger(__name__)

_AT_ONCE = 8
_RULES_AT_ONCE = 50
_SLACK_SECONDS = 30.0
"""What sending may take beyond its time limits, the wait for a connection to the database included."""
_LONGEST_WAIT = 6 * 3600.0


class Courier(Loop):
    """Any number of them may run: each message is sent by one. A message whose sender dies is sent again by another, so a receiver may
    get it twice, and tells by its key."""

    name: ClassVar[str] = "courier"

    def __init__(
        self,
        pool: Pool,
        settings: Settings,
        *,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        interval: float = 5.0,
    ) -> None:
        super().__init__(interval=interval)
        self._pool = pool
        self._timeout = settings.alert_timeout_seconds
        self._allow_private = bool(settings.alert_allow_private)
        self._attempts = settings.alert_attempts
        self._backoff = Backoff(base=settings.alert_retry_seconds, cap=_LONGEST_WAIT)
        self._vault = Vault.from_settings(settings)
        self._clock = clock or SystemClock()
        self._rng = rng or random.Random()  # noqa: S311 - jitter, no secret

    async def step(self) -> float | None:
        async with self._pool.connection() as conn:
            await alerts.find_trouble(conn, self._clock.now())
            soon = await alerts.next_due(conn, self._clock.now())
        if soon is None or soon > 0:
            return None if soon is None else min(self.interval, soon)
        full = await self.gather()
        sent = await self.send()
        return 0.0 if full or sent == _AT_ONCE else None

    async def gather(self) -> bool:
        """Puts events that are due into messages, one for each rule and channel; returns whether there may be more."""
        now = self._clock.now()
        async with self._pool.connection() as conn, conn.transaction():
            due = await alerts.due_events(conn, now, rules=_RULES_AT_ONCE)
            if not due:
                return False
            rules = {rule.id: rule for rule in await alerts.listed(conn) if rule.id in due}
            channels = await alerts.channels(conn, list(due))
            for channel in channels:
                events = due[channel.rule_id]
                body = message.payload(rules[channel.rule_id], events, now)
                await alerts.put_delivery(conn, channel, body, now, events=[one.id for one in events])
            await alerts.told(conn, [one.id for events in due.values() for one in events])
        return len(due) == _RULES_AT_ONCE or any(len(events) == alerts.MOST_TOLD for events in due.values())

    async def send(self, only: Sequence[int] | None = None) -> int:
        """Sends what is due, or of these messages what is due; returns how many were tried."""
        async with self._pool.connection() as conn:
            hold = self._timeout * 4 + _SLACK_SECONDS
            taken = await alerts.take_due(conn, self._clock.now(), _AT_ONCE, hold=hold, only=only)
        ended = await asyncio.gather(*(self._carry(one) for one in taken), return_exceptions=True)
        for error in ended:
            if isinstance(error, BaseException):
                raise error
        return len(taken)

    async def _carry(self, one: Delivery) -> None:
        began, start = self._clock.now(), asyncio.get_running_loop().time()
        code, reason, final = None, None, False
        try:
            code = await self._hand_over(one)
        except NotDelivered as error:
            code, reason, final = error.code, str(error), error.final
        except Forbidden as error:
            reason = str(error)
        how = Try(at=began, ms=round((asyncio.get_running_loop().time() - start) * 1000), code=code, error=reason)
        again_at = None
        if not how.delivered and not final and one.attempts < self._attempts:
            again_at = self._clock.now() + timedelta(seconds=self._backoff.delay(one.attempts - 1, self._rng))
        async with self._pool.connection() as conn:
            await self._note(conn, one, how, again_at)

    async def _note(self, conn: Connection, one: Delivery, how: Try, again_at: Any) -> None:
        told = {"delivery_id": one.id, "rule_id": one.rule_id, "channel": one.channel, "attempt": one.attempts}
        if how.delivered:
            await alerts.delivered(conn, one, how)
            log.info("an alert was delivered", action="alert_delivered", code=how.code, ms=how.ms, **told)
            return
        await alerts.not_delivered(conn, one, how, again_at)
        log.warning(
            "an alert could not be delivered",
            action="alert_not_delivered",
            code=how.code,
            error=how.error,
            again_at=again_at and again_at.isoformat(),
            **told,
        )

    async def _hand_over(self, one: Delivery) -> int | None:
        """Sends a message; returns the status of a webhook's answer. Raises NotDelivered and Forbidden."""
        async with self._pool.connection() as conn:
            channel = None if one.channel_id is None else await alerts.channel(conn, one.channel_id)
        if channel is None:
            raise NotDelivered("the channel was removed", final=True)
        address, secret = self._opened(channel)
        if channel.kind == "webhook":
            sent = msgspec.json.encode(
                {"id": one.key, "replay": one.replays, **msgspec.json.decode(one.payload, type=dict[str, msgspec.Raw])}
            )
            return await webhook.send(
                address,
                secret or "",
                sent,
                key=one.key,
                now=self._clock.now(),
                seconds=self._timeout,
                allow_private=self._allow_private,
            )
        title, text = message.text(json.loads(one.payload, parse_float=Decimal))
        await notify.send(address, title, text, seconds=self._timeout, allow_private=self._allow_private)
        return None

    def _opened(self, channel: Channel) -> tuple[str, str | None]:
        try:
            return self._vault.open(channel.address) or "", self._vault.open(channel.secret)
        except Locked:
            raise NotDelivered(
                "the channel is sealed, and no key in SECRET_KEY opens it: add the key, or give the channel anew"
            ) from None
