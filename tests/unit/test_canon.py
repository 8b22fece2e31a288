"""The vocabulary of all platforms: kinds, strain types, packages, money per unit, texts."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.catalog.taxonomy import categories as kinds
from menuwatch.catalog.taxonomy.categories import CATEGORIES, SUBCATEGORIES, kind
from menuwatch.catalog.taxonomy.package import Package, mass, package
from menuwatch.catalog.taxonomy.strains import STRAINS, strain
from menuwatch.catalog.taxonomy.text import key, plain
from menuwatch.catalog.taxonomy.unit_price import effective, per, unit_prices


def D(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


@pytest.mark.parametrize(
    ("text", "grams", "pieces", "milligrams"),
    [
        ("1/8oz", "3.5", None, None),
        ("1/8 oz", "3.5", None, None),
        ("1/8 ounce", "3.5", None, None),
        ("⅛ oz", "3.5", None, None),
        ("½ ounce", "14", None, None),
        ("1/2 g", "0.5", None, None),
        ("3/10 g", "0.3", None, None),
        ("eighth", "3.5", None, None),
        ("An Eighth", "3.5", None, None),
        ("Half-Ounce", "14", None, None),
        ("quarter", "7", None, None),
        ("Ounce", "28", None, None),
        ("half gram", "0.5", None, None),
        ("3.5 g", "3.5", None, None),
        ("3.5\u202fg", "3.5", None, None),
        ("3.5 grams", "3.5", None, None),
        ("1g", "1", None, None),
        ("0.5g", "0.5", None, None),
        (".5g", "0.5", None, None),
        ("1gC", "1", None, None),
        ("28.3g", "28.3", None, None),
        ("1000g", "1000", None, None),
        ("100mg", "0.1", None, "100"),
        ("500 milligrams", "0.5", None, "500"),
        ("2 x 0.5g", "1", 2, None),
        ("2 × 0.5 g", "1", 2, None),
        ("pack of 2 × 0.5 g", "1", 2, None),
        ("5x0.5g", "2.5", 5, None),
        ("5pk x .7g", "3.5", 5, None),
        ("2 pack of 1g", "2", 2, None),
        ("5 pk (0.5g each)", "2.5", 5, None),
        ("5pk/3.5g", "3.5", 5, None),
        ("10pk/100mg", "0.1", 10, "100"),
        ("20pk/100mg", "0.1", 20, "100"),
        ("10 x 10mg", "0.1", 10, "100"),
        ("10ct/10mg each", "0.1", 10, "100"),
        ("2pk", None, 2, None),
        ("10 ct", None, 10, None),
        ("30 capsules", None, 30, None),
        ("pack of 5", None, 5, None),
        ("each", None, None, None),
        ("unit", None, None, None),
        ("N/A", None, None, None),
        ("", None, None, None),
        ("   ", None, None, None),
        ("1/8", None, None, None),
        ("3.5", None, None, None),
        ("12 fl oz", None, None, None),
        ("0g", None, None, None),
        ("0 x 1g", None, None, None),
        ("2 x 0g", None, 2, None),
        ("1/0oz", None, None, None),
        ("-1g", None, None, None),
        ("1e3g", None, None, None),
        ("28 g ounce", None, None, None),
        ("x" * 1000, None, None, None),
    ],
)
def test_package(text: str, grams: str | None, pieces: int | None, milligrams: str | None) -> None:
    assert package(text) == Package(D(grams), pieces, D(milligrams))


@given(st.text(max_size=60))
def test_any_text_says_something_positive_or_nothing(text: str) -> None:
    found = package(text)
    assert found.grams is None or (found.grams > 0 and found.grams.is_finite())
    assert found.pieces is None or found.pieces > 0
    assert found.milligrams is None or found.milligrams == found.grams * 1000


@given(
    st.integers(1, 999),
    st.integers(1, 9999),
    st.sampled_from(["{n} x {m}mg", "{n}x{m} mg", "{n}pk x {m}mg", "pack of {n} × {m}mg"]),
)
def test_a_pack_weighs_its_pieces(count: int, each: int, form: str) -> None:
    assert package(form.format(n=count, m=each)) == Package(Decimal(count * each) / 1000, count, Decimal(count * each))


@given(st.integers(1, 999), st.integers(1, 9999))
def test_behind_a_slash_stands_what_all_pieces_weigh(count: int, total: int) -> None:
    assert package(f"{count}pk/{total}mg") == Package(Decimal(total) / 1000, count, Decimal(total))


def test_a_mass_is_one_only_by_itself() -> None:
    assert mass("3.5g") == Decimal("3.5")
    assert mass("2 x 0.5g") is None
    assert mass("100mg") is None, "of an edible it is the content"


@given(st.integers(0, 10**6), st.integers(1, 10**6))
def test_money_per_unit_to_four_places(cents: int, amount: int) -> None:
    exact = round(Fraction(cents, 100) / Fraction(amount, 1000), 4)
    assert per(Decimal(cents) / 100, Decimal(amount) / 1000) == Decimal(exact.numerator) / Decimal(exact.denominator)


def test_unit_prices() -> None:
    price, gram = Decimal(30), Decimal(1)
    assert unit_prices(price, None, "10pk/100mg", dosed=True) == (None, 10, 100, 3, Decimal("0.3"))
    assert unit_prices(price, gram, "2 x 0.5g", dosed=False) == (30, 2, None, 15, None)
    assert unit_prices(price, gram, "500mg", dosed=False) == (30, None, None, None, None), "a mass, no content"
    assert unit_prices(None, gram, "5pk", dosed=False) == (None, 5, None, None, None)
    assert unit_prices(price, None, "each", dosed=False) == (None,) * 5


def test_the_price_that_counts() -> None:
    one, two, three, four = map(Decimal, (1, 2, 3, 4))
    assert effective(one, two, three, four) == two
    assert effective(one, None, three, four) == one
    assert effective(None, None, three, four) == four
    assert effective(None, None, three, None) == three
    assert effective(None, None, None, None) is None


@pytest.mark.parametrize(
    ("category", "subcategory", "meant"),
    [
        # Dutchie
        ("Flower", None, ("flower", None)),
        ("Flower", "premium", ("flower", None)),
        ("Flower", "infused-bud", ("flower", "infused")),
        ("Pre-Rolls", "singles", ("preroll", "single")),
        ("Pre-Rolls", "infused-pre-roll-packs", ("preroll", "infused")),
        ("Vaporizers", "cartridges", ("vaporizer", "cartridge")),
        ("Vaporizers", "cured-resin-cartridge", ("vaporizer", "cartridge")),
        ("Vaporizers", "live-resin", ("vaporizer", "live_resin")),
        ("Concentrate", "sugar", ("concentrate", "sugar")),
        ("Concentrate", "live-rosin", ("concentrate", "rosin")),
        ("Edible", "gummies", ("edible", "gummies")),
        ("Edible", "cookies", ("edible", "baked")),
        ("Beverage", None, ("edible", "beverage")),
        ("Tincture", "", ("tincture", None)),
        ("Oral", "capsules-tablets", ("oral", "capsules")),
        ("Topicals", "balms", ("topical", "balm")),
        ("Accessories", "batteries", ("accessory", "battery")),
        ("Accessories", "dab-tools", ("accessory", "dabbing")),
        ("Apparel", "t-shirts", ("apparel", None)),
        ("Seeds", None, ("cultivation", "seeds")),
        ("Clones", None, ("cultivation", "clones")),
        ("CBD", None, (None, None)),
        # Dutchie Plus
        ("PRE_ROLLS", "SINGLES", ("preroll", "single")),
        ("VAPORIZERS", "CARTRIDGES", ("vaporizer", "cartridge")),
        ("EDIBLES", "GUMMIES", ("edible", "gummies")),
        ("NOT_APPLICABLE", "NOT_APPLICABLE", (None, None)),
        # Weedmaps: words under other categories than Dutchie's
        ("Flower", "Pre Roll", ("preroll", None)),
        ("Flower", "Blunt Wrap", ("preroll", "blunt")),
        ("Gear", "Blunt Wrap", ("accessory", "papers")),
        ("Edibles", "Tincture", ("tincture", None)),
        ("Concentrates", "Sugar Leaf", ("concentrate", "sugar")),
        ("Vape Pens", "Batteries", ("accessory", "battery")),
        ("Gear", "Vaporizer", ("accessory", "device")),
        ("Gear", "Hoodies", ("apparel", "hoodies")),
        # Nobody knows
        (None, None, (None, None)),
        ("", "", (None, None)),
        ("Moon Dust", "Stardust", (None, None)),
        ("Edible", "Stardust", ("edible", None)),
        (None, "Gummies", ("edible", "gummies")),
    ],
)
def test_kind(category: str | None, subcategory: str | None, meant: tuple[str | None, str | None]) -> None:
    assert kind(category, subcategory) == meant


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_words_have_a_known_kind_or_none(category: str, subcategory: str) -> None:
    found = kind(category, subcategory)
    assert found.category is None or found.category in CATEGORIES


def test_kinds_have_one_spelling() -> None:
    """A subcategory belongs to what it is listed under, and every category of the table is one."""
    assert {found.category for found in kinds._SUBCATEGORIES.values()} <= CATEGORIES
    assert kinds.DOSED | kinds.WEIGHED <= CATEGORIES
    assert not kinds.DOSED & kinds.WEIGHED
    assert len(kinds._BROAD) <= len(kinds._CATEGORIES)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Pre-Rolls", "pre roll"),
        ("PRE_ROLL", "Pre Rolls"),
        ("Cookies", "cookie"),
        ("Gummies", "Gummy"),
        ("Brownies", "brownie"),
        ("Hoodies", "hoodie"),
        ("Batteries", "battery"),
        ("Balms & Salves", "balms and salves"),
        ("Ｆlower", "flower"),
    ],
)
def test_one_key_for_every_spelling(one: str, other: str) -> None:
    assert key(one) == key(other)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("Indica", "indica"), ("SATIVA", "sativa"), ("hybrid", "hybrid"), ("Indica-Hybrid", "indica_hybrid"),
        ("SATIVA_HYBRID", "sativa_hybrid"), ("High CBD", "cbd"), ("HIGH_CBD", "cbd"),
        ("N/A", None), ("THC", None), ("1 to 1", None), ("20 to 1", None), ("ONE_TO_ONE", None), ("", None), (None, None),
    ],
)  # fmt: skip
def test_strain(word: str | None, meant: str | None) -> None:
    assert strain(word) == meant


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>One</p><p>Two</p>", "One Two"),
        ("a<br/>b<br>c", "a b c"),
        ("<b>bo</b>ld", "bold"),
        ("THC &lt; 1 &amp; CBD &#8804; 2", "THC < 1 & CBD ≤ 2"),
        ("I <3 weed", "I <3 weed"),
        ("5 < 6 > 4", "5 < 6 > 4"),
        ("&nbsp;x\u202fy&nbsp;", "x y"),
        ("<!-- no -->yes", "yes"),
        ("<p></p>", ""),
        ("plain", "plain"),
    ],
)
def test_the_text_of_a_description(html: str, text: str) -> None:
    assert plain(html) == text


def test_the_lists_of_words_hold_just_those_that_something_means() -> None:
    tables = (*kinds._SUBCATEGORIES.values(), *kinds._OF_CATEGORY.values())
    assert {found.subcategory for found in tables} - {None} == SUBCATEGORIES
    assert {found.category for found in tables} | set(kinds._CATEGORIES.values()) == CATEGORIES
    words = ("Indica", "Sativa", "Hybrid", "Indica-Hybrid", "SATIVA_HYBRID", "High CBD")
    assert {strain(word) for word in words} == STRAINS
