"""`menuwatch users`: who may log in, and what they may do."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import typer

from menuwatch import bootstrap
from menuwatch.accounts.model import Role, User
from menuwatch.accounts.passwords import Passwords
from menuwatch.cli.output import Format, chosen_format, console, errors, print_json, print_rows
from menuwatch.cli.process import settings
from menuwatch.core.settings import Settings
from menuwatch.db.pool import Connection, Pool
from menuwatch.operations import accounts

app = typer.Typer(help="Who may log in, and what they may do.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(help="Name of the user.", metavar="NAME")]
RoleOption = Annotated[
    Role, typer.Option("--role", help="`viewer` looks, `operator` also acts, `admin` also has accounts in hand.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_R = TypeVar("_R")


def in_database(do: Callable[[Settings, Connection], Awaitable[_R]]) -> _R:
    async def run() -> _R:
        async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn, conn.transaction():
            return await do(system.settings, conn)

    return asyncio.run(run())


def with_pool(do: Callable[[Settings, Pool], Awaitable[_R]]) -> _R:
    """For what is no single transaction: a password is hashed while none is open."""

    async def run() -> _R:
        async with bootstrap.open_system(settings()) as system:
            return await do(system.settings, system.pool)

    return asyncio.run(run())


@app.command("list")
def list_(
    json: JsonOption = False,
    fmt: Annotated[Format | None, typer.Option("--format", help="How to print.", show_default="table")] = None,
) -> None:
    """List users with their roles, and when they last logged in."""
    found = in_database(lambda _, conn: accounts.page(conn, limit=1_000_000))
    print_rows(
        [dataclasses.asdict(user) for user in found],
        (
            ("id", "#"),
            ("name", "Name"),
            ("role", "Role"),
            ("must_change_password", "Password due"),
            ("disabled_at", "Disabled"),
            ("last_login_at", "Last login"),
        ),
        chosen_format(json, fmt),
        empty="No users yet: the first start of `menuwatch server` makes the first admin, or `menuwatch users add NAME --role admin`.",
        keep=("name",),
    )


@app.command("add")
def add(name: NameArgument, role: RoleOption = Role.VIEWER, json: JsonOption = False) -> None:
    """Add a user, with a password for the first login that is printed once and must be changed then."""
    user, password = with_pool(
        lambda found, pool: accounts.add(pool, name, role, passwords=Passwords.of(found), by=None)
    )
    _show(user, password, json)


@app.command("password")
def password(name: NameArgument, json: JsonOption = False) -> None:
    """Give a user another password for one login, when theirs is lost. Their sessions end; tokens go on until they are revoked."""

    async def do(found: Settings, pool: Pool) -> tuple[User, str]:
        async with pool.connection() as conn:
            user = await accounts.find(conn, name)
        return await accounts.reset_password(pool, user.id, passwords=Passwords.of(found), by=None)

    _show(*with_pool(do), json)


def _show(user: User, password: str, json: bool) -> None:
    if json:
        print_json({"user": user, "one_time_password": password})
        return
    errors.print(f"{user.name} ({user.role}) logs in once with this password, and then chooses another:", markup=False)
    console.print(password, markup=False)


@app.command("role")
def role(name: NameArgument, role: Annotated[Role, typer.Argument(help="The new role.", metavar="ROLE")]) -> None:
    """Give a user another role. It is in force at once, for sessions and tokens too."""

    async def do(_: Settings, conn: Connection) -> User:
        return await accounts.set_role(conn, (await accounts.find(conn, name)).id, role, by=None)

    found = in_database(do)
    console.print(f"{found.name} is {found.role} now.", markup=False)


@app.command("disable")
def disable(name: NameArgument) -> None:
    """Let a user and their tokens in no more. Their sessions end."""

    async def do(_: Settings, conn: Connection) -> User:
        return await accounts.disable(conn, (await accounts.find(conn, name)).id, by=None)

    console.print(f"{in_database(do).name} is disabled.", markup=False)


@app.command("enable")
def enable(name: NameArgument) -> None:
    """Let a user and their tokens in again."""

    async def do(_: Settings, conn: Connection) -> User:
        return await accounts.enable(conn, (await accounts.find(conn, name)).id, by=None)

    console.print(f"{in_database(do).name} is enabled.", markup=False)


@app.command("remove")
def remove(name: NameArgument) -> None:
    """Remove a user with sessions and tokens. What they did stays on record."""

    async def do(_: Settings, conn: Connection) -> User:
        return await accounts.remove(conn, (await accounts.find(conn, name)).id, by=None)

    console.print(f"{in_database(do).name} is removed.", markup=False)
