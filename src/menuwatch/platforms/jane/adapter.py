"""The Jane adapter: its requests, its answers, and its stores.

A page of a menu is an answer of the search index, `{"hits": [row], "nbHits", "page", "nbPages", "hitsPerPage", …}`, pages from 0. The
merchandising answer, `{"products": [{"object_id", "product_id", "search_attributes": row}, …]}`, is read as well, and lists of rows of
either; only its first 60 rows are whole, the rest are bare ids: part of a menu, of which only the whole rows are products.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Self, TypeVar

import msgspec

from menuwatch.config.platforms import PlatformSettings
from menuwatch.core import strict_json as strict
from menuwatch.core.errors import BadPayload, Permanent
from menuwatch.core.http import Response, Session
from menuwatch.core.logging import get_logger
from menuwatch.platforms.base import MAX_STORE_PAGES, Platform
from menuwatch.platforms.envelope import (
    check_count,
    check_list,
    decode,
    excerpt,
    missing,
    parse_count,
    short_value,
    with_status,
)
from menuwatch.platforms.jane import normalize, stores
from menuwatch.platforms.jane.normalize import ITEMS
from menuwatch.platforms.jane.payload import FIELDS, Ids
from menuwatch.platforms.model import FoundStore, Page, PageInfo
from menuwatch.platforms.store_records import state_code

log = get_logger(__name__)

APP_ID = "VFM4X0N23A"
"""Jane's application at Algolia, the same for all stores since 2023."""
API = "https://api.iheartjane.com"
_SITE = "https://www.iheartjane.com"
_SEARCH_HOSTS = (".iheartjane.com", ".algolia.net", ".algolianet.com")
_MENUS = "/1/indexes/menu-products-production/query"
_STORES = "/1/indexes/stores-production/query"
_STORE_ID = re.compile(rb'"store_id"\s*:\s*("?\w+)')
_RADIUS = 1000
"""Meters per kilometer."""

Answer = TypeVar("Answer")


class _Hits(msgspec.Struct):
    """An answer of the search index, of menus or of stores."""

    hits: list[msgspec.Raw] | None = None
    nbHits: msgspec.Raw = msgspec.Raw()  # noqa: N815
    nbPages: msgspec.Raw = msgspec.Raw()  # noqa: N815
    exhaustiveNbHits: msgspec.Raw = msgspec.Raw()  # noqa: N815
    results: list[_Hits] | None = None
    """Answers to several questions in one request."""
    products: list[msgspec.Raw] | None = None
    nb_hits: msgspec.Raw = msgspec.Raw()


class _Plain(msgspec.Struct):
    """A page without anything odd in it: nearly all are."""

    hits: list[Ids]
    nbHits: msgspec.Raw = msgspec.Raw()  # noqa: N815
    nbPages: msgspec.Raw = msgspec.Raw()  # noqa: N815
    exhaustiveNbHits: msgspec.Raw = msgspec.Raw()  # noqa: N815


class _Probe(msgspec.Struct):
    """The keys by which a row of Jane is known."""

    search_attributes: msgspec.Raw = msgspec.Raw()
    name: msgspec.Raw = msgspec.Raw()
    product_id: msgspec.Raw = msgspec.Raw()
    object_id: msgspec.Raw = msgspec.Raw()
    objectID: msgspec.Raw = msgspec.Raw()  # noqa: N815
    store_id: msgspec.Raw = msgspec.Raw()


class _Store(msgspec.Struct):
    store: msgspec.Raw = msgspec.Raw()


class _Refusal(msgspec.Struct):
    """What Algolia says of a request that it refuses."""

    message: str = ""


_answer = msgspec.json.Decoder(_Hits)
_list = msgspec.json.Decoder(list[msgspec.Raw])
_plain = strict.Decoder(_Plain)
_probe = msgspec.json.Decoder(_Probe)
_store = msgspec.json.Decoder(_Store)
_ids = msgspec.json.Decoder(Ids)
_refusal = msgspec.json.Decoder(_Refusal)


