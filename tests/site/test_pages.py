"""Pages: what they say, to people and to machines, whatever menus say."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any
from xml.etree import ElementTree as Xml

import pytest

from menuwatch.core.format import pluralize
from menuwatch.site import format as words
from menuwatch.storefront.watches import messages as watch_words
from tests.api.shop import item
from tests.site.shop_pages import Front
from tests.site.test_price_history import ago

SPACE = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
EVIL = """</script><script>alert(1)</script><img src=x onerror=alert(1)>" onmouseover="alert(1)' {{7*7}} {% raw %} & ]]> \u2028"""


def hostile() -> dict[str, Any]:
    """An item each of whose texts tries to get out of where it stands."""
    return item(
        "evil-1",
        EVIL,
        options=[(f"{EVIL[:20]}", 40, 5)],
        special=[30],
        brandName=EVIL,
        description=EVIL,
        brand={"id": "b", "name": EVIL, "description": f"Brand says {EVIL}"},
        strainType=EVIL,
        type=EVIL,
        subcategory=EVIL,
        Image="javascript:alert(1)",
        specialData={"saleSpecials": [{"specialId": "1", "specialName": EVIL, "specialType": "sale"}]},
        cannabinoidsV2=[{"cannabinoid": {"name": EVIL}, "value": 1.5, "unit": EVIL}],
    )


@pytest.fixture
async def evil(front: Front) -> Front:
    store = await front.shop.store(
        "evil",
        city=EVIL,
        state="AZ",
        address=EVIL,
        phone=EVIL,
        menu_url="javascript:alert(1)",
        timezone=EVIL,
        zipcode=EVIL,
    )
    await front.shop.execute("UPDATE dispensaries SET name = %s WHERE id = %s", [EVIL, store])
    await front.crawl(store, 0, [hostile()])
    return front


async def test_hostile_names_stay_text(evil: Front) -> None:
    ((number,),) = await evil.rows("SELECT id FROM storefront_items")
    ((store,),) = await evil.rows("SELECT id FROM dispensaries")
    ((brand,),) = await evil.rows("SELECT slug FROM brands")
    asked = await evil.http.get(f"/p/{number}")
    assert asked.status_code == 301
    shop = (await evil.http.get(f"/s/{store}")).headers["location"]
    paths = ["/", "/search", f"/search?q={EVIL}", asked.headers["location"], shop, f"/b/{brand}", "/stores", "/stores/AZ",
             f"/search?brand={EVIL}&size={EVIL}&near={EVIL}", f"/search?store={store}"]  # fmt: skip
    assert "About the brand: Brand says </script>" in (await evil.page(asked.headers["location"])).text
    for path in paths:
        page = await evil.page(path)
        assert page.foreign_scripts == [], path
        for tag, attributes in page.tags:
            assert not [name for name in attributes if name.startswith("on")], (path, tag)
            for name in ("href", "src", "action"):
                assert not (attributes.get(name) or "").lower().startswith(("javascript:", "data:")), (path, tag)
        assert not page.all("img", src="x"), path
        assert "49" not in page.text or "7*7" in page.text
        if page.linked is not None:
            json.dumps(page.linked)
    page = await evil.page(asked.headers["location"])
    assert page.linked["name"].split() == EVIL.split()


async def test_headers_let_nothing_in(front: Front) -> None:
    answer = await front.http.get("/")
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert "'unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "set-cookie" not in answer.headers


async def test_pages_hold_nothing_that_the_policy_forbids(evil: Front) -> None:
    for path in ("/", "/search", "/stores", "/about"):
        page = await evil.page(path)
        assert not page.all("style")
        assert not [tag for tag, attributes in page.tags if "style" in attributes]


