"""Validation of DATABASE_URL, with errors that never repeat its content."""

from __future__ import annotations

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from menuwatch.core.errors import Refused

_WRONG = (
    "DATABASE_URL is not a valid URL: expected postgresql://USER:PASSWORD@HOST:PORT/DATABASE, "
    "with any special characters in user and password percent-encoded"
)
_SETTINGS = "-c timezone=UTC -c idle_in_transaction_session_timeout=300000 -c jit=off"
"""Session settings: a session that dies between two statements must not hold locks forever."""


def check(url: str) -> None:
    """Raises Refused for an invalid URL, without showing it (it may hold a password)."""
    try:
        parsed = conninfo_to_dict(url)
    except psycopg.Error:
        raise Refused(_WRONG) from None
    if not url.startswith(("postgresql://", "postgres://")) or not parsed:
        raise Refused(_WRONG)


def with_settings(url: str) -> str:
    """The address with our session settings added to the options it may have of its own."""
    own = str(conninfo_to_dict(url).get("options") or "")
    return make_conninfo(url, options=f"{own} {_SETTINGS}".strip())


def safe_reason(error: BaseException) -> str:
    """Why a connection failed, in one line; the driver's messages name host and port, never the password."""
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__


def unreachable(error: psycopg.Error) -> bool:
    """Whether the error means that the server is unreachable, rather than that it rejected a statement."""
    state = error.sqlstate
    return state is None or state.startswith(("08", "57P"))
