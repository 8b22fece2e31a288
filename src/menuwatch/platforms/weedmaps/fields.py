"""What becomes of each field of a Weedmaps menu."""

from __future__ import annotations

from menuwatch.platforms.fields import declared

_AGAIN = "repeats another field"
_OURS = "says which page was asked for"
_KIND = "what kind of thing an id is of; there is one kind"

FIELDS = declared(
    "",
    used={"meta.total meta.per_page": "whether this is all of the menu"},
    kept={},
    ignored={"meta.page": _OURS},
) + declared(
    "data[]",
    used={
        "id": "provider_product_id",
        "attributes.name": "name_raw, name",
        "attributes.category_name": "category, category_canon",
        "attributes.sub_category.name": "subcategory, category_canon, subcategory_canon",
        "attributes.body": "description",
        "attributes.is_published": "status_raw, stock_status",
        "attributes.license_type": "whether prices are price_rec or price_med; extra.license_type",
        "attributes.picture_url attributes.original_picture_url attributes.avatar_image_url": "image_url, images",
        "attributes.brand_name": "brand_name_raw, brand_name",
        "attributes.genetics": "strain_type, strain_canon",
        "attributes.prices.price_unit": "variants: price of what is sold by the package",
        "attributes.prices.price_half_gram attributes.prices.price_gram attributes.prices.price_two_grams "
        "attributes.prices.price_eighth attributes.prices.price_quarter attributes.prices.price_half_ounce "
        "attributes.prices.price_ounce": "variants, where the item lists none itself",
        "attributes.created_at": "platform_created_at",
        "attributes.updated_at": "platform_updated_at",
        "attributes.measurements[].name attributes.measurements[].unit attributes.measurements[].value": "thc, cbd, cannabinoids",
        "attributes.variants[].name attributes.variants[].label": "variants.option",
        "attributes.variants[].price.amount": "variants: price",
        "attributes.variants[].weight.value attributes.variants[].weight.unit": "variants.weight_g",
        "attributes.variants[].inventory_quantity": "variants.quantity, stock_status",
        "attributes.sale.amount attributes.sale.type": "specials, special prices",
        "attributes.inventory_quantity": "variants.quantity of what is sold by the package; extra.shared_quantity",
        "attributes.shared_inventory": "whether the options' quantities add up; extra.shared_inventory",
        "relationships.listing.data.id": "which store; extra.dispensary_id",
        "links.self": "the store's slug",
    },
    kept={
        "attributes.slug": "extra.slug",
        "attributes.online_orderable": "extra.online_orderable",
        "attributes.external_id": "extra.external_id",
        "attributes.compliance_net_mg": "extra.compliance_net_mg; contradicts names and variants, so it is no weight",
        "links.order": "extra.menu_url",
        "relationships.brand.data.id": "extra.brand_id",
        "relationships.product.data.id": "extra.library_product_id",
        "relationships.strain.data.id": "extra.strain_id",
        "relationships.categories.data[].id": "extra.category_ids",
        "relationships.tags.data[].id": "extra.tag_ids",
    },
    ignored={
        "type relationships.brand.data.type relationships.listing.data.type relationships.product.data.type "
        "relationships.strain.data.type relationships.categories.data[].type relationships.tags.data[].type": _KIND,
        "attributes.position attributes.is_badged": "how the menu shows it",
        "attributes.cannabinoids.thc attributes.cannabinoids.cbd": _AGAIN + ": percentages of measurements",
        "attributes.prices.prices_other": "empty in everything seen",
        "attributes.grams_per_eighth": "3.5 grams in everything seen",
        "attributes.parent_category.**": _AGAIN + ": category_name",
        "attributes.sub_category.id attributes.sub_category.slug": _AGAIN + ": sub_category.name, categories",
        "attributes.measurements[].id attributes.measurements[].classification attributes.measurements[].full_name": _AGAIN
        + ": name; an id that means nothing outside",
        "attributes.variants[].price.currency": "USD in everything seen",
        "attributes.sku attributes.variants[].sku": "null in everything seen",
        "attributes.variants[].compliance_net_mg attributes.variants[].compliance_net_precalc "
        "attributes.compliance_net_precalc": "for the shop's compliance; contradicts the weights",
        "attributes.variants[].cart_quantity_multiplier attributes.cart_quantity_multiplier": "how the cart counts it",
        "relationships.categories.meta.total relationships.tags.meta.total": "length of a list that is there",
        "relationships.menu_parent.**": "the menu's own id; the listing says which store",
    },
)
