"""A web server that sees what nobody shows: the ClientHello as it came, the HTTP/2 preface, the headers in their order.

Python's `ssl` hides the ClientHello, so the bytes are kept before they are decrypted: TCP → raw bytes → `ssl.MemoryBIO`.
Every request is answered with a JSON object of all that was seen; one for `/menu` gets two cookies besides, and one for `/last`
is the last one on its connection.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, StreamEnded
from hyperframe.frame import Frame, GoAwayFrame, HeadersFrame, PriorityFrame, SettingsFrame, WindowUpdateFrame

from tests.fingerprint.hello import Hello, parse_stream

COOKIES = ("visit=1; Path=/", "shop=23; Path=/")
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One request as it arrived: what the server answers with.

    `akamai` is `SETTINGS|WINDOW_UPDATE|PRIORITY|pseudo-headers` ("" where HTTP/1.1 was spoken), `stream` the priority that
    the HEADERS frame itself carries, as `weight:depends_on:exclusive` ("" for none).
    """

    connection: int
    protocol: str
    server_name: str | None
    ja3: str
    ja3n: str
    ja4: str
    ja4_raw: str
    akamai: str
    stream: str
    method: str
    path: str
    headers: list[tuple[str, str]]
    body: str


@dataclass
class _Preface:
    """What the client said of its HTTP/2 before and in its first request."""

    data: bytearray = field(default_factory=bytearray)
    settings: str = ""
    window: int = 0
    priorities: list[str] = field(default_factory=list)
    streams: dict[int, str] = field(default_factory=dict)

    def feed(self, data: bytes) -> None:
        if not self.settings and not self.data and data.startswith(_PREFACE):
            data = data[len(_PREFACE) :]
        self.data += data
        while len(self.data) >= 9:
            frame, length = Frame.parse_frame_header(memoryview(bytes(self.data[:9])))
            if len(self.data) < 9 + length:
                return
            frame.parse_body(memoryview(bytes(self.data[9 : 9 + length])))
            del self.data[: 9 + length]
            self._note(frame)

    def _note(self, frame: Frame) -> None:
        if isinstance(frame, SettingsFrame) and "ACK" not in frame.flags and not self.settings:
            self.settings = ";".join(f"{key}:{value}" for key, value in frame.settings.items())
        elif isinstance(frame, WindowUpdateFrame) and frame.stream_id == 0 and not self.window and not self.streams:
            self.window = frame.window_increment
        elif isinstance(frame, PriorityFrame):
            self.priorities.append(
                f"{frame.stream_id}:{int(frame.exclusive)}:{frame.depends_on}:{frame.stream_weight + 1}"
            )
        elif isinstance(frame, HeadersFrame):
            has = "PRIORITY" in frame.flags
            self.streams[frame.stream_id] = (
                f"{frame.stream_weight + 1}:{frame.depends_on}:{int(frame.exclusive)}" if has else ""
            )

    def akamai(self, headers: Sequence[tuple[str, str]]) -> str:
        pseudo = ",".join(name[1] for name, _ in headers if name.startswith(":"))
        return f"{self.settings}|{self.window or '00'}|{','.join(self.priorities) or '0'}|{pseudo}"


