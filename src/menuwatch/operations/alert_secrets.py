"""Addresses and secrets of alert channels in the database: whether the keys open them, and sealing them anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from menuwatch.alerts import store as alerts
from menuwatch.alerts.store import Channel
from menuwatch.core.errors import Refused
from menuwatch.core.settings import Settings
from menuwatch.core.telemetry import get_logger
from menuwatch.db.pool import Connection, Pool
from menuwatch.operations import audit
from menuwatch.proxies.vault import Locked, Vault

log = get_logger(__name__)

_NAMED = 3
"""Channels that are named one by one."""


async def seal(pool: Pool, settings: Settings) -> tuple[int, int]:
    """Seals address and secret of every channel under the first key of SECRET_KEY; returns how many channels were written anew, and
    how many there are.

    Raises Refused without a key; Locked, and changes nothing, where one is sealed with a key that is not configured.
    """
    vault = Vault.from_settings(settings)
    if not vault.has_key:
        raise Refused("SECRET_KEY is not set: `menuwatch proxies key` makes a key")
    async with pool.connection() as conn, conn.transaction():
        found = await alerts.every_channel(conn)
        _check_open(vault, found)
        old = [one for one in found if not _is_current(vault, one)]
        await alerts.save_channels(conn, [_sealed(vault, one) for one in old])
        await audit.record(conn, "alert_channels_sealed", written=len(old), total=len(found))
    return len(old), len(found)


async def not_sealed(pool: Pool, settings: Settings) -> int:
    """How many channels are not stored as they would be now: in clear though there is a key, or under an older one."""
    vault = Vault.from_settings(settings)
    async with pool.connection() as conn:
        return sum(not _is_current(vault, one) for one in await _channels(conn))


async def locked(conn: Connection, settings: Settings) -> tuple[int, Locked | None]:
    """How many channels there are, and what is to be said where some cannot be opened."""
    found = await _channels(conn)
    try:
        _check_open(Vault.from_settings(settings), found)
    except Locked as error:
        return len(found), error
    return len(found), None


async def _channels(conn: Connection) -> list[Channel]:
    return await alerts.channels(conn, [rule.id for rule in await alerts.listed(conn)])


def _check_open(vault: Vault, channels: Sequence[Channel]) -> None:
    """Raises Locked, which names the channels that cannot be opened."""
    shut = [one for one in channels if not _opens(vault, one)]
    if not shut:
        return
    named = [f"{one.shown} of rule {one.rule_id}" for one in shut[:_NAMED]]
    more = [f"{len(shut) - _NAMED:,} more"] if len(shut) > _NAMED else []
    raise Locked(
        key_given=vault.has_key,
        what=f"the alert channel {named[0]} is"
        if len(shut) == 1
        else f"{len(shut):,} of {len(channels):,} alert channels are",
        many=len(shut) > 1,
        named="" if len(shut) == 1 else ", ".join([*named, *more]),
        way_out=f"give the channels of the rule anew: `menuwatch alerts edit {shut[0].rule_id} --webhook …` or `--notify …`",
    )


def _opens(vault: Vault, channel: Channel) -> bool:
    try:
        vault.open(channel.address)
        vault.open(channel.secret)
    except Locked:
        return False
    return True


def _is_current(vault: Vault, channel: Channel) -> bool:
    return vault.is_current(channel.address) and vault.is_current(channel.secret)


def _sealed(vault: Vault, channel: Channel) -> Channel:
    address, secret = vault.seal(vault.open(channel.address)), vault.seal(vault.open(channel.secret))
    assert address is not None, "every channel has an address"
    return replace(channel, address=address, secret=secret)
