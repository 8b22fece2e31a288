"""A proxy as a value."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from menuwatch.core.errors import NotNow

Protocol = Literal["http", "https", "socks5"]
Address = tuple[str, str, int, str]
"""What makes two proxies the same one: protocol, host, port and user (empty for none)."""

PROTOCOLS: tuple[Protocol, ...] = ("http", "https", "socks5")

_PAUSE_SECONDS = 5.0
"""Workers claim nothing that needs a proxy while there is none, so that this is not how often it is tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How many proxies may be picked (`active`), are out for their health (`inactive`), were taken out by an operator (`disabled`).

    `failing` are active ones that failed or were refused three times in a row or more. `next_probe_seconds`: until the first of the
    inactive is tried again, None where none is.
    """

    active: int = 0
    inactive: int = 0
    disabled: int = 0
    failing: int = 0
    next_probe_seconds: float | None = None

    @property
    def known(self) -> int:
        """All of them."""
        return self.active + self.inactive + self.disabled

    @property
    def shortage(self) -> str:
        """That there is no active one, and why, as `no active proxy: 12 inactive, next probe in 40 s`."""
        parts = [f"{self.inactive} inactive"] if self.inactive else []
        parts += [f"{self.disabled} disabled"] if self.disabled else []
        if self.next_probe_seconds is not None:
            soon = round(self.next_probe_seconds)
            parts.append(f"next probe in {soon} s" if soon > 0 else "a probe is due")
        return f"no active proxy: {', '.join(parts)}" if parts else "no active proxy"


class NoProxy(NotNow):
    """No active proxy is left: nothing may be fetched, so network work is postponed until a person or a probe helps."""

    def __init__(self, standing: Standing | None = None) -> None:
        """`standing` is how the proxies are; with it the message says more."""
        found = standing or Standing()
        super().__init__(
            f"{found.shortage}. Nothing is fetched without one; add one with "
            "`menuwatch proxies add http://USER:PASSWORD@HOST:PORT`",
            _PAUSE_SECONDS,
        )


UNTESTED = "not tested: "
"""How the reason of a proxy begins that could not be tested."""


class Untested(str):
    """A reason for which a proxy was not tested: it speaks neither for nor against it."""

    __slots__ = ()


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
    def key(self) -> Address:
        """What makes it the same as another one."""
        return self.protocol, self.host, self.port, self.username or ""

    @property
    def address(self) -> str:
        """Its name for people, without the password."""
        return address(self.protocol, self.host, self.port, self.username)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """One row of `proxies`. `failure_count` and `consecutive_403_count` count since the last success.

    `password` as it is stored: sealed where a key is configured, and opened (vault.py) only where a connection is made.
    """

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
    disabled_at: datetime | None = None
    disabled_reason: str | None = None
    probe_at: datetime | None = None
    probe_failures: int = 0

    @property
    def address(self) -> str:
        """Its name for people, without the password."""
        return address(self.protocol, self.host, self.port, self.username)


def untried(new: NewProxy) -> Proxy:
    """The proxy as if it had a row, so that a request can be made through it before it has one."""
    never = datetime.fromtimestamp(0, UTC)
    shared = {spec.name: getattr(new, spec.name) for spec in dataclasses.fields(NewProxy)}
    return Proxy(
        id=0,
        is_active=True,
        last_used_at=None,
        failure_count=0,
        success_count=0,
        consecutive_403_count=0,
        avg_response_time_ms=None,
        last_failure_at=None,
        last_error=None,
        deactivated_at=None,
        created_at=never,
        updated_at=never,
        **shared,
    )
