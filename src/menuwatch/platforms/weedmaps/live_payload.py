"""An item of a live menu (`data.menu_items[]` of discovery v1): the fields that are read, and what becomes of each (`LIVE_FIELDS`).

Recorded once, in 2021: 24 items of flower of a Californian delivery, all with prices by parts of an ounce and none on sale. That
`prices` has other units beside `ounce`, and one offer instead of a list, is what public callers read.
"""

from __future__ import annotations

from decimal import Decimal

import msgspec

from menuwatch.platforms.fields import declare
from menuwatch.platforms.weedmaps.ids import Identifier, Ids


class Offer(msgspec.Struct, gc=False):
    """One option: its price now, and the one before a sale."""

    price: Decimal | None = None
    original_price: Decimal | None = None
    on_sale: bool | None = None
    label: str | None = None
    units: str | None = None
    quantity: str | None = None
    unit: str | None = None
    weight: OfferWeight | None = None


class OfferWeight(msgspec.Struct, gc=False):
    value: Decimal | None = None
    unit: str | None = None


class Named(msgspec.Struct, gc=False):
    name: str | None = None


class EdgeCategory(msgspec.Struct, gc=False):
    name: str | None = None
    ancestors: list[Named | None] | None = None


class Tag(msgspec.Struct, gc=False):
    group_name_and_name: str | None = None


class Pictures(msgspec.Struct, gc=False):
    original_url: str | None = None
    large_url: str | None = None


class Endorsement(msgspec.Struct, gc=False):
    """The record of the brand's product."""

    brand_id: Identifier | None = None
    brand_name: str | None = None
    product_id: Identifier | None = None


class Content(msgspec.Struct, gc=False):
    code: str | None = None
    value: Decimal | None = None


class Aggregates(msgspec.Struct, gc=False):
    thc: Decimal | None = None
    cbd: Decimal | None = None


class Metrics(msgspec.Struct, gc=False):
    cannabinoids: list[Content | None] | None = None
    terpenes: list[Content | None] | None = None
    aggregates: Aggregates | None = None


Offers = list[Offer | None] | Offer | Decimal | None


class LiveItem(Ids, gc=False):
    """One element of `data.menu_items`."""

    name: str | None = None
    slug: str | None = None
    license_type: str | None = None
    category: Named | None = None
    edge_category: EdgeCategory | None = None
    genetics_tag: Named | None = None
    tags: list[Tag | None] | None = None
    avatar_image: Pictures | None = None
    brand_endorsement: Endorsement | None = None
    metrics: Metrics | None = None
    is_online_orderable: bool | None = None
    price: Offer | None = None
    prices: dict[str, Offers] | None = None
    created_at: str | None = None
    menu_id: Identifier | None = None
    rating: Decimal | None = None
    reviews_count: int | None = None
    deal_ids: list[Identifier | None] | None = None
    lab_name: str | None = None
    lab_website: str | None = None

    def is_live(self) -> bool:
        """Whether it has a field that only items of live menus have."""
        return any(
            value is not None for value in (self.name, self.prices, self.price, self.edge_category, self.menu_id)
        )


_AGAIN = "repeats another field"

LIVE_FIELDS = declare(
    "",
    used={"meta.total_menu_items": "whether this is all of the menu"},
    kept={},
    ignored={"meta.updated_at meta.has_live_menu": "of the whole menu"},
) + declare(
    "data.menu_items[]",
    used={
        "id": "provider_product_id",
        "name": "name_raw, name",
        "license_type": "whether prices are price_rec or price_med; extra.license_type",
        "edge_category.name edge_category.ancestors[].name": "category, subcategory, category_canon, subcategory_canon",
        "category.name": "strain_type where genetics_tag is missing; category where edge_category is",
        "genetics_tag.name": "strain_type, strain_canon",
        "avatar_image.original_url avatar_image.large_url": "image_url, images",
        "brand_endorsement.brand_name": "brand_name_raw, brand_name",
        "metrics.cannabinoids[].code metrics.cannabinoids[].value": "thc, cbd, cannabinoids",
        "metrics.terpenes[].code metrics.terpenes[].value": "terpenes",
        "metrics.aggregates.thc metrics.aggregates.cbd": "thc, cbd where cannabinoids have none",
        "created_at": "platform_created_at",
        "prices.* prices.*.price prices.*[].price": "variants: price",
        "prices.*.original_price prices.*[].original_price prices.*.on_sale prices.*[].on_sale": "variants: regular price; specials",
        "prices.*.label prices.*[].label prices.*.units prices.*[].units prices.*.quantity prices.*[].quantity "
        "prices.*.unit prices.*[].unit": "variants.option",
        "prices.*.weight.value prices.*[].weight.value prices.*.weight.unit prices.*[].weight.unit": "variants.weight_g",
        "price.price price.original_price price.on_sale price.label price.units price.quantity price.unit price.weight.value "
        "price.weight.unit": "variants, where prices has none",
    },
    kept={
        "slug": "extra.slug",
        "menu_id": "extra.menu_id; not the listing's id",
        "is_online_orderable": "extra.online_orderable",
        "brand_endorsement.brand_id": "extra.brand_id",
        "brand_endorsement.product_id": "extra.library_product_id",
        "tags[].group_name_and_name": "extra.tags",
        "rating reviews_count": "extra.rating, extra.reviews_count",
        "deal_ids[]": "extra.deal_ids",
        "lab_name lab_website": "extra.lab_name, extra.lab_website",
    },
    ignored={
        "catalog_slug": _AGAIN + ": slug, with the brand's",
        "category.id category.slug edge_category.uuid edge_category.slug genetics_tag.uuid": _AGAIN + ": name",
        "edge_category.ancestors[].uuid edge_category.ancestors[].slug": _AGAIN + ": name",
        "tags[].name tags[].tag_group.** tags[].uuid tags[].group_uuid_and_uuid": _AGAIN + ": group_name_and_name",
        "tags[].source.**": "who set the tag",
        "is_badged is_endorsed position": "how the menu shows it",
        "brand_endorsement.brand_slug brand_endorsement.brand_avatar_image_url brand_endorsement.product_name "
        "brand_endorsement.product_slug": "of the brand's record, not of the item",
        "metrics.aggregates.cbn metrics.aggregates.cbg metrics.aggregates.terpenes": _AGAIN + ": cannabinoids, terpenes",
        "prices.grams_per_eighth": "always 3.5 grams in the samples",
        "prices.*.gram_unit_price prices.*[].gram_unit_price prices.*.thc_unit_price prices.*[].thc_unit_price":
        "computed from price, weight and THC",
        "price_stats.**": "always null in the samples",
        "test_result_created_at test_result_expired test_result_expires_in": "always null in the samples",
        "lab_avatar_image.**": "the laboratory's logo",
    },
)  # fmt: skip
