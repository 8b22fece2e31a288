"""`menuwatch workers scale`: how many workers there are, and having more or fewer."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from typing import Annotated

import typer

from menuwatch import bootstrap
from menuwatch.bootstrap import System
from menuwatch.cli.output import console, plural, print_json
from menuwatch.cli.process import settings
from menuwatch.cluster.base import Replicas
from menuwatch.core.errors import Refused, Transient
from menuwatch.operations import scaling
from menuwatch.operations.refusals import Conflict

_PATIENCE = 300.0
"""Seconds that `--wait` waits: a task that is under way may take long."""
_LOOK = 0.2
_DIGITS = 10


def scale(
    number: Annotated[
        str | None,
        typer.Argument(
            metavar="[N|up|down]", help="How many to have, or one more or fewer. Left out: says how it stands."
        ),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Return when that many run, not when it is ordered.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Have more or fewer workers, or see how many there are.

    Workers that are too many finish what they have before they leave.
    """
    found = asyncio.run(_scale(number, wait))
    if json:
        print_json(dataclasses.asdict(found))
    else:
        console.print(_sentence(found), markup=False, soft_wrap=True)


def _sentence(found: Replicas) -> str:
    wanted = "" if found.desired is None or found.desired == found.current else f", {found.desired:,} wanted"
    doing = f"; {found.doing}" if found.doing else ""
    limits = f"From {found.low:,} to {found.high:,} are allowed."
    why_not = "" if found.why_not is None else f" Not from here: {found.why_not}."
    return f"{plural(found.current, found.unit)} running{wanted}{doing}. {limits}{why_not}"


async def _scale(number: str | None, wait: bool) -> Replicas:
    async with bootstrap.open_system(settings()) as system:
        if number is not None:
            found = await _order(system, number)
        else:
            async with system.pool.connection() as conn:
                found = await scaling.replicas(conn, bootstrap.scaler(system.settings), system.settings)
        return await _settled(system) if wait and found.why_not is None else found


async def _order(system: System, number: str) -> Replicas:
    scaler = bootstrap.scaler(system.settings)
    async with system.pool.connection() as conn, conn.transaction():
        if number in ("up", "down"):
            there = await scaler.replicas(conn, ordering=True)
            if there.why_not is not None:
                raise Conflict(there.why_not)
            wanted = (there.current if there.desired is None else there.desired) + (1 if number == "up" else -1)
        elif number.removeprefix("-").isdecimal() and number.isascii() and len(number) <= _DIGITS:
            wanted = int(number)
        else:
            there_is = await scaling.replicas(conn, scaler, system.settings)
            raise Refused(
                f"{number!r} is no number of {there_is.unit}s: from {there_is.low:,} to {there_is.high:,} are allowed, or up, or down"
            )
        return await scaling.scale(conn, scaler, system.settings, wanted)


async def _settled(system: System) -> Replicas:
    scaler, deadline = bootstrap.scaler(system.settings), time.monotonic() + _PATIENCE
    while True:
        async with system.pool.connection() as conn:
            found = await scaling.replicas(conn, scaler, system.settings)
        if found.why_not is not None:
            raise Conflict(found.why_not)
        if found.current == found.desired and found.doing is None:
            return found
        if time.monotonic() > deadline:
            raise Transient(f"after {_PATIENCE:g} seconds it is not so yet: {_sentence(found)}")
        await asyncio.sleep(_LOOK)
