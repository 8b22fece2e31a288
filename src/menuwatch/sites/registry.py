"""Every shop that can be searched, by name; the first is meant where nothing is said."""

from __future__ import annotations

from menuwatch.core.settings import Settings
from menuwatch.crawls.base import Site
from menuwatch.sites.cj import CJDropshipping


def sites(settings: Settings) -> dict[str, Site]:
    """The shops, where the settings say that they are."""
    cj = CJDropshipping(settings.cj_base_url)
    return {cj.name: cj}
