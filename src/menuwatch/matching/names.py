"""Parses a listing into its signature: brand, words, form, strain type, ratio and sizes. Pure.

| what a menu says | what becomes of it |
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

import math
import re
import unicodedata
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from menuwatch.catalog.taxonomy import categories
from menuwatch.catalog.taxonomy.text import words
from menuwatch.matching import lexicon
from menuwatch.matching.model import Listing, Signature
from menuwatch.matching.words import singular

RULES = 1
"""Version of the parser and of the comparison; raise it to have all listings matched again."""

_LONGEST = 400
"""Characters of a name that are read: enough for 40 words."""
_STARRED = re.compile(r"\*[^*]{0,40}\*|\(\d+\)|[™®©]")
_REMARK = re.compile(r"[(\[]\s*(?:rec|med|recreational|medical|adult use)\s*[)\]]", re.IGNORECASE)
_PERCENT = re.compile(r"\d+(?:\.\d+)?\s*%|\$\s*\d+(?:\.\d\d)?")
_RATIO = re.compile(
    r"(?<![\w.:])(\d{1,4}(?:\.\d+)?(?:\s*:\s*\d{1,4}(?:\.\d+)?){1,4})(?=\s*mg|(?![\w:]))", re.IGNORECASE
)
_ACTIVE = "|".join(sorted(lexicon.CANNABINOIDS - {"d8", "d9", "delta"}))
_AMOUNTS = re.compile(
    rf"(?:\b({_ACTIVE})\s*[:-]?\s*)?(?<![\w.])(\d{{1,4}}(?:\.\d+)?)\s*mg\b(?:\s*({_ACTIVE})\b)?", re.IGNORECASE
)
"""Milligrams with the cannabinoid before or after them."""
_SIZE = re.compile(
    r"(?<![\w.])(?:\d{1,3}\s*x\s*)?(?:\d+/\d+|\d*\.?\d+)\s*-?\s*"
    r"(?:mg|mgs|milligrams?|g|gs|gr|gm|gms|grams?|oz|ounces?|ml|fl\.?\s*oz|kg|lbs?)\b(?!')\.?",
    re.IGNORECASE,
)
_COUNT = re.compile(
    r"(?<![\w.])(?:(?:pack|box)\s+of\s+\d{1,3}|\d{1,3}\s*-?\s*(?:ct|count|pk|pks|packs?|pcs?|pieces?|x)\b\.?)|\bx\s*\d{1,3}\b",
    re.IGNORECASE,
)
_FRACTION = re.compile(r"(?<![\w/])1/[248](?![\w/])|(?<![\w.])0?\.\d+(?![\w.])")
_CODE = re.compile(r"(?<!\w)[A-Z]{2,4} B\d{1,2}(?!\w)")
"""A maker's code before the name: "APL B10 - Sour Apple"."""
_BRACKETED = re.compile(r"[(\[{]([^()\[\]{}]*)[)\]}]")
_SEGMENTS = re.compile(r"\s*[|:•·~]\s*|\s+[-–—]+\s*|\s*[–—]+\s+|\s+/\s+")
_KNOWN_LENGTH = 4
"""Words of the longest brand that is looked for at the start of a name."""
_SHORTEST_JOINED = 4
"""Letters of a brand at least that may be joined with another word."""
_VOWELS = frozenset("aeiouy")
_BLOCK = 4
"""Letters of the brand that a block's listings share."""

KINDS = {
    "flower": "flower", "preroll": "flower", "vaporizer": "vape", "vape": "vape", "concentrate": "concentrate", "edible": "edible",
    "oral": "edible", "tincture": "edible", "topical": "topical", "accessory": "gear", "apparel": "gear", "cultivation": "cultivation",
}  # fmt: skip
"""Kinds of the taxonomy's categories, and of words of menus for them."""
_LONGEST_PHRASE = max(len(phrase.split()) for phrase in lexicon.FORMS)


