"""Webhooks signed by the Standard Webhooks specification (https://www.standardwebhooks.com).

`webhook-id` is the same for every attempt of one message, `webhook-timestamp` is the time of sending in seconds since 1970, and
`webhook-signature` is `v1,` and the Base64 of the HMAC-SHA256 of id, timestamp and body, joined by full stops.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from datetime import datetime
from hashlib import sha256

from menuwatch.alerts import outgoing
from menuwatch.alerts.outgoing import NotDelivered
from menuwatch.core.errors import Refused

SECRET_PREFIX = "whsec_"  # noqa: S105 - what a secret begins with
MIN_KEY_BYTES = 16


def signing_key(secret: str) -> bytes:
    """The key of a secret: `whsec_` and Base64, or any other text as it is. Raises Refused."""
    key = secret.encode()
    if secret.startswith(SECRET_PREFIX):
        try:
            key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
        except (binascii.Error, ValueError):
            raise Refused("a secret that begins with whsec_ must continue in Base64") from None
    if len(key) < MIN_KEY_BYTES:
        raise Refused(f"a webhook needs a secret of at least {MIN_KEY_BYTES} characters to sign its messages")
    return key


def new_secret() -> str:
    """A random secret."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def sign(key: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    """The value of `webhook-signature`."""
    content = b"%b.%d.%b" % (message_id.encode(), timestamp, body)
    return "v1," + base64.b64encode(hmac.digest(key, content, sha256)).decode()


async def send(
    url: str, secret: str, body: bytes, *, message_id: str, now: datetime, seconds: float, allow_private: bool
) -> int:
    """Posts the body; returns the HTTP status (2xx). Raises NotDelivered, and Forbidden for addresses that are not public."""
    try:
        key = signing_key(secret)
    except Refused as error:  # stored before it was checked like this
        raise NotDelivered(str(error), final=True) from None
    timestamp = int(now.timestamp())
    headers = {
        "Content-Type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(key, message_id, timestamp, body),
    }
    return await outgoing.post(url, body, headers, seconds=seconds, allow_private=allow_private)
