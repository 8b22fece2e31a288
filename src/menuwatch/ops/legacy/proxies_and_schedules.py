"""Takes over former proxies and schedules. Passwords are stored as those of other proxies are, and stand in no message."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from psycopg import AsyncConnection

from menuwatch.core.encryption import SecretBox
from menuwatch.core.errors import Refused
from menuwatch.db import sql
from menuwatch.ops.legacy import fields
from menuwatch.ops.legacy.columns import PROXIES, SCHEDULES, Record
from menuwatch.ops.legacy.fields import Bad
from menuwatch.ops.legacy.sources import Source
from menuwatch.ops.legacy.staging import Tally, read, skip
from menuwatch.proxies import store as proxies
from menuwatch.proxies.location import LOCATION, Location
from menuwatch.proxies.model import Address, NewProxy, TestFailure
from menuwatch.proxies.parse import check_login, host_named, port_numbered, protocol_named
from menuwatch.queue.model import parse_role
from menuwatch.queue.schedules.model import INTERVALS, PRIORITIES, ROLES
from menuwatch.queue.schedules.service import known_state
from menuwatch.queue.schedules.store import list_schedules

_q = sql.load(__package__, "importer.sql")
HERE = "already exists"
_INACTIVE = TestFailure.untested("it was inactive in the legacy system; its first probe activates it")


async def take_proxies(conn: AsyncConnection[Any], source: Source, tally: Tally, secret_box: SecretBox) -> None:
    """Adds proxies that are not here; one that was inactive stays so until a probe succeeds. Known ones are left as they are."""
    if PROXIES not in source.has:
        return
    known: set[Address] = {(one.protocol, one.host, one.port, one.username or "") for one in await proxies.all_of(conn)}
    async for line in source.lines(PROXIES):
        record = read(line, tally)
        if record is None:
            continue
        try:
            new = _proxy(record, secret_box)
            active = fields.flag(record, "is_active")
        except (Bad, Refused) as error:
            skip(tally, line, error)
            continue
        if new.key in known:
            tally.skip(HERE, new.address)
            continue
        known.add(new.key)
        async with conn.transaction():
            await proxies.put(conn, [new], failed={new.key: _INACTIVE} if active is False else {})
        tally.taken += 1


def _proxy(record: Record, secret_box: SecretBox) -> NewProxy:
    protocol = protocol_named(fields.text(record, "protocol") or "http")
    host = host_named(fields.text(record, "host") or "")
    port = port_numbered(fields.text(record, "port") or "")
    username, password = fields.text(record, "username"), fields.text(record, "password")
    if username is not None or password is not None:
        check_login(protocol, username or "", password or "")
    new = NewProxy(protocol=protocol, host=host, port=port, username=username, password=secret_box.encrypt(password))
    # An invalid location is no reason to leave a proxy behind.
    location, _ = Location.check(**{name: fields.text(record, name) for name in LOCATION})
    return location.of(new)


async def take_schedules(
    conn: AsyncConnection[Any], source: Source, tally: Tally, platforms: frozenset[str], now: datetime
) -> None:
    """Adds schedules whose name is not here. The report names the differences of one that is."""
    if SCHEDULES not in source.has:
        return
    known = {one.name: one for one in await list_schedules(conn)}
    async for line in source.lines(SCHEDULES):
        record = read(line, tally)
        if record is None:
            continue
        try:
            values = _schedule(record, platforms, now)
        except (Bad, Refused) as error:
            skip(tally, line, error)
            continue
        here = known.get(values["name"])
        if here is None and (await conn.execute(_q.add_schedule, values)).rowcount:
            tally.taken += 1
            continue
        differences = [
            f"{name} {values[name]} (here {getattr(here, name)})"
            for name in ("enabled", "interval_hours", "priority", "state_code")
            if here is not None and values[name] != getattr(here, name)
        ]
        tally.skip(HERE, ", ".join([values["name"], *differences]))


def _schedule(record: Record, platforms: frozenset[str], now: datetime) -> dict[str, Any]:
    name = fields.text(record, "name", 200)
    if name is None:
        raise Bad("it has no name", "")
    role = parse_role(fields.text(record, "role") or "").value
    if role not in ROLES:
        raise Bad("a schedule cannot have its role: tasks of that role follow from others", f"{name}: {role}")
    hours = fields.number(fields.text(record, "interval_hours"))
    if hours is None or not INTERVALS[0] <= hours <= INTERVALS[1]:
        raise Bad(f"interval_hours is not from {INTERVALS[0]} to {INTERVALS[1]}", name)
    priority = fields.number(fields.text(record, "priority") or "0")
    if priority is None or priority % 1 or not PRIORITIES[0] <= priority <= PRIORITIES[1]:
        raise Bad(f"priority is not an integer from {PRIORITIES[0]} to {PRIORITIES[1]}", name)
    platform = (fields.text(record, "platform") or "dutchie").lower()
    if platform not in platforms:
        raise Bad("its platform is not known", f"{name}: {platform}")
    state = fields.text(record, "state_code")
    planned = fields.instant(record, "next_run")
    soon = planned is not None and now < planned[0] <= now + timedelta(hours=float(hours))
    return {
        "name": name,
        "role": role,
        "platform": platform,
        "enabled": fields.flag(record, "enabled") is not False,
        "interval_hours": hours,
        "priority": int(priority),
        "state_code": None if state is None else known_state(state),
        "next_run_at": planned[0] if soon and planned is not None else now,
    }