@dataclass(frozen=True, slots=True)
class KnownBrands:
    """Brands that menus name in their brand field, as cores, by their first word."""

    by_first: Mapping[str, frozenset[tuple[str, ...]]] = field(default_factory=dict)

    @classmethod
    def of(cls, cores: Iterable[tuple[str, ...]]) -> KnownBrands:
        """From the cores of brands (`brand_core`). Those that are single words of the trade are left out."""
        found: dict[str, set[tuple[str, ...]]] = {}
        for core in cores:
            if core and not all(says_nothing(word) for word in core) and len("".join(core)) > 2:
                found.setdefault(core[0], set()).add(core)
        return cls({first: frozenset(cores) for first, cores in found.items()})

    def named(
        self, segments: Sequence[tuple[str, ...]], name: tuple[str, ...], bracketed: Sequence[tuple[str, ...]]
    ) -> tuple[str, ...]:
        """The known brand that a name of these segments and words tells; else ()."""
        return self.at_start(name) or self.at_end(segments, name, bracketed) or self.within(name)

    def at_start(self, name: tuple[str, ...]) -> tuple[str, ...]:
        """The longest known brand that the words begin with, and that leaves a word; else ()."""
        if not name or name[0] not in self.by_first:
            return ()
        cores = self.by_first[name[0]]
        for length in range(min(_KNOWN_LENGTH, len(name) - 1), 0, -1):
            if name[:length] in cores:
                return name[:length]
        return ()

    def within(self, name: tuple[str, ...]) -> tuple[str, ...]:
        """The known brand that a word joins with its device: "Blue Dream Acmepod"; else ()."""
        for word in name:
            for ending in lexicon.JOINED_TO_BRANDS:
                core = (word.removesuffix(ending),)
                if (
                    word.endswith(ending)
                    and len(core[0]) >= _SHORTEST_JOINED
                    and core in self.by_first.get(core[0], ())
                ):
                    return core
        return ()

    def at_end(
        self, segments: Sequence[tuple[str, ...]], name: tuple[str, ...], bracketed: Sequence[tuple[str, ...]] = ()
    ) -> tuple[str, ...]:
        """The known brand that is the last segment or in brackets, or that follows the last "by"; else ()."""
        ends = [brand_core(" ".join(segments[-1]))] if len(segments) > 1 else []
        in_brackets = [brand_core(" ".join(part)) for part in bracketed]
        ends += [core for core in in_brackets if not all(word in _NAMING for word in core)]
        if "by" in name[1:-1]:
            ends.append(brand_core(" ".join(name[len(name) - name[::-1].index("by") :])))
        telling = tuple(word for word in name if not says_nothing(word))
        last = [brand_core(" ".join(telling[-length:])) for length in (3, 2, 1) if len(telling) > length]
        ends += [core for core in last if not all(word in _NAMING for word in core)]
        return next((core for core in ends if core and core in self.by_first.get(core[0], ())), ())


NO_BRANDS = KnownBrands()
_NAMING = frozenset(singular(word) for word in lexicon.OF_NAMES | lexicon.GENERIC | {"clear", "cookie", "mini", "tool"})
"""Words that end the names of many strains and things: there, they are no brand."""


class _Parsed(NamedTuple):
    tokens: tuple[str, ...]
    """Words that are neither form, type, generic nor brand."""
    forms: frozenset[str]
    strain: str | None
    actives: frozenset[str]
    every: tuple[str, ...]
    """All words, for a name that has nothing else."""


@lru_cache(maxsize=65_536)
def brand_core(brand: str) -> tuple[str, ...]:
    """Words of a brand without what menus add or leave out: "The Cresco Labs™" and "Cresco" are both `("cresco",)`."""
    found = list(words(_STARRED.sub(" ", brand)))
    if " ".join(found) in lexicon.NO_BRAND:
        return ()
    found = ["dr" if word == "doctor" else word for word in found]
    if len(found) > 1 and found[0] == "the":
        del found[0]
    while len(found) > 1 and (found[-1] in lexicon.BRAND_ENDINGS or says_nothing(found[-1])):
        del found[-1]
    return tuple(word if len(word) < 5 else singular(word) for word in found)


def says_nothing(word: str) -> bool:
    """Whether a word is one of the trade, which tells no product from another."""
    return word in lexicon.GENERIC or word in lexicon.FORMS or word in lexicon.STRAINS


