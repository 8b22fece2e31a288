"""A shop that is searched by keyword with the service that fetches for it, beside the simulated market."""

from __future__ import annotations

from typing import Any

from menuwatch.sim.fetching_service import FetchingService
from menuwatch.sim.manners import Manners
from menuwatch.sim.shop import KEYWORDS, Refusals, Shop
from menuwatch.sim.shop_goods import Catalogue

TOKEN = "simulated-serpwatch-token"  # noqa: S105 - the service is a simulated one


class ShopStand:
    """Both of them; `products` for each keyword."""

    def __init__(self, products: int, *, manners: Manners, refusals: float, seed: int) -> None:
        catalogue = Catalogue(KEYWORDS, products=products, seed=seed)
        self.shop = Shop(catalogue, refusals=Refusals(rate=refusals), seed=seed)
        self.service = FetchingService(TOKEN, manners=manners, seed=seed)

    async def start(self) -> None:
        """Starts to listen."""
        await self.shop.start()
        await self.service.start()

    async def close(self) -> None:
        """Stops both."""
        await self.service.close()
        await self.shop.close()

    def hello(self) -> dict[str, Any]:
        """Where they are, as the settings that lead there."""
        return {
            "keywords": list(KEYWORDS),
            "CJ_BASE_URL": self.shop.url,
            "SERPWATCH_URL": self.service.url,
            "SERPWATCH_TOKEN": TOKEN,
            "CRAWL_RESULT_HOSTS": self.service.url.removeprefix("http://"),
        }
