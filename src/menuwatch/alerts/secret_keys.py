"""Encryption of the addresses and secrets of alert channels: check the keys, encrypt with a new key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from menuwatch.accounts import audit
from menuwatch.alerts import store as alerts
from menuwatch.alerts.store import Channel
from menuwatch.config.settings import Settings
from menuwatch.core.encryption import DecryptionError, SecretBox
from menuwatch.core.errors import Refused
from menuwatch.core.logging import get_logger
from menuwatch.db.pool import Connection, Pool

log = get_logger(__name__)

_NAMED = 3
"""Maximum channels listed by name."""


async def encrypt_all(pool: Pool, settings: Settings) -> tuple[int, int]:
    """Encrypts address and secret of every channel with the first key of SECRET_KEY; returns how many channels were rewritten, and
    how many there are.

    Raises Refused without a key; DecryptionError, without any change, if one is encrypted with a key that is not configured.
    """
    secret_box = SecretBox(settings.secret_key)
    if not secret_box.has_key:
        raise Refused("SECRET_KEY is not set: `menuwatch proxies key` generates a key")
    async with pool.connection() as conn, conn.transaction():
        channels = await alerts.lock_channels(conn)
        _check_keys(secret_box, channels)
        old = [channel for channel in channels if not _is_current(secret_box, channel)]
        await alerts.save_channels(conn, [_reencrypt(secret_box, channel) for channel in old])
        await audit.record(conn, "alert_channels_sealed", written=len(old), total=len(channels))
    return len(old), len(channels)


async def count_outdated(pool: Pool, settings: Settings) -> int:
    """Number of channels stored in clear although there is a key, or encrypted with an older one."""
    secret_box = SecretBox(settings.secret_key)
    async with pool.connection() as conn:
        return sum(not _is_current(secret_box, channel) for channel in await _channels(conn))


async def find_locked(conn: Connection, settings: Settings) -> tuple[int, DecryptionError | None]:
    """Number of channels, and the message if some cannot be decrypted."""
    channels = await _channels(conn)
    try:
        _check_keys(SecretBox(settings.secret_key), channels)
    except DecryptionError as error:
        return len(channels), error
    return len(channels), None


async def _channels(conn: Connection) -> list[Channel]:
    return await alerts.channels(conn, [rule.id for rule in await alerts.list_rules(conn)])


def _check_keys(secret_box: SecretBox, channels: Sequence[Channel]) -> None:
    """Raises DecryptionError with the names of channels that cannot be decrypted."""
    locked = [channel for channel in channels if not secret_box.can_decrypt(channel.address, channel.secret)]
    if not locked:
        return
    named = [f"{channel.shown} of rule {channel.rule_id}" for channel in locked[:_NAMED]]
    more = [f"{len(locked) - _NAMED:,} more"] if len(locked) > _NAMED else []
    raise DecryptionError(
        key_given=secret_box.has_key,
        what=f"the alert channel {named[0]} is"
        if len(locked) == 1
        else f"{len(locked):,} of {len(channels):,} alert channels are",
        many=len(locked) > 1,
        named="" if len(locked) == 1 else ", ".join([*named, *more]),
        way_out=f"enter the channels of the rule again: `menuwatch alerts edit {locked[0].rule_id} --webhook …` or `--notify …`",
    )


def _is_current(secret_box: SecretBox, channel: Channel) -> bool:
    return secret_box.is_current(channel.address) and secret_box.is_current(channel.secret)


def _reencrypt(secret_box: SecretBox, channel: Channel) -> Channel:
    address, secret = (secret_box.encrypt(secret_box.decrypt(text)) for text in (channel.address, channel.secret))
    assert address is not None, "every channel has an address"
    return replace(channel, address=address, secret=secret)
