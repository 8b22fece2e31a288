"""Tasks as values: what a row of `worker_tasks` says, and what a new one asks for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from menuwatch.core.errors import Refused


class Role(StrEnum):
    """The kinds of work."""

    STORE_DISCOVERY = "store_discovery"
    ENTRY_POINT_DISCOVERY = "entry_point_discovery"
    PRODUCT_DISCOVERY = "product_discovery"
    PAYLOAD_FETCH = "payload_fetch"
    PRODUCT_REFRESH = "product_refresh"
    ANALYTICS_REFRESH = "analytics_refresh"


ROLE_ALIASES: Mapping[str, Role] = {"product_resync": Role.PAYLOAD_FETCH}
"""Former names, accepted wherever a role is given."""

PER_STORE_ROLES = frozenset(
    {Role.ENTRY_POINT_DISCOVERY, Role.PRODUCT_DISCOVERY, Role.PAYLOAD_FETCH, Role.PRODUCT_REFRESH}
)
NETWORK_ROLES = frozenset(
    {Role.STORE_DISCOVERY, Role.ENTRY_POINT_DISCOVERY, Role.PRODUCT_DISCOVERY, Role.PAYLOAD_FETCH}
)
"""Roles whose work leaves the machine, and so needs a proxy."""


UNHANDLED_ROLES: frozenset[Role] = frozenset()
"""Roles that have a name and no handler in this version: nobody would ever run such a task. This one does all of them."""


def parse_role(text: str) -> Role:
    """The role of that name or former name; raises Refused with the list of names."""
    name = text.strip()
    if name in ROLE_ALIASES:
        return ROLE_ALIASES[name]
    try:
        return Role(name)
    except ValueError:
        names = ", ".join([*Role, *ROLE_ALIASES])
        raise Refused(f"role {text!r} does not exist: it is one of {names}") from None


class Status(StrEnum):
    """Where a task stands."""

    PENDING = "pending"
    CLAIMED = "claimed"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    STALE = "stale"
    CANCELLED = "cancelled"


PRIORITY_SCHEDULED = 0
PRIORITY_DISCOVERY = 5
PRIORITY_CHAINED = 10
PRIORITY_URGENT = 20


class NewTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task to enqueue. With `unique`, a waiting task of the same role and store is returned instead of a second one."""

    role: Role
    dispensary_id: int | None = None
    platform: str = "dutchie"
    priority: int = PRIORITY_SCHEDULED
    scheduled_for: datetime | None = None
    payload: Mapping[str, Any] | None = None
    max_retries: int = 3
    unique: bool = True


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `worker_tasks`. `attempt` counts claims and fences a worker that lost the task."""

    id: int
    role: Role
    dispensary_id: int | None
    platform: str
    status: Status
    priority: int
    scheduled_for: datetime | None
    worker_id: str | None
    claimed_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    last_heartbeat_at: datetime | None
    result: Mapping[str, Any] | None
    error_message: str | None
    retry_count: int
    max_retries: int
    payload: Mapping[str, Any] = msgspec.field(default_factory=dict)
    created_at: datetime
    updated_at: datetime
    attempt: int = 0
    postpone_count: int = 0
