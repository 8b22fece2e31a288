"""What no menu can mean, whatever the platform: content below 0 or above 100 %, a special price above the regular
one, a certificate that is not on the web. Pure.

Such a value is left out with a warning, which names the column and the value.
"""

from __future__ import annotations

from decimal import Decimal

from msgspec.structs import replace

from menuwatch.catalog.model import Potency, Product, ProductWarning, Variant
from menuwatch.catalog.taxonomy.unit_price import effective, per

_HUNDRED = Decimal(100)


def plausible(product: Product, warnings: list[ProductWarning]) -> Product:
    """The product without its implausible values, and a warning for each."""
    thc = _plausible_content(product, product.thc, "thc", warnings)
    cbd = _plausible_content(product, product.cbd, "cbd", warnings)
    if thc is not product.thc or cbd is not product.cbd:
        product = replace(product, thc=thc, cbd=cbd)
    batch = product.batch
    if batch is not None and batch.certificate_url and not batch.certificate_url.startswith(("https://", "http://")):
        message = "it is not a web address; left out"
        warnings.append(ProductWarning(product.provider_product_id, "batch.certificate_url", message))
        product = replace(product, batch=replace(batch, certificate_url=None))
    for variant in product.variants:
        if _above(variant.special_rec, variant.price_rec) or _above(variant.special_med, variant.price_med):
            return _without_raised_prices(product, warnings)
    return product


def _plausible_content(
    product: Product, content: Potency | None, field: str, warnings: list[ProductWarning]
) -> Potency | None:
    if content is None or (content.lo >= 0 and (content.hi <= _HUNDRED or content.unit != "%")):
        return content
    values = " to ".join(f"{value:f}" for value in dict.fromkeys((content.lo, content.hi)))
    limits = "0 to 100 %" if content.unit == "%" else "0 and more"
    message = f"{values} {content.unit} is not within {limits}; left out"
    warnings.append(ProductWarning(product.provider_product_id, field, message))
    return None


def _above(special: Decimal | None, regular: Decimal | None) -> bool:
    return special is not None and regular is not None and special > regular


def _without_raised_prices(product: Product, warnings: list[ProductWarning]) -> Product:
    variants = tuple(_without_raised_price(variant, product, warnings) for variant in product.variants)
    return replace(
        product,
        variants=variants,
        price_rec_special=min((one.special_rec for one in variants if one.special_rec is not None), default=None),
        price_med_special=min((one.special_med for one in variants if one.special_med is not None), default=None),
    )


def _without_raised_price(variant: Variant, product: Product, warnings: list[ProductWarning]) -> Variant:
    rec, med = variant.special_rec, variant.special_med
    for name, special, regular in (("special_rec", rec, variant.price_rec), ("special_med", med, variant.price_med)):
        if _above(special, regular):
            field = f"variants[{variant.option}].{name}"
            message = f"the special price {special:f} is above the regular price {regular:f}; left out"
            warnings.append(ProductWarning(product.provider_product_id, field, message))
    rec = None if _above(rec, variant.price_rec) else rec
    med = None if _above(med, variant.price_med) else med
    price = effective(variant.price_rec, rec, variant.price_med, med)
    return replace(
        variant,
        special_rec=rec,
        special_med=med,
        price_per_g=per(price, variant.weight_g),
        price_per_piece=per(price, variant.pieces),
        price_per_mg=per(price, variant.content_mg),
    )
