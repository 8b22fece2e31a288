"""Posts messages to addresses that others chose."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping

import httpx

from menuwatch import __version__
from menuwatch.alerts import ssrf_guard
from menuwatch.core.errors import Refused

MAX_ERROR_CHARACTERS = 200


class NotDelivered(Exception):
    """The receiver did not accept the message. `code` is its HTTP status; `final`: do not retry."""

    def __init__(self, reason: str, *, code: int | None = None, final: bool = False) -> None:
        super().__init__(reason)
        self.code = code
        self.final = final


async def post(url: str, body: bytes, headers: Mapping[str, str], *, seconds: float, allow_private: bool) -> int:
    """Posts the body; returns the HTTP status (2xx). Raises NotDelivered, and Forbidden for addresses that are not public.

    Connects to the address that was checked, so DNS rebinding has no effect. Redirects are not followed, no proxy is used,
    certificates are verified.
    """
    try:
        scheme, host, port = ssrf_guard.check_url(url)
    except Refused as error:  # stored before it was checked like this
        raise NotDelivered(str(error), final=True) from None
    target = httpx.URL(url)
    headers = {"Host": target.netloc.decode("ascii"), "User-Agent": f"menuwatch/{__version__}", **headers}
    try:
        # httpx's own limit is on each read, and a response may come byte by byte.
        async with asyncio.timeout(seconds):
            (address, *_) = await ssrf_guard.resolve(host, port, allow_private=allow_private)
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
                ) as response,
            ):
                if response.is_success:
                    return response.status_code
                raise NotDelivered(
                    _why(response.status_code, host), code=response.status_code, final=response.status_code == 410
                )
    except (TimeoutError, httpx.TimeoutException):
        raise NotDelivered(f"{host} did not respond within {seconds:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ssl.SSLError) as error:
        raise NotDelivered(
            f"{host} cannot be reached: {str(error)[:MAX_ERROR_CHARACTERS] or type(error).__name__}"
        ) from None


def _why(status: int, host: str) -> str:
    if 300 <= status < 400:
        return f"{host} responded with {status}: redirects are not followed, enter the target URL"
    if status == 410:
        return f"{host} responded with 410 Gone"
    return f"{host} responded with {status}"
