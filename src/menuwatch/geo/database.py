"""The geography database of GEOIP_DATABASE: format detected by content, reloaded when the file is replaced.

MaxMind files (.mmdb) have the layout of GeoIP2, GeoLite2 and DB-IP. IP2Location files (.BIN) are read by the package of that name,
which is an extra: `menuwatch[ip2location]`.
"""

from __future__ import annotations

import importlib
import itertools
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any

import maxminddb

from menuwatch.core.errors import Refused
from menuwatch.core.logging import get_logger

log = get_logger(__name__)
Address = IPv4Address | IPv6Address

LOOK_SECONDS = 5.0
"""Interval of the checks for a replaced file."""
_TAIL = 128 * 1024
_TAKES = "expected an uncompressed MaxMind (.mmdb) or IP2Location BIN file with countries or cities"
_OTHERS = (
    (b"PK\x03\x04", "is a ZIP archive: unpack it and set the path of the .BIN or .mmdb file"),
    (b"\x1f\x8b", "is packed (gzip): unpack it and set the path of the .mmdb or .BIN file"),
    (b"<", "is a web page or XML: the download went wrong"),
    (b'"', "is a CSV table: the BIN or the MMDB edition is needed"),
)
_MMDB_MARKER = b"\xab\xcd\xefMaxMind.com"
"""Stands before the metadata, in the last 128 KiB of the file."""
_CHECKED_RECORDS = 1000
"""Records of which one must have a location."""
_HEADER = struct.Struct("<5B6I3B")
_UNAVAILABLE = ("This parameter is unavailable", "INVALID IP ADDRESS", "IPV6 ADDRESS MISSING")
"""How the package begins a text where it has none."""
_DATABASE_TYPES = range(1, 27)
_PRODUCT = 1
"""Product code of IP2Location; IP2Proxy has another. Files from before 2021 have none."""
_Version = tuple[int, int, int]
_MAX_NAME = 100
"""Maximum characters of a name; the rest is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """An approximate location, at most a city; None: unknown. Coordinates in degrees."""

    country: str
    """Two letters (ISO 3166-1)."""
    region: str | None = None
    """In English, as `Arizona`."""
    city: str | None = None
    latitude: float | None = None
    longitude: float | None = None


class Unreadable(Exception):
    """The file is not a valid database; the message says what it is instead."""


def location(
    country: object, region: object = None, city: object = None, latitude: object = None, longitude: object = None
) -> Location | None:
    """A location from untrusted values of a file; implausible values are left out. None without a country."""
    code = _text(country)
    if code is None or len(code) != 2 or not (code.isascii() and code.isalpha()):
        return None
    lat, lon = _degrees(latitude, 90), _degrees(longitude, 180)
    if lat is None or lon is None or (lat == 0 and lon == 0):  # off the coast of Africa is where the unknown is put
        lat = lon = None
    return Location(country=code.upper(), region=_text(region), city=_text(city), latitude=lat, longitude=lon)


def _text(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    text = "".join(char for char in value if char.isprintable()).strip()[:_MAX_NAME]
    return text if text not in ("", "-") else None


def _degrees(value: object, most: int) -> float | None:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return number if -most <= number <= most else None  # NaN is neither


class GeoDatabase:
    """An open file, reloaded when it is replaced. If the new file is broken, the previous one stays in use."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises Refused with what is wrong with the file and what would be right. `clock` is in seconds."""
        self.path = path
        self._clock = clock
        self._lock = threading.Lock()
        try:
            self._version = _version(path)
            self._reader = _open(path)
        except OSError as error:
            raise Refused(
                f"invalid GEOIP_DATABASE={str(path)!r}: cannot be read: {error.strerror}; {_TAKES}"
            ) from error
        except Unreadable as error:
            raise Refused(f"invalid GEOIP_DATABASE={str(path)!r}: it {error}; {_TAKES}") from error
        self._next_check = clock() + LOOK_SECONDS
        log.info("geolocation database opened", action="geo_opened", path=str(path), database=self.about)

    @property
    def about(self) -> str:
        """Format, type and date of the open file."""
        return self._reader.about

    @property
    def built(self) -> date | None:
        """Build date of the open file; None if unknown."""
        return self._reader.built

    def locate(self, address: Address) -> Location | None:
        """The location of the address; None for private and loopback addresses and for unknown ones."""
        if not address.is_global:
            return None
        with self._lock:
            self._follow()
            return self._reader.locate(address)

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._reader.close()

    def _follow(self) -> None:
        now = self._clock()
        if now < self._next_check:
            return
        self._next_check = now + LOOK_SECONDS
        try:
            version = _version(self.path)
            if version == self._version:
                return
            self._version = version
            fresh = _open(self.path)
        except (OSError, Unreadable) as error:
            log.warning(
                "new geolocation database invalid, keeping the previous one",
                action="geo_not_renewed",
                path=str(self.path),
                error=str(error),
            )
            return
        self._reader.close()
        self._reader = fresh
        log.info("geolocation database reloaded", action="geo_renewed", path=str(self.path), database=self.about)


def opened(path: Path | None) -> GeoDatabase | None:
    """The database of GEOIP_DATABASE; None where it is not set. Raises Refused where it cannot be used."""
    return None if path is None else GeoDatabase(path)


