"""Notifications through Apprise: one URL for each service, as `ntfy://topic` or `mailtos://…`."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from typing import Any

import msgspec

from menuwatch.alerts import ssrf_guard as guard
from menuwatch.alerts.outgoing import NotDelivered
from menuwatch.core.errors import Refused

_STARTUP_SECONDS = 20.0
"""Maximum startup time of the sending process."""

LOCAL = frozenset(
    {
        "blink1", "dbus", "fluxer-local", "glib", "gnome", "growl", "kde", "macosx", "qt", "rsyslog", "syslog", "vapid", "windows",
    }
)  # fmt: skip
"""Services that act on this machine itself, or with files that it holds."""

_FIXED = frozenset(
    """
    46elks aprs atalk azure betterstack bluesky brevo bsky bulksms bulkvs burstsms chanify clickatell clicksend cliq cm d7sms
    dapnet dingtalk discord dot eight00com elks exotel fcm feishu firehydrant flock freemobile gchat github groundmail groupme
    guilded gupshup httpsms ifttt ilert incidentio jira join kakao kakaotalk kaleyra kavenegar klr kook kudosity kumulos lark
    lauther lfg line mailersend mailgun mobilemessage mobilemsg msg91 msgbird nexmo nostr notifiarr notifyre o365 octopush
    onesignal opsgenie pagerduty pagertree pbul pingram plivo postmark pover prowl psafer psafers push pushed pushme pushplus
    pushward pushy qq reddit resend revolt ringc ryver schan sendgrid sendpulse serwersms ses seven sfr signalgrid signl4
    simplepush sinch slack smsc smsmanager smsmgr smstunnel smtp2go sns sparkpost spike splunk spugpush spush squadcast
    stackfield strmlabs telesign telnyx tgram threema tweet twilio twist twitter viber victorops voipms vonage webex
    wechat wecom wecombot whapi whatsapp wpush wxpusher wxteams x youlmk zalo zcliq zohocliq zoom zulip
    """.split()
)
"""Services at an address of their own, whose URL holds a token or a name where others hold a host. What is not among them is taken to
connect to its host, so a service that is new in Apprise is refused rather than trusted."""

_FIXED_MODES = {
    "fluxer": "cloud", "fluxers": "cloud", "lametric": "cloud", "lametrics": "cloud", "matrix": "t2bot", "matrixs": "t2bot",
    "notica": "official", "noticas": "official", "notifico": "official", "notificos": "official", "ntfy": "cloud", "ntfys": "cloud",
}  # fmt: skip
"""Services that are at an address of their own in this mode, which is Apprise's for URLs without a server, and at a host in others."""


def instantiate(url: str, seconds: float) -> Any:
    """Apprise's service for a URL, None for an invalid one."""
    # Loading takes a third of a second and a hundred services, so only senders import it.
    import apprise

    logging.getLogger("apprise").setLevel(logging.CRITICAL)  # it would log secret addresses
    asset = apprise.AppriseAsset(
        app_id="Menuwatch", app_desc="Menuwatch", http_redirects=False, async_mode=False, secure_logging=True
    )
    # Load no plugins from paths, and replace none.
    try:
        found = apprise.Apprise.instantiate(url, asset=asset, suppress_exceptions=True)
    except Exception:  # it catches the plugin's exceptions, but not those of parsing the URL
        return None
    if found is not None:
        found.socket_connect_timeout = found.socket_read_timeout = seconds
        if hasattr(found, "verify_certificate"):
            found.verify_certificate = True
    return found


def check(url: str, *, allow_private: bool) -> str:
    """The displayable part of a notification URL; raises Refused for an unusable one."""
    schema = schema_of(url)
    if "://" not in url or schema in ("http", "https"):
        raise Refused("a notification URL begins with a service, for example ntfy://topic; for https:// use a webhook")
    if schema in LOCAL:
        raise Refused(f"{schema}:// acts on the sending machine and is not allowed")
    found = instantiate(url, 1.0)
    if found is None:
        raise Refused(f"unknown service {schema}://, or invalid URL for it")
    if reads_files(found):
        raise Refused("the notification URL refers to a local file, which is not allowed")
    host = host_of(schema, found)
    if host is not None:
        check_host(schema, host, allow_private=allow_private)
    return f"{schema}://…"


def reads_files(found: Any) -> bool:
    """Whether it would read a local file, as template or key; the author of a rule may not be allowed to."""
    import apprise

    return any(isinstance(one, apprise.AppriseAttachment) and len(one) > 0 for one in vars(found).values())


def schema_of(url: str) -> str:
    """The service that a notification URL names."""
    return url.partition("://")[0].strip().lower()


def host_of(schema: str, found: Any) -> str | None:
    """The host that a service connects to; None for services at an address of their own."""
    if schema in _FIXED or (schema in _FIXED_MODES and getattr(found, "mode", None) == _FIXED_MODES[schema]):
        return None
    host = getattr(found, "smtp_host", None) or getattr(found, "host", None)
    return host if isinstance(host, str) and host else None


def check_host(schema: str, host: str, *, allow_private: bool) -> str:
    """The host as used for the lookup. Raises Refused for an invalid one, Forbidden for a host that is never public, whatever
    it resolves to.
    """
    name = guard.check_host(host)
    if not allow_private and not guard.may_be_public(name):
        raise guard.Forbidden(
            f"{schema}:// sends to the host in its URL, and {host} is not a public address: set ALERT_ALLOW_PRIVATE=1 to allow it"
        )
    return name


async def send(url: str, title: str, body: str, *, seconds: float, allow_private: bool) -> None:
    """Sends a text, from a process of its own that ends after three times `seconds`. Raises NotDelivered, and Forbidden for hosts that
    are not public."""
    limit = seconds * 3
    request = {"url": url, "title": title, "body": body, "seconds": seconds, "limit_seconds": limit}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "menuwatch.alerts.notify_process"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(limit + _STARTUP_SECONDS):
            output, _ = await process.communicate(msgspec.json.encode(request | {"allow_private": allow_private}))
    except TimeoutError:
        output = b""
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if not output and process.returncode in (-signal.SIGALRM, -signal.SIGKILL):
        raise NotDelivered(f"the service did not respond within {limit:g} s")
    if not output:
        raise NotDelivered(f"the notification process failed with status {process.returncode}")
    result = msgspec.json.decode(output, type=dict[str, Any])
    if result["forbidden"]:
        raise guard.Forbidden(result["error"])
    if result["error"] is not None:
        raise NotDelivered(result["error"], final=result["final"])
