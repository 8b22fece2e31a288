"""Databases in IP2Location's own format (.BIN), read by the package of that name, which is an extra: `menuwatch[ip2location]`."""

from __future__ import annotations

import importlib
import struct
import threading
from datetime import date
from pathlib import Path
from typing import Any

from menuwatch.core.telemetry import get_logger
from menuwatch.geo.location import Address, Location, Unreadable, location

log = get_logger(__name__)

_HEADER = struct.Struct("<5B6I3B")
_UNAVAILABLE = ("This parameter is unavailable", "INVALID IP ADDRESS", "IPV6 ADDRESS MISSING")
"""How the package begins a text where it has none."""
_KINDS = range(1, 27)
_PLACES = 1
"""Product code of IP2Location; IP2Proxy has another. Files from before 2021 have none."""


def is_bin(head: bytes, size: int) -> bool:
    """Whether a file of `size` bytes that begins so can be one: there is no magic number, but it says where its parts are."""
    if len(head) < _HEADER.size:
        return False
    kind, columns, year, month, day, count4, at4, count6, at6, index4, index6, product, _, _ = _HEADER.unpack_from(head)
    return (
        kind in _KINDS
        and 2 <= columns <= 40
        and 1 <= month <= 12
        and 1 <= day <= 31
        and (product == _PLACES or (product == 0 and year <= 20))
        and count4 + count6 > 0
        and (count4 == 0 or _HEADER.size < at4 <= size - count4 * columns * 4 + 1)
        and (count6 == 0 or _HEADER.size < at6 <= size - count6 * (columns * 4 + 12) + 1)
        and max(index4, index6) < size
    )


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


class Bin:
    """One open file, whose place is moved for each question: one asks at a time."""

    def __init__(self, path: Path) -> None:
        """Raises Unreadable where the package is missing or cannot read it."""
        try:
            package: Any = importlib.import_module("IP2Location")
        except ImportError:
            raise Unreadable(
                "is an IP2Location database, for which a package is missing: pip install 'menuwatch[ip2location]'"
            ) from None
        self._lock = threading.Lock()
        with path.open("rb") as file:
            kind, _, year, month, day = file.read(5)
        self.built = _day(2000 + year, month, day)
        self.about = f"IP2Location DB{kind}, of 20{year:02}-{month:02}-{day:02}"
        try:
            self._file: Any = package.IP2Location(str(path))
            self._try_out()
        except Exception as error:
            raise Unreadable(f"is a broken IP2Location database ({error})") from error

    def _try_out(self) -> None:
        """Asks a few addresses: a file that was cut off answers with an error for most of them."""
        for address in ("1.0.0.1", "8.8.8.8", "81.2.69.142", "203.119.0.1", "223.255.254.1", "2001:4860:4860::8888"):
            self._file.get_all(address)

    def locate(self, address: Address) -> Location | None:
        """Where the address is."""
        try:
            with self._lock:
                record = self._file.get_all(str(address))
        except Exception as error:
            log.warning("an entry cannot be read", action="geo_unreadable", error=f"{type(error).__name__}: {error}")
            return None
        if record is None:
            return None
        said = (record.country_short, record.region, record.city, record.latitude, record.longitude)
        return location(*(None if str(value).startswith(_UNAVAILABLE) else value for value in said))

    def close(self) -> None:
        """Lets go of the file."""
        with self._lock:
            self._file.close()
