"""`python -m menuwatch.sim`: the simulated market as a process of its own.

Prints one line of JSON with its addresses and proxies when everything listens, and ends when standard input is closed or on
SIGTERM or SIGINT. Standard input that is at its end before it begins (/dev/null, a file) is refused.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from menuwatch.sim.manners import Manners
from menuwatch.sim.market import IMAGE_BASE
from menuwatch.sim.model import Rates
from menuwatch.sim.server import SimServer, World


def _json(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise argparse.ArgumentTypeError(f"no JSON object: {error}") from error


def parse(arguments: Sequence[str] | None = None) -> World:
    """The world that the command line asks for. Ends the process with status 2 where it cannot be read."""
    parser = argparse.ArgumentParser(
        prog="python -m menuwatch.sim", description="A simulated market on loopback ports."
    )
    parser.add_argument("--stores", type=int, default=12)
    parser.add_argument("--weedmaps", type=int, default=0, help="stores on a second platform")
    parser.add_argument("--products", type=int, default=150, help="products that each store begins with")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", type=int, default=0, help="of the GraphQL endpoint; 0 takes a free one")
    parser.add_argument("--proxies", type=int, default=0, help="forward proxies to start")
    parser.add_argument("--recorded", type=Path, help="folder of recorded answers to serve verbatim")
    parser.add_argument("--misbehave", type=_json, default={}, help="kinds and rates, a JSON object")
    parser.add_argument("--rates", type=_json, default={}, help="how the market drifts, a JSON object")
    parser.add_argument("--image-base", default=IMAGE_BASE, help="where pictures are said to be")
    parser.add_argument("--shop", type=int, default=0, help="products for each keyword of a shop that is searched")
    parser.add_argument(
        "--service", type=_json, default={}, help="how that shop's fetching service works, a JSON object"
    )
    parser.add_argument("--refusals", type=float, default=0.0, help="share of that shop's answers that are refusals")
    parser.add_argument("--refuse-hashes", action="store_true", help="know no persisted query")
    given = parser.parse_args(arguments)
    try:
        rates = msgspec.convert(given.rates, Rates)
    except msgspec.ValidationError as error:
        parser.error(f"--rates: {error}")
    try:
        service = msgspec.convert(given.service, Manners)
    except msgspec.ValidationError as error:
        parser.error(f"--service: {error}")
    return World(
        stores=given.stores,
        weedmaps=given.weedmaps,
        products=given.products,
        seed=given.seed,
        port=given.port,
        proxies=given.proxies,
        recorded=given.recorded,
        misbehave=given.misbehave,
        rates=rates,
        image_base=given.image_base,
        refuse_hashes=given.refuse_hashes,
        shop=given.shop,
        service=service,
        refusals=given.refusals,
    )


async def run(world: World) -> None:
    """Serves until standard input ends or a signal comes."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    server = SimServer(world)
    await server.start()
    try:
        sys.stdout.write(msgspec.json.encode(server.hello()).decode() + "\n")
        sys.stdout.flush()
        watcher = asyncio.ensure_future(_input_ends(ended))
        await ended.wait()
        watcher.cancel()
    finally:
        await server.close()


async def _input_ends(ended: asyncio.Event) -> None:
    reader = asyncio.StreamReader()
    try:
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while await reader.read(4096):
            pass
    except (OSError, ValueError):
        pass  # closed before we looked
    ended.set()


def _check_input() -> None:
    """Raises ValueError where the end of standard input would tell nothing: it is how whoever started this ends it."""
    kind = 0 if sys.stdin is None or sys.stdin.closed else os.fstat(sys.stdin.fileno()).st_mode
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) or (stat.S_ISCHR(kind) and sys.stdin.isatty())):
        raise ValueError(
            "it runs until its standard input ends, and that is no pipe or terminal: give it one, as in "
            "`sleep infinity | python -m menuwatch.sim`"
        )


def main() -> None:
    """Entry point."""
    try:
        world = parse()
        _check_input()
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(run(world))
    except (OSError, ValueError) as error:
        sys.exit(f"menuwatch.sim: {error}")


if __name__ == "__main__":
    main()
