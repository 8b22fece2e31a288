"""Parse a proxy from the formats that providers use. Pure; no message holds the password.

Formats: `PROTOCOL://HOST:PORT`, `PROTOCOL://USER:PASSWORD@HOST:PORT`, `HOST:PORT`, `HOST:PORT:USER:PASSWORD`,
`USER:PASSWORD@HOST:PORT`, and `USER:PASSWORD:HOST:PORT` if it is unambiguous. Without a protocol it is `http`. IPv6 addresses
are in brackets. In the formats with `@` user and password may be percent-encoded; a password may contain `:` and `@` in every format.
`import_file` reads lists of such lines, and tables.
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
    "socks5h": "socks5",  # the proxy resolves host names in any case
}
_FORMS = "http://USER:PASSWORD@HOST:PORT or HOST:PORT:USER:PASSWORD"
_LOOKS_LIKE_PLACE = re.compile(r"^(\[[^\]]*\]|[^:]*):\d*$")
_LONGEST = 2000
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_LABEL = re.compile(r"^(?!-)[A-Za-z0-9_-]{1,63}(?<!-)$")


def parse_line(text: str) -> NewProxy:
    """Parse one proxy; raises Refused with what is wrong and what to write instead."""
    text = text.strip()
    if not text:
        raise Refused(f"the proxy is empty: expected {_FORMS}")
    if len(text) > _LONGEST:
        raise Refused(f"a proxy has at most {_LONGEST} characters: expected {_FORMS}")
    if any(char.isspace() or not char.isprintable() for char in text):
        raise Refused(f"a proxy must not contain spaces or control characters: expected {_FORMS}")
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
    """(user, password, place) of a line that ends with host and port; the place is empty if it has no such parts."""
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
    """Whether the line is USER:PASSWORD:HOST:PORT. Raises Refused if it may also be HOST:PORT:USER:PASSWORD."""
    first, _, rest = text.partition(":")
    username, password, place = _place_last(text)
    try:
        host, _ = _place(place)
    except Refused:
        return False
    # A name without a dot may also be a user, so only a full host name or an address counts as the host here.
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
    """The protocol of that name, ignoring case."""
    try:
        return _ALIASES[scheme.lower()]
    except KeyError:
        # In a mistyped line the part before :// may belong to a password, so it is not repeated.
        raise Refused(f"unsupported protocol: use one of {', '.join(PROTOCOLS)}") from None


def _login(text: str) -> tuple[str, str]:
    username, colon, password = text.partition(":")
    if not colon:
        raise Refused(f"the proxy has a user but no password: expected {_FORMS}")
    return unquote(username), unquote(password)


def check_login(protocol: Protocol, username: str, password: str) -> None:
    """Raises Refused if the protocol cannot carry this user and password."""
    if not username or not password:
        missing = "user" if not username else "password"
        raise Refused(f"the {missing} of the proxy is empty: expected {_FORMS}, or no login")
    if _CONTROL.search(username + password):
        raise Refused("user and password of a proxy must not contain control characters")
    if protocol == "socks5" and max(len(username.encode()), len(password.encode())) > 255:
        raise Refused("a SOCKS5 user or password has at most 255 bytes (RFC 1929)")
    if protocol != "socks5" and ":" in username:
        raise Refused("the user of an HTTP proxy must not contain a colon (RFC 7617); a password may")


def _place(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or (text.startswith("[") and text.endswith("]")):
        raise Refused(f"the proxy has no port: expected {_FORMS}")
    if "/" in port or "?" in port or "#" in port:
        raise Refused(f"unexpected text after the port: expected {_FORMS}")
    return host_named(host), port_numbered(port)


def host_named(text: str) -> str:
    """The normalized host; raises Refused."""
    if text.startswith("[") and text.endswith("]"):
        try:
            return str(ipaddress.IPv6Address(text[1:-1]))
        except ValueError:
            raise Refused("invalid IPv6 address in brackets") from None
    if not text:
        raise Refused(f"the proxy has no host: expected {_FORMS}")
    if ":" in text:
        raise Refused(f"the proxy has too many colons: expected {_FORMS}, with an IPv6 address in brackets")
    name = text.rstrip(".")
    if len(name) > 253 or not all(_LABEL.match(label) for label in name.split(".")):
        raise Refused(f"the host of the proxy is not a host name or address: expected {_FORMS}")
    if name.replace(".", "").isdigit():
        try:
            return str(ipaddress.IPv4Address(name))
        except ValueError:
            raise Refused("invalid IPv4 address") from None
    return name.lower()


def port_numbered(text: str) -> int:
    """Parse the port; raises Refused."""
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:9]) <= 65535 or len(text) > 5:
        raise Refused(f"the port of a proxy is a number from 1 to 65535: expected {_FORMS}")
    return int(text)
