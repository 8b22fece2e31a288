"""Requests that never end, connections without number, ambiguous requests: over raw sockets, against a server of its own process."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest

from tests.api.limited_server import LIMITS
from tests.conftest import create_database, drop_database
from tests.users_fixture import bearer_at

HALF = b"GET / HTTP/1.1\r\nHost: x\r\nX-A: "
PING = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST /healthz HTTP/1.1\r\nHost: x\r\n"
FORM = b"POST /admin/login HTTP/1.1\r\nHost: x\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded\r\n"
STATUS = re.compile(rb"HTTP/1\.1 (\d{3})")
LATE = LIMITS.headers + 20
"""Longest wait, in seconds, for what the limits should have ended: a busy machine is late."""


@dataclass(frozen=True, slots=True)
class Child:
    pid: int
    port: int
    log: Path
    database: str

    @property
    def used(self) -> set[int]:
        return {int(one.name) for one in Path(f"/proc/{self.pid}/fd").iterdir()}

    @contextlib.contextmanager
    def limited(self, descriptors: int) -> Iterator[None]:
        """As many file descriptors as that for the server, at most."""
        before = resource.prlimit(self.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, (descriptors, before[1]))
        try:
            yield
        finally:
            resource.prlimit(self.pid, resource.RLIMIT_NOFILE, before)

    async def connect(self, source: str = "127.0.0.1") -> Client:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(source, 0))
        return Client(reader, writer)

    async def ask(self, request: bytes = PING) -> tuple[int, bytes]:
        """Status and body of the answer to one request on a connection of its own."""
        async with await self.connect() as client:
            await client.send(request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
            answer = await client.rest()
            return int(STATUS.findall(answer)[0]), answer.partition(b"\r\n\r\n")[2]

    async def ended(self, reason: str) -> float:
        """Connections that the server has ended for that reason, by its own count."""
        headers = b"".join(f"{name}: {value}\r\n".encode() for name, value in bearer_at(self.database).items())
        _, body = await self.ask(PING.replace(b"/healthz", b"/metrics")[:-2] + headers + b"\r\n")
        found = re.search(rf'menuwatch_http_connections_ended_total{{reason="{reason}"}} (\S+)'.encode(), body)
        return float(found[1]) if found else 0


@dataclass(frozen=True, slots=True)
class Client:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def rest(self, seconds: float = LATE) -> bytes:
        """All that comes until the server closes."""
        kept = bytearray()
        async with asyncio.timeout(seconds):
            with contextlib.suppress(ConnectionError):
                while chunk := await self.reader.read(65536):
                    kept += chunk
        return bytes(kept)


def _first_line(stream: IO[str]) -> str:
    line = stream.readline()
    assert line, "the server did not start"
    return line


@pytest.fixture(scope="module")
def child(server_url: str, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    home = tmp_path_factory.mktemp("limited")
    name = f"connections_{os.getpid()}"
    url = create_database(server_url, name, template)
    log = home / "log"
    env = {**os.environ, "DATABASE_URL": url, "MENUWATCH_HOME": str(home), "LOG_LEVEL": "warning"}
    with log.open("w") as to:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.api.limited_server"],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=to,
            text=True,
        )
        try:
            assert process.stdout is not None
            yield Child(process.pid, int(_first_line(process.stdout)), log, url)
        finally:
            process.communicate(timeout=30)
            drop_database(server_url, name)
    assert process.returncode == 0, log.read_text()


BOTH = b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
REFUSED: dict[str, bytes] = {
    "length and chunked": POST + BOTH,
    "chunked and length": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    "length 0 and chunked": POST + BOTH.replace(b"4", b"0", 1),
    "two lengths": POST + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd",
    "a list of lengths": POST + b"Content-Length: 4, 5\r\n\r\nabcd",
    "a signed length": POST + b"Content-Length: +4\r\n\r\nabcd",
    "a negative length": POST + b"Content-Length: -4\r\n\r\n",
    "a length in hexadecimal": POST + b"Content-Length: 0x4\r\n\r\nabcd",
    "a length with a space": POST + b"Content-Length: 4 4\r\n\r\nabcd",
    "no length": POST + b"Content-Length: \r\n\r\n",
    "chunked, identity": POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "identity, chunked": POST + b"Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n",
    "chunked twice": POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked and another": POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "an unknown coding": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a vertical tab before chunked": POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "a space before the colon": POST + b"Content-Length : 4\r\n\r\nabcd",
    "a tab before the colon": POST + b"Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n",
    "a folded line": POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "a folded line with a tab": POST + b"X-A: b\r\n\tContent-Length: 4\r\n\r\n",
    "a first header line that is folded": b"GET /healthz HTTP/1.1\r\n Host: x\r\n\r\n",
    "a bare CR in a value": POST + b"X-A: b\rContent-Length: 4\r\n\r\n",
    "a bare CR before the end": POST + b"Content-Length: 0\r\r\n\r\n",
    "a NUL in a value": POST + b"X-A: b\0c\r\n\r\n",
    "a name without a colon": POST + b"Content-Length\r\n\r\n",
    "two hosts": b"GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    "no host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "a space in the target": b"GET /healthz x HTTP/1.1\r\nHost: x\r\n\r\n",
}
BROKEN_CHUNKS: dict[str, bytes] = {
    "a signed size": b"+4\r\nabcd\r\n0\r\n\r\n",
    "a size with 0x": b"0x4\r\nabcd\r\n0\r\n\r\n",
    "a size of a lone LF": b"4\nabcd\r\n0\r\n\r\n",
    "no line break after the data": b"4\r\nabcdXX0\r\n\r\n",
    "a size beyond 64 bits": b"F" * 21 + b"\r\nabcd\r\n0\r\n\r\n",
}
CHUNKED_FORM = FORM + b"Transfer-Encoding: chunked\r\n\r\n"


async def test_an_ambiguous_request_gets_one_answer_and_the_connection_is_closed(child: Child) -> None:
    async def answers(request: bytes) -> list[bytes]:
        async with await child.connect() as client:
            await client.send(request + PING)
            return STATUS.findall(await client.rest())

    found = {name: await answers(request) for name, request in REFUSED.items()}
    assert found == {name: [b"400"] for name in REFUSED}
    for name, chunks in BROKEN_CHUNKS.items():
        # The answer to the beginning may have been on its way; what follows the fault is never read as a request.
        assert len(await answers(CHUNKED_FORM + chunks)) == 1, name
    former = b"POST /healthz HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    assert len(await answers(former)) == 1, "HTTP/1.0 has no chunks: nothing after them is believed"
    # What is clear is answered, one request after the other: equal lengths, a body that looks like a folded line.
    clear = POST + b"Content-Length: 4\r\nContent-Length: 4\r\n\r\na\n b"
    assert await answers(clear + PING.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")) == [b"405", b"200"]


async def _drip(client: Client, piece: bytes, every: float) -> None:
    with contextlib.suppress(ConnectionError):
        while not client.reader.at_eof():
            await client.send(piece)
            await asyncio.sleep(every)


async def test_requests_that_do_not_arrive_are_ended(child: Child) -> None:
    async def outcome(first: bytes, drip: bytes = b"", before: bytes = b"") -> tuple[list[bytes], float]:
        async with await child.connect() as client:
            await client.send(before)
            if before:
                await client.reader.readuntil(b"\r\n\r\n")
            began = time.monotonic()
            await client.send(first)
            dripping = asyncio.create_task(_drip(client, drip, 0.2)) if drip else None
            try:
                rest = await client.rest()
            finally:
                if dripping:
                    dripping.cancel()
            return STATUS.findall(rest), time.monotonic() - began

    before = {reason: await child.ended(reason) for reason in ("headers", "body")}
    length = FORM + b"Content-Length: 500\r\n\r\nname="
    cases = {
        "nothing": (outcome(b""), []),
        "half a line": (outcome(b"GET /hea"), [b"408"]),
        "half of the headers": (outcome(HALF), [b"408"]),
        "headers that drip": (outcome(HALF, drip=b"a"), [b"408"]),
        "headers on a kept connection": (outcome(HALF, before=PING), [b"408"]),
        "half of a body": (outcome(length), [b"408"]),
        "a body that drips": (outcome(length, drip=b"a"), [b"408"]),
        "half of a chunk": (outcome(CHUNKED_FORM + b"ff\r\nname="), [b"408"]),
        "chunks that drip": (outcome(CHUNKED_FORM, drip=b"1\r\na\r\n"), [b"408"]),
        # It is answered before its body comes, with 401: a second answer would be one to the next request.
        "a body that nobody reads": (outcome(POST + b"Content-Length: 500\r\n\r\n", drip=b"a"), [b"405"]),
        "an endless body that nobody reads": (
            outcome(POST + b"Content-Length: 99999999\r\n\r\n", drip=b"a" * 2000),
            [b"405"],
        ),
    }
    found = dict(zip(cases, await asyncio.gather(*(work for work, _ in cases.values())), strict=True))
    assert {name: [status for status in statuses if status] for name, (statuses, _) in found.items()} == {
        name: wanted for name, (_, wanted) in cases.items()
    }
    assert all(seconds > LIMITS.headers * 0.9 for _, seconds in found.values()), found
    after = {reason: await child.ended(reason) for reason in ("headers", "body")}
    assert {reason: after[reason] - before[reason] for reason in after} == {"headers": 5, "body": 6}


async def test_what_takes_long_for_good_reasons_goes_on(child: Child) -> None:
    """A body that comes steadily, a connection that is kept, and a stream: each for longer than a request may take to arrive."""

    async def steady_body() -> None:
        async with await child.connect() as client:
            body = b"name=" + b"a" * 2395
            await client.send(FORM + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body))
            for at in range(0, len(body), 300):
                await client.send(body[at : at + 300])
                await asyncio.sleep(0.2)
            assert b"408" not in STATUS.findall(await client.rest())

    async def kept(client: Client, seconds: float) -> None:
        for _ in range(2):
            await client.send(PING)
            assert STATUS.match(await client.reader.readuntil(b"\r\n\r\n"))
            await client.reader.readuntil(b"}")
            await asyncio.sleep(seconds)

    async def stream() -> None:
        async with await child.connect() as client:
            headers = "".join(f"{name}: {value}\r\n" for name, value in bearer_at(child.database).items())
            await client.send(f"GET /api/events HTTP/1.1\r\nHost: x\r\n{headers}\r\n".encode())
            assert (await client.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            with contextlib.suppress(TimeoutError):
                await client.rest(LIMITS.headers * 1.9)
            assert not client.reader.at_eof()

    async with await child.connect() as client:
        await asyncio.gather(steady_body(), kept(client, LIMITS.headers * 1.7), stream())


@contextlib.asynccontextmanager
async def _flood(child: Child, count: int) -> AsyncIterator[list[Client]]:
    """Half-sent requests of one address."""
    async with contextlib.AsyncExitStack() as stack:
        clients = []
        for _ in range(count):
            client = await stack.enter_async_context(await child.connect())
            client.writer.write(HALF)
            clients.append(client)
        yield clients


async def test_one_address_cannot_take_all_descriptors(child: Child) -> None:
    slowest = 0.0
    done = asyncio.Event()

    async def ping() -> None:
        nonlocal slowest
        while not done.is_set():
            began = time.monotonic()
            status, _ = await child.ask()
            assert status == 200
            slowest = max(slowest, time.monotonic() - began)
            await asyncio.sleep(0.02)

    evicted = await child.ended("evicted")
    size = child.log.stat().st_size
    with child.limited(max(160, len(child.used) + 96)):
        async with await child.connect("127.0.0.2") as other, asyncio.TaskGroup() as group:
            await other.send(HALF)
            group.create_task(ping())
            async with _flood(child, 220) as clients:
                await other.send(b"\r\n\r\n")  # late, but in time
                assert STATUS.match(await other.reader.readuntil(b"\r\n"))
                await asyncio.gather(*(client.rest() for client in clients))
            done.set()
    assert slowest < 5, "a few hundredths of a second, unless the machine is busy"
    assert await child.ended("evicted") - evicted >= 50
    assert child.log.stat().st_size - size < 20_000


async def test_without_descriptors_it_waits_and_says_so_once(child: Child) -> None:
    size = child.log.stat().st_size
    async with contextlib.AsyncExitStack() as stack:
        used = child.used
        with child.limited(next(number for number in itertools.count() if number not in used)):
            clients = [await stack.enter_async_context(await child.connect()) for _ in range(30)]
            for client in clients:
                client.writer.write(PING)
            deadline = time.monotonic() + LATE
            while b"out of system resource" not in child.log.read_bytes()[size:]:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.02)
        for client in clients:
            assert STATUS.match(await asyncio.wait_for(client.reader.readuntil(b"\r\n"), LATE))
    written = child.log.read_bytes()[size:]
    assert written.count(b"out of system resource") == 1
    assert len(written) < 20_000
