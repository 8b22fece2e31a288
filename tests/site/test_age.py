"""The question for the visitor's age, where the operator wants one."""

from __future__ import annotations

import pytest

from tests.api.shop import item
from tests.site.shop_pages import Front


async def test_nobody_is_asked_by_default(front: Front) -> None:
    page = await front.page("/")
    assert "or older" not in page.text
    assert page.all("main", inert="") == []


async def test_a_visitor_answers_once(front: Front) -> None:
    object.__setattr__(front.settings, "minimum_age", 21)
    await front.crawl(await front.shop.store("near", city="Mesa", state="AZ"), 0, [item("1")])
    page = await front.page("/search?category=flower")
    assert "Are you 21 or older?" in page.text
    assert "Blue Dream" in page.text, "search engines read the page behind the question"
    assert len(page.all("main")) == len([one for one in page.all("main") if "inert" in one]) == 1
    assert page.answer.headers["cache-control"] == "no-store"
    (field,) = page.all("input", name="next")
    assert field["value"] == "/search?category=flower"
    no = await front.post("/age", answer="no", next="/")
    assert "You must be 21 or older" in no.text
    assert "set-cookie" not in no.headers
    yes = await front.post("/age", answer="yes", next="/search?category=flower")
    assert (yes.status_code, yes.headers["location"]) == (303, "/search?category=flower")
    assert "HttpOnly" in yes.headers["set-cookie"]
    after = await front.page("/search?category=flower")
    assert "or older" not in after.text
    assert after.answer.headers["cache-control"] == "private, max-age=60"
    object.__setattr__(front.settings, "minimum_age", 25)
    assert "Are you 25 or older?" in (await front.page("/")).text, "a younger age was confirmed"


async def test_pages_without_products_do_not_ask(front: Front) -> None:
    object.__setattr__(front.settings, "minimum_age", 21)
    assert "or older" not in (await front.page("/about")).text
    assert "or older" not in (await front.page("/nix", status=404)).text
    for path in ("/robots.txt", "/sitemap.xml"):
        assert "or older" not in (await front.http.get(path)).text


@pytest.mark.parametrize(
    "wanted", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "", "/a\nb"]
)
async def test_the_answer_leads_nowhere_else(front: Front, wanted: str) -> None:
    object.__setattr__(front.settings, "minimum_age", 21)
    answer = await front.post("/age", answer="yes", next=wanted)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    other = await front.post("/age", answer="yes", next="/", origin="https://evil.example")
    assert other.status_code == 403
