"""Parses a listing into its signature: brand, words, form, strain type, ratio and sizes. Pure.

| what a menu says | how it is read |
|---|---|
| brand missing, "N/A" | a known brand that the name begins with, else its first segment if that can be one ("Press Labs - Foro Bar") |
| brand is the store's own name | kept, unless the name begins with another known brand |
| a size in the name and another one in the size field | the name's |
| a name of nothing but form and size | the brand and the form are all that is compared |
| a name of emoji only | with a brand, brand and form are compared; without one, only the same store's equal name is the same product |
| a name of 2,000 characters | its first 40 words |
| a name in two languages | its words as they are; nothing is translated |
"""

from __future__ import annotations

import uuid
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from menuwatch.catalog.taxonomy import categories
from menuwatch.catalog.taxonomy.text import words
from menuwatch.matching import lexicon
from menuwatch.matching.brand_names import (
    LONGEST_BRAND,
    NO_BRANDS,
    KnownBrands,
    brand_core,
    is_brand_in_name,
    split_brand,
    strip_short,
)
from menuwatch.matching.model import Listing, Signature
from menuwatch.matching.name_parts import take_apart

RULES = 2
"""Version of the parser and of the comparison; raise it to have all listings matched again."""

_BLOCK = 4
"""Letters of the brand that a block's listings share."""

KINDS = {
    "flower": "flower", "preroll": "flower", "vaporizer": "vaporizer", "vape": "vaporizer", "concentrate": "concentrate",
    "edible": "edible", "oral": "edible", "tincture": "edible", "topical": "topical", "accessory": "accessory",
    "apparel": "accessory", "cultivation": "cultivation",
}  # fmt: skip
"""Kinds of the taxonomy's categories, and of words of menus for them. A kind is named after the category of most of its listings."""
_FORM_GROUPS = (lexicon.DEVICES, lexicon.EXTRACTS | lexicon.PRESSES, lexicon.CUTS | {"infused"}, lexicon.EATEN)
"""A listing has forms of each group from one source: its name, or else its brand's line, or else its menu."""
_LONGEST_PHRASE = max(len(phrase.split()) for phrase in lexicon.FORMS)


class _Parsed(NamedTuple):
    tokens: tuple[str, ...]
    """Words that are neither form, type, generic nor brand."""
    forms: frozenset[str]
    strain: str | None
    actives: frozenset[str]
    every: tuple[str, ...]
    """All words, for a name that has nothing else."""


def sign(listing: Listing, known: KnownBrands = NO_BRANDS) -> Signature:
    """The listing as it is compared."""
    category = _category(listing)
    named = brand_core(listing.brand) if listing.brand else ()
    parts = take_apart(listing.name)
    bare, ratio = parts.words, parts.ratio
    manner = _manner(category)
    if manner == "gear" and _is_filled(bare):
        category, manner = "vaporizer", "smoke"
    brand = named
    if is_brand_in_name(brand, listing):
        brand = known.named(parts) or brand or _first_segment(parts.segments, manner=manner)
    aside = tuple(word for part in parts.asides if brand_core(" ".join(part)) != brand for word in part)
    main = _parse(
        strip_short(split_brand(bare, brand, listing.brand, manner), bare, brand, listing.brand), manner=manner
    )
    beside = _parse(aside, manner=manner, bracketed=True)
    of_brand = _parse(words(listing.brand or ""), manner="smoke")
    menu = _parse(_menu_words(listing), manner=manner)
    said = main.forms | beside.forms | of_brand.forms
    forms = _forms(main.forms | beside.forms, of_brand.forms, menu.forms, category)
    kind = _kind(category, forms)
    forms -= {"vape"}
    by_menu = kind == "vaporizer" and not said & lexicon.DEVICES and bool(forms & lexicon.DEVICES)
    tokens = main.tokens
    if manner == "smoke":
        # Stands for the strain type beside a name, and is the name where it stands alone.
        tokens = tuple(word for word in tokens if word not in lexicon.EFFECTS) or tokens
    if category == "apparel" or not lexicon.CLOTHES.isdisjoint(bare):
        tokens = tuple(word for word in tokens if word not in lexicon.CLOTHES_SIZES) or tokens
        beside = beside._replace(tokens=tuple(word for word in beside.tokens if word not in lexicon.CLOTHES_SIZES))
    house = None if brand else listing.seller or listing.store
    if not tokens:
        tokens, beside = beside.tokens, beside._replace(tokens=())
    if not tokens:
        tokens = named or tuple(word for word in main.every if word not in lexicon.GENERIC) or main.every
        if not tokens:
            # Nothing can be compared: the store's own equal name only.
            tokens, house = (" ".join(listing.name.casefold().split()),), listing.store
            brand = ()
    strain = main.strain or beside.strain or menu.strain or _strain(listing.strain)
    actives = _actives(main.actives | beside.actives, ratio)
    block = "".join(brand)[:_BLOCK] if brand else f"~{house}"
    return _signature(listing, block, brand, house, tokens, beside.tokens, kind, forms, by_menu, strain, ratio, actives)


