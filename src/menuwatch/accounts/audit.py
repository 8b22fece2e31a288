"""The audit log: one row for each write by a person or their program, in the transaction of the write.

The actor is set by the interface and kept in a context variable; services record only the action. What the server and the workers do
by themselves is in the log and the task history instead.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Annotated, Any, Literal, LiteralString

from msgspec import Struct, structs
from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from menuwatch.accounts.model import Principal
from menuwatch.core.errors import InvalidField
from menuwatch.core.logging import get_logger
from menuwatch.core.shapes import Instant, JsonObject, doc
from menuwatch.db import sql
from menuwatch.db.query import fetch_structs

log = get_logger(__name__)
_q = sql.load(__package__, "audit.sql")

Via = Literal["api", "dashboard", "cli"]


class Actor(Struct, frozen=True, kw_only=True):
    """Who acts, and through which interface."""

    name: str
    kind: Literal["user", "token", "cli"]
    via: Via
    user_id: int | None = None
    token_id: int | None = None
    request_id: str | None = None

    @classmethod
    def of(cls, principal: Principal, *, via: Via, request_id: str | None = None) -> Actor:
        return cls(
            name=principal.name,
            kind="user" if principal.token_id is None else "token",
            via=via,
            user_id=principal.user_id,
            token_id=principal.token_id,
            request_id=request_id,
        )

    @classmethod
    def at_terminal(cls) -> Actor:
        """The operating-system account that runs a command, independent of its environment."""
        try:
            name = pwd.getpwuid(os.getuid()).pw_name
        except KeyError:
            name = str(os.getuid())
        return cls(name=f"cli:{name}", kind="cli", via="cli")


_actor: ContextVar[Actor | None] = ContextVar("actor", default=None)


@contextmanager
def actor_context(actor: Actor | None) -> Iterator[None]:
    """Sets the actor within the context."""
    token = _actor.set(actor)
    try:
        yield
    finally:
        _actor.reset(token)


def set_actor(actor: Actor) -> None:
    """Sets the actor for the rest of the process."""
    _actor.set(actor)


def actor() -> Actor | None:
    """The current actor; None for the server and the workers themselves."""
    return _actor.get()


async def record(
    conn: AsyncConnection[Any], action: str, subject: tuple[str, int | str] | None = None, /, **details: Any
) -> None:
    """Records an action on `subject` (its kind and id) in the transaction of `conn`, and logs it.

    `details` say what was changed and to what. They never hold a secret, an address with a password, or a token.
    """
    ids = {} if subject is None else {f"{subject[0]}_id": subject[1]}
    who = _actor.get()
    log.info(action.replace("_", " "), action=action, **{**details, **ids}, actor=None if who is None else who.name)
    if who is None:
        return
    values = {
        "actor": who.name,
        "actor_kind": who.kind,
        "user_id": who.user_id,
        "token_id": who.token_id,
        "via": who.via,
        "action": action,
        "subject_kind": None if subject is None else subject[0],
        "subject_id": None if subject is None else str(subject[1]),
        "details": Jsonb({name: _plain(value) for name, value in details.items() if value is not None}),
        "request_id": who.request_id,
    }
    await conn.execute(_q.record, values)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(inner) for inner in (sorted(value) if isinstance(value, set | frozenset) else value)]
    if isinstance(value, bool | int | float | None):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value)


class AuditEntry(Struct, kw_only=True, frozen=True):
    """One entry of the audit log."""

    id: int
    at: Instant
    actor: Annotated[str, doc("User name, or `cli:` followed by the name of the operating-system account.")]
    actor_kind: Annotated[
        Literal["user", "token", "cli"],
        doc("`user` for a login session, `token` for an API token, `cli` for the command line."),
    ]
    user_id: Annotated[int | None, doc("Null if the user was removed or has no account.")]
    token_id: Annotated[int | None, doc("Null if no token was used.")]
    via: Annotated[Via, doc("Interface.")]
    action: Annotated[str, doc("Action code, for example `task_cancelled` or `user_added`.")]
    subject_kind: Annotated[
        str | None, doc("Kind of the object that was changed, for example `task`; null if there is none.")
    ]
    subject_id: Annotated[str | None, doc("Id or name of the object that was changed; null if there is none.")]
    details: Annotated[JsonObject, doc("Changed fields with their values; never contains secrets.")]
    request_id: Annotated[str | None, doc("Id of the request, as in the log; null outside requests.")]


class AuditFilter(Struct, kw_only=True, frozen=True):
    """Which entries of the audit log. `since` is inclusive, `until` exclusive; the actor is compared regardless of case."""

    actor: str | None = None
    action: str | None = None
    subject_kind: str | None = None
    subject_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def __post_init__(self) -> None:
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise InvalidField("until", "must be after since")


async def list_entries(
    conn: AsyncConnection[Any], where: AuditFilter, *, after: int | None = None, limit: int = 50
) -> list[AuditEntry]:
    """Entries, newest first, before the one with the id `after`."""
    values = structs.asdict(where) | {"after": after, "limit": limit}
    return await fetch_structs(conn, AuditEntry, _q.list_entries, values, prepare=False)


def select_entries(where: AuditFilter) -> tuple[LiteralString, dict[str, Any]]:
    """The statement that lists all entries of a filter, and its parameters."""
    return _q.list_entries, structs.asdict(where) | {"after": None, "limit": None}


MAX_OPTIONS = 500
"""Maximum number of actors, actions and kinds in a filter."""


class FilterOptions(Struct, kw_only=True, frozen=True):
    """Values that occur in the audit log."""

    actors: list[str]
    actions: list[str]
    kinds: list[str]


async def filter_options(conn: AsyncConnection[Any]) -> FilterOptions:
    (options,) = await fetch_structs(conn, FilterOptions, _q.filter_options, {"limit": MAX_OPTIONS})
    return options
