"""`menuwatch storage`: move all files between a folder and a bucket."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec
import typer

from menuwatch.cli.options import Commands, JsonOption
from menuwatch.cli.output import echo, print_json, progress_bar
from menuwatch.cli.startup import in_connection
from menuwatch.core.errors import Refused
from menuwatch.core.format import pluralize
from menuwatch.db.pool import Connection
from menuwatch.ops import storage_move
from menuwatch.ops.storage_move import MoveResult
from menuwatch.storage.service import open_storage
from menuwatch.system import System

app = Commands("Move payloads, images, crawled pages and packed history between a folder and a bucket.")


class Driver(StrEnum):
    """Values of STORAGE_DRIVER."""

    LOCAL = "local"
    S3 = "s3"


@app.callback()
def group() -> None:
    """Keeps `move` a command of the group."""


@app.command("move")
def move(
    to: Annotated[Driver, typer.Option("--to", help="Storage to copy to; the other one is the source.")],
    delete: Annotated[
        bool, typer.Option("--delete", help="Remove the objects of the source after all were verified.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Copy all objects to the other storage and verify them. Set STORAGE_DRIVER afterwards. Refused while workers run. If it is
    interrupted, run it again: objects that are already equal are not copied again."""
    other = Driver.S3 if to is Driver.LOCAL else Driver.LOCAL

    async def act(system: System, conn: Connection) -> MoveResult:
        if system.settings.s3_bucket is None:
            raise Refused("S3_BUCKET is not set: set S3_BUCKET, S3_ENDPOINT and the AWS credentials")
        source, target = (open_storage(system.settings, str(driver)) for driver in (other, to))
        with progress_bar("Copying files") as update:
            return await storage_move.move(conn, source, target, delete=delete, progress=update)

    result = in_connection(act)
    if json:
        print_json(msgspec.to_builtins(result))
        return
    echo(
        f"{pluralize(result.objects, 'file')} of {result.source} ({result.bytes:,} bytes) are in {result.target}: "
        f"{result.copied} copied ({result.copied_bytes:,} bytes), {result.removed} removed from the source."
    )
    echo(f"Now set STORAGE_DRIVER={to} for every server, worker and command.")
