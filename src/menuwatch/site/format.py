"""Formats values for the public pages: categories, prices, potency, stock and times. Pure."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from menuwatch.core.format import currency_sign, pluralize
from menuwatch.geo import states
from menuwatch.geo.units import currency
from menuwatch.matching.titles import title as title_of
from menuwatch.storefront.deals import MOST_OFF, Deal
from menuwatch.storefront.options import BY_WEIGHT
from menuwatch.storefront.page_queries import Item, ItemCard

CATEGORIES = {
    "flower": "Flower",
    "preroll": "Pre-rolls",
    "vaporizer": "Vapes",
    "concentrate": "Concentrates",
    "edible": "Edibles",
    "tincture": "Tinctures",
    "oral": "Capsules & oral",
    "topical": "Topicals",
    "cultivation": "Seeds & clones",
    "accessory": "Accessories",
    "apparel": "Apparel",
    "other": "Everything else",
}
"""Labels of the taxonomy's categories (`catalog.taxonomy.categories`), in display order."""

STRAINS = {
    "indica": "Indica",
    "indica_hybrid": "Indica-dominant",
    "hybrid": "Hybrid",
    "sativa_hybrid": "Sativa-dominant",
    "sativa": "Sativa",
    "cbd": "CBD",
}

_UNITS = {
    "percentage": "%", "%": "%", "milligrams": " mg", "mg": " mg", "milligrams per gram": " mg/g", "milligrams per ml": " mg/ml",
}  # fmt: skip

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def category(word: str | None) -> str:
    """`Pre-rolls`."""
    return CATEGORIES.get(word or "other", (word or "").replace("_", " ").capitalize())


def subcategory(word: str | None) -> str:
    """`Live resin`; empty without one."""
    return (word or "").replace("_", " ").capitalize()


def strain(word: str | None) -> str:
    """`Indica-dominant`; empty without one."""
    return STRAINS.get(word or "", (word or "").replace("_", " ").capitalize())


def sign(state: str | None) -> str:
    """Currency sign of a state's stores."""
    return currency_sign(currency(state))


def dollars(cents: int | None, state: str | None = None) -> str:
    """`$1,234.50`, `$25` without cents, `CA$25` for a store in Canada; a dash without a price."""
    if cents is None:
        return "–"
    return f"{sign(state)}{cents // 100:,}" if cents % 100 == 0 else f"{sign(state)}{cents / 100:,.2f}"


def money(amount: Decimal | float | None, state: str | None = None) -> str:
    """Like `dollars`, for an amount in dollars."""
    return "–" if amount is None else dollars(round(Decimal(str(amount)) * 100), state)


def per_gram(hundredths: int | None, state: str | None = None) -> str:
    """`$6.74/g` from hundredths of a cent; empty without a value."""
    return "" if hundredths is None else f"{sign(state)}{hundredths / 10_000:,.2f}/g"


def percent_off(now: int | None, before: int | None) -> int | None:
    """Discount in whole percent; None if there is none, or if it is so large that the menu is probably wrong."""
    if now is None or not before or now >= before:
        return None
    off = round(100 * (before - now) / before)
    return off if off <= MOST_OFF else None


def _plain(value: Any, step: str = "0.1") -> str:
    number = Decimal(str(value)).quantize(Decimal(step))
    return f"{number.normalize():f}" if number != number.to_integral_value() else f"{int(number)}"


def potency(lo: Any, hi: Any, unit: str | None) -> str:
    """`22.4 %`, `18–24 %`, `100 mg`; empty if unknown or impossible."""
    if hi is None or Decimal(str(hi)) < Decimal("0.05"):
        return ""
    if unit == "%" and Decimal(str(hi)) > 100:
        return ""
    low = lo if lo is not None and Decimal(str(lo)) > 0 and lo != hi else None
    said = _plain(hi) if low is None else f"{_plain(low)}–{_plain(hi)}"
    return f"{said}{'%' if unit == '%' else ' ' + (unit or '')}".strip()


def shown_potency(category: str, lo: Any, hi: Any, unit: str | None) -> str:
    """Like `potency`; empty for a percentage of goods that are sold by content, which compares with nothing."""
    return "" if unit == "%" and category not in BY_WEIGHT else potency(lo, hi, unit)


