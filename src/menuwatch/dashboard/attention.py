"""Is it healthy, in words: one sentence, and what needs somebody, each with the screen where it is seen to. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from menuwatch.operations.overview import Overview
from menuwatch.operations.wording import because, span
from menuwatch.web.words import many

Kind = Literal["bad", "warn", "good"]

_FAILING = 0.1
"""Share of what ended in the last hour that failed, from which on it is not a few odd ones."""


@dataclass(frozen=True, slots=True)
class Need:
    """Something that needs somebody. `bad`: work stands still or is lost; `warn`: it goes on, but not as it should. `path` is in the
    dashboard; `act` names what one does there."""

    kind: Kind
    text: str
    path: str
    act: str


@dataclass(frozen=True, slots=True)
class Health:
    """The sentence, how bad it is, and why."""

    kind: Kind
    sentence: str
    needs: tuple[Need, ...]


def health(seen: Overview, causes: int) -> Health:
    """How it stands; `causes` is of how many causes tasks failed in the last hour."""
    needs = (*_workers(seen), *_reach(seen), *_failures(seen, causes), *_late(seen), *_menus(seen))
    worst = sorted(needs, key=lambda need: need.kind != "bad")
    bad = sum(need.kind == "bad" for need in needs)
    if bad:
        sentence = "Something is wrong and needs you now." if bad == 1 else f"{bad} things are wrong and need you now."
    elif needs:
        thing = "one thing needs" if len(needs) == 1 else f"{len(needs)} things need"
        sentence = f"It works, but {thing} somebody to look."
    else:
        sentence = f"All is well: {_calm(seen)}."
    return Health("bad" if bad else "warn" if needs else "good", sentence, tuple(worst))


def _calm(seen: Overview) -> str:
    crew = f"{many(seen.workers.live, 'worker')} {'is' if seen.workers.live == 1 else 'are'} there"
    if not seen.ready:
        return f"{crew}, and nothing waits for them"
    hours = seen.drain.hours
    if hours is None:
        return f"{crew}, with {many(seen.ready, 'task')} to do"
    soon = "less than a minute" if hours * 60 < 1 else f"about {span(hours * 3600)}"
    return f"{crew}, and what waits is done in {soon}"


def _workers(seen: Overview) -> Iterator[Need]:
    crew = seen.workers
    if not crew.live:
        waits = f" {many(seen.pending, 'task')} {'waits' if seen.pending == 1 else 'wait'}." if seen.pending else ""
        yield Need("bad", f"No worker is running.{waits}", "/workers", "Workers")
    elif not crew.claiming and seen.ready:
        why = (
            "paused"
            if crew.paused == crew.live
            else "backing off"
            if crew.backing_off == crew.live
            else "paused or backing off"
        )
        who = "the only one is" if crew.live == 1 else f"all {crew.live:,} are"
        yield Need("bad", f"No worker takes new tasks: {who} {why}.", "/workers", "Workers")
    else:
        if crew.paused:
            yield Need(
                "warn", f"{many(crew.paused, 'worker')} {_is(crew.paused)} paused.", "/workers?state=paused", "Resume"
            )
        if crew.backing_off * 2 > crew.live:
            yield Need(
                "warn",
                f"{crew.backing_off:,} of {crew.live:,} workers are backing off: the machine is full.",
                "/workers",
                "See why",
            )
    if crew.silent:
        yield Need(
            "warn",
            f"{many(crew.silent, 'worker')} sent no heartbeat for two minutes or longer.",
            "/workers?state=silent",
            "See which",
        )
    stale = sum(role.stale for role in seen.roles)
    if stale:
        yield Need(
            "warn", f"{many(stale, 'task')} {_is(stale)} held by a silent worker.", "/tasks?q=state:stale", "See them"
        )


def _reach(seen: Overview) -> Iterator[Need]:
    proxies = seen.proxies
    if not proxies.active:
        text = (
            "There is no proxy yet: workers do not start without one."
            if not proxies.known
            else "No proxy is active: nothing can be crawled."
        )
        yield Need("bad", text, "/proxies", "Proxies")
    elif proxies.down:
        kind: Kind = "bad" if proxies.down * 2 > proxies.known - proxies.disabled else "warn"
        yield Need(
            kind,
            f"{proxies.down:,} of {many(proxies.known, 'proxy', 'proxies')} {_is(proxies.down)} down.",
            "/proxies",
            "Proxies",
        )
    for host in seen.closed_hosts[:3]:
        until = (
            "until somebody opens it"
            if host.until is None
            else f"for another {span((host.until - seen.at).total_seconds())}"
        )
        yield Need("bad", f"{host.host} is not asked {until}: {because(host.reason)}.", "/hosts", "Hosts")
    if len(seen.closed_hosts) > 3:
        yield Need("bad", f"{len(seen.closed_hosts) - 3:,} more hosts are not asked.", "/hosts", "Hosts")


def _failures(seen: Overview, causes: int) -> Iterator[Need]:
    failed = seen.failed_last_hour
    if failed:
        kind: Kind = "bad" if failed >= _FAILING * (failed + seen.completed_last_hour) else "warn"
        of = f", of {many(causes, 'cause')}" if causes else ""
        yield Need(
            kind, f"{many(failed, 'task')} failed for good in the last hour{of}.", "/failures?window=1h", "See why"
        )


def _late(seen: Overview) -> Iterator[Need]:
    late = seen.late_schedules
    if len(late) == 1:
        ago = span((seen.at - late[0].due_at).total_seconds())
        why = f": {because(late[0].error)}" if late[0].error else ""
        yield Need("warn", f"The schedule {late[0].name} should have fired {ago} ago{why}.", "/schedules", "Schedules")
    elif late:
        yield Need("warn", f"{len(late):,} schedules should have fired already.", "/schedules", "Schedules")


def _menus(seen: Overview) -> Iterator[Need]:
    stores = seen.stores
    if stores.stale:
        yield Need(
            "warn",
            f"{stores.stale:,} of {many(stores.crawled, 'store')} {'has' if stores.stale == 1 else 'have'} an old menu: "
            "none for twice the interval.",
            "/stores?freshness=stale",
            "Stores",
        )
    if seen.quarantined:
        yield Need(
            "warn",
            f"{many(seen.quarantined, 'payload')} {_is(seen.quarantined)} in quarantine: not readable as a menu.",
            "/payloads?status=quarantined",
            "Look at it" if seen.quarantined == 1 else "Look at them",
        )


def _is(n: int) -> str:
    return "is" if n == 1 else "are"
