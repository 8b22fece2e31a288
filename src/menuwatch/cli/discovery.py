"""`menuwatch discovery`: in which states stores are discovered."""

from __future__ import annotations

from typing import Annotated

import typer

from menuwatch.cli.options import Output
from menuwatch.cli.output import Column, Format, echo, print_json, print_list
from menuwatch.cli.startup import with_system
from menuwatch.core.errors import Refused
from menuwatch.queue.schedules.discovery import DiscoveryChoice, choose_states, get_discovery
from menuwatch.system import System, ensure_default_schedules

COLUMNS = (
    Column("State", "code"),
    Column("Name", "name", rank=1),
    Column("Discovered", "chosen"),
    Column("Known stores", "stores"),
    Column("Requests/day", "requests_per_day"),
)


def discovery(
    out: Output,
    states: Annotated[
        list[str] | None, typer.Argument(help="States and provinces (two letters), such as AZ NV.", metavar="[STATE]…")
    ] = None,
    everywhere: Annotated[bool, typer.Option("--all", help="Discover the whole platform.")] = False,
    off: Annotated[bool, typer.Option("--off", help="Discover no stores.")] = False,
    platform: Annotated[str | None, typer.Option(help="Platform; the first one by default.")] = None,
) -> None:
    """Choose the states in which stores are discovered, or show the choice. Discovery is off until states are chosen; every store
    that is found is crawled every four hours."""
    if sum([bool(states), everywhere, off]) > 1:
        raise Refused("give states, --all or --off")

    async def run(system: System) -> DiscoveryChoice:
        names = tuple(system.platforms)
        await ensure_default_schedules(system)
        async with system.pool.connection() as conn, conn.transaction():
            if not (states or everywhere or off):
                return await get_discovery(conn, platform or names[0], platforms=names)
            return await choose_states(
                conn,
                platform or names[0],
                states or [],
                all_states=everywhere,
                platforms=names,
                now=system.clock.now(),
            )

    choice = with_system(run)
    if out.format is Format.JSON:
        print_json(choice)
        return
    shown = [state for state in choice.states if state.chosen or state.stores]
    if shown:
        print_list(shown, COLUMNS, out.format, empty="")
    if out.is_table:
        echo(choice.summary)
