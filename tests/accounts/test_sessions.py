"""Logging in and out, and what becomes of a session."""

from __future__ import annotations

import asyncio
import statistics
import time
from http.cookies import SimpleCookie

import httpx
import pytest

from menuwatch.accounts.passwords import Passwords
from menuwatch.db.pool import Pool
from tests.accounts.conftest import PASSWORD, Make, add_user, browser, log_in

CHOSEN = "f" * 64


async def _who(http: httpx.AsyncClient, cookie: str | None = None) -> int:
    if cookie is None:
        return (await http.get("/api/session")).status_code
    http.cookies.clear()
    return (await http.get("/api/session", headers={"Cookie": f"menuwatch={cookie}"})).status_code


def _given(answer: httpx.Response) -> str:
    (cookie,) = SimpleCookie(answer.headers["set-cookie"]).values()
    return cookie.value


async def test_in_and_out(http: httpx.AsyncClient, pool: Pool) -> None:
    await add_user(pool)
    assert await _who(http) == 401
    answer = await log_in(http, "ANNA")
    assert (answer.status_code, answer.json()["name"], answer.json()["role"]) == (200, "anna", "operator")
    assert answer.headers["cache-control"] == "no-store"
    shown = (await http.get("/api/session")).json()
    assert "tasks:write" in shown["permissions"]
    assert "accounts:write" not in shown["permissions"]
    kept = dict(http.cookies)
    assert (await http.delete("/api/session")).status_code == 204
    assert await _who(http) == 401
    http.cookies.update(kept)
    assert await _who(http) == 401, "the cookie is of no use any more, to whoever has kept it"


@pytest.mark.parametrize(
    ("public_url", "name", "path", "secure"),
    [
        (None, "menuwatch", "/", False),
        ("http://menus.test/shop", "menuwatch", "/shop", False),
        ("https://menus.test", "__Host-menuwatch", "/", True),
        ("https://menus.test/shop", "__Secure-menuwatch", "/shop", True),
    ],
)
async def test_the_cookie(make: Make, pool: Pool, public_url: str | None, name: str, path: str, secure: bool) -> None:
    await add_user(pool)
    async with browser(make(public_url=public_url)) as http:
        answer = await log_in(http)
    (line,) = answer.headers.get_list("set-cookie")
    (cookie,) = SimpleCookie(line).values()
    assert (cookie.key, cookie["path"], bool(cookie["secure"])) == (name, path, secure)
    assert (cookie["httponly"], cookie["samesite"], cookie["domain"]) == (True, "lax", "")
    assert int(cookie["max-age"]) == 14 * 86_400
    async with pool.connection() as conn:
        (stored,) = (await (await conn.execute("SELECT to_jsonb(s)::text FROM sessions s")).fetchone()) or ("",)
    assert cookie.value not in stored, "whoever reads the database cannot use it"


async def test_a_session_cannot_be_foisted_on_somebody(make: Make, pool: Pool) -> None:
    await add_user(pool)
    await add_user(pool, "eve")
    app = make()
    async with browser(app) as http:
        answer = await log_in(http, cookie=CHOSEN)
        assert answer.status_code == 200
        assert _given(answer) != CHOSEN
        assert await _who(http, CHOSEN) == 401
        # Nor may one that is real be gone on with: whoever planted it would be in.
        planted = _given(await log_in(http, "eve"))
        assert await _who(http, planted) == 200
        answer = await log_in(http, cookie=planted)
        assert (answer.json()["name"], _given(answer) == planted) == ("anna", False)
        assert await _who(http, planted) == 401


@pytest.mark.parametrize(
    "ended",
    [
        "UPDATE sessions SET seen_at = now() - interval '12 hours 1 second'",
        "UPDATE sessions SET expires_at = now() - interval '1 second'",
        "UPDATE users SET disabled_at = now()",
        "DELETE FROM users",
    ],
)
async def test_a_session_ends(http: httpx.AsyncClient, pool: Pool, ended: str) -> None:
    await add_user(pool)
    await log_in(http)
    async with pool.connection() as conn:
        await conn.execute("UPDATE sessions SET seen_at = now() - interval '11 hours 59 minutes'")
        assert await _who(http) == 200, "and with that it was seen again"
        row = await (await conn.execute("SELECT now() - seen_at < interval '1 minute' FROM sessions")).fetchone()
        assert row == (True,)
        await conn.execute(ended.encode())
    assert await _who(http) == 401


async def test_who_is_disabled_is_told_no_more_than_others(http: httpx.AsyncClient, pool: Pool) -> None:
    await add_user(pool)
    async with pool.connection() as conn:
        await conn.execute("UPDATE users SET disabled_at = now()")
    said = [
        await log_in(http),
        await log_in(http, "nobody"),
        await log_in(http, password="wrong"),
        await log_in(http, "a\x00b"),
    ]
    assert {answer.status_code for answer in said} == {401}
    assert len({answer.json()["detail"] for answer in said}) == 1
    assert len({tuple(sorted(set(answer.headers) - {"x-request-id"})) for answer in said}) == 1


async def test_it_takes_as_long_for_nobody(make: Make, pool: Pool) -> None:
    """Hashing is most of a login: without it the answer for a name that nobody has would come many times sooner."""
    hashed = await Passwords(32_768).hash(PASSWORD)
    await add_user(pool)
    async with pool.connection() as conn:
        await conn.execute("UPDATE users SET password_hash = %s", [hashed])
    async with browser(make(password_memory_kib=32_768)) as http:
        await log_in(http, "nobody0", "wrong")  # what is made once is made

        async def seconds(name: str) -> float:
            begun = time.perf_counter()
            assert (await log_in(http, name, "wrong")).status_code == 401
            return time.perf_counter() - begun

        pairs = [(await seconds("anna"), await seconds("nobody")) for _ in range(3)]
    known, unknown = (statistics.median(each) for each in zip(*pairs, strict=True))
    assert 0.4 < known / unknown < 2.5, pairs


