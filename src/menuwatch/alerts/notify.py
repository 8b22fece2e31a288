"""Notifications through Apprise: one URL for each service, as `ntfy://topic` or `mailtos://…`."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from menuwatch.alerts import guard
from menuwatch.alerts.webhook import NotDelivered
from menuwatch.core.errors import Refused

_LOCAL = frozenset(
    {"dbus", "glib", "gnome", "growl", "kde", "macosx", "qt", "rsyslog", "syslog", "windows", "fluxer-local"}
)
"""Services that act on this machine itself."""


def _instance(url: str, seconds: float) -> Any:
    # A third of a second to load, and a hundred services: only who sends one pays.
    import apprise

    logging.getLogger("apprise").setLevel(logging.CRITICAL)  # it would tell addresses that are secret
    asset = apprise.AppriseAsset(
        app_id="Menuwatch", app_desc="Menuwatch", http_redirects=False, async_mode=False, secure_logging=True
    )
    # Addresses are data of ours: nothing is loaded from paths, and nobody changes what a schema means.
    found = apprise.Apprise.instantiate(url, asset=asset, suppress_exceptions=True)
    if found is not None:
        found.socket_connect_timeout = found.socket_read_timeout = seconds
        if hasattr(found, "verify_certificate"):
            found.verify_certificate = True
    return found


def check(url: str, *, allow_private: bool) -> str:
    """What may be shown of a notification URL; raises Refused for one that leads nowhere."""
    schema = url.partition("://")[0].lower()
    if "://" not in url or schema in ("http", "https"):
        raise Refused("a notification URL begins with its service, as ntfy://topic; for https:// use a webhook")
    if schema in _LOCAL:
        raise Refused(f"{schema}:// acts on the machine that sends it, which is not for alerts")
    found = _instance(url, 1.0)
    if found is None:
        raise Refused(f"{schema}:// is no service that is known, or the rest of the URL is not as it takes it")
    host = _host(found)
    if host is not None:
        try:
            public = guard.is_public(host)
        except ValueError:
            public = host != "localhost"
        if not public and not allow_private:
            raise Refused(f"{host} is not on the public internet: nothing is sent there unless ALERT_ALLOW_PRIVATE=1")
    return f"{schema}://…"


def _host(found: Any) -> str | None:
    host = getattr(found, "smtp_host", None) or getattr(found, "host", None)
    return host if isinstance(host, str) and ("." in host or ":" in host or host == "localhost") else None


async def send(url: str, title: str, body: str, *, seconds: float, allow_private: bool) -> None:
    """Sends a text. Raises NotDelivered, and Forbidden for hosts that are not public."""
    found = await asyncio.to_thread(_instance, url, seconds)
    if found is None:
        raise NotDelivered("the notification URL is none that this version of Apprise takes", final=True)
    host = _host(found)
    if host is not None:
        try:
            await guard.resolve(host, found.port or 443, allow_private=allow_private)
        except OSError as error:
            raise NotDelivered(f"{host} cannot be found: {error.strerror or type(error).__name__}") from None
    try:
        sent = await asyncio.wait_for(asyncio.to_thread(found.notify, body=body, title=title), seconds * 3)
    except TimeoutError:
        raise NotDelivered(f"the service did not answer within {seconds * 3:g} s") from None
    except Exception as error:  # a plugin's own fault; its text may hold the address
        raise NotDelivered(f"the service could not be used: {type(error).__name__}") from None
    if not sent:
        raise NotDelivered("the service did not take it")
