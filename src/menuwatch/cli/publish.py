"""`menuwatch publish`: the database as a versioned open dataset."""

from __future__ import annotations

from typing import Annotated

import typer

from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.cli.options import JsonOption
from menuwatch.cli.output import notice, print_json, progress_bar
from menuwatch.cli.startup import read
from menuwatch.core.clock import SystemClock
from menuwatch.core.errors import Refused
from menuwatch.core.format import pluralize, size
from menuwatch.db.pool import Connection
from menuwatch.exports import ducklake
from menuwatch.ops import publish as publishing
from menuwatch.ops.publish import Published
from menuwatch.system import System


def publish(
    where: Annotated[str, typer.Argument(metavar="DIR|s3://BUCKET/PREFIX", help="Directory or bucket of the dataset.")],
    title: Annotated[str, typer.Option(help="Title of the dataset.")] = "Dispensary menus and prices",
    licence: Annotated[
        str | None,
        typer.Option(help="Licence that you grant: a name such as CC-BY-4.0, or the URL of its text. Default: none."),
    ] = None,
    keep_versions: Annotated[
        int, typer.Option(min=1, help="Number of versions whose files are kept, including the new one.")
    ] = 2,
    json: JsonOption = False,
) -> None:
    """Publish prices, menus, products and stores as a dataset of Parquet files with a description, a data dictionary and a DuckLake
    catalog. Packed history is included. Only what changed is read and written; the new version appears when it is complete."""
    if not title.strip():
        raise Refused("--title is empty: give the dataset a title")
    if licence is not None and not licence.strip():
        raise Refused("--licence is empty: name a licence such as CC-BY-4.0, or omit it")

    async def act(system: System, conn: Connection) -> Published:
        destination = publishing.open_destination(where, system.settings.s3_endpoint)
        with progress_bar("Publishing", remaining=False) as update:
            rows = 0

            def on_progress(more: int) -> None:
                nonlocal rows
                rows += more
                update(rows, description="Publishing: rows")

            return await publishing.publish(
                conn, ParquetPartitions(system.archive.storage), destination, title=title, licence=licence,
                keep_versions=keep_versions, now=SystemClock().now(), on_progress=on_progress,
            )  # fmt: skip

    done = read(act)
    if json:
        print_json(done)
        return
    if not done.changed:
        notice(f"Nothing changed: {done.destination} stays at version {done.version}")
        return
    notice(
        f"Published version {done.version} to {done.destination}: {pluralize(sum(done.rows.values()), 'row')} in "
        f"{pluralize(done.files, 'file')}, {size(done.bytes)}; read {pluralize(done.rows_read, 'row')}, wrote "
        f"{pluralize(done.written, 'file')}, removed {done.removed}"
    )
    if not done.catalogue:
        notice(f"The DuckLake catalog was left out: it needs {ducklake.INSTALL}")
