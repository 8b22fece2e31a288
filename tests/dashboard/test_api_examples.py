"""The API panel of each list: the request that it shows is answered, with the filters of the page."""

from __future__ import annotations

import re
import shlex
from html import unescape
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from menuwatch.dashboard.api_examples import LISTS
from tests.api.conftest import description


def _shown(page: str, name: str) -> str:
    (text,) = re.findall(rf'<code id="api-{name}">(.*?)</code>', page, re.DOTALL)
    return unescape(text)


def test_every_list_leads_to_an_operation_that_takes_its_filters() -> None:
    paths = description()["paths"]
    for screen, (path, names) in LISTS.items():
        base, _, query = path.partition("?")
        taken = {one["name"] for one in paths[base]["get"].get("parameters", ())}
        assert {*names.values(), *parse_qs(query)} <= taken, screen


@pytest.mark.parametrize(
    ("path", "query", "left_out"),
    [
        ("/tasks?q=role:payload_fetch+it's", {"q": ["role:payload_fetch it's"]}, []),
        ("/stores?freshness=stale&crawl=on&rows=25", {"freshness": ["stale"]}, ["crawl"]),
        ("/alerts/events?cursor=x", {}, []),
        ("/users/tokens", {"all": ["true"]}, []),
        ("/audit?actor=admin&kind=user", {"actor": ["admin"], "subject_kind": ["user"]}, []),
        ("/changes?since=2026-11-20&kind=price_down", {"since": ["2026-11-20T00:00:00Z"], "kind": ["price_down"]}, []),
        ("/changes?since=2026-11-20T14:30", {"since": ["2026-11-20T14:30:00Z"]}, []),
        ("/changes?since=all", {}, []),
    ],
)
async def test_the_request_has_the_filters_of_the_page(
    admin: httpx.AsyncClient, path: str, query: dict[str, list[str]], left_out: list[str]
) -> None:
    page = (await admin.get(f"/admin{path}")).text
    *_, url = shlex.split(_shown(page, "curl"))
    assert urlsplit(url).path == LISTS[path.partition("?")[0]][0].partition("?")[0]
    assert parse_qs(urlsplit(url).query) == query
    assert url in _shown(page, "python")
    compile(_shown(page, "python"), "example", "exec")
    for name in left_out:
        assert f"without the filters {name}" in page


async def test_the_address_for_ai_clients_is_named(admin: httpx.AsyncClient) -> None:
    page = (await admin.get("/admin/stores", headers={"Host": "menus.example:8640"})).text
    assert "AI clients connect to <code>http://menus.example:8640/mcp</code>" in page


async def test_a_page_that_is_no_list_has_no_example(admin: httpx.AsyncClient) -> None:
    assert "api-curl" not in (await admin.get("/admin/system")).text
