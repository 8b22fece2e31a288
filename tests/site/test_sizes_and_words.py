"""Sizes, and words that are alike."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.catalog.taxonomy.sizes import size_of
from menuwatch.catalog.taxonomy.text import is_one_error_apart
from menuwatch.storefront import search_words
from menuwatch.storefront.parsed_query import ParsedQuery
from menuwatch.storefront.search_text import TextReading, cities, places, read_text


@pytest.mark.parametrize(
    ("variant", "size"),
    [
        ({"option": "1/8oz", "weight_g": Decimal("3.5")}, "3.5 g"),
        ({"option": "10pk/100mg", "content_mg": Decimal(100), "pieces": 10}, "100 mg"),
        ({"option": "5pk", "pieces": 5}, "5 pieces"),
        ({"option": ".5g"}, "0.5 g"),
        ({"option": "1oz", "weight_g": Decimal(28)}, "28 g"),
        ({"option": "28.3g", "weight_g": Decimal("28.3")}, "28 g"),
        ({"option": "28.35g"}, "28 g"),
        ({"option": "7.09g", "weight_g": Decimal("7.09")}, "7 g"),
        ({"option": "29g", "weight_g": Decimal(29)}, "29 g"),
        ({"option": "7.2g", "weight_g": Decimal("7.2")}, "7.2 g"),
        ({"option": "100mg"}, "100 mg"),
        ({"option": "10pk/100mg"}, "100 mg"),
        ({"option": "0mg"}, "0mg"),
        ({"option": "Large"}, "Large"),
        ({"option": "N/A"}, None),
        ({"option": "each"}, None),
    ],
)
def test_sizes_are_said_in_one_way(variant: dict[str, object], size: str | None) -> None:
    assert size_of(variant) == size


@given(st.text("abcdefgh", min_size=4, max_size=10), st.integers(0, 9), st.sampled_from("abcdefgh"), st.integers(0, 3))
def test_one_typing_error_is_found_by_its_spellings(word: str, at: int, letter: str, kind: int) -> None:
    at %= len(word) - 1
    typed = {
        0: word[:at] + word[at + 1 :],
        1: word[:at] + letter + word[at:],
        2: word[:at] + letter + word[at + 1 :],
        3: word[:at] + word[at + 1] + word[at] + word[at + 2 :],
    }[kind]
    if typed == word or len(typed) < 4:
        return
    assert is_one_error_apart(word, typed)
    assert is_one_error_apart(typed, word)
    assert search_words.spellings(word) & search_words.spellings(typed)


@pytest.mark.parametrize(
    ("a", "b"), [("blue", "blue"), ("blue", "bleu2"), ("blue", "green"), ("blue", "eulb"), ("ab", "abcd")]
)
def test_what_is_the_same_or_further_apart_is_not(a: str, b: str) -> None:
    assert not is_one_error_apart(a, b)


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        ("Blue Dream", TextReading(words="Blue Dream")),
        ("3.5g flower", TextReading(words="", category="flower", sizes=("3.5 g",))),
        ("half ounce", TextReading(words="", sizes=("14 g",))),
        ("1/8", TextReading(words="", sizes=("3.5 g",))),
        ("ounce of flower", TextReading(words="", category="flower", sizes=("28 g",))),
        ("edible under $10", TextReading(words="", category="edible", price_max="10")),
        ("gelato $40-$20", TextReading(words="gelato", price_min="20", price_max="40")),
        ("under 100 mg gummies", TextReading(words="under gummies", category="edible", sizes=("100 mg",))),
        ("cheap live resin", TextReading(words="live resin", order="price")),
        ("sativa vape on sale", TextReading(
            words="", category="vaporizer", strains=("sativa", "sativa_hybrid"), special=True)),
        ("carts in stock", TextReading(words="carts", category="vaporizer", in_stock=True)),
        ("vape battery", TextReading(words="vape battery")),
        ("dab rig", TextReading(words="dab rig")),
        ("dab pen", TextReading(words="dab pen")),
        ("dabs", TextReading(words="", category="concentrate")),
        ("less than $7.50 oz", TextReading(words="", sizes=("28 g",), price_max="7.50")),
        ("prerolls under 10 dollars", TextReading(words="", category="preroll", price_max="10")),
        ("half gram cart", TextReading(words="cart", category="vaporizer", sizes=("0.5 g",))),
        ("full gram dabs", TextReading(words="", category="concentrate", sizes=("1 g",))),
    ],
)  # fmt: skip
def test_a_text_is_read_as_what_it_asks_for(text: str, reading: TextReading) -> None:
    assert read_text(text) == reading


@given(st.text(max_size=60))
def test_any_text_is_read(text: str) -> None:
    reading = read_text(text)
    assert reading.understood or reading.words == " ".join(text.split())
    places(text)
    cities(text)


WISHES: dict[str, dict[str, Any]] = {
    "sizes": {
        "3.5g": ("3.5 g",), "half ounce": ("14 g",), "1/8": ("3.5 g",), "100mg": ("100 mg",), "half gram": ("0.5 g",), "oz": ("28 g",),
    },
    "category": {"flower": "flower", "prerolls": "preroll", "edibles": "edible", "tinctures": "tincture"},
    "price_max": {"under $20": "20", "below 15 dollars": "15", "less than $7.50": "7.50"},
    "strains": {"indica": ("indica", "indica_hybrid"), "sativa": ("sativa", "sativa_hybrid"), "hybrids": ("hybrid",)},
    "order": {"cheap": "price", "strongest": "thc", "newest": "newest"},
    "in_stock": {"in stock": True},
    "special": {"on sale": True},
    "words": {"blue dream": "blue dream", "wyld": "wyld", "sour diesel": "sour diesel"},
}  # fmt: skip
"""Ways to say each wish, with what it means."""


@given(st.data())
def test_wishes_are_read_in_any_order(data: st.DataObject) -> None:
    said = {wish: data.draw(st.sampled_from(sorted(ways))) for wish, ways in WISHES.items() if data.draw(st.booleans())}
    text = " ".join(data.draw(st.permutations(sorted(said.values()))))
    meant = {"words": "", **{wish: WISHES[wish][way] for wish, way in said.items()}}
    assert read_text(text) == TextReading(**meant)


def test_places_are_found_with_the_rest_of_the_text() -> None:
    assert ("87102", "gummies") in places("gummies near 87102")
    assert ("hobbs, NM", "") in places("hobbs nm")
    assert ("las cruces", "gummies") in cities("gummies near Las Cruces")
    assert not any(name.endswith(" IN") for name, _ in places("gummies in stock in"))


def test_a_word_that_was_left_out_is_not_shown_as_read() -> None:
    parsed = ParsedQuery(typed="stizzy pod zzz", guessed=(("stizzy", "stiiizy"),), left_out=("zzz",))
    assert parsed.read_as == "stiiizy pod"