async def test_a_product_says_who_has_it_for_how_much_and_since_when(front: Front) -> None:
    for slug, price, special, quantity in (
        ("near", 40, [], 5),
        ("far", 50, [36], 2),
        ("out", 20, [], 0),
        ("mute", 60, [], None),
    ):
        store = await front.shop.store(slug, timezone="America/Phoenix")
        # The struck price counts, because the store asked it a day before.
        for days, now in ((2, []), (1, special)):
            menu = item(f"of-{slug}", "Blue Dream", options=[("1/8oz", price, quantity)], special=now)
            await front.crawl(store, ago(days), [menu])
    page = await front.page(f"/p/{await front.item('Blue Dream')}-blue-dream")
    assert "4 stores" in page.text
    assert page.text.count("In stock") == 3  # the head and two offers
    assert "Out of stock" in page.text
    assert "Stock unknown" in page.text
    assert "Lowest price at Far" in page.text
    # 36 / 3.5 = 10.29; the regular price is struck through.
    assert "$10.29/g" in page.text
    assert '<s><span class="sr">regular price </span>$50</s>' in page.html
    offers = page.linked["offers"]
    assert (offers["lowPrice"], offers["highPrice"], offers["offerCount"]) == ("20.00", "60.00", 4)
    said = {one["seller"]["name"]: one.get("availability", "").rpartition("/")[2] for one in offers["offers"]}
    assert said == {"Near": "InStoreOnly", "Far": "InStoreOnly", "Out": "OutOfStock", "Mute": ""}
    assert page.linked["brand"]["name"] == "Acme"


async def test_a_store_that_is_far_away_is_not_called_the_nearest(front: Front) -> None:
    store = await front.shop.store("near", city="Mesa", state="AZ", latitude=33.415, longitude=-111.831)
    menu = [item("1"), *(item(f"g{n}", f"Grinder {n}", type="Accessories") for n in range(3))]
    await front.crawl(store, 0, menu)
    page = f"/p/{await front.item('Blue Dream')}-blue-dream"
    assert "Nearest at" in (await front.page(page + "?near=85201")).text
    far = (await front.page(page + "?near=10001")).text
    assert "Not within 25 miles of New York, NY" in far
    assert "Nearest at" not in far
    shop = await front.page(f"/s/{store}-near")
    assert shop.text.index("Flower") < shop.text.index("Accessories"), "gear comes last, however much there is"


async def test_the_history_tells_every_price_as_a_drawing_and_a_table(front: Front) -> None:
    store = await front.shop.store(timezone="America/Phoenix")
    # The drawing is of the last ninety days, so the story happens there.
    base = (datetime.now(UTC) - datetime(2026, 3, 1, 12, tzinfo=UTC)).total_seconds() / 3600 - 60
    for hours, price, special in ((0, 40, []), (8, 44, []), (16, 44, [33]), (24, 38, [])):
        await front.shop.execute("SELECT ensure_product_history_partition(now())")
        await front.crawl(store, base + hours, [item("1", options=[("1/8oz", price, 5)], special=special)])
    page = await front.page(f"/p/{await front.item('Blue Dream')}-blue-dream")
    ((_, chart),) = [(tag, found) for tag, found in page.tags if tag == "svg" and found.get("role") == "img"]
    label = chart["aria-label"] or ""
    assert "Lowest since" in label
    assert re.findall(r"(Last seen|Lowest|Highest).*? \$(\d+)", label) == [
        ("Last seen", "38"),
        ("Lowest", "33"),
        ("Highest", "44"),
    ]
    table = page.html[page.html.index("<tbody>") : page.html.index("</tbody>")]
    cells = [cell.split("</td>")[0] for cell in table.split("<td>")[1:]]
    # The store was not crawled since, and so far it is not known what it asks.
    assert [cells[row * 5 + 2] for row in range(5)] == ["–", "$38", "$33", "$44", "$40"]
    assert cells[2 * 5 + 3] == "$44"
    assert cells[4].startswith("Not observed")


async def test_an_old_or_bare_address_leads_to_the_present_one(front: Front) -> None:
    await front.crawl(await front.shop.store(), 0, [item("1", "Jack’s Über Cut")])
    number = await front.item("Jack’s Über Cut")
    for address in (f"/p/{number}", f"/p/{number}-something-else"):
        answer = await front.http.get(f"{address}?near=85004")
        assert answer.status_code == 301
        assert answer.headers["location"] == f"/p/{number}-jacks-uber-cut?near=85004"
    page = await front.page(f"/p/{number}-jacks-uber-cut")
    assert page.all("link", rel="canonical")[0]["href"] == f"http://menus.example/p/{number}-jacks-uber-cut"


