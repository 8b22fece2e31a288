"""`menuwatch images`: pictures of products and logos of brands."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from menuwatch import bootstrap
from menuwatch.bootstrap import System
from menuwatch.cli.output import Format, ago, console, errors, plain, plural, print_json, print_rows
from menuwatch.cli.process import settings
from menuwatch.core.errors import Refused
from menuwatch.operations import images as operations
from menuwatch.operations.images import Verified
from menuwatch.stores import store as stores

app = typer.Typer(help="Pictures of products and logos of brands.", no_args_is_help=True)

StoreOption = Annotated[str | None, typer.Option(help="Only this store: its slug, platform id or number.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("status")
def status(json: JsonOption = False) -> None:
    """How many pictures are wanted, stored and given up."""
    found = asyncio.run(_status())
    if json:
        print_json(found)
        return
    console.print(
        f"{found['stored']:,} stored ({plural(found['images'], 'picture')} of {found['bytes'] / 1e6:,.1f} MB), "
        f"{found['queued'] + found['waiting']:,} waiting, {found['failed']:,} given up"
    )


@app.command("list")
def list_(
    store: StoreOption = None,
    status: Annotated[str | None, typer.Option(help="Only these: queued, waiting, stored or failed.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many, newest first.")] = 50,
    fmt: Annotated[Format, typer.Option("--format", help="How to print.")] = Format.TABLE,
) -> None:
    """List who wants which picture, and what came of it."""
    rows = asyncio.run(_list(store, status, limit))
    if fmt is Format.TABLE:
        rows = [row | {"whose": row["brand"] or row["name"], "settled_at": ago(row["settled_at"])} for row in rows]
    columns = (
        ("id", "#"),
        ("product_id", "Product"),
        ("status", "Status"),
        ("whose", "Of"),
        ("width", "Width"),
        ("height", "Height"),
        ("bytes", "Bytes"),
        ("error", "Reason"),
        ("path", "File"),
    )
    print_rows(rows, columns, fmt, empty="No pictures of that kind.", keep=("error",))


@app.command("backfill")
def backfill(
    store: StoreOption = None,
    failed: Annotated[bool, typer.Option("--failed", help="Ask again for those that were given up.")] = False,
    json: JsonOption = False,
) -> None:
    """Ask for every picture that is missing; workers download them."""
    found = asyncio.run(_backfill(store, failed))
    if json:
        print_json(found)
        return
    again = f", {found['retried']:,} asked for again" if failed else ""
    console.print(
        f"{plural(found['queued'], 'picture')} queued{again}. Workers download them; `menuwatch images status` says how far they are."
    )


@app.command("verify")
def verify(
    deep: Annotated[bool, typer.Option("--deep", help="Decode every file, which takes a while.")] = False,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Download again what is missing or damaged, remove files that nobody names."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Compare files with rows. Exit code 1 where they disagree and nothing was repaired."""
    found = asyncio.run(_verify(deep, repair))
    kinds = {name: getattr(found, name) for name in ("missing", "damaged", "unlisted", "orphaned")}
    if json:
        more = {"orphaned_bytes": found.orphaned_bytes, "repaired": found.repaired, "examples": found.examples}
        print_json({"checked": found.checked, **kinds, **more})
    else:
        console.print(
            f"{plural(found.checked, 'file')} checked: " + ", ".join(f"{n:,} {kind}" for kind, n in kinds.items())
        )
        for kind, paths in found.examples.items():
            for path in paths:
                console.print(f"  {kind}: {plain(path)}", markup=False)
        if found.repaired:
            console.print(f"{found.repaired:,} repaired; what is missing is downloaded by the next free worker.")
    if not found.is_whole and not repair:
        if not json:
            errors.print("`menuwatch images verify --repair` puts this right.")
        raise typer.Exit(1)


@app.command("sign")
def sign(
    path: Annotated[str, typer.Argument(help="The picture's path, as `local_image_path` has it.")],
    params: Annotated[str, typer.Argument(help="Parameters as in an address: `w=300&h=300&fit=contain`.")] = "",
    hours: Annotated[
        float | None, typer.Option(min=0.001, help="Hours for which the address holds; for ever when left out.")
    ] = None,
) -> None:
    """Print a signed address of a picture, for servers with IMAGE_URL_KEY."""
    from menuwatch.imaging.files import FOLDER, BadPath, parts_of
    from menuwatch.imaging.params import BadParameters, parse
    from menuwatch.imaging.signing import signed

    keys = settings().image_url_key
    if not keys:
        raise Refused("IMAGE_URL_KEY is not set, so addresses need no signature; `menuwatch proxies key` makes a key")
    try:
        bare = "/".join(parts_of(path.removeprefix("/img/").removeprefix(f"{FOLDER}/")))
        pairs = [(name, value) for name, _, value in (part.partition("=") for part in params.split("&") if part)]
        found = parse(pairs)
    except BadPath as error:
        raise Refused(f"{path!r} is no path of a picture: {error}") from error
    except BadParameters as error:
        raise Refused(str(error)) from error
    expires = None if hours is None else int(time.time() + hours * 3600)
    console.print(signed(keys[0], bare, found, expires), markup=False, soft_wrap=True)


async def _store_id(system: System, store: str | None) -> int | None:
    if store is None:
        return None
    async with system.pool.connection() as conn:
        found = await stores.find(conn, store)
    if found is None:
        raise Refused(f"--store {store}: there is no such store; `menuwatch stores list` shows those there are")
    return found.id


async def _status() -> dict[str, int]:
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn:
        return await operations.counts(conn)


async def _list(store: str | None, status: str | None, limit: int) -> list[dict[str, Any]]:
    async with bootstrap.open_system(settings()) as system:
        store_id = await _store_id(system, store)
        async with system.pool.connection() as conn:
            return await operations.page(conn, status=status, dispensary_id=store_id, limit=limit)


async def _backfill(store: str | None, failed: bool) -> dict[str, int]:
    async with bootstrap.open_system(settings()) as system:
        store_id = await _store_id(system, store)
        with _progress() as progress:
            bar = progress.add_task("Stores", total=None)
            return await operations.backfill(
                system.pool,
                dispensary_id=store_id,
                failed=failed,
                report=lambda done, total: progress.update(bar, completed=done, total=total),
            )


async def _verify(deep: bool, repair: bool) -> Verified:
    from menuwatch.imaging.files import ImageFiles

    async with bootstrap.open_system(settings()) as system:
        async with system.pool.connection() as conn:
            total = (await operations.counts(conn))["stored"]
        with _progress() as progress:
            bar = progress.add_task("Files", total=total)
            return await operations.verify(
                system.pool,
                ImageFiles(system.settings.storage),
                deep=deep,
                repair=repair,
                report=lambda checked: progress.update(bar, completed=checked),
            )


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal)
