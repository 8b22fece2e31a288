"""Asking Dutchie: one GraphQL operation at a time, the persisted query first and the full text where it is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from menuwatch.core.errors import BadPayload
from menuwatch.core.http import Response, Session
from menuwatch.core.telemetry import get_logger
from menuwatch.platforms.asking import Asking
from menuwatch.platforms.base import Menu
from menuwatch.platforms.dutchie import page as pages
from menuwatch.platforms.dutchie import queries
from menuwatch.platforms.dutchie.queries import Operation
from menuwatch.platforms.walk import Survey, whole_menu

log = get_logger(__name__)

Answer = TypeVar("Answer")


@dataclass(slots=True)
class Client:
    """Asks one endpoint. Remembers which operations' hashes it refuses, for as long as it lives."""

    endpoint: str
    hashes: Mapping[str, str]
    asking: Asking
    refused: set[str] = field(default_factory=set)

    async def ask(
        self,
        session: Session,
        operation: Operation,
        variables: Mapping[str, Any],
        read: Callable[[bytes, int], Answer],
    ) -> tuple[bytes, Answer]:
        """The body of an answer and what `read` makes of it (given body and HTTP status). Raises what `Asking.answer` raises."""

        def refusal(error: BadPayload) -> bool:
            """Of a hash, after which the full text goes in its place."""
            if error.kind != "persisted_query" or operation.name in self.refused:
                return False
            log.info("hash refused", action="persisted_query_refused", operation=operation.name)
            self.refused.add(operation.name)
            return True

        return await self.asking.answer(
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

    async def menu(self, session: Session, dispensary_id: str) -> Menu:
        """Every page of a store's menu, as `paging` decides. Raises BadPayload of kind empty where it has no products, and what
        `ask` raises."""

        async def page(number: int) -> tuple[bytes, Survey]:
            variables = queries.menu_variables(dispensary_id, number)
            return await self.ask(session, queries.FILTERED_PRODUCTS, variables, pages.survey)

        return await whole_menu(page, per_page=queries.PER_PAGE, store=dispensary_id, pause=self.asking.pause)
