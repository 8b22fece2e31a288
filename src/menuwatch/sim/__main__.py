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
from typing import Any

import msgspec

from menuwatch.sim.config import SimConfig
from menuwatch.sim.server import SimServer


def _json(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise argparse.ArgumentTypeError(f"not a JSON object: {error}") from error


def parse(arguments: Sequence[str] | None = None) -> SimConfig:
    """The simulation that the command line describes. Ends the process with status 2 where it is invalid."""
    parser = argparse.ArgumentParser(
        prog="python -m menuwatch.sim",
        description="A simulated market on loopback ports.",
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument("--config", type=_json, default={}, help="all settings as a JSON object; options override it")
    parser.add_argument("--stores", type=int)
    parser.add_argument(
        "--platforms", type=_json, help="stores on further platforms, a JSON object of platform and number"
    )
    parser.add_argument("--products", type=int, help="initial number of products per store")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--port", type=int, help="of the GraphQL endpoint; 0 takes a free one")
    parser.add_argument("--proxies", type=int, help="forward proxies to start")
    parser.add_argument("--recorded", help="folder of recorded responses to serve verbatim")
    parser.add_argument("--faults", "--misbehave", type=_json, help="fault kinds and rates, a JSON object")
    parser.add_argument("--rates", type=_json, help="how the market changes per tick, a JSON object")
    parser.add_argument("--image-base", help="base URL of images")
    parser.add_argument("--shop", type=int, help="products for each keyword of a shop with a search")
    parser.add_argument("--service", type=_json, help="quality of that shop's fetching service, a JSON object")
    parser.add_argument("--refusals", type=float, help="share of that shop's responses that are refusals")
    parser.add_argument("--refuse-hashes", action="store_true", help="know no persisted query")
    options = vars(parser.parse_args(arguments))
    try:
        return msgspec.convert(options.pop("config") | options, SimConfig)
    except msgspec.ValidationError as error:
        parser.error(str(error))


async def run(config: SimConfig) -> None:
    """Serves until standard input ends or a signal comes."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    server = SimServer(config)
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
        pass  # closed already
    ended.set()


def _check_input() -> None:
    """Raises ValueError if standard input never ends: the parent process stops the simulator by closing it."""
    kind = 0 if sys.stdin is None or sys.stdin.closed else os.fstat(sys.stdin.fileno()).st_mode
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) or (stat.S_ISCHR(kind) and sys.stdin.isatty())):
        raise ValueError(
            "it runs until its standard input ends: connect a terminal or a pipe, for example "
            "`sleep infinity | python -m menuwatch.sim`"
        )


def main() -> None:
    """Entry point."""
    try:
        config = parse()
        _check_input()
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(run(config))
    except (OSError, ValueError) as error:
        sys.exit(f"menuwatch.sim: {error}")


if __name__ == "__main__":
    main()
