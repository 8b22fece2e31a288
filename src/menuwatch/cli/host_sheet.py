"""One host as text for people."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from menuwatch.cli.output import ago, plural
from menuwatch.operations.hosts import Fare, HostDetail, HostView
from menuwatch.operations.wording import at, per_second, span

_STATES = {
    "open": "open",
    "slow": "open, at a slower pace",
    "trying": "open to one identity, which finds out whether it lets anybody in again",
    "cooling": "cools down: nobody asks it",
    "circuit": "its circuit is open: nobody asks it",
    "paused": "paused by an operator: nobody asks it",
}
_ROBOTS = {
    "unknown": "robots.txt was not asked for yet",
    "found": "robots.txt was read",
    "none": "it has no robots.txt",
    "unreachable": "robots.txt could not be had",
}


def state_lines(host: HostView) -> list[str]:
    """What state it is in, why, since when, until when, and what a person can do; then its limits."""
    since = "" if host.since is None else f", since {at(host.since)}"
    found = [f"{host.host}: {_STATES[host.state]}{since}"]
    facts: list[tuple[str, str | None]] = [("Why", host.reason)]
    if host.until is not None:
        left = (host.until - datetime.now(UTC)).total_seconds()
        facts.append(("Until", f"{at(host.until)}, in {span(left)}"))
    elif host.state == "paused":
        facts.append(("Until", "somebody resumes it"))
    gap = f", {host.min_gap:g} s apart" if host.min_gap else ""
    facts += [
        ("To do", host.advice),
        ("Pace", f"{per_second(host.pace)} of {per_second(host.rate)} requests a second, {host.burst} at once{gap}"),
        ("Talking", f"{host.leases} of {plural(host.concurrency, 'identity', 'identities')}"),
    ]
    return found + [f"  {name:<9}{value}" for name, value in facts if value is not None]


def lines(found: HostDetail, *, width: int) -> Iterator[str]:
    """All of it, each line no wider than `width` where words allow."""
    host = found.host
    for line in [*state_lines(host), *_more(host)]:
        yield from textwrap.wrap(
            line, width, subsequent_indent=" " * 11, break_long_words=False, break_on_hyphens=False
        )
    if found.leases:
        yield from ("", "Who talks to it now")
        for lease in found.leases:
            task = "" if lease.task_id is None else f", task {lease.task_id}"
            yield f"  proxy {lease.proxy_id} ({lease.proxy}){task}, for {span(_since(lease.leased_at))}"
    if found.verdicts:
        yield ""
        yield from _table(
            ("Requests", "last 24 h", "in all"),
            [(one.verdict, f"{one.day:,}", f"{one.total:,}") for one in found.verdicts],
        )
    yield from _fares("Proxies let in most", found.best)
    yield from _fares("Proxies let in least", found.worst)
    yield from _fares("Browsers", found.browsers)
    if found.events:
        yield from ("", "What befell it (UTC)")
        for event in found.events:
            until = "" if event["until"] is None else f", until {event['until'].astimezone(UTC):%m-%d %H:%M:%S}"
            text = f"  {event['happened_at'].astimezone(UTC):%m-%d %H:%M:%S}  {_EVENTS.get(event['kind'], event['kind'])}{until}: "
            yield from textwrap.wrap(
                text + event["reason"],
                width,
                subsequent_indent=" " * 18,
                break_long_words=False,
                break_on_hyphens=False,
            )


_EVENTS = {
    "cooldown": "cools down",
    "slower": "slower",
    "circuit_opened": "circuit open",
    "circuit_closed": "circuit closed",
    "changed": "changed",
    "robots": "robots.txt",
}


def _more(host: HostView) -> list[str]:
    robots = _ROBOTS[host.robots]
    if host.robots_checked_at is not None:
        status = "" if host.robots_status is None else f" (status {host.robots_status})"
        robots += f"{status}, {ago(host.robots_checked_at)}"
    if host.crawl_delay:
        robots += f"; it asks for {host.crawl_delay:g} s between two requests"
    refused = ""
    if host.refused:
        refused = f"; {plural(host.refused, 'identity', 'identities')} refused since"
    return [f"  {'Let in':<9}{ago(host.last_ok_at)}{refused}", f"  {'Robots':<9}{robots}"]


def _since(then: datetime) -> float:
    return (datetime.now(UTC) - then).total_seconds()


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    sizes = [max(len(row[i]) for row in (heading, *rows)) for i in range(len(heading))]
    for n, row in enumerate((heading, *rows)):
        first = f"{'  ' if n else ''}{row[0]}"
        yield f"{first:<{sizes[0] + 2}}" + "".join(
            f"  {cell:>{size}}" for cell, size in zip(row[1:], sizes[1:], strict=True)
        )


def _fares(title: str, fares: Sequence[Fare]) -> Iterator[str]:
    if not fares:
        return
    yield ""
    yield from _table(
        (title, "chance", "let in", "refused"),
        [
            (
                fare.name if fare.proxy_id is None else f"{fare.proxy_id} ({fare.name})",
                f"{fare.chance:.0%}",
                f"{fare.good:,.1f}",
                f"{fare.bad:,.1f}",
            )
            for fare in fares
        ],
    )
