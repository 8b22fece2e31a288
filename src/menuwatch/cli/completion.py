"""Values of options and arguments that the shell completes: from the running database, or nothing. None is ever started for it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from menuwatch.config.settings import Settings

Complete = Callable[[str], list[str]]
"""The values that begin with a text."""


def _names(statement: str) -> Complete:
    def complete(incomplete: str) -> list[str]:
        # The shell shows nothing else than values: without a database, or with an old one, there are none.
        try:
            return [_quoted(value) for value in _query(statement, incomplete)]
        except Exception:
            return []

    return complete


def _query(statement: str, text: str) -> list[str]:
    import psycopg  # only loaded when values are completed

    from menuwatch.config.settings import Settings
    from menuwatch.db import sql

    url = _running(Settings.from_env())
    if url is None:
        return []
    queries = sql.load(__package__, "completion.sql")
    with psycopg.connect(url, connect_timeout=2, options="-c statement_timeout=1000") as conn:
        return [row[0] for row in conn.execute(getattr(queries, statement), {"text": text})]


def _running(settings: Settings) -> str | None:
    """The address of the database if it runs."""
    from menuwatch.db import postmaster

    if settings.database_url:
        return settings.database_url
    server = postmaster.read(settings.home.expanduser().resolve() / "postgres")
    if server is None or server.socket is None or not server.answers():
        return None
    return f"postgresql://postgres:@/postgres?host={server.socket.parent}"


def _quoted(value: str) -> str:
    """As bash takes it for one word; other shells quote by themselves."""
    if not os.environ.get("_MENUWATCH_COMPLETE", "").endswith("bash"):
        return value
    return re.sub(r"([^\w@%+=:,./-])", r"\\\1", value)


def _roles(incomplete: str) -> list[str]:
    from menuwatch.queue.model import UNHANDLED_ROLES, Role

    return [role for role in Role if role not in UNHANDLED_ROLES and role.startswith(incomplete)]


def _task_states(incomplete: str) -> list[str]:
    from menuwatch.queue.model import STATES

    return [state for state in STATES if state.startswith(incomplete)]


VALUES: Mapping[str, Complete] = {
    "store": _names("complete_stores"),
    "stores": _names("complete_stores"),
    "into": _names("complete_stores"),
    "worker": _names("complete_workers"),
    "rule": _names("complete_rules"),
    "schedule": _names("complete_schedules"),
    "user": _names("complete_users"),
    "owner": _names("complete_users"),
    "role": _roles,
    "status": _task_states,
}
"""By the name of a parameter that is a text, wherever there is one."""

ARGUMENTS: Mapping[str, Complete] = {"host": _names("complete_hosts")}
"""By the name of an argument."""
