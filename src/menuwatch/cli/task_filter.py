"""Which tasks a command is about, as it was typed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from menuwatch.core.errors import Refused
from menuwatch.db.pool import Connection
from menuwatch.operations.tasks import TaskFilter
from menuwatch.stores import store as stores
from menuwatch.tasks.model import Status, parse_role

RoleOption = Annotated[list[str] | None, typer.Option("--role", help="Only this role (repeat for several).")]
StatusOption = Annotated[list[str] | None, typer.Option("--status", help="Only this state (repeat for several).")]
StoreOption = Annotated[str | None, typer.Option("--store", help="Only this store: its slug, platform id or number.")]
ErrorOption = Annotated[str | None, typer.Option("--error", help="Only tasks whose reason holds this text.")]
WorkerOption = Annotated[str | None, typer.Option("--worker", help="Only tasks that this worker has or had.")]
AllOption = Annotated[bool, typer.Option("--all", help="Every task there is.")]


@dataclass(frozen=True, slots=True)
class Chosen:
    """A filter as it was typed; raises Refused for a text that nothing can be searched for by."""

    role: Sequence[str] | None
    status: Sequence[str] | None
    store: str | None
    worker: str | None
    error: str | None
    everything: bool = False

    def given(self) -> bool:
        """Whether it selects anything, other than everything."""
        texts = (self.store, self.worker, self.error)
        return any((self.role, self.status)) or any(text is not None for text in texts)

    def __post_init__(self) -> None:
        for option, text in (("--store", self.store), ("--worker", self.worker), ("--error", self.error)):
            if text is not None:
                searchable(option, text)

    async def filter(self, conn: Connection) -> TaskFilter:
        """As the queue is asked; raises Refused for what does not exist."""
        return TaskFilter(
            roles=[parse_role(one) for one in self.role] if self.role else None,
            statuses=[parse_status(one) for one in self.status] if self.status else None,
            dispensary_id=None if self.store is None else await store_number(conn, self.store),
            worker_id=self.worker,
            error=self.error,
        )


_LONGEST = 200


def searchable(option: str, text: str) -> None:
    """Raises Refused for a text that the API takes neither: an empty one would select everything."""
    if not text:
        raise Refused(f"{option} is empty: give a text, or leave it out")
    if len(text) > _LONGEST:
        raise Refused(f"{option} has {len(text):,} characters: it may have {_LONGEST}")
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise Refused(f"{option} {text!r} holds a character that no text in the database has")


def parse_status(text: str) -> Status:
    """The state of that name; raises Refused with the list of names."""
    try:
        return Status(text.strip().lower())
    except ValueError:
        raise Refused(f"status {text!r} does not exist: it is one of {', '.join(Status)}") from None


async def store_number(conn: Connection, text: str) -> int:
    """The number of a store that is named by its slug, platform id or number; raises Refused."""
    found = await stores.find(conn, text)
    if found is None:
        some = ", ".join(f"{one.id} ({one.slug})" for one in await stores.page(conn, limit=10))
        raise Refused(
            f"store {text!r} does not exist: there is {some or 'none yet'}; `menuwatch stores list` shows all"
        )
    return found.id
