"""A store's record as `ConsumerDispensaries` gives it: the keys that say something of the store, and some that say nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from menuwatch.sim.model import Shelf, SimStore

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def record(store: SimStore, menu: Iterable[Shelf], image_base: str) -> dict[str, Any]:
    """One element of `filteredDispensaries`."""
    categories = Counter(shelf.good.category for shelf in menu)
    hours: dict[str, Any] = {
        day: {"active": True, "start": "9:00 AM", "end": "9:00 PM", "__typename": "dayBounds"} for day in _DAYS
    }
    hours["__typename"] = "Dispensaries_profile_hours"
    address = f"{store.street}, {store.city}, {store.state} {store.zipcode}, {store.country}"
    return {
        "__typename": "Dispensaries",
        "id": store.id,
        "cName": store.slug,
        "name": store.name,
        "chain": store.chain,
        "status": store.status,
        "address": address,
        "location": {
            "ln1": store.street,
            "ln2": "1" if store.old else "",
            "city": store.city,
            "state": store.state,
            "country": store.country,
            "zipcode": store.zipcode,
            "geometry": {"coordinates": [store.longitude, store.latitude], "__typename": "Geometry"},
            "__typename": "Location",
        },
        "timezone": store.timezone,
        "phone": store.phone,
        "email": None,
        "recDispensary": store.recreational,
        "medicalDispensary": store.medical,
        "enabledOrderTypes": {
            "curbsidePickup": False, "delivery": store.old, "driveThruPickup": False, "inStorePickup": True, "kiosk": True,
            "pickup": True, "__typename": "EnabledOrderTypes",
        },
        "pickupHours": hours,
        "deliveryHours": hours if store.old else None,
        "specialHours": [
            {
                "name": "Good Friday", "startDate": "2021-04-02T12:00:00-04:00", "endDate": "2021-04-02T12:00:00-04:00",
                "hoursPerDay": [
                    {
                        "date": "2021-04-02T12:00:00-04:00",
                        "pickupHours": {"active": None, "start": "00:00 AM", "end": "00:00 AM", "__typename": "dayBounds"},
                    }
                ],
            }
        ],
        "productCategorySummary": [
            {"category": category, "value": count, "__typename": "CategorySummary"}
            for category, count in sorted(categories.items())
        ],
        "activeCategories": sorted(categories),
        "taxConfig": {"calculationMethod": "cumulative", "discountTaxOrder": "discountsFirst", "taxes": []},
        "feeTiers": [{"fee": "4.20", "feeType": "flat", "max": "19.99", "min": "0.00", "percentFee": 0}],
        "retailer": {"enterpriseId": store.enterprise_id, "__typename": "Retailer"},
        "menuUrl": None if store.index % 3 else f"https://{store.chain}.invalid/{store.slug}/",
        "embeddedMenuUrl": f"https://{store.chain}.invalid/menu" if store.index % 2 else None,
        "embedBackUrl": f"https://dutchie.invalid/stores/{store.slug}",
        "customDomainSettings": {"domain": None, "__typename": "Dispensaries_profile_customDomain_settings"},
        "logoImage": f"{image_base}/logo/{store.id}",
        "listImage": f"{image_base}/list/{store.id}",
        "description": "Your journey starts here.\n\nWe go above and beyond – come and see.",
        "hasMenuIntegration": store.counting == "pos",
        "offerPickup": True,
        "offerDelivery": store.old,
        "maxDeliveryDistance": 6.2 if store.old else None,
        "creditCardAtDoor": False,
        "debitOnly": True,
        "distance": None,
        "ordersArePaused": False,
        "stealthMode": None,
        "terminals": [],
        "updatedAt": None,
        "updatedAtISO": None,
        "updatedBy": None,
    }  # fmt: skip
