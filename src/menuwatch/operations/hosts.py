"""Hosts for people: what they allow, what they said, who talks to them, and what a person can do about it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import urlsplit

from menuwatch.core.settings import Settings
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.fetch.scores import Score
from menuwatch.hosts import store
from menuwatch.hosts.model import Limits
from menuwatch.hosts.rules import ADVICE
from menuwatch.operations import audit
from menuwatch.operations.reading import Row, row, rows
from menuwatch.operations.refusals import Conflict, NotFound, Unusable
from menuwatch.proxies.model import address

_q = sql.load(__package__, "hosts.sql")

State = Literal["open", "slow", "trying", "cooling", "circuit", "paused"]
"""`slow`: it is asked less often than its rate allows; `trying`: its circuit was open, and one identity may find out whether it
still is."""

CLOSED: tuple[State, ...] = ("cooling", "circuit", "paused")
"""Those in which nobody asks it."""

SHOWN = 5
"""Proxies that are shown as the best, and as the worst."""

_ADVICE = {
    "paused": "`menuwatch hosts resume {host}` has it asked again",
    "circuit": ADVICE,
    "cooling": "wait; it is asked again by itself, more slowly. If it cools down often, ask less often "
    "(`menuwatch hosts set {host} --rate …`); `menuwatch hosts reset {host}` asks at once",
    "trying": f"wait; one identity finds out whether it lets anybody in again. Meanwhile {ADVICE}",
    "slow": "nothing; the pace grows by a tenth of the rate a minute while it answers; `menuwatch hosts reset {host}` goes back to "
    "full pace at once",
    "pace": "wait; its turn comes; `menuwatch hosts set {host} --rate …` lets more be asked",
    "busy": "wait; `menuwatch hosts set {host} --concurrency …` lets more identities talk to it at once",
}


def advice(code: str, host: str) -> str | None:
    """What a person can do about a host in that state, or about work that waits for that reason; None: nothing is wrong."""
    text = _ADVICE.get(code)
    return None if text is None else text.format(host=host)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostView:
    """A host as people see it. `pace` is the present rate. `reason`, `since` and `until` belong to the state; `advice` is what a
    person can do about it. `requests` and `refusals` count all that were ever made."""

    host: str
    state: State
    reason: str | None
    since: datetime | None
    until: datetime | None
    advice: str | None
    rate: float
    burst: int
    concurrency: int
    min_gap: float
    pace: float
    leases: int
    requests: int
    refusals: int
    throttles: int
    troubles: int
    refused: int
    circuit_opens: int
    last_ok_at: datetime | None
    last_refused_at: datetime | None
    robots: Literal["unknown", "found", "none", "unreachable"]
    robots_checked_at: datetime | None
    robots_status: int | None
    crawl_delay: float | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseView:
    """An identity that talks to a host now."""

    proxy_id: int
    proxy: str
    task_id: int | None
    leased_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Requests that ended so: of the last 24 hours (`day`), and of all (`total`). `bytes` of all their answers."""

    verdict: str
    day: int
    total: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fare:
    """How a proxy or a browser fares at a host: experiences that halve every six hours, and the chance to be let in that follows."""

    name: str
    proxy_id: int | None
    good: float
    bad: float
    chance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HostDetail:
    """All that is known of a host. `best` and `worst` are proxies, `browsers` all that were there, the best first."""

    host: HostView
    leases: Sequence[LeaseView]
    verdicts: Sequence[Count]
    best: Sequence[Fare]
    worst: Sequence[Fare]
    browsers: Sequence[Fare]
    events: Sequence[Row]


_NAME = re.compile(r"[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?(:[0-9]{1,5})?|\[[0-9a-f:.]{2,45}\](:[0-9]{1,5})?")


def named(text: str) -> str:
    """The host of that name, or of that address; raises Unusable for a text that names none."""
    name = text.strip().lower()
    try:
        name = urlsplit(name).netloc.rpartition("@")[2] if "://" in name else name.removesuffix("/")
    except ValueError:
        name = ""
    if not _NAME.fullmatch(name):
        raise Unusable(
            "host", f"{text[:80]!r} is no host: give a name as dutchie.com, with its port where it is not the usual one"
        )
    return name


async def all_of(conn: Connection) -> list[HostView]:
    """Every host that was ever asked or given limits, by name."""
    return [_view(found) for found in await rows(conn, _q.list_hosts, {"host": None})]


async def one(conn: Connection, text: str) -> HostView:
    """The host of that name; raises NotFound, with names that are near."""
    name = named(text)
    found = await row(conn, _q.list_hosts, {"host": name})
    if found is None:
        raise NotFound(await _unknown(conn, name))
    return _view(found)


async def _unknown(conn: Connection, name: str) -> str:
    names = [found["host"] for found in await rows(conn, _q.host_names, {})]
    said = f"host {name} was never asked, and has no limits of its own"
    if not names:
        return f"{said}: no host has yet"
    if near := _near(name, names):
        return f"{said}; did you mean {' or '.join(near)}?"
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f"{said}: there is {', '.join(names[:10])}{more}"


def _near(name: str, names: Sequence[str]) -> list[str]:
    return (
        difflib.get_close_matches(name, names, 3, 0.6)
        or [known for known in names if name in known or known in name][:3]
    )


async def near(conn: Connection, host: str) -> list[str]:
    """Other hosts that are called about so, a few."""
    names = [found["host"] for found in await rows(conn, _q.host_names, {})]
    return _near(host, [name for name in names if name != host])


