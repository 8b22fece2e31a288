"""Locations and licences: lists, what people decide, and the import of registers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from menuwatch.accounts import audit
from menuwatch.core.errors import Conflict, InvalidField, NotFound, Refused
from menuwatch.core.format import pluralize
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_all, fetch_one, fetch_structs
from menuwatch.matching.locations import registers
from menuwatch.matching.locations.kinds import ENDED
from menuwatch.matching.locations.model import (
    Licence,
    LicenceFilter,
    LicenceImport,
    Location,
    LocationDetail,
    LocationEvent,
    LocationFilter,
    LocationMenu,
    NearbyLocation,
    Subject,
)

_q = sql.load(__package__, "queries.sql")
_engine = sql.load(__package__, "engine.sql")
_MOST_GONE = 0.5
"""A register that lacks more than this share of the known licences is taken for an incomplete file."""


async def list_locations(
    conn: Connection, where: LocationFilter, *, after: int | None = None, limit: int = 50
) -> list[Location]:
    """Locations by id. Those that were merged into others are not listed."""
    values = {**where.values(), "id": None, "after": after, "limit": limit, "ended": ENDED}
    return await fetch_structs(conn, Location, _q.list_locations, values, prepare=False)


async def resolve(conn: Connection, location_id: int) -> int:
    """The number of the location that has the records now: another one if it was merged. Raises NotFound."""
    row = await fetch_one(conn, _q.find_location, {"id": location_id})
    if row is None:
        raise NotFound(f"location {location_id} does not exist")
    return int(row["merged_into"] or row["id"])


async def get_location(conn: Connection, location_id: int) -> LocationDetail:
    """One location; the one that it was merged into where it was. Raises NotFound."""
    number = await resolve(conn, location_id)
    values = {**LocationFilter().values(), "id": number, "after": None, "limit": 1, "ended": ENDED}
    rows = await fetch_structs(conn, Location, _q.list_locations, values, prepare=False)
    if not rows:
        raise NotFound(f"location {location_id} no longer has a menu or licence")
    key = {"id": number, "ended": ENDED}
    return LocationDetail(
        **msgspec.structs.asdict(rows[0]),
        stores=await fetch_structs(conn, LocationMenu, _q.menus_of, key),
        registered=await fetch_structs(conn, Licence, _q.licences_of, key),
        events=await fetch_structs(conn, LocationEvent, _q.events_of, key),
        nearby=await fetch_structs(conn, NearbyLocation, _q.nearby, key),
    )


async def location_of_store(conn: Connection, store_id: int) -> int | None:
    """The store's location; None until it was matched, seconds after it was added."""
    row = await fetch_one(conn, _q.location_of, {"store_id": store_id, "licence_id": None})
    return None if row is None else int(row["location_id"])


async def list_licences(
    conn: Connection, where: LicenceFilter, *, after: int | None = None, limit: int = 50
) -> list[Licence]:
    """Licences by id."""
    values = {**where.values(), "after": after, "limit": limit, "ended": ENDED}
    return await fetch_structs(conn, Licence, _q.list_licences, values, prepare=False)


async def link(conn: Connection, subject: Subject, location_id: int) -> int:
    """Links a menu or a licence permanently to a location; returns the location. Raises NotFound, and Conflict if a person decided
    that it is not of it."""
    number = await resolve(conn, location_id)
    await _check(conn, subject)
    await _lock(conn, [number])
    row = await fetch_one(conn, _q.refusal, {"location_id": number, **subject.values()})
    if row is not None:
        raise Conflict(
            f"{row['decided_by']} decided on {row['decided_at']:%Y-%m-%d} that {subject} does not belong to location {number}: "
            f"release that decision first"
        )
    before = await fetch_one(conn, _q.location_of, subject.values())
    statement = _q.decide_menu if subject.store_id is not None else _q.decide_licence
    subject_id = subject.store_id if subject.store_id is not None else subject.licence_id
    await conn.execute(statement, {"location_id": number, "subject_id": subject_id, "by": _by()})
    if before is not None and before["location_id"] != number:
        await _end_if_empty(conn, before["location_id"], number)
    details = {**subject.values(), "from": before and before["location_id"]}
    await audit.record(conn, "location_linked", ("location", number), **details)
    return number


async def unlink(conn: Connection, subject: Subject, location_id: int) -> int:
    """Unlinks a menu or a licence permanently from a location; a menu gets its own location. Returns the location that it left.
    Raises NotFound, and Conflict where it is not there, where a person put it there, or where it is the location's only menu."""
    number = await resolve(conn, location_id)
    await _check(conn, subject)
    row = await fetch_one(conn, _q.location_of, subject.values())
    if row is None or row["location_id"] != number:
        where = f"it belongs to location {row['location_id']}" if row is not None else "it has no location"
        raise Conflict(f"{subject} does not belong to location {number}: {where}")
    await _lock(conn, [number])
    if row["decided_by"] is not None:
        raise Conflict(
            f"{row['decided_by']} put {subject} into location {number} on {row['linked_at']:%Y-%m-%d}: release that decision first"
        )
    new: int | None = None
    if subject.store_id is not None:
        others = await fetch_one(conn, _q.other_menus, {"id": number, "store_id": subject.store_id})
        if not others or not others["n"]:
            raise Conflict(f"{subject} is the only menu of location {number}: link it to another location instead")
        made = await fetch_one(conn, _q.copy_location, {"store_id": subject.store_id})
        assert made is not None, "INSERT … RETURNING gives a row"
        new = int(made["id"])
        await conn.execute(_q.move_link, {"store_id": subject.store_id, "into": new})
        await _event(conn, number, "split", other_id=new)
    else:
        await conn.execute(_q.drop_licence_link, subject.values())
    await conn.execute(_q.refuse, {"location_id": number, **subject.values(), "by": _by()})
    await audit.record(conn, "location_unlinked", ("location", number), **subject.values(), new_location=new)
    return number


