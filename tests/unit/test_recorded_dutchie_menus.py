"""Two real menu pages, product by product. The expected values were read off the recorded files by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

from menuwatch.catalog.model import Product, Special
from menuwatch.platforms.dutchie import answers
from menuwatch.platforms.dutchie.adapter import Dutchie
from menuwatch.platforms.dutchie.normalize import ITEMS
from menuwatch.platforms.model import Normalized


def D(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


def read(folder: Path, name: str) -> Normalized:
    path = folder / "dutchie" / name
    if not path.is_file():
        pytest.skip(f"{name} is not among the recorded answers")
    return ITEMS.normalize(Dutchie().split(path.read_bytes()))


@pytest.fixture(scope="module")
def pennsylvania(recorded: Path) -> dict[str, Product]:
    made = read(recorded, "pa_filteredProducts_page_2025-11-09.json")
    assert made.warnings == ()
    return {product.provider_product_id: product for product in made.products}


@pytest.fixture(scope="module")
def ontario(recorded: Path) -> dict[str, Product]:
    made = read(recorded, "on_filteredProducts_last_page_2023-11-29.json")
    assert made.warnings == ()
    return {product.provider_product_id: product for product in made.products}


SUGAR = ("25% OFF Concentrates! *NOT Stackable", "35% OFF Huny & House Brand Concentrates! *NOT Stackable")
TROCHE = ("25% OFF Ingestibles & Topicals! *NOT Stackable",)

# id, name begins with, category, option, grams, price, special price, in stock, THC, THC's unit, CBD %, specials
# fmt: off
PENNSYLVANIA = [
    ("68c9692673640e5340eba7a3", "Forza | Live Sugar", "Concentrate", "1gC", "1", "43", "27.95", 3, "89.744", "%", None, SUGAR),
    ("68d2f04ee9f7c81c44e28ee9", "Serving Tray (7x5)", "Accessories", "N/A", None, "12", None, 45, None, None, None, ()),
    ("68a4de2e6aabb081eca7475a", "Animal Mntz", "Flower", "1/8oz", "3.5", "34", None, 64, "24.423", "%", None, ()),
    ("689b58e95c0c4aacf49fa756", "Key Lime Kush | Live", "Concentrate", "1gC", "1", "43", "27.95", 2, "81.34", "%", None, SUGAR),
    ("68d2f1021d61fada63e6f386", "Volume Knob Grinder", "Accessories", "N/A", None, "22", None, 73, None, None, None, ()),
    ("68adbc4ee6c0d727962d141a", "Pink Lady | Live Sugar", "Concentrate", "1gC", "1", "43", "27.95", 8, "88.91", "%", None, SUGAR),
    ("686d1e1789382479f08d38ed", "Black Maple #22 X", "Flower", "1/4oz", "7", "120", None, 30, "50.792", "%", None, ()),
    ("669fd07a638cb2025479fe69", "OGKB 2.1 | Cured", "Vaporizers", ".5g", "0.5", "30", None, 33, "77.917", "%", None, ()),
    ("68234d218042ada75e6746ac", "Pura Vida | Live Sugar", "Concentrate", "1gC", "1", "43", "27.95", 35, "87.008", "%", None, SUGAR),
    ("663d4741919651a5598d13bf", "Dart Battery", "Accessories", "N/A", None, "30", None, 9, None, None, None, ()),
    ("68b73d6138becbe7444d657f", "California", "Flower", "1/8oz", "3.5", "34", None, 35, "21.355", "%", None, ()),
    ("670eb8135568a5fa3768f18c", "Perfect Cell | Cured", "Vaporizers", ".5g", "0.5", "30", None, 51, "80.829", "%", None, ()),
    ("66bf7a86c96d2bdc2c33c59e", "510 DL Pipe | Auto", "Accessories", "N/A", None, "40", None, 11, None, None, None, ()),
    ("658b4b06b6875700095791c7", "Pineapple Guava | 10mg", "Oral", "N/A", None, "25", "18.75", 22, "100", "mg", None, TROCHE),
    ("65cf85ea9ef2a9000998a14f", "Blueberry | 50mg THC", "Oral", "N/A", None, "52", "39", 27, "500", "mg", None, TROCHE),
    ("6876597d22e0b735957aff03", "Perfect Cell X D-O", "Flower", "1/4oz", "7", "120", None, 41, "54.805", "%", None, ()),
    ("6859c886e0a8447d132e4bdb", "510 DL 2.0 PRO | Mist", "Accessories", "N/A", None, "25", None, 7, None, None, None, ()),
    ("6761f0d6e75b04766bfa1803", "Sticky Grapes | Cured", "Vaporizers", ".5g", "0.5", "30", None, 16, "76.833", "%", None, ()),
    ("65f46dc7c64d8800094d7cc6", "Mixed Berry | 10mg", "Oral", "N/A", None, "25", "18.75", 3, "100", "mg", None, TROCHE),
    ("68bf4b1e46795b410569453d", "Pink Lady X Key Lime", "Flower", "1/4oz", "7", "120", None, 9, "54.071", "%", None, ()),
    ("6746324c7f144eb7c482aabd", "Sherbanger | Cured", "Vaporizers", ".5g", "0.5", "30", None, 32, "73.632", "%", "0.155", ()),
    ("685aaa848aff5c7e86d5a018", 'Double-Sided Metal Dab Tool | 6"', "Accessories", "N/A", None, "5", None, 33, None, None, None, ()),
    ("6733c61f53d1e013bb717a36", "Jellium | Cured Resin", "Vaporizers", ".5g", "0.5", "30", None, 61, "71.512", "%", None, ()),
    ("674f73236e9f7353245ff2fb", "Guava MTN x Strawberry", "Vaporizers", ".5g", "0.5", "30", None, 36, "76.894", "%", None, ()),
    ("683f5696b44cc2b1efc3f42c", "King Kut V2 | Electric", "Accessories", "N/A", None, "30", None, 19, None, None, None, ()),
]
# Money per gram, worked out on paper: 27.95 / 1, 34 / 3.5, 120 / 7, 30 / 0.5.
PENNSYLVANIA_PER_GRAM = {"1gC": "27.9500", "1/8oz": "9.7143", "1/4oz": "17.1429", ".5g": "60.0000", "N/A": None}

# id, name begins with, strain, [(option, price, available, capped at 25, status)], THC lo and hi in %, CBD lo and hi in %
ONTARIO = [
    ("64dfe16d2d563f0001e40599", "Slerple Milled", "N/A", [("7g", "31.85", 9, False, "in_stock")], "18", "24.5", "1", "1"),
    ("64554628b8bf460001eb7647", "Sonic Lemon Fuel", "N/A", [("3.5g", "28.24", 12, False, "in_stock")], "20", "27.5", "1", "1"),
    ("64e25cde53befe0001e07a86", "Sugar Cookies", "N/A", [("28g", "154.8", 4, False, "in_stock")], "28", "34", "5", "5"),
    ("635314660e3b90000c7ded25", "Sweet Berry Kush", "Indica", [("3.5g", "17.5", 25, True, "in_stock")], "20", "26", "0", "1"),
    ("62ed69f9a467f3000c6a551e", "TF Pink Kush", "Indica", [("1g", "10.05", 19, False, "in_stock")], "20", "26", "0", "1"),
    ("648ca66604c4b100017ab826", "Titanimal Cannabis", "N/A", [("3.5g", "35.02", 6, False, "in_stock")], "30", "36", "0", "1"),
    ("64b566a88009100001804e1c", "Top Crop Cannabis", "N/A", [("28g", "92.65", 25, True, "in_stock")], "21", "27", "0", "1"),
    ("64e902a8fce6c700018b03d2", "Triple Berry Supreme", "N/A", [("7g", "29.93", 16, False, "in_stock")], "20", "26", "0", "1"),
    ("64b566a88009100001804e1d", "Triple Burger", "N/A", [("3.5g", "29.89", 25, True, "in_stock")], "23", "29", "1", "1"),
    ("6532cdf77683170001bc95d5", "Tropicanna Cannabis", "N/A", [("3.5g", "22.59", 12, False, "in_stock")], "24", "30", "0", "2"),
    ("63094f792fec2c000da41e65", "Warlock", "Hybrid", [("1g", "8.87", 3, False, "in_stock")], "20", "26", "0", "1"),
    ("645520295196c00001ae432e", "Wedding Pie", "N/A", [("7g", "41.8", 25, True, "in_stock")], "21", "27", "1", "1"),
    ("63f930d6b7f17c0001cde558", "Wes' Coast Kush", "Indica",
     [("3.5g", "35.36", 25, True, "in_stock"), ("14g", "98.98", 0, False, "oos")], "28", "35", "0", "1"),
    ("64e8feee72ec91000173f516", "Ya Hemi Cannabis", "N/A", [("3.5g", "50.05", 4, False, "in_stock")], "22", "28", "0", "1"),
    ("6276bbc45e4af7000cd1a1b7", "33 Splitter", "Indica", [("3.5g", "35.02", 25, True, "in_stock")], "25", "31", "0", "1"),
    ("6143648c9b8ae1000109bacf", "Atomic Sour Grapefruit", "Indica", [("3.5g", "22.25", 11, False, "in_stock")], "22", "27", "1", "1"),
    ("61ec4b937ad9e5000c24378f", "Banana Cream", "Hybrid", [("7g", "35.7", 2, False, "in_stock")], "16", "22", "0", "1"),
    ("62dae5088c9f8c000c7452d0", "Berry Cream Puff", "Sativa",
     [("7g", "39.49", 8, False, "in_stock"), ("28g", "127.78", 0, False, "oos")], "20", "27", "0", "1"),
    ("625207f6c32f39000dfdaddc", "Billy's Pheno", "Hybrid", [("3.5g", "49.14", 16, False, "in_stock")], "23", "29", "0", "2"),
    ("606f5b9681ae4600018ec23a", "Black Widow CBD", "High CBD", [("3.5g", "19.44", 5, False, "in_stock")], "4", "7", "0", "13"),
    ("614356ed6ed9850001050e07", "CBD Runtz", "High CBD", [("3.5g", "29.59", 17, False, "in_stock")], "10.3", "10.3", "14.7", "14.7"),
    ("62e405ca7798cc000c615346", "Exotic Gas", "Hybrid", [("14g", "89.82", 1, False, "in_stock")], "21", "27", "0", "1"),
    ("6115467b14d728000194d678", "Exotic Gas", "Hybrid",
     [("3.5g", "30.23", 25, True, "in_stock"), ("28g", "149.15", 14, False, "in_stock")], "27", "31", "0", "1"),
    ("61ec58f75b1b0b000c4385ce", "Frosted Cherry", "Indica", [("7g", "35.7", 3, False, "in_stock")], "16", "22", "0", "5"),
    ("60cb800777d21b00017f0e93", "Funk Master", "Hybrid",
     [("7g", "27.97", 25, True, "in_stock"), ("14g", "55.88", 0, False, "oos")], "18", "24", "0.15", "0.15"),
    ("5ff4993caba248000338b08b", "Gnarberry", "Hybrid", [("7g", "27.97", 25, True, "in_stock")], "18", "24", "1", "1"),
    ("61c4b36753f996000dfbf866", "Indica 24", "Indica", [("7g", "27.11", 25, True, "in_stock")], "21", "27", "0", "1"),
    ("625351b9ccc347000cc4aefb", "Indica Cropped Harvest", "Indica", [("14g", "49.71", 11, False, "in_stock")], "23", "28", "1", "1"),
    ("619bb69cebb181000e5a57e0", "Larry the Purple Alien", "Indica", [("7g", "28.24", 25, True, "in_stock")], "0", "19.7", "0", "0"),
    ("61744c12d8a053000ddda07b", "Legendary Larry Grind", "Indica", [("7g", "34.68", 17, False, "in_stock")], "25", "31", "0", "2"),
    ("61ec503b5b1b0b000c4385bf", "Orange Layer Cake", "Sativa", [("7g", "35.7", 12, False, "in_stock")], "16", "22", "0", "1"),
    ("625349ad420a4c000c0b1acd", "Pineapple Express", "Sativa", [("7g", "35.7", 25, True, "in_stock")], "16", "22", "0", "1"),
    ("61140c79452547000138e8f5", "Premium CBD Flower", "High CBD", [("3.5g", "15", 22, True, "in_stock")], "0", "1", "12", "16"),
    ("62546dd56e791c000b9f44c2", "Sativa Cropped Harvest", "Sativa", [("14g", "49.71", 13, False, "in_stock")], "20", "25", "1", "1"),
    ("60ef4f1887423c000137b576", "Ultra Sour", "Sativa", [("28g", "103.95", 5, False, "in_stock")], "17", "20", "0", "0.15"),
    ("60ef5b27fa0fff000148053d", "Wedding Cake", "Hybrid", [("28g", "121.69", 6, False, "in_stock")], "20", "26", "0", "1"),
    ("61996d6707bc8d000c9ca01a", "Wedding Pie", "Indica",
     [("3.5g", "21.75", 22, True, "in_stock"), ("28g", "124.29", 3, False, "in_stock")], "22", "28", "0", "2"),
    ("62756ad88a29f9000ba79520", "Zsweet", "Indica", [("3.5g", "25.88", 25, True, "in_stock")], "22", "28", "0", "1"),
]
ONTARIO_GRAMS = {"1g": "1", "3.5g": "3.5", "7g": "7", "14g": "14", "28g": "28"}
# fmt: on


def test_pennsylvania_is_complete_and_in_order(pennsylvania: dict[str, Product]) -> None:
    assert list(pennsylvania) == [row[0] for row in PENNSYLVANIA]
    assert len(pennsylvania) == 25


@pytest.mark.parametrize("row", PENNSYLVANIA, ids=lambda row: row[0])
def test_pennsylvania_product(pennsylvania: dict[str, Product], row: tuple) -> None:
    product_id, name, category, option, grams, price, special, quantity, thc, unit, cbd, specials = row
    product = pennsylvania[product_id]
    assert product.name.startswith(name)
    assert product.category == category
    assert (product.price_rec, product.price_med) == (D(price), D(price))
    assert (product.price_rec_special, product.price_med_special) == (D(special), D(special))
    assert (product.stock_status, product.is_in_stock) == ("in_stock", True)
    assert (product.quantity, product.quantity_capped) == (quantity, False)
    assert [v.option for v in product.variants] == [option]
    variant = product.variants[0]
    assert (variant.price_rec, variant.price_med) == (D(price), D(price))
    assert (variant.special_rec, variant.special_med) == (D(special), D(special))
    assert (variant.quantity, variant.capped, variant.stock_status) == (quantity, False, "in_stock")
    assert variant.weight_g == D(grams)
    assert variant.price_per_g == D(PENNSYLVANIA_PER_GRAM[option])
    found = product.thc and (product.thc.lo, product.thc.hi, product.thc.unit)
    assert found == (thc and (D(thc), D(thc), unit))
    assert (product.cbd and (product.cbd.lo, product.cbd.hi)) == (cbd and (D(cbd), D(cbd)))
    assert tuple(s.name for s in product.specials) == specials
    assert all(s.kind == "percent" and s.menu_type == "both" for s in product.specials)


def test_pennsylvania_best_of_two_specials_is_the_price(pennsylvania: dict[str, Product]) -> None:
    forza = pennsylvania["68c9692673640e5340eba7a3"]
    # 43 less 25 % would be 32.25; less 35 %, the better one, it is 27.95.
    assert forza.price_rec_special == Decimal("27.95")
    assert forza.specials == (
        Special(
            name="25% OFF Concentrates! *NOT Stackable",
            kind="percent",
            value=Decimal(25),
            special_id="690e6788cacace00ae6df3e5",
            menu_type="both",
        ),
        Special(
            name="35% OFF Huny & House Brand Concentrates! *NOT Stackable",
            kind="percent",
            value=Decimal(35),
            special_id="690e6977fd316100a408f4df",
            menu_type="both",
        ),
    )


def test_pennsylvania_lab_rows_mark_the_total(pennsylvania: dict[str, Product]) -> None:
    flower = pennsylvania["68a4de2e6aabb081eca7475a"]
    assert [(c.name, c.value, c.unit, c.is_total) for c in flower.cannabinoids] == [
        ("THCA (Δ9-tetrahydrocannabinolic acid)", Decimal("24.423"), "PERCENTAGE", False),
        ("CBG (Cannabigerol)", Decimal("0.079"), "PERCENTAGE", False),
        ("CBGA (Cannabigerolic acid)", Decimal("0.901"), "PERCENTAGE", False),
        ('"TAC" - Total Active Cannabinoids', Decimal("25.403"), "PERCENTAGE", True),
    ]
    troche = pennsylvania["658b4b06b6875700095791c7"]
    assert [(c.value, c.unit, c.is_total) for c in troche.cannabinoids] == [
        (Decimal("0.1"), "MILLIGRAMS_PER_GRAM", False),
        (Decimal("3.33"), "MILLIGRAMS_PER_GRAM", False),
        (Decimal("0.01"), "MILLIGRAMS_PER_GRAM", False),
        (Decimal("0.02"), "MILLIGRAMS_PER_GRAM", False),
        (Decimal("0.01"), "MILLIGRAMS_PER_GRAM", False),
        (Decimal(100), "MILLIGRAMS", True),
    ]


def test_pennsylvania_texts_times_and_images(pennsylvania: dict[str, Product]) -> None:
    guava = pennsylvania["674f73236e9f7353245ff2fb"]
    assert guava.name_raw == "Guava MTN x Strawberry Vegas  | Cured Resin Liquid Diamond Cartridge | 500mg"
    assert guava.name == "Guava MTN x Strawberry Vegas | Cured Resin Liquid Diamond Cartridge | 500mg"
    assert (guava.brand_name_raw, guava.brand_name) == ("Natural Selections", "Natural Selections")
    assert (guava.subcategory, guava.strain_type, guava.status_raw) == ("cured-resin-cartridge", "Hybrid", "Active")
    # 1733260067943 ms after 1970, by hand: 2024-12-03 21:07:47.943 UTC.
    assert guava.platform_created_at == datetime(2024, 12, 3, 21, 7, 47, 943000, UTC)
    assert guava.platform_updated_at == datetime(2025, 11, 7, 22, 39, 54, 115000, UTC)
    assert guava.extra["aliases"] == [
        "guava-mtn-x-strawberry-vegas-liquid-diamonds-cartridge-500mg",
        "guava-mtn-x-strawberry-vegas-cured-resin-liquid-diamonds-cartridge-500mg",
        "strawberry-vegas-x-guava-mtn-cured-resin-liquid-diamond-cartridge-500mg",
    ]
    assert guava.extra["slug"] == "guava-mtn-x-strawberry-vegas-cured-resin-liquid-diamond-cartridge-500mg"
    forza = pennsylvania["68c9692673640e5340eba7a3"]
    image = "https://s3-us-west-2.amazonaws.com/dutchie-images/53fc9352f7e23755e46cc188d0feeebf"
    assert (forza.image_url, forza.images) == (image, (image,))
    assert forza.description is None
    assert forza.extra["slug"] == "forza-live-sugar-1g"
    assert "aliases" not in forza.extra, "its only past slug is the present one"
    assert forza.extra["effects"] == {"calm": 9, "happy": 8, "relaxed": 6, "energetic": 5}
    assert forza.extra["weight_rank"] == 1
    assert forza.extra["brand_id"] == "447e13a2-44d6-46ae-89e3-210ceb56bb17"
    assert forza.extra["dispensary_id"] == "621900cebbc5580e15476deb"
    assert "net_weight" not in forza.extra
    assert "raw_options" not in forza.extra
    assert len(pennsylvania["6859c886e0a8447d132e4bdb"].images) == 4
    assert pennsylvania["68d2f04ee9f7c81c44e28ee9"].strain_type == "N/A"


def test_pennsylvania_pager_figures(recorded: Path) -> None:
    body = (recorded / "dutchie" / "pa_filteredProducts_page_2025-11-09.json").read_bytes()
    found = answers.read(body)
    assert (len(found.items), found.total_count, found.total_pages) == (25, 814, 33)
    assert len(set(found.inspect(ITEMS.identity).ids)) == 25
    assert ITEMS.store_of(found.items) == "621900cebbc5580e15476deb"


def test_ontario_is_complete_and_in_order(ontario: dict[str, Product]) -> None:
    assert list(ontario) == [row[0] for row in ONTARIO]
    assert len(ontario) == 38


@pytest.mark.parametrize("row", ONTARIO, ids=lambda row: row[0])
def test_ontario_product(ontario: dict[str, Product], row: tuple) -> None:
    product_id, name, strain, variants, thc_lo, thc_hi, cbd_lo, cbd_hi = row
    product = ontario[product_id]
    assert product.name.startswith(name)
    assert (product.category, product.strain_type) == ("Flower", strain)
    assert [(v.option, v.weight_g, v.price_rec, v.quantity, v.capped, v.stock_status) for v in product.variants] == [
        (option, D(ONTARIO_GRAMS[option]), D(price), quantity, capped, status)
        for option, price, quantity, capped, status in variants
    ]
    assert [v.price_med for v in product.variants] == [D(price) for _, price, *_ in variants]
    assert all(v.special_rec is None and v.special_med is None for v in product.variants)
    assert product.price_rec == D(variants[0][1]), "the smallest size is the cheapest, and comes first"
    assert (product.price_rec_special, product.price_med_special) == (None, None)
    assert (product.stock_status, product.is_in_stock) == ("in_stock", True)
    assert product.thc is not None
    assert (product.thc.lo, product.thc.hi, product.thc.unit) == (D(thc_lo), D(thc_hi), "%")
    assert product.cbd is not None
    assert (product.cbd.lo, product.cbd.hi, product.cbd.unit) == (D(cbd_lo), D(cbd_hi), "%")
    assert product.specials == ()
    assert product.cannabinoids == ()
    assert product.platform_updated_at is None, "the key set of 2023 has no updatedAt"


def test_ontario_stock_by_option_text_not_by_place(ontario: dict[str, Product]) -> None:
    puff = ontario["62dae5088c9f8c000c7452d0"]
    # Its children begin with a 3.5g (0) that it does not offer; by place, 7g would have been sold out.
    assert puff.quantity == 8
    assert [v.price_per_g for v in puff.variants] == [Decimal("5.6414"), Decimal("4.5636")]


def test_ontario_sums_and_caps(ontario: dict[str, Product]) -> None:
    gas = ontario["6115467b14d728000194d678"]
    assert (gas.quantity, gas.quantity_capped) == (39, True)
    funk = ontario["60cb800777d21b00017f0e93"]
    assert (funk.quantity, funk.quantity_capped) == (25, True)
    pie = ontario["61996d6707bc8d000c9ca01a"]
    assert (pie.quantity, pie.quantity_capped) == (25, True)


def test_ontario_option_beats_net_weight(ontario: dict[str, Product]) -> None:
    cake = ontario["60ef5b27fa0fff000148053d"]
    assert cake.variants[0].weight_g == Decimal(28)
    assert cake.extra["net_weight"] == {"unit": "MILLIGRAMS", "values": [Decimal(3500)]}


def test_ontario_names_repeat_ids_do_not(ontario: dict[str, Product]) -> None:
    names = [product.name for product in ontario.values()]
    assert names.count("Exotic Gas") == 2
    assert names.count("Wedding Pie") == 2


def test_ontario_texts_and_units(ontario: dict[str, Product]) -> None:
    titanimal = ontario["648ca66604c4b100017ab826"]
    assert titanimal.name == "Titanimal Cannabis Flower by Truro - Titanimal Cannabis Flower by Truro"
    assert titanimal.thc is not None
    assert titanimal.thc.raw_unit == "MILLIGRAMS_PER_GRAM"
    hemp = ontario["61140c79452547000138e8f5"]
    assert (hemp.brand_name, hemp.extra["brand_record_name"]) == ("Whole Hemp", "WholeHemp")
    assert hemp.extra["effects"] == {"clear_mind": 9, "calm": 8, "relaxed": 5, "happy": 5}
    assert hemp.subcategory is None, 'an empty text: ""'
    assert ontario["61ec58f75b1b0b000c4385ce"].subcategory is None, "null"
    assert ontario["60cb800777d21b00017f0e93"].subcategory == "pre-ground"
    assert hemp.extra["weight_rank"] == 9999999
    # 1628703865764 ms after 1970, by hand: 2021-08-11 17:44:25.764 UTC.
    assert hemp.platform_created_at == datetime(2021, 8, 11, 17, 44, 25, 764000, UTC)


def test_products_survive_their_own_encoding(ontario: dict[str, Product]) -> None:
    product = ontario["62dae5088c9f8c000c7452d0"]
    again = msgspec.json.decode(msgspec.json.encode(product), type=Product)
    assert again.variants == product.variants
    assert again.thc == product.thc
