"""Lists of the API, read page by page."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_origin

import msgspec
from msgspec import Struct

from menuwatch_client import tables
from menuwatch_client.core import Call
from menuwatch_client.errors import InvalidResponse
from menuwatch_client.transport import AsyncTransport, SyncTransport

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

T = TypeVar("T")
P = TypeVar("P", bound="Page[Any]")


class Page(Struct, Generic[T], kw_only=True, frozen=True):
    """One page of a list. Lists with further members have their own page types, for example `GetProductHistoryPage`."""

    items: list[T]
    next: str | None
    """Cursor of the next page; None on the last page."""

    @property
    def following(self) -> str | None:
        """Cursor of the page to read next; None at the end. A feed always has a `next`, and says with `more` whether it is the end."""
        return self.next if getattr(self, "more", True) else None


class _List(Generic[T, P]):
    """A list with its filters. Nothing is requested before it is read; each reading begins at the first page."""

    def __init__(self, call: Call, item: Any, page: Any) -> None:
        self._call = call
        self._item = item
        self._page = page

    def _at(self, cursor: str | None) -> Call:
        return self._call if cursor is None else replace(self._call, query={**self._call.query, "cursor": cursor})

    def _following(self, page: P, before: str | None) -> str | None:
        following = page.following
        if following is not None and following == before:
            raise InvalidResponse(f"GET {self._call.path} returned the cursor of its own page")
        return following

    def _selected(self, names: tuple[str, ...]) -> tuple[Call, Any, Any]:
        if not names:
            raise ValueError("name at least one member, for example select('id', 'name')")
        item = _partial(self._item, names)
        # A type that is known at run time only.
        generic: Any = get_origin(self._page) or Page
        page = generic[item]
        call = replace(self._call, query={**self._call.query, "fields": ",".join(names)}, returns=page)
        return call, item, page


@functools.cache
def _partial(item: Any, names: tuple[str, ...]) -> Any:
    """A type of items with these members only. Unknown names are refused by the server, which lists the valid ones."""
    if not isinstance(item, type) or not issubclass(item, Struct):
        return dict[str, Any]
    known = {field.encode_name: field for field in msgspec.structs.fields(item)}
    chosen = [known[name] for name in names if name in known]
    rename = {field.name: field.encode_name for field in chosen}
    members = [(field.name, field.type) for field in chosen]
    return msgspec.defstruct(f"{item.__name__}Selection", members, kw_only=True, frozen=True, rename=rename)


class Pages(_List[T, P]):
    """A list of the API: iterate over it for all items of all pages."""

    def __init__(self, transport: SyncTransport, call: Call, item: Any, page: Any) -> None:
        super().__init__(call, item, page)
        self._transport = transport

    def pages(self) -> Iterator[P]:
        """Page by page, with all members of the pages."""
        cursor: str | None = None
        while True:
            page: P = self._transport.call(self._at(cursor))
            yield page
            cursor = self._following(page, cursor)
            if cursor is None:
                return

    def first_page(self) -> P:
        """The first page."""
        page: P = self._transport.call(self._call)
        return page

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield from page.items

    def to_list(self) -> list[T]:
        """All items."""
        return list(self)

    def select(self, *names: str) -> Pages[Any, Page[Any]]:
        """The same list with only these members of each item, named as in the API."""
        call, item, page = self._selected(names)
        return Pages(self._transport, call, item, page)

    def to_arrow(self, *, exact: bool = False) -> pa.Table:
        """All items as an Arrow table (see `menuwatch_client.to_arrow`)."""
        return tables.to_arrow(self.to_list(), self._item, exact=exact)

    def to_pandas(self, *, exact: bool = False) -> pd.DataFrame:
        """All items as a DataFrame of pandas (see `menuwatch_client.to_pandas`)."""
        return tables.to_pandas(self.to_list(), self._item, exact=exact)

    def to_polars(self, *, exact: bool = False) -> pl.DataFrame:
        """All items as a DataFrame of Polars (see `menuwatch_client.to_polars`)."""
        return tables.to_polars(self.to_list(), self._item, exact=exact)


class AsyncPages(_List[T, P]):
    """A list of the API: iterate over it with `async for` for all items of all pages."""

    def __init__(self, transport: AsyncTransport, call: Call, item: Any, page: Any) -> None:
        super().__init__(call, item, page)
        self._transport = transport

    async def pages(self) -> AsyncIterator[P]:
        """Page by page, with all members of the pages."""
        cursor: str | None = None
        while True:
            page: P = await self._transport.call(self._at(cursor))
            yield page
            cursor = self._following(page, cursor)
            if cursor is None:
                return

    async def first_page(self) -> P:
        """The first page."""
        page: P = await self._transport.call(self._call)
        return page

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for item in page.items:
                yield item

    async def to_list(self) -> list[T]:
        """All items."""
        return [item async for item in self]

    def select(self, *names: str) -> AsyncPages[Any, Page[Any]]:
        """The same list with only these members of each item, named as in the API."""
        call, item, page = self._selected(names)
        return AsyncPages(self._transport, call, item, page)

    async def to_arrow(self, *, exact: bool = False) -> pa.Table:
        """All items as an Arrow table (see `menuwatch_client.to_arrow`)."""
        return tables.to_arrow(await self.to_list(), self._item, exact=exact)

    async def to_pandas(self, *, exact: bool = False) -> pd.DataFrame:
        """All items as a DataFrame of pandas (see `menuwatch_client.to_pandas`)."""
        return tables.to_pandas(await self.to_list(), self._item, exact=exact)

    async def to_polars(self, *, exact: bool = False) -> pl.DataFrame:
        """All items as a DataFrame of Polars (see `menuwatch_client.to_polars`)."""
        return tables.to_polars(await self.to_list(), self._item, exact=exact)
