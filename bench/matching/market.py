"""A million listings with known truth: products whose names are made of recorded words, written as recorded sellers write them.

Equal seeds give equal listings. A listing's product is known to the generator alone.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.recorded.matching_truth import new_mexico_menus, pennsylvania

_WORD = re.compile(r"[A-Za-z]{3,}")
_NO_NAME = re.compile(
    r"^(?:indica|sativa|hybrid|flower|cart|vape|live|resin|rosin|pre|roll|preroll|disposable|gumm|chocolate|wax|budder|badder|sugar|sauce|"
    r"small|buds?$|ground|shake|infused|the$|and$|for$|with$|pack|gram|mg|thc|cbd|cbn|cbg|rec$|med|only|premium|reserve|all$|one$|device|"
    r"percent|over$|under$|enhanced|cured|concentrate|edible|joint|blunt|tincture|kush$|sample|new$|sale|bulk|greenleaf)",
    re.IGNORECASE,
)
_KINDS: tuple[tuple[str, str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("flower", "Flower", ("", "Smalls"), ("1g", "3.5g", "7g", "14g", "28g")),
    ("preroll", "Pre-Rolls", ("Pre-Roll", "Infused Pre-Roll"), ("0.5g", "1g")),
    ("vaporizer", "Vaporizers", ("Cartridge", "Disposable", "Live Resin Cartridge"), ("0.5g", "1g")),
    ("concentrate", "Concentrates", ("Badder", "Sugar", "Live Rosin", "Shatter"), ("1g",)),
    ("edible", "Edibles", ("Gummies", "Chocolate Bar"), ("100mg",)),
)
_STRAINS = ("Indica", "Sativa", "Hybrid")
_STYLES = ("plain", "piped", "front", "dashed")


@dataclass(frozen=True, slots=True)
class Product:
    """One true product."""

    number: int
    brand: str
    words: tuple[str, ...]
    kind: int
    form: str
    strain: str


def recorded_words() -> tuple[list[str], list[str]]:
    """Words of recorded names, and words of recorded brands, each once, in one order."""
    listings = [*pennsylvania().listings, *new_mexico_menus()]
    names = {w.title() for one in listings for w in _WORD.findall(one.name) if not _NO_NAME.match(w)}
    brands = {w.title() for one in listings for w in _WORD.findall(one.brand or "") if not _NO_NAME.match(w)}
    return sorted(names - brands), sorted(brands)


def products(count: int, seed: int) -> list[Product]:
    """True products: no two of a brand and kind have equal words, each brand has about 75 of them."""
    rng = random.Random(seed)
    words, brand_words = recorded_words()
    brands = sorted({" ".join(rng.sample(brand_words, rng.choice((1, 2, 2)))) for _ in range(count // 75)})
    taken: set[tuple[str, frozenset[str], int, str]] = set()
    found: list[Product] = []
    while len(found) < count:
        kind = rng.choices(range(len(_KINDS)), (40, 15, 20, 12, 13))[0]
        brand = brands[int(len(brands) * rng.random() ** 1.5)]
        name = tuple(rng.sample(words, rng.choices((1, 2, 3), (20, 60, 20))[0]))
        form = rng.choice(_KINDS[kind][2])
        key = (brand, frozenset(name), kind, form)
        if key not in taken:
            taken.add(key)
            found.append(Product(len(found), brand, name, kind, form, rng.choice(_STRAINS)))
    return found


def listings(count: int, stores: int, true_products: int, seed: int = 1) -> Iterator[tuple[dict[str, Any], int]]:
    """(listing, number of its true product); each store has equally many, a few products stand in very many stores."""
    goods = products(true_products, seed)
    for store in range(stores):
        yield from store_listings(goods, store, count // stores, seed)


def store_listings(goods: Sequence[Product], store: int, count: int, seed: int) -> Iterator[tuple[dict[str, Any], int]]:
    """The listings of one store."""
    rng = random.Random(seed * 1_000_003 + store)
    style = _STYLES[store % len(_STYLES)]
    region = rng.random()
    chosen: set[tuple[int, str]] = set()
    while len(chosen) < count:
        near = int(len(goods) * ((region + 0.3 * rng.random() ** 2) % 1.0))
        chosen.add((near, rng.choice(_KINDS[goods[near].kind][3])))
    for at, (number, size) in enumerate(sorted(chosen)):
        yield _listing(goods[number], size, store, at, style, rng), number


def _listing(product: Product, size: str, store: int, at: int, style: str, rng: random.Random) -> dict[str, Any]:
    category, menu_word, _, _ = _KINDS[product.kind]
    name = _spelled(product.words, rng)
    strain = product.strain if rng.random() < 0.5 else ""
    form = product.form
    brand: str | None = product.brand
    if style == "plain":
        text = " ".join(part for part in (name, form, strain) if part)
    elif style == "piped":
        text = " | ".join(part for part in (name, form, strain, size) if part)
    elif style == "front":
        text = " ".join(part for part in (product.brand, strain, form or "Flower", size) if part) + f" - {name}"
    else:
        text = " - ".join(part for part in (product.brand, name, form, f"[{size}]") if part)
        brand = None if rng.random() < 0.3 else brand
    return {
        "listing_id": f"{store}-{at}",
        "store": f"store {store}",
        "seller": f"chain {store // 8}" if store % 3 == 0 else None,
        "name": text,
        "brand": brand.upper() if brand and store % 5 == 0 else brand,
        "category": category if store % 2 else menu_word,
        "subcategory": form or None,
        "sizes": [size],
    }


def _spelled(words: tuple[str, ...], rng: random.Random) -> str:
    chance = rng.random()
    if chance < 0.03 and all(len(word) >= 5 for word in words):
        return " ".join(word[0] + re.sub("[aeiou]", "", word[1:]) for word in words).upper()
    if chance < 0.06 and len(words) == 2:
        return "".join(words)
    if chance < 0.09:
        return " ".join(words).upper()
    return " ".join(words)
