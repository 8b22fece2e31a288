"""A row of a menu as it is sent: only the fields that are read, every one of them optional; and what becomes of each field of a menu
(`FIELDS`).

A row is a hit of the search index, or the `search_attributes` of a row of the merchandising answer: both have the same keys. It holds
all weights of a product: `price_eighth_ounce` is the price of the weight that `available_weights` calls "eighth ounce". Money comes as
numbers and as texts ("45.0") and decodes to Decimal from either, never through a float.
"""

from __future__ import annotations

from decimal import Decimal

import msgspec

from menuwatch.platforms.fields import Field, declare
from menuwatch.platforms.numbers import Identifier, id_text

WEIGHTS = {
    "each": "each",
    "half_gram": "1/2 g",
    "gram": "1 g",
    "two_gram": "2 g",
    "eighth_ounce": "1/8 oz",
    "quarter_ounce": "1/4 oz",
    "half_ounce": "1/2 oz",
    "ounce": "1 oz",
}
"""The option of each weight: the end of its fields' names, which is also its `price_id`."""

Texts = list[str | None] | None
Number = int | float | None


class SpecialPrice(msgspec.Struct, gc=False):
    """`{}` without a special."""

    price: Decimal | None = None
    discount_price: Decimal | None = None
    discount_type: str | None = None
    discount_amount: Decimal | None = None
    discount_percent: Decimal | None = None
    special_id: Identifier | None = None


class BrandSpecial(msgspec.Struct, gc=False):
    title: str | None = None
    discount_label: str | None = None
    brand_special_id: Identifier | None = None


class BundleIds(msgspec.Struct, gc=False):
    """Promotions in which the product is among those to buy, and among those that are discounted."""

    qualify: list[Identifier | None] | None = None
    discount: list[Identifier | None] | None = None


class WeightPotency(msgspec.Struct, gc=False):
    price_id: str | None = None
    thc_potency: Decimal | None = None
    cbd_potency: Decimal | None = None


class Compound(msgspec.Struct, gc=False):
    compound_name: str | None = None
    value: Decimal | None = None
    unit: str | None = None


class WeightLab(msgspec.Struct, gc=False):
    price_id: str | None = None
    lab_results: list[Compound | None] | None = None


class PhotoUrls(msgspec.Struct, gc=False):
    original: str | None = None


class Photo(msgspec.Struct, gc=False):
    position: Number = None
    urls: PhotoUrls | None = None


class Point(msgspec.Struct, gc=False):
    lat: Number = None
    lng: Number = None


Special = SpecialPrice | Decimal | None
"""An object in the recording; described as a number elsewhere."""
Bundles = BundleIds | list[Identifier | None] | None


class Ids(msgspec.Struct, gc=False):
    """Fields that identify a row's product and its store."""

    catalog_id: Identifier | None = msgspec.field(default=None, name="product_id")
    store_id: Identifier | None = None

    def product_id(self) -> str | None:
        """`product_id` as text."""
        return id_text(self.catalog_id)

    def store(self) -> str | None:
        """`store_id` as text."""
        return id_text(self.store_id)


class Owner(msgspec.Struct, gc=False):
    """The field of an item that names its store."""

    number: Identifier | None = msgspec.field(default=None, name="store_id")

    def store_id(self) -> str | None:
        """The id as text."""
        return id_text(self.number)


