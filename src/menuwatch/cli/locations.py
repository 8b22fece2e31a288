"""`menuwatch locations`: shops across platforms and licences."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from menuwatch.cli.options import (
    Commands,
    JsonOption,
    LimitedOutput,
    MilesOption,
    NearOption,
    StatesOption,
    UpdatedOption,
    parse_circle,
    parse_updated,
)
from menuwatch.cli.output import Column, Format, ago, echo, print_detail, print_json, print_list
from menuwatch.cli.startup import in_transaction, read
from menuwatch.core.errors import Refused
from menuwatch.db.pool import Connection
from menuwatch.matching.locations import service
from menuwatch.matching.locations.compare import Reason
from menuwatch.matching.locations.model import (
    Licence,
    LocationDetail,
    LocationFilter,
    LocationMenu,
    LocationStatus,
    Subject,
)
from menuwatch.stores import store as stores

app = Commands("List shops across platforms and licences, and correct links.")

LocationArgument = Annotated[int, typer.Argument(min=1, help="Id of a location.", metavar="LOCATION")]
StoreLink = Annotated[str | None, typer.Option("--store", help="A store: name, slug or ID.")]
LicenceLink = Annotated[int | None, typer.Option("--licence", min=1, help="Id of a licence.")]

COLUMNS = (
    Column("#", "id"),
    Column("Name", "name"),
    Column("Chain", "chain", rank=5),
    Column("Address", "address", rank=3),
    Column("City", "city", rank=2),
    Column("State", "state"),
    Column("Status", "status"),
    Column("Platforms", lambda location: ", ".join(location.platforms) or None, rank=1),
    Column("Menus", "menus"),
    Column("Licences", "licences", rank=4),
)
MENU_COLUMNS = (
    Column("Store", "store_id"),
    Column("Name", "name"),
    Column("Platform", "platform"),
    Column("Menu", "freshness"),
    Column("Last crawl", "last_crawled_at", ago, rank=2),
    Column("Products", "product_count", rank=3),
    Column("Preferred", "preferred", rank=4),
    Column("Confidence", lambda row: f"{row.confidence:.3f}", rank=5),
    Column("Evidence", lambda row: evidence(row), rank=1),
)
LICENCE_COLUMNS = (
    Column("#", "id"),
    Column("Number", "number"),
    Column("Holder", "holder"),
    Column("Status", "status", rank=2),
    Column("Ended", "ended"),
    Column("Confidence", lambda row: f"{row.confidence:.3f}", rank=3),
    Column("Evidence", lambda row: evidence(row), rank=1),
)


def evidence(row: LocationMenu | Licence) -> str:
    """The codes of the reasons of a link with their bits."""
    if row.decided_by is not None:
        return f"linked by {row.decided_by}"
    reasons = msgspec.json.decode(row.reasons, type=list[Reason]) if row.reasons is not None else []
    return ", ".join(f"{r.code.replace('_', ' ')} {r.weight:+g}" for r in reasons if r.weight is not None)


@app.command("list")
def list_(
    out: LimitedOutput,
    state: StatesOption = None,
    status: Annotated[LocationStatus | None, typer.Option(help="Only locations of this status.")] = None,
    several: Annotated[
        bool | None, typer.Option("--several/--single", help="Only locations with several menus, or with one.")
    ] = None,
    q: Annotated[
        str | None, typer.Option("--search", help="Only locations with this text in name, chain, address or city.")
    ] = None,
    near: NearOption = None,
    miles: MilesOption = None,
    updated_since: UpdatedOption = None,
) -> None:
    """List locations: each shop once, across platforms."""
    where = LocationFilter(
        states=state, status=status, several=several, q=q,
        circle=parse_circle(near, miles), updated_since=parse_updated(updated_since),
    )  # fmt: skip
    rows = read(lambda _, conn: service.list_locations(conn, where, limit=1_000_000))
    empty = "No matching locations."
    if where == LocationFilter():
        empty = "No locations yet: they appear once stores are matched. To match now, run `menuwatch stores match`."
    out.show(rows, COLUMNS, "location", empty=empty)


@app.command("show")
def show(location: LocationArgument, json: JsonOption = False) -> None:
    """Show a location with its menus, licences, history and nearby locations."""
    _print(read(lambda _, conn: service.get_location(conn, location)), json)


@app.command("link")
def link(
    location: LocationArgument, store: StoreLink = None, licence: LicenceLink = None, json: JsonOption = False
) -> None:
    """Link a store or a licence to a location. The matcher never overrules it."""

    async def act(conn: Connection) -> LocationDetail:
        number = await service.link(conn, await _subject(conn, store, licence), location)
        return await service.get_location(conn, number)

    _print(in_transaction(lambda _, conn: act(conn)), json)


@app.command("unlink")
def unlink(
    location: LocationArgument, store: StoreLink = None, licence: LicenceLink = None, json: JsonOption = False
) -> None:
    """Unlink a store or a licence from a location; a store gets its own location. The matcher never links it again."""

    async def act(conn: Connection) -> LocationDetail:
        number = await service.unlink(conn, await _subject(conn, store, licence), location)
        return await service.get_location(conn, number)

    _print(in_transaction(lambda _, conn: act(conn)), json)


@app.command("release")
def release(store: StoreLink = None, licence: LicenceLink = None) -> None:
    """Withdraw people's decisions about a store or a licence: the matcher assigns it again."""

    async def act(conn: Connection) -> Subject:
        subject = await _subject(conn, store, licence)
        await service.release(conn, subject)
        return subject

    echo(f"Decisions about {in_transaction(lambda _, conn: act(conn))} withdrawn.")


@app.command("merge")
def merge(
    location: LocationArgument,
    into: Annotated[int, typer.Option("--into", min=1, help="Id of the location that stays.")],
    json: JsonOption = False,
) -> None:
    """Merge two locations. The id of the first then redirects to the second."""

    async def act(conn: Connection) -> LocationDetail:
        return await service.get_location(conn, await service.merge(conn, location, into))

    _print(in_transaction(lambda _, conn: act(conn)), json)


async def _subject(conn: Connection, store: str | None, licence: int | None) -> Subject:
    if (store is None) == (licence is None):
        raise Refused("give either --store or --licence")
    return Subject(store_id=None if store is None else (await stores.resolve(conn, store)).id, licence_id=licence)


def _print(location: LocationDetail, json: bool) -> None:
    if json:
        print_json(location)
        return
    print_detail(location, (*COLUMNS[:-2], Column("Phone", "phone")))
    for title, rows, columns in (
        ("Menus", location.stores, MENU_COLUMNS),
        ("Licences", location.registered, LICENCE_COLUMNS),
    ):
        if rows:
            echo("", title)
            print_list(rows, columns, Format.TABLE)
    if location.events:
        echo("", "History")
        for event in location.events:
            change = " → ".join(text for text in (event.before, event.after) if text)
            other = f"location {event.other_id}" if event.other_id else ""
            echo(f"{event.at:%Y-%m-%d %H:%M}  {event.kind}  {change} {other}".rstrip())
    if location.nearby:
        echo("", "Nearby, maybe the same shop")
        for near in location.nearby:
            how = "same phone" if near.same_phone else f"{near.metres} m"
            echo(f"{near.id}  {near.name}, {near.address or 'address unknown'}  ({how})")
