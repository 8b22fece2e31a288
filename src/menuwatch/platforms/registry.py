"""All platform adapters by name."""

from __future__ import annotations

from menuwatch.config.settings import Settings
from menuwatch.core.errors import Refused
from menuwatch.platforms.base import Platform
from menuwatch.platforms.dutchie.adapter import Dutchie
from menuwatch.platforms.dutchie.queries import DEFAULT_HASHES
from menuwatch.platforms.dutchie_plus.adapter import DutchiePlus
from menuwatch.platforms.weedmaps.adapter import Weedmaps


def platforms(settings: Settings) -> dict[str, Platform]:
    """Every platform adapter by name. Raises Refused for a hash of an unknown operation."""
    unknown = sorted(settings.dutchie_hashes.keys() - DEFAULT_HASHES.keys())
    if unknown:
        names = ", ".join(DEFAULT_HASHES)
        raise Refused(f"invalid DUTCHIE_HASHES: unknown operation {unknown[0]!r}; the operations are {names}")
    dutchie = Dutchie(
        base_url=settings.dutchie_base_url,
        graphql_path=settings.dutchie_graphql_path,
        hashes=settings.dutchie_hashes,
        retry_base_seconds=settings.fetch_retry_base_seconds,
    )
    weedmaps = Weedmaps(base_url=settings.weedmaps_base_url, retry_base_seconds=settings.fetch_retry_base_seconds)
    plus = DutchiePlus()
    return {dutchie.name: dutchie, weedmaps.name: weedmaps, plus.name: plus}
