"""Read lists of proxies: lines, or a table with a header (CSV). Pure; no message holds a password.

A table is a list whose first line names a column for the host and one for the port (or one for the whole proxy), separated by commas,
semicolons or tabs. Columns may come in any order and have the names that providers use; unknown ones are ignored.
Every proxy is on one line, so an unclosed quote affects that line only. Blank lines and `#` comments are ignored.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from menuwatch.core.errors import Refused
from menuwatch.proxies.location import LOCATION, Location
from menuwatch.proxies.model import NewProxy
from menuwatch.proxies.parse import check_login, host_named, parse_line, port_numbered, protocol_named

_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "proxy": ("proxy", "url", "proxy_url", "line"),
    "host": ("host", "ip", "address", "server", "hostname", "host_name", "ip_address", "proxy_address", "proxy_host", "proxy_ip"),
    "port": ("port", "proxy_port", "http_port"),
    "username": ("username", "user", "login", "user_name", "proxy_username", "proxy_user"),
    "password": ("password", "pass", "passwd", "pwd", "proxy_password", "proxy_pass"),
    "protocol": ("protocol", "type", "scheme", "proxy_type", "proxy_protocol"),
    "city": ("city", "city_name"),
    "state": ("state", "state_code", "region", "region_code", "province"),
    "country": ("country", "country_code", "cc"),
    "timezone": ("timezone", "time_zone", "tz"),
}  # fmt: skip
_MEANING = {alias: name for name, aliases in _COLUMNS.items() for alias in aliases}
_LONGEST = 10_000
_DELIMITERS = ",;\t"
_LINE_END = re.compile(r"\r\n|\r|\n")
_UNFORESEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class Rejected(Struct, frozen=True, kw_only=True):
    """A line that is not a valid proxy. `number` counts from 1."""

    number: int
    reason: str


class ParsedProxy(Struct, frozen=True, kw_only=True):
    """A proxy and its line number."""

    number: int
    proxy: NewProxy


def text_of(content: bytes) -> str:
    """Decode a file: UTF-8, or UTF-16 with a byte order mark as spreadsheets write it. Invalid UTF-8 affects its line only."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", errors="replace")
    return content.decode("utf-8-sig", errors="surrogateescape")


def read(text: str) -> tuple[list[ParsedProxy], list[Rejected]]:
    """The proxies of a list, and the invalid lines. Raises Refused if the header of a table is contradictory."""
    parsed: list[ParsedProxy] = []
    rejected: list[Rejected] = []
    table: _Table | None = None
    begun = False
    for number, line in enumerate(_LINE_END.split(text.removeprefix("\ufeff")), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not begun:
            begun = True
            if (table := _header(line)) is not None:
                continue
        try:
            _check_text(line)
            proxy = _line(line) if table is None else table.row(line)
        except Refused as error:
            rejected.append(Rejected(number=number, reason=str(error)))
        else:
            if proxy is not None:
                parsed.append(ParsedProxy(number=number, proxy=proxy))
    return parsed, rejected


def _check_text(line: str) -> None:
    if any("\ud800" <= char <= "\udfff" for char in line):
        raise Refused("the line is not UTF-8 text: save the list as UTF-8")
    if len(line) > _LONGEST:
        raise Refused(f"the line has more than {_LONGEST:,} characters")
    if _UNFORESEEN.search(line):
        raise Refused("the line contains control characters")


def _line(line: str) -> NewProxy:
    try:
        return parse_line(line)
    except Refused as error:
        if any(mark in line for mark in _DELIMITERS):
            raise Refused(f"{error}; a table needs a header line such as host,port,username,password") from None
        raise


def _cells(line: str, delimiter: str) -> list[str]:
    try:
        (row,) = csv.reader([line], delimiter=delimiter, strict=True, skipinitialspace=True)
    except (csv.Error, ValueError):
        raise Refused('a quoted value is not closed: write it as "value", with "" for a quote in it') from None
    return [cell.strip() for cell in row]


def _header(line: str) -> _Table | None:
    for delimiter in _DELIMITERS:
        try:
            cells = _cells(line, delimiter)
        except Refused:
            continue
        names = [_MEANING.get(re.sub(r"[\s-]+", "_", cell.strip().lower())) for cell in cells]
        if "proxy" in names or {"host", "port"} <= set(names):
            return _Table(names, cells, delimiter)
    return None


class _Table:
    """The columns of a table."""

    def __init__(self, names: Sequence[str | None], headings: Sequence[str], delimiter: str) -> None:
        for name in _COLUMNS:
            if names.count(name) > 1:
                twice = " and ".join(repr(h) for h, n in zip(headings, names, strict=True) if n == name)
                raise Refused(f"the table has two columns for {name}: {twice}; remove one")
        self._names = names
        self._delimiter = delimiter

    def row(self, line: str) -> NewProxy | None:
        """The proxy of a line, None if all its cells are empty."""
        cells = _cells(line, self._delimiter)
        if not any(cells):
            return None
        if len(cells) > len(self._names) and any(cells[len(self._names) :]):
            raise Refused(
                f"the line has {len(cells)} values for {len(self._names)} columns: "
                f"quote values that contain {'a tab' if self._delimiter == chr(9) else self._delimiter!r}"
            )
        values = {name: cell for name, cell in zip(self._names, cells, strict=False) if name is not None and cell}
        proxy = parse_line(values["proxy"]) if "proxy" in values else _assembled(values)
        return Location.parse(**{name: values.get(name) for name in LOCATION}).of(proxy)


def _assembled(values: Mapping[str, str]) -> NewProxy:
    protocol = protocol_named(values.get("protocol", "http"))
    host, port = host_named(values.get("host", "")), port_numbered(values.get("port", ""))
    username, password = values.get("username"), values.get("password")
    if username is not None or password is not None:
        check_login(protocol, username or "", password or "")
    return NewProxy(protocol=protocol, host=host, port=port, username=username, password=password)
