"""Values that describe tasks: a row of `worker_tasks`, and a new task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from menuwatch.core.errors import Refused, unknown_value
from menuwatch.core.postpone import PostponeCode


class Role(StrEnum):
    """Kinds of tasks."""

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
"""Roles that make requests, and so need a proxy."""


class RoleInfo(NamedTuple):
    """A role for people: its name, what its tasks do, and the class that does it."""

    name: str
    description: str
    handler: str


ROLE_INFO: Mapping[Role, RoleInfo] = {
    Role.STORE_DISCOVERY: RoleInfo("Store discovery", "discover new stores", "StoreDiscovery"),
    Role.ENTRY_POINT_DISCOVERY: RoleInfo(
        "Entry point discovery", "resolve a store on its platform by its URL", "EntryPointDiscovery"
    ),
    Role.PRODUCT_DISCOVERY: RoleInfo("Product discovery", "first crawl of a store: menu and details", "PayloadFetch"),
    Role.PAYLOAD_FETCH: RoleInfo("Payload fetch", "fetch menu and update catalog", "PayloadFetch"),
    Role.PRODUCT_REFRESH: RoleInfo("Product refresh", "apply an archived menu to the catalog", "ProductRefresh"),
    Role.ANALYTICS_REFRESH: RoleInfo("Analytics refresh", "recompute analytics", "AnalyticsRefresh"),
}


UNHANDLED_ROLES: frozenset[Role] = frozenset()
"""Roles without a handler in this version, whose tasks would never run. Currently none."""


def parse_role(text: str) -> Role:
    """Parse a current or former role name; raises Refused with the list of names."""
    name = text.strip()
    if name in ROLE_ALIASES:
        return ROLE_ALIASES[name]
    try:
        return Role(name)
    except ValueError:
        raise Refused(unknown_value("role", text, [*Role, *ROLE_ALIASES])) from None


FORMER_WORKER_ROLES: Mapping[str, frozenset[Role]] = {
    "product_resync": frozenset({Role.PAYLOAD_FETCH, Role.PRODUCT_REFRESH})
}
"""What a worker of a former role did: more than the tasks that are enqueued under that name."""


def worker_roles(names: Iterable[str]) -> frozenset[Role]:
    """The roles that a worker with these names accepts; raises Refused as `parse_role`."""
    return frozenset(role for name in names for role in FORMER_WORKER_ROLES.get(name, {parse_role(name)}))


class Status(StrEnum):
    """Status of a task."""

    PENDING = "pending"
    CLAIMED = "claimed"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    STALE = "stale"
    CANCELLED = "cancelled"


class WaitState(StrEnum):
    """What a pending task waits for (the view `live_tasks`)."""

    READY = "ready"
    BLOCKED = "blocked"
    SCHEDULED = "scheduled"


STATES: tuple[Status | WaitState, ...] = (*Status, *WaitState)


def parse_state(text: str) -> Status | WaitState:
    """Parse a status, or a wait state of pending tasks; raises Refused with the list of them."""
    name = text.strip().lower()
    for state in STATES:
        if state == name:
            return state
    raise Refused(unknown_value("status", text, STATES))


def split_states(states: Sequence[Status | WaitState]) -> tuple[list[Status], list[WaitState] | None]:
    """The statuses of tasks in these states, and in which wait states pending ones are; None for any."""
    waits = [state for state in states if isinstance(state, WaitState)]
    statuses = [state for state in states if isinstance(state, Status)]
    if not waits or Status.PENDING in statuses:
        return statuses, None
    return [Status.PENDING, *statuses], waits


PRIORITY_SCHEDULED = 0
PRIORITY_DISCOVERY = 5
PRIORITY_CHAINED = 10
PRIORITY_URGENT = 20

PRIORITY_MIN, PRIORITY_MAX = -1000, 1000


class NewTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task to enqueue. With `unique`, a waiting task of the same role and store (without a store: of the same role, platform and
    payload) is returned instead of a second one."""

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
    postpone_code: PostponeCode | None = None
    postpone_host: str | None = None