class _Tls:
    """One connection, decrypted by hand so that its first bytes are seen."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, context: ssl.SSLContext) -> None:
        self._reader, self._writer = reader, writer
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._ssl = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    async def handshake(self) -> Hello:
        """Raises what `ssl` raises, and EOFError when the client leaves."""
        raw = b""
        while True:
            try:
                self._ssl.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                raw += await self._fill()
                continue
            await self._flush()
            return parse_stream(raw)

    @property
    def protocol(self) -> str:
        return self._ssl.selected_alpn_protocol() or "http/1.1"

    async def read(self) -> bytes:
        """Some decrypted bytes; none at the end."""
        while True:
            try:
                return self._ssl.read(65_536)
            except ssl.SSLWantReadError:
                try:
                    await self._fill()
                except EOFError:
                    return b""
            except ssl.SSLZeroReturnError:
                return b""

    async def write(self, data: bytes) -> None:
        if data:
            self._ssl.write(data)
        await self._flush()

    async def _fill(self) -> bytes:
        data = await self._reader.read(65_536)
        if not data:
            raise EOFError
        self._incoming.write(data)
        return data

    async def _flush(self) -> None:
        if data := self._outgoing.read():
            self._writer.write(data)
            await self._writer.drain()


class FingerprintServer:
    """Listens on a loopback port; `context` holds its certificate and the protocols it offers."""

    def __init__(self, name: str, context: ssl.SSLContext) -> None:
        self.name = name
        self.port = 0
        self.connections = 0
        self.failures: list[BaseException] = []
        self._context = context
        self._tasks: set[asyncio.Task[None]] = set()

    def url(self, path: str = "/") -> str:
        return f"https://{self.name}:{self.port}{path}"

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number, tls = self.connections, _Tls(reader, writer, self._context)
        try:
            hello = await tls.handshake()
            await (_serve_http2 if tls.protocol == "h2" else _serve_http1)(number, hello, tls)
        except (OSError, EOFError, ssl.SSLError, ValueError) as error:
            self.failures.append(error)  # a test that got no answer finds the reason here
        finally:
            writer.close()

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _seen(
    number: int, hello: Hello, *, protocol: str, akamai: str, stream: str, headers: list[tuple[str, str]],
    method: str, path: str, body: bytes,
) -> bytes:  # fmt: skip
    return msgspec.json.encode(
        Seen(
            connection=number,
            protocol=protocol,
            server_name=hello.server_name,
            ja3=hello.ja3,
            ja3n=hello.ja3n,
            ja4=hello.ja4,
            ja4_raw=hello.ja4_raw,
            akamai=akamai,
            stream=stream,
            method=method,
            path=path,
            headers=headers,
            body=body.decode(),
        )
    )


async def _serve_http2(number: int, hello: Hello, tls: _Tls) -> None:
    # Not normalized: joined cookies and the like would not be what came.
    config = H2Configuration(client_side=False, header_encoding="utf-8", normalize_inbound_headers=False)
    connection, preface = H2Connection(config), _Preface()
    connection.initiate_connection()
    await tls.write(connection.data_to_send())
    heads: dict[int, list[tuple[str, str]]] = {}
    bodies: dict[int, bytes] = {}
    while data := await tls.read():
        preface.feed(data)
        for event in connection.receive_data(data):
            if isinstance(event, RequestReceived):
                heads[event.stream_id] = [(str(name), str(value)) for name, value in event.headers]
                bodies[event.stream_id] = b""
            elif isinstance(event, DataReceived):
                bodies[event.stream_id] += event.data
                connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, StreamEnded):
                head = heads.pop(event.stream_id)
                pseudo = dict(pair for pair in head if pair[0].startswith(":"))
                answer = _seen(
                    number, hello, protocol="h2", akamai=preface.akamai(head), stream=preface.streams[event.stream_id],
                    headers=[pair for pair in head if not pair[0].startswith(":")],
                    method=pseudo[":method"], path=pseudo[":path"], body=bodies.pop(event.stream_id),
                )  # fmt: skip
                top = [(":status", "200"), ("content-type", "application/json"), ("content-length", str(len(answer)))]
                cookies = COOKIES if pseudo[":path"] == "/menu" else ()
                connection.send_headers(event.stream_id, [*top, *(("set-cookie", cookie) for cookie in cookies)])
                connection.send_data(event.stream_id, answer, end_stream=True)
                if pseudo[":path"] == "/last":
                    # Before the answer, so that whoever has the answer knows of it.
                    await tls.write(GoAwayFrame(0, last_stream_id=event.stream_id).serialize())
        await tls.write(connection.data_to_send())


async def _serve_http1(number: int, hello: Hello, tls: _Tls) -> None:
    data = b""
    while True:
        while b"\r\n\r\n" not in data:
            more = await tls.read()
            if not more:
                return
            data += more
        top, _, data = data.partition(b"\r\n\r\n")
        first, *lines = top.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ")
        headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
        while len(data) < length:
            data += await tls.read()
        body, data = data[:length], data[length:]
        answer = _seen(
            number,
            hello,
            protocol="http/1.1",
            akamai="",
            stream="",
            headers=headers,
            method=method,
            path=path,
            body=body,
        )
        await tls.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(answer) + answer
        )


@asynccontextmanager
async def fingerprinting(name: str, context: ssl.SSLContext) -> AsyncIterator[FingerprintServer]:
    """A running fingerprint server for that name."""
    found = FingerprintServer(name, context)
    server = await asyncio.start_server(found.accept, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()
        await found.close()
