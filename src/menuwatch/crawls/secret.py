"""The secret in the addresses that providers call: made from the installation's own, one for each provider, so that it need not be
kept and tells who calls. It holds no sign that an address would have to escape."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

from psycopg import AsyncConnection

from menuwatch.crawls import store


async def keys(conn: AsyncConnection[Any], configured: Sequence[str]) -> tuple[str, ...]:
    """What secrets are made from, the one for new addresses first: SECRET_KEY as `configured`, and what the installation has by
    itself, so that pages still come that were asked for before a key was set."""
    return (*configured, await store.stored_secret(conn))


def secret_for(key: str, provider: str) -> str:
    """The provider's secret under that key: 43 characters."""
    made = hmac.new(key.encode(), b"menuwatch crawl webhook\0" + provider.encode(), sha256).digest()
    return urlsafe_b64encode(made).rstrip(b"=").decode("ascii")


def provider_of(secret: str, keys: Sequence[str], providers: Iterable[str]) -> str | None:
    """Whose secret that is, under any of the keys. Takes the same time whether it is nearly right or not at all."""
    given = secret.encode("utf-8", "replace")
    found = None
    for provider in providers:
        for key in keys:
            if hmac.compare_digest(given, secret_for(key, provider).encode()):
                found = provider
    return found