class Row(Ids, gc=False):
    """One row."""

    objectID: Identifier | None = None  # noqa: N815
    product_brand_id: Identifier | None = None
    name: str | None = None
    brand: str | None = None
    kind: str | None = None
    kind_subtype: str | None = None
    root_subtype: str | None = None
    custom_product_type: str | None = None
    custom_product_subtype: str | None = None
    brand_subtype: str | None = None
    category: str | None = None
    type: str | None = None
    strain: str | None = None
    description: str | None = None
    store_notes: str | None = None
    visible: bool | None = None
    store_types: Texts = None
    available_weights: Texts = None
    price_each: Decimal | None = None
    price_half_gram: Decimal | None = None
    price_gram: Decimal | None = None
    price_two_gram: Decimal | None = None
    price_eighth_ounce: Decimal | None = None
    price_quarter_ounce: Decimal | None = None
    price_half_ounce: Decimal | None = None
    price_ounce: Decimal | None = None
    discounted_price_each: Decimal | None = None
    discounted_price_half_gram: Decimal | None = None
    discounted_price_gram: Decimal | None = None
    discounted_price_two_gram: Decimal | None = None
    discounted_price_eighth_ounce: Decimal | None = None
    discounted_price_quarter_ounce: Decimal | None = None
    discounted_price_half_ounce: Decimal | None = None
    discounted_price_ounce: Decimal | None = None
    special_price_each: Special = None
    special_price_half_gram: Special = None
    special_price_gram: Special = None
    special_price_two_gram: Special = None
    special_price_eighth_ounce: Special = None
    special_price_quarter_ounce: Special = None
    special_price_half_ounce: Special = None
    special_price_ounce: Special = None
    max_cart_quantity_each: Number = None
    max_cart_quantity_half_gram: Number = None
    max_cart_quantity_gram: Number = None
    max_cart_quantity_two_gram: Number = None
    max_cart_quantity_eighth_ounce: Number = None
    max_cart_quantity_quarter_ounce: Number = None
    max_cart_quantity_half_ounce: Number = None
    max_cart_quantity_ounce: Number = None
    special_id: Identifier | None = None
    special_title: str | None = None
    special_amount: str | Number = None
    special_custom_badge: str | None = None
    applicable_special_ids: list[Identifier | None] | None = None
    applicable_brand_special_ids: list[Identifier | None] | None = None
    applicable_bulk_special_ids: list[Identifier | None] | None = None
    applicable_cart_total_special_ids: list[Identifier | None] | None = None
    applicable_bundle_special_ids: Bundles = None
    applicable_bundle_brand_special_ids: Bundles = None
    brand_special_prices: dict[str, BrandSpecial | None] | None = None
    inventory_potencies: list[WeightPotency | None] | None = None
    percent_thc: Decimal | None = None
    percent_thca: Decimal | None = None
    percent_cbd: Decimal | None = None
    percent_cbda: Decimal | None = None
    percent_tac: Decimal | None = None
    lab_results: list[WeightLab | None] | None = None
    lab_result_urls: Texts = None
    compound_names: Texts = None
    terpenes: Texts = None
    effects: Texts = None
    feelings: Texts = None
    activities: Texts = None
    flavors: Texts = None
    allergens: Texts = None
    ingredients: Texts = None
    net_weight_grams: Decimal | None = None
    quantity_value: Decimal | None = None
    quantity_units: str | None = None
    amount: str | Number = None
    dosage: str | Number = None
    product_photos: list[Photo | None] | None = None
    photos: list[Photo | None] | None = None
    image_urls: Texts = None
    url_slug: str | None = None
    pos_product_lookup: dict[str, Identifier | None] | None = None
    store_specific_product: bool | None = None
    available_for_pickup: bool | None = None
    available_for_delivery: bool | None = None
    aggregate_rating: Number = None
    review_count: Number = None
    root_types: Texts = None
    collections: Texts = None
    indexed_at: str | int | None = None
    _geoloc: Point | None = None


_AGAIN = "repeats another field"
_SHOWN = "how the menu shows it"


def _each(prefix: str, of: str = "") -> str:
    """The paths of a field that every weight has."""
    return " ".join(f"{prefix}{weight}{of}" for weight in WEIGHTS)


