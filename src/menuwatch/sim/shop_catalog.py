"""The products of the simulated shop, independent of how its pages encode them.

They follow from the seed. Every `share`-th product of a keyword is the one that the previous keyword has at that position, so that
searches overlap. Money is in whole cents, mass in hundredths of a gram.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from hashlib import blake2b

_ADJECTIVES = (
    "Foldable", "Rechargeable", "Vintage", "Set of 4", "Extra Large", "Children's", "Ultra-Thin", 'Brush 2"', "Größe",
)  # fmt: skip
_ENDINGS = (
    "For Home", "{Pro}", "& Case", "With Captcha Lock", "In 99 Records Style", "// Pack", "<Mini>", "50% Lighter", "\\ Black",
)  # fmt: skip
_COLOURS = ("Red", "Blue", "Green", "Black", "White", "Ivory", "Rosé", "Navy")


@dataclass(frozen=True, slots=True)
class ShopVariant:
    """One form of a product."""

    vid: str
    sku: str
    name: str
    cents: int
    centigrams: int

    @property
    def price(self) -> Decimal:
        """In dollars."""
        return Decimal(self.cents) / 100

    @property
    def grams(self) -> Decimal:
        """Packed."""
        return Decimal(self.centigrams) / 100


@dataclass(frozen=True, slots=True)
class ShopProduct:
    """One product. `serial` selects how pages encode it; `removed` products are in search results but no longer sold."""

    id: str
    serial: int
    slug: str
    name: str
    variants: tuple[ShopVariant, ...]
    listed: int
    images: tuple[str, ...]
    removed: bool = False

    @property
    def path(self) -> str:
        """Where its page is."""
        return f"/product/{self.slug}-p-{self.id}.html"

    @property
    def price_min(self) -> Decimal:
        """Of its cheapest form, in dollars."""
        return min(v.price for v in self.variants)

    @property
    def price_max(self) -> Decimal:
        """Price of its most expensive form, in dollars."""
        return max(v.price for v in self.variants)

    @property
    def weight(self) -> Decimal:
        """Of its heaviest form, in grams."""
        return max(v.grams for v in self.variants)


class ShopCatalog:
    """Everything on offer."""

    def __init__(
        self, keywords: Iterable[str], *, products: int = 219, seed: int = 1, share: int = 10, removed: float = 0.03
    ) -> None:
        """`products` for each keyword; `removed` is the share of them that is no longer sold."""
        self.keywords = tuple(keywords)
        self.products = products
        self._seed = seed
        self._share = share
        self._removed = removed

    def search(self, keyword: str) -> tuple[ShopProduct, ...]:
        """Search results in order; empty for unknown keywords."""
        return self._by_keyword.get(" ".join(keyword.lower().split()), ())

    def product(self, product_id: str) -> ShopProduct | None:
        return self._by_id.get(product_id)

    def reached(self, keywords: Iterable[str], *, limit: int = 600) -> dict[str, ShopProduct]:
        """Products that a complete crawl of these keywords finds, by id, including removed ones; a search shows at most `limit`."""
        return {product.id: product for keyword in keywords for product in self.search(keyword)[:limit]}

    @cached_property
    def _by_keyword(self) -> dict[str, tuple[ShopProduct, ...]]:
        by_keyword: dict[str, tuple[ShopProduct, ...]] = {}
        before: tuple[ShopProduct, ...] = ()
        for keyword in self.keywords:
            own = [self._make(keyword, place) for place in range(self.products)]
            if before:
                for place in range(self._share - 1, self.products, self._share):
                    own[place] = before[place]
            before = tuple(own)
            by_keyword[" ".join(keyword.lower().split())] = before
        return by_keyword

    @cached_property
    def _by_id(self) -> dict[str, ShopProduct]:
        return {product.id: product for products in self._by_keyword.values() for product in products}

    def _make(self, keyword: str, place: int) -> ShopProduct:
        digest = blake2b(f"{self._seed}:{keyword}:{place}".encode(), digest_size=8).digest()
        number = int.from_bytes(digest, "big")
        rng = random.Random(number)
        name = f"{rng.choice(_ADJECTIVES)} {keyword.title()} {rng.choice(_ENDINGS)} {place + 1}"
        product_id = str(10**18 + number % (8 * 10**18))
        cents, mass = rng.randrange(99, 20_000), rng.randrange(500, 900_000)
        variants = tuple(
            ShopVariant(
                vid=str(int(product_id) + 1 + n),
                sku=f"CJ{number % 10**9:09}{n:02}",
                name=f"{rng.choice(_COLOURS)}-{n}",
                cents=cents + rng.randrange(cents),
                centigrams=mass + rng.randrange(mass // 10),
            )
            for n in range(rng.choice((1, 1, 2, 3, 8)))
        )
        slug = "-".join("".join(c if c.isascii() and c.isalnum() else " " for c in name.lower()).split())
        images = tuple(f"https://img.shop.example/{product_id}/{n}.jpg" for n in range(rng.randrange(4)))
        product = ShopProduct(product_id, place, slug, name, variants, rng.randrange(3000), images)
        return replace(product, removed=True) if rng.random() < self._removed else product
