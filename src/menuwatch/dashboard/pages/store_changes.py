"""Editing the menu URL of a store, merging it into another one, and removing it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.core.errors import Conflict, InvalidField, Refused
from menuwatch.core.format import pluralize
from menuwatch.dashboard import screen
from menuwatch.pipeline import store_changes, store_merge
from menuwatch.pipeline.store_merge import MergedStore
from menuwatch.stores import service as store_service
from menuwatch.stores import store as stores
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppContext, AppDep, ReadConn, WriteConn
from menuwatch.web.forms import FormInput, fields

router = APIRouter(prefix="/stores/{store_id}", dependencies=[require(Permission.STORES)])

StorePath = Annotated[int, Path(ge=1, le=2**31 - 1)]


@router.get("/edit")
async def edit(request: Request, conn: ReadConn, store_id: StorePath) -> Response:
    """The form for the menu URL."""
    store = await store_service.get_store(conn, store_id)
    form = FormInput({"menu_url": store.menu_url or ""})
    return screen.render(request, "stores/edit.html", {"store": store, "form": form})


@router.post("/edit")
async def save(
    request: Request,
    form: Annotated[FormInput, fields("menu_url")],
    system: AppDep,
    conn: WriteConn,
    store_id: StorePath,
) -> Response:
    """Changes the menu URL."""
    store = await store_service.get_store(conn, store_id)
    try:
        if (menu_url := form.text("menu_url")) is None:
            raise InvalidField("menu_url", "enter the menu URL, e.g. https://dutchie.com/dispensary/<slug>")
        await store_changes.set_menu_url(conn, system.platforms, store_id, menu_url[:2000])
    except InvalidField as error:
        form.add_error("menu_url", str(error))
        return screen.render(request, "stores/edit.html", {"store": store, "form": form})
    return screen.flash_to(request, f"/stores/{store_id}", "Menu URL saved.")


@router.get("/remove")
async def preview_removal(request: Request, conn: ReadConn, store_id: StorePath) -> Response:
    """What goes and what stays."""
    store = await store_service.get_store(conn, store_id)
    context = {"store": store, "contents": await store_changes.get_contents(conn, store_id)}
    return screen.render(request, "stores/remove.html", context)


@router.post("/remove")
async def remove(request: Request, system: AppDep, store_id: StorePath) -> Response:
    """Removes the store. The service commits before it deletes files."""
    async with system.pool.connection(timeout=10) as conn:
        removed = await store_changes.remove_store(conn, system.archive, store_id)
    return screen.flash_to(request, "/stores", f"Store {removed.name} removed.")


@router.get("/merge")
async def preview_merge(
    request: Request,
    system: AppDep,
    conn: ReadConn,
    store_id: StorePath,
    into: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Asks for the other store, then shows what moves."""
    store = await store_service.get_store(conn, store_id)
    form = FormInput({"into": into.replace("\x00", "")})
    target = contents = None
    if (text := form.text("into")) is not None:
        try:
            target = await stores.resolve(conn, text)
            contents = (await _merge(system, store_id, target.id, dry_run=True)).contents
        except (Refused, Conflict) as error:
            form.add_error("into", str(error))
    context = {"store": store, "form": form, "target": target, "contents": contents}
    return screen.render(request, "stores/merge.html", context)


@router.post("/merge")
async def merge(
    request: Request, form: Annotated[FormInput, fields("into")], system: AppDep, store_id: StorePath
) -> Response:
    """Merges the store into the one of the preview."""
    into = form.parse_int("into", low=1, high=2**31 - 1)
    if into is None:
        raise Conflict("choose the store to merge into")
    merged = await _merge(system, store_id, into)
    moved = f"{pluralize(merged.contents.payloads, 'payload')} and {pluralize(merged.contents.crawls, 'crawl')} moved."
    return screen.flash_to(request, f"/stores/{into}", f"{merged.name} was merged into this store. {moved}")


async def _merge(system: AppContext, store_id: int, into: int, *, dry_run: bool = False) -> MergedStore:
    return await store_merge.merge_stores(
        system.pool, system.archive, system.platforms, store_id, into, dry_run=dry_run
    )
