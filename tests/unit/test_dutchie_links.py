"""The store in the address of a menu."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.platforms.dutchie.adapter import Dutchie, slug_of


@pytest.mark.parametrize(
    ("address", "slug"),
    [
        ("https://dutchie.com/embedded-menu/tweed-ajax", "tweed-ajax"),
        ("https://dutchie.com/embedded-menu/tweed-ajax/", "tweed-ajax"),
        ("https://dutchie.com/embedded-menu/tweed-ajax/product/sage-sour?menuType=rec#top", "tweed-ajax"),
        ("http://www.dutchie.com/dispensary/tweed-ajax", "tweed-ajax"),
        ("https://dutchie.com/dispensary/tweed-ajax/product/sage-sour", "tweed-ajax"),
        ("https://dutchie.com/stores/tweed-ajax?menuType=rec", "tweed-ajax"),
        ("https://DUTCHIE.com/Dispensary/Ethos-Watertown-Adult-Use", "Ethos-Watertown-Adult-Use"),
        ("dutchie.com/dispensary/tweed-ajax", "tweed-ajax"),
        ("//dutchie.com/api/v2/embedded-menu/5ea9b4c4f611e900b033ae2f.js", "5ea9b4c4f611e900b033ae2f"),
        ("/embedded-menu/tweed-ajax", "tweed-ajax"),
        ("/dispensary/tweed-ajax", "tweed-ajax"),
        (" https://dutchie.com/dispensary/se4ekt2e7rH5pspyn ", "se4ekt2e7rH5pspyn"),
        ("https://menu.shop.example/embedded-menu/shop", "shop"),
        ("https://weedmaps.com/dispensary/tweed-ajax", None),
        ("https://notdutchie.com/dispensary/tweed-ajax", None),
        ("https://dutchie.com/us/dispensaries/az-phoenix", None),
        ("https://dutchie.com/", None),
        ("https://dutchie.com/dispensary/", None),
        ("https://dutchie.com/dispensary/%20", None),
        ("https://shop.example/menu", None),
        ("http://[::1", None),
        ("tweed-ajax", None),
        ("", None),
    ],
)
def test_slug_of(address: str, slug: str | None) -> None:
    assert slug_of(address) == slug


def test_the_configured_host_is_dutchies_own() -> None:
    dutchie = Dutchie(base_url="http://127.0.0.1:8123/")
    assert dutchie.slug_of("http://127.0.0.1:8123/dispensary/green-door") == "green-door"
    assert dutchie.slug_of("http://127.0.0.1:9999/dispensary/green-door") is None


@given(st.text(max_size=60))
def test_any_text_is_answered(address: str) -> None:
    found = slug_of(address)
    assert found is None or found in address or "%" in address
