"""Passwords of proxies at rest: sealed with a key of the operator's, in clear where there is none.

What is stored says which it is: `fernet:…` is sealed (Fernet: AES-128-CBC with HMAC-SHA256), anything else is the password itself. A
password that looks like one of our marks is stored behind `clear:`. Several keys may be configured: the first seals, all open, so
a key is changed by putting the new one in front and sealing anew (`menuwatch proxies seal`).
"""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from menuwatch.core.errors import Refused
from menuwatch.core.settings import Settings
from menuwatch.core.telemetry import get_logger
from menuwatch.proxies.model import Proxy

if TYPE_CHECKING:
    from cryptography.fernet import Fernet, MultiFernet

log = get_logger(__name__)

_SEALED, _CLEAR = "fernet:", "clear:"


class Locked(Refused):
    """Something is sealed, and none of the configured keys opens it."""

    def __init__(
        self,
        *,
        key_given: bool,
        what: str = "the password of a proxy is",
        many: bool = False,
        named: str = "",
        way_out: str = "give the proxy anew",
    ) -> None:
        """`what` is sealed, with its verb; `many` of them, named in `named`. `way_out` is what to do where the key is lost."""
        it, was = ("them", "they were") if many else ("it", "it was")
        how = (
            f"none of the keys in SECRET_KEY opens {it}: add the key that {was} sealed with"
            if key_given
            else f"SECRET_KEY is not set: set it to the key that {was} sealed with"
        )
        which = f" ({named})" if named else ""
        super().__init__(f"{what} sealed{which}, and {how}. Where the key is lost, {way_out}")


class Vault:
    """Seals and opens. Neither its representation nor its errors hold a key or a password."""

    def __init__(self, keys: Sequence[str] = ()) -> None:
        """`keys` as `new_key` makes them; none: nothing is sealed."""
        self._keys = tuple(keys)
        self._made: tuple[Fernet, MultiFernet] | None = None

    def __repr__(self) -> str:
        return f"<Vault with {len(self._keys)} keys>"

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """With the keys of SECRET_KEY."""
        return cls(settings.secret_key)

    @property
    def has_key(self) -> bool:
        """Whether it seals."""
        return bool(self._keys)

    def seal(self, password: str | None) -> str | None:
        """What is to be stored."""
        if password is None:
            return None
        if self._keys:
            return _SEALED + self._fernets()[1].encrypt(password.encode()).decode("ascii")
        return _CLEAR + password if password.startswith((_SEALED, _CLEAR)) else password

    def open(self, stored: str | None) -> str | None:
        """The password; raises Locked where none of the keys opens it."""
        if stored is None or not stored.startswith((_SEALED, _CLEAR)):
            return stored
        if stored.startswith(_CLEAR):
            return stored.removeprefix(_CLEAR)
        if not self._keys:
            raise Locked(key_given=False)
        return self._opened(stored, newest=False)

    def opened(self, proxy: Proxy) -> Proxy:
        """The proxy with its password as a connection needs it; raises Locked."""
        return replace(proxy, password=self.open(proxy.password))

    def usable(self, proxy: Proxy) -> Proxy:
        """As `opened`, for who is at work: a proxy whose password cannot be opened is left without one. It is then the proxy that
        refuses, and is taken out for it, and no task fails because one proxy was added with another key."""
        try:
            return self.opened(proxy)
        except Locked as error:
            log.warning(
                "a password cannot be opened", action="proxy_password_locked", proxy_id=proxy.id, error=str(error)
            )
            return replace(proxy, password=None)

    def is_current(self, stored: str | None) -> bool:
        """Whether it is stored as `seal` would store it now: under the first key, or in clear where there is none."""
        if stored is None:
            return True
        if not self._keys:
            return not is_sealed(stored)
        try:
            return is_sealed(stored) and self._opened(stored, newest=True) is not None
        except Locked:
            return False

    def _opened(self, stored: str, *, newest: bool) -> str:
        from cryptography.fernet import InvalidToken

        first, every = self._fernets()
        token = stored.removeprefix(_SEALED)
        try:
            return (first.decrypt(token) if newest else every.decrypt(token)).decode()
        except (InvalidToken, ValueError):
            raise Locked(key_given=True) from None

    def _fernets(self) -> tuple[Fernet, MultiFernet]:
        if self._made is None:
            # Whoever has no key does not load the library.
            from cryptography.fernet import Fernet, MultiFernet

            made = [Fernet(key) for key in self._keys]
            self._made = made[0], MultiFernet(made)
        return self._made


def is_sealed(stored: str | None) -> bool:
    """Whether what is stored can be read with a key only."""
    return stored is not None and stored.startswith(_SEALED)


def new_key() -> str:
    """A fresh key for SECRET_KEY: 32 random bytes in URL-safe base64."""
    return urlsafe_b64encode(secrets.token_bytes(32)).decode("ascii")
