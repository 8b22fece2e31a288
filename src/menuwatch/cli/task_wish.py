"""Work as it was asked for on the command line, and what that changed with a task that waited already."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from menuwatch.core.errors import Refused
from menuwatch.operations.reading import Row

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_EARLIEST, _LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


def parse_at(text: str, now: datetime) -> datetime:
    """A moment: a wait from now (`90m`, `6h`, `7d`, `2w`) or an ISO 8601 date or time, in UTC unless it says otherwise."""
    wait = re.fullmatch(r"(\d{1,6})([mhdw])", text.strip())
    try:
        if wait:
            moment = now + timedelta(**{_UNITS[wait[2]]: int(wait[1])})
        else:
            moment = datetime.fromisoformat(text.strip())
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        if not _EARLIEST <= moment < _LATEST:
            raise ValueError
    except (ValueError, OverflowError):
        raise Refused(
            f"--at {text!r} is no time that can be planned for: give a time (2026-11-20T14:30) or a wait (6h)"
        ) from None
    return moment


def parse_payload(text: str) -> dict[str, Any]:
    """A JSON object that can be stored; raises Refused."""
    try:
        found = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError) as error:
        raise Refused(f'--payload {text!r} is no JSON object, as {{"payload_id": 7}}: {error}') from None
    if b"\\u0000" in msgspec.json.encode(found):
        raise Refused(f"--payload {text!r} cannot be stored: a text in it holds a NUL character")
    return found


Changes = dict[str, dict[str, Any]]
"""By field of a task, what it was `before` and is `after`."""


def changes(before: Row | None, after: Row) -> Changes:
    """Of what a wish can change with a task; nothing, where it is not known what the task was before."""
    if before is None:
        return {}
    return {
        key: {"before": before[key], "after": after[key]}
        for key in ("priority", "scheduled_for")
        if before[key] != after[key]
    }


def in_words(changed: Changes) -> list[str]:
    """A part of a sentence for each field."""
    said = []
    if found := changed.get("priority"):
        said.append(f"its priority is {found['after']} now, instead of {found['before']}")
    if found := changed.get("scheduled_for"):
        said.append(f"it is due {_due(found['after'])} now, instead of {_due(found['before'])}")
    return said


def _due(moment: datetime | None) -> str:
    return "at once" if moment is None else f"at {moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
