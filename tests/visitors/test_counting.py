"""What is counted, and what is not."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from menuwatch.core.clock import ManualClock
from menuwatch.db.pool import Pool
from menuwatch.visitors.anonymous_marks import Kind, Visit
from menuwatch.web.visit_log import VisitLog
from menuwatch.web.visits import page_of, reason
from tests.visitors.conftest import (
    BROWSER,
    FIREFOX,
    LONDON,
    NOON,
    OSLO,
    PHOENIX,
    PROXY,
    TUCSON,
    UNKNOWN,
    Site,
    counting,
)

DAY = date(2026, 11, 20)


async def test_views_and_visitors_are_counted_by_place_and_kind_of_page(site: Site) -> None:
    for path in ("/", "/p/blue-dream", "/p/blue-dream", "/p/og-kush", "/s/sunny"):
        await site.look(path)
    await site.look("/p/blue-dream", peer=PHOENIX, user_agent=FIREFOX)  # somebody else at the same address
    await site.look("/search?q=secret", peer=TUCSON)
    await site.look("/b/acme", peer=LONDON)
    await site.look("/", peer=OSLO)
    await site.look("/about", peer=UNKNOWN)
    await site.look("/", peer="192.168.1.5")
    assert await site.days() == [
        (DAY, "", "", "", "home", 1, 1, 1),
        (DAY, "", "", "", "other", 1, 1, 1),
        (DAY, "GB", "England", "London", "brand", 1, 1, 1),
        (DAY, "NO", "", "", "home", 1, 1, 1),
        (DAY, "US", "Arizona", "Phoenix", "home", 1, 1, 1),
        (DAY, "US", "Arizona", "Phoenix", "product", 4, 2, 1),  # one of the two arrived at the home page
        (DAY, "US", "Arizona", "Phoenix", "store", 1, 1, 0),
        (DAY, "US", "Arizona", "Tucson", "search", 1, 1, 1),
    ]
    assert await site.rows("SELECT kind, page, views, uniques FROM visitor_pages ORDER BY kind, page") == [
        ("brand", "acme", 1, 1),
        ("product", "blue-dream", 3, 2),
        ("product", "og-kush", 1, 1),
        ("store", "sunny", 1, 1),
    ]
    assert site.log.noted("counted") == 11


async def test_a_visitor_is_one_over_many_batches_and_new_the_next_day(site: Site) -> None:
    for _ in range(3):
        await site.look("/")
        await site.log.step()
    site.clock.advance(timedelta(hours=12))
    await site.look("/")
    assert [row[0::5] for row in await site.days()] == [(DAY, 3), (DAY + timedelta(days=1), 1)]
    assert [row[6:] for row in await site.days()] == [(1, 1), (1, 1)]


async def test_who_comes_by_ipv6_is_one_whatever_the_second_half_of_the_address(site: Site) -> None:
    for peer in ("2a02:cf40::5", "2a02:cf40::dead:beef", "2a02:cf40:0:1::5"):
        await site.look("/", peer=peer)
    assert await site.days() == [(DAY, "NO", "", "", "home", 3, 2, 2)]


@pytest.mark.parametrize(
    ("headers", "result"),
    [
        ({"dnt": "1"}, "objected"),
        ({"sec_gpc": "1"}, "objected"),
        ({"sec_purpose": "prefetch"}, "prefetch"),
        ({"sec_purpose": "prefetch;prerender"}, "prefetch"),
        ({"purpose": "prefetch"}, "prefetch"),
        ({"x_moz": "prefetch"}, "prefetch"),
        ({"x_purpose": "preview"}, "prefetch"),
        ({"user_agent": None}, "bot"),
        ({"user_agent": ""}, "bot"),
        ({"user_agent": "curl/8.14.1"}, "bot"),
        ({"user_agent": "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"}, "bot"),
        ({"accept_language": None}, "bot"),
        ({"accept": "*/*"}, "bot"),
        ({"accept": None}, "bot"),
        ({"sec_fetch_dest": "iframe"}, "part"),
        ({"sec_fetch_dest": "empty"}, "part"),
        ({"x_fragment": "1"}, "part"),
        ({"hx_request": "true"}, "part"),
    ],
)
def test_who_objects_and_what_no_person_looks_at_is_not_counted(headers: dict[str, str | None], result: str) -> None:
    assert reason(_sent(headers)) == result


@pytest.mark.parametrize("headers", [{"dnt": "0"}, {"sec_gpc": "0"}, {"sec_fetch_dest": None}])
def test_who_does_not_object_is_counted(headers: dict[str, str | None]) -> None:
    assert reason(_sent(headers)) is None


def _sent(headers: dict[str, str | None]) -> Headers:
    """Those of a browser but for these; None: without it."""
    sent = {**BROWSER, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return Headers({name: value for name, value in sent.items() if value is not None})


async def test_who_objects_leaves_no_trace_but_a_number(site: Site) -> None:
    for headers in ({"dnt": "1"}, {"sec_gpc": "1"}, {"sec_purpose": "prefetch"}, {"user_agent": "curl/8.14.1"}):
        assert (await site.look("/", **headers)).status_code == 200
    assert site.log.waiting == 0
    assert {result: site.log.noted(result) for result in ("objected", "prefetch", "bot")} == {
        "objected": 2,
        "prefetch": 1,
        "bot": 1,
    }
    assert await site.rows("SELECT FROM visitor_salts") == []


async def test_only_pages_that_were_shown_count(site: Site) -> None:
    for path, method, status in (
        ("/other/data", "GET", 200),
        ("/other/gone", "GET", 404),
        ("/other/moved", "GET", 307),
        ("/other/posted", "POST", 200),
        ("/", "HEAD", 200),
        ("/fault", "GET", 500),
    ):
        assert (await site.look(path, method=method)).status_code == status
        assert site.log.waiting == 0, path


async def test_a_page_that_the_browser_has_already_is_a_view(site: Site) -> None:
    await site.look("/other/same")
    assert site.log.waiting == 1


async def test_the_name_of_a_page_is_made_storable(site: Site) -> None:
    await site.look("/b/Café %00 Crème")
    assert await site.rows("SELECT kind, page FROM visitor_pages") == [("brand", "Café  Crème")]
    await site.look("/p/%00%ff%F0%9F%8D%80" + "x" * 300)
    assert await site.rows("SELECT page FROM visitor_pages WHERE kind = 'product'") == [("�🍀" + "x" * 198,)]


async def test_where_a_visitor_is_is_believed_of_trusted_proxies_only(site: Site) -> None:
    for peer, forwarded in (
        (PHOENIX, LONDON),  # nobody's proxy: not believed
        (PROXY, LONDON),
        (PROXY, f"{OSLO}, {LONDON}"),  # what the client itself said before it
        (PROXY, f"{LONDON}, 10.0.0.2"),
        (PROXY, "unknown"),
    ):
        await site.look("/", peer=peer, x_forwarded_for=forwarded)
    assert [(row[1], row[5], row[6]) for row in await site.days()] == [("", 1, 1), ("GB", 3, 1), ("US", 1, 1)]


async def test_without_a_database_of_places_visits_are_counted_nowhere(pool: Pool) -> None:
    site = counting(pool, None, ManualClock(NOON))
    await site.look("/")
    await site.look("/", user_agent=FIREFOX)
    assert await site.days() == [(DAY, "", "", "", "home", 2, 2, 2)]


@pytest.mark.parametrize(
    ("path", "root", "page"),
    [
        ("/", "", (Kind.HOME, "")),
        ("/menus/", "/menus", (Kind.HOME, "")),
        ("/menus/p/a", "/menus", (Kind.PRODUCT, "a")),
        ("/p/a/b/", "", (Kind.PRODUCT, "a/b")),
        ("/stores", "", (Kind.SEARCH, "")),
        ("/stores/az", "", (Kind.SEARCH, "")),
        ("/deals", "", (Kind.SEARCH, "")),
        ("/search", "", (Kind.SEARCH, "")),
        ("/s/x", "", (Kind.STORE, "x")),
        ("/b/x", "", (Kind.BRAND, "x")),
        ("/watches/confirm/TOKEN", "", (Kind.OTHER, "")),  # what may be a secret is never kept
    ],
)
def test_the_address_says_what_a_page_is(path: str, root: str, page: tuple[Kind, str]) -> None:
    assert page_of(path, root) == page


@given(st.text(max_size=50), st.text(max_size=10))
def test_every_address_is_some_page(path: str, root: str) -> None:
    kind, _ = page_of(path, root)
    assert kind in Kind


class _Broken(VisitLog):
    def offer(self, visit: Visit) -> bool:
        raise RuntimeError("no")


async def test_a_counter_that_breaks_breaks_no_page(pool: Pool) -> None:
    answer = await counting(pool, None, ManualClock(NOON), _Broken).look("/")
    assert answer.status_code == 200
    assert answer.text.startswith("<!doctype html>")
