"""Where messages through Apprise may go, and that those that hang are ended."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from menuwatch.alerts import notify, webhook
from menuwatch.alerts import ssrf_guard as guard
from menuwatch.alerts.notify_process import Request, Result
from menuwatch.alerts.outgoing import NotDelivered
from menuwatch.alerts.ssrf_guard import Forbidden
from menuwatch.core.errors import Refused
from tests.alerts.webhook_receiver import receiving
from tests.workers.waiting import until

LETTERS = "abcdefghijklmnopqrstuvwxyzabcdef"


@asynccontextmanager
async def dripping(headers: bytes = b"X-Slow: ") -> AsyncIterator[int]:
    """A server that responds one letter at a time and never ends."""

    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n" + headers)
        try:
            while True:
                writer.write(b"a")
                await writer.drain()
                await asyncio.sleep(0.05)
        except ConnectionError:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


_SCHEMAS = ("json", "form", "xml")
_HERE = ("127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "localhost", "[::1]", "LOCALHOST.", "postgres",
         "api", "a.localhost", socket.gethostname().partition(".")[0])  # fmt: skip


@pytest.mark.parametrize(("host", "sent"), [(host, _SCHEMAS[n % 3]) for n, host in enumerate(_HERE)])
async def test_no_way_to_write_this_machine_leads_to_it(host: str, sent: str) -> None:
    """Each message takes a process of its own: one schema of each host is sent."""
    async with receiving() as receiver:
        for schema in _SCHEMAS:
            with pytest.raises(Refused):
                notify.check(f"{schema}://{host}:{receiver.port}/x", allow_private=False)
        with pytest.raises((Forbidden, NotDelivered)):
            await notify.send(f"{sent}://{host}:{receiver.port}/x", "t", "b", seconds=2, allow_private=False)
        hook = f"http://{host}:{receiver.port}/x"
        with pytest.raises(Refused):
            guard.check_literal(hook, allow_private=False)
        assert receiver.got == []


@pytest.mark.parametrize(
    "url",
    [
        "json://postgres/x", "gotify://postgres/abcdefghijklmno", "ntfy://postgres/topic", "ntfy://postgres?mode=private",
        "matrix://me:pw@postgres/#room", "mailtos://me:pw@example.com?smtp=127.0.0.1", "notica://postgres/abcdef",
        "apprise://postgres/token", "hassio://postgres/abcdefghijklmnopqrstuvwxyz", "workflow://postgres/aaaa/bbbb",
        "lametric://key@192.168.1.1", "signal://postgres/+15551234567/+15551234568", f"pushdeer://postgres/{LETTERS}",
        " JSON://postgres/x",
    ],
)  # fmt: skip
async def test_whatever_names_a_host_is_held_to_it(url: str) -> None:
    with pytest.raises(Refused, match=r"not a public address: set ALERT_ALLOW_PRIVATE=1 to allow it"):
        notify.check(url, allow_private=False)
    with pytest.raises(Forbidden, match="not a public address"):
        await notify.send(url, "t", "b", seconds=2, allow_private=False)
    notify.check(url, allow_private=True)


@pytest.mark.parametrize(
    "url",
    [
        "ntfy://topic", "ntfy://ntfy.example.com/topic", "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ",
        f"discord://123456789/{LETTERS}{LETTERS}", "tgram://123456789:abcdefg_hijklmnop/12315544/", f"pover://{LETTERS[:30]}@{LETTERS[:30]}",
        f"matrix://{LETTERS}{LETTERS}", "notica://abcdef", "mailtos://me:pw@gmail.com", f"zulip://bot@organization/{LETTERS}",
    ],
)  # fmt: skip
def test_a_token_is_no_host(url: str) -> None:
    assert notify.check(url, allow_private=False) == f"{url.partition('://')[0]}://…"


def test_services_of_this_machine_are_refused_however_they_are_written() -> None:
    for url in ("syslog://", " syslog://", "SYSLOG://"):
        with pytest.raises(Refused, match="acts on the sending machine"):
            notify.check(url, allow_private=False)


@pytest.mark.parametrize(
    "url",
    [
        "tgram://123456789:abcdefg_hijklmnop/12315544/?template=", f"discord://123456789/{LETTERS}{LETTERS}?template=",
        "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ?template=", "fcm://project/device?keyfile=",
        "workflow://example.com/aaaa/bbbb?template=file://",
    ],
)  # fmt: skip
async def test_no_file_of_this_machine_is_read(url: str, tmp_path: Path) -> None:
    (tmp_path / "own.json").write_text('{"type": "AdaptiveCard"}')
    with pytest.raises(Refused, match="refers to a local file"):
        notify.check(f"{url}{tmp_path}/own.json", allow_private=True)
    with pytest.raises(NotDelivered, match="no longer accepted"):
        await notify.send(f"{url}{tmp_path}/own.json", "t", "b", seconds=2, allow_private=True)


async def test_a_name_that_is_no_name_is_not_delivered() -> None:
    with pytest.raises(NotDelivered, match="invalid host"):
        await _hook(f"http://{'a' * 70}.example.com/x", 2)


_CONNECT = """
import socket, sys, threading
from menuwatch.alerts.notify_process import install_guard