def _signature(
    listing: Listing,
    block: str,
    brand: tuple[str, ...],
    house: str | None,
    tokens: tuple[str, ...],
    aside: tuple[str, ...],
    kind: str,
    forms: frozenset[str],
    by_menu: bool,
    strain: str | None,
    ratio: str | None,
    actives: tuple[str, ...],
) -> Signature:
    form = tuple(sorted(forms))
    compared = (
        brand,
        (house or "",),
        sorted(set(tokens)),
        sorted(set(aside)),
        (kind,),
        form,
        ("by menu",) if by_menu else (),
        (strain or "",),
        (ratio or "",),
        actives,
    )
    text = "\n".join((str(RULES), block, *(" ".join(part) for part in compared)))
    return Signature(
        key=uuid.UUID(bytes=blake2b(text.encode(), digest_size=16).digest()),
        block=block,
        brand=brand,
        house=house,
        words=tuple(dict.fromkeys(tokens)),
        aside=tuple(dict.fromkeys(aside)),
        kind=kind,
        form=form,
        device_by_menu=by_menu,
        strain=strain,
        ratio=ratio,
        actives=actives,
        name=listing.name.strip()[:200],
    )


def _first_segment(segments: list[tuple[str, ...]], *, manner: str) -> tuple[str, ...]:
    """The first segment as a brand, if it says more than the form, and what follows says something too."""
    if len(segments) < 2:
        return ()
    first = _parse(segments[0], manner=manner).tokens
    rest = _parse(tuple(word for segment in segments[1:] for word in segment), manner=manner).tokens
    if not first or not rest or len(first) > LONGEST_BRAND or all(word.isdigit() for word in first):
        return ()
    return brand_core(" ".join(first))


@lru_cache(maxsize=131_072)
def _parse(tokens: tuple[str, ...], *, manner: str, bracketed: bool = False) -> _Parsed:
    """Sorts words. `manner` is how it is used: `eat`, `rub` (on the skin, or not known), `smoke` or `gear`."""
    eats = manner in ("eat", "rub")
    forms: set[str] = set()
    kept: list[str] = []
    actives: set[str] = set()
    strain: str | None = None
    at = 0
    while at < len(tokens):
        if manner == "gear":
            if tokens[at] not in lexicon.OF_GEAR:
                kept.append(tokens[at])
            at += 1
            continue
        for length in range(min(_LONGEST_PHRASE, len(tokens) - at), 0, -1):
            phrase = " ".join(tokens[at : at + length])
            if phrase in lexicon.FORMS and (
                eats if phrase in lexicon.ONLY_EATEN else manner == "rub" or phrase not in lexicon.ONLY_RUBBED_IN
            ):
                forms.update(lexicon.FORMS[phrase])
                at += length
                break
            if phrase in lexicon.STRAINS and (len(phrase) > 1 or bracketed):
                strain = strain or lexicon.STRAINS[phrase]
                at += length
                break
        else:
            word = tokens[at]
            if word in lexicon.CANNABINOIDS:
                actives.add(word)
            elif word not in lexicon.GENERIC:
                kept.extend(lexicon.ABBREVIATIONS.get(word, (word,)))
            at += 1
    return _Parsed(tuple(kept), frozenset(forms), strain, frozenset(actives), tokens)