def brand_named_in(name: str, known: KnownBrands) -> tuple[str, ...]:
    """The known brand that a listing without a brand belongs to by its name; else ()."""
    segments, asides, bare, _ = _take_apart(name)
    return known.named(segments, bare, asides)


def _take_apart(
    name: str,
) -> tuple[list[tuple[str, ...]], Sequence[tuple[str, ...]], tuple[str, ...], str | None]:
    """The segments of a name without sizes, what is in brackets, the words of all segments, and the ratio."""
    text, ratio = _take_ratio(plain(name))
    segments = _segments(without_sizes(text))
    return segments, _asides(text), tuple(word for segment in segments for word in segment), ratio


def sign(listing: Listing, known: KnownBrands = NO_BRANDS) -> Signature:
    """The listing as it is compared."""
    category = _category(listing)
    named = brand_core(listing.brand) if listing.brand else ()
    segments, asides, bare, ratio = _take_apart(listing.name)
    manner = _manner(category)
    if manner == "gear" and _is_filled(bare):
        category, manner = "vaporizer", "smoke"
    brand = named
    if not brand or _is_own_name(brand, listing):
        brand = known.named(segments, bare, asides) or brand or _first_segment(segments, manner=manner)
    aside = tuple(word for part in asides if brand_core(" ".join(part)) != brand for word in part)
    main = _parse(
        _strip_short(_split_brand(bare, brand, listing.brand, manner), bare, brand, listing.brand), manner=manner
    )
    beside = _parse(aside, manner=manner, bracketed=True)
    of_brand = _parse(words(listing.brand or ""), manner="smoke")
    menu = _parse(_menu_words(listing), manner=manner)
    said = main.forms | beside.forms | of_brand.forms
    forms = _forms(main.forms | beside.forms, of_brand.forms, menu.forms, category)
    kind = _kind(category, forms)
    forms -= {"vape"}
    by_menu = kind == "vape" and not said & lexicon.DEVICES and bool(forms & lexicon.DEVICES)
    tokens = main.tokens
    if manner == "smoke":
        # Stands for the strain type beside a name, and is the name where it stands alone.
        tokens = tuple(word for word in tokens if word not in lexicon.EFFECTS) or tokens
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


def plain(name: str) -> str:
    """The name without marks, percentages, prices, and remarks such as "(REC)"."""
    text = unicodedata.normalize("NFKC", name[:_LONGEST]).replace("⁄", "/").replace("’", "'")
    return _PERCENT.sub(" ", _REMARK.sub(" ", _STARRED.sub(" ", text)))


