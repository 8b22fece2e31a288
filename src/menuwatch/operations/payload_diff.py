"""What differs between two archived menus, in the one form that the API and the command line show it in. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from menuwatch.catalog.diff import Change, Item
from menuwatch.operations.payloads import Compared
from menuwatch.payloads.store import Payload


def shown(found: Compared) -> dict[str, Any]:
    """The comparison in the form that was agreed for it: names in camelCase, because other people's scripts read them."""
    d = found.diff
    return {
        "success": True,
        "from": _side(found.older),
        "to": _side(found.newer),
        "diff": {
            "added": len(d.added),
            "removed": len(d.removed),
            "priceChanges": len(d.price_changes),
            "stockChanges": len(d.stock_changes),
            "unreadable": len(found.unreadable),
        },
        "details": {
            "added": [_item(item) for item in d.added],
            "removed": [_item(item) for item in d.removed],
            "priceChanges": [_change(c, _prices(c.before), _prices(c.after)) for c in d.price_changes],
            "stockChanges": [_change(c, _stock(c.before), _stock(c.after)) for c in d.stock_changes],
            "unreadable": [
                {
                    "providerProductId": one.provider_product_id,
                    "name": one.name,
                    "before": one.before,
                    "after": one.after,
                }
                for one in found.unreadable
            ],
        },
    }


def _side(payload: Payload) -> dict[str, Any]:
    return {"id": payload.id, "fetchedAt": payload.fetched_at, "productCount": payload.product_count}


def _item(item: Item) -> dict[str, Any]:
    return {
        "providerProductId": item.provider_product_id,
        "name": item.name,
        "brandName": item.brand_name,
        "priceRec": item.price_rec,
        "stockStatus": item.stock_status,
    }


def _change(change: Change, before: Any, after: Any) -> dict[str, Any]:
    return {"providerProductId": change.provider_product_id, "name": change.name, "before": before, "after": after}


_PRICES = ("option", "priceRec", "priceRecSpecial", "priceMed", "priceMedSpecial")
_STOCK = ("option", "stockStatus", "quantity", "capped")


def _prices(options: Iterable[tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [dict(zip(_PRICES, option, strict=True)) for option in options]


def _stock(side: tuple[str, Iterable[tuple[Any, ...]]]) -> dict[str, Any]:
    status, options = side
    return {"stockStatus": status, "options": [dict(zip(_STOCK, option, strict=True)) for option in options]}