async def release(conn: Connection, subject: Subject) -> None:
    """Withdraws what people decided about a menu or a licence: the matcher places it again. Raises NotFound and Conflict."""
    await _check(conn, subject)
    released = (await conn.execute(_q.release, subject.values())).rowcount
    refusals = (await conn.execute(_q.release_refusals, subject.values())).rowcount
    if not released and not refusals:
        raise Conflict(f"there is no decision about {subject}: the matcher placed it")
    kind = ("store", subject.store_id) if subject.store_id is not None else ("licence", subject.licence_id or 0)
    await audit.record(conn, "location_decision_released", kind)


async def merge(conn: Connection, location_id: int, into: int) -> int:
    """Merges two locations permanently; the first id then leads to the second. Raises NotFound, InvalidField, and
    Conflict if a person decided that a menu or licence of one does not belong to the other."""
    old, number = await resolve(conn, location_id), await resolve(conn, into)
    if old == number:
        raise InvalidField("into", f"choose another location: {location_id} and {into} are already one")
    locked = await _lock(conn, [old, number])
    row = await fetch_one(conn, _q.refusal_between, {"a": old, "b": number})
    if row is not None:
        subject = Subject(store_id=row["store_id"], licence_id=row["licence_id"])
        raise Conflict(
            f"{row['decided_by']} decided on {row['decided_at']:%Y-%m-%d} that {subject} does not belong to location "
            f"{row['location_id']}: release that decision first"
        )
    await conn.execute(_q.move_links, {"id": old, "into": number, "by": _by()})
    await _redirect(conn, old, number, locked[old])
    await audit.record(conn, "locations_merged", ("location", old), into=number)
    return number


async def import_register(conn: Connection, content: bytes, state: str, *, partial: bool = False) -> LicenceImport:
    """Imports a register of a state in the caller's transaction: new licences, changed ones, and those that are gone (unless the file
    is `partial`). Lines that are not licences are skipped and listed. Raises Refused for input that is not a register, and for one
    that lacks more than half of what is known."""
    rows, rejected, repeated = registers.read(registers.text_of(content), state)
    result = LicenceImport(state=state, rejected=rejected, repeated=repeated)
    await conn.execute(_q.lock_register, {"state": state})
    known = await fetch_all(conn, _q.known_licences, {"state": state})
    spelled = {registers.number_key(row["number"]): row["number"] for row in known}
    # A number keeps its first spelling, so that another one is not another licence.
    rows = [
        msgspec.structs.replace(row, number=spelled.get(registers.number_key(row.number), row.number)) for row in rows
    ]
    here = {row.number for row in rows}
    missing = [row for row in known if row["number"] not in here and row["gone_at"] is None]
    present = sum(row["gone_at"] is None for row in known)
    if not partial and present > 10 and len(missing) > present * _MOST_GONE:
        raise Refused(
            f"the file lacks {len(missing):,} of {pluralize(present, 'known licence')} of {state}: "
            "import it as partial (`--partial`) if it is not the whole register"
        )
    if rows:
        encoded = msgspec.json.encode(rows).decode()
        counts = await fetch_one(conn, _q.put_licences, {"rows": encoded, "state": state})
        assert counts is not None, "an aggregate gives a row"
        result.added, result.updated, result.unchanged = counts["added"], counts["updated"], counts["unchanged"]
    if missing and not partial:
        await conn.execute(_q.mark_gone, {"ids": [row["id"] for row in missing]})
        result.gone = len(missing)
    numbers = {name: getattr(result, name) for name in ("added", "updated", "unchanged", "gone")}
    await audit.record(conn, "licences_imported", ("register", state), **numbers, rejected=len(rejected))
    return result


def _by() -> str:
    actor = audit.actor()
    return actor.name if actor is not None else "operator"


async def _check(conn: Connection, subject: Subject) -> None:
    query = _q.store_name if subject.store_id is not None else _q.licence_name
    key = subject.store_id if subject.store_id is not None else subject.licence_id
    if await fetch_one(conn, query, {"id": key}) is None:
        raise NotFound(f"{subject} does not exist")


async def _lock(conn: Connection, numbers: Sequence[int]) -> dict[int, Any]:
    rows = await fetch_all(conn, _q.lock_locations, {"ids": list(numbers)})
    if any(row["merged_into"] is not None for row in rows):
        raise Conflict("the locations were merged in the meantime: reload and try again")
    return {row["id"]: row["name"] for row in rows}


async def _end_if_empty(conn: Connection, old: int, into: int) -> None:
    row = await fetch_one(conn, _q.is_empty, {"id": old})
    if row is not None and row["empty"]:
        await _redirect(conn, old, into, None)


async def _redirect(conn: Connection, old: int, into: int, name: str | None) -> None:
    await conn.execute(_engine.redirect, {"id": old, "into": into})
    await conn.execute(_engine.move_refusals, {"id": old, "into": into})
    await _event(conn, into, "merged", before=name, other_id=old)


async def _event(
    conn: Connection, number: int, kind: str, *, before: str | None = None, other_id: int | None = None
) -> None:
    values = {
        "location_id": number,
        "kind": kind,
        "before": before,
        "after": None,
        "other_id": other_id,
        "made_by": _by(),
    }
    await conn.execute(_engine.put_event, values)
