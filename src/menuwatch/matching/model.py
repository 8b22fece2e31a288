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
        str, doc("`flower`, `vape`, `concentrate`, `edible`, `topical`, `gear`, `cultivation` or `other`.")
    ] = "other"
    form: Annotated[
        tuple[str, ...], doc("What it is made into: `disposable`, `live_resin`, `small_buds`; in alphabetical order.")
    ] = ()
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
