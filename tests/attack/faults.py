"""Processes killed in the midst of work, a full disk, a wrong clock: no acknowledged write is lost, and everything recovers by itself.

The ledger of what was acknowledged is kept here, outside of the server."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread

import httpx
import psycopg

from menuwatch.db import embedded
from tests.attack.installation import READY_SECONDS, Installation, until
from tests.attack.report import Attack
from tests.e2e.recordings import page, product

_FAKETIME = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib", "/usr/local/lib")
_DISK_MB = 260
_SCHEDULER_SECONDS = 75.0
"""In which every loop of a server that goes by the minute has had its turn."""
_STANDING = """
SELECT count(*) FROM task_schedules WHERE enabled AND next_run_at > now() + interval_hours * interval '1 hour' + interval '1 day'
"""
_KEPT = "SELECT (SELECT count(*) FROM price_watches), (SELECT count(*) FROM task_history)"


class Ledger:
    """Writes all the time, and keeps the names that the server said it has."""

    def __init__(self, target: Installation) -> None:
        self._target, self._stop = target, Event()
        self._headers = target.token("ledger")
        self.acknowledged: list[str] = []
        self._thread = Thread(target=self._write, daemon=True)

    def _write(self) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            name = f"ledger {number}"
            with contextlib.suppress(httpx.HTTPError):
                body = {"name": name, "condition": "out_of_stock", "store_id": 1}
                answer = httpx.post(f"{self._target.address}/api/alerts", json=body, headers=self._headers, timeout=5)
                if answer.status_code == 201:
                    self.acknowledged.append(name)
                    continue
            self._stop.wait(0.1)

    def __enter__(self) -> Ledger:
        self._thread.start()
        until(lambda: len(self.acknowledged) > 3, 20)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(20)

    def lost(self) -> list[str]:
        """Names that were acknowledged and are not there."""
        kept = {name for (name,) in self._target.rows("SELECT name FROM alert_rules")}
        return [name for name in list(self.acknowledged) if name not in kept]


def run(attack: Attack) -> None:
    with attack.installation(look=False) as target:
        with Ledger(target) as ledger:
            for n in range(2):
                _case(attack, target, ledger, f"kill -9 of the database #{n}", lambda: _kill_database(target))
            for n in range(3):
                _case(attack, target, ledger, f"kill -9 of the server #{n}", lambda: _kill_server(target))
        for n in range(3):
            _kill_replay(attack, target, f"kill -9 of a replay #{n}")
        attack.figures["acknowledged"] = len(ledger.acknowledged)
    _full_disk(attack)
    _wrong_clock(attack)


def _case(attack: Attack, target: Installation, ledger: Ledger, case: str, do: Callable[[], None]) -> None:
    """Does it, and waits for the server to come back without any help."""
    if not attack.begins(case):
        return
    time.sleep(attack.chance(case).uniform(0, 0.5))  # a random moment among the writes
    do()
    _comes_back(attack, target, case)
    _nothing_lost(attack, target, ledger, case)


def _comes_back(attack: Attack, target: Installation, case: str) -> None:
    began = time.monotonic()
    ready = until(target.ready)
    attack.figures["ready s"] = max(attack.figures.get("ready s", 0), round(time.monotonic() - began))
    if not attack.expect(ready, case, f"not ready within {READY_SECONDS:.0f} s", target.excerpt("listening on")):
        target.command("stores", "list")  # starts the database, so that the other cases can be tried
        until(target.ready, 30)
    target.hold_database()


def _nothing_lost(attack: Attack, target: Installation, ledger: Ledger, case: str) -> None:
    if target.ready():
        lost = ledger.lost()
        attack.expect(not lost, case, f"{len(lost)} of {len(ledger.acknowledged)} acknowledged writes lost: {lost[:5]}")
        code, said = target.command("verify")
        attack.expect(code == 0, case, f"verify: exit code {code}: {said[-300:]}")


def _kill_database(target: Installation) -> None:
    os.kill(target.hold_database(), signal.SIGKILL)


def _kill_server(target: Installation) -> None:
    target.stop(signal.SIGKILL)
    target.start()


def _kill_replay(attack: Attack, target: Installation, case: str) -> None:
    if not attack.begins(case):
        return
    folder = target.home.parent / f"menus-{case[-1]}"
    folder.mkdir()
    for n in range(12):
        store = f"5f00000000000000000{case[-1]}{n:03}"
        (folder / f"{n}.json").write_bytes(page([product(k, price=5 + n, store=store) for k in range(400)]))
    words = ["replay", *map(str, sorted(folder.iterdir()))]
    before = target.rows("SELECT count(*) FROM raw_crawl_payloads")
    process = target.launch(*words, output=folder / "killed.out")
    until(lambda: process.poll() is not None or target.rows("SELECT count(*) FROM raw_crawl_payloads") != before)
    time.sleep(attack.chance(case).uniform(0, 0.4))  # a random moment of its work
    process.kill()
    process.wait()
    # A file whose row the death prevented is kept for an hour, for it may be another process's; then it is `--repair`'s to remove.
    for file in (target.home / "storage").rglob("*~*"):
        os.utime(file, (0, 0))
    code, said = target.command("verify", "--repair")
    attack.expect(code == 0, case, f"verify --repair: exit code {code}: {said[-300:]}")
    code, said = target.command(*words)
    attack.expect(code == 0, case, f"the same again: exit code {code}: {said[-300:]}")
    code, said = target.command("verify")
    attack.expect(code == 0, case, f"verify: exit code {code}: {said[-300:]}")


@contextlib.contextmanager
def _small_disk(folder: Path) -> Iterator[Path]:
    """A disk of its own of which there is not much; raises OSError where one cannot be had."""
    folder.mkdir(parents=True)
    options = ["mount", "-t", "tmpfs", "-o", f"size={_DISK_MB}m,mode=755", "tmpfs", str(folder)]
    done = subprocess.run(options, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(done.stderr.strip())
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


def _full_disk(attack: Attack) -> None:
    case = "full disk"
    if not attack.begins(case):
        return
    if os.geteuid() != 0 or shutil.which("mount") is None:
        attack.skip(case, "only root can mount a small disk")
        return
    try:
        with (
            _small_disk(attack.folder / attack.part / "disk") as disk,
            attack.installation("disk/home", look=False) as target,
            Ledger(target) as ledger,
        ):
            ballast = disk / "ballast"
            with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
                while True:
                    file.write(b"\0" * 65_536)
            answer = until(lambda: _unready(target), 20)
            speaks = answer is None or "disk" in answer or "space" in answer
            attack.expect(speaks, case, f"/readyz does not speak of the disk: {answer}")
            attack.figures["full disk ended the database"] = not target.hold_database()
            ballast.unlink()
            _comes_back(attack, target, case)
            _nothing_lost(attack, target, ledger, case)
    except OSError as error:
        attack.skip(case, f"no small disk: {error}")


def _unready(target: Installation) -> str | None:
    """What /readyz says where it is not ready. The database needs the disk now, not when its present file is full."""
    with contextlib.suppress(psycopg.Error):
        for _ in range(20):
            target.rows("SELECT pg_logical_emit_message(false, '', repeat('x', 10000000))")
    answer = target.get("/readyz", timeout=20.0)
    return answer.text if answer is not None and answer.status_code != 200 else None


def _wrong_clock(attack: Attack) -> None:
    case = "clock 20 years ahead"
    if not attack.begins(case):
        return
    library = next((one for folder in _FAKETIME for one in Path(folder).glob("faketime/libfaketimeMT.so.1")), None)
    if library is None:
        attack.skip(case, "libfaketime is not on this machine")
        return
    fake = {"LD_PRELOAD": str(library), "FAKETIME": "+20y", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    target = attack.template.copied(attack.folder / attack.part / "ahead")
    # The database keeps the right time: it is started by a process that has it, and only then the server that has not.
    _, database = embedded.start(target.home / "postgres")
    try:
        target.hold_database()
        target.rows("UPDATE task_schedules SET enabled = true, next_run_at = now() - interval '1 minute' RETURNING id")
        target.start(environ=fake)
        alert, site = {"condition": "any_drop", "by": "feed"}, {"Sec-Fetch-Site": "same-origin"}
        address = f"{target.address}/p/{target.ids()['address']}/watch"
        set_by = httpx.post(address, data=alert, headers=site, timeout=30).status_code
        before = target.rows(_KEPT)
        attack.expect(set_by == 303, case, f"a shopper's alert could not be set: {set_by}")
        time.sleep(_SCHEDULER_SECONDS)
        after = target.rows(_KEPT)
        attack.expect(after == before, case, f"deleted: {before} alerts and tasks became {after}")
        target.stop()
        target.start()
        done = until(lambda: target.rows(_STANDING) == [(0,)])
        standing = target.rows(_STANDING)[0][0]
        attack.expect(done, case, f"{standing} schedules stand still for years after the clock was right again")
        target.environ |= fake
        code, said = target.command("doctor", "--json")
        clocks = re.search(r'"check":\s*"clocks?",\s*"level":\s*"problem"', said)
        attack.expect(clocks, case, f"doctor sees no problem with the clock: exit code {code}: {said[-300:]}")
    finally:
        target.environ = {name: value for name, value in target.environ.items() if name not in fake}
        target.stop()
        database.close()
