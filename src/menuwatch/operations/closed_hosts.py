"""Tasks that wait because a host does not want to be asked. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from menuwatch.fetch.leases import WORDS
from menuwatch.operations.explanation import Code, Explanation
from menuwatch.operations.facts import Facts
from menuwatch.operations.hosts import advice
from menuwatch.operations.wording import at, because, span

_CODES = {words: code for code, words in WORDS.items()}
_NOT_NOW = re.compile(r"(\S+) is not asked now \(([^)]*)\): (.*)", re.DOTALL)
_SLOWER = re.compile(r"(\S+) asked to slow down: (.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Denial:
    """The host, why (`paused`, `circuit`, `cooling`, `pace`, `busy`), that in words, and what it said."""

    host: str
    code: str
    words: str
    reason: str


def denial(reason: str | None) -> Denial | None:
    """What a task's reason says of a host that did not want to be asked, as fetch/leases.py and fetch/reaction.py word it; None where
    it is not a host's doing."""
    if (found := _NOT_NOW.fullmatch(reason or "")) and (code := _CODES.get(found[2])) not in (None, "no_free_proxy"):
        return Denial(found[1], code, found[2], found[3])
    if found := _SLOWER.fullmatch(reason or ""):
        return Denial(found[1], "cooling", "it asked to slow down", found[2])
    return None


def put_off(f: Facts, denied: Denial, when: str) -> tuple[str, datetime | None, Mapping[str, Any]]:
    """Of a task that a host did not want now: the text, until when it waits, and the details."""
    now = f.denier
    text = f"It waits for {denied.host} ({denied.words}: {because(denied.reason)}), and is due {when}"
    until = f.scheduled_for
    code = denied.code
    if now is not None and now.code is not None:
        code, until = now.code, None if now.until is None else max(now.until, f.scheduled_for or now.until)
        if until is None:
            text += "; the host is closed until somebody opens it"
        elif f.scheduled_for is not None and (until - f.scheduled_for).total_seconds() >= 1:
            text += f"; the host is closed until {at(until)}"
    elif now is not None and code in ("paused", "circuit", "cooling"):
        return (
            f"{text}; the host may be asked again by now: `menuwatch tasks retry {f.id}` has the task due at once",
            until,
            {"host": denied.host, "host_code": None},
        )
    told = advice(code, denied.host)
    if now is not None and now.code is not None:
        told = f"{told}, and `menuwatch tasks retry {f.id}` then has this task due at once"
    return f"{text}. To do: {told}" if told else text, until, {"host": denied.host, "host_code": code, "advice": told}


def closed(f: Facts) -> Explanation | None:
    """Nobody is asked of those that its role asks."""
    if not f.hosts or any(host.code is None for host in f.hosts):
        return None
    opens = [host.until for host in f.hosts if host.until is not None]
    until = min(opens, default=None)
    first = next(host for host in f.hosts if host.until == until)
    said = "; ".join(f"{host.host} is not asked ({WORDS[host.code or '']}: {because(host.reason)})" for host in f.hosts)
    when = (
        "It is closed until somebody opens it"
        if until is None
        else f"It is asked again in {_left(f, until)}, at {at(until)}"
    )
    told = advice(first.code or "", first.host)
    return Explanation(
        task_id=f.id,
        status=f.status,
        code=Code.HOST_CLOSED,
        reason=f"It is ready, but {said}. {when}. To do: {told}.",
        until=until,
        seconds=None if until is None else (until - f.now).total_seconds(),
        details={"host": first.host, "host_code": first.code, "advice": told},
    )


def _left(f: Facts, until: datetime) -> str:
    return span((until - f.now).total_seconds())
