"""What people did, and programs for them: one row for each write, in the transaction of the write itself.

Who acts is known to the face that lets them in, and lies in a context variable: operations say only what was done. What the engine
does by itself is nobody's doing and is not recorded; the log and the history of tasks have it.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from menuwatch.accounts.model import Principal
from menuwatch.core.telemetry import get_logger
from menuwatch.db import sql
from menuwatch.operations.reading import Row, rows

log = get_logger(__name__)
_q = sql.load(__package__, "audit.sql")

Via = Literal["api", "dashboard", "cli"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who acts, and through which face."""

    name: str
    kind: Literal["user", "token", "cli"]
    via: Via
    user_id: int | None = None
    token_id: int | None = None
    request_id: str | None = None

    @classmethod
    def of(cls, principal: Principal, *, via: Via, request_id: str | None = None) -> Actor:
        """The one that a request comes from."""
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
        """Whoever types a command: the account of the operating system, whatever its environment says."""
        try:
            name = pwd.getpwuid(os.getuid()).pw_name
        except KeyError:
            name = str(os.getuid())
        return cls(name=f"cli:{name}", kind="cli", via="cli")


_actor: ContextVar[Actor | None] = ContextVar("actor", default=None)


@contextmanager
def acting(actor: Actor | None) -> Iterator[None]:
    """Who acts, for as long as the context lasts."""
    token = _actor.set(actor)
    try:
        yield
    finally:
        _actor.reset(token)


def act_as(actor: Actor) -> None:
    """Who acts, from now on: for a process that one person started."""
    _actor.set(actor)


def actor() -> Actor | None:
    """Who acts, None where nobody does."""
    return _actor.get()


async def record(
    conn: AsyncConnection[Any], action: str, subject: tuple[str, int | str] | None = None, /, **details: Any
) -> None:
    """Notes that this was done, to `subject` (its kind and id), in the transaction of `conn`; and says so in the log.

    `details` are for people who look back: what was changed and to what. Never a secret, an address with a password, or a token.
    """
    named = {} if subject is None else {f"{subject[0]}_id": subject[1]}
    who = _actor.get()
    log.info(action.replace("_", " "), action=action, **{**details, **named}, actor=None if who is None else who.name)
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
    """As JSON can hold it."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(inner) for inner in (sorted(value) if isinstance(value, set | frozenset) else value)]
    if isinstance(value, bool | int | float | None):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value)


async def page(
    conn: AsyncConnection[Any],
    *,
    actor: str | None = None,
    action: str | None = None,
    subject_kind: str | None = None,
    subject_id: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    after: int | None = None,
    limit: int = 50,
) -> list[Row]:
    """What was done, newest first, before the one numbered `after`."""
    values = {
        "actor": actor,
        "action": action,
        "subject_kind": subject_kind,
        "subject_id": subject_id,
        "since": since,
        "until": until,
        "after": after,
        "limit": limit,
    }
    return await rows(conn, _q.page, values, prepare=False)


CHOICES = 500
"""Most actors, actions and kinds that there are to choose from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the audit has entries of: who acted, what was done, and to which kinds of things."""

    actors: list[str]
    actions: list[str]
    kinds: list[str]


async def seen(conn: AsyncConnection[Any]) -> Seen:
    """What there is to choose from."""
    (found,) = await rows(conn, _q.seen, {"limit": CHOICES})
    return Seen(**found)
