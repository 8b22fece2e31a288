"""Is the work all right: one assessment for the overview, `menuwatch doctor`, System, `/readyz`, `/metrics` and alerts. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated

from msgspec import Struct

from menuwatch.core.format import duration, pluralize, strip_period
from menuwatch.core.postpone import PostponeCode
from menuwatch.core.shapes import doc
from menuwatch.ops.overview import Overview


class Level(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    WARNING = "warning"
    """Work continues, with a problem."""
    CRITICAL = "critical"
    """Work has stopped or is lost."""
    PROBLEM = "problem"
    """The installation itself is broken; only the doctor looks for these."""


class Finding(Struct, frozen=True, kw_only=True):
    """Result of one check."""

    check: Annotated[str, doc("What was checked, for example `workers`, `hosts` or `failures`.")]
    level: Annotated[Level, doc("`critical`: work has stopped or is lost; `warning`: it continues, with a problem.")]
    detail: Annotated[str, doc("Result as a sentence.")]
    mend: Annotated[str | None, doc("How to fix it; null if nothing is wrong.")] = None
    path: Annotated[str | None, doc("Page of the dashboard that shows more, below its root.")] = None
    act: Annotated[str | None, doc("Label of the link to that page.")] = None


class Assessment(Struct, kw_only=True, frozen=True):
    """All findings, the worst first, and their sum as a sentence."""

    level: Level
    sentence: str
    findings: tuple[Finding, ...]


_FAILING = 0.1
"""Share of failed tasks among those finished in the last hour from which on failures are critical."""


def assess(seen: Overview) -> Assessment:
    """What needs attention now."""
    found = (
        *_workers(seen),
        *_tasks(seen),
        *_proxies(seen),
        *_hosts(seen),
        *_failures(seen),
        *_schedules(seen),
        *_stores(seen),
        *_quarantine(seen),
    )
    findings = tuple(sorted(found, key=lambda finding: finding.level != Level.CRITICAL))
    critical = sum(finding.level == Level.CRITICAL for finding in findings)
    if critical:
        return Assessment(
            level=Level.CRITICAL, sentence=f"Critical: {pluralize(critical, 'issue')}.", findings=findings
        )
    if findings:
        return Assessment(
            level=Level.WARNING, sentence=f"Degraded: {pluralize(len(findings), 'issue')}.", findings=findings
        )
    return Assessment(level=Level.OK, sentence=f"Healthy: {_calm(seen)}.", findings=())


def _calm(seen: Overview) -> str:
    crew = f"{pluralize(seen.workers.live, 'worker')} online"
    if not seen.ready:
        return f"{crew}, queue empty" if not seen.blocked else f"{crew}, {pluralize(seen.blocked, 'task')} blocked"
    hours = seen.drain.hours
    if hours is None:
        return f"{crew}, {pluralize(seen.ready, 'task')} ready"
    soon = "less than a minute" if hours * 60 < 1 else f"about {duration(hours * 3600)}"
    return f"{crew}, backlog clears in {soon}"


def _critical(check: str, detail: str, path: str, act: str, mend: str | None = None) -> Finding:
    return Finding(check=check, level=Level.CRITICAL, detail=detail, mend=mend, path=path, act=act)


def _warning(check: str, detail: str, path: str, act: str, mend: str | None = None) -> Finding:
    return Finding(check=check, level=Level.WARNING, detail=detail, mend=mend, path=path, act=act)


def _workers(seen: Overview) -> Iterator[Finding]:
    crew = seen.workers
    if not crew.live:
        waits = f" {pluralize(seen.pending, 'task')} pending." if seen.pending else ""
        silent = f"; {pluralize(crew.silent, 'worker')} without a heartbeat" if crew.silent else ""
        why, mend, path, act = _no_worker(seen)
        yield _critical("workers", f"No worker is running{silent}{why}.{waits}", path, act, mend)
    elif not crew.claiming and seen.ready:
        states = {"paused": crew.paused, "backing off": crew.backing_off, "stopping": crew.stopping}
        *others, last = [state for state, count in states.items() if count] or ["not claiming"]
        why = f"{', '.join(others)} or {last}" if others else last
        who = "the only one is" if crew.live == 1 else f"all {crew.live:,} are"
        mend = "menuwatch workers resume" if crew.paused else "menuwatch workers list"
        if crew.stopping == crew.live:
            mend = "menuwatch worker"
        yield _critical("workers", f"No worker claims new tasks: {who} {why}.", "/workers", "Workers", mend)
    else:
        if crew.paused:
            detail = f"{pluralize(crew.paused, 'worker')} {_is(crew.paused)} paused."
            yield _warning("workers", detail, "/workers?state=paused", "Resume", "menuwatch workers resume")
        # Without ready tasks nothing is kept waiting, whatever else uses the machine.
        if seen.ready and crew.backing_off * 2 > crew.live:
            detail = f"{crew.backing_off:,} of {crew.live:,} workers are backing off: CPU or memory is full."
            yield _warning("workers", detail, "/workers", "View details", "menuwatch workers list")
    if crew.live and crew.silent:
        detail = f"{pluralize(crew.silent, 'worker')} without a heartbeat for two minutes or longer."
        mend = "run menuwatch workers list; their tasks are recovered automatically"
        yield _warning("workers", detail, "/workers?state=silent", "View workers", mend)


_ADD_PROXY = "menuwatch proxies add http://USER:PASSWORD@HOST:PORT (in the dashboard: Proxies, “Add a proxy”)"


def _no_worker(seen: Overview) -> tuple[str, str, str, str]:
    """Why none runs, how to mend it, and the page for that with the label of its link."""
    supervisor = seen.supervisor
    if not seen.proxies.active:
        mend = _ADD_PROXY if supervisor else f"{_ADD_PROXY}, then menuwatch up"
        return ": workers start once a proxy is active", mend, "/proxies", "Add a proxy"
    if supervisor is None:
        return "", "menuwatch worker (or menuwatch up, which starts a server and a worker)", "/workers", "Workers"
    if not supervisor.desired:
        return ": the supervisor is scaled to 0", "menuwatch workers scale 1", "/workers", "Scale"
    why = f": {strip_period(supervisor.error)}" if supervisor.error else ": the supervisor is starting them"
    return why, "see the log of menuwatch up or menuwatch supervisor", "/workers", "Workers"


def _tasks(seen: Overview) -> Iterator[Finding]:
    stale = sum(role.stale for role in seen.roles)
    if stale:
        detail = f"{pluralize(stale, 'task')} {_is(stale)} stale: the worker stopped sending heartbeats."
        mend = "start a worker: it recovers the tasks of dead ones"
        yield _warning("tasks", detail, "/tasks?q=state:stale", "View tasks", mend)


def _proxies(seen: Overview) -> Iterator[Finding]:
    proxies = seen.proxies
    if not proxies.active:
        mend = _ADD_PROXY
        if not proxies.known:
            text = "No proxies: workers cannot start."
        elif proxies.untested:
            untested = f"{proxies.untested:,} of {proxies.known:,} untested"
            text = f"No active proxy yet: {untested}; each is activated once its test succeeds."
            mend = "wait, or menuwatch proxies test"
        else:
            text, mend = "No active proxy: no menus can be crawled.", "menuwatch proxies list --inactive"
        yield _critical("proxies", text, "/proxies", "Proxies", mend)
    elif proxies.down:
        find = _critical if proxies.down * 2 > proxies.known - proxies.disabled - proxies.untested else _warning
        untested = f", {proxies.untested:,} untested" if proxies.untested else ""
        detail = f"{proxies.down:,} of {pluralize(proxies.known, 'proxy', 'proxies')} {_is(proxies.down)} inactive{untested}."
        yield find("proxies", detail, "/proxies", "Proxies", "menuwatch proxies list --inactive")


SHOWN_HOSTS = 5
"""Most blocked hosts that are named."""


def _hosts(seen: Overview) -> Iterator[Finding]:
    for host in seen.closed_hosts[:SHOWN_HOSTS]:
        code = PostponeCode(host.code)
        until = "" if host.until is None else f" for another {duration((host.until - seen.at).total_seconds())}"
        detail = f"{host.host} is blocked{until} ({code.label}): {strip_period(host.reason)}."
        # A cool-down ends without anybody's action.
        find = _warning if code is PostponeCode.COOLING else _critical
        yield find("hosts", detail, f"/hosts/{host.host}", "Host", code.remedy(host.host))
    if (more := len(seen.closed_hosts) - SHOWN_HOSTS) > 0:
        yield _critical("hosts", f"{more:,} more {_is(more)} blocked.", "/hosts", "Hosts", "menuwatch hosts list")


def _failures(seen: Overview) -> Iterator[Finding]:
    open_ = seen.failures
    if open_.tasks:
        find = _critical if open_.tasks >= _FAILING * (open_.tasks + seen.completed_last_hour) else _warning
        detail = (
            f"{pluralize(open_.tasks, 'task')} failed in the last hour and did not succeed since "
            f"({pluralize(open_.causes, 'cause')})."
        )
        mend = "menuwatch tasks failures --status open"
        yield find("failures", detail, "/failures?window=1h&status=open", "View failures", mend)


def _schedules(seen: Overview) -> Iterator[Finding]:
    late = seen.late_schedules
    mend = "menuwatch schedules list"
    if len(late) == 1:
        ago = duration((seen.at - late[0].due_at).total_seconds())
        why = f": {strip_period(late[0].error)}" if late[0].error else ""
        detail = f"Schedule {late[0].name} is overdue by {ago}{why}."
        yield _warning("schedules", detail, "/schedules", "Schedules", mend)
    elif late:
        yield _warning("schedules", f"{len(late):,} schedules are overdue.", "/schedules", "Schedules", mend)


def _stores(seen: Overview) -> Iterator[Finding]:
    stores = seen.stores
    if stores.stale:
        detail = (
            f"{stores.stale:,} of {pluralize(stores.crawled, 'store')} {_is(stores.stale)} stale: "
            "no successful crawl in twice the interval."
        )
        yield _warning("stores", detail, "/stores?freshness=stale", "Stores", "menuwatch tasks failures --status open")


def _quarantine(seen: Overview) -> Iterator[Finding]:
    if seen.quarantined:
        detail = f"{pluralize(seen.quarantined, 'payload')} in quarantine: review needed."
        path = "/quarantine"
        yield _warning("quarantine", detail, path, "Review", "menuwatch payloads list --status quarantined")


def _is(n: int) -> str:
    return "is" if n == 1 else "are"
