"""A plain client for the simulator: GraphQL by GET, with the hash of a persisted query, straight or through a proxy."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

MENU_HASH = "ee29c060826dc41c527e470e9ae502c9b2c169720faa0a9f5d25e1b9a530a4a0"
STORES_HASH = "0d3ff8648848a737bbbeff9d090854ce2b78a7c4330d4982dab5b32ba2009448"
HEADERS = {"apollo-require-preflight": "true", "user-agent": "Plain/1.0"}


def persisted(key: str) -> str:
    return json.dumps({"persistedQuery": {"version": 1, "sha256Hash": key}})


def menu_variables(store_id: str, page: int = 0, per_page: int = 100, **filters: Any) -> dict[str, Any]:
    wanted = {
        "dispensaryId": store_id,
        "pricingType": "rec",
        "Status": "All",
        "types": [],
        "bypassOnlineThresholds": True,
        "removeProductsBelowOptionThresholds": False,
        **filters,
    }
    return {"includeEnterpriseSpecials": False, "productsFilter": wanted, "page": page, "perPage": per_page}


class Client:
    """One identity: a proxy or none, a User-Agent."""

    def __init__(self, http: httpx.AsyncClient, url: str, agent: str) -> None:
        self._http = http
        self._url = url
        self._headers = {**HEADERS, "user-agent": agent}

    async def get(self, operation: str, variables: dict[str, Any], key: str) -> httpx.Response:
        params = {
            "operationName": operation,
            "variables": json.dumps(variables),
            "extensions": persisted(key),
        }
        return await self._http.get(self._url, params=params, headers=self._headers)

    async def page(self, store_id: str, page: int = 0, per_page: int = 100, **filters: Any) -> httpx.Response:
        return await self.get("FilteredProducts", menu_variables(store_id, page, per_page, **filters), MENU_HASH)

    async def stores(self, **wanted: Any) -> list[dict[str, Any]]:
        answer = await self.get("ConsumerDispensaries", {"dispensaryFilter": wanted}, STORES_HASH)
        found: list[dict[str, Any]] = answer.json()["data"]["filteredDispensaries"]
        return found

    async def menu(self, store_id: str, per_page: int = 100) -> list[list[dict[str, Any]]]:
        """All pages that `totalPages` announces."""
        first = products(await self.page(store_id, 0, per_page))
        pages = [first[0]]
        for page in range(1, first[2]):
            pages.append(products(await self.page(store_id, page, per_page))[0])
        return pages


def products(answer: httpx.Response) -> tuple[list[dict[str, Any]], int, int]:
    """(products, totalCount, totalPages)."""
    assert answer.status_code == 200, answer.text[:200]
    found = answer.json()["data"]["filteredProducts"]
    return found["products"], found["queryInfo"]["totalCount"], found["queryInfo"]["totalPages"]


@asynccontextmanager
async def client(
    url: str, *, agent: str = "Plain/1.0", proxy: str | httpx.Proxy | None = None
) -> AsyncIterator[Client]:
    async with httpx.AsyncClient(trust_env=False, proxy=proxy, timeout=10) as http:
        yield Client(http, url, agent)
