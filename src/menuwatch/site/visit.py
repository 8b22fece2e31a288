"""How to get to a store: its opening hours, directions, and a product on the store's own menu. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct

from menuwatch.platforms.opening_hours import DAY, Opening, OpeningHours, OpenState, read_hours
from menuwatch.site import format as text
from menuwatch.storefront.page_queries import ListedStore, Offer

_DIRECTIONS = "https://www.google.com/maps/dir/"
_DUTCHIE_MENU = re.compile(r"https://(?:www\.)?dutchie\.com/(?:dispensary|embedded-menu)/[\w-]+")


class DayHours(NamedTuple):
    """A line of the week's hours."""

    day: str
    hours: str
    is_today: bool


class ShownHours(Struct, frozen=True, kw_only=True):
    """Hours in words. `state`: `Open until 9 PM`; `is_open` None if it is not known."""

    state: str
    is_open: bool | None
    week: Sequence[DayHours]
    for_pickup: bool


def hours(store: ListedStore | Offer, now: datetime) -> ShownHours | None:
    """The store's hours in its own time zone; None if they are not known."""
    if store.hours is None:
        return None
    known = read_hours(msgspec.json.decode(store.hours))
    if known is None:
        return None
    zone = text.known_zone(store.timezone)
    there = now.astimezone(zone) if zone else None
    state = known.state(there) if there else None
    return ShownHours(
        state=_state(state, there, known) if state and there else "",
        is_open=state.is_open if state else None,
        week=_week(known, there),
        for_pickup=known.for_pickup,
    )


def _state(state: OpenState, there: datetime, known: OpeningHours) -> str:
    pickup = " for pickup" if known.for_pickup else ""
    if state.is_open:
        whole = state.today is not None and state.today[1] - state.today[0] == DAY
        return f"Open{pickup}" + (" 24 hours" if whole else f" until {_time(state.until)}" if state.until else " now")
    if state.opens is None:
        return f"Closed{pickup}"
    days = (state.opens.date() - there.date()).days
    when = "" if days == 0 else "tomorrow " if days == 1 else f"{state.opens:%A} "
    return f"Closed{pickup}, opens {when}at {_time(state.opens)}"


def _week(known: OpeningHours, there: datetime | None) -> list[DayHours]:
    """The coming seven days from today, with special days; without a time zone the plain week."""
    if there is None:
        names = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
        return [
            DayHours(name, _span(known.week[day]) if day in known.week else "unknown", False)
            for day, name in enumerate(names)
        ]
    days = [there.date() + timedelta(days=after) for after in range(7)]
    return [
        DayHours(f"{day:%A}", _span(known.on(day)) if known.is_known(day) else "unknown", day == there.date())
        for day in days
    ]


def _span(span: Opening | None) -> str:
    if span is None:
        return "closed"
    if span[1] - span[0] == DAY:
        return "24 hours"
    return f"{_clock(span[0])} – {_clock(span[1])}"


def _time(moment: datetime | None) -> str:
    return "" if moment is None else _clock(moment.hour * 60 + moment.minute)


def _clock(minutes: int) -> str:
    """`9 AM`, `9:30 PM`, `midnight`."""
    hour, minute = divmod(minutes % DAY, 60)
    if hour == minute == 0:
        return "midnight"
    return f"{hour % 12 or 12}{f':{minute:02}' if minute else ''} {'AM' if hour < 12 else 'PM'}"


def directions(store: ListedStore | Offer) -> str | None:
    """A link to directions by another site; None if it is not known where the store is."""
    if store.address:
        place = text.address(store.address, store.city, store.state, store.zipcode)
    elif store.latitude is not None and store.longitude is not None:
        place = f"{store.latitude:.6f},{store.longitude:.6f}"
    else:
        return None
    return f"{_DIRECTIONS}?{urlencode({'api': 1, 'destination': place})}"


class MenuLink(NamedTuple):
    """A link to a store's own menu."""

    url: str
    is_item: bool
    """It leads to the product itself."""


def on_menu(offer: Offer) -> MenuLink | None:
    """The product on the store's own menu, else the menu; None if neither address is known."""
    if offer.item_url and offer.item_url.startswith("https://"):
        return MenuLink(offer.item_url, True)
    menu = offer.menu_url or ""
    dutchie = _DUTCHIE_MENU.match(menu) if offer.platform == "dutchie" else None
    if dutchie and offer.item_slug:
        return MenuLink(f"{dutchie[0]}/product/{quote(offer.item_slug, safe='')}", True)
    return MenuLink(menu, False) if menu.startswith("https://") else None
