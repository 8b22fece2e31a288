"""What happens around every request: its id, its line in the log, its share of the metrics, the limit of its body, and the last
net under faults."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable
from typing import Any

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from menuwatch.core.logging import get_logger

log = get_logger(__name__)

MAX_BODY_BYTES = 1_000_000
"""Largest body of a request that is read, in bytes."""
LARGER_BODIES = {"/api/job-queue/enqueue-batch": 20_000_000, "/admin/proxies/import": 3_000_000}
"""Addresses, without the prefix, that take more; a batch that is ten times too long still gets an answer that names what is wrong."""

LARGER_BELOW = {"/api/crawl/webhook/": 16_000_000}
"""The same for whatever lies below: what services bring (search_crawl/webhook.py)."""

_SECRET = re.compile(r"(/(?:alerts|feeds)/)[A-Za-z0-9_-]{20,}|(/api/crawl/webhook/).+", re.DOTALL)
"""Personal URLs that work as a secret: never logged."""

GONE = 499
"""Status in log and metrics of a request whose client went away before it had sent all of it; as nginx has it."""

_GIVEN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_QUIET = frozenset({"/healthz", "/readyz", "/metrics"})
"""Asked every few seconds by machines: logged only when something is wrong."""


class Traffic:
    """Counts of one app's requests, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        labels = ("route", "method")
        self.requests = Counter(
            "menuwatch_http_requests",
            "HTTP requests by route, method and status; 499: the client disconnected before the request was complete.",
            (*labels, "status"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "menuwatch_http_request_duration_seconds",
            "Time from the request to the last byte of the response, in seconds.",
            labels,
            registry=self.registry,
            buckets=(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
        )
        self.page_cache = Counter(
            "menuwatch_http_page_cache",
            "Requests for pages of the public site that the server may keep: hit (already rendered), miss.",
            ("result",),
            registry=self.registry,
        )
        self.connections = Gauge("menuwatch_http_connections", "Open HTTP connections.", registry=self.registry)
        self.connections_ended = Counter(
            "menuwatch_http_connections_ended",
            "HTTP connections ended by a limit: headers, body (did not arrive in time), evicted (for a new one), refused (503).",
            ("reason",),
            registry=self.registry,
        )


class Observe:
    """ASGI middleware. Keeps a plain incoming `X-Request-Id`, else generates one; it is in the response headers, the log and
    error reports. `on_fault` makes the response to a server error; `most` is the largest request body in bytes, except for
    paths in LARGER_BODIES."""

    def __init__(
        self, app: ASGIApp, traffic: Traffic, on_fault: Callable[[Request], Response], most: int = MAX_BODY_BYTES
    ) -> None:
        self._app = app
        self._most = most
        self._traffic = traffic
        self._on_fault = on_fault

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        trace_id = _trace_id(request.headers.get("x-request-id"))
        request.state.trace_id = trace_id
        status = 0
        started = time.perf_counter()

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])  # some send an enum
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", trace_id.encode())]
            await send(message)

        taken = 0
        whole = gone = False
        own = _own(scope)
        most = LARGER_BODIES.get(own, self._most)
        most = next((limit for below, limit in LARGER_BELOW.items() if own.startswith(below)), most)

        async def receiving() -> Message:
            nonlocal taken, whole, gone
            message = await receive()
            if message["type"] == "http.disconnect":
                gone = gone or not (whole or status)
                return message
            whole = not message.get("more_body", False)
            taken += len(message.get("body", b""))
            if taken > most:
                raise HTTPException(413, f"the body exceeds {most:,} bytes, the limit for this endpoint")
            return message

        with structlog.contextvars.bound_contextvars(trace_id=trace_id):
            try:
                await self._app(scope, receiving, sending)
            except ClientDisconnect:
                gone = gone or not status  # and nothing waits for an answer
            except Exception:
                log.exception("request failed", action="http_fault", method=scope["method"], path=shown_path(scope))
                if status:
                    raise  # half of the response is sent: only a broken connection signals the error
                await self._on_fault(request)(scope, receive, sending)
            finally:
                self._note(scope, GONE if gone else status, time.perf_counter() - started)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = route_of(scope)
        # A client may make methods up; each would be a series of its own for as long as the process lives.
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._traffic.requests.labels(route, method, str(status)).inc()
        self._traffic.seconds.labels(route, method).observe(seconds)
        if status >= 500 or _own(scope) not in _QUIET:
            log.info(
                "request",
                action="http_request",
                method=scope["method"],
                path=shown_path(scope),
                route=route,
                status=status,
                ms=round(seconds * 1000, 1),
            )


def _own(scope: Scope) -> str:
    """The path without the server's path prefix (mount.py)."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("prefix", ""))


def shown_path(scope: Scope) -> str:
    """The path as a log may hold it."""
    return _SECRET.sub(r"\1\2…", scope["path"])


def _trace_id(given: str | None) -> str:
    if given is not None and _GIVEN_ID.fullmatch(given):
        return given
    return uuid.uuid4().hex


def route_of(scope: Scope) -> str:
    """The path pattern that answered, so that metrics have one series a route, not one an address.

    With what its face lies below (`/admin`), else `/stores` of the dashboard and of the public site would be one series.
    """
    route: Any = scope.get("route")
    path = getattr(route, "path", None)
    if not path:
        return "unmatched"
    return str(scope.get("root_path", "").removeprefix(scope.get("prefix", "")) + path)
