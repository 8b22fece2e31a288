"""Users, tokens and the audit on the dashboard: passwords and tokens are shown once, and one admin always stays."""

from __future__ import annotations

import hashlib
import re
from typing import Any
from urllib.parse import quote

import httpx

from menuwatch.accounts.model import Role
from menuwatch.dashboard.pages.audit import describe_details
from menuwatch.db.pool import Pool
from menuwatch.web.routing import Apps
from tests.dashboard.users_fixture import logged_in


async def _rows(pool: Pool, statement: str) -> list[tuple[Any, ...]]:
    async with pool.connection() as conn:
        return await (await conn.execute(statement)).fetchall()


async def test_a_user_is_added_with_a_password_that_is_shown_once(admin: httpx.AsyncClient, pool: Pool) -> None:
    made = await admin.post("/admin/users/add", data={"name": "marta", "role": "operator"})
    assert made.status_code == 200
    assert made.headers["cache-control"] == "private, no-store"
    (password,) = re.findall(r"<code>([^<]+)</code>", made.text)
    (row,) = await _rows(pool, "SELECT id, role, must_change_password, password_hash FROM users WHERE name = 'marta'")
    assert row[1:3] == ("operator", True)
    assert row[3].startswith("$argon2id$")
    for path in ("/admin/users", f"/admin/users/{row[0]}", "/admin/audit", "/admin/users/add"):
        assert password not in (await admin.get(path)).text
    assert (await admin.get(f"/admin/users/{row[0]}/password")).headers["location"] == f"/admin/users/{row[0]}"


WRONG = (
    ({"name": "two words", "role": "viewer"}, "a user name must be 1 to 64"),
    ({"name": "TESTER", "role": "viewer"}, "user &#39;TESTER&#39; already exists"),
    ({"name": "someone", "role": "king"}, "is not one of viewer, operator, admin"),
    ({"name": "someone"}, "choose a role"),
)


async def test_what_is_wrong_stands_beside_the_field(admin: httpx.AsyncClient, pool: Pool) -> None:
    for given, why in WRONG:
        answer = await admin.post("/admin/users/add", data=given)
        assert answer.status_code == 422
        assert why in answer.text
        assert f'value="{given["name"]}"' in answer.text
    assert await _rows(pool, "SELECT name FROM users") == [("tester",)]


async def test_the_last_admin_stays(admin: httpx.AsyncClient, pool: Pool) -> None:
    await admin.get("/admin/users")
    ((user_id,),) = await _rows(pool, "SELECT id FROM users")
    page = (await admin.get(f"/admin/users/{user_id}")).text
    assert "/remove" not in page, "nobody removes themselves by mistake"
    for path, data in (("role", {"role": "viewer"}), ("disable", {}), ("remove", {})):
        answer = await admin.post(f"/admin/users/{user_id}/{path}", data=data)
        assert answer.status_code == 303
        assert "is the last admin" in (await admin.get("/admin/users")).text
    assert await _rows(pool, "SELECT role, disabled_at FROM users") == [("admin", None)]


async def test_a_role_a_reset_and_a_removal(admin: httpx.AsyncClient, pool: Pool) -> None:
    await admin.post("/admin/users/add", data={"name": "marta", "role": "viewer"})
    ((user_id, before),) = await _rows(pool, "SELECT id, password_hash FROM users WHERE name = 'marta'")
    page = (await admin.get(f"/admin/users/{user_id}")).text
    assert all(f'action="/admin/users/{user_id}/{what}"' in page for what in ("role", "disable", "password", "remove"))
    await admin.post(f"/admin/users/{user_id}/role", data={"role": "operator"})
    await admin.post(f"/admin/users/{user_id}/disable")
    assert "disabled" in (await admin.get(f"/admin/users/{user_id}")).text
    await admin.post(f"/admin/users/{user_id}/enable")
    reset = await admin.post(f"/admin/users/{user_id}/password")
    assert len(re.findall(r"<code>([^<]+)</code>", reset.text)) == 1
    ((role, disabled, after),) = await _rows(
        pool, "SELECT role, disabled_at, password_hash FROM users WHERE name = 'marta'"
    )
    assert (role, disabled) == ("operator", None)
    assert after != before
    await admin.post(f"/admin/users/{user_id}/remove")
    assert await _rows(pool, "SELECT 1 FROM users WHERE name = 'marta'") == []
    trail = (await admin.get("/admin/audit?kind=user&id=marta")).text
    words = re.findall(r'href="/admin/audit\?action=[a-z_]+">([^<]+)</a>', trail)
    assert words == [
        "user removed", "user password reset", "user enabled", "user disabled", "user role changed", "user added",
    ]  # fmt: skip


