"""DATABASE_URL: checked before anything uses it, in words that never repeat what it holds."""

from __future__ import annotations

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from menuwatch.core.errors import Refused

_WRONG = (
    "DATABASE_URL is no valid address: it looks like postgresql://USER:PASSWORD@HOST:PORT/DATABASE, "
    "with any special characters in user and password percent-encoded"
)
_SETTINGS = "-c timezone=UTC -c idle_in_transaction_session_timeout=300000 -c jit=off"
"""For every session of ours: a session that dies between two statements must not hold locks for ever."""


def check(url: str) -> None:
    """Raises Refused, without a word of the address itself (it may hold a password), where it cannot be one."""
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
    """Whether the error means that there is no server to talk to, rather than that it refused a statement."""
    state = error.sqlstate
    return state is None or state.startswith(("08", "57P"))
