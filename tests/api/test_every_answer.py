"""What the answers of every route of every face have in their headers, whatever becomes of the request."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from starlette.types import Message
from structlog.testing import capture_logs

from menuwatch.db.pool import Pool
from tests.api.conftest import description
from tests.api.whole_server import Whole, whole
from tests.users_fixture import bearer

FORM = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
Answer = tuple[int, dict[str, str]]


@pytest.fixture
def server(pool: Pool, tmp_path: Path) -> Whole:
    made = whole(pool, tmp_path, public_url="https://menus.example")
    made.apps[0][1].openapi_schema = description()
    return made


@pytest.fixture
async def http(server: Whole) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(server.asgi, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://menus.example") as made:
        yield made


async def _ask(server: Whole, method: str, path: str, headers: dict[str, str]) -> Answer:
    """Status and headers; the client goes away as soon as it has sent its request, which ends streams."""
    found: list[Answer] = []
    messages: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Message:
        return messages.pop() if messages else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            assert len({name for name, _ in message["headers"] if name != b"set-cookie"}) == len(
                [name for name, _ in message["headers"] if name != b"set-cookie"]
            ), "none is sent twice"
            found.append((message["status"], {k.decode(): v.decode() for k, v in message["headers"]}))

    scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "scheme": "http",
        "method": method, "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
        "headers": [(b"host", b"menus.example"), *((k.lower().encode(), v.encode()) for k, v in headers.items())],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
    }  # fmt: skip
    await server.asgi(scope, receive, send)
    (answer,) = found
    return answer


def _check(answer: Answer, place: object) -> None:
    headers = answer[1]
    assert headers["x-content-type-options"] == "nosniff", place
    assert headers["x-frame-options"] == "DENY", place
    assert headers["referrer-policy"] in ("same-origin", "no-referrer"), place
    assert headers["strict-transport-security"] == "max-age=31536000", place
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy, place
    assert "unsafe" not in policy, place
    if headers.get("content-type", "").startswith("text/html"):
        assert "frame-ancestors 'none'" in policy, place
    assert "server" not in headers, place


async def test_every_route_of_every_face(server: Whole, pool: Pool) -> None:
    seen: set[int] = set()
    admin = await bearer(pool)
    routes = sorted(set(server.routes()))
    assert len(routes) > 230
    for method, path in routes:
        answer = await _ask(server, method, path, admin if method == "GET" else {})
        _check(answer, (method, path))
        seen.add(answer[0])
    assert {200, 303, 401, 404} <= seen


async def test_faults_and_refusals_too(server: Whole, http: httpx.AsyncClient, pool: Pool) -> None:
    async def fail() -> None:
        raise RuntimeError("a fault of ours")

    admin = await bearer(pool)
    for (below, app), name in zip(server.apps, ("/api/fault", "/fault", "/fault"), strict=True):
        app.add_api_route(name, fail)
        with capture_logs():
            answer = await http.get(below + name, headers=admin)
        assert answer.status_code == 500, name
        _check((500, dict(answer.headers)), name)
    style = re.search(r'href="(/admin/static/[^"]+\.css)"', (await http.get("/admin/login")).text)
    assert style is not None
    tag = (await http.get(style[1])).headers["etag"]
    for status, method, path, more in (
        (304, "GET", style[1], {"If-None-Match": tag}),
        (200, "HEAD", "/api/stores", admin),
        (405, "DELETE", "/healthz", {}),
        (404, "GET", "/api/nowhere", admin),
        (422, "GET", "/api/stores?limit=x", admin),
        (308, "GET", "/about/", {}),
        (413, "POST", "/admin/login", FORM),
    ):
        content = b"x" * 300_000 if more is FORM else None
        answer = await http.request(method, path, headers=more, content=content)
        assert answer.status_code == status, path
        _check((status, dict(answer.headers)), path)


async def test_browsers_stay_on_https_where_people_reach_us_so(pool: Pool, tmp_path: Path) -> None:
    for public_url in (None, "http://menus.example"):
        answer = await _ask(whole(pool, tmp_path, public_url=public_url), "GET", "/healthz", {})
        assert "strict-transport-security" not in answer[1], public_url


async def test_no_hostile_host_is_echoed(pool: Pool, tmp_path: Path) -> None:
    """Without PUBLIC_URL these name the host that the client asked: only if it is one."""
    server = whole(pool, tmp_path)
    transport = httpx.ASGITransport(server.asgi)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8640") as http:
        for path in ("/robots.txt", "/sitemap.xml", "/sitemap-pages.xml"):
            for host in (
                '"><script>',
                "a b",
                "evil.example/x",
                "me@evil.example",
                "evil.example#",
                "a\tb",
                "a\\b",
                "a:b",
            ):
                answer = await http.get(path, headers={"Host": host})
                assert host not in answer.text, (path, host)
                assert "http://127.0.0.1:8640/" in answer.text, (path, host)
                assert answer.headers["cache-control"].startswith("private"), path
            assert "http://menus.example:81/" in (await http.get(path, headers={"Host": "menus.example:81"})).text
