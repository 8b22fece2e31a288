"""Names as the parser reads them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.matching.brand_names import KnownBrands, brand_core
from menuwatch.matching.model import Listing, Signature
from menuwatch.matching.names import sign
from menuwatch.matching.packages import Size, size_of, split
from menuwatch.matching.words import Kind, align


def read(name: str, brand: str | None = "Acme", known: KnownBrands | None = None, **more: Any) -> Signature:
    listing = Listing(listing_id="1", store="s", name=name, brand=brand, **{"category": "flower", **more})
    return sign(listing, known or KnownBrands())


@pytest.mark.parametrize(
    "names",
    [
        ("Blue Dream", "Acme Blue Dream 3.5g", "Acme | Blue Dream | Flower | 1/8 oz", "Blue Dream (REC)"),
        ("Acme Smalls Flower 7g - Blue Dream", "Blue Dream (Small Buds)", "Blue Dream | Popcorn | 14g"),
        ("Blue Dream 5pk Pre-Rolls", "Acme - Blue Dream Pre-Roll [5 pack]"),
    ],
)
def test_spellings_of_one_product_have_one_signature(names: tuple[str, ...]) -> None:
    assert len({read(name).key for name in names}) == 1


def test_form_comes_from_the_name_before_the_menu() -> None:
    found = read("Blue Dream Live Resin Disposable Cart", category="vaporizer", subcategory="CARTRIDGES")
    assert found.form == ("disposable", "live_resin")
    assert read("Blue Dream", category="vaporizer", subcategory="live_resin_cartridge").form == (
        "cartridge",
        "live_resin",
    )


def test_ratios_are_in_lowest_terms_and_by_cannabinoid() -> None:
    gummies = {"category": "edible"}
    assert read("Peach 2:1 CBD Gummies", **gummies).ratio == "2:1"
    assert read("Peach CBD Gummies 100:50mg", **gummies).ratio == "2:1"
    assert read("1:10 Cherry THC:CBN", **gummies).ratio == read("10:1 Cherry CBN/THC", **gummies).ratio == "cbn10:thc1"


@pytest.mark.parametrize("brand", [None, "N/A", "none", "Unbranded", "-"])
def test_no_brand_is_no_brand(brand: str | None) -> None:
    found = read("Blue Dream 3.5g", brand)
    assert found.brand == ()
    assert found.house == "s"


def test_the_first_segment_is_the_brand_where_no_field_names_one() -> None:
    assert read("Press Labs - Berry Bar", None, category="edible").brand == ("press",)
    assert read("Blue Dream - 3.5g Flower", None).brand == ()


def test_a_known_brand_at_either_end_of_the_name_is_found() -> None:
    known = KnownBrands.of([("acme",), ("wild", "west")])
    for name in ("Acme Peach Gummies", "Peach Gummies | Acme", "Peach Gummies by Acme"):
        assert read(name, None, known, category="edible").brand == ("acme",)
    assert read("Wild West Peach", None, known, category="edible").brand == ("wild", "west")


def test_the_stores_own_name_gives_way_to_a_known_brand() -> None:
    known = KnownBrands.of([("acme",)])
    more: dict[str, Any] = {"store_name": "Green Door", "category": "edible"}
    assert read("Acme Peach Gummies", "Green Door", known, **more).brand == ("acme",)
    assert read("Peach Gummies", "Green Door", known, **more).brand == ("green", "door")


@pytest.mark.parametrize(
    "brands",
    [
        ("Acme", "ACME™", "The Acme Co.", "Acme Farms"),
        ("Doctor Solomon's", "Dr. Solomons"),
        ("Hill & Dale Equation", "Hill Dale Equations"),
    ],
)
def test_brands_differ_by_less_than_their_spelling(brands: tuple[str, ...]) -> None:
    assert len({brand_core(brand) for brand in brands}) == 1


@pytest.mark.parametrize("name", ["🍓🔥", "…", "!!!"])
def test_a_name_without_words_is_the_stores_own(name: str) -> None:
    one = sign(Listing(listing_id="1", store="a", seller="chain", name=name, brand=None))
    other = sign(Listing(listing_id="2", store="b", seller="chain", name=name, brand=None))
    assert one.key != other.key
    assert one.key == sign(Listing(listing_id="3", store="a", seller="chain", name=name, brand=None)).key


def test_a_long_name_is_read_to_its_fortieth_word() -> None:
    found = read("Blue Dream " + "very " * 500)
    assert found.words[:2] == ("blue", "dream")
    assert len(found.name) <= 200


def test_two_languages_are_words() -> None:
    assert {"fresa", "strawberry"} <= set(read("Gomitas de Fresa / Strawberry Gummies", category="edible").words)


@given(st.text(max_size=300), st.one_of(st.none(), st.text(max_size=60)))
def test_any_text_is_read_the_same_way_twice(name: str, brand: str | None) -> None:
    found = read(name, brand)
    assert found == read(name, brand)
    assert found.words
    assert bool(found.brand) != (found.house is not None)


@pytest.mark.parametrize(
    ("name", "field", "kind", "size"),
    [
        ("Blue Dream 1g Pod", "1/2 g", "vaporizer", Size((Decimal(1),))),
        ("Blue Dream Pod", "500mg", "vaporizer", Size((Decimal("0.5"),))),
        ("Blue Dream", "1/8oz", "flower", Size((Decimal("3.5"),))),
        ("Blue Dream", "eighth ounce", "flower", Size((Decimal("3.5"),))),
        ("Peach Gummies 100mg (10ct)", "", "edible", Size((Decimal(100), Decimal(1000)), 10)),
        ("20ct/5mg Peach Troches", "", "edible", Size((Decimal(5), Decimal(100)), 20)),
        ("10G's", "N/A", "flower", Size(())),
    ],
)
def test_the_names_size_wins(name: str, field: str, kind: str, size: Size) -> None:
    assert size_of(Listing(listing_id="1", store="s", name=name, sizes=(field,)), kind) == size


def test_sizes_that_are_not_stated_are_the_products_usual_one() -> None:
    hundred, each, none = Size((Decimal(100),)), Size((Decimal(5), Decimal(100)), 20), Size(())
    assert split([hundred, each, none]) == [(100, 20), (100, 20), (100, 20)]
    assert split([none, none]) == [None, None]


@pytest.mark.parametrize(
    ("a", "b", "kind"),
    [
        ("frt gshrs", "fruit gushers", Kind.ABBREVIATION),
        ("lcp", "lemon cherry pop", Kind.ABBREVIATION),
        ("gooberry", "goo berry", Kind.JOINED),
        ("rainbow beltz", "rainbow belts", Kind.SPELLING),
        ("grandaddy purple", "granddaddy purple", Kind.SPELLING),
    ],
)
def test_words_agree_in_their_usual_disguises(a: str, b: str, kind: Kind) -> None:
    for one, other in ((a, b), (b, a)):
        found = align(one.split(), other.split())
        assert (found.left, found.right, found.kind) == ((), (), kind)


@pytest.mark.parametrize(("a", "b"), [("lime", "lemon"), ("pie", "pop"), ("41", "45"), ("blue", "black")])
def test_other_words_do_not_agree(a: str, b: str) -> None:
    assert align([a], [b]).pairs == ()


@pytest.mark.parametrize("name", ["Peach Cake (Wild West)", "Peach Cake | (Wild West Genetics)"])
def test_a_known_brand_in_brackets_is_the_brand(name: str) -> None:
    found = read(name, None, KnownBrands.of([brand_core("Wild West"), brand_core("Wild West Genetics")]))
    assert found.brand[:2] == ("wild", "west")
    assert (found.words, found.aside) == (("peach", "cake"), ())


def test_a_brand_may_be_joined_with_the_device() -> None:
    known = KnownBrands.of([("acme",)])
    vape = {"category": "vaporizer", "subcategory": "Cartridge"}
    pod = read("AcmePod - Blue Dream - .5g", **vape)
    assert (pod.words, pod.form, pod.device_by_menu) == (("blue", "dream"), ("pod",), False)
    assert read("Blue Dream Acmepro Pod .5", None, known, category="accessory").kind == "vaporizer"
    assert read("Blue Dream Acmepro Pod .5", None, known, category="accessory").brand == ("acme",)
    assert read("AcmePro Pod Battery", category="accessory").kind == "accessory"
    assert read("AcmePro | Sport Battery", category="accessory").words == ("sport", "battery")


def test_initials_of_the_brand_before_the_name_say_nothing() -> None:
    assert read("MVE - Blue Dream", "Mesa Valley Extracts").words == ("blue", "dream")
    assert read("Sunset - SN Blue Dream", "Sunset").words == ("blue", "dream")
    assert read("OG Kush", "Orgabox").words == ("og", "kush")
    assert read("Orgabox OG Kush", "Orgabox").words == ("og", "kush")


def test_milligrams_of_two_cannabinoids_are_a_ratio() -> None:
    salve = {"category": "topical"}
    assert read("Bear Salve 100mg THC / 100mg CBD", **salve).ratio == "cbd1:thc1"
    assert read("Bear Salve CBD: 500 mg, THC: 250 mg", **salve).ratio == "cbd2:thc1"
    assert read("Bear Salve 100mg THC", **salve).ratio is None


def test_cream_is_a_form_on_the_skin_only() -> None:
    assert read("Pain Cream", category="topical").form == ("lotion",)
    assert read("Cookies & Cream Bar", category="edible").words == ("cookies", "cream", "bar")
    assert read("Wonder Salve", category="concentrate").kind == "topical"


def test_the_menus_own_category_tells_the_form() -> None:
    assert read("Root Beer", category="beverage").form == ("drink",)


@pytest.mark.parametrize(
    ("brand", "core"),
    [
        ("Enchanted Botanicals", ("enchanted",)),
        ("Enchanted Botanical", ("enchanted",)),
        ("Trap Packz", ("trap",)),
        ("Enchanted Pharms", ("enchanted", "pharm")),
        ("Botanicals", ("botanical",)),
        ("Cartridge Vape", ()),
        ("House Labs", ()),
    ],
)
def test_words_of_the_trade_at_the_end_of_a_brand_are_left_out_in_any_number(brand: str, core: tuple[str, ...]) -> None:
    assert brand_core(brand) == core
