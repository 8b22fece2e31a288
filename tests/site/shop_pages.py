"""What tests of the public site need: stores with menus, pages, and what stands in them."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

import httpx

from menuwatch.config.settings import Settings
from menuwatch.db.pool import Pool
from menuwatch.matching.engine import match_all
from menuwatch.storefront.indexer import index_all_stores
from menuwatch.storefront.watches import service as watches
from tests.api.shop import Shop


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._silent += tag in ("script", "style", "title")

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in ("script", "style", "title")

    def handle_data(self, data: str) -> None:
        if not self._silent and data.strip():
            self.text.append(" ".join(data.split()))


class Page:
    """An answer as a browser without scripts would have it."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self.status = answer.status_code
        self.html = answer.text
        parsed = _Words()
        parsed.feed(self.html)
        self.text = " ".join(parsed.text)
        self.tags = parsed.tags

    def all(self, tag: str, **attrs: str) -> list[dict[str, str | None]]:
        """Attributes of every element of that name that has these."""
        return [found for name, found in self.tags if name == tag and all(found.get(k) == v for k, v in attrs.items())]

    @property
    def foreign_scripts(self) -> list[dict[str, str | None]]:
        """Scripts that are neither data nor our own files."""
        own = re.compile(r"/static/[0-9a-f]+/(push|locate)\.js")
        return [
            one
            for one in self.all("script")
            if one.get("type") != "application/ld+json" and not own.fullmatch(one.get("src") or "")
        ]

    @property
    def names(self) -> list[str]:
        """What the cards are called, in their order."""
        return re.findall(r'class="name"><a href="[^"]*">([^<]*)</a>', self.html)

    @property
    def facets(self) -> dict[str, dict[str, str]]:
        """Headings of facets with their choices and how many each leaves."""
        found: dict[str, dict[str, str]] = {}
        for title, body in re.findall(
            r'<section class="facet".*?<h3[^>]*>(.*?)</h3>(.*?)</section>', self.html, re.DOTALL
        ):
            choices = re.findall(r'class="label">([^<]*)</span><span class="n">([^<]*)<', body)
            found[title] = {label: n.strip() for label, n in choices}
        return found

    @property
    def linked(self) -> Any:
        """The JSON-LD."""
        found = re.search(r'<script type="application/ld\+json">(.*?)</script>', self.html, re.DOTALL)
        return json.loads(found[1]) if found else None

    def link(self, text: str) -> str:
        """Where the first link with this text leads."""
        found = re.search(rf'<a[^>]* href="([^"]*)"[^>]*>\s*{re.escape(text)}', self.html)
        assert found, f"no link {text!r} in {self.text[:500]}"
        return found[1].replace("&amp;", "&")


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """A shopper's view, and the shop behind it."""

    shop: Shop
    http: httpx.AsyncClient
    settings: Settings

    async def page(self, path: str, *, status: int = 200, **more: Any) -> Page:
        """A page, held to its status."""
        answer = await self.http.get(path, **more)
        assert answer.status_code == status, f"{path}: {answer.status_code} {answer.text[:400]}"
        return Page(answer)

    async def crawl(self, store_id: int, hours: float, items: Sequence[dict[str, Any]]) -> None:
        """One crawl, and the index updated with it."""
        await self.shop.crawl(store_id, hours, items)
        await self.index()

    async def index(self, match: Callable[[Pool], Awaitable[object]] = match_all) -> int:
        """Matches new listings and updates the storefront index; returns the number of stores."""
        await match(self.shop.pool)
        return await index_all_stores(self.shop.pool, watcher=watches.evaluate_store)

    async def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """What the database has to say."""
        async with self.shop.pool.connection() as conn:
            return await (await conn.execute(query, values or None)).fetchall()  # type: ignore[call-overload]

    async def item(self, name: str) -> int:
        """The number of the item of that name."""
        ((number,),) = await self.rows("SELECT id FROM storefront_items WHERE name = %s", name)
        return int(number)

    async def post(self, path: str, *, origin: str | None = "http://menus.example", **fields: str) -> httpx.Response:
        """A form, as a page of ours sends it."""
        headers = {} if origin is None else {"Origin": origin}
        return await self.http.post(path, data=fields, headers=headers)
