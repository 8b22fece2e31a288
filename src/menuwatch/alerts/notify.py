"""Notifications through Apprise: one URL for each service, as `ntfy://topic` or `mailtos://…`."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from menuwatch.alerts import fence, guard
from menuwatch.alerts.webhook import NotDelivered
from menuwatch.core.errors import Refused

_LOCAL = frozenset(
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
    """.split()  # noqa: SIM905 - two hundred lines otherwise
)
"""Services at an address of their own, whose URL holds a token or a name where others hold a host. What is not among them is taken to
connect to its host, so a service that Apprise learns anew is refused rather than trusted."""

_FIXED_MODES = {
    "fluxer": "cloud", "fluxers": "cloud", "lametric": "cloud", "lametrics": "cloud", "matrix": "t2bot", "matrixs": "t2bot",
    "notica": "official", "noticas": "official", "notifico": "official", "notificos": "official", "ntfy": "cloud", "ntfys": "cloud",
}  # fmt: skip
"""Services that are at an address of their own in this mode, which is Apprise's for URLs without a server, and at a host in others."""


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
    schema = _schema(url)
    if "://" not in url or schema in ("http", "https"):
        raise Refused("a notification URL begins with its service, as ntfy://topic; for https:// use a webhook")
    if schema in _LOCAL:
        raise Refused(f"{schema}:// acts on the machine that sends it, which is not for alerts")
    found = _instance(url, 1.0)
    if found is None:
        raise Refused(f"{schema}:// is no service that is known, or the rest of the URL is not as it takes it")
    if _reads_files(found):
        raise Refused("the notification URL names a file to read on the machine that sends it, which is not for alerts")
    host = _host(schema, found)
    if host is not None and not allow_private:
        _check_host(schema, host)
    return f"{schema}://…"


def _reads_files(found: Any) -> bool:
    """Whether it would read a file of this machine, as a template to send or as a key: who writes a rule need not be one who may."""
    import apprise

    return any(isinstance(one, apprise.AppriseAttachment) and len(one) > 0 for one in vars(found).values())


def _schema(url: str) -> str:
    return url.partition("://")[0].strip().lower()


def _host(schema: str, found: Any) -> str | None:
    """The host that a service connects to; None for services at an address of their own."""
    if schema in _FIXED or (schema in _FIXED_MODES and getattr(found, "mode", None) == _FIXED_MODES[schema]):
        return None
    host = getattr(found, "smtp_host", None) or getattr(found, "host", None)
    return host if isinstance(host, str) and host else None


def _check_host(schema: str, host: str) -> None:
    """Raises Forbidden for a host that cannot be on the public internet, whatever it resolves to."""
    if not guard.may_be_public(host):
        raise guard.Forbidden(
            f"{schema}:// sends to the host that it names, and {host} is not on the public internet: nothing is sent there unless"
            " ALERT_ALLOW_PRIVATE=1"
        )


async def send(url: str, title: str, body: str, *, seconds: float, allow_private: bool) -> None:
    """Sends a text. Raises NotDelivered, and Forbidden for hosts that are not public."""
    schema = _schema(url)
    found = await asyncio.to_thread(_instance, url, seconds)
    if found is None or schema in _LOCAL or _reads_files(found):
        raise NotDelivered(
            "the notification URL is none that is taken now: give the channel anew to see why", final=True
        )
    host = _host(schema, found)
    if host is not None:
        if not allow_private:
            _check_host(schema, host)
        try:
            async with asyncio.timeout(seconds):
                await guard.resolve(host, found.port or 443, allow_private=allow_private)
        except TimeoutError:
            raise NotDelivered(f"{host} was not found within {seconds:g} s") from None
        except OSError as error:
            raise NotDelivered(f"{host} cannot be found: {error.strerror or type(error).__name__}") from None
    try:
        sent = await fence.run(
            lambda: found.notify(body=body, title=title), seconds=seconds * 3, allow_private=allow_private
        )
    except guard.Forbidden:
        raise
    except fence.Busy:
        raise NotDelivered("busy: earlier deliveries still hang") from None
    except TimeoutError:
        raise NotDelivered(f"the service did not answer within {seconds * 3:g} s") from None
    except Exception as error:  # a plugin's own fault; its text may hold the address
        raise NotDelivered(f"the service could not be used: {type(error).__name__}") from None
    if not sent:
        raise NotDelivered("the service did not take it")
