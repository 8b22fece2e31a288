"""The query of a search URL: parsing with errors, and writing with changes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Self
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from menuwatch.geo.circle import DEFAULT_MILES
from menuwatch.site import format as words
from menuwatch.storefront.page_queries import NearbyStores
from menuwatch.storefront.search import Order, SearchRequest
from menuwatch.storefront.search_text import read_text, without_sign

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
_PRICE = re.compile(r"(\d{1,6}(?:\.\d{1,2})?|\.\d{1,2})")
_CURSOR = re.compile(r"(-?\d{1,10})\.(\d{1,18})")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """The parsed query. Numbers are kept as typed; `errors` has a message per invalid field."""

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
    within: int = DEFAULT_MILES
    store: int | None = None
    exact: bool = False
    """The text is searched as words only."""
    sort: Order = Order.RELEVANCE
    after: tuple[int, int] | None = None
    errors: dict[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, params: QueryParams) -> Self:
        """Parses a query. Invalid values are dropped, and reported in `errors` if a person may have typed them."""
        errors: dict[str, str] = {}
        category = _text(params, "category")
        if category and category not in words.CATEGORIES:
            errors["category"] = f"Unknown category “{category[:40]}”."
            category = ""
        sort = _text(params, "sort")
        within = _text(params, "within")
        store = _text(params, "store")
        cursor = _CURSOR.fullmatch(params.get("after", ""))
        after = (int(cursor[1]), int(cursor[2])) if cursor else None
        query = cls(
            q=_text(params, "q"),
            category=category,
            strains=tuple(one for one in _list(params, "strain") if one in words.STRAINS),
            brands=_list(params, "brand"),
            sizes=_list(params, "size"),
            stock=params.get("stock") == "1",
            special=params.get("special") == "1",
            low=_text(params, "min"),
            high=_text(params, "max"),
            gram=_text(params, "gram"),
            thc_low=_text(params, "thc_min"),
            thc_high=_text(params, "thc_max"),
            near=_text(params, "near"),
            within=int(within) if within.isascii() and within.isdecimal() and int(within) in MILES else DEFAULT_MILES,
            store=int(store) if store.isascii() and store.isdecimal() and len(store) < 10 else None,
            exact=params.get("exact") == "1",
            sort=Order(sort) if sort in set(Order) else Order.RELEVANCE,
            after=after if after is not None and abs(after[0]) < 2**31 and after[1] < 2**63 else None,
            errors=errors,
        )
        for name, value in (("min", query.low), ("max", query.high), ("gram", query.gram)):
            if value and cents(value) is None:
                errors[name] = f"“{value[:20]}” is not a price: use a number such as 25 or 25.50."
        for name, value in (("thc_min", query.thc_low), ("thc_max", query.thc_high)):
            if value and _hundredths(value) is None:
                errors[name] = f"“{value[:20]}” is not a percentage from 0 to 100."
        low, high = cents(query.low), cents(query.high)
        if low is not None and high is not None and low > high:
            errors["max"] = "The maximum price is below the minimum."
        return query

    def understood(self) -> Self:
        """The query with what its text asks for as filters; filters that are set already stay."""
        reading = read_text(self.q)
        if self.exact or not reading.understood:
            return self
        priced = self.low or self.high
        return replace(
            self,
            q=reading.words,
            category=self.category or reading.category,
            strains=self.strains or reading.strains,
            sizes=self.sizes or reading.sizes,
            stock=self.stock or reading.in_stock,
            special=self.special or reading.special,
            low=self.low if priced else reading.price_min,
            high=self.high if priced else reading.price_max,
            sort=Order(reading.order) if reading.order and self.sort is Order.RELEVANCE else self.sort,
        )

    def request(self, *, brands: Iterable[int] = (), nearby: NearbyStores | None = None) -> SearchRequest:
        """The search request; the caller resolves brand ids and nearby stores."""
        gram = cents(self.gram)
        return SearchRequest(
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
            nearby=nearby,
        )

    def error(self, name: str) -> str:
        """The error of a field; empty if there is none."""
        return self.errors.get(name, "")

    def pairs(self) -> list[tuple[str, str]]:
        """The query in its canonical form."""
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
            ("within", str(self.within) if self.near and self.within != DEFAULT_MILES else ""),
            ("store", "" if self.store is None else str(self.store)),
            ("exact", "1" if self.exact else ""),
            ("sort", "" if self.sort is Order.RELEVANCE else self.sort.value),
            ("after", "" if self.after is None else f"{self.after[0]}.{self.after[1]}"),
        ]
        return [(name, value) for name, value in found if value]

    def link(self, **changes: Any) -> str:
        """The URL with some values changed, at the first page."""
        query = urlencode(replace(self, **{"after": None, **changes}).pairs())
        return f"/search?{query}" if query else "/search"

    def toggled(self, name: str, value: str) -> str:
        """The URL with one option added or removed."""
        chosen: tuple[str, ...] = getattr(self, name)
        left = tuple(one for one in chosen if one != value)
        return self.link(**{name: left if value in chosen else (*chosen, value)})

    @property
    def narrowed(self) -> bool:
        """Whether any filter other than words and location is set."""
        plain = SearchQuery(
            q=self.q,
            near=self.near,
            within=self.within,
            exact=self.exact,
            sort=self.sort,
            after=self.after,
            errors=self.errors,
        )
        return self != plain


def _text(params: QueryParams, name: str) -> str:
    return " ".join(params.get(name, "").replace("\0", "").split())[:LONGEST]


def _list(params: QueryParams, name: str) -> tuple[str, ...]:
    texts = (" ".join(text.replace("\0", "").split())[:LONGEST] for text in params.getlist(name))
    return tuple(dict.fromkeys(text for text in texts if text))[:_MOST_CHOICES]


def cents(text: str) -> int | None:
    """A typed price in cents, with or without `$` or `CA$`; None if it is invalid."""
    match = _PRICE.fullmatch(without_sign(text).replace(",", ""))
    return None if match is None else int(Decimal(match[1]) * 100)


def _hundredths(text: str) -> int | None:
    match = re.fullmatch(r"(\d{1,3}(?:\.\d{1,2})?)\s*%?", text)
    if match is None or Decimal(match[1]) > 100:
        return None
    return int(Decimal(match[1]) * 100)
