"""A proxy as a value."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from menuwatch.core.errors import Throttled

Protocol = Literal["http", "https", "socks5"]
PROTOCOLS: tuple[Protocol, ...] = ("http", "https", "socks5")

_PAUSE_SECONDS = 60.0


class NoProxy(Throttled):
    """No active proxy is left: nothing may be fetched, so network work is postponed until a person or a probe helps."""

    def __init__(self) -> None:
        super().__init__(
            "no active proxy: nothing is fetched without one. Add one with "
            "`menuwatch proxies add http://USER:PASSWORD@HOST:PORT`",
            _PAUSE_SECONDS,
        )


def address(protocol: str, host: str, port: int, username: str | None) -> str:
    """A proxy's name for people: all of it but the password."""
    name = f"[{host}]" if ":" in host else host
    login = f"{username}@" if username else ""
    return f"{protocol}://{login}{name}:{port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewProxy:
    """A proxy as a person gives it. `state` and `country` in two letters, `timezone` an IANA name."""

    protocol: Protocol
    host: str
    port: int
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    city: str | None = None
    state: str | None = None
    country: str | None = None
    timezone: str | None = None

    @property
    def address(self) -> str:
        """Its name for people, without the password."""
        return address(self.protocol, self.host, self.port, self.username)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """One row of `proxies`. `failure_count` and `consecutive_403_count` count since the last success."""

    id: int
    protocol: Protocol
    host: str
    port: int
    username: str | None
    password: str | None = field(repr=False)
    is_active: bool
    city: str | None
    state: str | None
    country: str | None
    timezone: str | None
    last_used_at: datetime | None
    failure_count: int
    success_count: int
    consecutive_403_count: int
    avg_response_time_ms: float | None
    last_failure_at: datetime | None
    last_error: str | None
    deactivated_at: datetime | None
    created_at: datetime
    updated_at: datetime

    @property
    def address(self) -> str:
        """Its name for people, without the password."""
        return address(self.protocol, self.host, self.port, self.username)