def inspect(body: bytes, status: int, store: str) -> PageInfo:
    """Data for paging of a page of this store's menu. Raises what `read` raises, and BadPayload for rows of another store."""
    try:
        answer = _plain.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        page = read(body, status)
        _check_store([ITEMS.decode(raw) for raw in page.items], store, body)
        return page.inspect(ITEMS.identity)
    check_count(len(answer.hits), body)
    _check_store(answer.hits, store, body)
    return PageInfo(tuple([row.product_id() for row in answer.hits]), *_totals(answer), strict=True)


def _check_store(rows: Sequence[Ids | None], store: str, body: bytes) -> None:
    others = {other for row in rows if row is not None and (other := row.store()) is not None and other != store}
    if others:
        named = ", ".join(sorted(others)[:3])
        raise BadPayload("errors", f"the menu of store {store} has rows of store {named}", body)


def _check_one_store(page: Page, body: bytes) -> Page:
    """The page. Raises BadPayload for rows of several stores: which of them a product is of would be lost."""
    if len(set(_STORE_ID.findall(body))) < 2:
        return page
    named: set[str] = set()
    for raw in page.items:
        try:
            named.add(_ids.decode(raw).store() or "")
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
    if len(named - {""}) > 1:
        stores_named = ", ".join(sorted(named - {""})[:5])
        raise BadPayload(
            "errors", f"the answer has rows of {len(named - {''})} stores ({stores_named}); a menu is of one", body
        )
    return page


def read(body: bytes, status: int = 200) -> Page:
    """Parses a page, which may be empty. Raises BadPayload of kind html, truncated, schema, limits, no_data, or empty where all rows
    are bare ids."""
    if body.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"[":
        return _merchandised(_rows_of_jane(decode(body, _list, status), status, body), None, body)
    answer = decode(body, _answer, status)
    if answer.products is not None:
        rows = _rows_of_jane(answer.products, status, body)
        return _merchandised(rows, parse_count(answer.nb_hits), body)
    if answer.results is not None and len(answer.results) == 1:
        answer = answer.results[0]
    if answer.hits is None:
        raise _no_hits(body, status)
    check_count(len(answer.hits), body)
    return Page(answer.hits, *_totals(answer))


def _no_hits(body: bytes, status: int) -> BadPayload:
    said = _message(body)
    if said:
        return BadPayload("no_data", with_status(f"the search index has no answer: {said}", status), body)
    return missing("menu", "hits", status, body)


def _totals(answer: _Hits | _Plain) -> tuple[int | None, int | None]:
    """(products, pages) of the whole menu. A total that Algolia calls inexact is none."""
    exact = short_value(answer.exhaustiveNbHits) is not False
    return parse_count(answer.nbHits) if exact else None, parse_count(answer.nbPages)


def _rows_of_jane(rows: list[msgspec.Raw], status: int, body: bytes) -> list[tuple[msgspec.Raw, _Probe | None]]:
    """Rows with the keys by which they are known. Raises BadPayload of kind schema for a list of other things, or of nothing."""
    check_count(len(rows), body)
    probed = [(raw, _probed(raw)) for raw in rows]
    if not any(probe is not None and _is_row(probe) for _, probe in probed):
        raise BadPayload("schema", with_status("the list has no row of a Jane menu", status), body)
    return probed


def _probed(raw: msgspec.Raw) -> _Probe | None:
    try:
        return _probe.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _is_row(probe: _Probe) -> bool:
    if _is_there(probe.search_attributes):
        return True
    return _is_there(probe.product_id) and (
        _is_there(probe.object_id) or (_is_there(probe.objectID) and _is_there(probe.store_id))
    )


def _is_there(raw: msgspec.Raw) -> bool:
    return bytes(memoryview(raw)[:4]) not in (b"", b"null", b"{}")


