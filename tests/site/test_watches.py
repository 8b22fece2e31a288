"""Alerts of shoppers: asked for, confirmed, told once for each change, ended with all that was known."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
import structlog

from menuwatch.config.settings import Settings
from menuwatch.core.encryption import new_key
from menuwatch.storefront.watches import service as watches
from menuwatch.storefront.watches import store as shoppers
from menuwatch.storefront.watches.model import NewWatch
from menuwatch.storefront.watches.sender import WatchSender
from tests.api.shop import item
from tests.site.mailbox import Mailbox, mailbox
from tests.site.shop_pages import Front, Page

ATOM = "{http://www.w3.org/2005/Atom}"
ADDRESS = "somebody@example.com"


class Clock:
    def __init__(self) -> None:
        # Behind whatever the test does meanwhile.
        self.time = datetime.now(UTC) + timedelta(minutes=1)

    def now(self) -> datetime:
        return self.time


async def forget(front: Front, clock: Clock) -> None:
    """What the janitor does every hour."""
    async with front.shop.pool.connection() as conn:
        await shoppers.prune(conn, clock.now())


@pytest.fixture
async def box() -> AsyncIterator[Mailbox]:
    async with mailbox() as opened:
        yield opened


@pytest.fixture
def settings(tmp_path: Path, box: Mailbox) -> Settings:
    return Settings(
        home=tmp_path,
        public_url="http://menus.example",
        mail_url=box.url,
        secret_key=(new_key(),),
        alert_retry_seconds=60,
    )


async def at(front: Front, hours: float, price: float = 40, quantity: int | None = 5, store: int = 1) -> None:
    await front.crawl(store, hours, [item("1", options=[("1/8oz", price, quantity)]), item("2", "Other")])


@pytest.fixture
async def number(front: Front) -> int:
    await front.shop.store(city="Phoenix", state="AZ", latitude=33.4484, longitude=-112.0740)
    await at(front, 0)
    return await front.item("Blue Dream")


async def feed(front: Front, number: int, **fields: str) -> str:
    """Asks for a feed; returns its token."""
    answer = await front.post(f"/p/{number}/watch", **{"by": "feed", "reach": "any", **fields})
    assert answer.status_code == 303, answer.text
    return answer.headers["location"].removeprefix("/alerts/")


async def news(front: Front, token: str) -> list[str]:
    """Titles of a feed's news, the latest first."""
    answer = await front.http.get(f"/feeds/{token}.atom")
    assert answer.headers["content-type"].startswith("application/atom+xml")
    root = Xml.fromstring(answer.text)
    return [entry.findtext(f"{ATOM}title") or "" for entry in root.iter(f"{ATOM}entry")][:-1]


