"""Sizes, and words that are alike."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.catalog.taxonomy.sizes import size_of
from menuwatch.catalog.taxonomy.text import is_one_error_apart
from menuwatch.storefront import search_words


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
    assert search_words.spellings(word) & search_words.spellings(typed)


@pytest.mark.parametrize(
    ("a", "b"), [("blue", "blue"), ("blue", "bleu2"), ("blue", "green"), ("blue", "eulb"), ("ab", "abcd")]
)
def test_what_is_the_same_or_further_apart_is_not(a: str, b: str) -> None:
    assert not is_one_error_apart(a, b)