async def test_stores_brands_and_states_have_one_address_each(front: Front) -> None:
    store = await front.shop.store(state="AZ")
    await front.crawl(store, 0, [item("1", brandName="Ünter & Co")])
    for old, now in (
        (f"/s/{store}-anything?near=85004", f"/s/{store}-green-leaf?near=85004"),
        ("/b/%C3%9Cnter", "/b/unter"),
        ("/stores/arizona", "/stores/AZ"),
    ):
        answer = await front.http.get(old)
        assert (answer.status_code, answer.headers["location"]) == (301, now)
        await front.page(now)


async def test_without_a_public_address_nobody_keeps_what_a_client_said_of_the_host(front: Front) -> None:
    await front.crawl(await front.shop.store(), 0, [item("1")])
    object.__setattr__(front.settings, "public_url", None)
    host = {"Host": "evil.example"}
    for path in ("/", "/search", "/b/acme", "/stores", f"/p/{await front.item('Blue Dream')}-blue-dream"):
        page = await front.page(path, headers=host)
        assert (page.all("link", rel="canonical")[0]["href"] or "").startswith("http://evil.example/")
        assert not [one for one in page.all("a") if "evil.example" in (one.get("href") or "")]
        assert page.answer.headers["cache-control"].startswith("private")
    for path in ("/robots.txt", "/sitemap.xml", "/sitemap-pages.xml", "/sitemap-items-0.xml"):
        answer = await front.http.get(path, headers=host)
        assert "http://evil.example/" in answer.text
        assert answer.headers["cache-control"].startswith("private")


@pytest.mark.parametrize(
    "path",
    ["/nix", "/p/1", "/p/x", "/p/99999999999999999999", "/p/1/2", "/s/5", "/s/99999999999", "/b/nobody", "/stores/ZZ",
     "/sitemap-x.xml", "/sitemap-items-x.xml", "/alerts/abc", "/feeds/abc.atom", "/static/x/y.css",
     "/p/%2e%2e%2fetc", "/alerts/a/confirm"],
)  # fmt: skip
async def test_what_is_not_there_is_a_helpful_404(front: Front, path: str) -> None:
    page = await front.page(path, status=404)
    assert page.all("input", name="q")
    assert page.all("meta", name="robots", content="noindex")


@pytest.mark.parametrize("path", ["/b/%00", "/stores/%00", "/b/%ff", "/p/1%00"])
async def test_what_no_database_takes_is_no_fault(front: Front, path: str) -> None:
    assert (await front.http.get(path)).status_code in (400, 404)


async def test_a_404_offers_to_search_for_what_its_address_speaks_of(front: Front) -> None:
    page = await front.page("/p/17-blue-dream", status=404)
    assert page.all("input", id="again")[0]["value"] == "blue dream"


async def test_what_costs_next_to_nothing_has_no_percentage_and_canadian_dollars_are_said(front: Front) -> None:
    store = await front.shop.store(state="ON", city="Toronto")
    for days, slip, half in ((2, [], []), (1, [0.01], [20])):
        menu = [
            item("1", "Slip", options=[("1/8oz", 40, 5)], special=slip),
            item("2", "Half", options=[("1/8oz", 40, 5)], special=half),
        ]
        await front.crawl(store, ago(days), menu)
    number = await front.item("Slip")
    for path in ("/search?q=slip", f"/p/{number}-slip"):
        text = (await front.page(path)).text
        assert "CA$0.01" in text
        assert "%" not in text.partition("Slip")[2].partition("THC")[0]
        assert "CA$40" not in text.partition("Slip")[2].partition("Category")[0]
    page = await front.page(f"/p/{await front.item('Half')}-half")
    assert "CA$20" in page.text
    assert "2 products, 2 in stock · from CA$20" in (await front.page("/b/acme")).text
    assert "50% off" in page.text
    assert page.linked["offers"]["priceCurrency"] == "CAD"


async def test_empty_pages_say_what_is_missing(front: Front) -> None:
    assert "No products yet" in (await front.page("/")).text
    nothing = await front.page("/search")
    assert "No products match these filters" in nothing.text
    assert nothing.facets == {}
    assert "No stores yet" in (await front.page("/stores")).text
    assert "No stores within 25 miles" in (await front.page("/stores?near=85004")).text


