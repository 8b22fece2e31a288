"""Finds brands in names and removes them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from menuwatch.catalog.taxonomy.text import words
from menuwatch.matching import lexicon
from menuwatch.matching.model import Listing
from menuwatch.matching.name_parts import NameParts, take_apart, unmarked
from menuwatch.matching.words import singular

LONGEST_BRAND = 4
"""Words of the longest brand that is searched for at the start of a name."""
_SHORTEST_JOINED = 4
"""Letters of a brand at least that may be joined with another word."""
_VOWELS = frozenset("aeiouy")


@dataclass(frozen=True, slots=True)
class KnownBrands:
    """The cores of brands that menus name in their brand field, by first word."""

    by_first: Mapping[str, frozenset[tuple[str, ...]]] = field(default_factory=dict)

    @classmethod
    def of(cls, cores: Iterable[tuple[str, ...]]) -> KnownBrands:
        """From the cores of brands (`brand_core`). Those that are single words of the trade are left out."""
        found: dict[str, set[tuple[str, ...]]] = {}
        for core in cores:
            if core and not all(says_nothing(word) for word in core) and len("".join(core)) > 2:
                found.setdefault(core[0], set()).add(core)
        return cls({first: frozenset(cores) for first, cores in found.items()})

    def named(self, name: NameParts) -> tuple[str, ...]:
        """The known brand in a name; else ()."""
        return self.at_start(name.words) or self.at_end(name) or self.within(name.words)

    def at_start(self, name: tuple[str, ...]) -> tuple[str, ...]:
        """The longest known brand that the words begin with, and that leaves a word; else ()."""
        start = _brand_words(name[:LONGEST_BRAND])
        cores = self.by_first.get(start[0], ()) if start else ()
        return next((start[:n] for n in range(min(len(start), len(name) - 1), 0, -1) if start[:n] in cores), ())

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

    def at_end(self, name: NameParts) -> tuple[str, ...]:
        """The known brand that is the last segment or in brackets, or that follows the last "by"; else ()."""
        every = name.words
        ends = [brand_core(" ".join(name.segments[-1]))] if len(name.segments) > 1 else []
        in_brackets = [brand_core(" ".join(part)) for part in name.asides]
        ends += [core for core in in_brackets if not all(word in _NAMING for word in core)]
        if "by" in every[1:-1]:
            ends.append(brand_core(" ".join(every[len(every) - every[::-1].index("by") :])))
        distinctive = tuple(word for word in every if not says_nothing(word))
        last = [brand_core(" ".join(distinctive[-length:])) for length in (3, 2, 1) if len(distinctive) > length]
        ends += [core for core in last if not all(word in _NAMING for word in core)]
        return next((core for core in ends if core and core in self.by_first.get(core[0], ())), ())


NO_BRANDS = KnownBrands()
_NAMING = frozenset(singular(word) for word in lexicon.OF_NAMES | lexicon.GENERIC | {"clear", "cookie", "mini", "tool"})
"""Words that end the names of many strains and things: there, they are no brand."""


@lru_cache(maxsize=65_536)
def brand_core(brand: str) -> tuple[str, ...]:
    """A brand's words without those that menus add or omit: "The Cresco Labs™" and "Cresco" are both `("cresco",)`, "Acme Botanicals",
    "Acme Botanical" and "Acme" are `("acme",)`."""
    found = list(words(unmarked(brand)))
    if " ".join(found) in lexicon.NO_BRAND:
        return ()
    if len(found) > 1 and found[0] == "the":
        del found[0]
    while len(found) > 1 and any(_is_ending(word) for word in (found[-1], *_brand_words(found[-1:]))):
        del found[-1]
    core = _brand_words(found)
    return () if " ".join(core) in lexicon.NO_BRAND else core


def _is_ending(word: str) -> bool:
    return word in lexicon.BRAND_ENDINGS or says_nothing(word)


def _brand_words(found: Sequence[str]) -> tuple[str, ...]:
    """Words as they are compared in brands: "Grannys" and "Granny's" are "granny", "Doctor" is "dr"."""
    return tuple("dr" if word == "doctor" else word if len(word) < 5 else singular(word) for word in found)


def words_for_brands(listing: Listing) -> list[str] | None:
    """The words by which a brand can be found in the name, one of `words_of_brand`; None if the brand field names the brand."""
    if not is_brand_in_name(brand_core(listing.brand or ""), listing):
        return None
    name = take_apart(listing.name)
    every = [*name.words, *(word for part in name.asides for word in part)]
    return sorted({*every, *_brand_words(every)})


def words_of_brand(first: str) -> list[str]:
    """The first word of a brand's core, alone and joined with a device."""
    return [first, *(first + ending for ending in lexicon.JOINED_TO_BRANDS)]


def says_nothing(word: str) -> bool:
    """Whether a word is one of the trade, which does not distinguish products."""
    return word in lexicon.GENERIC or word in lexicon.FORMS or word in lexicon.STRAINS


def brand_named_in(name: str, known: KnownBrands) -> tuple[str, ...]:
    """The known brand in the name of a listing; else ()."""
    return known.named(take_apart(name))


def is_brand_in_name(named: tuple[str, ...], listing: Listing) -> bool:
    """Whether the brand is searched for in the name, because the brand field (`named`: its core) names none, or the store itself."""
    own = words(listing.store_name or listing.store)
    return named == own[: len(named)] or (listing.seller is not None and named == brand_core(listing.seller))


def _strip_brand(name: tuple[str, ...], brand: tuple[str, ...], spelled: str | None) -> tuple[str, ...]:
    """The words without the brand where they begin with it, in full or as its core; elsewhere in the name, where it stands in full."""
    if not brand:
        return name
    form = _brand_words(name)
    for own in sorted({_brand_words(words(spelled or "")), brand} - {()}, key=len, reverse=True):
        for at in range(len(name) - len(own) + 1):
            if form[at : at + len(own)] == own:
                return name[:at] + name[at + len(own) :]
    joined = "".join(brand)
    for count in range(1, min(4, len(name)) + 1):
        if joined in ("".join(name[:count]), "".join(form[:count])):
            return name[count:]
    return name


def split_brand(name: tuple[str, ...], brand: tuple[str, ...], spelled: str | None, manner: str) -> tuple[str, ...]:
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


def strip_short(
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
