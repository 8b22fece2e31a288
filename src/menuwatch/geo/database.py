"""The geography database of GEOIP_DATABASE: told by its content, read anew when the file is replaced."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

from menuwatch.core.errors import Refused
from menuwatch.core.telemetry import get_logger
from menuwatch.geo import ip2location, mmdb
from menuwatch.geo.location import Address, Location, Reader, Unreadable

log = get_logger(__name__)

LOOK_SECONDS = 5.0
"""How often it is looked whether the file is another one."""
_TAIL = 128 * 1024
_TAKES = "it takes a MaxMind-format file (.mmdb) or an IP2Location BIN file, unpacked, that knows countries or cities"
_OTHERS = (
    (b"PK\x03\x04", "is a ZIP archive: unpack it and name the .BIN or .mmdb file in it"),
    (b"\x1f\x8b", "is packed (gzip): unpack it and name the .mmdb or .BIN file in it"),
    (b"<", "is a web page or XML: the download went wrong"),
    (b'"', "is a CSV table: the BIN or the MMDB edition is needed"),
)
_Version = tuple[int, int, int]


class GeoDatabase:
    """An open file that is followed. One that is replaced by something broken is not taken: the one before goes on answering."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises Refused with what is wrong with the file and what would be right. `clock` is in seconds."""
        self.path = path
        self._clock = clock
        self._lock = threading.Lock()
        try:
            self._version = _version(path)
            self._reader = _open(path)
        except OSError as error:
            raise Refused(f"GEOIP_DATABASE={str(path)!r} cannot be read: {error.strerror}; {_TAKES}") from error
        except Unreadable as error:
            raise Refused(f"GEOIP_DATABASE={str(path)!r} cannot be used: it {error}; {_TAKES}") from error
        self._look_at = clock() + LOOK_SECONDS
        log.info("places of addresses are known", action="geo_opened", path=str(path), database=self.about)

    @property
    def about(self) -> str:
        """What is open: its format, its kind and its date."""
        return self._reader.about

    @property
    def built(self) -> date | None:
        """The day that the open file was made; None where it does not say."""
        return self._reader.built

    def locate(self, address: Address) -> Location | None:
        """Where the address is; None for addresses that are nowhere (private ones, loopback) and where nobody knows."""
        if not address.is_global:
            return None
        with self._lock:
            self._follow()
            return self._reader.locate(address)

    def close(self) -> None:
        """Lets go of the file."""
        with self._lock:
            self._reader.close()

    def _follow(self) -> None:
        now = self._clock()
        if now < self._look_at:
            return
        self._look_at = now + LOOK_SECONDS
        try:
            version = _version(self.path)
            if version == self._version:
                return
            self._version = version
            fresh = _open(self.path)
        except (OSError, Unreadable) as error:
            log.warning(
                "the new file cannot be used; the one before goes on answering",
                action="geo_not_renewed",
                path=str(self.path),
                error=str(error),
            )
            return
        self._reader.close()
        self._reader = fresh
        log.info("the file was replaced and read anew", action="geo_renewed", path=str(self.path), database=self.about)


def opened(path: Path | None) -> GeoDatabase | None:
    """The database of GEOIP_DATABASE; None where it is not set. Raises Refused where it cannot be used."""
    return None if path is None else GeoDatabase(path)


def _version(path: Path) -> _Version:
    found = path.stat()
    return found.st_mtime_ns, found.st_size, found.st_ino


def _open(path: Path) -> Reader:
    if path.is_dir():
        raise Unreadable("is a folder: name the file in it")
    with path.open("rb") as file:
        head = file.read(64)
        size = file.seek(0, 2)
        file.seek(max(0, size - _TAIL))
        tail = file.read()
    if mmdb.MARKER in tail:
        return mmdb.MaxMind(path)
    if ip2location.is_bin(head, size):
        return ip2location.Bin(path)
    if not size:
        raise Unreadable("is empty")
    raise Unreadable(next((what for start, what in _OTHERS if head.startswith(start)), "is neither, or was cut off"))
