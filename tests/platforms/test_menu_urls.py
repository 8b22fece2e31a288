"""Which platform and slug a menu URL is of: known by its address, or named where shops' own sites do not show it."""

from __future__ import annotations

import pytest

from menuwatch.core.errors import InvalidField
from menuwatch.pipeline.store_discovery import parse_menu_url
from menuwatch.platforms.base import split_url
from menuwatch.platforms.dutchie.adapter import Dutchie
from menuwatch.platforms.weedmaps.adapter import Weedmaps


class OwnSites(Weedmaps):
    """A platform whose menus are on the shops' own sites."""

    name = "own_sites"
    own_sites = True
    example_url = "https://shop.example/menu"

    def slug_of(self, menu_url: str) -> str | None:
        return None

    def slug_on_site(self, menu_url: str) -> str | None:
        parts = split_url(menu_url)
        return (parts.hostname or None) if parts is not None else None


PLATFORMS = {
    "dutchie": Dutchie(),
    "weedmaps": Weedmaps(base_url="https://api.example"),
    "own_sites": OwnSites(base_url="own"),
}


def test_platforms_are_known_by_their_addresses() -> None:
    for name in ("dutchie", "weedmaps"):
        assert parse_menu_url(PLATFORMS, PLATFORMS[name].example_url) == (name, "a-shop")
        assert parse_menu_url(PLATFORMS, PLATFORMS[name].example_url, name) == (name, "a-shop")


def test_a_shops_own_site_needs_its_platform() -> None:
    url = "https://north-shop.example/menu"
    with pytest.raises(InvalidField) as refused:
        parse_menu_url(PLATFORMS, url)
    assert refused.value.field == "menu_url"
    for part in (
        "dutchie (https://dutchie.com/dispensary/a-shop)",
        "weedmaps (https://weedmaps.com/dispensaries/a-shop)",
        "own_sites (https://shop.example/menu)",
        "for a menu on a shop's own site, name its platform (own_sites)",
    ):
        assert part in str(refused.value)
    assert parse_menu_url(PLATFORMS, url, "own_sites") == ("own_sites", "north-shop.example")


def test_a_named_platform_is_not_another() -> None:
    with pytest.raises(
        InvalidField, match=r"is not a menu URL of dutchie: expected a URL such as https://dutchie\.com/"
    ):
        parse_menu_url(PLATFORMS, "https://weedmaps.com/dispensaries/a-shop", "dutchie")
    with pytest.raises(InvalidField, match="unknown platform 'leafly'") as refused:
        parse_menu_url(PLATFORMS, "https://leafly.example/x", "leafly")
    assert refused.value.field == "platform"
