"""When an event is told: at once, or with others at the full hour or once a day. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from menuwatch.alerts.model import Rule


def due(rule: Rule, fired_at: datetime) -> datetime:
    """When an event of the rule is told, in UTC: the first moment of the digest's that comes after `fired_at`.

    A time of day that a change of the clocks leaves out is told an hour later, one that comes twice the first time.
    """
    if rule.digest == "immediately":
        return fired_at
    if rule.digest == "hourly":
        return fired_at.astimezone(UTC).replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    assert rule.digest_at is not None, "a daily digest has a time"
    zone = ZoneInfo(rule.timezone)
    day = fired_at.astimezone(zone).date()
    while True:
        at = datetime.combine(day, rule.digest_at, tzinfo=zone).astimezone(UTC)
        if at > fired_at:
            return at
        day += timedelta(days=1)
