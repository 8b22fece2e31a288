"""`menuwatch images`: images of products and logos of brands."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from menuwatch.cli.options import Commands, JsonOption, Output, StoreOption, find_store_id, limit_option
from menuwatch.cli.output import Column, echo, notice, print_json, print_list, progress_bar
from menuwatch.cli.startup import load_settings, read, with_system
from menuwatch.core.errors import Refused
from menuwatch.core.format import pluralize
from menuwatch.db.pool import Connection
from menuwatch.db.query import Row
from menuwatch.images import service
from menuwatch.images import store as images
from menuwatch.images.service import VerifyReport
from menuwatch.system import System

app = Commands("Manage product images and brand logos.")

COLUMNS = (
    Column("#", "id"),
    Column("Product", "product_id"),
    Column("Status", "status"),
    Column("Owner", lambda row: row["brand"] or row["name"]),
    Column("Width", "width"),
    Column("Height", "height"),
    Column("Bytes", "bytes"),
    Column("Reason", "error", rank=1),
    Column("File", "path"),
)


@app.command("status")
def status(json: JsonOption = False) -> None:
    """Show how many images are waiting, stored and failed."""
    counts = read(lambda _, conn: images.counts(conn))
    if json:
        print_json(counts)
        return
    echo(
        f"{counts.stored:,} stored ({pluralize(counts.images, 'image')} of {counts.bytes / 1000000.0:,.1f} MB), "
        f"{counts.queued + counts.waiting:,} waiting, {counts.failed:,} failed"
    )


@app.command("list")
def list_(
    out: Output,
    store: StoreOption = None,
    status: Annotated[str | None, typer.Option(help="Only this status: queued, waiting, stored or failed.")] = None,
    limit: Annotated[int, limit_option()] = 50,
) -> None:
    """List images with their status, newest first."""

    async def act(_: System, conn: Connection) -> list[Row]:
        return await service.list_images(
            conn, status=status, dispensary_id=await find_store_id(conn, store), limit=limit
        )

    print_list(read(act), COLUMNS, out.format, empty="No matching images.")


@app.command("backfill")
def backfill(
    store: StoreOption = None,
    failed: Annotated[bool, typer.Option("--failed", help="Retry failed images too.")] = False,
    json: JsonOption = False,
) -> None:
    """Queue all missing images; workers download them."""

    async def act(system: System) -> tuple[int, int]:
        async with system.pool.connection() as conn:
            store_id = await find_store_id(conn, store)
        with progress_bar("Stores") as update:
            return await service.backfill(system.pool, dispensary_id=store_id, failed=failed, report=update)

    queued, retried = with_system(act)
    if json:
        print_json({"queued": queued, "retried": retried})
        return
    again = f", {retried:,} to be retried" if failed else ""
    echo(
        f"{pluralize(queued, 'image')} queued{again}. Workers download them; see `menuwatch images status` for progress."
    )


@app.command("verify")
def verify(
    deep: Annotated[bool, typer.Option("--deep", help="Decode every file (slow).")] = False,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Download missing or damaged files again, remove orphaned ones."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Compare files with the database. Exit code 1 if they differ and nothing was repaired."""
    from menuwatch.images.files import ImageFiles

    async def act(system: System) -> VerifyReport:
        async with system.pool.connection() as conn:
            total = (await images.counts(conn)).stored
        files = ImageFiles(system.archive.storage)
        with progress_bar("Files", total=total) as update:
            return await service.verify(system.pool, files, deep=deep, repair=repair, report=update)

    report = with_system(act)
    kinds = {name: getattr(report, name) for name in ("missing", "damaged", "unlisted", "orphaned")}
    if json:
        more = {"orphaned_bytes": report.orphaned_bytes, "repaired": report.repaired, "examples": report.examples}
        print_json({"checked": report.checked, **kinds, **more})
    else:
        echo(f"{pluralize(report.checked, 'file')} checked: " + ", ".join(f"{n:,} {kind}" for kind, n in kinds.items()))
        echo(*(f"  {kind}: {path}" for kind, paths in report.examples.items() for path in paths))
        if report.repaired:
            echo(f"{report.repaired:,} repaired; workers download missing files.")
    if not report.is_whole and not repair:
        if not json:
            notice("Run `menuwatch images verify --repair` to fix this.")
        raise typer.Exit(1)


@app.command("sign")
def sign(
    path: Annotated[str, typer.Argument(help="Path of the image, as in `local_image_path`.")],
    params: Annotated[str, typer.Argument(help="Query parameters: `w=300&h=300&fit=contain`.")] = "",
    hours: Annotated[float | None, typer.Option(min=0.001, help="Validity in hours; default: unlimited.")] = None,
) -> None:
    """Print a signed image URL, for servers with IMAGE_URL_KEY."""
    from menuwatch.images.files import FOLDER, BadPath, parts_of
    from menuwatch.images.params import BadParameters, parse
    from menuwatch.images.signing import signed

    keys = load_settings().image_url_key
    if not keys:
        raise Refused("IMAGE_URL_KEY is not set, so URLs need no signature; `menuwatch proxies key` generates a key")
    try:
        bare = "/".join(parts_of(path.removeprefix("/img/").removeprefix(f"{FOLDER}/")))
        pairs = [(name, value) for name, _, value in (part.partition("=") for part in params.split("&") if part)]
        parsed = parse(pairs)
    except BadPath as error:
        raise Refused(f"{path!r} is not an image path: {error}") from error
    except BadParameters as error:
        raise Refused(str(error)) from error
    echo(signed(keys[0], bare, parsed, None if hours is None else int(time.time() + hours * 3600)))
