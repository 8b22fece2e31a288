"""`menuwatch stores`: which stores are watched."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from menuwatch import bootstrap
from menuwatch.cli.output import Format, ago, console, errors, print_rows
from menuwatch.cli.process import settings
from menuwatch.cli.products import parse_since
from menuwatch.core.errors import Refused
from menuwatch.exports.packs import Packs
from menuwatch.operations import audit, history
from menuwatch.operations.history import MenuAt
from menuwatch.stores import store as stores
from menuwatch.stores.store import Store
from menuwatch.tasks import store as tasks
from menuwatch.tasks.model import PRIORITY_URGENT, NewTask, Role

app = typer.Typer(help="Which stores are watched.", no_args_is_help=True)


@app.command("add")
def add(
    menu_url: Annotated[
        str, typer.Argument(help="Address of the store's menu, as https://dutchie.com/dispensary/SLUG.")
    ],
) -> None:
    """Add a store by the address of its menu; a worker resolves it and makes its first crawl."""
    store = asyncio.run(_add(menu_url))
    console.print(f"Added store {store.id} ({store.slug}). A running worker will find and crawl it.", markup=False)


@app.command("list")
def list_(
    state: Annotated[str | None, typer.Option(help="Only stores of this state or province.")] = None,
    fmt: Annotated[Format, typer.Option("--format", help="How to print.")] = Format.TABLE,
) -> None:
    """List stores with their last crawl."""
    found = asyncio.run(_list(state))
    keys = (
        "id",
        "slug",
        "name",
        "city",
        "state",
        "platform",
        "platform_dispensary_id",
        "crawl_enabled",
        "product_count",
    )
    rows: list[dict[str, Any]] = [
        {key: getattr(store, key) for key in (*keys, "last_crawled_at", "last_error", "menu_url", "timezone")}
        for store in found
    ]
    if fmt is Format.TABLE:
        rows = [row | {"last_crawled_at": ago(row["last_crawled_at"]), "place": _place(row)} for row in rows]
    print_rows(
        rows,
        (
            ("id", "#"),
            ("slug", "Slug"),
            ("name", "Name"),
            ("place", "Place"),
            ("product_count", "Products"),
            ("last_crawled_at", "Last crawl"),
            ("crawl_enabled", "Crawled"),
            ("last_error", "Last error"),
        ),
        fmt,
        empty=f"No stores in {state}." if state else "No stores yet. Add one with `menuwatch stores add URL`.",
    )


def _place(row: dict[str, Any]) -> str:
    return ", ".join(part for part in (row["city"], row["state"]) if part) or "-"


async def _add(menu_url: str) -> Store:
    async with bootstrap.open_system(settings()) as system:
        for platform in system.platforms.values():
            slug = platform.slug_of(menu_url)
            if slug is not None:
                break
        else:
            known = ", ".join(system.platforms)
            raise Refused(
                f"{menu_url!r} is no menu of a platform that Menuwatch knows ({known}): "
                "it looks like https://dutchie.com/dispensary/SLUG or …/embedded-menu/SLUG"
            )
        if not platform.hosts:
            raise Refused(
                f"{menu_url!r} is a menu of {platform.name}, which is not asked here: set {platform.name.upper()}_BASE_URL, "
                "or put recorded answers in with `menuwatch replay`"
            )
        async with system.pool.connection() as conn, conn.transaction():
            store = await stores.add_by_url(conn, platform=platform.name, slug=slug, menu_url=menu_url)
            await audit.record(conn, "store_added", ("store", store.id), platform=platform.name, slug=slug)
            await tasks.enqueue(
                conn,
                [
                    NewTask(
                        role=Role.ENTRY_POINT_DISCOVERY,
                        dispensary_id=store.id,
                        platform=platform.name,
                        priority=PRIORITY_URGENT,
                    )
                ],
            )
        return store


@app.command("menu")
def menu(
    store: Annotated[str, typer.Argument(help="The store: its slug, platform id or number.")],
    at: Annotated[
        str | None, typer.Option("--at", help="The moment: 2026-11-20, 2026-11-20T14:30 or an age (6h); left out, now.")
    ] = None,
    fmt: Annotated[Format, typer.Option("--format", help="How to print.")] = Format.TABLE,
) -> None:
    """Show a store's menu as it was at a moment, with the prices and stock it had then."""
    now = datetime.now(UTC)
    instant = parse_since(at, now, "--at") if at else now
    found = asyncio.run(_menu(store, instant))
    if fmt is Format.TABLE and found.crawl is not None:
        errors.print(f"As the crawl of {found.crawl['crawled_at']:%Y-%m-%d %H:%M} UTC saw it.", highlight=False)
    columns = (
        ("name", "Product"),
        ("brand_name", "Brand"),
        ("category", "Category"),
        ("price", "Price"),
        ("stock_status", "Stock"),
        ("quantity", "Quantity"),
        ("from", "Since"),
    )
    print_rows(found.items, columns, fmt, empty="No menu: the store was not crawled by then.", keep=("name", "price"))


async def _menu(text: str, instant: datetime) -> MenuAt:
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn:
        store = await stores.find(conn, text)
        if store is None:
            raise Refused(f"there is no store {text!r}; `menuwatch stores list` shows those there are")
        return await history.menu_at(conn, store.id, instant, packs=Packs(system.archive.root))


async def _list(state: str | None) -> list[Store]:
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn:
        return await stores.page(conn, state=state, limit=1_000_000)
