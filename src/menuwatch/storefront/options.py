"""The options of a listing as offers: size, price, price per gram or per 10 mg, and stock, each of one option. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any

import msgspec

from menuwatch.catalog.taxonomy.package import content_of, mass, shortest
from menuwatch.catalog.taxonomy.sizes import by_ounces, size_of, size_order
from menuwatch.catalog.taxonomy.unit_price import IMPLAUSIBLE
from menuwatch.core.shapes import doc
from menuwatch.matching import packages

decode_variants = msgspec.json.Decoder(list[dict[str, Any]], float_hook=Decimal).decode

BY_WEIGHT = frozenset({"flower", "preroll", "vaporizer", "concentrate"})
BY_CONTENT = frozenset({"edible", "oral", "tincture", "topical"})
LOWEST_PRICE = 10
"""Cents; what costs less is a placeholder or a promotion, and sorted last. Statements say the number themselves."""
_DEAREST_DOSE = 100_000
"""Price per 10 mg above which the content is taken for an error: $10."""
_LARGEST_GRAMS = Decimal(500)
_MOST_OF_ONE, _LEAST_OF_ALL = Decimal(10), Decimal(50)
"""Milligrams that one of several pieces has at most, and that all of them have at least, where a name does not tell."""
_RANKS = (0, 700_000_000, 1_400_000_000, 2_000_000_000, 2_100_000_000)
_RANK_STEPS = (1_000, 100, 1_000, 0, 0)


class ReadSize(msgspec.Struct, frozen=True):
    """The size of an option; grams of what is sold by weight, milligrams of what is sold by content."""

    size: str | None
    grams: Decimal | None = None
    milligrams: Decimal | None = None
    from_name: bool = False


class MenuOption(msgspec.Struct, frozen=True, kw_only=True):
    """One option of a listing. Prices in cents, per gram and per 10 mg in hundredths of a cent; null if unknown."""

    option: str
    size: str | None
    from_name: Annotated[bool, doc("The size was read from the product's name, as the menu gives none.")]
    price: Annotated[int | None, doc("With the special, if there is one.")]
    regular: Annotated[int | None, doc("Without the special, if that is more.")]
    per_gram: int | None
    per_dose: Annotated[int | None, doc("Per 10 mg.")]
    in_stock: bool | None
    medical: Annotated[bool, doc("The price is for patients.")]

    @property
    def rank(self) -> tuple[bool, bool, int]:
        """Sorts options by what can be bought, then by price."""
        return self.in_stock is False, self.price is None or self.price < LOWEST_PRICE, self.price or 0


def read_sizes(variants: Sequence[Mapping[str, Any]], name: str, category: str | None) -> list[ReadSize]:
    """The size of each option. What the menu says wins; the only option of a listing without one has that of its name."""
    found = [_read_size(variant, category) for variant in variants]
    if len(found) != 1 or found[0].grams is not None or found[0].milligrams is not None:
        return found
    said = packages.read(name, "edible" if category in BY_CONTENT else "flower")
    if category in BY_CONTENT:
        amount = _content(said)
        return found if amount is None else [ReadSize(f"{shortest(amount)} mg", None, amount, True)]
    if len(said.amounts) != 1:
        return found
    amount = said.amounts[0]
    if category in BY_WEIGHT and amount <= _LARGEST_GRAMS and not (said.pieces and said.pieces > 1):
        return [ReadSize(f"{shortest(amount)} g", amount, None, True)]
    return found


def _content(said: packages.Size) -> Decimal | None:
    """Milligrams of all pieces; None where a name may mean those of one piece as well."""
    if len(said.amounts) < 2:
        return said.amounts[0] if said.amounts else None
    if said.amounts[0] >= _LEAST_OF_ALL:
        return said.amounts[0]
    return said.amounts[-1] if said.amounts[0] <= _MOST_OF_ONE else None


def _read_size(variant: Mapping[str, Any], category: str | None) -> ReadSize:
    size = size_of(variant)
    if category in BY_CONTENT:
        content = variant.get("content_mg")
        milligrams = Decimal(str(content)) if content else content_of(str(variant.get("option", "")))
        return ReadSize(size, None, milligrams)
    if category in BY_WEIGHT:
        weight = variant.get("weight_g")
        grams = Decimal(str(weight)) if weight else mass(str(variant.get("option", "")))
        return ReadSize(size, by_ounces(grams) if grams else None)
    return ReadSize(size)


def read_options(
    variants: Sequence[Mapping[str, Any]],
    *,
    name: str,
    category: str | None,
    in_stock: bool | None,
    usual_per_gram: int | None = None,
) -> list[MenuOption]:
    """The options of a listing whose stock is `in_stock`; `usual_per_gram` is the median of the category, if known."""
    sizes = read_sizes(variants, name, category)
    one_price = _has_one_special_price(variants, sizes)
    found = []
    for variant, size in zip(variants, sizes, strict=True):
        use = "rec" if variant.get("price_rec") is not None or variant.get("special_rec") is not None else "med"
        regular, special = _cents(variant.get(f"price_{use}")), _cents(variant.get(f"special_{use}"))
        if one_price is not None and size.size != one_price and regular is not None:
            special = None
        price = min((one for one in (regular, special) if one is not None), default=None)
        stock = {"in_stock": True, "oos": False}.get(variant.get("stock_status", "unknown"), in_stock)
        found.append(
            MenuOption(
                option=str(variant.get("option", "")),
                size=size.size,
                from_name=size.from_name,
                price=price,
                regular=regular if price is not None and regular is not None and regular > price else None,
                per_gram=_plausible(_per(price, size.grams, 1), usual_per_gram),
                per_dose=_plausible_dose(_per(price, size.milligrams, 10)),
                in_stock=False if in_stock is False else stock,
                medical=use == "med",
            )
        )
    return found


def best_of_sizes(options: Sequence[MenuOption]) -> dict[str | None, MenuOption]:
    """The option of each size that a shopper would take: the cheapest of those that can be bought."""
    best: dict[str | None, MenuOption] = {}
    for option in options:
        if option.size not in best or option.rank < best[option.size].rank:
            best[option.size] = option
    return best


def size_rank(size: str | None) -> int:
    """Sorts sizes as `size_order` does."""
    kind, number, _ = size_order(size)
    return _RANKS[kind] + min(int(number * _RANK_STEPS[kind]), 600_000_000)


def _has_one_special_price(variants: Sequence[Mapping[str, Any]], sizes: Sequence[ReadSize]) -> str | None:
    """The smallest size, if one special price is set for several sizes of different prices: a target price is that of one size, and
    platforms show it for all.
    """
    specials = [one for one in variants if one.get("special_rec") is not None]
    if len(specials) < 2 or len({one["special_rec"] for one in specials}) > 1:
        return None
    priced = [
        (size_rank(size.size), size.size)
        for variant, size in zip(variants, sizes, strict=True)
        if variant.get("special_rec") is not None
    ]
    regular = {one["price_rec"] for one in specials if one.get("price_rec") is not None}
    if len(regular) < 2 or len({size for _, size in priced}) < 2:
        return None
    return min(priced)[1]


def _cents(price: Any) -> int | None:
    """A price in cents; None without a price or for an implausible one."""
    if price is None:
        return None
    cents = round(Decimal(str(price)) * 100)
    return cents if 0 <= cents < 1_000_000_000 else None


def _per(price: int | None, amount: Decimal | None, units: int) -> int | None:
    if price is None or price < LOWEST_PRICE or not amount or amount <= 0:
        return None
    each = int(price * 100 * units / amount)
    return each if 0 < each < 1_000_000_000 else None


def _plausible_dose(per_dose: int | None) -> int | None:
    return per_dose if per_dose is not None and per_dose <= _DEAREST_DOSE else None


def _plausible(per_gram: int | None, usual: int | None) -> int | None:
    if per_gram is None or usual is None or usual / IMPLAUSIBLE <= per_gram <= usual * IMPLAUSIBLE:
        return per_gram
    return None
