"""Editing a store, merging it into another one, and removing it."""

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
from menuwatch.stores import editing
from menuwatch.stores import service as store_service
from menuwatch.stores import store as stores
from menuwatch.stores.store import Store
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppContext, AppDep, ReadConn, WriteConn
from menuwatch.web.forms import FormInput, fields

router = APIRouter(prefix="/stores/{store_id}", dependencies=[require(Permission.STORES)])

StorePath = Annotated[int, Path(ge=1, le=2**31 - 1)]


_SHOWN = {"": None, "yes": True, "no": False}
"""Choices of the form: whether the public site shows the store; automatic is empty."""


@router.get("/edit")
async def edit(request: Request, conn: ReadConn, store_id: StorePath) -> Response:
    """The form for the menu URL, the public site, name and place."""
    store = await store_service.get_store(conn, store_id)
    return _edit(request, store, FormInput({}))


def _edit(request: Request, store: Store, form: FormInput) -> Response:
    """The form with the user's input; the other fields have the store's current values."""
    values = _values(store)
    were = {f"was_{name}": values[name] for name in editing.DETAILS}
    form = FormInput({"menu_url": store.menu_url or "", **values, **were, **form.values}, form.errors)
    return screen.render(
        request,
        "stores/edit.html",
        {"store": store, "form": form, "details": editing.DETAILS},
        status=200 if form.ok else 422,
    )


def _values(store: Store) -> dict[str, str]:
    values = {name: getattr(store, name) for name in editing.DETAILS}
    shown = next(text for text, value in _SHOWN.items() if value is store.shown)
    return {"shown": shown, **{name: "" if value is None else str(value) for name, value in values.items()}}


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
        return _edit(request, store, form)
    return screen.flash_to(request, f"/stores/{store_id}", "Menu URL saved.")


@router.post("/details")
async def save_details(
    request: Request,
    form: Annotated[FormInput, fields("shown", *editing.DETAILS, *(f"was_{name}" for name in editing.DETAILS))],
    conn: WriteConn,
    store_id: StorePath,
) -> Response:
    """Saves the store's visibility on the public site, its name, address and position. Only fields that differ from what the form
    showed (`was_…`) are saved as set by hand, because a crawl may have changed the store in the meantime."""
    store = await store_service.get_store(conn, store_id)
    changed = {name: form.text(name) for name in editing.DETAILS if form.text(name) != form.text(f"was_{name}")}
    for name, value in changed.items():
        if value is None and name not in store.details_by_person:
            form.add_error(name, "The platform’s value cannot be cleared. Enter another value or leave it unchanged.")
    if "latitude" in changed or "longitude" in changed:
        changed |= {name: form.text(name) for name in ("latitude", "longitude")}
    details: dict[str, str | float | None] = dict(changed)
    for name in ("latitude", "longitude"):
        if (text := changed.get(name)) is not None:
            try:
                details[name] = float(text)
            except ValueError:
                form.add_error(name, "enter degrees, e.g. 39.7392")
    if form.value("shown") not in _SHOWN:
        form.add_error("shown", "choose automatic, shown or hidden")
    if form.ok:
        try:
            async with conn.transaction():
                await editing.set_shown(conn, store_id, _SHOWN[form.value("shown")])
                await editing.set_details(conn, store_id, details)
        except InvalidField as error:
            form.add_error(error.field, str(error))
    if not form.ok:
        return _edit(request, store, form)
    return screen.flash_to(request, f"/stores/{store_id}", "Details saved.")


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
