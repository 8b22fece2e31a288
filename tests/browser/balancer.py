"""A plain balancer: each request goes to the next server in turn, whoever sent it and whatever it is."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Iterator, Sequence


class Balancer:
    """Takes connections on a port of its own. `served` notes for each request its path and the place of its server."""

    def __init__(self, servers: Sequence[tuple[str, int]]) -> None:
        self._servers = servers
        self._turn = itertools.cycle(range(len(servers)))
        self.served: list[tuple[str, int]] = []
        self.port = 0

    def who(self, path: str) -> set[int]:
        """The servers that answered requests of paths that begin so."""
        return {server for asked, server in self.served if asked.startswith(path)}

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with (
            contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError),
            contextlib.closing(writer),
        ):
            head = await reader.readuntil(b"\r\n\r\n")
            lines = [one for one in head.split(b"\r\n") if not one.lower().startswith(b"connection:")]
            # One request for each connection: so each is dealt out, not each browser.
            lines.insert(1, b"Connection: close")
            place = next(self._turn)
            self.served.append((lines[0].split(b" ")[1].decode(), place))
            there, back = await asyncio.open_connection(*self._servers[place])
            with contextlib.closing(back):
                back.write(b"\r\n".join(lines))
                up = asyncio.ensure_future(_pump(reader, back))
                await _pump(there, writer)
                up.cancel()

    async def _serve(self, ready: threading.Event, over: threading.Event) -> None:
        server = await asyncio.start_server(self._client, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await asyncio.get_running_loop().run_in_executor(None, over.wait)
        server.close()


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while piece := await source.read(65_536):
        target.write(piece)
        await target.drain()


@contextlib.contextmanager
def balanced(servers: Sequence[tuple[str, int]]) -> Iterator[Balancer]:
    """A balancer in front of these servers, for as long as the context lasts."""
    balancer, ready, over = Balancer(servers), threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(balancer._serve(ready, over)), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield balancer
    finally:
        over.set()
        thread.join(10)
