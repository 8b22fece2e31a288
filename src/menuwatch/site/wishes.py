"""What an address of a search says: read from its query, told back with what is wrong, and written again with something changed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Self
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from menuwatch.operations.shopping import Here, Order, Wish
from menuwatch.site import words

SORTS = {
    Order.RELEVANCE: "Best match",
    Order.PRICE: "Lowest price",
    Order.PER_GRAM: "Price per gram",
    Order.THC: "Most THC",
    Order.NEWEST: "Newest",
    Order.DISTANCE: "Nearest",
}
MILES = (5, 10, 25, 50, 100)
LONGEST = 200
_MOST_CHOICES = 20
_PRICE = re.compile(r"\$?\s*(\d{1,6}(?:\.\d{1,2})?|\.\d{1,2})")
_CURSOR = re.compile(r"(-?\d{1,10})\.(\d{1,18})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The query as it was given. Numbers are kept as they were typed; `errors` says what is wrong with a field."""

    q: str = ""
    category: str = ""
    strains: tuple[str, ...] = ()
    brands: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    stock: bool = False
    special: bool = False
    low: str = ""
    high: str = ""
    gram: str = ""
    thc_low: str = ""
    thc_high: str = ""
    near: str = ""
    within: int = 25
    store: int | None = None
    sort: Order = Order.RELEVANCE
    after: tuple[int, int] | None = None
    errors: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, query: QueryParams) -> Self:
        """Reads a query. What cannot be is left out, and named in `errors` where a person may have typed it."""
        errors: dict[str, str] = {}
        category = _text(query, "category")
        if category and category not in words.CATEGORIES:
            errors["category"] = f"There is no category called “{category[:40]}”."
            category = ""
        sort = _text(query, "sort")
        within = _text(query, "within")
        store = _text(query, "store")
        cursor = _CURSOR.fullmatch(query.get("after", ""))
        after = (int(cursor[1]), int(cursor[2])) if cursor else None
        made = cls(
            q=_text(query, "q"),
            category=category,
            strains=tuple(one for one in _several(query, "strain") if one in words.STRAINS),
            brands=_several(query, "brand"),
            sizes=_several(query, "size"),
            stock=query.get("stock") == "1",
            special=query.get("special") == "1",
            low=_text(query, "min"),
            high=_text(query, "max"),
            gram=_text(query, "gram"),
            thc_low=_text(query, "thc_min"),
            thc_high=_text(query, "thc_max"),
            near=_text(query, "near"),
            within=int(within) if within.isascii() and within.isdecimal() and int(within) in MILES else 25,
            store=int(store) if store.isascii() and store.isdecimal() and len(store) < 10 else None,
            sort=Order(sort) if sort in set(Order) else Order.RELEVANCE,
            after=after if after is not None and abs(after[0]) < 2**31 and after[1] < 2**63 else None,
            errors=errors,
        )
        for name, value in (("min", made.low), ("max", made.high), ("gram", made.gram)):
            if value and cents(value) is None:
                errors[name] = f"“{value[:20]}” is not a price: write it like 25 or 25.50."
        for name, value in (("thc_min", made.thc_low), ("thc_max", made.thc_high)):
            if value and _hundredths(value) is None:
                errors[name] = f"“{value[:20]}” is not a percentage from 0 to 100."
        low, high = cents(made.low), cents(made.high)
        if low is not None and high is not None and low > high:
            errors["max"] = "The highest price is below the lowest."
        return made

    def wish(self, *, brands: Iterable[int] = (), here: Here | None = None) -> Wish:
        """What is looked for; the numbers of brands and the stores that count are found out by the caller."""
        gram = cents(self.gram)
        return Wish(
            text=self.q,
            category=self.category or None,
            strains=self.strains,
            brands=tuple(brands) or ((-1,) if self.brands else ()),
            sizes=self.sizes,
            in_stock=self.stock,
            special=self.special,
            price_min=cents(self.low),
            price_max=cents(self.high),
            per_gram_max=None if gram is None else gram * 100,
            thc_min=_hundredths(self.thc_low),
            thc_max=_hundredths(self.thc_high),
            here=here,
        )

    def wrong(self, name: str) -> str:
        """What is wrong with a field; empty where nothing is."""
        return self.errors.get(name, "")

    def pairs(self) -> list[tuple[str, str]]:
        """The query again, in its one form."""
        found: list[tuple[str, Any]] = [
            ("q", self.q),
            ("category", self.category),
            *(("strain", one) for one in self.strains),
            *(("brand", one) for one in self.brands),
            *(("size", one) for one in self.sizes),
            ("stock", "1" if self.stock else ""),
            ("special", "1" if self.special else ""),
            ("min", self.low),
            ("max", self.high),
            ("gram", self.gram),
            ("thc_min", self.thc_low),
            ("thc_max", self.thc_high),
            ("near", self.near),
            ("within", str(self.within) if self.near and self.within != 25 else ""),
            ("store", "" if self.store is None else str(self.store)),
            ("sort", "" if self.sort is Order.RELEVANCE else self.sort.value),
            ("after", "" if self.after is None else f"{self.after[0]}.{self.after[1]}"),
        ]
        return [(name, value) for name, value in found if value]

    def link(self, **changes: Any) -> str:
        """The address with something changed, from its first page on."""
        query = urlencode(replace(self, **{"after": None, **changes}).pairs())
        return f"/search?{query}" if query else "/search"

    def toggled(self, name: str, value: str) -> str:
        """The address with one choice more or less."""
        chosen: tuple[str, ...] = getattr(self, name)
        left = tuple(one for one in chosen if one != value)
        return self.link(**{name: left if value in chosen else (*chosen, value)})

    @property
    def narrowed(self) -> bool:
        """Whether anything but words and place is asked for."""
        plain = Asked(
            q=self.q, near=self.near, within=self.within, sort=self.sort, after=self.after, errors=self.errors
        )
        return self != plain


def _text(query: QueryParams, name: str) -> str:
    return " ".join(query.get(name, "").replace("\0", "").split())[:LONGEST]


def _several(query: QueryParams, name: str) -> tuple[str, ...]:
    found = (" ".join(one.replace("\0", "").split())[:LONGEST] for one in query.getlist(name))
    return tuple(dict.fromkeys(one for one in found if one))[:_MOST_CHOICES]


def cents(text: str) -> int | None:
    """A price as people type it, in cents; None where it is none."""
    match = _PRICE.fullmatch(text.replace(",", ""))
    return None if match is None else int(Decimal(match[1]) * 100)


def _hundredths(text: str) -> int | None:
    match = re.fullmatch(r"(\d{1,3}(?:\.\d{1,2})?)\s*%?", text)
    if match is None or Decimal(match[1]) > 100:
        return None
    return int(Decimal(match[1]) * 100)
