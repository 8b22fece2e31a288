"""Limits of connections: how long a request may take to arrive, how many connections may be open, and which requests are too
ambiguous to answer. uvicorn has none of these; its HTTP/1.1 protocol and its shared state are extended here.

    open ──first byte──▶ headers ──blank line──▶ body ──last byte──▶ answering ──▶ idle ──first byte──▶ headers …

Headers and bodies have deadlines, which a sweep checks: requests that arrive in time set no timer. Answers have none here, streams
last: the kernel ends a connection whose client takes nothing (TCP_USER_TIMEOUT of the listener). uvicorn ends idle connections.
"""

from __future__ import annotations

import os
import re
import resource
from collections import defaultdict
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from menuwatch.core.logging import get_logger
from menuwatch.web.request_middleware import Traffic

log = get_logger(__name__)

SWEEP_SECONDS = 0.5
"""Between two sweeps: how late a deadline may be enforced."""
ACCEPT_AT_ONCE = 4
"""Connections accepted in one turn of the event loop. Those of about five turns are open before the first of them can be refused."""

_FEW = 16
"""Connections that are admitted whatever the descriptors say, so that a process with a very low limit still answers."""
_LOG_SECONDS = 10.0
_FOLD_OR_END = re.compile(rb"\n(?:([ \t])|\r?\n)")
"""What comes first in a header section: a line that continues the one above (group 1), or its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Times in seconds."""

    headers: float = 10.0
    """From the connection or, on a kept one, the first byte of a request to the end of its headers."""
    body: float = 20.0
    body_bytes: int = 10_000
    """Least of a body that must arrive in each `body` seconds, unless it ends."""
    connections: int = 1000
    spare_descriptors: int = 64
    """File descriptors below RLIMIT_NOFILE that are kept for the database, files and connections that are about to be refused."""


class Framing(h11.Connection):
    """Refuses requests whose end a proxy in front may see elsewhere: with Content-Length and Transfer-Encoding (RFC 9112 6.1), or
    with folded header lines (5.2). h11 refuses the other kinds itself."""

    def next_event(self) -> Any:
        if self.their_state is not h11.IDLE:
            return super().next_event()
        head = self.trailing_data[0]
        event = super().next_event()
        # Searching bytes is cheap; lines are checked one by one only if there is something to find.
        if (b"\n " in head or b"\n\t" in head or b"transfer-encoding" in head.lower()) and isinstance(
            event, h11.Request
        ):
            if {b"transfer-encoding", b"content-length"} <= {name for name, _ in event.headers}:
                raise h11.RemoteProtocolError("both Content-Length and Transfer-Encoding")
            if (found := _FOLD_OR_END.search(head)) and found[1]:
                raise h11.RemoteProtocolError("a folded header line")
        return event


class Connection(H11Protocol):
    """One connection. `server_state` is a `Connections`."""

    server_state: Connections

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = Framing(h11.SERVER)
        self.since = self.loop.time()
        """When the present phase began."""
        self._phase: tuple[object, ...] = ("headers", None, True)
        self._received = 0
        self._received_before = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if not self.server_state.admit(self):
            self._answer(503)
            transport.close()

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        super().data_received(data)

    def send_400_response(self, msg: str) -> None:
        self.end(400)

    @property
    def descriptor(self) -> int:
        return int(self.transport.get_extra_info("socket").fileno())

    @property
    def evictable(self) -> bool:
        """Whether no complete request is pending and all earlier responses are sent."""
        if self.transport.is_closing() or self.transport.get_write_buffer_size():
            return False
        cycle = self.cycle
        return cycle is None or cycle.response_complete or self.conn.their_state is h11.SEND_BODY

    def overdue(self, now: float, limits: Limits) -> str | None:
        """The part of the request that is late: `headers`, `body`, or none. Called by the sweep, which is what notices a new
        phase."""
        cycle = self.cycle
        answered = cycle is None or cycle.response_complete
        if self.transport.is_closing():
            name = None
        elif self.conn.their_state is h11.SEND_BODY:
            # Not while the body waits for us: its client may not send, or does not yet.
            ours = cycle is not None and (self.flow.read_paused or cycle.waiting_for_100_continue) and not answered
            name = None if ours else "body"
        else:
            name = "headers" if answered and self.timeout_keep_alive_task is None else None
        if (phase := (name, cycle, answered)) != self._phase:
            self._phase, self.since, self._received_before = phase, now, self._received
        elif name == "headers" and now - self.since >= limits.headers:
            return name
        elif name == "body" and now - self.since >= limits.body:
            if answered or self._received - self._received_before < limits.body_bytes:
                return name
            self.since, self._received_before = now, self._received
        return None

    def end(self, status: int) -> None:
        """Answers and closes; only closes where an answer has begun already or no byte came."""
        if self.cycle is not None:
            self.cycle.disconnected = True  # what the app still sends has nowhere to go
        if self._received:
            self._answer(status)
        self.transport.close()

    def _answer(self, status: int) -> None:
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        text = HTTPStatus(status).phrase.encode()
        headers = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", b"%d" % len(text)),
            (b"connection", b"close"),
        ]
        for event in (
            h11.Response(status_code=status, headers=headers, reason=text),
            h11.Data(data=text),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event))


