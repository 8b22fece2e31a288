"""Failures: failed tasks grouped by cause, role and platform. A cause is an error message without what differs from case to case:
numbers, ids, names in quotes, what stands in parentheses (`error_template` in 06_tasks.sql). A failure is open until every store
that it affects succeeded, or an operator muted it (`failed_units` in 11_task_statistics.sql)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Struct

from menuwatch.accounts import audit
from menuwatch.core.errors import InvalidField, NotFound
from menuwatch.core.shapes import Instant, doc
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_all, fetch_struct
from menuwatch.queue.model import Role, Status
from menuwatch.queue.search_values import TaskSearch

_q = sql.load(__package__, "failures.sql")

BARS = 24
"""Parts of a window in a histogram."""

MAX_GROUPS = 200

SHOWN_STORES = 5
"""Most stores that a failure lists."""


class FailureWindow(StrEnum):
    """Time window."""

    HOUR = "1h"
    DAY = "24h"
    WEEK = "7d"
    KEPT = "all"
    """As long as finished tasks are kept."""

    @property
    def length(self) -> timedelta | None:
        """None: as long as finished tasks are kept."""
        return _LENGTHS.get(self)


_LENGTHS: Mapping[FailureWindow, timedelta] = {
    FailureWindow.HOUR: timedelta(hours=1),
    FailureWindow.DAY: timedelta(hours=24),
    FailureWindow.WEEK: timedelta(days=7),
}


class FailureStatus(StrEnum):
    """Status of a failure."""

    OPEN = "open"
    RESOLVED = "resolved"
    MUTED = "muted"


class AffectedStore(Struct, kw_only=True, frozen=True):
    """A store with such failures."""

    dispensary_id: int
    name: Annotated[str | None, doc("Null if the store was removed.")]
    failures: int
    last_at: Instant
    resolved_at: Annotated[Instant | None, doc("First success after the last failure; null if there is none.")]
    is_open: Annotated[bool, doc("Whether it has not succeeded since, and is still crawled.")]


class FailureMute(Struct, kw_only=True, frozen=True):
    """Why a failure is muted."""

    reason: str
    until: Annotated[Instant | None, doc("End of the mute; null for until it is unmuted.")]
    muted_by: str
    muted_at: Instant


class FailureGroup(Struct, kw_only=True, frozen=True):
    """Failed tasks with one cause, role and platform."""

    cause: Annotated[str, doc("Fingerprint of the error message, as `cause:` in a search.")]
    role: str
    platform: str
    host: Annotated[str | None, doc("Host that such tasks request; null if they request none, or it is not known.")]
    status: Annotated[
        FailureStatus,
        doc(
            "`resolved`: each store concerned succeeded after its last failure, or is no longer crawled; `muted`: by an operator."
        ),
    ]
    kind: Annotated[str, doc("Error message without numbers, ids and names.")]
    count: Annotated[int, doc("Failures in the window.")]
    stores: Annotated[int, doc("Number of stores concerned.")]
    open: Annotated[int, doc("Number of stores, or of other units of work, that have not succeeded since.")]
    last_hour: Annotated[int, doc("Failures in the last hour.")]
    last_day: Annotated[int, doc("Failures in the last 24 hours.")]
    first_at: Annotated[Instant, doc("First failure in the window.")]
    last_at: Instant
    last_good_at: Annotated[
        Instant | None,
        doc("Last success before the first failure, of the store that failed first; null if there is none."),
    ]
    resolved_at: Annotated[
        Instant | None, doc("Latest first success of a store after its last failure; null if none succeeded.")
    ]
    affected: Annotated[list[AffectedStore], doc("Up to five of the stores, open ones first.")]
    example_id: Annotated[int, doc("Id of the task that failed last.")]
    example: Annotated[str, doc("Error message of that task.")]
    payload_id: Annotated[int | None, doc("Payload that this task archived; null if none.")]
    mute: Annotated[FailureMute | None, doc("Null if it is not muted.")]
    histogram: Annotated[list[int], doc("Failures in each of 24 equal parts of the window, oldest first.")]
    search: Annotated[str, doc("Search expression (`q`) that selects these tasks.")]


class FailureList(Struct, frozen=True):
    """Failures: open ones first, those with the most failed tasks first."""

    items: list[FailureGroup]


class OpenFailures(Struct, kw_only=True, frozen=True):
    """What failed in the last hour and is neither resolved, nor tried again now, nor muted."""

    tasks: int
    causes: int


async def list_failures(
    conn: Connection,
    window: FailureWindow = FailureWindow.DAY,
    *,
    roles: Sequence[Role] | None = None,
    cause: str | None = None,
    status: FailureStatus | None = None,
    limit: int = 50,
    kept_days: int = 30,
) -> list[FailureGroup]:
    """Failures in the window, open ones first, then by their number; at most MAX_GROUPS. Finished tasks are kept for `kept_days`."""
    now: datetime = (await fetch_all(conn, "SELECT now() AS at", {}))[0]["at"]
    # Whole days of the history are removed, so there is up to one more.
    length = window.length or timedelta(days=kept_days + 1)
    since = now.astimezone(UTC) - length
    params = {
        "since": since,
        "roles": None if roles is None else [str(role) for role in roles],
        "cause": cause,
        "status": status,
        "shown": SHOWN_STORES,
        "limit": min(limit, MAX_GROUPS),
    }
    rows = await fetch_all(conn, _q.failure_groups, params, prepare=False)
    step = length / BARS
    bars = await fetch_all(
        conn,
        _q.failures_by_time,
        {"since": since, "step": step, "causes": sorted({row["cause"] for row in rows})},
        prepare=False,
    )
    histograms = {_key(row): [0] * BARS for row in rows}
    for bar in bars:
        if (histogram := histograms.get(_key(bar))) is not None:
            # Failures after `since` was read count for the last part.
            histogram[min(int((bar["start"] - since) / step), BARS - 1)] += bar["n"]
    return [
        FailureGroup(
            **{
                **row,
                "status": FailureStatus(row["status"]),
                "affected": _decode(row["affected"], list[AffectedStore]),
            },
            mute=None if mute is None else _decode(mute, FailureMute),
            histogram=histograms[_key(row)],
            search=TaskSearch(
                roles=(Role(row["role"]),),
                states=(Status.FAILED,),
                platform=row["platform"],
                ended_after=window.length,
                cause=row["cause"],
            ).text,
        )
        for row in rows
        for mute in [row.pop("mute")]
    ]


def _key(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["cause"], row["role"], row["platform"]


def _decode(value: msgspec.Raw, kind: Any) -> Any:
    return msgspec.json.decode(value, type=kind)


async def count_open_causes(conn: Connection, *, limit: int) -> int:
    """How many failures of the last 24 hours are open, as list_failures groups them; at most `limit`."""
    rows = await fetch_all(conn, _q.open_causes, {"length": FailureWindow.DAY.length, "limit": limit})
    count: int = rows[0]["n"]
    return count


async def count_open(conn: Connection) -> OpenFailures:
    """What failed in the last hour and is not over: the number that health counts."""
    found = await fetch_struct(conn, OpenFailures, _q.open_failures, {})
    assert found is not None, "a count has a row"
    return found


MAX_MUTE = timedelta(days=366)


async def mute(
    conn: Connection,
    *,
    cause: str,
    role: Role,
    platform: str = "dutchie",
    reason: str,
    until: datetime | timedelta | None = None,
) -> FailureMute:
    """Leave a failure out of health checks, until that time or for so long; None: until it is unmuted. May raise NotFound."""
    key = {"cause": cause.lower(), "role": str(role), "platform": platform}
    (row,) = await fetch_all(conn, _q.has_failed, key)
    if not row["found"]:
        raise NotFound(
            f"no task of role {role} on {platform} failed with cause {cause!r:.40}: `menuwatch tasks failures` lists the causes"
        )
    if not (text := reason.strip()) or len(text) > 500:
        raise InvalidField("reason", "give a reason of 1 to 500 characters")
    now: datetime = (await fetch_all(conn, "SELECT now() AS at", {}))[0]["at"]
    end = now + until if isinstance(until, timedelta) else until
    if end is not None and not now < end <= now + MAX_MUTE:
        raise InvalidField("until", "the mute must end in the future, within a year")
    by = audit.actor()
    values = {**key, "reason": text, "until": end, "by": "menuwatch" if by is None else by.name}
    muted = await fetch_struct(conn, FailureMute, _q.mute, values)
    assert muted is not None, "an upsert returns its row"
    await audit.record(
        conn, "failure_muted", ("cause", cause.lower()), role=str(role), platform=platform, reason=text, until=end
    )
    return muted


async def unmute(conn: Connection, *, cause: str, role: Role, platform: str = "dutchie") -> FailureMute:
    """Undo `mute`; returns what it was. Raises NotFound if the failure is not muted."""
    key = {"cause": cause.lower(), "role": str(role), "platform": platform}
    was = await fetch_struct(conn, FailureMute, _q.unmute, key)
    if was is None:
        raise NotFound(f"the failure {cause!r:.40} of role {role} on {platform} is not muted")
    await audit.record(conn, "failure_unmuted", ("cause", cause.lower()), role=str(role), platform=platform)
    return was
