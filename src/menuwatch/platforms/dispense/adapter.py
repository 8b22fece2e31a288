"""The Dispense adapter: its requests and its answers.

A page of a menu is `{"data": [products], "count": 257}`, where `count` is said to be the number of products of the whole menu; it was
not recorded. A venue (a store) is `{"data": {"id", "name", "address": {"number", "street", "city", "administrativeArea", "country",
"postalCode", "latitude", "longitude"}, "medicalDispensary", "organization", …}}`, or that object without an envelope. There is no
public list of venues.

Every request has the API key that all shops' pages send. Without it, or with an old one, the answer is 401 (some say 403) and
`{"name": "UnauthenticatedError", "message": "Unauthorized", "errors": [{"message": "invalid venue id"}]}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import quote

import msgspec

from menuwatch.catalog.taxonomy.text import clean
from menuwatch.core import strict_json as strict
from menuwatch.core.errors import BadPayload, Permanent
from menuwatch.platforms.base import Platform, split_url
from menuwatch.platforms.dispense import normalize
from menuwatch.platforms.dispense.normalize import ITEMS
from menuwatch.platforms.dispense.payload import FIELDS, Ids
from menuwatch.platforms.envelope import check_count, check_list, decode, excerpt, missing, parse_count, with_status
from menuwatch.platforms.model import FoundStore, Page, PageInfo
from menuwatch.platforms.numbers import id_text
from menuwatch.platforms.store_records import StoreRecord, iana_timezone, read_record, state_code, valid_coordinates

if TYPE_CHECKING:
    from menuwatch.config.platforms import PlatformSettings
    from menuwatch.core.http import Response, Session

MENU_SITE = "https://menus.dispenseapp.com"
"""The site of all menus, from which their pages ask the API."""
_MENU = re.compile(r"/(?P<venue>[A-Za-z0-9][A-Za-z0-9-]*)(?:/|$)")
_API = re.compile(r"/[A-Za-z0-9-]+/venues/(?P<venue>[A-Za-z0-9][A-Za-z0-9-]*)(?:/|$)")
_OWN_KEYS = (b'"venue"', b'"cannabisComplianceType"', b'"priceWithDiscounts"')
KEPT = ("organization", "addressFormatted", "logo", "schedule", "medicalDispensary")
"""Fields of a venue that are stored beside the columns."""

Answer = TypeVar("Answer")


class _Menu(msgspec.Struct):
    data: list[msgspec.Raw] | None
    count: msgspec.Raw = msgspec.Raw()


class _Plain(msgspec.Struct):
    """A page without anything odd in it: nearly all are."""

    data: list[Ids]
    count: msgspec.Raw = msgspec.Raw()


class _Venue(msgspec.Struct):
    data: msgspec.Raw = msgspec.Raw()


_menu = msgspec.json.Decoder(_Menu)
_plain = strict.Decoder(_Plain)
_venue = msgspec.json.Decoder(_Venue)


def inspect(body: bytes, status: int, venue: str) -> PageInfo:
    """What paging needs of a page of that venue's menu. Raises what `read` does, and BadPayload for another venue's products."""
    try:
        answer = _plain.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        page = read(body, status)
        owners = {store for raw in page.items if (store := ITEMS.store_of((raw,))) is not None}
        info = page.inspect(ITEMS.identity)
    else:
        check_count(len(answer.data), body)
        owners = {store for item in answer.data if (store := id_text(item.venue)) is not None}
        ids = tuple([item.product_id() for item in answer.data])
        info = PageInfo(ids, parse_count(answer.count), None, strict=True)
    if strangers := owners - {venue}:
        raise BadPayload("schema", f"the response has products of venue {min(strangers)}, not of {venue}", body)
    return info


def read(body: bytes, status: int = 200) -> Page:
    """Parses a page, which may be empty. Raises BadPayload of kind html, truncated, schema, limits or no_data."""
    answer = decode(body, _menu, status)
    if answer.data is None:
        raise missing("menu", "data", status, body)
    check_count(len(answer.data), body)
    if answer.data and not any(key in body for key in _OWN_KEYS):
        # Other platforms have lists of `data`, too.
        raise BadPayload("schema", with_status("the response has no products of Dispense", status), body)
    return Page(answer.data, parse_count(answer.count), None)


def read_venue(body: bytes, status: int = 200) -> msgspec.Raw:
    """The raw record of a venue. Raises BadPayload as `read` does."""
    check_list(body)
    inner = decode(body, _venue, status).data
    return inner if bytes(inner).startswith(b"{") else msgspec.Raw(body)


class Dispense(Platform):
    """Without a `base_url`, or an `api_key`, what would need one raises Permanent.

    Verified on recorded answers: products, and that pages are lists by `skip` and `limit` that end with a short one. As public callers
    ask: everything else. Sold out products are not asked for (`quantityMin`), as the answer would have all that the shop ever had.
    """

    name = "dispense"
    normalizer_version = normalize.VERSION
    fields = FIELDS
    items = ITEMS
    items_path = "data"
    lists_stores = False
    example_url = "https://menus.dispenseapp.com/041444e70b831110/menu"

    def __init__(self, *, api_key: str = "", **options: Any) -> None:
        super().__init__(**options)
        self._api_key = api_key

    @classmethod
    def configured(cls, settings: PlatformSettings, *, retry_base_seconds: float) -> Self:
        return cls(base_url=settings.base_url, api_key=settings.api_key, retry_base_seconds=retry_base_seconds)

    def lacks(self) -> tuple[str, ...]:
        return (*super().lacks(), *(() if self._api_key else ("DISPENSE_API_KEY",)))

    def read_page(self, body: bytes) -> Page:
        return read(body)

    async def menu_page(self, session: Session, platform_dispensary_id: str, number: int) -> tuple[bytes, PageInfo]:
        params = {
            "skip": str(number * self.per_page),
            "limit": str(self.per_page),
            "sort": "name",
            "active": "true",
            "enable": "true",
            "quantityMin": "1",
            "group": "true",
            "orderPickUpType": "IN_STORE",
        }
        path = f"/v1/venues/{quote(platform_dispensary_id, safe='')}/products"

        def read_menu(body: bytes, status: int) -> PageInfo:
            return inspect(body, status, platform_dispensary_id)

        return await self._request(session, path, params, read_menu)

    async def resolve(self, session: Session, slug: str) -> FoundStore | None:
        """The venue with that id or name in the address of its menu, None if Dispense has none."""
        path = f"/v1/venues/{quote(slug, safe='')}"
        _, record = await self._request(session, path, {}, read_venue, absent=msgspec.Raw())
        return found_store(record, slug) if bytes(record) else None

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
            raise Permanent("Dispense is not crawled: DISPENSE_BASE_URL is not set")
        if not self._api_key:
            raise Permanent(
                f"Dispense is not crawled: DISPENSE_API_KEY, the `api-key` that pages of {MENU_SITE} send, is not set"
            )
        headers = {
            "accept": "application/json",
            "api-key": self._api_key,
            "origin": MENU_SITE,
            "referer": f"{MENU_SITE}/",
        }

        def read_answer(response: Response) -> Answer:
            if response.status in (401, 403):
                raise Permanent(
                    f"Dispense refused DISPENSE_API_KEY with HTTP {response.status} (“{excerpt(response.body[:200])}”): "
                    f"set it to the `api-key` that pages of {MENU_SITE} send now"
                )
            if response.status == 404 and absent is not None:
                return absent
            return read(response.body, response.status)

        return await self.retry.answer(
            lambda: session.request("GET", self.base_url + path, params=params, headers=headers),
            read_answer,
            what=path,
        )

    def slug_of(self, menu_url: str) -> str | None:
        """The venue in the URL of a menu (https://menus.dispenseapp.com/041444e70b831110/menu) or of the API; None for others."""
        parts = split_url(menu_url)
        host = (parts.hostname or "").lower() if parts is not None else ""
        pattern = {"menus.dispenseapp.com": _MENU, "api.dispenseapp.com": _API}.get(host)
        match = pattern.match(parts.path) if pattern is not None and parts is not None else None
        return match["venue"] if match else None


def found_store(raw: msgspec.Raw, slug: str) -> FoundStore:
    """Parses a venue's record. `problem` says why it cannot be crawled: no id, not an object."""
    record = read_record(raw)
    if isinstance(record, FoundStore):
        return record
    store_id = id_text(record.value("id")) or id_text(record.value("_id")) or ""
    name = record.name(slug)
    latitude, longitude = valid_coordinates(record.value("address.latitude"), record.value("address.longitude"))
    medical = record.flag("medicalDispensary")
    return FoundStore(
        platform_dispensary_id=store_id,
        slug=slug,
        name_raw=name,
        name=clean(name),
        address=_street(record),
        city=record.text("address.city"),
        state=state_code(record.text("address.administrativeArea")),
        country=record.text("address.country"),
        zipcode=record.text("address.postalCode"),
        latitude=latitude,
        longitude=longitude,
        timezone=iana_timezone(record.text("timezone", "address.timezone")),
        phone=record.text("phone", "phoneNumber"),
        is_medical=medical,
        enterprise_id=record.text("organization"),
        menu_url=f"{MENU_SITE}/{store_id}/menu" if store_id else None,
        problem=None if store_id else "the record has no id",
        raw=record.kept(KEPT),
    )


def _street(record: StoreRecord) -> str | None:
    parts = (record.text("address.number"), record.text("address.street"))
    return " ".join(part for part in parts if part) or record.text("addressFormatted")
