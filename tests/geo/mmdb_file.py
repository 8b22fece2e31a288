"""Writes files in MaxMind's format, from its published specification (version 2.0): a tree of bits, data, metadata."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from ipaddress import IPv4Network, ip_network
from pathlib import Path
from typing import Any

_MARKER = b"\xab\xcd\xefMaxMind.com"
BUILT = 1_790_000_000  # 2026-09-21


def city(country: str, region: str = "", name: str = "", at: tuple[float, float] | None = None) -> dict[str, Any]:
    """A record as GeoIP2 City lays it out."""
    found: dict[str, Any] = {"country": {"iso_code": country, "names": {"en": country, "de": "x"}}}
    if region:
        found["subdivisions"] = [{"iso_code": region[:2].upper(), "names": {"en": region}}]
    if name:
        found["city"] = {"names": {"de": f"{name}-de", "en": name}}
    if at:
        found["location"] = {"latitude": at[0], "longitude": at[1], "time_zone": "UTC"}
    return found


def write(
    path: Path, networks: Mapping[str, Any], *, kind: str = "Test-City", version: int = 6, record_size: int = 24
) -> None:
    """A database of these networks, none within another. In one of version 6 an IPv4 network lies below ::/96."""
    nodes: list[list[int | None]] = [[None, None]]
    data = bytearray()
    ends: list[tuple[int, int, int]] = []  # node, side, offset of its data
    for text, record in networks.items():
        network = ip_network(text)
        bits, length = int(network.network_address), network.prefixlen
        width = 32 if version == 4 else 128
        if isinstance(network, IPv4Network) and version == 6:
            length += 96
        node = 0
        for depth in range(length - 1):
            side = bits >> (width - 1 - depth) & 1
            following = nodes[node][side]
            if following is None:
                nodes.append([None, None])
                following = nodes[node][side] = len(nodes) - 1
            node = following
        ends.append((node, bits >> (width - length) & 1, len(data)))
        data += _encoded(record)
    for node, side, offset in ends:
        nodes[node][side] = len(nodes) + 16 + offset
    tree = b"".join(_node([len(nodes) if value is None else value for value in pair], record_size) for pair in nodes)
    meta = {
        "node_count": _uint(6, len(nodes)),
        "record_size": _uint(5, record_size),
        "ip_version": _uint(5, version),
        "database_type": _encoded(kind),
        "languages": _encoded(["en", "de"]),
        "binary_format_major_version": _uint(5, 2),
        "binary_format_minor_version": _uint(5, 0),
        "build_epoch": _uint(9, BUILT),
        "description": _encoded({"en": "made by a test"}),
    }
    metadata = _control(7, len(meta)) + b"".join(_encoded(key) + raw for key, raw in meta.items())
    path.write_bytes(tree + bytes(16) + bytes(data) + _MARKER + metadata)


def _node(pair: list[int], size: int) -> bytes:
    left, right = pair
    if size == 28:  # the high halves of both lie in the byte between them
        middle = (left >> 24) << 4 | right >> 24
        return (left & 0xFFFFFF).to_bytes(3, "big") + bytes([middle]) + (right & 0xFFFFFF).to_bytes(3, "big")
    return left.to_bytes(size // 8, "big") + right.to_bytes(size // 8, "big")


def _encoded(value: Any) -> bytes:
    if isinstance(value, bool):
        return _control(14, int(value))
    if isinstance(value, int):
        return _uint(6 if value < 1 << 32 else 9, value)
    if isinstance(value, str):
        raw = value.encode()
        return _control(2, len(raw)) + raw
    if isinstance(value, float):
        return _control(3, 8) + struct.pack(">d", value)
    if isinstance(value, list):
        return _control(11, len(value)) + b"".join(map(_encoded, value))
    return _control(7, len(value)) + b"".join(_encoded(key) + _encoded(item) for key, item in value.items())


def _uint(kind: int, value: int) -> bytes:
    """Of 16 (5), 32 (6) or 64 (9) bits, without the zeros at its front."""
    raw = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return _control(kind, len(raw)) + raw


def _control(kind: int, size: int) -> bytes:
    """The byte that says what comes and how long it is; kinds above 7 have a byte of their own, and so have sizes from 29 on."""
    more = b""
    if size >= 285:
        size, more = 30, (size - 285).to_bytes(2, "big")
    elif size >= 29:
        size, more = 29, bytes([size - 29])
    head = bytes([kind << 5 | size]) if kind <= 7 else bytes([size, kind - 7])
    return head + more
