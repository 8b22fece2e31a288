"""Threads for code that opens connections as it likes: they reach only what may be reached, and nobody is held up by them.

Such a thread's connections are looked at when they are made, by the address that they go to. So it does not matter how it came by the
address: out of a URL, from a name that changed its mind since it was looked up, or from an answer. Threads that it starts itself are
beyond the fence.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from menuwatch.alerts.guard import Forbidden, is_public

MOST_HANGING = 4
"""Threads that are past their limit and have not ended: with so many no other is begun."""
MOST = 16
"""Threads at once, in this process."""

_T = TypeVar("_T")
_ASKED = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})


class Busy(Exception):
    """No thread is begun, for earlier ones have not ended."""


class _Errand:
    """What one thread does, the connections that it has open, and whether its time is up."""

    def __init__(self, allow_private: bool) -> None:
        self.refused: str | None = None
        self.over = False
        self._allow_private = allow_private
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []

    def connects(self, sock: socket.socket, address: Any) -> None:
        host = address[0] if isinstance(address, tuple) else None
        if not self._allow_private and not _public(host):
            self.refused = f"it leads to {host or 'this machine'}, which is not on the public internet"
            raise ConnectionRefusedError(self.refused)
        with self._lock:
            if self.over:
                raise TimeoutError("its time is up")
            # A copy, for TLS takes the socket apart and puts another around its number.
            self._open.append(socket.socket(fileno=os.dup(sock.fileno())))

    def stop(self) -> None:
        """Ends its connections under its hands: a limit on each read does not end an answer that comes in drips."""
        with self._lock:
            self.over = True
            for one in self._open:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def ended(self) -> None:
        with self._lock:
            for one in self._open:
                one.close()
            self._open.clear()


class _Here(threading.local):
    errand: _Errand | None = None


_here = _Here()
_lock = threading.Lock()
_running: set[_Errand] = set()
_watched = False


async def run(work: Callable[[], _T], *, seconds: float, allow_private: bool) -> _T:
    """What `work` returns, done in a thread of its own. The thread keeps no process from ending.

    Raises Busy at once, TimeoutError after so many seconds, Forbidden where it went for an address that is not public, and what the
    work raises."""
    errand = _begin(allow_private)
    loop = asyncio.get_running_loop()
    result: asyncio.Future[_T] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if result.done():
            return
        if error is not None:
            result.set_exception(error)
        else:
            result.set_result(value)

    def go() -> None:
        _here.errand = errand
        value, error = None, None
        try:
            value = work()
        except Exception as caught:
            error = caught
        finally:
            errand.ended()
            with _lock:
                _running.discard(errand)
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, value, error)

    try:
        threading.Thread(target=go, name="fenced", daemon=True).start()
    except RuntimeError:  # the machine has no more of them
        with _lock:
            _running.discard(errand)
        raise Busy from None
    try:
        async with asyncio.timeout(seconds):
            value = await result
    except Exception:
        if errand.refused is not None:
            raise Forbidden(errand.refused) from None
        raise
    finally:
        errand.stop()
    if errand.refused is not None:
        raise Forbidden(errand.refused)
    return value


def running() -> int:
    """Threads that have not ended."""
    with _lock:
        return len(_running)


def _begin(allow_private: bool) -> _Errand:
    global _watched
    errand = _Errand(allow_private)
    with _lock:
        if len(_running) >= MOST or sum(one.over for one in _running) >= MOST_HANGING:
            raise Busy
        if not _watched:
            # Every connection of Python code passes here, whichever library makes it. It cannot be taken away again.
            sys.addaudithook(_watch)
            _watched = True
        _running.add(errand)
    return errand


def _watch(event: str, args: tuple[Any, ...], asked: frozenset[str] = _ASKED, here: _Here = _here) -> None:
    if event in asked and here.errand is not None and args[1] is not None:
        here.errand.connects(args[0], args[1])


def _public(host: object) -> bool:
    try:
        return isinstance(host, str) and is_public(host)
    except ValueError:  # a name, which nobody has looked at
        return False
