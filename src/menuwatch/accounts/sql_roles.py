"""Database roles for analysts: they read the views of the schema `analyst`, and nothing else.

The comment of a role marks it as one of these; other roles are never changed. Roles belong to the database server, so backups do not
contain them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

import psycopg
from msgspec import Struct
from psycopg import AsyncConnection, conninfo
from psycopg import sql as compose

from menuwatch.accounts import audit
from menuwatch.accounts.secrets import one_time_password
from menuwatch.core.errors import Conflict, InvalidField, NotFound, Refused
from menuwatch.db import sql
from menuwatch.db.query import fetch_all, fetch_one

_q = sql.load(__package__, "sql_roles.sql")

NAME = re.compile(r"(?!pg_)[a-z][a-z0-9_]{0,62}")
SCHEMA = "analyst"
DEFAULT_TIMEOUT = 60
"""Seconds that a statement of a new role may take."""
_MARK = "Menuwatch analyst"
_CONNECTIONS = 5

Conn = AsyncConnection[Any]


class SqlRole(Struct, kw_only=True, frozen=True):
    """A database role that reads the views of the schema `analyst`."""

    name: str
    timeout_seconds: int | None
    """Seconds that its statements may take; None where it is not limited."""
    connections: int
    """Of now."""


async def list_sql_roles(conn: Conn) -> list[SqlRole]:
    """Roles made by `put_sql_role`, by name."""
    return [SqlRole(**row) for row in await fetch_all(conn, _q.roles, {"mark": _MARK})]


async def put_sql_role(conn: Conn, name: str, *, timeout_seconds: int = DEFAULT_TIMEOUT) -> str:
    """Creates the role, or gives an existing one a new password and today's rights; returns the password, which is not stored.

    Call in a transaction. Raises InvalidField, Conflict for a role that was made otherwise, and Refused if the database user may not
    create roles.
    """
    if not NAME.fullmatch(name):
        raise InvalidField(
            "name",
            "the name of a database role must be 1 to 63 characters from a-z, 0-9 and _, begin with a letter, and not with pg_",
        )
    found = await fetch_one(conn, _q.role, {"name": name})
    if found is not None and found["comment"] != _MARK:
        raise Conflict(
            f"the database role {name!r} exists already and was not created by Menuwatch: choose another name"
        )
    password = one_time_password()
    # Only the verifier is sent: statements may be logged by the server.
    verifier = conn.pgconn.encrypt_password(password.encode(), name.encode(), b"scram-sha-256").decode()
    role, database = compose.Identifier(name), compose.Identifier(conn.info.dbname)
    schema = compose.Identifier(SCHEMA)
    (own,) = await (await conn.execute(_q.own_schema)).fetchone() or ("public",)
    action = compose.SQL("ALTER" if found else "CREATE")
    statements = [
        compose.SQL("{} ROLE {} LOGIN PASSWORD {} CONNECTION LIMIT {}").format(
            action, role, compose.Literal(verifier), compose.Literal(_CONNECTIONS)
        ),
        compose.SQL("COMMENT ON ROLE {} IS {}").format(role, compose.Literal(_MARK)),
        compose.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(database, role),
        compose.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(schema, role),
        compose.SQL("GRANT SELECT ON ALL TABLES IN SCHEMA {} TO {}").format(schema, role),
        # Views that a later version adds.
        compose.SQL("ALTER DEFAULT PRIVILEGES IN SCHEMA {} GRANT SELECT ON TABLES TO {}").format(schema, role),
    ]
    limits: dict[str, compose.Composable] = {
        "default_transaction_read_only": compose.Literal("on"),
        "idle_in_transaction_session_timeout": compose.Literal("60s"),
        "search_path": compose.SQL("{}, {}").format(schema, compose.Identifier(own)),
        "statement_timeout": compose.Literal(f"{timeout_seconds}s"),
    }
    statements += [
        compose.SQL("ALTER ROLE {} SET {} = {}").format(role, compose.Identifier(key), value)
        for key, value in limits.items()
    ]
    try:
        for statement in statements:
            await conn.execute(statement)
    except psycopg.errors.InsufficientPrivilege as error:
        raise Refused(
            f"the database user {conn.info.user!r} may not create roles ({error.diag.message_primary}): "
            f'run `ALTER ROLE "{conn.info.user}" CREATEROLE` as an administrator of the database, then this command again'
        ) from None
    await audit.record(conn, "sql_role_changed" if found else "sql_role_added", ("sql_role", name))
    return password


async def remove_sql_role(conn: Conn, name: str) -> None:
    """Drops the role and ends its sessions. Raises NotFound."""
    if name not in {role.name for role in await list_sql_roles(conn)}:
        known = ", ".join(role.name for role in await list_sql_roles(conn)) or "none"
        raise NotFound(f"no database role of Menuwatch is called {name!r}; existing ones: {known}")
    await conn.execute(_q.end_sessions, {"name": name})
    role = compose.Identifier(name)
    await conn.execute(compose.SQL("DROP OWNED BY {}").format(role))
    await conn.execute(compose.SQL("DROP ROLE {}").format(role))
    await audit.record(conn, "sql_role_removed", ("sql_role", name))


def connection_url(database_url: str, name: str, password: str) -> str:
    """The address under which the role connects to the database of `database_url`."""
    parts: Mapping[str, Any] = conninfo.conninfo_to_dict(database_url)
    host, port = str(parts.get("host") or ""), parts.get("port")
    kept = {key: str(parts[key]) for key in ("sslmode", "sslrootcert") if parts.get(key)}
    place = ""
    if host.startswith("/"):
        kept = {"host": host, **({"port": str(port)} if port else {}), **kept}
    else:
        place = f"{host or 'localhost'}{f':{port}' if port else ''}"
    query = f"?{urlencode(kept, safe='/')}" if kept else ""
    return (
        f"postgresql://{quote(name)}:{quote(password)}@{place}/{quote(str(parts.get('dbname') or 'postgres'))}{query}"
    )