if sys.argv[2] == "guarded":
    reasons = install_guard()

def connect():
    try:
        with socket.create_connection(("localhost", int(sys.argv[1])), timeout=5) as found:
            found.sendall(b"POST /hook HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 2\\r\\n\\r\\n{}")
            found.recv(100)
            print("connected")
    except ConnectionRefusedError as error:
        print(error)

thread = threading.Thread(target=connect)
thread.start()
thread.join()
"""


async def _connect(port: int, guarded: str) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _CONNECT, str(port), guarded, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    return output.decode()


async def test_connections_are_checked_when_they_are_made() -> None:
    """As with a name that was public when it was resolved, and an address from a response; also in threads of a plugin."""
    async with receiving() as receiver:
        assert "not a public address" in await _connect(receiver.port, "guarded")
        assert receiver.got == []
        assert await _connect(receiver.port, "unguarded") == "connected\n"
        assert len(receiver.got) == 1


async def test_a_connection_to_a_private_address_is_refused_while_sending() -> None:
    """ntfy.sh is public; a proxy from the environment leads to this machine."""
    async with receiving() as receiver:
        request = Request(url="ntfy://topic", title="t", body="b", seconds=2, limit_seconds=20, allow_private=False)
        environment = {**os.environ, "HTTPS_PROXY": f"http://127.0.0.1:{receiver.port}"}
        ended = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-m", "menuwatch.alerts.notify_process"],
            input=msgspec.json.encode(request),
            capture_output=True,
            timeout=60,
            check=True,
            env=environment,
        )
        result = msgspec.json.decode(ended.stdout, type=Result)
        assert result.forbidden
        assert "127.0.0.1, which is not a public address" in (result.error or "")
        assert receiver.got == []


async def test_a_response_in_drips_ends_with_its_process() -> None:
    async with dripping() as port:
        with pytest.raises(NotDelivered, match="did not respond within"):
            await notify.send(f"json://127.0.0.1:{port}/", "t", "b", seconds=1, allow_private=True)


async def test_a_cancelled_delivery_ends_its_process() -> None:
    async with dripping() as port:
        sending = asyncio.create_task(
            notify.send(f"json://127.0.0.1:{port}/", "t", "b", seconds=100, allow_private=True)
        )
        children = Path(f"/proc/self/task/{os.getpid()}/children")

        async def started() -> bool:
            return bool(await asyncio.to_thread(children.read_text))

        await until(started)
        pid = int((await asyncio.to_thread(children.read_text)).split()[-1])
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert not await asyncio.to_thread(Path(f"/proc/{pid}").exists)


async def test_many_messages_at_once_are_not_refused() -> None:
    async with receiving() as receiver:
        url = receiver.url(scheme="json")
        await asyncio.gather(*(notify.send(url, "t", "b", seconds=10, allow_private=True) for _ in range(8)))
        assert len(receiver.got) == 8


async def _hook(url: str, seconds: float) -> int:
    return await webhook.send(
        url, "s" * 16, b"{}", message_id="m", now=datetime.now(UTC), seconds=seconds, allow_private=True
    )


async def test_a_webhook_that_drips_its_headers_is_left_in_time() -> None:
    async with dripping() as port:
        async with asyncio.timeout(10):
            with pytest.raises(NotDelivered, match="did not respond within"):
                await _hook(f"http://127.0.0.1:{port}/", 0.3)
