"""Who cannot ask for an alert: another site, a machine, whoever asks for very many, and who errs."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from menuwatch.site.limits import Limits
from tests.api.shop import item
from tests.site.shop_pages import Front, Page


@pytest.fixture
async def number(front: Front) -> int:
    await front.shop.store()
    await front.crawl(1, 0, [item("1")])
    return await front.item("Blue Dream")


@pytest.mark.parametrize("headers", [{"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {}])
async def test_another_site_can_ask_for_nothing(front: Front, number: int, headers: dict[str, str]) -> None:
    answer = await front.http.post(f"/p/{number}/watch", data={"condition": "any_drop", "by": "feed"}, headers=headers)
    assert answer.status_code == 403
    assert await front.rows("SELECT count(*) FROM price_watches") == [(0,)]


async def test_whoever_asks_for_very_many_is_asked_to_wait(front: Front, number: int) -> None:
    answers = [await front.post(f"/p/{number}/watch", condition="any_drop", by="feed") for _ in range(11)]
    assert [answer.status_code for answer in answers] == [303] * 10 + [422]
    assert "Too many alerts" in Page(answers[-1]).text


async def test_whoever_sends_slowly_keeps_no_connection_from_others(front: Front, number: int) -> None:
    pool, used = front.shop.pool, []

    async def slowly() -> AsyncIterator[bytes]:
        for piece in (b"condition=any_drop", b"&by=feed"):
            found = pool.get_stats()
            used.append(found["pool_size"] - found["pool_available"])
            yield piece

    headers = {"Origin": "http://menus.example", "Content-Type": "application/x-www-form-urlencoded"}
    answer = await front.http.post(f"/p/{number}/watch", content=slowly(), headers=headers)
    assert (answer.status_code, used) == (303, [0, 0])


def test_clients_are_counted_by_network_and_by_hour_and_day() -> None:
    time = 0.0
    limits = Limits(((2, 60), (3, 600)), clock=lambda: time)
    # Each has a network of its own, all of them in one that may four times as often.
    assert [limits.allows(f"net {n}", "wide") for n in range(9)] == [True] * 8 + [False]
    assert [limits.allows("a"), limits.allows("a"), limits.allows("a"), limits.allows("b")] == [True, True, False, True]
    time = 61
    assert [limits.allows("a"), limits.allows("a")] == [True, False]
    time = 601
    assert limits.allows("a")


async def test_a_machine_that_fills_in_everything_gets_nothing(front: Front, number: int) -> None:
    answer = await front.post(
        f"/p/{number}/watch", condition="any_drop", by="mail", email="a@example.com", website="http://spam.example"
    )
    assert answer.status_code == 303
    assert await front.rows("SELECT count(*) FROM price_watches") == [(0,)]


async def test_a_wrong_form_keeps_the_store_and_the_distance(front: Front, number: int) -> None:
    other = await front.shop.store("dear")
    await front.crawl(other, 0, [item("1", options=[("1/8oz", 60, 5)])])
    fields = {"condition": "price_below", "amount": "x", "by": "feed", "near": "85004", "within": "50"}
    page = Page(await front.post(f"/p/{number}/watch", reach=f"store-{other}", **fields))
    assert "checked" in page.all("input", name="reach", value=f"store-{other}")[0]
    assert "selected" in page.all("option", value="50")[0]
    assert page.all("input", id="watch-near")[0]["value"] == "85004"