async def test_users_and_audit_are_for_admins(apps: Apps, pool: Pool) -> None:
    async with await logged_in(apps, pool, "marta", Role.OPERATOR) as operator:
        for path in ("/users", "/users/add", "/users/1", "/users/tokens", "/audit"):
            answer = await operator.get(f"/admin{path}")
            assert answer.status_code == 403, path
            assert 'href="/admin/users"' not in answer.text
        for path in ("add", "1/role", "1/disable", "1/enable", "1/password", "1/remove"):
            answer = await operator.post(f"/admin/users/{path}", data={"name": "x", "role": "admin"})
            assert answer.status_code == 403, path
    assert await _rows(pool, "SELECT name, role FROM users") == [("marta", "operator")]


async def test_everybody_makes_tokens_of_their_own_and_sees_nobody_elses(apps: Apps, pool: Pool) -> None:
    async with await logged_in(apps, pool, "vera", Role.VIEWER) as viewer:
        form = (await viewer.get("/admin/account/tokens")).text
        assert re.findall(r'name="scope" value="([^"]+)"', form) == ["read", "export"]
        made = await viewer.post(
            "/admin/account/tokens", data={"name": "nightly figures", "scope": ["read"], "expires": "30d"}
        )
        (text,) = re.findall(r"<code>(mw_[^<]+)</code>", made.text)
        number, secret = text.split("_", 2)[1:]
        assert await _rows(
            pool,
            "SELECT id, secret_hash, scopes, round(extract(epoch FROM expires_at - now()) / 86400) FROM api_tokens",
        ) == [(int(number), hashlib.sha256(secret.encode()).digest(), ["read"], 30)]
        assert text not in (await viewer.get("/admin/account/tokens")).text
        beyond = await viewer.post("/admin/account/tokens", data={"name": "more", "scope": ["tasks:write"]})
        assert beyond.status_code == 303
        assert "you lack tasks:write" in (await viewer.get("/admin/account/tokens")).text
        nothing = await viewer.post("/admin/account/tokens", data={"name": "none"})
        assert nothing.status_code == 422
        assert "a token needs at least one scope" in nothing.text

        async with await logged_in(apps, pool, "other", Role.OPERATOR) as other:
            assert "nightly figures" not in (await other.get("/admin/account/tokens")).text
            await other.post(f"/admin/account/tokens/{number}/revoke")
            assert f"token {number} does not exist" in (await other.get("/admin/account/tokens")).text
        assert await _rows(pool, "SELECT revoked_at FROM api_tokens") == [(None,)]
        async with await logged_in(apps, pool, "root", Role.ADMIN) as boss:
            assert "nightly figures" in (await boss.get("/admin/users/tokens")).text
            await boss.post(f"/admin/account/tokens/{number}/revoke")
        assert await _rows(pool, "SELECT revoked_at IS NULL FROM api_tokens") == [(False,)]
        assert "revoked" in (await viewer.get("/admin/account/tokens")).text


