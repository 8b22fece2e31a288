"""Where Apprise's messages may go, and that nobody waits for those that hang."""

from __future__ import annotations

import asyncio
import functools
import http.client
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from menuwatch.alerts import fence, guard, notify, webhook
from menuwatch.alerts.guard import Forbidden
from menuwatch.alerts.webhook import NotDelivered
from menuwatch.core.errors import Refused
from tests.alerts.receiver import receiving
from tests.engine.waiting import until

LETTERS = "abcdefghijklmnopqrstuvwxyzabcdef"


@asynccontextmanager
async def dripping(headers: bytes = b"X-Slow: ") -> AsyncIterator[int]:
    """Somebody who answers one letter after the other, and never ends."""

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


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "localhost", "[::1]", "LOCALHOST.", "postgres",
             "api", "a.localhost", socket.gethostname().partition(".")[0]],
)  # fmt: skip
async def test_no_way_to_write_this_machine_leads_to_it(host: str) -> None:
    async with receiving() as receiver:
        for schema in ("json", "form", "xml"):
            url = f"{schema}://{host}:{receiver.port}/x"
            with pytest.raises(Refused):
                notify.check(url, allow_private=False)
            with pytest.raises((Forbidden, NotDelivered)):
                await notify.send(url, "t", "b", seconds=2, allow_private=False)
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
    with pytest.raises(
        Refused, match=r"not on the public internet: nothing is sent there unless ALERT_ALLOW_PRIVATE=1"
    ):
        notify.check(url, allow_private=False)
    with pytest.raises(Forbidden, match="not on the public internet"):
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
        with pytest.raises(Refused, match="acts on the machine"):
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
    with pytest.raises(Refused, match="names a file to read"):
        notify.check(f"{url}{tmp_path}/own.json", allow_private=True)
    with pytest.raises(NotDelivered, match="none that is taken"):
        await notify.send(f"{url}{tmp_path}/own.json", "t", "b", seconds=2, allow_private=True)


async def test_a_name_that_is_no_name_is_not_delivered() -> None:
    with pytest.raises(NotDelivered, match="no name that a host can have"):
        await _hook(f"http://{'a' * 70}.example.com/x", 2)


async def _all_ended() -> bool:
    return fence.running() == 0


def _ask(port: int) -> int:
    with socket.create_connection(("localhost", port), timeout=5) as found:
        connection = http.client.HTTPConnection("localhost")
        connection.sock = found
        connection.request("POST", "/hook", body=b"{}")
        return connection.getresponse().status


async def test_what_counts_is_the_address_at_the_moment_of_connecting() -> None:
    """A name that was public when it was looked at, and an address out of an answer, are like this to the fence."""
    async with receiving() as receiver:
        ask = functools.partial(_ask, receiver.port)
        with pytest.raises(Forbidden, match="not on the public internet"):
            await fence.run(ask, seconds=5, allow_private=False)
        assert receiver.got == []
        assert await fence.run(ask, seconds=5, allow_private=True) == 200
        assert await asyncio.to_thread(ask) == 200, "other threads are not fenced"


async def test_an_answer_in_drips_ends_with_its_thread() -> None:
    async with dripping() as port:
        for _ in range(fence.MOST_HANGING + 2):
            with pytest.raises(NotDelivered, match="did not answer within"):
                await notify.send(f"json://127.0.0.1:{port}/", "t", "b", seconds=0.1, allow_private=True)
            await until(_all_ended)


async def test_threads_that_hang_are_few_and_hold_up_nobody() -> None:
    go_on = threading.Event()
    try:
        for _ in range(fence.MOST_HANGING):
            with pytest.raises(TimeoutError):
                await fence.run(go_on.wait, seconds=0.01, allow_private=True)
        async with receiving() as receiver:
            with pytest.raises(NotDelivered, match="busy: earlier deliveries still hang"):
                await notify.send(receiver.url(scheme="json"), "t", "b", seconds=5, allow_private=True)
            assert receiver.got == []
            assert await asyncio.wait_for(asyncio.to_thread(lambda: 1), 5) == 1
            go_on.set()
            await until(_all_ended)
            await notify.send(receiver.url(scheme="json"), "t", "b", seconds=5, allow_private=True)
            assert len(receiver.got) == 1
    finally:
        go_on.set()


async def test_many_messages_at_once_are_not_refused() -> None:
    async with receiving() as receiver:
        url = receiver.url(scheme="json")
        await asyncio.gather(*(notify.send(url, "t", "b", seconds=10, allow_private=True) for _ in range(8)))
        assert len(receiver.got) == 8


def test_a_thread_that_hangs_keeps_no_process_alive() -> None:
    code = (
        "import asyncio, threading\nfrom menuwatch.alerts import fence\n"
        "try:\n asyncio.run(fence.run(threading.Event().wait, seconds=0.01, allow_private=True))\n"
        "except TimeoutError:\n print('over')\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert ended.stdout == "over\n"


async def _hook(url: str, seconds: float) -> int:
    return await webhook.send(url, "s", b"{}", key="k", now=datetime.now(UTC), seconds=seconds, allow_private=True)


async def test_a_webhook_that_drips_its_headers_is_left_in_time() -> None:
    async with dripping() as port:
        start = asyncio.get_running_loop().time()
        async with asyncio.timeout(10):
            with pytest.raises(NotDelivered, match="did not answer within"):
                await _hook(f"http://127.0.0.1:{port}/", 0.3)
        assert asyncio.get_running_loop().time() - start < 3
