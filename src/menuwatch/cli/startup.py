"""Start-up code of every command."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from menuwatch.config.settings import Settings
from menuwatch.core import logging as telemetry
from menuwatch.core.errors import Refused
from menuwatch.db import address
from menuwatch.db.pool import Connection
from menuwatch.queue.model import parse_role

if TYPE_CHECKING:
    from menuwatch.system import System

T = TypeVar("T")


def load_settings(*, quiet: bool = True, check_platforms: bool = True, **overrides: Any) -> Settings:
    """The settings of this process, with logging set up. One-shot commands are `quiet`: only warnings are logged.

    Raises Refused naming the variable. Platform settings are also checked here, before a database is started. Read-only commands check
    them only when they need a platform, because importing all adapters takes longer than the command itself.
    """
    settings = Settings.from_env(**overrides)
    if settings.database_url:
        address.check(settings.database_url)
    try:
        for role in settings.worker_role:
            parse_role(role)
    except Refused as error:
        raise Refused(f"invalid WORKER_ROLE={','.join(settings.worker_role)!r}: {error}") from None
    if check_platforms:
        from menuwatch.platforms import registry  # `--help` and completion need no adapters

        registry.platforms(settings)
    level = "warning" if quiet and settings.log_level == "info" else settings.log_level
    telemetry.configure(settings.log_format, level)
    return settings


def with_system(act: Callable[[System], Awaitable[T]], *, read_only: bool = False, goes_on: bool = False) -> T:
    """Opens the installation, calls `act` and closes it again; the options are those of `open_system`."""
    from menuwatch.system import open_system  # half of a start, which commands without a database do not need

    async def run() -> T:
        async with open_system(
            load_settings(check_platforms=not read_only), read_only=read_only, goes_on=goes_on
        ) as system:
            return await act(system)

    return asyncio.run(run())


def in_connection(act: Callable[[System, Connection], Awaitable[T]], *, read_only: bool = False) -> T:
    """Opens the installation and calls `act` with a connection, for actions with transactions of their own."""

    async def run(system: System) -> T:
        async with system.pool.connection() as conn:
            return await act(system, conn)

    return with_system(run, read_only=read_only)


def read(act: Callable[[System, Connection], Awaitable[T]]) -> T:
    """As `in_connection`, without writing: an old schema is refused instead of migrated."""
    return in_connection(act, read_only=True)


def in_transaction(act: Callable[[System, Connection], Awaitable[T]]) -> T:
    """Opens the installation and calls `act` in one transaction, which is rolled back if it raises."""

    async def run(system: System, conn: Connection) -> T:
        async with conn.transaction():
            return await act(system, conn)

    return in_connection(run)
