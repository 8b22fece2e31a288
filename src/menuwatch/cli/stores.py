"""`menuwatch stores`: which stores are watched."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, TypeVar

import typer
from msgspec import structs
from msgspec.json import decode

from menuwatch.catalog import history
from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.catalog.history import Menu
from menuwatch.cli.options import (
    Commands,
    DryRunOption,
    JsonOption,
    LimitedOutput,
    MilesOption,
    NearOption,
    StatesOption,
    UpdatedOption,
    YesOption,
    check_platform,
    parse_circle,
    parse_since,
    parse_updated,
)
from menuwatch.cli.output import Column, ago, echo, notice, print_detail, print_json, progress_bar
from menuwatch.cli.startup import in_transaction, read, with_system
from menuwatch.core.errors import Refused
from menuwatch.core.format import duration, pluralize
from menuwatch.db.pool import Connection
from menuwatch.matching.locations.engine import match_locations
from menuwatch.pipeline import store_changes, store_merge
from menuwatch.pipeline.store_changes import RemovedStore
from menuwatch.pipeline.store_discovery import add_store
from menuwatch.pipeline.store_merge import MergedStore
from menuwatch.queue.enqueue import EnqueuedTask
from menuwatch.stores import editing, service
from menuwatch.stores import store as stores
from menuwatch.stores.service import CrawlSettings, Freshness, StoreDetail, StoreFilter
from menuwatch.stores.store import Store
from menuwatch.system import System

app = Commands("Manage stores.")

StoreArgument = Annotated[str, typer.Argument(help="Store: name, slug or ID.")]

COLUMNS = (
    Column("#", "id"),
    Column("Slug", "slug"),
    Column("Name", "name"),
    Column("Location", lambda store: ", ".join(part for part in (store.city, store.state) if part) or None, rank=4),
    Column("Products", "product_count", rank=2),
    Column("Last crawl", "last_crawled_at", ago, rank=1),
    Column("Crawling", "crawl_enabled", rank=3),
    Column("Last error", "last_error", rank=5),
)
_VISIBILITY = {
    True: "shown on the public site",
    False: "hidden from the public site",
    None: "shown on the public site while crawling is enabled",
}
DETAIL_COLUMNS = (
    Column("#", "id"),
    Column("Name", "name"),
    Column("Slug", "slug"),
    Column("Platform", "platform"),
    Column("ID on platform", "platform_dispensary_id", lambda given: given or "not resolved yet"),
    Column("Menu URL", "menu_url"),
    Column("Location", "location_id"),
    Column("Address", lambda store: _address(store)),
    Column("Position", lambda store: None if store.latitude is None else f"{store.latitude:g}, {store.longitude:g}"),
    Column("Time zone", "timezone"),
    Column("Phone", "phone"),
    Column("Set by hand", lambda store: ", ".join(store.details_by_person) or None),
    Column("Crawling", lambda store: _crawling(store)),
    Column("Visibility", "shown", lambda shown: _VISIBILITY[shown]),
    Column("First crawl", "first_crawled_at"),
    Column("Last crawl", "last_crawled_at", ago),
    Column("Last attempt", "last_attempt_at", ago),
    Column("Last error", "last_error"),
    Column("Products", "product_count"),
    Column("Data quality", lambda store: store.quality_reason if store.quality_score is None else store.quality_score),
)
LAST_CRAWL_COLUMNS = (
    Column("Time (UTC)", "crawled_at"),
    Column("Payload", "payload_id"),
    Column("Products", "products"),
    Column("New", "new_products"),
    Column("Changed", "changed"),
    Column("Returned", "returned"),
    Column("Missing", "missing"),
    Column("Out of stock", "out_of_stock"),
    Column("Price changes", "price_changes"),
    Column("Stock changes", "stock_changes"),
    Column("Warnings", lambda crawl: len(decode(crawl.warnings))),
)
MENU_COLUMNS = (
    Column("Product", "name", rank=1),
    Column("Brand", "brand_name"),
    Column("Category", "category"),
    Column("Price", "price", rank=2),
    Column("Stock", "stock_status"),
    Column("Quantity", "quantity"),
    Column("Since", "from_"),
)


@app.command("add")
def add(
    menu_urls: Annotated[
        list[str],
        typer.Argument(
            metavar="URL...", help="URLs of the stores' menus, for example https://dutchie.com/dispensary/SLUG."
        ),
    ],
    platform: Annotated[
        str | None, typer.Option(help="Platform of the menus; needed only for menus on shops' own sites.")
    ] = None,
) -> None:
    """Add stores by their menu URLs, all or none; workers resolve them and start their first crawls."""

    async def act(system: System, conn: Connection) -> list[Store]:
        check_platform(system.platforms, platform)
        return [(await add_store(conn, system.platforms, url, platform))[0] for url in dict.fromkeys(menu_urls)]

    for store in in_transaction(act):
        echo(f"Added store {store.id} ({store.slug}). A running worker will resolve and crawl it.")


@app.command("list")
def list_(
    out: LimitedOutput,
    state: StatesOption = None,
    platform: Annotated[str | None, typer.Option(help="Only stores on this platform.")] = None,
    freshness: Annotated[
        list[Freshness] | None, typer.Option(help="Only stores with a menu of this age (repeatable).")
    ] = None,
    crawl: Annotated[
        bool | None, typer.Option("--crawl/--no-crawl", help="Only stores with crawling enabled or disabled.")
    ] = None,
    q: Annotated[str | None, typer.Option("--search", help="Only stores with this text in name, city or slug.")] = None,
    near: NearOption = None,
    miles: MilesOption = None,
    updated_since: UpdatedOption = None,
) -> None:
    """List stores with their last crawl."""
    where = StoreFilter(
        platform=platform, states=state, crawl_enabled=crawl, freshness=freshness, q=q,
        circle=parse_circle(near, miles), updated_since=parse_updated(updated_since),
    )  # fmt: skip
    rows = read(lambda _, conn: service.list_stores(conn, where, limit=None))
    empty = "No matching stores."
    if where == StoreFilter():
        empty = "No stores yet. Add one with `menuwatch stores add URL`."
    elif state and where == StoreFilter(states=state[:1]):
        empty = f"No stores in {state[0]}."
    out.show(rows, COLUMNS, "store", empty=empty)


@app.command("show")
def show(store: StoreArgument, json: JsonOption = False) -> None:
    """Show a store: its details, crawling and data quality, and what its last crawl changed."""

    async def act(_: System, conn: Connection) -> StoreDetail:
        return await service.get_store(conn, (await stores.resolve(conn, store)).id)

    detail = read(act)
    if json:
        print_json(detail)
        return
    print_detail(detail, DETAIL_COLUMNS)
    if detail.last_crawl is not None:
        echo("", "Last crawl")
        print_detail(detail.last_crawl, LAST_CRAWL_COLUMNS, indent=2)


@app.command("match")
def match(json: JsonOption = False) -> None:
    """Link all stores and licences to locations now. A running server does this within seconds of a change."""
    run = with_system(lambda system: match_locations(system.pool))
    if json:
        print_json(dataclasses.asdict(run))
        return
    echo(
        f"{pluralize(run.menus, 'store')} at {pluralize(run.locations, 'location')}; "
        f"{run.linked_licences:,} of {pluralize(run.licences, 'licence')} of shops linked; "
        f"{pluralize(run.changed, 'location')} changed."
    )


@app.command("set")
def set_(
    store: StoreArgument,
    crawl: Annotated[bool | None, typer.Option("--crawl/--no-crawl", help="Enable or disable crawling.")] = None,
    interval: Annotated[float | None, typer.Option(help="Crawl interval in hours.")] = None,
) -> None:
    """Enable or disable crawling of a store, or set its crawl interval."""
    if crawl is None and interval is None:
        raise Refused("nothing to change: give --crawl, --no-crawl or --interval")
    _set_crawling(store, enabled=crawl, hours=None if interval is None else Decimal(str(interval)))


def _set_crawling(store: str, *, enabled: bool | None, hours: Decimal | None = None) -> None:
    async def act(_: System, conn: Connection) -> CrawlSettings:
        store_id = (await stores.resolve(conn, store)).id
        return await service.change_crawl_settings(conn, store_id, enabled=enabled, interval_hours=hours)

    result = in_transaction(act)
    every = duration(float(result.interval_hours) * 3600)
    echo(f"Crawled every {every}." if result.enabled else "Crawling disabled.")


@app.command("crawl")
def crawl_(store: StoreArgument, json: JsonOption = False) -> None:
    """Crawl a store now, ahead of scheduled work."""

    async def act(system: System, conn: Connection) -> EnqueuedTask:
        return await store_changes.crawl_now(conn, system.platforms, await stores.resolve(conn, store))

    queued = in_transaction(act)
    if json:
        print_json({"id": queued.task.id, "created": queued.created})
    else:
        echo(f"Crawl queued (task {queued.task.id})." if queued.created else f"Already queued (task {queued.task.id}).")


@app.command("pause")
def pause(store: StoreArgument) -> None:
    """Disable crawling of a store: it is not contacted until resumed."""
    _set_crawling(store, enabled=False)


@app.command("resume")
def resume(store: StoreArgument) -> None:
    """Enable crawling of a store again."""
    _set_crawling(store, enabled=True)


@app.command("edit")
def edit(
    store: StoreArgument,
    menu_url: Annotated[str, typer.Option("--menu-url", help="New menu URL, on the same platform.")],
) -> None:
    """Change the menu URL of a store. One that is not resolved yet takes the slug of the URL and is resolved again."""

    async def act(system: System, conn: Connection) -> Store:
        return await store_changes.set_menu_url(
            conn, system.platforms, (await stores.resolve(conn, store)).id, menu_url
        )

    changed = in_transaction(act)
    echo(f"Menu URL of store {changed.id} ({changed.slug}): {changed.menu_url}")


@app.command("publish")
def publish(
    store: StoreArgument,
    automatic: Annotated[
        bool, typer.Option("--automatic", help="Undo `publish` or `hide`: show the store while crawling is enabled.")
    ] = False,
) -> None:
    """Show a store on the public site, whether or not it is crawled."""
    _set_shown(store, None if automatic else True)


@app.command("hide")
def hide(store: StoreArgument) -> None:
    """Hide a store from the public site. Crawling is not affected."""
    _set_shown(store, False)


def _set_shown(store: str, shown: bool | None) -> None:
    async def act(_: System, conn: Connection) -> Store:
        return await editing.set_shown(conn, (await stores.resolve(conn, store)).id, shown)

    now = in_transaction(act)
    menu = "" if now.last_crawled_at or shown is False else ", as soon as it has a menu"
    echo(f"Store {now.id} ({now.name}) is {_VISIBILITY[now.shown]}{menu}.")


@app.command("rename")
def rename(
    store: StoreArgument,
    name: Annotated[str | None, typer.Argument(help="New name.")] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Use the platform's name again.")] = False,
) -> None:
    """Rename a store. The name overrides the platform's."""
    if (name is None) != reset:
        raise Refused("give either a new name or --reset")
    now = _set_details(store, {"name": name})
    echo(f"Store {now.id} is now named {now.name}.")


