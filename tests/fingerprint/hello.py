"""What a TLS ClientHello says about who sent it: JA3, JA3N and JA4, read from the bytes on the wire.

Sources: RFC 8446 section 4.1.2 (the message) and 4.2 (its extensions), RFC 8701 (GREASE), the JA3 description by Salesforce,
and FoxIO's JA4 technical details. JA3N is JA3 with the extensions sorted, for browsers that shuffle them.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass

SERVER_NAME, GROUPS, POINT_FORMATS, SIGNATURES, ALPN, PADDING, VERSIONS = 0, 10, 11, 13, 16, 21, 43

_HANDSHAKE, _CLIENT_HELLO = 22, 1
_JA4_VERSIONS = {0x0304: "13", 0x0303: "12", 0x0302: "11", 0x0301: "10", 0x0300: "s3", 0x0002: "s2"}


class Incomplete(ValueError):
    """The bytes end before the message does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """A ClientHello. All numbers as sent, in the order of sending, GREASE included."""

    version: int
    ciphers: tuple[int, ...]
    extensions: tuple[int, ...]
    groups: tuple[int, ...]
    point_formats: tuple[int, ...]
    signatures: tuple[int, ...]
    versions: tuple[int, ...]
    alpn: tuple[bytes, ...]
    server_name: str | None

    def ja3_text(self, *, sort: bool = False) -> str:
        """The five fields of JA3 before they are hashed; `sort` puts the extensions in numeric order."""
        extensions = _plain(self.extensions)
        parts = (
            _plain(self.ciphers),
            sorted(extensions) if sort else extensions,
            _plain(self.groups),
            self.point_formats,
        )
        return ",".join([str(self.version), *("-".join(map(str, part)) for part in parts)])

    @property
    def ja3(self) -> str:
        """Changes from connection to connection where a browser shuffles its extensions."""
        return hashlib.md5(self.ja3_text().encode()).hexdigest()

    @property
    def ja3n(self) -> str:
        """JA3 with sorted extensions."""
        return hashlib.md5(self.ja3_text(sort=True).encode()).hexdigest()

    @property
    def ja4_a(self) -> str:
        """The part of JA4 that people can read: transport, version, name or address, counts, first protocol."""
        version = max(_plain(self.versions) or [self.version])
        counts = (min(len(_plain(part)), 99) for part in (self.ciphers, self.extensions))
        has_name = "d" if SERVER_NAME in self.extensions else "i"
        return f"t{_JA4_VERSIONS.get(version, '00')}{has_name}{''.join(f'{count:02}' for count in counts)}{self._protocol()}"

    @property
    def ja4_raw(self) -> str:
        """JA4 before hashing (JA4_r)."""
        ciphers = ",".join(sorted(_hex(_plain(self.ciphers))))
        extensions = ",".join(
            sorted(_hex(number for number in _plain(self.extensions) if number not in (SERVER_NAME, ALPN)))
        )
        signatures = ",".join(_hex(_plain(self.signatures)))
        return "_".join([self.ja4_a, ciphers, extensions, *([signatures] if signatures else [])])

    @property
    def ja4(self) -> str:
        """Its fingerprint as FoxIO defines it."""
        start, ciphers, rest = self.ja4_raw.split("_", 2)
        return f"{start}_{_short(ciphers)}_{_short(rest)}"

    def _protocol(self) -> str:
        if not self.alpn or not self.alpn[0]:
            return "00"
        first, last = self.alpn[0][:1], self.alpn[0][-1:]
        if first.isalnum() and last.isalnum():
            return (first + last).decode()
        return first.hex()[0] + last.hex()[1]


def _plain(numbers: Iterable[int]) -> list[int]:
    """Without GREASE: both bytes equal, each ending in A."""
    return [number for number in numbers if number & 0x0F0F != 0x0A0A or number >> 8 != number & 0xFF]


def _hex(numbers: Iterable[int]) -> list[str]:
    return [f"{number:04x}" for number in numbers]


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12] if text else "0" * 12


class _Bytes:
    """Reads a message from its start."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise Incomplete(f"{end - len(self._data)} bytes are missing")
        found, self._at = self._data[self._at : end], end
        return found

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def counted(self, size: int) -> _Bytes:
        """What follows a length of `size` bytes."""
        return _Bytes(self.take(self.number(size)))

    def numbers(self, size: int) -> tuple[int, ...]:
        found = []
        while self:
            found.append(self.number(size))
        return tuple(found)

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._at)


def parse_stream(raw: bytes) -> Hello:
    """The ClientHello at the start of a connection, whatever number of records it is cut into. Raises Incomplete, ValueError."""
    records, message = _Bytes(raw), b""
    while len(message) < 4 or len(message) < 4 + int.from_bytes(message[1:4], "big"):
        kind = records.number(1)
        if kind != _HANDSHAKE:
            raise ValueError(f"a record of type {kind}, where a handshake begins with {_HANDSHAKE}")
        records.take(2)
        message += records.counted(2).rest()
    return parse(message)


def parse(message: bytes) -> Hello:
    """A ClientHello as a handshake message, without the record around it."""
    outer = _Bytes(message)
    if (kind := outer.number(1)) != _CLIENT_HELLO:
        raise ValueError(f"a handshake message of type {kind}, where a ClientHello has {_CLIENT_HELLO}")
    hello = outer.counted(3)
    (version,) = struct.unpack("!H", hello.take(2))
    hello.take(32)  # random
    hello.counted(1)  # session id
    ciphers = hello.counted(2).numbers(2)
    hello.counted(1)  # compression
    extensions: list[tuple[int, bytes]] = []
    rest = hello.counted(2) if hello else _Bytes(b"")
    while rest:
        number = rest.number(2)
        extensions.append((number, rest.counted(2).rest()))
    bodies = dict(extensions)
    names = _Bytes(bodies[SERVER_NAME]).counted(2) if bodies.get(SERVER_NAME) else None
    return Hello(
        version=version,
        ciphers=ciphers,
        extensions=tuple(number for number, _ in extensions),
        groups=_Bytes(bodies[GROUPS]).counted(2).numbers(2) if GROUPS in bodies else (),
        point_formats=_Bytes(bodies[POINT_FORMATS]).counted(1).numbers(1) if POINT_FORMATS in bodies else (),
        signatures=_Bytes(bodies[SIGNATURES]).counted(2).numbers(2) if SIGNATURES in bodies else (),
        versions=_Bytes(bodies[VERSIONS]).counted(1).numbers(2) if VERSIONS in bodies else (),
        alpn=_protocols(_Bytes(bodies[ALPN]).counted(2)) if ALPN in bodies else (),
        server_name=_name(names) if names is not None else None,
    )


def _protocols(offered: _Bytes) -> tuple[bytes, ...]:
    found = []
    while offered:
        found.append(offered.counted(1).rest())
    return tuple(found)


def _name(names: _Bytes) -> str:
    names.take(1)  # kind: host name, the only one there is
    return names.counted(2).rest().decode("ascii")
