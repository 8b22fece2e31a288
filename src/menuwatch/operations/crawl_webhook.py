"""What fetching services bring: taken in as rows at once, and read later (engine/crawl_reader.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from psycopg import AsyncConnection

from menuwatch.core.errors import Refused
from menuwatch.core.telemetry import get_logger
from menuwatch.crawls import deliveries, reference, secret
from menuwatch.crawls.base import BadWebhook, Provider
from menuwatch.operations.refusals import NotFound
from menuwatch.providers.packing import Unpackable, unpacked_as

log = get_logger(__name__)

MOST_BYTES = 16_000_000
"""Largest body of a webhook, packed and unpacked."""
MOST_RESULTS = 100
"""In one body."""


class WrongSecret(Refused):
    """The address is none that was ever given to a provider."""


class TooLarge(Refused):
    """The body is larger than is read."""


class BrokenBody(Refused):
    """The body is not what the provider sends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """How many results of a webhook were `taken`, were `ignored` because nobody waits for them any more, and are `unknown`."""

    taken: int
    ignored: int
    unknown: int


async def caller(
    conn: AsyncConnection[Any], given: str, *, configured: Sequence[str], providers: Mapping[str, Provider]
) -> Provider:
    """Who calls, by the secret in the address; raises WrongSecret."""
    keys = await secret.keys(conn, configured)
    hooked = [name for name, provider in providers.items() if provider.needs_webhook]
    name = secret.provider_of(given, keys, hooked)
    if name is None:
        log.warning("a webhook came with a wrong secret", action="crawl_webhook_refused", why="secret")
        raise WrongSecret("this address is none that we gave to anybody")
    return providers[name]


def decoded(provider: Provider, encoding: str, body: bytes) -> object:
    """The JSON of a body. Raises TooLarge and BrokenBody."""
    try:
        plain = unpacked_as(encoding, body, MOST_BYTES)
        if len(plain) > MOST_BYTES:
            raise TooLarge(_too_large())
        found: object = msgspec.json.decode(plain)
    except Unpackable as error:
        refused = TooLarge(_too_large()) if error.too_large else BrokenBody(f"the body cannot be read: {error}")
        raise _noted(provider, refused) from None
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise _noted(provider, BrokenBody(f"the body is not JSON: {str(error)[:200]}")) from None
    return found


def _too_large() -> str:
    return f"the body is larger than {MOST_BYTES:,} bytes, the most that this address takes"


def _noted(provider: Provider, error: Refused) -> Refused:
    log.warning("a webhook was refused", action="crawl_webhook_refused", provider=provider.name, why=str(error))
    return error


async def take(conn: AsyncConnection[Any], provider: Provider, body: object, *, now: datetime) -> Taken:
    """Keeps what a webhook brings. Results that are known are kept though others are not; raises NotFound where none is known, and
    BrokenBody where the body is not of the provider's shape."""
    try:
        results = provider.read_webhook(body)
    except BadWebhook as error:
        raise _noted(provider, BrokenBody(f"the body is none of {provider.name}: {error}")) from None
    if not 0 < len(results) <= MOST_RESULTS:
        raise _noted(provider, BrokenBody(f"the body holds {len(results)} results; it takes 1 to {MOST_RESULTS}"))
    taken = ignored = unknown = 0
    for one in results:
        ref = reference.parse(one.reference)
        kept = None if ref is None else await deliveries.put(conn, ref, provider.name, one, now)
        if ref is None or kept is None or not kept.known:
            unknown += 1
            continue
        needed = kept.id is not None
        taken, ignored = (taken + 1, ignored) if needed else (taken, ignored + 1)
        log.info(
            "a delivery came" if needed else "a delivery was not needed",
            action="crawl_delivered" if needed else "crawl_delivery_ignored",
            job_id=ref.job_id,
            item_id=ref.item_id,
            attempt=ref.attempt,
            ok=one.ok,
        )
    if unknown:
        log.warning(
            "a webhook names pages that nobody ordered",
            action="crawl_webhook_refused",
            provider=provider.name,
            why="unknown id",
            unknown=unknown,
        )
    if not taken and not ignored:
        raise NotFound("none of these ids is of a page that was ordered here")
    return Taken(taken=taken, ignored=ignored, unknown=unknown)