@app.command("place")
def place(
    store: StoreArgument,
    address: Annotated[str | None, typer.Option(help="Street and number.")] = None,
    city: Annotated[str | None, typer.Option(help="City.")] = None,
    state: Annotated[str | None, typer.Option(help="State or province, for example CO or ON.")] = None,
    zipcode: Annotated[str | None, typer.Option("--zip", help="ZIP or postal code.")] = None,
    latitude: Annotated[float | None, typer.Option(help="Latitude in degrees.")] = None,
    longitude: Annotated[float | None, typer.Option(help="Longitude in degrees.")] = None,
    timezone: Annotated[str | None, typer.Option(help="IANA time zone, for example America/Denver.")] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Use the platform's values again.")] = False,
) -> None:
    """Set a store's address, coordinates or time zone. They override the platform's."""
    given = {"address": address, "city": city, "state": state, "zipcode": zipcode, "timezone": timezone}
    details = {"latitude": latitude, "longitude": longitude, **given}
    details = {field: value for field, value in details.items() if value is not None}
    if bool(details) == reset:
        raise Refused("give either values to set, for example --city Denver --state CO, or --reset")
    now = _set_details(store, dict.fromkeys(("latitude", "longitude", *given)) if reset else details)
    where = _address(now) or "address unknown"
    position = "position unknown" if now.latitude is None else f"at {now.latitude:g}, {now.longitude:g}"
    echo(f"Store {now.id} ({now.name}): {where}; {position}; time zone {now.timezone or 'unknown'}.")


