"""Connections that send half a request, read nothing or leave, requests that a proxy may read in another way, and few descriptors."""

from __future__ import annotations

import contextlib
import re
import resource
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import psutil

from menuwatch.accounts.model import Role
from tests.attack.installation import Installation, until
from tests.attack.report import Attack

CLOSED_SECONDS = 45.0
"""Within which a connection whose request does not arrive must be closed, however slowly it goes on sending."""
HEALTHY_SECONDS = 5.0
"""Longest wait for /healthz meanwhile; a machine with other work needs some of it."""
LOG_BYTES = 1_000_000
"""By which the log may grow while connections are refused."""
MEMORY = 200_000_000
"""Bytes by which the server may grow for clients that do not read."""
FORM = "Host: x\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 500\r\n"
_SECOND = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"


@dataclass(slots=True)
class Peer:
    """A client. `drip` is what it sends each second."""

    case: str
    stream: socket.socket
    drip: bytes = b""
    began: float = 0.0
    closed: float | None = None


def run(attack: Attack) -> None:
    with attack.installation() as target:
        failures = target.failures_counted()
        for name, request in _gone(target.session("leaver", Role.ADMIN)["Cookie"]).items():
            if attack.begins(f"leaves: {name}"):
                for _ in range(5):
                    _leave(target, request)
        time.sleep(1.0)  # a 500 for a client that left is counted only after it left
        counted = target.failures_counted() - failures
        attack.expect(not counted, "leaves: ", f"{counted} answers of status 500 are counted for clients that left")
        for name, (request, closes) in _ambiguous().items():
            _smuggle(attack, target, f"smuggling: {name}", request, closes=closes)
        _slow(attack, target)
        _do_not_read(attack, target)
    _few_descriptors(attack)


def _open(target: Installation) -> socket.socket:
    parts = urlsplit(target.address)
    return socket.create_connection((parts.hostname, parts.port), timeout=10)


def _closed(stream: socket.socket) -> bool:
    """Whether the server has ended the connection; what it said before that is read away."""
    stream.setblocking(False)
    try:
        while True:
            if not stream.recv(65536):
                return True
    except BlockingIOError:
        return False
    except OSError:
        return True


def _gone(cookie: str) -> dict[str, str]:
    """Forms of which half is sent, by whom the form is for."""
    paths = (
        "/admin/login",
        "/admin/alerts/new",
        "/admin/job-queue/enqueue",
        "/admin/stores/new",
        "/admin/crawls",
        "/admin/users/add",
    )
    made = {path: f"POST {path} HTTP/1.1\r\n{FORM}Cookie: {cookie}\r\n\r\na=" for path in paths}
    return made | {
        "site": f"POST /p/10-x/watch HTTP/1.1\r\n{FORM}\r\na=",
        "session": "POST /api/session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 90\r\n\r\n{",
        "export": f"GET /api/export/products HTTP/1.1\r\nHost: x\r\nCookie: {cookie}\r\n\r\n",
    }


def _leave(target: Installation, request: str) -> None:
    with _open(target) as stream:
        stream.sendall(request.encode())
        time.sleep(0.05)
        # A reset, as of a browser that was closed, rather than an orderly end.
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")


def _ambiguous() -> dict[str, tuple[str, bool]]:
    """Requests whose end two programs may see in two places: (bytes, whether the connection must be closed)."""
    chunked, both = f"0\r\n\r\n{_SECOND}", {}
    head = f"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: {len(chunked)}\r\n"
    encodings = (
        "chunked", " chunked", "\tchunked", "xchunked", "chunked, identity", "identity, chunked", "chunked\r\nTransfer-Encoding: x",
        "CHUNKED", "chunked;q=1", "\x0bchunked", '"chunked"',
    )  # fmt: skip
    for te in encodings:
        both[f"length and {te!r}"] = (f"{head}Transfer-Encoding: {te}\r\n\r\n{chunked}", True)
    both["space before the colon"] = (f"{head}Transfer-Encoding : chunked\r\n\r\n{chunked}", True)
    both["folded"] = (f"{head}X: y\r\n Transfer-Encoding: chunked\r\n\r\n{chunked}", False)
    both["folded encoding"] = (f"{head}Transfer-Encoding:\r\n chunked\r\n\r\n{chunked}", True)
    lengths = ("0\r\nContent-Length: 60", "0, 60", "+0", "-1", "0x0", " 0\x0b", "٠", "0" * 5000 + "1", "")
    for length in lengths:
        both[f"length {length[:30]!r}"] = (
            f"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{_SECOND}", True
        )  # fmt: skip
    for size in ("0x0", "-1", "+0", "0_0", "f" * 21, "0 0", "g"):
        both[f"chunk of {size!r}"] = (
            f"POST /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{size}\r\n\r\n{_SECOND}", True
        )  # fmt: skip
    both["two hosts"] = ("GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", True)
    both["NUL in a header"] = (f"{head}X-A: a\0b\r\n\r\n{chunked}", True)
    both["CR in a header"] = (f"{head}X-A: a\rTransfer-Encoding: chunked\r\n\r\n{chunked}", True)
    both["HTTP/1.0 and chunked"] = (f"POST /healthz HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n{chunked}", True)
    both["no version"] = ("GET /healthz\r\n\r\n", True)
    return both