def _take_ratio(text: str) -> tuple[str, str | None]:
    """The text without its first ratio, and the ratio in lowest terms, by cannabinoid where the name gives them in order:
    "100:50mg" is "2:1", "1:10 THC:CBN" and "10:1 CBN/THC" are "cbn10:thc1".
    """
    match = _RATIO.search(text)
    if match is None:
        return text, _ratio_of_amounts(text)
    parts = [float(part) for part in match[1].split(":")]
    whole = [round(part * 100) for part in parts]
    divisor = math.gcd(*whole)
    if not divisor:
        return text, None
    rest = text[: match.start()] + " " + _RATIO.sub(" ", text[match.end() :])
    amounts = [str(part // divisor) for part in whole]
    named_actives = list(dict.fromkeys(word for word in words(rest) if word in lexicon.CANNABINOIDS))
    if len(named_actives) == len(amounts):
        return rest, ":".join(sorted(name + amount for name, amount in zip(named_actives, amounts, strict=True)))
    return rest, ":".join(amounts)


def _ratio_of_amounts(text: str) -> str | None:
    """The ratio of milligrams of several cannabinoids: "100mg THC / 100mg CBD" is "cbd1:thc1"."""
    amounts: dict[str, int] = {}
    for before, amount, after in _AMOUNTS.findall(text):
        amounts.setdefault((before or after).lower(), round(float(amount) * 100))
    divisor = math.gcd(*amounts.values())
    if len(amounts) < 2 or not divisor:
        return None
    return ":".join(sorted(f"{name}{amount // divisor}" for name, amount in amounts.items()))


def without_sizes(text: str) -> str:
    """The text without sizes, counts and codes of makers."""
    return _FRACTION.sub(" ", _COUNT.sub(" ", _SIZE.sub(" ", _CODE.sub(" ", text))))


def _segments(text: str) -> list[tuple[str, ...]]:
    found = (words(part) for part in _SEGMENTS.split(_BRACKETED.sub(" ", text)))
    return [part for part in found if part]


def _asides(text: str) -> list[tuple[str, ...]]:
    return [words(part) for part in _BRACKETED.findall(without_sizes(text))]


def _first_segment(segments: list[tuple[str, ...]], *, manner: str) -> tuple[str, ...]:
    """The first segment as a brand, if it says more than the form, and what follows says something too."""
    if len(segments) < 2:
        return ()
    first = _parse(segments[0], manner=manner).tokens
    rest = _parse(tuple(word for segment in segments[1:] for word in segment), manner=manner).tokens
    if not first or not rest or len(first) > _KNOWN_LENGTH or all(word.isdigit() for word in first):
        return ()
    return brand_core(" ".join(first))


def _is_own_name(brand: tuple[str, ...], listing: Listing) -> bool:
    own = words(listing.store_name or listing.store)
    return brand == own[: len(brand)] or (listing.seller is not None and brand == brand_core(listing.seller))


def _strip_brand(name: tuple[str, ...], brand: tuple[str, ...], spelled: str | None) -> tuple[str, ...]:
    """The words without the brand where they begin with it, in full or as its core; elsewhere in the name, where it stands in full."""
    if not brand:
        return name
    for own in sorted({words(spelled or ""), brand}, key=len, reverse=True):
        if not own:
            continue
        if name[: len(own)] == own:
            return name[len(own) :]
        for at in range(1, len(name) - len(own) + 1):
            if name[at : at + len(own)] == own:
                return name[:at] + name[at + len(own) :]
    joined = "".join(brand)
    for count in range(1, min(4, len(name)) + 1):
        if "".join(name[:count]) == joined:
            return name[count:]
    return name


def _split_brand(name: tuple[str, ...], brand: tuple[str, ...], spelled: str | None, manner: str) -> tuple[str, ...]:
    """The words without the brand, also where one joins it with a device ("Acmepod")."""
    name = _strip_brand(name, brand, spelled)
    joined = "".join(brand)
    if len(joined) < _SHORTEST_JOINED or not any(word.startswith(joined) for word in name):
        return name
    found: list[str] = []
    joins: list[str] = []
    for word in name:
        rest = word.removeprefix(joined) if word.startswith(joined) else ""
        (joins if rest in lexicon.JOINED_TO_BRANDS else found).append(
            rest if rest in lexicon.JOINED_TO_BRANDS else word
        )
    if manner == "gear" and all(word in lexicon.HARDWARE or word in lexicon.COLORS for word in found):
        return (*joins, *found)  # the model, where nothing else names it
    return (*(word for word in joins if word in lexicon.FORMS), *found)


def _strip_short(
    name: tuple[str, ...], full: tuple[str, ...], brand: tuple[str, ...], spelled: str | None
) -> tuple[str, ...]:
    """The words without what stands for the brand at their start: its initials ("MVE" of "Mesa Valley Extracts"), or after the brand
    some of its letters ("Sunset - SN Blue Dream")."""
    if not brand or len(name) < 2:
        return name
    word = name[0]
    if not 2 <= len(word) <= 4 or not word.isalpha() or word in lexicon.ABBREVIATIONS or word in lexicon.OF_NAMES:
        return name
    if says_nothing(word) or word in lexicon.CANNABINOIDS:
        return name
    if word in {"".join(part[0] for part in of) for of in (brand, words(spelled or "")) if len(of) > 1}:
        return name[1:]
    letters = iter("".join(brand))
    after_brand = len(full) > len(name) and full[-len(name) :] == name
    if after_brand and not set(word[1:]) & _VOWELS and word[0] == brand[0][0] and all(c in letters for c in word):
        return name[1:]
    return name


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
        for group in (lexicon.DEVICES, lexicon.EXTRACTS | lexicon.PRESSES, lexicon.CUTS | {"infused"}, lexicon.EATEN):
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
        return "vape"
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