async def test_sitemaps_name_every_page_that_is_there(front: Front) -> None:
    store = await front.shop.store(state="AZ")
    await front.crawl(store, 0, [item("1", "Blue & <Dream>"), item("2", "Other", brandName="Kiln")])
    index = Xml.fromstring((await front.http.get("/sitemap.xml")).text)
    parts = [loc.text or "" for loc in index.iter(f"{SPACE}loc")]
    assert parts == ["http://menus.example/sitemap-pages.xml", "http://menus.example/sitemap-items-0.xml"]
    found = []
    for part in parts:
        listed = Xml.fromstring((await front.http.get(part)).content)
        found += [(url.findtext(f"{SPACE}loc") or "", url.findtext(f"{SPACE}lastmod")) for url in listed]
    for address, changed in found:
        assert (await front.http.get(address)).status_code == 200, address
        assert changed is None or datetime.fromisoformat(changed).tzinfo is not None
    paths = {address.removeprefix("http://menus.example") for address, _ in found}
    assert {
        "/",
        "/stores",
        f"/s/{store}-green-leaf",
        "/b/kiln",
        "/b/acme",
        f"/p/{await front.item('Other')}-other",
    } <= paths


async def test_robots_are_told_where_to_go(front: Front) -> None:
    text = (await front.http.get("/robots.txt")).text
    assert "Sitemap: http://menus.example/sitemap.xml" in text
    assert "Disallow: /alerts" in text


class TestBelowAPath:
    @pytest.fixture
    def prefix(self) -> str:
        return "/menus"

    async def test_every_link_stays_below_it(self, front: Front) -> None:
        store = await front.shop.store(state="AZ", city="Phoenix", latitude=33.45, longitude=-112.07)
        await front.crawl(store, 0, [item("1", special=[30])])
        number = await front.item("Blue Dream")
        for path in (
            "/",
            "/search?near=85004",
            "/deals",
            "/alerts/new?of=brand&brand=acme",
            "/stores",
            "/stores/AZ",
            f"/p/{number}-blue-dream",
            f"/s/{store}-green-leaf",
            "/b/acme",
            "/about",
        ):
            page = await front.page(path)
            ways = [
                found
                for tag, found in page.tags
                for found in (found.get("href"), found.get("src"), found.get("action"))
                if found
            ]
            for way in ways:
                assert way.startswith(("/menus/", "#", "http://menus.example/menus/", "tel:", "https://")), (path, way)
        styles = page.all("link", rel="stylesheet")[0]["href"] or ""
        assert (await front.http.get(styles.removeprefix("/menus"))).status_code == 200
        for old, now in (
            (f"/p/{number}", f"/p/{number}-blue-dream"),
            (f"/s/{store}-x", f"/s/{store}-green-leaf"),
            ("/b/Acme", "/b/acme"),
        ):
            answer = await front.http.get(old)
            assert (answer.status_code, answer.headers["location"]) == (301, f"/menus{now}")


@pytest.mark.parametrize(
    ("lo", "hi", "unit", "said"),
    [
        (None, None, None, ""), ("0", "0", "%", ""), ("21.5", "21.5", "%", "21.5%"), ("18", "24", "%", "18–24%"),
        ("0", "100", "mg", "100 mg"),
        ("20.04", "20.04", "%", "20%"), ("1", "250", "%", ""),
    ],
)  # fmt: skip
def test_potency_is_said_as_people_say_it(lo: Any, hi: Any, unit: Any, said: str) -> None:
    assert words.potency(lo, hi, unit) == said


@pytest.mark.parametrize(
    ("cents", "said"), [(None, "–"), (0, "$0"), (2500, "$25"), (2550, "$25.50"), (123456, "$1,234.56"), (5, "$0.05")]
)
def test_prices(cents: int | None, said: str) -> None:
    assert words.dollars(cents) == said


def test_names_say_nothing_twice() -> None:
    assert watch_words.called("Grinder | Assorted  Colors") == "Grinder, Assorted Colors"
    assert watch_words.called("Blue Fern by Kiln - Blue Fern by Kiln") == "Blue Fern by Kiln"
    assert watch_words.called("|") == "|"
    assert words.store_in("Green Leaf", "Phoenix") == "Green Leaf, Phoenix"
    assert words.store_in("Green Leaf of Phoenix", "PHOENIX") == "Green Leaf of Phoenix"


