"""The form of an alert: what it offers, and what was typed into it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Annotated

from fastapi import Depends, Request
from msgspec import Struct
from starlette.datastructures import FormData

from menuwatch.config.settings import Settings
from menuwatch.db.pool import Connection
from menuwatch.geo import postcodes
from menuwatch.geo.circle import DEFAULT_MILES
from menuwatch.geo.units import CURRENCIES
from menuwatch.site import screen
from menuwatch.site.search_query import MILES, cents
from menuwatch.storefront import page_queries
from menuwatch.storefront.page_queries import Offer
from menuwatch.storefront.watches.model import CHANNELS, CONDITIONS, Condition, NewWatch, Scope, WatchedSearch
from menuwatch.storefront.watches.service import offered_channels
from menuwatch.web.forms import FormInput

_FIELDS = {
    "condition": 20,
    "amount": 20,
    "by": 10,
    "email": 300,
    "topic": 300,
    "subscription": 2_000,
    "reach": 30,
    "near": 300,
    "within": 10,
    "size": 300,
    "currency": 3,
    "website": 300,
}
"""Fields with their longest value."""


class Watchable(Struct, frozen=True, kw_only=True):
    """What a form offers: conditions and channels with their labels, sizes of a product, and one store besides all of them. Not
    `anywhere`: the alert is about one store. Price limits are in the currency of `state`."""

    action: str
    conditions: Mapping[str, str]
    condition: str
    channels: Mapping[str, str]
    sizes: Sequence[str] = ()
    size: str | None = None
    store: Offer | None = None
    anywhere: bool = True
    state: str | None = None


def conditions(*, of_item: bool) -> dict[str, str]:
    """The conditions of a product, or of a brand, a search or a store, with their labels."""
    return {name: kind.label for name, kind in CONDITIONS.items() if kind.of_item or not of_item}


def channels(settings: Settings) -> dict[str, str]:
    """The channels that this installation has, with their labels."""
    return {name: CHANNELS[name].label for name in offered_channels(settings)}


async def _sent(request: Request) -> FormInput:
    data = await request.form(max_fields=20, max_files=0)
    return FormInput({name: _typed(data, name, longest) for name, longest in _FIELDS.items()})


Sent = Annotated[FormInput, Depends(_sent)]
"""The form, parsed before a database connection is taken, so that slow clients hold none."""


def _typed(data: FormData, name: str, longest: int) -> str:
    found = data.get(name)
    return " ".join(found.replace("\0", "").split())[:longest] if isinstance(found, str) else ""


async def read(
    conn: Connection,
    form: FormInput,
    *,
    item_id: int | None = None,
    sizes: Collection[str] = (),
    brand_id: int | None = None,
    search: WatchedSearch | None = None,
    store_id: int | None = None,
) -> NewWatch | None:
    """The watch that the form asks for; None if it is invalid, with the errors noted in the form."""
    condition = next((name for name in CONDITIONS if name == form.value("condition")), None)
    if condition is None:
        form.add_error("condition", "Choose an alert condition.")
    amount = _amount(form, condition)
    channel = next((name for name in CHANNELS if name == (form.value("by") or "feed")), None)
    if channel is None:
        form.add_error("by", "Choose how to be notified.")
    if channel == "mail" and not form.value("email"):
        form.add_error("email", "Enter an e-mail address.")
    if form.value("size") and form.value("size") not in sizes:
        form.add_error("size", "No store lists that size now. Choose another one.")
    scope = Scope(store_id=store_id) if store_id is not None else await _scope(conn, form)
    if not form.ok or condition is None or channel is None or scope is None:
        return None
    address = {"mail": form.value("email"), "ntfy": form.value("topic"), "push": form.value("subscription")}
    return NewWatch(
        item_id=item_id,
        brand_id=brand_id,
        search=search,
        size=form.value("size") or None,
        condition=condition,
        amount=amount,
        scope=scope,
        currency=next((one for one in CURRENCIES if one == form.value("currency")), None),
        channel=channel,
        address=address.get(channel) or None,
    )


def _amount(form: FormInput, condition: Condition | None) -> Decimal | None:
    if condition != "price_below":
        return None
    amount = cents(form.value("amount"))
    if not amount:
        form.add_error("amount", "Enter a price such as 25 or 25.50.")
        return None
    return Decimal(amount) / 100


async def _scope(conn: Connection, form: FormInput) -> Scope | None:
    reach = form.value("reach")
    if reach.startswith("store-") and reach[6:].isascii() and reach[6:].isdecimal() and len(reach) < 16:
        if await page_queries.get_store(conn, int(reach[6:])) is not None:
            return Scope(store_id=int(reach[6:]))
        form.add_error("reach", "That store is no longer listed.")
        return None
    if reach != "near":
        return Scope()
    within = form.value("within")
    miles = int(within) if within.isascii() and within.isdecimal() and int(within) in MILES else DEFAULT_MILES
    where = await screen.around(conn, form.value("near"), miles)
    if (place := where.place) is None:
        form.add_error("near", where.error or "Enter a city, ZIP or postal code.")
        return None
    if await screen.is_ambiguous(conn, where):
        names = ", ".join(f"“{one.label}”" for one in (place, *where.others)[:4])
        form.add_error("near", f"Several places have that name. Add the state or province: {names}.")
        return None
    if place.is_position:
        # An alert is stored: it gets the town, not the position.
        place = postcodes.town_near(*place.point)
        if place is None:
            form.add_error("near", "There is no town near this location. Enter a city, ZIP or postal code.")
            return None
    return Scope(place=place.label, latitude=place.latitude, longitude=place.longitude, miles=miles)
