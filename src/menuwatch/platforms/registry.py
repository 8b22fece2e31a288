"""Every platform that menus are read from, by name."""

from __future__ import annotations

from menuwatch.core.settings import Settings
from menuwatch.platforms.base import Platform
from menuwatch.platforms.dutchie.adapter import Dutchie
from menuwatch.platforms.dutchie_plus.adapter import DutchiePlus
from menuwatch.platforms.weedmaps.adapter import Weedmaps


def platforms(settings: Settings) -> dict[str, Platform]:
    """Every platform adapter by name."""
    dutchie = Dutchie(
        base_url=settings.dutchie_base_url,
        graphql_path=settings.dutchie_graphql_path,
        hashes=settings.dutchie_hashes,
        retry_base_seconds=settings.fetch_retry_base_seconds,
    )
    weedmaps = Weedmaps(base_url=settings.weedmaps_base_url, retry_base_seconds=settings.fetch_retry_base_seconds)
    plus = DutchiePlus()
    return {dutchie.name: dutchie, weedmaps.name: weedmaps, plus.name: plus}
