"""Groups of a block: evidence, vetoes, corrections, and no dependence on order."""

from __future__ import annotations

from itertools import combinations
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from menuwatch.matching.compare import block_of, compare
from menuwatch.matching.groups import group
from menuwatch.matching.model import Listing, Member, ReasonCode
from menuwatch.matching.names import sign


def member(name: str, *, store: str = "", ids: tuple[str, ...] = (), **more: Any) -> Member:
    fields = {"brand": "Acme", "category": "vaporizer", **more}
    signature = sign(Listing(listing_id=name, store=store or name, name=name, **fields))
    return Member(signature=signature, listings=1, places=frozenset({(store or name, "")}), platform_ids=frozenset(ids))


def together(*members: Member, said: bool | None = None) -> bool:
    a, b = sorted(one.signature.key for one in members[:2])
    found = group(members, {} if said is None else {(a, b): said})
    return found.groups[0] == found.groups[1]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Fruit Gushers Live Resin Cart", "Acme LLR Cartridge 1g - FRT GSHRS"),
        ("Gush Mintz (GSH MNTS) Disposable", "Acme All-In-One 1g - GSH MNTS"),
        ("Granddaddy Purple Cart", "Grandaddy Purple 510 Cartridge"),
        ("Acme™ Granddaddy Purple™ Cart", "Granddaddy Purple® Cart"),
        ("Lemon Anvil x Banana Anchor Cart", "Banana Anchor X Lemon Anvl Cartridge"),
    ],
)
def test_one_product_in_two_spellings(a: str, b: str) -> None:
    assert together(member(a), member(b))


@pytest.mark.parametrize(
    ("a", "b", "veto"),
    [
        ("Blue Dream Cart", "Blue Dream Disposable", ReasonCode.OTHER_FORM),
        ("Blue Dream Live Resin Cart", "Blue Dream Distillate Cart", ReasonCode.OTHER_FORM),
        ("Duct Tape #26 Cart", "Duct Tape #64 Cart", ReasonCode.OTHER_NUMBER),
        ("Mango Cart 1:1 THC:CBD", "Mango Cart", ReasonCode.OTHER_RATIO),
        ("Sour Gremlin Cart", "Sour Gremlin x Blue Dream Cart", ReasonCode.OTHER_WORDS),
        ("Banana Anchor x Lemon Anvil Cart", "Maple Comet x Lemon Anvil Cart", ReasonCode.OTHER_WORDS),
        ("Violet Engine x Honey Signal Cart", "Violet Engine x Sugar Lantern Cart", ReasonCode.OTHER_WORDS),
    ],
)
def test_vetoes(a: str, b: str, veto: ReasonCode) -> None:
    one, other = member(a), member(b)
    assert not together(one, other)
    assert compare(one.signature, other.signature, block_of([one.signature, other.signature])).veto is veto


def test_edibles_differ_by_strain_type_and_effect() -> None:
    edible = {"category": "edible"}
    assert not together(member("Peach Indica Gummies", **edible), member("Peach Sativa Gummies", **edible))
    assert not together(member("Peach Sleep Gummies", **edible), member("Peach Gummies", **edible))
    assert not together(member("Peach Suckers", **edible), member("Peach Gummies", **edible))
    assert together(member("Peach Suckers 30mg", **edible), member("Peach Lollipop", **edible))


def test_clothes_are_one_product_in_all_sizes_and_gear_differs_by_color() -> None:
    shirts = [member(f"Zia Polo - {size}", category="apparel", store="x") for size in ("S", "2XL", "(Large)")]
    assert set(group(shirts, {}).groups) == {0}
    tee = {"category": "accessory", "store": "x"}
    assert together(member("Zia T-Shirt (M) Red", **tee), member("Zia T-Shirt (XL) Red", **tee))
    assert not together(*(member(f"Zia T-Shirt (M) {color}", category="accessory") for color in ("Red", "Teal")))
    pens = [
        member(f"Slim Twist Pen Battery - {color}", category="accessory") for color in ("Ruby Red", "Mellow Yellow")
    ]
    assert not together(*pens)


def test_other_strains_or_flavors_are_other_products_whatever_else_they_share() -> None:
    edible = {"category": "edible"}
    a, b = "Pineapple Half Moon Gummy 50mg THC 100mg CBD", "Strawberry Half Moon Gummy 50mg THC 100mg CBD"
    assert not together(member(a, **edible), member(b, **edible))
    assert not together(member("Lemon Pop Rider Cart"), member("Grape Pop Rider Cart"))


STRAINS = ("Blue Dream", "Sour Diesel", "Cherry Pie", "Jack Herer", "Mimosa", "Gelato")