def _view(found: Row) -> HostView:
    code, slower = found["code"], found["pace"] < found["rate"]
    state: State = code or ("trying" if found["circuit"] == "open" else "slow" if slower else "open")
    since = {
        "paused": found["paused_at"],
        "circuit": found["circuit_opened_at"],
        "trying": found["circuit_opened_at"],
        "cooling": found["slowed_at"],
        "slow": found["slowed_at"],
    }.get(state)
    return HostView(
        state=state,
        reason=found["circuit_reason"] if state == "trying" else found["reason"],
        since=since,
        until=found["until"],
        advice=advice(state, found["host"]),
        robots=_robots(found),
        **{
            name: found[name]
            for name in HostView.__dataclass_fields__
            if name not in ("state", "reason", "since", "until", "advice", "robots")
        },
    )


def _robots(found: Row) -> Literal["unknown", "found", "none", "unreachable"]:
    if found["robots_checked_at"] is None:
        return "unknown"
    if found["has_robots"] is None:
        return "unreachable"
    return "found" if found["has_robots"] else "none"


async def detail(
    conn: Connection, text: str, *, events: int = 20, lately: Mapping[str, int] | None = None
) -> HostDetail:
    """All that is known of it, with so many of its last events; raises NotFound. `lately`: requests of the last 24 hours by what came
    of them, where somebody has counted them already."""
    host = await one(conn, text)
    by = {"host": host.host}
    now = datetime.now(UTC)
    day = lately
    if day is None:
        day = {found["verdict"]: found["requests"] for found in await rows(conn, _q.host_day, by)}
    verdicts = [
        Count(verdict=found["verdict"], day=day.get(found["verdict"], 0), total=found["requests"], bytes=found["bytes"])
        for found in await rows(conn, _q.host_verdicts, by)
    ]
    proxies = _ranked([_fare(found, _address(found), now) for found in await rows(conn, _q.host_proxy_scores, by)])
    worst = [fare for fare in reversed(proxies[SHOWN:]) if fare.bad >= _NOTHING][:SHOWN]
    return HostDetail(
        host=host,
        leases=[
            LeaseView(
                proxy=_address(found), **{k: found[k] for k in ("proxy_id", "task_id", "leased_at", "expires_at")}
            )
            for found in await rows(conn, _q.host_leases, by)
        ],
        verdicts=verdicts,
        best=proxies[:SHOWN],
        worst=worst,
        browsers=_ranked(
            [_fare(found, found["profile"], now) for found in await rows(conn, _q.host_profile_scores, by)]
        ),
        events=await happened(conn, host.host, limit=events),
    )


_NOTHING = 0.05


def _fare(found: Row, name: str, now: datetime) -> Fare:
    score = Score(found["good"], found["bad"], found["as_of"]).at(now)
    return Fare(
        name=name,
        proxy_id=found.get("proxy_id"),
        good=round(score.good, 2),
        bad=round(score.bad, 2),
        chance=round(score.chance, 3),
    )


def _ranked(fares: Sequence[Fare]) -> list[Fare]:
    return sorted(fares, key=lambda fare: (-fare.chance, -fare.good, fare.name))


def _address(found: Row) -> str:
    return address(found["protocol"], found["host"], found["port"], found["username"])


async def happened(
    conn: Connection, host: str, *, after: tuple[datetime, int] | None = None, limit: int = 50
) -> list[Row]:
    """What befell a host, the newest first, before the event with that time and number."""
    after_at, after_id = after or (None, None)
    return await rows(conn, _q.host_events, {"host": host, "after_at": after_at, "after_id": after_id, "limit": limit})


async def change(conn: Connection, text: str, settings: Settings, **limits: Any) -> HostView:
    """New limits (`rate`, `burst`, `concurrency`, `min_gap`; None: as it is), for all workers at once. A host that was never
    asked gets a row: what is not given is as the settings have it. Raises Refused for what means nothing; within the caller's
    transaction."""
    name = named(text)
    given = {key: value for key, value in limits.items() if value is not None}
    store.check(**given)
    await store.add(conn, name, replace(Limits.from_settings(settings), **given))
    await store.change(conn, name, **given)
    await audit.record(conn, "host_changed", ("host", name), limits=given)
    return await one(conn, name)


async def pause(conn: Connection, text: str, settings: Settings, reason: str | None = None) -> HostView:
    """Nobody asks it until `resume`, nor ever did, where it is new to us: it gets its limits from the settings."""
    name = named(text)
    await store.add(conn, name, Limits.from_settings(settings))
    await store.pause(conn, name, (reason or "").strip())
    await audit.record(conn, "host_paused", ("host", name), reason=reason)
    return await one(conn, name)


async def remove(conn: Connection, text: str) -> HostView:
    """Forgets it, with its limits and all that it said; returns what it was. Raises NotFound, and Conflict while somebody talks to it
    or where it is paused: it would be asked again."""
    host = await one(conn, text)
    if host.state == "paused":
        raise Conflict(
            f"{host.host} is paused, and would be asked again if it were forgotten: `menuwatch hosts resume {host.host}` first"
        )
    if talking := await store.remove(conn, host.host):
        raise Conflict(
            f"{talking} {'identity talks' if talking == 1 else 'identities talk'} to {host.host} now: "
            f"`menuwatch hosts pause {host.host}`, wait until they are done, and try again"
        )
    await audit.record(conn, "host_forgotten", ("host", host.host))
    return host


async def resume(conn: Connection, text: str) -> HostView:
    """Takes `pause` back; raises NotFound."""
    host = await one(conn, text)
    if host.state == "paused":
        await store.resume(conn, host.host)
    await audit.record(conn, "host_resumed", ("host", host.host), was=host.state)
    return await one(conn, host.host)


async def reset(conn: Connection, text: str) -> HostView:
    """Forgets cool-down, circuit and slower pace; raises NotFound. A pause stays."""
    host = await one(conn, text)
    await store.reset(conn, host.host)
    await audit.record(conn, "host_reset", ("host", host.host), was=host.state)
    return await one(conn, host.host)