class Connections(ServerState):
    """All connections of a server, and who may have one.

    Above the limit a new connection takes the place of one that has not sent a whole request: the oldest of the client address that
    holds most of those, so that one address cannot keep the others out. Where all of them are being answered, the new one gets 503.
    """

    def __init__(self, traffic: Traffic, limits: Limits | None = None) -> None:
        super().__init__()
        self._limits = limits or Limits()
        self._traffic = traffic
        self._candidates: list[Connection] = []
        self._turned_away = {"evicted": 0, "refused": 0}
        self._logged = float("-inf")

    def admit(self, new: Connection) -> bool:
        scarce = self._scarce(new.descriptor) > 0
        if not scarce and len(self.connections) <= self._limits.connections:
            return True
        # Two where descriptors are scarce: others are accepted meanwhile, and their number has to fall.
        if self._evict(2 if scarce else 1, new):
            return True
        self._turn_away("refused")
        return False

    def sweep(self, now: float) -> None:
        """Ends what is overdue, and makes room where there are no descriptors to accept a connection with."""
        self._candidates.clear()
        for connection in self._all():
            if reason := connection.overdue(now, self._limits):
                connection.end(408)
                self._traffic.connections_ended.labels(reason).inc()
        self._evict(self._scarce(_lowest_descriptor()))
        self._traffic.connections.set(len(self.connections))
        if any(self._turned_away.values()) and now - self._logged >= _LOG_SECONDS:
            log.warning(
                "connection limit reached",
                action="connections_full",
                open=len(self.connections),
                **self._turned_away,
            )
            self._logged = now
            self._turned_away = dict.fromkeys(self._turned_away, 0)

    def _scarce(self, lowest: int | None) -> int:
        """How many descriptors are missing from the spare ones; `lowest` is the lowest free one: all below it are in use."""
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if lowest is None:
            return self._limits.spare_descriptors
        if most == resource.RLIM_INFINITY or len(self.connections) <= _FEW:
            return 0
        return lowest - (most - self._limits.spare_descriptors) + 1

    def _evict(self, count: int, new: Connection | None = None) -> bool:
        """Whether at least one could be evicted, or none had to be."""
        for number in range(count):
            if (victim := self._victim(new)) is None:
                return number > 0
            victim.transport.abort()
            self._turn_away("evicted")
        return True

    def _victim(self, new: Connection | None) -> Connection | None:
        """The candidates are looked up once for many: there may be thousands of new connections a second."""
        if found := self._next_candidate(new):
            return found
        by_address: dict[str | None, list[Connection]] = defaultdict(list)
        for connection in self._all():
            if connection.evictable:
                by_address[connection.client[0] if connection.client else None].append(connection)
        most = max(by_address.values(), key=len, default=[])
        self._candidates = sorted(most, key=lambda candidate: candidate.since, reverse=True)
        return self._next_candidate(new)

    def _next_candidate(self, new: Connection | None) -> Connection | None:
        while self._candidates:
            candidate = self._candidates.pop()
            if candidate is not new and candidate.evictable:
                return candidate
        return None

    def _all(self) -> list[Connection]:
        return cast("list[Connection]", list(self.connections))

    def _turn_away(self, reason: str) -> None:
        self._turned_away[reason] += 1
        self._traffic.connections_ended.labels(reason).inc()


def _lowest_descriptor() -> int | None:
    """The lowest free file descriptor; None if there is none."""
    try:
        descriptor = os.open(os.devnull, os.O_RDONLY)
    except OSError:
        return None
    os.close(descriptor)
    return descriptor
