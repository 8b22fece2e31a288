"""Sends one notification through Apprise, in a process of its own: `python -m menuwatch.alerts.notify_process`.

Reads a Request as JSON from standard input and writes a Result to standard output. Connections are checked when they are made, by the
address that they go to, so neither DNS rebinding nor an address from a response leads to the private network. The process ends itself
when its time is up, whatever a plugin does. Programs that a plugin starts are not guarded.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

import msgspec
from msgspec import Struct

from menuwatch.alerts import notify, ssrf_guard
from menuwatch.core.errors import Refused

_CONNECTS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})


class Request(Struct, kw_only=True):
    """A notification. The process ends after `limit_seconds`; `seconds` is the timeout of a connection or read."""

    url: str
    title: str
    body: str
    seconds: float
    limit_seconds: float
    allow_private: bool


class Result(Struct, kw_only=True):
    """`error` is None if the service accepted it. `forbidden`: an address was not public; `final`: do not retry."""

    error: str | None = None
    forbidden: bool = False
    final: bool = False


def install_guard() -> list[str]:
    """Refuses all further connections of this process to addresses that are not public; returns the list to which the reasons are
    added. Every connection of Python code raises these audit events, whichever library makes it."""
    reasons: list[str] = []

    def check(
        event: str, args: tuple[Any, ...], is_public: Any = _is_public, events: frozenset[str] = _CONNECTS
    ) -> None:
        if event in events and args[1] is not None:
            host = args[1][0] if isinstance(args[1], tuple) else None
            if not is_public(host):
                reasons.append(f"it resolves to {host or 'this machine'}, which is not a public address")
                raise ConnectionRefusedError(reasons[-1])

    sys.addaudithook(check)
    return reasons


def _is_public(host: object) -> bool:
    try:
        return isinstance(host, str) and ssrf_guard.is_public(host)
    except ValueError:  # a name, which was not resolved
        return False


def send(request: Request) -> Result:
    """Sends a notification from this process."""
    service = notify.instantiate(request.url, request.seconds)
    schema = notify.schema_of(request.url)
    if service is None or schema in notify.LOCAL or notify.reads_files(service):
        return Result(
            error="the notification URL is no longer accepted: enter the channel again to see why", final=True
        )
    host = notify.host_of(schema, service)
    if host is not None:
        try:
            host = notify.check_host(schema, host, allow_private=request.allow_private)
            asyncio.run(ssrf_guard.resolve(host, service.port or 443, allow_private=request.allow_private))
        except ssrf_guard.Forbidden as error:
            return Result(error=str(error), forbidden=True)
        except Refused as error:
            return Result(error=str(error), final=True)
        except OSError as error:
            return Result(error=f"{host} cannot be resolved: {error.strerror or type(error).__name__}")
    refused = [] if request.allow_private else install_guard()
    try:
        accepted = service.notify(body=request.body, title=request.title)
    except Exception as error:  # a plugin's own fault; its text may hold the address
        accepted, reason = False, f"the service failed: {type(error).__name__}"
    else:
        reason = "the service rejected it"
    if refused:
        return Result(error=refused[0], forbidden=True)
    return Result() if accepted else Result(error=reason)


def main() -> None:
    """Reads the request, sends it, writes the result."""
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, request.limit_seconds)
    output = os.dup(1)
    os.dup2(2, 1)  # plugins' output must not mix with the result
    os.write(output, msgspec.json.encode(send(request)))
    os._exit(0)  # threads of plugins may hang


if __name__ == "__main__":
    main()
