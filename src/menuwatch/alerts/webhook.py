"""Signed webhooks: a POST of JSON that the receiver can hold against the secret that both know.

`Menuwatch-Signature` is `v1=` and the hexadecimal HMAC-SHA256, under the secret, of the value of `Menuwatch-Timestamp` (seconds since
1970), a full stop and the body as it was sent. `Menuwatch-Delivery` is the same at every repetition of one message.
"""

from __future__ import annotations

import asyncio
import hmac
import ssl
from datetime import datetime
from hashlib import sha256

import httpx

from menuwatch import __version__
from menuwatch.alerts import guard

SIGNATURE = "Menuwatch-Signature"
TIMESTAMP = "Menuwatch-Timestamp"
DELIVERY = "Menuwatch-Delivery"
MOST_SHOWN = 200
"""Characters of an answer that are kept where it is none that was hoped for."""


class NotDelivered(Exception):
    """The receiver did not take it. `code` is the status of its answer; `final` says that asking again is pointless."""

    def __init__(self, reason: str, *, code: int | None = None, final: bool = False) -> None:
        super().__init__(reason)
        self.code = code
        self.final = final


def sign(secret: str, timestamp: int, body: bytes) -> str:
    """The value of `Menuwatch-Signature`."""
    return "v1=" + hmac.new(secret.encode(), b"%d.%b" % (timestamp, body), sha256).hexdigest()


async def send(
    url: str, secret: str, body: bytes, *, key: str, now: datetime, seconds: float, allow_private: bool
) -> int:
    """Posts the body; returns the status, one of the 200s. Raises NotDelivered, and Forbidden for addresses that are not public.

    It connects to the very address that was looked at, so a name that changes its mind leads nowhere else. Redirects are not followed,
    no proxy is used, certificates are verified.
    """
    scheme, host, port = guard.check_url(url)
    timestamp = int(now.timestamp())
    target = httpx.URL(url)
    headers = {
        "Host": target.netloc.decode("ascii"),
        "Content-Type": "application/json",
        "User-Agent": f"menuwatch/{__version__}",
        DELIVERY: key,
        TIMESTAMP: str(timestamp),
        SIGNATURE: sign(secret, timestamp, body),
    }
    try:
        # Around all of it, names included: httpx's limit is on each read, and an answer may come in drips.
        async with asyncio.timeout(seconds):
            (address, *_) = await guard.resolve(host, port, allow_private=allow_private)
            async with (
                httpx.AsyncClient(
                    verify=ssl.create_default_context() if scheme == "https" else False,
                    follow_redirects=False,
                    trust_env=False,
                    timeout=seconds,
                ) as client,
                client.stream(
                    "POST",
                    target.copy_with(host=address),
                    content=body,
                    headers=headers,
                    extensions={"sni_hostname": host} if scheme == "https" else {},
                ) as answer,
            ):
                if answer.is_success:
                    return answer.status_code
                raise NotDelivered(
                    _why(answer.status_code, host), code=answer.status_code, final=answer.status_code == 410
                )
    except (TimeoutError, httpx.TimeoutException):
        raise NotDelivered(f"{host} did not answer within {seconds:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ssl.SSLError) as error:
        raise NotDelivered(f"{host} cannot be reached: {str(error)[:MOST_SHOWN] or type(error).__name__}") from None


def _why(status: int, host: str) -> str:
    if 300 <= status < 400:
        return f"{host} answered {status}: redirects are not followed, so give the address that it leads to"
    if status == 410:
        return f"{host} answered 410: nobody is there any more"
    return f"{host} answered {status}"