def _merchandised(rows: list[tuple[msgspec.Raw, _Probe | None]], total: int | None, body: bytes) -> Page:
    """The whole rows. All rows together are the menu, so its total counts bare ids, too."""
    items: list[msgspec.Raw] = []
    bare = 0
    for raw, probe in rows:
        if probe is not None and _is_there(probe.search_attributes):
            items.append(probe.search_attributes)
        elif probe is not None and _is_there(probe.product_id) and not _is_there(probe.name):
            bare += 1
        else:
            items.append(raw)
    if bare and not items:
        raise BadPayload("empty", f"the answer has no whole row: its {bare:,} rows are bare ids", body)
    return Page(items, max(total or 0, len(rows)) if bare or total is not None else None, None)


def _message(body: bytes) -> str:
    """What Algolia says of a refused request, "" for other bodies."""
    try:
        return excerpt(_refusal.decode(body[:100_000]).message.encode())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""


class Jane(Platform):
    """Without a `base_url`, what would need one raises Permanent.

    Verified on recorded answers: the rows (60 of a merchandising answer), the record of one store, the page that blocks. As public
    callers ask and describe: menus by the search index with `filters: store_id:N`, up to 1,000 rows a page; the index of stores with
    `aroundLatLng` and `aroundRadius` (meters), and the fields of its hits; Origin and Referer; the refusal of a key. Assumptions: that
    the index of stores answers without a position, too (with all stores, of which it holds some back: see `discover`), and that the
    API of stores answers 404 for an unknown id.

    The search key stands in Jane's own pages and changes, so it is a setting. A refused key is no refusal of an identity.
    """

    name = "jane"
    example_url = "https://www.iheartjane.com/stores/477/a-shop"
    normalizer_version = normalize.VERSION
    fields = FIELDS
    items = ITEMS
    items_path = "hits"
    per_page = 1000

    def __init__(self, *, app_id: str = "", api_key: str = "", **options: Any) -> None:
        super().__init__(**options)
        self.app_id = app_id or APP_ID
        self.api_key = api_key
        host = next(iter(self.hosts), "")
        own = f".{host.partition(':')[0]}".endswith(_SEARCH_HOSTS)
        self.api_url = API if own else self.base_url
        """Where records of stores are requested: at Jane's own API, or where the search index is (a reverse proxy, the simulator)."""
        if own:
            self.hosts |= {API.removeprefix("https://")}

    @classmethod
    def configured(cls, settings: PlatformSettings, *, retry_base_seconds: float) -> Self:
        return cls(
            base_url=settings.base_url,
            app_id=settings.app_id,
            api_key=settings.api_key,
            retry_base_seconds=retry_base_seconds,
        )

    def lacks(self) -> tuple[str, ...]:
        return (*super().lacks(), *(() if self.api_key else ("JANE_API_KEY",)))

    def read_page(self, body: bytes) -> Page:
        return _check_one_store(read(body), body)

    async def menu_page(self, session: Session, platform_dispensary_id: str, number: int) -> tuple[bytes, PageInfo]:
        store = stores.store_id_of(platform_dispensary_id)
        if store is None:
            raise Permanent(f"Jane's stores have numbers, and {platform_dispensary_id!r} is none")
        question = {"query": "", "filters": f"store_id:{store}", "hitsPerPage": self.per_page, "page": number}
        return await self._search(session, _MENUS, question, lambda body, status: inspect(body, status, store))

    async def discover(
        self, session: Session, *, state: str | None = None, city: str | None = None
    ) -> AsyncIterator[FoundStore]:
        """Lists the distinct stores of a state or city, or all.

        The index gives at most 1,000 stores per question. Without a state, all are asked for at once; if there are more, state by
        state.
        """
        code = state_code(state) if state else None
        seen: set[str] = set()
        areas: list[str | None] = [code if code in stores.AREAS else None]
        while areas:
            area = areas.pop(0)
            listed, total = await self._stores_in(session, area)
            for store in listed:
                if store.platform_dispensary_id in seen or not stores.is_in(store, code, city):
                    continue
                seen.add(store.platform_dispensary_id)
                check_count(len(seen), b"")
                yield store
            if len(listed) < total and area is None:
                areas.extend(stores.AREAS)
            elif len(listed) < total:
                missed = f"{total - len(listed)} of {total} stores around {area} are not listed"
                log.warning(missed, action="stores_not_listed", state=area)

    async def _stores_in(self, session: Session, area: str | None) -> tuple[list[FoundStore], int]:
        """The stores of an area (None: everywhere) as far as the index lists them, and how many it says there are."""
        question: dict[str, Any] = {"query": "", "hitsPerPage": self.per_page}
        if area is not None:
            latitude, longitude, radius = stores.AREAS[area]
            question |= {"aroundLatLng": f"{latitude}, {longitude}", "aroundRadius": radius * _RADIUS}
        records: dict[bytes, msgspec.Raw] = {}
        total = 0
        for number in range(MAX_STORE_PAGES):
            _, page = await self._search(session, _STORES, {**question, "page": number}, _read_stores)
            known = len(records)
            records.update((bytes(raw), raw) for raw in page.items)
            total = max(total, page.total_count or 0)
            if len(records) == known or (page.total_pages is not None and number + 1 >= page.total_pages):
                break
        return [stores.found_store(raw) for raw in records.values()], total

    async def resolve(self, session: Session, slug: str) -> FoundStore | None:
        """The store with that id, None if Jane has none."""
        store = stores.store_id_of(slug)
        if store is None:
            return None
        url = f"{self.api_url}/v1/stores/{store}"

        def read_record(response: Response) -> msgspec.Raw | None:
            if response.status == 404:
                return None
            check_list(response.body)
            record = decode(response.body, _store, response.status).store
            if not _is_there(record):
                raise missing("store", "store", response.status, response.body)
            return record

        _, record = await self._send(session, "GET", url, None, read_record)
        return stores.asked_store(record, store) if record is not None else None

    async def _search(
        self, session: Session, path: str, question: Mapping[str, Any], read: Callable[[bytes, int], Answer]
    ) -> tuple[bytes, Answer]:
        def read_answer(response: Response) -> Answer:
            if response.status in (400, 401, 403):
                raise self._refused(response)
            return read(response.body, response.status)

        return await self._send(session, "POST", self.base_url + path, question, read_answer)

    def _refused(self, response: Response) -> Permanent:
        """The index refuses the request itself; another identity would be refused as well."""
        said = _message(response.body) or excerpt(response.body[:500]) or "no reason"
        hint = ""
        if response.status in (401, 403):
            hint = ": set JANE_API_KEY to the present search key in the pages of iheartjane.com, and check JANE_APP_ID"
        return Permanent(f"Jane's search index refuses the request (HTTP {response.status}, {said}){hint}")

    async def _send(
        self,
        session: Session,
        method: Literal["GET", "POST"],
        url: str,
        question: Mapping[str, Any] | None,
        read: Callable[[Response], Answer],
    ) -> tuple[bytes, Answer]:
        if not self.base_url:
            raise Permanent("Jane is not crawled: JANE_BASE_URL is not set")
        if not self.api_key:
            raise Permanent("Jane is not crawled: JANE_API_KEY is not set")
        headers = {"accept": "application/json", "origin": _SITE, "referer": f"{_SITE}/"}
        if question is not None:
            headers |= {"x-algolia-application-id": self.app_id, "x-algolia-api-key": self.api_key}
        return await self.retry.answer(
            lambda: session.request(method, url, json=question, headers=headers),
            read,
            what=url.removeprefix(self.base_url),
        )

    def store_in(self, items: Iterable[msgspec.Raw]) -> FoundStore | None:
        """Store data in the rows: id, place, for which customers they are."""
        return stores.store_in(ITEMS, items)

    def slug_of(self, menu_url: str) -> str | None:
        """The slug in the URL of a store on iheartjane.com, None for other URLs."""
        return stores.slug_in(menu_url)

    def slug_on_site(self, menu_url: str) -> str | None:
        """The slug in the URL of a menu on a shop's own site, if it names the store's id; those that do not are added by their address
        at Jane."""
        return stores.slug_in(menu_url, any_host=True)


def _read_stores(body: bytes, status: int) -> Page:
    check_list(body)
    return read(body, status)