async def test_a_password_is_changed(make: Make, pool: Pool) -> None:
    await add_user(pool)
    app = make()
    async with browser(app) as here, browser(app) as elsewhere:
        await log_in(here)
        await log_in(elsewhere)
        before = here.cookies["menuwatch"]
        change = {"current": PASSWORD, "new": "quite another one"}
        for wrong, field in (
            ({**change, "current": "guessed"}, "current"),
            ({**change, "new": "short"}, "new"),
            ({**change, "new": "aaaaaaaaaaaaaaaa"}, "new"),
            ({**change, "new": "anna-anna-an"}, "new"),
            ({**change, "new": "password1234"}, "new"),
            ({**change, "new": PASSWORD}, "new"),
        ):
            answer = await here.post("/api/session/password", json=wrong)
            assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, f"#/{field}")
            assert wrong["new"] not in answer.text
        assert (await here.post("/api/session/password", json=change)).status_code == 200
        assert here.cookies["menuwatch"] != before
        assert (await _who(here), await _who(elsewhere)) == (200, 401)
        here.cookies.set("menuwatch", before)
        assert (await log_in(elsewhere)).status_code == 401
        assert (await log_in(elsewhere, password="quite another one")).status_code == 200


async def test_a_password_that_was_given_must_be_changed_first(http: httpx.AsyncClient, pool: Pool) -> None:
    await add_user(pool, role="admin", must_change=True)
    answer = await log_in(http)
    assert (answer.json()["must_change_password"], answer.json()["permissions"]) == (True, [])
    for path in ("/api/stores", "/api/users", "/api/tokens", "/metrics"):
        answer = await http.get(path)
        assert (answer.status_code, answer.json()["type"]) == (403, "/problems/password-change-due"), path
    change = {"current": PASSWORD, "new": "one of my own choice"}
    assert (await http.post("/api/session/password", json=change)).json()["must_change_password"] is False
    assert (await http.get("/api/users")).status_code == 200


async def test_logins_at_once_do_not_wait_in_the_loop(make: Make, pool: Pool) -> None:
    """Passwords are hashed beside the event loop: it goes on meanwhile."""
    await add_user(pool)
    async with browser(make(password_memory_kib=16_384)) as http:
        logins = asyncio.gather(*(log_in(http, f"nobody{n}") for n in range(3)))
        longest = 0.0
        while not logins.done():
            begun = time.perf_counter()
            await asyncio.sleep(0)
            longest = max(longest, time.perf_counter() - begun)
        spent = [answer.status_code for answer in await logins]
    assert spent == [401] * 3
    assert longest < 1.0


# ---- requests of other sites ----

SAME = {"Sec-Fetch-Site": "same-origin"}


@pytest.mark.parametrize(
    ("headers", "passes"),
    [
        (SAME, True),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Sec-Fetch-Site": "same-site"}, False),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "http://menuwatch"}, False),
        ({"Sec-Fetch-Site": "nonsense\x7f"}, False),
        ({"Origin": "http://menuwatch"}, True),
        ({"Origin": "https://menus.test"}, True),
        ({"Origin": "https://menus.test:444"}, False),
        ({"Origin": "http://menus.test"}, False),
        ({"Origin": "http://menuwatch:81"}, False),
        ({"Origin": "http://evil.test"}, False),
        ({"Origin": "http://menuwatch.evil.test"}, False),
        ({"Origin": "http://menuwatch@evil.test"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": "null", "Referer": "http://menuwatch/"}, False),
        ({"Referer": "http://menuwatch/admin/"}, True),
        ({"Referer": "http://evil.test/http://menuwatch/"}, False),
        ({}, False),
    ],
)
async def test_other_sites(make: Make, pool: Pool, headers: dict[str, str], passes: bool) -> None:
    await add_user(pool)
    app = make(public_url="https://menus.test")
    async with browser(app) as http:
        cookie = (await log_in(http)).headers["set-cookie"].split(";")[0]
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://menuwatch") as http:
        answer = await http.post("/api/tasks/recover-stale", headers={"Cookie": cookie, **headers})
        assert (answer.status_code == 200) == passes, answer.text
        if not passes:
            assert (answer.status_code, answer.json()["type"]) == (403, "/problems/other-site")
        # Looking is not changing; and nobody can read across sites what they made a browser ask for.
        assert (await http.get("/api/tasks", headers={"Cookie": cookie, **headers})).status_code == 200
        # To log somebody in as somebody else is a change, too; but a program says nothing of where it comes from.
        answer = await http.post("/api/session", json={"name": "anna", "password": PASSWORD}, headers=headers)
        assert (answer.status_code == 200) == (passes or headers == {})


async def test_a_form_of_another_site_cannot_log_anybody_in(make: Make, pool: Pool) -> None:
    await add_user(pool)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(make()), base_url="http://menuwatch") as http:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
            text = f'{{"name": "anna", "password": "{PASSWORD}"}}'
            answer = await http.post("/api/session", content=text, headers={"Content-Type": kind})
            assert answer.status_code == 415, kind


async def test_a_token_beside_a_cookie_is_what_counts(http: httpx.AsyncClient, pool: Pool) -> None:
    await add_user(pool)
    await log_in(http)
    answer = await http.get("/api/session", headers={"Authorization": f"Bearer mw_1_{'0' * 64}"})
    assert answer.status_code == 401
    # A password that a proxy in front asks for is none of ours.
    assert (await http.get("/api/session", headers={"Authorization": "Basic YTpi"})).status_code == 200
