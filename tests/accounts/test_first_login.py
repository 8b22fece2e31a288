"""The first admin's password: on a terminal it is shown, elsewhere it is in a file that goes when it is changed."""

from __future__ import annotations

import io
import os
import re
import sys
from pathlib import Path

import pytest

from menuwatch.accounts import first_password as first_login
from menuwatch.archive.files import FileArchive
from menuwatch.cli.run import _first_login
from menuwatch.config.settings import Settings
from menuwatch.db.pool import Pool
from menuwatch.web.dependencies import AppContext
from tests.accounts.conftest import Make, browser, log_in


def _system(pool: Pool, home: Path) -> AppContext:
    settings = Settings(home=home, password_memory_kib=1024)
    return AppContext(pool=pool, archive=FileArchive(home / "storage"), platforms={}, settings=settings)


async def _said(pool: Pool, home: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the first start prints where its output is not a terminal."""
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    return "\n".join(await _first_login(_system(pool, home)))


async def test_a_log_names_a_file_that_goes_with_the_first_change(
    make: Make, pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / first_login.FILE
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("not ours")
    file.symlink_to(elsewhere)
    said = await _said(pool, tmp_path, monkeypatch)
    user, password = (line.partition("=")[2] for line in file.read_text().splitlines())
    assert (file.stat().st_mode & 0o777, file.is_symlink(), elsewhere.read_text()) == (0o600, False, "not ours")
    assert str(file) in said
    assert password not in said
    async with browser(make()) as http:
        assert (await log_in(http, user, password)).json()["must_change_password"] is True
        for new, status, kept in (("password1234", 400, True), ("one of my own choice", 200, False)):
            answer = await http.post("/api/session/password", json={"current": password, "new": new})
            assert (answer.status_code, file.exists()) == (status, kept)


async def test_a_terminal_shows_it(pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = os.openpty()
    with os.fdopen(ours, "rb", buffering=0), os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        said = await _first_login(_system(pool, tmp_path))
    assert re.search(r"user admin, password [a-z0-9]{5}-", said[0])
    assert not (tmp_path / first_login.FILE).exists()


async def test_where_no_file_can_be_written_there_is_a_command(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "file"
    home.write_text("")
    said = await _said(pool, home, monkeypatch)
    assert "menuwatch users password admin" in said
    assert "Not a directory" in said or "File exists" in said
