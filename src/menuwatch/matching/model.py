"""What the matcher reads and says. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, NamedTuple
from uuid import UUID

import msgspec

from menuwatch.core.shapes import doc


class Listing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One item of one store as its menu writes it; what is missing is missing."""

    listing_id: str
    store: Annotated[str, doc("The store: its id, or its name in a file.")]
    seller: Annotated[str | None, doc("The chain that the store belongs to; null if it is alone.")] = None
    store_name: Annotated[str | None, doc("To recognize a brand that is only the store's own name.")] = None
    name: str
    brand: str | None = None
    category: Annotated[str | None, doc("Canonical category, or the menu's own word.")] = None
    subcategory: Annotated[str | None, doc("The menu's own word.")] = None
    strain: str | None = None
    sizes: Annotated[tuple[str, ...], doc("Sizes on offer, as menus write them.")] = ()
    platform_ids: Annotated[
        tuple[str, ...], doc("Ids that name the same product in any store, as `jane:2312356` or `weedmaps:101504`.")
    ] = ()
    image: Annotated[str | None, doc("Hash or address of its picture.")] = None


class ReasonCode(StrEnum):
    """Why two listings are, or are not, one product."""

    SAME_PLATFORM_ID = "same_platform_id"
    SAME_WORDS = "same_words"
    ABBREVIATION = "abbreviation"
    SPELLING = "spelling"
    SHARED_WORDS = "shared_words"
    SAME_BRAND = "same_brand"
    BRAND_IN_NAME = "brand_in_name"
    BRAND_PREFIX = "brand_prefix"
    SAME_FORM = "same_form"
    SAME_STRAIN_TYPE = "same_strain_type"
    SAME_PICTURE = "same_picture"
    PERSON = "person"
    OTHER_WORDS = "other_words"
    OTHER_BRAND = "other_brand"
    OTHER_FORM = "other_form"
    OTHER_NUMBER = "other_number"
    OTHER_RATIO = "other_ratio"
    OTHER_STRAIN_TYPE = "other_strain_type"
    OTHER_PLATFORM_ID = "other_platform_id"
    ONE_STORE_LISTS_BOTH = "one_store_lists_both"
    NO_BRAND = "no_brand"
    TOO_LITTLE = "too_little"

    @property
    def label(self) -> str:
        """A short phrase, to which a detail may be added after a colon."""
        return _LABELS[self]

    @property
    def explanation(self) -> str:
        """What was compared, in one sentence."""
        return _EXPLANATIONS[self]

    @property
    def supports(self) -> bool:
        """Whether it speaks for one product where a reason has no weight."""
        return self in _SUPPORTING


_LABELS = {
    ReasonCode.SAME_PLATFORM_ID: "same id on the platform",
    ReasonCode.SAME_WORDS: "same words",
    ReasonCode.ABBREVIATION: "abbreviated word",
    ReasonCode.SPELLING: "spelled slightly differently",
    ReasonCode.SHARED_WORDS: "shared words",
    ReasonCode.SAME_BRAND: "same brand",
    ReasonCode.BRAND_IN_NAME: "brand in the name",
    ReasonCode.BRAND_PREFIX: "longer form of the brand",
    ReasonCode.SAME_FORM: "same form",
    ReasonCode.SAME_STRAIN_TYPE: "same strain type",
    ReasonCode.SAME_PICTURE: "same picture",
    ReasonCode.PERSON: "decided by a person",
    ReasonCode.OTHER_WORDS: "different words",
    ReasonCode.OTHER_BRAND: "different brand",
    ReasonCode.OTHER_FORM: "different form",
    ReasonCode.OTHER_NUMBER: "different number",
    ReasonCode.OTHER_RATIO: "different ratio",
    ReasonCode.OTHER_STRAIN_TYPE: "different strain type",
    ReasonCode.OTHER_PLATFORM_ID: "different id on the platform",
    ReasonCode.ONE_STORE_LISTS_BOTH: "one store lists both",
    ReasonCode.NO_BRAND: "no brand",
    ReasonCode.TOO_LITTLE: "too little to compare",
}