def _manner(category: str | None) -> str:
    if category in ("accessory", "apparel"):
        return "gear"
    if category in ("topical", None, "other"):
        return "rub"
    return "eat" if category in ("edible", "oral", "tincture") else "smoke"


def _is_filled(name: tuple[str, ...]) -> bool:
    """Whether gear is a filled cartridge or pod: "Blue Dream Pod .5g" among batteries."""
    devices = {device for word in name for device in lexicon.FORMS.get(word, ()) if device in lexicon.DEVICES}
    return bool(devices) and not any(word in lexicon.HARDWARE for word in name)


def _actives(named: frozenset[str], ratio: str | None) -> tuple[str, ...]:
    """The cannabinoids of a name that tells of another one than THC; a ratio is one to THC where the name does not say."""
    if named <= {"thc"}:
        return ()
    return tuple(sorted(named | {"thc"} if ratio is not None else named))


def _strain(strain: str | None) -> str | None:
    return next((lexicon.STRAINS[word] for word in words(strain or "") if word in lexicon.STRAINS), None)


def _category(listing: Listing) -> str | None:
    """The canonical category; None if the menu's word is not known."""
    if listing.category is None or listing.category in categories.CATEGORIES:
        return listing.category
    return categories.kind(listing.category, (listing.subcategory or "").replace("_", " ")).category


def _menu_words(listing: Listing) -> tuple[str, ...]:
    """The menu's own words for what the listing is."""
    own = "" if listing.category in categories.CATEGORIES else listing.category or ""
    return words(f"{listing.subcategory or ''} {own}".replace("_", " "))


def _forms(
    of_name: frozenset[str], of_brand: frozenset[str], of_menu: frozenset[str], category: str | None
) -> frozenset[str]:
    """The name's forms; what it does not say of device, extract or cut, the brand's line and the menu's subcategory say."""
    found = set(of_name)
    if "disposable" in found:
        found -= {"cartridge", "pod"}
    if found & lexicon.EXTRACTS - {"wax"}:
        found.discard("wax")
    for more in (of_brand, of_menu):
        for group in _FORM_GROUPS:
            if not found & group:
                found |= more & group
    if category == "preroll":
        found.add("preroll")
    if category in ("flower", "preroll"):
        found -= lexicon.DEVICES | lexicon.EATEN
        if "infused" in found or found & lexicon.EXTRACTS:
            found = (
                {"infused", *(found & (lexicon.CUTS | {"blunt"}))}
                if found & {"infused", "diamonds"}
                else found - lexicon.EXTRACTS
            )
    elif category in ("vaporizer", "vape"):
        found -= lexicon.CUTS | lexicon.EATEN
    elif category == "concentrate" and "vape" not in found:
        found -= lexicon.DEVICES - of_name
    elif category in ("edible", "oral", "tincture", "topical"):
        found -= lexicon.DEVICES | lexicon.CUTS | {"infused"}
    return frozenset(found - {"cured", "solventless"} if found & lexicon.EXTRACTS else found)


def _kind(category: str | None, forms: frozenset[str]) -> str:
    if category in ("accessory", "apparel", "cultivation"):
        return KINDS[category]
    if category == "concentrate" and "preroll" in forms and not forms & lexicon.DEVICES:
        return "flower"
    if category == "concentrate" and forms & lexicon.RUBBED_IN:
        return "topical"
    if forms & (lexicon.DEVICES | {"vape"}) and category in (None, "other", "concentrate", "vaporizer", "vape"):
        return "vaporizer"
    if "preroll" in forms and category in (None, "other", "flower", "preroll"):
        return "flower"
    if category == "concentrate" and forms & lexicon.EATEN:
        return "edible"
    if category in KINDS:
        return KINDS[category]
    if forms & lexicon.EATEN:
        return "edible"
    if forms & lexicon.EXTRACTS:
        return "concentrate"
    return "flower" if forms & lexicon.CUTS else "other"
