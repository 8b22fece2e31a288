"""Asking Dutchie: one GraphQL operation at a time, the persisted query first and the full text where it is refused.

An answer that is cut off, a web page or a server fault is asked for again in place, 2 times at most with doubling waits, before the
task hears of it. Identities are the session's business: it rotates on refusals by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from menuwatch.core.errors import BadPayload, Transient
from menuwatch.core.http import Response, Session
from menuwatch.core.telemetry import get_logger
from menuwatch.platforms.base import Menu
from menuwatch.platforms.dutchie import page as pages
from menuwatch.platforms.dutchie import queries
from menuwatch.platforms.dutchie.page import Survey
from menuwatch.platforms.dutchie.paging import Ask, Pager
from menuwatch.platforms.dutchie.queries import Operation

log = get_logger(__name__)

ATTEMPTS = 3
"""Times that one page is asked for before its answer is given up."""

_WORTH_ASKING_AGAIN = frozenset({"html", "truncated"})

Answer = TypeVar("Answer")


@dataclass(slots=True)
class Client:
    """Asks one endpoint. Remembers which operations' hashes it refuses, for as long as it lives."""

    endpoint: str
    hashes: Mapping[str, str]
    retry_base_seconds: float = 1.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    refused: set[str] = field(default_factory=set)

    async def ask(
        self,
        session: Session,
        operation: Operation,
        variables: Mapping[str, Any],
        read: Callable[[bytes, int], Answer],
    ) -> tuple[bytes, Answer]:
        """The body of an answer and what `read` makes of it (given body and HTTP status).

        Raises BadPayload, which carries the body, where no attempt gave a usable answer; Transient after server faults; what
        the session raises.
        """
        attempt = 1
        while True:
            problem: Transient
            try:
                response = await self._send(session, operation, variables)
                if response.status < 500:
                    return response.body, read(response.body, response.status)
                problem = Transient(f"{operation.name}: the server failed with HTTP {response.status}")
            except BadPayload as error:
                if error.kind == "persisted_query" and operation.name not in self.refused:
                    log.info("hash refused", action="persisted_query_refused", operation=operation.name)
                    self.refused.add(operation.name)
                    continue
                if error.kind not in _WORTH_ASKING_AGAIN:
                    raise
                problem = error
            if attempt >= ATTEMPTS:
                raise problem
            wait = self.retry_base_seconds * 2 ** (attempt - 1)
            log.info(
                "asked again",
                action="page_retried",
                operation=operation.name,
                attempt=attempt,
                wait=wait,
                why=str(problem),
            )
            await self.sleep(wait)
            attempt += 1

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

    async def menu(self, session: Session, dispensary_id: str) -> Menu:
        """Every page of a store's menu, as `paging` decides. Raises BadPayload of kind empty where it has no products, and what
        `ask` raises."""
        pager = Pager(queries.PER_PAGE)
        bodies: list[bytes] = []
        strict: set[int] = set()
        step = Ask(0)
        while True:
            body, found = await self._page(session, dispensary_id, step.page)
            if found.ids:
                # An empty page holds nothing to keep; that there was one is in the notes.
                if found.strict:
                    strict.add(len(bodies))
                bodies.append(body)
            after = pager.feed(found.ids, found.total_count, found.total_pages)
            if isinstance(after, Ask):
                if after.again:
                    await self.sleep(self.retry_base_seconds)
                step = after
                continue
            if after.empty:
                said = f", while its total says {pager.total_count}" if pager.total_count else ""
                raise BadPayload("empty", f"the menu of store {dispensary_id} has no products{said}", body)
            return Menu(
                pages=tuple(bodies),
                product_count=pager.product_count,
                total_count=pager.total_count,
                complete=after.complete,
                notes=pager.notes,
                strict=frozenset(strict),
            )

    async def _page(self, session: Session, dispensary_id: str, number: int) -> tuple[bytes, Survey]:
        variables = queries.menu_variables(dispensary_id, number)
        return await self.ask(session, queries.FILTERED_PRODUCTS, variables, pages.survey)
