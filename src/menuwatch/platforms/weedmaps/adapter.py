"""The Weedmaps adapter: its requests, its answers and regions.

A page of a menu has one of two shapes: `{"meta": {"page", "per_page", "total"}, "data": [items]}` in the menus that were recorded in
2024, and `{"meta": {"total_menu_items"}, "data": {"menu_items": [items]}}` of discovery v1, whose items differ (`live`).
A page of a list of stores is `{"meta": {"total_listings"}, "data": {"listings": [records]}}`.

A listing's record is flat: `id, slug, name, address, city, state, zip_code, latitude, longitude, phone_number, timezone, license_type,
web_url`; 311 records of New Mexico have all of them, with the state's name in full. Of the menus only items of the first shape tell of
their store: `relationships.listing` has its id, `links` its slug and its address.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from menuwatch.catalog.taxonomy.text import clean
from menuwatch.core import strict_json as strict
from menuwatch.core.errors import Permanent
from menuwatch.core.http import Response, Session
from menuwatch.geo import states
from menuwatch.platforms.base import Platform, split_url
from menuwatch.platforms.envelope import check_count, check_list, decode, missing, parse_count
from menuwatch.platforms.model import FoundStore, Page, PageInfo
from menuwatch.platforms.store_records import iana_timezone, read_record, state_code, valid_coordinates
from menuwatch.platforms.weedmaps import normalize
from menuwatch.platforms.weedmaps.ids import Ids, id_text
from menuwatch.platforms.weedmaps.normalize import ITEMS
from menuwatch.platforms.weedmaps.payload import FIELDS

_LISTINGS = "/discovery/v1/listings"
_PATH = re.compile(r"/(?P<kind>dispensaries|deliveries|stores)/(?P<slug>[A-Za-z0-9][A-Za-z0-9._~-]*)(?:/|$)")
KEPT = (
    "type",
    "wmid",
    "menu_id",
    "license_type",
    "package_level",
    "menu_items_count",
    "rating",
    "reviews_count",
    "web_url",
    "avatar_image",
    "online_ordering",
)
"""Fields of a record that are stored beside the columns."""

Answer = TypeVar("Answer")


class _Meta(msgspec.Struct, gc=False):
    per_page: msgspec.Raw = msgspec.Raw()
    total: msgspec.Raw = msgspec.Raw()
    total_menu_items: msgspec.Raw = msgspec.Raw()


class _Live(msgspec.Struct):
    menu_items: list[msgspec.Raw] | None = None


class _Menu(msgspec.Struct):
    meta: _Meta
    data: list[msgspec.Raw] | _Live | None


class _PlainLive(msgspec.Struct):
    menu_items: list[Ids]


class _Plain(msgspec.Struct):
    """A page without anything odd in it: nearly all are."""

    meta: _Meta
    data: list[Ids] | _PlainLive


class _Listings(msgspec.Struct):
    listings: list[msgspec.Raw] | None = None
    listing: msgspec.Raw = msgspec.Raw()


class _Stores(msgspec.Struct):
    data: _Listings | None = None
    meta: _Meta | None = None


_menu = msgspec.json.Decoder(_Menu)
_plain = strict.Decoder(_Plain)
_stores = msgspec.json.Decoder(_Stores)


def inspect(body: bytes, status: int = 200) -> PageInfo:
    """Like `read`, without the items: one pass over a page without anomalies. Raises the same errors."""
    try:
        answer = _plain.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return read(body, status).inspect(ITEMS.identity)
    items = answer.data if isinstance(answer.data, list) else answer.data.menu_items
    check_count(len(items), body)
    return PageInfo(tuple([item.product_id() for item in items]), *_totals(answer.meta), strict=True)


def read(body: bytes, status: int = 200) -> Page:
    """Parses a page of either shape, which may be empty. Raises BadPayload of kind html, truncated, schema, limits or no_data."""
    answer = decode(body, _menu, status)
    items = answer.data.menu_items if isinstance(answer.data, _Live) else answer.data
    if items is None:
        raise missing("menu", "data" if answer.data is None else "data.menu_items", status, body)
    check_count(len(items), body)
    return Page(items, *_totals(answer.meta))


def _totals(meta: _Meta) -> tuple[int | None, int | None]:
    """(products, pages) of the whole menu. A live page does not say how many a page holds."""
    total, size = parse_count(meta.total), parse_count(meta.per_page)
    if total is None:
        total = parse_count(meta.total_menu_items)
    return total, -(-total // size) if total is not None and size else None


def read_stores(body: bytes, status: int = 200) -> list[msgspec.Raw]:
    """The raw records of a listing answer, of one store or of many. Raises BadPayload as `read` does."""
    check_list(body)
    data = decode(body, _stores, status).data
    if data is not None and data.listings is not None:
        check_count(len(data.listings), body)
        return data.listings
    if data is not None and bytes(data.listing).startswith(b"{"):
        return [data.listing]
    raise missing("stores", "data.listings", status, body)


class Weedmaps(Platform):
    """Without a `base_url`, what would need one raises Permanent.

    Verified on recorded answers: both shapes of a menu, the paging of the first (`meta.page` from 1, 100 items a page), and the record
    of a listing. As public callers ask: the list of stores and its filter by region, the record of one store by its slug, the live
    menu of a store by its slug, with `page` and `page_size`. Assumptions: that a region is called by the name of its state or city
    (`new-mexico`); that a live menu is also given by the listing's id; that a list of stores wraps its records as above. Of live
    items only flower was seen.
    """

    name = "weedmaps"
    example_url = "https://weedmaps.com/dispensaries/a-shop"
    normalizer_version = normalize.VERSION
    fields = FIELDS
    items = ITEMS
    items_path = "data"

    def read_page(self, body: bytes) -> Page:
        return read(body)

    async def menu_page(self, session: Session, platform_dispensary_id: str, number: int) -> tuple[bytes, PageInfo]:
        path = f"{_LISTINGS}/dispensaries/{quote(platform_dispensary_id, safe='')}/menu_items"
        params = {"page": str(number + 1), "page_size": str(self.per_page)}
        return await self._request(session, path, params, inspect)

    async def store_page(
        self, session: Session, number: int, *, state: str | None, city: str | None
    ) -> list[FoundStore]:
        """Storefronts only."""
        params = {"filter[any_retailer_services][]": "storefront", "size": str(self.per_page)}
        region = region_slug(state=state, city=city)
        if region is not None:
            params["filter[region_slug[dispensaries]]"] = region
        params |= {"page": str(number + 1), "page_size": str(self.per_page)}
        _, records = await self._request(session, _LISTINGS, params, read_stores)
        return [found_store(record) for record in records]

    async def resolve(self, session: Session, slug: str) -> FoundStore | None:
        """The store with that slug, None if Weedmaps has none."""
        path = f"{_LISTINGS}/dispensaries/{quote(slug, safe='')}"
        none: list[msgspec.Raw] = []
        _, records = await self._request(session, path, {}, read_stores, absent=none)
        return found_store(records[0]) if records else None

    async def _request(
        self,
        session: Session,
        path: str,
        params: Mapping[str, str],
        read: Callable[[bytes, int], Answer],
        *,
        absent: Answer | None = None,
    ) -> tuple[bytes, Answer]:
        """The body of an answer and the result of `read`; `absent`, if given, is returned for a 404."""
        if not self.base_url:
            raise Permanent("Weedmaps is not crawled: WEEDMAPS_BASE_URL is not set")

        def read_answer(response: Response) -> Answer:
            if response.status == 404 and absent is not None:
                return absent
            return read(response.body, response.status)

        return await self.retry.answer(
            lambda: session.request("GET", self.base_url + path, params=params, headers={"accept": "application/json"}),
            read_answer,
            what=path,
        )

    def store_in(self, items: Iterable[msgspec.Raw]) -> FoundStore | None:
        """Store data in the items: id, slug, address, licences."""
        return store_in(items)

    def slug_of(self, menu_url: str) -> str | None:
        """The slug in the URL of a Weedmaps store or menu, None for other URLs."""
        parts = split_url(menu_url)
        if parts is None or not f".{parts.hostname or ''}".lower().endswith(".weedmaps.com"):
            return None
        match = _PATH.match(parts.path)
        return match["slug"] if match else None


def store_in(items: Iterable[msgspec.Raw]) -> FoundStore | None:
    """What the items tell of their store, None where none names it: the first that does, its id and address; all of its items, whether
    it sells under a recreational or a medical licence (what none of them is sold under may be sold elsewhere, so that is unknown).
    Its name is in no menu: the slug stands for it."""
    store_id: str | None = None
    path: re.Match[str] | None = None
    licences: set[str] = set()
    for raw in items:
        item = ITEMS.decode(raw)
        listing = ITEMS.store_id(item) if item is not None else None
        if item is None or listing is None or listing != (store_id or listing):
            continue
        if store_id is None:
            store_id = listing
            path = _PATH.match(item.links.self) if item.links is not None and item.links.self else None
        if item.attributes is not None and item.attributes.license_type:
            licences.add(item.attributes.license_type.strip().lower())
    if store_id is None:
        return None
    slug = path["slug"] if path else store_id
    return FoundStore(
        platform_dispensary_id=store_id,
        slug=slug,
        name_raw=slug,
        name=slug,
        is_recreational=True if "recreational" in licences else None,
        is_medical=True if "medical" in licences else None,
        menu_url=f"https://weedmaps.com/{path['kind']}/{slug}" if path else None,
    )


def found_store(raw: msgspec.Raw) -> FoundStore:
    """Parses a listing's record. `problem` says why it cannot be crawled: no id, no slug, not an object."""
    record = read_record(raw)
    if isinstance(record, FoundStore):
        return record
    store_id = id_text(record.value("id")) or ""
    slug = record.text("slug") or store_id
    name = record.name(slug)
    latitude, longitude = valid_coordinates(_degrees(record.value("latitude")), _degrees(record.value("longitude")))
    licence = (record.text("license_type") or "").lower()
    return FoundStore(
        platform_dispensary_id=store_id,
        slug=slug,
        name_raw=name,
        name=clean(name),
        address=record.text("address"),
        city=record.text("city"),
        state=state_code(record.text("state")),
        country=record.text("country"),
        zipcode=record.text("zip_code"),
        latitude=latitude,
        longitude=longitude,
        timezone=iana_timezone(record.text("timezone")),
        phone=record.text("phone_number"),
        is_recreational=licence in {"recreational", "hybrid"} if licence else None,
        is_medical=licence in {"medical", "hybrid"} if licence else None,
        menu_url=record.text("web_url"),
        problem=None if store_id else "the record has no id",
        raw=record.kept(KEPT),
    )


def _degrees(value: Any) -> float | None:
    """A number or its text."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def region_slug(*, state: str | None, city: str | None) -> str | None:
    """`new-mexico` for "NM" and "New Mexico", `las-cruces` for a city, which takes precedence; None without either."""
    code = state_code(state)
    name = city or (states.NAMES | states.PROVINCES).get(code or "", state)
    return "-".join(name.lower().replace(".", "").split()) if name else None
