"""Where an address is, as a geography database tells it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from ipaddress import IPv4Address, IPv6Address
from typing import Protocol

Address = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """About where, down to a city at most; what the database does not know is None. Coordinates are in degrees."""

    country: str
    """Two letters (ISO 3166-1)."""
    region: str | None = None
    """In English, as `Arizona`."""
    city: str | None = None
    latitude: float | None = None
    longitude: float | None = None


class Reader(Protocol):
    """An open database. It may be asked from any thread; what it cannot read is as what it does not know."""

    @property
    def about(self) -> str:
        """What it is: its format, its kind and its date."""

    @property
    def built(self) -> date | None:
        """The day that it was made; None where it does not say."""

    def locate(self, address: Address) -> Location | None:
        """Where the address is; None where nobody knows."""

    def close(self) -> None:
        """Lets go of the file."""


class Unreadable(Exception):
    """The file is no such database; the message says what it is instead."""


def location(
    country: object, region: object = None, city: object = None, latitude: object = None, longitude: object = None
) -> Location | None:
    """From what a file says, which may be anything: a value that cannot be right is left out. None without a country."""
    code = _text(country)
    if code is None or len(code) != 2 or not (code.isascii() and code.isalpha()):
        return None
    lat, lon = _degrees(latitude, 90), _degrees(longitude, 180)
    if lat is None or lon is None or (lat == 0 and lon == 0):  # off the coast of Africa is where the unknown is put
        lat = lon = None
    return Location(country=code.upper(), region=_text(region), city=_text(city), latitude=lat, longitude=lon)


LONGEST_NAME = 100
"""Characters of a name that are kept."""


def _text(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    text = "".join(char for char in value if char.isprintable()).strip()[:LONGEST_NAME]
    return text if text not in ("", "-") else None


def _degrees(value: object, most: int) -> float | None:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return number if -most <= number <= most else None  # NaN is neither
