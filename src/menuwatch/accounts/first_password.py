"""The first admin's password as a file in the data folder, for servers whose output is kept: a log file, a pipe, a container's log."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from menuwatch.accounts.users import FIRST_NAME

FILE = "first-login"


def write(home: Path, password: str) -> Path:
    """Writes user and password where only this account of the operating system can read them; returns the file's absolute path.
    Raises OSError."""
    home.mkdir(parents=True, exist_ok=True)
    file = home.resolve() / FILE
    file.unlink(missing_ok=True)  # of an installation that was there before; what it links to is left alone
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.write(f"user={FIRST_NAME}\npassword={password}\n")
    return file


def discard(home: Path, name: str) -> None:
    """Removes the file after the user `name` has chosen a password, where it is theirs that it holds."""
    if name == FIRST_NAME:
        with contextlib.suppress(OSError):  # a password that is no longer valid
            (home / FILE).unlink(missing_ok=True)
