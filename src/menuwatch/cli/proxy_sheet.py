"""Proxies as people read them: their health, and what became of those that were brought in."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from menuwatch.cli.output import Format, ago, console, errors, plain, plural, print_json, print_rows
from menuwatch.operations.proxies import ProxyView
from menuwatch.operations.proxy_intake import Brought, Intake

_SHOWN = 10
"""Proxies that failed their test that are named one by one."""


def out(disabled: bool, reason: str | None) -> str:
    """Why a proxy is not at work, in a sentence."""
    if disabled:
        return f"It stays out, an operator disabled it: {reason}"
    return f"Inactive, and tried again by itself: {reason}"


def brought(found: Intake, fmt: Format) -> None:
    """Prints what became of a list, for programs."""
    if fmt is Format.JSON:
        print_json(
            {
                "added": found.added,
                "updated": found.updated,
                "inactive": found.failed,
                "disabled": found.disabled,
                "repeated": found.repeated,
                "rejected": [{"line": line.number, "reason": line.reason} for line in found.rejected],
                "proxies": [_brought(one) for one in found.brought],
            }
        )
    else:
        print_rows([_brought(one) for one in found.brought], (("line", "Line"), ("id", "#")), fmt, empty="")


def _brought(one: Brought) -> dict[str, Any]:
    row = dataclasses.asdict(one)
    return {"line": row.pop("number"), **row}


def intake(found: Intake) -> None:
    """Prints what became of a list, for people."""
    failed = [one for one in found.brought if not one.active and not one.disabled]
    for one in failed[:_SHOWN]:
        errors.print(plain(f"proxy {one.id} ({one.address}): {one.reason}"), markup=False, soft_wrap=True)
    if len(failed) > _SHOWN:
        errors.print(f"… and {len(failed) - _SHOWN:,} more: `menuwatch proxies list --inactive`", markup=False)
    parts = [f"{found.added:,} added", f"{found.updated:,} updated", f"{len(found.rejected):,} rejected"]
    parts.append(f"{found.failed:,} inactive" + (" (failed their test)" if found.failed else ""))
    if found.disabled:
        parts.append(f"{found.disabled:,} stay disabled")
    if found.repeated:
        parts.append(f"{plural(len(found.repeated), 'line')} repeated")
    console.print(", ".join(parts), markup=False)


def _until(then: datetime | None) -> str | None:
    """How soon, in words."""
    if then is None:
        return None
    seconds = (then - datetime.now(UTC)).total_seconds()
    if seconds <= 0:
        return "now"
    if seconds < 90:
        return f"in {max(1, round(seconds))} s"
    return f"in {round(seconds / 60)} min" if seconds < 5400 else f"in {seconds / 3600:.1f} h"


def _rows(found: Sequence[ProxyView], fmt: Format) -> list[dict[str, Any]]:
    rows = [dataclasses.asdict(view) for view in found]
    if fmt is Format.TABLE:
        for row in rows:
            row["last_used_at"] = ago(row["last_used_at"])
            row["avg_response_time_ms"] = row["avg_response_time_ms"] and round(row["avg_response_time_ms"])
            row["since"] = ago(row["disabled_at"] or row["deactivated_at"])
            row["probe_at"] = _until(row["probe_at"])
    return rows


def proxies(found: Sequence[ProxyView], fmt: Format, *, empty: str = "") -> None:
    """Prints proxies with their health."""
    print_rows(
        _rows(found, fmt),
        (
            ("id", "#"),
            ("address", "Proxy"),
            ("status", "Status"),
            ("state", "State"),
            ("success_count", "Good"),
            ("failure_count", "Failures in a row"),
            ("consecutive_403_count", "403 in a row"),
            ("avg_response_time_ms", "ms"),
            ("last_used_at", "Last used"),
            ("last_error", "Last error"),
        ),
        fmt,
        empty=empty,
    )


def idle(found: Sequence[ProxyView], fmt: Format) -> None:
    """Prints proxies that are out, with why and until when."""
    print_rows(
        _rows(found, fmt),
        (
            ("id", "#"),
            ("address", "Proxy"),
            ("status", "Status"),
            ("reason", "Why"),
            ("since", "Out since"),
            ("probe_failures", "Failed probes"),
            ("probe_at", "Next probe"),
        ),
        fmt,
        empty="Every proxy is active.",
        keep=("address", "reason", "probe_at"),
    )


def changed(found: Sequence[ProxyView], fmt: Format, done: str) -> None:
    """Prints proxies to which something was done."""
    if fmt is not Format.TABLE:
        proxies(found, fmt)
        return
    for proxy in found:
        console.print(f"{done} proxy {proxy.id}: {proxy.address}", markup=False, soft_wrap=True)


def enabled(found: Sequence[ProxyView], fmt: Format) -> None:
    """The same of proxies that were to be enabled: one that failed its test was not."""
    changed([proxy for proxy in found if proxy.status == "active"] if fmt is Format.TABLE else found, fmt, "Enabled")
    if fmt is Format.TABLE:
        for proxy in found:
            if proxy.status != "active":
                said = f"Proxy {proxy.id} stays inactive, and is tried again by itself: {proxy.address}: {proxy.reason}"
                errors.print(plain(said), markup=False, soft_wrap=True)
