"""Matched listings for tests: what the engine would write, by SQL, so that nothing here depends on the parser or the grouping."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

Sql = Callable[..., list[tuple[Any, ...]]]

_STORE = """
INSERT INTO dispensaries (platform, platform_dispensary_id, slug, name, name_raw, state, first_crawled_at, last_crawled_at)
VALUES (%(platform)s, md5(%(slug)s), %(slug)s, %(name)s, %(name)s, 'PA', now(), now()) RETURNING id
"""
_PRODUCT = """
INSERT INTO catalog_products (dispensary_id, provider, provider_product_id, content_hash, first_seen_at, state_from, changed_at,
  name_raw, name, brand_name_raw, brand_name, category, category_canon, price_rec, stock_status, is_in_stock, variants, extra)
VALUES (%(store)s, %(platform)s, gen_random_uuid()::text, '', now(), now(), now(),
  %(name)s, %(name)s, %(brand)s, %(brand)s, %(category)s, %(category)s, %(price)s, 'in_stock', true, %(variants)s, '{}') RETURNING id
"""
_SIGNATURE = """
INSERT INTO match_signatures (key, block, parsed, canonical_product_id, linked_to, confidence, reasons)
VALUES (%(key)s, %(block)s, %(parsed)s, %(canonical)s, %(linked_to)s, %(confidence)s, %(reasons)s) RETURNING id
"""
_MATCH = """
INSERT INTO product_matches (product_id, dispensary_id, source_version, signature_id, canonical_product_id, sizes)
SELECT id, dispensary_id, 7, %(signature)s, %(canonical)s, %(sizes)s FROM catalog_products WHERE id = %(product)s
"""
_REVIEW = """
INSERT INTO match_reviews (a, b, confidence, together, impact, reasons)
VALUES (%(a)s, %(b)s, %(confidence)s, %(together)s, %(impact)s, %(reasons)s)
"""


def key(word: str) -> UUID:
    """The key of the signature of that word: in the order of the words."""
    return UUID(bytes=word.encode()[:16].ljust(16, b"\0"))


@dataclass(slots=True)
class MatchRows:
    """Writes rows of the matcher. `stores` and `brands` are ids by name."""

    sql: Sql
    stores: dict[str, int] = field(default_factory=dict)
    brands: dict[str, int] = field(default_factory=dict)

    def store(self, name: str, platform: str = "dutchie") -> int:
        """A store that was crawled now."""
        if name not in self.stores:
            values = {"platform": platform, "slug": f"match-{name.lower().replace(' ', '-')}", "name": name}
            ((self.stores[name],),) = self.sql(_STORE, values)
            self.sql(
                "INSERT INTO match_stores (dispensary_id, crawled_at, rules_version) VALUES (%s, now(), 5)",
                [self.stores[name]],
            )
        return self.stores[name]

    def product(
        self, name: str, *, brand: str | None = "Acme", store: str = "Green Leaf", price: float = 40, category: str = "flower",
        platform: str = "dutchie",
    ) -> int:  # fmt: skip
        """A listing on the menu of a store."""
        variants = [{"option": "3.5g", "weight_g": 3.5, "price_rec": price, "stock_status": "in_stock"}]
        values = {
            "store": self.store(store, platform),
            "platform": platform,
            "name": name,
            "brand": brand,
            "category": category,
            "price": price,
            "variants": json.dumps(variants),
        }
        ((product_id,),) = self.sql(_PRODUCT, values)
        return int(product_id)

    def brand(self, name: str, *spellings: str, origin: str = "learned") -> int:
        """A brand with its own name and other spellings."""
        slug = name.lower().replace(" ", "-")
        ((brand_id,),) = self.sql("INSERT INTO brands (slug, name) VALUES (%s, %s) RETURNING id", [slug, name])
        for spelling in (name, *spellings):
            self.sql(
                "INSERT INTO brand_aliases (alias, spelling, brand_id, origin) VALUES (%s, %s, %s, %s)",
                [spelling.lower(), spelling, brand_id, "spelling" if spelling == name else origin],
            )
        self.brands[name] = brand_id
        return int(brand_id)

    def canonical(self, name: str, *, brand: str | None = None, category: str = "flower") -> int:
        """A canonical product; its counts follow with `signature`."""
        ((canonical_id,),) = self.sql(
            "INSERT INTO canonical_products (brand_id, name, category) VALUES (%s, %s, %s) RETURNING id",
            [None if brand is None else self.brands[brand], name, category],
        )
        return int(canonical_id)

    def signature(
        self, word: str, products: Sequence[int], *, canonical: int | None = None, block: str | None = None, category: str = "flower",
        linked_to: int | None = None, confidence: float | None = None, reasons: Sequence[dict[str, Any]] = (),
    ) -> int:  # fmt: skip
        """A signature with that key whose words are `word`, of these listings."""
        block = block or f"acme|{category}"
        parsed = {"key": str(key(word)), "block": block, "brand": ["acme"], "words": word.split(), "kind": category}
        values = {
            "key": key(word),
            "block": block,
            "parsed": json.dumps(parsed),
            "canonical": canonical,
            "linked_to": linked_to,
            "confidence": confidence,
            "reasons": json.dumps(list(reasons)),
        }
        ((signature_id,),) = self.sql(_SIGNATURE, values)
        for product in products:
            values = {"signature": signature_id, "canonical": canonical, "product": product, "sizes": ["3.5 g"]}
            self.sql(_MATCH, values)
        if canonical is not None:
            self.sql(
                "UPDATE canonical_products SET (listings, stores) = (SELECT count(*), count(DISTINCT dispensary_id)"
                " FROM product_matches WHERE canonical_product_id = canonical_products.id) WHERE id = %s",
                [canonical],
            )
        return int(signature_id)

    def review(
        self, a: int, b: int, *, confidence: float = 0.5, impact: int = 2, together: bool = False,
        reasons: Sequence[dict[str, Any]] = (),
    ) -> None:  # fmt: skip
        """A pair of signatures to review."""
        low, high = sorted((a, b))
        values = {
            "a": low,
            "b": high,
            "confidence": confidence,
            "together": together,
            "impact": impact,
            "reasons": json.dumps(list(reasons)),
        }
        self.sql(_REVIEW, values)

    def written(self, *names: str, canonical: Sequence[int | None] = ()) -> list[int]:
        """A listing for each name, each with a signature of its own; their products' ids."""
        ids = []
        for n, name in enumerate(names):
            ids.append(self.product(name, store=f"Store {n}"))
            self.signature(name, ids[-1:], canonical=canonical[n] if canonical else None)
        return ids
