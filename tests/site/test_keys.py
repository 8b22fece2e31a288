"""What makes products the same item, and words alike."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.catalog.taxonomy.sizes import size_of
from menuwatch.catalog.taxonomy.text import is_one_error_apart, words
from menuwatch.storefront import item_keys as keys


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (("Blue Dream", "Acme"), ("BLUE  DREAM", "acme")),
        (("Blue Dream 3.5g", "Acme"), ("Blue Dream", "Acme")),
        (("Blue Dream [1/8 oz]", "Acme"), ("Blue Dream", "Acme")),
        (("Acme Blue Dream", "Acme"), ("Blue Dream", "Acme")),
        (("Blue-Dream", "Señor Verde"), ("Blue Dream", "Senor Verde")),
        (("Jack's Cut", "Acme"), ("Jacks Cut", "Acme")),
    ],
)
def test_the_same_thing_written_in_two_ways_is_one_item(a: tuple[str, str], b: tuple[str, str]) -> None:
    assert keys.item_key(*a, "flower", 1) == keys.item_key(*b, "flower", 2)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (("Blue Dream", "Acme", "flower"), ("Blue Dream", "Other", "flower")),
        (("Blue Dream", "Acme", "flower"), ("Blue Dream", "Acme", "preroll")),
        (("Gummies 100mg", "Acme", "edible"), ("Gummies 200mg", "Acme", "edible")),
        (("3.5g", "Acme", "flower"), ("7g", "Acme", "flower")),
    ],
)
def test_what_differs_in_more_than_its_writing_is_two(a: tuple[str, str, str], b: tuple[str, str, str]) -> None:
    assert keys.item_key(*a, 1) != keys.item_key(*b, 1)


def test_without_a_brand_nobody_can_tell() -> None:
    assert keys.item_key("Blue Dream", None, "flower", 1) != keys.item_key("Blue Dream", None, "flower", 2)
    assert keys.item_key("Blue Dream", None, "flower", 1) == keys.item_key("Blue dream", None, "flower", 1)


@given(st.text(max_size=60), st.text(max_size=30) | st.none())
def test_any_text_has_a_key_and_words(name: str, brand: str | None) -> None:
    assert keys.item_key(name, brand, "flower", 1) == keys.item_key(name, brand, "flower", 1)
    assert all(word and word.isalnum() for word in words(name))


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
    assert keys.spellings(word) & keys.spellings(typed)


@pytest.mark.parametrize(
    ("a", "b"), [("blue", "blue"), ("blue", "bleu2"), ("blue", "green"), ("blue", "eulb"), ("ab", "abcd")]
)
def test_what_is_the_same_or_further_apart_is_not(a: str, b: str) -> None:
    assert not is_one_error_apart(a, b)
