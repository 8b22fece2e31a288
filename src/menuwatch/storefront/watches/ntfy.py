"""ntfy (https://ntfy.sh): messages to a topic, which an app or a browser subscribes to. A topic can be read by all who know its name,
so by default it is a random one.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from urllib.parse import urlsplit

import msgspec

from menuwatch.alerts import outgoing, ssrf_guard
from menuwatch.core.errors import InvalidField, Refused
from menuwatch.storefront.watches.messages import clipped

_TOPIC = re.compile(r"[-_A-Za-z0-9]{1,64}")
_RESERVED = frozenset({"docs", "static", "file", "app", "account", "settings", "signup", "login", "v1", "config"})
_TITLE_BYTES, _TEXT_BYTES = 250, 3_500


def new_topic(server: str) -> str:
    """The address of a new topic with a random name."""
    return f"{server}/menuwatch-{secrets.token_urlsafe(18)}"


def topic_address(typed: str, server: str) -> str:
    """The address of a topic that a shopper typed: its name at our server, or an address at another one. Raises InvalidField."""
    wrong = InvalidField(
        "topic", f"Use a topic name of letters, digits, - and _, or an address such as {server}/my-topic."
    )
    if "/" not in typed:
        if _TOPIC.fullmatch(typed) is None or typed in _RESERVED:
            raise wrong
        return f"{server}/{typed}"
    parts = urlsplit(typed if "://" in typed else f"https://{typed}")
    base, topic = f"{parts.scheme}://{parts.netloc}", parts.path.removeprefix("/")
    if parts.query or parts.fragment or _TOPIC.fullmatch(topic) is None or topic in _RESERVED:
        raise wrong
    if base == server:
        return f"{server}/{topic}"
    try:
        scheme, host, _ = ssrf_guard.check_url(f"{base}/{topic}")
    except Refused:
        raise wrong from None
    if scheme != "https" or not ssrf_guard.may_be_public(host):
        raise InvalidField("topic", "Use a server that is reachable on the internet, with https://.")
    return f"{base}/{topic}"


async def send(
    address: str,
    *,
    title: str,
    text: str,
    click: str,
    actions: Sequence[tuple[str, str]] = (),
    server: str,
    seconds: float,
) -> None:
    """Publishes a message; `actions` are labels with addresses. Raises NotDelivered, and Forbidden for a server inside the network,
    unless it is ours."""
    base, _, topic = address.rpartition("/")
    message = {
        "topic": topic,
        "title": clipped(title, _TITLE_BYTES),
        "message": clipped(text, _TEXT_BYTES),
        "click": click,
        "actions": [{"action": "view", "label": label, "url": url} for label, url in actions],
    }
    body = msgspec.json.encode(message)
    headers = {"Content-Type": "application/json"}
    await outgoing.post(f"{base}/", body, headers, seconds=seconds, allow_private=base == server)