def _smuggle(attack: Attack, target: Installation, case: str, request: str, *, closes: bool) -> None:
    if not attack.begins(case):
        return
    said, closed, began = b"", False, time.monotonic()
    with _open(target) as stream:
        stream.sendall(request.encode())
        stream.settimeout(1.0)
        # A second answer follows the first at once; the first answer and the closing may take a busy machine a while.
        while not closed and time.monotonic() - began < 10:
            try:
                said += (data := stream.recv(65536))
                closed = not data
            except TimeoutError:
                if said and not closes:
                    break
            except ConnectionError:
                closed = True
    answers = re.findall(rb"HTTP/1\.[01] (\d{3})", said)
    attack.expect(len(answers) <= 1, case, f"{len(answers)} answers: {answers}", repr(request))
    attack.expect(b"500" not in answers, case, "status 500", repr(request))
    attack.expect(closed or not closes, case, f"the connection stays open after {answers}", repr(request))


def _slow(attack: Attack, target: Installation) -> None:
    """All at once: most of the time is waiting."""
    token = target.token()["Authorization"]
    task = f"POST /api/tasks HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\nContent-Type: application/json\r\n"
    kinds = {
        "nothing": ("", b""),
        "half of the headers": ("GET / HTTP/1.1\r\nHost: x\r\nX-A: ", b""),
        "a header a second": ("GET / HTTP/1.1\r\nHost: x\r\n", b"X-A: b\r\n"),
        "half of a login": (f"POST /admin/login HTTP/1.1\r\n{FORM}\r\nname=", b""),
        "a byte of a login a second": (f"POST /admin/login HTTP/1.1\r\n{FORM}\r\nname=", b"a"),
        "half of a shopper's form": (f"POST /p/10-x/watch HTTP/1.1\r\n{FORM}\r\na=", b""),
        "a chunk of a task a second": (f"{task}Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    }
    peers = [
        Peer(f"slow: {kind}", _open(target), drip, time.monotonic())
        for kind, (request, drip) in kinds.items()
        if attack.begins(f"slow: {kind}")
        for _ in range(8)
    ]
    for peer in peers:
        peer.stream.sendall(
            next(request for kind, (request, _) in kinds.items() if peer.case == f"slow: {kind}").encode()
        )
    worst = _wait_for_closing(target, peers)
    for case in dict.fromkeys(peer.case for peer in peers):
        ours = [peer for peer in peers if peer.case == case]
        left = [peer for peer in ours if peer.closed is None]
        attack.expect(not left, case, f"{len(left)} of {len(ours)} connections are open after {CLOSED_SECONDS:.0f} s")
        attack.expect(worst <= HEALTHY_SECONDS, case, f"/healthz took {worst:.1f} s meanwhile")
    closed = [peer.closed for peer in peers if peer.closed is not None]
    attack.figures |= {"slow closed after s": round(max(closed, default=-1)), "healthz s": round(worst, 1)}


def _wait_for_closing(target: Installation, peers: list[Peer]) -> float:
    """Until all are closed or the time is over; returns the longest that /healthz took."""
    worst, began = 0.0, time.monotonic()
    while (left := [peer for peer in peers if peer.closed is None]) and time.monotonic() - began < CLOSED_SECONDS:
        asked = time.monotonic()
        answer = target.get("/healthz", timeout=2 * HEALTHY_SECONDS)
        worst = max(worst, time.monotonic() - asked if answer is not None else 2 * HEALTHY_SECONDS)
        for peer in left:
            with contextlib.suppress(OSError):
                peer.stream.send(peer.drip)
            if _closed(peer.stream):
                peer.closed = time.monotonic() - peer.began
                peer.stream.close()
        time.sleep(1.0)  # the pace of those that send slowly
    for peer in peers:
        peer.stream.close()
    return worst


def _do_not_read(attack: Attack, target: Installation) -> None:
    case = "reads nothing: 50 large answers each, 20 clients"
    if not attack.begins(case):
        return
    assert target.process is not None
    server = psutil.Process(target.process.pid)
    before = server.memory_info().rss
    with contextlib.ExitStack() as opened:
        for _ in range(20):
            stream = opened.enter_context(_open(target))
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stream.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
        worst, until_then = 0.0, time.monotonic() + 8
        while time.monotonic() < until_then:
            asked = time.monotonic()
            target.get("/healthz", timeout=2 * HEALTHY_SECONDS)
            worst = max(worst, time.monotonic() - asked)
        grown = server.memory_info().rss - before
    attack.expect(worst <= HEALTHY_SECONDS, case, f"/healthz took {worst:.1f} s meanwhile")
    attack.expect(grown <= MEMORY, case, f"the server grew by {grown / 1e6:,.0f} MB")


def _half_sent(target: Installation, count: int) -> Iterator[Peer]:
    for _ in range(count):
        stream = _open(target)
        stream.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX-A: ")
        yield Peer("", stream, began=time.monotonic())


def _few_descriptors(attack: Attack) -> None:
    case = "few descriptors: 220 half-sent requests at RLIMIT_NOFILE 160"
    if not attack.begins(case):
        return
    with attack.installation("few") as target:
        assert target.process is not None
        resource.prlimit(target.process.pid, resource.RLIMIT_NOFILE, (160, 160))
        size = target.log.stat().st_size
        peers = list(_half_sent(target, 220))
        _wait_for_closing(target, peers)
        left, grown = sum(peer.closed is None for peer in peers), target.log.stat().st_size - size
        attack.expect(not left, case, f"{left} of {len(peers)} connections are open after {CLOSED_SECONDS:.0f} s")
        attack.expect(grown < LOG_BYTES, case, f"the log grew by {grown / 1e6:,.1f} MB")
        attack.expect(until(target.ready), case, "not ready again within a minute")
        attack.figures["log kB"] = grown // 1000
        if grown >= LOG_BYTES:
            target.log.write_bytes(b"")  # it is not looked through line by line as well
