"""Reads a proxy from the forms in which providers hand them out. Pure; no message ever holds the password.

Understood: `PROTOCOL://HOST:PORT`, `PROTOCOL://USER:PASSWORD@HOST:PORT`, `HOST:PORT`, `HOST:PORT:USER:PASSWORD`,
`USER:PASSWORD@HOST:PORT`, and `USER:PASSWORD:HOST:PORT` where it can be nothing else. Without a protocol it is `http`. IPv6 addresses
stand in brackets. In the forms with `@` user and password may be percent-encoded; a password may hold `:` and `@` in every form.
Lists of such lines, and tables, are read by `sheet`.
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import unquote

from menuwatch.core.errors import Refused
from menuwatch.proxies.model import PROTOCOLS, NewProxy, Protocol

_ALIASES: dict[str, Protocol] = {
    "http": "http",
    "https": "https",
    "socks5": "socks5",
    "socks5h": "socks5",  # names are always resolved at the proxy
}
_FORMS = "as http://USER:PASSWORD@HOST:PORT or HOST:PORT:USER:PASSWORD"
_LOOKS_LIKE_PLACE = re.compile(r"^(\[[^\]]*\]|[^:]*):\d*$")
_LONGEST = 2000
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_LABEL = re.compile(r"^(?!-)[A-Za-z0-9_-]{1,63}(?<!-)$")


def parse_line(text: str) -> NewProxy:
    """One proxy; raises Refused saying what is wrong and what would be right."""
    text = text.strip()
    if not text:
        raise Refused(f"the proxy is empty: give it {_FORMS}")
    if len(text) > _LONGEST:
        raise Refused(f"a proxy has at most {_LONGEST} characters: give it {_FORMS}")
    if any(char.isspace() or not char.isprintable() for char in text):
        raise Refused(f"a proxy holds no spaces or control characters: give it {_FORMS}")
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "http", text
    protocol = protocol_named(scheme)
    if separator:
        rest = rest.removesuffix("/")
    login, at, place = rest.rpartition("@")
    if at and (separator or _LOOKS_LIKE_PLACE.match(place)):
        host, port = _place(place)
        username, password = _login(login)
    elif not separator and _is_place_last(rest):
        username, password, place = _place_last(rest)
        host, port = _place(place)
    elif not separator and not rest.startswith("[") and rest.count(":") >= 3:
        host_text, port_text, username, password = rest.split(":", 3)
        host, port = host_named(host_text), port_numbered(port_text)
    elif rest.startswith("[") and "]:" in rest and rest.partition("]:")[2].count(":") >= 2 and not separator:
        host_text, _, tail = rest.partition("]:")
        port_text, username, password = tail.split(":", 2)
        host, port = host_named(host_text + "]"), port_numbered(port_text)
    else:
        host, port = _place(rest)
        return NewProxy(protocol=protocol, host=host, port=port)
    check_login(protocol, username, password)
    return NewProxy(protocol=protocol, host=host, port=port, username=username, password=password)


def _place_last(text: str) -> tuple[str, str, str]:
    """(user, password, place) of a line whose place comes last; the place is empty where it has no such parts."""
    if text.endswith("]") or text.count(":") < 3:
        return "", "", ""
    head, _, port = text.rpartition(":")
    if head.endswith("]"):
        head, _, host = head.rpartition(":[")
        host = f"[{host}"
    else:
        head, _, host = head.rpartition(":")
    username, _, password = head.partition(":")
    return username, password, f"{host}:{port}"


def _is_place_last(text: str) -> bool:
    """Whether the line is USER:PASSWORD:HOST:PORT. Refused where it may as well be HOST:PORT:USER:PASSWORD."""
    first, _, rest = text.partition(":")
    username, password, place = _place_last(text)
    try:
        host, _ = _place(place)
    except Refused:
        return False
    # A name without a dot is as good a user, so only a whole name or an address counts as the place here.
    if not username or not password or not ("." in host or ":" in host or host == "localhost"):
        return False
    try:
        port_numbered(rest.partition(":")[0])
    except Refused:
        return True
    if "." in first or first.startswith("[") or first == "localhost":
        return False
    try:
        host_named(first)
    except Refused:
        return True
    raise Refused(
        "the line can be read as HOST:PORT:USER:PASSWORD and as USER:PASSWORD:HOST:PORT: write it as "
        "http://USER:PASSWORD@HOST:PORT"
    )


def protocol_named(scheme: str) -> Protocol:
    """The protocol of that name, in any case."""
    try:
        return _ALIASES[scheme.lower()]
    except KeyError:
        # Whatever stands before :// may be part of a password when the line is mistyped, so it is not repeated.
        raise Refused(f"the protocol of a proxy is one of {', '.join(PROTOCOLS)}: give it {_FORMS}") from None


def _login(text: str) -> tuple[str, str]:
    username, colon, password = text.partition(":")
    if not colon:
        raise Refused(f"the proxy has a user but no password: give it {_FORMS}")
    return unquote(username), unquote(password)


def check_login(protocol: Protocol, username: str, password: str) -> None:
    """Raises Refused where user and password cannot be sent to a proxy of that protocol."""
    if not username or not password:
        missing = "user" if not username else "password"
        raise Refused(f"the {missing} of the proxy is empty: give both, or neither, {_FORMS}")
    if _CONTROL.search(username + password):
        raise Refused("user and password of a proxy hold no control characters")
    if protocol == "socks5" and max(len(username.encode()), len(password.encode())) > 255:
        raise Refused("a SOCKS5 user or password has at most 255 bytes (RFC 1929)")
    if protocol != "socks5" and ":" in username:
        raise Refused("the user of an HTTP proxy holds no colon (RFC 7617); a password may")


def _place(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or (text.startswith("[") and text.endswith("]")):
        raise Refused(f"the proxy has no port: give it {_FORMS}")
    if "/" in port or "?" in port or "#" in port:
        raise Refused(f"nothing follows the port of a proxy: give it {_FORMS}")
    return host_named(host), port_numbered(port)


def host_named(text: str) -> str:
    """The host in one form; raises Refused."""
    if text.startswith("[") and text.endswith("]"):
        try:
            return str(ipaddress.IPv6Address(text[1:-1]))
        except ValueError:
            raise Refused("what stands in brackets is no IPv6 address") from None
    if not text:
        raise Refused(f"the proxy has no host: give it {_FORMS}")
    if ":" in text:
        raise Refused(f"the proxy has too many colons: give it {_FORMS}, an IPv6 address in brackets")
    name = text.rstrip(".")
    if len(name) > 253 or not all(_LABEL.match(label) for label in name.split(".")):
        raise Refused(f"the host of the proxy is no host name or address: give it {_FORMS}")
    if name.replace(".", "").isdigit():
        try:
            return str(ipaddress.IPv4Address(name))
        except ValueError:
            raise Refused("the host of the proxy is no IPv4 address: it has four numbers from 0 to 255") from None
    return name.lower()


def port_numbered(text: str) -> int:
    """The port; raises Refused."""
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:9]) <= 65535 or len(text) > 5:
        raise Refused(f"the port of a proxy is a number from 1 to 65535: give it {_FORMS}")
    return int(text)
