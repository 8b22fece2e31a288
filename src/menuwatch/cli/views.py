"""`menuwatch views`: saved views of dashboard screens."""

from __future__ import annotations

from typing import Annotated

import typer

from menuwatch.accounts import saved_views, users
from menuwatch.accounts.saved_views import SCREENS, SavedView
from menuwatch.cli.options import Commands, JsonOption, LimitedOutput, UserArgument
from menuwatch.cli.output import Column, echo, print_json
from menuwatch.cli.startup import in_transaction, read
from menuwatch.db.pool import Connection
from menuwatch.system import System

app = Commands("Manage saved views of dashboard screens.")

COLUMNS = (
    Column("#", "id"),
    Column("Screen", "screen", rank=1),
    Column("Name", "name", rank=2),
    Column("Filters", "query"),
)


@app.command("list")
def list_(
    user: UserArgument,
    out: LimitedOutput,
    screen: Annotated[
        str | None, typer.Option("--screen", help="Only views of this screen, for example /tasks.")
    ] = None,
) -> None:
    """List a user's saved views."""

    async def act(_: System, conn: Connection) -> list[SavedView]:
        return await saved_views.list_views(conn, (await users.find_user(conn, user)).name, screen)

    empty = "No saved views. Save one in the dashboard or with `menuwatch views save`."
    out.show(read(act), COLUMNS, "view", empty=empty)


@app.command("save")
def save(
    user: UserArgument,
    screen: Annotated[str, typer.Argument(help=f"Screen: {', '.join(SCREENS)}.", metavar="SCREEN")],
    name: Annotated[str, typer.Argument(help="Name of the view; a view with this name is replaced.", metavar="NAME")],
    query: Annotated[str, typer.Argument(help="Filters, as the query string of the URL.", metavar="QUERY")] = "",
    json: JsonOption = False,
) -> None:
    """Save the filters of a screen as a view of a user."""

    async def act(_: System, conn: Connection) -> SavedView:
        return await saved_views.save_view(conn, (await users.find_user(conn, user)).name, screen, name, query)

    view = in_transaction(act)
    if json:
        print_json(view)
    else:
        echo(f"Saved view {view.id} “{view.name}” of {view.screen}.")


@app.command("delete")
def delete(
    user: UserArgument, number: Annotated[int, typer.Argument(min=1, help="Id of the view.", metavar="NUMBER")]
) -> None:
    """Delete a saved view of a user."""

    async def act(_: System, conn: Connection) -> SavedView:
        return await saved_views.delete_view(conn, (await users.find_user(conn, user)).name, number)

    echo(f"Deleted view “{in_transaction(act).name}”.")
