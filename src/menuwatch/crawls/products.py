"""The rows of `crawl_products` and `crawl_variants`. Every function joins whatever transaction is open on its connection."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from psycopg import AsyncConnection

from menuwatch.crawls.base import CrawledProduct
from menuwatch.crawls.model import Item
from menuwatch.crawls.score import score
from menuwatch.db import sql

_q = sql.load(__package__, "products.sql")


async def put(conn: AsyncConnection[Any], item: Item, site: str, product: CrawledProduct, now: datetime) -> None:
    """Keeps a product as its page has it, with its score. Of several variants with one id the last one wins."""
    variants = list({one.variant_id: one for one in product.variants}.values())
    await conn.execute(
        _q.put,
        {
            "job_id": item.job_id,
            "item_id": item.id,
            "site": site,
            "site_product_id": product.site_product_id,
            "keyword": item.keyword,
            "name": product.name,
            "url": product.url,
            "price_min": product.price_min,
            "price_max": product.price_max,
            "currency": product.currency,
            "weight_g": product.weight_g,
            "listed": product.listed,
            "score": score(product),
            "images": list(product.images),
            "now": now,
            "variant_ids": [one.variant_id for one in variants],
            "places": list(range(1, len(variants) + 1)),
            "skus": [one.sku for one in variants],
            "names": [one.name for one in variants],
            "prices": [one.price for one in variants],
            "weights": [one.weight_g for one in variants],
        },
    )
