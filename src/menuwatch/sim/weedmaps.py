"""The discovery API of Weedmaps: the list of stores, one store, and menus by the store's id or slug.

As recorded (menus) and as public callers ask (stores). Pages count from 1 and hold 100 items at the most; one beyond the last is
empty. An unknown store is 404.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

import msgspec

from menuwatch.sim.desk import MAX_PER_PAGE, Body, Desk
from menuwatch.sim.http import Answer, Request
from menuwatch.sim.misbehave import Asked, Identity, Mischief
from menuwatch.sim.model import SimStore
from menuwatch.sim.pages import Menus
from menuwatch.sim.stats import Stats
from menuwatch.sim.words import REGIONS

_LISTINGS = re.compile(r"/discovery/v\d+/listings/?")
_LISTING = re.compile(r"/discovery/v\d+/listings/dispensaries/([^/]+)(/menu_items)?/?")
_REGION = "filter[region_slug[dispensaries]]"


class Discovery:
    """Answers about the market's stores on Weedmaps at its present tick."""

    def __init__(self, menus: Menus, mischief: Mischief, stats: Stats) -> None:
        self._menus = menus
        self._desk = Desk(mischief, stats)
        self.tick = 0

    def answer(self, request: Request, identity: Identity) -> Answer | None:
        """The answer to one request, spoiled or not; None where the address is none of this API's."""
        one = _LISTING.fullmatch(request.path)
        if one is None and not _LISTINGS.fullmatch(request.path):
            return None
        if request.method != "GET":
            return self._refused(405, "Method Not Allowed")
        number, size = _number(request, "page", 1), _number(request, "page_size", 20)
        if number is None or size is None:
            return self._refused(422, "page and page_size are numbers from 1 on")
        size = min(size, MAX_PER_PAGE)
        if one is None:
            asked = self._desk.note("listings", identity, None, number - 1)
            return self._desk.answer(asked, None, self.tick, lambda _: self._stores(request, number, size))
        store = self._menus.market.find(unquote(one[1]), "weedmaps")
        if store is None:
            return self._refused(404, "Listing not found")
        if one[2] is None:
            asked = self._desk.note("listing", identity, store, 0)
            return self._desk.answer(asked, store, self.tick, lambda _: Body(_json({"listing": self._record(store)})))
        asked = self._desk.note("menu_items", identity, store, number - 1)
        return self._desk.answer(
            asked, store, self.tick, lambda emptied: self._menu(store, asked, number, size, emptied=emptied)
        )

    def _refused(self, status: int, why: str) -> Answer:
        self._desk.refused()
        return Answer(status, msgspec.json.encode({"errors": [{"status": str(status), "detail": why}]}))

    def _stores(self, request: Request, number: int, size: int) -> Body:
        region = request.query.get(_REGION)
        found = [
            store
            for store in self._menus.market.on("weedmaps")
            if region is None or region in (REGIONS.get(store.state), "-".join(store.city.lower().split()))
        ]
        shown = found[(number - 1) * size : number * size]
        return Body(_json({"listings": [self._record(s) for s in shown]}, total_listings=len(found)))

    def _menu(self, store: SimStore, asked: Asked, number: int, size: int, *, emptied: bool) -> Body:
        rows = [body for _, body in self._menus.menu(store, self.tick)]
        shown = self._desk.slice(rows, asked, self.tick, size, emptied=emptied)
        # What the recordings call per_page is what was asked for, also where less is served.
        meta = {"page": number, "per_page": size, "total": shown.said_total}
        body = b'{"meta":%s,"data":[%s]}' % (msgspec.json.encode(meta), b",".join(shown.rows))
        return Body(body, (number - 1, shown.pages) if number <= max(shown.pages, 1) else None)

    def _record(self, store: SimStore) -> dict[str, Any]:
        """A store as lists have it."""
        both = store.recreational and store.medical
        return {
            "id": int(store.id),
            "type": "dispensary",
            "slug": store.slug,
            "name": store.name,
            "license_type": "hybrid" if both else "recreational" if store.recreational else "medical",
            "address": store.street,
            "city": store.city,
            "state": store.state,
            "country": store.country,
            "zip_code": store.zipcode,
            "latitude": store.latitude,
            "longitude": store.longitude,
            "timezone": store.timezone,
            "phone_number": store.phone,
            "web_url": f"https://weedmaps.com/dispensaries/{store.slug}",
            "menu_items_count": len(self._menus.market.menu(store, self.tick)),
            "rating": round(3 + store.latitude % 2, 1),
            "reviews_count": int(abs(store.longitude) * 3),
            "online_ordering": {"enabled_for_pickup": True, "enabled_for_delivery": False},
        }


def _number(request: Request, name: str, otherwise: int) -> int | None:
    """The parameter, None where it is no number from 1 on."""
    text = request.query.get(name)
    if text is None:
        return otherwise
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 7 and int(text) > 0 else None


def _json(data: Any, **meta: Any) -> bytes:
    return msgspec.json.encode({"meta": meta, "data": data})
