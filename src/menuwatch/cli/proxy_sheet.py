"""Columns of proxies, and one proxy with its requests."""

from __future__ import annotations

from datetime import UTC, datetime

from menuwatch.cli.hours import HOUR_COLUMNS
from menuwatch.cli.output import Column, Format, ago, console, echo, print_detail, print_list
from menuwatch.core.format import percent, pluralize, size
from menuwatch.proxies.service import Proxy
from menuwatch.proxies.statistics import ProxyStatistics


def _next_probe(proxy: Proxy) -> str | None:
    if proxy.probe_at is None:
        return None
    return "now" if proxy.probe_at <= datetime.now(UTC) else ago(proxy.probe_at)


COLUMNS = (
    Column("#", "id"),
    Column("Proxy", "address"),
    Column("Status", "status"),
    Column("State", "state"),
    Column("Tags", lambda proxy: ", ".join(proxy.tags) or None),
    Column("Successes", "success_count"),
    Column("Failures in a row", "failure_count"),
    Column("403 in a row", "consecutive_403_count"),
    Column("ms", lambda proxy: proxy.avg_response_time_ms and round(proxy.avg_response_time_ms)),
    Column("Last used", "last_used_at", ago),
    Column("Last error", "last_error"),
)
INACTIVE_COLUMNS = (
    Column("#", "id"),
    Column("Proxy", "address", rank=1),
    Column("Status", "status"),
    Column("Reason", "reason", rank=2),
    Column("Inactive since", lambda proxy: ago(proxy.disabled_at or proxy.deactivated_at)),
    Column("Failed probes", "probe_failures"),
    Column("Next probe", _next_probe, rank=3),
)
TEST_COLUMNS = (
    Column("#", "id"),
    Column("Proxy", "address"),
    Column("Result", "label"),
    Column("Response", "status"),
    Column("ms", "elapsed_ms", lambda value: f"{value:,.0f}", align="right"),
    Column("Details", "reason"),
)
DETAIL = (
    Column("Status", "status"),
    Column("Reason", "reason"),
    Column("Next test", _next_probe),
    Column("Location", lambda proxy: ", ".join(filter(None, (proxy.city, proxy.state, proxy.country))) or "unknown"),
    Column("Tags", lambda proxy: ", ".join(proxy.tags) or None),
    Column("Success", "success_rate", percent),
    Column("Last used", "last_used_at", ago),
    Column("Last error", "last_error"),
)
STATISTICS = (
    Column(
        "Last 24 h",
        lambda day: (
            f"{pluralize(day.requests, 'request')}, {day.failed:,} failed, {day.refused:,} refused "
            f"(block rate {percent(day.block_rate, 1)}), {size(day.bytes)}"
        ),
    ),
)
HOST_COLUMNS = (
    Column("Host", "host", rank=1),
    Column("Requests", "requests"),
    Column("Block rate", "block_rate", lambda rate: percent(rate, 1), align="right"),
    Column("Failed", "failed"),
    Column("Data", "bytes", size, align="right"),
    Column("Success", "success_rate", percent, align="right"),
)


def print_sheet(proxy: Proxy, statistics: ProxyStatistics) -> None:
    """Prints a proxy, and its last 24 hours by host and by hour."""
    echo(f"Proxy {proxy.id}: {proxy.address}")
    print_detail(proxy, DETAIL, indent=2, width=console.width)
    print_detail(statistics, STATISTICS, indent=2, width=console.width)
    if statistics.hosts:
        echo("")
        print_list(statistics.hosts, HOST_COLUMNS, Format.TABLE)
    if hours := [hour for hour in statistics.hours if hour.total]:
        echo("")
        print_list(hours, HOUR_COLUMNS, Format.TABLE)
