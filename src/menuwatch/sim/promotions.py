"""`specialData` of a product: the promotions that name it, as Dutchie writes them down."""

from __future__ import annotations

from typing import Any

from menuwatch.sim.model import Offer, ProductState


def special_data(state: ProductState) -> dict[str, Any] | None:
    """Sales and bogos apart, either null where there is none; null as a whole without any."""
    if not state.offers:
        return None
    sales = [_sale(o, state) for o in state.offers if o.kind in ("percent", "dollar", "target")]
    bogos = [_bogo(o) for o in state.offers if o.kind in ("bogo", "bundle")]
    return {"bogoSpecials": bogos or None, "saleSpecials": sales or None, "__typename": "Products_specialData"}


def _amount(offer: Offer) -> int | float:
    """Percent as it is, money in dollars."""
    if offer.kind in ("percent", "bogo"):
        return offer.value
    return offer.value // 100 if offer.value % 100 == 0 else offer.value / 100


_TYPES = {"percent": "percentDiscount", "dollar": "dollarDiscount", "target": "targetPrice"}


def _discount(offer: Offer, kind: str) -> dict[str, Any]:
    return {
        "discountType": kind, "discountAmount": _amount(offer), "productGroup": "categories", "brandIds": None,
        "brandNames": None, "categoryIds": [offer.scope], "categoryNames": None, "enterpriseProductIds": None,
        "exclusions": None, "inventoryTags": None, "productIds": None, "productTags": None, "strainIds": None,
        "subcategoryIds": None, "subcategoryNames": None, "vendorIds": None, "weightOperator": None, "weights": None,
        "__typename": "Products_specialData_saleSpecials_saleDiscounts",
    }  # fmt: skip


def _sale(offer: Offer, state: ProductState) -> dict[str, Any]:
    kind = _TYPES[offer.kind]
    return {
        "createdBy": "ArmageddonDiscountSync" if offer.from_pos else "5f5ac69c4508af00b350ce1d",
        "directPOSProductIdMapping": offer.from_pos,
        "rawPOSWeightMapping": offer.from_pos,
        "useLatestCartCalculator": None,
        "discount": _amount(offer),
        "discountStacking": False,
        "dollarDiscount": offer.kind == "dollar",
        "eligibleProductOptions": None,
        "menuType": offer.menu,
        "minorVersion": 0,
        "nonStackingBehavior": "favorCustomer",
        "payByBankIncentiveEnabled": None,
        "paymentRestrictions": None,
        "percentDiscount": offer.kind == "percent",
        "saleDiscounts": [_discount(offer, kind)] if offer.from_pos else None,
        "settingsDerivedFrom": "special" if offer.from_pos else "dispensary",
        "skipV4Merge": None,
        "source": "POS" if offer.from_pos else None,
        "sourceId": offer.id[:5] if offer.from_pos else None,
        "specialId": offer.id,
        "specialName": offer.name,
        "specialType": "sale",
        "specialRestrictions": {offer.scope: {"discountType": kind}, state.product.id: {"discountType": kind}},
        "stackingBehavior": "cumulative",
        "stackingMode": None,
        "targetPrice": offer.kind == "target",
        "useGreedOptimizedCalculator": None,
        "useTotalQtyCalcsFix": True,
        "version": 3,
        "__typename": "Products_specialData_saleSpecials",
    }


def _part(offer: Offer, typename: str) -> dict[str, Any]:
    """What conditions and rewards have in common."""
    names = (
        "brandId", "brandIds", "brandName", "brandNames", "categoryName", "categoryNames", "enterpriseProductId",
        "enterpriseProductIds", "exclusions", "inventoryTags", "productId", "productIds", "productTags", "quantity",
        "requiresSingleSku", "selectedCategoriesAndSubcategories", "strainIds", "subcategoryIds", "subcategoryNames",
        "totalQuantity", "totalSpend", "totalWeight", "vendorIds", "weight", "weightOperator", "weights",
    )  # fmt: skip
    part: dict[str, Any] = dict.fromkeys(names)
    part |= {"categoryIds": [offer.scope], "productGroup": "categories", "__typename": typename}
    return part


def _quantity(number: int, most: int | None) -> dict[str, Any]:
    return {
        "enabled": True, "maxQuantity": most, "quantity": number, "quantityOperator": "greaterThanEqualTo",
        "__typename": "Products_specialData_bogoSpecials_totalQuantity",
    }  # fmt: skip


def _bogo(offer: Offer) -> dict[str, Any]:
    """A bundle's price is in `discountBundle` as a text, its number of items in the conditions; a bogo's percentage is a text in
    one kind of record and a whole number in another."""
    condition = _part(offer, "Products_specialData_bogoSpecials_bogoConditions")
    reward = _part(offer, "Products_specialData_bogoSpecials_bogoRewards")
    reward |= dict.fromkeys(
        ("applicationRules", "discountAmount", "discountType", "dollarDiscount", "percentDiscount", "targetPrice")
    )
    bundle = None
    if offer.kind == "bundle":
        condition["totalQuantity"] = _quantity(offer.needs, None)
        bundle = {"discountType": "targetPrice", "value": str(_amount(offer))}
        reward["discountAmount"] = _amount(offer)
    elif offer.from_pos:
        condition["totalQuantity"] = _quantity(offer.needs, None)
        reward |= {"totalQuantity": _quantity(offer.gets, 10_000), "discountType": "percentDiscount"}
        reward["discountAmount"] = _amount(offer)
    else:
        condition |= {"quantity": offer.needs}
        reward |= {"quantity": offer.gets, "percentDiscount": f"{offer.value:.2f}"}
    disabled = {"enabled": False, "maxQuantity": None, "quantity": None, "quantityOperator": None}
    return {
        "applyRewardsToConditions": None,
        "bogoConditionLogicOperator": "or",
        "bogoConditions": [condition],
        "bogoRewardLogicOperator": "or",
        "bogoRewards": [reward],
        "createdBy": "ArmageddonDiscountSync" if offer.from_pos else "650390ed746d4f0009408c25",
        "directPOSProductIdMapping": offer.from_pos,
        "discountBehavior": None,
        "discountBundle": bundle,
        "discountPrecedence": "lowToHigh",
        "discountStacking": False,
        "discountToCart": None,
        "endStamp": "1798761600000",
        "excludeConditionItemsFromRewards": None,
        "excludedProducts": {"conditions": None, "rewards": None},
        "isRecurring": None,
        "itemsForAPrice": None,
        "menuType": offer.menu,
        "minorVersion": 0,
        "nonStackingBehavior": "favorCustomer",
        "qualifyingConditionOptions": [],
        "qualifyingOptions": [],
        "qualifyingRewardOptions": [],
        "rawPOSWeightMapping": offer.from_pos,
        "recurringEndDate": None,
        "redemptionLimit": None,
        "settingsDerivedFrom": "special" if offer.from_pos else "dispensary",
        "sourceId": offer.id[:5] if offer.from_pos else None,
        "specialId": offer.id,
        "specialName": offer.name,
        "specialType": "bogo",
        "stackingBehavior": "cumulative",
        "stackingMode": "non-stacking" if offer.from_pos else None,
        "totalQuantity": disabled,
        "totalSpend": {"enabled": False, "maximumSpend": None, "minimumSpend": None, "spendOperator": None},
        "totalWeight": {"enabled": False, "weight": None, "weightOperator": None},
        "useTotalQtyCalcsFix": True,
        "version": 3,
        "__typename": "Products_specialData_bogoSpecials",
    }