def test_a_line_tells_the_device_that_its_name_leaves_to_the_menu() -> None:
    line = [member(f"{strain} Tidal Disposable") for strain in STRAINS]
    menu = {"subcategory": "Cartridge"}
    found = group(
        [*line, member("Tidal Jack Herer .5g", **menu), member("Jack Herer Cart"), member("Runtz", **menu)], {}
    )
    groups = found.groups
    assert groups[6] == groups[3]
    assert groups[7] not in groups[:7]


def test_a_line_that_most_names_call_infused_is_infused() -> None:
    roll = {"category": "preroll"}
    line = [member(f"{strain} Fast Rod Infused Pre-Roll", **roll) for strain in STRAINS]
    others = [member("Fast Rod Mimosa 1g", **roll), member("Mimosa Pre-Roll", **roll)]
    groups = group([*line, *others], {}).groups
    assert groups[6] == groups[4]
    assert groups[7] not in groups[:7]


def test_one_store_does_not_list_one_product_twice() -> None:
    a, b = "Grandaddy Purple Cart", "Granddaddy Purple Cart"
    assert together(member(a), member(b))
    assert not together(member(a, store="s"), member(b, store="s"))


def test_catalog_ids_decide() -> None:
    a, b = "Grandaddy Purple Cart", "Granddaddy Purple Cart"
    assert not together(member(a, ids=("jane:1",)), member(b, ids=("jane:2",)))
    assert together(member("Purple Cart", ids=("jane:1",)), member("Granddaddy Cart", ids=("jane:1",)))


def test_an_id_joins_all_spellings_that_have_it_however_many() -> None:
    words = "Lemon Gelato Runtz Cherry Mint Haze Diesel Cookies Sherbet Guava Peach Melon Grape Skunk".split()
    members = [member(f"{a} {b} Cart", ids=("sku:chain/0417",)) for a, b in combinations(words, 2)]
    assert len(members) > 90
    assert set(group(members, {}).groups) == {0}
    one, other, third = sorted(members, key=lambda each: each.signature.key)[:3]
    said = {(one.signature.key, each.signature.key): False for each in (other, third)}
    found = dict(zip((each.signature.key for each in members), group(members, said).groups, strict=True))
    assert found[one.signature.key] != found[other.signature.key] == found[third.signature.key]
    assert len(set(found.values())) == 2


def test_people_decide_before_the_matcher() -> None:
    unlike = (member("Blue Dream Cart"), member("Sour Diesel Disposable"))
    alike = (member("Grandaddy Purple Cart"), member("Granddaddy Purple Cart"))
    assert together(*unlike, said=True)
    assert not together(*alike, said=False)


def test_a_listing_between_two_forms_joins_one_of_them() -> None:
    carts = [member("Blue Dream Cart"), member("Blue Dream Disposable"), member("Blue Dream 1g")]
    found = group(carts, {}).groups
    assert found[0] != found[1]
    assert found[2] in found[:2]


def test_without_a_brand_only_the_same_seller_matches() -> None:
    no_brand: dict[str, Any] = {"brand": None, "category": "flower"}
    assert not together(member("Blue Dream", store="a", **no_brand), member("Blue Dreams", store="b", **no_brand))


def test_links_give_reasons_and_a_confidence() -> None:
    found = group([member("Grandaddy Purple Cart"), member("Granddaddy Purple Cart")], {})
    (link,) = [one for one in found.links if one.to is not None]
    assert 0.5 < link.confidence <= 1
    assert ReasonCode.SPELLING in {reason.code for reason in link.reasons}


NAMES = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "Blue Dream",
                "Bl Drm",
                "Sour Diesel",
                "Sour Diesl",
                "Cherry Pie",
                "Cherry Pie #2",
                "LCP",
                "Lemon Cherry Pop",
            ]
        ),
        st.sampled_from(["Cart", "Disposable", "", "Live Resin Cart"]),
        st.sampled_from(["s", "t", "u"]),
    ),
    min_size=2,
    max_size=12,
    unique=True,
)


@settings(max_examples=60)
@given(NAMES, st.integers())
def test_groups_do_not_depend_on_the_order(names: list[tuple[str, str, str]], seed: int) -> None:
    every = [member(f"{name} {form}", store=store) for name, form, store in names]
    members = {one.signature.key: one for one in every}
    shuffled = list(members.values())
    Random(seed).shuffle(shuffled)

    def sets(given: list[Member]) -> set[frozenset[object]]:
        found: dict[int, set[object]] = {}
        for one, number in zip(given, group(given, {}).groups, strict=True):
            found.setdefault(number, set()).add(one.signature.key)
        return {frozenset(keys) for keys in found.values()}

    assert sets(list(members.values())) == sets(shuffled)
