"""A store of the real platform whose menus go through the real archive and pipeline, and a client that asks the API about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import msgspec
from psycopg import AsyncConnection

from menuwatch.archive import store as payloads
from menuwatch.archive.document import Document
from menuwatch.archive.files import FileArchive
from menuwatch.archive.store import NewPayload
from menuwatch.core.clock import SystemClock
from menuwatch.core.strict_json import is_strict
from menuwatch.db.pool import Pool
from menuwatch.pipeline.context import HandlerContext
from menuwatch.pipeline.product_refresh import refresh
from menuwatch.platforms.base import Platform
from menuwatch.storage.local import LocalStorage
from menuwatch.stores import store as stores
from menuwatch.stores.store import Details
from tests.api import schema_conformance

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def item(
    product_id: str,
    name: str = "Blue Dream",
    *,
    options: Sequence[tuple[str, float | str, int | None]] = (("1/8oz", 40, 5),),
    special: Sequence[float] = (),
    thc: float | None = 21.5,
    **more: Any,
) -> dict[str, Any]:
    """One item of a Dutchie menu; `options` are (option, recreational price, quantity)."""
    counted = [{"option": o, "quantity": q, "quantityAvailable": q} for o, _, q in options if q is not None]
    return {
        "_id": product_id,
        "id": product_id,
        "Name": name,
        "brandName": "Acme",
        "type": "Flower",
        "strainType": "Hybrid",
        "Status": "Active",
        "Options": [o for o, _, _ in options],
        "recPrices": [p for _, p, _ in options],
        "recSpecialPrices": list(special),
        "medicalPrices": [],
        "POSMetaData": {"children": counted} if counted else None,
        "THCContent": {"unit": "PERCENTAGE", "range": [thc]} if thc is not None else None,
        **more,
    }


def menu(items: Iterable[dict[str, Any]]) -> bytes:
    """A page of a menu, as the platform answers it."""
    found = list(items)
    return msgspec.json.encode(
        {"data": {"filteredProducts": {"products": found, "queryInfo": {"totalCount": len(found), "totalPages": 1}}}}
    )


def at(hours: float) -> datetime:
    """A moment that many hours into the story."""
    return START + timedelta(hours=hours)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """Everything a test of the API needs."""

    pool: Pool
    archive: FileArchive
    platforms: dict[str, Platform]
    http: httpx.AsyncClient
    description: dict[str, Any]

    async def store(self, slug: str = "green-leaf", **more: Any) -> int:
        """A store that is resolved."""
        details = Details(platform_dispensary_id=f"id-{slug}", slug=slug, name=slug.title(), name_raw=slug, **more)
        async with self.pool.connection() as conn:
            store_id, _ = await stores.promote(conn, "dutchie", details)
        return store_id

    @property
    def storage(self) -> Path:
        """The storage root."""
        assert isinstance(self.archive.storage, LocalStorage)
        return self.archive.storage.root

    async def archived(
        self,
        store_id: int,
        hours: float,
        body: bytes,
        *,
        count: int = 0,
        status: str = "ok",
        reason: str | None = None,
        is_partial: bool = False,
    ) -> int:
        """A payload with its file, fetched that many hours into the story."""
        good, bad = ((body,), ()) if is_strict(body) else ((), (body,))
        doc = Document(
            platform="dutchie", platform_dispensary_id=f"id-{store_id}", fetched_at=at(hours), pages=good, broken=bad
        )
        staged = self.archive.stage(store_id, doc)
        new = NewPayload(
            task_id=None,
            dispensary_id=store_id,
            platform="dutchie",
            status=status,
            reason=reason,
            product_count=count,
            is_partial=is_partial,
            page_count=1,
            fetched_at=doc.fetched_at,
            path=staged.path,
            bytes=staged.size,
            raw_bytes=staged.raw_size,
            sha256=staged.sha256,
            content_sha256=staged.content_sha256,
        )
        async with self.pool.connection() as conn:
            payload_id = await payloads.insert(conn, new)
        self.archive.publish(staged)
        return payload_id

    async def crawl(
        self, store_id: int, hours: float, items: Sequence[dict[str, Any]], *, is_partial: bool = False
    ) -> int:
        """One crawl through archive, normalizer and catalogue; returns the payload's id."""
        payload_id = await self.archived(store_id, hours, menu(items), count=len(items), is_partial=is_partial)

        def no_session(**_: Any) -> Any:
            raise AssertionError("a refresh never touches the network")

        parts = HandlerContext(
            pool=self.pool,
            clock=SystemClock(),
            archive=self.archive,
            platforms=self.platforms,
            open_session=no_session,
            suspect_share=0.4,
            blocked_wait=timedelta(seconds=1),
        )
        async with self.pool.connection() as conn:
            payload = await payloads.get(conn, payload_id)
        assert payload is not None
        outcome = await refresh(parts, payload)
        assert outcome.writes is not None
        async with self.pool.connection() as conn, conn.transaction():
            await outcome.writes(conn)
        return payload_id

    async def execute(self, query: str, values: Any = None) -> None:
        """Any statement."""
        conn: AsyncConnection[Any]
        async with self.pool.connection() as conn:
            await conn.execute(query, values)

    async def ask(self, path: str, *, method: str = "GET", status: int = 200, **more: Any) -> Any:
        """The JSON that the API answers with, held to its status and its description."""
        answer = await self.http.request(method, path, **more)
        assert answer.status_code == status, answer.text
        media = answer.headers["content-type"].partition(";")[0]
        assert media == ("application/problem+json" if status >= 400 else "application/json"), media
        value = answer.json()
        schema_conformance.check(self.description, method, answer.url.path, status, media, value)
        return value

    async def refused(self, path: str, status: int, *, method: str = "GET", **more: Any) -> dict[str, Any]:
        """The problem that the API answers with."""
        problem: dict[str, Any] = await self.ask(path, method=method, status=status, **more)
        assert problem["status"] == status
        assert problem["type"].startswith("/problems/")
        assert problem["title"]
        assert problem["detail"]
        return problem

    async def walk(self, path: str, **params: Any) -> list[Any]:
        """Every item of a list, page by page."""
        items: list[Any] = []
        cursor: str | None = None
        while True:
            page = await self.ask(path, params={**params, **({"cursor": cursor} if cursor else {})})
            items += page["items"]
            cursor = page["next"]
            if cursor is None:
                return items
            assert page["items"], "a page before the last is never empty"
