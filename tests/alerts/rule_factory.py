"""Rules and what came of them, for tests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from menuwatch.alerts import store as alerts
from menuwatch.alerts.model import Rule

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)

_COLUMNS: dict[str, Any] = {
    "product_id": None, "canonical_product_id": None, "latitude": None, "longitude": None, "miles": None,
    "dispensary_id": None, "brand": None, "category": None, "search": None, "state": None, "platform": None,
    "amount": None, "percent": None, "option": None, "price": "effective", "hysteresis_percent": 2, "debounce_crawls": 1,
    "debounce_minutes": 0, "cooldown_minutes": 0, "digest": "immediately", "digest_at": None, "timezone": "UTC",
    "on_existing": "skip", "enabled": True,
}  # fmt: skip


async def add_rule(conn: AsyncConnection[Any], name: str, reach: str, condition: str, **more: Any) -> Rule:
    made = await alerts.insert(
        conn, {**_COLUMNS, "name": name, "reach": reach, "condition": condition, **more}, LONG_AGO
    )
    assert made is not None
    return made


async def rows(conn: AsyncConnection[Any], query: Any, values: Any = None) -> list[dict[str, Any]]:
    async with conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(query, values)
        return await cur.fetchall()


async def fired(conn: AsyncConnection[Any]) -> list[tuple[str, str]]:
    """(rule, product) of every event, in their order."""
    found = await rows(
        conn,
        "SELECT r.name, e.facts #>> '{product,provider_product_id}' AS product FROM alert_events e"
        " JOIN alert_rules r ON r.id = e.rule_id ORDER BY e.id",
    )
    return [(row["name"], row["product"]) for row in found]
