"""Roles, permissions, users, tokens, and the principal of a request."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Struct

from menuwatch.core.shapes import Instant, doc


class Role(StrEnum):
    """Role of a user. Each has all permissions of the one before."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


class Permission(StrEnum):
    """Permission of a role; also a scope of a token."""

    READ = "read"
    """Everything but accounts."""
    TASKS = "tasks:write"
    SCHEDULES = "schedules:write"
    WORKERS = "workers:write"
    RUN_TASKS = "workers:run"
    """To be a worker: register, send heartbeats, claim and end tasks."""
    STORES = "stores:write"
    PAYLOADS = "payloads:write"
    PROXIES = "proxies:write"
    HOSTS = "hosts:write"
    ALERTS = "alerts:write"
    MATCHING = "matching:write"
    IMAGES = "images:write"
    EXPORT = "export"
    ACCOUNTS = "accounts:write"
    """Users, tokens of others, and the audit."""


ALLOWED: dict[Role, frozenset[Permission]] = {
    Role.VIEWER: frozenset({Permission.READ, Permission.EXPORT}),
    Role.OPERATOR: frozenset(Permission) - {Permission.ACCOUNTS},
    Role.ADMIN: frozenset(Permission),
}
"""Permissions of each role."""


class Principal(Struct, frozen=True, kw_only=True):
    """Who sends a request. `token_id` is set for an API token, `session` (the id) for a login."""

    name: str
    role: Role
    permissions: frozenset[Permission]
    user_id: int | None = None
    token_id: int | None = None
    session: str | None = None
    must_change_password: bool = False
    """The password is temporary: until the user has chosen their own, they have no permission."""

    def may(self, permission: Permission) -> bool:
        return permission in self.permissions


class User(Struct, kw_only=True, frozen=True):
    """A user account."""

    id: int
    name: str
    role: Annotated[Role, doc("`viewer` reads, `operator` also acts, `admin` also manages accounts.")]
    must_change_password: Annotated[bool, doc("Whether the user still has a temporary password that they must change.")]
    disabled_at: Annotated[Instant | None, doc("When the user and their tokens were disabled; null if enabled.")]
    created_at: Instant
    updated_at: Annotated[Instant, doc("When the role, password or state last changed.")]
    password_changed_at: Instant
    last_login_at: Annotated[Instant | None, doc("Null if the user has never logged in.")]


class Token(Struct, kw_only=True, frozen=True):
    """An API token, without its secret."""

    id: int
    user_id: Annotated[int, doc("Id of the owner.")]
    owner: Annotated[str, doc("User name of the owner.")]
    name: Annotated[str, doc("Purpose of the token.")]
    scopes: Annotated[
        tuple[Permission, ...], doc("Granted permissions; effective only as far as the owner's role has them.")
    ]
    created_at: Instant
    expires_at: Annotated[Instant | None, doc("Null if the token never expires.")]
    last_used_at: Annotated[Instant | None, doc("Last use, to the minute; null if never used.")]
    revoked_at: Annotated[Instant | None, doc("Null if the token was not revoked.")]
