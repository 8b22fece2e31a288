"""Acting on tasks that are there: on those that are numbered, one by one, or on all that a filter selects, once the person agrees."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated

import typer

from menuwatch import bootstrap
from menuwatch.cli.output import console, errors, plain, plural, print_json
from menuwatch.cli.process import settings
from menuwatch.cli.task_filter import Chosen
from menuwatch.core.errors import Refused
from menuwatch.db.pool import Connection
from menuwatch.operations.task_control import Bulk
from menuwatch.operations.tasks import TaskFilter

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
DryOption = Annotated[bool, typer.Option("--dry-run", help="Only say how many it would be.")]


def act(
    verb: str,
    done: str,
    ids: Sequence[int] | None,
    chosen: Chosen,
    one: Callable[[Connection, int], Awaitable[str]],
    many: Callable[[Connection, TaskFilter, bool], Awaitable[Bulk]],
    *,
    dry_run: bool,
    yes: bool,
    json: bool,
) -> None:
    """Does `one` to each of the numbered tasks, or `many` to what was chosen, and says what came of it.

    `many` is told whether to try only. Raises Refused where it is not clear which tasks are meant, and Exit where the person said no
    or some of the numbered tasks could not be acted on; the others have been.
    """
    if ids:
        if chosen.given() or chosen.everything:
            raise Refused("numbers of tasks stand alone: leave the filter out, or the numbers")
        if dry_run:
            raise Refused("--dry-run is for filters: which tasks these are is known")
        _finish_ids(asyncio.run(_each(ids, one)), json)
        return
    if chosen.given() == chosen.everything:
        raise Refused(
            f"{verb} which tasks? Give their numbers, or a filter (--role, --status, --store, --worker, --error), or --all"
        )
    result = asyncio.run(_bulk(verb, chosen, many, dry_run=dry_run, yes=yes))
    if result is None:
        raise typer.Exit(1)
    if json:
        print_json(dataclasses.asdict(result))
        return
    what = f"{plural(result.would, 'task')} would be" if result.dry_run else plural(result.done, "task")
    passed = ", ".join(f"{n:,} {reason}" for reason, n in result.skipped.items())
    console.print(f"{what} {done}" + (f"; passed over: {passed}." if passed else "."), markup=False)


def _finish_ids(outcomes: Sequence[tuple[int, str, bool]], json: bool) -> None:
    failed = [said for _, said, good in outcomes if not good]
    if len(failed) == len(outcomes) == 1:
        raise Refused(failed[0])
    if json:
        print_json([{"id": task_id, "done": good, "said": said} for task_id, said, good in outcomes])
    for _, said, good in outcomes:
        if not good:
            errors.print(f"menuwatch: {plain(said)}", markup=False, soft_wrap=True)
        elif not json:
            console.print(said, markup=False)
    if failed:
        raise typer.Exit(1)


async def _each(ids: Sequence[int], one: Callable[[Connection, int], Awaitable[str]]) -> list[tuple[int, str, bool]]:
    outcomes = []
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn:
        for task_id in dict.fromkeys(ids):
            try:
                async with conn.transaction():
                    outcomes.append((task_id, await one(conn, task_id), True))
            except Refused as error:
                outcomes.append((task_id, str(error), False))
    return outcomes


async def _bulk(
    verb: str,
    chosen: Chosen,
    many: Callable[[Connection, TaskFilter, bool], Awaitable[Bulk]],
    *,
    dry_run: bool,
    yes: bool,
) -> Bulk | None:
    """None where the person says no."""
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn:
        where = await chosen.filter(conn)
        found = await many(conn, where, True)
        if dry_run or found.would == 0:
            return dataclasses.replace(found, dry_run=dry_run)
        if not yes:
            question = f"{verb.capitalize()} {plural(found.would, 'task')}?"
            if not sys.stdin.isatty():
                raise Refused(f"{question} Nobody is here to answer: add --yes")
            if not await asyncio.to_thread(typer.confirm, question, err=True):
                return None
        async with conn.transaction():
            return await many(conn, where, False)
