"""What is sent is read only for whoever may send it, and only so much of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
from jinja2 import Environment

from menuwatch.accounts.model import Role
from menuwatch.dashboard.command_links import code_spans, root
from menuwatch.db.pool import Pool, open_pool
from menuwatch.web.routing import Apps
from tests.dashboard.conftest import ORIGIN, alone
from tests.dashboard.users_fixture import logged_in

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Body:
    """A form that notes how much of it was asked for."""

    def __init__(self, pieces: int) -> None:
        self.read = 0
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for _ in range(self._pieces):
            self.read += 10_000
            yield b"x" * 10_000


async def test_nothing_is_read_for_whoever_may_not_send_it(apps: Apps, pool: Pool, viewer: httpx.AsyncClient) -> None:
    for path in ("/admin/proxies/import", "/admin/users/add", "/admin/account"):
        body = Body(200)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(apps), base_url=ORIGIN, headers=FORM) as nobody:
            answer = await nobody.post(path, content=body)
        assert (answer.status_code, body.read) == (303, 0), path
        assert answer.headers["location"].startswith("/admin/login?next=")
    for path in ("/admin/proxies/import", "/admin/users/add"):
        body = Body(200)
        answer = await viewer.post(path, content=body, headers=FORM)
        assert (answer.status_code, body.read) == (403, 0), path
        assert "Forbidden" in answer.text
    async with await logged_in(apps, pool, "maria", Role.ADMIN) as browser:
        body = Body(200)
        answer = await browser.post("/admin/users/add", content=body, headers=FORM | {"Sec-Fetch-Site": "cross-site"})
        assert (answer.status_code, body.read) == (403, 0)


async def test_whoever_sends_slowly_keeps_no_connection_from_others(apps: Apps, pool: Pool) -> None:
    """Of every screen that reads its form by itself."""
    async with await logged_in(apps, pool, "maria", Role.ADMIN) as browser:
        for path in (
            "stores/new",
            "stores/discover",
            "stores/1",
            "crawls",
            "alerts/new",
            "alerts/1/edit",
            "job-queue/enqueue",
        ):
            used = []

            async def slowly(used: list[int] = used) -> AsyncIterator[bytes]:
                for piece in (b"name=x", b"&menu_url="):
                    found = pool.get_stats()
                    used.append(found["pool_size"] - found["pool_available"])
                    yield piece

            answer = await browser.post(f"/admin/{path}", content=slowly(), headers=FORM)
            assert (answer.status_code < 500, used) == (True, [0, 0]), path


async def test_a_request_needs_one_connection(database_url: str, tmp_path: Path) -> None:
    """Who holds one and waits for another waits for others who do the same."""
    async with open_pool(database_url, max_size=1) as pool:
        apps = alone(pool, tmp_path)
        async with await logged_in(apps, pool, "maria", Role.ADMIN) as browser:
            made = await browser.post("/admin/account/tokens", data={"name": "program", "scope": "read"})
            codes = [
                (await browser.post(f"/admin/{path}", data={"version": "x"})).status_code
                for path in ("proxies/1", "hosts/none.example", "alerts/1/edit")
            ]
    assert (made.status_code, codes) == (200, [303, 303, 303])


async def test_a_form_that_is_too_large_says_so(admin: httpx.AsyncClient) -> None:
    body = Body(200)
    answer = await admin.post("/admin/users/add", content=body, headers=FORM)
    assert answer.status_code == 413
    assert "exceeds 250,000 bytes" in answer.text
    assert 250_000 < body.read <= 270_000
    lines = b"text=" + b"%0A" * 100_000
    assert (await admin.post("/admin/proxies/import", content=lines, headers=FORM)).status_code != 413


async def test_a_slash_too_many_leads_to_the_page_by_its_path(admin: httpx.AsyncClient) -> None:
    for host in ("elsewhere.example", "elsewhere.example/x", "elsewhere.example?"):
        answer = await admin.get("/admin/tasks/?status=failed", headers={"Host": host})
        assert (answer.status_code, answer.headers["location"]) == (303, "/admin/tasks?status=failed"), host
    assert (await admin.get("/admin/a%3Fb%23/")).headers["location"] == "/admin/a%3Fb%23"
    answer = await admin.get("/admin//evil.example/", headers={"Host": "elsewhere.example"})
    assert answer.headers["location"] == "/admin/evil.example"


LISTS = (
    "alerts", "alerts/events", "alerts/messages", "audit", "images", "payloads", "products", "proxies", "tasks", "users",
    "users/tokens", "account/tokens",
)  # fmt: skip


async def test_a_place_that_is_not_understood_is_said(admin: httpx.AsyncClient) -> None:
    for name in LISTS:
        answer = await admin.get(f"/admin/{name}?cursor=nonsense")
        assert "in the address is not valid: this is the first page" in answer.text, name
        assert "is not valid" not in (await admin.get(f"/admin/{name}")).text, name


MISSING = {
    "products/999999": "/admin/products", "payloads/999999": "/admin/payloads", "proxies/999999": "/admin/proxies",
    "stores/no-such": "/admin/stores", "users/999999": "/admin/users",
    "workers/none": "/admin/workers", "schedules/999999": "/admin/schedules",
}  # fmt: skip


async def test_what_is_not_there_leads_to_its_list_and_a_search(admin: httpx.AsyncClient) -> None:
    for path, there in MISSING.items():
        answer = await admin.get(f"/admin/{path}")
        assert answer.status_code == 404, path
        assert f'<a class="button primary" href="{there}">' in answer.text, path
        assert 'action="/admin/jump" role="search" aria-label="Search">' in answer.text
        assert '<label class="hidden-visually" for="error-search"' in answer.text
    answer = await admin.get("/admin/taks")
    assert "Nothing is at /admin/taks." in answer.text
    assert 'Did you mean <a href="/admin/tasks">Tasks</a>' in answer.text


async def test_a_search_that_fails_names_the_screen_not_a_command(admin: httpx.AsyncClient) -> None:
    page = (await admin.get("/admin/tasks?q=store:nowhere")).text
    assert "nowhere" in page
    assert "menuwatch stores" not in page


SAID = (
    (
        "try `menuwatch hosts resume a.example` <now>",
        'try “Resume” at <a href="/x/hosts/a.example">host a.example</a> &lt;now&gt;',
    ),
    ("`menuwatch hosts set a.example --rate …`", 'the limits at <a href="/x/hosts/a.example">host a.example</a>'),
    ("`menuwatch proxies add`", '“Add a proxy” at <a href="/x/proxies">Proxies</a>'),
    ("`menuwatch tasks retry 5`", '“Retry” at <a href="/x/tasks/5">task 5</a>'),
    ("`menuwatch worker --workers 5`", "<code>menuwatch worker --workers 5</code>"),
    ("`menuwatch hosts set '`", "<code>menuwatch hosts set &#39;</code>"),
    ("`q`", "<code>q</code>"),
)


def test_commands_are_the_screens_that_have_them() -> None:
    env = Environment(autoescape=True)
    env.filters["code_spans"] = code_spans
    shown = env.from_string("{{ text|code_spans }}")
    root.set("/x")
    for text, said in SAID:
        assert shown.render(text=text) == said


async def test_pages_are_compressed(admin: httpx.AsyncClient) -> None:
    """A list of tasks has some tens of kilobytes, and Live asks for it every second at busy times."""
    packed = await admin.get("/admin/tasks", headers={"accept-encoding": "gzip"})
    plain = await admin.get("/admin/tasks", headers={"accept-encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert int(packed.headers["content-length"]) < int(plain.headers["content-length"]) / 2
    assert "accept-encoding" in packed.headers["vary"].lower()
