"""How often one client may ask for an alert. Kept in memory, by a mark that means nothing after a restart: no address is stored."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable

MOST = 10
SECONDS = 3600.0
_MOST_CLIENTS = 10_000


class Limits:
    """A window that slides: `most` times in `seconds` for each client."""

    def __init__(
        self, *, most: int = MOST, seconds: float = SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most, self._seconds, self._clock = most, seconds, clock
        self._salt = secrets.token_bytes(16)
        self._times: OrderedDict[bytes, deque[float]] = OrderedDict()

    def allows(self, client: str) -> bool:
        """Whether the client may once more, which then counts."""
        mark = hashlib.blake2b(client.encode(), key=self._salt, digest_size=16).digest()
        now = self._clock()
        times = self._times.setdefault(mark, deque())
        self._times.move_to_end(mark)
        while len(self._times) > _MOST_CLIENTS:
            self._times.popitem(last=False)
        while times and times[0] <= now - self._seconds:
            times.popleft()
        if len(times) >= self._most:
            return False
        times.append(now)
        return True
