"""Webhooks of fetching services: stored immediately, read later (search_crawl/result_processor.py)."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Any

import msgspec
from msgspec import Struct
from psycopg import AsyncConnection

from menuwatch.core.errors import NotFound, Refused
from menuwatch.core.json_bounds import TooManyValues, check_values
from menuwatch.core.logging import get_logger
from menuwatch.core.shapes import doc
from menuwatch.search_crawl import store, webhook_inbox
from menuwatch.search_crawl.model import parse_reference
from menuwatch.search_crawl.protocols import BadWebhook, Delivery, Provider
from menuwatch.search_crawl.providers.packing import Unpackable, unpacked_as

log = get_logger(__name__)

MOST_BYTES = 16_000_000
"""Largest body of a webhook, packed and unpacked."""
MOST_RESULTS = 100
"""In one body."""


MOST_VALUES = 100_000
"""In one body: a result has about 10."""


class WrongSecret(Refused):
    """The address is none that was ever given to a provider."""


class TooLarge(Refused):
    """The body is larger than is read."""


class BrokenBody(Refused):
    """The body is not in the provider's format."""


class WebhookResult(Struct, kw_only=True, frozen=True):
    """How the results of a webhook were handled."""

    taken: Annotated[int, doc("Number of results stored for processing.")]
    ignored: Annotated[
        int, doc("Number of results no longer needed: the page had already arrived, or the crawl has ended.")
    ]
    unknown: Annotated[int, doc("Number of results that match no order.")]


async def secret_keys(conn: AsyncConnection[Any], configured: Sequence[str]) -> tuple[str, ...]:
    """Keys of webhook secrets, the one for new URLs first: SECRET_KEY if `configured`, and the installation's own, so that pages
    requested before a key was set are still accepted."""
    return (*configured, await store.stored_secret(conn))


def secret_for(key: str, provider: str) -> str:
    """The provider's secret under that key: 43 characters."""
    made = hmac.new(key.encode(), b"menuwatch crawl webhook\0" + provider.encode(), sha256).digest()
    return urlsafe_b64encode(made).rstrip(b"=").decode("ascii")


def provider_of(secret: str, keys: Sequence[str], providers: Iterable[str]) -> str | None:
    """The provider to which the secret belongs, under any of the keys. Takes constant time."""
    given = secret.encode("utf-8", "replace")
    found = None
    for provider in providers:
        for key in keys:
            if hmac.compare_digest(given, secret_for(key, provider).encode()):
                found = provider
    return found


async def caller(
    conn: AsyncConnection[Any], given: str, *, configured: Sequence[str], providers: Mapping[str, Provider]
) -> Provider:
    """Authenticates the caller by the secret in the URL; raises WrongSecret."""
    keys = await secret_keys(conn, configured)
    hooked = [name for name, provider in providers.items() if provider.needs_webhook]
    name = provider_of(given, keys, hooked)
    if name is None:
        log.warning("webhook with a wrong secret refused", action="crawl_webhook_refused", why="secret")
        raise WrongSecret("unknown webhook secret")
    return providers[name]


def read(provider: Provider, encoding: str, body: bytes) -> Sequence[Delivery]:
    """What a webhook brings. Takes a while for a large body, so call it in a thread. Raises TooLarge, and BrokenBody where it is
    not of the provider's shape."""
    try:
        plain = unpacked_as(encoding, body, MOST_BYTES)
        if len(plain) > MOST_BYTES:
            raise TooLarge(_too_large())
        check_values(plain, MOST_VALUES)
        results = provider.read_webhook(msgspec.json.decode(plain))
    except TooManyValues as error:
        raise _noted(provider, BrokenBody(f"the body contains {error}")) from None
    except BadWebhook as error:
        raise _noted(provider, BrokenBody(f"unexpected body: {error}")) from None
    except Unpackable as error:
        refused = TooLarge(_too_large()) if error.too_large else BrokenBody(f"the body cannot be read: {error}")
        raise _noted(provider, refused) from None
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise _noted(provider, BrokenBody(f"the body is not JSON: {str(error)[:200]}")) from None
    if not 0 < len(results) <= MOST_RESULTS:
        raise _noted(provider, BrokenBody(f"the body has {len(results)} results; allowed are 1 to {MOST_RESULTS}"))
    return results


def _too_large() -> str:
    return f"the body exceeds {MOST_BYTES:,} bytes, the limit for this endpoint"


def _noted(provider: Provider, error: Refused) -> Refused:
    log.warning("webhook refused", action="crawl_webhook_refused", provider=provider.name, why=str(error))
    return error


async def take(
    conn: AsyncConnection[Any], provider: Provider, results: Sequence[Delivery], *, now: datetime
) -> WebhookResult:
    """Stores the results of a webhook. Known results are stored even if others are unknown; raises NotFound if all are unknown."""
    taken = ignored = unknown = 0
    for one in results:
        ref = parse_reference(one.reference)
        kept = None if ref is None else await webhook_inbox.put(conn, ref, provider.name, one, now)
        if ref is None or kept is None or not kept.known:
            unknown += 1
            continue
        needed = kept.id is not None
        taken, ignored = (taken + 1, ignored) if needed else (taken, ignored + 1)
        log.info(
            "delivery received" if needed else "delivery not needed",
            action="crawl_delivered" if needed else "crawl_delivery_ignored",
            job_id=ref.job_id,
            item_id=ref.item_id,
            attempt=ref.attempt,
            ok=one.ok,
        )
    if unknown:
        log.warning(
            "webhook names pages without an order",
            action="crawl_webhook_refused",
            provider=provider.name,
            why="unknown id",
            unknown=unknown,
        )
    if not taken and not ignored:
        raise NotFound("unknown page ids")
    return WebhookResult(taken=taken, ignored=ignored, unknown=unknown)
