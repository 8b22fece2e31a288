"""A TCP server for loopback that drops its clients when it stops, and resets connections on request."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable


class Reset(Exception):
    """The client's connection is to be reset."""


class TcpServer:
    """One listening socket. `serve` handles a connection, which is closed afterwards: with a TCP reset if it raises Reset."""

    def __init__(
        self,
        serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
        *,
        limit: int = 65_536,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`limit`: maximum bytes of a line or of a block of headers."""
        self._handle = serve
        self._limit = limit
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """The port it listens on."""
        assert self._server is not None, "started"
        return int(self._server.sockets[0].getsockname()[1])

    async def start(self, port: int = 0, host: str = "127.0.0.1") -> None:
        """Listens unless it already does; 0 takes a free port. Raises OSError where the port is taken."""
        if self._server is None:
            self._server = await asyncio.start_server(
                self._accept, host, port, limit=self._limit, backlog=1024, reuse_address=True, ssl=self._tls
            )

    async def close(self) -> None:
        """Stops listening and drops every client."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        clients = list(self._clients)
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._clients.add(task)
        task.add_done_callback(self._clients.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._handle(reader, writer)
        except Reset:
            with contextlib.suppress(OSError):
                sock = writer.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        except (OSError, EOFError, asyncio.LimitOverrunError, ValueError):
            pass  # a client that breaks off or sends nonsense
        finally:
            writer.close()
