"""`menuwatch explain`: why a task is where it is, and how it got there."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Annotated

import typer

from menuwatch import bootstrap
from menuwatch.cli import story_sheet
from menuwatch.cli.output import console, plain, print_json
from menuwatch.cli.process import settings
from menuwatch.operations import explain as reasons
from menuwatch.operations import story as stories
from menuwatch.operations import tasks
from menuwatch.operations.explanation import Explanation
from menuwatch.operations.reading import Row
from menuwatch.operations.story import Story
from menuwatch.stores import store as stores


def explain(
    task_id: Annotated[int, typer.Argument(help="Number of the task.", metavar="TASK", min=1, max=2**63 - 1)],
    everything: Annotated[bool, typer.Option("--all", help="Every request, also where all went well.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Tell the story of a task: why it is where it is, what enqueued it, each request it made, and what followed."""
    task, why, story, store = asyncio.run(_explain(task_id))
    if json:
        print_json({**dataclasses.asdict(why), "story": story})
        return
    for line in story_sheet.lines(task, why, story, store, everything=everything, width=console.width):
        console.print(plain(line), markup=False, soft_wrap=True)


async def _explain(task_id: int) -> tuple[Row, Explanation, Story, str | None]:
    found = settings()
    async with bootstrap.open_system(found) as system, system.pool.connection() as conn:
        task = await tasks.one(conn, task_id)
        why = await reasons.explain(
            conn,
            task_id,
            heartbeat_seconds=found.heartbeat_interval_ms / 1000,
            stale_minutes=found.stale_after_minutes,
            asked={name: platform.hosts for name, platform in system.platforms.items()},
        )
        store = None if task["dispensary_id"] is None else await stores.get(conn, task["dispensary_id"])
        return task, why, await stories.story(conn, task_id), None if store is None else store.name
