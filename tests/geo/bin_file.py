"""Writes files in IP2Location's format, DB5 (country, region, city, latitude, longitude): a header, rows that begin where their range
does, and texts with their length before them. All positions count from 1; those of texts point at the byte before."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from ipaddress import IPv6Network, ip_network
from pathlib import Path

_COLUMNS = 6
Entry = tuple[str, str, str, str, float, float]
"""Network, country, region, city, latitude, longitude."""


def write(path: Path, entries: Sequence[Entry], *, day: int = 21) -> None:
    """A database of these networks; every address between them is unknown ("-")."""
    four = _ranges([entry for entry in entries if not isinstance(ip_network(entry[0]), IPv6Network)], 1 << 32)
    six = _ranges([entry for entry in entries if isinstance(ip_network(entry[0]), IPv6Network)], 1 << 128)
    head = 64
    size4, size6 = len(four) * _COLUMNS * 4, len(six) * (_COLUMNS * 4 + 12)
    texts_at = head + size4 + size6
    texts, known = bytearray(), {}

    def text(value: str, *, long: str = "") -> int:
        if (value, long) not in known:
            known[value, long] = texts_at + len(texts)
            for part in (value, long) if long else (value,):
                raw = part.encode("latin-1")
                texts.extend(bytes([len(raw)]) + raw)
        return known[value, long]

    def row(start: int, entry: Entry, width: int) -> bytes:
        _, country, region, city, latitude, longitude = entry
        # The long name of a country lies 3 bytes behind the short one, which therefore has two letters; "-" is filled up.
        places = (text(f"{country:2.2}", long=country), text(region), text(city))
        return start.to_bytes(width, "little") + struct.pack("<3I2f", *places, latitude, longitude)

    rows = b"".join(row(start, entry, 4) for start, entry in four) + b"".join(
        row(start, entry, 16) for start, entry in six
    )
    header = struct.pack(
        "<5B6I3B", 5, _COLUMNS, 26, 11, day, len(four) - 1, head + 1, len(six) - 1, head + size4 + 1, 0, 0, 1, 0, 0
    )
    path.write_bytes(header.ljust(head, b"\0") + rows + bytes(texts))


def _ranges(entries: Sequence[Entry], end: int) -> list[tuple[int, Entry]]:
    """Where each row begins; the last one only ends the one before it."""
    nobody: Entry = ("", "-", "-", "-", 0.0, 0.0)
    found: list[tuple[int, Entry]] = []
    at = 0
    for entry in sorted(entries, key=lambda entry: int(ip_network(entry[0]).network_address)):
        network = ip_network(entry[0])
        first, after = int(network.network_address), int(network.broadcast_address) + 1
        if first > at:
            found.append((at, nobody))
        found.append((first, entry))
        at = after
    if at < end:
        found.append((at, nobody))
    return [*found, (end - 1, nobody)]
