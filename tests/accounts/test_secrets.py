"""What is secret is in no log, in no error, and in the database only as a hash."""

from __future__ import annotations

import httpx
import pytest

from menuwatch.accounts.model import Principal, Role
from menuwatch.db.pool import Pool
from menuwatch.web.sessions import LoggedIn
from tests.accounts.conftest import PASSWORD, Make, add_user, browser, log_in

TABLES = ("users", "sessions", "api_tokens", "audit_log", "idempotency_keys", "login_failures")


async def test_nothing_secret_is_said_or_kept(make: Make, pool: Pool, capsys: pytest.CaptureFixture[str]) -> None:
    await add_user(pool, role="admin")
    app = make()
    secrets = {PASSWORD, "guessed-by-somebody", "typed-in-the-wrong-field", "next-password-of-hers"}
    said = ""
    async with browser(app) as http:
        for name, password in (("anna", "guessed-by-somebody"), ("typed-in-the-wrong-field", "x"), ("anna", PASSWORD)):
            said += (await log_in(http, name, password)).text
        secrets.add(http.cookies["menuwatch"])
        keyed = {"Idempotency-Key": "k"}
        token = (await http.post("/api/tokens", json={"name": "t", "scopes": ["read"]}, headers=keyed)).json()["secret"]
        secrets.add(token.split("_")[2])
        secrets.add(
            (
                await http.post(
                    "/api/users", json={"name": "b", "role": "viewer"}, headers=keyed | {"Idempotency-Key": "l"}
                )
            ).json()["one_time_password"]
        )
        change = {"current": PASSWORD, "new": "next-password-of-hers"}
        said += (await http.post("/api/session/password", json={**change, "current": "guessed-by-somebody"})).text
        said += (await http.post("/api/session/password", json=change)).text
        secrets.add(http.cookies["menuwatch"])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://menuwatch") as http:
        for sent in (token, token + "0", token.replace("mw_", "xx_")):
            said += (await http.get("/api/stores", headers={"Authorization": f"Bearer {sent}"})).text
        said += (await http.get("/api/audit", headers={"Authorization": f"Bearer {token}"})).text
    assert len(secrets) == 8
    printed = capsys.readouterr()
    kept = ""
    async with pool.connection() as conn:
        for table in TABLES:
            kept += str(await (await conn.execute(f"SELECT to_jsonb(t)::text FROM {table} t".encode())).fetchall())
    for place, text in (("answers", said), ("log", printed.out + printed.err), ("database", kept)):
        assert text
        assert [secret for secret in secrets if secret in text] == [], place


def test_a_login_that_began_does_not_show_its_secret() -> None:
    begun = LoggedIn(Principal(name="anna", role=Role.VIEWER, permissions=frozenset()), "s3cret")
    assert "s3cret" not in f"{begun} {begun!r}"
