"""People for tests: users and tokens put straight into the database. No password is hashed for it: that takes long."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import psycopg

from menuwatch.accounts.model import Permission
from menuwatch.db.pool import Pool

NO_PASSWORD = "$argon2id$none"
"""A hash that no password has."""

_USER = """INSERT INTO users (name, role, password_hash) VALUES (%s, %s, %s)
           ON CONFLICT (lower(name)) DO UPDATE SET role = excluded.role RETURNING id"""
_TOKEN = "INSERT INTO api_tokens (user_id, name, secret_hash, scopes) VALUES (%s, 'test', %s, %s) RETURNING id"


def _secret(name: str, scopes: Sequence[str]) -> str:
    """Another one for each, and for each test the same."""
    return hashlib.sha256(f"{name} {sorted(scopes)}".encode()).hexdigest()


async def token(
    pool: Pool, name: str = "tester", role: str = "admin", scopes: Sequence[str] = tuple(Permission)
) -> str:
    """A token of that user, who is made where there is none."""
    async with pool.connection() as conn:
        user = await _one(await conn.execute(_USER, [name, role, NO_PASSWORD]))
        secret = _secret(name, scopes)
        number = await _one(
            await conn.execute(_TOKEN, [user, hashlib.sha256(secret.encode()).digest(), [str(one) for one in scopes]])
        )
    return f"mw_{number}_{secret}"


async def _one(cursor: Any) -> int:
    row = await cursor.fetchone()
    assert row is not None
    return int(row[0])


async def bearer(pool: Pool, **who: Any) -> dict[str, str]:
    """The header of a client that is let in."""
    return {"Authorization": f"Bearer {await token(pool, **who)}"}


def bearer_at(
    url: str, name: str = "tester", role: str = "admin", scopes: Sequence[str] = tuple(Permission)
) -> dict[str, str]:
    """The same for a server of its own process, on the database of that address."""
    with psycopg.connect(url, autocommit=True) as conn:
        user = conn.execute(_USER, [name, role, NO_PASSWORD]).fetchone()
        assert user is not None
        secret = _secret(name, scopes)
        hashed = hashlib.sha256(secret.encode()).digest()
        row = conn.execute(_TOKEN, [user[0], hashed, [str(one) for one in scopes]]).fetchone()
        assert row is not None
    return {"Authorization": f"Bearer mw_{row[0]}_{secret}"}
