"""Confirming an alert over plain http: browsers say nothing there of where a form comes from but `Origin: null`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from menuwatch.config.settings import Settings
from menuwatch.core.encryption import new_key
from menuwatch.storefront.watches.sender import WatchSender
from tests.api.shop import item
from tests.site.mailbox import Mailbox, mailbox
from tests.site.shop_pages import Front


@pytest.fixture
async def box() -> AsyncIterator[Mailbox]:
    async with mailbox() as made:
        yield made


@pytest.fixture
def settings(tmp_path: Path, box: Mailbox) -> Settings:
    return Settings(home=tmp_path, public_url="http://menus.example", mail_url=box.url, secret_key=(new_key(),))


async def test_a_form_of_a_page_that_tells_nobody_its_address(front: Front, box: Mailbox) -> None:
    await front.crawl(await front.shop.store(), 0, [item("1")])
    number = await front.item("Blue Dream")
    asked = await front.post(
        f"/p/{number}/watch", condition="any_drop", by="mail", email="shopper@example.com", reach="any"
    )
    assert asked.status_code == 303, asked.text
    assert await WatchSender(front.shop.pool, front.settings).send() == 1
    link = box.link("/confirm")
    assert (await front.page(link)).answer.headers["referrer-policy"] == "no-referrer"
    assert (await front.http.post(link, headers={"Origin": "null"})).status_code == 303
    assert await front.rows("SELECT confirmed_at IS NOT NULL FROM price_watches") == [(True,)]
