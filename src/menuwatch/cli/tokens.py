"""`menuwatch tokens`: API tokens."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from menuwatch.accounts import tokens, users
from menuwatch.accounts.model import ALLOWED, Permission, Token
from menuwatch.cli.options import Commands, JsonOption, LimitedOutput
from menuwatch.cli.output import Column, Format, echo, notice, print_json
from menuwatch.cli.startup import in_transaction, read
from menuwatch.core.shapes import to_row
from menuwatch.db.clock import database_now
from menuwatch.db.pool import Connection
from menuwatch.system import System

app = Commands("Manage API tokens.")

COLUMNS = (
    Column("#", "id"),
    Column("User", "owner", rank=1),
    Column("Name", "name", rank=2),
    Column("Scopes", "scopes", " ".join),
    Column("Expires", "expires_at"),
    Column("Last used", "last_used_at"),
    Column("Revoked", "revoked_at", rank=3),
)


@app.command("create")
def create(
    owner: Annotated[str, typer.Argument(help="Name of the user the token acts for.", metavar="USER")],
    name: Annotated[str, typer.Option("--name", help="Purpose of the token.")] = "created from the command line",
    scope: Annotated[
        list[Permission] | None,
        typer.Option("--scope", help="Permission to grant; repeatable. Default: all permissions of the user's role."),
    ] = None,
    expires: Annotated[
        str | None, typer.Option("--expires", help="Lifetime: 12h, 90d, 4w. Default: never expires.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Create a token for a user. It is printed once; only its hash is stored. A token never has more permissions than its user."""
    span = None if expires is None else tokens.parse_span(expires)

    async def act(_: System, conn: Connection) -> tuple[Token, str]:
        now = await database_now(conn)
        user = await users.find_user(conn, owner)
        scopes = scope or sorted(ALLOWED[user.role])
        return await tokens.create(
            conn, user, name, scopes, expires_at=None if span is None else now + span, now=now, by=None
        )

    token, secret = in_transaction(act)
    if json:
        print_json({"token": token, "secret": secret})
        return
    until = "until it is revoked" if token.expires_at is None else f"until {token.expires_at:%Y-%m-%d %H:%M} UTC"
    notice(f"Token {token.id} of {token.owner}, {until}, for: {', '.join(token.scopes)}")
    echo(secret)


@app.command("list")
def list_(
    out: LimitedOutput, owner: Annotated[str | None, typer.Option("--user", help="Only tokens of this user.")] = None
) -> None:
    """List tokens without their secrets, including expired and revoked ones."""

    async def act(_: System, conn: Connection) -> list[Token]:
        user_id = None if owner is None else (await users.find_user(conn, owner)).id
        return await tokens.list_tokens(conn, user_id=user_id, limit=1_000_000)

    rows: list[Any] = read(act)
    if out.format is Format.CSV:
        rows = [to_row(token) | {"scopes": " ".join(token.scopes)} for token in rows]
    out.show(rows, COLUMNS, "token", empty="No tokens yet. Create one with `menuwatch tokens create USER`.")


@app.command("revoke")
def revoke(
    number: Annotated[int, typer.Argument(min=1, help="Id of the token: mw_<id>_…", metavar="NUMBER")],
) -> None:
    """Revoke a token, effective from the next request on."""
    token = in_transaction(lambda _, conn: tokens.revoke(conn, number, by=None))
    echo(f"Revoked token {token.id} of {token.owner}.")