def _version(path: Path) -> _Version:
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def _open(path: Path) -> MaxMindReader | Ip2LocationReader:
    if path.is_dir():
        raise Unreadable("is a folder: name the file in it")
    with path.open("rb") as file:
        head = file.read(64)
        size = file.seek(0, 2)
        file.seek(max(0, size - _TAIL))
        tail = file.read()
    if _MMDB_MARKER in tail:
        return MaxMindReader(path)
    if _is_ip2location(head, size):
        return Ip2LocationReader(path)
    if not size:
        raise Unreadable("is empty")
    raise Unreadable(next((what for start, what in _OTHERS if head.startswith(start)), "is neither, or truncated"))


def _log_unreadable(error: Exception) -> None:
    log.warning("geolocation entry unreadable", action="geo_unreadable", error=f"{type(error).__name__}: {error}")


class MaxMindReader:
    """Read from the file, not mapped into memory: a file that is copied over in place would end a process that has it mapped."""

    def __init__(self, path: Path) -> None:
        """Raises Unreadable for a broken file and for a database without locations."""
        self._lock = threading.Lock()
        try:
            self._reader = maxminddb.open_database(path, maxminddb.MODE_FILE)
        except (maxminddb.InvalidDatabaseError, ValueError, TypeError) as error:
            raise Unreadable(f"is a broken MaxMind database ({error})") from error
        try:
            self._check()
        except Unreadable:
            self.close()
            raise
        except Exception as error:
            self.close()
            raise Unreadable(f"is a broken MaxMind database ({error})") from error

    def _check(self) -> None:
        meta = self._reader.metadata()
        self._has_ipv6 = meta.ip_version == 6
        built = datetime.fromtimestamp(meta.build_epoch, UTC)
        self.built = built.date()
        self.about = f"MaxMind format, {meta.database_type}, of {built:%Y-%m-%d}"
        some = itertools.islice(self._reader, _CHECKED_RECORDS)
        if not any(_read(record) is not None for _, record in some):
            raise Unreadable(f"is a MaxMind database of another kind ({meta.database_type}): it has no countries")

    def locate(self, address: Address) -> Location | None:
        """The location of the address; None if unknown."""
        if address.version == 6 and not self._has_ipv6:
            return None
        try:
            with self._lock:
                return _read(self._reader.get(address))
        except Exception as error:
            # A record that points nowhere, or the file is just being written over.
            _log_unreadable(error)
            return None

    def close(self) -> None:
        """Closes the file."""
        self._reader.close()


def _read(record: Any) -> Location | None:
    if not isinstance(record, dict):
        return None
    country = _part(record, "country") or _part(record, "registered_country")
    divisions = record.get("subdivisions")
    region = divisions[0] if isinstance(divisions, list) and divisions and isinstance(divisions[0], dict) else {}
    spot = _part(record, "location")
    return location(
        country.get("iso_code"),
        _name(region),
        _name(_part(record, "city")),
        spot.get("latitude"),
        spot.get("longitude"),
    )


def _part(record: dict[str, Any], key: str) -> dict[str, Any]:
    value = record.get(key)
    return value if isinstance(value, dict) else {}


def _name(place: dict[str, Any]) -> object:
    return _part(place, "names").get("en")


def _is_ip2location(head: bytes, size: int) -> bool:
    """Whether a file of `size` bytes with this beginning is plausible. There is no magic number, but the header holds offsets."""
    if len(head) < _HEADER.size:
        return False
    kind, columns, year, month, day, count4, at4, count6, at6, index4, index6, product, _, _ = _HEADER.unpack_from(head)
    return (
        kind in _DATABASE_TYPES
        and 2 <= columns <= 40
        and 1 <= month <= 12
        and 1 <= day <= 31
        and (product == _PRODUCT or (product == 0 and year <= 20))
        and count4 + count6 > 0
        and (count4 == 0 or _HEADER.size < at4 <= size - count4 * columns * 4 + 1)
        and (count6 == 0 or _HEADER.size < at6 <= size - count6 * (columns * 4 + 12) + 1)
        and max(index4, index6) < size
    )


class Ip2LocationReader:
    """An IP2Location file. The reader moves one file position, so lookups are serialized."""

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
        try:
            self.built: date | None = date(2000 + year, month, day)
        except ValueError:
            self.built = None
        self.about = f"IP2Location DB{kind}, of 20{year:02}-{month:02}-{day:02}"
        try:
            self._file: Any = package.IP2Location(str(path))
            self._check()
        except Exception as error:
            raise Unreadable(f"is a broken IP2Location database ({error})") from error

    def _check(self) -> None:
        """Looks up a few addresses, which raises for a truncated file."""
        for address in ("1.0.0.1", "8.8.8.8", "81.2.69.142", "203.119.0.1", "223.255.254.1", "2001:4860:4860::8888"):
            self._file.get_all(address)

    def locate(self, address: Address) -> Location | None:
        """The location of the address; None if unknown."""
        try:
            with self._lock:
                record = self._file.get_all(str(address))
        except Exception as error:
            _log_unreadable(error)
            return None
        if record is None:
            return None
        values = (record.country_short, record.region, record.city, record.latitude, record.longitude)
        return location(*(None if str(value).startswith(_UNAVAILABLE) else value for value in values))

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._file.close()
