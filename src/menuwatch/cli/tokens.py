"""`menuwatch tokens`: what programs are let in with."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from menuwatch.accounts.model import ALLOWED, Permission, Token
from menuwatch.cli.output import Format, chosen_format, console, errors, print_json, print_rows
from menuwatch.cli.users import JsonOption, in_database
from menuwatch.core.clock import SystemClock
from menuwatch.core.settings import Settings
from menuwatch.db.pool import Connection
from menuwatch.operations import accounts, tokens

app = typer.Typer(help="What programs are let in with.", no_args_is_help=True)


@app.command("create")
def create(
    owner: Annotated[str, typer.Argument(help="Name of the user that it acts for.", metavar="USER")],
    name: Annotated[str, typer.Option("--name", help="What it is for.")] = "made at the terminal",
    scope: Annotated[
        list[Permission] | None,
        typer.Option(
            "--scope", help="What it may do; once for each. All that the user's role may, where none is named."
        ),
    ] = None,
    expires: Annotated[
        str | None, typer.Option("--expires", help="How long it lives: 12h, 90d, 4w. For good, where nothing is said.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Make a token for a user. It is printed once; only its hash is kept. It never may more than its user may at that moment."""
    now = SystemClock().now()
    ends = None if expires is None else now + tokens.parse_span(expires)

    async def do(_: Settings, conn: Connection) -> tuple[Token, str]:
        user = await accounts.find(conn, owner)
        scopes = scope or sorted(ALLOWED[user.role])
        return await tokens.create(conn, user, name, scopes, expires_at=ends, now=now, by=None)

    made, text = in_database(do)
    if json:
        print_json({"token": made, "secret": text})
        return
    until = "until it is revoked" if made.expires_at is None else f"until {made.expires_at:%Y-%m-%d %H:%M} UTC"
    errors.print(f"Token {made.id} of {made.owner}, {until}, for: {', '.join(made.scopes)}", markup=False)
    console.print(text, markup=False, soft_wrap=True)


@app.command("list")
def list_(
    owner: Annotated[str | None, typer.Option("--user", help="Only those of this user.")] = None,
    json: JsonOption = False,
    fmt: Annotated[Format | None, typer.Option("--format", help="How to print.", show_default="table")] = None,
) -> None:
    """List tokens, also those that ended, without their secrets."""

    async def do(_: Settings, conn: Connection) -> list[Token]:
        user_id = None if owner is None else (await accounts.find(conn, owner)).id
        return await tokens.page(conn, user_id=user_id, limit=1_000_000)

    fmt = chosen_format(json, fmt)
    rows = [dataclasses.asdict(token) for token in in_database(do)]
    if fmt is not Format.JSON:
        rows = [row | {"scopes": " ".join(row["scopes"])} for row in rows]
    print_rows(
        rows,
        (
            ("id", "#"),
            ("owner", "User"),
            ("name", "Name"),
            ("scopes", "Scopes"),
            ("expires_at", "Expires"),
            ("last_used_at", "Last used"),
            ("revoked_at", "Revoked"),
        ),
        fmt,
        empty="No tokens yet: `menuwatch tokens create USER` makes one.",
        keep=("owner", "name", "revoked_at"),
    )


@app.command("revoke")
def revoke(
    number: Annotated[int, typer.Argument(min=1, help="Number of the token: mw_<number>_…", metavar="NUMBER")],
) -> None:
    """Let nobody in with a token any more, from the next request on."""
    found = in_database(lambda _, conn: tokens.revoke(conn, number))
    console.print(f"Token {found.id} of {found.owner} is revoked.", markup=False)
