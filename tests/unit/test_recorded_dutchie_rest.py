"""Other real answers: cut-off bodies, store records, addresses, single products of other states. Expected values read off by hand."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from menuwatch.catalog.taxonomy.package import mass
from menuwatch.core.errors import BadPayload
from menuwatch.platforms.dutchie import answers
from menuwatch.platforms.dutchie.adapter import Dutchie, slug_of
from menuwatch.platforms.dutchie.normalize import ITEMS
from menuwatch.platforms.products import parse_instant


def read(folder: Path, name: str) -> bytes:
    path = folder / "dutchie" / name
    if not path.is_file():
        pytest.skip(f"{name} is not among the recorded answers")
    return path.read_bytes()


def test_truncated_body_says_so_and_keeps_the_bytes(recorded: Path) -> None:
    body = read(recorded, "on_truncated_body_2023-11-30.txt")
    with pytest.raises(BadPayload, match=r"truncated after 8,694 bytes") as caught:
        Dutchie().split(body)
    assert caught.value.kind == "truncated"
    assert caught.value.body == body


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.9, 0.999])
def test_a_page_cut_anywhere_is_truncated(recorded: Path, share: float) -> None:
    body = read(recorded, "on_filteredProducts_last_page_2023-11-29.json")
    with pytest.raises(BadPayload) as caught:
        Dutchie().split(body[: int(len(body) * share)])
    assert caught.value.kind == "truncated"


def test_michigan_product_mixed_units(recorded: Path) -> None:
    """The product was flattened by its finder; here it is put back into the shape of the wire, values untouched."""
    flat: dict[str, Any] = json.loads(read(recorded, "mi_flattened_product_2025-01-09.json"))
    child = {key: flat[key] for key in ("option", "quantity", "quantityAvailable", "kioskQuantityAvailable")}
    item = {
        **flat,
        "THCContent": {"unit": flat["THCContent_unit"], "range": flat["THCContent_range"]},
        "CBDContent": {"unit": flat["CBDContent_unit"], "range": flat["CBDContent_range"]},
        "measurements": {"netWeight": {"unit": "MILLIGRAMS", "values": flat["measurements_netWeight_values"]}},
        "POSMetaData": {"children": [child]},
        "brand": {"id": flat["brand_id"], "name": flat["brand_name"]},
    }
    made = ITEMS.normalize([msgspec.Raw(json.dumps(item).encode())])
    (product,) = made.products
    # `_id` is the finder's own, and `Prices` was exploded to one number: both are named, neither stops the product.
    assert {(w.field, w.fatal) for w in made.warnings} == {("_id", False), ("Prices", False)}
    assert product.provider_product_id == "67780e13f5c1ba88602a6bad"
    assert (product.stock_status, product.quantity, product.quantity_capped) == ("in_stock", 11, False)
    (variant,) = product.variants
    assert (variant.option, variant.weight_g, variant.price_rec, variant.price_per_g) == (
        "1g",
        Decimal(1),
        Decimal(60),
        Decimal("60.0000"),
    )
    assert product.thc is not None
    assert (product.thc.lo, product.thc.hi, product.thc.unit) == (Decimal("79.51"), Decimal("79.51"), "%")
    assert product.cbd is not None
    assert (product.cbd.lo, product.cbd.hi) == (Decimal(0), Decimal(0))
    assert [(c.value, c.unit) for c in product.cannabinoids] == [
        (Decimal("765.3"), "MILLIGRAMS_PER_GRAM"),
        (Decimal("3.4"), "PERCENTAGE"),
    ]
    assert product.extra["raw_options"] == ["1.0g"]
    assert product.extra["library_product_id"] == "64f90dd3f33ad6007f3005c1"
    assert product.extra["enterprise_product_id"] == "67781c7f4cd9e10007cbd035"
    assert product.extra["weight_rank"] == 1000
    assert product.specials == ()


# option, base, special, available, grams, special per gram: by hand
WASHINGTON_LAST = {
    "happy-time-mt-vernon::681555cec5ed15fae6815d17": [
        ("1g", "10", "7", 5, "1", "7.0000"),
        ("1/8oz", "35", "24.5", 5, "3.5", "7.0000"),
        ("1/4oz", "70", "49", 6, "7", "7.0000"),
        ("1/2oz", "130", "91", 5, "14", "6.5000"),
        ("1oz", "270", "162", 1, "28", "5.7857"),
    ],
    "happy-time-mt-vernon::69694aa74962669e5d3db6a3": [
        ("1/4oz", "40", "28", 2, "7", "4.0000"),
        ("1/2oz", "65", "45.5", 0, "14", "3.2500"),
        ("1oz", "130", "78", 0, "28", "2.7857"),
    ],
}


@pytest.mark.parametrize("key", WASHINGTON_LAST)
def test_washington_options_at_zero_stay_listed(recorded: Path, key: str) -> None:
    seen = json.loads(read(recorded, "wa_option_history_2026-06.json"))["products"][key]
    options = seen["history"][-1]["options"]
    item = {
        "id": key,
        "Name": seen["name"],
        "type": seen["category"],
        "Status": "Active",
        "Options": [o["option"] for o in options],
        "recPrices": [o["basePrice"] for o in options],
        "recSpecialPrices": [o["specialPrice"] for o in options],
        "POSMetaData": {"children": [{k: o[k] for k in ("option", "quantityAvailable")} for o in reversed(options)]},
    }
    (product,) = ITEMS.normalize([msgspec.Raw(json.dumps(item).encode())]).products
    assert [
        (v.option, v.price_rec, v.special_rec, v.quantity, v.weight_g, v.price_per_g) for v in product.variants
    ] == [(o, Decimal(b), Decimal(s), q, Decimal(g), Decimal(p)) for o, b, s, q, g, p in WASHINGTON_LAST[key]]
    assert [v.stock_status for v in product.variants] == [
        "in_stock" if row[3] else "oos" for row in WASHINGTON_LAST[key]
    ]
    assert product.stock_status == "in_stock"


def test_store_record_of_ajax(recorded: Path) -> None:
    (raw,) = answers.read_stores(read(recorded, "consumerDispensaries_tweed-ajax_2023.json"))
    store = answers.found_store(raw, "https://dutchie.com")
    assert store.platform_dispensary_id == "5ed80d3e5bec1100f0e9d957"
    assert store.slug == "tweed-ajax"
    assert (store.name_raw, store.name) == ("4K Cannabis ", "4K Cannabis")
    assert store.address == "75 Bayly St W, Ajax, ON L1S 7L7, Canada"
    assert (store.city, store.state, store.country) == ("Ajax", "ON", "Canada")
    assert store.timezone == "America/New_York", "US/Eastern by its present name"
    assert store.phone == "(289) 482-0464"
    assert (store.is_recreational, store.is_medical) == (True, False)
    assert store.enterprise_id == "08d52133-25de-471a-a690-6e0a940ee499"
    assert store.menu_url == "https://dutchie.com/dispensary/tweed-ajax"
    assert (store.latitude, store.longitude) == (43.8426826, -79.0211511), "the record has [longitude, latitude]"
    assert store.category_counts["Flower"] == 206
    assert store.category_counts["Edible"] == 224
    assert store.category_counts["Tincture"] == 1
    assert store.problem is None
    assert store.raw["chain"] == "mc-cannabis"
    assert not any("token" in key.lower() for key in store.raw)


def test_store_record_of_sault_ste_marie(recorded: Path) -> None:
    (raw,) = answers.read_stores(read(recorded, "consumerDispensaries_due-north-cannabis-co_2023.json"))
    store = answers.found_store(raw, "https://dutchie.com")
    assert store.platform_dispensary_id == "5ef5fb055eb50b00e392c351"
    assert (store.latitude, store.longitude) == (46.5110867, -84.29744649999999)
    assert (store.timezone, store.zipcode) == ("America/Toronto", "P6A 3Z9")
    assert store.name == "Due North Cannabis Co. (Churchill)"
    assert store.category_counts["Flower"] == 112
    assert store.category_counts["Accessories"] == 400


def test_every_dutchie_link_of_ontario_names_a_store(recorded: Path) -> None:
    sites = json.loads(read(recorded, "on_site_to_embed_2024.json"))
    links = [
        site["src"]
        for site in sites.values()
        if isinstance(site, dict) and site.get("src") and ("dutchie" in site["src"] or "embedded-menu" in site["src"])
    ]
    assert len(links) == 429
    unresolved = [link for link in links if slug_of(link) is None]
    assert unresolved == []
    by_hand = {
        "https://dutchie.com/api/v2/embedded-menu/602be64188f00800c9c45a5c.js": "602be64188f00800c9c45a5c",
        "https://dutchie.com/api/v2/embedded-menu/644c5cb6dbcb6f01de148411.js?chainLocations=true": "644c5cb6dbcb6f01de148411",
        "https://api.dutchie.com/api/v2/embedded-menu/625ef5b69937250088cfda97.js": "625ef5b69937250088cfda97",
        "https://dutchie.com/api/v2/embedded-menu/mind-flower.js?chainLocations=true": "mind-flower",
        "https://dutchie.com/api/v2/embedded-menu/qoJoJc6cgm3abt5dY.js": "qoJoJc6cgm3abt5dY",
        "https://dutchie.com/api/v2/embedded-menu/NqnNjmJkkCXMrHWjw.js?menuType=rec": "NqnNjmJkkCXMrHWjw",
        "//dutchie.com/api/v2/embedded-menu/5ea9b4c4f611e900b033ae2f.js": "5ea9b4c4f611e900b033ae2f",
        "../../api.dutchie.com/api/v2/embedded-menu/60a8115a5779b500a0d66315.js": "60a8115a5779b500a0d66315",
        "https://abovethecloudscannabis.com/wp-content/cache/min/1/api/v2/embedded-menu/5f722e483b805100af41339c.js"
        "?ver=1669658024": "5f722e483b805100af41339c",
        "https://cdn-dglge.nitrocdn.com/snheOCgBtUybzoVTKohgxkSuXVqRUTKn/assets/static/optimized/rev-75bd60c/"
        "dutchie.com/api/v2/embedded-menu/nitro-min-60f9a1c118c9fd00d35121e0.js": "60f9a1c118c9fd00d35121e0",
    }
    assert by_hand.keys() <= set(links)
    assert {link: slug_of(link) for link in by_hand} == by_hand
    assert Dutchie().slug_of("https://dutchie.com/embedded-menu/mind-flower") == "mind-flower"


def test_ids_of_seventeen_characters_are_ids(recorded: Path) -> None:
    found = json.loads(read(recorded, "ma_cnames_ids_2023.json"))
    ids = next(value for key, value in found.items() if "id" in key.lower() and isinstance(value, list))
    short = [i for i in ids if len(i) == 17]
    assert len(short) == 16
    for store_id in short:
        store = answers.found_store(
            msgspec.Raw(json.dumps({"id": store_id, "cName": "a", "name": "A"}).encode()), "https://x"
        )
        assert (store.platform_dispensary_id, store.problem) == (store_id, None)


def test_every_option_text_of_2548_products_is_read_or_left_alone(recorded: Path) -> None:
    rows = read(recorded, "dutchie_2548_products_fields.tsv").decode().splitlines()
    texts: set[str] = set()
    for row in rows:
        if row.startswith(("manualInventory.option\t", "POSMetaData.children.option\t")):
            listed = (
                row[row.index("[") : row.rindex("]") + 1]
                if "]" in row
                else row[row.index("[") :].rsplit(",", 1)[0] + "]"
            )
            texts.update(json.loads(listed))
    by_hand = {
        ".5g": "0.5",
        "0.025g": "0.025",
        "1/2oz": "14",
        "1/4oz": "7",
        "1/8oz": "3.5",
        "1gC": "1",
        "1oz": "28",
        "28.3g": "28.3",
        "3.5gC": "3.5",
        "N/A": None,
    }
    assert by_hand.keys() <= texts
    assert {text: mass(text) for text in by_hand} == {t: None if g is None else Decimal(g) for t, g in by_hand.items()}
    unread = {text for text in texts if mass(text) is None}
    assert not any(text.endswith(("g", "gC", "oz")) for text in unread)


def test_special_card_stamps_have_seven_digits_and_no_zone(recorded: Path) -> None:
    cards = json.loads(read(recorded, "specialMenuCards_2026-07-02.json"))
    stamps = [
        card[key]
        for store in cards["stores"]
        for card in store["cards"]
        for key in ("startStamp", "endStamp")
        if card[key]
    ]
    assert [parse_instant(stamp).isoformat() for stamp in stamps if parse_instant(stamp)] == [
        "2026-07-01T11:00:00+00:00",
        "2026-08-01T02:00:00+00:00",
    ]
