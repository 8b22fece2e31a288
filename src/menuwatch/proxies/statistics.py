"""Requests through a proxy in the last 24 hours, by hour and by host."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from msgspec import Struct

from menuwatch.core.shapes import doc
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_all
from menuwatch.hosts.hourly import HourBook, RequestHour, empty_day, total_day
from menuwatch.hosts.scores import NEGLIGIBLE, Score
from menuwatch.proxies.service import get_proxy

_q = sql.load(__package__)


class ProxyHost(Struct, kw_only=True, frozen=True):
    """Requests through a proxy to one host in the last 24 hours."""

    host: str
    requests: int
    succeeded: int
    refused: Annotated[int, doc("Requests that were blocked, challenged or rate limited.")]
    failed: int
    bytes: Annotated[int, doc("Received response bodies, decoded.")]
    block_rate: Annotated[float | None, doc("Share of refused requests, 0 to 1; null without requests.")]
    success_rate: Annotated[
        float | None,
        doc("Share of successes, 0 to 1, weighted towards recent requests of any time; null if there were none."),
    ]


class ProxyStatistics(Struct, kw_only=True, frozen=True):
    """Requests through a proxy in the last 24 hours."""

    requests: int
    succeeded: int
    refused: int
    failed: int
    bytes: Annotated[int, doc("Received response bodies, decoded. Request bodies and headers are not counted.")]
    block_rate: Annotated[float | None, doc("Share of refused requests, 0 to 1; null without requests.")]
    hours: Annotated[list[RequestHour], doc("Oldest first.")]
    hosts: Annotated[list[ProxyHost], doc("By name; also hosts that were only requested earlier.")]


async def get_statistics(
    conn: Connection, proxy_id: int, book: HourBook | None = None, *, now: datetime | None = None
) -> ProxyStatistics:
    """`book` caches past hours. Raises NotFound."""
    await get_proxy(conn, proxy_id)
    moment = now or datetime.now(UTC)
    days = await (book or HourBook()).day(conn, moment, proxy_id=proxy_id)
    rates = {}
    for row in await fetch_all(conn, _q.proxy_hosts, {"id": proxy_id}):
        score = Score(row["good"], row["bad"], row["as_of"]).at(moment)
        total = score.good + score.bad
        rates[row["host"]] = None if total < NEGLIGIBLE else score.good / total
    hosts = []
    for host in sorted(days.keys() | rates):
        day = days.get(host) or empty_day(moment)
        hosts.append(
            ProxyHost(
                host=host,
                requests=day.sum("total"),
                succeeded=day.sum("succeeded"),
                refused=day.sum("refused"),
                failed=day.sum("failed"),
                bytes=day.sum("bytes"),
                block_rate=day.block_rate,
                success_rate=rates.get(host),
            )
        )
    total_of = total_day(days.values(), moment)
    return ProxyStatistics(
        requests=total_of.sum("total"),
        succeeded=total_of.sum("succeeded"),
        refused=total_of.sum("refused"),
        failed=total_of.sum("failed"),
        bytes=total_of.sum("bytes"),
        block_rate=total_of.block_rate,
        hours=list(total_of.hours),
        hosts=hosts,
    )
