"""The catalogue over HTTP: what there is, what it was, what changed."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.api.shop import Shop, at, item


async def _id_of(shop: Shop, name: str) -> int:
    (found,) = (await shop.ask("/api/products", params={"q": name}))["items"]
    number: int = found["id"]
    return number


async def test_a_product_shows_what_the_menu_said_digit_by_digit(shop: Shop) -> None:
    store = await shop.store(state="AZ")
    await shop.crawl(
        store,
        0,
        [item("a", options=[("1/8oz", "40.10", 5), ("1oz", "205.00", 2)], special=[30.05, 150], description="Sweet.")],
    )
    (found,) = (await shop.ask("/api/products"))["items"]
    assert (found["dispensary_id"], found["store"], found["provider_product_id"]) == (store, "Green-Leaf", "a")
    assert (found["price"], found["price_rec"], found["price_rec_special"], found["price_med"]) == (
        30.05,
        40.1,
        30.05,
        None,
    )
    assert (found["stock_status"], found["is_in_stock"], found["quantity"]) == ("in_stock", True, 7)
    assert found["thc"] == {"lo": 21.5, "hi": 21.5, "unit": "%"}
    assert [v["option"] for v in found["variants"]] == ["1/8oz", "1oz"]
    assert found["first_seen_at"] == found["last_seen_at"] == found["updated_at"] == "2026-03-01T12:00:00Z"

    one = await shop.ask(f"/api/products/{found['id']}")
    assert {key: one[key] for key in found} == found
    assert one["description"] == "Sweet."
    text = (await shop.http.get(f"/api/products/{found['id']}")).text
    assert '"price_rec":40.10,' in text, "the digits that are stored, not those of a binary fraction"
    assert '"price_rec": 40.10' in text, "within the variants as well"
    assert (await shop.refused("/api/products/999", 404))["detail"] == "product 999 does not exist"


async def _names(shop: Shop, **params: Any) -> list[str]:
    return [found["name"] for found in (await shop.ask("/api/products", params=params))["items"]]


async def test_filters_and_orders(shop: Shop) -> None:
    first, second = await shop.store("one"), await shop.store("two")
    await shop.crawl(
        first,
        0,
        [
            item("a", "banana Kush", options=[("1g", 12, 3)], strainType="Indica"),
            item("b", "Apple Pie", options=[("1g", 30, 0)], brandName="Bakery", type="Edible"),
            item("c", "100% Pure_Oil", options=[("1g", 20, None)], special=[9], type="Concentrate", brandName=None),
        ],
    )
    await shop.crawl(second, 1, [item("a", "Cherry", options=[("1g", 50, 9)]), item("z", "Free Gift", options=[])])

    assert await _names(shop) == ["100% Pure_Oil", "Apple Pie", "banana Kush", "Cherry", "Free Gift"]
    assert await _names(shop, order="price") == ["100% Pure_Oil", "banana Kush", "Apple Pie", "Cherry", "Free Gift"]
    assert await _names(shop, order="-price") == ["Cherry", "Apple Pie", "banana Kush", "100% Pure_Oil", "Free Gift"]
    assert set((await _names(shop, order="updated"))[:2]) == {"Cherry", "Free Gift"}
    assert await _names(shop, store=second) == ["Cherry", "Free Gift"]
    assert await _names(shop, store=[first, second], category=["Edible", "Concentrate"]) == [
        "100% Pure_Oil",
        "Apple Pie",
    ]
    assert await _names(shop, brand="Bakery") == ["Apple Pie"]
    assert await _names(shop, strain_type="Indica") == ["banana Kush"]
    assert await _names(shop, stock="oos") == ["Apple Pie"]
    assert "100% Pure_Oil" in await _names(shop, stock="unknown")
    assert await _names(shop, price_min="9", price_max="12.00") == ["100% Pure_Oil", "banana Kush"]
    assert await _names(shop, q="KUSH") == ["banana Kush"]
    assert await _names(shop, q="100%") == ["100% Pure_Oil"]
    assert await _names(shop, q="%") == ["100% Pure_Oil"], "a percent sign is a percent sign"
    assert await _names(shop, q="e_o") == ["100% Pure_Oil"], "an underscore is an underscore"
    assert await _names(shop, q="\\") == []
    assert (await shop.ask(f"/api/stores/{second}/products", params={"order": "-price"}))["items"][0][
        "name"
    ] == "Cherry"
    await shop.refused("/api/stores/99/products", 404)

    brands = (await shop.ask("/api/brands"))["items"]
    assert [(b["name"], b["products"], b["in_stock"], b["stores"]) for b in brands] == [
        ("Acme", 3, 2, 2),
        ("Bakery", 1, 0, 1),
    ]
    categories = (await shop.ask("/api/categories", params={"store": first}))["items"]
    assert [(c["name"], c["products"], c["in_stock"]) for c in categories] == [
        ("Concentrate", 1, 0),
        ("Edible", 1, 0),
        ("Flower", 1, 1),
    ]
    assert [b["name"] for b in await shop.walk("/api/brands", limit=1)] == ["Acme", "Bakery"]


async def test_history_has_a_state_per_change_and_shows_its_gaps(shop: Shop) -> None:
    store = await shop.store()
    a, b = item("a", "Apple"), item("b", "Berry")
    await shop.crawl(store, 0, [a, b])
    await shop.crawl(store, 4, [a, b])  # nothing changes
    await shop.crawl(store, 8, [item("a", "Apple", options=[("1/8oz", 35, 5)]), b])  # cheaper
    await shop.crawl(store, 12, [b])  # absent
    await shop.crawl(store, 16, [item("a", "Apple", options=[("1/8oz", 35, 5)]), b])  # back, as it was
    await shop.crawl(store, 30, [item("a", "Apple", options=[("1/8oz", 35, 1)]), b])  # after 14 hours of silence
    number = await _id_of(shop, "Apple")

    history = await shop.ask(f"/api/products/{number}/history")
    states = [(s["from"], s["to"], s["price"], s["quantity"], s["present"]) for s in history["items"]]
    assert states == [
        ("2026-03-02T18:00:00Z", None, 35, 1, True),
        ("2026-03-02T04:00:00Z", "2026-03-02T04:00:00Z", 35, 5, True),
        ("2026-03-01T20:00:00Z", "2026-03-01T20:00:00Z", 35, 5, True),
        ("2026-03-01T12:00:00Z", "2026-03-01T16:00:00Z", 40, 5, True),
    ]
    assert history["items"][3]["prices"] == [
        {"option": "1/8oz", "price_rec": 40, "price_rec_special": None, "price_med": None, "price_med_special": None}
    ]
    assert history["items"][0]["stock"] == [
        {"option": "1/8oz", "stock_status": "in_stock", "quantity": 1, "capped": False}
    ]
    assert history["items"][0]["thc"] == {"lo": 21.5, "hi": 21.5, "unit": "%"}
    assert history["gaps"] == [
        {"from": "2026-03-02T18:00:00Z", "to": None, "reason": "unobserved"},
        {"from": "2026-03-02T04:00:00Z", "to": "2026-03-02T18:00:00Z", "reason": "unobserved"},
        {"from": "2026-03-01T20:00:00Z", "to": "2026-03-02T04:00:00Z", "reason": "absent"},
    ]

    pages, gaps, cursor = [], [], None
    while True:
        params = {"limit": 1} | ({"cursor": cursor} if cursor else {})
        page = await shop.ask(f"/api/products/{number}/history", params=params)
        pages += page["items"]
        gaps += [gap for gap in page["gaps"] if gap not in gaps]
        cursor = page["next"]
        if cursor is None:
            break
    assert (pages, gaps) == (history["items"], history["gaps"]), "walked in pages it is the same"

    part = await shop.ask(
        f"/api/products/{number}/history", params={"since": at(9).isoformat(), "until": at(20).isoformat()}
    )
    assert [s["from"] for s in part["items"]] == ["2026-03-02T04:00:00Z", "2026-03-01T20:00:00Z"]
    assert [g["reason"] for g in part["gaps"]] == ["unobserved", "absent"]

    snapshots = await shop.walk(f"/api/products/{number}/snapshots", limit=2)
    assert [(s["crawled_at"][5:16], s["price"], s["quantity"]) for s in snapshots] == [
        ("03-02T18:00", 35, 1),
        ("03-02T04:00", 35, 5),
        ("03-01T20:00", 35, 5),
        ("03-01T16:00", 40, 5),
        ("03-01T12:00", 40, 5),
    ]
    await shop.refused("/api/products/999/history", 404)
    await shop.refused("/api/products/999/snapshots", 404)


async def test_history_since_a_time_has_the_state_in_force_then(shop: Shop) -> None:
    """40 was seen last at 4 hours, and 35 first at 8: at 6 hours 40 is the price that is known."""
    store = await shop.store()
    for hours, price in ((0, 40), (4, 40), (8, 35), (12, 35)):
        await shop.crawl(store, hours, [item("a", "Apple", options=[("1/8oz", price, 5)]), item("b", "Berry")])
    await shop.crawl(store, 16, [item("b", "Berry")])
    number = await _id_of(shop, "Apple")

    async def prices(**hours: float) -> list[int]:
        params = {name: at(value).isoformat() for name, value in hours.items()}
        return [state["price"] for state in await shop.walk(f"/api/products/{number}/history", limit=1, **params)]

    assert await prices(since=0) == await prices(since=4) == await prices(since=6) == [35, 40]
    assert await prices(since=5, until=7) == [40]
    assert await prices(since=8) == [35], "at that moment the next state is in force"
    # Missed once, it is still on the menu: nothing says that the price ended.
    assert await prices(since=17) == [35]


async def test_three_misses_show_as_a_state_that_is_not_present(shop: Shop) -> None:
    store = await shop.store()
    a, b = item("a", "Apple"), item("b", "Berry")
    await shop.crawl(store, 0, [a, b])
    for hour in (1, 2, 3):
        await shop.crawl(store, hour, [b])
    number = await _id_of(shop, "Apple")
    history = await shop.ask(f"/api/products/{number}/history")
    newest = history["items"][0]
    assert (newest["present"], newest["stock_status"], newest["from"], newest["to"]) == (
        False,
        "oos",
        "2026-03-01T15:00:00Z",
        None,
    )
    assert newest["stock"] == [{"option": "1/8oz", "stock_status": "oos", "quantity": 0, "capped": False}]
    assert {"from": "2026-03-01T12:00:00Z", "to": "2026-03-01T15:00:00Z", "reason": "absent"} in history["gaps"]
    assert len((await shop.ask(f"/api/products/{number}/snapshots"))["items"]) == 1, "no crawl saw it after the first"
    assert await _names(shop, present="false") == ["Apple"]
    (change,) = (await shop.ask("/api/changes"))["items"]
    assert (change["stock_changed"], change["price_changed"], change["present"]) == (True, False, False)


async def test_changes_say_what_was_and_what_is(shop: Shop) -> None:
    store, other = await shop.store("one"), await shop.store("two")
    await shop.crawl(store, 0, [item("a", "Apple"), item("b", "Berry"), item("c", "Cherry")])
    await shop.crawl(other, 0.5, [item("a", "Anise")])
    await shop.crawl(
        store,
        1,
        [item("a", "Apple", special=[31.99]), item("b", "Berry", options=[("1/8oz", 40, 0)]), item("c", "Cherry")],
    )
    await shop.crawl(other, 2, [item("a", "Anise", options=[("1/8oz", 44, 2)])])

    changes = await shop.walk("/api/changes", limit=1)
    assert [(c["name"], c["price_changed"], c["stock_changed"]) for c in changes] == [
        ("Anise", True, True),
        ("Berry", False, True),
        ("Apple", True, False),
    ]
    apple = changes[2]
    assert (apple["before"]["price"], apple["after"]["price"]) == (40, 31.99)
    assert apple["after"]["prices"][0]["price_rec_special"] == 31.99
    berry = changes[1]
    assert (berry["before"]["stock_status"], berry["after"]["stock_status"]) == ("in_stock", "oos")
    assert (berry["before"]["stock"][0]["quantity"], berry["after"]["stock"][0]["quantity"]) == (5, 0)

    async def names(**params: Any) -> list[str]:
        return [c["name"] for c in (await shop.ask("/api/changes", params=params))["items"]]

    assert await names(kind="price") == ["Anise", "Apple"]
    assert await names(kind="stock", store=store) == ["Berry"]
    assert await names(since=at(1.5).isoformat()) == ["Anise"]
    assert await names(until=at(1.5).isoformat()) == ["Berry", "Apple"]


@pytest.mark.parametrize("order", ["name", "price", "-price", "updated"])
async def test_pages_neither_lose_nor_repeat_while_products_arrive(shop: Shop, order: str) -> None:
    # Names, prices and times that are equal or missing are told apart by the id alone.
    store, newcomer = await shop.store("one"), await shop.store("two")
    items = [item(str(n), f"Name {n % 3}", options=[("1g", 10 + n % 4, 1)] if n % 5 else []) for n in range(23)]
    await shop.crawl(store, 0, items)
    known = {found["id"] for found in (await shop.ask("/api/products", params={"limit": 200}))["items"]}
    assert len(known) == 23
    walked: list[int] = []
    cursor, pages = None, 0
    while True:
        page = await shop.ask(
            "/api/products", params={"limit": 4, "order": order} | ({"cursor": cursor} if cursor else {})
        )
        walked += [found["id"] for found in page["items"]]
        cursor, pages = page["next"], pages + 1
        if cursor is None:
            break
        grown = [item(f"new-{n}", f"Name {n % 4}", options=[("1g", 9 + n % 7, 1)]) for n in range(3 * pages)]
        await shop.crawl(newcomer, pages, grown)
    assert len(walked) == len(set(walked)), "nothing is repeated"
    assert known <= set(walked), "nothing is lost"


async def test_filters_in_the_words_of_all_platforms(shop: Shop) -> None:
    await shop.crawl(
        await shop.store("one"),
        0,
        [
            item("a", "Joint", type="Pre-Rolls", subcategory="infused", strainType="Indica-Hybrid"),
            item("b", "Bud", type="Flower", strainType="Indica"),
            item("c", "Gummy", type="Edible", subcategory="gummies", strainType="N/A"),
            item("d", "Odd", type="Something else"),
        ],
    )
    assert await _names(shop, category_canon="preroll") == ["Joint"]
    assert await _names(shop, category_canon=["flower", "edible"]) == ["Bud", "Gummy"]
    assert await _names(shop, category_canon=["flower", "edible"], subcategory_canon="gummies") == ["Gummy"]
    for order in ("name", "price", "-price", "updated"):
        assert await _names(shop, strain_canon=["indica_hybrid"], order=order) == ["Joint"]
    assert await _names(shop, subcategory_canon="troches") == []
    words = {"category_canon": "cultivation", "subcategory_canon": "live_resin", "strain_canon": "sativa_hybrid"}
    for name, allowed in words.items():
        detail = (await shop.refused(f"/api/products?{name}=Pre-Rolls", 422))["detail"]
        assert name in detail
        assert re.search(rf"\b{allowed}\b", detail.partition("use one of: ")[2]), name
    assert len(await shop.walk("/api/products", category_canon=["flower", "edible"], limit=1)) == 2
    answer = await shop.http.get("/api/products", params={"category_canon": ["flower", "edible"], "limit": 1})
    other = answer.links["next"]["url"].replace("category_canon=edible", "category_canon=preroll")
    assert "another list" in (await shop.refused(other, 400))["detail"]


async def test_products_and_stores_near_a_position(shop: Shop) -> None:
    """Santa Fe is 58.04 miles from the position (haversine formula, a sphere of 6,371 km)."""
    here = await shop.store("albuquerque", state="NM", latitude=35.0844, longitude=-106.6504)
    there = await shop.store("santa-fe", state="NM", latitude=35.6870, longitude=-105.9378)
    nowhere = await shop.store("nowhere", state="AZ")
    for n, store in enumerate((here, there, nowhere)):
        await shop.crawl(store, n, [item(f"p{n}", f"Product {n}")])

    async def found(path: str, **query: Any) -> list[int]:
        key = "id" if path == "/api/stores" else "dispensary_id"
        return sorted(one[key] for one in (await shop.ask(path, params=query))["items"])

    for path in ("/api/stores", "/api/products"):
        assert await found(path, near="35.08,-106.65") == [here]
        assert await found(path, near="35.08,-106.65", miles="57") == [here]
        assert await found(path, near="35.08,-106.65", miles="59") == [here, there]
        assert await found(path, near="0,0") == []
        assert await found(path, state=["NM"]) == [here, there]
        assert await found(path, near="35.08,-106.65", miles="59", state=["AZ"]) == []
        assert await found(path, limit="1000") == [here, there, nowhere]
    assert await found("/api/products", near="35.08,-106.65", miles="59", store=[there, nowhere]) == [there]


async def test_products_updated_since(shop: Shop) -> None:
    store = await shop.store("one")
    await shop.crawl(store, 0, [item("a", "Alpha"), item("b", "Beta")])
    await shop.crawl(store, 3, [item("a", "Alpha"), item("b", "Beta", options=[("1g", "5", 1)])])
    for since, names in ((at(0), ["Alpha", "Beta"]), (at(1), ["Beta"]), (at(3), ["Beta"]), (at(4), [])):
        rows = (await shop.ask("/api/products", params={"updated_since": since.isoformat()}))["items"]
        assert [row["name"] for row in rows] == names, since
