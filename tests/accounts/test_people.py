"""Users and tokens: who may give what to whom, and what becomes of it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from menuwatch.accounts import tokens, users
from menuwatch.accounts.model import ALLOWED, Permission, Role
from menuwatch.accounts.passwords import Passwords
from menuwatch.accounts.secrets import parse_token
from menuwatch.core.errors import Refused
from menuwatch.db.pool import Pool
from tests.accounts.conftest import Make, add_user, browser, log_in
from tests.users_fixture import bearer

CHEAP = Passwords(1024)


async def _status(http: httpx.AsyncClient, token: str, path: str = "/api/stores", method: str = "GET") -> int:
    return (await http.request(method, path, headers={"Authorization": f"Bearer {token}"})).status_code


async def test_the_first_admin_is_made_once(pool: Pool) -> None:
    made = await asyncio.gather(*(users.first_admin(pool, CHEAP) for _ in range(4)))
    (password,) = [one for one in made if one is not None]
    assert await users.first_admin(pool, CHEAP) is None
    async with pool.connection() as conn:
        row = await (await conn.execute("SELECT name, role, must_change_password, password_hash FROM users")).fetchone()
    assert row is not None
    assert row[:3] == ("admin", "admin", True)
    assert password not in row[3]
    assert await CHEAP.verify(row[3], password)


async def test_roles_hold_each_other() -> None:
    assert ALLOWED[Role.VIEWER] < ALLOWED[Role.OPERATOR] < ALLOWED[Role.ADMIN] == frozenset(Permission)


async def test_a_user_from_first_to_last(make: Make, pool: Pool) -> None:
    admin = await bearer(pool)
    app = make()
    async with (
        browser(app) as http,
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://menuwatch", headers=admin) as root,
    ):
        made = await root.post("/api/users", json={"name": "Bob", "role": "operator"})
        assert (made.status_code, made.headers["cache-control"]) == (201, "no-store")
        number, password = made.json()["user"]["id"], made.json()["one_time_password"]
        assert (await root.post("/api/users", json={"name": "bOB", "role": "viewer"})).status_code == 409
        assert (await log_in(http, "bob", password)).json()["must_change_password"] is True
        change = {"current": password, "new": "a new one, longer"}
        assert (await http.post("/api/session/password", json=change)).status_code == 200
        token = (await http.post("/api/tokens", json={"name": "t", "scopes": ["read", "tasks:write"]})).json()["secret"]
        recover = "/api/tasks/recover-stale"
        assert await _status(http, token, recover, "POST") == 200
        # A role that is taken is taken at once, from sessions and tokens.
        assert (await root.patch(f"/api/users/{number}", json={"role": "viewer"})).status_code == 200
        assert (await _status(http, token, recover, "POST"), await _status(http, token)) == (403, 200)
        assert (await http.post(recover)).status_code == 403
        assert (await root.patch(f"/api/users/{number}", json={"disabled": True})).status_code == 200
        assert (await _status(http, token), (await http.get("/api/session")).status_code) == (401, 401)
        assert (
            await root.patch(f"/api/users/{number}", json={"disabled": False, "role": "operator"})
        ).status_code == 200
        assert await _status(http, token, recover, "POST") == 200
        assert (await http.get("/api/session")).status_code == 401, "sessions do not come back"
        again = await root.post(f"/api/users/{number}/password")
        assert (await log_in(http, "bob", "a new one, longer")).status_code == 401
        assert (await log_in(http, "bob", again.json()["one_time_password"])).status_code == 200
        assert (await root.delete(f"/api/users/{number}")).status_code == 200
        assert (await _status(http, token), (await http.get("/api/session")).status_code) == (401, 401)
        told = [one["name"] for one in (await root.get("/api/users")).json()["items"]]
        assert told == ["tester"]


@pytest.mark.parametrize(
    "name",
    ["", "a b", "a\r\nSet-Cookie: x=y", "a\x00b", "-a", "ä", "аdmin", "a/b", "<b>", "a" * 65, "a\u202eb", "a:b", "a;b", "a\n"],
)  # fmt: skip
async def test_what_nobody_can_be_called(http: httpx.AsyncClient, pool: Pool, name: str) -> None:
    answer = await http.post("/api/users", json={"name": name, "role": "viewer"}, headers=await bearer(pool))
    assert answer.status_code in (400, 422)
    assert answer.json()["errors"][0]["pointer"] == "#/name"


@pytest.mark.parametrize("name", ["", " ", "a\r\nX: y", "a\x1b[2J", "a" * 101])
async def test_what_no_token_can_be_called(http: httpx.AsyncClient, pool: Pool, name: str) -> None:
    answer = await http.post("/api/tokens", json={"name": name, "scopes": ["read"]}, headers=await bearer(pool))
    assert answer.status_code in (400, 422)


async def test_one_admin_always_stays(http: httpx.AsyncClient, pool: Pool) -> None:
    admin = await bearer(pool)
    for method, path, body in (
        ("PATCH", "/api/users/1", {"role": "operator"}),
        ("PATCH", "/api/users/1", {"disabled": True}),
        ("DELETE", "/api/users/1", None),
    ):
        answer = await http.request(method, path, json=body, headers=admin)
        assert (answer.status_code, "last admin" in answer.json()["detail"]) == (409, True)
    disabled = await add_user(pool, "second", "admin")
    async with pool.connection() as conn:
        await conn.execute("UPDATE users SET disabled_at = now() WHERE id = %s", [disabled])
    assert (await http.delete("/api/users/1", headers=admin)).status_code == 409, "one that is disabled is none"


async def test_two_admins_cannot_both_go(pool: Pool) -> None:
    ids = [await add_user(pool, name, "admin") for name in ("a", "b")]

    async def demote(user_id: int) -> bool:
        async with pool.connection() as conn, conn.transaction():
            try:
                await users.set_role(conn, user_id, Role.VIEWER, by=None)
            except Refused:
                return False
            return True

    assert sorted(await asyncio.gather(*(demote(one) for one in ids))) == [False, True]


async def test_nobody_gives_what_they_have_not_got(http: httpx.AsyncClient, pool: Pool) -> None:
    """A token for accounts alone cannot make somebody who may more, nor become one who may."""
    await bearer(pool, name="root")
    await add_user(pool, "olga", "operator")
    await add_user(pool, "vera", "viewer")
    alone = await bearer(pool, name="root", scopes=["accounts:write"])
    some = await bearer(pool, name="root", scopes=["accounts:write", "read", "export"])

    async def tried(headers: dict[str, str], method: str, path: str, body: Any = None) -> int:
        return (await http.request(method, path, json=body, headers=headers)).status_code

    for role in Role:
        assert await tried(alone, "POST", "/api/users", {"name": f"x{role}", "role": role}) == 403
    assert await tried(some, "POST", "/api/users", {"name": "x", "role": "viewer"}) == 201
    assert await tried(some, "POST", "/api/users", {"name": "y", "role": "operator"}) == 403
    assert await tried(some, "PATCH", "/api/users/3", {"role": "admin"}) == 403
    for headers, user in ((some, 1), (some, 2), (alone, 3)):
        # Of their own they change it with the present one; another's would be theirs then.
        assert await tried(headers, "POST", f"/api/users/{user}/password") == (409 if user == 1 else 403)
        assert await tried(headers, "DELETE", f"/api/users/{user}") == 403
        assert await tried(headers, "PATCH", f"/api/users/{user}", {"disabled": True}) == 403
    assert await tried(some, "POST", "/api/users/3/password") == 200
    assert await tried(alone, "POST", "/api/tokens", {"name": "t", "scopes": ["read"]}) == 403
    assert await tried(alone, "POST", "/api/tokens", {"name": "t", "scopes": ["accounts:write"]}) == 201


async def test_tokens_of_ones_own(make: Make, pool: Pool) -> None:
    await add_user(pool, "vera", "viewer")
    theirs = await bearer(pool, name="root")
    app = make()
    async with browser(app) as http:
        await log_in(http, "vera")
        assert (await http.post("/api/tokens", json={"name": "t", "scopes": ["tasks:write"]})).status_code == 403
        assert (await http.post("/api/tokens", json={"name": "t", "scopes": ["nonsense"]})).status_code == 422
        assert (await http.post("/api/tokens", json={"name": "t", "scopes": []})).status_code == 422
        soon = (datetime.now(UTC) + timedelta(days=1)).isoformat()
        wish = {"name": "mine", "scopes": ["read"], "expires_at": soon}
        made = (await http.post("/api/tokens", json=wish)).json()
        token, number = made["secret"], made["token"]["id"]
        assert parse_token(token) is not None
        assert [one["name"] for one in (await http.get("/api/tokens")).json()["items"]] == ["mine"]
        assert token.split("_")[2] not in (await http.get("/api/tokens")).text
        assert (await http.get("/api/tokens", params={"all": "true"})).status_code == 403
        assert (await http.get("/api/tokens/1")).status_code == 404, "whether others have one is nobody's business"
        assert (await http.delete("/api/tokens/1")).status_code == 404
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://menuwatch") as http:
        assert await _status(http, token) == 200
        assert await _status(http, token[:-1] + ("0" if token[-1] != "0" else "1")) == 401
        assert await _status(http, token, "/api/tokens") == 403, "a token could else outlive itself"
        last = (await http.get(f"/api/tokens/{number}", headers=theirs)).json()["last_used_at"]
        assert last is not None
        async with pool.connection() as conn:
            await conn.execute("UPDATE api_tokens SET expires_at = now() WHERE id = %s", [number])
            answer = await http.get("/api/stores", headers={"Authorization": f"Bearer {token}"})
            assert (answer.status_code, answer.json()["detail"]) == (401, "the token has expired")
            await conn.execute("UPDATE api_tokens SET expires_at = NULL WHERE id = %s", [number])
        assert await _status(http, token) == 200
        assert (await http.delete(f"/api/tokens/{number}", headers=theirs)).status_code == 200
        answer = await http.get("/api/stores", headers={"Authorization": f"Bearer {token}"})
        assert (answer.status_code, answer.json()["detail"]) == (401, "the token was revoked")


@pytest.mark.parametrize("text", ["90d", "12h", "4w"])
def test_spans(text: str) -> None:
    assert (
        tokens.parse_span(text)
        == {"90d": timedelta(days=90), "12h": timedelta(hours=12), "4w": timedelta(days=28)}[text]
    )


@pytest.mark.parametrize("text", ["", "90", "d", "0d", "-1d", "1y", "1d1h", "999999d"])
def test_no_spans(text: str) -> None:
    with pytest.raises(Refused, match="90d"):
        tokens.parse_span(text)


async def test_a_stale_edit_gets_what_it_is_now(http: httpx.AsyncClient, pool: Pool) -> None:
    admin = await bearer(pool)
    number = await add_user(pool, "vera", "viewer")
    tag = (await http.get(f"/api/users/{number}", headers=admin)).headers["etag"]
    edit = {**admin, "If-Match": tag}
    assert (await http.patch(f"/api/users/{number}", json={"role": "operator"}, headers=edit)).status_code == 200
    answer = await http.patch(f"/api/users/{number}", json={"role": "viewer"}, headers=edit)
    problem = answer.json()
    assert (answer.status_code, problem["type"], problem["current"]["role"]) == (412, "/problems/changed", "operator")
    assert (await http.patch(f"/api/users/{number}", json={"role": "viewer"}, headers=admin)).status_code == 200


class _Watching(Passwords):
    """Counts transactions that are open while it hashes."""

    def __init__(self, pool: Pool) -> None:
        super().__init__(1024)
        self._pool = pool
        self.seen: list[int] = []

    async def hash(self, password: str) -> str:
        async with self._pool.connection() as conn:
            row = await (await conn.execute(_OPEN)).fetchone()
        assert row is not None
        self.seen.append(row[0])
        return await super().hash(password)


_OPEN = """SELECT count(*) FROM pg_stat_activity
           WHERE datname = current_database() AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%'"""


async def test_no_transaction_waits_for_a_hash(pool: Pool) -> None:
    watching = _Watching(pool)
    made, first = await users.add_user(pool, "bob", Role.VIEWER, passwords=watching, by=None)
    _, second = await users.reset_password(pool, made.id, passwords=watching, by=None)
    assert watching.seen == [0, 0]
    assert first != second
