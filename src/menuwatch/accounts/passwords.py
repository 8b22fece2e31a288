"""Password rules, and argon2 hashing in separate threads, so that the event loop is not blocked.

At most two are hashed at a time: each takes 64 MiB, so many logins wait rather than fill the memory.
"""

from __future__ import annotations

import asyncio
import functools
import re
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Self, TypeVar, TypeVarTuple

from menuwatch.accounts import secrets
from menuwatch.config.settings import Settings
from menuwatch.core.errors import Refused, Transient

if TYPE_CHECKING:
    from argon2 import PasswordHasher

_A = TypeVarTuple("_A")
_R = TypeVar("_R")

SHORTEST, LONGEST = 12, 200
"""Characters of a password."""


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=2, thread_name_prefix="argon2")


_MOST_WAITING = 40


class TooMany(Transient):
    """So many passwords wait to be hashed that one more would wait for long."""


class _Queue:
    length = 0


_queue = _Queue()


async def _apart(call: Callable[[*_A], _R], *arguments: *_A) -> _R:
    if _queue.length >= _MOST_WAITING:
        raise TooMany("too many logins in progress: try again in a moment")
    _queue.length += 1
    try:
        return await asyncio.get_running_loop().run_in_executor(_threads(), call, *arguments)
    finally:
        _queue.length -= 1


@functools.cache
def _hasher(memory_kib: int) -> PasswordHasher:
    from argon2 import PasswordHasher  # no other command waits for it to be loaded

    return PasswordHasher(memory_cost=memory_kib)


@functools.cache
def _unmatchable_hash(memory_kib: int) -> str:
    return _hasher(memory_kib).hash(secrets.new_secret())


def _folded(password: str) -> bytes:
    """The same password whatever keyboard composed its letters."""
    return unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")


def check(password: str, *, name: str) -> None:
    """Raises Refused, without the password, where the user `name` may not choose it: it has too few or too many characters, or is too
    easy to guess. Usually takes less than 1 ms, for text made to be slow 70 ms."""
    from zxcvbn_rs_py import zxcvbn  # no other command waits for it to be loaded

    if not SHORTEST <= len(password) <= LONGEST:
        raise Refused(f"a password must have {SHORTEST} to {LONGEST} characters; this one has {len(password)}")
    whole = _folded(password).decode("utf-8", "replace")
    for word in (name, _PRODUCT):
        if len(word) >= _NAME_COUNTS and word.lower() in whole.lower() and len(whole) < len(word) + SHORTEST:
            raise Refused(f"this password is too easy to guess. It contains {word!r}. {_ACCEPTED}")
    text = whole[:_JUDGED]
    strength = zxcvbn(text, [_PRODUCT, name, *filter(None, re.split(r"[^A-Za-z0-9]+", name))])
    if strength.guesses_log10 < _FEWEST_GUESSES_LOG10:
        warning = strength.feedback.warning if strength.feedback is not None else None
        reason = str(warning).rstrip(".") if warning is not None else "It is made of a few common words, names or dates"
        raise Refused(f"this password is too easy to guess. {reason}. {_ACCEPTED}")


_PRODUCT = "menuwatch"
_NAME_COUNTS = 3
"""Shorter names stand in too many words."""
_FEWEST_GUESSES_LOG10 = 10.0
"""zxcvbn's best score begins at 10^10 guesses."""
_JUDGED = 32
"""Characters that zxcvbn reads: its time grows with the square of their number, and common passwords are shorter."""
_ACCEPTED = f"Use four uncommon words, or {SHORTEST} random letters and digits"


class Passwords:
    """Hashes and verifies. `memory_kib` is what each hash made here takes, KiB; those that are verified say themselves."""

    def __init__(self, memory_kib: int = 65_536) -> None:
        self._memory_kib = memory_kib

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """As PASSWORD_MEMORY_KIB has it."""
        return cls(settings.password_memory_kib)

    async def hash(self, password: str) -> str:
        """What is stored of a password that was accepted before, or that we made."""
        return await _apart(_hasher(self._memory_kib).hash, _folded(password))

    async def hash_new(self, password: str, *, name: str) -> str:
        """What is stored of a password that the user `name` chose. Raises Refused as `check` does."""
        await _apart(functools.partial(check, name=name), password)
        return await self.hash(password)

    async def verify(self, stored: str | None, password: str) -> bool:
        """Whether the password matches the hash. Without a hash (unknown user) it takes as long and returns False."""
        return await _apart(self._verify, stored, _folded(password[: LONGEST + 1]))

    def weak(self, stored: str) -> bool:
        """Whether that hash was made with other parameters than are used now."""
        return _hasher(self._memory_kib).check_needs_rehash(stored)

    def _verify(self, stored: str | None, password: bytes) -> bool:
        from argon2.exceptions import InvalidHashError, VerificationError

        unmatchable = _unmatchable_hash(self._memory_kib)  # always, so that the first call does not differ in time
        try:
            _hasher(self._memory_kib).verify(stored or unmatchable, password)
        except (VerificationError, InvalidHashError):
            return False
        return stored is not None
