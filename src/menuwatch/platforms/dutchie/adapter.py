"""The Dutchie adapter: its requests (GraphQL, with the full query after a persisted query is refused) and menu links."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from itertools import pairwise
from typing import Any, TypeVar
from urllib.parse import unquote

import msgspec
from msgspec import Struct

from menuwatch.core.errors import BadPayload
from menuwatch.core.http import Response, Session
from menuwatch.core.logging import get_logger
from menuwatch.platforms.base import Platform, split_url
from menuwatch.platforms.dutchie import answers, normalize
from menuwatch.platforms.dutchie.payload import FIELDS, ITEMS_PATH
from menuwatch.platforms.dutchie.queries import (
    CONSUMER_DISPENSARIES,
    DEFAULT_HASHES,
    FILTERED_PRODUCTS,
    PER_PAGE,
    Operation,
    menu_variables,
)
from menuwatch.platforms.model import FoundStore, Page, PageInfo
from menuwatch.platforms.retry import RequestRetry

log = get_logger(__name__)

Answer = TypeVar("Answer")


class Client(Struct):
    """Client of one endpoint. Remembers the operations whose hashes were refused, for its lifetime."""

    endpoint: str
    hashes: Mapping[str, str]
    retry: RequestRetry
    refused: set[str] = set()

    async def request(
        self,
        session: Session,
        operation: Operation,
        variables: Mapping[str, Any],
        read: Callable[[bytes, int], Answer],
    ) -> tuple[bytes, Answer]:
        """The body of an answer and the result of `read` (given body and HTTP status). Raises the errors of `RequestRetry.answer`."""

        def refusal(error: BadPayload) -> bool:
            """Whether a persisted-query hash was refused, so that the full query is sent next."""
            if error.kind != "persisted_query" or operation.name in self.refused:
                return False
            log.info("persisted-query hash refused", action="persisted_query_refused", operation=operation.name)
            self.refused.add(operation.name)
            return True

        return await self.retry.answer(
            lambda: self._send(session, operation, variables),
            lambda response: read(response.body, response.status),
            what=operation.name,
            otherwise=refusal,
        )

    async def _send(self, session: Session, operation: Operation, variables: Mapping[str, Any]) -> Response:
        headers = {
            "accept": "application/json",
            "content-type": "application/json",
            "apollo-require-preflight": "true",
            "x-apollo-operation-name": operation.name,
        }
        digest = self.hashes.get(operation.name)
        if digest is None or operation.name in self.refused:
            body = {"operationName": operation.name, "variables": variables, "query": operation.text}
            return await session.request("POST", self.endpoint, json=body, headers=headers)
        persisted = {"persistedQuery": {"version": 1, "sha256Hash": digest}}
        params = {
            "operationName": operation.name,
            "variables": msgspec.json.encode(variables).decode(),
            "extensions": msgspec.json.encode(persisted).decode(),
        }
        return await session.request("GET", self.endpoint, params=params, headers=headers)


class Dutchie(Platform):
    """`hashes` are merged over the built-in ones; an operation with an empty hash always sends its full text."""

    name = "dutchie"
    example_url = "https://dutchie.com/dispensary/a-shop"
    normalizer_version = normalize.VERSION
    fields = FIELDS
    items = normalize.ITEMS
    items_path = ITEMS_PATH
    per_page = PER_PAGE

    def __init__(
        self,
        *,
        base_url: str = "https://dutchie.com",
        graphql_path: str = "/api-3/graphql",
        hashes: Mapping[str, str] | None = None,
        retry_base_seconds: float = 1.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        super().__init__(base_url=base_url, retry_base_seconds=retry_base_seconds, sleep=sleep)
        self._client = Client(
            endpoint=f"{self.base_url}/{graphql_path.lstrip('/')}",
            hashes={key: value for key, value in {**DEFAULT_HASHES, **(hashes or {})}.items() if value},
            retry=self.retry,
        )

    def read_page(self, body: bytes) -> Page:
        return answers.read(body)

    async def menu_page(self, session: Session, platform_dispensary_id: str, number: int) -> tuple[bytes, PageInfo]:
        variables = menu_variables(platform_dispensary_id, number)
        return await self._client.request(session, FILTERED_PRODUCTS, variables, answers.inspect)

    async def store_page(
        self, session: Session, number: int, *, state: str | None, city: str | None
    ) -> list[FoundStore]:
        """Verified in public callers: the operation, its answer (`data.filteredDispensaries[]`, 116 keys a record) and the filter
        `cNameOrID`. An assumption: that the filter takes `state` and `city`, and that `page` and `perPage` beside it page
        the list; no public caller lists stores so.
        """
        where = {key: value for key, value in {"state": state, "city": city}.items() if value}
        return await self._stores(session, {"dispensaryFilter": where, "page": number, "perPage": PER_PAGE})

    async def _stores(self, session: Session, variables: Mapping[str, Any]) -> list[FoundStore]:
        _, records = await self._client.request(session, CONSUMER_DISPENSARIES, variables, answers.read_stores)
        return [answers.found_store(record, self.base_url) for record in records]

    async def resolve(self, session: Session, slug: str) -> FoundStore | None:
        """The store with that slug or id, None if Dutchie has none (it answers with an empty list).

        Requested by ConsumerDispensaries with `cNameOrID`, as the five public callers do; `resolveDispensaryIdWithDetails`, which
        older documents name, was found in no caller.
        """
        stores = await self._stores(session, {"dispensaryFilter": {"cNameOrID": slug}})
        return stores[0] if stores else None

    def slug_of(self, menu_url: str) -> str | None:
        """The slug or id in a Dutchie menu URL, None for other URLs."""
        return slug_of(menu_url, self.hosts)


_SCRIPT_PREFIX = re.compile(r"^(?:[a-z]+-min-)", re.IGNORECASE)  # prefix added to file names by page optimizers
_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]*")
_PLATFORM_ONLY = frozenset({"dispensary", "stores", "kiosks"})
"""Path segments that name a store only on Dutchie's own hosts."""


def slug_of(menu_url: str, hosts: Collection[str] = ()) -> str | None:
    """The slug or id, None if the URL is not a menu of this platform. `hosts` are additional Dutchie hosts."""
    parts = split_url(menu_url)
    if parts is None:
        return None
    host = (parts.hostname or "").lower()
    port = f":{parts.port}" if parts.port else ""
    segments = [unquote(segment) for segment in parts.path.split("/") if segment not in {"", ".", ".."}]
    if not host and segments and segments[0].lower().endswith("dutchie.com"):
        host = segments.pop(0).lower()
    own = host == "" or host == "dutchie.com" or host.endswith(".dutchie.com") or f"{host}{port}" in hosts
    for word, following in pairwise(segments):
        if word.lower() == "embedded-menu" or (own and word.lower() in _PLATFORM_ONLY):
            name = _SCRIPT_PREFIX.sub("", following.removesuffix(".js")) if following.endswith(".js") else following
            if _SLUG.fullmatch(name):
                return name
    return None
