"""`menuwatch users`: users and their roles."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import typer

from menuwatch.accounts import sql_roles, users
from menuwatch.accounts.model import Role, User
from menuwatch.accounts.passwords import Passwords
from menuwatch.cli.options import Commands, JsonOption, LimitedOutput
from menuwatch.cli.output import Column, echo, notice, print_json
from menuwatch.cli.startup import in_transaction, read, with_system
from menuwatch.db.pool import Connection
from menuwatch.system import System

app = Commands("Manage users and their roles.")

NameArgument = Annotated[str, typer.Argument(help="Name of the user.", metavar="NAME")]
RoleOption = Annotated[
    Role, typer.Option("--role", help="`viewer` reads, `operator` also acts, `admin` also manages accounts.")
]

COLUMNS = (
    Column("#", "id"),
    Column("Name", "name", rank=1),
    Column("Role", "role"),
    Column("Password due", "must_change_password"),
    Column("Disabled", "disabled_at"),
    Column("Last login", "last_login_at"),
)


@app.command("list")
def list_(out: LimitedOutput) -> None:
    """List users with their roles and last login."""
    out.show(
        read(lambda _, conn: users.list_users(conn, limit=1_000_000)),
        COLUMNS,
        "user",
        empty="No users yet: the first start of `menuwatch server` creates the first admin, or run `menuwatch users "
        "add NAME --role admin`.",
    )


# A password is hashed while no transaction is open.
@app.command("add")
def add(name: NameArgument, role: RoleOption = Role.VIEWER, json: JsonOption = False) -> None:
    """Add a user. The one-time password is printed once and must be changed at the first login."""

    async def act(system: System) -> tuple[User, str]:
        return await users.add_user(system.pool, name, role, passwords=Passwords.of(system.settings), by=None)

    _print_password(*with_system(act), json)


@app.command("password")
def password(name: NameArgument, json: JsonOption = False) -> None:
    """Reset a user's password: prints a one-time password. The user's sessions end; tokens stay valid until revoked."""

    async def act(system: System) -> tuple[User, str]:
        async with system.pool.connection() as conn:
            user = await users.find_user(conn, name)
        return await users.reset_password(system.pool, user.id, passwords=Passwords.of(system.settings), by=None)

    _print_password(*with_system(act), json)


def _print_password(user: User, password: str, json: bool) -> None:
    if json:
        print_json({"user": user, "one_time_password": password})
        return
    notice(f"One-time password of {user.name} ({user.role}), to be changed at login:")
    echo(password)


def _change(name: str, change: Callable[..., Awaitable[User]], *values: Any) -> User:
    async def act(_: System, conn: Connection) -> User:
        return await change(conn, (await users.find_user(conn, name)).id, *values, by=None)

    return in_transaction(act)


@app.command("role")
def role(name: NameArgument, role: Annotated[Role, typer.Argument(help="The new role.", metavar="ROLE")]) -> None:
    """Change a user's role, effective immediately for sessions and tokens too."""
    user = _change(name, users.set_role, role)
    echo(f"{user.name} is now {user.role}.")


@app.command("disable")
def disable(name: NameArgument) -> None:
    """Disable a user and their tokens. Their sessions end."""
    echo(f"Disabled {_change(name, users.disable).name}.")


@app.command("enable")
def enable(name: NameArgument) -> None:
    """Enable a user and their tokens."""
    echo(f"Enabled {_change(name, users.enable).name}.")


@app.command("remove")
def remove(name: NameArgument) -> None:
    """Remove a user with their sessions and tokens. Their audit entries stay."""
    echo(f"Removed {_change(name, users.remove_user).name}.")


SQL_COLUMNS = (
    Column("Name", "name", rank=1),
    Column("Timeout (s)", "timeout_seconds"),
    Column("Connections", "connections"),
)


@app.command("sql")
def sql(
    name: Annotated[str, typer.Argument(help="Name of the database role.", metavar="NAME")],
    timeout: Annotated[
        int, typer.Option("--timeout", min=1, max=86_400, help="Seconds that a statement of the role may take.")
    ] = sql_roles.DEFAULT_TIMEOUT,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the role and end its sessions.")] = False,
    json: JsonOption = False,
) -> None:
    """Create a read-only database role for analysts, or give an existing one a new password. It reads the views of the schema
    `analyst`, and nothing else. Prints the address to connect to once."""
    if remove:
        in_transaction(lambda _, conn: sql_roles.remove_sql_role(conn, name))
        echo(f"Removed the database role {name}.")
        return

    async def act(system: System, conn: Connection) -> str:
        password = await sql_roles.put_sql_role(conn, name, timeout_seconds=timeout)
        return sql_roles.connection_url(system.database_url, name, password)

    url = in_transaction(act)
    if json:
        print_json({"name": name, "url": url})
        return
    notice(f"Read-only access for {name}, shown once:")
    echo(url)


@app.command("sql-list")
def sql_list(out: LimitedOutput) -> None:
    """List the database roles of analysts."""
    out.show(
        read(lambda _, conn: sql_roles.list_sql_roles(conn)),
        SQL_COLUMNS,
        "role",
        empty="No database roles yet: `menuwatch users sql NAME` creates one.",
    )
