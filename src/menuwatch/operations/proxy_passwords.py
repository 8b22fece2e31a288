"""Passwords of proxies in the database: whether the keys open them, and sealing them anew."""

from __future__ import annotations

from collections.abc import Sequence

from menuwatch.core.errors import Refused
from menuwatch.core.settings import Settings
from menuwatch.core.telemetry import get_logger
from menuwatch.db.pool import Pool
from menuwatch.operations import audit
from menuwatch.proxies import store
from menuwatch.proxies.model import Proxy
from menuwatch.proxies.vault import Locked, Vault

log = get_logger(__name__)

_NAMED = 3
"""Proxies that are named one by one."""


async def not_sealed(pool: Pool, settings: Settings) -> int:
    """How many passwords are not stored as they would be now: in clear though there is a key, or under an older one."""
    vault = Vault.from_settings(settings)
    async with pool.connection() as conn:
        return sum(not vault.is_current(proxy.password) for proxy in await store.all_of(conn))


def check_open(vault: Vault, proxies: Sequence[Proxy]) -> None:
    """Raises Locked, which names them, where passwords of these proxies cannot be opened."""
    locked = [proxy for proxy in proxies if not _opens(vault, proxy)]
    if not locked:
        return
    named = [f"proxy {proxy.id} ({proxy.address})" for proxy in locked[:_NAMED]]
    more = [f"{len(locked) - _NAMED:,} more"] if len(locked) > _NAMED else []
    numbers = " ".join(str(proxy.id) for proxy in locked[:_NAMED]) + (" …" if more else "")
    one, it = ("the proxy", "it") if len(locked) == 1 else ("them", "them")
    total = sum(proxy.password is not None for proxy in proxies)
    what = (
        f"the password of {named[0]} is"
        if len(locked) == 1
        else f"the passwords of {len(locked):,} of {total:,} proxies are"
    )
    raise Locked(
        key_given=vault.has_key,
        what=what,
        many=len(locked) > 1,
        named="" if len(locked) == 1 else ", ".join([*named, *more]),
        way_out=f"give {one} anew with `menuwatch proxies add`, or take {it} out with `menuwatch proxies remove {numbers}`",
    )


def _opens(vault: Vault, proxy: Proxy) -> bool:
    try:
        vault.open(proxy.password)
    except Locked:
        return False
    return True


async def seal(pool: Pool, settings: Settings) -> tuple[int, int]:
    """Seals every password under the first key of SECRET_KEY; returns how many were written anew, and how many there are.

    Raises Refused without a key; Locked, and changes nothing, where a password is sealed with a key that is not configured.
    """
    vault = Vault.from_settings(settings)
    if not vault.has_key:
        raise Refused("SECRET_KEY is not set: `menuwatch proxies key` makes a key")
    async with pool.connection() as conn, conn.transaction():
        written, total = await store.reseal(conn, vault)
        await audit.record(conn, "proxy_passwords_sealed", written=written, total=total)
    return written, total