def _address(store: Store) -> str | None:
    return ", ".join(part for part in (store.address, store.city, store.state, store.zipcode) if part) or None


def _crawling(store: Store) -> str:
    every = duration(float(store.crawl_interval_hours) * 3600)
    return f"every {every}" if store.crawl_enabled else "disabled"


def _set_details(store: str, details: Mapping[str, str | float | None]) -> Store:
    async def act(_: System, conn: Connection) -> Store:
        return await editing.set_details(conn, (await stores.resolve(conn, store)).id, details)

    return in_transaction(act)


@app.command("remove")
def remove(
    store: StoreArgument, yes: YesOption = False, dry_run: DryRunOption = False, json: JsonOption = False
) -> None:
    """Remove a store with its payloads, products, history and alert rules, and cancel its tasks. Finished tasks stay."""

    async def act(system: System, dry: bool) -> RemovedStore:
        async with system.pool.connection() as conn:
            store_id = (await stores.resolve(conn, store)).id
            return await store_changes.remove_store(conn, system.archive, store_id, dry_run=dry)

    _confirm("Remove", act, yes, dry_run, json)


@app.command("merge")
def merge(
    store: StoreArgument,
    into: Annotated[str, typer.Argument(help="Store that stays: name, slug or ID.")],
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> None:
    """Merge a store into another row of the same shop. Payloads, products, history, finished tasks and alert rules move; the row is
    removed. If both have a catalog, it is rebuilt from the payloads of both."""

    async def act(system: System, dry: bool) -> MergedStore:
        async with system.pool.connection() as conn:
            ids = [(await stores.resolve(conn, text)).id for text in (store, into)]
        with progress_bar("Rebuilding") as progress:
            return await store_merge.merge_stores(
                system.pool, system.archive, system.platforms, *ids, dry_run=dry, progress=progress
            )

    _confirm("Merge", act, yes, dry_run, json)


Change = TypeVar("Change", RemovedStore, MergedStore)


def _confirm(verb: str, act: Callable[[System, bool], Awaitable[Change]], yes: bool, dry_run: bool, json: bool) -> None:
    """Shows what would be removed or moved, asks for confirmation, and does it."""
    changed = with_system(lambda system: act(system, True))
    # Finished tasks of a removed store stay.
    silent = {"payload_bytes", "rebuilt_from"} | ({"finished_tasks"} if isinstance(changed, RemovedStore) else set())
    counts = ", ".join(
        pluralize(n, name.removesuffix("s").replace("_", " "))
        for name, n in structs.asdict(changed.contents).items()
        if n and name not in silent
    )
    if not json:
        into = f" into store {changed.into}" if isinstance(changed, MergedStore) else ""
        echo(
            f"{verb} store {changed.id} ({changed.slug or changed.name}){into}: {counts or 'nothing else belongs to it'}."
        )
        if isinstance(changed, MergedStore) and (payloads := changed.contents.rebuilt_from):
            echo(f"Both stores have a catalog: it is rebuilt from {pluralize(payloads, 'payload')} of both.")
    if not dry_run:
        if not yes and not json:
            if not sys.stdin.isatty():
                raise Refused("no terminal for confirmation; pass --yes")
            typer.confirm("This cannot be undone. Continue?", abort=True)
        changed = with_system(lambda system: act(system, False))
    if json:
        print_json(changed)
    elif not dry_run:
        echo("Done.")


@app.command("menu")
def menu(
    store: StoreArgument,
    out: LimitedOutput,
    at: Annotated[
        str | None,
        typer.Option("--at", help="Point in time: 2026-11-20, 2026-11-20T14:30 or an age (6h); default: now."),
    ] = None,
) -> None:
    """Show a store's menu at a point in time, with prices and stock."""
    now = datetime.now(UTC)
    instant = parse_since(at, now, "--at") if at else now

    async def act(system: System, conn: Connection) -> Menu:
        store_id = (await stores.resolve(conn, store)).id
        return await history.get_menu(conn, store_id, instant, archived=ParquetPartitions(system.archive.storage))

    past = read(act)
    if out.is_table and past.crawled_at is not None:
        notice(f"As of the crawl of {past.crawled_at:%Y-%m-%d %H:%M} UTC.")
    out.show(past.items, MENU_COLUMNS, "product", empty="No menu: the store had not been crawled by then.")
