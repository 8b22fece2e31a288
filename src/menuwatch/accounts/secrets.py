"""Secrets that we make ourselves: of sessions and tokens. 256 random bits each, so one SHA-256 is hash enough: there is no list of
likely ones to try. Only the hash is stored."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

_BYTES = 32
_TOKEN = re.compile(r"mw_([1-9][0-9]{0,9})_([0-9a-f]{64})")


def new_secret() -> str:
    """256 random bits as 64 hexadecimal digits."""
    return secrets.token_hex(_BYTES)


def hashed(secret: str) -> bytes:
    """What is stored of a secret."""
    return hashlib.sha256(secret.encode()).digest()


def same(stored: bytes, secret: str) -> bool:
    """Whether that is the secret's hash, in a time that does not tell where they differ."""
    return hmac.compare_digest(stored, hashed(secret))


def token_text(token_id: int, secret: str) -> str:
    """The token as it is shown once. Its beginning lets scanners find one that was committed somewhere."""
    return f"mw_{token_id}_{secret}"


def parse_token(text: str) -> tuple[int, str] | None:
    """(id, secret) of a token's text, None where it is none."""
    match = _TOKEN.fullmatch(text)
    if match is None or int(match[1]) > 2**31 - 1:
        return None
    return int(match[1]), match[2]


_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
"""Without letters and digits that look like each other: it is read from a terminal and typed."""


def one_time_password() -> str:
    """Four groups of five characters, 99 bits: an initial password, to be changed at the first login."""
    return "-".join("".join(secrets.choice(_ALPHABET) for _ in range(5)) for _ in range(4))
