"""Proxies as people look through them: by how they are, with the share of requests that went well lately; and where they stand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Literal

import msgspec

from menuwatch.core.errors import Refused
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.fetch.scores import HALF_LIFE, Score
from menuwatch.operations import audit
from menuwatch.operations.proxies import ProxyView, one, view
from menuwatch.operations.reading import pattern, rows
from menuwatch.operations.refusals import Stale, Unusable
from menuwatch.proxies import store
from menuwatch.proxies.place import country_code, state_code, time_zone

_q = sql.load(__package__, "proxy_list.sql")

Status = Literal["active", "failing", "inactive", "disabled"]
_FAILING = 3
"""As in proxies/store.py."""
_NOTHING = 0.05
"""Experiences below that say nothing any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A proxy with the share of requests that went well lately, from 0 to 1; None where none is remembered."""

    proxy: ProxyView
    share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AtHost:
    """How a proxy fares at a host."""

    host: str
    good: float
    bad: float
    share: float | None


async def page(
    conn: Connection, *, status: Status | None = None, q: str | None = None, after: int = 0, limit: int = 50
) -> list[Listed]:
    """Proxies by number, those after `after`; `q` is text in the address or the place."""
    values = {
        "status": status,
        "q": pattern(q) if q else None,
        "after": after,
        "limit": limit,
        "failing": _FAILING,
    }
    ids = [found["id"] for found in await rows(conn, _q.proxy_ids, values, prepare=False)]
    known = await store.some(conn, ids)
    scores = {
        found["proxy_id"]: _share(found["good"], found["bad"])
        for found in await rows(conn, _q.proxy_scores, {"ids": ids, "half_life": HALF_LIFE})
    }
    return [Listed(proxy=view(known[number]), share=scores.get(number)) for number in ids if number in known]


async def hosts(conn: Connection, proxy_id: int) -> Sequence[AtHost]:
    """How it fares at each host that it was used on."""
    now = datetime.now(UTC)
    found = []
    for row in await rows(conn, _q.proxy_hosts, {"id": proxy_id}):
        score = Score(row["good"], row["bad"], row["as_of"]).at(now)
        found.append(
            AtHost(
                host=row["host"],
                good=round(score.good, 1),
                bad=round(score.bad, 1),
                share=_share(score.good, score.bad),
            )
        )
    return found


def _share(good: float, bad: float) -> float | None:
    return None if good + bad < _NOTHING else good / (good + bad)


def place_version(proxy: ProxyView) -> str:
    """A mark of where it is said to stand: another one when somebody has changed that."""
    place = [proxy.city, proxy.state, proxy.country, proxy.timezone]
    return blake2b(msgspec.json.encode(place), digest_size=6).hexdigest()


async def place(
    conn: Connection,
    proxy_id: int,
    *,
    city: str | None,
    state: str | None,
    country: str | None,
    timezone: str | None,
    version: str,
) -> ProxyView:
    """Says where it stands, None where that is not known, in the caller's transaction. Raises NotFound, Unusable, and Stale where
    that was changed since `version` (place_version) was read."""
    checked_country = _usable("country", lambda: country_code(country))
    checked_state = _usable("state", lambda: state_code(state, checked_country))
    zone = _usable("timezone", lambda: time_zone(timezone))
    if city is not None and len(city) > 200:
        raise Unusable("city", "the name of a city has at most 200 characters")
    await store.lock(conn, [proxy_id])
    before = await one(conn, proxy_id)
    if place_version(before) != version:
        raise Stale(f"somebody has changed where proxy {proxy_id} stands since you opened it")
    await store.place(conn, proxy_id, city=city, state=checked_state, country=checked_country, timezone=zone)
    await audit.record(
        conn,
        "proxy_placed",
        ("proxy", proxy_id),
        city=city,
        state=checked_state,
        country=checked_country,
        timezone=zone,
    )
    return await one(conn, proxy_id)


def _usable(field: str, check: Callable[[], str | None]) -> str | None:
    try:
        return check()
    except Refused as error:
        raise Unusable(field, str(error)) from None
