"""Recorded answers for tests: made-up products of one shop, pages of them, archive files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from menuwatch.archive.document import Document, encode

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SHOP = "5f00000000000000000000aa"


def product(number: int, *, price: int = 10, store: str | None = SHOP, **more: Any) -> dict[str, Any]:
    raw = {
        "id": f"p{number}", "Name": f"Thing {number}", "Options": ["1g"], "recPrices": [price], "Status": "Active",
        "manualInventory": [{"option": "1g", "inventory": 5}], **more,
    }  # fmt: skip
    return raw if store is None else {**raw, "DispensaryID": store}


def page(items: Sequence[dict[str, Any]], total: int | None = None, pages: int = 1) -> bytes:
    info = {"totalCount": len(items) if total is None else total, "totalPages": pages}
    return json.dumps({"data": {"filteredProducts": {"products": list(items), "queryInfo": info}}}).encode()


def archived(at: datetime, *pages: bytes, store: str = SHOP, **more: Any) -> bytes:
    """An archive file of a crawl at that time."""
    return encode(
        Document(**{"platform": "dutchie", "platform_dispensary_id": store, "fetched_at": at, "pages": pages, **more})
    )
