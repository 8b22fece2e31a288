"""The rows of tables as text, hashed so that their order does not matter: PostgreSQL promises none."""

from __future__ import annotations

import hashlib

_SIZE = 16
_MODULUS = 1 << (8 * _SIZE)


class Digest:
    """Of a set of rows, each a line of COPY's text format: the sum of their hashes, and how many there are."""

    def __init__(self) -> None:
        self.rows = 0
        self._sum = 0

    def add(self, lines: bytes) -> None:
        """Whole lines, one or more."""
        for line in lines.split(b"\n")[:-1]:
            self._sum += int.from_bytes(hashlib.blake2b(line, digest_size=_SIZE).digest())
            self.rows += 1

    @property
    def value(self) -> str:
        """As the manifest has it."""
        return f"{self._sum % _MODULUS:0{2 * _SIZE}x}"
