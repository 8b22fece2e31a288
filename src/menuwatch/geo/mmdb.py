"""Databases in MaxMind's format (.mmdb), with places as GeoIP2, GeoLite2 and DB-IP lay them out."""

from __future__ import annotations

import itertools
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import maxminddb

from menuwatch.core.telemetry import get_logger
from menuwatch.geo.location import Address, Location, Unreadable, location

log = get_logger(__name__)

MARKER = b"\xab\xcd\xefMaxMind.com"
"""Stands before the metadata, in the last 128 KiB of the file."""
_LOOKED_AT = 1000
"""Records among which one must be of a place."""


class MaxMind:
    """Read from the file, not mapped into memory: a file that is copied over in place would end a process that has it mapped."""

    def __init__(self, path: Path) -> None:
        """Raises Unreadable for what is broken, and for databases of other things than places."""
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
        self._six = meta.ip_version == 6
        built = datetime.fromtimestamp(meta.build_epoch, UTC)
        self.built = built.date()
        self.about = f"MaxMind format, {meta.database_type}, of {built:%Y-%m-%d}"
        some = itertools.islice(self._reader, _LOOKED_AT)
        if not any(_read(record) is not None for _, record in some):
            raise Unreadable(f"is a MaxMind database of another kind ({meta.database_type}): it knows no countries")

    def locate(self, address: Address) -> Location | None:
        """Where the address is."""
        if address.version == 6 and not self._six:
            return None
        try:
            with self._lock:
                return _read(self._reader.get(address))
        except Exception as error:
            # A record that points nowhere, or the file is just being written over.
            log.warning("an entry cannot be read", action="geo_unreadable", error=f"{type(error).__name__}: {error}")
            return None

    def close(self) -> None:
        """Lets go of the file."""
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
    found = record.get(key)
    return found if isinstance(found, dict) else {}


def _name(of: dict[str, Any]) -> object:
    return _part(of, "names").get("en")
