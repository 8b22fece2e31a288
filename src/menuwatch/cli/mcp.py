"""`menuwatch mcp`: the MCP server on standard input and output."""

from __future__ import annotations

from typing import Annotated

import typer

from menuwatch.accounts.model import ALLOWED, Principal, Role
from menuwatch.cli.startup import with_system
from menuwatch.system import System


def mcp(
    role: Annotated[
        Role, typer.Option(help="Permissions of the client: `viewer` hides the tools for operators.")
    ] = Role.OPERATOR,
) -> None:
    """Serve one AI client on standard input and output (Model Context Protocol). All tools are read-only."""
    principal = Principal(name="terminal", role=role, permissions=ALLOWED[role])

    async def serve(system: System) -> None:
        from menuwatch.mcp.server import serve_stdio  # the SDK takes as long to import as a command to start
        from menuwatch.web.dependencies import AppContext

        app = AppContext(pool=system.pool, archive=system.archive, platforms={}, settings=system.settings)
        await serve_stdio(app, principal)

    with_system(serve, read_only=True, goes_on=True)
