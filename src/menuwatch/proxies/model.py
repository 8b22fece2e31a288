"""Values that describe a proxy."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Literal, Self

from msgspec import Struct

from menuwatch.core.errors import NotNow
from menuwatch.core.http import proxy_address
from menuwatch.core.postpone import PostponeCode

Protocol = Literal["http", "https", "socks5"]
Address = tuple[str, str, int, str]
"""Key of a proxy: protocol, host, port and user (empty for none)."""

PROTOCOLS: tuple[Protocol, ...] = ("http", "https", "socks5")

_PAUSE_SECONDS = 5.0
"""Retry delay of a task without a proxy. Workers claim no such tasks while no proxy is active, so this rarely applies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyCounts:
    """Number of proxies in use (`active`), deactivated by their health (`inactive`), not tested yet (`untested`), and disabled by an
    operator (`disabled`).

    `failing` are active ones that failed or were refused three times in a row or more. `next_probe_seconds`: until the first
    inactive or untested one is probed, None if there is none.
    """

    active: int = 0
    inactive: int = 0
    untested: int = 0
    disabled: int = 0
    failing: int = 0
    next_probe_seconds: float | None = None

    @property
    def known(self) -> int:
        """Number of all proxies."""
        return self.active + self.inactive + self.untested + self.disabled

    @property
    def shortage(self) -> str:
        """Message that no proxy is active, and why, as `no active proxy: 12 inactive, next probe in 40 s`."""
        parts = [f"{self.inactive} inactive"] if self.inactive else []
        parts += [f"{self.untested} untested"] if self.untested else []
        parts += [f"{self.disabled} disabled"] if self.disabled else []
        if self.next_probe_seconds is not None:
            soon = round(self.next_probe_seconds)
            parts.append(f"next probe in {soon} s" if soon > 0 else "a probe is due")
        return f"no active proxy: {', '.join(parts)}" if parts else "no active proxy"


class NoProxy(NotNow):
    """No proxy is active: tasks that need one are postponed until an operator or a probe activates one."""

    def __init__(self, standing: ProxyCounts | None = None) -> None:
        """`standing`: the proxy counts, for a more detailed message."""
        found = standing or ProxyCounts()
        super().__init__(
            f"{found.shortage}. Nothing is fetched without one; add one with "
            "`menuwatch proxies add http://USER:PASSWORD@HOST:PORT`",
            _PAUSE_SECONDS,
            code=PostponeCode.NO_PROXY,
        )


class ProbeState(StrEnum):
    """Result of the last failed test or probe. `untested`: the test could not be made, which is not the proxy's fault."""

    UNTESTED = "untested"
    FAILED = "failed"


class TestFailure(Struct, frozen=True):
    """Why a proxy is not activated yet. `reason` is for people and holds no password."""

    __test__ = False  # keeps pytest from collecting it

    state: ProbeState
    reason: str

    @classmethod
    def untested(cls, reason: str) -> Self:
        """The proxy could not be tested."""
        return cls(ProbeState.UNTESTED, f"not tested: {reason}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewProxy:
    """A proxy to add. `state` and `country` are two-letter codes, `timezone` an IANA name."""

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
        """Key that identifies the proxy."""
        return self.protocol, self.host, self.port, self.username or ""

    @property
    def address(self) -> str:
        """Its URL without the password."""
        return proxy_address(self.protocol, self.host, self.port, self.username)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """One row of `proxies`. `failure_count` and `consecutive_403_count` count since the last success.

    `password` is as stored: encrypted if a key is configured, and decrypted (passwords.py) only to connect.
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
    probe_state: ProbeState | None = None
    tags: Sequence[str] = ()

    @property
    def address(self) -> str:
        """Its URL without the password."""
        return proxy_address(self.protocol, self.host, self.port, self.username)


def untried(new: NewProxy) -> Proxy:
    """The new proxy as a Proxy, so that it can be tested before it has a row."""
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