def _row_fields(prefix: str) -> tuple[Field, ...]:
    return declare(
        prefix,
        used={
            "product_id": "provider_product_id",
            "name": "name_raw, name",
            "brand": "brand_name_raw, brand_name",
            "kind": "category, category_canon",
            "kind_subtype root_subtype custom_product_subtype brand_subtype": "subcategory: the first that says something; "
            "category_canon, subcategory_canon: the first known one",
            "category type": "strain_type, strain_canon",
            "description": "description",
            "visible": "status_raw, stock_status",
            "store_types[]": "whether prices are price_rec or price_med; extra.store_types",
            "available_weights[]": "variants.stock_status",
            _each("price_"): "variants: price",
            _each("discounted_price_"): "variants: special price",
            _each("special_price_"): "variants: special price",
            _each("special_price_", ".discount_price"): "variants: special price",
            f"{_each('special_price_', '.discount_type')} {_each('special_price_', '.discount_amount')} "
            f"{_each('special_price_', '.discount_percent')} {_each('special_price_', '.special_id')}": "specials",
            "special_id special_title special_amount": "specials",
            "brand_special_prices.*.title brand_special_prices.*.discount_label brand_special_prices.*.brand_special_id": "specials",
            "inventory_potencies[].price_id inventory_potencies[].thc_potency inventory_potencies[].cbd_potency": "thc, cbd",
            "percent_thc percent_cbd": "thc, cbd, where no weight has its own; extra.percent_thc, extra.percent_cbd of what is "
            "sold by content",
            "lab_results[].price_id lab_results[].lab_results[].compound_name lab_results[].lab_results[].value "
            "lab_results[].lab_results[].unit": "cannabinoids, terpenes; thc, cbd of what is sold by content; "
            "extra.lab_results_by_option",
            "lab_result_urls[]": "batch.certificate_url; extra.lab_result_urls where there are several",
            "net_weight_grams quantity_value quantity_units amount": "variants.weight_g of the option each; extra.net_weight_grams, "
            "extra.quantity_value, extra.quantity_units, extra.amount",
            "product_photos[].position product_photos[].urls.original photos[].position photos[].urls.original "
            "image_urls[]": "image_url, images",
            "indexed_at": "platform_updated_at",
            "store_id": "which store; extra.dispensary_id",
            "_geoloc.lat _geoloc.lng": "where the store is",
        },
        kept={
            "objectID": "extra.offer_id; written differently in the two answers, so it is not the identity",
            "product_brand_id": "extra.brand_id",
            "custom_product_type": "extra.custom_product_type, where it is not the kind",
            "strain": "extra.strain",
            "store_notes": "extra.store_notes, where it is not the description",
            _each("max_cart_quantity_"): "extra.max_cart_quantity of the options sold: a cart limit, no stock",
            "special_custom_badge": "extra.special_badge",
            "applicable_special_ids[] applicable_brand_special_ids[] applicable_bulk_special_ids[] "
            "applicable_cart_total_special_ids[]": "extra.special_ids: those that are not in specials",
            "applicable_bundle_special_ids[] applicable_bundle_special_ids.qualify[] applicable_bundle_special_ids.discount[] "
            "applicable_bundle_brand_special_ids[] applicable_bundle_brand_special_ids.qualify[] "
            "applicable_bundle_brand_special_ids.discount[]": "extra.bundle_special_ids",
            "percent_thca percent_cbda percent_tac": "extra.percent_thca, extra.percent_cbda, extra.percent_tac",
            "compound_names[]": "extra.compound_names",
            "terpenes[]": "extra.terpenes: names without values",
            "effects[] feelings[] activities[] flavors[] allergens[] ingredients[]": "extra.effects, extra.feelings, "
            "extra.activities, extra.flavors, extra.allergens, extra.ingredients",
            "dosage": "extra.dosage",
            "url_slug": "extra.slug",
            "pos_product_lookup.*": "extra.pos_ids: the point of sale's id of each option",
            "store_specific_product": "extra.store_specific",
            "available_for_pickup available_for_delivery": "extra.pickup, extra.delivery",
            "aggregate_rating review_count": "extra.rating, extra.review_count",
            "root_types[] collections[]": "extra.root_types, extra.collections",
        },
        ignored={
            "bucket_price sort_price": _AGAIN + ": the lowest price, rounded down to dollars",
            "brand_special_prices.*.price": "a price after a refund that some customers get later",
            f"{_each('special_price_', '.price')} {_each('special_price_', '.special_custom_badge')} "
            f"{_each('special_price_', '.**')}": _AGAIN + ": price, special_title, special_custom_badge",
            "inventory_potencies[].thca_potency inventory_potencies[].cbda_potency inventory_potencies[].tac_potency": "0 in the "
            "samples; lab_results has the compounds",
            "lab_results[].lab_results[].unit_id": _AGAIN + ": compound_name",
            "max_cart_quantity": _AGAIN + ": the cart limit of each weight",
            "unique_slug searchable_slug search_text": _AGAIN + ": url_slug, product_id, name",
            "product_photos[].id photos[].id product_photos[].urls.small product_photos[].urls.medium "
            "product_photos[].urls.extraLarge photos[].urls.small photos[].urls.medium photos[].urls.extraLarge": _AGAIN
            + ": the same image in other sizes",
            "has_photos has_brand_discount has_thc_potency": _AGAIN + ": whether another field says something",
            "photo_weights photo_weights.**": "which photo is of which weight; empty in the samples",
            "product_percent_thc product_percent_cbd": "of the catalogue's product, not of what the shop sells",
            "cannabinoids cannabinoids.**": "empty in the samples",
            "applicable_special_types[] applicable_brand_specials_included_user_segments "
            "applicable_brand_specials_excluded_user_segments applicable_brand_specials_included_user_segments[] "
            "applicable_brand_specials_excluded_user_segments[]": "which customers "
            "promotions are for; numbers that mean nothing outside",
            "allow_multiple_flower_count": "how the cart counts it",
            "at_visible_store business_licenses business_licenses.**": "of the store, not of the product",
            "best_seller_rank operator_store_rank recommendation recommendation.** roots_custom_rows roots_custom_rows.**": _SHOWN,
            "brand_logo_url": "of the brand, not of the product",
            "version _highlightResult _highlightResult.** _rankingInfo _rankingInfo.** _snippetResult.**": "of the search, not of the "
            "product",
        },
    )  # fmt: skip


