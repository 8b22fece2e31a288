"""Who asks, and what they may do: roles, permissions, and the principal that every request of a person or program has."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Role(StrEnum):
    """What a user is here. Each may do all that the one before may."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


class Permission(StrEnum):
    """One thing that one may be allowed to do; also the scopes that a token can have."""

    READ = "read"
    """Look at everything but accounts."""
    TASKS = "tasks:write"
    SCHEDULES = "schedules:write"
    WORKERS = "workers:write"
    STORES = "stores:write"
    PAYLOADS = "payloads:write"
    PROXIES = "proxies:write"
    HOSTS = "hosts:write"
    ALERTS = "alerts:write"
    IMAGES = "images:write"
    EXPORT = "export"
    ACCOUNTS = "accounts:write"
    """Users, tokens of others, and the audit."""


ALLOWED: dict[Role, frozenset[Permission]] = {
    Role.VIEWER: frozenset({Permission.READ, Permission.EXPORT}),
    Role.OPERATOR: frozenset(Permission) - {Permission.ACCOUNTS},
    Role.ADMIN: frozenset(Permission),
}
"""What each role may do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who asks. `user_id` is None for a program that no user stands behind; `token_id` is set where a token was shown, and
    `session` is the session's id where a browser asks."""

    name: str
    role: Role
    permissions: frozenset[Permission]
    user_id: int | None = None
    token_id: int | None = None
    session: str | None = None
    must_change_password: bool = False
    """The password was given to them by somebody else: until they have chosen their own, they are allowed nothing."""

    def may(self, permission: Permission) -> bool:
        """Whether they are allowed to."""
        return permission in self.permissions


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A person (or what stands for one) that may log in. Its password is nowhere in it."""

    id: int
    name: str
    role: Role
    must_change_password: bool
    disabled_at: datetime | None
    created_at: datetime
    updated_at: datetime
    password_changed_at: datetime
    last_login_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token as it may be shown: without its secret, which nobody here knows."""

    id: int
    user_id: int
    owner: str
    name: str
    scopes: tuple[Permission, ...]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