_EXPLANATIONS = {
    ReasonCode.SAME_PLATFORM_ID: "Both carry an id that the platform uses for one product in every store.",
    ReasonCode.SAME_WORDS: "Both names have the same words after brand, form and size are taken out.",
    ReasonCode.ABBREVIATION: "A word of one name is the short form of a word of the other.",
    ReasonCode.SPELLING: "A word differs by a letter or two.",
    ReasonCode.SHARED_WORDS: "Some words are in both names; rare ones count more.",
    ReasonCode.SAME_BRAND: "Both menus name the same brand, or a known spelling of it.",
    ReasonCode.BRAND_IN_NAME: "One menu names the brand only inside the product's name.",
    ReasonCode.BRAND_PREFIX: "One brand is the beginning of the other, as with a product line.",
    ReasonCode.SAME_FORM: "Both have the same form, for example disposable vape.",
    ReasonCode.SAME_STRAIN_TYPE: "Both are indica, sativa or hybrid.",
    ReasonCode.SAME_PICTURE: "Both menus show the same image.",
    ReasonCode.PERSON: "A person has decided whether they are the same product.",
    ReasonCode.OTHER_WORDS: "A word of one name is missing from the other; rare ones count more.",
    ReasonCode.OTHER_BRAND: "The menus name different brands.",
    ReasonCode.OTHER_FORM: "Their forms differ, for example cartridge and disposable.",
    ReasonCode.OTHER_NUMBER: "A number in the names, other than a size, differs.",
    ReasonCode.OTHER_RATIO: "The ratios of cannabinoids differ.",
    ReasonCode.OTHER_STRAIN_TYPE: "One is indica and the other sativa, for example.",
    ReasonCode.OTHER_PLATFORM_ID: "The platform uses different ids for them.",
    ReasonCode.ONE_STORE_LISTS_BOTH: "A store lists both in the same size, as it does with different products.",
    ReasonCode.NO_BRAND: "A menu names no brand, so it is compared with its own store or chain only.",
    ReasonCode.TOO_LITTLE: "A name has too few words to distinguish products.",
}

_SUPPORTING = frozenset({
    ReasonCode.SAME_PLATFORM_ID, ReasonCode.SAME_WORDS, ReasonCode.ABBREVIATION, ReasonCode.SPELLING, ReasonCode.SHARED_WORDS,
    ReasonCode.SAME_BRAND, ReasonCode.BRAND_IN_NAME, ReasonCode.BRAND_PREFIX, ReasonCode.SAME_FORM, ReasonCode.SAME_STRAIN_TYPE,
    ReasonCode.SAME_PICTURE,
})  # fmt: skip


class Reason(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One piece of evidence. `weight` is in bits: above 0 it speaks for one product; null if it decides alone."""

    code: ReasonCode
    detail: str = ""
    weight: float | None = None


class Signature(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A listing as it is compared. Listings with equal signatures are the same product."""

    key: UUID
    block: str
    brand: Annotated[tuple[str, ...], doc("Words of the brand, without endings such as Farms or Co.")] = ()
    house: Annotated[str | None, doc("The seller, where no brand is known: no other seller's listing is the same.")] = (
        None
    )
    words: Annotated[
        tuple[str, ...], doc("Strain or flavor and line, in order, without brand, form, size and strain type.")
    ] = ()
    aside: Annotated[tuple[str, ...], doc("Words in brackets: another name, or a remark.")] = ()
    kind: Annotated[
        str, doc("`flower`, `vaporizer`, `concentrate`, `edible`, `topical`, `accessory`, `cultivation` or `other`.")
    ] = "other"
    form: Annotated[
        tuple[str, ...], doc("What it is made into: `disposable`, `live_resin`, `small_buds`; in alphabetical order.")
    ] = ()
    device_by_menu: Annotated[
        bool, doc("The name does not say whether it is a cartridge, pod or disposable; the menu's subcategory does.")
    ] = False
    strain: Annotated[str | None, doc("`indica`, `sativa` or `hybrid`.")] = None
    ratio: Annotated[str | None, doc("Ratio of cannabinoids, in lowest terms.")] = None
    actives: Annotated[tuple[str, ...], doc("Cannabinoids other than THC that the name tells.")] = ()
    name: Annotated[str, doc("The name as a person would write it, for display.")] = ""


class Member(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A signature with what is known of its listings, as one block of them is grouped."""

    signature: Signature
    listings: int
    places: Annotated[frozenset[tuple[str, str]], doc("Stores and sizes that it is listed in; a size may be empty.")]
    platform_ids: frozenset[str] = frozenset()


class Link(NamedTuple):
    """How a member came into its group: by the member `to` (an index), or None for the group's first."""

    to: int | None
    confidence: float
    reasons: tuple[Reason, ...]


class Doubt(NamedTuple):
    """A pair of members (indexes) that a person should judge."""

    a: int
    b: int
    confidence: float
    together: bool
    reasons: tuple[Reason, ...]


class Grouping(NamedTuple):
    """The groups of a block: for each member its group's number (from 0, in order of the first member) and its link."""

    groups: tuple[int, ...]
    links: tuple[Link, ...]
    doubts: tuple[Doubt, ...]
    components: tuple[int, ...]
    """For each member, the first member that a chain of pairs which are one product, or may be, leads to. What is in one store
    decides nothing outside the component of its member."""
