"""Tools: what a client can ask for, and how an answer is made of it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from hashlib import blake2b
from typing import Any, Generic, TypeVar, get_args

import msgspec
import psycopg
from msgspec import Struct
from pydantic import Field, ValidationError

from menuwatch.accounts.model import Permission, Principal
from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.core.errors import Refused
from menuwatch.core.logging import get_logger
from menuwatch.db.pool import Connection, Pool
from menuwatch.geo.states import NAMES, PROVINCES, no_store_in
from menuwatch.mcp.answer import (
    MAX_CHARACTERS,
    AnswerCoverage,
    AnswerFreshness,
    AnswerLimits,
    CutBy,
    Page,
    answer_shape,
    encode,
    schema_of,
)
from menuwatch.stores.service import StoreFilter, count_observed
from menuwatch.web import paging
from menuwatch.web.dependencies import AppContext
from menuwatch.web.inputs import Input
from menuwatch.web.validation import LONGEST_VALUE, describe

log = get_logger(__name__)

USUAL_ROWS, MOST_ROWS = 25, 200
LONGEST_SECONDS = 30
"""Longest time of one statement of a tool."""

T = TypeVar("T")
Q = TypeVar("Q", bound=Input)


class ToolError(Exception):
    """A call that cannot be answered; the message says what is wrong and what would be right."""


class DatabaseAway(ToolError):
    """Nothing is wrong with the call: the database cannot be reached."""


class ListInput(Input):
    """Input of a tool that lists rows."""

    limit: int = Field(USUAL_ROWS, ge=1, le=MOST_ROWS, description="Maximum number of rows in the answer.")
    cursor: str | None = Field(
        None, max_length=4000, description="`limits.next` of the previous answer, with otherwise the same arguments."
    )


class Call(Struct, frozen=True, kw_only=True):
    """What a tool works with. `limit` and `cursor` are None for tools without rows."""

    app: AppContext
    conn: Connection
    mark: str
    limit: int
    cursor: str | None

    def after(self, kind: type[T]) -> T | None:
        """Where this page starts, a tuple of that type; None for the first page. Raises ToolError."""
        if self.cursor is None:
            return None
        try:
            mark, values = paging.decode(self.cursor, tuple[str, msgspec.Raw])
            if mark != self.mark:
                raise ToolError(
                    "cursor: it belongs to another tool or other arguments; repeat those of the call that returned it"
                )
            return msgspec.json.decode(values, type=kind)
        except (paging.BadCursor, msgspec.MsgspecError):
            raise ToolError("cursor: not valid; send `limits.next` of an answer unchanged, or leave it out") from None

    @property
    def start(self) -> int:
        """The same for rows that are counted off."""
        (start,) = self.after(tuple[int]) or (0,)
        if start < 0:
            raise ToolError("cursor: not valid; send `limits.next` of an answer unchanged, or leave it out")
        return start

    def part_of(self, rows: Sequence[Any]) -> tuple[Sequence[Any], tuple[int] | None]:
        """The rows of this page, of rows that are all known, and the key of the next page."""
        end = self.start + self.limit
        return rows[self.start : end], (end,) if len(rows) > end else None

    @property
    def archived(self) -> ParquetPartitions:
        """Packed months of the history."""
        return ParquetPartitions(self.app.archive.storage)

    async def observed(
        self, scope: str, where: StoreFilter, ids: Sequence[int] | None = None, *, shown: Sequence[int] | None = None
    ) -> dict[str, Any]:
        """`coverage` and the times of the crawls, as members of a Page: of the stores of a filter, or those of them with these `ids`;
        the times are those of the stores that are `shown`, if given."""
        all_of = await count_observed(self.conn, where, ids)
        of = all_of if shown is None else await count_observed(self.conn, StoreFilter(), sorted(set(shown)))
        coverage = AnswerCoverage(
            scope=scope, stores=all_of.stores, partial=all_of.partial, known_stores=all_of.known_stores
        )
        return {"coverage": coverage, "newest": of.newest_at, "oldest": of.oldest_at}


def state_name(state: str | None) -> str:
    """How a scope names a state."""
    if state == "unknown":
        return "stores without a known state"
    return "all stores" if state in (None, "all") else {**NAMES, **PROVINCES}.get(str(state), f"state {state}")


@contextlib.asynccontextmanager
async def reading(pool: Pool, what: str) -> AsyncIterator[Connection]:
    """A transaction that sees one moment, writes nothing and has a time limit. `what` names the tool or resource in the log. Raises
    ToolError if the database is unreachable, refuses a value or takes too long: its own messages may name its host and user."""
    try:
        async with pool.connection(timeout=10) as conn, conn.transaction():
            await conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            await conn.execute(f"SET LOCAL statement_timeout = '{LONGEST_SECONDS}s'")
            yield conn
    except psycopg.errors.QueryCanceled:
        raise ToolError(
            f"the answer takes more than {LONGEST_SECONDS} seconds: narrow the request, for example to one state or store"
        ) from None
    except psycopg.errors.DataError:
        raise ToolError(
            "a value is out of the range that can be looked up: use a smaller number or an ordinary text"
        ) from None
    except psycopg.OperationalError as error:  # among them that no connection became free or could be made in time
        log.error("database error", action="mcp_database_error", what=what, exc_info=error)
        raise DatabaseAway("the database cannot be reached at the moment: try again in a minute") from None


Run = Callable[[Call, Q], Awaitable[Page]]


@dataclass(frozen=True, kw_only=True)
class Tool(Generic[Q]):
    """One tool. `permissions` are all required."""

    name: str
    title: str
    description: str
    permissions: frozenset[Permission]
    inputs: type[Q]
    answer: type[Struct]
    run: Run[Q]

    @property
    def has_rows(self) -> bool:
        """Whether it answers with a list, page by page."""
        return issubclass(self.inputs, ListInput)

    def is_open_to(self, principal: Principal) -> bool:
        """Whether the caller may use it."""
        return self.permissions <= principal.permissions

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """The JSON schema of its arguments."""
        schema: dict[str, Any] = _without_titles(self.inputs.model_json_schema())
        schema.pop("description", None)
        return schema

    @cached_property
    def output_schema(self) -> dict[str, Any]:
        """The JSON schema of its answer."""
        return schema_of(self.answer)

    async def call(self, app: AppContext, arguments: Mapping[str, Any]) -> bytes:
        """The answer as JSON; raises ToolError."""
        started = time.monotonic()
        try:
            query = self.inputs.model_validate(dict(arguments))
            async with reading(app.pool, self.name) as conn:
                body = await self._answer(app, conn, query, self._mark(arguments))
        except ValidationError as error:
            raise ToolError(_describe(error, self.inputs)) from None
        except Refused as error:
            field = getattr(error, "field", None)
            raise ToolError(f"{field}: {error}" if field else str(error)) from None
        log.info("tool called", action="mcp_tool", tool=self.name, ms=round((time.monotonic() - started) * 1000, 1))
        return body

    def _mark(self, arguments: Mapping[str, Any]) -> str:
        """What a cursor belongs to: the tool and the arguments as they were given."""
        given = {
            name: value for name, value in arguments.items() if name not in ("limit", "cursor") and value is not None
        }
        return blake2b(msgspec.json.encode([self.name, given], order="deterministic"), digest_size=6).hexdigest()

    async def _answer(self, app: AppContext, conn: Connection, query: Q, mark: str) -> bytes:
        asked = limit = getattr(query, "limit", 0)
        cut_by: CutBy | None = None
        while True:
            call = Call(app=app, conn=conn, mark=mark, limit=limit, cursor=getattr(query, "cursor", None))
            page = await self.run(call, query)
            body = self._encode(page, asked, mark, cut_by)
            if len(body) <= MAX_CHARACTERS or len(body.decode()) <= MAX_CHARACTERS:
                return body
            if limit <= 1 or len(page.rows) <= 1:
                raise ToolError(
                    f"the answer would have {len(body):,} characters, more than {MAX_CHARACTERS:,}: ask for less, such as a shorter "
                    "time or fewer items"
                )
            cut_by, limit = "characters", max(1, min(self._fitting(page, len(body)), len(page.rows) - 1))

    @staticmethod
    def _fitting(page: Page, length: int) -> int:
        """How many of the rows fit, by their own lengths."""
        sizes = [len(encode(row)) + 1 for row in page.rows]
        room = MAX_CHARACTERS - (length - sum(sizes)) - 1_000
        fitting = 0
        for size in sizes:
            room -= size
            if room < 0:
                break
            fitting += 1
        return fitting

    def _encode(self, page: Page, max_rows: int, mark: str, cut_by: CutBy | None) -> bytes:
        is_cut = page.next is not None
        cursor = None if page.next is None else paging.encode(mark, page.next)
        notice = page.notice
        if notice is None and page.coverage is not None and not page.coverage.known_stores:
            notice = no_store_in(page.coverage.scope)
        items = {"items": list(page.rows)} if "items" in self.answer.__struct_fields__ else {}
        limits = AnswerLimits(
            rows=len(page.rows),
            max_rows=max_rows,
            max_characters=MAX_CHARACTERS,
            is_cut=is_cut,
            cut_by=(cut_by or "rows") if is_cut else None,
            next=cursor,
            how_to_get_more="Call the tool again with the same arguments and `cursor` set to `limits.next`."
            if is_cut
            else None,
        )
        freshness = AnswerFreshness(
            newest_observed_at=page.newest, oldest_observed_at=page.oldest, refreshed_at=page.refreshed_at
        )
        return encode(
            self.answer(
                **page.members, **items, notice=notice, freshness=freshness, coverage=page.coverage, limits=limits
            )
        )


def tool(
    title: str,
    inputs: type[Q],
    *,
    row: Any = None,
    permissions: Sequence[Permission] = (),
    name: str | None = None,
    description: str | None = None,
    **members: Any,
) -> Callable[[Run[Q]], Tool[Q]]:
    """Decorator: the function as a tool of its name, described by its docstring. Its answer has `items` of the type `row`, and
    `members`."""

    def make(run: Run[Q]) -> Tool[Q]:
        own = name or run.__name__
        text = " ".join((description or run.__doc__ or "").split())
        answer = answer_shape("".join(part.title() for part in own.split("_")) + "Answer", row, members)
        needed = frozenset({Permission.READ, *permissions})
        return Tool(name=own, title=title, description=text, permissions=needed, inputs=inputs, answer=answer, run=run)

    return make


def earliest(times: Sequence[datetime | None]) -> datetime | None:
    """The earliest of the times that are known."""
    return min((time for time in times if time is not None), default=None)


def _without_titles(schema: Any) -> Any:
    """Pydantic titles every property with its own name."""
    if isinstance(schema, dict):
        return {
            key: _without_titles(value)
            for key, value in schema.items()
            if not (key == "title" and isinstance(value, str))
        }
    return [_without_titles(part) for part in schema] if isinstance(schema, list) else schema


def _describe(error: ValidationError, inputs: type[Input]) -> str:
    """What is wrong with the arguments, one part for each of them."""
    parts = []
    for one in error.errors(include_url=False)[:10]:
        path = ".".join(
            str(part) for part in one["loc"] if not str(part).startswith(("function-", "constrained-", "literal["))
        )
        if one["type"] == "extra_forbidden":
            known = ", ".join(inputs.model_fields) or "none"
            parts.append(f"{path[:LONGEST_VALUE]}: no such argument; this tool takes: {known}")
        elif one["type"] == "missing":
            parts.append(f"{path}: required; {inputs.model_fields[str(one['loc'][0])].description}")
        else:
            parts.append(f"{path or 'arguments'}: {describe(one)}")
    return "; ".join(dict.fromkeys(parts)).encode(errors="backslashreplace").decode()


def choices(kind: Any) -> str:
    """The values of a Literal, for a description."""
    return ", ".join(f"`{value}`" for value in get_args(kind))
