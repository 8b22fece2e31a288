"""The worker processes, and who keeps them in order."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Self

from menuwatch.queue.model import Role

ROOT = Path(__file__).resolve().parents[2]


class Leash:
    """A process that ends all others when this one is gone, whatever happened to it."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-S", str(Path(__file__).with_name("process_cleanup.py"))],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        self._say(f"folder {folder}")

    def hold(self, pid: int) -> None:
        self._say(f"+{pid}")

    def let_go(self, pid: int) -> None:
        self._say(f"-{pid}")

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)


@dataclass(slots=True)
class Member:
    """One worker process. `busy`: somebody is doing something to it."""

    name: str
    roles: frozenset[Role] | None
    slots: int
    process: asyncio.subprocess.Process
    busy: bool = False

    def signal(self, what: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(what)


class Crew:
    """Starts workers; a place that becomes empty is filled with a new process of another name."""

    def __init__(self, leash: Leash, folder: Path, common: dict[str, object], rng: Random) -> None:
        self._leash = leash
        self._folder = folder
        self._common = common
        self._rng = rng
        self._serial = 0
        self.members: list[Member] = []

    async def hire(self, roles: frozenset[Role] | None, slots: int) -> Member:
        """One more; some have no patience with tasks that run when they are told to stop."""
        self._serial += 1
        name = f"c{self._serial}"
        grace = self._rng.choice((0.05, 10.0))
        given = {
            **self._common,
            "name": name,
            "folder": self._folder,
            "grace": grace,
            "slots": slots,
            "roles": ",".join(roles or ()),
        }
        with (self._folder / f"{name}.log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tests.chaos.worker",
                *(text for key, value in given.items() for text in (f"--{key}", str(value))),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])},
                start_new_session=True,
            )
        self._leash.hold(process.pid)
        member = Member(name, roles, slots, process)
        self.members.append(member)
        return member

    async def gone(self, member: Member) -> int:
        """Waits for its end; returns its exit code."""
        code = await member.process.wait()
        self._leash.let_go(member.process.pid)
        self.members.remove(member)
        return code

    async def replace(self, member: Member) -> int:
        """Waits for its end, and fills its place."""
        code = await self.gone(member)
        await self.hire(member.roles, member.slots)
        return code

    async def dismiss(self) -> list[tuple[str, int]]:
        """Everybody goes home in good order; who does not in a minute is thrown out. Returns names and exit codes."""
        members = list(self.members)
        for member in members:
            member.signal(signal.SIGCONT)
            member.signal(signal.SIGTERM)
        codes = []
        for member in members:
            try:
                async with asyncio.timeout(60):
                    codes.append((member.name, await self.gone(member)))
            except TimeoutError:
                member.signal(signal.SIGKILL)
                codes.append((member.name, await self.gone(member)))
        return codes

    async def kill(self) -> None:
        """Everybody, at once."""
        for member in list(self.members):
            member.signal(signal.SIGKILL)
            await self.gone(member)
