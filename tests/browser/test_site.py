"""The public site as shoppers see it: without scripts, light and dark, wide and narrow, with nothing for axe to find."""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64encode
from collections.abc import Iterator

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Served, axe, fits, shot, watch

_TERPENES = (("Beta Myrcene", 0.81), ("Limonene", 0.44), ("Beta Caryophyllene", 0.39), ("Linalool", 0.12))
_CANNABINOIDS = (("THCA", 24.1), ("Delta-9 THC", 0.62), ("CBGA", 1.05))
_BATCH = {
    "batch_id": "HD-2026-014",
    "package_tag": "1A40D03000001CD000012345",
    "tested_on": "2026-01-05",
    "packaged_on": "2026-01-08",
    "expires_on": "2027-01-08",
    "certificate_url": "https://lab.test/certificate.pdf",
}


@pytest.fixture(scope="module")
def window(browser: Browser) -> Iterator[Page]:
    """A tab of somebody who has no login."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme="light")
    yield context.new_page()
    context.close()


@pytest.fixture
def shopper(window: Page) -> Iterator[Page]:
    complaints: list[str] = []
    watch(window, complaints)
    yield window
    assert not complaints, "\n".join(complaints)


def _an_item(server: Served) -> str:
    """A product that several stores have, or one that is on special."""
    ((number,),) = server.sql(
        "SELECT id FROM storefront_items WHERE stores > 0 ORDER BY stores DESC, on_special DESC, in_stock DESC, id LIMIT 1"
    )
    return f"/p/{number}"


def _give_details(server: Served) -> None:
    """Every offer of that product gets a batch, lab values and a sold count."""
    number = _an_item(server).removeprefix("/p/")
    terpenes = [{"name": name, "value": value, "unit": "%"} for name, value in _TERPENES]
    cannabinoids = [{"name": name, "value": value, "unit": "PERCENTAGE"} for name, value in _CANNABINOIDS]
    server.sql(
        "UPDATE catalog_products SET terpenes = %s, cannabinoids = %s, batch = %s, quantity = 25, quantity_capped = true,"
        " quantity_sold = 1284 WHERE id IN (SELECT product_id FROM storefront_offers WHERE item_id = %s)",
        [json.dumps(terpenes), json.dumps(cannabinoids), json.dumps(_BATCH), number],
    )


def _seen(shopper: Page, server: Served, path: str, name: str) -> None:
    shopper.goto(f"{server.address}{path}")
    expect(shopper.locator("h1")).to_be_visible()
    for scheme in ("light", "dark"):
        shopper.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        wrong = axe(shopper)
        assert not wrong, f"{path}, {scheme}:\n" + "\n".join(wrong)
        shot(shopper, f"site-{name}-{scheme}")
    shopper.emulate_media(color_scheme="light")
    shopper.set_viewport_size({"width": 380, "height": 800})
    assert fits(shopper), f"{path} is wider than 380 px"
    shot(shopper, f"site-{name}-narrow")
    shopper.set_viewport_size({"width": 1280, "height": 800})


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/", "home"),
        ("/?near=85004", "home-near"),
        ("/search", "search"),
        ("/search?category=flower&near=85004&sort=distance&stock=1", "search-near"),
        ("/search?q=xyzzy&max=cheap", "search-nothing"),
        ("/deals", "deals"),
        ("/deals?near=85004&sort=newest&within=100", "deals-near"),
        ("/stores", "stores"),
        ("/stores?near=85004&within=100", "stores-near"),
        ("/stores/AZ", "stores-state"),
        ("/about", "about"),
        ("/no/such/page", "not-found"),
        ("/alerts/sent", "alert-sent"),
    ],
)
def test_a_page_is_fit_to_be_seen(shopper: Page, server: Served, path: str, name: str) -> None:
    _seen(shopper, server, path, name)


def test_a_product_a_store_and_a_brand_are_fit_to_be_seen(shopper: Page, server: Served) -> None:
    _give_details(server)
    _seen(shopper, server, _an_item(server), "product")
    _seen(shopper, server, f"{_an_item(server)}?near=85004", "product-near")
    ((store,),) = server.sql("SELECT dispensary_id FROM storefront_stores ORDER BY offers DESC, 1 LIMIT 1")
    _seen(shopper, server, f"/s/{store}", "store")
    ((brand,),) = server.sql(
        "SELECT name FROM storefront_totals WHERE kind = 'brand' ORDER BY items DESC, name LIMIT 1"
    )
    _seen(shopper, server, f"/b/{brand}", "brand")
    _seen(shopper, server, f"/alerts/new?of=brand&brand={brand}", "alert-of-brand")
    # With scripts, the browser itself can be notified.
    expect(shopper.get_by_label("Notification in this browser")).to_be_visible()


def test_it_works_without_scripts_from_a_search_to_an_alert(browser: Browser, server: Served) -> None:
    context = browser.new_context(java_script_enabled=False, viewport={"width": 380, "height": 800})
    page = context.new_page()
    page.goto(server.address)
    ((name,),) = server.sql(
        "SELECT split_part(name, ' ', 1) FROM storefront_items WHERE in_stock > 0 AND name ~ '^[A-Z][a-z]{3,} ' ORDER BY id LIMIT 1"
    )
    page.get_by_label("What are you looking for?").fill(name)
    page.get_by_role("button", name="Search").click()
    expect(page.locator("h1")).to_contain_text(name)
    page.get_by_role("link", name=re.compile("^Filters")).click()
    page.get_by_role("link", name=re.compile("^In stock")).first.click()
    expect(page.get_by_role("list", name="Active filters")).to_contain_text("In stock")
    page.locator(".card .name a").first.click()
    expect(page.locator("h2#offers")).to_have_text(re.compile(r"^\d+ stores?$"))
    page.get_by_text("Set a price alert").click()
    page.get_by_label("price below").check()
    page.get_by_label("Price in dollars").fill("abc")
    page.get_by_role("button", name="Create alert").click()
    expect(page.get_by_text("Enter a price such as")).to_be_visible()
    expect(page.get_by_label("Price in dollars")).to_have_value("abc")
    page.get_by_label("Price in dollars").fill("0.5")
    expect(page.get_by_label("Notification in this browser")).to_be_hidden()
    page.get_by_label("RSS feed").check()
    page.get_by_role("button", name="Create alert").click()
    expect(page.get_by_role("heading", name="Alert set")).to_be_visible()
    feed = page.get_by_label("Your private feed").input_value()
    assert "/feeds/" in feed
    page.get_by_role("button", name="Delete alert").click()
    expect(page.get_by_role("heading", name="Alert deleted")).to_be_visible()
    context.close()


_SUBSCRIBE = """
Notification.requestPermission = async () => "granted";
PushManager.prototype.subscribe = async function (options) {
  window.asked = options;
  return { toJSON: () => (%s) };
};
"""
"""What the browser's maker would do: here no push service can be reached."""