async def test_the_audit_is_filtered_and_walked_and_escapes_what_it_shows(admin: httpx.AsyncClient, pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO audit_log (actor, actor_kind, via, action, subject_kind, subject_id, details, at) "
            "SELECT 'marta', 'user', 'api', 'proxy_disabled', 'proxy', n::text, jsonb_build_object('reason', '<b>' || n), "
            "'2026-11-20'::timestamptz + n * interval '1 hour' "
            "FROM generate_series(1, 130) n"
        )
    first = (await admin.get("/admin/audit?actor=MARTA&action=proxy+disabled")).text
    assert first.count("proxy disabled</a>") == 50
    assert "&lt;b&gt;130" in first
    assert "<b>130" not in first
    (link,) = re.findall(r'rel="next" href="([^"]+)"', first)
    second = (await admin.get(link.replace("&amp;", "&"))).text
    assert second.count("proxy disabled</a>") == 50
    (link,) = re.findall(r'rel="next" href="([^"]+)"', second)
    assert (await admin.get(link.replace("&amp;", "&"))).text.count("proxy disabled</a>") == 30
    day = (await admin.get("/admin/audit?since=2026-11-21&until=2026-11-21")).text
    assert day.count("proxy disabled</a>") == 24, "the hours of that day"
    assert '<option value="marta" selected>marta</option>' in first
    assert '<option value="proxy_disabled" selected>Proxy disabled</option>' in first
    late = await admin.get("/admin/audit?since=2026-11-21&until=2026-11-20")
    assert (late.status_code, "the end date is before the start date" in late.text) == (422, True)
    wrong = await admin.get("/admin/audit?since=yesterday")
    assert wrong.status_code == 422
    assert "is not a date" in wrong.text


async def test_who_must_choose_a_password_gets_nowhere_else(apps: Apps, pool: Pool) -> None:
    async with await logged_in(apps, pool, "newcomer", Role.ADMIN) as browser:
        assert (await browser.get("/admin/jump", params={"q": "1"})).headers["location"] == "/admin/search?q=1"
        async with pool.connection() as conn:
            await conn.execute("UPDATE users SET must_change_password = true WHERE name = 'newcomer'")
        for path in (
            "/admin/",
            "/admin/jump?q=1",
            "/admin/live?topics=accounts",
            "/admin/users",
            "/admin/account/tokens",
        ):
            answer = await browser.get(path)
            assert (answer.status_code, answer.headers["location"]) == (
                303,
                f"/admin/account?next={quote(path, safe='')}",
            ), path
        assert (await browser.get("/admin/account")).status_code == 200


async def test_tokens_come_in_pages(admin: httpx.AsyncClient, pool: Pool) -> None:
    await _rows(
        pool,
        "INSERT INTO api_tokens (user_id, name, secret_hash, scopes) SELECT u.id, 'n' || n, sha256('x'), '{read}'"
        " FROM users u, generate_series(1, 60) n RETURNING 1",
    )
    for first in ("/admin/account/tokens", "/admin/users/1", "/admin/users/tokens"):
        page = (await admin.get(first)).text
        assert len(re.findall(r"/revoke\"", page)) == 50, first
        (following,) = re.findall(r'rel="next" href="([^"]+)"', page)
        page = (await admin.get(following)).text
        assert len(re.findall(r"/revoke\"", page)) == 11, first
        assert f'href="{first}"' in page


TOLD: tuple[tuple[dict[str, Any], list[tuple[str, str]]], ...] = (
    ({}, []),
    ({"role": "viewer", "is_new": True, "note": None}, [("role", "viewer"), ("is new", "yes"), ("note", "none")]),
    ({"scopes": ["read", "tasks:write"], "ids": []}, [("scopes", "read, tasks:write"), ("ids", "none")]),
    ({"before": "viewer", "after": "admin", "by": 3}, [("changed", "viewer → admin"), ("by", "3")]),
    ({"before": {"rate": 1, "burst": 2}, "after": {"rate": 0.5, "burst": 2}}, [("rate", "1 → 0.5")]),
    ({"filter": {"roles": ["a"], "max_age": 3}}, [("filter", "roles: a, max age: 3")]),
    ({"expires_at": "2026-11-21T08:30:00.123+00:00"}, [("expires at", "2026-11-21 08:30 UTC")]),
)


def test_details_are_words() -> None:
    for details, said in TOLD:
        assert describe_details(details) == said


async def test_dates_are_typed_and_shown_as_iso(admin: httpx.AsyncClient) -> None:
    """A date field of the browser shows mm/dd/yyyy in some languages."""
    for path in ("audit", "visitors"):
        page = (await admin.get(f"/admin/{path}?since=2026-11-20&until=2026-11-21")).text
        for name, day in (("since", "2026-11-20"), ("until", "2026-11-21")):
            assert f'name="{name}" type="text" value="{day}"' in page, path
        assert "use the form 2026-11-21" in (await admin.get(f"/admin/{path}?since=11/20/2026")).text, path
