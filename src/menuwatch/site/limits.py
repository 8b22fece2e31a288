"""Rate limit per client for creating alerts. In memory, keyed by a hash that is meaningless after a restart: no address is stored."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable

WINDOWS = ((10, 3600.0), (30, 86_400.0))
"""(maximum requests, seconds)."""
AROUND = 4
"""Multiple of the limit that applies to the surrounding network as a whole."""
_MOST_CLIENTS = 10_000


class Limits:
    """Sliding windows, each with a maximum number of requests per client."""

    def __init__(
        self,
        windows: tuple[tuple[int, float], ...] = WINDOWS,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._windows, self._clock = windows, clock
        self._longest = max(seconds for _, seconds in windows)
        self._salt = secrets.token_bytes(16)
        self._times: OrderedDict[bytes, deque[float]] = OrderedDict()

    def allows(self, client: str, around: str | None = None) -> bool:
        """Whether the client and its network `around` are below their limits; if so, the request is counted."""
        now = self._clock()
        asked = [(self._mark(client), 1), *([] if around is None else [(self._mark(around), AROUND)])]
        if not all(self._has_room(mark, times, now) for mark, times in asked):
            return False
        for mark, _ in asked:
            self._times.setdefault(mark, deque()).append(now)
            self._times.move_to_end(mark)
        while len(self._times) > _MOST_CLIENTS:
            self._times.popitem(last=False)
        return True

    def _mark(self, client: str) -> bytes:
        return hashlib.blake2b(client.encode(), key=self._salt, digest_size=16).digest()

    def _has_room(self, mark: bytes, times: int, now: float) -> bool:
        known = self._times.get(mark)
        if known is None:
            return True
        while known and known[0] <= now - self._longest:
            known.popleft()
        return all(sum(one > now - seconds for one in known) < most * times for most, seconds in self._windows)
