"""Passwords: what one must be, and argon2 in threads of its own, so that the event loop goes on meanwhile.

Two are hashed at a time, no more: each takes 64 MiB, and whoever sends many logins should wait rather than fill the memory.
"""

from __future__ import annotations

import asyncio
import functools
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Self, TypeVar, TypeVarTuple

from menuwatch.accounts import secrets
from menuwatch.core.errors import Refused, Transient
from menuwatch.core.settings import Settings

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
        raise TooMany("many logins are under way: try again in a moment")
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
def _nobodys(memory_kib: int) -> str:
    return _hasher(memory_kib).hash(secrets.new_secret())


def _folded(password: str) -> bytes:
    """The same password whatever keyboard composed its letters."""
    return unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")


def check(password: str, *, name: str) -> None:
    """Raises Refused, without the password, where it cannot be one."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise Refused(f"a password has {SHORTEST} to {LONGEST} characters; this one has {len(password)}")
    if len(set(password)) < 5:
        raise Refused("this password is too easy to guess: it has fewer than five different characters")
    if name.casefold() in password.casefold() and len(password) < len(name) + SHORTEST:
        raise Refused("this password is too easy to guess: it holds the user's name and little else")


class Passwords:
    """Hashes and verifies. `memory_kib` is what each hash made here takes, KiB; those that are verified say themselves."""

    def __init__(self, memory_kib: int = 65_536) -> None:
        self._memory_kib = memory_kib

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """As PASSWORD_MEMORY_KIB has it."""
        return cls(settings.password_memory_kib)

    async def hash(self, password: str) -> str:
        """What is stored of it."""
        return await _apart(_hasher(self._memory_kib).hash, _folded(password))

    async def verify(self, stored: str | None, password: str) -> bool:
        """Whether it is the password of that hash. Without a hash (nobody has that name) it takes as long, and it is not."""
        return await _apart(self._verify, stored, _folded(password[: LONGEST + 1]))

    def weak(self, stored: str) -> bool:
        """Whether that hash was made with other parameters than are used now."""
        return _hasher(self._memory_kib).check_needs_rehash(stored)

    def _verify(self, stored: str | None, password: bytes) -> bool:
        from argon2.exceptions import InvalidHashError, VerificationError

        nobodys = _nobodys(self._memory_kib)  # always, so that its first making tells nothing either
        try:
            _hasher(self._memory_kib).verify(stored or nobodys, password)
        except (VerificationError, InvalidHashError):
            return False
        return stored is not None
