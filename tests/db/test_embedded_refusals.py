"""Why the embedded server does not start, in words; who may start it; and that a lost database is not replaced by an empty one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import psycopg
import pytest

from menuwatch.config.settings import Settings
from menuwatch.core.errors import Refused
from menuwatch.db import embedded
from menuwatch.ops import doctor
from tests.commands import menuwatch
from tests.conftest import in_memory


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="menuwatch-refused-", dir=in_memory()) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def _refusal(folder: Path) -> str:
    with pytest.raises(Refused) as refused:
        embedded.start(folder)
    said = str(refused.value)
    assert "exit status" not in said
    assert str(folder) in said
    return said


def test_a_start_that_fails_says_why(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = home / "postgres"
    embedded.start(folder)[1].close()
    settings = folder / "postgresql.conf"
    good = settings.read_text()
    settings.write_text(good + "port = many x\n")
    assert "syntax error in file" in _refusal(folder)
    settings.write_text(good + "shared_buffers = 12parsecs\n")
    assert 'invalid value for parameter "shared_buffers"' in _refusal(folder)
    settings.write_text(good)
    folder.chmod(0o755)
    assert "Permissions should be" in _refusal(folder)
    folder.chmod(0o700)
    (folder / "pg_wal").rename(home / "wal")
    assert "pg_wal" in _refusal(folder)
    (home / "wal").rename(folder / "pg_wal")
    if os.geteuid() == 0:
        owner = (folder / "PG_VERSION").stat()
        os.chown(folder / "PG_VERSION", 65534, 65534)
        assert "belongs to user" in _refusal(folder)
        os.chown(folder / "PG_VERSION", owner.st_uid, owner.st_gid)
    url, stack = embedded.start(folder)
    with stack, psycopg.connect(url) as conn:
        assert conn.execute("SELECT 1").fetchone() == (1,), "nothing was changed"
    assert "starting PostgreSQL" not in capfd.readouterr().err, "the server's log is not printed"


_START = """
import sys
from pathlib import Path
from menuwatch.db import embedded
embedded.start(Path(sys.argv[1]))
print("started")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start it as another user")
def test_another_user_of_the_machine_starts_one_of_their_own(home: Path) -> None:
    temporary, own = home / "tmp", home / "own"
    temporary.mkdir()
    temporary.chmod(0o1777)
    (temporary / ".lockfile").touch(0o644)  # what the library's own lock leaves behind when root starts it first
    own.mkdir()
    os.chown(own, 65534, 65534)
    env = {name: text for name, text in os.environ.items() if not name.startswith("XDG_")}
    done = subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-c", _START, own / "postgres"],
        env=env | {"TMPDIR": str(temporary), "HOME": str(own), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "started\n", "")
    assert not (own / "postgres" / "postmaster.pid").exists(), "and it is stopped at the end"


def test_an_archive_without_its_database_is_no_new_installation(home: Path) -> None:
    payload = home / "storage/payloads/2026/01/01/store_1.json.gz"
    payload.parent.mkdir(parents=True)
    payload.touch()
    settings = Settings(home=home)
    with (
        pytest.raises(Refused, match=r"menuwatch restore.*menuwatch rebuild.*migrate --empty"),
        embedded.database_url(settings),
    ):
        pass
    env = os.environ | {"MENUWATCH_HOME": str(home), "DATABASE_URL": "", "STORAGE_PATH": ""}
    asked = menuwatch("doctor", "--json", env=env)
    (found,) = [one for one in json.loads(asked.stdout)["findings"] if one["check"] == "database"]
    assert (asked.returncode, found["level"]) == (1, "problem")
    assert not (home / "postgres").exists()
    begun = menuwatch("migrate", "--empty", env=env)
    assert (begun.returncode, begun.stderr) == (0, "")
    with embedded.database_url(settings):
        assert (home / "postgres" / "PG_VERSION").exists(), "from then on it is an installation like any other"
    shutil.rmtree(home / "storage")


@pytest.mark.parametrize(
    ("version", "newest"),
    [("17.0", 17), ("18.4 (Debian 18.4-1)", 18), ("15.1", 15), ("16.999", None), ("19beta1", None), ("14.2", None)],
)
def test_a_newer_minor_release_is_known(version: str, newest: int | None) -> None:
    found = doctor.newer_minor(version)
    known = None if newest is None else doctor.NEWEST_MINOR[newest]
    assert found == (known and (f"{newest}.{known.minor}", known.as_of))


def test_the_doctor_shows_the_release_and_warns_of_an_old_one() -> None:
    assert set(doctor.NEWEST_MINOR) == {15, 16, 17, 18}
    assert all(date(2026, 1, 1) < known.as_of for known in doctor.NEWEST_MINOR.values())
    old, new = doctor.server("18.0", where="embedded"), doctor.server("18.99", where="DATABASE_URL")
    assert (old.level, new.level, new.mend) == ("warning", "ok", None)
    known = doctor.NEWEST_MINOR[18]
    assert {"18.0", f"18.{known.minor}", str(known.as_of)} <= set(
        old.detail.replace(")", " ").replace(";", " ").split()
    )