def content(value: Any, unit: str | None) -> str:
    """One lab value: `19.2%`, `0.81%`, `0.5 mg/g`. Terpenes are often below one percent, so small values keep two places."""
    plain = (unit or "").lower().replace("_", " ").strip()
    return f"{_plain(value, '0.01' if abs(value) < 10 else '0.1')}{_UNITS.get(plain, ' ' + plain)}".strip()


def day(moment: date | None) -> str:
    """`Mar 5, 2026`; empty if unknown."""
    return "" if moment is None else f"{moment:%b} {moment.day}, {moment.year}"


def count(number: int | None, *, capped: bool = False) -> str:
    """`1,234`, or `10 or more`; empty if unknown."""
    return "" if number is None else f"{number:,}{' or more' if capped else ''}"


def state(code: str) -> str:
    """`Arizona`, `Ontario`; an unknown code unchanged."""
    return states.NAMES.get(code) or states.PROVINCES.get(code, code)


def state_code(text: str) -> str:
    """`AZ` for `az` and for `Arizona`."""
    return states.code_of(text) or text.upper()


_PLATFORMS = {"dutchie": "Dutchie", "dutchie_plus": "Dutchie Plus", "jane": "Jane", "weedmaps": "Weedmaps"}


def platform(name: str) -> str:
    """`Dutchie Plus`; the platform that a menu is on."""
    return _PLATFORMS.get(name) or name.replace("_", " ").title()


def per_dose(hundredths: int | None, state: str | None = None) -> str:
    """`$0.45 per 10 mg` from hundredths of a cent; empty without a value."""
    return "" if hundredths is None else f"{sign(state)}{hundredths / 10_000:,.2f} per 10 mg"


def seen(moment: datetime | None, now: datetime) -> str:
    """Age of a menu: `2 hours ago`."""
    if moment is None:
        return "never"
    seconds = (now - moment).total_seconds()
    if seconds < 2 * _MINUTE:
        return "just now"
    for unit, name in ((_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute")):
        if seconds >= unit:
            return f"{pluralize(int(seconds // unit), name)} ago"
    return "just now"


def local(moment: datetime | None, timezone: str | None) -> str:
    """Local time at the store: `Mar 1, 2026, 5:00 AM MST`; UTC if the store's time zone is unknown."""
    return "never" if moment is None else clock(moment.astimezone(zone(timezone)))


def zone(timezone: str | None) -> ZoneInfo:
    """The time zone of that name; UTC if it is unknown."""
    return known_zone(timezone) or ZoneInfo("UTC")


def known_zone(timezone: str | None) -> ZoneInfo | None:
    """The time zone of that name; None if it is unknown."""
    try:
        return ZoneInfo(timezone) if timezone else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def there(moment: datetime, timezone: str | None) -> datetime:
    """The moment in that time zone."""
    return moment.astimezone(zone(timezone))


def terms(kind: str, value: Decimal | None, required: int | None, reward: int | None, state: str | None) -> str:
    """What a special of a store in that state asks and gives: `5 for $75`, `Buy 2, get 1 at 40% off`; empty if its name has to
    say it."""
    if kind == "bundle" and value is not None and required:
        return f"{required} for {money(value, state)}"
    if kind == "bogo" and required and reward:
        off = "" if value is None else " free" if value == 100 else f" at {_plain(value)}% off"
        return f"Buy {required}, get {reward}{off}" if off else ""
    return ""


def clock(moment: datetime) -> str:
    """`Mar 1, 2026, 5:00 AM MST`, in the time zone of the moment."""
    return f"{moment:%b} {moment.day}, {moment.year}, {moment.hour % 12 or 12}:{moment:%M %p} {moment.tzname()}"


def title(item: Item | ItemCard | Deal) -> str:
    """What a product is called beside its brand, category and size."""
    return title_of(item.name, item.brand, item.category)


def address(street: str | None, city: str | None, state: str | None, *more: str | None) -> str:
    """A store's address in one line; many street fields already include the city."""
    if street and city and city.casefold() in street.casefold():
        return street
    return ", ".join(part for part in (street, place_of(city, state), *more) if part)


def store_in(store: str, city: str | None) -> str:
    """`Green Leaf, Phoenix`; only `Green Leaf Phoenix` if the name includes the city."""
    return store if not city or city.casefold() in store.casefold() else f"{store}, {city}"


def place_of(city: str | None, state: str | None) -> str:
    """`Phoenix, AZ`."""
    return ", ".join(part for part in (city, state) if part)