@pytest.mark.parametrize(("n", "said"), [(0, "0 stores"), (1, "1 store"), (2, "2 stores"), (1234, "1,234 stores")])
def test_plurals(n: int, said: str) -> None:
    assert pluralize(n, "store") == said


def test_a_store_s_clock_tells_its_own_time() -> None:
    moment = datetime(2026, 7, 1, 3, 5, tzinfo=UTC)
    assert words.local(moment, "America/Phoenix") == "Jun 30, 2026, 8:05 PM MST"
    assert words.local(moment, "America/New_York") == "Jun 30, 2026, 11:05 PM EDT"
    assert words.local(moment, "nowhere/at all") == "Jul 1, 2026, 3:05 AM UTC"
    assert words.local(moment, None) == "Jul 1, 2026, 3:05 AM UTC"


async def test_a_slash_too_many_leads_to_the_page_by_its_path(front: Front) -> None:
    for host in ("elsewhere.example", "elsewhere.example/x", "elsewhere.example?"):
        answer = await front.http.get("/about/?a=1", headers={"Host": host})
        assert (answer.status_code, answer.headers["location"]) == (308, "/about?a=1"), host
    assert (await front.http.get("/a%3Fb%23/")).headers["location"] == "/a%3Fb%23"
    assert "location" not in (await front.http.get("//evil.example/")).headers


async def test_each_size_has_the_currency_of_the_store_that_asks_least(front: Front) -> None:
    for slug, state, gram, quarter in (("toronto", "ON", 12, 50), ("phoenix", "AZ", 10, 53)):
        menu = [item("1", "Slip", options=[("1g", gram, 5), ("1/4oz", quarter, 5)])]
        await front.crawl(await front.shop.store(slug, state=state, city=slug.title()), 0, menu)
    page = await front.page(f"/p/{await front.item('Slip')}-slip")
    chips = page.html.partition('aria-label="Size"')[2].partition("</ul>")[0]
    assert re.findall(r">([\d.]+ g) <span class=\"n\">([^<]+)<", chips) == [("1 g", "$10"), ("7 g", "CA$50")]


async def test_stores_in_no_known_state_are_listed(front: Front) -> None:
    for slug, place in (("a", {"state": "AZ"}), ("b", {"state": None, "city": None})):
        await front.crawl(await front.shop.store(slug, **place), 0, [item("1")])
    assert "State unknown 1 store" in (await front.page("/stores")).text
    page = await front.page("/stores/elsewhere")
    assert "Stores in no known state" in page.text
    assert re.findall(r'<li class="store"><a href="/s/(\d+)', page.html) == ["2"]
    assert re.findall(r'<li class="store"><a href="/s/(\d+)', (await front.page("/stores/AZ")).html) == ["1"]


async def test_a_search_without_letters_and_digits_says_so(front: Front) -> None:
    await front.crawl(await front.shop.store(), 0, [item("1")])
    assert "“😀” has no letters or digits to search for." in (await front.page("/search?q=😀")).text
    assert "no letters" not in (await front.page("/search?q=28g")).text


async def test_the_home_page_shows_a_product_once(front: Front) -> None:
    store = await front.shop.store()
    for days, price, special in ((2, 40, []), (1, 30, [20])):
        menu = [
            item("1", "Saved", options=[("1/8oz", 40, 5)], special=special),
            item("2", "Fallen", options=[("1/8oz", price, 5)]),
        ]
        await front.crawl(store, ago(days), menu)
    page = (await front.page("/")).html
    drops = page.partition('id="drops"')[2].partition("</section>")[0]
    assert "Saved" in page.partition('id="drops"')[0]
    assert "Saved" not in drops
    assert "Fallen" in drops


async def test_a_store_states_its_data_quality_or_that_it_is_not_known(front: Front) -> None:
    store = await front.shop.store("green-leaf")
    await front.crawl(store, 0, [item("a", "Blue Dream")])
    await front.index()
    assert "Data quality not known yet" in (await front.page(f"/s/{store}-green-leaf")).text
    await front.shop.execute(
        "INSERT INTO quality_stores (dispensary_id, platform, crawled_at, crawls, bands, score, completeness)"
        " VALUES (%s, 'dutchie', now(), 9, '{}', 87, 0.9)",
        [store],
    )
    assert "Data quality 87 of 100" in (await front.page(f"/s/{store}-green-leaf")).text
