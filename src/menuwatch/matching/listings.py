"""Reads rows of the catalog as listings. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from menuwatch.catalog.taxonomy.package import shortest
from menuwatch.catalog.taxonomy.sizes import sizes
from menuwatch.matching import packages
from menuwatch.matching.model import Listing

_MAX_IDS = 20
"""Ids of one listing; a menu that names more packages than that says little by any of them."""


class Ids(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The ids of a row of the catalog that may hold beyond its store (engine.sql: `listings`)."""

    library_product_id: str | None = None
    store_specific: bool | None = None
    sku: str | None = None
    pos_id: str | None = None
    enterprise_product_id: str | None = None
    organization_id: str | None = None
    package_tag: str | None = None
    package_ids: Any = None
    skus: Any = None


class Row(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A changed row of the catalog. Null in the last six: it is new."""

    id: int
    store_id: int
    source_version: int
    name: str
    brand: str | None
    category: str | None
    subcategory: str | None
    strain: str | None
    provider: str
    provider_product_id: str
    ids: msgspec.Raw
    variants: msgspec.Raw
    on_menu: bool
    dispensary_id: int | None
    signature_id: int | None
    key: str | None
    block: str | None
    sizes: list[str] | None
    platform_ids: list[str] | None


class Seller(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A store as its listings name it."""

    id: int
    name: str
    enterprise_id: str | None


_ids = msgspec.json.Decoder(Ids, strict=False)
_variants = msgspec.json.Decoder(list[dict[str, Any]])


def listing(row: Row, store: Seller) -> Listing:
    """The listing of a row. Raises msgspec.ValidationError for values of a wrong type."""
    return Listing(
        listing_id=str(row.id),
        store=str(store.id),
        seller=store.enterprise_id,
        store_name=store.name,
        name=row.name,
        brand=row.brand,
        category=row.category,
        subcategory=row.subcategory,
        strain=row.strain,
        sizes=tuple(sizes(_variants.decode(row.variants))),
        platform_ids=platform_ids(
            row.provider, row.provider_product_id, _ids.decode(row.ids), chain=store.enterprise_id
        ),
    )


def sizes_of(one: Listing, kind: str) -> list[str]:
    """Sizes in which the listing is offered. What the name says wins over the menu's only field; `kind` is the signature's."""
    if len(one.sizes) > 1:
        return list(one.sizes)
    amounts = packages.size_of(replace(one, sizes=()), kind).amounts
    if len(amounts) != 1:
        return list(one.sizes)
    return [f"{shortest(amounts[0])} {'mg' if kind in ('edible', 'topical') else 'g'}"]


def platform_ids(provider: str, product_id: str, ids: Ids, *, chain: str | None) -> tuple[str, ...]:
    """Ids that name the same product in several stores, sorted:

    | id | holds in | of |
    |----|----------|----|
    | `jane:2312356` | all stores | Jane's catalogue, unless the store made the entry itself |
    | `weedmaps:101504` | all stores | the brand's entry in Weedmaps' catalogue |
    | `package:1A40…` | all stores | the package in the state's tracking system (METRC) |
    | `sku:CHAIN/…`, `pos:CHAIN/…`, `enterprise:CHAIN/…` | one chain | its point of sale |

    Dutchie's `library_product_id` is of a product line, and no key.
    """
    found: list[str] = []
    if provider == "jane" and not ids.store_specific:
        found.append(f"jane:{product_id}")
    if provider == "weedmaps" and ids.library_product_id:
        found.append(f"weedmaps:{ids.library_product_id}")
    found += [f"package:{tag.upper()}" for tag in {ids.package_tag, *_texts(ids.package_ids)} if tag]
    if chain := chain or ids.organization_id:
        own = [("sku", ids.sku), ("pos", ids.pos_id), ("enterprise", ids.enterprise_product_id)]
        own += [("sku", sku) for sku in _texts(ids.skus)]
        # Without a digit it is made of the words for the brand and the category ("See-Bud-Bud-"), and many products have it.
        found += [f"{kind}:{chain}/{value}" for kind, value in own if value and any(map(str.isdigit, value))]
    return tuple(sorted(set(found))[:_MAX_IDS])


def _texts(value: Any) -> Sequence[str]:
    """Texts of a list, or of an object with one or several for each option."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if not isinstance(value, list):
        return [value] if isinstance(value, str) else []
    return [text for entry in value for text in ([entry] if isinstance(entry, str) else _texts(entry))]
