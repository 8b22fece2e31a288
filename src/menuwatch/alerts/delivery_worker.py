"""Delivers alerts: gathers events into messages, sends each until its receiver accepts it, and logs every attempt.

Messages are sent directly, not through a proxy.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, ClassVar

import msgspec

from menuwatch.alerts import message, notify, operations, store, webhook
from menuwatch.alerts.model import Rule
from menuwatch.alerts.operations import ReadOperations
from menuwatch.alerts.outgoing import NotDelivered
from menuwatch.alerts.ssrf_guard import Forbidden
from menuwatch.alerts.store import Attempt, Channel, Delivery, DueEvent
from menuwatch.config.settings import Settings
from menuwatch.core.backoff import Backoff
from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.encryption import DecryptionError, SecretBox
from menuwatch.core.logging import get_logger
from menuwatch.db.items import uncharged
from menuwatch.db.loop import Loop
from menuwatch.db.pool import Connection, Pool

log = get_logger(__name__)

_BATCH = 8
_RULES_PER_STEP = 50
_SLACK_SECONDS = 30.0
"""Added to the lease beyond the timeouts of sending, for example to wait for a database connection."""
_MAX_BACKOFF_SECONDS = 6 * 3600.0


class AlertDeliverer(Loop):
    """Any number may run: each message is leased by one. If its sender dies, another sends it, so a receiver may get it twice."""

    name: ClassVar[str] = "alert_deliverer"
    private: ClassVar[bool] = True  # errors may hold addresses, which are as good as passwords

    def __init__(
        self,
        pool: Pool,
        settings: Settings,
        *,
        read: ReadOperations | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        interval: float = 5.0,
    ) -> None:
        """`read` takes the readings of rules about operations; without it they are not evaluated."""
        super().__init__(interval=interval)
        self._pool = pool
        self._read = read
        self._timeout = settings.alert_timeout_seconds
        self._allow_private = bool(settings.alert_allow_private)
        self._attempts = settings.alert_attempts
        self._backoff = Backoff(base=settings.alert_retry_seconds, cap=_MAX_BACKOFF_SECONDS)
        self._secret_box = SecretBox(settings.secret_key)
        self._clock = clock or SystemClock()
        self._rng = rng or random.Random()  # noqa: S311 - jitter, no secret

    async def step(self) -> float | None:
        async with self._pool.connection() as conn:
            if self._read is not None:
                evaluation = operations.evaluate(conn, self._clock.now(), self._read)
                await self.attend("duty", "operations_events", evaluation, uncharged)
            soon = await store.next_due(conn, self._clock.now())
        if soon is None or soon > 0:
            return None if soon is None else min(self.interval, soon)
        full = await self.gather()
        sent = await self.send()
        return 0.0 if full or sent == _BATCH else None

    async def gather(self) -> bool:
        """Puts due events into messages, one per rule and channel; returns whether there may be more."""
        now = self._clock.now()
        async with self._pool.connection() as conn, conn.transaction():
            due = await store.due_events(conn, now, rules=_RULES_PER_STEP)
            if not due:
                return False
            rules = {rule.id: rule for rule in await store.list_rules(conn) if rule.id in due}
            channels = await store.channels(conn, list(due))
            muted = [rule.id for rule in rules.values() if rule.muted_until is not None and rule.muted_until > now]
            for rule_id, events in due.items():
                if rule_id in muted:
                    continue
                to = [channel for channel in channels if channel.rule_id == rule_id]
                await self.attend(
                    "alert_rule",
                    rule_id,
                    self._gather(conn, rules[rule_id], events, to, now),
                    partial(self._record_gather_failure, conn, rule_id, events, now),
                )
            await store.mark_notified(conn, [event.id for events in due.values() for event in events], muted=muted)
        return len(due) == _RULES_PER_STEP or any(len(events) == store.MAX_EVENTS for events in due.values())

    async def _gather(
        self, conn: Connection, rule: Rule, events: Sequence[DueEvent], channels: Sequence[Channel], now: datetime
    ) -> None:
        async with conn.transaction():
            for channel in channels:
                body = message.payload(rule, events, now)
                await store.add_delivery(conn, channel, body, now, events=[event.id for event in events])

    async def _record_gather_failure(
        self, conn: Connection, rule_id: int, events: Sequence[DueEvent], now: datetime, reason: str
    ) -> None:
        error = f"the message could not be created: {reason}"
        await store.record_rule_failure(conn, [rule_id], error, now, events=[event.id for event in events])

    async def send(self, only: Sequence[int] | None = None) -> int:
        """Sends due messages, all or those of `only`; returns how many were tried."""
        async with self._pool.connection() as conn:
            lease_seconds = self._timeout * 4 + _SLACK_SECONDS
            taken = await store.lease_due(conn, self._clock.now(), _BATCH, lease_seconds=lease_seconds, only=only)
        results = await asyncio.gather(
            *(
                self.attend(
                    "alert_delivery", delivery.id, self._send_one(delivery), partial(self._record_crash, delivery)
                )
                for delivery in taken
            ),
            return_exceptions=True,
        )
        for error in results:
            if isinstance(error, BaseException):
                raise error
        return len(taken)

    async def _send_one(self, delivery: Delivery) -> None:
        began, start = self._clock.now(), asyncio.get_running_loop().time()
        code, reason, final = None, None, False
        try:
            code = await self._transmit(delivery)
        except NotDelivered as error:
            code, reason, final = error.code, str(error), error.final
        except Forbidden as error:
            reason = str(error)
        attempt = Attempt(
            at=began, ms=round((asyncio.get_running_loop().time() - start) * 1000), code=code, error=reason
        )
        await self._record_attempt(delivery, attempt, final=final)

    async def _record_crash(self, delivery: Delivery, reason: str) -> None:
        await self._record_attempt(
            delivery, Attempt(at=self._clock.now(), ms=0, error=f"sending it failed: {reason}"), final=False
        )

    async def _record_attempt(self, delivery: Delivery, attempt: Attempt, *, final: bool) -> None:
        again_at = None
        if not attempt.delivered and not final and delivery.attempts < self._attempts:
            again_at = self._clock.now() + timedelta(seconds=self._backoff.delay(delivery.attempts - 1, self._rng))
        async with self._pool.connection() as conn:
            await self._save_attempt(conn, delivery, attempt, again_at)

    async def _save_attempt(self, conn: Connection, delivery: Delivery, attempt: Attempt, again_at: Any) -> None:
        ids = {
            "delivery_id": delivery.id,
            "rule_id": delivery.rule_id,
            "channel": delivery.channel,
            "attempt": delivery.attempts,
        }
        if attempt.delivered:
            await store.delivered(conn, delivery, attempt)
            log.info("alert delivered", action="alert_delivered", code=attempt.code, ms=attempt.ms, **ids)
            return
        await store.not_delivered(conn, delivery, attempt, again_at)
        log.warning(
            "alert delivery failed",
            action="alert_not_delivered",
            code=attempt.code,
            error=attempt.error,
            again_at=again_at and again_at.isoformat(),
            **ids,
        )

    async def _transmit(self, delivery: Delivery) -> int | None:
        """Sends a message; returns the status of a webhook's answer. Raises NotDelivered and Forbidden."""
        async with self._pool.connection() as conn:
            channel = None if delivery.channel_id is None else await store.channel(conn, delivery.channel_id)
        if channel is None:
            raise NotDelivered("the channel was removed", final=True)
        address, secret = self._decrypt(channel)
        if channel.kind == "webhook":
            body = msgspec.json.encode(
                {
                    "id": delivery.key,
                    "replay": delivery.replays,
                    **msgspec.json.decode(delivery.payload, type=dict[str, msgspec.Raw]),
                }
            )
            return await webhook.send(
                address,
                secret or "",
                body,
                message_id=delivery.key,
                now=self._clock.now(),
                seconds=self._timeout,
                allow_private=self._allow_private,
            )
        title, text = message.text(json.loads(delivery.payload, parse_float=Decimal))
        await notify.send(address, title, text, seconds=self._timeout, allow_private=self._allow_private)
        return None

    def _decrypt(self, channel: Channel) -> tuple[str, str | None]:
        try:
            return self._secret_box.decrypt(channel.address) or "", self._secret_box.decrypt(channel.secret)
        except DecryptionError:
            raise NotDelivered(
                "the channel is encrypted, and no key in SECRET_KEY decrypts it: add the key, or enter the channel again"
            ) from None