_SEARCH = {
    "used": {"nbHits nbPages exhaustiveNbHits": "whether this is all of the menu"},
    "ignored": {
        "page hitsPerPage offset length query params index indexUsed queryID processingTimeMS processingTimingsMS.** serverTimeMS "
        "exhaustive.** exhaustiveFacetsCount exhaustiveTypo facets.** facets_stats.** renderingContent.** nbSortedHits serverUsed "
        "abTestID abTestVariantID message userData.** parsedQuery timeoutCounts timeoutHits aroundLatLng automaticRadius": "says what "
        "was asked for and how it was answered",
    },
}  # fmt: skip
_ADS = "of the advertisements beside the menu"


def _merchandised(prefix: str) -> tuple[Field, ...]:
    """The row around the attributes."""
    return declare(
        prefix,
        used={},
        kept={},
        ignored={
            "object_id product_id": "repeats objectID and product_id of the attributes; the rest of a menu is these ids alone",
            "ad_token kevel_token my_high_d my_high_d.** flight_id": _ADS,
            "dispensary_name store_name": "added by the recorder",
        },
    )


FIELDS = (
    *declare("", used=_SEARCH["used"] | {"nb_hits": "whether this is all of the menu"}, kept={}, ignored=_SEARCH["ignored"]),
    *declare("results[]", used=_SEARCH["used"], kept={}, ignored=_SEARCH["ignored"]),
    *declare("", used={}, kept={}, ignored={"facet_results.** search_facets.** ads.** dm_request_id request_id": _ADS}),
    *_row_fields("hits[]"),
    *_row_fields("results[].hits[]"),
    *_row_fields("products[].search_attributes"),
    *_merchandised("products[]"),
    *_row_fields("[].search_attributes"),
    *_row_fields("[]"),
    # A bare list may be of whole rows; `product_id` is declared once.
    *(field for field in _merchandised("[]") if field.path != "[].product_id"),
)  # fmt: skip