class TestFeeds:
    async def test_any_drop_is_told_once_and_a_deeper_one_again(self, front: Front, number: int) -> None:
        token = await feed(front, number, condition="any_drop")
        assert await news(front, token) == []
        for hours, price in ((4, 38), (8, 38), (12, 39.5), (16, 35)):
            await at(front, hours, price)
        assert await news(front, token) == [
            "Blue Dream is $35.00, down from $39.50",
            "Blue Dream is $38.00, down from $40.00",
        ]

    async def test_a_price_below_is_told_when_it_is_crossed(self, front: Front, number: int) -> None:
        token = await feed(front, number, condition="price_below", amount="35")
        for hours, price in ((4, 36), (8, 34), (12, 33), (16, 41), (20, 30)):
            await at(front, hours, price)
        assert await news(front, token) == ["Blue Dream is $30.00", "Blue Dream is $34.00"]

    async def test_back_in_stock_is_told_when_it_is(self, front: Front, number: int) -> None:
        await at(front, 4, quantity=0)
        token = await feed(front, number, condition="back_in_stock")
        await at(front, 8, quantity=0)
        assert await news(front, token) == []
        await at(front, 12, quantity=3)
        await at(front, 16, quantity=2)
        assert await news(front, token) == ["Blue Dream is back in stock at $40.00"]

    async def test_what_was_on_no_menu_comes_back(self, front: Front, number: int) -> None:
        await front.crawl(1, 4, [item("2", "Other")])
        token = await feed(front, number, condition="back_in_stock")
        await at(front, 8)
        assert await news(front, token) == ["Blue Dream is back in stock at $40.00"]

    async def test_another_store_may_bring_it(self, front: Front, number: int) -> None:
        token = await feed(front, number, condition="price_below", amount="30")
        other = await front.shop.store("other")
        await front.crawl(other, 0, [item("o1", options=[("1/8oz", 25, 1)])])
        assert await news(front, token) == ["Blue Dream is $25.00"]
        page = await front.page(f"/alerts/{token}")
        assert "Blue Dream is $25.00" in page.text
        assert "Other" in page.text

    async def test_a_store_or_a_place_is_all_that_counts(self, front: Front, number: int) -> None:
        at_store = await feed(front, number, condition="price_below", amount="30", reach="store-1")
        nearby = await feed(
            front, number, condition="price_below", amount="30", reach="near", near="85004", within="25"
        )
        far = await front.shop.store("far", city="Tucson", state="AZ", latitude=32.2226, longitude=-110.9747)
        await front.crawl(far, 0, [item("f1", options=[("1/8oz", 25, 1)])])
        assert await news(front, at_store) == []
        assert await news(front, nearby) == []
        close = await front.shop.store("close", city="Phoenix", state="AZ", latitude=33.45, longitude=-112.07)
        await front.crawl(close, 0, [item("c1", options=[("1/8oz", 27, 1)])])
        assert await news(front, at_store) == []
        assert await news(front, nearby) == ["Blue Dream is $27.00"]

    async def test_all_that_watch_are_told_some_at_a_time(
        self, front: Front, number: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("menuwatch.storefront.watches.service._BATCH", 2)
        reaches = [
            {"reach": "any"},
            {"reach": "store-1"},
            {"reach": "near", "near": "85004"},
            {"reach": "any"},
            {"reach": "any"},
        ]
        tokens = [await feed(front, number, condition="any_drop", **reach) for reach in reaches]
        await at(front, 4, 30)
        assert [await news(front, token) for token in tokens] == [["Blue Dream is $30.00, down from $40.00"]] * 5

    async def test_near_a_place_is_judged_also_when_its_store_is_shown_no_more(self, front: Front, number: int) -> None:
        token = await feed(front, number, condition="price_below", amount="39", reach="near", near="85004")
        await at(front, 4, 30)
        await front.rows("UPDATE dispensaries SET crawl_enabled = false RETURNING id")
        await front.index()
        await front.rows("UPDATE dispensaries SET crawl_enabled = true RETURNING id")
        await at(front, 8, 45)
        await at(front, 12, 20)
        assert await news(front, token) == ["Blue Dream is $20.00", "Blue Dream is $30.00"]

    async def test_one_that_nobody_reads_ends(self, front: Front, number: int) -> None:
        clock = Clock()
        read, never = [await feed(front, number, condition="any_drop") for _ in range(2)]
        await news(front, read)
        clock.time += timedelta(days=8)
        await forget(front, clock)
        await front.page(f"/alerts/{never}", status=404)
        await front.page(f"/alerts/{read}")
        clock.time += timedelta(days=51)
        await forget(front, clock)
        assert await news(front, read) == []
        clock.time += timedelta(days=2)
        await forget(front, clock)
        await front.page(f"/alerts/{read}", status=404)

    async def test_a_feed_is_kept_by_nobody_and_answers_that_nothing_changed(self, front: Front, number: int) -> None:
        token = await feed(front, number, condition="any_drop")
        answer = await front.http.get(f"/feeds/{token}.atom")
        assert answer.headers["cache-control"].startswith("private")
        again = await front.http.get(f"/feeds/{token}.atom", headers={"If-None-Match": answer.headers["etag"]})
        assert again.status_code == 304
        root = Xml.fromstring(answer.text)
        for name in ("id", "title", "updated", "author"):
            assert root.find(f"{ATOM}{name}") is not None
        assert (await front.http.get(f"/alerts/{token}")).headers["cache-control"] == "no-store"

    async def test_ending_it_deletes_it(self, front: Front, number: int) -> None:
        token = await feed(front, number, condition="any_drop")
        answer = await front.post(f"/alerts/{token}/stop")
        assert answer.headers["location"] == "/alerts/ended"
        assert await front.rows("SELECT count(*) FROM price_watches") == [(0,)]
        await front.page(f"/feeds/{token}.atom", status=404)

    async def test_only_a_hash_of_the_token_is_stored(self, front: Front, number: int) -> None:
        token = await feed(front, number, condition="any_drop")
        ((row,),) = await front.rows("SELECT to_jsonb(w)::text FROM price_watches w")
        assert token not in row


class TestMails:
    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    def post(self, front: Front, clock: Clock) -> WatchSender:
        return WatchSender(front.shop.pool, front.settings, clock=clock)

    async def ask(self, front: Front, number: int, **fields: str) -> Any:
        given = {"condition": "any_drop", "by": "mail", "reach": "any", "email": ADDRESS, **fields}
        return await front.post(f"/p/{number}/watch", **given)

    async def confirmed(self, front: Front, number: int, box: Mailbox, post: WatchSender, **fields: str) -> None:
        assert (await self.ask(front, number, **fields)).headers["location"] == "/alerts/sent"
        await post.send()
        path = box.link("/confirm")
        page = await front.page(path)
        assert "Confirm alert" in page.text
        assert (await front.post(path)).status_code == 303

    async def test_nothing_is_told_before_it_is_confirmed(
        self, front: Front, number: int, box: Mailbox, post: WatchSender
    ) -> None:
        await self.ask(front, number)
        await at(front, 4, 30)
        assert await post.send() == 1
        assert await post.send() == 0
        assert (box.to, box.mails[0]["subject"]) == ([ADDRESS], "Confirm your alert")

    async def test_a_change_is_mailed_once_with_a_way_out(
        self, front: Front, number: int, box: Mailbox, post: WatchSender, clock: Clock
    ) -> None:
        await self.confirmed(front, number, box, post)
        await at(front, 4, 30)
        clock.time += timedelta(hours=7)
        assert await post.send() == 1
        assert await post.send() == 0
        mail = box.mails[-1]
        assert mail["subject"] == "Blue Dream is $30.00, down from $40.00"
        assert f"http://menus.example/p/{number}-blue-dream" in box.text()
        stop = box.link("/stop")
        assert mail["list-unsubscribe"] == f"<http://menus.example{stop}>"
        assert mail["list-unsubscribe-post"] == "List-Unsubscribe=One-Click"
        # A mail program posts without saying where it comes from.
        answer = await front.post(stop, origin=None, **{"List-Unsubscribe": "One-Click"})
        assert answer.status_code == 303
        assert await front.rows("SELECT count(*) FROM price_watches") == [(0,)]
        assert (await front.post(stop, origin=None)).status_code == 303

    async def test_changes_in_short_succession_come_together(
        self, front: Front, number: int, box: Mailbox, post: WatchSender, clock: Clock
    ) -> None:
        await self.confirmed(front, number, box, post)
        clock.time += timedelta(hours=7)
        for hours, price in ((4, 38), (8, 36)):
            await at(front, hours, price)
        await post.send()
        assert box.mails[-1]["subject"] == "Blue Dream is $36.00, down from $38.00 (and 1 more)"
        await at(front, 12, 34)
        assert await post.send() == 0
        clock.time += timedelta(hours=7)
        assert await post.send() == 1
        assert len(box.mails) == 3

    async def test_a_server_that_refuses_is_tried_again(
        self, front: Front, number: int, box: Mailbox, post: WatchSender, clock: Clock
    ) -> None:
        box.refuse = 2
        await self.ask(front, number)
        for _ in range(3):
            assert await post.send() == 1
            clock.time += timedelta(hours=1)
        assert await post.send() == 0
        assert len(box.mails) == 1

    async def test_who_dies_with_a_mail_in_hand_leaves_it_to_others(
        self, front: Front, number: int, box: Mailbox, post: WatchSender, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await self.ask(front, number)

        async def dies(*_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as broken:
            broken.setattr("menuwatch.alerts.notify.send", dies)
            with pytest.raises(KeyboardInterrupt):
                await post.send()
        assert await post.send() == 0
        clock.time += timedelta(minutes=15)
        assert await post.send() == 1
        assert len(box.mails) == 1

    async def test_what_is_not_confirmed_is_forgotten(self, front: Front, number: int, clock: Clock) -> None:
        await self.ask(front, number)
        clock.time += timedelta(hours=47)
        await forget(front, clock)
        assert await front.rows("SELECT count(*) FROM price_watches") == [(1,)]
        clock.time += timedelta(hours=2)
        await forget(front, clock)
        assert await front.rows("SELECT count(*) FROM price_watches") == [(0,)]

    async def test_the_address_is_sealed_and_in_no_log(
        self, front: Front, number: int, box: Mailbox, post: WatchSender
    ) -> None:
        with structlog.testing.capture_logs() as logs:
            await self.confirmed(front, number, box, post)
        token = box.link("/confirm").split("/")[2]
        ((row,),) = await front.rows("SELECT to_jsonb(w)::text FROM price_watches w")
        for text in (row, str(logs)):
            assert ADDRESS not in text
            assert token not in text

    async def test_an_address_gets_few_mails_that_nobody_asked_for(
        self, front: Front, number: int, box: Mailbox, post: WatchSender
    ) -> None:
        answers = [
            await self.ask(front, number, email=address) for address in (ADDRESS, ADDRESS.upper(), ADDRESS, ADDRESS)
        ]
        assert [answer.status_code for answer in answers] == [303, 303, 303, 422]
        assert "too many alerts" in Page(answers[-1]).text
        assert await post.send() == 3

    async def test_at_the_same_moment_too(self, front: Front, number: int) -> None:
        answers = await asyncio.gather(*(self.ask(front, number) for _ in range(8)))
        assert sorted(answer.status_code for answer in answers) == [303] * 3 + [422] * 5
        assert await front.rows("SELECT count(*) FROM price_watches") == [(3,)]

    async def test_one_who_asks_for_many_addresses_keeps_nobody_else_out(self, front: Front, number: int) -> None:
        answers = [await self.ask(front, number, email=f"{n}@example.com") for n in range(11)]
        assert [answer.status_code for answer in answers] == [303] * 10 + [422]
        other = NewWatch(item_id=number, condition="any_drop", channel="mail", address=ADDRESS)
        async with front.shop.pool.connection() as conn:
            await watches.create(conn, other, front.settings)

    @pytest.mark.parametrize(
        "address",
        ["", "nobody", "a@b", "a@b.c", "a b@example.com", "a@example.com\nBcc: x@example.com", "a@example.com,b@example.com",
         "a@example.com?smtp=evil.example", "<a@example.com>", "a@" + "x" * 300 + ".com"],
    )  # fmt: skip
    async def test_what_is_no_address_is_said(self, front: Front, number: int, address: str) -> None:
        answer = await self.ask(front, number, email=address)
        assert answer.status_code == 422
        assert Page(answer).all("p", id="email-wrong")
        assert await front.rows("SELECT count(*) FROM price_watches") == [(0,)]

    async def test_names_break_out_of_no_mail(
        self, front: Front, box: Mailbox, post: WatchSender, clock: Clock
    ) -> None:
        store = await front.shop.store()
        name = "Evil\r\nBcc: x@example.com\r\n\r\nbody\u2028more"
        await front.crawl(store, 0, [item("1", name)])
        number = (await front.rows("SELECT id FROM storefront_items"))[0][0]
        await self.confirmed(front, number, box, post)
        await front.crawl(store, 4, [item("1", name, options=[("1/8oz", 20, 5)])])
        clock.time += timedelta(hours=7)
        await post.send()
        assert len(box.mails) == 2
        assert box.mails[-1]["bcc"] is None
        assert box.to == [ADDRESS, ADDRESS]


async def test_without_a_mail_server_only_feeds_are_offered(front: Front, number: int) -> None:
    # The settings are one object for the app and the test.
    object.__setattr__(front.settings, "mail_url", None)
    assert dataclasses.is_dataclass(front.settings)
    page = await front.page(f"/p/{number}-blue-dream")
    assert not page.all("input", name="email")
    answer = await front.post(f"/p/{number}/watch", condition="any_drop", by="mail", email=ADDRESS)
    assert answer.status_code == 422
    assert "This site does not offer “E-mail”" in Page(answer).text


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"condition": "never"}, "Choose an alert condition"),
        ({"condition": "price_below"}, "Enter a price such as"),
        ({"condition": "price_below", "amount": "cheap"}, "Enter a price such as"),
        ({"condition": "price_below", "amount": "50"}, "It already costs $40.00"),
        ({"condition": "back_in_stock"}, "It is already in stock"),
        ({"condition": "any_drop", "reach": "near", "near": "nowhere"}, "We couldn’t find “nowhere”"),
        ({"condition": "any_drop", "reach": "store-999"}, "That store is no longer listed"),
    ],
)
async def test_what_cannot_be_watched_is_said_and_what_was_typed_stays(
    front: Front, number: int, fields: dict[str, str], said: str
) -> None:
    answer = await front.post(f"/p/{number}/watch", by="feed", **{"reach": "any", **fields})
    assert answer.status_code == 422
    page = Page(answer)
    assert said in page.text
    if "amount" in fields:
        assert page.all("input", name="amount")[0]["value"] == fields["amount"]
    assert await front.rows("SELECT count(*) FROM price_watches") == [(0,)]
