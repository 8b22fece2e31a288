"""Proxy passwords in the database: decryption, key checks, and re-encryption."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from menuwatch.accounts import audit
from menuwatch.config.settings import Settings
from menuwatch.core.encryption import DecryptionError, SecretBox
from menuwatch.core.errors import Refused
from menuwatch.core.logging import get_logger
from menuwatch.db.pool import Pool
from menuwatch.proxies import store
from menuwatch.proxies.model import Proxy

log = get_logger(__name__)

_NAMED = 3
"""Most proxies named in a message."""


def decrypt_password(secret_box: SecretBox, proxy: Proxy) -> Proxy:
    """The proxy with its password decrypted. Raises DecryptionError."""
    return replace(proxy, password=secret_box.decrypt(proxy.password))


def decrypt_password_or_drop(secret_box: SecretBox, proxy: Proxy) -> Proxy:
    """As `decrypt_password`, but without a password if it cannot be decrypted: the proxy then refuses and is deactivated for it, and
    no task fails because a proxy was added with another key."""
    try:
        return decrypt_password(secret_box, proxy)
    except DecryptionError as error:
        log.warning(
            "proxy password cannot be decrypted", action="proxy_password_locked", proxy_id=proxy.id, error=str(error)
        )
        return replace(proxy, password=None)


async def count_outdated(pool: Pool, settings: Settings) -> int:
    """Number of passwords that are stored in clear although there is a key, or encrypted with an older key."""
    secret_box = SecretBox(settings.secret_key)
    async with pool.connection() as conn:
        return sum(not secret_box.is_current(proxy.password) for proxy in await store.all_of(conn))


def check_passwords(secret_box: SecretBox, proxies: Sequence[Proxy]) -> None:
    """Raises DecryptionError, naming the proxies, if any of these passwords cannot be decrypted."""
    undecryptable = [proxy for proxy in proxies if not secret_box.can_decrypt(proxy.password)]
    if not undecryptable:
        return
    named = [f"proxy {proxy.id} ({proxy.address})" for proxy in undecryptable[:_NAMED]]
    more = [f"{len(undecryptable) - _NAMED:,} more"] if len(undecryptable) > _NAMED else []
    numbers = " ".join(str(proxy.id) for proxy in undecryptable[:_NAMED]) + (" …" if more else "")
    many, total = len(undecryptable) > 1, sum(proxy.password is not None for proxy in proxies)
    one, it = ("them", "them") if many else ("the proxy", "it")
    raise DecryptionError(
        key_given=secret_box.has_key,
        what=f"the passwords of {len(undecryptable):,} of {total:,} proxies are"
        if many
        else f"the password of {named[0]} is",
        many=many,
        named=", ".join([*named, *more]) if many else "",
        way_out=f"enter {one} again with `menuwatch proxies add`, or remove {it} with `menuwatch proxies remove {numbers}`",
    )


async def encrypt_all(pool: Pool, settings: Settings) -> tuple[int, int]:
    """Encrypt every password with the first key of SECRET_KEY; returns how many were written, and how many there are.

    Raises Refused without a key; DecryptionError, and changes nothing, if a password was encrypted with a key that is not configured.
    """
    secret_box = SecretBox(settings.secret_key)
    if not secret_box.has_key:
        raise Refused("SECRET_KEY is not set: `menuwatch proxies key` generates a key")
    async with pool.connection() as conn, conn.transaction():
        written, total = await store.reencrypt(conn, secret_box)
        await audit.record(conn, "proxy_passwords_sealed", written=written, total=total)
    return written, total