def test_a_browser_is_subscribed_by_the_form(browser: Browser, server: Served) -> None:
    key = ec.generate_private_key(ec.SECP256R1()).public_key()
    point = key.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
    keys = {
        "p256dh": urlsafe_b64encode(point).decode().rstrip("="),
        "auth": urlsafe_b64encode(bytes(16)).decode().rstrip("="),
    }
    subscription = json.dumps({"endpoint": "https://push.example.net/send/1", "keys": keys})
    context = browser.new_context()
    context.add_init_script(_SUBSCRIBE % subscription)
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.removeprefix(server.address)))
    page.goto(f"{server.address}/alerts/new?of=search&q=haze")
    page.get_by_label("Notification in this browser").check()
    page.get_by_role("button", name="Create alert").click()
    expect(page.get_by_role("heading", name="Alert set")).to_be_visible()
    expect(page.get_by_text("This browser shows a notification")).to_be_visible()
    assert "/alerts/push-key" in asked
    worker = page.evaluate("async () => (await navigator.serviceWorker.getRegistration()).active.scriptURL")
    assert worker == f"{server.address}/push-worker.js"
    page.get_by_role("button", name="Delete alert").click()
    expect(page.get_by_role("heading", name="Alert deleted")).to_be_visible()
    context.close()


def test_a_browser_that_allows_no_notifications_says_so(browser: Browser, server: Served) -> None:
    context = browser.new_context()
    context.add_init_script('Notification.requestPermission = async () => "denied";')
    page = context.new_page()
    page.goto(f"{server.address}/alerts/new?of=search&q=haze")
    page.get_by_label("Notification in this browser").check()
    page.get_by_role("button", name="Create alert").click()
    expect(page.get_by_text("does not allow notifications from this site. Choose another way.")).to_be_visible()
    page.get_by_label("RSS feed").check()
    page.get_by_role("button", name="Create alert").click()
    expect(page.get_by_role("heading", name="Alert set")).to_be_visible()
    page.get_by_role("button", name="Delete alert").click()
    context.close()


def test_the_position_of_the_browser_is_filled_in_and_rounded(browser: Browser, server: Served) -> None:
    position = {"latitude": 33.448376, "longitude": -112.074036}
    context = browser.new_context(geolocation=position, permissions=["geolocation"])  # type: ignore[arg-type]
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for path in ("/stores", "/deals", "/search", "/", _an_item(server)):
        page.goto(f"{server.address}{path}")
        page.get_by_role("button", name="Use my location").click()
        page.wait_for_url(re.compile("near=33.45%2C-112.07"))
        expect(page.locator("main")).to_contain_text("this location (Phoenix, AZ)" if "/p/" not in path else "mi")
    assert not any("33.448" in url for url in asked)
    context.close()


def test_a_refused_position_is_explained(browser: Browser, server: Served) -> None:
    context = browser.new_context(permissions=[])
    context.add_init_script(
        "navigator.geolocation.getCurrentPosition = (_, fail) => fail({ code: 1, PERMISSION_DENIED: 1 });"
    )
    page = context.new_page()
    page.goto(f"{server.address}/stores")
    page.get_by_role("button", name="Use my location").click()
    expect(page.get_by_role("alert")).to_have_text(
        "Your browser blocked access to your location. Enter a city, ZIP or postal code instead."
    )
    context.close()


def test_the_map_is_reached_by_the_keyboard(shopper: Page, server: Served) -> None:
    shopper.goto(f"{server.address}/stores?near=85004&within=100")
    marks = shopper.locator("figure.map a")
    assert marks.count() >= 1
    shopper.get_by_role("button", name="Use my location").focus()
    shopper.keyboard.press("Tab")
    expect(marks.first).to_be_focused()
    shopper.keyboard.press("Enter")
    expect(shopper.locator("h1")).to_be_visible()


def test_the_keyboard_reaches_everything(shopper: Page, server: Served) -> None:
    shopper.goto(f"{server.address}/search")
    shopper.keyboard.press("Tab")
    expect(shopper.get_by_role("link", name="Skip to content")).to_be_focused()
    shopper.keyboard.press("Enter")
    assert shopper.evaluate("location.hash") == "#main"


def test_a_visit_leaves_nothing_behind(browser: Browser, server: Served) -> None:
    context = browser.new_context()
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for path in ("/", "/search?near=85004", _an_item(server)):
        page.goto(f"{server.address}{path}")
    assert context.cookies() == []
    assert page.evaluate("localStorage.length + sessionStorage.length") == 0
    assert all(url.startswith(server.address) for url in asked)
    context.close()
