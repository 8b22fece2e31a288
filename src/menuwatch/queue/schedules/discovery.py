"""In which states stores are discovered: each chosen state has a `store_discovery` schedule. None is enabled before states are chosen:
every store that is found is crawled."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from itertools import count
from typing import Annotated

from msgspec import Struct

from menuwatch.core.errors import InvalidField, unknown_value
from menuwatch.core.shapes import doc
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_all
from menuwatch.geo.states import CODES, NAMES, PROVINCES
from menuwatch.queue.model import PRIORITY_DISCOVERY, Role
from menuwatch.queue.schedules import service
from menuwatch.queue.schedules.model import Schedule

_q = sql.load(__package__, "discovery.sql")

CRAWLS_PER_DAY = 6
"""Of a store with the default interval of four hours."""
TYPICAL_PAGES = 5
"""Pages of a menu of about 500 products, 100 on each: the estimate until menus of this installation were archived."""
_HOURS = Decimal(24)


class DiscoveryState(Struct, kw_only=True, frozen=True):
    """A state or province."""

    code: Annotated[str, doc("Two letters.")]
    name: str
    chosen: Annotated[bool, doc("Whether an enabled schedule discovers its stores.")]
    stores: Annotated[int, doc("Known stores; how many there are is not known before the first discovery.")]
    requests_per_day: Annotated[int, doc("Estimate for crawling the known stores.")]


class DiscoveryChoice(Struct, kw_only=True, frozen=True):
    """Where stores are discovered, with estimates of the requests that crawling them takes."""

    platform: str
    all_states: Annotated[bool, doc("Whether an enabled schedule discovers the whole platform.")]
    requests_per_store: Annotated[float, doc("Per day, at the default interval of four hours.")]
    measured: Annotated[
        bool, doc("Whether the estimates are based on archived menus; otherwise menus of five pages are assumed.")
    ]
    states: list[DiscoveryState]

    @property
    def chosen(self) -> list[str]:
        """Codes of the chosen states."""
        return [state.code for state in self.states if state.chosen]

    @property
    def enabled(self) -> bool:
        """Whether stores are discovered at all."""
        return self.all_states or bool(self.chosen)

    @property
    def summary(self) -> str:
        """One sentence."""
        if not self.enabled:
            return f"Store discovery on {self.platform} is off."
        where = "all states" if self.all_states else ", ".join(self.chosen)
        return (
            f"Stores on {self.platform} are discovered in {where}. "
            f"Each takes about {self.requests_per_store:.0f} requests per day."
        )


async def get_discovery(conn: Connection, platform: str, *, platforms: Sequence[str]) -> DiscoveryChoice:
    """The present choice; raises InvalidField for an unknown platform."""
    if platform not in platforms:
        raise InvalidField("platform", unknown_value("platform", platform, platforms))
    values = {"platform": platform}
    enabled = {one.state_code for one in await _schedules(conn, platform) if one.enabled}
    stores = {row["state"]: row for row in await fetch_all(conn, _q.stores, values)}
    (mean,) = await fetch_all(conn, _q.pages, values)
    pages = mean["pages"] or TYPICAL_PAGES
    return DiscoveryChoice(
        platform=platform,
        all_states=None in enabled,
        requests_per_store=CRAWLS_PER_DAY * pages,
        measured=mean["pages"] is not None,
        states=[
            DiscoveryState(
                code=code,
                name=name,
                chosen=code in enabled,
                stores=stores[code]["stores"] if code in stores else 0,
                requests_per_day=round(stores[code]["crawls"] * pages) if code in stores else 0,
            )
            for code, name in (NAMES | PROVINCES).items()
        ],
    )


async def choose_states(
    conn: Connection,
    platform: str,
    states: Sequence[str],
    *,
    all_states: bool = False,
    platforms: Sequence[str],
    now: datetime,
) -> DiscoveryChoice:
    """Discovers stores in these states, or in all, and nowhere else; raises InvalidField. Schedules of other states are disabled,
    missing ones are created, due at once."""
    if platform not in platforms:
        raise InvalidField("platform", unknown_value("platform", platform, platforms))
    if all_states and states:
        raise InvalidField("states", "choose either all states or some")
    wanted: set[str | None] = {None} if all_states else {state.strip().upper() for state in states}
    if unknown := sorted(code for code in wanted if code is not None and code not in CODES):
        raise InvalidField("states", f"unknown state {unknown[0]!r}: use two letters such as AZ or ON")
    for one in await _schedules(conn, platform):
        # Of several schedules for one state the oldest is enabled.
        enable = one.state_code in wanted
        wanted.discard(one.state_code)
        # One that is paused with all others would be enabled with them.
        if enable != one.enabled or (one.paused_at is not None and not enable):
            await service.change(conn, one.id, {"enabled": enable}, platforms=platforms, now=now)
    taken = {one.name for one in await service.list_schedules(conn)}
    for state in sorted(wanted, key=str):
        name = f"store_discovery_{platform}" + ("" if state is None else f"_{state.lower()}")
        # The schedule of that name may be for another state since.
        name = next(free for n in count(1) if (free := name if n == 1 else f"{name}_{n}") not in taken)
        fields = {"role": Role.STORE_DISCOVERY, "platform": platform, "interval_hours": _HOURS}
        await service.create(
            conn,
            {"name": name, "state_code": state, "priority": PRIORITY_DISCOVERY, **fields},
            platforms=platforms,
            now=now,
        )
    return await get_discovery(conn, platform, platforms=platforms)


async def _schedules(conn: Connection, platform: str) -> list[Schedule]:
    """Those that discover its stores, the oldest first."""
    return [
        one
        for one in await service.list_schedules(conn)
        if one.role == Role.STORE_DISCOVERY and one.platform == platform
    ]
