"""Secrets at rest (proxy passwords, alert channels): encrypted with the operator's keys, or stored in clear without a key.

`fernet:…` is encrypted (Fernet: AES-128-CBC with HMAC-SHA256); anything else is the secret itself. A secret that begins with one of
these prefixes is stored behind `clear:`. The first of several keys encrypts, all decrypt: to change the key, put the new one in front
and run `menuwatch proxies seal`.
"""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from typing import TYPE_CHECKING

from menuwatch.core.errors import Refused

if TYPE_CHECKING:
    from cryptography.fernet import Fernet, MultiFernet

ENCRYPTED, _CLEAR = "fernet:", "clear:"


class DecryptionError(Refused):
    """A secret is encrypted, and none of the configured keys decrypts it."""

    def __init__(
        self,
        *,
        key_given: bool,
        what: str = "the password of a proxy is",
        many: bool = False,
        named: str = "",
        way_out: str = "add the proxy again",
    ) -> None:
        """`what` is encrypted, with its verb; `many` of them, named in `named`. `way_out` is what to do where the key is lost."""
        it, was = ("them", "they were") if many else ("it", "it was")
        how = (
            f"no key in SECRET_KEY decrypts {it}: add the key that {was} encrypted with"
            if key_given
            else f"SECRET_KEY is not set: set it to the key that {was} encrypted with"
        )
        which = f" ({named})" if named else ""
        super().__init__(f"{what} encrypted{which}, and {how}. If the key is lost, {way_out}")


class SecretBox:
    """Encrypts and decrypts. Neither its representation nor its errors hold a key or a secret."""

    def __init__(self, keys: Sequence[str] = ()) -> None:
        """`keys` as `new_key` makes them; without one nothing is encrypted."""
        self._keys = tuple(keys)
        self._made: tuple[Fernet, MultiFernet] | None = None

    def __repr__(self) -> str:
        return f"<SecretBox with {len(self._keys)} keys>"

    @property
    def has_key(self) -> bool:
        """Whether a key is configured."""
        return bool(self._keys)

    def encrypt(self, password: str | None) -> str | None:
        """The text to store."""
        if password is None:
            return None
        if self._keys:
            return ENCRYPTED + self._fernets()[1].encrypt(password.encode()).decode("ascii")
        return _CLEAR + password if password.startswith((ENCRYPTED, _CLEAR)) else password

    def decrypt(self, stored: str | None) -> str | None:
        """The secret; raises DecryptionError if none of the keys decrypts it."""
        if stored is None or not stored.startswith((ENCRYPTED, _CLEAR)):
            return stored
        if stored.startswith(_CLEAR):
            return stored.removeprefix(_CLEAR)
        if not self._keys:
            raise DecryptionError(key_given=False)
        return self._decrypted(stored, newest=False)

    def can_decrypt(self, *stored: str | None) -> bool:
        """Whether all of these can be decrypted."""
        try:
            for text in stored:
                self.decrypt(text)
        except DecryptionError:
            return False
        return True

    def is_current(self, stored: str | None) -> bool:
        """Whether it is stored as `encrypt` would store it now: under the first key, or in clear without a key."""
        if stored is None:
            return True
        if not self._keys:
            return not is_encrypted(stored)
        try:
            return is_encrypted(stored) and self._decrypted(stored, newest=True) is not None
        except DecryptionError:
            return False

    def _decrypted(self, stored: str, *, newest: bool) -> str:
        from cryptography.fernet import InvalidToken

        first, every = self._fernets()
        token = stored.removeprefix(ENCRYPTED)
        try:
            return (first.decrypt(token) if newest else every.decrypt(token)).decode()
        except (InvalidToken, ValueError):
            raise DecryptionError(key_given=True) from None

    def _fernets(self) -> tuple[Fernet, MultiFernet]:
        if self._made is None:
            # Import the library only when a key is configured.
            from cryptography.fernet import Fernet, MultiFernet

            fernets = [Fernet(key) for key in self._keys]
            self._made = fernets[0], MultiFernet(fernets)
        return self._made


def is_encrypted(stored: str | None) -> bool:
    """Whether the stored text can be read only with a key."""
    return stored is not None and stored.startswith(ENCRYPTED)


def new_key() -> str:
    """A fresh key for SECRET_KEY: 32 random bytes in URL-safe base64."""
    return urlsafe_b64encode(secrets.token_bytes(32)).decode("ascii")
