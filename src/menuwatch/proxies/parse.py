"""Reads a proxy from the forms in which providers hand them out. Pure; no message ever holds the password.

Understood: `PROTOCOL://HOST:PORT`, `PROTOCOL://USER:PASSWORD@HOST:PORT`, `HOST:PORT`, `HOST:PORT:USER:PASSWORD`, and
`USER:PASSWORD@HOST:PORT`. Without a protocol it is `http`. IPv6 addresses stand in brackets. In the URL forms user and password may be
percent-encoded; a password may hold `:` and `@` in every form.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
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
_LABEL = re.compile(r"^(?!-)[A-Za-z0-9_-]{1,63}(?<!-)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A line that is no proxy. `number` counts from 1."""

    number: int
    reason: str


def parse_line(text: str) -> NewProxy:
    """One proxy; raises Refused saying what is wrong and what would be right."""
    text = text.strip()
    if not text:
        raise Refused(f"the proxy is empty: give it {_FORMS}")
    if any(char.isspace() or not char.isprintable() for char in text):
        raise Refused(f"a proxy holds no spaces or control characters: give it {_FORMS}")
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "http", text
    protocol = _protocol(scheme)
    if separator:
        rest = rest.removesuffix("/")
    login, at, place = rest.rpartition("@")
    if at and (separator or _LOOKS_LIKE_PLACE.match(place)):
        host, port = _place(place)
        username, password = _login(login)
    elif not separator and not rest.startswith("[") and rest.count(":") >= 3:
        host_text, port_text, username, password = rest.split(":", 3)
        host, port = _host(host_text), _port(port_text)
    elif rest.startswith("[") and "]:" in rest and rest.partition("]:")[2].count(":") >= 2 and not separator:
        host_text, _, tail = rest.partition("]:")
        port_text, username, password = tail.split(":", 2)
        host, port = _host(host_text + "]"), _port(port_text)
    else:
        host, port = _place(rest)
        return NewProxy(protocol=protocol, host=host, port=port)
    _check_login(protocol, username, password)
    return NewProxy(protocol=protocol, host=host, port=port, username=username, password=password)


def parse_lines(lines: Iterable[str]) -> tuple[list[NewProxy], list[Rejected]]:
    """The proxies of a list, and the lines that are none. Blank lines and `#` comments are passed over."""
    proxies: list[NewProxy] = []
    rejected: list[Rejected] = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            proxies.append(parse_line(line))
        except Refused as error:
            rejected.append(Rejected(number=number, reason=str(error)))
    return proxies, rejected


def _protocol(scheme: str) -> Protocol:
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


def _check_login(protocol: Protocol, username: str, password: str) -> None:
    if not username or not password:
        missing = "user" if not username else "password"
        raise Refused(f"the {missing} of the proxy is empty: give both, or neither, {_FORMS}")
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
    return _host(host), _port(port)


def _host(text: str) -> str:
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


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:9]) <= 65535 or len(text) > 5:
        raise Refused(f"the port of a proxy is a number from 1 to 65535: give it {_FORMS}")
    return int(text)
